/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Profiles over time, in a directory: blocks of 10 s, and aggregates of 10 minutes, an hour and a
 * day, so that any range is covered by few blocks. Every file stands alone: retention removes whole
 * files.
 *
 *	DIR/stackbpf-store	marks the directory as a store: "stackbpf store 1"
 *	DIR/LOCK		locked by the writer
 *	DIR/10s/20261121.sb	segment.h; times are UTC
 *	DIR/10min/20261121.sb	without wide tags from here on
 *	DIR/1h/202611.sb
 *	DIR/1d/202611.sb
 *
 * There is one writer; readers need no lock. Files may be hostile, and everything is bounded and
 * checked. A handle is not thread-safe: use it from one thread at a time. Pointers are not NULL
 * unless it says so. Levels and interned stacks are modelled after the storage of Pyroscope (2021);
 * see docs/continuous.md.
 *
 * Order: a writer calls sb_store_open_to_write(), sb_store_put() and sb_store_put_status() for each
 * block, sb_store_expire() every few minutes, and sb_store_close(). A reader calls
 * sb_store_open(), any functions that read, and sb_store_close(). Structs that are passed begin
 * zeroed, and are borrowed for the call. After an error the handle is valid, and the call may be
 * repeated unless it says otherwise.
 *
 * Times are seconds since the epoch. Errors of I/O are negative errnos of system calls, and -EFBIG
 * for a file that is too large (segment.h) or a level of more than SB_STORE_FILES_MAX files. A
 * series is the samples with the same tags; a wide tag has many values, like pids, and is only in
 * 10-second blocks. "Figures" are the counts of enum sb_block_figure (segment.h): sampled time,
 * samples, lost samples, and so on.
 */
#ifndef SB_STORE_STORE_H
#define SB_STORE_STORE_H

/* The file that marks a directory as a store. It is created after the levels' directories. */
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
	uint64_t keep_s[SB_STORE_LEVELS]; /* retention by level; 0: for ever */
	uint64_t bytes_max;		  /* of all files; 0: no limit */
};

/**
 * sb_store_open_to_write() - open a store for writing, or create one
 * @path: a store, an empty directory, or a name that does not exist in an existing directory
 * @opts: copied
 * @ret_store: owned by the caller, closed by sb_store_close(); untouched on error
 *
 * Makes the aggregates that the last writer did not make.
 *
 * Return: 0; -EBUSY if another process writes; -ENOTEMPTY if the directory has other files; -EPROTO
 * if the store is of another version; -ENOMEM; other errors of I/O. A directory that was created
 * stays after an error.
 */
int sb_store_open_to_write(const char *path, const struct sb_store_opts *opts,
			   struct sb_store **ret_store);
/*
 * Open a store for reading. Return: 0 and *ret_store, owned by the caller, closed by
 * sb_store_close(); -ENOENT if the directory does not exist; -ENOTEMPTY if it is not a store;
 * -EPROTO if it is of another version; -ENOMEM; other errors of I/O. On error *ret_store is
 * untouched.
 */
int sb_store_open(const char *path, struct sb_store **ret_store);
/* Close the store and free it; nothing is left to be written. NULL is allowed. */
void sb_store_close(struct sb_store *store);
/*
 * Return: whether a process, this one included, has the store open for writing; false also if we
 * may not open the lock file.
 */
bool sb_store_has_writer(const struct sb_store *store);

/*
 * Remove a directory that sb_store_open_to_write() made, wholly or in part, and that no blocks were
 * written to. A process that opens the store for writing at the same time gets an error or a whole
 * store. Return: 0; -EBUSY if a process has it open for writing, and -ENOTEMPTY if it has anything
 * but what an empty store has: it stays as it is; -ENOENT if it does not exist; -ENOTDIR if @path
 * is a symbolic link; -ENOMEM; other errors of I/O, and then a part of the empty store may be gone.
 */
int sb_store_remove_empty(const char *path);

/* All samples that have exactly these tags: at most SB_DICT_TAGS_MAX, sorted by key, which is not
 * checked. The kind is not a tag: it belongs to the block. */
