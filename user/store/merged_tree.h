/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A call tree that is shared by all files of a query. Each file of a store numbers frames and nodes
 * in its own dictionary; the merged tree merges the nodes that are heavy enough to be drawn, so
 * that each is drawn and each frame is named once. Called by query.c and heaviest.c. Not
 * thread-safe.
 *
 * For each file of a query: sb_merged_tree_fit(), then sb_merged_tree_node() and
 * sb_merged_tree_add() for its nodes. Then the weights are read, and sb_merged_tree_clear() ends
 * the query. After an error the merged tree and all its maps must be released, by
 * sb_merged_tree_release() and sb_merged_tree_map_release(). Nodes are indexes that are not
 * checked. Pointers are not NULL; the dictionary of a file is borrowed for each call.
 */
#ifndef SB_STORE_MERGED_TREE_H
#define SB_STORE_MERGED_TREE_H

#include "store/dict.h"

/*
 * A merged tree that has grown beyond this is dropped after the query; the next one starts an empty
 * one.
 */
#define SB_MERGED_TREE_BYTES_MAX (64u << 20)

struct sb_merged_tree_weight {
	uint64_t self,
		other; /* other: of subtrees below it that are too light to be in the merged tree */
};
/* Zero-initialize. */
struct sb_merged_tree {
	struct sb_dict dict; /* frames and nodes; initialized once there is a node */
	/* By node: weights of the current query. */
	SB_VEC(struct sb_merged_tree_weight) weights;
	SB_VEC(uint64_t) marks; /* a bitmap: nodes that have a weight */
	SB_VEC(uint32_t) path;	/* scratch */
};
/*
 * Maps frames and nodes of one file's dictionary to those of the merged tree; SB_DICT_NONE: not
 * mapped yet. Zero-initialize.
 */
struct sb_merged_tree_map {
	SB_VEC(uint32_t) frame, node;
};

/*
 * Make room for all entries of @dict, which may only have grown since the last call with this map.
 * Also creates the root of the merged tree, node 0. Return: 0; -ENOMEM: the caller must then
 * release the merged and all its maps.
 */
int sb_merged_tree_fit(struct sb_merged_tree *merged, struct sb_merged_tree_map *map,
		       const struct sb_dict *dict);
/*
 * Find or add the node of the merged tree that corresponds to @node of @dict. Call
 * sb_merged_tree_fit() first.
 * @ret_node: its index, valid until the release; untouched on error. Return: 0; -EBADMSG if the
 *	node is deeper than SB_DICT_DEPTH_MAX, and then the merged tree is as before and need not be
 *	released; -E2BIG for INT32_MAX nodes, frames or strings, or as many bytes of text; -ENOMEM.
 */
int sb_merged_tree_node(struct sb_merged_tree *merged, struct sb_merged_tree_map *map,
			const struct sb_dict *dict, uint32_t node, uint32_t *ret_node);

#define SB_MERGED_TREE_MARK_BITS 64u
/* Add weight to a node that sb_merged_tree_node() returned. @other: of its subtrees that are too
 * light to be in the merged tree. */
static inline void sb_merged_tree_add(struct sb_merged_tree *merged, uint32_t node, uint64_t self,
				      uint64_t other)
{
	merged->marks.at[node / SB_MERGED_TREE_MARK_BITS] |= 1ull
							     << node % SB_MERGED_TREE_MARK_BITS;
	merged->weights.at[node].self += self;
	merged->weights.at[node].other += other;
}
/* Reset all weights and marks for the next query. The nodes stay. */
void sb_merged_tree_clear(struct sb_merged_tree *merged);

/* Return: the memory it takes, in bytes. */
size_t sb_merged_tree_bytes(const struct sb_merged_tree *merged);
/* Free what the merged tree holds, and zero it: it can be used again. Its maps become invalid:
 * release them, too. */
void sb_merged_tree_release(struct sb_merged_tree *merged);
/* Free what a map holds, and empty it: it can be used again. */
void sb_merged_tree_map_release(struct sb_merged_tree_map *map);

#endif
