/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the sampling commands have in common. Their options become the configuration of a run
 * (run/run.h), and how the run ended becomes messages and an exit status. Called on the main
 * thread, while there is no other one. For each command: sb_record_init(), sb_record_parse() into
 * record->opts, sb_record_find_events(), sb_record_go(), sb_record_release(). Pointers are not NULL
 * unless it says so. The caller zeroes @reason before; with a negative errno it has a sentence for
 * the user, and sb_record_explain_events() takes both. Such an errno is -EINVAL for what the user
 * said wrong, -ENOENT for a file or event that does not exist, -ENOEXEC for a file that is not ELF,
 * -ESRCH for a process, -EACCES or -EPERM without privilege, -EOPNOTSUPP for what the kernel cannot
 * do, -ENOMEM, or of reading a file. After an exit status in place of -1, only the release is left.
 *
 * Functions that append lines for the closing report append to @list, whose lines are separated by
 * '\n' without one at the end, and nothing if there is nothing to report. They return no error:
 * without memory the lines are shorter or missing. @figures is what sb_run_figures() gave for a
 * view of @run. No function of a report keeps what it is given.
 */
#ifndef SB_CLI_RECORD_H
#define SB_CLI_RECORD_H

#include "cli/outputs.h"
#include "cli/record_opts.h"
#include "run/run.h"

struct sb_record {
	struct sb_record_opts opts;
	struct sb_result_sink result; /* for commands that write a result at the end */
	struct sb_run run;
	bool no_report; /* do not log the closing report: the output contains the figures */
};

/* Set the defaults; overwrites all. @record may not be moved afterwards. The caller calls
 * sb_record_release() at the end. */
void sb_record_init(struct sb_record *record);
/* Parse @argv, which @fields then borrows, into @fields, which is that of sb_record_init(), or
 * zeroed and then given to sb_run_config_init() for its `run`, and which the caller releases, also
 * after an error, by sb_record_release() or sb_record_opts_release(). Return: -1 to go on, or the
 * exit status: SB_EXIT_DATA after --help and --version; otherwise errors were logged. */
int sb_record_parse(struct sb_record_opts *fields, const struct sb_command *command, char **argv);
/* In record_events.c: list the events that --list asks for; or add the view of --kind to
 * opts->run.views if there is none yet, and find the places of the events and spans for
 * opts->run.view_opts. Return: -1 to go on, or the exit status: after --list SB_EXIT_DATA, or
 * SB_EXIT_EMPTY if a pattern matches nothing; otherwise that of sb_record_explain_events(). Errors
 * were logged. What was found belongs to @opts, until sb_record_release(). */
int sb_record_find_events(struct sb_record_opts *opts);
/* In record_kinds.c, for `stackbpf record`, in place of sb_record_find_events(): find the
 * definitions that --kinds names, keep them in opts->definitions, and check that their events can
 * be traced now. A kind of allocations that no program samples now is left out after a warning, if
 * there are others. opts->recorder borrows @opts from then on. Return: -1 to go on, or the exit
 * status (exit.h), and the error was logged. */
int sb_record_find_kinds(struct sb_record_opts *opts);

/* In record_finish.c: check that the options of events go together, before any event is looked for:
 * during sb_record_parse() those of the command line, and for `record` those of each definition.
 * @takes_pairs: whether the view is one that takes pairs of events. Return: 0; -EINVAL with
 * @reason, a sentence, which the caller makes part of its own message. */
int sb_record_check_pairs(const struct sb_event_request *request, bool takes_pairs,
			  struct sb_reason *reason);
/* In record_allocs.c: call sb_run_find_allocs() for the view @kind, which puts the places to probe
 * into opts->probes, and tell the user how allocations are sampled and what that costs.
 * @is_recorded: the caller is `stackbpf record`; then the user is told nothing. Return: 0; a
 * negative errno with @reason. */
int sb_record_resolve_allocs(struct sb_record_opts *opts, const struct sb_view_kind *kind,
			     bool is_recorded, struct sb_view_opts *view_opts,
			     struct sb_reason *reason);
/*
 * In record_events.c: log why events cannot be traced. @err: the negative errno that came with
 * @reason. Return: the exit status that fits it: SB_EXIT_USAGE for -EINVAL, -ENOENT and -ENOEXEC,
 * SB_EXIT_NO_TARGET for -ESRCH, SB_EXIT_PRIVILEGE for -EPERM, -EACCES and -EOPNOTSUPP,
 * SB_EXIT_FAILED for all others.
 */
