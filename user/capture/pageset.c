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

int sb_pageset_insert(struct sb_pageset *set, uint64_t number)
{
	const uint64_t first = number & ~(uint64_t)(BLOCK_PAGES - 1);
	size_t at = sb_bisect(set->blocks.nr, i, set->blocks.at[i].first < first);
	int err = 0;

	if (at == set->blocks.nr)
		return sb_pageset_append(set, number);
	if (set->blocks.at[at].first != first) {
		err = sb_vec_reserve(&set->blocks, set->blocks.nr + 1);
		if (err)
			return err;
		memmove(&set->blocks.at[at + 1], &set->blocks.at[at],
			(set->blocks.nr++ - at) * sizeof(*set->blocks.at));
		set->blocks.at[at] = (struct sb_pageset_block){ .first = first };
	}
	set->blocks.at[at].bits |= 1ull << (number - first);
	return 0;
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

uint64_t sb_pageset_nr(const struct sb_pageset *set)
{
	uint64_t nr = 0;
	size_t i;

	for (i = 0; i < set->blocks.nr; i++)
		nr += (uint64_t)__builtin_popcountll(set->blocks.at[i].bits);
	return nr;
}
