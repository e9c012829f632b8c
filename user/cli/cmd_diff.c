// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* stackbpf diff A B: compares two files, or two queries to a store. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/complete.h"
#include "cli/result.h"
#include "cli/store_opts.h"
#include "cli/wrap.h"
#include "flamegraph/fg.h"
#include "model/calltree.h"
#include "output/comparison.h"
#include "output/input.h"

#define ROWS_DEFAULT  30
#define NODES_DEFAULT 100000

struct diff_opts {
	struct sb_common_opts common; /* first */
	struct sb_store_args store;   /* of the baseline */
	const char *vs_from, *vs_to;
	sb_vec_str vs_tags;
	const char *output, *title;
	const struct sb_comparison_output *format;
	uint32_t norm, sort, width, nr_rows, nr_nodes;
	bool is_negated;
};

static int parse_format(void *field, const char *value, const char **ret_why)
{
	const struct sb_comparison_output **format = field;

	*format = sb_comparison_output_find(value);
	*ret_why = "is not a format; use table, svg, html, folded or json";
	return *format ? 0 : -EINVAL;
}

static void complete_format(struct sb_completion *to)
{
	size_t i;

	for (i = 0; sb_comparison_output_at(i); i++)
		sb_complete_add(to, sb_comparison_output_at(i)->name,
				sb_comparison_output_at(i)->summary);
}

static const struct sb_opt_word norms[] = {
	{ "share", SB_DIFF_SHARE }, { "rate", SB_DIFF_RATE }, { "raw", SB_DIFF_RAW }, {}
};
static const struct sb_opt_word sorts[] = { { "self", SB_DIFF_BY_SELF },
					    { "total", SB_DIFF_BY_TOTAL },
					    {} };
static const struct sb_opt_word widths[] = { { "b", 0 }, { "a", 1 }, { "both", 2 }, {} };

#define AT(field) .offset = offsetof(struct diff_opts, field)

/* clang-format off */
const struct sb_opt sb_diff_option_rows[] = {
	SB_STORE_ROWS(struct diff_opts, store, "the root frames of each stack"),
	{ .name = "vs-from", .metavar = "TIME", .type = SB_OPT_TIME, .group = SB_OPT_STORE, AT(vs_from),
	  .suggest = SB_STORE_FROM_SUGGEST,
	  .help = "start of the time range of B (default: the range of A)" },
	{ .name = "vs-to", .metavar = "TIME", .type = SB_OPT_TIME, .group = SB_OPT_STORE, AT(vs_to),
	  .suggest = SB_STORE_TO_SUGGEST,
	  .help = "end of the time range of B (with --vs-from: default now)" },
	{ .name = "vs-tag", .metavar = "RULE", .type = SB_OPT_STRINGS, .group = SB_OPT_STORE, AT(vs_tags),
	  .help = "select the series of B by their tags (default: the rules of --tag)" },
	{ .name = "norm", .metavar = "BY", .type = SB_OPT_WORD, .group = SB_OPT_OUTPUT, AT(norm),
	  .words = norms,
	  .help = "what to compare: share (of the whole profile; default), rate (per second "
		  "and CPU), raw (the plain numbers)" },
	{ .name = "sort", .metavar = "BY", .type = SB_OPT_WORD, .group = SB_OPT_OUTPUT, AT(sort),
	  .words = sorts, .help = "sort the table by the change of the own weight of functions "
			   "(self, default) or of their total weight (total)" },
	{ .name = "limit", .metavar = "N", .type = SB_OPT_U32, .group = SB_OPT_OUTPUT, AT(nr_rows),
	  .max = UINT32_MAX, .help = "number of functions in the table (default 30); 0: all" },
	{ .name = "nodes", .metavar = "N", .type = SB_OPT_U32, .group = SB_OPT_OUTPUT, AT(nr_nodes),
	  .min = 2, .max = UINT32_MAX,
	  .help = "draw only the N largest frames; the others become \"(other)\" (default "
		  "100000)" },
	{ .name = "width", .metavar = "OF", .type = SB_OPT_WORD, .group = SB_OPT_OUTPUT, AT(width),
	  .words = widths, .help = "the width of a frame is its weight in b (default), in a, "
				   "or with both the mean of the two" },
	{ .name = "negate", .type = SB_OPT_ON, .group = SB_OPT_OUTPUT, AT(is_negated),
	  .help = "swap the colors of the flame graph: red is less, blue is more" },
	{ .name = "output", .letters = "o", .metavar = "FILE", .type = SB_OPT_STRING,
	  .group = SB_OPT_OUTPUT, AT(output), .complete = sb_complete_file,
	  .help = "write to FILE in the format of its extension: .svg, .html, .folded, "
		  ".json, .txt; '-' is stdout" },
	{ .name = "format", .metavar = "NAME", .type = SB_OPT_PARSED, .group = SB_OPT_OUTPUT,
	  AT(format), .parse = parse_format, .complete = complete_format,
	  .help = "table (default), svg, html, folded, json" },
	{ .name = "title", .metavar = "TEXT", .type = SB_OPT_STRING, .group = SB_OPT_OUTPUT, AT(title),
	  .help = "title of the flame graph" },
	SB_COMMON_ROWS,
	SB_OPT_END
};
/* clang-format on */

