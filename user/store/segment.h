/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One file of a store: blocks of one level, which is a length of blocks (level.h), and the
 * dictionary that they need. A file only grows, by whole records, so that a reader sees a valid
 * beginning of it while it is written. Not thread-safe. Pointers are not NULL. "Figures" are the
 * numbers of enum sb_block_figure; a row is a stack with the tags of its series, numbered by the
 * dictionary (dict.h). @block is always an element of segment->blocks; its address is valid until
 * the next refresh or append. Errors of I/O are negative errnos of system calls, and -ENODATA if
 * the file ends too early.
 *
 * Order: sb_segment_read(), sb_segment_list() or sb_segment_open(); after it the caller may set
 * `unpacked`, which must live until the release. To read: sb_segment_find(), and for each block
 * sb_segment_rows() or sb_segment_add(); sb_segment_refresh() when the file may have grown. To
 * write: add rows to segment->dict, then sb_segment_append(). At the end sb_segment_release().
 * After an error of reading a block or appending, the segment can be used on.
 *
 * The payload of a block consists of varints: the number of figures, the figures, the number of
 * rows, the bytes that the row numbers take, these as ascending differences (the first from -1)
 * minus 1, and the weights minus 1.
 */
#ifndef SB_STORE_SEGMENT_H
#define SB_STORE_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/dict.h"
#include "store/record.h"
#include "store/unpacked.h"

/* Larger files are not read. */
#define SB_SEGMENT_BYTES_MAX  (1ull << 30)
/* A file with more blocks is not read. Each block takes 150 bytes of memory; a day has 8,640 of
 * them for each kind and host. */
#define SB_SEGMENT_BLOCKS_MAX (1u << 20)

/* Figures of a block. Those of several blocks add up. */
enum sb_block_figure {
	SB_BLOCK_SAMPLED_MS, /* how long was sampled */
	SB_BLOCK_CPU_MS,     /* the same times the number of online CPUs */
	SB_BLOCK_HZ_MS,	     /* the same times the sampling rate in Hz; 0: not sampled by a clock */
	SB_BLOCK_SAMPLES,    /* samples, waits or calls */
	SB_BLOCK_LOST,	     /* lost samples */
	SB_BLOCK_CUT,	     /* samples whose stack does not reach the root */
	SB_BLOCK_UNNAMED,
	SB_BLOCK_OWN_US, /* CPU time of the recorder */
	SB_BLOCK_OTHER,	 /* weight of "(other)": stacks that had no room in the dictionary */
	/* How many names and values of tags were truncated to SB_DICT_NAME_MAX. A frame's name
	 * counts once in each block that has it, a tag's value once for each series. */
	SB_BLOCK_NAMES_CUT,
	SB_BLOCK_FIGURE_MAX,
};

struct sb_segment {
	int fd;
	size_t len; /* bytes that were read or written, with those that were skipped */
	struct sb_dict dict;
	SB_VEC(struct sb_record) blocks; /* sorted by begin */
	uint64_t nr_sorts;		 /* how often sorting gave blocks new indexes */
	uint64_t nr_skipped_bytes;	 /* bytes before len that are not a valid record */
	uint64_t nr_tail_bytes; /* bytes after len: a record that is being written, or incomplete */
	bool has_no_dict;	/* opened by sb_segment_list() */
	struct sb_unpacked *unpacked; /* borrowed cache of blocks; NULL: none */
	uint64_t nr_damaged; /* damaged dictionary records, and blocks cut off at the end */
	/* Scratch. */
	struct sb_codec codec;
	struct sb_str raw, out, numbers;
	struct sb_window { /* the part of the file that was read last */
		uint8_t *bytes;
		size_t at, len, cap;
	} window;
	SB_VEC(uint32_t) rows;
	SB_VEC(uint64_t) weights;
};

/*
 * Open a file for reading, and read its dictionary and where its blocks are. *@segment is
 * overwritten; it needs no release after an error. @name: relative to the directory @dir_fd. What
 * is damaged is skipped and counted. Return: 0; -ENOENT; -EFBIG beyond SB_SEGMENT_BYTES_MAX or
 * SB_SEGMENT_BLOCKS_MAX; -EINVAL if it is not a regular file; -ENOMEM; other errors of I/O.
 */
int sb_segment_read(struct sb_segment *segment, int dir_fd, const char *name);
/*
 * Open a file as sb_segment_read() does, but do not read its dictionary: to see which blocks there
 * are. Their rows and figures can be read, but not added to sums, and none can be appended.
 * *@segment is overwritten; it needs no release after an error. Return: 0; -ENOENT; -EFBIG beyond
 * SB_SEGMENT_BYTES_MAX or SB_SEGMENT_BLOCKS_MAX; -EINVAL if it is not a regular file; -ENOMEM;
 * other errors of I/O.
 */
