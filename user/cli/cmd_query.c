// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* stackbpf query: prints what a store recorded in a time range. */

#include "base/cleanup.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/complete.h"
#include "cli/result.h"
#include "cli/store_opts.h"

struct query_opts {
	struct sb_common_opts common; /* first */
	struct sb_store_args store;
	const char *format, *path, *title;
	const struct sb_output *chosen; /* by format and path */
	uint32_t limit;
	bool annotate, modules, no_header;
};

static void complete_format(struct sb_completion *to)
{
	const struct sb_output *output;
	size_t i;

	sb_complete_add(to, sb_output_top.name, sb_output_top.summary);
	for (i = 0; (output = sb_output_at(i)); i++)
		if (!output->needs_durations)
			sb_complete_add(to, output->name, output->summary);
}

/* clang-format off */
const struct sb_opt sb_query_rows[] = {
	SB_STORE_ROWS(struct query_opts, store, "the root frames of each stack"),
	{ .name = "format", .metavar = "NAME", .type = SB_OPT_STRING, .group = SB_OPT_OUTPUT,
	  .offset = offsetof(struct query_opts, format), .complete = complete_format,
	  .help = "top (default: table of functions), folded, svg, html, pprof, otlp, "
		  "speedscope, firefox, callgrind, json, bt" },
	{ .name = "output", .letters = "o", .metavar = "FILE", .type = SB_OPT_STRING,
	  .group = SB_OPT_OUTPUT, .offset = offsetof(struct query_opts, path), .complete = sb_complete_file,
	  .help = "write to FILE in the format of its extension: .folded, .svg, .html, .pb.gz, .otlp, "
		  ".speedscope.json, .firefox.json.gz, .callgrind, .json, .bt; '-' is stdout" },
	{ .name = "limit", .letters = "l", .metavar = "N", .type = SB_OPT_U32, .group = SB_OPT_OUTPUT,
	  .offset = offsetof(struct query_opts, limit), .min = 1, .max = UINT32_MAX,
	  .help = "print only the N heaviest stacks; in the format top: functions (default "
		  "40)" },
	{ .name = "annotate", .type = SB_OPT_ON, .group = SB_OPT_OUTPUT,
	  .offset = offsetof(struct query_opts, annotate), .help = "mark frames by kind: "
								   "_[k] kernel, _[i] "
								   "inlined, _[j] compiled "
								   "at run time (JIT), _[p] "
								   "interpreter, _[f] file, "
								   "_[w] waker" },
	{ .name = "modules", .type = SB_OPT_ON, .group = SB_OPT_OUTPUT,
	  .offset = offsetof(struct query_opts, modules), .help = "add the name of the "
								  "program or library that "
								  "contains the function" },
	{ .name = "title", .metavar = "TEXT", .type = SB_OPT_STRING, .group = SB_OPT_OUTPUT,
	  .offset = offsetof(struct query_opts, title), .help = "title of the flame graph" },
	{ .name = "no-header", .type = SB_OPT_ON, .group = SB_OPT_OUTPUT,
	  .offset = offsetof(struct query_opts, no_header), .help = "omit the header line of "
								    "folded stacks" },
	SB_COMMON_ROWS,
	SB_OPT_END
};
/* clang-format on */

static const struct sb_output *choose_format(const struct query_opts *fields)
{
	const char *top = sb_output_top.name, *name = fields->format;

	if (!name && (!fields->path || sb_streq(fields->path, "-")))
		name = top;
	if (name && sb_streq(name, top))
		return &sb_output_top;
	return sb_result_format(fields->path, name);
}

static int check(void *arg)
{
	struct query_opts *fields = arg;

	fields->chosen = choose_format(fields);
	if (!fields->chosen)
		return SB_EXIT_USAGE;
	if (!fields->chosen->needs_durations)
		return -1;
	return sb_fail(SB_EXIT_USAGE, 0,
		       "format '%s' needs the duration of each event, which a store does not "
		       "keep; choose another --format",
		       fields->chosen->name);
}

static int answer(const void *arg, struct sb_store *store, const struct sb_ask *ask)
{
	const struct query_opts *fields = arg;
	const struct sb_output_opts opts = {
		.fold = {
			.annotate = fields->annotate,
			.modules = fields->modules,
			.header = !fields->no_header,
			.limit = fields->limit,
		},
		.title = fields->title,
	};
	sb_cleanup(sb_profile_freep) struct sb_profile *profile = NULL;
	struct sb_store_answer found;
	int status, err = sb_ask_profile(store, ask, &profile, &found);

	if (err)
		return sb_store_args_failed(&fields->store, "query", err);
	status = sb_store_say_answer(&fields->store, store, ask, &found);
	if (status != SB_EXIT_DATA)
		return status;
	sb_store_say_names(profile);
	if (sb_result_note_limit(profile, fields->chosen == &sb_output_top ? 0 : fields->limit) ||
	    sb_result_write(fields->chosen, fields->path ? fields->path : "-", profile, &opts))
		return SB_EXIT_FAILED;
	return SB_EXIT_DATA;
}

int sb_cmd_query(const struct sb_command *command, char **argv)
{
	struct query_opts fields = {};

	return sb_store_command_run(
		&(struct sb_store_command){ &fields, &fields.store, check, answer }, command, argv);
}
