/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fewest blocks that cover a range, and the files that they are in, which are kept open, with their
 * dictionaries, for the next search.
 */
#ifndef SB_STORE_SEARCH_H
#define SB_STORE_SEARCH_H

#include "store/store_priv.h"

/* Dictionaries of files that no search needs just now, what is known of their blocks, and files. */
#define SB_STORE_CACHE_BYTES (256u << 20)
/* Of these, sums of questions before, of all files: those that were asked for longest ago are forgotten beyond it. */
#define SB_STORE_SUMS_BYTES  (64u << 20)
#define SB_STORE_CACHE_FILES 64u

struct sb_search_file {
	int64_t begin_s, end_s;
};

struct sb_search {
	struct sb_store *store;
	const char *kind;
	struct sb_store_answer *answer;
	/* What is done with a block. Return: 0; -EBADMSG: damaged, which is counted; others end it. */
	int (*visit)(struct sb_search *search, struct sb_part *part, const struct sb_record *block);
	void *arg;
	bool is_fine_only;		/* sums do not have the tags that are asked for */
	SB_VEC(struct sb_part *) parts; /* of this search; those that are not there, too */
	struct sb_part *last[SB_STORE_LEVELS];
	/* Which times have files, by level, oldest first, as of the first look: nobody looks at those between. */
	SB_VEC(struct sb_search_file) files[SB_STORE_LEVELS];
	bool has_files;
	/* By level, the period that was looked at last, and whether a part of what it sums up is gone. */
	struct {
		int64_t begin_s;
		bool is_known, is_partial;
	} looked[SB_STORE_LEVELS];
};

/* Zeroes *search->answer. To be ended in any case. */
void sb_search_begin(struct sb_search *search);
/* Visit the blocks of [from, to), which is rounded to 10 s outward. Return: 0 or what visit() returned. */
int sb_search_range(struct sb_search *search, int64_t from_s, int64_t to_s);
/* The same, of a range that was rounded and narrowed. */
int sb_search_cover(struct sb_search *search, int64_t from_s, int64_t to_s);
/* The file of @level that has that time, as it is now. Return: 0 or a negative errno. */
int sb_search_part(struct sb_search *search, size_t level, int64_t time_s,
		   struct sb_part **ret_part);
void sb_search_end(struct sb_search *search);

/* sb_search_range() with a visit() of its own: add up the rows, part by part, in part->resum.result. */
int sb_search_sums(struct sb_search *search, int64_t from_s, int64_t to_s);

/*
 * Set is_fine_only if one of the keys of @rules or @by, either may be NULL, is a wide tag in [from, to).
 * Return: 0 or a negative errno.
 */
int sb_search_tags(struct sb_search *search, const struct sb_tag_rules *rules, const char *by,
		   int64_t from_s, int64_t to_s);

/* Narrow [from, to) to the time of which there are files: nobody looks at years without one. Return: 0 or a
 * negative errno. */
int sb_search_narrow(struct sb_store *store, int64_t *from_s, int64_t *to_s);

/* What the parts' maps are of; after an error in one of them, too. */
void sb_store_forget_atlas(struct sb_store *store);
/* Of sb_store_close(). */
void sb_store_forget_parts(struct sb_store *store);

/* Which sets of tags of a dictionary are wanted: asked once for each. */
struct sb_wanted {
	const struct sb_dict *dict;
	const struct sb_tag_rules *rules; /* or NULL */
	int8_t *is_wanted;		  /* by set of tags; -1: not known yet */
};
/* Return: 0 or -ENOMEM. */
int sb_wanted_init(struct sb_wanted *wanted, const struct sb_dict *dict,
		   const struct sb_tag_rules *rules);
bool sb_wanted_is(struct sb_wanted *wanted, uint32_t tags_id);
void sb_wanted_release(struct sb_wanted *wanted);

#endif