int sb_record_explain_events(const struct sb_reason *reason, int err);
/*
 * Sample according to record->opts, and log how it ended.
 * @sink: who takes the samples; its give_up is set; NULL: record->result writes them to the outputs
 *	of the options
 *
 * Call it once. Return: the exit status, errors were logged; that of the command, which it waits
 * for, if one was run and all else went well.
 */
int sb_record_go(struct sb_record *record, struct sb_run_sink *sink);
/* Free all that @record owns, after sb_record_init() at any time, also after an error; call it
 * once. */
void sb_record_release(struct sb_record *record);

/* Log the reason of a run that failed, if it has one. @status: what sb_run_go() or another function
 * of run/run.h returned. Return: the exit status, which is the same number. */
int sb_record_status(const struct sb_run *run, enum sb_run_status status);

/*
 * In report.c, after sb_run_go(): log the closing report of each view, which docs/loss.md explains.
 * @all_figures: log all statistics instead (--stats).
 */
void sb_report_run(const struct sb_run *run, bool all_figures);
/* In report_slowest.c: log the slowest calls with their stacks, if the run has any (--slowest). */
void sb_report_slowest(const struct sb_run *run);
/* After sb_run_go() returned SB_RUN_EMPTY: log why nothing was sampled. */
void sb_report_empty(const struct sb_run *run);

/* In report_spans.c: append what the closing report tells about spans to @list, which the caller
 * owns; nothing for a run without them. */
void sb_report_span_lines(const struct sb_run *run, const struct sb_run_figures *figures,
			  struct sb_str *list);
/* In report_spans.c, a part of sb_report_empty(): log why a run whose samples are restricted to
 * spans (sb_view_has_spans()) has none. @lost: why samples were lost, for the message if some
 * were. */
void sb_report_empty_spans(const struct sb_run *run, const struct sb_run_figures *figures,
			   const char *lost);
/* In report_spans.c: call @row for each figure of spans; its strings are valid during the call. For
 * a run without spans most of them are 0. */
void sb_report_spans(const struct sb_run *run, const struct sb_run_figures *figures,
		     void (*row)(const char *name, const char *value));

/* In report_memory.c: append to @list what the closing report tells about the memory of processes
 * and what it adds up to; nothing for views that do not follow pages. */
void sb_report_memory_lines(const struct sb_run *run, const struct sb_run_figures *figures,
			    struct sb_str *list);
/* In report_memory.c: append lines on which source the result is of, by what it cost, what it
 * cannot see, and which option would change it; nothing for a run without view_opts.fallback. */
void sb_report_source(const struct sb_run *run, const struct sb_run_figures *figures,
		      struct sb_str *list);
/* In report_goheap.c: append to @list, for each program of Go, whether its own heap profile is the
 * source, and if not, why, and how many processes were not looked at for one; nothing for a run
 * without view_opts.has_own_profiles. */
void sb_report_own_profiles(const struct sb_run *run, const struct sb_run_figures *figures,
			    struct sb_str *list);
/* In report_memory.c: say why a run has nothing to show, if its first view has sb_view_kind.empty.
 * Return: a constant string. */
const char *sb_report_memory_empty(const struct sb_run *run);
/* In report_memory.c: append to @list a line on processes that could not be read, and a line on
 * mappings that were not read, so that the kind of their memory is not known; nothing if there are
 * none. */
void sb_report_memory_unread(const struct sb_run_figures *figures, struct sb_str *list);
/* In report_memory.c: call @row for each figure of the memory of processes; its strings are valid
 * during the call. It is not called for views that do not follow pages. */
void sb_report_memory(const struct sb_run *run, const struct sb_run_figures *figures,
		      void (*row)(const char *name, const char *value));

/* In report_interp.c: append what the closing report tells about interpreters to @list; nothing for
 * a run without them. */
void sb_report_interp_lines(const struct sb_run *run, const struct sb_run_figures *figures,
			    struct sb_str *list);
/* In report_interp.c: call @row for each figure of interpreters, not for a run without them; its
 * strings are valid during the call. */
void sb_report_interps(const struct sb_run *run, const struct sb_run_figures *figures,
		       void (*row)(const char *name, const char *value));
/* In report_interp.c, after sb_run_go() and before the run is released: log for which interpreters
 * frames are missing, and why; nothing if none are. */
void sb_report_interp_warnings(const struct sb_run *run);

#endif
