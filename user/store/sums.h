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

/*
 * Sums question by question: what the one before has summed up is kept, and where the next one asks for most of it,
 * only blocks that are new are added, and those that it does not ask for are taken away. Zero-initialize.
 */
struct sb_resum {
	struct sb_sums sums; /* of this question; as many as there are rows, after sb_resum_end() */
	struct sb_sums kept; /* of the one before */
	SB_VEC(uint8_t) state; /* by block: of which of both it is */
	uint64_t question, nr_sorts;
	bool is_whole; /* sums is what the states say */
};

/* A question begins, of which each has a number of its own; again for the same one: nothing. @segment is as it was, or
 * has grown. Return: 0 or -ENOMEM. */
int sb_resum_begin(struct sb_resum *resum, const struct sb_segment *segment, uint64_t question);
/* Add a block of segment->blocks, once. Return: as sb_segment_add(). */
int sb_resum_add(struct sb_resum *resum, struct sb_segment *segment, const struct sb_record *block);
/*
 * All were added. *ret_nr_damaged is how many of those that could be read for the question before cannot be read any
 * more: they are not in the sums. Return: 0, -ENOMEM, others of I/O.
 */
int sb_resum_end(struct sb_resum *resum, struct sb_segment *segment, uint64_t *ret_nr_damaged);

/* The segment is another one. */
void sb_resum_forget(struct sb_resum *resum);
/* Return: what it takes. */
size_t sb_resum_bytes(const struct sb_resum *resum);
void sb_resum_release(struct sb_resum *resum);

#endif
