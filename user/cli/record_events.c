// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The events of views that trace some: from the operands to places, lists, completion. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/reason.h"
#include "cli/complete.h"
#include "cli/record.h"
#include "cli/recorder_opts.h"
#include "events/preset.h"

/* What --in begins with for spans of a label. */
#define SPAN_LABEL	"label:"

/* At Tab nobody reads more. */
#define COMPLETIONS_MAX 2000u

/* Whose libraries are meant. */
uint32_t sb_record_tgid(const struct sb_record_opts *opts)
{
	const struct sb_targets *targets = &opts->run.targets;
	uint32_t tgid = 0;
	size_t i;

	for (i = 0; i < targets->tgids.nr; i++) {
		if (!(targets->tgids.at[i].rule & SB_RULE_ALLOW))
			continue;
		if (tgid)
			return 0;
		tgid = targets->tgids.at[i].pid;
	}
	return tgid;
}

bool sb_record_is_only_tgid(const struct sb_record_opts *opts)
{
	const struct sb_targets *targets = &opts->run.targets;
	struct sb_targets others = *targets;

	others.tgids.nr = 0;
	return !targets->follow_children && !opts->run.all && !opts->run.command &&
	       !sb_run_has_allow_rule(&others);
}

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
	int err = sb_probes_list(pattern, sb_record_tgid(opts), print_event, &nr, &reason);

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

	if (!opts->events.nr)
		return list_matching(opts, "*");
	for (i = 0; i < opts->events.nr && status == SB_EXIT_DATA; i++)
		status = list_matching(opts, opts->events.at[i]);
	return status;
}

static int add_events(struct sb_probes *probes, const struct sb_record_event_list *events,
		      uint32_t roles, struct sb_reason *reason)
{
	size_t i;
	int err = 0;

	probes->roles = roles;
	for (i = 0; i < events->nr && !err; i++)
		err = sb_probes_add(probes, events->at[i], reason);
	return err;
}

int sb_record_span_label(const char *in, const char *until, const char **ret_key,
			 struct sb_reason *reason)
{
	bool is_label = !strncmp(in, SPAN_LABEL, strlen(SPAN_LABEL));
	const char *key = in + strlen(SPAN_LABEL);

	*ret_key = NULL;
	if (!is_label)
		return 0;
	if (!sb_recorder_is_label(key))
		sb_reason_set(
			reason, 0,
			"--in '%s': a label's key is made of letters, digits, '_', '.', '-', '/'",
			in);
	else if (until)
		sb_reason_set(reason, 0,
			      "--until does not go with --in label:KEY, whose spans end when the "
			      "thread's label changes; leave out --until");
	else
		*ret_key = key;
	return *ret_key ? 0 : -EINVAL;
}

/* Find the places of --in or --until. */
static int find_places(const struct sb_record_opts *opts, const char *event, bool is_of_calls,
		       struct sb_probes *probes, struct sb_reason *reason)
{
	size_t i;
	int err;

	sb_probes_release(probes);
	*probes = (struct sb_probes){ .tgid = sb_record_tgid(opts), .is_of_calls = is_of_calls };
	probes->is_of_tgid_only = probes->tgid && sb_record_is_only_tgid(opts);
	err = sb_probes_add(probes, event, reason);
	for (i = 0; i < probes->places.nr && !err; i++)
		if (probes->places.at[i].kind == SB_PROBE_PERF) {
			sb_reason_set(
				reason, 0,
				"'%s' is a counter, at which no span can begin or end; name a "
				"function or a tracepoint",
				event);
			err = -EINVAL;
		}
	return err;
}

int sb_record_resolve_spans(struct sb_record_opts *opts, const char *in, const char *until,
			    struct sb_view_opts *view_opts, struct sb_reason *reason)
{
	const struct sb_preset *preset = sb_preset_find(in);
	int err = sb_record_span_label(in, until, &view_opts->in_label, reason);

	if (err || view_opts->in_label)
		return err;
	if (preset && !until)
		until = preset->until;
	err = find_places(opts, in, !until, &opts->in_probes, reason);
	if (!err && until)
		err = find_places(opts, until, false, &opts->until_probes, reason);
	view_opts->in = &opts->in_probes;
	view_opts->until = until ? &opts->until_probes : NULL;
	return err;
}

int sb_record_resolve_events(struct sb_record_opts *opts, const struct sb_view_kind *kind,
			     const struct sb_record_events *events, struct sb_view_opts *view_opts,
			     struct sb_reason *reason)
{
	struct sb_probes *probes = &opts->probes;
	int err;

	sb_probes_release(probes);
	*probes = (struct sb_probes){ .tgid = sb_record_tgid(opts),
				      .is_without_stacks = opts->rate,
				      .is_of_calls = kind->takes_calls && !events->from.nr };
	probes->is_of_kernel_calls = probes->is_of_calls;
	probes->is_of_tgid_only = probes->tgid && sb_record_is_only_tgid(opts);
	err = add_events(probes, &events->events, 0, reason);
	err = err ?: add_events(probes, &events->from, SB_EVENT_BEGINS, reason);
	err = err ?: add_events(probes, &events->to, SB_EVENT_ENDS, reason);
	err = err ?: sb_probes_compile(probes, events->when, events->weight, events->value, reason);
	err = err ?: sb_probes_compile_keys(probes, events->key, events->to_key, reason);
	view_opts->value = probes->value_name;
	view_opts->probes = probes;
	return err;
}

struct sb_record_events sb_record_events_of(const struct sb_record_opts *opts)
{
	return (struct sb_record_events){
		.events = { opts->events.at, opts->events.nr },
		.from = { opts->from.at, opts->from.nr },
		.to = { opts->to.at, opts->to.nr },
		.when = opts->when,
		.weight = opts->weight,
		.value = opts->value,
		.key = opts->key,
		.to_key = opts->to_key,
	};
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
	const struct sb_record_events events = sb_record_events_of(opts);
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
		      : sb_record_resolve_events(opts, kind, &events, &opts->run.view_opts,
						 &reason);
	if (!err && opts->in)
		err = sb_record_resolve_spans(opts, opts->in, opts->until, &opts->run.view_opts,
					      &reason);
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
