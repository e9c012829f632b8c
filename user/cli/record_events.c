// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The events of views that trace some: options, lists, completion. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/reason.h"
#include "cli/complete.h"
#include "cli/record.h"

/* At Tab nobody reads more. */
#define COMPLETIONS_MAX 2000u

int sb_record_explain_events(const struct sb_reason *reason, int err)
{
	sb_err(reason->err, "%s", reason->text);
	switch (err) {
	case -EINVAL:
	case -ENOENT:
	case -ENOEXEC:
		return SB_EXIT_USAGE;
	case -ESRCH:
		return SB_EXIT_NO_TARGET;
	case -EPERM:
	case -EACCES:
	case -EOPNOTSUPP:
		return SB_EXIT_PRIVILEGE;
	default:
		return SB_EXIT_FAILED;
	}
}

static int print_event(void *arg, const char *event, const char *detail)
{
	size_t *nr = arg;

	++*nr;
	printf("%s%s%s\n", event, detail ? "\t" : "", detail ? detail : "");
	return 0;
}

static int list_matching(const struct sb_record_opts *opts, const char *pattern)
{
	struct sb_reason reason = {};
	size_t nr = 0;
	int err = sb_probes_list(pattern, sb_run_tgid(&opts->run), print_event, &nr, &reason);

	if (err)
		return sb_record_explain_events(&reason, err);
	if (nr)
		return SB_EXIT_DATA;
	if (sb_event_is_glob(pattern))
		sb_err(0, "no event matches '%s'; 'stackbpf trace --list' shows all", pattern);
	else
		sb_err(0, "no event matches '%s'; try '*%s*'", pattern, pattern);
	return SB_EXIT_EMPTY;
}

static int list_events(const struct sb_record_opts *opts)
{
	int status = SB_EXIT_DATA;
	size_t i;

	if (!opts->request.events.nr)
		return list_matching(opts, "*");
	for (i = 0; i < opts->request.events.nr && status == SB_EXIT_DATA; i++)
		status = list_matching(opts, opts->request.events.at[i]);
	return status;
}

/* --live is the view of what is held. */
static void take_live(struct sb_record_opts *opts)
{
	const char *live = opts->run.views.at[0]->kind->live;

	if (opts->live && live)
		opts->run.views.at[0] = sb_view_find(live);
}

int sb_record_find_events(struct sb_record_opts *opts)
{
	const struct sb_view_kind *kind;
	struct sb_reason reason = {};
	int err;

	if (opts->list)
		return list_events(opts);
	if (!opts->run.views.nr)
		(void)sb_views_add(&opts->run.views,
				   opts->kind ? sb_view_find(opts->kind) : sb_view_at(0));
	take_live(opts);
	kind = opts->run.views.at[0]->kind;
	err = kind->options & SB_VIEW_ALLOCS
		      ? sb_record_resolve_allocs(opts, kind, false, &opts->run.view_opts, &reason)
		      : sb_run_find_events(&opts->run, kind, &opts->request, &opts->probes,
					   &opts->run.view_opts, &reason);
	if (!err && opts->in)
		err = sb_run_find_spans(&opts->run, opts->in, opts->until, &opts->probes,
					&opts->run.view_opts, &reason);
	return err ? sb_record_explain_events(&reason, err) : -1;
}

void sb_complete_counters(struct sb_completion *to)
{
	const char *name;
	unsigned int i;

	for (i = 0; sb_counter_at(i, &name); i++)
		sb_complete_add(to, name, NULL);
}

struct completing {
	struct sb_completion *to;
	size_t nr;
};

static int complete_event(void *arg, const char *event, const char *detail)
{
	struct completing *completing = arg;

	if (++completing->nr > COMPLETIONS_MAX)
		return -E2BIG;
	/* The fields of tracepoints are longer than a line. */
	if (strchr(event, ':') && strncmp(event, "u:", 2))
		detail = NULL;
	sb_complete_add(completing->to, event, detail);
	return 0;
}

/* What cannot be read is not completed. */
void sb_complete_events(struct sb_completion *to)
{
	struct completing completing = { .to = to };
	struct sb_reason reason = {};
	char pattern[SB_EVENT_FILE_BYTES + SB_EVENT_NAME_BYTES];

	snprintf(pattern, sizeof(pattern), "%s*", to->typed);
	(void)sb_probes_list(pattern, 0, complete_event, &completing, &reason);
}
