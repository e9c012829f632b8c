// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/draw.h"

#include "store/cut.h"

struct drawer {
	struct sb_drawing *drawing;
	const struct sb_atlas *atlas;
	struct sb_profile *profile;
	struct sb_drawn *drawn;
	uint32_t other; /* the frame, in the atlas */
};

/*
 * Mark the parents of marked nodes. Parents have lower IDs, so one pass from the end is enough.
 * Return: how many nodes are marked then.
 */
static size_t mark_parents(struct sb_atlas *atlas)
{
	const struct sb_dict_node *nodes = atlas->dict.nodes.at;
	uint64_t *marks = atlas->marks.at, rest, left;
	size_t i, nr = 0;
	uint32_t parent;
	unsigned int bit;

	for (i = atlas->marks.nr; i-- > 0;) {
		/* A parent may be in the same word. */
		for (rest = UINT64_MAX; (left = marks[i] & rest); rest = (1ull << bit) - 1) {
			bit = 63 - (unsigned int)__builtin_clzll(left);
			parent = nodes[i * SB_ATLAS_MARK_BITS + bit].parent;
			marks[parent / SB_ATLAS_MARK_BITS] |= 1ull << parent % SB_ATLAS_MARK_BITS;
			nr++;
		}
	}
	return nr;
}

static int need_room(struct sb_drawing *drawing, const struct sb_atlas *atlas, size_t nr)
{
	int err = sb_vec_reserve(&drawing->number, atlas->dict.nodes.nr);

	if (!err)
		err = sb_vec_reserve(&drawing->node, nr);
	if (!err)
		err = sb_vec_reserve(&drawing->parent, nr);
	if (!err)
		err = sb_vec_reserve(&drawing->first, nr);
	if (!err)
		err = sb_vec_reserve(&drawing->next, nr);
	if (!err)
		err = sb_vec_reserve(&drawing->depth, nr);
	if (!err)
		err = sb_vec_reserve(&drawing->total, nr);
	drawing->frame.nr = drawing->path.nr = 0;
	return err ? err : sb_vec_fit(&drawing->frame, atlas->dict.frames.nr, 0xff);
}

/* Number the marked nodes. */
static void number_nodes(struct sb_drawing *drawing, const struct sb_atlas *atlas)
{
	size_t i, nr = 0;
	uint64_t left;
	uint32_t node;

	for (i = 0; i < atlas->marks.nr; i++)
		for (left = atlas->marks.at[i]; left; left &= left - 1) {
			node = (uint32_t)(i * SB_ATLAS_MARK_BITS) + (uint32_t)__builtin_ctzll(left);
			drawing->node.at[nr] = node;
			drawing->number.at[node] = (uint32_t)nr;
			drawing->parent.at[nr] =
				drawing->number.at[atlas->dict.nodes.at[node].parent];
			drawing->depth.at[nr] =
				nr ? drawing->depth.at[drawing->parent.at[nr]] + 1 : 0;
			drawing->total.at[nr++] =
				atlas->weights.at[node].self + atlas->weights.at[node].other;
		}
	drawing->node.nr = nr;
}

/* Link children and siblings, of nodes that have weight or are above one that has. */
static void link_nodes(struct sb_drawing *drawing)
{
	uint32_t *first = drawing->first.at, *next = drawing->next.at;
	size_t i;

	memset(first, 0, drawing->node.nr * sizeof(*first));
	for (i = drawing->node.nr; i-- > 1;) {
		if (!drawing->total.at[i] && !first[i])
			continue;
		next[i] = first[drawing->parent.at[i]];
		first[drawing->parent.at[i]] = (uint32_t)i;
	}
}

/* Reserve memory for everything that is drawn: arrays that grow are copied again and again. */
static int need_profile(struct drawer *drawer)
{
	const struct sb_drawing *drawing = drawer->drawing;
	const struct sb_atlas_weight *weights = drawer->atlas->weights.at;
	size_t i, nr_stacks = 0, nr_frames = 0;

	for (i = 0; i < drawing->node.nr; i++) {
		uint64_t all = drawing->total.at[i], self = weights[drawing->node.at[i]].self;

		if (!all || drawing->depth.at[i] > SB_DICT_DEPTH_MAX)
			continue;
		nr_stacks += !!self + (all != self);
		nr_frames += (!!self + (all != self)) * ((size_t)drawing->depth.at[i] + 1);
	}
	return sb_profile_reserve(drawer->profile, 0, nr_stacks, nr_frames);
}

static int name_frame(struct drawer *drawer, uint32_t id)
{
	struct sb_frame frame = sb_dict_frame_at(&drawer->atlas->dict, id);

	return sb_profile_push_frame(drawer->profile, &frame, &drawer->drawing->frame.at[id]);
}

