// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The view "trace": a stack at each of the events that the user names. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "events/probe.h"
#include "views/skel.h"
#include "views/views.h"

/* Of this run, for op_name() and report(); borrowed. */
static const struct sb_probes *events;
/* What attaches them, also again and again (sb_view.is_sliced). */
static struct sb_attaching attaching;

static struct sb_programs programs_of(const struct sampler_bpf *skel)
{
	return (struct sb_programs){ .of = {
					     [SB_PROBE_TRACEPOINT] = skel->progs.trace_tracepoint,
					     [SB_PROBE_KERNEL] = skel->progs.trace_kernel,
					     [SB_PROBE_PERF] = skel->progs.trace_counter,
					     [SB_PROBE_USER] = skel->progs.trace_user,
					     [SB_PROBE_USDT] = skel->progs.trace_user,
				     } };
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

int sb_trace_prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	const struct sb_programs programs = programs_of(skel);
	int err = sb_places_prepare(skel, opts->probes, &programs);

	events = opts->probes;
	attaching = (struct sb_attaching){ .probes = events, .programs = programs };
	return err ? err
		   : bpf_map__set_max_entries(skel->maps.trace_hits, (uint32_t)events->places.nr);
}

int sb_trace_attach(struct sampler_bpf *skel, const struct sb_view_opts *opts, sb_vec_link *links,
		    struct sb_reason *reason)
{
	int err = sb_places_attach(skel, &attaching, links, reason);

	attaching.is_again = true;
	return err;
}

bool sb_trace_attaches(struct sampler_bpf *skel, const struct bpf_program *prog)
{
	const struct sb_programs programs = programs_of(skel);

	return sb_programs_have(&programs, prog);
}

static bool is_clock(const struct sb_probe *probe)
{
	return probe->kind == SB_PROBE_PERF && sb_counter_is_clock(&probe->counter);
}

/* Return: "units" where weights have no unit that could be named: with --weight they are values of
 * an expression, and events and time have no unit in common. */
static const char *unit_of(const struct sb_view_opts *opts, uint64_t *ret_divisor)
{
	const struct sb_probes *probes = opts->probes;
	size_t i, nr_clocks = 0;

	for (i = 0; probes && i < probes->places.nr; i++)
		nr_clocks += is_clock(&probes->places.at[i]);
	if (sb_places_have_weight(probes) || (nr_clocks && nr_clocks < i))
		return "units";
	if (!nr_clocks)
		return NULL;
	*ret_divisor = 1000;
	return "us";
}

static const char *op_name(uint32_t op)
{
	return sb_places_op_name(events, op);
}

/* How often the events of one name happened to the targets, where --when is true. *@ret_is_of_glob:
 * whether the user named them by a pattern; *@ret_is_clock: whether nanoseconds were counted, and
 * not events. Both are untouched if no event has that name. */
static uint64_t hits_of(const struct sampler_bpf *skel, uint32_t name_idx, uint64_t *per_cpu,
			bool *ret_is_of_glob, bool *ret_is_clock)
{
	int nr_cpus = libbpf_num_possible_cpus(), cpu;
	uint64_t nr = 0;
	uint32_t i;

	for (i = 0; i < events->places.nr; i++) {
		const struct sb_probe *probe = &events->places.at[i];
		uint64_t each = probe->kind == SB_PROBE_PERF ? probe->counter.period : 1;

		if (probe->name_idx != name_idx ||
		    bpf_map_lookup_elem(bpf_map__fd(skel->maps.trace_hits), &i, per_cpu))
			continue;
		*ret_is_of_glob = probe->is_of_glob;
		*ret_is_clock = is_clock(probe);
		for (cpu = 0; cpu < nr_cpus; cpu++)
			nr += per_cpu[cpu] * each;
	}
	return nr;
}

static void report(const struct sampler_bpf *skel, uint64_t wall_ns,
		   void (*row)(const char *name, const char *value))
{
	sb_cleanup(sb_freep) uint64_t *per_cpu = NULL;
	int nr_cpus = libbpf_num_possible_cpus();
	double seconds = (double)wall_ns / 1e9;
	char name[SB_EVENT_FILE_BYTES], value[64];
	uint32_t i;

	if (!events || nr_cpus < 0 || !skel->maps.trace_hits)
		return;
	per_cpu = calloc((size_t)nr_cpus, sizeof(*per_cpu));
	for (i = 0; per_cpu && i < events->names.nr; i++) {
		bool is_of_glob = false, is_time = false;
		uint64_t nr = hits_of(skel, i, per_cpu, &is_of_glob, &is_time);

		if (!nr && is_of_glob)
			continue;
		if (is_time)
			snprintf(value, sizeof(value), "%.3f s of CPU time", (double)nr / 1e9);
		else
			snprintf(value, sizeof(value), "%llu times, %.1f per second",
				 (unsigned long long)nr, seconds > 0 ? (double)nr / seconds : 0);
		sb_probe_name(events, i, name, sizeof(name));
		row(name, value);
	}
}

const struct sb_view sb_view_trace = {
	.kind = SB_VIEW_KIND(trace),
	.slots = 1u << SB_SCRATCH_TRACE | 1u << SB_SCRATCH_PROBE,
	.losses = 1ull << SB_STAT_TRACE_BUSY,
	.objects_max = SB_VALUES_MAX,
	.prefix = "trace_",
	.divisor = 1,
	.unit_of = unit_of,
	.op_name = op_name,
	.trim = sb_io_layer_trim,
	.check = check,
	.prepare = sb_trace_prepare,
	.attach = sb_trace_attach,
	.attaches = sb_trace_attaches,
	.thin = sb_view_thin_events,
	.report = report,
};
