// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/merged_tree.h"

static int fit_nodes(struct sb_merged_tree *merged)
{
	size_t nr = merged->dict.nodes.nr;
	int err = sb_vec_fit(&merged->weights, nr, 0);

	return err ? err : sb_vec_fit(&merged->marks, nr / SB_MERGED_TREE_MARK_BITS + 1, 0);
}

int sb_merged_tree_fit(struct sb_merged_tree *merged, struct sb_merged_tree_map *map,
		       const struct sb_dict *dict)
{
	int err = 0;

	if (!merged->dict.nodes.nr) {
		err = sb_dict_init(&merged->dict);
		merged->dict.is_unbounded = true;
	}
	if (!err)
		err = fit_nodes(merged);
	if (!err)
		err = sb_vec_fit(&map->frame, dict->frames.nr, 0xff);
	if (!err)
		err = sb_vec_fit(&map->node, dict->nodes.nr, 0xff);
	if (!err)
		map->node.at[0] = 0;
	return err;
}

static int find_frame(struct sb_merged_tree *merged, struct sb_merged_tree_map *map,
		      const struct sb_dict *dict, uint32_t id, uint32_t *ret_frame)
{
	struct sb_frame frame;
	int err;

	if (id < dict->frames.nr && map->frame.at[id] != SB_DICT_NONE) {
		*ret_frame = map->frame.at[id];
		return 0;
	}
	frame = sb_dict_frame_at(dict, id);
	err = sb_dict_frame(&merged->dict, &frame, ret_frame);
	if (!err && id < dict->frames.nr)
		map->frame.at[id] = *ret_frame;
	return err;
}

/* Add the nodes in merged->path, root last, below @at. */
static int add_path(struct sb_merged_tree *merged, struct sb_merged_tree_map *map,
		    const struct sb_dict *dict, uint32_t at)
{
	uint32_t frame, node;
	int err = 0;

	for (; merged->path.nr && !err; at = node) {
		node = merged->path.at[--merged->path.nr];
		err = find_frame(merged, map, dict, dict->nodes.at[node].frame, &frame);
		if (!err)
			err = sb_dict_node(&merged->dict, map->node.at[at], frame,
					   &map->node.at[node]);
	}
	return err ? err : fit_nodes(merged);
}

int sb_merged_tree_node(struct sb_merged_tree *merged, struct sb_merged_tree_map *map,
			const struct sb_dict *dict, uint32_t node, uint32_t *ret_node)
{
	uint32_t at = node;
	int err = 0;

	/* Up to a node that is known, and down again. */
	merged->path.nr = 0;
	for (; map->node.at[at] == SB_DICT_NONE && !err; at = dict->nodes.at[at].parent)
		err = merged->path.nr < SB_DICT_DEPTH_MAX ? sb_vec_push(&merged->path, at)
							  : -EBADMSG;
	if (!err && merged->path.nr)
		err = add_path(merged, map, dict, at);
	if (!err)
		*ret_node = map->node.at[node];
	return err;
}

void sb_merged_tree_clear(struct sb_merged_tree *merged)
{
	size_t i, node;
	uint64_t left;

	for (i = 0; i < merged->marks.nr; i++) {
		for (left = merged->marks.at[i]; left; left &= left - 1) {
			node = i * SB_MERGED_TREE_MARK_BITS + (size_t)__builtin_ctzll(left);
			merged->weights.at[node] = (struct sb_merged_tree_weight){};
		}
		merged->marks.at[i] = 0;
	}
}

size_t sb_merged_tree_bytes(const struct sb_merged_tree *merged)
{
	return sb_dict_bytes(&merged->dict) + merged->weights.nr * sizeof(merged->weights.at[0]) +
	       merged->marks.nr * sizeof(merged->marks.at[0]);
}

void sb_merged_tree_release(struct sb_merged_tree *merged)
{
	sb_dict_release(&merged->dict);
	sb_vec_release(&merged->weights);
	sb_vec_release(&merged->marks);
	sb_vec_release(&merged->path);
	*merged = (struct sb_merged_tree){};
}

void sb_merged_tree_map_release(struct sb_merged_tree_map *map)
{
	sb_vec_release(&map->frame);
	sb_vec_release(&map->node);
}
