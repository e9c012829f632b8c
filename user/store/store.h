/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Profiles over time, in a directory: blocks of 10 s, and sums of them over 10 minutes, an hour and a day, so
 * that any range is a few blocks. Every file stands alone: what is too old is freed by removing it.
 *
 *	DIR/stackbpf-store	what it is: "stackbpf store 1"
 *	DIR/LOCK		held by the one who writes
 *	DIR/10s/20261121.sb	segment.h; times are UTC
 *	DIR/10min/20261121.sb	without wide tags from here on
 *	DIR/1h/202611.sb
 *	DIR/1d/202611.sb
 *
 * One writer; readers need no lock. The files may be anything: all is bounded and checked. Not thread-safe.
 * After the storage of Pyroscope (2021): levels, interned stacks; see docs/continuous.md.
 */
#ifndef SB_STORE_STORE_H
#define SB_STORE_STORE_H

/* The file by which a directory is known to be a store; the first that is made. */
#define SB_STORE_MARK "stackbpf-store"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/profile.h"
#include "store/level.h"
#include "store/segment.h"
#include "store/tags.h"

struct sb_store;

struct sb_store_opts {
	bool no_sync;			  /* do not wait for the disk after each block */
	uint64_t keep_s[SB_STORE_LEVELS]; /* 0: for ever */
	uint64_t bytes_max;		  /* of all files; 0: no bound */
};

/*
 * Open for writing, or make one. Sums that the last writer did not come to are made.
 * Return: 0; -EBUSY: somebody writes; -ENOTEMPTY: a directory of other things; -EPROTO: a store of another
 * version; others of I/O; -ENOMEM.
 */
int sb_store_open_to_write(const char *path, const struct sb_store_opts *opts,
			   struct sb_store **ret_store);
/* Return: 0; -ENOENT: no such directory; -ENOTEMPTY, -EPROTO: as above; others of I/O. */
int sb_store_open(const char *path, struct sb_store **ret_store);
void sb_store_close(struct sb_store *store);

/* Samples with the same tags, which are sorted by key. The kind is none of them: it is said of the block. */
struct sb_store_series {
	const struct sb_tag *tags;
	size_t nr_tags;
	const struct sb_profile *profile; /* sealed */
};
/* 10 s of one kind. */
struct sb_store_block {
	int64_t begin_s; /* a multiple of 10 */
	const char *kind,
		*unit; /* "oncpu", "samples": at most 11 bytes each; unit by the view's unit_of() */
	uint64_t figure[SB_BLOCK_FIGURE_MAX]; /* but SB_BLOCK_OTHER */
	const struct sb_store_series *series;
	size_t nr;
	uint16_t
		lead_ms; /* after begin_s, when it began; for how long it was sampled is a figure */
};
/*
 * Add a block: one for each kind and time; several of one time add up.
 * Return: 0; -EINVAL; -ENOSPC, ...: nothing of it is kept, and it can be tried again; -ENOMEM.
 */
int sb_store_put(struct sb_store *store, const struct sb_store_block *block);
/*
 * Why what was put last is not on the disk for sure, although it is kept and can be read: waiting for the disk
 * failed, or adding a block that came late to the sums. Return: 0 or a negative errno.
 */
int sb_store_put_status(const struct sb_store *store);
/* Remove files that are older than opts.keep_s, then the oldest of the finest level that are beyond
 * opts.bytes_max; never those being written. Return: 0 or the first error. */
int sb_store_expire(struct sb_store *store, int64_t now_s);

struct sb_store_prune {
	uint64_t keep_s[SB_STORE_LEVELS]; /* 0: for ever */
	uint64_t bytes_max;		  /* of all files; 0: no bound */
	bool is_dry;			  /* remove nothing */
	/* Called for each file that is removed; or NULL. */
	void (*fn)(void *arg, const char *name, uint64_t bytes);
	void *arg;
};
/* The same for a store that may be open for reading only: files that another process may write remain. */
int sb_store_prune(struct sb_store *store, const struct sb_store_prune *prune, int64_t now_s);

