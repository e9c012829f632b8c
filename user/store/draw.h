/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes a profile of the heaviest nodes of the atlas, which is the call tree of all files of a
 * query (atlas.h): the last step of a query with nr_nodes_max. Called by query.c. Not thread-safe.
 * Pointers are not NULL.
 */
#ifndef SB_STORE_DRAW_H
#define SB_STORE_DRAW_H

#include "store/atlas.h"

/* Scratch, kept between queries because allocation takes as long as use. Zero-initialize. */
struct sb_drawing {
	/*
	 * Nodes of the atlas that have weight, and those above them, numbered in the atlas's order.
	 * `number` maps a node to its number. By number: the node, its parent, first child and next
	 * sibling (0: none), depth and weight.
	 */
	SB_VEC(uint32_t) node, number, parent, first, next, depth;
	SB_VEC(uint64_t) total;
	SB_VEC(uint32_t) frame; /* of the profile, by frame of the atlas; SB_DICT_NONE: not yet */
	SB_VEC(uint32_t) path;	/* frames of the profile, root first */
};

struct sb_drawn {
	uint64_t cut_weight;  /* in frames "(other)" */
	uint64_t lost_weight; /* deeper than SB_DICT_DEPTH_MAX, and not in the profile */
};

/**
 * sb_draw() - add the heaviest nodes of an atlas to a profile
 * @atlas: weights of the query; the nodes above weighted ones become marked, too, until
 *	sb_atlas_clear(), which the caller calls before the next query
 * @nr_nodes_max: keep at most this many nodes; 0: none, so all weight becomes "(other)"
 * @profile: not sealed, without frames; the caller's
 * @ret_drawn: overwritten, also on error
 *
 * The weight of smaller subtrees becomes a frame "(other)" below their parent.
 *
 * @profile can be added to afterwards; the caller seals it. Return: 0, also if the atlas has no
 * weight; -ENOMEM; -E2BIG if the profile or the atlas is full. On error a part may have been added,
 * and the atlas and its maps must be released (atlas.h).
 */
int sb_draw(struct sb_drawing *drawing, struct sb_atlas *atlas, size_t nr_nodes_max,
	    struct sb_profile *profile, struct sb_drawn *ret_drawn);
/* Free the buffers, and empty it: it can be used again. */
void sb_drawing_release(struct sb_drawing *drawing);

#endif
