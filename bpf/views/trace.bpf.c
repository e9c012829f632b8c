// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * View "trace": a sample for each event that was asked for: tracepoints, functions of the kernel and of
 * programs, USDT probes, counters.
 *
 * The kernel runs one program on a CPU at a time that is attached to a tracepoint, a function of the
 * kernel or a counter (bpf_prog_active), so these share a record. Programs at user functions are
 * different: since Linux 6.0 (commit 8c7dcb84e3b7) one can be preempted by a thread that comes to another
 * probe on the same CPU. So their record is taken and given back, and the inner event is lost and counted.
 */
#include "vmlinux.h"

#include <bpf/bpf_tracing.h>

#include "bpf/abi/sb_abi_trace.h"
#include "bpf/core/sb_sample.bpf.h"
#include "bpf/core/sb_util.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set before load */
	__type(key, __u32);
	__type(value, struct sb_trace_place);
} trace_places SEC(".maps");

/* How often each of them happened to the targets, whatever was sampled of it. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1); /* set before load */
	__type(key, __u32);
	__type(value, __u64);
} trace_hits SEC(".maps");

/* Whether the record of this CPU for user functions is in use. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} trace_busy SEC(".maps");

static __always_inline void count_hit(__u32 idx)
{
	__u64 *nr = bpf_map_lookup_elem(&trace_hits, &idx);

	if (nr)
		__sync_fetch_and_add(nr, 1);
}

/* The caller has started the sample in @slot. */
static __always_inline void sample(void *ctx, __u32 slot)
{
	__u32 idx = (__u32)bpf_get_attach_cookie(ctx);
	const struct sb_trace_place *place = bpf_map_lookup_elem(&trace_places, &idx);
	struct sb_capture *capture;
	__u64 weight;

	if (!place || sb_begin(slot, 0, &capture))
		return;
	count_hit(idx);
	weight = sb_thin(place->weight);
	if (!weight) {
		sb_spent_some(capture->now_ns);
		return;
	}
	capture->key.op = place->op;
	if (!sb_take_stacks(ctx, slot, SB_SIDE_USER | SB_SIDE_KERNEL))
		sb_account(capture, weight);
	sb_spent(capture->now_ns);
}

SEC("?tracepoint")
int trace_tracepoint(void *ctx)
{
	sb_start_in_kernel(SB_SCRATCH_TRACE);
	sample(ctx, SB_SCRATCH_TRACE);
	return 0;
}

SEC("?kprobe")
int trace_kernel(struct pt_regs *ctx)
{
	sb_start_in_kernel(SB_SCRATCH_TRACE);
	sample(ctx, SB_SCRATCH_TRACE);
	return 0;
}

SEC("?perf_event")
int trace_counter(struct bpf_perf_event_data *ctx)
{
	sb_start_at(ctx, SB_SCRATCH_TRACE);
	sample(ctx, SB_SCRATCH_TRACE);
	return 0;
}

/* The registers are those of the user; they begin like the ones of a perf_event program. */
SEC("?uprobe")
int trace_user(struct pt_regs *ctx)
{
	__u32 zero = 0, *busy = bpf_map_lookup_elem(&trace_busy, &zero);

	if (!busy || __sync_lock_test_and_set(busy, 1)) {
		if (sb_is_asked_for())
			sb_stat_add(SB_STAT_TRACE_BUSY, 1);
		return 0;
	}
	sb_start_at((const struct bpf_perf_event_data *)ctx, SB_SCRATCH_PROBE);
	sample(ctx, SB_SCRATCH_PROBE);
	*busy = 0;
	return 0;
}
