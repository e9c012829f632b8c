/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Is what changed between two profiles more than chance? Samples are drawn: of n that hit a function with
 * share p, there are more or fewer the next time. Thread-safe.
 *
 * Weights need not be counts. Of a sum of weights that samples brought along, the variance is what the sum of
 * their squares estimates (Horvitz and Thompson 1952; with weights 1, which is counting, that is the
 * binomial p(1-p)/n). So a waiting time that three long waits make is known as badly as three waits are.
 */
#ifndef SB_BASE_COMPARE_H
#define SB_BASE_COMPARE_H

#include <stdbool.h>

/* Below, a change is noise: chance does as much in 3 of 1,000 comparisons. */
#define SB_COMPARE_NOISE_Z 3.0

/* One of the two profiles. */
struct sb_compare {
	double part,
		squares; /* what is looked at: its weight, the squares of its samples' weights */
	double all, all_squares; /* the same of the whole profile */
	double per;		 /* parts are compared after division by this: see sb_compare() */
};

/*
 * How many standard deviations @b's part is above @a's, both of them divided by what they are compared per.
 * If @is_share, that is all of it: per has to be all. The variance is the larger one of two: that of both as
 * they are, and that of both drawn from one population. The one is too small where nothing was met, the other
 * where the one profile is much larger.
 * Return: z, 0 if there is no difference; NAN: the squares are not known.
 */
double sb_compare_z(const struct sb_compare *a, const struct sb_compare *b, bool is_share);

/*
 * Half the width of what the shares of a profile are known to, at 99 %, for any number of them at once:
 * n = 1.97 / d^2 (Thompson 1987, Sample Size for Estimating Multinomial Proportions, at alpha 0.01).
 * Return: a share, 0 to 1; NAN: not known.
 */
double sb_compare_error(double all, double all_squares);

#endif
