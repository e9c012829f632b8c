// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The places of the events and spans of a run, in its targets, and what can be the key of a label
 * or of a tag. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "events/preset.h"
#include "kinds/view_kind.h"
#include "run/run.h"

/* What --in begins with for spans of a label. */
#define SPAN_LABEL    "label:"
#define KEY_BYTES_MAX 64u

uint32_t sb_run_tgid(const struct sb_run_config *config)
{
	const struct sb_targets *targets = &config->targets;
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

/* Return: whether only threads of processes that are asked for by their IDs can be sampled: no
 * other rule, no command, no children, not the whole machine. */
static bool is_only_tgids(const struct sb_run_config *config)
{
	struct sb_targets others = config->targets;

	others.tgids.nr = 0;
	return !config->targets.follow_children && !config->all && !config->command &&
	       !sb_run_has_allow_rule(&others);
}

void sb_run_renew_probes(const struct sb_run_config *config, struct sb_probes *probes)
{
	sb_probes_release(probes);
	*probes = (struct sb_probes){ .tgid = sb_run_tgid(config) };
	probes->is_of_tgid_only = probes->tgid && is_only_tgids(config);
}

void sb_run_probes_release(struct sb_run_probes *probes)
{
	sb_probes_release(&probes->events);
	sb_probes_release(&probes->in);
	sb_probes_release(&probes->until);
}

int sb_run_find_events(const struct sb_run_config *config, const struct sb_view_kind *kind,
		       const struct sb_event_request *request, struct sb_run_probes *probes,
		       struct sb_view_opts *view_opts, struct sb_reason *reason)
{
	struct sb_probes *events = &probes->events;
	int err;

	sb_run_renew_probes(config, events);
	events->is_without_stacks = !config->sides;
	events->is_of_calls = kind->takes_calls && !request->from.nr;
	events->is_of_kernel_calls = events->is_of_calls;
	err = sb_probes_find(events, request, reason);
	view_opts->value = events->value_name;
	view_opts->probes = events;
	return err;
}

/* What selectors and HTTP take without quotes, and OpenTelemetry uses: http.route, k8s.pod/name. */
bool sb_run_is_key(const char *s, size_t len)
{
	size_t i;

	if (!len || len > KEY_BYTES_MAX || (!isalpha((unsigned char)s[0]) && s[0] != '_'))
		return false;
	for (i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("_.-/", s[i]))
			return false;
	return true;
}

int sb_run_span_label(const char *in, const char *until, const char **ret_key,
		      struct sb_reason *reason)
{
	const char *key;

	*ret_key = NULL;
	if (strncmp(in, SPAN_LABEL, strlen(SPAN_LABEL)))
		return 0;
	key = in + strlen(SPAN_LABEL);
	if (!sb_run_is_key(key, strlen(key)))
		sb_reason_set(
			reason, 0,
			"--in '%s': a label's key is made of letters, digits, '_', '.', '-', '/', "
			"begins with a letter or '_', and has at most 64 characters",
			in);
	else if (until)
		sb_reason_set(reason, 0,
			      "--until does not go with --in label:KEY, whose spans end when the "
			      "thread's label changes; leave out --until");
	else
		*ret_key = key;
	return *ret_key ? 0 : -EINVAL;
}

int sb_run_find_spans(const struct sb_run_config *config, const char *in, const char *until,
		      struct sb_run_probes *probes, struct sb_view_opts *view_opts,
		      struct sb_reason *reason)
{
	const struct sb_preset *preset = sb_preset_find(in);
	int err = sb_run_span_label(in, until, &view_opts->in_label, reason);

	if (err || view_opts->in_label)
		return err;
	if (preset && !until)
		until = preset->until;
	sb_run_renew_probes(config, &probes->in);
	probes->in.is_of_calls = !until;
	err = sb_probes_find_boundary(&probes->in, in, reason);
	if (!err && until) {
		sb_run_renew_probes(config, &probes->until);
		err = sb_probes_find_boundary(&probes->until, until, reason);
	}
	view_opts->in = &probes->in;
	view_opts->until = until ? &probes->until : NULL;
	return err;
}
