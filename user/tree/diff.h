/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What changed from profile A to profile B, and is it more than chance? Samples are drawn: of n that hit a function
 * with share p, there are more or fewer the next time. `diff`, the HTTP API and pictures of comparisons use this;
 * the viewer in a picture computes the same. Thread-safe.
 *
 * Weights need not be counts. Of a sum of weights that samples brought along, the variance is what the sum of
 * their squares estimates (Horvitz and Thompson 1952; with weights 1, which is counting, that is the
 * binomial p(1-p)/n). So a waiting time that three long waits make is known as badly as three waits are.
 */
#ifndef SB_TREE_DIFF_H
#define SB_TREE_DIFF_H

#include "tree/tree.h"

/* Below, a change is noise: chance does as much in 3 of 1,000 comparisons. */
#define SB_DIFF_NOISE_Z 3.0

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

/* How two profiles are compared. */
struct sb_diff {
	enum sb_diff_norm norm;
	double per[SB_TREE_NR]; /* weights are divided by this; 1 of an empty profile */
	double all[SB_TREE_NR], all_squares[SB_TREE_NR];
};

/**
 * sb_diff_init() - compare the two profiles of a tree
 * @tree: with pair_totals; pruned or not
 * @per: of SB_DIFF_RATE, what weights are divided by, above 0; else not read
 */
void sb_diff_init(struct sb_diff *diff, const struct sb_tree *tree, enum sb_diff_norm norm,
		  const double per[SB_TREE_NR]);

/* Return: the weight of that side as what is compared. Of shares 0 to 1. */
double sb_diff_value(const struct sb_diff *diff, int side, double weight);

/**
 * sb_diff_z() - tell how many standard deviations B's part is above A's
 * @pair: of a node or a function
 *
 * The variance is the larger one of two: that of both as they are, and that of both drawn from one population. The one
 * is too small where nothing was met, the other where the one profile is much larger.
 *
 * Return: z, which is noise below SB_DIFF_NOISE_Z; 0: there is no difference; NAN: the squares are not known.
 */
double sb_diff_z(const struct sb_diff *diff, const struct sb_tree_pair *pair);

/**
 * sb_diff_error() - tell how well the shares of a profile are known
 * @all, @all_squares: the weight of the profile, and the squares of its samples' weights
 *
 * Half the width of the interval of a share, at 99 %, for any number of shares at once: n = 1.97 / d^2 (Thompson 1987,
 * Sample Size for Estimating Multinomial Proportions, at alpha 0.01).
 *
 * Return: a share, 0 to 1; NAN: not known.
 */
double sb_diff_error(double all, double all_squares);

#endif
