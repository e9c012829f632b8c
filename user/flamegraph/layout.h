/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Converts a tree to boxes, in units of weight and levels; svg.c converts these to pixels. Frames
 * that are too narrow or too deep to be drawn become part of a box in their place, so that the
 * boxes above a frame weigh as much as the frame, less its self weight. Thread: any, while nobody
 * modifies the tree. Order: seal the tree, sb_fg_layout_make(), read the boxes,
 * sb_fg_layout_release(). Pointers are not NULL, and nothing that is given is kept.
 */
#ifndef SB_FLAMEGRAPH_LAYOUT_H
#define SB_FLAMEGRAPH_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct sb_tree;

enum sb_fg_box_kind {
	SB_FG_BOX_FRAME,
	SB_FG_BOX_NARROW, /* neighbours below the minimum weight, with everything above them */
	SB_FG_BOX_DEEP,	  /* everything above the highest level that is drawn */
};

struct sb_fg_box {
	double start, weight; /* in the tree's unit, from the left edge of the root */
	uint32_t node;	      /* the frame, or the first one that was cut */
	uint32_t parent;      /* index of the box below; the root's is itself */
	uint32_t level;	      /* 0: the root */
	uint32_t nr_siblings; /* how many neighbours this box stands for; 0: it is a frame */
	uint32_t nr_cut;      /* how many frames of all levels it stands for; 0: it is a frame */
	uint32_t nr_levels;   /* how many levels above this one it stands for */
	enum sb_fg_box_kind kind;
};

struct sb_fg_layout_params {
	double min_weight;  /* lighter frames are cut; in the tree's unit */
	uint32_t max_rects; /* draw at most so many frames, by raising the minimum; 0: no limit */
	uint32_t max_level; /* 0: no limit */
};

struct sb_fg_layout {
	SB_VEC(struct sb_fg_box) boxes; /* by level, from left to right; the root first */
	double min_weight;		/* the minimum that was used */
	bool is_raised;			/* it was raised because of max_rects */
	uint32_t level_max;		/* highest level that has a box */
	uint64_t nr_cut;		/* frames that were cut */
	uint64_t nr_cut_deep;		/* of these, in SB_FG_BOX_DEEP boxes */
};

/*
 * Lay out a sealed tree. @ret_layout: overwritten, nothing in it is freed before, and ended by the
 * caller with sb_fg_layout_release(); untouched on error. Boxes have indexes of nodes, which are
 * valid until the tree is sealed anew or pruned. Return: 0; -ENODATA if the tree has no weight;
 * -ENOMEM.
 */
int sb_fg_layout_make(const struct sb_tree *tree, const struct sb_fg_layout_params *params,
		      struct sb_fg_layout *ret_layout);
/* Free the boxes, also of a zero-initialized layout; there are none then. */
void sb_fg_layout_release(struct sb_fg_layout *layout);

#endif