/*
 * Add all that @from has, level by level. Both are open for writing: what periods that have ended sum up to is
 * made first. Nothing is known of what was added before: twice is twice. Return: 0, -ENOMEM, others of I/O, and
 * then a part of it was added.
 */
int sb_store_merge(struct sb_store *store, struct sb_store *from, int64_t now_s);

/* What is in a file. */
struct sb_store_file_info {
	const char *name;
	size_t level;
	uint64_t bytes;
	size_t nr_blocks, nr_strings, nr_nodes, nr_tags, nr_rows;
	int64_t from_s, to_s; /* of blocks; 0: there are none */
	int err;	      /* it cannot be read; then nothing of the below is set */
	uint64_t nr_skipped_bytes, nr_tail_bytes, nr_damaged_dicts,
		nr_lost_entries;    /* see segment.h */
	uint64_t nr_damaged_blocks; /* if they were read */
	uint64_t lost_weight;	    /* of the others: rows that are in no dictionary */
};
struct sb_store_look {
	bool reads_blocks; /* every one */
	void (*on_file)(void *arg, const struct sb_store_file_info *info);
	/* Of each damaged one, before its file's on_file(); or NULL. */
	void (*on_damaged)(void *arg, const char *name, const struct sb_record *block);
	void *arg;
};
/* All files, oldest first within a level, finest first. Return: 0, -ENOMEM, others of I/O. */
int sb_store_look(struct sb_store *store, const struct sb_store_look *look);

struct sb_store_query {
	int64_t from_s, to_s; /* [from, to); rounded to 10 s outward */
	const char *kind;
	const struct sb_tag_rules *rules; /* NULL: none */
	const char *
		by; /* tags, separated by commas, whose values become the outermost frames; NULL: none */
	uint32_t nr_nodes_max; /* see struct sb_ask */
};
struct sb_store_answer {
	int64_t from_s,
		to_s; /* what was summed: coarser where some fine blocks are gone; 0: nothing */
	struct sb_store_kind kind;	      /* unit: of the first block */
	uint64_t figure[SB_BLOCK_FIGURE_MAX]; /* of all series of the kind in that time */
	uint64_t weight;		      /* in the profile */
	uint64_t all_weight;   /* the same, had there been no rules; with lost_weight */
	uint64_t trunc_weight; /* in the profile, of stacks of which a part is missing */
	uint64_t nosym_weight; /* the same, for each frame without a name once */
	uint64_t lost_weight;  /* whose stack is in a damaged record */
	uint64_t cut_weight;   /* of subtrees that nr_nodes_max made "(other)" */
	uint64_t nr_blocks, nr_damaged, nr_skipped_bytes;
	bool is_fine_only; /* a wide tag was asked for: only blocks of 10 s have it, as long as they are kept */
	uint64_t nr_other_unit; /* blocks that were measured in another unit, and are left out */
};
/* Add what was asked for to @profile, which has no frames yet where nr_nodes_max cuts. Return: 0, -EINVAL, -ENOMEM,
 * others of I/O. */
int sb_store_query(struct sb_store *store, const struct sb_store_query *query,
		   struct sb_profile *profile, struct sb_store_answer *ret_answer);

/* What was ever recorded. */
struct sb_store_extent {
	struct sb_store_kind kind;
	int64_t from_s, to_s; /* the first block of it that is left, and the end of the last */
	uint64_t hz;	      /* of the last one that says; 0: not by a clock */
	bool has_hz;	      /* one says */
};
#define SB_STORE_KINDS_MAX 32
/*
 * Kinds by name, at most SB_STORE_KINDS_MAX; reads the first and the last file of each level. With nothing
 * recorded, 0 kinds. Return: how many, or a negative errno.
 */
int sb_store_extents(struct sb_store *store,
		     struct sb_store_extent ret_extents[SB_STORE_KINDS_MAX]);

#endif
