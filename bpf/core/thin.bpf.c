// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Throttling while the run costs too much: fewer samples, each of more weight. And the measuring
 * of that cost for programs where reading the clock would be a good part of it. User space writes
 * the settings: user/capture/thinning.h.
 */
#include "bpf/core/sb_sample.bpf.h"
#include "bpf/core/sb_util.bpf.h"

/* Of so many short programs one is measured. */
#define SPENT_EACH 16

/* Of each CPU's timer: periods of what was asked for in one of now. 0: one. */
__u16 tick_weights[SB_TICK_CPUS] = {};
/* Of events: the weight of a sample, in the unit of the view; 0: each event is one, by its own weight. */
__u64 thin_weight = 0;

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

/*
 * With a probability that goes with its weight (Horvitz and Thompson 1952). By chance for each event:
 * a sum that is carried along would lock in with events that come in turn.
 */
__noinline __u64 sb_thin(__u64 weight)
{
	__u64 unit = thin_weight, random;

	if (!unit || weight >= unit)
		return weight;
	random = (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();
	return random % unit < weight ? unit : 0;
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
