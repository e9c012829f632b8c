// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "views/skel.h"
#include "views/views.h"

/* What wakes is try_to_wake_up(), which calls these. */
#define WAKING_FRAMES "bpf_trace_run*", "__bpf_trace_sched_waking", "__traceiter_sched_waking"

const char *const sb_sched_trim[] = { "__schedule", "bpf_trace_run*", NULL };
const char *const sb_sched_trim_waking[] = { WAKING_FRAMES, NULL };
const char *const sb_sched_trim_both[] = { "__schedule", WAKING_FRAMES, NULL };

int sb_sched_prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	struct bpf_program *const programs[] = {
		skel->progs.sched_new,
		skel->progs.sched_switch,
		skel->progs.sched_begin,
		skel->progs.sched_pending,
	};

	skel->rodata->cfg_sched_min_ns = opts->min_ns;
	if (opts->max_ns)
		skel->rodata->cfg_sched_max_ns = opts->max_ns;
	if (opts->states)
		skel->rodata->cfg_sched_states = opts->states;
	return sb_view_switch_on(programs, SB_ARRAY_SIZE(programs));
}

int sb_sched_prepare_whole(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	struct bpf_program *const programs[] = {
		skel->progs.sched_wakeup,
		skel->progs.sched_wakeup_new,
		skel->progs.sched_settle,
	};
	int err = sb_sched_prepare(skel, opts);

	return err ? err : sb_view_switch_on(programs, SB_ARRAY_SIZE(programs));
}

struct bpf_program *sb_sched_begin(struct sampler_bpf *skel)
{
	return skel->progs.sched_begin;
}

struct bpf_program *sb_sched_settle(struct sampler_bpf *skel)
{
	return skel->progs.sched_settle;
}

int sb_sched_pending(const struct sampler_bpf *skel, sb_vec_stack_id *ids)
{
	return sb_pending_of_tasks(skel->progs.sched_pending, ids);
}
