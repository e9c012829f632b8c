/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One file of a store: blocks of one level, with the dictionary that they need. It only grows, by whole
 * writes of records; whoever reads it while it is written sees a beginning of it.
 *
 * A block: how many figures there are, these, how many rows, the differences of their numbers (which
 * ascend; the first from -1, less 1), then the weights less 1; all are varints.
 */
#ifndef SB_STORE_SEGMENT_H
#define SB_STORE_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/dict.h"
#include "store/record.h"

/* Larger ones are not read. */
#define SB_SEGMENT_BYTES_MAX (1ull << 30)

/* What is said of a block; those of several add up. */
enum sb_block_figure {
	SB_BLOCK_SAMPLED_MS, /* time that was sampled */
	SB_BLOCK_SAMPLES,
	SB_BLOCK_LOST, /* samples */
	SB_BLOCK_CUT,  /* stacks that do not reach the root */
	SB_BLOCK_UNNAMED,
	SB_BLOCK_OWN_US, /* CPU time of the recorder */
	SB_BLOCK_OTHER,	 /* weight of "(other)": what had no place in the dictionary */
	SB_BLOCK_FIGURE_MAX,
};

struct sb_segment {
	int fd; /* to append, or -1 */
	uint8_t *bytes;
	size_t len;
	struct sb_dict dict;
	SB_VEC(struct sb_record) blocks; /* in the order of the file */
	uint64_t nr_skipped_bytes;	 /* that are no record */
	uint64_t nr_damaged;		 /* records whose bytes are not what was written */
	struct sb_str raw, out;		 /* scratch */
};

/* Read what there is. Return: 0, -ENOENT, -EFBIG, -ENOMEM, others of I/O. */
int sb_segment_read(struct sb_segment *segment, int dir_fd, const char *name);
/*
 * Open for writing, made if it is not there. What is no record at its end is cut off, which is counted as
 * skipped. Blocks and bytes are not kept. Return: as above, -EACCES, ...
 */
int sb_segment_open(struct sb_segment *segment, int dir_fd, const char *name);
void sb_segment_release(struct sb_segment *segment);

/* Sums over the rows of segment->dict. */
struct sb_segment_sums {
	uint64_t *weight; /* as many as there are rows */
	uint64_t figure[SB_BLOCK_FIGURE_MAX];
	uint64_t lost_weight; /* of rows that are not in the dictionary: its record is damaged */
};
/* Add a block. Return: 0; -EBADMSG: it is damaged, and nothing was added; -ENOMEM. */
int sb_segment_add(struct sb_segment *segment, const struct sb_record *block,
		   struct sb_segment_sums *sums);

/*
 * Append a block of these sums, and the new part of the dictionary before it, with one write. If that
 * fails, the file is as before. @weight has dict.rows.nr elements. Return: 0, -ENOSPC, ..., -ENOMEM.
 */
int sb_segment_append(struct sb_segment *segment, int64_t begin_s, uint32_t seconds,
		      const struct sb_segment_sums *sums);

#endif
