// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Attaching of programs to the places of events, for views that take events. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/num.h"
#include "base/reason.h"
#include "events/probe.h"
#include "views/views.h"

/* Of the perf_event_attr.config of a probe: it is at the return; where the semaphore's offset is.
 * See /sys/bus/event_source/devices/uprobe/format. */
#define PROBE_RETURNS	1u
#define SEMAPHORE_SHIFT 32

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
	attr->config1 = (uint64_t)(uintptr_t)(probe->path ? probe->link : probe->function);
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
		attr->config = probe->id;
		return 0;
	default:
		sb_counter_set_attr(&probe->counter, attr);
		return 0;
	}
}

int sb_probe_open(const struct sb_probe *probe, pid_t pid, int cpu)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	int fd, err = set_attr(probe, &attr);

	if (err)
		return err;
	fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int sb_probe_attach(const struct sb_probe *probe, const struct sb_probe_hook *hook,
		    sb_vec_link *links)
{
	LIBBPF_OPTS(bpf_perf_event_opts, opts, .bpf_cookie = hook->cookie);
	int err, fd = sb_probe_open(probe, hook->pid, hook->cpu);
	struct bpf_link *link;

	if (fd < 0)
		return fd;
	link = bpf_program__attach_perf_event_opts(hook->program, fd, &opts);
	err = link ? 0 : -errno;
	if (err)
		close(fd);
	return err ? err : sb_view_keep_link(links, link);
}

uint64_t sb_probe_cookie(const struct sb_probe *probe, uint32_t idx)
{
	return idx | (probe->returns.nr ? SB_COOKIE_GO : 0);
}

bool sb_probe_is_at_returns(const struct sb_attaching *job, const struct sb_probe *probe)
{
	return probe->returns.nr && (probe->is_return || job->at_returns);
}

/* A name as it was spelled, without the brackets of its frame. */
void sb_probe_name(const struct sb_probes *probes, uint32_t idx, char *ret, size_t size)
{
	const char *frame = probes->names.at[idx];

	snprintf(ret, size, "%.*s", (int)strlen(frame) - 2, frame + 1);
}

int sb_probe_explain(const struct sb_probes *probes, const struct sb_probe *probe, int err,
		     struct sb_reason *reason)
{
	char name[SB_EVENT_FILE_BYTES];

	sb_probe_name(probes, probe->name_idx, name, sizeof(name));
	if (err == -EMFILE || err == -ENFILE)
		return sb_reason_set(reason, err,
				     "cannot trace '%s': each place needs two descriptors", name);
	if (probe->kind == SB_PROBE_PERF && sb_counter_explain(name, err, reason))
		return -EOPNOTSUPP;
	if (err == -SB_ENOTSUPP) {
		sb_reason_set(reason, 0,
			      "cannot trace '%s': the kernel cannot hook the first instruction of "
			      "'%s'; try an offset, such as '+4'",
			      name, probe->function);
		return -EOPNOTSUPP;
	}
	if (err == -EILSEQ) {
		sb_reason_set(reason, 0,
			      "cannot trace '%s': no instruction begins at this offset of '%s'; "
			      "leave out the offset",
			      name, probe->function);
		return -EINVAL;
	}
	if (err == -EOPNOTSUPP)
		return sb_reason_set(reason, 0,
				     "this kernel has no probes at %s (CONFIG_%s_EVENTS), so '%s' "
				     "cannot be traced; 'stackbpf trace --list' shows tracepoints",
				     probe->path ? "user functions" : "its functions",
				     probe->path ? "UPROBE" : "KPROBE", name),
		       err;
	return sb_reason_set(reason, err, "cannot trace '%s'%s%s%s", name,
			     probe->path ? " in '" : "", probe->path ? probe->path : "",
			     probe->path ? "'" : "");
}
