// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The kinds that `stackbpf record` records: names of views, and of definitions of events. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/reason.h"
#include "base/str.h"
#include "cli/complete.h"
#include "cli/record.h"

static const char *path_of(const struct sb_record_opts *opts)
{
	return opts->definitions_path ? opts->definitions_path : SB_DEFINITIONS_PATH;
}

/* Implements sb_recorder_config.find_events. */
static int find_events(const struct sb_recorder_kind *kind, struct sb_view_opts *view_opts,
		       struct sb_reason *reason, void *arg)
{
	const struct sb_definition *definition = kind->definition;
	struct sb_record_opts *opts = arg;

	if (!definition)
		return sb_record_resolve_allocs(opts, kind->view->kind, true, view_opts, reason);
	if (definition->in) {
		view_opts->slower_than_ns = definition->slower_than_ns;
		return sb_run_find_spans(&opts->run, definition->in, definition->until,
					 &opts->probes, view_opts, reason);
	}
	view_opts->min_ns = definition->min_ns;
	view_opts->max_ns = definition->max_ns;
	return sb_run_find_events(&opts->run, kind->view->kind, &definition->request, &opts->probes,
				  view_opts, reason);
}

/* Return: which options of the definition the view does not have; NULL: it has all. */
static const char *find_missing(const struct sb_definition *definition,
				const struct sb_view_kind *view)
{
	if (view->takes_events && definition->in)
		return "--in";
	if (!view->takes_events && !definition->in)
		return "events, only with spans (--in)";
	if (!(view->options & SB_VIEW_EXPRS) &&
	    (definition->request.when || definition->request.weight || definition->request.value))
		return "--when, --weight and --value";
	if (!(view->options & SB_VIEW_LASTING) && (definition->min_ns || definition->max_ns))
		return "--min and --max";
	if (!(view->options & SB_VIEW_PAIRS) &&
	    (definition->request.from.nr || definition->request.to.nr || definition->request.key ||
	     definition->request.to_key))
		return "--from, --to, --key and --to-key";
	return NULL;
}

/* Whether the view has what the definition asks for. */
static int check_options(const struct sb_record_opts *opts, const struct sb_recorder_kind *kind,
			 struct sb_reason *reason)
{
	const struct sb_definition *definition = kind->definition;
	const struct sb_view_kind *view = kind->view->kind;
	const char *missing = find_missing(definition, view);
	struct sb_reason why = {};

	if (missing)
		sb_reason_set(reason, 0,
			      "%s:%u: '%s' cannot be recorded with %s; leave that "
			      "out",
			      path_of(opts), definition->line, kind->name, missing);
	else if (sb_record_check_pairs(&definition->request, view->options & SB_VIEW_PAIRS, &why))
		sb_reason_set(reason, 0, "%s:%u: '%s': %s", path_of(opts), definition->line,
			      kind->name, why.text);
	else
		return 0;
	return -EINVAL;
}

/* Return: @definition if it has options that hold for all views of a run; else NULL. */
static const void *what_holds_for_all(const struct sb_definition *definition)
{
	return definition->in || definition->min_ns || definition->max_ns ? definition : NULL;
}

/* Find the definition of a kind, and try whether its events can be traced. */
static int define(struct sb_record_opts *opts, struct sb_recorder_kind *kind,
		  struct sb_reason *reason)
{
	const char *name = strchr(kind->name, SB_VIEW_KIND_OF[0]) + 1;
	struct sb_view_opts view_opts = opts->run.view_opts;
	uint64_t divisor;
	int err = 0;

	if (!opts->definitions.text)
		err = sb_definitions_read(path_of(opts), &opts->definitions, reason);
	if (err)
		return err;
	kind->definition = sb_definitions_find(&opts->definitions, name, path_of(opts), reason);
	err = kind->definition ? check_options(opts, kind, reason) : -ENOENT;
	err = err ?: find_events(kind, &view_opts, reason, opts);
	if (!err)
		kind->apart = what_holds_for_all(kind->definition);
	if (!err)
		snprintf(kind->unit, sizeof(kind->unit), "%s",
			 sb_view_unit(kind->view, &view_opts, &divisor));
	sb_run_probes_release(&opts->probes);
	return err;
}

/* Whether there is a program now that samples its allocations. */
static int try_allocs(struct sb_record_opts *opts, const struct sb_recorder_kind *kind,
		      struct sb_reason *reason)
{
	struct sb_view_opts view_opts = opts->run.view_opts;
	int err = find_events(kind, &view_opts, reason, opts);

	sb_run_probes_release(&opts->probes);
	return err;
}

/*
 * Go on without the kind at @at, because nothing samples allocations. What is held (SB_VIEW_HELD)
 * can never be recorded, and to ask for it stays an error. Return: 0; or @err: there is no other
 * kind.
 */
static int leave_out(struct sb_recorder_config *config, size_t at, struct sb_reason *reason,
		     int err)
{
	struct sb_recorder_kind *kind = &config->kinds[at];

	if (config->nr_kinds == 1 || kind->view->kind->options & SB_VIEW_HELD || err == -ENOMEM)
		return err;
	sb_warn("'%s' is not recorded: %s", kind->name, reason->text);
	*reason = (struct sb_reason){};
	config->nr_kinds--;
	memmove(kind, kind + 1, (config->nr_kinds - at) * sizeof(*kind));
	return 0;
}

int sb_record_find_kinds(struct sb_record_opts *opts)
{
	struct sb_recorder_config *config = &opts->recorder;
	struct sb_reason reason = {};
	const char *why = NULL;
	size_t i;
	int err = 0;

	if (!config->nr_kinds)
		err = sb_recorder_parse_kinds(config, sb_view_kind_default()->name, &why);
	for (i = config->nr_kinds; i-- > 0 && !err;)
		if (strchr(config->kinds[i].name, SB_VIEW_KIND_OF[0])) {
			err = define(opts, &config->kinds[i], &reason);
		} else if (config->kinds[i].view->kind->options & SB_VIEW_ALLOCS) {
			err = try_allocs(opts, &config->kinds[i], &reason);
			err = err ? leave_out(config, i, &reason, err) : 0;
		}
	config->find_events = find_events;
	config->arg = opts;
	return err ? sb_record_explain_events(&reason, err) : -1;
}

static const char *first_event(const struct sb_definition *definition)
{
	return definition->in		       ? definition->in
	       : definition->request.events.nr ? definition->request.events.at[0]
					       : definition->request.from.at[0];
}

/* What cannot be read is not completed. */
void sb_complete_kinds(struct sb_completion *to)
{
	struct sb_definitions list = {};
	struct sb_reason reason = {};
	char name[SB_KIND_BYTES];
	size_t i, kind;

	sb_complete_list(to);
	(void)sb_definitions_read(SB_DEFINITIONS_PATH, &list, &reason);
	for (kind = 0; kind < SB_VIEW_KIND_MAX; kind++) {
		const struct sb_view_kind *view = &sb_view_kinds[kind];

		if (!view->takes_events && sb_view_kind_is_recorded(view))
			sb_complete_add(to, view->name, view->summary);
		for (i = 0; i < list.at.nr; i++) {
			const struct sb_definition *definition = &list.at.at[i];

			if (find_missing(definition, view))
				continue;
			snprintf(name, sizeof(name), "%s" SB_VIEW_KIND_OF "%s", view->name,
				 definition->name);
			sb_complete_add(to, name, first_event(definition));
		}
	}
	sb_definitions_release(&list);
}
