// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/session.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/time.h"
#include "capture/collector.h"
#include "capture/detach.h"
#include "capture/drain.h"
#include "capture/interpwatch.h"
#include "capture/kname.h"
#include "capture/procwatch.h"
#include "capture/rawstack.h"
#include "capture/refused.h"
#include "capture/session_priv.h"
#include "capture/targets.h"
#include "capture/unwinder.h"
#include "capture/walkers.h"
#include "symbolizer/sb_sym.h"
#include "views/skel.h"
#include "views/span.h"
#include "views/views.h"

/* How long the start waits for unwind tables and interpreters of the targets. Most take a few ms. A
 * command waits anyway, and its first milliseconds would be sampled without them. */
#define EXPECT_NS	  (500ull * SB_NS_PER_MS)
#define EXPECT_COMMAND_NS (2ull * SB_NS_PER_SEC)

static void settle_targets(struct sb_session *session)
{
	uint64_t until_ns = sb_now_ns() + (session->opts.command ? EXPECT_COMMAND_NS : EXPECT_NS);
	const struct timespec until = sb_ns_timespec(until_ns);

	if (session->unwinder)
		sb_unwinder_settle(session->unwinder, &until);
	if (session->interps)
		sb_interpwatch_settle(session->interps, &until);
}

/* Whether the session attaches the program to what its section names. */
static bool is_for_attach(const struct sb_session *session, const struct bpf_program *prog)
{
	const struct sb_views *views = &session->opts.views;
	size_t i;

	if (!bpf_program__autoload(prog) || prog == session->timer ||
	    prog == session->skel->progs.proc_fork || prog == session->skel->progs.kernel_name ||
	    sb_span_attaches(session->skel, prog) ||
	    bpf_program__expected_attach_type(prog) == BPF_TRACE_ITER)
		return false;
	for (i = 0; i < views->nr; i++)
		if (views->at[i]->attaches && views->at[i]->attaches(session->skel, prog))
			return false;
	return true;
}

/* The first of all, so that the helper processes have their rule before anything is sampled. */
static int follow_processes(struct sb_session *session)
{
	struct bpf_link *link = sb_view_attach(session->skel->progs.proc_fork);
	int err = sb_view_keep_link(&session->links, link);

	if (err)
		return sb_explain(session->opts.reason, err,
				  "attach the BPF program that follows forks");
	err = sb_targets_follow_existing(session->opts.targets, session->skel,
					 &session->nr_left_out);
	return err ? sb_reason_set(session->opts.reason, err,
				   "cannot list the running processes in '/proc'")
		   : 0;
}

static int attach_others(struct sb_session *session)
{
	const struct sb_views *views = &session->opts.views;
	struct bpf_program *prog;
	struct bpf_link *link;
	size_t i;
	int err;

	/* At each switch, the span's program is to run before the view's. */
	err = sb_span_attach(session->skel, &session->opts.view_opts, &session->links,
			     session->opts.reason);
	if (err)
		return err;
	bpf_object__for_each_program(prog, session->skel->obj) {
		if (!is_for_attach(session, prog))
			continue;
		link = sb_view_attach(prog);
		/* It is optional: without it, mappings that replace others of the same size are
		 * noticed later. */
		if (!link && errno == ENOENT && prog == session->skel->progs.proc_mapped)
			continue;
		err = sb_view_keep_link(&session->links, link);
		if (err)
			return sb_reason_set(
				session->opts.reason, err,
				"cannot attach the BPF program '%s'; 'stackbpf doctor' "
				"shows what this kernel lacks",
				bpf_program__name(prog));
	}
	for (i = 0; i < views->nr && !err; i++)
		if (views->at[i]->attach && !sb_session_is_sliced(session, views->at[i]))
			err = views->at[i]->attach(session->skel, &session->opts.view_opts,
						   &session->links, session->opts.reason);
	return err;
}

/*
 * A process that runs already may end, or fork a child that ends, before its first sample is looked
 * at; then nothing would be known of it. So all processes are read now. Processes that are given by
 * number are few, and are read at their first sample.
 */
static int seed_existing(struct sb_session *session)
{
	const struct sb_targets *targets = session->opts.targets;
	int err;

	if ((targets->tgids.nr || targets->tids.nr) && !targets->follow_children)
		return 0;
	err = sb_symbolizer_seed_all(session->opts.symbolizer, sb_now_ns());
	return err ? sb_reason_set(session->opts.reason, err,
				   "cannot read the mappings of the running processes in '/proc'")
		   : 0;
}

