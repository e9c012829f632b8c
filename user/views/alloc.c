// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The view "alloc": what programs allocate, by the stack of the allocation. The programs are those of the view
 * "trace", at the places that events/allocator.h finds. */

#include <errno.h>

#include "views/skel.h"
#include "views/views.h"

/* A trap takes as long whether its sample is taken or not. So under a limit probes are attached in slices, where
 * that takes some milliseconds only. Producers fire for samples alone. */
static bool can_slice(const struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	size_t i;

	for (i = 0; i < opts->probes->places.nr; i++)
		if (opts->probes->places.at[i].kind != SB_PROBE_USER)
			return false;
	return opts->is_governed && sb_probe_multi_is_on(skel->progs.trace_user);
}

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
		skel->rodata->cfg_slices = can_slice(skel, opts);
	return err;
}

static bool is_sliced(const struct sampler_bpf *skel)
{
	return skel->rodata->cfg_slices;
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
	.is_sliced = is_sliced,
	.attaches = sb_trace_attaches,
	.thin = sb_view_thin_events,
};
