/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the files of the store share among themselves: the store handle, the files that it keeps
 * open, and downsampling. Nobody outside of user/store includes it. Not thread-safe. Functions that
 * write are for a store that is open for writing, which is not checked. "A negative errno" is
 * -ENOMEM, or one of I/O, among them -EFBIG and -E2BIG for a file or a block that is too large. An
 * aggregate is a block of 10 min or longer, and to roll is to make those of periods that have
 * ended. Pointers are not NULL; @level is below SB_STORE_LEVELS, which is not checked. Times are
 * seconds since the epoch.
 */
#ifndef SB_STORE_STORE_PRIV_H
#define SB_STORE_STORE_PRIV_H

#include "store/branches.h"
#include "store/heaviest.h"
#include "store/merged_tree.h"
#include "store/missing.h"
#include "store/store.h"
#include "store/sums.h"

struct sb_store_file {
	char name[SB_LEVEL_NAME_MAX];
	struct sb_segment segment;
	bool is_open;
};

/* A file that a query has read, and that is kept open with its dictionary for the next query. */
struct sb_kept_file {
	char name[SB_LEVEL_NAME_MAX];
	bool is_there; /* else the file does not exist */
	uint64_t dev, ino;
	struct sb_segment segment;
	uint64_t used; /* number of the last query that needed it */
	struct sb_merged_tree_map map;
	struct sb_branches branches; /* only for queries with nr_nodes_max */
	struct sb_missing marks;
	struct sb_resum resum;
};

struct sb_store {
	int dir_fd, lock_fd; /* lock_fd -1: opened for reading only */
	struct sb_store_opts opts;
	/* Reading. */
	SB_VEC(struct sb_kept_file *) kept_files;
	struct sb_merged_tree merged; /* the maps of kept files refer to it */
	struct sb_unpacked unpacked;
	/* Scratch, kept between queries: allocating it anew takes as long as using it. */
	SB_VEC(uint64_t) self, total; /* by branch point */
	struct sb_heaviest_scratch heaviest;
	uint64_t nr_queries;
	bool has_told_kinds; /* sb_store_tell_kinds() */
	/* Writing. */
	struct sb_store_file out[SB_STORE_LEVELS];
	bool has_used_sums; /* a file above the finest level was used since the last block came */
	int put_err;	    /* see sb_store_put_status() */
	int64_t rolled_s[SB_STORE_LEVELS]; /* all periods before this have their aggregates */
	int64_t summed_s
		[SB_STORE_LEVELS]; /* none has one from here on; later if the clock was ahead */
};

/* A stack with its tags, to look up in a dictionary or to add to it. */
struct sb_row_key {
	const struct sb_tag *tags;
	size_t nr_tags;
	uint32_t *tags_id; /* in/out: ID in the dictionary; SB_DICT_NONE: unknown */
	uint32_t node;
	bool has_no_node; /* the dictionary had no room for the stack */
	bool is_other; /* the stack already was "(other)" in the source, and is not counted again */
};
/*
 * Add @weight to the row of @key in @sums, which begins zeroed and is extended, and add the row to
 * @dict if it is new. The caller has named the owner by sb_dict_set_owner() and looked up the node;
 * if there was no room for that, it sets has_no_node. If the dictionary has no room for the row,
 * the weight goes to "(other)" of its series or of that owner, and is counted in SB_BLOCK_OTHER.
 * @key has at most SB_DICT_TAGS_MAX tags, which is not checked. Return: 0; -ENOMEM; -E2BIG if there
 * is no room for "(other)" either. On error @dict may have new entries, and @sums is only to be
 * released.
 */
int sb_store_add_row(struct sb_dict *dict, const struct sb_row_key *key, uint64_t weight,
		     struct sb_sums *sums);

/*
 * Return: damaged bytes of a file. An incomplete record at its end counts only if the store has no
 * writer: it may be a write that is still going on.
 */
uint64_t sb_store_skipped_bytes(const struct sb_store *store, const struct sb_segment *segment);

/* Warn, once for each handle, that kinds of the store are left out: it has more than
 * SB_STORE_KINDS_MAX. */
void sb_store_tell_kinds(struct sb_store *store);

/*
 * Call @fn with the name and the begin of each file of a level, oldest first. @name is valid during
 * the call. The files are listed first, so @fn may add and remove some, and one that was removed
 * meanwhile is named all the same. Also of a store that is open only for reading. Return: 0; a
 * negative errno, -EFBIG for more than SB_STORE_FILES_MAX files; or the first value other than 0
 * that @fn returned.
 */
int sb_store_each_file(const struct sb_store *store, size_t level,
		       int (*fn)(void *arg, const char *name, int64_t begin_s), void *arg);

/*
 * Get the file of @level that contains @time_s, open for writing. If another file of this level is
 * open, it is closed first. The segment belongs to the store, and is valid until the next call for
 * this level, sb_store_close_sums() (for aggregates) or sb_store_close(). Return: 0; a negative
 * errno, and then *ret_segment is untouched, no file of this level is open, and the call may be
 * repeated.
 */
int sb_store_out(struct sb_store *store, size_t level, int64_t time_s,
		 struct sb_segment **ret_segment);
/*
 * Append @sums over the rows of @from as a block of @level, to the file that contains time->begin_s
 * (sb_store_out()). Wide tags are dropped, except at the finest level. Return: 0 or a negative
 * errno, and then the file has no such block.
 */
int sb_store_transfer(struct sb_store *store, size_t level, const struct sb_segment_time *time,
		      const struct sb_store_kind *kind, const struct sb_dict *from,
		      const struct sb_segment_sums *sums);
/* Close the files of aggregates: their large dictionaries are not needed until a period ends. */
void sb_store_close_sums(struct sb_store *store);
/* Make the aggregates of all periods that ended before @now_s. Return: 0 or a negative errno: those
 * made until then stay, and the next call makes the others. */
int sb_store_downsample(struct sb_store *store, int64_t now_s);
/*
 * Return: 1 if the period of @level that begins at @begin_s has its aggregate of @kind; 0 if not; a
 * negative errno. May close the file of this level that is open, and open another one for writing.
 */
int sb_store_is_summed(struct sb_store *store, size_t level, int64_t begin_s,
		       const struct sb_store_kind *kind);
/*
 * After opening for writing: find the time from which on aggregates are missing, by level
 * (rolled_s, summed_s). @now_s: the present; files of later times, which a clock that was wrong has
 * left, are not relied on. Return: 0 or a negative errno, and then the store can only be closed.
 */
int sb_store_find_rolled(struct sb_store *store, int64_t now_s);

#endif