static void find_programs(struct sb_session *session)
{
	const struct sb_views *views = &session->opts.views;
	size_t i;

	/* sb_views_add() makes sure that no two views have the same of these. */
	for (i = 0; i < views->nr; i++) {
		const struct sb_view *view = views->at[i];

		if (view->timer)
			session->timer = view->timer(session->skel);
		if (view->begin)
			session->begin = view->begin(session->skel);
		if (view->settle)
			session->settle = view->settle(session->skel);
		session->begins_with_timer |= view->timer && view->begin;
	}
}

static void how_to_unwind(const struct sb_session *session, struct sb_rawstacks_into *ret_into)
{
	*ret_into = (struct sb_rawstacks_into){
		.modes = session->opts.unwind,
		.depth_max = session->opts.depth_max,
		.interp = session->opts.interp,
		.add = sb_drain_add,
		.arg = session->drain,
	};
}

/* Called when the stacks of sleeping threads take too much memory to wait for the next drain. */
static int unwind_asleep(void *arg)
{
	struct sb_session *session = arg;
	struct sb_symbolizer *sym = session->opts.symbolizer;
	struct sb_rawstacks_into into;
	int err = sb_procwatch_drain(session->procwatch, sym, session->opts.processes);

	how_to_unwind(session, &into);
	into.add = sb_drain_add_early;
	into.is_asleep = true;
	if (!err)
		err = sb_rawstacks_unwind(&session->asleep.raw, sym, &into);
	sb_rawstacks_clear(&session->asleep.raw);
	return err;
}

/* Run one of the view's iterators over all tasks. */
static int iterate(struct sb_session *session, const struct bpf_program *prog,
		   void (*found)(void *arg))
{
	int err = prog ? sb_asleep_run(&session->asleep, prog, found) : 0;

	return err ? sb_explain(session->opts.reason, err, "iterate over the existing threads") : 0;
}

int sb_session_sum_stats(const struct sb_session *session, uint64_t *stat)
{
	int nr_cpus = libbpf_num_possible_cpus(), cpu, i;
	const uint64_t *vals = session->stats;
	const uint32_t zero = 0;

	if (bpf_map_lookup_elem(bpf_map__fd(session->skel->maps.stats), &zero, session->stats))
		return -errno;
	for (cpu = 0; cpu < nr_cpus; cpu++, vals += SB_STAT_MAX) {
		for (i = 0; i < SB_STAT_MAX; i++)
			stat[i] += vals[i];
		stat[SB_STAT_RUN_NS] += vals[SB_STAT_FAULTS_NS];
	}
	return 0;
}

static uint64_t bpf_ns(const struct sb_session *session)
{
	uint64_t stat[SB_STAT_MAX] = {};

	(void)sb_session_sum_stats(session, stat); /* what cannot be read is said at the end */
	return stat[SB_STAT_RUN_NS];
}

/* The end is set here, too: until the caller can say it, samples would be taken beyond it. */
static void begin_now(void *arg)
{
	struct sb_session *session = arg;

	session->began_ns = sb_now_ns();
	if (session->opts.time_ns)
		session->skel->bss->end_ns = session->began_ns + session->opts.time_ns;
	session->skel->bss->begin_ns = session->began_ns;
}

/* Timer samples are taken from now on; waits count from when the iterator is through. */
static int begin_by_iterator(struct sb_session *session)
{
	int err = seed_existing(session);

	if (!err && session->begins_with_timer)
		err = sb_session_attach_timers(session);
	if (!err)
		err = iterate(session, session->begin, begin_now);
	if (!err && !session->begins_with_timer)
		err = sb_session_attach_timers(session);
	return err;
}

static int begin_at_once(struct sb_session *session)
{
	int err = sb_session_attach_timers(session);

	if (err)
		return err;
	begin_now(session);
	return seed_existing(session);
}

/* What the targets have when the run begins: pages, and objects of Go. Pages of others are looked
 * at when they first fault. */
