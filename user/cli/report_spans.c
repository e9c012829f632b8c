// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What there is to report on spans (--in): how many there were, how long they took, what is
 * missing. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/record.h"
#include "cli/report.h"
#include "cli/wrap.h"

/* So that a line of the closing report is not wrapped. */
#define BAR_LEN 24

static void add_nr(struct sb_str *line, uint64_t nr, const char *name)
{
	if (nr)
		(void)sb_str_addf(line, ", %llu %s", (unsigned long long)nr, name);
}

static void add_time(struct sb_str *line, uint64_t ns)
{
	char number[SB_FORMAT_NS_BYTES];
	const char *unit = sb_format_ns(ns, number);

	(void)sb_str_addf(line, "%s %s", number, unit);
}

static void add_span_times(const struct sb_spans_stats *spans, struct sb_str *line)
{
	static const struct {
		double part;
		const char *name;
	} parts[] = { { 0.5, "50" }, { 0.9, "90" }, { 0.99, "99" }, { 1, "100" } };
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(parts) && spans->nr_ended; i++) {
		(void)sb_str_addf(line, "%s%s %% within ", i ? ", " : "; ", parts[i].name);
		add_time(line, sb_spans_percentile_ns(spans, parts[i].part));
	}
}

/* With --in: how many spans there were, how long they took, and what is missing. */
static void add_spans(const struct sb_run *run, const struct sb_run_figures *figures,
		      struct sb_str *line)
{
	const struct sb_spans_stats *spans = &figures->session.spans;
	const struct sb_view_opts *opts = &run->config->view_opts;
	const uint64_t *stat = figures->session.stat;

	(void)sb_str_addf(line, "%llu ended", (unsigned long long)spans->nr_ended);
	if (opts->slower_than_ns) {
		(void)sb_str_addf(line, ", %llu took at least ",
				  (unsigned long long)stat[SB_STAT_SPANS_SLOW]);
		add_time(line, opts->slower_than_ns);
	}
	if (spans->nr_open)
		(void)sb_str_addf(line, ", %llu open", (unsigned long long)spans->nr_open);
	if (spans->nr_open && opts->slower_than_ns)
		(void)sb_str_addf(line, " of which %llu %s taken as long",
				  (unsigned long long)spans->nr_open_slow,
				  sb_plural(spans->nr_open_slow, "has", "have"));
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
	uint32_t log2;

	_Static_assert(sizeof(bar) == BAR_LEN + 1, "its full length");
	for (log2 = 0; log2 < 63; log2++)
		most = nr_of(spans, log2) > most ? nr_of(spans, log2) : most;
	for (log2 = 0; log2 < 63 && left && most; log2++) {
		nr = nr_of(spans, log2);
		if (!nr && left == spans->nr_ended)
			continue;
		left -= nr;
		(void)sb_str_addc(list, '\n');
		add_time(list, 1ull << log2);
		(void)sb_str_add(list, " to ");
		add_time(list, 2ull << log2);
		(void)sb_str_addf(list, ": %llu |%.*s", (unsigned long long)nr,
				  (int)((double)nr / (double)most * BAR_LEN), bar);
	}
}

void sb_report_span_lines(const struct sb_run *run, const struct sb_run_figures *figures,
			  struct sb_str *list)
{
	if (!sb_view_has_spans(&run->config->view_opts))
		return;
	add_spans(run, figures, list);
	if (run->config->view_opts.span_distr)
		add_histogram(&figures->session.spans, list);
}

static uint64_t longest_ns(const struct sb_spans_stats *spans)
{
	return sb_spans_percentile_ns(spans, 1);
}

/*
 * What helps besides fewer targets. With a shorter bound it is known earlier whether a span is
 * slow, so samples are not held for as long. With a longer one fewer spans are slow, so the table
 * of slow spans does not fill up.
 */
static const char *other_advice(const struct sb_run *run, const struct sb_run_figures *figures)
{
	bool is_table_full = figures->session.stat[SB_STAT_SPANS_FULL];

	if (!run->config->view_opts.slower_than_ns)
		return "";
	if (figures->session.spans.nr_samples_full)
		return is_table_full ? "" : " or a shorter --slower-than";
	return is_table_full ? " or a longer --slower-than" : "";
}

/* What was left out because it was in no slow span is not lost, so it is not "all samples". */
static void say_lost(const struct sb_run *run, const struct sb_run_figures *figures,
		     const char *lost)
{
	sb_cleanup(sb_str_release) struct sb_str what = {};
	uint64_t nr_full = figures->session.stat[SB_STAT_SPANS_FULL];

	if (figures->nr_lost)
		(void)sb_str_addf(&what, "%llu %s lost: %s", (unsigned long long)figures->nr_lost,
				  sb_plural(figures->nr_lost, "sample was", "samples were"), lost);
	if (nr_full)
		(void)sb_str_addf(&what,
				  "%s%llu spans of --in were not followed, because the table of "
				  "spans was full",
				  what.len ? ", and " : "", (unsigned long long)nr_full);
	sb_err(0, "nothing was recorded: %s; choose fewer targets%s", what.s ? what.s : lost,
	       other_advice(run, figures));
}

void sb_report_empty_spans(const struct sb_run *run, const struct sb_run_figures *figures,
			   const char *lost)
{
	const struct sb_spans_stats *spans = &figures->session.spans;
	const struct sb_view_opts *opts = &run->config->view_opts;
	const uint64_t *stat = figures->session.stat;
	uint64_t nr = spans->nr_ended + spans->nr_open + stat[SB_STAT_SPANS_LEFT] +
		      stat[SB_STAT_SPANS_EXITED];
	sb_cleanup(sb_str_release) struct sb_str bound = {}, longest = {};

	add_time(&bound, opts->slower_than_ns);
	add_time(&longest, longest_ns(spans));
	if (figures->nr_lost || stat[SB_STAT_SPANS_FULL])
		say_lost(run, figures, lost);
	else if (!nr && opts->in_label)
		sb_err(0,
		       "nothing was sampled: no thread of the targets was seen with a label '%s'; "
		       "'stackbpf oncpu --label %s' shows which threads have one",
		       opts->in_label, opts->in_label);
	else if (!nr)
		sb_err(0, "nothing was sampled: no span of --in began while the targets were "
			  "observed; what was going on before is not known");
	else if (opts->slower_than_ns && !stat[SB_STAT_SPANS_SLOW] && !spans->nr_open_slow)
		sb_err(0,
		       "nothing was sampled: none of %llu spans took %s or more, and the longest "
		       "took less than %s; choose a shorter --slower-than",
		       (unsigned long long)nr, bound.s, longest.s);
	else
		sb_err(0,
		       "nothing was sampled: '%s' records nothing of what threads did in %llu "
		       "spans; 'stackbpf wall' shows all of their time",
		       run->config->views.at[0]->kind->name, (unsigned long long)nr);
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
	sb_report_nr(row, "left out: of other spans", spans->nr_samples_fast);
	sb_report_nr(row, "left out: of open spans", spans->nr_samples_open);
	sb_report_nr(row, "lost: in open spans", spans->nr_samples_full);
}
