/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sums over the rows of a file's dictionary. */
#ifndef SB_STORE_SUMS_H
#define SB_STORE_SUMS_H

#include "store/segment.h"

/* Dense sums of a growing dictionary. */
struct sb_sums {
	SB_VEC(uint64_t) weight;
	struct sb_segment_sums sums; /* its weight is the above, when it is asked for */
};
/* As many as @dict has rows. Return: 0 or -ENOMEM. */
int sb_sums_fit(struct sb_sums *sums, const struct sb_dict *dict);
void sb_sums_release(struct sb_sums *sums);

/* Of so many questions sums are kept, by file. */
#define SB_RESUM_KEPT 8

/*
 * Sums question by question: those of the last ones are kept, and where the next one asks for most of what one of them
 * has, only blocks that it has not are added, and those that are not asked for are taken away. Zero-initialize.
 */
struct sb_resum {
	struct sb_resum_kept {
		struct sb_sums sums;
		uint64_t question; /* that had them last; 0: nothing is kept here */
	} kept[SB_RESUM_KEPT];
	const struct sb_segment_sums
		*result; /* of this question, after sb_resum_end(); NULL: it asked for no block */
	struct sb_sums fresh; /* of blocks that are in none of those that are kept */
	SB_VEC(uint16_t)
	state; /* by block: a bit for each of those kept, and two for this question */
	uint64_t question, nr_sorts;
};

/* A question begins, of which each has a number of its own, larger than those before; again for the same one: nothing.
 * @segment is as it was, or has grown. Return: 0 or -ENOMEM. */
int sb_resum_begin(struct sb_resum *resum, const struct sb_segment *segment, uint64_t question);
/* Add a block of segment->blocks, once. Return: as sb_segment_add(). */
int sb_resum_add(struct sb_resum *resum, struct sb_segment *segment, const struct sb_record *block);
/*
 * All were added. *ret_nr_damaged is how many of those that could be read for a question before cannot be read any
 * more: they are not in the sums. Return: 0, -ENOMEM, others of I/O.
 */
int sb_resum_end(struct sb_resum *resum, struct sb_segment *segment, uint64_t *ret_nr_damaged);

/* The segment is another one. */
void sb_resum_forget(struct sb_resum *resum);
/* Return: what all that is kept takes. */
size_t sb_resum_bytes(const struct sb_resum *resum);
/* Return: the question that had last what was not asked for longest; UINT64_MAX: nothing is kept. */
uint64_t sb_resum_oldest(const struct sb_resum *resum);
/* Forget the sums of that question, between two questions. */
void sb_resum_drop(struct sb_resum *resum, uint64_t question);
void sb_resum_release(struct sb_resum *resum);

#endif
