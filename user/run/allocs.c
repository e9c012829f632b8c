// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Views of allocations: from the targets of a run to the places at which they allocate; and whether
 * calls of allocators are traced, or pages are followed in their place. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "bpf/abi/sb_abi_memory.h"
#include "capture/cmdfiles.h"
#include "kinds/view_kind.h"
#include "run/run.h"
#include "symbolizer/process/procfs.h"
#include "views/views.h"

#define PRODUCER "stackbpf-alloc" /* libstackbpf-alloc.so, as events name a library */

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
	int err = proc ? 0 : -errno;
	uint32_t tgid;

	while (!err && (tgid = sb_procfs_next_task(proc, 0)))
		err = sb_vec_push(&places->tgids, tgid);
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

static int find_places(const struct sb_run_config *config, const struct sb_run_alloc_ask *asked,
		       struct places *places)
{
	const struct sb_targets *targets = &config->targets;
	size_t i;
	int err = add_rules(places, targets->tgids.at, targets->tgids.nr);

	err = err ?: add_rules(places, (const void *)targets->tids.at, targets->tids.nr);
	places->is_machine = !places->tgids.nr && !config->command;
	if (asked->nr_allocators)
		places->tgids.nr = 0; /* instead of what they map */
	for (i = 0; i < asked->nr_allocators && !err; i++)
		err = sb_vec_push(&places->named, asked->allocators[i]);
	if (asked->nr_allocators || err)
		return err;
	/* In a long time programs will load it; it is no source for those that have not. */
	err = asked->is_recorded ? sb_vec_push(&places->named, PRODUCER) : 0;
	if (!err && config->command)
		err = add_command(places, config->command[0]);
	return err || !places->is_machine ? err : add_all_processes(places);
}

/* Return: whether probes are hooked for all programs that map the files, and so come to others than
 * the targets. */
static bool is_shared(const struct sb_run_config *config, const struct sb_probes *probes,
		      const struct places *places)
{
	const struct sb_targets *targets = &config->targets;
	const bool is_command_alone =
		config->command && !targets->follow_children && !sb_run_has_allow_rule(targets);

	return !places->is_machine && !probes->is_of_tgid_only && !is_command_alone;
}

/* Return: why this run must not probe the functions of allocators; SB_ALLOCS_ALLOWED: it may. */
static enum sb_run_alloc_refusal why_not(const struct sb_run_config *config,
					 const struct sb_run_alloc_ask *asked)
{
	const bool is_held = asked->kind->options & SB_VIEW_HELD;

	if (asked->is_recorded)
		return is_held ? SB_ALLOCS_HELD : SB_ALLOCS_NO_PRODUCER;
	return config->overhead_max_ppm && is_held ? SB_ALLOCS_COSTLY : SB_ALLOCS_ALLOWED;
}

/* Return: whether a runtime was found whose programs can keep a profile of their heap. */
static bool has_profiles(const struct sb_alloc_found *found)
{
	size_t i;

	for (i = 0; sb_own_heaps[i].name; i++)
		if (found->own_heaps >> i & 1 && sb_own_heaps[i].profiles)
			return true;
	return false;
}

/* From allocations to pages, at once or when calls cost too much. */
static void go_by_pages(struct sb_run_config *config, bool is_machine,
			struct sb_view_opts *view_opts, struct sb_run_allocs *allocs)
{
	const struct sb_view *calls = config->views.at[0], *pages = calls->by_pages;
	const struct sb_alloc_found *found = &allocs->found;

	if (view_opts->is_of_objects) {
		allocs->refusal = found->source ? SB_ALLOCS_OBJECTS_COSTLY : SB_ALLOCS_NO_OBJECTS;
		return;
	}
	view_opts->memory_what = pages->kind->is_of_growth ? SB_MEMORY_OLD : SB_MEMORY_HELD;
	view_opts->has_own_profiles = !is_machine && has_profiles(found);
	view_opts->own_heaps = is_machine ? 0 : found->own_heaps;
	if (!found->source || is_machine || !sb_views_add(&config->views, pages)) {
		config->views.at[0] = pages;
		allocs->way = SB_ALLOCS_BY_PAGES;
		return;
	}
	allocs->way = SB_ALLOCS_BY_CALLS_FIRST;
	allocs->may_be_sliced = calls->is_sliced && sb_probe_multi_is_there(SB_PROBE_USER);
	view_opts->fallback = found->own_heaps ? SB_FALLBACK_IF_BLIND : SB_FALLBACK_IF_COSTLY;
}

/* What to do with what was found. */
static void decide(struct sb_run_config *config, const struct sb_run_alloc_ask *asked,
		   bool is_machine, struct sb_view_opts *view_opts, struct sb_run_allocs *allocs)
{
	const enum sb_run_alloc_refusal why =
		view_opts->alloc_layer ? SB_ALLOCS_ALLOWED : why_not(config, asked);
	const enum sb_alloc_source source = allocs->found.source;

	if (!asked->is_recorded && !asked->nr_allocators && config->views.at[0]->by_pages &&
	    (!source || (why && source == SB_ALLOC_FUNCTIONS))) {
		go_by_pages(config, is_machine, view_opts, allocs);
		return;
	}
	if (!source && allocs->found.stripped_go[0])
		allocs->refusal = SB_ALLOCS_STRIPPED_GO;
	else if (source != SB_ALLOC_PRODUCERS || why == SB_ALLOCS_HELD)
		allocs->refusal = why;
	view_opts->needs_slices = source == SB_ALLOC_FUNCTIONS && is_machine &&
				  !asked->is_recorded && config->overhead_max_ppm;
}

int sb_run_find_allocs(struct sb_run_config *config, const struct sb_run_alloc_ask *asked,
		       struct sb_run_probes *probes, struct sb_view_opts *view_opts,
		       struct sb_run_allocs *ret_allocs, struct sb_reason *reason)
{
	sb_cleanup(release_places) struct places places = {};
	struct sb_probes *events = &probes->events;
	struct sb_alloc_ask ask;
	int err = view_opts->alloc_layer ? 0 : find_places(config, asked, &places);

	*ret_allocs = (struct sb_run_allocs){};
	sb_run_renew_probes(config, events);
	view_opts->probes = events;
	if (err) {
		sb_reason_set(reason, err, "cannot list the files in which to look for allocators");
		return err;
	}
	ask = (struct sb_alloc_ask){
		.layer = (enum sb_alloc_layer)view_opts->alloc_layer,
		.tgids = places.tgids.at,
		.nr_tgids = places.tgids.nr,
		.files = places.named.at,
		.nr_files = places.named.nr,
		.of_command = places.of_command.at,
		.nr_of_command = places.of_command.nr,
		.is_held = asked->kind->options & SB_VIEW_HELD,
		.is_of_objects = view_opts->is_of_objects,
	};
	err = sb_alloc_find(events, &ask, &ret_allocs->found, reason);
	if (err)
		return err;
	ret_allocs->is_shared = is_shared(config, events, &places);
	decide(config, asked, places.is_machine, view_opts, ret_allocs);
	return ret_allocs->refusal ? -EINVAL : 0;
}
