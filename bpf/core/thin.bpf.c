// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Throttling while the run costs too much: fewer samples, each of more weight. And the measuring
 * of that cost for programs where reading the clock would be a good part of it. User space writes
 * the settings: user/capture/thinning.h.
 */
#include "bpf/core/sb_sample.bpf.h"
#include "bpf/core/sb_stack.bpf.h"
#include "bpf/core/sb_util.bpf.h"

/* Of so many short programs one is measured. */
#define SPENT_EACH 16

/* The period of timers at the rate that was asked for; 0: they have none, as counters of cycles. */
const volatile __u64 cfg_tick_ns = 0;

/* Of each CPU's timer: periods of what was asked for in one of now. 0: one. */
__u16 tick_weights[SB_TICK_CPUS] = {};
/* Of events: the weight of a sample, in the unit of the view; 0: each event is one, by its own
 * weight. */
__u64 thin_weight = 0;

/* Whether programs are attached in slices; when this one ends, 0: there is none; what a sample
 * weighs in it, in units of 1 / 2^SB_SLICE_SHIFT. */
const volatile __u32 cfg_slices = 0;
__u64 slice_end_ns = 0, slice_weight = 0;

/* Programs that were begun, on each CPU, which says which of them is measured. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} spent_turns SEC(".maps");

__hidden __u32 sb_tick_weight(void)
{
	__u32 cpu = bpf_get_smp_processor_id();
	__u32 weight = cpu < SB_TICK_CPUS ? tick_weights[cpu] : 0;

	return weight ? weight : 1;
}

/* Whether the current thread has run on this CPU without a break since the last tick. */
static bool is_same_run(struct sb_tick_grid *grid)
{
	const struct task_struct *task = bpf_get_current_task_btf();
	__u64 nr_switches = task->nvcsw + task->nivcsw;
	bool is_same = grid->tid == (__u32)task->pid && grid->nr_switches == nr_switches;

	grid->tid = task->pid;
	grid->nr_switches = nr_switches;
	return is_same;
}

/*
 * A tick that is late by whole periods comes once: the kernel moves the timer behind the present
 * (hrtimer_forward_now() of perf_swevent_hrtimer() in kernel/events/core.c) and does not say how
 * many it skipped. They are told by the multiple of the period at which a tick comes, not by its
 * distance to the last one, which a tick that is late by half a period would lengthen for nothing.
 * If the thread was switched meanwhile, the CPU may have been idle, where there are no ticks.
 */
__hidden __u32 sb_ticks(__u64 now_ns)
{
	__u32 weight = sb_tick_weight(), nr_ticks = 1;
	struct sb_scratch *s = sb_scratch_get(SB_SCRATCH_TIMER);
	__u64 nr, period_ns = cfg_tick_ns * weight;
	struct sb_tick_grid *grid;
	bool is_same;

	if (!s || !period_ns)
		return 1;
	grid = &s->grid;
	is_same = is_same_run(grid);
	if (!is_same || grid->weight != weight) {
		grid->weight = weight;
		grid->from_ns = now_ns;
		grid->nr = 0;
		return 1;
	}
	nr = (now_ns - grid->from_ns + period_ns / 2) / period_ns;
	if (nr > grid->nr)
		nr_ticks = nr - grid->nr;
	grid->nr += nr_ticks;
	return nr_ticks;
}

__hidden __u64 sb_ticks_ns(__u64 now_ns)
{
	return cfg_tick_ns * sb_tick_weight() * sb_ticks(now_ns);
}

/*
 * With a probability that goes with its weight (Horvitz and Thompson 1952). By chance for each
 * event: a sum that is carried along would lock in with events that come in turn.
 */
__noinline __u64 sb_thin(__u64 weight)
{
	__u64 unit = thin_weight, random;

	if (!unit || weight >= unit)
		return weight;
	random = (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();
	return random % unit < weight ? unit : 0;
}

/* Weights are less than the memory of a machine, times SB_ALLOC_OBJECT, and distances of slices
 * less than a minute: the product fits if the weight is made smaller first where it is large. */
__noinline __u64 sb_slice(__u64 weight, __u64 now_ns)
{
	if (!cfg_slices)
		return weight;
	if (now_ns >= slice_end_ns)
		return 0;
	return weight >> 32 ? (weight >> SB_SLICE_SHIFT) * slice_weight
			    : weight * slice_weight >> SB_SLICE_SHIFT;
}

static bool is_turn(void)
{
	__u32 zero = 0, *turn = bpf_map_lookup_elem(&spent_turns, &zero);

	if (!turn)
		return false;
	/* By the golden ratio: evenly, and in no step with what comes in turn. */
	*turn += 0x9e3779b9u;
	return *turn < 0xffffffffu / SPENT_EACH;
}

__hidden __u64 sb_spent_begin(void)
{
	return is_turn() ? bpf_ktime_get_ns() : 0;
}

__hidden void sb_spent_end(__u64 since_ns)
{
	if (since_ns)
		sb_stat_add(SB_STAT_RUN_NS, (bpf_ktime_get_ns() - since_ns) * SPENT_EACH);
}

/* Global: the verifier looks at it once, not once for each way to it. */
__noinline int sb_spent_some(__u64 since_ns)
{
	if (is_turn())
		sb_spent_end(since_ns);
	return 0;
}
