/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One file of a store: blocks of one level, with the dictionary that they need. It only grows, by whole
 * writes of records; whoever reads it while it is written sees a beginning of it, and later more.
 *
 * A block is of one kind: how many figures there are, these, how many rows, how many bytes their numbers take,
 * the differences of these (which ascend; the first from -1, less 1), then the weights less 1; all are varints.
 */
#ifndef SB_STORE_SEGMENT_H
#define SB_STORE_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/dict.h"
#include "store/record.h"
#include "store/unpacked.h"

/* Larger ones are not read. */
#define SB_SEGMENT_BYTES_MAX (1ull << 30)

/* What is said of a block; those of several add up. */
enum sb_block_figure {
	SB_BLOCK_SAMPLED_MS, /* time that was sampled */
	SB_BLOCK_CPU_MS,     /* the same, times the CPUs that were online */
	SB_BLOCK_HZ_MS, /* the same, times how often each CPU was sampled a second; 0: not by a clock */
	SB_BLOCK_SAMPLES, /* samples, waits, calls */
	SB_BLOCK_LOST,	  /* samples */
	SB_BLOCK_CUT,	  /* stacks that do not reach the root */
	SB_BLOCK_UNNAMED,
	SB_BLOCK_OWN_US,    /* CPU time of the recorder */
	SB_BLOCK_OTHER,	    /* weight of "(other)": what had no place in the dictionary */
	SB_BLOCK_NAMES_CUT, /* names and values of tags that are longer than SB_DICT_NAME_MAX */
	SB_BLOCK_FIGURE_MAX,
};

struct sb_segment {
	int fd;
	size_t len; /* what was read or written: records and what was skipped between them */
	struct sb_dict dict;
	SB_VEC(struct sb_record) blocks; /* by the time at which they begin */
	uint64_t nr_sorts;		 /* how often reading gave them other numbers */
	uint64_t nr_skipped_bytes;	 /* that are no record, before len */
	uint64_t
		nr_tail_bytes; /* behind it: of a record that is being written, or was not to its end */
	bool has_no_dict;      /* nobody asked for it */
	struct sb_unpacked *unpacked; /* borrowed: blocks that were read; NULL: none is kept */
	uint64_t
		nr_damaged; /* parts of the dictionary, and last blocks cut off: not what was written */
	/* Scratch. */
	struct sb_codec codec;
	struct sb_str raw, out, numbers;
	struct sb_window { /* the piece of the file that was read last */
		uint8_t *bytes;
		size_t at, len, cap;
	} window;
	SB_VEC(uint32_t) rows;
	SB_VEC(uint64_t) weights;
};

/* Read what there is: the dictionary, and where blocks are. Return: 0, -ENOENT, -EFBIG, -ENOMEM, others of I/O. */
int sb_segment_read(struct sb_segment *segment, int dir_fd, const char *name);
/* The same without the dictionary: which blocks there are, and not what is in them. */
int sb_segment_list(struct sb_segment *segment, int dir_fd, const char *name);
/* Read what has come since. Return: 0; -ESTALE: it became shorter; others as above. */
int sb_segment_refresh(struct sb_segment *segment);
/*
 * Open for writing, made if it is not there. What is no record at its end is cut off, which is counted as
 * skipped. Return: as sb_segment_read(), -EACCES, ...
 */
int sb_segment_open(struct sb_segment *segment, int dir_fd, const char *name);
void sb_segment_release(struct sb_segment *segment);

/* Return: the number of the first block that begins at @time_s or later. */
size_t sb_segment_find(const struct sb_segment *segment, int64_t time_s);

/* The rows of a block, and its figures, which are added to @figure. */
struct sb_block_rows {
	const uint32_t *
		row; /* ascending; may be beyond those of the dictionary, whose record is damaged then */
	const uint64_t *weight;
	size_t nr;
};
/* Rows are good until the next call. Return: 0; -EBADMSG: damaged, nothing was added; -ENOMEM, others of I/O. */
int sb_segment_rows(struct sb_segment *segment, const struct sb_record *block,
		    struct sb_block_rows *ret_rows, uint64_t figure[SB_BLOCK_FIGURE_MAX]);

/* Add its SB_BLOCK_SAMPLED_MS, which is known if it was ever read. Return: the same. */
int sb_segment_sampled(struct sb_segment *segment, const struct sb_record *block,
		       uint64_t *sampled_ms);

/* Sums over the rows of segment->dict. */
struct sb_segment_sums {
	uint64_t *weight; /* as many as there are rows */
	uint64_t figure[SB_BLOCK_FIGURE_MAX];
	uint64_t lost_weight; /* of rows that are not in the dictionary: its record is damaged */
};
/* Add a block. Return: as sb_segment_rows(). */
int sb_segment_add(struct sb_segment *segment, const struct sb_record *block,
		   struct sb_segment_sums *sums);
/* Take away one that was added, of which nothing was lost. Return: as sb_segment_rows(); -EBADMSG also: it is not what
 * was added. After a failure the sums are of no use. */
int sb_segment_take(struct sb_segment *segment, const struct sb_record *block,
		    struct sb_segment_sums *sums);

/* When a block was sampled. */
struct sb_segment_time {
	int64_t begin_s;  /* of the period */
	uint32_t seconds; /* that it has */
	uint16_t lead_ms; /* see record.h */
	uint32_t length_ms;
};

/*
 * Append a block of these sums, and the new part of the dictionary before it, with one write. If that
 * fails, the file is as before. @weight has dict.rows.nr elements. Return: 0, -ENOSPC, ..., -ENOMEM.
 */
int sb_segment_append(struct sb_segment *segment, const struct sb_segment_time *time,
		      const struct sb_store_kind *kind, const struct sb_segment_sums *sums);

#endif
