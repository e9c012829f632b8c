// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "output/order.h"

#include <errno.h>
#include <stdlib.h>

#include "base/search.h"

size_t sb_order_common(const struct sb_profile *profile, uint32_t a, uint32_t b)
{
	const struct sb_row row_a = sb_profile_row_at(profile, a);
	const struct sb_row row_b = sb_profile_row_at(profile, b);
	size_t nr = 0;

	while (nr < row_a.nr && nr < row_b.nr && row_a.frames[nr] == row_b.frames[nr])
		nr++;
	return nr;
}

static int by_frames(const void *left, const void *right, void *arg)
{
	const struct sb_profile *profile = arg;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const struct sb_row row_a = sb_profile_row_at(profile, a);
	const struct sb_row row_b = sb_profile_row_at(profile, b);
	size_t same = sb_order_common(profile, a, b);

	if (same < row_a.nr && same < row_b.nr)
		return row_a.frames[same] < row_b.frames[same] ? -1 : 1;
	return sb_compare(row_a.nr, row_b.nr) ?: sb_compare(a, b);
}

int sb_order_new(const struct sb_profile *profile, size_t nr, uint32_t **ret_order)
{
	uint32_t *order = calloc(nr + 1, sizeof(*order));
	size_t i;

	if (!order)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, nr, sizeof(*order), by_frames, (void *)(uintptr_t)profile);
	*ret_order = order;
	return 0;
}
