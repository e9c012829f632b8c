/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How uneven the samples of each stack are, of which only sums are known: from how these differ between parts of the
 * time. Of samples that come at random, be they of any size, the sum of squares is what the sums of parts are off
 * their share by (random groups: Wolter, Introduction to Variance Estimation, 2007, chapter 2; of a compound Poisson
 * process it is exact on average). A part's share of a stack is what it has of all other stacks: that there
 * is more to do at one time than at another is not unevenness. Not thread-safe.
 */
#ifndef SB_MODEL_SPREAD_H
#define SB_MODEL_SPREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "model/profile.h"

/* Return: whether a sample of this unit always weighs the same, a count; NULL: samples. */
bool sb_spread_is_even(const char *unit);

/* With fewer parts chance is too much of it: it would be known to a half, with more than these to little more. */
#define SB_SPREAD_PARTS_MIN 8
#define SB_SPREAD_PARTS_MAX 24

/* Zero-initialize. */
struct sb_spread {
	struct sb_spread_stack {
		uint64_t weight; /* of the parts before */
		double squares, by_all;
	} * at;
	size_t nr, cap;
	uint64_t weight;
	double all_squares;
	size_t nr_parts; /* that have anything */
};

/* What was added to @profile since the last call is a part. Before the seal. Return: 0 or -ENOMEM. */
int sb_spread_part(struct sb_spread *spread, const struct sb_profile *profile);
/* That was the last one: tell @profile, see sb_profile_set_squares(). With too few parts nothing. Return: 0 or -ENOMEM. */
int sb_spread_end(struct sb_spread *spread, struct sb_profile *profile);
void sb_spread_release(struct sb_spread *spread);

#endif