/* The two sides, and what they are called. */
struct sides {
	struct sb_profile *profiles[SB_TREE_NR];
	struct sb_str what[SB_TREE_NR];
};

static void sides_release(struct sides *sides)
{
	int side;

	for (side = 0; side < SB_TREE_NR; side++) {
		sb_profile_free(sides->profiles[side]);
		sb_str_release(&sides->what[side]);
	}
}

/* ---- files ---- */

static int read_text(struct sb_fg *fg, const char *path, const char *name)
{
	sb_cleanup(sb_closep) int opened = -1;
	const char *complaint;
	int fd = STDIN_FILENO, err;

	if (!sb_streq(path, "-")) {
		fd = opened = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (opened < 0)
			return sb_fail(SB_EXIT_FAILED, -errno, "cannot read '%s'", path);
	}
	err = sb_fg_read(fg, fd);
	while ((complaint = sb_fg_complaint(fg))) {
		if (err == -EINVAL)
			return sb_fail(SB_EXIT_FAILED, 0, "diff: the input '%s' %s", name,
				       complaint);
		sb_warn("diff: reading '%s': %s", name, complaint);
	}
	if (!err)
		return -1;
	return sb_fail(SB_EXIT_FAILED, err, "cannot read '%s'", name);
}

/* Return: -1, or an exit status; errors were logged. */
static int read_side(struct sides *sides, int side, const char *path)
{
	sb_cleanup(sb_fg_freep) struct sb_fg *fg = NULL;
	const char *name = sb_streq(path, "-") ? "standard input" : path;
	uint64_t nr_rounded = 0;
	int err = sb_fg_new(&fg) ?: sb_str_add(&sides->what[side], name), status;

	if (!err) {
		status = read_text(fg, path, name);
		if (status >= 0)
			return status;
		err = sb_input_profile(fg, &sides->profiles[side], &nr_rounded);
	}
	if (err == -EINVAL)
		return sb_fail(SB_EXIT_FAILED, 0,
			       "'%s' has two counts on each line, so it is a comparison already; "
			       "draw it with 'flamegraph %s'",
			       name, path);
	if (err)
		return sb_fail(SB_EXIT_FAILED, err, "diff: cannot add up the stacks of '%s'", name);
	if (nr_rounded)
		sb_warn("diff: rounded %llu fractional weights of '%s' to whole numbers",
			(unsigned long long)nr_rounded, name);
	return -1;
}

static int read_files(struct sides *sides, const sb_vec_str *paths)
{
	int side, status = -1;

	if (sb_streq(paths->at[SB_TREE_A], "-") && sb_streq(paths->at[SB_TREE_B], "-"))
		return sb_fail(SB_EXIT_USAGE, 0,
			       "diff: standard input ('-') can be only one of A and B; name a "
			       "file");
	for (side = 0; side < SB_TREE_NR && status < 0; side++)
		status = read_side(sides, side, paths->at[side]);
	return status;
}

/* ---- a store ---- */

