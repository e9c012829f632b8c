// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The view "alloc": what programs allocate, by the stack of the allocation. The programs are those of the view
 * "trace", at the places that events/allocator.h finds. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>

#include "events/probe.h"
#include "views/skel.h"
#include "views/views.h"

/* Of this run; borrowed. */
static const struct sb_probes *events;

static struct sb_programs programs_of(const struct sampler_bpf *skel)
{
	return (struct sb_programs){ .of = {
					     [SB_PROBE_USER] = skel->progs.trace_user,
					     [SB_PROBE_USDT] = skel->progs.trace_user,
				     } };
}

static int prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	const struct sb_programs programs = programs_of(skel);
	int err = sb_places_prepare(skel, opts->probes, &programs);

	events = opts->probes;
	return err ? err
		   : bpf_map__set_max_entries(skel->maps.trace_hits, (uint32_t)events->places.nr);
}

static int attach(struct sampler_bpf *skel, const struct sb_view_opts *opts, sb_vec_link *links,
		  struct sb_reason *reason)
{
	const struct sb_programs programs = programs_of(skel);

	return sb_places_attach(skel, opts->probes, &programs, links, reason);
}

static bool attaches(struct sampler_bpf *skel, const struct bpf_program *prog)
{
	const struct sb_programs programs = programs_of(skel);

	return sb_programs_have(&programs, prog);
}

const struct sb_view sb_view_alloc = {
	.kind = SB_VIEW_KIND(alloc),
	.slots = 1u << SB_SCRATCH_TRACE | 1u << SB_SCRATCH_PROBE,
	.losses = 1ull << SB_STAT_TRACE_BUSY,
	.prefix = "trace_",
	.divisor = 1,
	.unit_of = sb_held_unit_of,
	.trim = sb_io_layer_trim,
	.check = sb_held_check,
	.prepare = prepare,
	.attach = attach,
	.attaches = attaches,
	.thin = sb_view_thin_events,
};
