/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the flame graph adds to a tree (tree/tree.h): kinds of frames, bounds, and output as folded
 * text. Order: sb_tree_init(), stacks by sb_fg_tree_add(), sb_tree_seal(), then sb_fg_tree_fold()
 * and whatever else reads it, sb_tree_release(). Readers (read_*.c) and typed stacks (fg.h) build
 * the tree, svg.c draws it. Not thread-safe; several threads may read a sealed tree. Pointers are
 * not NULL unless it says so.
 */
#ifndef SB_FLAMEGRAPH_TREE_H
#define SB_FLAMEGRAPH_TREE_H

#include <stddef.h>

#include "base/arena.h"
#include "base/vec.h"
#include "kinds/metadata.h"
#include "tree/tree.h"

/*
 * Longest stack: 512 frames are sampled, 10,000 were seen in recursion. A bound against hostile
 * input, as those of tree/tree.h; the tree counts what it cuts.
 */
#define SB_FG_DEPTH_MAX 16384u

/* Return: the frame that stands for what exceeds SB_FG_DEPTH_MAX; its name is static. */
struct sb_tree_frame sb_fg_tree_deep_mark(void);

/**
 * sb_fg_tree_add() - add a stack to a tree that is not sealed
 * @frames: @nr frames, root first; names are copied. Beyond SB_FG_DEPTH_MAX the rest becomes one
 *	mark, which is counted in nr_deep. Names are valid UTF-8 without control characters and
 *	';': see text.h
 * @pair: for a comparison, the weights in both profiles, whose sum is @weight, copied; else NULL
 *
 * With @nr 0 the weight is the root's own.
 *
 * Return: 0; -E2BIG if the tree could get more than SB_TREE_NODES_MAX nodes, and nothing was
 * added; -E2BIG for more than 2^31 bytes of names, or -ENOMEM, and some frames may be in the tree,
 * but no weight.
 */
int sb_fg_tree_add(struct sb_tree *tree, const struct sb_tree_frame *frames, size_t nr,
		   double weight, const struct sb_tree_pair *pair);

/*
 * Write a sealed tree as folded text, one line for each path with weight of its own, with
 * annotations, to @put piece by piece: @len bytes without NUL, valid during the call. The root has
 * no line. A comparison has two weights in a line; a line "#n;12;3.5" before it tells the
 * numbers of samples if these differ. Return: 0; -ENOMEM; or the first value other than 0 that @put
 * returned.
 */
int sb_fg_tree_fold(const struct sb_tree *tree, int (*put)(void *arg, const char *s, size_t len),
		    void *arg);

/* Metadata of all that was read. `others` has the keys of "#stackbpf" lines that have no member in
 * struct sb_metadata: the data in a picture begins with a line of all keys. */
struct sb_fg_metadata {
	struct sb_metadata known;
	SB_VEC(struct sb_fg_meta {
		const char *key;
		const char *value;
	})
	others;
	struct sb_arena texts; /* of all these */
};

#endif
