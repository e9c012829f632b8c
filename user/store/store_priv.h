/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by store.c, write.c, roll.c and query.c. */
#ifndef SB_STORE_STORE_PRIV_H
#define SB_STORE_STORE_PRIV_H

#include "store/atlas.h"
#include "store/draw.h"
#include "store/joints.h"
#include "store/marks.h"
#include "store/store.h"
#include "store/sums.h"

struct sb_store_file {
	char name[SB_LEVEL_NAME_MAX];
	struct sb_segment segment;
	bool is_open;
};

/* A file that was read, and is kept for the next query. */
struct sb_part {
	char name[SB_LEVEL_NAME_MAX];
	bool is_there;
	uint64_t dev, ino;
	struct sb_segment segment;
	uint64_t used; /* by which query */
	struct sb_atlas_map map;
	struct sb_joints joints; /* when a question was cut */
	struct sb_marks marks;
	struct sb_resum resum;
};

struct sb_store {
	int dir_fd, lock_fd; /* lock_fd -1: we only read */
	struct sb_store_opts opts;
	/* Reading. */
	SB_VEC(struct sb_part *) parts;
	struct sb_atlas atlas; /* of the parts' maps */
	struct sb_unpacked unpacked;
	/* Kept from one question to the next: to get them from the system each time costs as much as what is done with
	 * them. */
	SB_VEC(uint64_t) self, total; /* by joint */
	struct sb_drawing drawing;
	uint64_t nr_queries;
	/* Writing. */
	struct sb_store_file out[SB_STORE_LEVELS];
	bool has_used_sums; /* since a block came: files of levels above the finest */
	int put_err;	    /* of what comes after appending a block */
	int64_t rolled_s[SB_STORE_LEVELS]; /* sums are there up to here */
	int64_t summed_s
		[SB_STORE_LEVELS]; /* no sum is there from here on: if the clock was wrong, later */
};

/* A stack with its tags, to be found in, or put into, a dictionary. */
struct sb_row_key {
	const struct sb_tag *tags;
	size_t nr_tags;
	uint32_t *tags_id; /* their number, kept for the next row; SB_DICT_NONE: not known yet */
	uint32_t node;
	bool has_no_node; /* there was no place for it */
	bool is_other;	  /* it was "(other)" before, and counted then */
};
/*
 * What has no place in @dict is "(other)" of its series, or of its owner, who is told by sb_dict_charge() before.
 * Return: 0 or -ENOMEM.
 */
int sb_store_add_row(struct sb_dict *dict, const struct sb_row_key *key, uint64_t weight,
		     struct sb_sums *sums);

/* Return: whether any process has it open for writing, as far as we may know. */
bool sb_store_has_writer(const struct sb_store *store);

/* Return: bytes of a file that are damaged. What is not whole at its end may be half of a write that goes on just now. */
uint64_t sb_store_skipped_bytes(const struct sb_store *store, const struct sb_segment *segment);

/* Call @fn with the files of a level, oldest first, with the time at which they begin. Return: 0, a negative
 * errno, or what @fn returned if that is not 0. */
int sb_store_each_file(const struct sb_store *store, size_t level,
		       int (*fn)(void *arg, const char *name, int64_t begin_s), void *arg);

/* Have the file of @level that has @time_s open for writing. Return: 0 or a negative errno. */
int sb_store_out(struct sb_store *store, size_t level, int64_t time_s,
		 struct sb_segment **ret_segment);
/* Add sums over rows of @from, without wide tags but at the finest level, as a block of @level. Return: 0 or a negative errno. */
int sb_store_transfer(struct sb_store *store, size_t level, const struct sb_segment_time *time,
		      const struct sb_store_kind *kind, const struct sb_dict *from,
		      const struct sb_segment_sums *sums);
/* Until the next period is over nobody needs their dictionaries, which are as big as that of the blocks. */
void sb_store_close_sums(struct sb_store *store);
/* Make the sums of all periods that have ended at @now_s, and close them. Return: 0 or a negative errno. */
int sb_store_roll(struct sb_store *store, int64_t now_s);
/* Return: 1: the period of @level that begins then has its sum of @kind, 0, or a negative errno. */
int sb_store_is_summed(struct sb_store *store, size_t level, int64_t begin_s,
		       const struct sb_store_kind *kind);
/* Where sums are missing from: after opening. Return: 0 or a negative errno. */
int sb_store_find_rolled(struct sb_store *store, int64_t now_s);

#endif
