// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The closing report: what a run is worth, and why a run has no result. docs/loss.md explains each
 * figure. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "cli/record.h"
#include "cli/wrap.h"
#include "symbolizer/process/procfs.h"
#include "workers/landlock.h"
#include "workers/privileges.h"

/* A list of what is not zero: "3 too deep, 1 no frame pointer". */
static void add_item(struct sb_str *list, uint64_t nr, const char *name)
{
	/* Without memory an item is missing; the totals are not made here. */
	if (nr)
		(void)sb_str_addf(list, "%s%llu %s", list->len ? ", " : "", (unsigned long long)nr,
				  name);
}

static void add_cuts(struct sb_str *list, const struct sb_resolve_stats *stats)
{
	unsigned int i;

	for (i = 0; i < SB_STACK_STATUS_MAX; i++)
		if (sb_cut_names[i])
			add_item(list, stats->nr_status[i], sb_cut_names[i]);
	add_item(list, stats->nr_kernel_cut, "kernel stack too deep");
	add_item(list, stats->nr_missing_stacks, "stack lost");
}

static void add_unnamed(struct sb_str *list, const struct sb_resolve_stats *stats)
{
	uint64_t nr_unreadable = 0;
	unsigned int i;

	for (i = SB_SYM_OK + 1; i < SB_SYM_REASON_MAX; i++)
		add_item(list, stats->nr_unnamed[i], sb_sym_reason_names[i]);
	for (i = 0; i < SB_RUNTIME_MAX; i++)
		nr_unreadable += stats->runtime[i].nr_unreadable;
	add_item(list, nr_unreadable, "unreadable interpreter frames");
}

static void add_lost(struct sb_str *list, const struct sb_session_stats *stats)
{
	add_item(list, stats->stat[SB_STAT_COUNTS_FULL], "table full");
	add_item(list, stats->stat[SB_STAT_COUNTS_BUSY], "table busy");
	add_item(list, stats->stat[SB_STAT_BLOCK_FULL], "too many requests in flight");
	add_item(list, stats->stat[SB_STAT_VMA_BUSY], "address space was changing");
	add_item(list, stats->stat[SB_STAT_URING_FULL], "too many io_uring requests");
	add_item(list, stats->stat[SB_STAT_URING_UNSEEN],
		 "io_uring requests without "
		 "completion");
	add_item(list, stats->stat[SB_STAT_URING_UNNAMED],
		 "io_uring completions of unknown "
		 "requests");
	add_item(list, stats->stat[SB_STAT_KERNEL_BUSY],
		 "I/O of a kernel thread that interrupted another");
	add_item(list, stats->stat[SB_STAT_TRACE_BUSY], "at an event that interrupted another");
	add_item(list, stats->stat[SB_STAT_CALLS_FULL], "too many open calls");
	add_item(list, stats->stat[SB_STAT_CALLS_JUMPED], "calls that were left by a jump");
	add_item(list, stats->stat[SB_STAT_CALLS_EXITED], "calls in which their thread ended");
	add_item(list, stats->stat[SB_STAT_CALLS_REPLACED], "begun again before they ended");
	add_item(list, stats->spans.nr_samples_full, "in too many open spans");
	add_item(list, stats->stat[SB_STAT_FAULTS_FULL], "faults that the ring had no room for");
	add_item(list, stats->resident.nr_unowned, "faults beyond the table of pages or stacks");
	add_item(list, stats->nr_skipped_recursion, "inside another probe");
}

