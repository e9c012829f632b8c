// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The places of events: what the BPF side knows of them (bpf/core/expr.bpf.c). */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "base/reason.h"
#include "bpf/abi/sb_abi_latency.h"
#include "bpf/abi/sb_abi_trace.h"
#include "events/probe.h"
#include "views/skel.h"
#include "views/views.h"

bool sb_programs_have(const struct sb_programs *programs, const struct bpf_program *program)
{
	unsigned int kind;

	for (kind = 0; kind < SB_PROBE_KIND_MAX; kind++)
		if (program == programs->of[kind])
			return true;
	return false;
}

int sb_places_make_room(struct sampler_bpf *skel, const struct sb_probes *probes)
{
	int err = bpf_map__set_max_entries(skel->maps.event_places, (uint32_t)probes->places.nr);

	return err || !probes->exprs.nr ? err
					: bpf_map__set_max_entries(skel->maps.event_exprs,
								   (uint32_t)probes->exprs.nr);
}

int sb_places_prepare(struct sampler_bpf *skel, const struct sb_probes *probes,
		      const struct sb_programs *programs)
{
	const struct sb_attaching job = { .probes = probes, .programs = *programs };
	int err = sb_places_make_room(skel, probes);

	return err ? err : sb_attach_prepare(&job);
}

/* Return: sb_sample_key.op of a sample of this place. With a single name it would only repeat the
 * title. Of pairs the beginning is named, and SB_LATENCY_OP_OPEN is in use. Calls begin in what is
 * the leaf already. */
static uint32_t op_of(const struct sb_probes *probes, const struct sb_probe *probe)
{
	size_t nr_names = 0, i;

	if (probes->is_of_calls)
		return 0;
	if (!probe->roles)
		return probes->names.nr > 1 ? probe->name_idx + 1 : 0;
	for (i = 0; i < probes->places.nr; i++)
		if (probes->places.at[i].roles & SB_EVENT_BEGINS &&
		    probes->places.at[i].name_idx >= nr_names)
			nr_names = probes->places.at[i].name_idx + 1;
	return nr_names > 1 ? probe->name_idx + 1 + SB_LATENCY_OP_OPEN : 0;
}

const char *sb_places_op_name(const struct sb_probes *probes, uint32_t op)
{
	return probes && op && op <= probes->names.nr ? probes->names.at[op - 1] : NULL;
}

bool sb_places_have_weight(const struct sb_probes *probes)
{
	/* The first place is none that ends a pair. */
	return probes && probes->places.nr && probes->places.at[0].weigh;
}

static struct sb_trace_place place_of(const struct sb_probes *probes, const struct sb_probe *probe)
{
	struct sb_trace_place place = {
		.weight = probe->kind == SB_PROBE_PERF ? probe->counter.period : 1,
		.op = op_of(probes, probe),
		.when = probe->when,
		.weigh = probe->weigh,
		.value = probe->value,
		.begin_key = probe->begin_key,
		.end_key = probe->end_key,
		.roles = probe->roles,
		.at_end = probe->at_end,
	};

	memcpy(place.arg, probe->arg, sizeof(place.arg));
	return place;
}

static int write_place(const struct sampler_bpf *skel, uint32_t idx,
		       const struct sb_trace_place *place)
{
	int fd = bpf_map__fd(skel->maps.event_places);

	return bpf_map_update_elem(fd, &idx, place, BPF_ANY) ? -errno : 0;
}

int sb_places_split(const struct sampler_bpf *skel, const struct sb_probes *probes, uint32_t idx)
{
	struct sb_trace_place place = place_of(probes, &probes->places.at[idx]);

	place.roles |= SB_EVENT_SPLIT;
	return write_place(skel, idx, &place);
}

int sb_places_write(const struct sampler_bpf *skel, const struct sb_probes *probes,
		    struct sb_reason *reason)
{
	uint32_t i;
	int err = 0;

	for (i = 0; i < probes->exprs.nr && !err; i++)
		if (bpf_map_update_elem(bpf_map__fd(skel->maps.event_exprs), &i,
					&probes->exprs.at[i], BPF_ANY))
			err = -errno;
	for (i = 0; i < probes->places.nr && !err; i++) {
		struct sb_trace_place place = place_of(probes, &probes->places.at[i]);

		err = write_place(skel, i, &place);
	}
	return err ? sb_reason_set(reason, err,
				   "cannot write the places of events into their BPF map")
		   : 0;
}

int sb_places_attach(const struct sampler_bpf *skel, struct sb_attaching *job, sb_vec_link *links,
		     struct sb_reason *reason)
{
	int err = sb_places_write(skel, job->probes, reason);

	err = err ?: sb_attach(job, links, reason);
	return err ? err : sb_attach_tell(job, reason);
}
