/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tree -> rectangles, in units of weight and levels; pixels are the writer's business. Whatever is
 * too narrow or too deep to be drawn becomes part of a box that stands in its place, so the boxes
 * on a frame never lack any of its weight but its own ("self").
 */
#ifndef SB_FLAMEGRAPH_LAYOUT_H
#define SB_FLAMEGRAPH_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct sb_fg_tree;

enum sb_fg_box_kind {
	SB_FG_BOX_FRAME,
	SB_FG_BOX_NARROW, /* a run of neighbours below the minimum weight, with all above them */
	SB_FG_BOX_DEEP,	  /* everything above the deepest level that is drawn */
};

struct sb_fg_box {
	double start, weight; /* in the tree's unit, from the left edge of the root */
	uint32_t node;	      /* the frame, or the first of those that were cut */
	uint32_t parent;      /* box under it; the root's is itself */
	uint32_t level;	      /* 0: the root */
	uint32_t nr_siblings; /* of node and those beside it that this box stands for; 0: a frame */
	uint32_t nr_cut;      /* frames this box stands for, all levels; 0: a frame */
	uint32_t nr_levels;   /* levels above this one inside a box that stands for frames */
	enum sb_fg_box_kind kind;
};

struct sb_fg_layout_params {
	double min_weight;  /* narrower is cut */
	uint32_t max_rects; /* frames drawn at most: the minimum is raised; 0: no limit */
	uint32_t max_level; /* 0: no limit */
};

struct sb_fg_layout {
	SB_VEC(struct sb_fg_box) boxes; /* level by level, from left to right; the root first */
	double min_weight;		/* in force */
	bool is_raised;			/* above what was asked for, because of max_rects */
	uint32_t level_max;		/* highest level that holds a box */
	uint64_t nr_cut;		/* frames inside boxes that stand for frames */
	uint64_t nr_cut_deep;		/* of these, in SB_FG_BOX_DEEP boxes */
};

/* Return: 0, -ENODATA: the tree has no weight, -ENOMEM. */
int sb_fg_layout_make(const struct sb_fg_tree *tree, const struct sb_fg_layout_params *params,
		      struct sb_fg_layout *ret_layout);
void sb_fg_layout_release(struct sb_fg_layout *layout);

#endif
