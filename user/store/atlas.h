/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One numbering for frames and nodes of all files that were asked, of those that weighed enough to be drawn: what
 * several files say is then one tree, and each frame is named once. Not thread-safe.
 */
#ifndef SB_STORE_ATLAS_H
#define SB_STORE_ATLAS_H

#include "store/dict.h"

/* When it has become larger it is forgotten, and begins anew with the next question. */
#define SB_ATLAS_BYTES_MAX (64u << 20)

struct sb_atlas_weight {
	uint64_t self, other; /* other: of what is not drawn below it */
};
/* Zero-initialize. */
struct sb_atlas {
	struct sb_dict dict; /* its frames and nodes; in use if there are nodes */
	/* By node, of a question; 0 for nodes that are new. */
	SB_VEC(struct sb_atlas_weight) weights;
	SB_VEC(uint64_t) marks; /* a bit for each node that has a weight */
	SB_VEC(uint32_t) path;	/* scratch */
};
/* What is where in it, of one file: SB_DICT_NONE if nobody asked. Zero-initialize. */
struct sb_atlas_map {
	SB_VEC(uint32_t) frame, node;
};

/* Have room for all of @dict, whose beginning was there before. The atlas has a root then. Return: 0 or -ENOMEM. */
int sb_atlas_fit(struct sb_atlas *atlas, struct sb_atlas_map *map, const struct sb_dict *dict);
/*
 * Where @node of @dict is, for which sb_atlas_fit() was called. Return: 0; -EBADMSG: it is deeper than
 * SB_DICT_DEPTH_MAX; -ENOMEM.
 */
int sb_atlas_node(struct sb_atlas *atlas, struct sb_atlas_map *map, const struct sb_dict *dict,
		  uint32_t node, uint32_t *ret_node);

#define SB_ATLAS_MARK_BITS 64u
/* Of a node that sb_atlas_node() gave. */
static inline void sb_atlas_add(struct sb_atlas *atlas, uint32_t node, uint64_t self,
				uint64_t other)
{
	atlas->marks.at[node / SB_ATLAS_MARK_BITS] |= 1ull << node % SB_ATLAS_MARK_BITS;
	atlas->weights.at[node].self += self;
	atlas->weights.at[node].other += other;
}
/* For the next question: no node has a weight, nor a mark. */
void sb_atlas_clear(struct sb_atlas *atlas);

/* Return: what it takes. */
size_t sb_atlas_bytes(const struct sb_atlas *atlas);
/* All maps of it are to be released with it. */
void sb_atlas_release(struct sb_atlas *atlas);
void sb_atlas_map_release(struct sb_atlas_map *map);

#endif