struct sb_store_series {
	const struct sb_tag *tags;
	size_t nr_tags;
};
/* 10 s of one kind. */
struct sb_store_block {
	int64_t begin_s; /* a multiple of 10 */
	/* "oncpu" and "samples", at most 11 bytes each; or a kind of at most 22 and a unit of
	 * sb_store_kind_set() (kind.h). The unit is that of the view's unit_of(). */
	const char *kind, *unit;
	uint64_t figure[SB_BLOCK_FIGURE_MAX]; /* the store adds to SB_BLOCK_OTHER */
	const struct sb_store_series *series;
	size_t nr;
	/* Sealed; the series of its rows are indexes of `series`. NULL: no samples. */
	const struct sb_profile *profile;
	uint16_t lead_ms; /* sampling began this long after begin_s */
};
/**
 * sb_store_put() - append a block and write it to disk
 * @block: one for each kind and time; several of one time add up
 *
 * First makes the aggregates of periods that have ended. A block that comes late is added to the
 * aggregates of its period.
 *
 * Return: 0, and then ask sb_store_put_status(); -EINVAL if the time, kind or unit is not valid, a
 * series has too many tags, a row has no series, or the store is not open for writing; -EFBIG or
 * -E2BIG if the block is too large for its file; -ENOSPC and other errors of I/O; -ENOMEM. On error
 * the file has nothing of the block, and it can be put again.
 */
int sb_store_put(struct sb_store *store, const struct sb_store_block *block);
/*
 * After a sb_store_put() that succeeded: why the block may not be on disk although it can be read,
 * because fdatasync() failed, or why a late block is not in all aggregates. Return: 0; or that
 * negative errno: readers see the block all the same, and it is not to be put again.
 */
int sb_store_put_status(const struct sb_store *store);
/* Remove the files that the store's options keep_s and bytes_max no longer allow at @now_s, as
 * sb_store_prune() does; none of a store that is open for reading only. Return: 0; -ENOMEM; or the
 * first error of reading a directory or removing a file, which ends it. */
int sb_store_expire(struct sb_store *store, int64_t now_s);

struct sb_store_prune {
	uint64_t keep_s[SB_STORE_LEVELS]; /* retention by level; 0: for ever */
	uint64_t bytes_max;		  /* of all files; 0: no limit */
	bool is_dry;			  /* only report, remove nothing */
	/* Called for each file that was, or would be, removed, with its name, valid during the
	 * call, and its length; or NULL. */
	void (*fn)(void *arg, const char *name, uint64_t bytes);
	void *arg;
};
/*
 * Remove files whose time ended longer than keep_s ago; then, while the store is larger than
 * bytes_max, the oldest files of the finest level, then those of the next. Files that may be being
 * written stay. The store may be open for reading only. Return: 0; -ENOMEM; or the first error of
 * reading a directory or removing a file, which ends it.
 */
int sb_store_prune(struct sb_store *store, const struct sb_store_prune *prune, int64_t now_s);

/* A kind of which two stores have data of the same host for the same time. */
struct sb_store_overlap {
	struct sb_store_kind kind;
	char *host; /* NULL: there are too many tags to tell whether there is such a host */
};
/*
 * Find a host whose samples sb_store_merge(), which does not check for it, would count twice. Both
 * stores may be open for reading only.
 * Return: 0: there is none; -EEXIST with *ret_overlap, whose host the caller frees; -ENOMEM; or
 * another negative errno of reading a store. *ret_overlap is written only with -EEXIST.
 */
int sb_store_find_overlap(struct sb_store *store, struct sb_store *from,
			  struct sb_store_overlap *ret_overlap);

/**
 * sb_store_merge() - add all blocks of @from to @store, level by level
 *
 * Both must be open for writing. Aggregates of periods that have ended before @now_s, the present,
 * are made first in both. There is no record of earlier merges: what is merged twice counts twice.
 * Damaged blocks are left out.
 *
 * Return: 0; -EINVAL if one of them is open for reading only, and nothing is added; -ENOMEM or an
 * error of I/O, and then a part may have been added, which cannot be taken out again: do not repeat
 * the call.
 */
int sb_store_merge(struct sb_store *store, struct sb_store *from, int64_t now_s);

