/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From weights in the atlas to a profile: what is heavy enough, as stacks. Not thread-safe. */
#ifndef SB_STORE_DRAW_H
#define SB_STORE_DRAW_H

#include "store/atlas.h"

/* Kept for the next one: to get arrays from the system each time costs as much as what is done with them. Zero-
 * initialize. */
struct sb_drawing {
	/* Nodes of the atlas that have a weight, and those above them, in its order: which, by node of the atlas the
	 * number here, and by this number: the one above, the first below and the next beside (0: none), how many are
	 * above, the weight. */
	SB_VEC(uint32_t) node, number, parent, first, next, depth;
	SB_VEC(uint64_t) total;
	SB_VEC(uint32_t) frame; /* of the profile, by those of the atlas; SB_DICT_NONE: not yet */
	SB_VEC(uint32_t) path;	/* of the profile, root first */
};

struct sb_drawn {
	uint64_t cut_weight;  /* in frames "(other)" */
	uint64_t lost_weight; /* deeper than SB_DICT_DEPTH_MAX: not in the profile */
};

/*
 * Add the heaviest nodes of @atlas, about @nr_nodes_max, to @profile, which has no frames yet; the weight of smaller
 * ones, and what is "other" of all, becomes a frame "(other)" below them. Marks the nodes above those that have a mark.
 * Return: 0, -ENOMEM, -E2BIG.
 */
int sb_draw(struct sb_drawing *drawing, struct sb_atlas *atlas, size_t nr_nodes_max,
	    struct sb_profile *profile, struct sb_drawn *ret_drawn);
void sb_drawing_release(struct sb_drawing *drawing);

#endif
