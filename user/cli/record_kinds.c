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

static struct sb_record_events events_of(const struct sb_definition *definition)
{
	return (struct sb_record_events){
		.events = { definition->events, definition->nr_events },
		.when = definition->when,
		.weight = definition->weight,
		.value = definition->value,
	};
}

/* Implements sb_recorder_config.find_events. */
static int find_events(const struct sb_recorder_kind *kind, struct sb_view_opts *view_opts,
		       struct sb_reason *reason, void *arg)
{
	const struct sb_definition *definition = kind->definition;
	const struct sb_record_events events = events_of(definition);

	view_opts->min_ns = definition->min_ns;
	view_opts->max_ns = definition->max_ns;
	return sb_record_resolve_events(arg, kind->view->kind, &events, view_opts, reason);
}

/* Whether the view has what the definition asks for. */
static int check_options(const struct sb_record_opts *opts, const struct sb_recorder_kind *kind,
			 struct sb_reason *reason)
{
	const struct sb_definition *definition = kind->definition;
	uint32_t options = kind->view->kind->options;
	const char *no = NULL;

	if (!(options & SB_VIEW_EXPRS) &&
	    (definition->when || definition->weight || definition->value))
		no = "--when, --weight and --value";
	else if (!(options & SB_VIEW_LASTING) && (definition->min_ns || definition->max_ns))
		no = "--min and --max";
	if (!no)
		return 0;
	sb_reason_set(reason, 0, "%s:%u: '%s' cannot be recorded with %s", path_of(opts),
		      definition->line, kind->name, no);
	return -EINVAL;
}

/* Find the definition of a kind, and try whether it can be traced. */
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
		snprintf(kind->unit, sizeof(kind->unit), "%s",
			 sb_view_unit(kind->view, &view_opts, &divisor));
	sb_probes_release(&opts->probes);
	return err;
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
	for (i = 0; i < config->nr_kinds && !err; i++)
		if (config->kinds[i].view->kind->takes_events)
			err = define(opts, &config->kinds[i], &reason);
	config->find_events = find_events;
	config->arg = opts;
	return err ? sb_record_explain_events(&reason, err) : -1;
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
		if (!sb_view_kinds[kind].takes_events)
			sb_complete_add(to, sb_view_kinds[kind].name, sb_view_kinds[kind].summary);
		for (i = 0; i < list.at.nr && sb_view_kinds[kind].takes_events; i++) {
			snprintf(name, sizeof(name), "%s" SB_VIEW_KIND_OF "%s",
				 sb_view_kinds[kind].name, list.at.at[i].name);
			sb_complete_add(to, name, list.at.at[i].events[0]);
		}
	}
	sb_definitions_release(&list);
}
