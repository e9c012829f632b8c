// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the BPF side knows of events: bpf/core/expr.bpf.c. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "bpf/abi/sb_abi_trace.h"
#include "events/probe.h"
#include "views/skel.h"
#include "views/views.h"

int sb_places_prepare(struct sampler_bpf *skel, const struct sb_probes *probes)
{
	int err = bpf_map__set_max_entries(skel->maps.event_places, (uint32_t)probes->places.nr);

	if (!err && probes->exprs.nr)
		err = bpf_map__set_max_entries(skel->maps.event_exprs, (uint32_t)probes->exprs.nr);
	return err;
}

static struct sb_trace_place place_of(const struct sb_probes *probes, const struct sb_probe *probe)
{
	struct sb_trace_place place = {
		.weight = probe->kind == SB_PROBE_PERF ? probe->period : 1,
		/* With a single name it would only repeat the title. */
		.op = probes->names.nr > 1 ? probe->name_idx + 1 : 0,
		.when = probe->when,
		.weigh = probe->weigh,
		.value = probe->value,
	};

	memcpy(place.arg, probe->arg, sizeof(place.arg));
	return place;
}

int sb_places_write(const struct sampler_bpf *skel, const struct sb_probes *probes)
{
	uint32_t i;

	for (i = 0; i < probes->exprs.nr; i++)
		if (bpf_map_update_elem(bpf_map__fd(skel->maps.event_exprs), &i,
					&probes->exprs.at[i], BPF_ANY))
			return -errno;
	for (i = 0; i < probes->places.nr; i++) {
		struct sb_trace_place place = place_of(probes, &probes->places.at[i]);

		if (bpf_map_update_elem(bpf_map__fd(skel->maps.event_places), &i, &place, BPF_ANY))
			return -errno;
	}
	return 0;
}
