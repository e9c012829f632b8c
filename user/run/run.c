// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The stages of a run, and their order. */
#include "run/run.h"

#include <errno.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/heap.h"
#include "base/time.h"
#include "capture/child.h"
#include "capture/thread.h"
#include "interp/core/interp.h"
#include "run/run_priv.h"
#include "workers/privileges.h"

/* Of malloc(): each thread would have one, half empty. */
#define ARENAS_MAX   2
/* What is bigger is a mapping of its own, and gone when it is freed; else malloc() learns to keep
 * it. */
#define MAPPED_BYTES (128 << 10)
/* A shorter run costs mostly what its start and its end cost. */
#define SHORT_NS     (10 * SB_NS_PER_SEC)

void sb_run_config_init(struct sb_run_config *config)
{
	*config = (struct sb_run_config){
		.unwind = SB_UNWIND_CFI | SB_UNWIND_FP,
		.overhead_max_ppm = SB_OVERHEAD_MAX_PPM_DEFAULT,
	};
}

void sb_run_config_release(struct sb_run_config *config)
{
	sb_targets_release(&config->targets);
	sb_vec_release(&config->cpus);
}

bool sb_run_has_lasting_rule(const struct sb_targets *targets)
{
	bool has_one = false;
	size_t i;

	for (i = 0; i < targets->nr_comms; i++)
		has_one |= targets->comms[i].rule & SB_RULE_ALLOW;
	for (i = 0; i < targets->nr_uids; i++)
		has_one |= targets->uids[i].rule & SB_RULE_ALLOW;
	for (i = 0; i < targets->nr_cgroups; i++)
		has_one |= targets->cgroups[i].rule & SB_RULE_ALLOW;
	return has_one;
}

bool sb_run_has_allow_rule(const struct sb_targets *targets)
{
	bool has_one = sb_run_has_lasting_rule(targets);
	size_t i;

	for (i = 0; i < targets->tgids.nr; i++)
		has_one |= targets->tgids.at[i].rule & SB_RULE_ALLOW;
	for (i = 0; i < targets->tids.nr; i++)
		has_one |= targets->tids.at[i].rule & SB_RULE_ALLOW;
	return has_one;
}

static enum sb_run_status prepare_sink(struct sb_run *run)
{
	return run->sink->prepare && run->sink->prepare(run->sink, run) ? SB_RUN_FAILED : SB_RUN_OK;
}

/*
 * The command exists from here on, and waits. It comes before everything that it must not inherit:
 * blocked signals, threads, a raised limit.
 */
static enum sb_run_status make_child(struct sb_run *run)
{
	struct sb_targets *targets = &run->config->targets;
	char **command = run->config->command;
	struct sb_pid_rule rule = { .rule = SB_RULE_ALLOW | SB_RULE_AT_EXEC };
	int err;

	if (!command)
		return SB_RUN_OK;
	err = sb_child_new(command, sb_sudo_owner(), &run->child);
	if (err)
		return sb_run_fail(run, err, "cannot start a process for '%s'", command[0]);
	if (run->config->all)
		return SB_RUN_OK;
	rule.pid = (uint32_t)sb_child_pid(run->child);
	if (targets->follow_children)
		rule.rule |= SB_RULE_FOLLOW;
	err = sb_vec_push(&targets->tgids, rule);
	return err ? sb_run_fail(run, err, "cannot sample '%s'", command[0]) : SB_RUN_OK;
}

/* What a failure of the session means to our caller. */
static enum sb_run_status status_of(int err)
{
	switch (err) {
	case -EPERM:
	case -EACCES:
	case -EOPNOTSUPP:
		return SB_RUN_NO_PRIVILEGE;
	case -ESRCH:
		return SB_RUN_NO_TARGET;
	default:
		return SB_RUN_FAILED;
	}
}

static enum sb_run_status check_views(struct sb_run *run)
{
	const struct sb_views *views = &run->config->views;
	const char *why = NULL;
	size_t i;
	int err = 0;

	for (i = 0; i < views->nr && !err; i++)
		if (views->at[i]->check)
			err = views->at[i]->check(&run->config->view_opts, &why);
	if (!err)
		return SB_RUN_OK;
	sb_reason_set(&run->reason, 0, "%s", why);
	return err == -EINVAL ? SB_RUN_WRONG : status_of(err);
}

bool sb_run_is_short(const struct sb_run *run)
{
	const struct sb_run_config *config = run->config;

	return !run->sink->is_lasting && !config->command && config->time_ns &&
	       config->time_ns <= SHORT_NS;
}

/* The processes that read and parse have been forked by now. */
static enum sb_run_status prepare_heap(struct sb_run *run)
{
	if (sb_run_is_short(run))
		sb_heap_for_short_life();
	return SB_RUN_OK;
}

/*
 * Somebody waits for the result, and this thread has little to do for it. On a busy machine, most
 * of the time would be spent waiting for a CPU. The command has been forked by now, and is not
 * hurried.
 */
static enum sb_run_status hurry(struct sb_run *run)
{
	if (!run->sink->is_lasting && getpriority(PRIO_PROCESS, 0) == 0)
		sb_thread_hurry();
	return SB_RUN_OK;
}

