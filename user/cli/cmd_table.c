// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/nearest.h"
#include "cli/command.h"
#include "cli/complete.h"
#include "kinds/view_kind.h"

#define NEEDS_NOTES "Root or certain capabilities are needed: 'stackbpf doctor' checks them.\n"

static const char sampling_notes[] = NEEDS_NOTES;

static const char top_notes[] =
	"Keys: q quit, p pause, s sort, w time span, f call tree, / filter, r reset,\n"
	"? help. If stdout is not a terminal, a table is printed at each refresh.\n"
	"'stackbpf live' is another name of this command.\n" NEEDS_NOTES;

static const char run_notes[] =
	"The children of the command are sampled, too. The flame graph is written to\n"
	"COMMAND-YYYYmmdd-HHMMSS.svg in the current directory, unless -o is given.\n"
	"The exit status is that of the command.\n" NEEDS_NOTES;

static const char export_notes[] =
	"PLACE is one of:\n"
	"  clickhouse:http://HOST:8123/DATABASE[?cluster=NAME]\n"
	"                            two tables, which are created if they are missing\n"
	"  otlp:http://HOST:4318     OpenTelemetry profiles, protocol 1.10 or newer\n"
	"  pyroscope:http://HOST:4040\n"
	"                            Pyroscope's POST /ingest\n"
	"  pprof-dir:DIR             a .pb.gz file for each period, kind and series\n"
	"  file:PATH                 one file; its extension selects the format\n"
	"Only data that was not sent to this place before is sent. Data that cannot be\n"
	"sent now stays in the store, and the next export sends it.\n";

static const char serve_notes[] =
	"Root is not needed: every user who may read the store can serve it. The store is\n"
	"not modified. Ctrl-C stops the server.\n";

static const char diff_notes[] =
	"A and B are files of folded stacks, or - for standard input. With --store, both\n"
	"profiles come from a store: --from, --to and --tag select A, and --vs-from,\n"
	"--vs-to and --vs-tag select B.\n";

static const char query_notes[] =
	"A table of the heaviest functions goes to stdout unless --format or -o is given.\n";

static const char store_notes[] =
	"  stat    show the size and the contents of the store\n"
	"  check   list damaged records; exit status 1 if there are any\n"
	"  prune   delete data that exceeds the age or size given by the options\n"
	"  merge   add the data of another host's store, DIR2\n";

static const char completion_notes[] =
	"The packages install the script where the shell looks for it. Without a package,\n"
	"add this line to ~/.bashrc:\n"
	"  source <(stackbpf completion bash)\n"
	"or this line to ~/.zshrc, after compinit:\n"
	"  source <(stackbpf completion zsh)\n"
	"or, for fish, run this once:\n"
	"  stackbpf completion fish >~/.config/fish/completions/stackbpf.fish\n";

static void complete_store(struct sb_completion *to)
{
	if (!to->nr_operands)
		sb_complete_add_all(to, "stat check prune merge");
	else
		sb_complete_directory(to);
}

static const struct sb_command commands[] = {
	{
		.name = "top",
		.alias = "live",
		.summary = "show the hottest functions and the call tree live in the terminal",
		.synopsis = "[options] [-- COMMAND [ARGUMENT...]]",
		.opts = sb_record_rows,
		.notes = top_notes,
		.run = sb_cmd_top,
	},
	{
		.name = "snap",
		.summary = "print the current stack of every thread of a process",
		.synopsis = "-p PID [options]",
		.opts = sb_record_rows,
		.notes = sampling_notes,
		.run = sb_cmd_snap,
	},
	{
		.name = "run",
		.summary = "run a command and draw a flame graph of it",
		.synopsis = "[options] -- COMMAND [ARGUMENT...]",
		.opts = sb_record_rows,
		.notes = run_notes,
		.run = sb_cmd_run,
	},
	{
		.name = "record",
		.summary = "record profiles continuously, with tags, into a store",
		.synopsis = "[--store DIR] [--kinds LIST] [options]",
		.opts = sb_record_rows,
		.notes = sampling_notes,
		.run = sb_cmd_record,
	},
	{
		.name = "query",
		.summary = "print what a store recorded in a time range, in any output format",
		.synopsis = "[--from TIME] [--to TIME] [--tag RULE] [options]",
		.opts = sb_query_rows,
		.notes = query_notes,
		.run = sb_cmd_query,
	},
	{
		.name = "timeline",
		.summary = "print how much a store recorded over time, in total or by tag",
		.synopsis = "[--from TIME] [--to TIME] [--tag RULE] [--by KEY]",
		.opts = sb_timeline_rows,
		.run = sb_cmd_timeline,
	},
	{
		.name = "diff",
		.summary = "compare two profiles, and tell real changes from noise",
		.synopsis = "[options] A B | --store DIR [--from ...] --vs-from ...",
		.opts = sb_diff_option_rows,
		.notes = diff_notes,
		.complete = sb_complete_file,
		.run = sb_cmd_diff,
	},
	{
		.name = "serve",
		.summary = "serve a store over HTTP, as a web page and to other programs",
		.synopsis = "[--store DIR] [--listen ADDRESS:PORT]",
		.opts = sb_serve_rows,
		.notes = serve_notes,
		.run = sb_cmd_serve,
	},
	{
		.name = "export",
		.summary = "send a store to ClickHouse, OpenTelemetry, Pyroscope or files",
		.synopsis = "--to PLACE [--follow] [options]",
		.opts = sb_export_rows,
		.notes = export_notes,
		.run = sb_cmd_export,
	},
	{
		.name = "store",
		.summary = "show the size of a store; check, prune or merge it",
		.synopsis = "stat|check|prune|merge [options] [DIR2]",
		.opts = sb_store_rows,
		.notes = store_notes,
		.complete = complete_store,
		.run = sb_cmd_store,
	},
	{
		.name = "doctor",
		.summary = "check what this kernel and your privileges allow stackbpf to do",
		.synopsis = "[-p PID]",
		.opts = sb_doctor_rows,
		.run = sb_cmd_doctor,
	},
	{
		.name = "help",
		.summary = "explain a command and its options",
		.synopsis = "[COMMAND]",
		.opts = sb_help_rows,
		.complete = sb_complete_command,
		.run = sb_cmd_help,
	},
	{
		.name = "completion",
		.summary = "print the Tab completion script for a shell",
		.synopsis = "bash|zsh|fish",
		.opts = sb_help_rows,
		.notes = completion_notes,
		.complete = sb_complete_shell,
		.run = sb_cmd_completion,
	},
};

