// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The view "trace": a stack at each of the events that the user names. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/num.h"
#include "base/reason.h"
#include "base/str.h"
#include "bpf/abi/sb_abi_trace.h"
#include "events/probe.h"
#include "views/skel.h"
#include "views/views.h"

/* Of the perf_event_attr.config of a probe: it is at the return; where the semaphore's offset is.
 * See /sys/bus/event_source/devices/uprobe/format. */
#define PROBE_RETURNS	1u
#define SEMAPHORE_SHIFT 32

/* The kernel's own: an instruction that a probe cannot replace. */
#define ENOTSUPP	524

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
	int err = bpf_map__set_max_entries(skel->maps.trace_places, nr);

	events = opts->probes;
	if (!err)
		err = bpf_map__set_max_entries(skel->maps.trace_hits, nr);
	for (i = 0; i < nr && !err; i++)
		err = bpf_program__set_autoload(program_of(skel, events->places.at[i].kind), true);
	return err;
}

/* Read a number of the kernel's description of its probes, "config:0" or "7". */
static int read_pmu(const char *pmu, const char *name, uint64_t *ret)
{
	sb_cleanup(sb_freep) char *text = NULL;
	char path[128];
	size_t len;
	int err;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/%s", pmu, name);
	err = sb_read_file(path, 64, &text, &len);
	if (err)
		return err;
	text[strcspn(text, "\n")] = '\0';
	return sb_parse_u64(text, UINT32_MAX, ret);
}

/* A probe of the kernel, at a function or in a file, that fires wherever it is reached. */
static int set_probe(const struct sb_probe *probe, const char *pmu, struct perf_event_attr *attr)
{
	uint64_t type;
	int err = read_pmu(pmu, "type", &type);

	if (err)
		return err == -ENOENT ? -EOPNOTSUPP : err;
	attr->type = (uint32_t)type;
	attr->config = probe->is_return ? PROBE_RETURNS : 0;
	attr->config |= probe->semaphore << SEMAPHORE_SHIFT;
	attr->config1 = (uint64_t)(uintptr_t)(probe->path ? probe->path : probe->function);
	attr->config2 = probe->offset;
	return 0;
}

static int set_attr(const struct sb_probe *probe, struct perf_event_attr *attr)
{
	switch (probe->kind) {
	case SB_PROBE_KERNEL:
		return set_probe(probe, "kprobe", attr);
	case SB_PROBE_USER:
	case SB_PROBE_USDT:
		return set_probe(probe, "uprobe", attr);
	case SB_PROBE_TRACEPOINT:
		attr->type = PERF_TYPE_TRACEPOINT;
		attr->config = probe->perf_config[0];
		return 0;
	default:
		attr->type = probe->perf_type;
		attr->config = probe->perf_config[0];
		attr->config1 = probe->perf_config[1];
		attr->config2 = probe->perf_config[2];
		attr->sample_period = probe->period;
		attr->exclude_user = probe->no_user;
		attr->exclude_kernel = probe->no_kernel;
		return 0;
	}
}

/* Attach the program of @idx to one event of the kernel, on @cpu or in the address space of @pid. */
static int attach_event(struct sampler_bpf *skel, uint32_t idx, pid_t pid, int cpu,
			sb_vec_link *links)
{
	const struct sb_probe *probe = &events->places.at[idx];
	LIBBPF_OPTS(bpf_perf_event_opts, opts, .bpf_cookie = idx);
	struct perf_event_attr attr = { .size = sizeof(attr) };
	struct bpf_link *link;
	int fd, err = set_attr(probe, &attr);

	if (err)
		return err;
	fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	link = bpf_program__attach_perf_event_opts(program_of(skel, probe->kind), fd, &opts);
	err = link ? 0 : -errno;
	if (err)
		close(fd);
	return err ? err : sb_view_keep_link(links, link);
}

/* A counter counts on each CPU. One that went offline meanwhile counts nothing. */
static int attach_counter(struct sampler_bpf *skel, uint32_t idx, sb_vec_link *links)
{
	int cpu, nr = libbpf_num_possible_cpus(), err = nr < 0 ? nr : 0;

	for (cpu = 0; cpu < nr && !err; cpu++) {
		err = attach_event(skel, idx, -1, cpu, links);
		if (err == -ENODEV)
			err = 0;
	}
	return err;
}