static int expect_held(struct sb_session *session)
{
	const struct sb_targets *targets = session->opts.targets;
	size_t i;
	int err = 0;

	for (i = 0; i < targets->tgids.nr && !err; i++) {
		const uint32_t tgid = targets->tgids.at[i].pid, rule = targets->tgids.at[i].rule;
		const bool is_new = rule & SB_RULE_AT_EXEC;

		if (!(rule & SB_RULE_ALLOW))
			continue;
		if (session->resident && !is_new)
			err = sb_resident_expect(session->resident, tgid);
		if (session->goheap && !err)
			err = sb_goheap_expect(session->goheap, tgid, is_new);
		/* It has counts also if it has no page fault that would announce it. */
		if (session->goheap && !is_new && !err)
			err = sb_symbolizer_seed_unknown(session->opts.symbolizer, sb_now_ns(),
							 &tgid, 1);
	}
	return err ? sb_reason_set(session->opts.reason, err,
				   "cannot count the pages that the targets have already")
		   : 0;
}

int sb_session_start(struct sb_session *session)
{
	size_t i;
	int err;

	session->asleep.unwind = unwind_asleep;
	session->asleep.arg = session;
	find_programs(session);
	session->skel->bss->begin_ns = session->begin ? UINT64_MAX : 0;
	err = follow_processes(session);
	if (!err)
		err = attach_others(session);
	if (err)
		return err;
	for (i = 0; i < session->opts.views.nr && !session->trap_ns; i++)
		if (session->opts.views.at[i]->kind->options & SB_VIEW_ALLOCS)
			session->trap_ns = sb_trap_ns();
	if (session->links.nr > 1)
		session->links_root = sb_links_prepare();
	settle_targets(session);
	err = session->begin ? begin_by_iterator(session) : begin_at_once(session);
	if (err)
		return err;
	err = expect_held(session);
	if (err)
		return err;
	sb_thinning_add_ration(&session->thinning, sb_symbolizer_ration(session->opts.symbolizer));
	if (session->unwinder)
		sb_thinning_add_ration(&session->thinning, sb_unwinder_ration(session->unwinder));
	if (session->interps)
		sb_thinning_add_ration(&session->thinning, sb_interpwatch_ration(session->interps));
	sb_thinning_start(&session->thinning, bpf_ns(session));
	return sb_session_begin_slices(session);
}

uint64_t sb_session_began_ns(const struct sb_session *session)
{
	return session->began_ns;
}

int sb_session_poll_fd(const struct sb_session *session)
{
	return sb_drain_poll_fd(session->drain);
}

static bool saw_enough(const struct sb_session *session)
{
	const struct sb_slices *slices = &session->slices;
	const struct sb_tracing_seen seen = {
		.run_ns = session->skel->bss->end_ns - session->began_ns,
		.nr_slices = slices->slicer.stats.nr,
		.nr_pieces = slices->estimate.nr,
		.nr_at_once = slices->estimate.nr_at_once,
		.call_bytes = session->weights[0],
		.page_bytes = session->weights[1],
	};

	return sb_tracing_saw_enough(&slices->tracing, &seen);
}

/* Return: whether pages hold so much more than calls explain that calls see the lesser part of a
 * runtime's memory. A slice slows a busy program down, so that sums of slices are often less than
 * half of the truth. */
static bool is_blind(const struct sb_session *session)
{
	const uint64_t times = session->slices.tracing.is_sampled ? 4 : 2;

	return session->opts.view_opts.fallback == SB_FALLBACK_IF_BLIND &&
	       session->weights[0] < session->weights[1] / times;
}

/* At the end of a run with a fallback: keep the counts of the calls that were traced, or those of
 * the pages. */
static void choose_source(struct sb_session *session)
{
	struct sb_tracing *tracing = &session->slices.tracing;
	uint64_t *weights = session->weights, stat[SB_STAT_MAX] = {};
	uint32_t i;

	for (i = 0; i < SB_ARRAY_SIZE(session->weights); i++)
		weights[i] += sb_drain_weight(session->drain, i);
	/* What had no room since the last look. */
	if (!tracing->end && !sb_session_sum_stats(session, stat) && stat[SB_STAT_CALLS_FULL])
		sb_tracing_give_up(tracing, SB_TRACING_FULL);
	if (tracing->is_sampled && !tracing->end && !saw_enough(session))
		sb_tracing_give_up(tracing, SB_TRACING_UNSEEN);
	if (!tracing->end && is_blind(session))
		sb_tracing_give_up(tracing, SB_TRACING_BLIND);
	sb_drain_keep(session->drain, sb_session_shown(session));
}

uint32_t sb_session_shown(const struct sb_session *session)
{
	return session->slices.tracing.end ? 1 : 0;
}

