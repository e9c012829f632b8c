// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The closing report: what a run is worth, and why a run has no result. docs/loss.md explains each
 * figure; report_stats.c logs all of them. */
#include "cli/report.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "cli/record.h"
#include "cli/wrap.h"
#include "symbolizer/process/procfs.h"

/* If probes take the time of so many CPUs while they are attached, or if such a part is missing in
 * sums, the report says that sums are too low. */
#define BUSY	     0.02
/* After the start-up; a run of one second ends just then. */
#define SHARE_NS_MIN (SB_NS_PER_SEC / 2)

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

/* What is not in the result because it was not asked for, or fell between two stools. */
static void add_left_out(const struct sb_run *run, const struct sb_run_figures *figures,
			 struct sb_str *list)
{
	const struct sb_resolve_stats *resolve = &figures->resolve;
	const uint64_t *stat = figures->session.stat;
	bool is_of_parts = run->config->views.at[figures->view]->kind->options & SB_VIEW_STATES;
	uint64_t tiny_weight, nr_tiny = sb_profile_nr_tiny(run->profile, &tiny_weight);

	if (resolve->idle_weight)
		(void)sb_str_addf(list, "%s%.1f s of idle waits", list->len ? ", " : "",
				  (double)resolve->idle_weight / 1e9);
	/* The time until a thread is woken and that in the run queue are two parts of a wait. */
	add_item(list, stat[SB_STAT_UNDER_MIN],
		 is_of_parts ? "parts of waits shorter than --min" : "shorter than --min");
	add_item(list, stat[SB_STAT_OVER_MAX],
		 is_of_parts ? "parts of waits longer than --max" : "longer than --max");
	/* Of allocations, expressions are ours: what they leave out allocates nothing. */
	if (!(run->config->views.at[figures->view]->kind->options & SB_VIEW_ALLOCS))
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
		 sb_plural(figures->session.nr_asleep_lost,
			   "sleeping thread woke up before its stack was read",
			   "sleeping threads woke up before their stack was read"));
	add_item(list, nr_tiny,
		 sb_plural(nr_tiny, "stack with a weight that rounds to 0",
			   "stacks with a weight that rounds to 0"));
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
	sb_report_lowest(run, figures, text, sizeof(text));
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
	sb_warn("parsing a file failed %llu %s: the parser process crashed (%llu), was "
		"killed after %llu s (%llu), or sent an invalid answer (%llu); stacks in "
		"these files may be walked by frame pointers, and functions have no names; "
		"-v says which files these are",
		(unsigned long long)nr, sb_plural(nr, "time", "times"),
		(unsigned long long)parser->nr_crashed, SB_PARSER_PATIENCE_NS / SB_NS_PER_SEC,
		(unsigned long long)parser->nr_timeouts, (unsigned long long)parser->nr_forged);
}

/* Percent as it is shown, one decimal: rounded down, so that 100.0 is all of it. */
static double percent_shown(uint64_t part, uint64_t whole)
{
	return (double)(uint64_t)(10 * sb_report_percent(part, whole)) / 10;
}

/* Return: the processes whose own profiles are the source. */
static uint32_t nr_own_profiles(const struct sb_goheap_stats *stats)
{
	uint32_t i, nr = 0;

	for (i = 0; i < stats->nr; i++)
		nr += stats->at[i].state == SB_GO_HEAP_READ;
	return nr;
}

/* What samples are of. */
static const char *event_of(const struct sb_view *view, const struct sb_run_figures *figures)
{
	const uint32_t nr = nr_own_profiles(&figures->session.goheap);

	if (!nr || !view->follows_pages)
		return sb_view_event(view, figures->nr_samples);
	if (nr == figures->resolve.nr_processes)
		return sb_plural(figures->nr_samples, "sampled allocation", "sampled allocations");
	return sb_plural(figures->nr_samples, "page or sampled allocation",
			 "pages and sampled allocations");
}

/* The first line: how much there is, and what it is worth. */
static void add_result(const struct sb_run *run, const struct sb_run_figures *figures,
		       struct sb_str *line)
{
	const struct sb_view *view = run->config->views.at[figures->view];

