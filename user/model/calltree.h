/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes the call tree of a profile, or one tree of two profiles (A and B) to compare them. Order:
 * seal the profiles, sb_calltree_new(), to compare sb_calltree_diff(), then read the tree, such as
 * by sb_diff_rows() (diff_rows.h), and sb_tree_free(). Pointers are not NULL unless it says so.
 * Thread: any, if nobody modifies the profiles meanwhile.
 */
#ifndef SB_MODEL_CALLTREE_H
#define SB_MODEL_CALLTREE_H

#include "model/profile.h"
#include "tree/diff.h"
#include "tree/tree.h"

/**
 * sb_calltree_new() - make the call tree of one or two profiles
 * @a: sealed
 * @b: sealed; or NULL, and the tree is that of @a alone, without pairs of weights
 * @ret_tree: sealed, siblings sorted by name, kinds are enum sb_frame_kind; the caller frees it by
 *	sb_tree_free(); untouched on error
 *
 * Frames with the same caller, name and kind are one node. Inlined or not makes no difference, nor
 * do module, file and line, so that another build of a program compares with it. A node has the
 * kind, the mark and the module of its heaviest stack, that of @a first. The root is named "all".
 * The profiles are not needed afterwards.
 *
 * Return: 0; -ENOMEM; -E2BIG for more than SB_TREE_NODES_MAX nodes or 2 GiB of names.
 */
int sb_calltree_new(const struct sb_profile *a, const struct sb_profile *b,
		    struct sb_tree **ret_tree);

/* Return: a node of the tree that sb_calltree_new() made, pruned or not, as a frame: its name,
 * which is valid as long as the tree, kind, mark and is_unnamed. */
struct sb_frame sb_calltree_frame(const struct sb_tree *tree, size_t node);

/**
 * sb_calltree_diff() - set how the two profiles of a tree are compared
 * @diff: overwritten, untouched on error; keeps no pointer
 * @tree: what sb_calltree_new() made of @a and @b, pruned or not
 * @norm: what is compared: shares, rates or weights
 * @a, @b: of their metadata unit and, for SB_DIFF_RATE, dur_us are read, and, if both have them,
 *	cpus and of samples hz; not NULL, and not kept
 *
 * Return: 0; -ENODATA if SB_DIFF_RATE is asked for and a profile lacks dur_us; -EINVAL if the
 * units differ.
 */
int sb_calltree_diff(struct sb_diff *diff, const struct sb_tree *tree, const struct sb_profile *a,
		     const struct sb_profile *b, enum sb_diff_norm norm);

#endif
