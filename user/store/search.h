/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the fewest blocks that cover a time range: coarse aggregates where they fit, finer blocks
 * at the edges. Files are kept open with their dictionaries for the next search. Called by all
 * queries (query.c, timeline.c, tag_values.c, extents.c, late_blocks.c). Not thread-safe. Times are
 * seconds since the epoch, ends exclusive. "A negative errno" is -ENOMEM, -E2BIG for more than
 * 4,096 files in a search, or one of I/O. Pointers are not NULL unless it says so; *ret_... is not
 * to be used after an error.
 *
 * A search: sb_search_begin(), perhaps sb_search_tags(), then sb_search_sums(), or any number of
 * sb_search_cover() and sb_search_kept_file(), then sb_search_end(). After an error only
 * sb_search_end() may follow. One store has one search at a time; a struct is used for one search.
 */
#ifndef SB_STORE_SEARCH_H
#define SB_STORE_SEARCH_H

#include "store/store_priv.h"

/* Bounds of what is kept between searches: memory, and number of files. */
#define SB_STORE_CACHE_BYTES (256u << 20)
/* Part of it for sums of earlier queries; the least recently used ones are evicted. */
#define SB_STORE_SUMS_BYTES  (64u << 20)
#define SB_STORE_CACHE_FILES 64u

struct sb_search_file {
	int64_t begin_s, end_s;
};

struct sb_search {
	struct sb_store *store;
	const char *kind; /* name; NULL: blocks are not searched, only files */
	struct sb_store_answer *answer;
	/*
	 * Called for each block; must not begin another search of the store. Return: 0; -EBADMSG if
	 * the block is damaged, which is counted; any other error ends the search.
	 */
	int (*visit)(struct sb_search *search, struct sb_kept_file *kept,
		     const struct sb_record *block);
	void *arg;
	bool is_fine_only; /* use 10-second blocks only: aggregates lack a tag of the query */
	/* Files of this search, including those that do not exist. */
	SB_VEC(struct sb_kept_file *) kept_files;
	struct sb_kept_file *last[SB_STORE_LEVELS];
	/* By level, oldest first: times that have files, to hop over those that have none. */
	SB_VEC(struct sb_search_file) files[SB_STORE_LEVELS];
	bool has_files;
	/* By level: the period checked last, and whether some of its finer blocks expired. */
	struct {
		int64_t begin_s;
		bool is_known, is_partial;
	} looked[SB_STORE_LEVELS];
};

/* Begin a search, of which the caller has set the members up to `is_fine_only` and zeroed the
 * others; zeroes *search->answer. sb_search_end() must follow, also after an error. */
void sb_search_begin(struct sb_search *search);
/*
 * Call search->visit() for the blocks of [from, to), which is rounded to 10 s and within the times
 * that have files (sb_search_narrow()). Return: 0; a negative errno, or what visit() returned.
 */
int sb_search_cover(struct sb_search *search, int64_t from_s, int64_t to_s);
/*
 * Get the file of @level (level.h: 0 is the finest) that contains @time_s, read up to its present
 * end. *ret_kept belongs to the store, and is valid until sb_search_end(). Return: 0; a negative
 * errno. That there is no such file is no error: (*ret_kept)->is_there is false then.
 */
int sb_search_kept_file(struct sb_search *search, size_t level, int64_t time_s,
			struct sb_kept_file **ret_kept);
/* End a search: free its lists, and close kept files beyond the bounds of the cache. */
void sb_search_end(struct sb_search *search);

/*
 * Search a range, rounded outward to 10 s, and sum its blocks, file by file, into resum.result of
 * each of search->kept_files, NULL if no block of the file was summed; valid until sb_search_end().
 * Once in a search. Replaces search->visit. Return: 0; -EINVAL if the range is empty; or a negative
 * errno.
 */
int sb_search_sums(struct sb_search *search, int64_t from_s, int64_t to_s);

/*
 * Before blocks are searched: set search->is_fine_only if a key of @rules, or of the list @by ("a"
 * or "a,b"), is a wide tag in [from, to), which aggregates do not have; else it stays as it is.
 * search->answer->is_fine_only becomes the same. @rules and @by may be NULL, and are not kept.
 * Return: 0 or a negative errno, and then it may be set or not.
 */
int sb_search_tags(struct sb_search *search, const struct sb_tag_rules *rules, const char *by,
		   int64_t from_s, int64_t to_s);

/* Clip [*from_s, *to_s) to the times that have files, for sb_search_cover(). If there are none, the
 * range is empty: *from_s is not below *to_s, and their difference can overflow. Needs no search.
 * Return: 0; -ENOMEM or an error of I/O, and then the range is not to be used. */
int sb_search_narrow(struct sb_store *store, int64_t *from_s, int64_t *to_s);

/*
 * Empty the merged tree and all maps of kept files that refer to it, so that the next query fills
 * it again. Needed when the merged tree has grown beyond SB_MERGED_TREE_BYTES_MAX, and after an
 * error in it or in a map. No index of the merged tree is valid afterwards, so not while a query
 * uses it.
 */
void sb_store_forget_merged_tree(struct sb_store *store);
/* Close all kept files and free what queries keep: part of sb_store_close(). */
void sb_store_forget_parts(struct sb_store *store);

/* Which sets of tags of a dictionary match the rules. Each set is matched once. */
struct sb_wanted {
	const struct sb_dict *dict;
	const struct sb_tag_rules *rules; /* or NULL */
	int8_t *is_wanted;		  /* by set of tags; -1: not matched yet */
};
/* Begin to match. @dict, which must not grow, and @rules, which may be NULL for all, are borrowed
 * until the release. Return: 0; -ENOMEM, nothing to release. */
int sb_wanted_init(struct sb_wanted *wanted, const struct sb_dict *dict,
		   const struct sb_tag_rules *rules);
/* Return: whether the set of tags with this ID matches the rules; false if there is none. */
bool sb_wanted_is(struct sb_wanted *wanted, uint32_t tags_id);
/* Free the table of which sets of tags match, also of a zero-initialized one or one that was
 * released; @dict and @rules stay. Only sb_wanted_init() can begin anew. */
void sb_wanted_release(struct sb_wanted *wanted);

#endif
