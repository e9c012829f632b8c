/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Prunes a tree of weights to its heaviest nodes, for pictures and for queries with nr_nodes_max.
 * Thread: any. All memory is the caller's and used during the call only; the indexes in it are not
 * checked.
 */
#ifndef SB_STORE_PRUNE_H
#define SB_STORE_PRUNE_H

#include <stddef.h>
#include <stdint.h>

struct sb_prune {
	size_t nr; /* node 0 is the root; parents come before their children; 0: no tree */
	const uint32_t *parent;	  /* the root's is not used */
	const uint32_t *nr_nodes; /* how many nodes of the picture each one stands for; NULL: 1 */
	uint64_t *total;	  /* in: the node's own weight; out: see sb_prune() */
};

/*
 * Keep the heaviest nodes by total weight, at most @nr_max and the root; the parents of a kept node
 * are kept, too. The limit is a weight that is rounded to half a power of two, so that fewer may be
 * kept. Afterwards prune->total is the node's own weight plus that of the nodes pruned below it,
 * and 0 for pruned nodes, but also for kept nodes without either. So a node was kept if its total,
 * or that of a node below it, is not 0. Cannot fail.
 */
void sb_prune(const struct sb_prune *prune, size_t nr_max);

#endif
