// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * View "oncpu": a sample each time the clock of a CPU, or another counter, fires. Weight: samples
 * at the rate asked for, or what was counted.
 */
#include "bpf/core/sb_sample.bpf.h"
#include "bpf/core/sb_util.bpf.h"

/* The timer is a counter of events: a sample weighs what was counted since the last one. */
const volatile bool cfg_oncpu_counts = false;

/* What the counter of each CPU had counted at its last sample, of whichever thread that was. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} oncpu_counted SEC(".maps");

/*
 * The period of the context would be the one that begins now (perf_swevent_set_period() in
 * kernel/events/core.c), so where it changes from sample to sample, the sum would be wrong.
 */
static __u64 counted(struct bpf_perf_event_data *ctx)
{
	struct bpf_perf_event_value value = {};
	__u32 zero = 0;
	__u64 *before = bpf_map_lookup_elem(&oncpu_counted, &zero), nr;

	if (!before || bpf_perf_prog_read_value(ctx, &value, sizeof(value)))
		return ctx->sample_period;
	/* That of a CPU which was offline begins anew. */
	nr = value.counter - (value.counter < *before ? 0 : *before);
	*before = value.counter;
	return nr;
}

/* The program that oncpu_enter continues with; user space replaces it while the run goes on. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} oncpu_ticks SEC(".maps");

/*
 * What timers run when oncpu_tick was loaded without some walkers of interpreters. A program cannot
 * be taken off a perf event while it is open, but the one that a tail call leads to is replaced
 * from one tick to the next.
 */
SEC("?perf_event")
int oncpu_enter(struct bpf_perf_event_data *ctx)
{
	bpf_tail_call(ctx, &oncpu_ticks, 0);
	return 0;
}

SEC("?perf_event")
int oncpu_tick(struct bpf_perf_event_data *ctx)
{
	__u64 weight = cfg_oncpu_counts ? counted(ctx) : sb_tick_weight();
	__u64 now_ns = bpf_ktime_get_ns();
	__u32 nr_ticks = sb_ticks(now_ns);
	struct sb_capture *capture;

	sb_start_at(ctx, SB_SCRATCH_TIMER);
	if (sb_capture_at(ctx, SB_SCRATCH_TIMER, now_ns, &capture))
		return 0;
	sb_account(capture, weight);
	/*
	 * They are not in the weight: one stack would stand for all that the thread did meanwhile,
	 * and the shares of its functions would be noisier by far.
	 */
	if (nr_ticks > 1)
		sb_stat_add(SB_STAT_TICKS_SKIPPED, nr_ticks - 1);
	sb_spent(now_ns);
	return 0;
}
