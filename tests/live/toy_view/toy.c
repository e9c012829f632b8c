// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <bpf/libbpf.h>

#include "views/skel.h"
#include "views/views.h"

static int prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	return bpf_program__set_autoload(skel->progs.toy_fork, true);
}

const struct sb_view sb_view_toy = {
	.kind = SB_VIEW_KIND(toy),
	.slots = 1u << SB_SCRATCH_CALL,
	.prefix = "toy_",
	.divisor = 1000,
	.prepare = prepare,
};