int sb_session_drain(struct sb_session *session, const struct sb_batch **ret_batch)
{
	struct sb_symbolizer *sym = session->opts.symbolizer;
	struct sb_rawstacks_into into;
	const uint32_t *tgids;
	size_t nr_tgids;
	int err;

	how_to_unwind(session, &into);
	err = sb_drain_run(session->drain);
	if (err)
		return err;
	err = sb_procwatch_drain(session->procwatch, sym, session->opts.processes);
	if (err)
		return err;
	tgids = sb_drain_processes(session->drain, &nr_tgids);
	/* If one is gone or cannot be read, its frames will have that as their reason. */
	err = sb_symbolizer_seed_unknown(sym, sb_now_ns(), tgids, nr_tgids);
	if (!err)
		err = sb_rawstacks_unwind(sb_drain_raw(session->drain), sym, &into);
	into.is_asleep = true;
	if (!err)
		err = sb_rawstacks_unwind(&session->asleep.raw, sym, &into);
	if (!err && session->resident)
		err = sb_drain_resident(session->drain, session->resident);
	if (!err && session->interps)
		err = sb_interpwatch_drain(session->interps, sb_drain_add, session->drain);
	if (err)
		return err;
	if (session->has_ended && session->opts.view_opts.fallback)
		choose_source(session);
	if (session->goheap)
		err = sb_goheap_counts(session->goheap, session->drain, sb_session_shown(session));
	if (err)
		return err;
	sb_rawstacks_clear(&session->asleep.raw);
	sb_drain_batch(session->drain, &session->batch);
	if (session->interps)
		session->batch.nr_labels =
			sb_interpwatch_take_labels(session->interps, &session->batch.labels);
	err = session->spans ? sb_spans_judge(session->spans, &session->batch) : 0;
	if (err)
		return err;
	*ret_batch = &session->batch;
	return 0;
}

/* With a fallback, which of the two views is the result is not known before the end, unless it has
 * given up. */
int sb_session_settle(struct sb_session *session)
{
	const bool is_traced = session->opts.view_opts.fallback;
	const bool has_given_up = is_traced && session->slices.tracing.end;
	const bool is_open = is_traced && !has_given_up && !session->has_ended;
	int err = session->resident && !is_open ? sb_resident_look(session->resident) : 0;

	if (err)
		return sb_explain(session->opts.reason, err, "look at the pages of processes");
	if (session->goheap && !is_open)
		sb_goheap_look(session->goheap, session->resident);
	if (has_given_up || is_open)
		return 0;
	err = session->has_ended ? sb_session_survive(session) : 0;
	return err ? err : iterate(session, session->settle, NULL);
}

int sb_session_pending(struct sb_session *session, const struct sb_stack_id **ret_ids,
		       size_t *ret_nr)
{
	const struct sb_views *views = &session->opts.views;
	size_t i;
	int err = 0;

	session->pending.nr = 0;
	for (i = 0; i < views->nr && !err; i++)
		if (views->at[i]->pending)
			err = views->at[i]->pending(session->skel, &session->pending);
	if (!err && session->spans)
		err = sb_spans_pending(session->spans, &session->pending);
	if (!err && session->resident)
		err = sb_resident_pending(session->resident, &session->pending);
	*ret_ids = session->pending.at;
	*ret_nr = session->pending.nr;
	return err ? sb_explain(session->opts.reason, err, "list the stacks of pending events") : 0;
}

uint64_t sb_session_held_since_ns(const struct sb_session *session)
{
	uint64_t of_spans = session->spans ? sb_spans_oldest_ns(session->spans) : UINT64_MAX;
	uint64_t of_pages =
		session->resident ? sb_resident_oldest_ns(session->resident) : UINT64_MAX;
	const struct sb_view_kind *kind = session->opts.views.at[0]->kind;

	/* What its processes held when they ended comes at the end of the run. */
	if (session->opts.view_opts.has_command && kind->options & SB_VIEW_HELD)
		return session->began_ns;
	return of_spans < of_pages ? of_spans : of_pages;
}

