/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sums of the blocks of a file, by row of its dictionary. sb_resum keeps the sums of recent
 * queries, so that a range that overlaps an earlier one costs only the blocks that differ. Not
 * thread-safe. Pointers are not NULL.
 *
 * A query: sb_resum_begin(), sb_resum_add() for each of its blocks, sb_resum_end(); then `result`
 * is read. If one of them fails with another error than -EBADMSG, the query has no result, and the
 * next one may begin. A struct sb_resum belongs to one segment, which is borrowed for each call.
 */
#ifndef SB_STORE_SUMS_H
#define SB_STORE_SUMS_H

#include "store/segment.h"

/* Sums with one weight for each row of a dictionary that may grow. Zero-initialize. */
struct sb_sums {
	SB_VEC(uint64_t) weight;
	struct sb_segment_sums sums; /* its weight points to the above after sb_sums_fit() */
};
/* Extend the sums to all rows of @dict, which is not kept; new ones are 0. Call it when the
 * dictionary has grown, before a block with new rows is added. Return: 0; -ENOMEM, and they are as
 * before. */
int sb_sums_fit(struct sb_sums *sums, const struct sb_dict *dict);
/* Free the weights. To use it again, zero it: its figures stay. */
void sb_sums_release(struct sb_sums *sums);

/* The sums of this many queries are kept for each file. */
#define SB_RESUM_KEPT 8

/*
 * Incremental sums of one file. When a query asks for mostly the same blocks as an earlier one
 * whose sums are kept, only the missing blocks are added and those out of range subtracted.
 * Zero-initialize.
 */
struct sb_resum {
	struct sb_resum_kept {
		struct sb_sums sums;
		uint64_t question; /* the last query that used them; 0: the slot is empty */
	} kept[SB_RESUM_KEPT];
	/* Of this query, valid from sb_resum_end() to the next begin; NULL: no block was added. */
	const struct sb_segment_sums *result;
	struct sb_sums fresh;	/* of blocks that are in no kept sums */
	SB_VEC(uint16_t) state; /* by block: a bit for each of the kept sums, two for this query */
	uint64_t question, nr_sorts;
};

/*
 * Begin a query, unless it has begun already. Each has a number @question, larger than those
 * before. @segment may only have grown since the last query. Return: 0; -ENOMEM, and the query has
 * not begun: it may be called again.
 */
int sb_resum_begin(struct sb_resum *resum, const struct sb_segment *segment, uint64_t question);
/* Add a block of segment->blocks, each at most once in a query. Return: 0; -EBADMSG if the block is
 * damaged, and it is not in the sums; -ENOMEM; other errors of I/O. */
int sb_resum_add(struct sb_resum *resum, struct sb_segment *segment, const struct sb_record *block);
/*
 * End a query: compute resum->result. *ret_nr_damaged counts blocks that an earlier query could
 * read and that are damaged now; they are not in the sums; it is 0 on error. Return: 0; -ENOMEM;
 * other errors of I/O.
 */
int sb_resum_end(struct sb_resum *resum, struct sb_segment *segment, uint64_t *ret_nr_damaged);

/*
 * Drop all kept sums, because the segment has been replaced by another one, or its blocks have
 * other indexes. The memory is kept for reuse. Call it between two queries only; resum->result is
 * not to be read afterwards.
 */
void sb_resum_forget(struct sb_resum *resum);
/* Return: the memory it takes, in bytes. */
size_t sb_resum_bytes(const struct sb_resum *resum);
/* Return: of the kept sums that were used least recently, the number (@question) of the query that
 * used them last, for sb_resum_drop(); UINT64_MAX if none are kept. */
uint64_t sb_resum_oldest(const struct sb_resum *resum);
/* Free the kept sums of query @question, if there are any; resum->result becomes NULL. Call it
 * between two queries only. */
void sb_resum_drop(struct sb_resum *resum, uint64_t question);
/* Free all memory, at the end. To use it again, zero it. */
void sb_resum_release(struct sb_resum *resum);

#endif
