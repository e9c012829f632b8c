// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What there is to report on spans (--in): how many there were, how long they took, what is missing. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/record.h"

/* So that a line of the closing report is not wrapped. */
#define BAR_LEN 24

static void add_nr(struct sb_str *line, uint64_t nr, const char *name)
{
	if (nr)
		(void)sb_str_addf(line, ", %llu %s", (unsigned long long)nr, name);
}

/* "120 us", "3.1 ms", "2.5 s" */
static void format_time(uint64_t ns, char *text, size_t nr_bytes)
{
	if (ns < 1000000)
		snprintf(text, nr_bytes, "%.3g us", (double)ns / 1e3);
	else if (ns < 1000000000)
		snprintf(text, nr_bytes, "%.3g ms", (double)ns / 1e6);
	else
		snprintf(text, nr_bytes, "%.4g s", (double)ns / 1e9);
}

static void add_span_times(const struct sb_spans_stats *spans, struct sb_str *line)
{
	static const struct {
		double part;
		const char *name;
	} parts[] = { { 0.5, "50" }, { 0.9, "90" }, { 0.99, "99" }, { 1, "100" } };
	char text[32];
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(parts) && spans->nr_ended; i++) {
		format_time(sb_spans_percentile_ns(spans, parts[i].part), text, sizeof(text));
		(void)sb_str_addf(line, "%s%s %% within %s", i ? ", " : "; ", parts[i].name, text);
	}
}

/* With --in: how many spans there were, how long they took, and what is missing. */
static void add_spans(const struct sb_run *run, const struct sb_run_figures *figures,
		      struct sb_str *line)
{
	const struct sb_spans_stats *spans = &figures->session.spans;
	const struct sb_view_opts *opts = &run->config->view_opts;
	const uint64_t *stat = figures->session.stat;
	char text[32];

	(void)sb_str_addf(line, "%llu ended", (unsigned long long)spans->nr_ended);
	if (opts->slower_than_ns) {
		format_time(opts->slower_than_ns, text, sizeof(text));
		(void)sb_str_addf(line, ", %llu took at least %s",
				  (unsigned long long)stat[SB_STAT_SPANS_SLOW], text);
	}
	if (spans->nr_open)
		(void)sb_str_addf(line, ", %llu open", (unsigned long long)spans->nr_open);
	if (spans->nr_open && opts->slower_than_ns)
		(void)sb_str_addf(line, " of which %llu have taken as long",
				  (unsigned long long)spans->nr_open_slow);
	add_nr(line, stat[SB_STAT_SPANS_LEFT], opts->until ? "without an end" : "left by a jump");
	add_nr(line, stat[SB_STAT_SPANS_EXITED], "in which their thread ended");
	add_nr(line, stat[SB_STAT_SPANS_FULL], "not followed: too many");
	add_span_times(spans, line);
}

/* How many took from 2^log2 ns up to twice as long. */
static uint64_t nr_of(const struct sb_spans_stats *spans, uint32_t log2)
{
	uint64_t nr = 0;
	uint32_t i;

	for (i = 0; i < SB_SPAN_BUCKETS; i++)
		if (sb_span_bucket_ns(i) >> log2 == 1)
			nr += spans->nr[i];
	return nr;
}

/* A line for each power of two of their durations, from the shortest to the longest. */
static void add_histogram(const struct sb_spans_stats *spans, struct sb_str *list)
{
	static const char bar[] = "************************";
	uint64_t most = 0, nr, left = spans->nr_ended;
	char from[32], to[32];
	uint32_t log2;

	_Static_assert(sizeof(bar) == BAR_LEN + 1, "its full length");
	for (log2 = 0; log2 < 63; log2++)
		most = nr_of(spans, log2) > most ? nr_of(spans, log2) : most;
	for (log2 = 0; log2 < 63 && left && most; log2++) {
		nr = nr_of(spans, log2);
		if (!nr && left == spans->nr_ended)
			continue;
		left -= nr;
		format_time(1ull << log2, from, sizeof(from));
		format_time(2ull << log2, to, sizeof(to));
		(void)sb_str_addf(list, "\n%s to %s: %llu |%.*s", from, to, (unsigned long long)nr,
				  (int)((double)nr / (double)most * BAR_LEN), bar);
	}
}

void sb_report_span_lines(const struct sb_run *run, const struct sb_run_figures *figures,
			  struct sb_str *list)
{
	if (!run->config->view_opts.in)
		return;
	add_spans(run, figures, list);
	if (run->config->view_opts.distr)
		add_histogram(&figures->session.spans, list);
}

static void row_nr(void (*row)(const char *name, const char *value), const char *name, uint64_t nr)
{
	char value[32];

	snprintf(value, sizeof(value), "%llu", (unsigned long long)nr);
	row(name, value);
}

void sb_report_spans(const struct sb_run *run, const struct sb_run_figures *figures,
		     void (*row)(const char *name, const char *value))
{
	const struct sb_spans_stats *spans = &figures->session.spans;
	sb_cleanup(sb_str_release) struct sb_str text = {};
	char *line, *rest;

	add_spans(run, figures, &text);
	add_histogram(spans, &text);
	for (line = text.len ? strtok_r(text.s, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest))
		row("spans", line);
	row_nr(row, "left out: of other spans", spans->nr_samples_fast);
	row_nr(row, "left out: of open spans", spans->nr_samples_open);
	row_nr(row, "lost: in open spans", spans->nr_samples_full);
}
