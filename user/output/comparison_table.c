// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A comparison for a terminal: functions, their changes, and how certain these are. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "flamegraph/label.h"
#include "flamegraph/text.h"
#include "output/comparison.h"

#define VALUE_COLUMNS  10
#define CHANGE_COLUMNS 20
#define NAME_BYTES_MAX 200 /* of a function; JSON has the whole name */
#define NAME_COLUMNS   24  /* at least for a name beside its numbers */
#define ROW_COLUMNS    (4 * VALUE_COLUMNS + 2 * CHANGE_COLUMNS) /* of the numbers */

struct writer {
	const struct sb_comparison *comparison;
	FILE *out;
	struct sb_str text;	 /* scratch */
	unsigned int nr_columns; /* 0: no limit */
	bool is_tall;		 /* numbers are in the line below the name */
};

/* ---- numbers ---- */

static int add_value(struct writer *writer, double val)
{
	const struct sb_comparison *comparison = writer->comparison;
	const char *rate = sb_comparison_rate(comparison);
	const char *unit = sb_profile_unit(comparison->sides[SB_TREE_B]);
	int err;

	if (comparison->diff.norm == SB_DIFF_SHARE ||
	    (comparison->diff.norm == SB_DIFF_RATE && !sb_streq(rate, "s")))
		return sb_str_addf(&writer->text, "%.2f%%", val * 100);
	/* The head says "samples". */
	err = sb_fg_label_add_weight(&writer->text, val, sb_streq(unit, "samples") ? "" : unit);
	if (!err && writer->text.len && writer->text.s[writer->text.len - 1] == ' ')
		writer->text.s[--writer->text.len] = 0;
	return err ?: comparison->diff.norm == SB_DIFF_RATE ? sb_str_add(&writer->text, "/s") : 0;
}

static size_t nr_columns(const char *s)
{
	size_t nr = 0;

	for (; *s; s++)
		nr += ((unsigned char)*s & 0xc0) != 0x80;
	return nr;
}

/* Write the scratch, aligned to the right of its column. */
static void put_right(struct writer *writer, size_t columns)
{
	const char *s = writer->text.len ? writer->text.s : "";
	size_t nr = nr_columns(s);

	fprintf(writer->out, "%*s%s", nr < columns ? (int)(columns - nr) : 1, "", s);
	sb_str_clear(&writer->text);
}

/* Write a difference; in points for shares. */
static int add_difference(struct writer *writer, double val)
{
	if (writer->comparison->diff.norm == SB_DIFF_SHARE)
		return sb_str_addf(&writer->text, "%.2f", val * 100);
	return add_value(writer, val);
}

/* "+7.48 ±5.06", followed by "~" if it is noise. */
static int put_change(struct writer *writer, double by, double z)
{
	bool is_noise = by != 0 && fabs(z) < SB_DIFF_NOISE_Z;
	int err = sb_str_add(&writer->text, by > 0 ? "+" : by < 0 ? "-" : "");

	err = err ?: add_difference(writer, fabs(by));
	if (!err && by != 0 && !isnan(z)) {
		err = sb_str_add(&writer->text, " \xc2\xb1")
			      ?: add_difference(writer, fabs(by / z) * SB_DIFF_NOISE_Z);
	}
	err = err ?: sb_str_add(&writer->text, is_noise ? " ~" : "  ");
	if (!err)
		put_right(writer, CHANGE_COLUMNS);
	return err;
}

static int put_pair(struct writer *writer, const struct sb_tree_pair *pair)
{
	const struct sb_diff *diff = &writer->comparison->diff;
	double val[SB_TREE_NR];
	int side, err = 0;

	for (side = 0; side < SB_TREE_NR && !err; side++) {
		val[side] = sb_diff_value(diff, side, pair->weight[side]);
		err = add_value(writer, val[side]);
		if (!err)
			put_right(writer, VALUE_COLUMNS);
	}
	return err ?: put_change(writer, val[SB_TREE_B] - val[SB_TREE_A], sb_diff_z(diff, pair));
}

/* ---- head ---- */

/* Append at most @room bytes of text, without control characters, which a terminal would obey. */
static int add_clean(struct writer *writer, const char *s, size_t room)
{
	size_t len = strlen(s);
	size_t shown = len <= room ? len : sb_fg_label_clip(s, len, room - 1);
	long nr = sb_fg_text_clean(&writer->text, s, shown);

	if (nr < 0)
		return (int)nr;
	return shown < len ? sb_str_add(&writer->text, "\xe2\x80\xa6") : 0;
}

/* "A: before.folded: 4,100 samples in 41 s, n = 4,100, ±2.2 points" */
static int put_side(struct writer *writer, int side)
{
	const struct sb_comparison *comparison = writer->comparison;
	const struct sb_diff *diff = &comparison->diff;
	double error = sb_diff_error(diff->all[side], diff->all_squares[side]);
	uint64_t dur_us = sb_profile_metadata(comparison->sides[side])->dur_us;
	struct sb_str *text = &writer->text;
	int err = sb_str_add(text, side ? "B: " : "A: ");

	err = err ?: add_clean(writer, comparison->what[side], writer->is_tall ? writer->nr_columns - 4 : NAME_BYTES_MAX) ?: sb_str_add(text, ": ");
	if (!err && writer->is_tall) {
		fprintf(writer->out, "%s\n   ", text->s);
		sb_str_clear(text);
	}
	err = err
		      ?: sb_fg_label_add_weight(text, diff->all[side],
						sb_profile_unit(comparison->sides[SB_TREE_B]));
	if (!err && dur_us)
		err = sb_str_add(text, " in ")
			      ?: sb_fg_label_add_weight(text, (double)dur_us, "us");
	if (!err && comparison->tree->nr_samples[side]) {
		err = sb_str_add(text, ", n = ");
		err = err
			      ?: sb_fg_label_add_number(text,
							(double)comparison->tree->nr_samples[side]);
	}
	if (!err && !isnan(error))
		err = sb_str_addf(text, ", \xc2\xb1%.1f points", error * 100);
	if (!err)
		fprintf(writer->out, "%s\n", text->s);
	sb_str_clear(text);
	return err;
}

