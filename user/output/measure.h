/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the weights of a profile mean, by its facts "kind", "unit" and "hz". */
#ifndef SB_OUTPUT_MEASURE_H
#define SB_OUTPUT_MEASURE_H

#include <stdint.h>

#include "model/profile.h"

enum sb_dimension {
	SB_DIMENSION_COUNT, /* of what the unit says: samples, calls */
	SB_DIMENSION_TIME,
	SB_DIMENSION_BYTES,
};

struct sb_measure {
	const char *kind; /* "oncpu"; "profile": not known */
	const char *unit; /* of the weights: "samples", "us", "bytes", "calls" */
	enum sb_dimension dimension;
	/* Of time: so many ns are one of the unit. Samples are time if it is known how often they are
	 * taken: their weight is the number of ticks, 1 / hz of a second each. */
	uint64_t ns_nominator, ns_denominator;
	uint64_t hz;	   /* of the samples, 0: not known */
	uint64_t start_us; /* since 1970, 0: not known */
	uint64_t dur_us;   /* 0: not known */
};

struct sb_measure sb_measure_of(const struct sb_profile *profile);

/* Return: @weight in ns, rounded to the nearest, for SB_DIMENSION_TIME; as it is, for others. At most
 * INT64_MAX, which is 292 years: readers of these formats have signed numbers. */
uint64_t sb_measure_scaled(const struct sb_measure *measure, uint64_t weight);

#endif
