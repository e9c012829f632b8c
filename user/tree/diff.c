// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tree/diff.h"

#include <errno.h>
#include <math.h>

#include "base/cleanup.h"
#include "base/str.h"

static const char *const norm_names[] = {
	[SB_DIFF_SHARE] = "share",
	[SB_DIFF_RATE] = "rate",
	[SB_DIFF_RAW] = "raw",
};

_Static_assert(SB_ARRAY_SIZE(norm_names) == SB_DIFF_NORM_MAX, "each norm has a name");

const char *sb_diff_norm_name(enum sb_diff_norm norm)
{
	return norm_names[norm];
}

int sb_diff_norm_find(const char *name)
{
	int i;

	for (i = 0; i < SB_DIFF_NORM_MAX; i++)
		if (sb_streq(name, norm_names[i]))
			return i;
	return -EINVAL;
}

void sb_diff_init(struct sb_diff *diff, const struct sb_tree *tree, enum sb_diff_norm norm,
		  const double per[SB_TREE_NR])
{
	const struct sb_tree_pair *root = &tree->pair_totals.at[0];
	int side;

	*diff = (struct sb_diff){ .norm = norm };
	for (side = 0; side < SB_TREE_NR; side++) {
		diff->all[side] = root->weight[side];
		diff->all_squares[side] = root->squares[side];
		diff->per[side] = 1;
		if (norm == SB_DIFF_SHARE && root->weight[side] > 0)
			diff->per[side] = root->weight[side];
		if (norm == SB_DIFF_RATE)
			diff->per[side] = per[side];
	}
}

double sb_diff_value(const struct sb_diff *diff, int side, double weight)
{
	return weight / diff->per[side];
}

/* Of a part of the profile that is @val per per[], whose samples' squares are @squares, both as
 * weights. */
static double variance(const struct sb_diff *diff, int side, double val, double squares)
{
	double rest, of_per = 1 / diff->per[side];

	squares *= of_per * of_per;
	if (diff->norm != SB_DIFF_SHARE)
		return squares;
	/* Linearized: each sample of the part is 1 - p of it off, each of the rest p. */
	rest = fmax(diff->all_squares[side] * of_per * of_per - squares, 0);
	return squares * (1 - val) * (1 - val) + rest * val * val;
}

/* As much for both: the better known one says more of it. */
static double pooled(const struct sb_diff *diff, double val_a, double val_b)
{
	const double *per = diff->per, *squares = diff->all_squares;
	double of_a = per[SB_TREE_A] * per[SB_TREE_A] / squares[SB_TREE_A];
	double of_b = per[SB_TREE_B] * per[SB_TREE_B] / squares[SB_TREE_B];

	return (val_a * of_a + val_b * of_b) / (of_a + of_b);
}

double sb_diff_z(const struct sb_diff *diff, const struct sb_tree_pair *pair)
{
	double a = pair->weight[SB_TREE_A], b = pair->weight[SB_TREE_B];
	double val_a = a / diff->per[SB_TREE_A], val_b = b / diff->per[SB_TREE_B];
	double apart = 0, together = 0, both, mean;
	bool is_share = diff->norm == SB_DIFF_SHARE;
	int side;

	for (side = 0; side < SB_TREE_NR; side++)
		if (isnan(pair->squares[side]) || isnan(diff->all_squares[side]) ||
		    !(diff->per[side] > 0))
			return NAN;
	if (val_a == val_b || !(a + b > 0))
		return 0;
	/* An empty profile has met nothing, also not that there is nothing. */
	if (is_share && (!(diff->all[SB_TREE_A] > 0) || !(diff->all[SB_TREE_B] > 0)))
		return 0;
	/* The weight that a sample has here, be it of the one or of the other. */
	mean = (pair->squares[SB_TREE_A] + pair->squares[SB_TREE_B]) / (a + b);
	both = is_share ? pooled(diff, val_a, val_b)
			: (a + b) / (diff->per[SB_TREE_A] + diff->per[SB_TREE_B]);
	for (side = 0; side < SB_TREE_NR; side++) {
		apart += variance(diff, side, side ? val_b : val_a, pair->squares[side]);
		together += variance(diff, side, both, both * diff->per[side] * mean);
	}
	return (val_b - val_a) / sqrt(fmax(apart, together));
}

double sb_diff_error(double all, double all_squares)
{
	double error = all > 0 ? sqrt(1.97 * all_squares / all / all) : NAN;

	/* fmin() would make 1 of NAN. */
	return error > 1 ? 1 : error;
}