static void put_what(const struct writer *writer)
{
	static const char *const norms[] = {
		[SB_DIFF_SHARE] = "Shares of all",
		[SB_DIFF_RATE] = "Rates",
		[SB_DIFF_RAW] = "As measured",
	};
	static const struct {
		const char *rate, *words;
	} rates[] = { { "cpu", " in parts of a CPU" }, { "cpus", " in parts of the CPUs" } };
	const struct sb_comparison *comparison = writer->comparison;
	size_t i;

	fputs(norms[comparison->diff.norm], writer->out);
	for (i = 0; comparison->diff.norm == SB_DIFF_RATE && i < SB_ARRAY_SIZE(rates); i++)
		if (sb_streq(sb_comparison_rate(comparison), rates[i].rate))
			fputs(rates[i].words, writer->out);
	fputs(". A change is B - A \xc2\xb1 3 standard deviations.\n"
	      "~ is noise: a change that chance alone can make.\n",
	      writer->out);
	if (isnan(comparison->diff.all_squares[SB_TREE_A]) ||
	    isnan(comparison->diff.all_squares[SB_TREE_B]))
		fputs("The number of samples is not known, so noise is not told.\n", writer->out);
}

static void put_headings(struct writer *writer)
{
	const char *change = writer->comparison->diff.norm == SB_DIFF_SHARE ? "POINTS" : "CHANGE";

	fprintf(writer->out, "\n%s%*s%*s%*s  %*s%*s%*s%s\n", writer->is_tall ? "FUNCTION\n" : "",
		VALUE_COLUMNS, "SELF A", VALUE_COLUMNS, "SELF B", CHANGE_COLUMNS - 2, change,
		VALUE_COLUMNS, "TOTAL A", VALUE_COLUMNS, "TOTAL B", CHANGE_COLUMNS - 2, change,
		writer->is_tall ? "" : "    FUNCTION");
}

/* ---- rows ---- */

static int put_name(struct writer *writer, const char *name, const char *before, const char *after)
{
	size_t room = writer->is_tall	   ? writer->nr_columns
		      : writer->nr_columns ? writer->nr_columns - ROW_COLUMNS - 2
					   : NAME_BYTES_MAX;
	int err = add_clean(writer, name, room);

	if (!err)
		fprintf(writer->out, "%s%s%s", before, writer->text.len ? writer->text.s : "",
			after);
	sb_str_clear(&writer->text);
	return err;
}

static int put_row(struct writer *writer, const struct sb_diff_row *row)
{
	const char *name = sb_strtab_get(&writer->comparison->tree->names, row->name, NULL);
	int err = writer->is_tall ? put_name(writer, name, "", "\n") : 0;

	err = err ?: put_pair(writer, &row->self);
	err = err ?: put_pair(writer, &row->total);
	if (err || !writer->is_tall)
		return err ?: put_name(writer, name, "  ", "\n");
	fputc('\n', writer->out);
	return 0;
}

static bool is_change(const struct sb_diff *diff, const struct sb_diff_row *row)
{
	return fabs(sb_diff_z(diff, &row->self)) >= SB_DIFF_NOISE_Z ||
	       fabs(sb_diff_z(diff, &row->total)) >= SB_DIFF_NOISE_Z;
}

static int put_rows(struct writer *writer, const struct sb_comparison_opts *opts)
{
	sb_cleanup(sb_freep) struct sb_diff_row *rows = NULL;
	const struct sb_diff *diff = &writer->comparison->diff;
	size_t nr = 0, nr_changes = 0, i;
	int err = sb_diff_rows(diff, writer->comparison->tree, opts->sort, &rows, &nr);

	for (i = 0; i < nr && !err; i++) {
		if (!opts->nr_rows || i < opts->nr_rows)
			err = put_row(writer, &rows[i]);
		else
			nr_changes += is_change(diff, &rows[i]);
	}
	if (!err && opts->nr_rows && nr > opts->nr_rows)
		fprintf(writer->out, "... and %" PRIu64 " %s more, %zu of them changed\n",
			nr - opts->nr_rows, nr - opts->nr_rows == 1 ? "function" : "functions",
			nr_changes);
	return err;
}

static int write_table(const struct sb_comparison *comparison,
		       const struct sb_comparison_opts *opts, FILE *out)
{
	struct writer writer = {
		.comparison = comparison,
		.out = out,
		.nr_columns = opts->nr_columns,
		.is_tall = opts->nr_columns && opts->nr_columns < ROW_COLUMNS + 2 + NAME_COLUMNS,
	};
	int err = put_side(&writer, SB_TREE_A) ?: put_side(&writer, SB_TREE_B);

	put_what(&writer);
	put_headings(&writer);
	err = err ?: put_rows(&writer, opts);
	sb_str_release(&writer.text);
	return err;
}

const struct sb_comparison_output sb_comparison_table = {
	.name = "table",
	.extension = ".txt",
	.summary = "functions that changed, and by how much",
	.write = write_table,
};
