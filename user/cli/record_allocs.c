// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Views of allocations: how they are sampled, what that costs programs, and what is not seen. */
#include <stdio.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/reason.h"
#include "cli/record.h"
#include "events/allocator.h"
#include "kinds/view_kind.h"

/* Measured on one machine (docs/performance.md): what a trap at a function costs its program, with
 * the stack. The closing report says what it did cost. */
#define COST_ALLOC  "2 us for each call of malloc()"
#define COST_CALL   "5 us"
#define COST_FOLLOW COST_CALL " for each call of malloc() and free()"

/* Runtimes of the targets whose heap the calls of an allocator do not show. */
struct unseen_heaps {
	struct sb_str list; /* "Python keeps objects, V8 keeps objects of JavaScript" */
	size_t nr, nr_with_profile;
	bool moves;
};

static void find_unseen_heaps(uint32_t own_heaps, bool has_profiles, struct unseen_heaps *unseen)
{
	const struct sb_own_heap *heap;

	for (heap = sb_own_heaps; heap->name; heap++) {
		if (!(own_heaps & 1u << (heap - sb_own_heaps)))
			continue;
		(void)sb_str_addf(&unseen->list, "%s%s keeps %s", unseen->nr ? ", " : "",
				  heap->name, heap->objects);
		unseen->nr++;
		unseen->nr_with_profile += has_profiles && heap->profiles;
		unseen->moves |= heap->moves;
	}
	(void)sb_str_add(&unseen->list, unseen->nr > 1 ? ", each" : "");
	(void)sb_str_add(&unseen->list, " in a heap of its own, which reuses freed memory without "
					"a page fault");
}

/* Log which runtimes have objects that the source, pages now or later, does not show. It is one
 * sentence for all runtimes, because the user reads it before the run. */
static void tell_unseen_heaps(const struct sb_record_opts *opts, const struct sb_run_allocs *allocs)
{
	sb_cleanup(sb_str_release) struct sb_str line = {};
	struct unseen_heaps unseen = {};

	find_unseen_heaps(allocs->found.own_heaps, opts->run.view_opts.has_own_profiles, &unseen);
	if (unseen.nr_with_profile)
		(void)sb_str_add(&line,
				 "; if a program keeps a profile of such a heap, that is the "
				 "source");
	(void)sb_str_add(&line, "; ");
	if (allocs->way == SB_ALLOCS_BY_CALLS_FIRST)
		(void)sb_str_addf(
			&line,
			"if traced calls explain less than half of the pages%s, the source "
			"is pages, and ",
			allocs->may_be_sliced ? ", or in slices less than a quarter" : "");
	(void)sb_str_addf(&line,
			  "in pages, code whose objects are gone can rank above the code that "
			  "leaks%s",
			  unseen.moves
				  ? ", and a garbage collector that moves objects can be shown "
				    "in its place"
				  : "");
	if (unseen.nr == unseen.nr_with_profile && unseen.nr)
		sb_info("%s%s", unseen.list.s, line.s);
	else if (unseen.nr)
		sb_warn("%s%s", unseen.list.s, line.s);
	sb_str_release(&unseen.list);
}

/* Log the same for probed functions, in a sentence for each runtime. */
static void tell_own_heaps(const struct sb_alloc_found *found, bool has_profiles)
{
	const struct sb_own_heap *heap;

	for (heap = sb_own_heaps; heap->name; heap++) {
		const uint32_t bit = 1u << (heap - sb_own_heaps);

		if (found->lumps & bit)
			sb_info("%s places %s in %s: only the code that needs a new one of these "
				"is seen, and it counts for all of its bytes",
				heap->name, heap->objects, heap->lump);
		if (!(found->own_heaps & bit))
			continue;
		if (has_profiles && heap->profiles)
			sb_info("%s keeps %s in a heap of its own; if a program keeps a profile of "
				"this heap, that is the source; else the source is pages, where "
				"code whose objects are gone can rank above the code that leaks",
				heap->name, heap->objects);
		else
			sb_warn("%s keeps %s in a heap of its own, which the probed functions do "
				"not see; 'stackbpf memory' shows which code first used its pages",
				heap->name, heap->objects);
	}
}

static void tell_skipped(const struct sb_alloc_found *found)
{
	if (found->nr_files_skipped)
		sb_warn("allocators were not looked for in %zu files, because the targets map more "
			"than %u; choose fewer targets",
			found->nr_files_skipped, SB_ALLOC_FILES_MAX);
}

static void tell_others(const struct sb_run_allocs *allocs)
{
	if (allocs->is_shared)
		sb_info("programs that are no targets, but use the same files, come to the probes, "
			"too, which costs them as much; a single process, without -s, spares them");
}

/* Write what stands behind the name of the first file: how many others there are. */
static void say_more(const struct sb_alloc_found *found, char *more, size_t size)
{
	more[0] = '\0';
	if (found->nr_files > 1)
		snprintf(more, size, " and %zu more", found->nr_files - 1);
}