/* What a file contains. */
struct sb_store_file_info {
	const char *name;
	size_t level;
	uint64_t bytes;
	size_t nr_blocks, nr_strings, nr_nodes, nr_tags, nr_rows;
	int64_t from_s, to_s; /* time of its blocks; 0: there are none */
	int err; /* why it cannot be read: then only name and level are set, the rest is 0 */
	uint64_t nr_skipped_bytes, nr_tail_bytes, nr_damaged_dicts,
		nr_lost_entries;    /* see segment.h */
	uint64_t nr_damaged_blocks; /* if blocks were read */
	uint64_t lost_weight;	    /* in the other blocks, of rows that no dictionary has */
};
struct sb_store_look {
	bool reads_blocks; /* read every block, to find damage */
	void (*on_file)(void *arg, const struct sb_store_file_info *info);
	/* Called for each damaged block, before its file's on_file(); or NULL. */
	void (*on_damaged)(void *arg, const char *name, const struct sb_record *block);
	void *arg;
};
/*
 * Call look->on_file() for every file, the finest level first, and oldest first within a level, and
 * before it look->on_damaged() for each damaged block of the file, if blocks are read. What the
 * callbacks get is valid during the call. Return: 0, also if files cannot be opened, which
 * info->err tells; -ENOMEM; errors of reading the directories or, with reads_blocks, a block. After
 * an error only some files were looked at.
 */
int sb_store_look(struct sb_store *store, const struct sb_store_look *look);

struct sb_store_query {
	int64_t from_s, to_s; /* end exclusive; rounded outward to 10 s */
	const char *kind;
	const struct sb_tag_rules *rules; /* only series that match; NULL: all */
	/* Tags "a" or "a,b", whose values become root frames of the stacks; NULL: none. */
	const char *by;
	uint32_t nr_nodes_max; /* not 0: only about so many of the heaviest nodes, if not `by` */
};
struct sb_store_answer {
	/* The range that was summed: larger where finer blocks expired; 0: nothing. */
	int64_t from_s, to_s;
	/* When its last block ended, rounded up to 10 s: after to_s if that one took longer than
	 * its period; 0: no block began in the range, which can be although nr_blocks is not 0 in
	 * what a timeline answers, since that also has blocks that began before. */
	int64_t end_s;
	struct sb_store_kind kind; /* its unit is that of the first block; "" without blocks */
	uint64_t figure[SB_BLOCK_FIGURE_MAX]; /* of all series of the kind in that range */
	uint64_t weight;		      /* in the profile */
	uint64_t all_weight;		      /* what it would be without rules, with lost_weight */
	uint64_t trunc_weight;		      /* in the profile, of truncated stacks */
	uint64_t nosym_weight; /* in the profile, of frames without a name; each counts */
	uint64_t lost_weight;  /* of stacks in a damaged record */
	uint64_t cut_weight;   /* of subtrees that became "(other)" by nr_nodes_max */
	uint64_t nr_blocks, nr_damaged, nr_skipped_bytes;
	bool is_fine_only;	/* a wide tag was used: only 10-second blocks have it */
	uint64_t nr_other_unit; /* blocks that were left out: they have another unit */
};
/**
 * sb_store_query() - add the blocks of a time range to a profile
 * @profile: not sealed; it must have no frames if query->nr_nodes_max is set without `by`
 * @ret_answer: overwritten, also on error
 *
 * Damaged blocks are skipped and counted in the answer.
 *
 * Return: 0, also if nothing was recorded; -EINVAL if the range is empty; -E2BIG if the profile or
 * the number of files is too large; -ENOMEM; other errors of I/O. On error a part may be in the
 * profile, which then is only to be freed.
 */
int sb_store_query(struct sb_store *store, const struct sb_store_query *query,
		   struct sb_profile *profile, struct sb_store_answer *ret_answer);

/* The time for which a kind (a view, such as "oncpu", and its unit) was recorded. */
struct sb_store_extent {
	struct sb_store_kind kind;
	int64_t from_s, to_s; /* begin of its first block that is left, end of the last */
	uint64_t hz;	      /* sampling rate of its last block that has one; 0: not by a clock */
	bool has_hz;	      /* a block had one */
};
#define SB_STORE_KINDS_MAX 32
/* Files of one level: one for each day of 27 years. */
#define SB_STORE_FILES_MAX 10000u
/*
 * List the kinds that were recorded, with when and how fast; elements hold no pointers. They are
 * sorted by name, SB_STORE_KINDS_MAX at most: if there are more, those with the newest blocks,
 * after a warning. Reads the first and the last file of each level. Return: how many elements of
 * @ret_extents are set, which may be 0; -ENOMEM; errors of I/O, and then the elements are not to be
 * used.
 */
int sb_store_extents(struct sb_store *store,
		     struct sb_store_extent ret_extents[SB_STORE_KINDS_MAX]);

#endif
