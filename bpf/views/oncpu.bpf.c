// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* View "oncpu": a sample each time the clock of a CPU fires. Weight: samples at the rate asked for. */
#include "bpf/core/sb_sample.bpf.h"

SEC("?perf_event")
int oncpu_tick(struct bpf_perf_event_data *ctx)
{
	__u32 nr_ticks = sb_ticks(), weight = sb_tick_weight();
	struct sb_capture *capture;

	sb_start_at(ctx, SB_SCRATCH_TIMER);
	if (sb_capture(ctx, SB_SCRATCH_TIMER, &capture))
		return 0;
	if (!sb_account(capture, weight) && nr_ticks > 1)
		sb_account_skipped(SB_SCRATCH_TIMER, weight, nr_ticks - 1);
	sb_spent(capture->now_ns);
	return 0;
}
