// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Views of allocations: from the targets to the places at which they allocate, and what that will
 * cost them. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/num.h"
#include "base/reason.h"
#include "bpf/abi/sb_abi_memory.h"
#include "capture/cmdfiles.h"
#include "cli/record.h"
#include "events/allocator.h"
#include "kinds/view_kind.h"
#include "views/views.h"

#define PRODUCER    "stackbpf-alloc" /* libstackbpf-alloc.so, as events name a library */

/* Measured on one machine (docs/performance.md): what a trap at a function costs its program, with
 * the stack. */
#define COST_ALLOC  "2 us for each call of malloc()"
#define COST_CALL   "5 us"
#define COST_FOLLOW COST_CALL " for each call of malloc() and free()"

/* Files in which allocators are looked for. Zero-initialize it. */
struct places {
	sb_vec_u32 tgids;
	sb_vec_str named;      /* borrowed */
	sb_vec_str of_command; /* borrowed */
	struct sb_cmdfiles *command;
	char *preloaded; /* a copy of $LD_PRELOAD, cut into names */
	bool is_machine; /* the targets are not told by process or command */
};

static void release_places(struct places *places)
{
	sb_vec_release(&places->tgids);
	sb_vec_release(&places->named);
	sb_vec_release(&places->of_command);
	sb_cmdfiles_free(places->command);
	free(places->preloaded);
}

static int add_all_processes(struct places *places)
{
	sb_cleanup(sb_closedirp) DIR *proc = opendir("/proc");
	const struct dirent *entry;
	uint64_t tgid;
	int err = proc ? 0 : -errno;

	while (proc && !err && (entry = readdir(proc)))
		if (!sb_parse_u64(entry->d_name, INT32_MAX, &tgid))
			err = sb_vec_push(&places->tgids, (uint32_t)tgid);
	return err;
}

static int add_rules(struct places *places, const struct sb_pid_rule *at, size_t nr)
{
	size_t i;
	int err = 0;

	for (i = 0; i < nr && !err; i++)
		if (at[i].rule & SB_RULE_ALLOW)
			err = sb_vec_push(&places->tgids, at[i].pid);
	return err;
}

/* What the command will map, as far as it is known before it starts. */
static int add_command(struct places *places, const char *name)
{
	const char *preloaded = getenv("LD_PRELOAD");
	char *word, *rest;
	size_t i;
	int err = 0;

	places->command = sb_cmdfiles_find(name);
	places->preloaded = strdup(preloaded ? preloaded : "");
	if (!places->command || !places->preloaded)
		return -ENOMEM;
	for (i = 0; i < places->command->nr && !err; i++)
		err = sb_vec_push(&places->of_command, places->command->at[i].path);
	for (word = strtok_r(places->preloaded, ": ", &rest); word && !err;
	     word = strtok_r(NULL, ": ", &rest))
		err = sb_vec_push(&places->named, word);
	return err ? err : sb_vec_push(&places->of_command, "c");
}

static int find_places(const struct sb_record_opts *opts, bool is_recorded, struct places *places)
{
	const struct sb_targets *targets = &opts->run.targets;
	size_t i;
	int err = add_rules(places, targets->tgids.at, targets->tgids.nr);

	err = err ?: add_rules(places, (const void *)targets->tids.at, targets->tids.nr);
	places->is_machine = !places->tgids.nr && !opts->run.command;
	if (opts->allocators.nr)
		places->tgids.nr = 0; /* instead of what they map */
	for (i = 0; i < opts->allocators.nr && !err; i++)
		err = sb_vec_push(&places->named, opts->allocators.at[i]);
	if (opts->allocators.nr || err)
		return err;
	/* In a long time programs will load it; it is no source for those that have not. */
	err = is_recorded ? sb_vec_push(&places->named, PRODUCER) : 0;
	if (!err && opts->run.command)
		err = add_command(places, opts->run.command[0]);
	return err || !places->is_machine ? err : add_all_processes(places);
}

/* Return: why the functions of allocators are not to be probed, the rest of a sentence; NULL: they
 * are. */
static const char *why_not(const struct sb_record_opts *opts, const struct sb_view_kind *kind,
			   const struct places *places, bool is_recorded)
{
	if (is_recorded && kind->options & SB_VIEW_HELD)
		return "what is held is known at the end of a run only; record 'alloc', or 'memory', "
		       "which says of each block what processes hold";
	if (is_recorded)
		return "no process has a library that samples its allocations, and to trap at each "
		       "malloc() is too expensive to be always on; preload libstackbpf-alloc.so, see "
		       "stackbpf-alloc(8)";
	if (!opts->run.overhead_max_ppm)
		return NULL;
	if (kind->options & SB_VIEW_HELD)
		return "memory is followed until it is given back, so that each call of malloc() and "
		       "free() has to be seen, which costs the program about " COST_CALL
		       "; allow that by --max-overhead off, or start the program with "
		       "libstackbpf-alloc.so preloaded (stackbpf-alloc(8))";
	return NULL;
}

