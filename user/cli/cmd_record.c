// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* stackbpf record: records profiles continuously into a store. */
#include <stdio.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/record.h"
#include "recorder/recorder.h"

static bool all_figures;

/* How the run of a sampler ended, in its own process. */
static int report(const struct sb_run *run, enum sb_run_status ended)
{
	int status = sb_record_status(run, ended);

	if (ended == SB_RUN_EMPTY)
		sb_report_empty(run);
	else if (ended == SB_RUN_OK)
		sb_report_run(run, all_figures);
	return status;
}

static void report_end(const struct sb_recorder_event *event)
{
	const struct sb_recorder_stats *stats = event->stats;
	const struct {
		uint64_t nr;
		const char *what;
	} losses[] = {
		{ stats->nr_dropped, "blocks lost because they could not be written: " },
		{ stats->nr_refused, "blocks rejected as invalid: " },
		{ stats->nr_other_series,
		  "series counted as (other), in each block anew, because a tag had too many "
		  "values: " },
		{ stats->nr_restarts, "restarts of samplers: " },
	};
	sb_cleanup(sb_str_release) struct sb_str more = {};
	size_t i;

	/* Without memory the line is shorter. */
	for (i = 0; i < SB_ARRAY_SIZE(losses); i++)
		if (losses[i].nr)
			(void)sb_str_addf(&more, "; %s%llu", losses[i].what,
					  (unsigned long long)losses[i].nr);
	sb_info("wrote %llu block%s of profiles to the store '%s'; each took %.1f ms of stackbpf's "
		"own CPU time%s",
		(unsigned long long)stats->nr_blocks, stats->nr_blocks == 1 ? "" : "s",
		event->store,
		stats->nr_blocks ? (double)stats->own_ns / 1e6 / (double)stats->nr_blocks : 0,
		more.len ? more.s : "");
}

static void name_log(const char *sampler)
{
	static char program[96];

	snprintf(program, sizeof(program), "stackbpf: %s", sampler);
	sb_log_init(program, sb_log_max());
}

static void tell_of_sampler(const struct sb_recorder_event *event)
{
	const char *sampler = event->sampler;
	unsigned long long nr = event->nr;

	if (event->kind == SB_RECORDER_SAMPLER_EXITED)
		sb_warn("the sampler of '%s' profiles exited with status %d; restarting it in %llu s, "
			"until which these are not recorded",
			sampler, event->status, nr);
	else if (event->kind == SB_RECORDER_SAMPLER_TOO_BIG)
		sb_warn("the sampler of '%s' profiles uses %llu MB of memory; replacing it with a new "
			"process",
			sampler, nr);
	else if (event->kind == SB_RECORDER_SAMPLER_NOT_STARTED)
		sb_err(event->err,
		       "cannot start the sampler of '%s' profiles, which are not recorded; check "
		       "ulimit -u, TasksMax= of the service, and free memory",
		       sampler);
	else if (event->kind == SB_RECORDER_REFUSED)
		sb_err(0,
		       "the sampler of '%s' profiles sent an invalid block, and nothing more is "
		       "accepted from it; restart 'stackbpf record', and report this",
		       sampler);
	else if (event->kind == SB_RECORDER_STUCK)
		sb_warn("a process of the recorder is stuck: the %s%s; no longer sending "
			"keep-alive messages to the service manager, so that it restarts the "
			"recorder",
			sampler ? "sampler of " : "store writer", sampler ?: "");
}

/* In the process where it happens. */
static void tell(const struct sb_recorder_event *event)
{
	const char *store = event->store;
	unsigned long long nr = event->nr;

	switch (event->kind) {
	case SB_RECORDER_BEGAN:
		sb_info("recording to '%s'; Ctrl-C ends it", store);
		break;
	case SB_RECORDER_WRITER_DIED:
		sb_err(0,
		       "the store writer died, so nothing more is written to '%s'; stopping; "
		       "messages above or in the kernel's log may say why",
		       store);
		break;
	case SB_RECORDER_ENDED:
		report_end(event);
		break;
	case SB_RECORDER_SAMPLER_BEGINS:
		name_log(event->sampler);
		break;
	case SB_RECORDER_BLOCKS_DROPPED:
		sb_warn("the store writer cannot keep up, so blocks of 10 s of samples are lost; "
			"check the disk of the store, or record fewer --kinds");
		break;
	case SB_RECORDER_NOT_EXPIRED:
		sb_err(event->err,
		       "cannot delete expired blocks from the store '%s', which grows until that "
		       "works again",
		       store);
		break;
	case SB_RECORDER_NOT_SYNCED:
		sb_err(event->err,
		       "cannot sync blocks of the store '%s' to the disk or add them to its sums "
		       "of 10 minutes; they are written, but a crash of the machine could lose "
		       "them",
		       store);
		break;
	case SB_RECORDER_NOT_WRITTEN:
		sb_err(event->err,
		       "cannot write to the store '%s' (sampling goes on, up to %llu MB of blocks are "
		       "kept in memory, and every new block is another attempt)",
		       store, nr);
		break;
	case SB_RECORDER_WRITTEN:
		sb_warn("the store '%s' is writable again; %llu blocks of 10 s were lost", store,
			nr);
		break;
	case SB_RECORDER_SAMPLER_EXITED:
	case SB_RECORDER_SAMPLER_TOO_BIG:
	case SB_RECORDER_SAMPLER_NOT_STARTED:
	case SB_RECORDER_STUCK:
	case SB_RECORDER_REFUSED:
		tell_of_sampler(event);
	}
}

int sb_cmd_record(const struct sb_command *command, char **argv)
{
	struct sb_record_opts opts = {};
	struct sb_reason reason = {};
	int status;

	sb_run_config_init(&opts.run);
	/* Of programs that come and go, debug data would be most of what is kept, and read. */
	opts.run.no_inlines = true;
	opts.run.view_opts.is_of_time = true;
	status = sb_record_parse(&opts, command, argv);
	if (status < 0 && opts.run.command) {
		sb_err(0, "record: cannot run a command; start '%s' separately",
		       opts.run.command[0]);
		status = SB_EXIT_USAGE;
	}
	if (status < 0)
		status = sb_record_find_kinds(&opts);
	if (status < 0) {
		all_figures = opts.stats;
		opts.run.lines = opts.lines;
		opts.recorder.labels = opts.run.labels;
		opts.recorder.nr_labels = opts.run.nr_labels;
		opts.recorder.report = report;
		opts.recorder.tell = tell;
		status = sb_recorder_run(&opts.recorder, &opts.run, &reason);
		if (sb_reason_is_set(&reason))
			sb_err(reason.err, "%s", reason.text);
	}
	sb_record_opts_release(&opts);
	return status;
}
