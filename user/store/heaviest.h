/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes a profile of the heaviest nodes of the merged tree, which is the call tree of all files of
 * a query (merged_tree.h): the last step of a query with nr_nodes_max. Called by query.c. Not
 * thread-safe. Pointers are not NULL.
 */
#ifndef SB_STORE_HEAVIEST_H
#define SB_STORE_HEAVIEST_H

#include "store/merged_tree.h"

/* Scratch, kept between queries because allocation takes as long as use. Zero-initialize. */
struct sb_heaviest_scratch {
	/*
	 * Nodes of the merged tree that have weight, and those above them, numbered in the merged
	 * tree's order. `number` maps a node to its number. By number: the node, its parent, first
	 * child and next sibling (0: none), depth and weight.
	 */
	SB_VEC(uint32_t) node, number, parent, first, next, depth;
	SB_VEC(uint64_t) total;
	SB_VEC(uint32_t)
	frame; /* of the profile, by frame of the merged tree; SB_DICT_NONE: not yet */
	SB_VEC(uint32_t) path; /* frames of the profile, root first */
};

struct sb_heaviest_rest {
	uint64_t cut_weight;  /* in frames "(other)" */
	uint64_t lost_weight; /* deeper than SB_DICT_DEPTH_MAX, and not in the profile */
};

/**
 * sb_heaviest_add() - add the heaviest nodes of a merged tree to a profile
 * @merged: weights of the query; the nodes above weighted ones become marked, too, until
 *	sb_merged_tree_clear(), which the caller calls before the next query
 * @nr_nodes_max: keep at most this many nodes; 0: none, so all weight becomes "(other)"
 * @profile: not sealed, without frames; the caller's
 * @ret_rest: overwritten, also on error
 *
 * The weight of smaller subtrees becomes a frame "(other)" below their parent.
 *
 * @profile can be added to afterwards; the caller seals it. Return: 0, also if the merged tree has
 * no weight; -ENOMEM; -E2BIG if the profile or the merged tree is full. On error a part may have
 * been added, and the merged tree and its maps must be released (merged_tree.h).
 */
int sb_heaviest_add(struct sb_heaviest_scratch *scratch, struct sb_merged_tree *merged,
		    size_t nr_nodes_max, struct sb_profile *profile,
		    struct sb_heaviest_rest *ret_rest);
/* Free the buffers, but not @scratch itself, and empty it: it can be used again. Also of a zeroed
 * one, and twice. */
void sb_heaviest_scratch_release(struct sb_heaviest_scratch *scratch);

#endif
