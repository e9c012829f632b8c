/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The call tree: stacks merged into one node per distinct path. The flame graph library builds it
 * from lines of text, user/model/calltree.h builds it from one profile or from two over each other;
 * pictures, `diff`, `top` and the HTTP API read it. Memory grows with distinct paths, not with
 * input, and is bounded. Nothing here recurses, because the depth comes from the input. Not
 * thread-safe; several threads may read a sealed tree.
 *
 * A tree has two states. While it grows, nodes have the order in which they were met, and their
 * children are linked. sb_tree_seal() sums up the weights, sorts siblings, and moves all nodes to
 * pre-order: the children of a node stand right behind it, and what is below node i are the nodes
 * from i + 1 to nodes.at[i].end - 1. Arguments called @node are indexes into `nodes`, @side is
 * SB_TREE_A or SB_TREE_B, and kinds are below SB_TREE_KIND_MAX: none of them is checked. Pointers
 * are not NULL unless it says so.
 */
#ifndef SB_TREE_TREE_H
#define SB_TREE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/index.h"
#include "base/vec.h"
#include "tree/frames.h"

/* The two profiles of a comparison: A is the one before, B the one in question. A tree of one
 * profile has A only. */
enum { SB_TREE_A, SB_TREE_B, SB_TREE_NR };

/* Bounds against hostile input. */
#define SB_TREE_NODES_MAX (1u << 25) /* keeps a tree without pairs below 1.5 GiB */
#define SB_TREE_NAME_MAX  4096u	     /* bytes of a name; nobody reads longer ones */

/* Kinds of frames are the caller's: enum sb_fg_kind, enum sb_frame_kind. All are below
 * SB_TREE_GAP: in an in_order tree, own time of the parent, between two children; no frame. */
#define SB_TREE_GAP	  ((int)SB_FG_GAP)
#define SB_TREE_KIND_MAX  ((int)SB_FG_KIND_MAX)

#define SB_TREE_NONE	  0 /* node 0 is the root, which is nobody's child or sibling */
#define SB_TREE_OTHER	  "(other)"

struct sb_tree_node {
	uint32_t name;	 /* in names */
	uint32_t parent; /* a smaller number; of the root: 0 */
	union {
		struct { /* while the tree grows */
			uint32_t newest_child, older_sibling;
		};
		struct { /* while nodes are moved: see number_nodes() */
			union {
				uint32_t size, distance;
			};
			uint32_t room; /* the distance of the next child */
		};
		struct {		/* sealed */
			uint32_t end;	/* the first node behind all below this one */
			uint32_t depth; /* 0: the root */
		};
	};
	double total; /* sealed: of this node and all below; before: what ends in this node */
};

/* What a path has in both profiles of a comparison. */
struct sb_tree_pair {
	double weight[SB_TREE_NR];
	/* The sum over all samples of the square of a sample's weight, see tree/diff.h; NAN: not
	 * known. */
	double squares[SB_TREE_NR];
};

/* Add @from to @to, each side by itself. */
static inline void sb_tree_pair_add(struct sb_tree_pair *to, const struct sb_tree_pair *from)
{
	for (int side = 0; side < SB_TREE_NR; side++) {
		to->weight[side] += from->weight[side];
		to->squares[side] += from->squares[side];
	}
}

/* Weights are doubles: whole numbers are exact up to 2^53 (9 PB, 285 years in us). Made by
 * sb_tree_init(). */
struct sb_tree {
	SB_VEC(struct sb_tree_node) nodes;
	SB_VEC(uint8_t) kinds;	  /* of each node */
	SB_VEC(uint32_t) modules; /* of each node, in names, 0: not known; empty: of none */
	SB_VEC(uint8_t) marks;	  /* of each node, the caller's, 0: nothing; empty: of none */
	struct sb_strtab names;
	struct sb_index
		children; /* while it grows: nodes that have siblings, by parent, name and kind */
	bool in_order;	  /* set before the first stack: merge neighbours only (a flame chart) */
	/* Frames of one name are one node if this is the same for their kinds; from the init on,
	 * each kind's own. */
	uint8_t same_kind[SB_TREE_KIND_MAX];
	bool is_by_id; /* set before the first stack: frames are added by sb_tree_child_by_id() only */
	bool has_fractions; /* some weight is no whole number */
	bool sealed;
	double *selves; /* of a sealed tree with fractions, whose sums cannot be undone exactly */
	/* Empty unless it is a comparison: for each node what ends there, and from the seal on the
	 * totals. */
	SB_VEC(struct sb_tree_pair) pairs, pair_totals;
	double squares; /* of a profile alone: of all its samples; NAN: not known */
	uint64_t nr_samples[SB_TREE_NR]; /* 0: not known */

