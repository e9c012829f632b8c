/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A tree of weights, of which only the heaviest nodes are to be left. */
#ifndef SB_STORE_CUT_H
#define SB_STORE_CUT_H

#include <stddef.h>
#include <stdint.h>

struct sb_cut {
	size_t nr;		/* 0 is the root; parents have lower numbers than their children */
	const uint32_t *parent; /* of the root: anything */
	const uint32_t *nr_nodes; /* how many nodes each of them stands for; NULL: 1 */
	uint64_t *total;	  /* what is its own */
};

/*
 * Leave the heaviest, about @nr_max and not more, the root aside; of a node that is left so are those above it. total
 * then is what is its own and of what was cut below it, 0 for those that are cut.
 */
void sb_cut(const struct sb_cut *cut, size_t nr_max);

#endif
