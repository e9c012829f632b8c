// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What there is to report on memory: for each process, of what its Rss is made up. */
#include <stdio.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/record.h"
#include "cli/report.h"
#include "events/allocator.h"
#include "kinds/view_kind.h"
#include "symbolizer/process/procfs.h"
#include "views/view.h"

#define MIB 1048576.0

/* Not all pages were followed, so those that were can stand for more than came. */
static void add_estimate(struct sb_str *list, const struct sb_resident_process *process)
{
	const double held = (double)process->held, rest = (double)process->unaccounted;

	(void)sb_str_addf(list,
			  "%.1f that came, of which about %.2f %% is accounted for; the pages that "
			  "were followed stand for about %.1f MiB",
			  ((double)process->rss - (double)process->before) / MIB,
			  held + rest > 0 ? 100 * held / (held + rest) : 100, (held + rest) / MIB);
}

static void add_sum(struct sb_str *list, const struct sb_resident_process *process)
{
	const double held = (double)process->held;
	const double rest = (double)process->rss - (double)process->before - held;

	(void)sb_str_addf(
		list, "%.1f held + %.1f unaccounted; %.2f %% of what came is accounted for",
		held / MIB, rest / MIB, held + rest > 0 ? 100 * held / (held + rest) : 100);
}

static void add_process(struct sb_str *list, const struct sb_resident_process *process,
			bool is_estimate, bool is_of_kinds)
{
	(void)sb_str_addf(list, "%.1f MiB resident%s = %.1f before the run + ",
			  (double)process->rss / MIB, is_of_kinds ? " of the kinds asked for" : "",
			  (double)process->before / MIB);
	if (is_estimate)
		add_estimate(list, process);
	else
		add_sum(list, process);
	if (process->along)
		(void)sb_str_addf(list, "; %.1f MiB came along with another page's fault",
				  (double)process->along / MIB);
	if (process->swapped)
		(void)sb_str_addf(list, "; %.1f MiB more in swap", (double)process->swapped / MIB);
}

/* Less than 99.9 % is accounted for. */
static void add_why(struct sb_str *list, const struct sb_resident_process *sum)
{
	if (sum->unaccounted < MIB || sum->unaccounted < (sum->held + sum->unaccounted) / 1000)
		return;
	(void)sb_str_addf(list,
			  "\nmemory is unaccounted if it came without a page fault, as by "
			  "MAP_POPULATE, mlock(2) or userfaultfd(2), or if mremap(2) moved it to "
			  "a fixed address");
}

static void add_ended(struct sb_str *list, const struct sb_resident_stats *stats)
{
	if (!stats->nr_ended && !stats->nr_replaced)
		return;
	(void)sb_str_add(list, ", including all of ");
	if (stats->nr_ended)
		(void)sb_str_addf(list, "%llu process%s that ended",
				  (unsigned long long)stats->nr_ended,
				  stats->nr_ended == 1 ? "" : "es");
	if (stats->nr_replaced)
		(void)sb_str_addf(list, "%s%llu program%s that execve(2) replaced",
				  stats->nr_ended ? " and of " : "",
				  (unsigned long long)stats->nr_replaced,
				  stats->nr_replaced == 1 ? "" : "s");
	(void)sb_str_addf(list, ": %.1f MiB held at the end", (double)stats->ended / MIB);
	if (stats->nr_ended)
		(void)sb_str_addf(list,
				  "; the most that each process had resident is %.1f MiB together",
				  (double)stats->ended_peak / MIB);
}

const char *sb_report_memory_empty(const struct sb_run *run)
{
	static const char *const other[SB_MEMORY_WHAT_MAX] = {
		[SB_MEMORY_CHURN] = "no memory of the targets came and went",
		[SB_MEMORY_SWAPPED] = "no memory that came during the run was in swap at its end",
	};

	return other[run->config->view_opts.memory_what] ?: run->config->views.at[0]->kind->empty;
}

void sb_report_memory_unread(const struct sb_run_figures *figures, struct sb_str *list)
{
	const struct sb_resident_stats *stats = &figures->session.resident;

	if (stats->nr_left_out)
		(void)sb_str_addf(list, "%s%llu process%s left out: pages could not be read",
				  list->len ? "\n" : "", (unsigned long long)stats->nr_left_out,
				  stats->nr_left_out == 1 ? " is" : "es are");
	if (stats->unsorted)
		(void)sb_str_addf(list,
				  "%s%.1f MiB are resident in mappings that were not read, because "
				  "they are new or /proc/PID/maps has more than %u MiB: of these, "
				  "shared memory counts as 'file', heap and stack as 'anon'",
				  list->len ? "\n" : "", (double)stats->unsorted / MIB,
				  SB_MAPS_BYTES_MAX >> 20);
}