	uint32_t depth_max; /* levels below the root */
	uint64_t nr_stacks; /* added */
	uint64_t nr_deep;   /* of these: cut by the user of the tree, because they were too deep */
	uint64_t
		nr_long_names; /* frames whose name was cut to SB_TREE_NAME_MAX; a hash tells them apart */
	uint64_t nr_cut; /* nodes that sb_tree_prune() took away */
};

struct sb_tree_frame {
	const char *name; /* need not end in NUL */
	size_t len;
	uint8_t kind;
};

/* Make a tree that has only the root, whose name is ""; what was in *tree is overwritten, not
 * released. Return: 0; -ENOMEM, nothing to release. */
int sb_tree_init(struct sb_tree *tree);
/* Free what the tree holds, also one that is zero-initialized. It can be used again only after
 * sb_tree_init(). */
void sb_tree_release(struct sb_tree *tree);
/* Release a tree that was allocated by itself, and free it; NULL is allowed. */
void sb_tree_free(struct sb_tree *tree);
SB_DEFINE_CLEANUP(struct sb_tree, sb_tree_free)

/**
 * sb_tree_child() - find the child of a node, or add it
 * @parent: a node of @tree, which is not sealed
 * @frame: the name, any bytes, is copied; one of more than SB_TREE_NAME_MAX bytes is cut
 * @ret_node: its index, valid until the seal; untouched on error
 *
 * Return: 0; -E2BIG if the tree has SB_TREE_NODES_MAX nodes or 2^31 bytes of names, and this would
 * be one more; -ENOMEM. On error no node is added.
 */
int sb_tree_child(struct sb_tree *tree, uint32_t parent, const struct sb_tree_frame *frame,
		  uint32_t *ret_node);

/*
 * Find the child of node @parent with name @name, an index of tree->names (sb_strtab_add()), and
 * this kind, or add it. For a tree with is_by_id; much faster than by text. *@ret_node is untouched
 * on error. Return: 0; -E2BIG if the tree has SB_TREE_NODES_MAX nodes; -ENOMEM. On error no node is
 * added.
 */
int sb_tree_child_by_id(struct sb_tree *tree, uint32_t parent, uint32_t name, uint8_t kind,
			uint32_t *ret_node);

/**
 * sb_tree_weigh() - add the weight of a stack to the node of its leaf
 * @node: the leaf of the stack, or 0, the root, for an empty stack
 * @depth: levels of @node below the root
 * @weight: 0 or more
 * @pair: for a comparison, the weights in both profiles, whose sum is @weight, copied; else NULL
 *
 * All stacks of a tree have a pair, or none has. Call it once for each stack, before the seal; a
 * node may get several stacks.
 *
 * Return: 0; -ENOMEM; for an in_order tree also -E2BIG, since a gap may need a node. On error the
 * stack is not counted.
 */
int sb_tree_weigh(struct sb_tree *tree, uint32_t node, uint32_t depth, double weight,
		  const struct sb_tree_pair *pair);

/**
 * sb_tree_sum_pairs() - sum up the pairs of a comparison
 *
 * Afterwards pair_totals has an entry for each node, and no stack may be added. sb_tree_seal() does
 * this by itself; call it before only to set nodes.at[].total of all nodes, from which widths and
 * the order of siblings come, by what the totals say. A tree that was sealed is to be sealed again.
 *
 * Return: 0; -ENOMEM, and there are no totals: it may be called again, or the tree released.
 */
