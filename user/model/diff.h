/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What changed from profile A to profile B: values of both that can be compared, and whether their difference
 * is more than chance (base/compare.h). Not thread-safe.
 */
#ifndef SB_MODEL_DIFF_H
#define SB_MODEL_DIFF_H

#include "base/compare.h"
#include "model/tree.h"

enum sb_diff_norm {
	SB_DIFF_SHARE, /* of the profile's total: how long it ran, on how many CPUs, how often it was sampled
			* make no difference, nor does being busier in all */
	SB_DIFF_RATE, /* per second and CPU: "dur_us", "hz" of samples, and "cpus" if both profiles say it */
	SB_DIFF_RAW, /* as it is */
	SB_DIFF_NORM_MAX,
};

/* Return: "share", "rate", "raw"; the norm of that name, -EINVAL: there is none. */
const char *sb_diff_norm_name(enum sb_diff_norm norm);
int sb_diff_norm_find(const char *name);

struct sb_diff {
	enum sb_diff_norm norm;
	double per[SB_TREE_NR]; /* weights are divided by this; 1 of an empty profile */
	double all[SB_TREE_NR], all_squares[SB_TREE_NR];
};

/*
 * How to compare the nodes of @tree, which was made of @a and @b; pruned or not.
 * Return: 0; -ENODATA: a profile does not say how long it took, SB_DIFF_RATE; -EINVAL: their units differ.
 */
int sb_diff_init(struct sb_diff *diff, const struct sb_tree *tree, const struct sb_profile *a,
		 const struct sb_profile *b, enum sb_diff_norm norm);

/* Return: the weight of that side as what is compared. Of shares 0 to 1. */
double sb_diff_value(const struct sb_diff *diff, int side, double weight);

/* Return: z of a node's or function's weights, see sb_compare_z(); it is noise below SB_COMPARE_NOISE_Z. */
double sb_diff_z(const struct sb_diff *diff, const uint64_t weights[SB_TREE_NR],
		 const double squares[SB_TREE_NR]);

/* Functions, over all their places in the tree; recursion counts once. Of waits, `self` is their owner's: see owner.h. */
struct sb_diff_row {
	uint32_t name, module; /* in the tree's strings; module 0: not known */
	enum sb_frame_kind kind;
	uint64_t self[SB_TREE_NR], total[SB_TREE_NR];
	double self_squares[SB_TREE_NR], total_squares[SB_TREE_NR];
};

enum sb_diff_sort { SB_DIFF_BY_SELF, SB_DIFF_BY_TOTAL };

/*
 * The functions of the tree, those whose self or total changed most first, ties by the other and by name; the caller frees
 * *ret_rows. Return: 0, -ENOMEM, -E2BIG.
 */
int sb_diff_rows(const struct sb_diff *diff, const struct sb_tree *tree, enum sb_diff_sort sort,
		 struct sb_diff_row **ret_rows, size_t *ret_nr);

/**
 * sb_diff_functions() - the functions of a tree of one profile
 * @ret_rows: in no order, of side A; the caller frees them
 *
 * Return: 0, -ENOMEM, -E2BIG.
 */
int sb_diff_functions(const struct sb_tree *tree, struct sb_diff_row **ret_rows, size_t *ret_nr);

#endif
