// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "output/order.h"

#include <errno.h>
#include <stdlib.h>

size_t sb_order_common(const struct sb_profile *profile, uint32_t a, uint32_t b)
{
	uint64_t weight;
	size_t nr_a, nr_b, nr = 0;
	const uint32_t *ids_a = sb_profile_stack_at(profile, a, &nr_a, &weight);
	const uint32_t *ids_b = sb_profile_stack_at(profile, b, &nr_b, &weight);

	while (nr < nr_a && nr < nr_b && ids_a[nr] == ids_b[nr])
		nr++;
	return nr;
}

static int by_frames(const void *left, const void *right, void *arg)
{
	const struct sb_profile *profile = arg;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	size_t same = sb_order_common(profile, a, b), nr_a, nr_b;
	uint64_t weight;
	const uint32_t *ids_a = sb_profile_stack_at(profile, a, &nr_a, &weight);
	const uint32_t *ids_b = sb_profile_stack_at(profile, b, &nr_b, &weight);

	if (same < nr_a && same < nr_b)
		return ids_a[same] < ids_b[same] ? -1 : 1;
	if (nr_a != nr_b)
		return nr_a < nr_b ? -1 : 1;
	return a < b ? -1 : a > b;
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