int sb_tree_sum_pairs(struct sb_tree *tree);

/* Siblings by name and kind; by weight, heaviest first, then by name; in the order in which they
 * were met. An in_order tree keeps its own order. */
enum sb_tree_sort { SB_TREE_SORT_NAME, SB_TREE_SORT_WEIGHT, SB_TREE_SORT_NONE };

/**
 * sb_tree_seal() - sum up, sort siblings, and put all nodes in pre-order
 *
 * Nodes get new indexes; the caller's old ones and those of struct sb_fg_layout are not valid any
 * more. The resulting order depends only on the stacks, not on the sequence in which they were
 * added. The function can be called again with another @sort, but no stacks can be added to a
 * sealed tree.
 *
 * Return: 0; -ENOMEM, and then the tree is only to be released.
 */
int sb_tree_seal(struct sb_tree *tree, enum sb_tree_sort sort);

/* Return: the first child of a node of a sealed tree; SB_TREE_NONE if it has none. */
static inline uint32_t sb_tree_first_child(const struct sb_tree *tree, uint32_t node)
{
	return node + 1 < tree->nodes.at[node].end ? node + 1 : SB_TREE_NONE;
}

/* Return: the next sibling of a node, other than the root, of a sealed tree; SB_TREE_NONE if it is
 * the last one. */
static inline uint32_t sb_tree_next_sibling(const struct sb_tree *tree, uint32_t node)
{
	const struct sb_tree_node *nodes = tree->nodes.at;

	return nodes[node].end < nodes[nodes[node].parent].end ? nodes[node].end : SB_TREE_NONE;
}

/* Return: the weight of a node of a sealed tree in profile @side, with all below it; 0 for
 * SB_TREE_B if the tree is of one profile. */
static inline double sb_tree_total(const struct sb_tree *tree, size_t node, int side)
{
	if (tree->pair_totals.nr)
		return tree->pair_totals.at[node].weight[side];
	return side == SB_TREE_A ? tree->nodes.at[node].total : 0;
}

/* Return: the weight of a node of a sealed tree as by sb_tree_total(), but without what is below
 * it: of the stacks that end in it. */
double sb_tree_self(const struct sb_tree *tree, size_t node, int side);

/* Return: the sum of the squares of the weights of all samples of profile @side, of a sealed tree;
 * NAN: not known. */
static inline double sb_tree_squares(const struct sb_tree *tree, int side)
{
	return tree->pair_totals.nr ? tree->pair_totals.at[0].squares[side] : tree->squares;
}

/* Return: the nearest whole number; 0 for a negative weight or NAN, UINT64_MAX for one beyond. For
 * those who write weights of profiles, which are whole; any thread. */
uint64_t sb_tree_whole(double weight);

/* Return: the name of @node, which ends in NUL and is valid until the tree is released. */
const char *sb_tree_name(const struct sb_tree *tree, size_t node);

/**
 * sb_tree_prune() - keep the nodes with the largest share of either profile
 * @tree: sealed; it stays sealed, but nodes change their indexes
 * @nr_max: nodes that are left at most, with the root, 2 or more
 * @other_kind: kind of the nodes that stand for others
 *
 * What a node loses of its children becomes one last child SB_TREE_OTHER, so all sums stay. If it
 * has a child of that name and kind already, that becomes part of it. The same tree is always cut
 * the same way. nr_cut grows by the nodes that are gone.
 *
 * Return: 0, also if nothing is to be cut; -EINVAL if @nr_max is less than 2; -ENOMEM; -E2BIG if
 * the tree has 2^31 bytes of names; on error the tree is as before.
 */
int sb_tree_prune(struct sb_tree *tree, size_t nr_max, uint8_t other_kind);

/*
 * Internal to tree.c and prune.c: remove all nodes but the first @nr of @order, and put these into
 * pre-order, siblings in the order of @order. A node's parent is among the first @nr, too, and so
 * is the root. @order: indexes of nodes, with room for tree->nodes.nr elements; overwritten.
 */
void sb_tree_rearrange(struct sb_tree *tree, uint32_t *order, size_t nr);

#endif
