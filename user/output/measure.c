// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "output/measure.h"

#include "base/cleanup.h"
#include "base/str.h"

#define NS_PER_SEC 1000000000u

struct sb_measure sb_measure_of(const struct sb_profile *profile)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} times[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", NS_PER_SEC } };
	const struct sb_metadata *metadata = sb_profile_metadata(profile);
	struct sb_measure measure = {
		.kind = metadata->kind ? metadata->kind : "profile",
		.unit = sb_profile_unit(profile),
		.ns_denominator = 1,
		.hz = metadata->hz,
		.start_us = metadata->start_us,
		.dur_us = metadata->dur_us,
	};
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(times); i++) {
		if (sb_streq(measure.unit, times[i].unit)) {
			measure.dimension = SB_DIMENSION_TIME;
			measure.ns_nominator = times[i].ns;
		}
	}
	if (sb_streq(measure.unit, "bytes"))
		measure.dimension = SB_DIMENSION_BYTES;
	if (sb_streq(measure.unit, "samples") && measure.hz) {
		measure.dimension = SB_DIMENSION_TIME;
		measure.is_of_timer = true;
		measure.ns_nominator = NS_PER_SEC;
		measure.ns_denominator = measure.hz;
	}
	return measure;
}

uint64_t sb_measure_scaled(const struct sb_measure *measure, uint64_t weight)
{
	unsigned __int128 val = weight;

	if (measure->dimension == SB_DIMENSION_TIME)
		val = (val * measure->ns_nominator + measure->ns_denominator / 2) /
		      measure->ns_denominator;
	return val > INT64_MAX ? INT64_MAX : (uint64_t)val;
}