/* What a result is of. */
enum source { CALLS, PAGES, CALLS_OR_PAGES };

/* Return: whether there is a runtime whose programs can keep a profile of their heap. */
static bool has_profiles(const struct sb_alloc_found *found)
{
	size_t i;

	for (i = 0; sb_own_heaps[i].name; i++)
		if (found->own_heaps >> i & 1 && sb_own_heaps[i].profiles)
			return true;
	return false;
}

/* What the source cannot see, for each runtime of the targets. @has_profiles: profiles of heaps are
 * read. */
static void tell_own_heaps(const struct sb_alloc_found *found, enum source source,
			   bool has_profiles)
{
	size_t i;

	for (i = 0; sb_own_heaps[i].name; i++) {
		if (found->lumps >> i & 1 && source == CALLS)
			sb_info("%s places %s in %s: only the code that needs a new one of these "
				"is seen, and it counts for all of its bytes",
				sb_own_heaps[i].name, sb_own_heaps[i].objects,
				sb_own_heaps[i].lump);
		if (!(found->own_heaps >> i & 1))
			continue;
		if (has_profiles && sb_own_heaps[i].profiles) {
			sb_info("%s keeps %s in a heap of its own; if a program keeps a profile of "
				"this heap, that is the source; else the source is pages, where "
				"code whose objects are gone can rank above the code that leaks",
				sb_own_heaps[i].name, sb_own_heaps[i].objects);
			continue;
		}
		if (source == CALLS_OR_PAGES)
			sb_info("%s keeps %s in a heap that traced calls do not see; if they "
				"explain less than half of the pages, the source is pages",
				sb_own_heaps[i].name, sb_own_heaps[i].objects);
		if (source != CALLS)
			sb_warn("%s keeps %s in a heap of its own, which reuses freed memory "
				"without a page fault; in pages, code whose objects are gone can "
				"rank above the code that leaks%s",
				sb_own_heaps[i].name, sb_own_heaps[i].objects,
				sb_own_heaps[i].moves ? ", and the garbage collector, which moves "
							"objects, can be shown in its place"
						      : "");
		else
			sb_warn("%s keeps %s in a heap of its own, which the probed functions do "
				"not see; 'stackbpf memory' shows which code first used its pages",
				sb_own_heaps[i].name, sb_own_heaps[i].objects);
	}
}

static void tell_skipped(const struct sb_alloc_found *found)
{
	if (found->nr_files_skipped)
		sb_warn("allocators were not looked for in %zu files, because the targets map more "
			"than %u; choose fewer targets",
			found->nr_files_skipped, SB_ALLOC_FILES_MAX);
}

