// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* --slowest: the slowest calls of a run, with their stacks, behind the closing report. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "cli/record.h"
#include "model/fold.h"
#include "resolve/resolve.h"
#include "resolve/slowest.h"

#define NS_PER_MS 1000000ull

/* Write the time of day of a moment of CLOCK_MONOTONIC: "14:03:12.345". */
static void time_of_day(uint64_t mono_ns, char *text, size_t size)
{
	const uint64_t ago_ns = sb_now_ns() - mono_ns;
	const uint64_t ns = sb_clock_ns(CLOCK_REALTIME) - ago_ns;
	const time_t sec = (time_t)(ns / SB_NS_PER_SEC);
	struct tm tm;
	char clock[16];

	localtime_r(&sec, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	snprintf(text, size, "%s.%03u", clock, (unsigned int)(ns % SB_NS_PER_SEC / NS_PER_MS));
}

/* Leaf first, as in a debugger. */
static void report_stack(const struct sb_profile *profile, const struct sb_slow_call *slow)
{
	sb_cleanup(sb_str_release) struct sb_str text = {};
	const struct sb_fold_opts opts = {};
	size_t i = slow->nr_frames;

	while (i--) {
		sb_str_clear(&text);
		if (!sb_fold_frame(&text, sb_profile_frame_at(profile, slow->frames[i]), &opts))
			sb_info("      %s", text.s);
	}
}

void sb_report_slowest(const struct sb_run *run)
{
	const struct sb_slowest *slowest = sb_resolver_slowest(run->resolver);
	char when[32];
	size_t i;

	for (i = 0; i < slowest->nr && i < run->config->view_opts.slowest; i++) {
		const struct sb_object_call *call = &slowest->at[i].call;

		time_of_day(call->end_ns, when, sizeof(when));
		sb_info("  slowest, %zu: %" PRIu64 ".%03u ms, thread %u, until %s", i + 1,
			(uint64_t)(call->elapsed_ns / NS_PER_MS),
			(unsigned int)(call->elapsed_ns % NS_PER_MS / 1000), call->tid, when);
		report_stack(run->profile, &slowest->at[i]);
	}
}