static void add_name(struct sb_str *list, const struct sb_resident_process *process)
{
	sb_cleanup(sb_freep) char *comm = NULL;

	/* The thread whose fault came first has another name than its process, or had it then. */
	if (sb_procfs_comm(process->tgid, &comm))
		(void)sb_str_addf(list, "process %u (%.*s): ", process->tgid, SB_COMM_LEN,
				  process->comm);
	else
		(void)sb_str_addf(list, "process %u (%s): ", process->tgid, comm);
}

void sb_report_memory_lines(const struct sb_run *run, const struct sb_run_figures *figures,
			    struct sb_str *list)
{
	const struct sb_resident_stats *stats = &figures->session.resident;
	const bool is_of_kinds = run->config->view_opts.memory_kinds;
	size_t i;

	if (!run->config->views.at[figures->view]->follows_pages)
		return;
	for (i = 0; i < SB_RESIDENT_TOP_MAX && i < stats->nr_processes; i++) {
		if (!stats->top[i].tgid)
			break;
		(void)sb_str_add(list, i ? "\n" : "");
		add_name(list, &stats->top[i]);
		add_process(list, &stats->top[i], stats->shift, is_of_kinds);
	}
	if (stats->nr_processes > 1) {
		(void)sb_str_addf(
			list, "\nall %llu processes: ", (unsigned long long)stats->nr_processes);
		add_process(list, &stats->sum, stats->shift, is_of_kinds);
	}
	(void)sb_str_addf(list, "%s%.1f MiB came and went", list->len ? "\n" : "",
			  (double)stats->churn / MIB);
	add_ended(list, stats);
	add_why(list, &stats->sum);
	sb_report_memory_unread(figures, list);
	if (stats->nr_not_moved)
		(void)sb_str_addf(
			list,
			"\nup to %llu new or moved mappings were not followed, because there were "
			"too many addresses to look at: their pages may be shown for code "
			"that had other memory at these addresses before",
			(unsigned long long)stats->nr_not_moved);
	if (stats->shift)
		(void)sb_str_addf(list,
				  "\none in %u windows of 64 KiB was followed, so that numbers "
				  "of pages are estimates, which add up to what came on average "
				  "only",
				  1u << stats->shift);
}

static double nr_cpus_of(const struct sb_run_figures *figures)
{
	return figures->session.nr_cpus ? figures->session.nr_cpus : 1;
}

/* @limit: in percent of all CPUs, here and below. */
static void add_costly(struct sb_str *list, const struct sb_run_figures *figures, double limit)
{
	const struct sb_tracing_stats *tracing = &figures->session.tracing;

	(void)sb_str_addf(
		list,
		"tracing each call ended after %.1f s: programs came to probes %.0f times "
		"a second, which at %.1f us each costs %.3g %% of all CPUs, above %.4g %% "
		"(--max-overhead)",
		(double)tracing->traced_ns / 1e9, tracing->hits_per_s, tracing->each_ns / 1e3,
		100 * tracing->cost / nr_cpus_of(figures), limit);
}

static void add_full(struct sb_str *list, const struct sb_run_figures *figures, double limit)
{
	const struct sb_tracing_stats *tracing = &figures->session.tracing;

	(void)limit;
	(void)sb_str_addf(list,
			  "after %.1f s of tracing each call, %sthere were more than %u pieces "
			  "of memory to follow",
			  (double)tracing->traced_ns / 1e9,
			  tracing->is_sampled ? "and then calls in slices of time, " : "",
			  SB_HELD_MAX);
}

static void add_blind(struct sb_str *list, const struct sb_run_figures *figures, double limit)
{
	const struct sb_tracing_stats *tracing = &figures->session.tracing;

	(void)limit;
	(void)sb_str_addf(list,
			  "a runtime has a heap of its own: the calls that were traced%s explain "
			  "%.1f MB, and pages %.1f MB",
			  tracing->is_sampled ? " in slices of time" : "",
			  (double)tracing->calls / 1e6, (double)tracing->pages / 1e6);
}

static void add_unhooked(struct sb_str *list, const struct sb_run_figures *figures, double limit)
{
	(void)figures;
	(void)limit;
	(void)sb_str_add(list, "functions that give memory back cannot be probed any more");
}

