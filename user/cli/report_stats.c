// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* --stats: all figures of a run, in the place of the closing report. docs/loss.md explains each. */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/record.h"
#include "cli/report.h"
#include "events/allocator.h"
#include "workers/landlock.h"
#include "workers/privileges.h"

void sb_report_lowest(const struct sb_run *run, const struct sb_run_figures *figures, char *text,
		      size_t nr_bytes)
{
	const struct sb_thinning_stats *stats = &figures->session.thinning;
	const struct sb_run_unit *unit = &run->units[figures->view];
	const struct sb_view *view = run->config->views.at[figures->view];
	char every[SB_RUN_WEIGHT_BYTES];

	if (stats->weight && sb_view_is_of_held(view))
		snprintf(text, nr_bytes, "one of %llu allocations",
			 (unsigned long long)(stats->weight / SB_ALLOC_OBJECT));
	else if (stats->weight)
		snprintf(text, nr_bytes, "one sample per %s %s",
			 sb_run_weight_text(unit, stats->weight, every), unit->name);
	else
		snprintf(text, nr_bytes, "%.4g Hz", stats->rate_hz);
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
	sb_info("  %-28s %s", name, value);
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

	row_nr(sb_view_event(run->config->views.at[figures->view], 0), figures->nr_samples);
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
	    sb_report_percent(figures->nr_samples - figures->nr_cut, figures->nr_samples));
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
		{ "probes that programs came to", SB_STAT_PROBE_HITS },
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
	sb_report_memory(run, figures, row_text);
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
	row_nr("frames as they were before", stat[SB_STAT_SAME_FRAMES]);
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
	sb_report_lowest(run, figures, text, sizeof(text));
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
		row_text("privileges left", text.s);
}

static void report_cost(const struct sb_run *run, const struct sb_run_figures *figures)
{
	const struct sb_sym_stats *sym = &figures->symbolizer;
	uint64_t bpf_ns = figures->session.stat[SB_STAT_RUN_NS];

	row("BPF programs", "%.3f %% of a CPU, %.0f ns a sample",
	    sb_report_percent(bpf_ns, figures->wall_ns),
	    figures->nr_samples ? (double)bpf_ns / (double)figures->nr_samples : 0);
	row("own CPU time while sampling", "%.3f %% of a CPU",
	    sb_report_percent(run->own_end_ns - run->own_start_ns, run->stop_ns - run->start_ns));
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

void sb_report_stats(const struct sb_run *run, struct sb_run_figures *figures)
{
	sb_info("statistics of '%s' in a run of %.3f s:",
		run->config->views.at[figures->view]->kind->name, (double)figures->wall_ns / 1e9);
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