#define RECORD_NOTES                                                                        \
	"Folded stacks go to stdout unless -o is given. Ctrl-C stops sampling and writes\n" \
	"the result; a second Ctrl-C discards it. SIGUSR1 writes the result so far, and\n"  \
	"sampling goes on.\n" NEEDS_NOTES

static const char record_notes[] = RECORD_NOTES;

/* Spellings of events and expressions, of which the man page of trace has the rest. */
#define FUNCTION_NOTES                                                          \
	"  c:fsync                  function of a library (c: the C library)\n" \
	"  /usr/bin/app:main        function of a program or any other file\n"  \
	"  vfs_read                 function of the kernel\n"
#define OTHER_NOTES                                              \
	"  r:c:fsync, kr:vfs_read   return of a function\n"      \
	"  sched:sched_switch       tracepoint, CATEGORY:NAME\n" \
	"  u:/usr/bin/app:probe     USDT probe of a file\n"
#define EXPR_NOTES                                                                           \
	"* and ? stand for any letters: 'c:pthread_*'. --list prints what there is.\n"       \
	"EXPR is written as in C, over the fields of a tracepoint (args->sector), arg0 to\n" \
	"arg5 of a function, retval of a return, comm, pid, tid, cpu, and str(ADDRESS).\n"
#define MORE_NOTES "stackbpf-trace(8) has all spellings of EVENT, and the operators of EXPR.\n"

static const char event_notes[] = RECORD_NOTES
	"\nEVENT is one of\n" FUNCTION_NOTES OTHER_NOTES
	"  page-faults              counter, as perf spells it\n"
	"  syscalls                 preset: a name for events with their options\n" EXPR_NOTES
		MORE_NOTES;
static const char call_notes[] =
	RECORD_NOTES "\nEVENT is a function, whose calls are measured:\n" FUNCTION_NOTES
		     "or, only for --from and --to, also one of\n" OTHER_NOTES EXPR_NOTES
		     "Calls also have elapsed, their duration in nanoseconds.\n" MORE_NOTES;

static const char *synopsis_of(const struct sb_view_kind *kind)
{
	if (kind->takes_calls)
		return "EVENT...|--from EVENT --to EVENT [options] [-- COMMAND]";
	return kind->takes_events ? "EVENT... [options] [-- COMMAND [ARGUMENT...]]"
				  : "[options] [-- COMMAND [ARGUMENT...]]";
}

static const char *notes_of(const struct sb_view_kind *kind)
{
	if (kind->takes_calls)
		return call_notes;
	return kind->takes_events ? event_notes : record_notes;
}

bool sb_command_at(size_t i, struct sb_command *ret_command)
{
	if (i < SB_VIEW_KIND_MAX) {
		*ret_command = (struct sb_command){
			.name = sb_view_kinds[i].name,
			.summary = sb_view_kinds[i].summary,
			.synopsis = synopsis_of(&sb_view_kinds[i]),
			.opts = sb_record_rows,
			.notes = notes_of(&sb_view_kinds[i]),
			.complete = sb_view_kinds[i].takes_events ? sb_complete_events : NULL,
			.run = sb_cmd_view,
		};
		return true;
	}
	i -= SB_VIEW_KIND_MAX;
	if (i >= SB_ARRAY_SIZE(commands))
		return false;
	*ret_command = commands[i];
	return true;
}

bool sb_command_find(const char *name, struct sb_command *ret_command)
{
	struct sb_command command;
	size_t i;

	for (i = 0; sb_command_at(i, &command); i++) {
		if (sb_streq(command.name, name) ||
		    (command.alias && sb_streq(command.alias, name))) {
			*ret_command = command;
			return true;
		}
	}
	return false;
}

int sb_command_unknown(const char *name)
{
	struct sb_nearest nearest = { .typed = name };
	struct sb_command command;
	size_t i;

	for (i = 0; sb_command_at(i, &command); i++)
		sb_nearest_offer(&nearest, command.name);
	if (nearest.name)
		sb_err(0, "there is no command '%s'; did you mean '%s'?", name, nearest.name);
	else
		sb_err(0, "there is no command '%s'; 'stackbpf help' lists them", name);
	return SB_EXIT_USAGE;
}
