// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/compare.h"

#include <math.h>

/* Of a part that is @val per @per, whose samples' squares are @squares, both as weights. */
static double variance(const struct sb_compare *side, double val, double squares, bool is_share)
{
	double rest, of_per = 1 / side->per;

	squares *= of_per * of_per;
	if (!is_share)
		return squares;
	/* Linearized: each sample of the part is 1 - p of it off, each of the rest p. */
	rest = fmax(side->all_squares * of_per * of_per - squares, 0);
	return squares * (1 - val) * (1 - val) + rest * val * val;
}

/* As much for both: the better known one says more of it. */
static double pooled(const struct sb_compare *a, const struct sb_compare *b)
{
	double of_a = a->per * a->per / a->all_squares, of_b = b->per * b->per / b->all_squares;

	return (a->part / a->per * of_a + b->part / b->per * of_b) / (of_a + of_b);
}

double sb_compare_z(const struct sb_compare *a, const struct sb_compare *b, bool is_share)
{
	double val_a = a->part / a->per, val_b = b->part / b->per;
	double apart, together, both, mean;

	if (isnan(a->squares) || isnan(b->squares) || isnan(a->all_squares) ||
	    isnan(b->all_squares) || !(a->per > 0) || !(b->per > 0))
		return NAN;
	if (val_a == val_b || !(a->part + b->part > 0))
		return 0;
	/* An empty profile has met nothing, also not that there is nothing. */
	if (is_share && (!(a->all > 0) || !(b->all > 0)))
		return 0;
	apart = variance(a, val_a, a->squares, is_share) + variance(b, val_b, b->squares, is_share);
	/* The weight that a sample has here, be it of the one or of the other. */
	mean = (a->squares + b->squares) / (a->part + b->part);
	both = is_share ? pooled(a, b) : (a->part + b->part) / (a->per + b->per);
	together = variance(a, both, both * a->per * mean, is_share) +
		   variance(b, both, both * b->per * mean, is_share);
	return (val_b - val_a) / sqrt(fmax(apart, together));
}

double sb_compare_error(double all, double all_squares)
{
	return all > 0 ? fmin(sqrt(1.97 * all_squares / all / all), 1) : NAN;
}