/* "2026-11-21T10:00:00Z to 2026-11-21T11:00:00Z, service=car" */
static int name_side(struct sides *sides, int side)
{
	const struct sb_metadata *known = sb_profile_metadata(sides->profiles[side]);

	return sb_str_addf(&sides->what[side], "%s to %s%s%s", known->from ?: "?", known->to ?: "?",
			   known->tags ? ", " : "", known->tags ?: "");
}

static int ask_side(struct sides *sides, int side, const struct sb_store_args *args,
		    struct sb_store *store, const struct sb_ask *ask)
{
	struct sb_store_answer answer = {};
	int err = sb_ask_profile(store, ask, &sides->profiles[side], &answer), status;

	if (!err)
		err = name_side(sides, side);
	if (err)
		return sb_store_args_failed(args, "diff", err);
	status = sb_store_say_answer(args, store, ask, &answer);
	if (status != SB_EXIT_DATA)
		return status;
	sb_store_say_names(sides->profiles[side]);
	return -1;
}

/* What is not said of the second question is as in the first. */
static struct sb_store_args args_of_b(const struct diff_opts *opts)
{
	struct sb_store_args args = opts->store;

	if (opts->vs_from || opts->vs_to) {
		args.from = opts->vs_from;
		args.to = opts->vs_to;
		args.side = "vs-";
	}
	if (opts->vs_tags.nr)
		args.tags = opts->vs_tags;
	return args;
}

static int ask_store(struct sides *sides, const struct diff_opts *opts)
{
	const struct sb_store_args args[SB_TREE_NR] = { opts->store, args_of_b(opts) };
	sb_cleanup(sb_store_closep) struct sb_store *store = NULL;
	struct sb_ask asks[SB_TREE_NR] = {};
	int64_t now_s = time(NULL);
	int side, status;

	if (!opts->vs_from && !opts->vs_to && !opts->vs_tags.nr)
		return sb_fail(
			SB_EXIT_USAGE, 0,
			"diff: a second profile is missing: name two files, or select B with "
			"--vs-from, --vs-to or --vs-tag");
	status = sb_store_args_open(&opts->store, &store);
	for (side = 0; side < SB_TREE_NR && status < 0; side++) {
		status = sb_store_args_ask(&args[side], "diff", now_s, &asks[side]);
		asks[side].is_compared = true;
		if (status < 0)
			status = ask_side(sides, side, &args[side], store, &asks[side]);
	}
	for (side = 0; side < SB_TREE_NR; side++)
		sb_ask_release(&asks[side]);
	return status;
}

/* ---- the result ---- */

struct written {
	const struct sb_comparison *comparison;
	const struct diff_opts *opts;
};

static int write_comparison(const void *arg, FILE *out)
{
	const struct written *written = arg;
	const struct diff_opts *opts = written->opts;
	const struct sb_comparison_opts how = {
		.title = opts->title,
		.width = widths[opts->width].name,
		.is_negated = opts->is_negated,
		.sort = opts->sort,
		.nr_rows = opts->nr_rows,
		.nr_columns =
			!opts->output && isatty(STDOUT_FILENO) ? sb_wrap_columns(STDOUT_FILENO) : 0,
	};

	return opts->format->write(written->comparison, &how, out);
}

static int write_result(const struct sb_comparison *comparison, const struct diff_opts *opts)
{
	const struct written written = { comparison, opts };

	return sb_result_write_by(opts->output ? opts->output : "-", write_comparison, &written)
		       ? SB_EXIT_FAILED
		       : SB_EXIT_DATA;
}

static int say_incomparable(int err, const struct sides *sides)
{
	if (err == -EINVAL)
		sb_err(0,
		       "cannot compare '%s' with '%s': they have different units; choose two "
		       "profiles of the same kind",
		       sides->what[SB_TREE_A].s, sides->what[SB_TREE_B].s);
	else if (err == -ENODATA)
		sb_err(0, "diff: --norm rate needs the duration of both profiles, but one has "
			  "no dur_us in its header; use --norm share");
	else if (err == -E2BIG)
		sb_err(0,
		       "cannot compare '%s' with '%s': they have too many different stacks; choose "
		       "shorter times, or fewer processes",
		       sides->what[SB_TREE_A].s, sides->what[SB_TREE_B].s);
	else
		sb_err(err, "cannot compare the two profiles");
	return SB_EXIT_FAILED;
}

