// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "views/skel.h"
#include "views/views.h"

static int prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	struct bpf_program *const programs[] = { skel->progs.sched_waking };
	int err = sb_sched_prepare_whole(skel, opts);

	skel->rodata->cfg_sched_waker = SB_SCHED_WAKER_NAMED;
	return err ? err : sb_view_switch_on(programs, SB_ARRAY_SIZE(programs));
}

static const char *cannot_thin(const struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	return "offwake needs the waker of each wait, so its rate cannot be lowered; offcpu "
	       "costs less";
}

const struct sb_view sb_view_offwake = {
	.kind = SB_VIEW_KIND(offwake),
	.slots = 1u << SB_SCRATCH_SWITCH | 1u << SB_SCRATCH_WAKE,
	.objects_max = 32768,
	.other_slots = 1u << SB_SCRATCH_ITER,
	.prefix = "sched_",
	.divisor = 1000,
	.state_place = SB_STATE_AT_ROOT,
	.has_idle = true,
	.trim = sb_sched_trim_both,
	.prepare = prepare,
	.begin = sb_sched_begin,
	.settle = sb_sched_settle,
	.pending = sb_sched_pending,
	.cannot_thin = cannot_thin,
};
