// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flamegraph/layout.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "flamegraph/tree.h"

/* Sizes of the subtree of each node. */
struct extent {
	uint32_t nr_frames; /* of the node and all above it */
	uint32_t level_max; /* highest level above it */
};

struct plan {
	const struct sb_tree *tree;
	const struct sb_fg_layout_params *params;
	struct extent *extents;
	struct sb_fg_layout layout;
};

/* Children come after their parent. A gap is not a frame, and has no children. */
static void measure(const struct sb_tree *tree, struct extent *extents)
{
	for (size_t i = tree->nodes.nr; i-- > 0;) {
		bool is_frame = tree->kinds.at[i] != SB_FG_GAP;
		struct extent *parent = &extents[tree->nodes.at[i].parent];

		extents[i].nr_frames += is_frame;
		if (is_frame && extents[i].level_max < tree->nodes.at[i].depth)
			extents[i].level_max = tree->nodes.at[i].depth;
		if (!i)
			break;
		parent->nr_frames += extents[i].nr_frames;
		if (parent->level_max < extents[i].level_max)
			parent->level_max = extents[i].level_max;
	}
}

static bool is_drawn(const struct plan *plan, size_t node)
{
	double total = plan->tree->nodes.at[node].total;

	return total > 0 && total >= plan->layout.min_weight &&
	       plan->tree->kinds.at[node] != SB_FG_GAP &&
	       (!plan->params->max_level ||
		plan->tree->nodes.at[node].depth <= plan->params->max_level);
}

static int compare_descending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x < y) - (x > y);
}

/*
 * A frame is never heavier than the one below it. So the frames above a threshold are always a
 * tree, and the threshold for n frames is the n-th largest weight.
 */
static int raise_minimum(struct plan *plan)
{
	const struct sb_tree *tree = plan->tree;
	sb_cleanup(sb_freep) double *totals = NULL;
	size_t nr = 0, max = plan->params->max_rects;

	if (!max || tree->nodes.nr <= max)
		return 0;
	totals = malloc(tree->nodes.nr * sizeof(*totals));
	if (!totals)
		return -ENOMEM;
	for (size_t i = 0; i < tree->nodes.nr; i++) {
		if (is_drawn(plan, i))
			totals[nr++] = tree->nodes.at[i].total;
	}
	if (nr <= max)
		return 0;
	qsort(totals, nr, sizeof(*totals), compare_descending);
	/* Frames of equal weight are all drawn or all cut: to choose some would be arbitrary. */
	plan->layout.min_weight =
		totals[max - 1] > totals[max] ? totals[max - 1] : nextafter(totals[max], INFINITY);
	plan->layout.is_raised = true;
	return 0;
}

static int push_box(struct plan *plan, struct sb_fg_box box)
{
	struct sb_fg_layout *layout = &plan->layout;

	if (layout->level_max < box.level)
		layout->level_max = box.level;
	layout->nr_cut += box.nr_cut;
	if (box.kind == SB_FG_BOX_DEEP)
		layout->nr_cut_deep += box.nr_cut;
	return sb_vec_push(&layout->boxes, box);
}

static void extend_cut(const struct plan *plan, struct sb_fg_box *cut, uint32_t node)
{
	const struct extent *extent = &plan->extents[node];
	uint32_t nr_levels = extent->level_max - plan->tree->nodes.at[node].depth;

	if (!cut->nr_cut)
		cut->node = node;
	cut->nr_siblings++;
	cut->nr_cut += extent->nr_frames;
	cut->weight += plan->tree->nodes.at[node].total;
	if (cut->nr_levels < nr_levels)
		cut->nr_levels = nr_levels;
}

/* Append the boxes of the children of box @at. The array of boxes is also the work queue. */
static int place_children(struct plan *plan, uint32_t at)
{
	const struct sb_fg_box under = plan->layout.boxes.at[at];
	const struct sb_tree *tree = plan->tree;
	const struct sb_tree_node *nodes = tree->nodes.at;
	uint32_t level = under.level + 1;
	bool is_deep = plan->params->max_level && level > plan->params->max_level;
	const struct sb_fg_box none = { .start = under.start,
					.parent = at,
					.level = level,
					.kind = is_deep ? SB_FG_BOX_DEEP : SB_FG_BOX_NARROW };
	struct sb_fg_box cut = none;
	double start = under.start;
	int err = 0;

	for (uint32_t i = sb_tree_first_child(tree, under.node); i && !err;
	     i = sb_tree_next_sibling(tree, i)) {
		const struct sb_fg_box frame = { .start = start,
						 .weight = nodes[i].total,
						 .node = i,
						 .parent = at,
						 .level = level };
		bool is_gap = plan->tree->kinds.at[i] == SB_FG_GAP;

		if (is_gap || is_drawn(plan, i)) {
			if (cut.weight > 0)
				err = push_box(plan, cut);
			cut = none;
			if (!err && !is_gap)
				err = push_box(plan, frame);
		} else {
			if (!cut.nr_cut)
				cut.start = start;
			extend_cut(plan, &cut, i);
		}
		start += nodes[i].total;
	}
	if (!err && cut.weight > 0)
		err = push_box(plan, cut);
	return err;
}

int sb_fg_layout_make(const struct sb_tree *tree, const struct sb_fg_layout_params *params,
		      struct sb_fg_layout *ret_layout)
{
	sb_cleanup(sb_freep) struct extent *extents = NULL;
	struct plan plan = { .tree = tree, .params = params };
	int err;

	if (!tree->nodes.nr || !(tree->nodes.at[0].total > 0))
		return -ENODATA;
	extents = calloc(tree->nodes.nr, sizeof(*extents));
	if (!extents)
		return -ENOMEM;
	measure(tree, extents);
	plan.extents = extents;
	plan.layout.min_weight = params->min_weight;
	err = raise_minimum(&plan);
	if (!err)
		err = push_box(&plan, (struct sb_fg_box){ .weight = tree->nodes.at[0].total });
	for (uint32_t i = 0; !err && i < plan.layout.boxes.nr; i++) {
		if (plan.layout.boxes.at[i].kind == SB_FG_BOX_FRAME)
			err = place_children(&plan, i);
	}
	if (err) {
		sb_fg_layout_release(&plan.layout);
		return err;
	}
	*ret_layout = plan.layout;
	return 0;
}

void sb_fg_layout_release(struct sb_fg_layout *layout)
{
	sb_vec_release(&layout->boxes);
}