	if (run->config->views.nr > 1 && !run->config->view_opts.fallback)
		(void)sb_str_addf(line, "%s: ", view->kind->name);
	(void)sb_str_addf(line, "%llu %s", (unsigned long long)figures->nr_samples,
			  event_of(view, figures));
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
				  sb_report_percent(figures->nr_unnamed, figures->nr_frames));
}

static void add_skipped(struct sb_str *line, const struct sb_session_stats *session)
{
	if (!session->nr_skipped_seen)
		return;
	(void)sb_str_addf(line,
			  "%s%llu mapping %s skipped, because %s changes its "
			  "mappings too often",
			  line->len ? ", " : "", (unsigned long long)session->nr_skipped_seen,
			  sb_plural(session->nr_skipped_seen, "record", "records"),
			  session->skipping);
	if (session->nr_skipping_seen > 1)
		(void)sb_str_addf(line,
				  session->nr_skipping_seen == 2 ? ", as does %llu more process"
								 : ", as do %llu more processes",
				  (unsigned long long)session->nr_skipping_seen - 1);
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
	const struct sb_view *view = run->config->views.at[figures->view];
	uint64_t nr_skipped = figures->session.stat[SB_STAT_TICKS_SKIPPED];

	add_cpus(line, &figures->session);
	/* Of the views of a session only "oncpu" has lost them. A few are everyday life. */
	if (view->slots == 1u << SB_SCRATCH_TIMER && nr_skipped &&
	    nr_skipped * 100 >= figures->nr_samples + nr_skipped)
		(void)sb_str_addf(
			line,
			"%stimers skipped at least %.1f %% of the ticks, so times are too low "
			"by as much",
			line->len ? ", " : "",
			sb_report_percent(nr_skipped, figures->nr_samples + nr_skipped));
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
	/* Of less time than that, the share would be the cost of single actions, such as a
	 * drain. */
	const bool is_long = run->warm_ns && run->stop_ns >= run->warm_ns + SHARE_NS_MIN;
	uint64_t startup_ns = is_long ? run->own_warm_ns : run->own_end_ns;
	double cost = sb_report_percent(figures->session.stat[SB_STAT_RUN_NS], figures->wall_ns);

	/* To load, and to read processes, symbols and tables for the first time, is done once: no
	 * share of a CPU. */
	if (is_long)
		cost += sb_report_percent(run->own_end_ns - run->own_warm_ns,
					  run->stop_ns - run->warm_ns);
	(void)sb_str_addf(line,
			  "own cost %.2f %% of a CPU, plus %.2f s of CPU time to start "
			  "up",
			  cost, (double)startup_ns / 1e9);
}

/* "12.3 MB", "120 objects". */
static void add_amount(struct sb_str *line, double amount, const char *unit)
{
	if (!sb_streq(unit, "bytes"))
		(void)sb_str_addf(line, "%.0f %s", amount, unit);
	else if (amount >= 1e6)
		(void)sb_str_addf(line, "%.1f MB", amount / 1e6);
	else
		(void)sb_str_addf(line, "%.1f KB", amount / 1e3);
}

/* Return: what grows in a minute. What leaked came in the first half of the run. Of pages, a heap
 * also needed some then for what is at work at any time, and no more of these come later. */
static double growth(const struct sb_run *run, const struct sb_run_figures *figures, double minutes)
{
	const struct sb_resident_process *sum = &figures->session.resident.sum;
	const double leaked = 2 * (double)sb_profile_weight(run->profile);
	const double grown = (double)sum->rss - (double)sum->before;

	if (run->config->views.at[figures->view]->follows_pages && grown > 0 && grown < leaked &&
	    !nr_own_profiles(&figures->session.goheap))
		return grown / minutes;
	return leaked / minutes;
}

static void add_growth(const struct sb_run *run, const struct sb_run_figures *figures,
		       struct sb_str *line)
{
	const struct sb_view *view = run->config->views.at[figures->view];
	double minutes = (double)figures->wall_ns / 60e9;
	uint64_t divisor;

	/* Sums of slices can be too low. */
	if (!view->kind->is_of_growth || !run->sink->keeps_all || minutes <= 0 ||
	    (figures->session.tracing.is_sampled && !figures->session.tracing.end))
		return;
	(void)sb_str_add(line, "grows by ");
	add_amount(line, growth(run, figures, minutes),
		   sb_view_unit(view, &run->config->view_opts, &divisor));
	(void)sb_str_add(line, " a minute, as long as nothing of it is given back later");
}

