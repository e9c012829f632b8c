// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The view "trace": a stack at each of the events that the user names. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/reason.h"
#include "base/str.h"
#include "bpf/abi/sb_abi_trace.h"
#include "events/probe.h"
#include "views/skel.h"
#include "views/views.h"

/* Different values of --value that the BPF side remembers. */
#define VALUES_MAX 16384u

/* Of this run, for op_name() and report(); borrowed. */
static const struct sb_probes *events;

static struct bpf_program *program_of(struct sampler_bpf *skel, enum sb_probe_kind kind)
{
	switch (kind) {
	case SB_PROBE_TRACEPOINT:
		return skel->progs.trace_tracepoint;
	case SB_PROBE_KERNEL:
		return skel->progs.trace_kernel;
	case SB_PROBE_PERF:
		return skel->progs.trace_counter;
	default:
		return skel->progs.trace_user;
	}
}

static int check(const struct sb_view_opts *opts, const char **ret_why)
{
	if (opts->probes && opts->probes->places.nr)
		return 0;
	*ret_why =
		"there is no event to trace; name one, such as 'stackbpf trace c:malloc', or see "
		"'stackbpf trace --list'";
	return -EINVAL;
}

static int prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	uint32_t nr = (uint32_t)opts->probes->places.nr, i;
	int err = sb_places_prepare(skel, opts->probes);

	events = opts->probes;
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.trace_hits, nr);
	for (i = 0; i < nr && !err; i++)
		err = bpf_program__set_autoload(program_of(skel, events->places.at[i].kind), true);
	return err;
}

static int attach_at(struct sampler_bpf *skel, uint32_t idx, pid_t pid, int cpu, sb_vec_link *links)
{
	const struct sb_probe *probe = &events->places.at[idx];
	const struct sb_probe_hook hook = { program_of(skel, probe->kind), idx, pid, cpu };

	return sb_probe_attach(probe, &hook, links);
}

/* A counter counts on each CPU. One that went offline meanwhile counts nothing. */
static int attach_counter(struct sampler_bpf *skel, uint32_t idx, sb_vec_link *links)
{
	int cpu, nr = libbpf_num_possible_cpus(), err = nr < 0 ? nr : 0;

	for (cpu = 0; cpu < nr && !err; cpu++) {
		err = attach_at(skel, idx, -1, cpu, links);
		if (err == -ENODEV)
			err = 0;
	}
	return err;
}

static int attach_place(struct sampler_bpf *skel, uint32_t idx, sb_vec_link *links)
{
	const struct sb_probe *probe = &events->places.at[idx];

	if (probe->kind == SB_PROBE_PERF)
		return attach_counter(skel, idx, links);
	/* Breakpoints in one address space cost the others nothing. */
	if (probe->path && events->is_of_tgid_only)
		return attach_at(skel, idx, (pid_t)events->tgid, -1, links);
	return attach_at(skel, idx, -1, 0, links);
}

static int attach(struct sampler_bpf *skel, const struct sb_view_opts *opts, sb_vec_link *links,
		  struct sb_reason *reason)
{
	const struct sb_probe *probe, *unhooked = NULL;
	size_t nr_unhooked = 0, i;
	int err = sb_places_write(skel, events);

	if (err)
		return sb_reason_set(reason, err, "cannot write the BPF map of events");
	for (i = 0; i < events->places.nr; i++) {
		probe = &events->places.at[i];
		err = attach_place(skel, (uint32_t)i, links);
		if (err == -SB_ENOTSUPP && probe->is_of_glob) {
			unhooked = probe;
			nr_unhooked++;
		} else if (err) {
			return sb_probe_explain(events, probe, err, reason);
		}
	}
	if (nr_unhooked == events->places.nr)
		return sb_probe_explain(events, unhooked, -SB_ENOTSUPP, reason);
	if (nr_unhooked)
		sb_warn("%zu of %zu functions are not traced, such as '%s': the kernel cannot hook "
			"their first instruction",
			nr_unhooked, events->places.nr, unhooked->function);
	return 0;
}

static bool attaches(struct sampler_bpf *skel, const struct bpf_program *prog)
{
	unsigned int kind;

	for (kind = 0; kind < SB_PROBE_KIND_MAX; kind++)
		if (prog == program_of(skel, kind))
			return true;
	return false;
}

/* With --weight, of whatever the expression is. */
static const char *unit_of(const struct sb_view_opts *opts, uint64_t *ret_divisor)
{
	const struct sb_probes *probes = opts->probes;

	return probes && probes->places.nr && probes->places.at[0].weigh ? "units" : NULL;
}

static const char *op_name(uint32_t op)
{
	return events && op && op <= events->names.nr ? events->names.at[op - 1] : NULL;
}

/* How often the events of one name happened to the targets. */
static uint64_t hits_of(const struct sampler_bpf *skel, uint32_t name_idx, uint64_t *per_cpu)
{
	int nr_cpus = libbpf_num_possible_cpus(), cpu;
	uint64_t nr = 0;
	uint32_t i;

	for (i = 0; i < events->places.nr; i++) {
		if (events->places.at[i].name_idx != name_idx ||
		    bpf_map_lookup_elem(bpf_map__fd(skel->maps.trace_hits), &i, per_cpu))
			continue;
		for (cpu = 0; cpu < nr_cpus; cpu++)
			nr += per_cpu[cpu];
	}
	return nr;
}

static void report(const struct sampler_bpf *skel, void (*row)(const char *name, const char *value))
{
	sb_cleanup(sb_freep) uint64_t *per_cpu = NULL;
	int nr_cpus = libbpf_num_possible_cpus();
	char name[SB_EVENT_FILE_BYTES], value[32];
	uint32_t i;

	if (!events || nr_cpus < 0 || !skel->maps.trace_hits)
		return;
	per_cpu = calloc((size_t)nr_cpus, sizeof(*per_cpu));
	for (i = 0; per_cpu && i < events->names.nr; i++) {
		snprintf(value, sizeof(value), "%llu",
			 (unsigned long long)hits_of(skel, i, per_cpu));
		sb_probe_name(events, i, name, sizeof(name));
		row(name, value);
	}
}

const struct sb_view sb_view_trace = {
	.kind = SB_VIEW_KIND(trace),
	.slots = 1u << SB_SCRATCH_TRACE | 1u << SB_SCRATCH_PROBE,
	.losses = 1ull << SB_STAT_TRACE_BUSY,
	.objects_max = VALUES_MAX,
	.prefix = "trace_",
	.divisor = 1,
	.unit_of = unit_of,
	.op_name = op_name,
	.trim = sb_io_layer_trim,
	.check = check,
	.prepare = prepare,
	.attach = attach,
	.attaches = attaches,
	.thin = sb_view_thin_events,
	.report = report,
};
