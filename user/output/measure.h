/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tells from its metadata what the weights of a profile mean. Outputs choose labels by it, and
 * sb_measure_scaled() turns weights that are times into ns. Thread: any, while nobody modifies the
 * profile. Pointers are not NULL.
 */
#ifndef SB_OUTPUT_MEASURE_H
#define SB_OUTPUT_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/profile.h"

enum sb_dimension {
	SB_DIMENSION_COUNT, /* the unit says of what: samples, calls */
	SB_DIMENSION_TIME,
	SB_DIMENSION_BYTES,
};

/* The strings are borrowed from the profile. */
struct sb_measure {
	const char *kind; /* name of a view; "profile": not known */
	const char *unit; /* of the weights: "samples", "us", "bytes", "calls" */
	enum sb_dimension dimension;
	bool is_of_timer; /* samples of a timer: the weight is their number, which is also a time */
	/*
	 * For SB_DIMENSION_TIME: one unit is ns_nominator / ns_denominator ns. Samples with a known
	 * rate are times of 1 / hz of a second each.
	 */
	uint64_t ns_nominator, ns_denominator;
	uint64_t hz;	   /* sampling rate; 0: not known */
	uint64_t start_us; /* since the epoch; 0: not known */
	uint64_t dur_us;   /* 0: not known */
};

/* Return: what the weights of @profile, sealed or not, mean; "samples" of an unknown view if it
 * does not say. Its strings are borrowed from @profile, until the metadata change. */
struct sb_measure sb_measure_of(const struct sb_profile *profile);

/*
 * Return: @weight in ns, rounded to nearest, for SB_DIMENSION_TIME; else @weight itself. At most
 * INT64_MAX, which is 292 years: these formats have signed numbers.
 */
uint64_t sb_measure_scaled(const struct sb_measure *measure, uint64_t weight);

#endif
