// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A binary search among 100,000 addresses takes 17 steps, most of which wait for memory or for a
 * branch that was mispredicted. So the index leads to the few addresses of one granule.
 */
#include "symbolizer/symbols/addrs.h"

#include <errno.h>
#include <stdlib.h>

/* Addresses in a granule, if they lie evenly; the index takes a byte for each address then. */
#define NR_IN_GRANULE 4

int sb_addrs_init(struct sb_addrs *addrs, uint64_t base, uint64_t last, size_t nr)
{
	*addrs = (struct sb_addrs){ .base = base, .nr = nr };
	if (last - base > UINT32_MAX)
		addrs->far = malloc(nr * sizeof(*addrs->far) + 1);
	else
		addrs->near = malloc(nr * sizeof(*addrs->near) + 1);
	return addrs->near || addrs->far ? 0 : -ENOMEM;
}

void sb_addrs_release(struct sb_addrs *addrs)
{
	free(addrs->near);
	free(addrs->far);
	free(addrs->nr_below);
	*addrs = (struct sb_addrs){};
}

void sb_addrs_set(struct sb_addrs *addrs, size_t i, uint64_t addr)
{
	if (addrs->far)
		addrs->far[i] = addr - addrs->base;
	else
		addrs->near[i] = (uint32_t)(addr - addrs->base);
}

int sb_addrs_index(struct sb_addrs *addrs)
{
	uint64_t last = addrs->nr ? sb_addrs_get(addrs, addrs->nr - 1) - addrs->base : 0, granule;
	size_t i = 0;

	while (addrs->shift < 63 && last >> addrs->shift > addrs->nr / NR_IN_GRANULE)
		addrs->shift++;
	addrs->nr_granules = (last >> addrs->shift) + 1;
	addrs->nr_below = malloc((addrs->nr_granules + 1) * sizeof(*addrs->nr_below));
	if (!addrs->nr_below)
		return -ENOMEM;
	for (granule = 0; granule <= addrs->nr_granules; granule++) {
		while (i < addrs->nr &&
		       (sb_addrs_get(addrs, i) - addrs->base) >> addrs->shift < granule)
			i++;
		addrs->nr_below[granule] = (uint32_t)i;
	}
	return 0;
}

/* Find the last start that is <= @addr. It has no branches, because they would be mispredicted. */
#define DEFINE_FIND(name, type)                                      \
	static size_t name(const type *starts, size_t nr, type addr) \
	{                                                            \
		const type *base = starts;                           \
		size_t half;                                         \
                                                                     \
		while (nr > 1) {                                     \
			half = nr / 2;                               \
			base += base[half] <= addr ? half : 0;       \
			nr -= half;                                  \
		}                                                    \
		return (size_t)(base - starts);                      \
	}
DEFINE_FIND(find_near, uint32_t)
DEFINE_FIND(find_far, uint64_t)

size_t sb_addrs_find(const struct sb_addrs *addrs, uint64_t addr)
{
	uint64_t offset = addr - addrs->base, granule = offset >> addrs->shift;
	size_t first, nr;

	if (!addrs->nr || !addrs->nr_below || addr < addrs->base)
		return SIZE_MAX;
	if (granule >= addrs->nr_granules)
		return addrs->nr - 1;
	/* The one before the granule, if none in it is so low. */
	first = addrs->nr_below[granule] - (granule > 0);
	nr = addrs->nr_below[granule + 1] - first;
	return first + (addrs->far ? find_far(addrs->far + first, nr, offset)
				   : find_near(addrs->near + first, nr, (uint32_t)offset));
}

size_t sb_addrs_bytes(const struct sb_addrs *addrs)
{
	size_t bytes = addrs->nr * (addrs->far ? sizeof(*addrs->far) : sizeof(*addrs->near));

	return bytes + (addrs->nr_below ? (addrs->nr_granules + 1) * sizeof(*addrs->nr_below) : 0);
}