static void add_slices(const struct sb_run *run, const struct sb_run_figures *figures,
		       struct sb_str *list)
{
	const struct sb_slicer_stats *stats = &figures->session.slices;

	if (!stats->nr || !run->config->views.at[figures->view]->is_sliced)
		return;
	(void)sb_str_addf(
		list,
		"probes of what allocates were attached for %.2f %% of the time, in %llu slices at "
		"random times, to stay below %.4g %% of all CPUs (--max-overhead); samples stand "
		"for the rest",
		100 * sb_slicer_attached(stats, figures->wall_ns), (unsigned long long)stats->nr,
		100 * figures->session.thinning.limit);
	/* It is that of the number of calls, and says nothing of how many of them were never taken
	 * back. */
	if (stats->error > 0 && !run->config->view_opts.fallback)
		(void)sb_str_addf(list, ", with a standard error of the sum of %.1f %%",
				  100 * stats->error);
	if (stats->ended_ns > run->start_ns)
		(void)sb_str_addf(
			list,
			"\nthere were no slices after %.1f s, because the process had ended, or its "
			"functions could not be probed any more",
			(double)(stats->ended_ns - run->start_ns) / 1e9);
	if (stats->busy < BUSY && stats->missing < BUSY)
		return;
	(void)sb_str_addf(
		list,
		"\n"
		"in these slices probes took the time of %.2f CPUs: programs that are busy all the "
		"time allocated less then than they do otherwise, so that shares are right and "
		"sums too low",
		stats->busy);
	if (stats->missing >= 0.005)
		(void)sb_str_addf(list,
				  ", by about %.0f %% if one thread made all calls and had a CPU "
				  "for itself",
				  100 * stats->missing);
}

/* Of allocations: what it cost the programs, beside what our programs took. */
static void add_probe_cost(const struct sb_run *run, const struct sb_run_figures *figures,
			   struct sb_str *line)
{
	const struct sb_view *view = run->config->views.at[figures->view];
	const uint64_t nr = figures->session.stat[SB_STAT_PROBE_HITS];

	if (view->kind->options & SB_VIEW_ALLOCS && nr)
		(void)sb_str_addf(
			line, "programs came to probes %llu times, which cost them about %.3f s",
			(unsigned long long)nr, (double)figures->session.probe_cost_ns / 1e9);
}

/*
 * The closing report: the result in one line, then a row for each thing that there is something to
 * say of, in this order. A function appends the text of its row; nothing if there is none; more
 * rows after a '\n'.
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
	{ "", sb_report_source },
	{ "", sb_report_own_profiles },
	{ "", add_growth },
	{ "", add_slices },
	{ "", add_probe_cost },
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

/* Which source the result of heap and leak is from, and what that does not see. */
static void report_source(const struct sb_run *run, const struct sb_run_figures *figures)
{
	sb_cleanup(sb_str_release) struct sb_str source = {}, profiles = {};

	sb_report_source(run, figures, &source);
	if (source.len)
		report_rows("", &source);
	sb_report_own_profiles(run, figures, &profiles);
	if (profiles.len)
		report_rows("", &profiles);
}

void sb_report_run(const struct sb_run *run, bool all_figures)
{
	struct sb_run_figures figures;
	const uint32_t first = sb_run_shown(run);
	const uint32_t nr = run->config->view_opts.fallback ? 1 : (uint32_t)run->config->views.nr;
	uint32_t i;

	for (i = first; i < first + nr; i++) {
		sb_run_figures(run, i, &figures);
		if (i == first)
			report_doubts(run, &figures);
		if (all_figures)
			sb_report_stats(run, &figures);
		else
			report_closing(run, &figures);
		if (all_figures)
			report_source(run, &figures);
	}
	sb_report_slowest(run);
}

/* Return: the state letter of a process, 0 when it is gone. */
static char state_of(uint32_t pid)
{
	struct sb_procfs_stat stat;

	return sb_procfs_stat(pid, &stat) ? 0 : stat.state;
}

/* Return: whether the user excluded this target (with '!'). The user has named it as a target,
 * too. */