static enum sb_run_status make_session(struct sb_run *run)
{
	const struct sb_run_config *config = run->config;
	struct sb_session_opts opts = {
		.views = config->views,
		.view_opts = config->view_opts,
		.targets = &config->targets,
		.symbolizer = run->sym,
		.processes = run->processes,
		.interp = run->interp,
		.interp_lines = config->lines,
		.labels = config->nr_labels || config->view_opts.in_label ||
			  sb_view_has_goroutines(&config->view_opts),
		.parser = run->parser,
		.reason = &run->reason,
		.freq_hz = config->freq_hz,
		.is_freq_asked = config->is_freq_asked,
		.cpus = config->cpus.nr ? config->cpus.at : NULL,
		.nr_cpus = config->cpus.nr,
		.sides = config->sides,
		.by = run->sink->by,
		.depth_max = config->depth_max,
		.unwind = config->unwind,
		.unwind_bytes_max = config->unwind_bytes,
		.is_summed = run->sink->keeps_all,
		.is_lasting = run->sink->is_lasting,
		/* The loop may be busy with names when the time is up. */
		.time_ns = config->time_ns,
		.overhead_max = config->overhead_max_ppm / 1e6 *
				(config->view_opts.fallback ? 1 : (double)config->views.nr),
	};
	size_t i;
	int err;

	if (config->view_opts.distr)
		opts.by |= SB_BY_DURATION;
	if (run->child) {
		opts.command = config->command[0];
		opts.command_tgid = (uint32_t)sb_child_pid(run->child);
	}
	for (i = 0; i < config->roots.nr; i++)
		opts.by |= sb_root_by(config->roots.at[i]);
	err = sb_session_new(&opts, &run->session);
	return err ? status_of(err) : SB_RUN_OK;
}

static enum sb_run_status start(struct sb_run *run)
{
	int err = sb_session_start(run->session);

	if (err)
		return status_of(err);
	run->start_ns = sb_session_began_ns(run->session);
	run->ticked_ns = run->start_ns;
	run->own_start_ns = sb_run_own_ns(run);
	if (run->child)
		sb_child_start(run->child);
	return SB_RUN_OK;
}

uint64_t sb_run_end_ns(const struct sb_run *run, uint64_t now_ns)
{
	uint64_t time_ns = run->config->time_ns;

	if (run->end_ns)
		return run->end_ns;
	return time_ns && now_ns > run->start_ns + time_ns ? run->start_ns + time_ns : now_ns;
}

static enum sb_run_status stop(struct sb_run *run)
{
	int err;

	run->stop_ns = sb_now_ns();
	run->end_ns = sb_run_end_ns(run, run->stop_ns);
	run->own_end_ns = sb_run_own_ns(run);
	err = sb_session_stop(run->session);
	if (err)
		return status_of(err);
	return sb_run_drain(run) ? SB_RUN_FAILED : SB_RUN_OK;
}

/* Also of nothing: whoever counts periods counts this one. */
static enum sb_run_status finish(struct sb_run *run)
{
	if (sb_run_take(run))
		return SB_RUN_FAILED;
	return sb_run_has_samples(run) ? SB_RUN_OK : SB_RUN_EMPTY;
}

/* The stages up to the first sample, then those from the last. */
static enum sb_run_status go(struct sb_run *run)
{
	static enum sb_run_status (*const stages[])(struct sb_run * run) = {
		check_views,
		sb_run_check_targets,
		prepare_sink,
		sb_run_make_parser,
		sb_run_make_readers,
		make_child,
		prepare_heap,
		hurry,
		sb_run_block_signals,
		sb_run_begin_privileges,
		sb_run_make_resolver,
		make_session,
		sb_run_loop_init,
		start,
		sb_run_settle_privileges,
		sb_run_loop,
		sb_run_arm_give_up,
		stop,
		finish,
	};
	enum sb_run_status status = SB_RUN_OK;
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(stages) && !status; i++)
		status = stages[i](run);
	return status;
}

static void choose_units(struct sb_run *run)
{
	const struct sb_views *views = &run->config->views;
	size_t i;

	for (i = 0; i < views->nr; i++)
		run->units[i].name =
			sb_view_unit(views->at[i], &run->config->view_opts, &run->units[i].divisor);
}

/* A run may go on for months. Of what is freed and made anew all the time, holes are left in a
 * heap. */
void sb_run_save_memory(void)
{
	(void)mallopt(M_ARENA_MAX, ARENAS_MAX);
	(void)mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
}

void sb_run_init(struct sb_run *run)
{
	sb_run_save_memory();
	*run = (struct sb_run){
		.entry_ns = sb_now_ns(),
		.epoll_fd = -1,
		.signal_fd = -1,
		.time_fd = -1,
		.tick_fd = -1,
		.sink_fd = -1,
	};
}

enum sb_run_status sb_run_go(struct sb_run *run, struct sb_run_config *config,
			     struct sb_run_sink *sink)
{
	run->config = config;
	run->sink = sink;
	sb_privileges_hide();
	choose_units(run);
	return go(run);
}

void sb_run_release(struct sb_run *run)
{
	size_t i;

	sb_session_free(run->session);
	sb_resolver_free(run->resolver);
	sb_profile_free(run->profile);
	sb_symbolizer_free(run->sym);
	sb_interp_free(run->interp);
	sb_processes_free(run->processes);
	sb_child_free(run->child);
	sb_parser_free(run->parser);
	sb_reader_end();
	sb_run_loop_release(run);
	for (i = 0; i < run->targets.nr; i++)
		if (run->targets.at[i].fd >= 0)
			close(run->targets.at[i].fd);
	sb_vec_release(&run->targets);
}