int sb_session_forget(struct sb_session *session, const struct sb_batch_evicted *evicted)
{
	const struct sampler_bpf *skel = session->skel;
	const uint32_t unwanted = SB_OBJECT_UNWANTED;
	size_t i;

	for (i = 0; i < evicted->nr_unwanted; i++)
		if (bpf_map_update_elem(bpf_map__fd(skel->maps.objects_seen), &evicted->unwanted[i],
					&unwanted, BPF_ANY))
			return -errno;
	/* A key that is not in the map is no error. */
	for (i = 0; i < evicted->nr_stacks; i++)
		bpf_map_delete_elem(bpf_map__fd(skel->maps.stacks_seen), &evicted->stacks[i]);
	for (i = 0; i < evicted->nr_labels; i++)
		bpf_map_delete_elem(bpf_map__fd(skel->maps.labels_seen), &evicted->labels[i]);
	return 0;
}

static void detach(struct sb_session *session)
{
	size_t i;

	sb_thinning_forget_timers(&session->thinning);
	for (i = 0; i < session->timers.nr; i++)
		sb_view_destroy_link(&session->timers.at[i]);
	session->timers.nr = session->timer_cpus.nr = 0;
	sb_session_end_slices(session);
	sb_links_release(&session->links, session->links_root);
}

static int end_spans(struct sb_session *session)
{
	int err = sb_spans_end(session->spans);

	return err ? sb_explain(session->opts.reason, err, "look at the spans that are open") : 0;
}

int sb_session_stop(struct sb_session *session)
{
	const uint64_t now_ns = sb_now_ns();
	int err;

	/* It may end before its time, of which half is something else then. */
	if (!session->skel->bss->end_ns || session->skel->bss->end_ns > now_ns)
		session->skel->bss->end_ns = now_ns;
	session->has_ended = true;
	err = sb_session_settle(session);
	if (!err && session->spans)
		err = end_spans(session);
	detach(session);
	return err;
}

void sb_session_free(struct sb_session *session)
{
	if (!session)
		return;
	detach(session);
	sb_closep(&session->links_root);
	sb_asleep_release(&session->asleep);
	sb_vec_release(&session->pending);
	sb_vec_release(&session->timers);
	sb_thinning_release(&session->thinning);
	sb_vec_release(&session->links);
	sb_vec_release(&session->slices.links);
	sb_closep(&session->slices.fd);
	sb_procwatch_free(session->procwatch);
	/* First those whose threads call the ones that follow. */
	sb_unwinder_free(session->unwinder);
	sb_interpwatch_free(session->interps);
	sb_walkers_free(session->walkers);
	sb_collector_free(session->collector);
	sb_drain_free(session->drain);
	sb_spans_free(session->spans);
	sb_resident_free(session->resident);
	sb_goheap_free(session->goheap);
	sb_kname_free(session->kname);
	sampler_bpf__destroy(session->skel);
	sb_vec_release(&session->cpus);
	sb_vec_release(&session->timer_cpus);
	sb_vec_release(&session->online_cpus);
	if (session->hotplug_fd >= 0)
		close(session->hotplug_fd);
	free(session->stats);
	free(session);
}

void sb_session_govern(struct sb_session *session, const uint64_t *means)
{
	/* While calls are traced, that alone decides: tracing.h. */
	if (!session->opts.view_opts.fallback || !session->slices.view ||
	    session->slices.tracing.is_sampled)
		sb_thinning_tick(&session->thinning, bpf_ns(session), means);
}

/* Whether a program belongs to the view. Programs that all views share count for the first one. */
static bool is_of_view(const struct sb_session *session, uint32_t view, const char *program)
{
	const struct sb_views *views = &session->opts.views;
	size_t i;

	for (i = 0; i < views->nr; i++)
		if (!strncmp(program, views->at[i]->prefix, strlen(views->at[i]->prefix)))
			return i == view;
	return view == 0;
}

static uint64_t recursion_misses(const struct sb_session *session, uint32_t number)
{
	const struct sb_view *view = session->opts.views.at[number];
	struct bpf_program *prog;
	uint64_t nr = 0;

	bpf_object__for_each_program(prog, session->skel->obj) {
		struct bpf_prog_info info = {};
		uint32_t len = sizeof(info);

		if (!bpf_program__autoload(prog) ||
		    !is_of_view(session, number, bpf_program__name(prog)) ||
		    (view->nests && view->nests(session->skel, prog)))
			continue;
		if (!bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &len))
			nr += info.recursion_misses;
	}
	return nr;
}

