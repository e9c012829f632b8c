/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Branch points of a dictionary's call tree: nodes at which a stack ends, and nodes with a number
 * of children other than one. In a chain between two branch points every node has the same weight,
 * so that queries that keep only the heaviest nodes weigh branch points only: about a third of all
 * nodes. Not thread-safe. Pointers are not NULL; the dictionary is borrowed for the call.
 */
#ifndef SB_STORE_BRANCHES_H
#define SB_STORE_BRANCHES_H

#include "store/dict.h"

/* Zero-initialize. */
struct sb_branches {
	/*
	 * By branch point, in the order of their nodes, so that 0 is the root: the branch point
	 * above it, its node, and how many nodes the chain down to it has.
	 */
	SB_VEC(uint32_t) parent, node, nr_nodes;
	SB_VEC(uint32_t) of_row; /* the branch point at which the row's stack ends */
	size_t nr_dict_nodes;
};

/*
 * Find the branch points of @dict, anew if it has grown since the last call, which was for the same
 * dictionary; @branches is zeroed before the first call, and ended by sb_branches_release().
 * Return: 0; -ENOMEM, and it is as before: it may be called again.
 */
int sb_branches_fit(struct sb_branches *branches, const struct sb_dict *dict);
/* Return: the memory it takes, in bytes. */
size_t sb_branches_bytes(const struct sb_branches *branches);
/* Free what it holds, and empty it: it can be used again, also for another dictionary. */
void sb_branches_release(struct sb_branches *branches);

#endif
