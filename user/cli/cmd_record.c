// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* stackbpf record: records profiles continuously into a store. */
#include "base/log.h"
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

int sb_cmd_record(const struct sb_command *command, char **argv)
{
	struct sb_record_opts opts = {};
	int status;

	sb_run_config_init(&opts.run);
	/* Of programs that come and go, debug data would be most of what is kept, and read. */
	opts.run.no_inlines = true;
	status = sb_record_parse(&opts, command, argv);
	if (status < 0 && opts.run.command) {
		sb_err(0, "record: cannot run a command; start '%s' separately",
		       opts.run.command[0]);
		status = SB_EXIT_USAGE;
	}
	if (status < 0) {
		all_figures = opts.stats;
		opts.run.lines = opts.lines;
		opts.recorder.labels = opts.run.labels;
		opts.recorder.nr_labels = opts.run.nr_labels;
		opts.recorder.report = report;
		status = sb_recorder_run(&opts.recorder, &opts.run);
	}
	sb_record_opts_release(&opts);
	return status;
}
