// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <bpf/libbpf.h>
#include <errno.h>

#include "base/cleanup.h"
#include "views/skel.h"
#include "views/views.h"

static int prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	struct bpf_program *const programs[] = { skel->progs.sched_waking };
	int err = sb_sched_prepare(skel, opts);

	skel->rodata->cfg_sched_waker = SB_SCHED_WAKER_WEIGHS;
	return err ? err : sb_view_switch_on(programs, SB_ARRAY_SIZE(programs));
}

static int check(const struct sb_view_opts *opts, const char **ret_why)
{
	const uint32_t queued = 1u << SB_STATE_RUNQUEUE | 1u << SB_STATE_THROTTLED;

	if (!opts->states || (opts->states & ~queued))
		return 0;
	*ret_why = "wakeup cannot use --state R, because a thread in the run queue is awake "
		   "already; use offcpu --state R";
	return -EINVAL;
}

const struct sb_view sb_view_wakeup = {
	.kind = SB_VIEW_KIND(wakeup),
	.slots = 1u << SB_SCRATCH_WAKE,
	.objects_max = 32768,
	.is_of_wakers = true,
	.other_slots = 1u << SB_SCRATCH_SWITCH | 1u << SB_SCRATCH_ITER,
	.prefix = "sched_",
	.divisor = 1000,
	.trim = sb_sched_trim_waking,
	.check = check,
	.prepare = prepare,
	.begin = sb_sched_begin,
	.pending = sb_sched_pending,
	.thin = sb_view_thin_events,
};
