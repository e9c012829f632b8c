/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lists the functions of a call tree that sb_calltree_new() made, of one profile or two, as rows of
 * a table. Only reads the sealed tree and the comparison: any thread, if nobody modifies them.
 * Pointers are not NULL, and nothing that is given is kept. Rows are valid as long as the tree,
 * also when it is pruned.
 */
#ifndef SB_MODEL_DIFF_ROWS_H
#define SB_MODEL_DIFF_ROWS_H

#include "model/profile.h"
#include "tree/diff.h"

/*
 * A function, summed over all nodes of its name and kind. Recursion counts once. The own weight of
 * a wait is that of the function that owner.h finds: the program's that waits, not the scheduler.
 */
struct sb_diff_row {
	uint32_t name, module; /* indexes of the tree's names; module: of its first node, or 0 */
	enum sb_frame_kind kind;
	uint8_t mark; /* of its first node, as in struct sb_frame, and so is is_unnamed */
	bool is_unnamed;
	/* In the unit of the tree's weights, A and B; for one profile, B and all squares are 0. */
	struct sb_tree_pair self, total;
};

enum sb_diff_sort { SB_DIFF_BY_SELF, SB_DIFF_BY_TOTAL };

/**
 * sb_diff_rows() - list the functions of a comparison, those that changed most first
 * @diff: what sb_calltree_diff() made for @tree; it says how A and B are compared
 * @tree: of two profiles
 * @sort: by the absolute change of self or of total; ties by the other one, then by name
 * @ret_rows: *@ret_nr rows, freed by the caller with free(), also if there are 0
 *
 * Return: 0; -ENOMEM. On error nothing is set.
 */
int sb_diff_rows(const struct sb_diff *diff, const struct sb_tree *tree, enum sb_diff_sort sort,
		 struct sb_diff_row **ret_rows, size_t *ret_nr);

/**
 * sb_diff_functions() - list the functions of a tree of one profile or two
 * @ret_rows: *@ret_nr rows in the order of their first nodes; freed by the caller with free(), also
 *	if there are 0
 *
 * Return: 0; -ENOMEM. On error nothing is set.
 */
int sb_diff_functions(const struct sb_tree *tree, struct sb_diff_row **ret_rows, size_t *ret_nr);

#endif
