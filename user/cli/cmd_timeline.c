// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* stackbpf timeline: prints weights over time. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/result.h"
#include "cli/store_opts.h"
#include "cli/wrap.h"
#include "serve/store_json.h"

/* Of a line, without its bars. */
#define TEXT_COLUMNS 42
#define NAME_COLUMNS 20
#define BARS_MIN     8u
#define BARS_MAX     400u

enum { TABLE, TSV, JSON };

static const struct sb_opt_word formats[] = {
	{ "table", TABLE }, { "tsv", TSV }, { "json", JSON }, {}
};

struct timeline_opts {
	struct sb_common_opts common; /* first */
	struct sb_store_args store;
	const char *step;
	int64_t step_s; /* 0: as long as fits */
	uint32_t format;
};

/* clang-format off */
const struct sb_opt sb_timeline_rows[] = {
	SB_STORE_ROWS(struct timeline_opts, store, "a line each"),
	{ .name = "step", .metavar = "TIME", .type = SB_OPT_STRING, .group = SB_OPT_OUTPUT,
	  .offset = offsetof(struct timeline_opts, step), .suggest = "10s 1m 10m 1h 1d",
	  .help = "length of a step, a multiple of 10 s: 10s, 5m, 1h (default: chosen so "
		  "that the output fits)" },
	{ .name = "format", .metavar = "NAME", .type = SB_OPT_WORD, .group = SB_OPT_OUTPUT,
	  .offset = offsetof(struct timeline_opts, format), .words = formats,
	  .help = "table (default), tsv, json" },
	SB_COMMON_ROWS,
	SB_OPT_END
};
/* clang-format on */

/* The table. */

/* As many as fit into a line. */
static uint32_t nr_bars(void)
{
	uint32_t nr_columns = sb_wrap_columns(STDOUT_FILENO), nr;

	if (nr_columns < TEXT_COLUMNS + BARS_MIN)
		return BARS_MIN;
	nr = nr_columns - (uint32_t)TEXT_COLUMNS;
	return nr < BARS_MAX ? nr : BARS_MAX;
}

static int print_name(const char *value, FILE *out)
{
	sb_cleanup(sb_str_release) struct sb_str name = {};
	int err = sb_str_add(&name, value[0] ? value : "all");

	if (!err)
		sb_replace_controls(name.s, name.len);
	if (!err)
		fprintf(out, "%-*.*s", NAME_COLUMNS, NAME_COLUMNS, name.s);
	return err;
}

/* A bar for each step; where nothing was recorded there is a point. */
static void print_bars(const struct sb_timeline *timeline, const struct sb_timeline_series *series,
		       size_t first, FILE *out)
{
	static const char *const bars[] = { "\u2581", "\u2582", "\u2583", "\u2584",
					    "\u2585", "\u2586", "\u2587", "\u2588" };
	uint64_t max = 1;
	size_t i;

	for (i = 0; i < timeline->nr_steps; i++)
		max = series->weights[i] > max ? series->weights[i] : max;
	for (i = first; i < timeline->nr_steps && i < first + nr_bars(); i++) {
		uint64_t weight = series->weights[i];

		if (!timeline->sampled_ms[i])
			fputs(".", out);
		else if (!weight)
			fputs(" ", out);
		else
			fputs(bars[(size_t)((double)(weight - 1) / (double)max * 8)], out);
	}
}

static int print_series(const struct sb_timeline *timeline, const struct sb_timeline_series *series,
			size_t first, FILE *out)
{
	uint64_t all = timeline->answer.weight;
	int err = print_name(series->value, out);

	fprintf(out, " %12" PRIu64 " %5.1f%% ", series->weight,
		all ? 100.0 * (double)series->weight / (double)all : 0.0);
	print_bars(timeline, series, first, out);
	fputc('\n', out);
	return err;
}

/* The steps from @first on that fit into a line, below their time. */
static int print_part(const struct sb_timeline *timeline, size_t first, FILE *out)
{
	char from[SB_ASK_TIME_BYTES], to[SB_ASK_TIME_BYTES];
	size_t last = first + nr_bars(), i;
	int err = 0;

	last = last < timeline->nr_steps ? last : timeline->nr_steps;
	sb_ask_print_time(timeline->from_s + (int64_t)first * timeline->step_s, from);
	sb_ask_print_time(timeline->from_s + (int64_t)last * timeline->step_s, to);
	fprintf(out, "%s to %s\n", from, to);
	for (i = 0; i < timeline->series.nr && !err; i++)
		err = print_series(timeline, &timeline->series.at[i], first, out);
	return err;
}

