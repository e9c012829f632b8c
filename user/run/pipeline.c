// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Both ends of the pipeline: the session drains samples from the kernel, and the resolver puts them
 * into the profile. When one side evicts something, the other one is told.
 */
#include <string.h>
#include <sys/resource.h>

#include "base/fs.h"
#include "base/time.h"
#include "interp/core/interp.h"
#include "run/run_priv.h"
#include "symbolizer/process/reader.h"

/* Beyond them names and frames of a run without end are forgotten and found again. */
#define FRAMES_MAX     (1u << 15)
#define TEXT_BYTES_MAX (4u << 20)

static void describe_views(const struct sb_run_config *config, struct sb_resolve_view *ret_views)
{
	const struct sb_views *views = &config->views;
	size_t i;

	for (i = 0; i < views->nr; i++) {
		const struct sb_view *view = views->at[i];

		ret_views[i] = (struct sb_resolve_view){
			.trim = view->trim,
			.op_name = view->op_name,
			.value_name = config->view_opts.value,
			.state_at_root = view->state_place == SB_STATE_AT_ROOT,
			.state_at_leaf = view->state_place == SB_STATE_AT_LEAF,
			.is_of_wakers = view->is_of_wakers,
			.has_idle = view->has_idle,
		};
	}
}

static bool has_interp(const struct sb_run_config *config)
{
	return config->interp != SB_INTERP_OFF && (config->sides & SB_SIDE_USER);
}

static int make_interp(struct sb_run *run)
{
	const struct sb_run_config *config = run->config;
	const struct sb_interp_opts opts = {
		.processes = run->processes,
		.lines = config->lines,
		.parser = sb_parser_seat(run->parser, SB_PARSER_INTERP),
		.labels = config->labels,
		.nr_labels = config->nr_labels,
		.span_label = config->view_opts.in_label,
		.goroutines = sb_view_has_goroutines(&config->view_opts),
		.no_frames = !has_interp(config),
	};

	if (!has_interp(config) && !config->nr_labels && !opts.span_label && !opts.goroutines)
		return 0;
	return sb_interp_new(&opts, &run->interp);
}

static int make_symbolizer(struct sb_run *run)
{
	const struct sb_run_config *config = run->config;
	const struct sb_symbolizer_opts opts = {
		.inlines = !config->no_inlines,
		.lines = config->lines,
		.debuginfod = config->debuginfod,
		.demangle = config->demangle,
		.heavy_bytes_max = config->symbol_cache_bytes,
		.bytes_max = config->symbol_bytes_max,
		.parser = sb_parser_seat(run->parser, SB_PARSER_NAMES),
		.memo_max = run->sink->memo_max,
	};

	return sb_symbolizer_new(&opts, &run->sym);
}

static void govern(struct sb_run *run)
{
	uint64_t means[SB_VIEWS_MAX] = {};
	struct sb_resolve_stats stats;
	uint32_t i;

	for (i = 0; i < run->config->views.nr; i++) {
		sb_resolver_stats(run->resolver, i, &stats);
		means[i] = stats.nr_samples ? stats.weight / stats.nr_samples : 0;
	}
	sb_session_govern(run->session, means);
}

void sb_run_tick(struct sb_run *run)
{
	/* After the end there is nothing to throttle. */
	if (!run->end_ns)
		govern(run);
	if (run->sink->tick)
		run->sink->tick(run->sink, run);
	run->ticked_ns = sb_now_ns();
}

/* On a busy machine, the samples of one drain can take minutes. If sampling were not throttled
 * meanwhile, the next drain would have as many, and most of them would be lost. The last drain can
 * take as long, and the watchdog waits for ticks. */
static void keep_up(void *arg)
{
	struct sb_run *run = arg;

	if (run->sink->is_lasting && sb_now_ns() >= run->ticked_ns + SB_RUN_TICK_NS)
		sb_run_tick(run);
}

static int make_resolver(struct sb_run *run)
{
	const struct sb_run_config *config = run->config;
	struct sb_resolve_opts opts = {
		.nr_roots = config->roots.nr,
		.delimited = config->delimited,
		.offsets = config->offsets,
		.hides_addresses = run->sink->is_lasting,
		.lines = config->lines,
		.modules = config->modules,
		.sides = config->sides,
		.idle = config->idle,
		.file = config->file,
		.path_glob = config->view_opts.io_path,
		.processes = run->processes,
		.interp = has_interp(config) ? run->interp : NULL,
		.interp_mode = config->interp,
		.labels = config->labels,
		.nr_labels = config->nr_labels,
		.series = run->sink->series,
		.series_arg = run->sink->series_arg,
		/* The limit of the walks is none of the stack that is put together of several. */
		.depth_max = config->depth_max < SB_USTACK_DEPTH_MAX ? config->depth_max : 0,
		.progress = keep_up,
		.progress_arg = run,
	};

	describe_views(config, opts.views);
	memcpy(opts.roots, config->roots.at, sizeof(config->roots.at));
	return sb_resolver_new(&opts, run->sym, run->profile, &run->resolver);
}

enum sb_run_status sb_run_make_resolver(struct sb_run *run)
{
	int err;

