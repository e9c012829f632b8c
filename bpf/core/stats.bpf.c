// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Counters of the BPF side. Every way to lose something has its own; docs/loss.md explains them. */
#include "bpf/core/sb_util.bpf.h"

struct sb_stats {
	__u64 val[SB_STAT_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sb_stats);
} stats SEC(".maps");

__noinline int sb_stat_add(__u32 stat, __u64 val)
{
	__u32 zero = 0;
	struct sb_stats *mine = bpf_map_lookup_elem(&stats, &zero);

	if (mine && stat < SB_STAT_MAX)
		/* An interrupt of this CPU may count the same. */
		__sync_fetch_and_add(&mine->val[stat], val);
	return 0;
}
