/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Estimates the variance of each stack's samples when only sums are known, from how the sums differ
 * between parts of the time. For samples that come at random, of whatever size, the sum of squares
 * is estimated by the squared deviations of the parts from their expected shares (random groups:
 * Wolter, Introduction to Variance Estimation, 2007, chapter 2; exact on average for a compound
 * Poisson process). The expected share of a part is its share of all other stacks, so that a load
 * that changes over time does not count as variance. Not thread-safe.
 *
 * Add the rows of one part of the time to a profile, call sb_spread_part(), add the next part to
 * the same profile, and so on; then sb_spread_end(), sb_spread_release(), and seal the profile. The
 * profile is not kept between the calls. Pointers are not NULL unless it says so.
 */
#ifndef SB_MODEL_SPREAD_H
#define SB_MODEL_SPREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "model/profile.h"

/* Return: whether all samples of this unit have the same weight, as counts have: all units but
 * "ns", "us", "ms", "s", "bytes" and "byte-seconds". NULL: "samples". */
bool sb_spread_is_even(const char *unit);

/* With fewer parts the estimate is off by half; more than the maximum improve it little. */
#define SB_SPREAD_PARTS_MIN 8
#define SB_SPREAD_PARTS_MAX 24

/* Zero-initialize. */
struct sb_spread {
	struct sb_spread_stack {
		uint64_t weight; /* of the parts so far */
		double squares, by_all;
	} * at;
	size_t nr, cap;
	uint64_t weight;
	double all_squares;
	size_t nr_parts; /* those that have weight */
};

/*
 * Take what was added to @profile since the last call as a part. @profile: the same in each call;
 * its stacks keep their indexes, so it is not sealed and not scaled in between. Return: 0; -ENOMEM,
 * and nothing was taken: the next call takes it together with the next part.
 */
int sb_spread_part(struct sb_spread *spread, const struct sb_profile *profile);
/*
 * After the last part: set the estimates by sb_profile_set_squares() for all stacks; 0 where none
 * is possible. Nothing is set if fewer than SB_SPREAD_PARTS_MIN parts had weight. @profile: that of
 * the parts, not sealed yet. Return: 0; -ENOMEM, and some may be set.
 */
int sb_spread_end(struct sb_spread *spread, struct sb_profile *profile);
/* Free what @spread holds. It cannot be used again, unless it is zeroed. */
void sb_spread_release(struct sb_spread *spread);

#endif