int sb_segment_list(struct sb_segment *segment, int dir_fd, const char *name);
/* Read what was appended since, of a file that is open for reading. Blocks may get other indexes
 * (nr_sorts). Return: 0; -ESTALE if the file got shorter; -EFBIG; -ENOMEM; other errors of I/O.
 * After an error a record may be missing for good: release the segment, and read the file anew. */
int sb_segment_refresh(struct sb_segment *segment);
/*
 * Open a file for reading and writing, and create it if it does not exist. An incomplete record and
 * damaged blocks at its end are cut off, and counted. Everything else is as for sb_segment_read():
 * dictionary and blocks are read, *@segment is overwritten and needs no release after an error. The
 * caller guarantees that nobody else writes to the file; the lock of the store does.
 * Return: 0; -EFBIG beyond SB_SEGMENT_BYTES_MAX or SB_SEGMENT_BLOCKS_MAX; -EINVAL if it is not a
 * regular file; -ENOMEM; other errors of I/O, also of creating and truncating the file.
 */
int sb_segment_open(struct sb_segment *segment, int dir_fd, const char *name);
/* Close the file and free what the segment holds; again is harmless, but not for a segment of zeros
 * that was never opened: its descriptor 0 would be closed. */
void sb_segment_release(struct sb_segment *segment);

/* Return: the index of the first block that begins at @time_s or later; blocks.nr if none does. */
size_t sb_segment_find(const struct sb_segment *segment, int64_t time_s);

/* The rows of a block and their weights. */
struct sb_block_rows {
	/* Ascending; if a record of the dictionary is damaged, it lacks some of them. */
	const uint32_t *row;
	const uint64_t *weight;
	size_t nr;
};
/*
 * Read a block of segment->blocks, and add its figures to @figure. The rows are borrowed until the
 * next call for this segment. Return: 0; -EBADMSG if it is damaged; -ENOMEM; other errors of I/O;
 * on error nothing is added, and *ret_rows is untouched.
 */
int sb_segment_rows(struct sb_segment *segment, const struct sb_record *block,
		    struct sb_block_rows *ret_rows, uint64_t figure[SB_BLOCK_FIGURE_MAX]);

/* Add the block's SB_BLOCK_SAMPLED_MS to *@sampled_ms, nothing on error. The block is read if it
 * was not before. Return: 0; -EBADMSG if it is damaged; -ENOMEM; other errors of I/O. */
int sb_segment_sampled(struct sb_segment *segment, const struct sb_record *block,
		       uint64_t *sampled_ms);

/* Sums over the rows of segment->dict; sums.h makes them. */
struct sb_segment_sums {
	uint64_t *weight; /* one for each row of the dictionary */
	uint64_t figure[SB_BLOCK_FIGURE_MAX];
	uint64_t lost_weight; /* of rows that the dictionary does not have: a damaged record */
};
/* Add a block to the sums. Return: 0; -EBADMSG if it is damaged; -ENOMEM; other errors of I/O; on
 * error nothing is added. */
int sb_segment_add(struct sb_segment *segment, const struct sb_record *block,
		   struct sb_segment_sums *sums);
/*
 * Subtract a block that was added without lost weight. Return: 0; -EBADMSG if it is damaged, or not
 * what was added; -ENOMEM; other errors of I/O. After an error the sums are not valid.
 */
int sb_segment_take(struct sb_segment *segment, const struct sb_record *block,
		    struct sb_segment_sums *sums);

/* When a block was sampled: from lead_ms after begin_s on, for length_ms; if that is 0, as for
 * aggregates, the whole period. */
struct sb_segment_time {
	int64_t begin_s;  /* begin of its period */
	uint32_t seconds; /* length of the period */
	uint16_t lead_ms; /* see record.h */
	uint32_t length_ms;
};

/*
 * Append a block with these sums, preceded by the new part of the dictionary, in one write, to a
 * file that sb_segment_open() opened. Does not wait for the disk. Nothing of the arguments is kept.
 * @kind: from sb_store_kind_set()
 * @sums: of rows that the caller has added to segment->dict before; those without weight are left
 *	out, and lost_weight is not stored
 *
 * Blocks may be appended in any order of time; in segment->blocks those that begin later move up by
 * one index, which nr_sorts does not count. Return: 0; -EFBIG: the file would exceed
 * SB_SEGMENT_BYTES_MAX or SB_SEGMENT_BLOCKS_MAX; -E2BIG beyond SB_RECORD_BYTES_MAX; -ENOSPC and
 * other errors of I/O; -ENOMEM. On error the file is as before, and the entries of the dictionary
 * are written with the next block.
 */
int sb_segment_append(struct sb_segment *segment, const struct sb_segment_time *time,
		      const struct sb_store_kind *kind, const struct sb_segment_sums *sums);

#endif
