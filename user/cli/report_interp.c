// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The part of the closing report about interpreters. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cli/record.h"
#include "cli/wrap.h"

/* Different sentences of what is missing. */
#define WARNINGS_MAX 8

struct versions {
	uint32_t runtime;
	struct sb_str list;
	const char *name;
};

static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);
	const char *at;

	for (at = strstr(list, word); at; at = strstr(at + 1, word))
		if ((at == list || at[-1] == ' ') && (!at[len] || at[len] == ','))
			return true;
	return false;
}

/* "3.11.2, 3.12.1" */
static int add_version(void *arg, const struct sb_interp_found *found)
{
	struct versions *versions = arg;

	if (found->runtime != versions->runtime || found->why)
		return 0;
	versions->name = found->runtime_name;
	if (!found->version[0] ||
	    (versions->list.len && has_word(versions->list.s, found->version)))
		return 0;
	return sb_str_addf(&versions->list, "%s%s", versions->list.len ? ", " : "", found->version);
}

static void find_versions(const struct sb_run *run, struct versions *versions)
{
	sb_str_clear(&versions->list);
	versions->name = NULL;
	/* Without memory, the list is shorter. */
	(void)sb_interp_each(run->interp, add_version, versions);
}

/* "python 3.11.2: 99.8 % of 4711 with its frames, 12 cut, 3 frames unreadable" */
static void add_interp(const struct sb_resolve_runtime *runtime, const struct versions *versions,
		       struct sb_str *list)
{
	/* Without memory the report is shorter. */
	(void)sb_str_addf(list, "%s%s%s%s: %.1f %% of %llu with its frames", list->len ? "\n" : "",
			  versions->name, versions->list.len ? " " : "",
			  versions->list.len ? versions->list.s : "",
			  100.0 * (double)runtime->nr_found / (double)runtime->nr_inside,
			  (unsigned long long)runtime->nr_inside);
	if (runtime->nr_cut)
		(void)sb_str_addf(list, ", %llu cut", (unsigned long long)runtime->nr_cut);
	if (runtime->nr_unreadable)
		(void)sb_str_addf(list, ", %llu %s unreadable",
				  (unsigned long long)runtime->nr_unreadable,
				  sb_plural(runtime->nr_unreadable, "frame", "frames"));
}

void sb_report_interp_lines(const struct sb_run *run, const struct sb_run_figures *figures,
			    struct sb_str *list)
{
	struct versions versions = {};

	if (!run->interp)
		return;
	for (versions.runtime = 1; versions.runtime < SB_RUNTIME_MAX; versions.runtime++) {
		const struct sb_resolve_runtime *runtime =
			&figures->resolve.runtime[versions.runtime];

		if (!runtime->nr_inside)
			continue;
		find_versions(run, &versions);
		if (versions.name)
			add_interp(runtime, &versions, list);
	}
	sb_str_release(&versions.list);
}

static void report_runtime(const struct sb_resolve_runtime *runtime, struct versions *versions,
			   void (*row)(const char *name, const char *value))
{
	sb_cleanup(sb_str_release) struct sb_str value = {};
	int err;

	err = sb_str_addf(
		&value,
		"%s%s%llu samples, %.2f %% with its frames, %llu cut, %llu frames, %llu "
		"unreadable, %llu beside the loop",
		versions->list.len ? versions->list.s : "", versions->list.len ? ": " : "",
		(unsigned long long)runtime->nr_inside,
		100.0 * (double)runtime->nr_found / (double)runtime->nr_inside,
		(unsigned long long)runtime->nr_cut, (unsigned long long)runtime->nr_frames,
		(unsigned long long)runtime->nr_unreadable, (unsigned long long)runtime->nr_odd);
	if (!err)
		row(versions->name, value.s);
}

void sb_report_interps(const struct sb_run *run, const struct sb_run_figures *figures,
		       void (*row)(const char *name, const char *value))
{
	struct versions versions = {};
	struct sb_interp_stats stats;
	char value[160];

	if (!run->interp)
		return;
	for (versions.runtime = 1; versions.runtime < SB_RUNTIME_MAX; versions.runtime++) {
		if (!figures->resolve.runtime[versions.runtime].nr_inside)
			continue;
		find_versions(run, &versions);
		if (versions.name)
			report_runtime(&figures->resolve.runtime[versions.runtime], &versions, row);
	}
	sb_str_release(&versions.list);
	sb_interp_stats(run->interp, &stats);
	if (!stats.nr_processes)
		return;
	snprintf(value, sizeof(value), "%llu",
		 (unsigned long long)figures->session.stat[SB_STAT_INTERP_FRAMES]);
	row("frames of interpreters", value);
	snprintf(value, sizeof(value), "%llu, %.1f MB, %llu unreadable, %llu late, in %.1f ms",
		 (unsigned long long)stats.nr_names, (double)stats.nr_bytes / 1e6,
		 (unsigned long long)stats.nr_unreadable, (unsigned long long)stats.nr_late,
		 (double)stats.fetch_ns / 1e6);
	row("names of their frames", value);
	snprintf(value, sizeof(value),
		 "%llu, inspected %llu times in %.1f ms, %llu evicted, %llu refused, %llu not "
		 "listed",
		 (unsigned long long)stats.nr_processes, (unsigned long long)stats.nr_looks,
		 (double)stats.look_ns / 1e6, (unsigned long long)stats.nr_forgotten,
		 (unsigned long long)(figures->session.interps.nr_refused + stats.nr_refused),
		 (unsigned long long)stats.nr_unlisted);
	row("processes with interpreters", value);
	snprintf(value, sizeof(value), "%llu ring full, retried; %llu without memory",
		 (unsigned long long)figures->session.stat[SB_STAT_INTERP_FULL],
		 (unsigned long long)figures->session.interps.nr_lost);
	row("their stacks lost", value);
}

/* What is missing. */

struct warnings {
	const char *path[WARNINGS_MAX], *why[WARNINGS_MAX];
	size_t nr, nr_more;
};

static int warn_of(void *arg, const struct sb_interp_found *found)
{
	struct warnings *warnings = arg;
	size_t i;

	if (!found->why || found->is_pending)
		return 0;
	for (i = 0; i < warnings->nr; i++)
		if (!strcmp(warnings->path[i], found->path) &&
		    !strcmp(warnings->why[i], found->why))
			return 0;
	if (warnings->nr == WARNINGS_MAX) {
		warnings->nr_more++;
		return 0;
	}
	warnings->path[warnings->nr] = found->path;
	warnings->why[warnings->nr++] = found->why;
	sb_info("process %u has no frames of %s ('%s'): %s; native frames are shown instead",
		found->space.tgid, found->runtime_name, found->path, found->why);
	return 0;
}

void sb_report_interp_warnings(const struct sb_run *run)
{
	struct warnings warnings = {};

	if (!run->interp)
		return;
	(void)sb_interp_each(run->interp, warn_of, &warnings);
	if (warnings.nr_more)
		sb_info("%zu more interpreters have no frames, in other files or for other "
			"reasons; 'stackbpf doctor -p PID' tells those of one process",
			warnings.nr_more);
}