static void add_cpus(struct sb_str *list, const struct sb_session_stats *stats)
{
	add_item(list, stats->nr_cpus_went,
		 stats->nr_cpus_went == 1 ? "CPU went offline" : "CPUs went offline");
	add_item(list, stats->nr_cpus_came,
		 stats->nr_cpus_came == 1 ? "CPU came online" : "CPUs came online");
	add_item(list, stats->nr_cpus_refused, "CPUs could not be sampled");
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* What is not in the result because it was not asked for, or fell between two stools. */
static void add_left_out(const struct sb_run *run, const struct sb_run_figures *figures,
			 struct sb_str *list)
{
	const struct sb_resolve_stats *resolve = &figures->resolve;
	const uint64_t *stat = figures->session.stat;
	bool is_of_parts = run->config->views.at[figures->view]->kind->options & SB_VIEW_STATES;
	uint64_t tiny_weight;

	if (resolve->idle_weight)
		(void)sb_str_addf(list, "%s%.1f s of idle waits left out", list->len ? ", " : "",
				  (double)resolve->idle_weight / 1e9);
	/* The time until a thread is woken and that in the run queue are two parts of a wait. */
	add_item(list, stat[SB_STAT_UNDER_MIN],
		 is_of_parts ? "parts of waits shorter than --min" : "shorter than --min");
	add_item(list, stat[SB_STAT_OVER_MAX],
		 is_of_parts ? "parts of waits longer than --max" : "longer than --max");
	add_item(list, stat[SB_STAT_WHEN_FALSE], "by --when");
	add_item(list, stat[SB_STAT_WEIGHT_NONE], "with a --weight of 0 or less");
	add_item(list, stat[SB_STAT_TASK_FULL], "without memory for per-thread state");
	add_item(list, stat[SB_STAT_BLOCK_UNKNOWN], "requests queued before the run");
	add_item(list, resolve->nr_missing_objects,
		 "without the name of their file, thread or value");
	add_item(list, resolve->nr_missing_labels, "without their labels");
	add_item(list, resolve->nr_other_labels,
		 "counted as (other), because there were too "
		 "many label sets");
	add_item(list, stat[SB_STAT_LABELS_CUT], "labels cut: too long or too many");
	add_item(list, figures->session.nr_asleep_lost,
		 "sleeping threads woke up before their stack was read");
	add_item(list, sb_profile_nr_tiny(run->profile, &tiny_weight),
		 "stacks with a weight "
		 "that rounds to 0");
}

/* What --when, --weight and --value came across, each time that one was evaluated. */
static void add_expressions(const struct sb_run *run, const struct sb_run_figures *figures,
			    struct sb_str *list)
{
	const uint64_t *stat = figures->session.stat;

	(void)run;
	add_item(list, stat[SB_STAT_EXPR_BAD_READ], "with memory that could not be read");
	add_item(list, stat[SB_STAT_EXPR_DIV_ZERO], "with a division by zero");
	add_item(list, stat[SB_STAT_EXPR_CUT], "with a string of 63 bytes or more");
}

/* "24.75 Hz", "a sample for 4000 us". */
static void lowest(const struct sb_run *run, const struct sb_run_figures *figures, char *text,
		   size_t nr_bytes)
{
	const struct sb_thinning_stats *stats = &figures->session.thinning;
	const struct sb_run_unit *unit = &run->units[figures->view];

	if (stats->weight)
		snprintf(text, nr_bytes, "one sample per %llu %s",
			 (unsigned long long)(stats->weight / unit->divisor), unit->name);
	else
		snprintf(text, nr_bytes, "%.4g Hz", stats->rate_hz);
}

static void add_governed(const struct sb_run *run, const struct sb_run_figures *figures,
			 struct sb_str *list)
{
	const struct sb_thinning_stats *stats = &figures->session.thinning;
	char text[64];

	if (stats->governor.thrift_ns)
		(void)sb_str_addf(
			list,
			"processes that change their mappings were read up to %u times less "
			"often for %.1f of %.1f s, to keep the own cost below %.4g %% of all "
			"CPUs (--max-overhead)%s",
			1u << stats->governor.thrift_worst, (double)stats->governor.thrift_ns / 1e9,
			(double)figures->wall_ns / 1e9, 100 * stats->limit,
			stats->governor.lowered_ns ? "\n" : "");
	if (!stats->governor.lowered_ns)
		return;
	lowest(run, figures, text, sizeof(text));
	(void)sb_str_addf(list,
			  "sampling was lowered to %s for %.1f of %.1f s, to keep the own "
			  "cost below %.4g %% of all CPUs (--max-overhead)",
			  text, (double)stats->governor.lowered_ns / 1e9,
			  (double)figures->wall_ns / 1e9, 100 * stats->limit);
}

/* The limit could not be held. */
static void warn_overhead(const struct sb_run_figures *figures)
{
	const struct sb_thinning_stats *stats = &figures->session.thinning;
	const char *why = stats->why_not;

	if (!stats->governor.helpless_ns)
		return;
	if (stats->governor.is_own_time)
		why = "most of the cost was symbol names, unwind tables and process events, "
		      "which a lower sampling rate does not reduce";
	else if (!why)
		why = "most of the cost was checking each event, which a lower sampling rate "
		      "does not reduce";
	sb_warn("the cost of stackbpf itself was above %.4g %% of all CPUs (--max-overhead) "
		"for %.1f of %.1f s: %s; raise this limit, or sample fewer processes or events",
		100 * stats->limit, (double)stats->governor.helpless_ns / 1e9,
		(double)figures->wall_ns / 1e9, why);
}

/* Files that could not be parsed, because the process that does it came to an end over them. */
static void warn_parser(const struct sb_run_figures *figures)
{
	const struct sb_parser_stats *parser = &figures->parser;
	uint64_t nr = parser->nr_crashed + parser->nr_timeouts + parser->nr_forged;

	if (!nr)
		return;
	sb_warn("parsing a file failed %llu times: the parser process crashed (%llu), was "
		"killed after %llu s (%llu), or sent an invalid answer (%llu); stacks in "
		"these files are walked by frame pointers",
		(unsigned long long)nr, (unsigned long long)parser->nr_crashed,
		SB_PARSER_PATIENCE_NS / SB_NS_PER_SEC, (unsigned long long)parser->nr_timeouts,
		(unsigned long long)parser->nr_forged);
}

/* Percent as it is shown, one decimal: rounded down, so that 100.0 is all of it. */
static double percent_shown(uint64_t part, uint64_t whole)
{
	return (double)(uint64_t)(10 * percent(part, whole)) / 10;
}

/* The first line: how much there is, and what it is worth. */
static void add_result(const struct sb_run *run, const struct sb_run_figures *figures,
		       struct sb_str *line)
{
	const struct sb_view *view = run->config->views.at[figures->view];

	if (run->config->views.nr > 1)
		(void)sb_str_addf(line, "%s: ", view->kind->name);
	(void)sb_str_addf(line, "%llu %s", (unsigned long long)figures->nr_samples,
			  view->kind->event);
	/* One is "1 sample"; what has two nouns stays as it is. */
	if (figures->nr_samples == 1 && line->len && !strchr(view->kind->event, ' ') &&
	    line->s[line->len - 1] == 's')
		line->s[--line->len] = '\0';
	/* Where there is no result they are not kept. */
	if (run->sink->keeps_all)
		(void)sb_str_addf(line, ", %zu %s", sb_profile_nr_stacks(run->profile),
				  sb_plural(sb_profile_nr_stacks(run->profile), "stack", "stacks"));
	(void)sb_str_addf(line, ", %llu %s in %.1f s; %.1f %% complete, %llu lost",
			  (unsigned long long)figures->resolve.nr_processes,
			  sb_plural(figures->resolve.nr_processes, "process", "processes"),
			  (double)figures->wall_ns / 1e9,
			  percent_shown(figures->nr_samples - figures->nr_cut, figures->nr_samples),
			  (unsigned long long)figures->nr_lost);
}

static void add_lost_row(const struct sb_run *run, const struct sb_run_figures *figures,
			 struct sb_str *line)
{
	(void)run;
	add_lost(line, &figures->session);
}

static void add_cut_row(const struct sb_run *run, const struct sb_run_figures *figures,
			struct sb_str *line)
{
	(void)run;
	add_cuts(line, &figures->resolve);
}

static void add_unnamed_row(const struct sb_run *run, const struct sb_run_figures *figures,
			    struct sb_str *line)
{
	(void)run;
	add_unnamed(line, &figures->resolve);
	if (figures->nr_unnamed)
		(void)sb_str_addf(line, " (%.1f %% of all)",
				  percent(figures->nr_unnamed, figures->nr_frames));
}

static void add_skipped(struct sb_str *line, const struct sb_session_stats *session)
{
	if (!session->nr_sideband_skipped)
		return;
	(void)sb_str_addf(line,
			  "%s%llu mapping records skipped, because %s changes its "
			  "mappings too often",
			  line->len ? ", " : "", (unsigned long long)session->nr_sideband_skipped,
			  session->skipping);
	if (session->nr_skipping > 1)
		(void)sb_str_addf(line, ", as do %llu more processes",
				  (unsigned long long)session->nr_skipping - 1);
}

static void add_processes_row(const struct sb_run *run, const struct sb_run_figures *figures,
			      struct sb_str *line)
{
	(void)run;
	add_item(line, figures->session.nr_sideband_lost, "process records lost");
	add_skipped(line, &figures->session);
	add_item(line, figures->session.nr_no_fd, "files not opened; raise ulimit -n");
	add_item(line, figures->symbolizer.nr_files_cut,
		 "files too expensive to parse, whose names are missing; -v lists them");
	add_item(line, figures->symbolizer.nr_units_damaged,
		 "damaged units of debug information, whose lines and inlined functions are "
		 "missing; -v lists their files");
	add_item(line, figures->symbolizer.nr_splits_missing,
		 ".dwo files missing, and with them inlined functions; put them back where the "
		 "program was built");
	add_item(line, figures->session.stat[SB_STAT_FORK_FULL],
		 "child processes not "
		 "followed");
}

static void add_cpus_row(const struct sb_run *run, const struct sb_run_figures *figures,
			 struct sb_str *line)
{
	uint64_t nr_skipped = figures->session.stat[SB_STAT_TICKS_SKIPPED];

	(void)run;
	add_cpus(line, &figures->session);
	/* A few are everyday life. */
	if (nr_skipped && nr_skipped * 100 >= figures->nr_samples + nr_skipped)
		(void)sb_str_addf(
			line,
			"%stimers skipped at least %.1f %% of the ticks, so times are too low "
			"by as much",
			line->len ? ", " : "",
			percent(nr_skipped, figures->nr_samples + nr_skipped));
}

static void add_accounted(const struct sb_run *run, const struct sb_run_figures *figures,
			  struct sb_str *line)
{
	(void)run;
	if (figures->session.expected)
		(void)sb_str_addf(line, "%.2f %% of threads x time accounted for",
				  sb_run_accounted(figures));
}

static void add_own_cost(const struct sb_run *run, const struct sb_run_figures *figures,
			 struct sb_str *line)
{
	uint64_t startup_ns = run->warm_ns ? run->own_warm_ns : run->own_end_ns;
	double cost = percent(figures->session.stat[SB_STAT_RUN_NS], figures->wall_ns);

	/* To load, and to read processes, symbols and tables for the first time, is done once: no share of a CPU. */
	if (run->end_ns > run->warm_ns && run->warm_ns)
		cost += percent(run->own_end_ns - run->own_warm_ns, run->end_ns - run->warm_ns);
	(void)sb_str_addf(line,
			  "own cost %.2f %% of a CPU, plus %.2f s of CPU time to start "
			  "up",
			  cost, (double)startup_ns / 1e9);
}

/*
 * The closing report: the result in one line, then a row for each thing that there is something to say of, in
 * this order. A function appends the text of its row; nothing if there is none; more rows after a '\n'.
 */
static const struct {
	const char *label; /* what precedes each of its rows */
	void (*add)(const struct sb_run *run, const struct sb_run_figures *figures,
		    struct sb_str *line);
} closing_rows[] = {
	{ "lost: ", add_lost_row },
	{ "stacks cut: ", add_cut_row },
	{ "frames unnamed: ", add_unnamed_row },
	{ "processes: ", add_processes_row },
	{ "CPUs: ", add_cpus_row },
	{ "", add_governed },
	{ "", add_accounted },
	{ "", sb_report_memory_lines },
	{ "left out: ", add_left_out },
	{ "expressions: ", add_expressions },
	{ "spans: ", sb_report_span_lines },
	{ "", sb_report_interp_lines },
	{ "", add_own_cost },
};

static void report_rows(const char *label, struct sb_str *text)
{
	char *line, *rest;

	for (line = strtok_r(text->s, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		sb_cleanup(sb_str_release) struct sb_str row = {};

		if (!sb_str_addf(&row, "  %s%s", label, line))
			sb_wrap_info(row.s);
	}
}

static void row_closing(const char *name, const char *value)
{
	sb_info("  %s: %s", name, value);
}

static void report_closing(const struct sb_run *run, const struct sb_run_figures *figures)
{
	sb_cleanup(sb_str_release) struct sb_str text = {};
	size_t i;

	add_result(run, figures, &text);
	if (text.len)
		sb_wrap_info(text.s);
	for (i = 0; i < SB_ARRAY_SIZE(closing_rows); i++) {
		sb_str_clear(&text);
		closing_rows[i].add(run, figures, &text);
		if (text.len)
			report_rows(closing_rows[i].label, &text);
	}
	/* --rate: no side of stacks is taken. */
	if (!run->config->sides && run->config->views.at[figures->view]->report)
		sb_session_report(run->session, figures->view, figures->wall_ns, row_closing);
}

/* One line of --stats. */
static void row(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void row(const char *name, const char *fmt, ...)
{
	char value[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	sb_info("  %-28s %s", name, value);
}

static void row_text(const char *name, const char *value)
{
	row(name, "%s", value);
}

static void row_nr(const char *name, uint64_t nr)
{
	row(name, "%llu", (unsigned long long)nr);
}

static void report_samples(const struct sb_run *run, const struct sb_run_figures *figures)
{
	const struct sb_session_stats *session = &figures->session;
	const struct sb_resolve_stats *resolve = &figures->resolve;
	unsigned int i;

	row_nr(run->config->views.at[figures->view]->kind->event, figures->nr_samples);
	row_nr("events filtered out", session->stat[SB_STAT_FILTERED]);
	row_nr("processes", resolve->nr_processes);
	if (run->sink->keeps_all)
		row_nr("distinct stacks", sb_profile_nr_stacks(run->profile));
	row_nr("by address, user and kernel", resolve->nr_stacks);
	if (run->config->views.at[figures->view]->timer && session->freq_hz)
		row("CPUs, rate", "%u, %u Hz", session->nr_cpus, session->freq_hz);
	else
		row_nr("CPUs", session->nr_cpus);
	row_nr("timer ticks skipped", session->stat[SB_STAT_TICKS_SKIPPED]);
	row("CPUs came, went, refused", "%llu, %llu, %llu",
	    (unsigned long long)session->nr_cpus_came, (unsigned long long)session->nr_cpus_went,
	    (unsigned long long)session->nr_cpus_refused);
	if (session->expected)
		row("accounted for", "%.3f %% of threads x time", sb_run_accounted(figures));
	row("first sample after", "%.1f ms",
	    session->first_sample_ns ? (double)session->first_sample_ns / 1e6 : 0);
	row("complete stacks", "%.2f %%",
	    percent(figures->nr_samples - figures->nr_cut, figures->nr_samples));
	for (i = 0; i < SB_STACK_STATUS_MAX; i++)
		if (sb_cut_names[i])
			row_nr(sb_cut_names[i], resolve->nr_status[i]);
	row_nr("kernel stack too deep", resolve->nr_kernel_cut);
	row_nr("stack lost", resolve->nr_missing_stacks);
	row_nr("stacks evicted", resolve->nr_evicted);
	row_nr("samples split by time", resolve->nr_shared_out);
	row_nr("frames", resolve->nr_frames);
	for (i = SB_SYM_OK + 1; i < SB_SYM_REASON_MAX; i++)
		row(sb_sym_reason_names[i], "%llu frames unnamed",
		    (unsigned long long)resolve->nr_unnamed[i]);
}

static void report_losses(const struct sb_run_figures *figures)
{
	const struct sb_session_stats *session = &figures->session;

	row("drained during name lookup", "%llu times; postponed, backlog full: %llu",
	    (unsigned long long)session->drain.nr_early,
	    (unsigned long long)session->drain.nr_early_full);
	row_nr("lost: table full", session->stat[SB_STAT_COUNTS_FULL]);
	row_nr("lost: table busy", session->stat[SB_STAT_COUNTS_BUSY]);
	row_nr("lost: inside another probe", session->nr_skipped_recursion);
	row_nr("ring full, stack retried", session->stat[SB_STAT_RING_FULL]);
	row_nr("no memory, record retried", session->drain.nr_lost_records);
	row_nr("stacks shipped again", session->stat[SB_STAT_SEEN_FULL]);
	row_nr("kernel stacks refused", session->stat[SB_STAT_KSTACK_ERR]);
	row_nr("child processes not followed", session->stat[SB_STAT_FORK_FULL]);
	row_nr("process records", session->nr_sideband_records);
	row_nr("process records lost", session->nr_sideband_lost);
	row("records of mappings skipped", "%llu, of %llu processes",
	    (unsigned long long)session->nr_sideband_skipped,
	    (unsigned long long)session->nr_skipping);
	row_nr("files not opened: ulimit -n", session->nr_no_fd);
}

/* Only views that have such things count them. */
static void report_left_out(const struct sb_run *run, const struct sb_run_figures *figures)
{
	static const struct {
		const char *name;
		enum sb_stat stat;
	} rows[] = {
		{ "left out: under --min", SB_STAT_UNDER_MIN },
		{ "left out: over --max", SB_STAT_OVER_MAX },
		{ "left out: other state, type", SB_STAT_OTHER_STATE },
		{ "left out: --when", SB_STAT_WHEN_FALSE },
		{ "left out: --weight of 0 or less", SB_STAT_WEIGHT_NONE },
		{ "left out: outside of --in", SB_STAT_OUTSIDE_SPANS },
		{ "spans left without an end", SB_STAT_SPANS_LEFT },
		{ "spans in which their thread ended", SB_STAT_SPANS_EXITED },
		{ "spans not followed: too many", SB_STAT_SPANS_FULL },
		{ "expressions: unreadable", SB_STAT_EXPR_BAD_READ },
		{ "expressions: division by zero", SB_STAT_EXPR_DIV_ZERO },
		{ "expressions: string cut", SB_STAT_EXPR_CUT },
		{ "lost: no memory for thread", SB_STAT_TASK_FULL },
		{ "missed switches, repaired", SB_STAT_UNSEEN },
		{ "lost: requests in flight", SB_STAT_BLOCK_FULL },
		{ "lost: mappings changing", SB_STAT_VMA_BUSY },
		{ "lost: kernel threads", SB_STAT_KERNEL_BUSY },
		{ "lost: interrupted another", SB_STAT_TRACE_BUSY },
		{ "lost: open calls", SB_STAT_CALLS_FULL },
		{ "lost: left by a jump", SB_STAT_CALLS_JUMPED },
		{ "lost: thread ended in it", SB_STAT_CALLS_EXITED },
		{ "lost: begun again", SB_STAT_CALLS_REPLACED },
		{ "calls without beginning", SB_STAT_CALLS_UNSEEN },
		{ "lost: io_uring requests", SB_STAT_URING_FULL },
		{ "lost: io_uring incomplete", SB_STAT_URING_UNSEEN },
		{ "lost: io_uring multishot", SB_STAT_URING_UNNAMED },
		{ "queued before the run", SB_STAT_BLOCK_UNKNOWN },
		{ "written back for unknown", SB_STAT_NO_DIRTIER },
		{ "faults in anonymous memory", SB_STAT_FAULT_ANON },
		{ "ring full, object retried", SB_STAT_OBJECT_FULL },
	};
	const struct sb_resolve_stats *resolve = &figures->resolve;
	uint64_t nr_tiny, tiny_weight;
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(rows); i++)
		if (figures->session.stat[rows[i].stat])
			row_nr(rows[i].name, figures->session.stat[rows[i].stat]);
	if (resolve->idle_weight)
		row("left out: idle waits", "%.3f s", (double)resolve->idle_weight / 1e9);
	if (resolve->lock_weight)
		row("waits for locks", "%.3f s", (double)resolve->lock_weight / 1e9);
	if (resolve->nr_unwanted)
		row_nr("left out: other paths", resolve->nr_unwanted);
	if (resolve->nr_missing_objects)
		row_nr("objects lost", resolve->nr_missing_objects);
	nr_tiny = sb_profile_nr_tiny(run->profile, &tiny_weight);
	if (nr_tiny)
		row_nr("stacks rounded to 0", nr_tiny);
	if (figures->session.nr_asleep)
		row("threads found asleep", "%llu, woke up before their stack was read: %llu",
		    (unsigned long long)figures->session.nr_asleep,
		    (unsigned long long)figures->session.nr_asleep_lost);
	if (sb_view_has_spans(&run->config->view_opts))
		sb_report_spans(run, figures, row_text);
	if (run->config->views.at[figures->view]->report)
		sb_session_report(run->session, figures->view, figures->wall_ns, row_text);
}

static void report_unwinding(const struct sb_run_figures *figures)
{
	const struct sb_unwinder_stats *unwinder = &figures->session.unwinder;
	const uint64_t *stat = figures->session.stat;

	row_nr("frames by unwind tables", stat[SB_STAT_CFI_FRAMES]);
	row_nr("frames by frame pointer", stat[SB_STAT_FP_FRAMES]);
	row_nr("walks reused", stat[SB_STAT_KNOWN]);
	row_nr("first stacks copied raw", stat[SB_STAT_RAW]);
	row_nr("not copied: over budget", stat[SB_STAT_RAW_LIMIT]);
	row_nr("not copied: ring full", stat[SB_STAT_RAW_FULL]);
	row_nr("table requests lost", stat[SB_STAT_NEEDS_FULL]);
	row_nr("stack pages faulted in", unwinder->nr_touched);
	row("unwind tables", "%llu, built %llu in %.1f ms with %llu rows; files without: %llu",
	    (unsigned long long)unwinder->nr_tables, (unsigned long long)unwinder->nr_tables_built,
	    (double)unwinder->build_ns / 1e6, (unsigned long long)unwinder->nr_rows,
	    (unsigned long long)unwinder->nr_tables_failed);
	row("memory of unwind tables", "%.1f MB, at most %.1f of %.1f MB, evicted %llu times",
	    (double)unwinder->nr_pool_bytes / 1e6, (double)unwinder->nr_pool_bytes_peak / 1e6,
	    (double)unwinder->nr_pool_bytes_max / 1e6, (unsigned long long)unwinder->nr_evictions);
	row("files parsed in sandbox", "%llu, by %llu processes, %.1f ms of CPU time",
	    (unsigned long long)figures->parser.nr_answers,
	    (unsigned long long)figures->parser.nr_workers, (double)figures->parser.cpu_ns / 1e6);
	row("reads of other processes", "%llu, by %llu readers, %.1f ms of CPU time",
	    (unsigned long long)figures->readers.nr_requests,
	    (unsigned long long)figures->readers.nr_readers, (double)figures->readers.cpu_ns / 1e6);
	row("readers abandoned", "%llu, crashed %llu; reads refused %llu; files copied %llu",
	    (unsigned long long)figures->readers.nr_abandoned,
	    (unsigned long long)figures->readers.nr_crashed,
	    (unsigned long long)figures->readers.nr_refused,
	    (unsigned long long)figures->readers.nr_copies);
	row("address spaces known", "%llu, %llu evicted, %llu refused",
	    (unsigned long long)figures->processes.nr_spaces,
	    (unsigned long long)figures->processes.nr_forgotten,
	    (unsigned long long)figures->processes.nr_refused);
	row("processes with tables", "%llu, %llu refused",
	    (unsigned long long)unwinder->nr_processes, (unsigned long long)unwinder->nr_refused);
}

/* With --label only. */
static void report_labels(const struct sb_run *run, const struct sb_run_figures *figures)
{
	const struct sb_resolve_stats *resolve = &figures->resolve;
	const uint64_t *stat = figures->session.stat;
	struct sb_interp_stats stats;

	if (!run->config->nr_labels)
		return;
	sb_interp_stats(run->interp, &stats);
	row("samples with labels", "%llu, %llu as (other): too many sets, %llu lost",
	    (unsigned long long)resolve->nr_labelled, (unsigned long long)resolve->nr_other_labels,
	    (unsigned long long)resolve->nr_missing_labels);
	row("processes with labels", "%llu alive; %llu sets, %llu labels without a name",
	    (unsigned long long)stats.nr_labelled, (unsigned long long)stats.nr_label_sets,
	    (unsigned long long)stats.nr_unknown_keys);
	row("labels cut, unreadable", "%llu, %llu", (unsigned long long)stat[SB_STAT_LABELS_CUT],
	    (unsigned long long)stat[SB_STAT_LABELS_BAD]);
	row("sets of labels lost", "%llu ring full, retried; %llu without memory",
	    (unsigned long long)stat[SB_STAT_LABELS_FULL],
	    (unsigned long long)figures->session.interps.nr_labels_lost);
}

static void report_governor(const struct sb_run *run, const struct sb_run_figures *figures)
{
	const struct sb_thinning_stats *stats = &figures->session.thinning;
	char text[64];

	row("highest cost in a second", "%.3f %% of all CPUs; in the last second %.3f %%",
	    100 * stats->governor.worst, 100 * stats->governor.last);
	if (!stats->limit)
		return;
	lowest(run, figures, text, sizeof(text));
	if (stats->governor.lowered_ns)
		row("lowered", "to %s, for %.3f s, in %u changes", text,
		    (double)stats->governor.lowered_ns / 1e9, stats->governor.nr_changes);
	if (stats->governor.thrift_ns)
		row("mappings read less often", "up to %u times, for %.3f s",
		    1u << stats->governor.thrift_worst, (double)stats->governor.thrift_ns / 1e9);
	row("over --max-overhead", "%.3f s in which the rate could not be lowered",
	    (double)stats->governor.helpless_ns / 1e9);
}

/* Who we are, and what we may do. */
static void report_privileges(const struct sb_run *run)
{
	sb_cleanup(sb_str_release) struct sb_str text = {};
	uint64_t have = sb_privileges_have();
	int err = sb_str_addf(&text, "user %u", geteuid());
	size_t i;

	for (i = 0; i < sb_nr_capabilities && !err; i++)
		if (sb_capabilities[i].name && (have & (1ull << sb_capabilities[i].number)))
			err = sb_str_addf(&text, ", %s", sb_capabilities[i].name);
	if (!err)
		err = sb_str_addf(&text, "; system calls %sfiltered",
				  sb_privileges_filter() ? "" : "not ");
	if (!err && run->parser)
		err = sb_str_addf(&text,
				  "; unwind tables are built by a process without "
				  "privileges, %s",
				  sb_landlock_version() ? "which cannot open files"
							: "but without Landlock");
	if (!err)
		err = sb_str_addf(&text, "; other processes are read by helper processes "
					 "that can be abandoned");
	if (!err && run->sink->has_file_writer)
		err = sb_str_addf(&text, "; files are written by a separate process");
	if (!err)
		row("privileges left", "%s", text.s);
}

static void report_cost(const struct sb_run *run, const struct sb_run_figures *figures)
{
	const struct sb_sym_stats *sym = &figures->symbolizer;
	uint64_t bpf_ns = figures->session.stat[SB_STAT_RUN_NS];

	row("BPF programs", "%.3f %% of a CPU, %.0f ns a sample", percent(bpf_ns, figures->wall_ns),
	    figures->nr_samples ? (double)bpf_ns / (double)figures->nr_samples : 0);
	row("own CPU time while sampling", "%.3f %% of a CPU",
	    percent(run->own_end_ns - run->own_start_ns, figures->wall_ns));
	report_governor(run, figures);
	row("own CPU time before, after", "%.0f ms, %.0f ms", (double)run->own_start_ns / 1e6,
	    (double)(sb_run_own_ns(run) - run->own_end_ns) / 1e6);
	row("files, processes with names", "%llu, %llu", (unsigned long long)sym->nr_modules,
	    (unsigned long long)sym->nr_processes);
	report_privileges(run);
	row("memory of symbols", "%.1f MB", (double)sym->nr_light_bytes / 1e6);
	row("symbol data while parsing", "at most %.1f of %.1f MB; files over their budget: %llu",
	    (double)sym->nr_bytes_peak / 1e6, (double)sym->nr_bytes_max / 1e6,
	    (unsigned long long)sym->nr_files_cut);
	row("debug information not read", "%llu damaged units, %llu .dwo files",
	    (unsigned long long)sym->nr_units_damaged, (unsigned long long)sym->nr_splits_missing);
	row("memory of debug information", "%.1f MB, at most %.1f MB, evicted %llu times",
	    (double)sym->nr_heavy_bytes / 1e6, (double)sym->nr_heavy_bytes_peak / 1e6,
	    (unsigned long long)sym->nr_evictions);
}

static void report_doubts(const struct sb_run *run, const struct sb_run_figures *figures)
{
	if (figures->resolve.nr_unnamed[SB_SYM_RESTRICTED])
		sb_info("kernel frames have no names, because the kernel hides its "
			"addresses; run stackbpf as root or with CAP_SYSLOG, and set sysctl "
			"kernel.kptr_restrict to 0 or 1");
	if (figures->session.err)
		sb_warn("cannot tell how much was lost: the counters in the kernel cannot be "
			"read (%s)",
			strerror(-figures->session.err));
	sb_report_interp_warnings(run);
	warn_overhead(figures);
	warn_parser(figures);
	sb_reader_warn(&figures->readers);
}

static void report_all(const struct sb_run *run, struct sb_run_figures *figures)
{
	sb_info("%.3f s of %s", (double)figures->wall_ns / 1e9,
		run->config->views.at[figures->view]->kind->name);
	if (figures->session.first_sample_ns)
		figures->session.first_sample_ns -= run->entry_ns;
	report_samples(run, figures);
	report_losses(figures);
	report_left_out(run, figures);
	report_unwinding(figures);
	sb_report_interps(run, figures, row_text);
	report_labels(run, figures);
	report_cost(run, figures);
}

void sb_report_run(const struct sb_run *run, bool all_figures)
{
	struct sb_run_figures figures;
	uint32_t i;

	for (i = 0; i < run->config->views.nr; i++) {
		sb_run_figures(run, i, &figures);
		if (!i)
			report_doubts(run, &figures);
		if (all_figures)
			report_all(run, &figures);
		else
			report_closing(run, &figures);
	}
	sb_report_slowest(run);
}

/* Return: the state letter of a process, 0 when it is gone. */
static char state_of(uint32_t pid)
{
	struct sb_procfs_stat stat;

	return sb_procfs_stat(pid, &stat) ? 0 : stat.state;
}

static void explain_targets(const struct sb_run *run)
{
	size_t i, nr_alive = 0, nr_stopped = 0;

	for (i = 0; i < run->targets.nr; i++) {
		char state = state_of(run->targets.at[i].id);

		nr_alive += state && state != 'Z';
		nr_stopped += state == 'T' || state == 't';
	}
	if (!nr_alive)
		sb_err(0, "nothing was sampled: all targets ended before the first sample; append "
			  "'-- COMMAND' to sample a command from its start");
	else if (nr_stopped == nr_alive)
		sb_err(0,
		       "nothing was sampled: process %u is stopped by a signal or a debugger; let it "
		       "continue, such as with 'kill -CONT %u'",
		       run->targets.at[0].id, run->targets.at[0].id);
	else
		sb_err(0,
		       "nothing was sampled: %s %u %s idle; to see where processes wait, "
		       "use 'stackbpf offcpu'",
		       run->targets.nr == 1 ? "process" : "processes like", run->targets.at[0].id,
		       run->targets.nr == 1 ? "was" : "were");
}

void sb_report_empty(const struct sb_run *run)
{
	sb_cleanup(sb_str_release) struct sb_str lost = {};
	struct sb_run_figures figures;
	double nr_ticks;

	sb_run_figures(run, 0, &figures);
	add_lost(&lost, &figures.session);
	nr_ticks = (double)figures.wall_ns / 1e9 * run->config->freq_hz;
	if (figures.nr_lost)
		sb_err(0, "nothing was recorded: all %llu samples were lost: %s",
		       (unsigned long long)figures.nr_lost, lost.len ? lost.s : "their stacks");
	else if (figures.session.stat[SB_STAT_WHEN_FALSE] +
		 figures.session.stat[SB_STAT_WEIGHT_NONE])
		sb_err(0,
		       "nothing was sampled: %llu events were left out by --when, and %llu because "
		       "their --weight was 0 or less; check these expressions",
		       (unsigned long long)figures.session.stat[SB_STAT_WHEN_FALSE],
		       (unsigned long long)figures.session.stat[SB_STAT_WEIGHT_NONE]);
	else if (sb_view_has_spans(&run->config->view_opts))
		sb_report_empty_spans(run, &figures);
	else if (run->config->views.at[0]->kind->empty)
		sb_err(0, "nothing was sampled: %s", run->config->views.at[0]->kind->empty);
	else if (run->config->view_opts.counter)
		sb_err(0,
		       "nothing was sampled: the targets caused too few events of '%s'%s; sample longer",
		       run->config->view_opts.counter->text,
		       run->config->freq_hz ? "" : " for its period");
	else if (run->child && !run->config->all)
		sb_err(0,
		       "nothing was sampled: '%s' used too little CPU time; raise -F, or use "
		       "-s to sample its child processes, too",
		       run->config->command[0]);
	else if (nr_ticks < 2)
		sb_err(0,
		       "nothing was sampled: %.0f ms at %u Hz are too short; raise -t or "
		       "-F",
		       (double)figures.wall_ns / 1e6, run->config->freq_hz);
	else if (run->targets.nr)
		explain_targets(run);
	else if (sb_run_has_allow_rule(&run->config->targets))
		sb_err(0,
		       "nothing was sampled: no running thread matched the filters, and %llu "
		       "samples of other threads were skipped",
		       (unsigned long long)figures.session.stat[SB_STAT_FILTERED]);
	else
		sb_err(0,
		       "nothing was sampled: the machine was idle; to sample a command, append '-- "
		       "COMMAND', and to see what programs wait for, use 'stackbpf wall'");
}
