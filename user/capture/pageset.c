// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/pageset.h"

#include <string.h>

#include "base/search.h"

#define BLOCK_PAGES 64u

void sb_pageset_release(struct sb_pageset *set)
{
	sb_vec_release(&set->blocks);
}

int sb_pageset_append(struct sb_pageset *set, uint64_t number)
{
	const uint64_t first = number & ~(uint64_t)(BLOCK_PAGES - 1);
	int err = 0;

	if (!set->blocks.nr || set->blocks.at[set->blocks.nr - 1].first != first)
		err = sb_vec_push(&set->blocks, ((struct sb_pageset_block){ .first = first }));
	if (!err)
		set->blocks.at[set->blocks.nr - 1].bits |= 1ull << (number - first);
	return err;
}

/* Return: the block; NULL: none of its pages was ever in the set. */
static struct sb_pageset_block *find(const struct sb_pageset *set, uint64_t first)
{
	size_t at = sb_bisect(set->blocks.nr, i, set->blocks.at[i].first < first);

	return at < set->blocks.nr && set->blocks.at[at].first == first ? &set->blocks.at[at]
									: NULL;
}

/* Take the pages of a range out of the blocks from @at on, and append them to @moved. */
static int take(struct sb_pageset *set, size_t at, const struct sb_pageset_range *range,
		struct sb_pageset *moved)
{
	const uint64_t end = range->from + range->nr;
	struct sb_pageset_block *block;
	uint64_t bits, number;
	int err = 0;

	for (; at < set->blocks.nr && set->blocks.at[at].first < end && !err; at++) {
		block = &set->blocks.at[at];
		for (bits = block->bits; bits && !err; bits &= bits - 1) {
			number = block->first + (uint64_t)__builtin_ctzll(bits);
			if (number < range->from || number >= end)
				continue;
			err = sb_pageset_append(moved, number - range->from + range->to);
			if (!err)
				block->bits &= ~(1ull << (number - block->first));
		}
	}
	return err;
}

/* Both are sorted. Empty blocks are left out. */
static int merge(struct sb_pageset *set, const struct sb_pageset *moved)
{
	struct sb_pageset both = {};
	size_t i = 0, k = 0;
	int err = sb_vec_reserve(&both.blocks, set->blocks.nr + moved->blocks.nr);

	if (err)
		return err;
	while (i < set->blocks.nr || k < moved->blocks.nr) {
		const uint64_t a = i < set->blocks.nr ? set->blocks.at[i].first : UINT64_MAX;
		const uint64_t b = k < moved->blocks.nr ? moved->blocks.at[k].first : UINT64_MAX;
		struct sb_pageset_block block = { .first = a < b ? a : b };

		if (a <= b)
			block.bits |= set->blocks.at[i++].bits;
		if (b <= a)
			block.bits |= moved->blocks.at[k++].bits;
		if (block.bits)
			both.blocks.at[both.blocks.nr++] = block;
	}
	sb_vec_release(&set->blocks);
	*set = both;
	return 0;
}

int sb_pageset_move(struct sb_pageset *set, const struct sb_pageset_range *range)
{
	struct sb_pageset moved = {};
	size_t at =
		sb_bisect(set->blocks.nr, i, set->blocks.at[i].first + BLOCK_PAGES <= range->from);
	int err = take(set, at, range, &moved);

	if (!err && moved.blocks.nr)
		err = merge(set, &moved);
	sb_pageset_release(&moved);
	return err;
}

uint64_t sb_pageset_bits(const struct sb_pageset *set, uint64_t first)
{
	const struct sb_pageset_block *block = find(set, first);

	return block ? block->bits : 0;
}

void sb_pageset_keep(struct sb_pageset *set, uint64_t first, uint64_t bits)
{
	struct sb_pageset_block *block = find(set, first);

	if (block)
		block->bits &= bits;
}