/* Probes are hooked in a single process, or else in all programs that map these files. */
static void tell_others(const struct sb_record_opts *opts, bool is_machine)
{
	const struct sb_targets *targets = &opts->run.targets;
	const bool is_command_alone =
		opts->run.command && !targets->follow_children && !sb_run_has_allow_rule(targets);

	if (!is_machine && !opts->probes.events.is_of_tgid_only && !is_command_alone)
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

static void tell(const struct sb_alloc_found *found, const struct sb_view_kind *kind)
{
	char more[32];

	if (found->source == SB_ALLOC_KERNEL) {
		sb_info("allocations in the kernel are sampled, at tracepoints such as '%s'",
			found->file);
		return;
	}

	say_more(found, more, sizeof(more));
	if (found->source == SB_ALLOC_PRODUCERS)
		sb_info("allocations are those that programs sample by '%s'%s; programs without it are "
			"not seen",
			found->file, more);
	else
		sb_info("the functions of '%s'%s are probed, which costs programs about %s",
			found->file, more, kind->options & SB_VIEW_HELD ? COST_FOLLOW : COST_ALLOC);
	if (found->source == SB_ALLOC_FUNCTIONS)
		tell_own_heaps(found, CALLS, false);
	tell_skipped(found);
}

/* Return: whether the pages of the targets are looked at instead: there is no other source of what
 * is held that would be allowed. */
static bool is_by_pages(const struct sb_record_opts *opts, const struct sb_alloc_found *found,
			const char *why)
{
	return opts->run.views.nr && opts->run.views.at[0]->by_pages && !opts->allocators.nr &&
	       (!found->source || (why && found->source == SB_ALLOC_FUNCTIONS));
}

/* Calls are traced as long as that is cheap enough, beside pages. */
static void trace_first(const struct sb_record_opts *opts, const struct sb_alloc_found *found,
			struct sb_view_opts *view_opts)
{
	char more[32];

	say_more(found, more, sizeof(more));
	view_opts->fallback = found->own_heaps ? SB_FALLBACK_IF_BLIND : SB_FALLBACK_IF_COSTLY;
	sb_info("each call of the functions of '%s'%s is traced, which costs programs about " COST_FOLLOW
		", as long as that is less than %.4g %% of all CPUs (--max-overhead); after that, %s",
		found->file, more, opts->run.overhead_max_ppm / 1e4,
		opts->run.views.at[0]->is_sliced && !found->own_heaps &&
				sb_probe_multi_is_there(SB_PROBE_USER)
			? "calls are traced in slices of time, or the source is pages"
			: "the source is pages");
	tell_own_heaps(found, CALLS_OR_PAGES, view_opts->has_own_profiles);
	tell_others(opts, false);
	tell_skipped(found);
}

/* From allocations to pages, at once or when calls cost too much. */
static int go_by_pages(struct sb_record_opts *opts, const struct sb_alloc_found *found,
		       bool is_machine, struct sb_view_opts *view_opts, struct sb_reason *reason)
{
	const bool is_allocator = found->source;
	const struct sb_view *view = opts->run.views.at[0]->by_pages;

	if (view_opts->is_of_objects) {
		sb_reason_set(
			reason, 0,
			"--objects needs allocations, which no program of the targets samples; "
			"%s",
			is_allocator
				? "use --max-overhead off to trace each of them, which slows programs down"
				: "leave it out to see their pages");
		return -EINVAL;
	}
	view_opts->memory_what = view->kind->is_of_growth ? SB_MEMORY_OLD : SB_MEMORY_HELD;
	view_opts->has_own_profiles = !is_machine && has_profiles(found);
	if (is_allocator && !is_machine && sb_views_add(&opts->run.views, view)) {
		trace_first(opts, found, view_opts);
		return 0;
	}
	opts->run.views.at[0] = view;
	sb_info("%s, so the source is that of 'stackbpf memory': pages that came in the run and "
		"are there%s, by the code that touched them first; where a heap recycles memory, "
		"that code may have given it back, and who holds it now is not seen",
		is_allocator ? "no program of the targets samples its allocations, and to see each "
			       "call of malloc() and free() costs about " COST_CALL
			       " (--max-overhead off allows it)"
			     : "no allocator that is known was found",
		view->kind->is_of_growth ? " for more than half of it" : "");
	tell_own_heaps(found, PAGES, view_opts->has_own_profiles);
	return 0;
}

int sb_record_resolve_allocs(struct sb_record_opts *opts, const struct sb_view_kind *kind,
			     bool is_recorded, struct sb_view_opts *view_opts,
			     struct sb_reason *reason)
{
	struct places places = {};
	struct sb_alloc_found found;
	struct sb_alloc_ask ask;
	const char *why;
	int err = view_opts->alloc_layer ? 0 : find_places(opts, is_recorded, &places);

	ask = (struct sb_alloc_ask){
		.layer = (enum sb_alloc_layer)view_opts->alloc_layer,
		.tgids = places.tgids.at,
		.nr_tgids = places.tgids.nr,
		.files = places.named.at,
		.nr_files = places.named.nr,
		.of_command = places.of_command.at,
		.nr_of_command = places.of_command.nr,
		.is_held = kind->options & SB_VIEW_HELD,
		.is_of_objects = view_opts->is_of_objects,
	};
	sb_run_renew_probes(&opts->run, &opts->probes.events);
	view_opts->probes = &opts->probes.events;
	if (err)
		sb_reason_set(reason, err, "cannot list the files in which to look for allocators");
	else
		err = sb_alloc_find(&opts->probes.events, &ask, &found, reason);
	why = view_opts->alloc_layer ? NULL : why_not(opts, kind, &places, is_recorded);
	if (!err && !is_recorded && is_by_pages(opts, &found, why)) {
		release_places(&places);
		return go_by_pages(opts, &found, places.is_machine, view_opts, reason);
	}
	if (!err && !found.source && found.stripped_go[0]) {
		sb_reason_set(
			reason, 0,
			"'%s' is a Go program without symbols, so its allocator cannot be found; "
			"'stackbpf memory' shows which code first used its pages",
			found.stripped_go);
		err = -EINVAL;
	}
	if (!err && why &&
	    (found.source != SB_ALLOC_PRODUCERS || (is_recorded && kind->options & SB_VIEW_HELD))) {
		sb_reason_set(reason, 0, "%s", why);
		err = -EINVAL;
	}
	if (!err && found.source && !is_recorded)
		tell(&found, kind);
	if (!err && found.source == SB_ALLOC_FUNCTIONS && !is_recorded)
		tell_others(opts, places.is_machine);
	view_opts->needs_slices = !err && found.source == SB_ALLOC_FUNCTIONS && places.is_machine &&
				  !is_recorded && opts->run.overhead_max_ppm;
	if (view_opts->needs_slices)
		sb_info("probes on allocators of all programs are attached for a part of the time "
			"only, because each call traps into the kernel: all of them are to cost "
			"less than %.4g %% of all CPUs (--max-overhead)",
			opts->run.overhead_max_ppm / 1e4);
	release_places(&places);
	return err;
}
