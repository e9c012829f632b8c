// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The view "leak": what was allocated in the first half of the run and is held at its end. */
#include "views/skel.h"
#include "views/views.h"

static int prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	int err = sb_held_prepare(skel, opts);

	skel->rodata->cfg_latency_half = 1;
	if (!err && opts->fallback)
		skel->rodata->cfg_slices = sb_held_can_slice(opts, skel->progs.latency_user);
	return err;
}

const struct sb_view sb_view_leak = {
	.kind = SB_VIEW_KIND(leak),
	.slots = 1u << SB_SCRATCH_BEGIN | 1u << SB_SCRATCH_PROBE,
	.other_slots = 1u << SB_SCRATCH_TRACE | 1u << SB_SCRATCH_ITER,
	.losses = SB_HELD_LOSSES,
	.by_pages = &sb_view_leak_by_pages,
	.prefix = "latency_",
	.divisor = 1,
	.unit_of = sb_held_unit_of,
	.trim = sb_io_layer_trim,
	.check = sb_held_check,
	.prepare = prepare,
	.attach = sb_held_attach,
	.attaches = sb_held_attaches,
	.nests = sb_held_nests,
	.is_sliced = sb_held_is_sliced,
	.nr_ends = sb_held_nr_ends,
	.survive = sb_held_survive,
	.settle = sb_held_settle,
	.pending = sb_held_pending,
	.thin = sb_held_thin,
	.cannot_thin = sb_held_cannot_thin,
};
