// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * View "trace": a sample for each event that was asked for: tracepoints, functions of the kernel
 * and of programs, USDT probes, counters.
 *
 * The kernel runs one program on a CPU at a time that is attached to a tracepoint, a function of
 * the kernel or a counter (bpf_prog_active), so these share a record. Programs at user functions
 * are different, see sb_probe_take().
 */
#include "vmlinux.h"

#include <bpf/bpf_tracing.h>

#include "bpf/core/sb_expr.bpf.h"
#include "bpf/core/sb_sample.bpf.h"

/* How often the event of each place happened to the targets and was wanted, whatever was sampled of
 * it. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1); /* set before load */
	__type(key, __u32);
	__type(value, __u64);
} trace_hits SEC(".maps");

static __always_inline void count_hit(__u32 idx)
{
	__u64 *nr = bpf_map_lookup_elem(&trace_hits, &idx);

	if (nr)
		__sync_fetch_and_add(nr, 1);
}

/* The caller has started the sample in @slot. @how: SB_BEGIN_*. */
static __always_inline void sample(void *ctx, __u32 slot, __u32 how)
{
	__u32 idx = (__u32)bpf_get_attach_cookie(ctx);
	const struct sb_trace_place *place = sb_event_place(idx);
	struct sb_capture *capture;
	__u64 each = 0, weight = 0;

	if (!place || sb_begin(slot, how, &capture))
		return;
	if (sb_event_is_wanted(ctx, idx, place->when, slot)) {
		count_hit(idx);
		each = sb_event_weight(ctx, idx, place->weigh, slot);
		weight = place->weight * each;
	}
	if (weight)
		weight = sb_slice(sb_thin(weight), capture->now_ns);
	if (!weight) {
		sb_spent_some(capture->now_ns);
		return;
	}
	capture->key.op = place->op;
	capture->key.log2_ns = sb_log2_of(each);
	if (place->value)
		capture->key.object = sb_event_value(ctx, idx, place->value, slot);
	if (!sb_take_stacks(ctx, slot, SB_SIDE_USER | SB_SIDE_KERNEL))
		sb_account(capture, weight);
	sb_spent(capture->now_ns);
}

SEC("?tracepoint")
int trace_tracepoint(void *ctx)
{
	sb_start_in_kernel(SB_SCRATCH_TRACE);
	sample(ctx, SB_SCRATCH_TRACE, SB_BEGIN_IDLE);
	return 0;
}

SEC("?kprobe")
int trace_kernel(struct pt_regs *ctx)
{
	sb_start_in_kernel(SB_SCRATCH_TRACE);
	sample(ctx, SB_SCRATCH_TRACE, SB_BEGIN_IDLE);
	return 0;
}

SEC("?perf_event")
int trace_counter(struct bpf_perf_event_data *ctx)
{
	sb_start_at(ctx, SB_SCRATCH_TRACE);
	sample(ctx, SB_SCRATCH_TRACE, 0);
	return 0;
}

/* The registers are those of the user; they begin like the ones of a perf_event program. */
SEC("?uprobe")
int trace_user(struct pt_regs *ctx)
{
	if (!sb_probe_take())
		return 0;
	sb_start_at((const struct bpf_perf_event_data *)ctx, SB_SCRATCH_PROBE);
	sample(ctx, SB_SCRATCH_PROBE, 0);
	sb_probe_give_back();
	return 0;
}
