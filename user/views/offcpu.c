// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <bpf/libbpf.h>

#include "base/log.h"
#include "base/time.h"
#include "views/skel.h"
#include "views/views.h"

/* The first step of thin(): most waits are shorter, and those that are not have a stack each. */
#define EVERY_FIRST_NS SB_NS_PER_MS

static int prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	int err = sb_sched_prepare_whole(skel, opts);

	if (err || (!opts->every_ns && !opts->is_governed))
		return err;
	skel->rodata->cfg_sched_every_ns = opts->every_ns;
	skel->bss->sched_every_ns = opts->every_ns ? opts->every_ns : EVERY_FIRST_NS;
	/* The tracepoint exists since 6.16. Without it each system call takes longer, which needs
	 * to be asked for. */
	if (sb_view_has_tracepoint("sched_exit_tp")) {
		skel->rodata->cfg_sched_is_governed = opts->is_governed;
		return bpf_program__set_autoload(skel->progs.sched_arrived, true);
	}
	if (!opts->every_ns)
		return 0;
	sb_debug("no tracepoint sched_exit_tp: stacks are taken when system calls return");
	skel->rodata->cfg_sched_pays_at_once = 0;
	return bpf_program__set_autoload(skel->progs.sched_sys_exit, true);
}

static uint64_t thin(struct sampler_bpf *skel, const struct sb_view_opts *opts, uint32_t step,
		     uint64_t mean)
{
	uint64_t first_ns = opts->every_ns ? opts->every_ns << 1 : EVERY_FIRST_NS;

	if (step)
		skel->bss->sched_every_ns = first_ns << (step - 1);
	else if (opts->every_ns)
		skel->bss->sched_every_ns = opts->every_ns;
	skel->bss->sched_is_thinned = step > 0;
	return step ? skel->bss->sched_every_ns : 0;
}

static const char *cannot_thin(const struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	if (opts->every_ns || skel->rodata->cfg_sched_is_governed)
		return NULL;
	return "before Linux 6.16 the rate of waits cannot be lowered during a run; use "
	       "--every";
}

const struct sb_view sb_view_offcpu = {
	.kind = SB_VIEW_KIND(offcpu),
	.slots = 1u << SB_SCRATCH_SWITCH,
	.other_slots = 1u << SB_SCRATCH_WAKE | 1u << SB_SCRATCH_ITER,
	.prefix = "sched_",
	.divisor = 1000,
	.state_place = SB_STATE_AT_ROOT,
	.has_idle = true,
	.trim = sb_sched_trim,
	.prepare = prepare,
	.begin = sb_sched_begin,
	.settle = sb_sched_settle,
	.pending = sb_sched_pending,
	.thin = thin,
	.cannot_thin = cannot_thin,
};
