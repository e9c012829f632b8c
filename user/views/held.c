// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the views of memory that is held share. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/reason.h"
#include "events/allocator.h"
#include "views/skel.h"
#include "views/views.h"

int sb_held_check(const struct sb_view_opts *opts, const char **ret_why)
{
	if (opts->probes && opts->probes->places.nr)
		return 0;
	*ret_why =
		"no file of the targets has an allocator that is known, nor probes of the provider "
		"otel_memory; name one with --allocator FILE";
	return -EINVAL;
}

const char *sb_held_unit_of(const struct sb_view_opts *opts, uint64_t *ret_divisor)
{
	if (!opts->is_of_objects)
		return NULL;
	*ret_divisor = SB_ALLOC_OBJECT;
	return SB_VIEW_UNIT_OBJECTS;
}

static bool begins_in_call(const struct sb_probe *probe)
{
	return probe->is_call;
}

static bool is_event(const struct sb_probe *probe)
{
	return !probe->is_call;
}

/* Where a function that allocates is called, and where it returns. */
static struct sb_attaching calls_of(const struct sampler_bpf *skel, const struct sb_probes *probes,
				    bool at_returns)
{
	return (struct sb_attaching){
		.probes = probes,
		.programs.of[SB_PROBE_USER] =
			at_returns ? skel->progs.latency_end : skel->progs.latency_begin,
		.at_returns = at_returns,
		.wants = begins_in_call,
	};
}

/* Where memory is given back, the probes of producers, and the tracepoints of the kernel's
 * memory. */
static struct sb_attaching events_of(const struct sampler_bpf *skel, const struct sb_probes *probes)
{
	return (struct sb_attaching){
		.probes = probes,
		.programs.of = { [SB_PROBE_USER] = skel->progs.latency_user,
				 [SB_PROBE_USDT] = skel->progs.latency_user,
				 [SB_PROBE_TRACEPOINT] = skel->progs.latency_tracepoint },
		.wants = is_event,
	};
}

/* What attaches them, also again and again (sb_view.is_sliced). */
static struct sb_attaching returns, begins, events;

int sb_held_prepare(struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	struct bpf_program *const always[] = {
		skel->progs.latency_exit,
		skel->progs.latency_exec,
		skel->progs.latency_settle,
	};
	const struct sb_probes *probes = opts->probes;
	const struct sb_attaching *const jobs[] = { &returns, &begins, &events };
	int err = sb_view_switch_on(always, SB_ARRAY_SIZE(always));
	size_t i;

	returns = calls_of(skel, probes, true);
	begins = calls_of(skel, probes, false);
	events = events_of(skel, probes);
	skel->rodata->cfg_latency_keeps_ended = opts->has_command;
	err = err ?: bpf_map__set_max_entries(skel->maps.latency_calls, SB_HELD_MAX);
	err = err ?: sb_places_make_room(skel, probes);
	err = err ?: sb_tracepoint_pairs_prepare(skel, probes);
	for (i = 0; i < SB_ARRAY_SIZE(jobs) && !err; i++)
		err = sb_attach_prepare(jobs[i]);
	return err;
}

static size_t nr_left_out(const struct sb_attaching *job)
{
	size_t i, nr = 0;

	for (i = 0; i < job->probes->places.nr; i++)
		nr += job->is_left_out[i];
	return nr;
}

/* What ends a pair before what begins it, so that none is without its end. */
int sb_held_attach(struct sampler_bpf *skel, const struct sb_view_opts *opts, sb_vec_link *links,
		   struct sb_reason *reason)
{
	const size_t nr_events = nr_left_out(&events), nr_begins = nr_left_out(&begins);
	int err = sb_places_write(skel, opts->probes, reason);

	err = err ?: sb_attach(&events, links, reason);
	err = err ?: sb_tracepoint_pairs_attach(skel, opts->probes, links, reason);
	err = err ?: sb_attach(&returns, links, reason);
	memcpy(begins.is_left_out, returns.is_left_out, sizeof(begins.is_left_out));
	begins.why = returns.why;
	err = err ?: sb_attach(&begins, links, reason);
	err = err ?: sb_attach_tell(&events, reason);
	err = err ?: sb_attach_tell(&begins, reason);
	/* Nothing is left, or there is a beginning without its end, which would count as held. */
	if (!err && returns.is_again &&
	    (!links->nr || (nr_left_out(&events) > nr_events && nr_left_out(&begins) == nr_begins)))
		err = -ENODATA;
	returns.is_again = begins.is_again = events.is_again = true;
	return err;
}

bool sb_held_attaches(struct sampler_bpf *skel, const struct bpf_program *prog)
{
	return prog == skel->progs.latency_user || prog == skel->progs.latency_begin ||
	       prog == skel->progs.latency_end || prog == skel->progs.latency_tracepoint ||
	       prog == skel->progs.latency_stacks;
}

bool sb_held_nests(const struct sampler_bpf *skel, const struct bpf_program *prog)
{
	return prog == skel->progs.latency_stacks;
}

struct bpf_program *sb_held_settle(struct sampler_bpf *skel)
{
	return skel->progs.latency_settle;
}

int sb_held_pending(const struct sampler_bpf *skel, sb_vec_stack_id *ids)
{
	return sb_pending_of_map(skel->maps.latency_calls, ids);
}

/* A trap takes as long whether its sample is taken or not. So under a limit probes are attached in
 * slices, where that takes some milliseconds only. Producers fire for samples alone. */
bool sb_held_can_slice(const struct sb_view_opts *opts, const struct bpf_program *prog)
{
	size_t i;

	for (i = 0; i < opts->probes->places.nr; i++)
		if (opts->probes->places.at[i].kind != SB_PROBE_USER)
			return false;
	return opts->is_governed && sb_probe_multi_is_on(prog);
}

bool sb_held_is_sliced(const struct sampler_bpf *skel)
{
	return skel->rodata->cfg_slices;
}

/* A run that has another source goes over to that. */
const char *sb_held_cannot_thin(const struct sampler_bpf *skel, const struct sb_view_opts *opts)
{
	(void)skel;
	return opts->fallback ? "each call is traced" : NULL;
}

/* What is followed is chosen when it is allocated, whatever its size: one of 2^step. So the weight
 * that is returned is in objects. */
uint64_t sb_held_thin(struct sampler_bpf *skel, const struct sb_view_opts *opts, uint32_t step,
		      uint64_t mean)
{
	skel->bss->thin_weight = step ? 1ull << step : 0;
	(void)opts;
	(void)mean;
	if (!step)
		return 0;
	return (uint64_t)SB_ALLOC_OBJECT << step;
}
