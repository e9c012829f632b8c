// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/atlas.h"

static int fit_nodes(struct sb_atlas *atlas)
{
	size_t nr = atlas->dict.nodes.nr;
	int err = sb_vec_fit(&atlas->weights, nr, 0);

	return err ? err : sb_vec_fit(&atlas->marks, nr / SB_ATLAS_MARK_BITS + 1, 0);
}

int sb_atlas_fit(struct sb_atlas *atlas, struct sb_atlas_map *map, const struct sb_dict *dict)
{
	int err = 0;

	if (!atlas->dict.nodes.nr) {
		err = sb_dict_init(&atlas->dict);
		atlas->dict.is_unbounded = true;
	}
	if (!err)
		err = fit_nodes(atlas);
	if (!err)
		err = sb_vec_fit(&map->frame, dict->frames.nr, 0xff);
	if (!err)
		err = sb_vec_fit(&map->node, dict->nodes.nr, 0xff);
	if (!err)
		map->node.at[0] = 0;
	return err;
}

static int find_frame(struct sb_atlas *atlas, struct sb_atlas_map *map, const struct sb_dict *dict,
		      uint32_t id, uint32_t *ret_frame)
{
	struct sb_frame frame;
	int err;

	if (id < dict->frames.nr && map->frame.at[id] != SB_DICT_NONE) {
		*ret_frame = map->frame.at[id];
		return 0;
	}
	frame = sb_dict_frame_at(dict, id);
	err = sb_dict_frame(&atlas->dict, &frame, ret_frame);
	if (!err && id < dict->frames.nr)
		map->frame.at[id] = *ret_frame;
	return err;
}

/* Add the nodes in atlas->path, root last, below @at. */
static int add_path(struct sb_atlas *atlas, struct sb_atlas_map *map, const struct sb_dict *dict,
		    uint32_t at)
{
	uint32_t frame, node;
	int err = 0;

	for (; atlas->path.nr && !err; at = node) {
		node = atlas->path.at[--atlas->path.nr];
		err = find_frame(atlas, map, dict, dict->nodes.at[node].frame, &frame);
		if (!err)
			err = sb_dict_node(&atlas->dict, map->node.at[at], frame,
					   &map->node.at[node]);
	}
	return err ? err : fit_nodes(atlas);
}

int sb_atlas_node(struct sb_atlas *atlas, struct sb_atlas_map *map, const struct sb_dict *dict,
		  uint32_t node, uint32_t *ret_node)
{
	uint32_t at = node;
	int err = 0;

	/* Up to a node that is known, and down again. */
	atlas->path.nr = 0;
	for (; map->node.at[at] == SB_DICT_NONE && !err; at = dict->nodes.at[at].parent)
		err = atlas->path.nr < SB_DICT_DEPTH_MAX ? sb_vec_push(&atlas->path, at) : -EBADMSG;
	if (!err && atlas->path.nr)
		err = add_path(atlas, map, dict, at);
	if (!err)
		*ret_node = map->node.at[node];
	return err;
}

void sb_atlas_clear(struct sb_atlas *atlas)
{
	size_t i, node;
	uint64_t left;

	for (i = 0; i < atlas->marks.nr; i++) {
		for (left = atlas->marks.at[i]; left; left &= left - 1) {
			node = i * SB_ATLAS_MARK_BITS + (size_t)__builtin_ctzll(left);
			atlas->weights.at[node] = (struct sb_atlas_weight){};
		}
		atlas->marks.at[i] = 0;
	}
}

size_t sb_atlas_bytes(const struct sb_atlas *atlas)
{
	return sb_dict_bytes(&atlas->dict) + atlas->weights.nr * sizeof(atlas->weights.at[0]) +
	       atlas->marks.nr * sizeof(atlas->marks.at[0]);
}

void sb_atlas_release(struct sb_atlas *atlas)
{
	sb_dict_release(&atlas->dict);
	sb_vec_release(&atlas->weights);
	sb_vec_release(&atlas->marks);
	sb_vec_release(&atlas->path);
	*atlas = (struct sb_atlas){};
}

void sb_atlas_map_release(struct sb_atlas_map *map)
{
	sb_vec_release(&map->frame);
	sb_vec_release(&map->node);
}
