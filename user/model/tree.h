/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The call tree of a profile, or of two over each other: one node for each distinct path, with the weight
 * that each of the two has there. Two trees of this project are not one: flamegraph/tree.h merges text line
 * by line, keeps fractions and the order of the input, and knows no profile; this one numbers what a profile
 * has, for programs that ask for numbers. Not thread-safe; no function here recurses.
 */
#ifndef SB_MODEL_TREE_H
#define SB_MODEL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/vec.h"
#include "model/profile.h"

/* Of the two profiles: the one compared with, and the one in question. A tree of one has A only. */
enum { SB_TREE_A, SB_TREE_B, SB_TREE_NR };

#define SB_TREE_NODES_MAX (1u << 24) /* keeps a tree below 4 GiB while it grows; beyond it -E2BIG */
#define SB_TREE_OTHER	  "(other)"

/*
 * Two frames are one node if they have the same caller, name and kind; whether one is inlined is no
 * difference, nor are module, file and line: another build of a program is the same program.
 */
struct sb_tree_node {
	uint32_t name, module; /* in strings; module 0: not known. That of the heaviest stack */
	uint32_t parent;       /* a smaller number; of the root: 0 */
	uint32_t depth;	       /* of the root: 0 */
	enum sb_frame_kind kind;
	bool is_other; /* stands for children of its parent that sb_tree_prune() took away */
	uint64_t self[SB_TREE_NR], total[SB_TREE_NR];
	/*
	 * The sum over all samples of the square of a sample's weight: what the error of self and total is
	 * computed from, see model/diff.h. NAN: not known of how many samples the weight is.
	 */
	double self_squares[SB_TREE_NR], total_squares[SB_TREE_NR];
};

/* Node 0 is the root, "all". Nodes are in pre-order; siblings by name, SB_TREE_OTHER last. */
struct sb_tree {
	SB_VEC(struct sb_tree_node) nodes;
	struct sb_strtab strings;
	uint64_t nr_samples[SB_TREE_NR]; /* 0: not known */
	uint64_t nr_cut;		 /* nodes that sb_tree_prune() took away */
};

/*
 * Of the sealed profile @a, and of @b unless it is NULL; both may be freed afterwards.
 * Return: 0 and a tree that the caller frees; -ENOMEM, -E2BIG.
 */
int sb_tree_new(const struct sb_profile *a, const struct sb_profile *b, struct sb_tree **ret_tree);
void sb_tree_free(struct sb_tree *tree);

/*
 * Keep at most @nr_max nodes: those with the largest share of either profile. What a node loses of its
 * children becomes one child SB_TREE_OTHER, so all sums stay. The same tree is always cut the same way.
 * Return: 0, -EINVAL: less than 2, -ENOMEM.
 */
int sb_tree_prune(struct sb_tree *tree, size_t nr_max);

/* Return: the name of @node, valid until the tree is freed; its module, NULL: not known. */
const char *sb_tree_name(const struct sb_tree *tree, size_t node);
const char *sb_tree_module(const struct sb_tree *tree, size_t node);

#endif