static bool is_denied(const struct sb_run *run, uint32_t id)
{
	const struct sb_targets *targets = &run->config->targets;
	size_t i;

	for (i = 0; i < targets->tgids.nr; i++)
		if (targets->tgids.at[i].pid == id && targets->tgids.at[i].rule & SB_RULE_DENY)
			return true;
	for (i = 0; i < targets->tids.nr; i++)
		if (targets->tids.at[i].pid == id && targets->tids.at[i].rule & SB_RULE_DENY)
			return true;
	return false;
}

/* What became of the targets, without those that are excluded. */
struct targets_now {
	size_t nr, nr_alive, nr_stopped;
	uint32_t first; /* an ID of them, of one that is alive if there is one */
};

static void look_at_targets(const struct sb_run *run, struct targets_now *ret_now)
{
	struct targets_now now = { .first = run->targets.at[0].id };
	size_t i;

	for (i = 0; i < run->targets.nr; i++) {
		uint32_t id = run->targets.at[i].id;
		char state = state_of(id);

		if (is_denied(run, id))
			continue;
		if (!now.nr++ || (state && state != 'Z' && !now.nr_alive))
			now.first = id;
		now.nr_alive += state && state != 'Z';
		now.nr_stopped += state == 'T' || state == 't';
	}
	*ret_now = now;
}

static void explain_excluded(const struct targets_now *now)
{
	sb_err(0,
	       "nothing was sampled: the targets both name and exclude (with '!') %u; leave one out",
	       now->first);
}

static void explain_targets(const struct sb_run *run)
{
	struct targets_now now;

	look_at_targets(run, &now);
	if (!now.nr)
		explain_excluded(&now);
	else if (!now.nr_alive)
		sb_err(0, "nothing was sampled: all targets ended before the first sample; append "
			  "'-- COMMAND' to sample a command from its start");
	else if (now.nr_stopped == now.nr_alive)
		sb_err(0,
		       "nothing was sampled: process %u is stopped by a signal or a debugger; let it "
		       "continue, such as with 'kill -CONT %u'",
		       now.first, now.first);
	else
		sb_err(0,
		       "nothing was sampled: %s %u %s idle; to see where processes wait, "
		       "use 'stackbpf offcpu'",
		       now.nr == 1 ? "process" : "processes like", now.first,
		       now.nr == 1 ? "was" : "were");
}

/* Return: whether options of the user, such as --idle drop or -n, may have left out all samples of
 * the targets. */
static bool has_left_out(const struct sb_run *run, const struct sb_run_figures *figures)
{
	const struct sb_targets *targets = &run->config->targets;

	return figures->resolve.idle_weight || targets->nr_comms || targets->nr_uids ||
	       targets->nr_cgroups;
}

/* A view of all threads has something of each target that is alive, so that its own sentence would
 * be wrong. Return: whether something else was said. */
static bool explain_unseen(const struct sb_run *run, const struct sb_run_figures *figures)
{
	struct targets_now now;

	if (!run->targets.nr || !run->config->views.at[0]->is_of_all_threads ||
	    has_left_out(run, figures))
		return false;
	look_at_targets(run, &now);
	if (!now.nr)
		explain_excluded(&now);
	else if (now.nr_alive)
		sb_err(0,
		       "nothing was sampled: process %u is alive, but the kernel told nothing of its "
		       "threads; choose another target, or see what 'stackbpf doctor -p %u' says",
		       now.first, now.first);
	return !now.nr || now.nr_alive;
}

/* Its view says why. What could not be read may be another reason. */
static void explain_view(const struct sb_run *run, const struct sb_run_figures *figures)
{
	sb_cleanup(sb_str_release) struct sb_str unread = {};
	const struct sb_view_opts *opts = &run->config->view_opts;
	const bool is_limited = opts->min_ns || opts->max_ns || opts->states;

	if (!is_limited && explain_unseen(run, figures))
		return;
	sb_err(0, "nothing %s: %s%s; sample longer, or %s",
	       run->config->views.at[0]->kind->is_of_growth ? "that leaks was seen" : "was sampled",
	       sb_report_memory_empty(run),
	       is_limited ? " within the limits of -m, -M and --state" : "",
	       is_limited ? "change these options" : "other targets");
	sb_report_memory_unread(figures, &unread);
	if (unread.len)
		sb_info("%s", unread.s);
	report_source(run, figures);
}

