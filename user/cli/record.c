// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The sampling commands: options become a configuration, and the end of a run becomes messages. */
#include "cli/record.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/fs.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/term.h"

/* For give_up(), which has no argument of ours. NULL: the sink of the run writes no result. */
static const struct sb_result_sink *result_of_run;

/* A second signal: what is half written is removed, and the program ends. */
static void give_up(int sig)
{
	static const char *const messages[] = {
		[SB_OUTPUTS_NONE] = "stackbpf: aborted; the result was discarded\n",
		[SB_OUTPUTS_SOME] = "stackbpf: aborted; a part of the result may be missing\n",
		[SB_OUTPUTS_ALL] = "stackbpf: aborted after the result was written\n",
	};
	const char *message =
		result_of_run ? messages[result_of_run->outputs.written] : "stackbpf: aborted\n";

	sb_output_files_discard();
	sb_term_restore();
	(void)!write(STDERR_FILENO, message, strlen(message));
	_exit(SB_EXIT_SIGNAL + sig);
}

void sb_record_init(struct sb_record *record)
{
	*record = (struct sb_record){};
	sb_run_config_init(&record->opts.run);
	sb_run_init(&record->run);
	sb_result_sink_init(&record->result, &record->opts);
}

int sb_record_parse(struct sb_record_opts *fields, const struct sb_command *command, char **argv)
{
	struct sb_opts opts = { .fields = fields };
	int status = sb_command_parse(command, &opts, argv), err;

	if (status < 0) {
		err = sb_record_opts_finish(fields, &opts);
		if (err == -EINVAL) {
			sb_err(0, "%s", opts.error.s);
			status = SB_EXIT_USAGE;
		} else if (err) {
			sb_err(err, "cannot keep the options of the command line");
			status = SB_EXIT_FAILED;
		}
	}
	sb_opts_release(&opts);
	return status;
}

int sb_record_status(const struct sb_run *run, enum sb_run_status status)
{
	if (run->tid)
		sb_err(0, "%s: use -L %u to sample the thread, or -p %u to sample the process",
		       run->reason.text, run->tid, run->tid_process);
	else if (sb_reason_is_set(&run->reason))
		sb_err(run->reason.err, "%s", run->reason.text);
	return (int)status;
}

/* What comes of the options, but not of one alone. */
static int complete_config(struct sb_record *record, struct sb_run_sink *sink)
{
	struct sb_record_opts *opts = &record->opts;
	struct sb_run_config *config = &opts->run;
	bool has_places;
	int status = -1;

	if (sink == &record->result.sink)
		status = sb_outputs_choose(&record->result.outputs, opts);
	has_places = sb_outputs_have_places(&record->result.outputs);
	config->lines = opts->lines || has_places;
	config->modules = opts->modules || has_places;
	if (config->debuginfod && !sb_sym_has_debuginfod())
		sb_warn("--debuginfod has no effect: cannot load libdebuginfod.so.1%s",
			SB_IS_STATIC ? " into a static program" : "; install libdebuginfod1");
	return status;
}

/* The command's own status, unless something of ours went wrong. */
static int pass_status_on(struct sb_run *run, int status)
{
	int child_status, sig;

	if (sb_run_is_command_alive(run))
		sb_info("waiting for '%s' to end, to return its exit status; press Ctrl-C twice to "
			"leave it running",
			run->config->command[0]);
	else if (!sb_run_has_command_run(run))
		sb_warn("'%s' was killed before it started, because its file system did not "
			"respond; check the mount that it lies on",
			run->config->command[0]);
	child_status = sb_run_wait_command(run, &sig);
	if (sig)
		child_status = SB_EXIT_SIGNAL + sig;
	if (status != SB_EXIT_DATA && status != SB_EXIT_EMPTY)
		return status;
	return child_status ? child_status : status;
}

/*
 * About what 'oncpu -a' needs. Measured on two CPUs: a peak of 106 MiB, to which 6 MiB are added
 * for other machines; below 60 MiB it was killed. What each CPU adds is no measurement but the sum
 * of the sizes of its maps (0.6 MiB) and rings: 2 MiB for new stacks, 64 MiB of all CPUs at most,
 * and 0.5 MiB for new processes.
 */
static uint64_t memory_of_all_mib(void)
{
	long nr = sysconf(_SC_NPROCESSORS_CONF);
	uint64_t nr_cpus = nr > 0 ? (uint64_t)nr : 1;

	return nr_cpus <= 32 ? 106 + 3 * nr_cpus : 170 + nr_cpus;
}

/* The kernel says only 'Killed'. */
static void warn_memory(const struct sb_run_config *config)
{
	uint64_t limit, needed_mib = memory_of_all_mib();

	if (config->all && !sb_cgroup_memory_max(&limit) && limit >> 20 < needed_mib)
		sb_warn("this cgroup may use %llu MiB of memory, and sampling the whole machine "
			"needs about %llu MiB, so the kernel may kill stackbpf; raise the limit, "
			"or choose targets, such as -p PID",
			(unsigned long long)limit >> 20, (unsigned long long)needed_mib);
}

int sb_record_go(struct sb_record *record, struct sb_run_sink *sink)
{
	struct sb_run *run = &record->run;
	enum sb_run_status ended;
	int status;

	sink = sink ? sink : &record->result.sink;
	sink->give_up = give_up;
	result_of_run = sink == &record->result.sink ? &record->result : NULL;
	status = complete_config(record, sink);
	if (status >= 0)
		return status;
	warn_memory(&record->opts.run);
	ended = sb_run_go(run, &record->opts.run, sink);
	sb_result_sink_clear(&record->result);
	status = sb_record_status(run, ended);
	/* Of a command that has not run, pass_status_on() says it. */
	if (ended == SB_RUN_EMPTY && (!run->child || sb_run_has_command_run(run)))
		sb_report_empty(run);
	if (ended == SB_RUN_OK && !record->no_report)
		sb_report_run(run, record->opts.stats);
	if (ended == SB_RUN_OK && record->result.err)
		status = SB_EXIT_FAILED;
	return run->child && run->start_ns ? pass_status_on(run, status) : status;
}

void sb_record_release(struct sb_record *record)
{
	sb_run_release(&record->run);
	sb_outputs_release(&record->result.outputs);
	sb_record_opts_release(&record->opts);
}

int sb_cmd_view(const struct sb_command *command, char **argv)
{
	struct sb_record record;
	int status;

	sb_record_init(&record);
	(void)sb_views_add(&record.opts.run.views, sb_view_find(command->name));
	status = sb_record_parse(&record.opts, command, argv);
	if (status < 0)
		status = sb_record_find_events(&record.opts);
	if (status < 0)
		status = sb_record_go(&record, NULL);
	sb_record_release(&record);
	return status;
}