/* A name as it was spelled, without the brackets of its frame. */
static void name_of(uint32_t idx, char *ret, size_t size)
{
	const char *frame = events->names.at[idx];

	snprintf(ret, size, "%.*s", (int)strlen(frame) - 2, frame + 1);
}

static int explain(const struct sb_probe *probe, int err, struct sb_reason *reason)
{
	char name[SB_EVENT_FILE_BYTES];

	name_of(probe->name_idx, name, sizeof(name));
	if (err == -EMFILE || err == -ENFILE)
		return sb_reason_set(reason, err,
				     "cannot trace '%s': each place needs two descriptors; raise "
				     "'ulimit -n' or trace fewer",
				     name);
	if (probe->kind == SB_PROBE_PERF &&
	    (err == -ENOENT || err == -EOPNOTSUPP || err == -ENODEV || err == -EINVAL)) {
		sb_reason_set(
			reason, 0,
			"this machine does not count '%s'; 'stackbpf trace --list' has the "
			"counters of the kernel, such as page-faults, which every machine has",
			name);
		return -EOPNOTSUPP;
	}
	if (err == -ENOTSUPP) {
		sb_reason_set(reason, 0,
			      "cannot trace '%s': the kernel cannot hook the first instruction of "
			      "'%s'; try an offset, such as '+4'",
			      name, probe->function);
		return -EOPNOTSUPP;
	}
	if (err == -EOPNOTSUPP)
		return sb_reason_set(reason, 0,
				     "this kernel has no probes at %s (CONFIG_%s_EVENTS), so '%s' "
				     "cannot be traced",
				     probe->path ? "user functions" : "its functions",
				     probe->path ? "UPROBE" : "KPROBE", name),
		       err;
	return sb_reason_set(reason, err, "cannot trace '%s'%s%s%s", name,
			     probe->path ? " in '" : "", probe->path ? probe->path : "",
			     probe->path ? "'" : "");
}

/* What each place is, before the first event can happen. */
static int write_places(struct sampler_bpf *skel)
{
	uint32_t i;

	for (i = 0; i < events->places.nr; i++) {
		const struct sb_probe *probe = &events->places.at[i];
		struct sb_trace_place place = {
			.weight = probe->kind == SB_PROBE_PERF ? probe->period : 1,
			/* With a single name it would only repeat the title. */
			.op = events->names.nr > 1 ? probe->name_idx + 1 : 0,
		};

		if (bpf_map_update_elem(bpf_map__fd(skel->maps.trace_places), &i, &place, BPF_ANY))
			return -errno;
	}
	return 0;
}

static int attach_place(struct sampler_bpf *skel, uint32_t idx, sb_vec_link *links)
{
	const struct sb_probe *probe = &events->places.at[idx];

	if (probe->kind == SB_PROBE_PERF)
		return attach_counter(skel, idx, links);
	/* Breakpoints in one address space cost the others nothing. */
	if (probe->path && events->is_of_tgid_only)
		return attach_event(skel, idx, (pid_t)events->tgid, -1, links);
	return attach_event(skel, idx, -1, 0, links);
}

static int attach(struct sampler_bpf *skel, const struct sb_view_opts *opts, sb_vec_link *links,
		  struct sb_reason *reason)
{
	const struct sb_probe *probe, *unhooked = NULL;
	size_t nr_unhooked = 0, i;
	int err = write_places(skel);

	if (err)
		return sb_reason_set(reason, err, "cannot write the BPF map of events");
	for (i = 0; i < events->places.nr; i++) {
		probe = &events->places.at[i];
		err = attach_place(skel, (uint32_t)i, links);
		if (err == -ENOTSUPP && probe->is_of_glob) {
			unhooked = probe;
			nr_unhooked++;
		} else if (err) {
			return explain(probe, err, reason);
		}
	}
	if (nr_unhooked == events->places.nr)
		return explain(unhooked, -ENOTSUPP, reason);
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
		name_of(i, name, sizeof(name));
		row(name, value);
	}
}

const struct sb_view sb_view_trace = {
	.kind = SB_VIEW_KIND(trace),
	.slots = 1u << SB_SCRATCH_TRACE | 1u << SB_SCRATCH_PROBE,
	.losses = 1ull << SB_STAT_TRACE_BUSY,
	.prefix = "trace_",
	.divisor = 1,
	.op_name = op_name,
	.trim = sb_io_layer_trim,
	.check = check,
	.prepare = prepare,
	.attach = attach,
	.attaches = attaches,
	.thin = sb_view_thin_events,
	.report = report,
};
