// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/heaviest.h"

#include "store/prune.h"

struct adder {
	struct sb_heaviest_scratch *scratch;
	const struct sb_merged_tree *merged;
	struct sb_profile *profile;
	struct sb_heaviest_rest *rest;
	uint32_t other; /* the frame, in the merged tree */
};

/*
 * Mark the parents of marked nodes. Parents have lower IDs, so one pass from the end is enough.
 * Return: how many nodes are marked then.
 */
static size_t mark_parents(struct sb_merged_tree *merged)
{
	const struct sb_dict_node *nodes = merged->dict.nodes.at;
	uint64_t *marks = merged->marks.at, rest, left;
	size_t i, nr = 0;
	uint32_t parent;
	unsigned int bit;

	for (i = merged->marks.nr; i-- > 0;) {
		/* A parent may be in the same word. */
		for (rest = UINT64_MAX; (left = marks[i] & rest); rest = (1ull << bit) - 1) {
			bit = 63 - (unsigned int)__builtin_clzll(left);
			parent = nodes[i * SB_MERGED_TREE_MARK_BITS + bit].parent;
			marks[parent / SB_MERGED_TREE_MARK_BITS] |=
				1ull << parent % SB_MERGED_TREE_MARK_BITS;
			nr++;
		}
	}
	return nr;
}

static int need_room(struct sb_heaviest_scratch *scratch, const struct sb_merged_tree *merged,
		     size_t nr)
{
	int err = sb_vec_reserve(&scratch->number, merged->dict.nodes.nr);

	if (!err)
		err = sb_vec_reserve(&scratch->node, nr);
	if (!err)
		err = sb_vec_reserve(&scratch->parent, nr);
	if (!err)
		err = sb_vec_reserve(&scratch->first, nr);
	if (!err)
		err = sb_vec_reserve(&scratch->next, nr);
	if (!err)
		err = sb_vec_reserve(&scratch->depth, nr);
	if (!err)
		err = sb_vec_reserve(&scratch->total, nr);
	scratch->frame.nr = scratch->path.nr = 0;
	return err ? err : sb_vec_fit(&scratch->frame, merged->dict.frames.nr, 0xff);
}

/* Number the marked nodes. */
static void number_nodes(struct sb_heaviest_scratch *scratch, const struct sb_merged_tree *merged)
{
	size_t i, nr = 0;
	uint64_t left;
	uint32_t node;

	for (i = 0; i < merged->marks.nr; i++)
		for (left = merged->marks.at[i]; left; left &= left - 1) {
			node = (uint32_t)(i * SB_MERGED_TREE_MARK_BITS) +
			       (uint32_t)__builtin_ctzll(left);
			scratch->node.at[nr] = node;
			scratch->number.at[node] = (uint32_t)nr;
			scratch->parent.at[nr] =
				scratch->number.at[merged->dict.nodes.at[node].parent];
			scratch->depth.at[nr] =
				nr ? scratch->depth.at[scratch->parent.at[nr]] + 1 : 0;
			scratch->total.at[nr++] =
				merged->weights.at[node].self + merged->weights.at[node].other;
		}
	scratch->node.nr = nr;
}

/* Link children and siblings, of nodes that have weight or are above one that has. */
static void link_nodes(struct sb_heaviest_scratch *scratch)
{
	uint32_t *first = scratch->first.at, *next = scratch->next.at;
	size_t i;

	memset(first, 0, scratch->node.nr * sizeof(*first));
	for (i = scratch->node.nr; i-- > 1;) {
		if (!scratch->total.at[i] && !first[i])
			continue;
		next[i] = first[scratch->parent.at[i]];
		first[scratch->parent.at[i]] = (uint32_t)i;
	}
}

/* Reserve memory for everything that is added: arrays that grow are copied again and again. */
static int need_profile(struct adder *adder)
{
	const struct sb_heaviest_scratch *scratch = adder->scratch;
	const struct sb_merged_tree_weight *weights = adder->merged->weights.at;
	size_t i, nr_stacks = 0, nr_frames = 0;

	for (i = 0; i < scratch->node.nr; i++) {
		uint64_t all = scratch->total.at[i], self = weights[scratch->node.at[i]].self;

		if (!all || scratch->depth.at[i] > SB_DICT_DEPTH_MAX)
			continue;
		nr_stacks += !!self + (all != self);
		nr_frames += (!!self + (all != self)) * ((size_t)scratch->depth.at[i] + 1);
	}
	return sb_profile_reserve(adder->profile, 0, nr_stacks, nr_frames);
}

static int name_frame(struct adder *adder, uint32_t id)
{
	struct sb_frame frame = sb_dict_frame_at(&adder->merged->dict, id);

	return sb_profile_push_frame(adder->profile, &frame, &adder->scratch->frame.at[id]);
}

