// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The commands that record: the stages of a run, in their order. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/time.h"
#include "capture/privileges.h"
#include "cli/command.h"
#include "cli/record.h"

#define KIND_DEFAULT "oncpu"
/* Of malloc(): each thread would have one, half empty. */
#define ARENAS_MAX   2
/* What is bigger is a mapping of its own, and gone when it is freed; else malloc() learns to keep it. */
#define MAPPED_BYTES (128 << 10)

int sb_run_parse(struct sb_run *run, const struct sb_command *command, char **argv)
{
	struct sb_record_opts *fields = &run->opts;
	struct sb_opts opts = { .fields = fields };
	int status = sb_command_parse(command, &opts, argv), err;

	if (status < 0) {
		err = sb_record_opts_finish(fields, &opts);
		if (err == -EINVAL) {
			sb_err(0, "%s", opts.error.s);
			status = SB_EXIT_USAGE;
		} else if (err) {
			sb_err(err, "cannot read the options");
			status = SB_EXIT_FAILED;
		}
	}
	sb_opts_release(&opts);
	return status;
}

/*
 * The command exists from here on, and waits. It comes before everything that it must not inherit:
 * blocked signals, threads, a raised limit.
 */
static int make_child(struct sb_run *run)
{
	struct sb_targets *targets = &run->opts.targets;
	struct sb_pid_rule rule = { .rule = SB_RULE_ALLOW | SB_RULE_AT_EXEC };
	int err;

	if (!run->opts.command)
		return -1;
	err = sb_child_new(run->opts.command, sb_sudo_owner(), &run->child);
	if (err) {
		sb_err(err, "cannot make a process for '%s'", run->opts.command[0]);
		return SB_EXIT_FAILED;
	}
	if (run->opts.all)
		return -1;
	rule.pid = (uint32_t)sb_child_pid(run->child);
	if (targets->follow_children)
		rule.rule |= SB_RULE_FOLLOW;
	err = sb_vec_push(&targets->tgids, rule);
	if (err) {
		sb_err(err, "cannot sample '%s'", run->opts.command[0]);
		return SB_EXIT_FAILED;
	}
	return -1;
}

static void check_debuginfod(const struct sb_record_opts *opts)
{
	if (opts->debuginfod && !sb_sym_has_debuginfod())
		sb_warn("--debuginfod does nothing here: libdebuginfod.so.1 cannot be loaded%s",
			SB_IS_STATIC ? " by a static program" : ", install libdebuginfod1");
}

static void describe_views(const struct sb_views *views, struct sb_resolve_view *ret_views)
{
	size_t i;

	for (i = 0; i < views->nr; i++) {
		const struct sb_view *view = views->at[i];

		ret_views[i] = (struct sb_resolve_view){
			.trim = view->trim,
			.op_name = view->op_name,
			.state_at_root = view->state_place == SB_STATE_AT_ROOT,
			.state_at_leaf = view->state_place == SB_STATE_AT_LEAF,
			.is_of_wakers = view->is_of_wakers,
			.has_idle = view->has_idle,
		};
	}
}

static int make_resolver(struct sb_run *run)
{
	const struct sb_record_opts *opts = &run->opts;
	const bool has_places = sb_run_has_places(run);
	const bool has_interp = opts->interp != SB_INTERP_OFF && (opts->sides & SB_SIDE_USER);
	struct sb_symbolizer_opts sym_opts = {
		.inlines = !opts->no_inlines,
		.lines = opts->lines || has_places,
		.debuginfod = opts->debuginfod,
		.demangle = opts->demangle,
		.heavy_bytes_max = opts->symbol_cache_bytes,
		.bytes_max = opts->symbol_bytes_max,
		.parser = sb_parser_seat(run->parser, SB_PARSER_NAMES),
	};
	const struct sb_interp_opts interp_opts = {
		.lines = opts->lines || has_places,
		.parser = sb_parser_seat(run->parser, SB_PARSER_INTERP),
		.labels = opts->recorder.labels,
		.nr_labels = opts->recorder.nr_labels,
		.no_frames = !has_interp,
	};
	struct sb_resolve_opts resolve_opts = {
		.nr_roots = opts->roots.nr,
		.delimited = opts->delimited,
		.offsets = opts->offsets,
		.hides_addresses = run->sink && run->sink->is_lasting,
		.lines = opts->lines || has_places,
		.modules = opts->modules || has_places,
		.sides = opts->sides,
		.idle = opts->idle,
		.file = opts->file,
		.path_glob = opts->view.io_path,
		.interp_mode = opts->interp,
		.labels = opts->recorder.labels,
		.nr_labels = opts->recorder.nr_labels,
		/* The limit of the walks is none of the stack that is put together of several. */
		.depth_max = opts->depth_max < SB_USTACK_DEPTH_MAX ? opts->depth_max : 0,
	};
	int err = 0;

	check_debuginfod(opts);
	describe_views(&run->views, resolve_opts.views);
	sb_raise_nofile(); /* the symbolizer shares it out */
	memcpy(resolve_opts.roots, opts->roots.at, sizeof(opts->roots.at));
	if (has_interp || opts->recorder.nr_labels)
		err = sb_interp_new(&interp_opts, &run->interp);
	resolve_opts.interp = has_interp ? run->interp : NULL;
	if (run->sink) {
		resolve_opts.series = run->sink->series;
		resolve_opts.series_arg = run->sink->series_arg;
		sym_opts.memo_max = run->sink->memo_max;
	}
	if (!err)
		err = sb_symbolizer_new(&sym_opts, &run->sym);
	if (!err)
		err = sb_profile_new(&run->profile);
	if (!err)
		err = sb_resolver_new(&resolve_opts, run->sym, run->profile, &run->resolver);
	if (!err)
		return -1;
	sb_err(err, "cannot prepare for names");
	return SB_EXIT_FAILED;
}