static bool is_empty(const struct sides *sides)
{
	int side;

	for (side = 0; side < SB_TREE_NR; side++) {
		if (sb_profile_weight(sides->profiles[side]))
			continue;
		sb_err(0,
		       "there is nothing to compare: '%s' contains no stacks; record this side again, or "
		       "choose another file or time range",
		       sides->what[side].s);
		return true;
	}
	return false;
}

static int compare(const struct sides *sides, const struct diff_opts *opts)
{
	struct sb_tree *tree = NULL;
	struct sb_comparison comparison = {};
	const bool has_tree =
		opts->format == &sb_comparison_svg || opts->format == &sb_comparison_html;
	int side, err, status;

	if (is_empty(sides))
		return SB_EXIT_EMPTY;
	err = sb_calltree_new(sides->profiles[SB_TREE_A], sides->profiles[SB_TREE_B], &tree);
	if (!err && has_tree)
		err = sb_tree_prune(tree, opts->nr_nodes, SB_FRAME_MARK);
	comparison.tree = tree;
	for (side = 0; side < SB_TREE_NR; side++) {
		comparison.sides[side] = sides->profiles[side];
		comparison.what[side] = sides->what[side].s;
	}
	err = err
		      ?: sb_calltree_diff(&comparison.diff, tree, sides->profiles[SB_TREE_A],
					  sides->profiles[SB_TREE_B], opts->norm);
	if (!err && tree->nr_cut)
		sb_info("%llu small frames were merged into \"(other)\", because --nodes is "
			"%u; raise it to see them",
			(unsigned long long)tree->nr_cut, opts->nr_nodes);
	status = err ? say_incomparable(err, sides) : write_result(&comparison, opts);
	sb_tree_free(tree);
	return status;
}

static int choose_format(struct diff_opts *opts)
{
	bool is_file = opts->output && !sb_streq(opts->output, "-");

	if (!opts->format)
		opts->format =
			is_file ? sb_comparison_output_by_path(opts->output) : &sb_comparison_table;
	return opts->format ? 0
			    : sb_fail(SB_EXIT_USAGE, 0,
				      "diff: -o '%s': no format has this extension; use one of "
				      ".svg, .html, .folded, .json, .txt, or --format",
				      opts->output);
}

static int run(struct diff_opts *opts, const sb_vec_str *operands)
{
	struct sides sides = {};
	int status = choose_format(opts);

	if (status)
		return status;
	if (operands->nr && operands->nr != SB_TREE_NR)
		return sb_fail(SB_EXIT_USAGE, 0,
			       "diff: name two files, A and B, or none and use --store; %zu given",
			       operands->nr);
	if (operands->nr &&
	    (opts->vs_from || opts->vs_to || opts->vs_tags.nr || opts->store.tags.nr ||
	     opts->store.from || opts->store.to || opts->store.dir)) {
		return sb_fail(
			SB_EXIT_USAGE, 0,
			"diff: name two files, or use --store and its options, but not both");
	}
	status = operands->nr ? read_files(&sides, operands) : ask_store(&sides, opts);
	if (status < 0)
		status = compare(&sides, opts);
	sides_release(&sides);
	return status;
}

int sb_cmd_diff(const struct sb_command *command, char **argv)
{
	struct diff_opts fields = { .nr_rows = ROWS_DEFAULT, .nr_nodes = NODES_DEFAULT };
	struct sb_opts opts = { .fields = &fields };
	int status = sb_command_parse(command, &opts, argv);

	if (status < 0 && opts.tail) {
		sb_err(0, "diff: '--' has no meaning here, because diff runs no command; leave it "
			  "out");
		status = SB_EXIT_USAGE;
	}
	if (status < 0)
		status = run(&fields, &opts.operands);
	sb_opts_release(&opts);
	sb_store_args_release(&fields.store);
	sb_vec_release(&fields.vs_tags);
	return status;
}
