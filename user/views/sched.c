// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "views/skel.h"
#include "views/views.h"

const char *const sb_sched_trim[] = { "__schedule", NULL };

int sb_sched_prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	struct bpf_program *const programs[] = {
		skel->progs.sched_new,	      skel->progs.sched_switch, skel->progs.sched_wakeup,
		skel->progs.sched_wakeup_new, skel->progs.sched_begin,	skel->progs.sched_settle,
	};
	size_t i;
	int err = 0;

	skel->rodata->cfg_sched_min_ns = opts->min_ns;
	if (opts->max_ns)
		skel->rodata->cfg_sched_max_ns = opts->max_ns;
	if (opts->states)
		skel->rodata->cfg_sched_states = opts->states;
	for (i = 0; i < SB_ARRAY_SIZE(programs) && !err; i++)
		err = bpf_program__set_autoload(programs[i], true);
	return err;
}

struct bpf_program *sb_sched_begin(struct sampler_bpf *skel)
{
	return skel->progs.sched_begin;
}

struct bpf_program *sb_sched_settle(struct sampler_bpf *skel)
{
	return skel->progs.sched_settle;
}
