/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The nodes of a dictionary at which weights can differ from those of their child: with a row, or with not one child.
 * A chain of others down to a joint weighs what it weighs: a third of the nodes are to be weighed.
 */
#ifndef SB_STORE_JOINTS_H
#define SB_STORE_JOINTS_H

#include "store/dict.h"

/* Zero-initialize. */
struct sb_joints {
	/* By joint, in the order of nodes, so that 0 is the root: the next one above it, its node, and how many nodes
	 * there are from there down to it. */
	SB_VEC(uint32_t) parent, node, nr_nodes;
	SB_VEC(uint32_t) of_row; /* that of the row's node */
	size_t nr_dict_nodes;
};

/* Those of @dict as it is now, which was a beginning of it the last time. Return: 0 or -ENOMEM. */
int sb_joints_fit(struct sb_joints *joints, const struct sb_dict *dict);
/* Return: what they take. */
size_t sb_joints_bytes(const struct sb_joints *joints);
void sb_joints_release(struct sb_joints *joints);

#endif
