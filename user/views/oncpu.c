// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <bpf/libbpf.h>

#include "views/skel.h"
#include "views/views.h"

static int prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	return bpf_program__set_autoload(skel->progs.oncpu_tick, true);
}

static struct bpf_program *timer(struct sampler_bpf *skel)
{
	return skel->progs.oncpu_tick;
}

const struct sb_view sb_view_oncpu = {
	.kind = SB_VIEW_KIND(oncpu),
	.slots = 1u << SB_SCRATCH_TIMER,
	.prefix = "oncpu_",
	.divisor = 1,
	.prepare = prepare,
	.timer = timer,
};