static void add_unseen(struct sb_str *list, const struct sb_run_figures *figures, double limit)
{
	const struct sb_session_stats *stats = &figures->session;

	add_costly(list, figures, limit);
	if (!stats->tracing.nr_slices) {
		(void)sb_str_add(list,
				 "; the run ended before the first slice of time was over, so "
				 "that what was given back meanwhile was not seen: sample longer");
		return;
	}
	(void)sb_str_addf(list,
			  "; after that, calls were traced in %llu slices of time, which saw too "
			  "little of what is held: sample longer (%llu pieces of memory were given "
			  "back at once, and %llu were not)",
			  (unsigned long long)stats->tracing.nr_slices,
			  (unsigned long long)stats->estimate.nr_at_once,
			  (unsigned long long)stats->estimate.nr);
}

/* Why calls are not the source: what follows "because". */
static void (*const why_pages[SB_TRACING_MAX])(struct sb_str *list,
					       const struct sb_run_figures *figures,
					       double limit) = {
	[SB_TRACING_COST] = add_costly,	  [SB_TRACING_FULL] = add_full,
	[SB_TRACING_BLIND] = add_blind,	  [SB_TRACING_UNHOOKED] = add_unhooked,
	[SB_TRACING_UNSEEN] = add_unseen,
};

/* For each runtime that has one: who tells what is in its heap. */
static void add_own_heaps(struct sb_str *list, uint32_t own_heaps)
{
	const struct sb_own_heap *heap;

	for (heap = sb_own_heaps; heap->name; heap++)
		if (own_heaps >> (heap - sb_own_heaps) & 1 && heap->ask)
			(void)sb_str_addf(list,
					  "%s%s keeps %s in a heap of its own; the runtime itself "
					  "can tell more, by %s",
					  list->len ? "\n" : "", heap->name, heap->objects,
					  heap->ask);
}

/* Calls are the source. Of the pages that they do not explain: what these can be. */
static void add_rest(struct sb_str *list, const struct sb_tracing_stats *tracing,
		     uint32_t own_heaps)
{
	const double calls = (double)tracing->calls, pages = (double)tracing->pages;
	/* Sums of slices are too low by themselves, those of all calls are not. */
	const double least = tracing->is_sampled ? 0.5 : own_heaps ? 0.75 : 0;

	(void)sb_str_addf(list,
			  "memory that was allocated before the run, or by other functions, is not "
			  "seen: of pages there are %.1f MB, and 'stackbpf memory' shows them",
			  pages / 1e6);
	/* Less is shown as 0.0 MB. */
	if (pages < 50000 || calls >= pages * least)
		return;
	(void)sb_str_addf(list, "; the result has %.0f %% of that, and the rest can be %s%s",
			  100 * calls / pages,
			  tracing->is_sampled ? "large pieces that are rarely allocated" : "",
			  tracing->is_sampled && own_heaps ? ", or " : "");
	if (own_heaps)
		(void)sb_str_add(list, "objects in the heap of a runtime, which neither "
				       "--max-overhead off nor libstackbpf-alloc.so sees");
	add_own_heaps(list, own_heaps);
}

/* If none of N pieces is held, then with a confidence of 95 % no more than 3 / N of all are. */
#define RULE_OF_THREE 3u

/* What was given back when not each call was traced. */
static void add_between(struct sb_str *list, const struct sb_session_stats *stats)
{
	const struct sb_held_estimate *estimate = &stats->estimate;
	const double all = estimate->held + estimate->gone;
	/* Those that were given back at once are of both halves. */
	const uint64_t nr = estimate->nr + estimate->nr_at_once / 2;

	if (!stats->tracing.nr_slices) {
		(void)sb_str_add(list, "the run ended before the first slice of time was over: "
				       "what was given back meanwhile was not seen, but pages hold "
				       "what calls say is held");
		return;
	}
	(void)sb_str_add(list,
			 "how much was given back between slices is estimated for each stack");
	if (estimate->held > 0 && estimate->gone <= 0 && estimate->traced < 1)
		(void)sb_str_add(list, "; of those in the result, no slice saw older memory given "
				       "back, so that all of it counts as held");
	else
		(void)sb_str_addf(
			list,
			": by this estimate, %.0f %% of the memory that was not seen given "
			"back is held",
			all > 0 ? 100 * estimate->held / all : 0);
	(void)sb_str_addf(
		list,
		"; the functions that give memory back were traced for %.1f %% of the time; of the "
		"first half of the run, slices saw about %llu pieces of memory, so that a leak of "
		"less than one piece in %llu may not be seen, nor one of less than about half of "
		"what the same stack gives back",
		100 * estimate->traced, (unsigned long long)nr,
		(unsigned long long)(nr / RULE_OF_THREE + 1));
}