/* Name all frames that are drawn, each once, in the order in which their names are in memory. */
static int name_frames(struct drawer *drawer)
{
	struct sb_drawing *drawing = drawer->drawing;
	const struct sb_dict *dict = &drawer->atlas->dict;
	uint32_t *frame = drawing->frame.at;
	size_t i;
	int err = 0;

	for (i = 1; i < drawing->node.nr; i++)
		if (drawing->total.at[i] || drawing->first.at[i])
			frame[dict->nodes.at[drawing->node.at[i]].frame] = 0;
	for (i = 0; i < dict->frames.nr && !err; i++)
		if (frame[i] != SB_DICT_NONE)
			err = name_frame(drawer, (uint32_t)i);
	return err;
}

/* Push "(other)" on the path. */
static int push_other(struct drawer *drawer)
{
	uint32_t *frame = &drawer->drawing->frame.at[drawer->other];
	int err = *frame == SB_DICT_NONE ? name_frame(drawer, drawer->other) : 0;

	return err ? err : sb_vec_push(&drawer->drawing->path, *frame);
}

/* Add the stack of node @number, whose path is current, and the one of its "(other)". */
static int draw_node(struct drawer *drawer, uint32_t number)
{
	struct sb_drawing *drawing = drawer->drawing;
	uint32_t node = drawing->node.at[number];
	uint64_t self = drawer->atlas->weights.at[node].self, all = drawing->total.at[number];
	int err = 0;

	if (!all)
		return 0;
	if (drawing->path.nr > SB_DICT_DEPTH_MAX) {
		drawer->drawn->lost_weight += all;
		return 0;
	}
	/*
		 * A node that was recorded as "(other)" is the same stack as the "(other)" of its
		 * parent, which has been added. All other stacks are new.
		 */
	if (self && drawer->atlas->dict.nodes.at[node].frame == drawer->other && node)
		err = sb_profile_add(drawer->profile, drawing->path.at, drawing->path.nr, self);
	else if (self)
		err = sb_profile_push(drawer->profile, drawing->path.at, drawing->path.nr, self);
	if (err || all == self)
		return err;
	err = push_other(drawer);
	if (err)
		return err;
	drawer->drawn->cut_weight += all - self;
	err = sb_profile_push(drawer->profile, drawing->path.at, drawing->path.nr, all - self);
	drawing->path.nr--;
	return err;
}

/* Depth first, so that a path is built once. */
static int draw_nodes(struct drawer *drawer)
{
	struct sb_drawing *drawing = drawer->drawing;
	const uint32_t *first = drawing->first.at, *next = drawing->next.at,
		       *frame = drawing->frame.at;
	const struct sb_dict_node *nodes = drawer->atlas->dict.nodes.at;
	uint32_t at = 0;
	int err = draw_node(drawer, 0);

	while (!err) {
		if (first[at]) {
			at = first[at];
		} else {
			for (; at && !next[at]; at = drawing->parent.at[at])
				drawing->path.nr--;
			if (!at)
				break;
			drawing->path.nr--;
			at = next[at];
		}
		err = sb_vec_push(&drawing->path, frame[nodes[drawing->node.at[at]].frame]);
		if (!err)
			err = draw_node(drawer, at);
	}
	return err;
}

int sb_draw(struct sb_drawing *drawing, struct sb_atlas *atlas, size_t nr_nodes_max,
	    struct sb_profile *profile, struct sb_drawn *ret_drawn)
{
	static const struct sb_frame other = { .name = "(other)", .kind = SB_FRAME_MARK };
	struct drawer drawer = {
		.drawing = drawing,
		.atlas = atlas,
		.profile = profile,
		.drawn = ret_drawn,
	};
	struct sb_cut cut = { .nr = mark_parents(atlas) };
	int err;

	*ret_drawn = (struct sb_drawn){};
	/* The atlas may not be initialized, either. */
	if (!cut.nr)
		return 0;
	err = sb_dict_frame(&atlas->dict, &other, &drawer.other);
	if (!err)
		err = need_room(drawing, atlas, cut.nr);
	if (err)
		return err;
	number_nodes(drawing, atlas);
	cut.parent = drawing->parent.at;
	cut.total = drawing->total.at;
	sb_cut(&cut, nr_nodes_max);
	link_nodes(drawing);
	err = need_profile(&drawer);
	if (!err)
		err = name_frames(&drawer);
	return err ? err : draw_nodes(&drawer);
}

void sb_drawing_release(struct sb_drawing *drawing)
{
	sb_vec_release(&drawing->node);
	sb_vec_release(&drawing->number);
	sb_vec_release(&drawing->parent);
	sb_vec_release(&drawing->first);
	sb_vec_release(&drawing->next);
	sb_vec_release(&drawing->depth);
	sb_vec_release(&drawing->total);
	sb_vec_release(&drawing->frame);
	sb_vec_release(&drawing->path);
}
