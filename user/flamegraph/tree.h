/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks merged into a tree: one node per distinct path, memory in proportion to distinct nodes,
 * not to input. Built by the readers (read_*.c), drawn by svg.c. No function here recurses: depth
 * comes from the input.
 */
#ifndef SB_FLAMEGRAPH_TREE_H
#define SB_FLAMEGRAPH_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/vec.h"

/*
 * From the annotations _[k] _[i] _[j] _[w] _[f] _[p] _[z], or from the shape of the name. Appended only
 * before SB_FG_GAP; the viewer has the same numbers.
 */
enum sb_fg_kind {
	SB_FG_PLAIN,
	SB_FG_KERNEL,
	SB_FG_INLINED,
	SB_FG_JIT,
	SB_FG_WAKER,
	SB_FG_UNKNOWN,	 /* "[unknown]", "[module+0x12]" */
	SB_FG_MARK,	 /* "[truncated: ...]": stands for frames that are not there */
	SB_FG_DELIMITER, /* "-" or "--" */
	SB_FG_FILE,	 /* what was read or written: "/etc/passwd", "[pipe]" */
	SB_FG_IDLE,	 /* "[idle: epoll]", and all code under an outermost "[idle]" */
	SB_FG_RUNNING,	 /* "[running]", "[running: not sampled]" */
	SB_FG_WAITING,	 /* for a CPU: "[runqueue]", "[throttled]" */
	SB_FG_BLOCKED,	 /* "[blocked]" */
	SB_FG_RESIDUAL,	 /* "[residual]": what no measurement accounts for */
	SB_FG_INTERP,	 /* code that an interpreter runs */
	SB_FG_LOCK,	 /* "[lock: mutex]" */
	SB_FG_GAP,	 /* in_order trees: the parent's own time between two children; not drawn */
	SB_FG_KIND_MAX,
};

/* Bounds against hostile input; what they cut is counted in the tree. */
#define SB_FG_DEPTH_MAX \
	16384u /* frames of a stack; 512 are sampled, 10,000 were seen in recursion */
#define SB_FG_NAME_MAX	4096u /* bytes of a name; longer template names exist, nobody reads them */
#define SB_FG_NODES_MAX (1u << 25) /* keeps a tree below 1.5 GiB however cheap its input was */

#define SB_FG_NODE_NONE 0 /* node 0 is the root, which is nobody's child or sibling */

struct sb_fg_node {
	uint32_t name; /* in names, without the annotation */
	uint32_t parent, first_child, next_sibling;
	double total; /* after sb_fg_tree_seal(): self and all below; before: self */
};

/* Of a comparison: what a path has in A, the one compared with, and in B. */
struct sb_fg_pair {
	double weight[2];
	double squares[2]; /* of the weights of samples: see base/compare.h; NAN: not known */
};

/*
 * Sums are doubles: whole numbers are exact up to 2^53 (9 PB, 285 years in us). A node's number is
 * greater than its parent's.
 */
struct sb_fg_tree {
	SB_VEC(struct sb_fg_node) nodes;
	SB_VEC(uint8_t) kinds;	/* enum sb_fg_kind of each node */
	struct sb_strtab names; /* valid UTF-8 without control characters and ';' */
	struct sb_index
		children;   /* (parent, name, kind) -> node that has siblings; until the seal */
	uint32_t depth_max; /* levels below the root */
	uint64_t nr_stacks; /* lines added */
	uint64_t nr_deep;   /* of these: cut to SB_FG_DEPTH_MAX, the rest is one SB_FG_MARK */
	uint64_t
		nr_long_names; /* frames whose name was cut to SB_FG_NAME_MAX, told apart by a hash at the end */
	bool in_order;	    /* set before the first stack: merge neighbours only (a flame chart) */
	bool has_fractions; /* some weight was no whole number */
	double *selves; /* with fractions, from the seal on: their sums cannot be undone exactly */
	bool sealed;
	/* What the stack that is being added has in a comparison; NULL: it is none. */
	const struct sb_fg_pair *adding;
	/*
	 * Empty unless it is a comparison. By node: what ends there; from sb_fg_diff_widths() on, which makes
	 * weights out of them, there is one for each node, and what it has with all above it.
	 */
	SB_VEC(struct sb_fg_pair) pairs, pair_totals;
};

/* A name is valid UTF-8 without control characters and ';' : see text.h. */
struct sb_fg_tree_frame {
	const char *name;
	size_t len;
	enum sb_fg_kind kind;
};

int sb_fg_tree_init(struct sb_fg_tree *tree);
void sb_fg_tree_release(struct sb_fg_tree *tree);

/*
 * Add @weight to the path of these frames, root first, before the seal.
 * Return: 0, -ENOMEM, or -E2BIG beyond SB_FG_NODES_MAX, when nothing was added.
 */
int sb_fg_tree_add(struct sb_fg_tree *tree, const struct sb_fg_tree_frame *frames, size_t nr,
		   double weight);

/*
 * The same in steps, for a reader that knows the upper part of the path: the child of @parent, made
 * when it is not there; then the weight of a whole stack, whose last frame is @node, @depth levels
 * below the root. Return: 0, -ENOMEM, -E2BIG.
 */
int sb_fg_tree_child(struct sb_fg_tree *tree, uint32_t parent, const struct sb_fg_tree_frame *frame,
		     uint32_t *ret_node);
int sb_fg_tree_weigh(struct sb_fg_tree *tree, uint32_t node, uint32_t depth, double weight);

/* The frame that stands for what is below SB_FG_DEPTH_MAX. */
struct sb_fg_tree_frame sb_fg_tree_deep_mark(void);

enum sb_fg_sort { SB_FG_SORT_NAME, SB_FG_SORT_WEIGHT, SB_FG_SORT_NONE };

/*
 * Sum up totals and put siblings in order (an in_order tree keeps its own); nodes keep their
 * numbers. Deterministic. May be called again to sort anew. Return: 0 or -ENOMEM.
 */
int sb_fg_tree_seal(struct sb_fg_tree *tree, enum sb_fg_sort sort);

/* Return: the weight that ends in @node of a sealed tree. */
double sb_fg_tree_self(const struct sb_fg_tree *tree, uint32_t node);

/*
 * A sealed tree as folded text, one line per path with a weight of its own, annotated with _[k] and
 * the like, given to @put piece by piece. Of a comparison both weights, and before them a line "#n;12;3.5"
 * where these are not as many samples. Return: 0, -ENOMEM, or the first failure of @put.
 */
int sb_fg_tree_fold(const struct sb_fg_tree *tree, int (*put)(void *arg, const char *s, size_t len),
		    void *arg);

/* Return: "_[k]" for SB_FG_KERNEL and so on, "" for a kind without annotation. */
const char *sb_fg_kind_suffix(enum sb_fg_kind kind);

/* Facts of the run from "#stackbpf;k=v;..." lines; NULL when it was not said. */
struct sb_fg_facts {
	SB_VEC(struct sb_fg_fact {
		char *key; /* both owned */
		char *value;
	})
	facts;
};
const char *sb_fg_fact(const struct sb_fg_facts *facts, const char *key);

#endif