/* @cost: in percent of all CPUs. */
static void add_sampled(const struct sb_session_stats *stats, struct sb_str *list, double cost,
			double limit)
{
	const struct sb_tracing_stats *tracing = &stats->tracing;

	(void)sb_str_addf(
		list,
		"source: calls%s %.1f s only%s, because programs came to probes %.0f times a "
		"second, which at %.1f us each costs %.3g %% of all CPUs, above %.4g "
		"%% (--max-overhead)\n",
		tracing->nr_slices ? ", after" : " of the first", (double)tracing->traced_ns / 1e9,
		tracing->nr_slices ? " in slices of time" : "", tracing->hits_per_s,
		tracing->each_ns / 1e3, cost, limit);
	add_between(list, stats);
	(void)sb_str_add(list, ": use --max-overhead off to trace each call whatever it costs, or "
			       "preload libstackbpf-alloc.so (stackbpf-alloc(8)), which samples "
			       "those of malloc()\n");
}

/* What to do where pages do not tell who holds the objects of a runtime. */
static void add_runtimes(struct sb_str *list, uint32_t own_heaps)
{
	const size_t len = list->len;

	add_own_heaps(list, own_heaps);
	if (list->len > len)
		(void)sb_str_add(list, "\npages do not show which code holds the objects of such "
				       "a heap now; 'stackbpf memory' shows which code makes the "
				       "process grow");
}

void sb_report_source(const struct sb_run *run, const struct sb_run_figures *figures,
		      struct sb_str *list)
{
	const struct sb_tracing_stats *tracing = &figures->session.tracing;
	const double cost = 100 * tracing->cost / nr_cpus_of(figures);
	const double limit = run->config->overhead_max_ppm / 1e4;
	const bool is_above = cost > limit;

	if (!tracing->is_on) {
		add_runtimes(list, run->config->view_opts.own_heaps);
		return;
	}
	if (tracing->end) {
		(void)sb_str_add(list, "source: pages, by the code that touched them first, "
				       "because ");
		why_pages[tracing->end](list, figures, limit);
		if (tracing->end != SB_TRACING_BLIND)
			(void)sb_str_add(
				list, "\nwhere a heap recycles memory, that code may have given it "
				      "back, and who holds it now is not seen; use --max-overhead "
				      "off to trace each call whatever it costs, or preload "
				      "libstackbpf-alloc.so (stackbpf-alloc(8)), which samples "
				      "those of malloc()");
		add_runtimes(list, run->config->view_opts.own_heaps);
		return;
	}
	if (tracing->is_sampled)
		add_sampled(&figures->session, list, cost, limit);
	else
		(void)sb_str_addf(
			list,
			"source: each call, traced; programs came to probes %.0f times a second, "
			"which at %.1f us each cost %.3g %% of all CPUs, %s %.4g %% "
			"(--max-overhead)%s\n",
			tracing->hits_per_s, tracing->each_ns / 1e3, cost,
			is_above ? "above" : "below", limit,
			is_above ? ", but not for so long that tracing had to end" : "");
	add_rest(list, tracing, run->config->view_opts.own_heaps);
}

void sb_report_memory(const struct sb_run *run, const struct sb_run_figures *figures,
		      void (*row)(const char *name, const char *value))
{
	const struct sb_resident_stats *stats = &figures->session.resident;

	if (!run->config->views.at[figures->view]->follows_pages)
		return;
	sb_report_nr(row, "page faults followed", stats->nr_faults);
	sb_report_nr(row, "pages remembered", stats->nr_pages);
	sb_report_nr(row, "windows of pages, one in", 1u << stats->shift);
	sb_report_nr(row, "bytes resident", stats->sum.rss);
	sb_report_nr(row, "bytes before the run", stats->sum.before);
	sb_report_nr(row, "bytes held", stats->sum.held);
	sb_report_nr(row, "bytes held, came along", stats->sum.along);
	sb_report_nr(row, "bytes unaccounted", stats->sum.unaccounted);
	sb_report_nr(row, "bytes swapped", stats->sum.swapped);
	sb_report_nr(row, "bytes that came and went", stats->churn);
	sb_report_nr(row, "processes ended", stats->nr_ended);
	sb_report_nr(row, "programs replaced by execve", stats->nr_replaced);
	sb_report_nr(row, "bytes held at their end", stats->ended);
	sb_report_nr(row, "bytes at the most", stats->ended_peak);
	sb_report_nr(row, "processes left out", stats->nr_left_out);
	sb_report_nr(row, "bytes of unknown kind", stats->unsorted);
	sb_report_nr(row, "mappings not followed", stats->nr_not_moved);
}