	sb_raise_nofile(); /* the symbolizer shares it out */
	err = sb_processes_new(NULL, &run->processes);
	if (!err)
		err = make_interp(run);
	if (!err)
		err = make_symbolizer(run);
	if (!err)
		err = sb_profile_new(&run->profile);
	if (!err)
		err = make_resolver(run);
	return err ? sb_run_fail(run, err, "cannot prepare the lookup of names") : SB_RUN_OK;
}

static int keep_pending(struct sb_run *run)
{
	const struct sb_stack_id *ids;
	size_t nr;
	int err;

	if (!sb_resolver_wants_pending(run->resolver))
		return 0;
	err = sb_session_pending(run->session, &ids, &nr);
	if (!err)
		sb_resolver_note_pending(run->resolver, ids, nr);
	return err;
}

/* What is of no more use: on the BPF side, of the symbolizer, of processes. */
static int forget(struct sb_run *run, uint64_t before_ns)
{
	struct sb_batch_evicted evicted;
	uint64_t held_ns = sb_session_held_since_ns(run->session);
	/* The stack of a waker may come one batch before the wait. */
	uint64_t processes_ns = run->drained_ns;
	int err;

	sb_resolver_evicted(run->resolver, &evicted);
	err = sb_session_forget(run->session, &evicted);
	if (err)
		return sb_reason_set(&run->reason, err,
				     "cannot tell the BPF programs which files --path leaves out");
	/* Every sample of later batches is younger than this. */
	sb_symbolizer_forget(run->sym, before_ns < held_ns ? before_ns : held_ns);
	sb_processes_forget(run->processes, processes_ns < held_ns ? processes_ns : held_ns);
	sb_reader_tidy();
	return 0;
}

int sb_run_drain(struct sb_run *run)
{
	uint64_t before_ns = sb_now_ns();
	const struct sb_batch *batch;
	int err = keep_pending(run);

	if (err)
		return err;
	keep_up(run);
	err = sb_session_drain(run->session, &batch);
	if (err)
		return sb_reason_set(&run->reason, err,
				     "cannot read the samples from the kernel's BPF maps");
	keep_up(run);
	err = sb_resolver_add(run->resolver, batch);
	if (err)
		return sb_reason_set(&run->reason, err,
				     "cannot add the samples to the profile in memory");
	err = forget(run, before_ns);
	if (!err)
		run->drained_ns = before_ns;
	return err;
}

int sb_run_renew_profile(struct sb_run *run, bool *ret_is_new)
{
	struct sb_profile *profile;
	int err;

	if (sb_profile_nr_frames(run->profile) < FRAMES_MAX &&
	    sb_profile_text_bytes(run->profile) < TEXT_BYTES_MAX)
		return 0;
	err = sb_profile_new(&profile);
	if (err)
		return err;
	err = sb_resolver_move(run->resolver, profile);
	sb_profile_free(run->profile);
	run->profile = profile;
	*ret_is_new = true;
	return err;
}

bool sb_run_has_samples(const struct sb_run *run)
{
	struct sb_resolve_stats stats;
	uint32_t i;

	for (i = 0; i < run->config->views.nr; i++) {
		sb_resolver_stats(run->resolver, i, &stats);
		if (stats.nr_samples)
			return true;
	}
	return false;
}

static uint64_t timeval_ns(struct timeval tv)
{
	return (uint64_t)tv.tv_sec * SB_NS_PER_SEC + (uint64_t)tv.tv_usec * 1000;
}

uint64_t sb_run_own_ns(const struct sb_run *run)
{
	struct sb_parser_stats parser;
	struct sb_reader_stats readers;
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage))
		return 0;
	sb_parser_stats(run->parser, &parser);
	sb_reader_stats(&readers);
	return timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime) + parser.cpu_ns +
	       readers.cpu_ns;
}

void sb_run_figures(const struct sb_run *run, uint32_t view, struct sb_run_figures *ret_figures)
{
	struct sb_run_figures figures = { .view = view };
	unsigned int i;

	sb_session_stats(run->session, view, &figures.session);
	sb_resolver_stats(run->resolver, view, &figures.resolve);
	sb_symbolizer_stats(run->sym, &figures.symbolizer);
	sb_parser_stats(run->parser, &figures.parser);
	sb_reader_stats(&figures.readers);
	sb_processes_stats(run->processes, &figures.processes);
	figures.nr_samples = figures.resolve.nr_samples;
	figures.nr_lost = figures.session.nr_lost;
	figures.nr_cut = figures.resolve.nr_cut;
	figures.nr_frames = figures.resolve.nr_frames;
	for (i = SB_SYM_OK + 1; i < SB_SYM_REASON_MAX; i++)
		figures.nr_unnamed += figures.resolve.nr_unnamed[i];
	for (i = 0; i < SB_RUNTIME_MAX; i++) {
		figures.nr_unnamed += figures.resolve.runtime[i].nr_unreadable;
		figures.nr_frames += figures.resolve.runtime[i].nr_frames;
	}
	figures.wall_ns = sb_run_end_ns(run, sb_now_ns()) - run->start_ns;
	*ret_figures = figures;
}

uint32_t sb_run_shown(const struct sb_run *run)
{
	return run->config->view_opts.fallback ? sb_session_shown(run->session) : 0;
}

double sb_run_accounted(const struct sb_run_figures *figures)
{
	uint64_t known = figures->resolve.weight + figures->resolve.idle_weight;
	uint64_t expected = figures->session.expected;

	return expected ? 100.0 * (double)known / (double)expected : 0;
}
