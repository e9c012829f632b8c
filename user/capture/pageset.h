/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A set of pages of one address space, as bits in blocks of 64 pages: 16 bytes for each block that
 * has a page. A page is given by its number, its address divided by the page size. Used for the
 * pages that were there when a process was first looked at. Its owner zeroes it, appends the pages,
 * in order, looks them up and removes them, and ends it with sb_pageset_release(). Internal to
 * capture. Thread: any, one at a time for each set. No pointer may be NULL.
 */
#ifndef SB_CAPTURE_PAGESET_H
#define SB_CAPTURE_PAGESET_H

#include <stdint.h>

#include "base/vec.h"

/* Blocks are in the order of their addresses. */
struct sb_pageset {
	SB_VEC(struct sb_pageset_block {
		uint64_t first; /* number of its first page, a multiple of 64 */
		uint64_t bits;
	})
	blocks;
};

/* Free the memory; the set is empty then, and can be used again. */
void sb_pageset_release(struct sb_pageset *set);
/* Add a page whose number is not less than any that was added, which is not checked; adding one
 * twice does no harm. Return: 0; -ENOMEM: nothing has changed. */
int sb_pageset_append(struct sb_pageset *set, uint64_t number);
/* A move of @nr pages: those from number @from on get the numbers from @to on. No sum of two
 * members may overflow. */
struct sb_pageset_range {
	uint64_t from, nr, to;
};
/*
 * Move the pages of a range that are in the set; pages that are at the new place already stay. If
 * the range has pages, this takes time for each block of the set, and frees empty blocks; if not,
 * only for each block in the range. Return: 0; -ENOMEM: pages of the range may be missing.
 */
int sb_pageset_move(struct sb_pageset *set, const struct sb_pageset_range *range);
/* Return: bit i is set if the page @first + i is in the set. @first: a multiple of 64 */
uint64_t sb_pageset_bits(const struct sb_pageset *set, uint64_t first);
/* Remove the pages of the block at @first, a multiple of 64, that are not in @bits: bit i stands
 * for @first + i. The block's memory is kept. */
void sb_pageset_keep(struct sb_pageset *set, uint64_t first, uint64_t bits);

#endif