static void tell_calls(const struct sb_record_opts *opts, const struct sb_run_allocs *allocs,
		       const struct sb_view_kind *kind)
{
	const struct sb_alloc_found *found = &allocs->found;
	char more[32];

	if (found->source == SB_ALLOC_KERNEL) {
		sb_info("allocations in the kernel are sampled, at tracepoints such as '%s'",
			found->file);
		return;
	}

	say_more(found, more, sizeof(more));
	if (found->source == SB_ALLOC_PRODUCERS)
		sb_info("allocations are those that programs sample by probes in the file '%s'%s; "
			"programs without it are not seen",
			found->file, more);
	else
		sb_info("the functions of '%s'%s are probed, which costs programs about %s",
			found->file, more, kind->options & SB_VIEW_HELD ? COST_FOLLOW : COST_ALLOC);
	if (found->source == SB_ALLOC_FUNCTIONS) {
		tell_own_heaps(found, opts->run.view_opts.has_own_profiles);
		tell_others(allocs);
	}
	tell_skipped(found);
	if (opts->run.view_opts.needs_slices)
		sb_info("probes on allocators of all programs are attached for a part of the time "
			"only, because each call traps into the kernel: all of them are to cost "
			"less than %.4g %% of all CPUs (--max-overhead)",
			opts->run.overhead_max_ppm / 1e4);
}

/* Calls are traced as long as that is cheap enough, beside pages. */
static void tell_calls_first(const struct sb_record_opts *opts, const struct sb_run_allocs *allocs)
{
	const struct sb_alloc_found *found = &allocs->found;
	char more[32];

	say_more(found, more, sizeof(more));
	sb_info("each call of the functions of '%s'%s is traced, which costs %s about " COST_FOLLOW
		", as long as that is less than %.4g %% of all CPUs (--max-overhead); after that, %s",
		found->file, more,
		allocs->is_shared
			? "programs, also programs that are no targets but use the same files,"
			: "programs",
		opts->run.overhead_max_ppm / 1e4,
		allocs->may_be_sliced ? "calls are traced in slices of time, or the source is pages"
				      : "the source is pages");
	tell_unseen_heaps(opts, allocs);
	tell_skipped(found);
}

static void tell_pages(const struct sb_record_opts *opts, const struct sb_run_allocs *allocs)
{
	sb_info("%s, so the source is that of 'stackbpf memory': pages that came in the run and "
		"are there%s, by the code that touched them first; where a heap recycles memory, "
		"that code may have given it back, and who holds it now is not seen",
		allocs->found.source
			? "no program of the targets samples its allocations, and to see each "
			  "call of malloc() and free() costs about " COST_CALL
			  " (--max-overhead off allows it)"
			: "no allocator that is known was found",
		opts->run.views.at[0]->kind->is_of_growth ? " for more than half of it" : "");
	tell_unseen_heaps(opts, allocs);
}

/* Why the allocators are not to be probed. */
static const char *const refusals[] = {
	[SB_ALLOCS_HELD] =
		"what is held is known at the end of a run only; record 'alloc', or 'memory', "
		"which says of each block what processes hold",
	[SB_ALLOCS_NO_PRODUCER] =
		"no process has a library that samples its allocations, and to trap at each "
		"malloc() is too expensive to be always on; preload libstackbpf-alloc.so, see "
		"stackbpf-alloc(8)",
	[SB_ALLOCS_COSTLY] =
		"memory is followed until it is given back, so that each call of malloc() and "
		"free() has to be seen, which costs the program about " COST_CALL
		"; allow that by --max-overhead off, or start the program with "
		"libstackbpf-alloc.so preloaded (stackbpf-alloc(8))",
	[SB_ALLOCS_OBJECTS_COSTLY] =
		"--objects needs allocations, which no program of the targets samples; use "
		"--max-overhead off to trace each of them, which slows programs down",
	[SB_ALLOCS_NO_OBJECTS] =
		"--objects needs allocations, which no program of the targets samples; leave it "
		"out to see their pages",
	[SB_ALLOCS_STRIPPED_GO] =
		" is a Go program without symbols, so its allocator cannot be found; 'stackbpf "
		"memory' shows which code first used its pages",
};
_Static_assert(SB_ARRAY_SIZE(refusals) == SB_ALLOCS_REFUSAL_MAX, "one for each");

static void explain(const struct sb_run_allocs *allocs, struct sb_reason *reason)
{
	if (allocs->refusal == SB_ALLOCS_STRIPPED_GO)
		sb_reason_set(reason, 0, "'%s'%s", allocs->found.stripped_go,
			      refusals[allocs->refusal]);
	else if (allocs->refusal)
		sb_reason_set(reason, 0, "%s", refusals[allocs->refusal]);
}

int sb_record_resolve_allocs(struct sb_record_opts *opts, const struct sb_view_kind *kind,
			     bool is_recorded, struct sb_view_opts *view_opts,
			     struct sb_reason *reason)
{
	const struct sb_run_alloc_ask ask = {
		.kind = kind,
		.allocators = opts->allocators.at,
		.nr_allocators = opts->allocators.nr,
		.is_recorded = is_recorded,
	};
	struct sb_run_allocs allocs;
	int err = sb_run_find_allocs(&opts->run, &ask, &opts->probes, view_opts, &allocs, reason);

	if (err)
		explain(&allocs, reason);
	else if (is_recorded)
		return 0;
	else if (allocs.way == SB_ALLOCS_BY_CALLS_FIRST)
		tell_calls_first(opts, &allocs);
	else if (allocs.way == SB_ALLOCS_BY_PAGES)
		tell_pages(opts, &allocs);
	else if (allocs.found.source)
		tell_calls(opts, &allocs, kind);
	return err;
}
