// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The view "alloc": what programs allocate, by the stack of the allocation. The programs are those
 * of the view "trace", at the places that events/allocator.h finds. */

#include <errno.h>

#include "views/skel.h"
#include "views/views.h"

static int check(const struct sb_view_opts *opts, const char **ret_why)
{
	int err = sb_held_check(opts, ret_why);

	if (err || !opts->needs_slices || sb_probe_multi_is_there(SB_PROBE_USER))
		return err;
	*ret_why =
		"each malloc() of all programs would trap into the kernel, which before Linux 6.10 "
		"cannot be had in slices of time; name a process with -p, or allow it by "
		"--max-overhead off";
	return -EOPNOTSUPP;
}

static int prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	int err = sb_trace_prepare(skel, opts);

	if (!err)
		skel->rodata->cfg_slices = sb_held_can_slice(opts, skel->progs.trace_user);
	return err;
}

const struct sb_view sb_view_alloc = {
	.kind = SB_VIEW_KIND(alloc),
	.slots = 1u << SB_SCRATCH_TRACE | 1u << SB_SCRATCH_PROBE,
	.losses = 1ull << SB_STAT_TRACE_BUSY,
	.prefix = "trace_",
	.divisor = 1,
	.unit_of = sb_held_unit_of,
	.trim = sb_io_layer_trim,
	.check = check,
	.prepare = prepare,
	.attach = sb_trace_attach,
	.is_sliced = sb_held_is_sliced,
	.attaches = sb_trace_attaches,
	.thin = sb_view_thin_events,
};
