// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <bpf/libbpf.h>

#include "base/log.h"
#include "views/skel.h"
#include "views/views.h"

static int prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	int err = sb_sched_prepare_whole(skel, opts);

	if (err || !opts->every_ns)
		return err;
	skel->rodata->cfg_sched_every_ns = opts->every_ns;
	/* Since 6.16; without it, each system call takes longer. */
	if (sb_view_has_tracepoint("sched_exit_tp"))
		return bpf_program__set_autoload(skel->progs.sched_arrived, true);
	sb_debug("no tracepoint sched_exit_tp: stacks are taken where system calls return");
	skel->rodata->cfg_sched_pays_at_once = 0;
	return bpf_program__set_autoload(skel->progs.sched_sys_exit, true);
}

const struct sb_view sb_view_offcpu = {
	.name = "offcpu",
	.title = "Off-CPU Time",
	.unit = "us",
	.summary = "where threads wait, and how long",
	.event = "waits",
	.empty = "no thread of the targets waited",
	.slots = 1u << SB_SCRATCH_SWITCH,
	.divisor = 1000,
	.state_place = SB_STATE_AT_ROOT,
	.has_idle = true,
	.trim = sb_sched_trim,
	.prepare = prepare,
	.begin = sb_sched_begin,
	.settle = sb_sched_settle,
};