/* What a failure of the session, which has said its sentence, means to our caller. */
static int exit_status(int err)
{
	switch (err) {
	case -EPERM:
	case -EACCES:
	case -EOPNOTSUPP:
		return SB_EXIT_PRIVILEGE;
	case -ESRCH:
		return SB_EXIT_NO_TARGET;
	default:
		return SB_EXIT_FAILED;
	}
}

static int check_views(struct sb_run *run)
{
	const char *why = NULL;
	size_t i;
	int err = 0;

	for (i = 0; i < run->views.nr && !err; i++)
		if (run->views.at[i]->check)
			err = run->views.at[i]->check(&run->opts.view, &why);
	if (!err)
		return -1;
	sb_err(0, "%s", why);
	return err == -EINVAL ? SB_EXIT_USAGE : exit_status(err);
}

static int make_session(struct sb_run *run)
{
	const struct sb_record_opts *opts = &run->opts;
	struct sb_session_opts session_opts = {
		.views = run->views,
		.view_opts = opts->view,
		.targets = &opts->targets,
		.symbolizer = run->sym,
		.interp = run->interp,
		.interp_lines = opts->lines || sb_run_has_places(run),
		.labels = opts->recorder.nr_labels > 0,
		.parser = run->parser,
		.freq_hz = opts->freq_hz,
		.is_freq_asked = opts->is_freq_asked,
		.event = opts->event,
		.cpus = opts->cpus.nr ? opts->cpus.at : NULL,
		.nr_cpus = opts->cpus.nr,
		.sides = opts->sides,
		.depth_max = opts->depth_max,
		.unwind = opts->unwind,
		.unwind_bytes_max = opts->unwind_bytes,
		.overhead_max = opts->overhead_max_ppm / 1e6 * (double)run->views.nr,
	};
	size_t i;
	int err;

	if (opts->view.distr)
		session_opts.by |= SB_BY_DURATION;
	if (run->child) {
		session_opts.command = opts->command[0];
		session_opts.command_tgid = (uint32_t)sb_child_pid(run->child);
	}
	if (run->sink) {
		session_opts.by |= run->sink->by;
		session_opts.is_lasting = run->sink->is_lasting;
	}
	for (i = 0; i < opts->roots.nr; i++)
		session_opts.by |= sb_root_by(opts->roots.at[i]);
	err = sb_session_new(&session_opts, &run->session);
	return err ? exit_status(err) : -1;
}

static int start_child(struct sb_run *run)
{
	const char *name = run->opts.command[0];
	int err = sb_child_start(run->child);

	if (!err)
		return -1;
	/* Its status says no more than this sentence; nobody waits for it again. */
	sb_child_free(sb_take(run->child));
	sb_err(err, "cannot run '%s'", name);
	return err == -ENOENT ? SB_EXIT_NO_COMMAND : SB_EXIT_NO_EXEC;
}

static int start(struct sb_run *run)
{
	int err = sb_session_start(run->session);

	if (err)
		return exit_status(err);
	run->start_ns = sb_session_began_ns(run->session);
	run->own_start_ns = sb_run_own_ns(run);
	/* The loop may be busy with names when the time is up. */
	if (run->opts.time_ns)
		sb_session_end_at(run->session, run->start_ns + run->opts.time_ns);
	return run->child ? start_child(run) : -1;
}