/* Name all frames that are rest, each once, in the order in which their names are in memory. */
static int name_frames(struct adder *adder)
{
	struct sb_heaviest_scratch *scratch = adder->scratch;
	const struct sb_dict *dict = &adder->merged->dict;
	uint32_t *frame = scratch->frame.at;
	size_t i;
	int err = 0;

	for (i = 1; i < scratch->node.nr; i++)
		if (scratch->total.at[i] || scratch->first.at[i])
			frame[dict->nodes.at[scratch->node.at[i]].frame] = 0;
	for (i = 0; i < dict->frames.nr && !err; i++)
		if (frame[i] != SB_DICT_NONE)
			err = name_frame(adder, (uint32_t)i);
	return err;
}

/* Push "(other)" on the path. */
static int push_other(struct adder *adder)
{
	uint32_t *frame = &adder->scratch->frame.at[adder->other];
	int err = *frame == SB_DICT_NONE ? name_frame(adder, adder->other) : 0;

	return err ? err : sb_vec_push(&adder->scratch->path, *frame);
}

/* Add the stack of node @number, whose path is current, and the one of its "(other)". */
static int add_node(struct adder *adder, uint32_t number)
{
	struct sb_heaviest_scratch *scratch = adder->scratch;
	uint32_t node = scratch->node.at[number];
	uint64_t self = adder->merged->weights.at[node].self, all = scratch->total.at[number];
	int err = 0;

	if (!all)
		return 0;
	if (scratch->path.nr > SB_DICT_DEPTH_MAX) {
		adder->rest->lost_weight += all;
		return 0;
	}
	/*
		 * A node that was recorded as "(other)" is the same stack as the "(other)" of its
		 * parent, which has been added. All other stacks are new.
		 */
	if (self && adder->merged->dict.nodes.at[node].frame == adder->other && node)
		err = sb_profile_add(adder->profile, scratch->path.at, scratch->path.nr, self);
	else if (self)
		err = sb_profile_push(adder->profile, scratch->path.at, scratch->path.nr, self);
	if (err || all == self)
		return err;
	err = push_other(adder);
	if (err)
		return err;
	adder->rest->cut_weight += all - self;
	err = sb_profile_push(adder->profile, scratch->path.at, scratch->path.nr, all - self);
	scratch->path.nr--;
	return err;
}

/* Depth first, so that a path is built once. */
static int add_nodes(struct adder *adder)
{
	struct sb_heaviest_scratch *scratch = adder->scratch;
	const uint32_t *first = scratch->first.at, *next = scratch->next.at,
		       *frame = scratch->frame.at;
	const struct sb_dict_node *nodes = adder->merged->dict.nodes.at;
	uint32_t at = 0;
	int err = add_node(adder, 0);

	while (!err) {
		if (first[at]) {
			at = first[at];
		} else {
			for (; at && !next[at]; at = scratch->parent.at[at])
				scratch->path.nr--;
			if (!at)
				break;
			scratch->path.nr--;
			at = next[at];
		}
		err = sb_vec_push(&scratch->path, frame[nodes[scratch->node.at[at]].frame]);
		if (!err)
			err = add_node(adder, at);
	}
	return err;
}

int sb_heaviest_add(struct sb_heaviest_scratch *scratch, struct sb_merged_tree *merged,
		    size_t nr_nodes_max, struct sb_profile *profile,
		    struct sb_heaviest_rest *ret_rest)
{
	static const struct sb_frame other = { .name = "(other)", .kind = SB_FRAME_MARK };
	struct adder adder = {
		.scratch = scratch,
		.merged = merged,
		.profile = profile,
		.rest = ret_rest,
	};
	struct sb_prune prune = { .nr = mark_parents(merged) };
	int err;

	*ret_rest = (struct sb_heaviest_rest){};
	/* The merged tree may not be initialized, either. */
	if (!prune.nr)
		return 0;
	err = sb_dict_frame(&merged->dict, &other, &adder.other);
	if (!err)
		err = need_room(scratch, merged, prune.nr);
	if (err)
		return err;
	number_nodes(scratch, merged);
	prune.parent = scratch->parent.at;
	prune.total = scratch->total.at;
	sb_prune(&prune, nr_nodes_max);
	link_nodes(scratch);
	err = need_profile(&adder);
	if (!err)
		err = name_frames(&adder);
	return err ? err : add_nodes(&adder);
}

void sb_heaviest_scratch_release(struct sb_heaviest_scratch *scratch)
{
	sb_vec_release(&scratch->node);
	sb_vec_release(&scratch->number);
	sb_vec_release(&scratch->parent);
	sb_vec_release(&scratch->first);
	sb_vec_release(&scratch->next);
	sb_vec_release(&scratch->depth);
	sb_vec_release(&scratch->total);
	sb_vec_release(&scratch->frame);
	sb_vec_release(&scratch->path);
}