static uint64_t lost_of_view(const struct sb_session *session, uint32_t view,
			     const struct sb_session_stats *stats)
{
	const uint64_t losses = session->opts.views.at[view]->losses;
	uint64_t nr = session->skel->bss->view_lost[view] + stats->nr_skipped_recursion;
	unsigned int i;

	for (i = 0; i < SB_STAT_MAX; i++)
		if (losses & (1ull << i))
			nr += stats->stat[i];
	return nr + stats->spans.nr_samples_full + stats->resident.nr_unowned;
}

/* Of a run with a fallback: figures of the two sources, without what only the other view lost. */
static void leave_out_other(const struct sb_session *session, uint32_t view,
			    struct sb_session_stats *stats)
{
	uint64_t losses = session->opts.views.at[1 - view]->losses;
	unsigned int i;

	for (i = 0; i < SB_STAT_MAX; i++)
		if (losses & (1ull << i))
			stats->stat[i] = 0;
	sb_tracing_stats(&session->slices.tracing, &stats->tracing);
	stats->estimate = session->slices.estimate;
	stats->tracing.calls = session->weights[0];
	stats->tracing.pages = session->weights[1];
	stats->tracing.nr_slices = session->slices.slicer.stats.nr;
}

void sb_session_stats(const struct sb_session *session, uint32_t view,
		      struct sb_session_stats *ret_stats)
{
	const struct sb_view *of = session->opts.views.at[view];
	struct sb_procwatch_stats watch;

	*ret_stats = (struct sb_session_stats){
		.nr_skipped_recursion = recursion_misses(session, view),
		.first_sample_ns = session->skel->bss->first_sample_ns,
		.nr_cpus = (uint32_t)session->cpus.nr,
		.freq_hz = session->opts.freq_hz,
		.nr_cpus_went = session->nr_cpus_went,
		.nr_cpus_came = session->nr_cpus_came,
		.nr_cpus_refused = session->nr_cpus_refused,
	};
	ret_stats->err = sb_session_sum_stats(session, ret_stats->stat);
	if (session->opts.view_opts.fallback)
		leave_out_other(session, view, ret_stats);
	ret_stats->stat[SB_STAT_FORK_FULL] += session->nr_left_out;
	if (session->spans)
		sb_spans_stats(session->spans, &ret_stats->spans);
	if (session->resident && of->follows_pages)
		sb_resident_stats(session->resident, &ret_stats->resident);
	if (session->goheap)
		sb_goheap_stats(session->goheap, &ret_stats->goheap);
	ret_stats->nr_lost = lost_of_view(session, view, ret_stats);
	ret_stats->nr_asleep = session->asleep.nr;
	ret_stats->nr_asleep_lost = session->asleep.nr_lost;
	if (session->trap_ns)
		ret_stats->probe_cost_ns = sb_probe_cost_ns(ret_stats->stat, session->trap_ns);
	if (of->expected)
		ret_stats->expected = of->expected(session->skel);
	sb_procwatch_stats(session->procwatch, &watch);
	if (session->unwinder)
		sb_unwinder_stats(session->unwinder, &ret_stats->unwinder);
	if (session->interps)
		sb_interpwatch_stats(session->interps, &ret_stats->interps);
	sb_drain_stats(session->drain, &ret_stats->drain);
	sb_thinning_stats(&session->thinning, view, &ret_stats->thinning);
	if (sb_session_is_sliced(session, of))
		sb_slicer_stats(&session->slices.slicer, &ret_stats->slices);
	/* Before slices, the probes were attached all the time. */
	if (ret_stats->tracing.is_sampled) {
		ret_stats->slices.attached_ns += ret_stats->tracing.traced_ns;
		ret_stats->slices.covered_ns += ret_stats->tracing.traced_ns;
	}
	ret_stats->nr_sideband_records = watch.nr_records;
	ret_stats->nr_sideband_lost = watch.nr_lost;
	ret_stats->nr_sideband_skipped = watch.nr_skipped;
	ret_stats->nr_skipping = watch.nr_skipping;
	ret_stats->nr_skipped_seen = watch.nr_skipped_seen;
	ret_stats->nr_skipping_seen = watch.nr_skipping_seen;
	memcpy(ret_stats->skipping, watch.skipping, sizeof(watch.skipping));
	ret_stats->nr_no_fd = watch.nr_no_fd;
}

void sb_session_report(const struct sb_session *session, uint32_t view, uint64_t wall_ns,
		       void (*row)(const char *name, const char *value))
{
	if (session->opts.views.at[view]->report)
		session->opts.views.at[view]->report(session->skel, wall_ns, row);
}