static int stop(struct sb_run *run)
{
	int err;

	run->end_ns = sb_now_ns();
	if (run->opts.time_ns && run->end_ns > run->start_ns + run->opts.time_ns)
		run->end_ns = run->start_ns + run->opts.time_ns;
	run->own_end_ns = sb_run_own_ns(run);
	err = sb_session_stop(run->session);
	if (err)
		return exit_status(err);
	return sb_run_drain(run) ? SB_EXIT_FAILED : -1;
}

static bool has_samples(const struct sb_run *run)
{
	struct sb_resolve_stats stats;
	uint32_t i;

	for (i = 0; i < run->views.nr; i++) {
		sb_resolver_stats(run->resolver, i, &stats);
		if (stats.nr_samples)
			return true;
	}
	return false;
}

static int finish(struct sb_run *run)
{
	int err = 0;

	/* Also of nothing: whoever counts periods counts this one. */
	if (run->sink && sb_run_take(run))
		return SB_EXIT_FAILED;
	if (!has_samples(run)) {
		sb_run_explain_empty(run);
		return SB_EXIT_EMPTY;
	}
	if (!run->sink)
		err = sb_run_write(run, true);
	run->has_written = !run->sink && !err;
	if (!run->sink || !run->sink->has_report)
		sb_run_report(run);
	return err ? SB_EXIT_FAILED : SB_EXIT_DATA;
}

/* The stages up to the first sample, then those from the last. Return: the exit status. */
static int record(struct sb_run *run)
{
	static int (*const stages[])(struct sb_run * run) = {
		sb_run_choose_outputs,
		check_views,
		sb_run_check_targets,
		sb_run_make_writer,
		sb_run_make_parser,
		sb_run_make_readers,
		make_child,
		sb_run_block_signals,
		sb_run_begin_privileges,
		make_resolver,
		make_session,
		sb_run_loop_init,
		start,
		sb_run_settle_privileges,
		sb_run_loop,
		sb_run_arm_abort,
		stop,
		finish,
	};
	size_t i;
	int status = -1;

	for (i = 0; i < SB_ARRAY_SIZE(stages) && status < 0; i++)
		status = stages[i](run);
	return status;
}

/* The command's own status, unless something of ours went wrong. */
static int pass_status_on(struct sb_run *run, int status)
{
	int child_status = sb_run_wait_child(run);

	if (status != SB_EXIT_DATA && status != SB_EXIT_EMPTY)
		return status;
	return child_status ? child_status : status;
}

void sb_run_release(struct sb_run *run)
{
	size_t i;

	sb_session_free(run->session);
	sb_resolver_free(run->resolver);
	sb_profile_free(run->profile);
	sb_symbolizer_free(run->sym);
	sb_interp_free(run->interp);
	sb_child_free(run->child);
	sb_writer_free(run->writer);
	sb_parser_free(run->parser);
	sb_reader_end();
	sb_run_loop_release(run);
	for (i = 0; i < run->targets.nr; i++)
		if (run->targets.at[i].fd >= 0)
			close(run->targets.at[i].fd);
	sb_vec_release(&run->targets);
	sb_vec_release(&run->outputs);
	sb_record_opts_release(&run->opts);
}

static void choose_units(struct sb_run *run)
{
	size_t i;

	for (i = 0; i < run->views.nr; i++)
		run->units[i].name =
			sb_view_unit(run->views.at[i], &run->opts.view, &run->units[i].divisor);
}

/* A run may go on for months. Of what is freed and made anew all the time, holes are left in a heap. */
static void save_memory(void)
{
	(void)mallopt(M_ARENA_MAX, ARENAS_MAX);
	(void)mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
}

void sb_run_init(struct sb_run *run)
{
	save_memory();
	*run = (struct sb_run){
		.entry_ns = sb_now_ns(),
		.opts = { .unwind = SB_UNWIND_CFI | SB_UNWIND_FP,
			  .overhead_max_ppm = SB_OVERHEAD_MAX_PPM_DEFAULT },
		.epoll_fd = -1,
		.signal_fd = -1,
		.time_fd = -1,
		.tick_fd = -1,
		.sink_fd = -1,
	};
}

int sb_run_go(struct sb_run *run)
{
	const char *kind = run->opts.kind ? run->opts.kind : KIND_DEFAULT;
	int status;

	sb_privileges_hide();
	if (!run->views.nr)
		(void)sb_views_add(&run->views, sb_view_find(kind));
	choose_units(run);
	status = record(run);
	return run->child && run->start_ns ? pass_status_on(run, status) : status;
}

int sb_cmd_record(const struct sb_command *command, char **argv)
{
	struct sb_run run;
	int status;

	sb_run_init(&run);
	(void)sb_views_add(&run.views, sb_view_find(command->name));
	status = sb_run_parse(&run, command, argv);
	if (status < 0)
		status = sb_run_go(&run);
	sb_run_release(&run);
	return status;
}