static int print_table(const struct sb_timeline *timeline, FILE *out)
{
	size_t first;
	int err = 0;

	fprintf(out, "%s in %s, %zu %s of %" PRIu32 " s; a full bar is the line's maximum\n",
		timeline->kind.name, timeline->kind.unit, timeline->nr_steps,
		sb_plural(timeline->nr_steps, "step", "steps"), timeline->step_s);
	for (first = 0; first < timeline->nr_steps && !err; first += nr_bars())
		err = print_part(timeline, first, out);
	return err;
}

/* For programs. */

static int print_tsv(const struct sb_timeline *timeline, FILE *out)
{
	size_t i, k;
	int err = 0;

	fputs("time\tsampled_ms\tlost", out);
	for (k = 0; k < timeline->series.nr && !err; k++) {
		sb_cleanup(sb_str_release) struct sb_str name = {};

		err = sb_str_add(&name, timeline->series.at[k].value);
		if (!err)
			sb_replace_controls(name.s, name.len);
		if (!err)
			fprintf(out, "\t%s", name.len ? name.s : timeline->kind.unit);
	}
	fputc('\n', out);
	for (i = 0; i < timeline->nr_steps; i++) {
		fprintf(out, "%" PRId64, timeline->from_s + (int64_t)i * timeline->step_s);
		if (timeline->sampled_ms[i])
			fprintf(out, "\t%" PRIu64 "\t%" PRIu64, timeline->sampled_ms[i],
				timeline->lost[i]);
		else
			fputs("\t\t", out);
		for (k = 0; k < timeline->series.nr; k++) {
			fputc('\t', out);
			if (timeline->sampled_ms[i])
				fprintf(out, "%" PRIu64, timeline->series.at[k].weights[i]);
		}
		fputc('\n', out);
	}
	return err;
}

struct printed {
	const struct sb_timeline *timeline;
	const struct sb_ask *ask;
	uint32_t format;
};

static int print_json(const struct printed *printed, FILE *out)
{
	struct sb_json json = { .put = sb_json_put_file, .arg = out };

	sb_json_timeline(&json, printed->ask, printed->timeline);
	return sb_json_end(&json);
}

static int print(const void *arg, FILE *out)
{
	const struct printed *printed = arg;

	return printed->format == TSV	 ? print_tsv(printed->timeline, out)
	       : printed->format == JSON ? print_json(printed, out)
					 : print_table(printed->timeline, out);
}

static int check(void *arg)
{
	struct timeline_opts *fields = arg;
	int64_t step_s;

	if (!fields->step)
		return -1;
	if (sb_ask_length(fields->step, &step_s) || step_s <= 0 || step_s % SB_STORE_BLOCK_S ||
	    step_s > 366 * 86400)
		return sb_fail(SB_EXIT_USAGE, 0,
			       "timeline: --step '%s' is not a multiple of 10 s, such as 10s, 5m "
			       "or 1h",
			       fields->step);
	fields->step_s = step_s;
	return -1;
}

static int answer(const void *arg, struct sb_store *store, const struct sb_ask *ask)
{
	const struct timeline_opts *fields = arg;
	const struct sb_timeline_opts opts = {
		.step_s = (uint32_t)fields->step_s,
		.nr_steps_max = fields->format == TABLE ? nr_bars() : 0,
		.nr_series_max = fields->format == TABLE ? 0 : 1000,
	};
	sb_cleanup(sb_timeline_freep) struct sb_timeline *timeline = NULL;
	int status, err = sb_store_timeline(store, ask, &opts, &timeline);

	if (err == -E2BIG)
		return sb_fail(SB_EXIT_USAGE, 0,
			       "timeline: --step %s gives more than 20,000 steps; use a longer "
			       "step or a shorter time range",
			       fields->step);
	if (err)
		return sb_store_args_failed(&fields->store, "timeline", err);
	if (fields->step_s && timeline->step_s != fields->step_s)
		sb_warn("blocks of finer resolution have expired, so the steps are %" PRIu32 " "
			"s long",
			timeline->step_s);
	status = sb_store_say_answer(&fields->store, store, ask, &timeline->answer);
	if (status == SB_EXIT_DATA &&
	    sb_result_write_by("-", print, &(struct printed){ timeline, ask, fields->format }))
		status = SB_EXIT_FAILED;
	return status;
}

int sb_cmd_timeline(const struct sb_command *command, char **argv)
{
	struct timeline_opts fields = {};

	return sb_store_command_run(
		&(struct sb_store_command){ &fields, &fields.store, check, answer }, command, argv);
}
