/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks merged into a tree: one node per distinct path, memory in proportion to distinct nodes,
 * not to input. Built by the readers (read_*.c), drawn by svg.c.
 */
#ifndef SB_FLAMEGRAPH_TREE_H
#define SB_FLAMEGRAPH_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/vec.h"

/* From the annotations _[k] _[i] _[j] _[w], or from the shape of the name. */
enum sb_fg_kind {
	SB_FG_PLAIN,
	SB_FG_KERNEL,
	SB_FG_INLINED,
	SB_FG_JIT,
	SB_FG_WAKER,
	SB_FG_UNKNOWN,	 /* "[unknown]", "[module+0x12]" */
	SB_FG_MARK,	 /* "[truncated: ...]": stands for frames that are not there */
	SB_FG_DELIMITER, /* "-" or "--" */
	SB_FG_KIND_MAX,
};

#define SB_FG_NODE_NONE 0 /* node 0 is the root, which is nobody's child or sibling */

struct sb_fg_node {
	uint32_t name; /* in names, without the annotation */
	uint32_t parent, first_child, next_sibling;
	double total; /* after sb_fg_tree_seal(): self and all below; before: self */
};

struct sb_fg_tree {
	SB_VEC(struct sb_fg_node) nodes;
	SB_VEC(uint8_t) kinds; /* enum sb_fg_kind of each node */
	struct sb_strtab names;
	struct sb_index children; /* (parent, name, kind) -> node */
	uint32_t depth_max;	  /* levels below the root */
	uint32_t nr_stacks;	  /* lines added */
};

struct sb_fg_tree_frame {
	const char *name;
	size_t len;
	enum sb_fg_kind kind;
};

int sb_fg_tree_init(struct sb_fg_tree *tree);
void sb_fg_tree_release(struct sb_fg_tree *tree);

/* Add @weight to the path of these frames, root first. Return: 0, -ENOMEM, -E2BIG. */
int sb_fg_tree_add(struct sb_fg_tree *tree, const struct sb_fg_tree_frame *frames, size_t nr,
		   double weight);

enum sb_fg_sort { SB_FG_SORT_NAME, SB_FG_SORT_WEIGHT, SB_FG_SORT_NONE };

/* Sum up totals and put siblings in order; nodes keep their numbers. Deterministic. */
int sb_fg_tree_seal(struct sb_fg_tree *tree, enum sb_fg_sort sort);

/* Facts of the run from "#stackbpf;k=v;..." lines; NULL when it was not said. */
struct sb_fg_facts {
	SB_VEC(struct sb_fg_fact {
		char *key, *value; /* owned */
	})
	facts;
};
const char *sb_fg_fact(const struct sb_fg_facts *facts, const char *key);

#endif
