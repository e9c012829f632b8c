// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/prune.h"

#include "base/cleanup.h"

/* How many nodes there are by weight: for each power of two, its lower and its upper half. */
struct histogram {
	size_t nr_of[128];
};

static void weigh(const struct sb_prune *prune, struct histogram *histogram)
{
	const uint32_t *parent = prune->parent, *nr_nodes = prune->nr_nodes;
	uint64_t *total = prune->total;
	size_t i;

	/* Without branches that depend on weights: they could not be predicted. */
	for (i = prune->nr; i-- > 1;) {
		uint64_t weight = total[i];
		unsigned int log2 = 63 - (unsigned int)__builtin_clzll(weight | 1);
		unsigned int half = weight << 1 >> log2 & 1;

		total[parent[i]] += weight;
		histogram->nr_of[2 * log2 + half] += weight ? nr_nodes ? nr_nodes[i] : 1 : 0;
	}
}

/* Return: the least weight of which there are at most @nr_max nodes, to half a power of two. */
static uint64_t threshold(const struct histogram *histogram, size_t nr_max)
{
	size_t i, sum = 0;

	for (i = SB_ARRAY_SIZE(histogram->nr_of); i-- > 0;) {
		sum += histogram->nr_of[i];
		if (sum > nr_max)
			break;
	}
	/* The bucket above the last one that does not fit. */
	i++;
	return i / 2 > 63 ? UINT64_MAX
			  : (1ull << i / 2) + (i & 1 && i > 1 ? 1ull << (i / 2 - 1) : 0);
}

void sb_prune(const struct sb_prune *prune, size_t nr_max)
{
	const uint32_t *parent = prune->parent;
	struct histogram histogram = {};
	uint64_t least, *total = prune->total;
	size_t i;

	weigh(prune, &histogram);
	least = threshold(&histogram, nr_max);
	/*
	 * The total of a parent is not less than that of a child, so the parents of kept nodes are
	 * kept. Parents come first: the total that a child is taken from is still as it was.
	 */
	for (i = 1; i < prune->nr; i++) {
		uint64_t left = total[i] < least ? 0 : total[i];

		total[parent[i]] -= left;
		total[i] = left;
	}
}
