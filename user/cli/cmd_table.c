// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/complete.h"
#include "cli/nearest.h"
#include "kinds/view_kind.h"

static const char top_notes[] =
	"Keys: q quit, p pause, s sort, w span, f tree of calls, / filter, r reset, ? help.\n"
	"Where stdout is no terminal, a table each time. 'stackbpf live' is the same.\n";

static const char run_notes[] =
	"Its children, too. The picture is COMMAND-YYYYmmdd-HHMMSS.svg here, unless -o is given;\n"
	"the exit status is the command's.\n";

static const char export_notes[] =
	"Places:\n"
	"  clickhouse:http://HOST:8123/DATABASE[?cluster=NAME]   two tables, made if need be\n"
	"  otlp:http://HOST:4318     OpenTelemetry profiles, protocol 1.10 or newer\n"
	"  pyroscope:http://HOST:4040                            POST /ingest\n"
	"  pprof-dir:DIR             a .pb.gz for each period, kind and series\n"
	"  file:PATH                 one file of any format, by its extension\n"
	"Sent is what was not sent there before; the store keeps what cannot be sent now.\n";

static const char serve_notes[] =
	"Without root: whoever may read the store. It changes nothing, and ends with Ctrl-C.\n";

static const char diff_notes[] =
	"A and B are files of folded stacks, or - for standard input. Of a store, --from, --to and --tag\n"
	"ask for A, --vs-from, --vs-to and --vs-tag for B.\n";

static const char query_notes[] =
	"The heaviest functions go to stdout unless --format or -o is given.\n";

static const char store_notes[] =
	"  stat    how large it is, and what it has\n"
	"  check   which records are damaged; exit status 1 if there are any\n"
	"  prune   remove what is older, or more, than the options say\n"
	"  merge   add what another store, DIR2, has: of another host\n";

static const char completion_notes[] =
	"Packages install it where the shell looks for it. Otherwise, for bash, in ~/.bashrc:\n"
	"  source <(stackbpf completion bash)\n"
	"zsh the same, in ~/.zshrc behind compinit; for fish, once:\n"
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
		.summary = "functions and calls of the last seconds, on the terminal",
		.synopsis = "[options]",
		.opts = sb_record_rows,
		.notes = top_notes,
		.run = sb_cmd_top,
	},
	{
		.name = "snap",
		.summary = "what each thread of a process does now",
		.synopsis = "-p PID [options]",
		.opts = sb_record_rows,
		.run = sb_cmd_snap,
	},
	{
		.name = "run",
		.summary = "a command, and a picture of what it did",
		.synopsis = "[options] -- COMMAND [ARGUMENT...]",
		.opts = sb_record_rows,
		.notes = run_notes,
		.run = sb_cmd_run,
	},
	{
		.name = "record",
		.summary = "always on: profiles over time, with tags, into a store",
		.synopsis = "[--store DIR] [--kinds LIST] [options]",
		.opts = sb_record_rows,
		.run = sb_cmd_record,
	},
	{
		.name = "query",
		.summary = "what a store has of a range of time, as any format",
		.synopsis = "[--from TIME] [--to TIME] [--tag RULE] [options]",
		.opts = sb_query_rows,
		.notes = query_notes,
		.run = sb_cmd_query,
	},
	{
		.name = "timeline",
		.summary = "how much there was at each time, by a tag",
		.synopsis = "[--from TIME] [--to TIME] [--tag RULE] [--by KEY]",
		.opts = sb_timeline_rows,
		.run = sb_cmd_timeline,
	},
	{
		.name = "diff",
		.summary = "what changed from A to B, and what of it is noise",
		.synopsis = "[options] A B | --store DIR [question] --vs-from ... --vs-tag ...",
		.opts = sb_diff_option_rows,
		.notes = diff_notes,
		.complete = sb_complete_file,
		.run = sb_cmd_diff,
	},
	{
		.name = "serve",
		.summary = "a store as a page, and for other programs, over HTTP",
		.synopsis = "[--store DIR] [--listen ADDRESS:PORT]",
		.opts = sb_serve_rows,
		.notes = serve_notes,
		.run = sb_cmd_serve,
	},
	{
		.name = "export",
		.summary = "send a store to ClickHouse, OpenTelemetry, Pyroscope, or to files",
		.synopsis = "--to PLACE [--follow] [options]",
		.opts = sb_export_rows,
		.notes = export_notes,
		.run = sb_cmd_export,
	},
	{
		.name = "store",
		.summary = "how large a store is, what is damaged; prune and merge",
		.synopsis = "stat|check|prune|merge [options] [DIR2]",
		.opts = sb_store_rows,
		.notes = store_notes,
		.complete = complete_store,
		.run = sb_cmd_store,
	},
	{
		.name = "doctor",
		.summary = "what this kernel, these privileges and a process allow",
		.synopsis = "[-p PID]",
		.opts = sb_doctor_rows,
		.run = sb_cmd_doctor,
	},
	{
		.name = "help",
		.summary = "what a command does, and its options",
		.synopsis = "[COMMAND]",
		.opts = sb_help_rows,
		.complete = sb_complete_command,
		.run = sb_cmd_help,
	},
	{
		.name = "completion",
		.summary = "for a shell: what it completes at the Tab key",
		.synopsis = "bash|zsh|fish",
		.opts = sb_help_rows,
		.notes = completion_notes,
		.complete = sb_complete_shell,
		.run = sb_cmd_completion,
	},
};

static const char record_notes[] =
	"Folded stacks go to stdout unless -o is given. Ctrl-C ends the run and writes the\n"
	"result, a second one gives it up; SIGUSR1 writes what there is so far and goes on.\n";

bool sb_command_at(size_t i, struct sb_command *ret_command)
{
	if (i < SB_VIEW_KIND_MAX) {
		*ret_command = (struct sb_command){
			.name = sb_view_kinds[i].name,
			.summary = sb_view_kinds[i].summary,
			.synopsis = "[options] [-- COMMAND [ARGUMENT...]]",
			.opts = sb_record_rows,
			.notes = record_notes,
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
