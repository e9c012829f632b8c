// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/spread.h"

#include <math.h>

#include "base/cleanup.h"
#include "base/str.h"

bool sb_spread_is_even(const char *unit)
{
	static const char *const measures[] = { "ns", "us", "ms", "s", "bytes", "byte-seconds" };
	size_t i;

	for (i = 0; unit && i < SB_ARRAY_SIZE(measures); i++)
		if (sb_streq(unit, measures[i]))
			return false;
	return true;
}

int sb_spread_part(struct sb_spread *spread, const struct sb_profile *profile)
{
	double all = (double)(sb_profile_weight(profile) - spread->weight);
	size_t nr = sb_profile_nr_stacks(profile), i;
	int err = sb_vec_fit(spread, nr, 0);

	if (err)
		return err;
	for (i = 0; i < nr; i++) {
		struct sb_spread_stack *stack = &spread->at[i];
		const uint64_t weight = sb_profile_row_at(profile, i).weight;
		const double part = (double)(weight - stack->weight);

		stack->weight = weight;
		stack->squares += part * part;
		stack->by_all += part * all;
	}
	spread->weight = sb_profile_weight(profile);
	spread->all_squares += all * all;
	spread->nr_parts += all > 0;
	return 0;
}

/* Return: the sum of squares of the weights of a stack's samples; 0: not known. */
static double squares_of(const struct sb_spread *spread, const struct sb_spread_stack *stack)
{
	double weight = (double)stack->weight, rest = (double)spread->weight - weight;
	double of_rest, shares, off;

	if (!(rest > 0))
		return 0;
	/* Squared deviations of the parts: from @of_rest times the weight of all other stacks. */
	of_rest = weight / rest;
	off = (1 + of_rest) * (1 + of_rest) * stack->squares -
	      2 * of_rest * (1 + of_rest) * stack->by_all + of_rest * of_rest * spread->all_squares;
	/* A part with a share f of the time has 1 - f of the variance. */
	shares = (spread->all_squares - 2 * stack->by_all + stack->squares) / rest / rest;
	if (!(shares < 1))
		return 0;
	/* At least one sample, at most as many as there are units. */
	return fmin(fmax(off / (1 - shares), weight), weight * weight);
}

int sb_spread_end(struct sb_spread *spread, struct sb_profile *profile)
{
	size_t i;
	int err = 0;

	for (i = 0; i < spread->nr && spread->nr_parts >= SB_SPREAD_PARTS_MIN && !err; i++)
		err = sb_profile_set_squares(profile, i, squares_of(spread, &spread->at[i]));
	return err;
}

void sb_spread_release(struct sb_spread *spread)
{
	sb_vec_release(spread);
}
