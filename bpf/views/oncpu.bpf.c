// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* View "oncpu": a sample each time the clock of a CPU fires. Weight: samples at the rate asked for. */
#include "bpf/core/sb_sample.bpf.h"
#include "bpf/core/sb_util.bpf.h"

SEC("?perf_event")
int oncpu_tick(struct bpf_perf_event_data *ctx)
{
	__u32 nr_ticks = sb_ticks();
	struct sb_capture *capture;

	sb_start_at(ctx, SB_SCRATCH_TIMER);
	if (sb_capture(ctx, SB_SCRATCH_TIMER, &capture))
		return 0;
	sb_account(capture, sb_tick_weight());
	/*
	 * They are not in the weight: one stack would stand for all that the thread did meanwhile, and
	 * the shares of its functions would be noisier by far.
	 */
	if (nr_ticks > 1)
		sb_stat_add(SB_STAT_TICKS_SKIPPED, nr_ticks - 1);
	sb_spent(capture->now_ns);
	return 0;
}
