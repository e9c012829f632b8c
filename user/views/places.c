// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The places of events: what the BPF side knows of them (bpf/core/expr.bpf.c), and attaching to all of
 * them. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/reason.h"
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

int sb_places_prepare(struct sampler_bpf *skel, const struct sb_probes *probes,
		      const struct sb_programs *programs)
{
	int err = bpf_map__set_max_entries(skel->maps.event_places, (uint32_t)probes->places.nr);
	size_t i;

	if (!err && probes->exprs.nr)
		err = bpf_map__set_max_entries(skel->maps.event_exprs, (uint32_t)probes->exprs.nr);
	for (i = 0; i < probes->places.nr && !err; i++)
		err = bpf_program__set_autoload(programs->of[probes->places.at[i].kind], true);
	return err;
}

static struct sb_trace_place place_of(const struct sb_probes *probes, const struct sb_probe *probe)
{
	struct sb_trace_place place = {
		.weight = probe->kind == SB_PROBE_PERF ? probe->counter.period : 1,
		/* With a single name it would only repeat the title. */
		.op = probes->names.nr > 1 ? probe->name_idx + 1 : 0,
		.when = probe->when,
		.weigh = probe->weigh,
		.value = probe->value,
	};

	memcpy(place.arg, probe->arg, sizeof(place.arg));
	return place;
}

static int write_places(const struct sampler_bpf *skel, const struct sb_probes *probes)
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

/* A counter counts on each CPU. One that went offline meanwhile counts nothing. */
static int attach_counter(const struct sb_probe *probe, struct sb_probe_hook *hook,
			  sb_vec_link *links)
{
	int nr = libbpf_num_possible_cpus(), err = nr < 0 ? nr : 0;

	for (hook->cpu = 0; hook->cpu < nr && !err; hook->cpu++) {
		err = sb_probe_attach(probe, hook, links);
		if (err == -ENODEV)
			err = 0;
	}
	return err;
}

static int attach_place(const struct sb_probes *probes, uint32_t idx,
			const struct sb_programs *programs, sb_vec_link *links)
{
	const struct sb_probe *probe = &probes->places.at[idx];
	struct sb_probe_hook hook = { programs->of[probe->kind], idx, -1, 0 };

	if (probe->kind == SB_PROBE_PERF)
		return attach_counter(probe, &hook, links);
	/* Breakpoints in one address space cost the others nothing. */
	if (probe->path && probes->is_of_tgid_only) {
		hook.pid = (pid_t)probes->tgid;
		hook.cpu = -1;
	}
	return sb_probe_attach(probe, &hook, links);
}

int sb_places_attach(const struct sampler_bpf *skel, const struct sb_probes *probes,
		     const struct sb_programs *programs, sb_vec_link *links,
		     struct sb_reason *reason)
{
	const struct sb_probe *probe, *unhooked = NULL;
	size_t nr_unhooked = 0, i;
	int err = write_places(skel, probes);

	if (err)
		return sb_reason_set(reason, err, "cannot write the BPF map of events");
	for (i = 0; i < probes->places.nr; i++) {
		probe = &probes->places.at[i];
		err = attach_place(probes, (uint32_t)i, programs, links);
		if (err == -SB_ENOTSUPP && probe->is_of_glob) {
			unhooked = probe;
			nr_unhooked++;
		} else if (err) {
			return sb_probe_explain(probes, probe, err, reason);
		}
	}
	if (nr_unhooked == probes->places.nr)
		return sb_probe_explain(probes, unhooked, -SB_ENOTSUPP, reason);
	if (nr_unhooked)
		sb_warn("%zu of %zu functions are not traced, such as '%s': the kernel cannot hook "
			"their first instruction",
			nr_unhooked, probes->places.nr, unhooked->function);
	return 0;
}