static void explain_left_out(const uint64_t *stat)
{
	uint64_t nr_when = stat[SB_STAT_WHEN_FALSE], nr_weight = stat[SB_STAT_WEIGHT_NONE];

	if (nr_when && nr_weight)
		sb_err(0,
		       "nothing was sampled: --when left out %llu %s, and a --weight of 0 or less "
		       "%llu; check these expressions",
		       (unsigned long long)nr_when, sb_plural(nr_when, "event", "events"),
		       (unsigned long long)nr_weight);
	else
		sb_err(0, "nothing was sampled: %s left out %llu %s; check this expression",
		       nr_when ? "--when" : "a --weight of 0 or less",
		       (unsigned long long)(nr_when + nr_weight),
		       sb_plural(nr_when + nr_weight, "event", "events"));
}

/* What to do about lost samples. Of some causes it is only known that they happen. */
static const char *advice_of_lost(const struct sb_session_stats *stats)
{
	const uint64_t *stat = stats->stat;
	uint64_t nr_unavoidable = stat[SB_STAT_VMA_BUSY] + stat[SB_STAT_URING_UNSEEN] +
				  stat[SB_STAT_URING_UNNAMED] + stat[SB_STAT_CALLS_JUMPED] +
				  stat[SB_STAT_CALLS_EXITED] + stat[SB_STAT_CALLS_REPLACED];

	if (nr_unavoidable >= stats->nr_lost)
		return "";
	if (stat[SB_STAT_COUNTS_BUSY] > stats->nr_lost / 2)
		return "; use -e cpu-clock";
	return "; choose fewer targets or rarer events";
}

void sb_report_empty(const struct sb_run *run)
{
	static const char unknown[] = "their stacks could not be kept";
	sb_cleanup(sb_str_release) struct sb_str lost = {};
	struct sb_run_figures figures;
	double nr_ticks;

	sb_run_figures(run, sb_run_shown(run), &figures);
	add_lost(&lost, &figures.session);
	nr_ticks = (double)figures.wall_ns / 1e9 * run->config->freq_hz;
	/* Of so many that slices trace, some always are: that is not why nothing is held. */
	if (figures.nr_lost && figures.session.tracing.is_sampled) {
		explain_view(run, &figures);
		sb_info("lost: %s", lost.len ? lost.s : unknown);
	} else if (figures.nr_lost && !sb_view_has_spans(&run->config->view_opts))
		sb_err(0, "nothing was recorded: %llu %s lost: %s%s",
		       (unsigned long long)figures.nr_lost,
		       sb_plural(figures.nr_lost, "sample was", "samples were"),
		       lost.len ? lost.s : unknown, advice_of_lost(&figures.session));
	else if (figures.session.stat[SB_STAT_WHEN_FALSE] +
			 figures.session.stat[SB_STAT_WEIGHT_NONE] &&
		 run->config->views.at[0]->kind->options & SB_VIEW_EXPRS)
		explain_left_out(figures.session.stat);
	else if (sb_view_has_spans(&run->config->view_opts))
		sb_report_empty_spans(run, &figures, lost.len ? lost.s : unknown);
	else if (run->config->views.at[0]->kind->empty)
		explain_view(run, &figures);
	else if (run->config->view_opts.counter)
		sb_err(0,
		       "nothing was sampled: the targets caused too few events of '%s'%s; sample longer",
		       run->config->view_opts.counter->text,
		       run->config->freq_hz ? "" : " for its period");
	else if (run->end == SB_END_SIGNAL && nr_ticks < 2)
		sb_err(0, "nothing was sampled: the run was interrupted after %.0f ms",
		       (double)figures.wall_ns / 1e6);
	else if (run->child && !run->config->all)
		sb_err(0, "nothing was sampled: '%s' used too little CPU time; raise -F%s",
		       run->config->command[0],
		       run->config->targets.follow_children
			       ? ""
			       : ", or use -s to sample its child processes, too");
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
		       "samples of other threads were skipped; check the targets",
		       (unsigned long long)figures.session.stat[SB_STAT_FILTERED]);
	else
		sb_err(0,
		       "nothing was sampled: the machine was idle; to sample a command, append '-- "
		       "COMMAND', and to see what programs wait for, use 'stackbpf wall'");
}
