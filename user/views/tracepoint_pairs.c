// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The program that takes the stacks of pairs at tracepoints: latency_stacks of
 * bpf/views/latency.bpf.c. */
#include <bpf/libbpf.h>
#include <string.h>

#include "base/reason.h"
#include "events/probe.h"
#include "views/skel.h"
#include "views/views.h"

/* Return: whether another program takes the stacks where this place begins a pair. Those of system
 * calls are no tracepoints of their own to the kernel. */
static bool needs_split(const struct sb_probe *probe)
{
	return probe->kind == SB_PROBE_TRACEPOINT && probe->roles & SB_EVENT_BEGINS &&
	       strncmp(probe->function, "syscalls:", strlen("syscalls:")) != 0;
}

int sb_tracepoint_pairs_prepare(struct sampler_bpf *skel, const struct sb_probes *probes)
{
	size_t i;
	int err = 0;

	for (i = 0; i < probes->places.nr && !err; i++)
		if (needs_split(&probes->places.at[i]))
			err = bpf_program__set_autoload(skel->progs.latency_stacks, true);
	return err;
}

static int attach_stacks(const struct sampler_bpf *skel, const struct sb_probes *probes,
			 uint32_t idx, sb_vec_link *links)
{
	const char *name = strchr(probes->places.at[idx].function, ':') + 1;
	struct bpf_link *link =
		bpf_program__attach_raw_tracepoint(skel->progs.latency_stacks, name);
	int err = link ? sb_view_keep_link(links, link) : 0;

	return link && !err ? sb_places_split(skel, probes, idx) : err;
}

int sb_tracepoint_pairs_attach(const struct sampler_bpf *skel, const struct sb_probes *probes,
			       sb_vec_link *links, struct sb_reason *reason)
{
	uint32_t i;
	int err = 0;

	for (i = 0; i < probes->places.nr && !err; i++)
		if (needs_split(&probes->places.at[i]))
			err = attach_stacks(skel, probes, i, links);
	return err ? sb_reason_set(
			     reason, err,
			     "cannot attach the BPF program that takes stacks at tracepoints; "
			     "'stackbpf doctor' shows what this kernel lacks")
		   : 0;
}
