// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the views of memory that is held share. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/index.h"
#include "base/reason.h"
#include "bpf/abi/sb_abi_latency.h"
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
static size_t nr_links_of_ends;

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
	nr_links_of_ends = links->nr;
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

size_t sb_held_nr_ends(void)
{
	return nr_links_of_ends;
}

/* The end of a run in which calls were traced in windows. */
struct surviving {
	const struct sampler_bpf *skel;
	struct sb_survival survival;
	struct sb_held_estimate *estimate;
	double rest; /* of pieces: what rounding left, for the next one */
};

static uint64_t stack_of(const struct sb_sample_key *key)
{
	const struct sb_stack_id ids[] = { key->ustack, key->istack };

	return sb_hash(ids, sizeof(ids), key->tgid);
}

/* Return: whether it is memory, and not a call that is still open. */
static bool is_memory(const struct sb_latency_call *call, const struct sb_held_watch *watch)
{
	return call->caller.tgid && (!call->caller.id || call->caller.id == watch->until);
}

/* Whether it is older than half of the run: the rule of is_out_of_bounds() in sb_latency.bpf.h for
 * "leak", the only view with windows. */
static bool counts(const struct surviving *surviving, const struct sb_latency_record *record)
{
	const uint64_t begin_ns = surviving->skel->bss->begin_ns;
	const uint64_t end_ns = surviving->skel->bss->end_ns;

	/* It may have begun while the end of the run was set. */
	return record->begin_ns <= end_ns && end_ns - record->begin_ns >= (end_ns - begin_ns) / 2;
}

static int add_piece(void *arg, const void *key, const void *value)
{
	struct surviving *surviving = arg;
	const struct sb_latency_record *record = value;

	if (!is_memory(key, &record->watch) || !counts(surviving, record))
		return 0;
	surviving->estimate->nr += record->watch.window != 0;
	return sb_survival_add(&surviving->survival, stack_of(&record->capture.key), &record->watch,
			       (double)record->nr);
}

/* Let a piece without proof stand for the part of it that is held; remove it if that is none. */
static int weigh_piece(void *arg, const void *key, const void *value)
{
	struct surviving *surviving = arg;
	struct sb_latency_record record = *(const struct sb_latency_record *)value;
	double part, nr;
	int fd, err;

	if (!is_memory(key, &record.watch) || record.watch.proof || !counts(surviving, &record))
		return 0;
	part = sb_survival_part(&surviving->survival, stack_of(&record.capture.key));
	nr = (double)record.nr;
	surviving->estimate->held += part * nr * (double)record.weight;
	surviving->estimate->gone += (1 - part) * nr * (double)record.weight;
	nr = nr * part + surviving->rest;
	surviving->rest = nr - floor(nr);
	if ((uint64_t)nr == record.nr)
		return 0;
	record.nr = (uint64_t)nr;
	fd = bpf_map__fd(surviving->skel->maps.latency_calls);
	err = record.nr ? bpf_map_update_elem(fd, key, &record, BPF_EXIST)
			: bpf_map_delete_elem(fd, key);
	/* Its process has just ended. */
	return err && errno != ENOENT ? -errno : 0;
}

int sb_held_survive(struct sampler_bpf *skel, const struct sb_held_windows *windows,
		    struct sb_held_estimate *ret_estimate)
{
	const uint64_t end_ns = skel->bss->end_ns;
	const uint64_t ns = end_ns > windows->first_ns ? end_ns - windows->first_ns : 0;
	const double traced = ns > windows->ns ? (double)windows->ns / (double)ns : 1;
	struct surviving surviving = { .skel = skel, .estimate = ret_estimate };
	int err = sb_map_each(skel->maps.latency_calls, add_piece, &surviving);

	ret_estimate->traced = traced;
	ret_estimate->nr_at_once = skel->bss->latency_nr_at_once;
	sb_survival_judge(&surviving.survival, traced);
	err = err ?: sb_map_each(skel->maps.latency_calls, weigh_piece, &surviving);
	sb_survival_release(&surviving.survival);
	return err;
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
