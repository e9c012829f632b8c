// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Attaching programs to all places of a run: together where the kernel can (probe_multi.c), else
 * one by one (probes.c). */
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "base/log.h"
#include "base/reason.h"
#include "events/probe.h"
#include "views/views.h"

/* Places of a link while one that the kernel refuses is looked for. */
#define SOME 32u

static bool is_wanted(const struct sb_attaching *job, const struct sb_probe *probe)
{
	return !job->wants || job->wants(probe);
}

int sb_attach_prepare(const struct sb_attaching *job)
{
	struct bpf_program *program;
	unsigned int kind;
	size_t i;
	int err = 0;

	for (i = 0; i < job->probes->places.nr && !err; i++)
		if (is_wanted(job, &job->probes->places.at[i]))
			err = bpf_program__set_autoload(
				job->programs.of[job->probes->places.at[i].kind], true);
	for (kind = 0; kind < SB_PROBE_KIND_MAX && !err; kind++) {
		program = job->programs.of[kind];
		if (program && sb_probe_multi_can(kind, job->probes) &&
		    !sb_probe_multi_is_on(program))
			err = sb_probe_multi_prepare(program, kind);
	}
	return err;
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

/* The period is 1, for which the kernel never throttles a counter (perf_swevent_overflow() in
 * kernel/events/core.c). */
int sb_view_attach_faults(const struct bpf_program *program, sb_vec_link *links,
			  struct sb_reason *reason)
{
	const struct sb_probe probe = {
		.kind = SB_PROBE_PERF,
		.counter = { .type = PERF_TYPE_SOFTWARE,
			     .config = { PERF_COUNT_SW_PAGE_FAULTS },
			     .period = 1 },
	};
	struct sb_probe_hook hook = { .program = program, .pid = -1 };
	const int err = attach_counter(&probe, &hook, links);

	return err ? sb_reason_set(reason, err,
				   "cannot count page faults with perf events; 'stackbpf doctor' "
				   "shows what this kernel lacks")
		   : 0;
}

static int attach_place(const struct sb_attaching *job, uint32_t idx, sb_vec_link *links)
{
	struct sb_probe probe = job->probes->places.at[idx]; /* strings are borrowed */
	struct sb_probe_hook hook = { job->programs.of[probe.kind], sb_probe_cookie(&probe, idx),
				      -1, 0 };
	size_t i;
	int err = 0;

	if (probe.kind == SB_PROBE_PERF)
		return attach_counter(&probe, &hook, links);
	/* Breakpoints in one address space cost the others nothing. */
	if (probe.path && job->probes->is_of_tgid_only) {
		hook.pid = (pid_t)job->probes->tgid;
		hook.cpu = -1;
	}
	if (!sb_probe_is_at_returns(job, &probe)) {
		probe.is_return |= job->at_returns;
		return sb_probe_attach(&probe, &hook, links);
	}
	probe.is_return = false;
	for (i = 0; i < probe.returns.nr && !err; i++) {
		probe.offset = probe.returns.at[i];
		err = sb_probe_attach(&probe, &hook, links);
	}
	return err;
}

/* A function of a glob that the kernel cannot hook does not keep the others from being hooked;
 * whoever made its file does not either. */
static bool can_leave_out(const struct sb_probe *probe, int err)
{
	if (!probe->is_of_glob)
		return false;
	/* Of functions of the kernel some are forbidden, and some names are those of several. */
	return err == -SB_ENOTSUPP || (probe->path && (err == -EINVAL || err == -EIO)) ||
	       (probe->kind == SB_PROBE_KERNEL &&
		(err == -EINVAL || err == -ESRCH || err == -ENOENT || err == -EADDRNOTAVAIL));
}

static bool is_together(const struct sb_probe *a, const struct sb_probe *b)
{
	if (a->kind != b->kind || a->is_return != b->is_return || !a->path != !b->path ||
	    !a->returns.nr != !b->returns.nr)
		return false;
	return !a->path || !strcmp(a->link, b->link);
}

/* Which places, from @first on, can be attached by one link with it. Return: how many. */
static size_t gather(const struct sb_attaching *job, size_t first, const bool *is_done,
		     uint32_t *ret_idx)
{
	const struct sb_probe *at = job->probes->places.at;
	size_t i, nr = 0;

	for (i = first; i < job->probes->places.nr; i++)
		if (!is_done[i] && is_together(&at[first], &at[i]))
			ret_idx[nr++] = (uint32_t)i;
	return nr;
}

static void leave_out(struct sb_attaching *job, uint32_t idx, int err)
{
	job->is_left_out[idx] = true;
	job->why = job->probes->places.at[idx].path ? err : -SB_ENOTSUPP;
}

/*
 * Attach to places together, or one by one. The kernel does not say which of them it refused, and
 * takes 0.1 s to take back the others of the link. So all are tried, then some, then single ones
 * until the one is found.
 */
static int attach_gathered(struct sb_attaching *job, const uint32_t *idx, size_t nr,
			   sb_vec_link *links, struct sb_reason *reason)
{
	const struct sb_probe *probe = &job->probes->places.at[idx[0]];
	bool is_multi = sb_probe_multi_is_on(job->programs.of[probe->kind]);
	size_t at, tried, most = is_multi ? nr : 1;
	int err;

	for (at = 0; at < nr; at += err && tried > 1 ? 0 : tried) {
		tried = nr - at < most ? nr - at : most;
		probe = &job->probes->places.at[idx[at]];
		err = is_multi ? sb_probe_multi_attach(job, idx + at, tried, links)
			       : attach_place(job, idx[at], links);
		/* Somebody has changed the file, who is not to end the run. */
		if (err && err != -ESRCH && job->is_again) {
			while (at < nr)
				leave_out(job, idx[at++], err);
		} else if (err && tried == 1) {
			if (!can_leave_out(probe, err))
				return sb_probe_explain(job->probes, probe, err, reason);
			leave_out(job, idx[at], err);
			most = is_multi ? SOME : 1;
		} else if (err) {
			most = tried > SOME ? SOME : 1;
		}
	}
	return 0;
}

int sb_attach(struct sb_attaching *job, sb_vec_link *links, struct sb_reason *reason)
{
	bool is_done[SB_PROBES_MAX];
	uint32_t idx[SB_PROBES_MAX];
	size_t i, k, nr;
	int err = 0;

	for (i = 0; i < job->probes->places.nr; i++)
		is_done[i] = job->is_left_out[i] || !is_wanted(job, &job->probes->places.at[i]);
	for (i = 0; i < job->probes->places.nr && !err; i++) {
		if (is_done[i])
			continue;
		nr = gather(job, i, is_done, idx);
		for (k = 0; k < nr; k++)
			is_done[idx[k]] = true;
		err = attach_gathered(job, idx, nr, links, reason);
	}
	return err;
}

int sb_attach_tell(struct sb_attaching *job, struct sb_reason *reason)
{
	const struct sb_probes *probes = job->probes;
	const struct sb_probe *last = NULL;
	size_t nr = 0, i;

	for (i = 0; i < probes->places.nr; i++)
		if (job->is_left_out[i]) {
			last = &probes->places.at[i];
			nr++;
		}
	if (nr == job->nr_told)
		return 0;
	job->nr_told = nr;
	if (nr == probes->places.nr && !job->is_again)
		return sb_probe_explain(probes, last, job->why, reason);
	sb_warn("%zu of %zu functions are not traced%s, such as '%s': %s", nr, probes->places.nr,
		job->is_again ? " any more" : "", last->function,
		job->why == -SB_ENOTSUPP ? "the kernel cannot hook their first instruction"
					 : strerror(-job->why));
	return nr == probes->places.nr ? -ENODATA : 0;
}
