/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What changed from profile A to profile B, and is it more than chance? Samples are drawn: of n
 * that hit a function with share p, there are more or fewer the next time. `diff`, the HTTP API and
 * pictures of comparisons use this; the viewer in a picture computes the same. Thread-safe: nothing
 * is kept, and arguments, which are not NULL, are only read. Set a struct sb_diff by sb_diff_init()
 * or sb_calltree_diff(), then ask; there is nothing to free. Arrays and @side are indexed by
 * SB_TREE_A and SB_TREE_B (tree/tree.h).
 *
 * Weights need not be counts. If samples have weights, the variance of their sum is estimated by
 * the sum of the squares of the weights (Horvitz and Thompson 1952; with weights 1, which is
 * counting, that is the binomial p(1-p)/n). So a waiting time that three long waits make is known
 * as badly as three waits are.
 */
#ifndef SB_TREE_DIFF_H
#define SB_TREE_DIFF_H

#include "tree/tree.h"

/* A change whose |z| is smaller is noise: chance alone exceeds it in 3 of 1,000 comparisons. */
#define SB_DIFF_NOISE_Z 3.0

/* What is compared. */
enum sb_diff_norm {
	SB_DIFF_SHARE, /* the share of the profile's total, so duration, number of CPUs, sampling
			* rate, and being busier in all make no difference */
	SB_DIFF_RATE,  /* weight per second and CPU, by the metadata "dur_us", "cpus" and "hz" */
	SB_DIFF_RAW,   /* the weight itself */
	SB_DIFF_NORM_MAX,
};

/* Return: the name of a norm, "share", "rate" or "raw"; static. @norm: below SB_DIFF_NORM_MAX,
 * which is not checked. */
const char *sb_diff_norm_name(enum sb_diff_norm norm);
/* Return: the norm with that name, which is not NULL; -EINVAL if there is none. */
int sb_diff_norm_find(const char *name);

/* How two profiles are compared. */
struct sb_diff {
	enum sb_diff_norm norm;
	double per[SB_TREE_NR]; /* weights are divided by this; 1 for the share of no weight */
	double all[SB_TREE_NR], all_squares[SB_TREE_NR]; /* of the profiles: see sb_diff_error() */
};

/**
 * sb_diff_init() - set how the two profiles of a tree are compared
 * @diff: overwritten; keeps no pointer
 * @tree: a tree of a comparison, sealed (its pair_totals are read); pruned or not
 * @norm: what is compared: shares, rates or weights
 * @per: for SB_DIFF_RATE, what the weights of each side are divided by, above 0; else not read and
 *	may be NULL
 */
void sb_diff_init(struct sb_diff *diff, const struct sb_tree *tree, enum sb_diff_norm norm,
		  const double per[SB_TREE_NR]);

/* Return: @weight, of profile @side, which is not checked, by the norm: a share from 0 to 1 (0 if
 * the profile is empty), a rate (of SB_DIFF_RATE), or itself. */
double sb_diff_value(const struct sb_diff *diff, int side, double weight);

/**
 * sb_diff_z() - tell how many standard deviations B's part is above A's
 * @pair: weights and squares of a node or a function
 *
 * The variance is the larger one of two: that of both as they are, and that of both drawn from one
 * population. The first is too small where one profile has no sample, the second where one profile
 * is much larger.
 *
 * Return: z, negative if B's part is smaller; 0 if there is no difference, or if shares are
 * compared and a profile is empty; NAN if squares of the pair or of a profile are not known.
 */
double sb_diff_z(const struct sb_diff *diff, const struct sb_tree_pair *pair);

/**
 * sb_diff_error() - tell how well the shares of a profile are known
 * @all: the weight of the profile
 * @all_squares: the sum of the squares of its samples' weights
 *
 * Half the width of the interval of a share, at 99 %, for any number of shares at once: n = 1.97 /
 * d^2 (Thompson 1987, Sample Size for Estimating Multinomial Proportions, at alpha 0.01).
 *
 * Return: a share, 0 to 1; NAN if the profile is empty or @all_squares is NAN.
 */
double sb_diff_error(double all, double all_squares);

#endif
