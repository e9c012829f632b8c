// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is done when all options of a command that samples are parsed: words that are no options,
 * defaults, and which options do not go together. */
#include <errno.h>
#include <limits.h>

#include "base/reason.h"
#include "base/time.h"
#include "cli/record.h"
#include "kinds/view_kind.h"
#include "views/view.h"

#define FREQ_HZ_DEFAULT 99u /* not 100, which may run in step with programs */
#define UNWIND_MAX	(1ull << 30)

bool sb_record_opts_has_target(const struct sb_record_opts *fields)
{
	return fields->run.all || fields->run.command ||
	       sb_run_has_allow_rule(&fields->run.targets);
}

/*
 * A word that is no option. A bare number is a duration for some hands and a process for others,
 * so it is taken as seconds only where a target is named already.
 */
static int take_operand(struct sb_record_opts *fields, struct sb_opts *opts, const char *word)
{
	uint64_t number, ns;
	bool is_time = !sb_parse_duration(word, SB_NS_PER_SEC, &ns);

	if (!sb_record_opt_is_for("time", opts->command))
		return sb_opts_fail(opts,
				    "there is an unexpected argument '%s'; name the process with "
				    "-p, such as -p 1302",
				    word);
	if (!is_time && sb_record_opt_is_for("list", opts->command))
		return sb_vec_push(&fields->request.events, word);
	if (!is_time)
		return sb_opts_fail(opts,
				    "there is an unexpected argument '%s'; to run a command, "
				    "put it after '--': stackbpf %s -- %s",
				    word, opts->command, word);
	if (fields->run.time_ns)
		return sb_opts_fail(opts, "'%s': the time was given twice; leave one out", word);
	if (!ns)
		return sb_opts_fail(opts, "'%s' is too short a time to sample; choose a longer one",
				    word);
	if (!sb_parse_u64(word, UINT64_MAX, &number) && !sb_record_opts_has_target(fields))
		return sb_opts_fail(opts, "'stackbpf %s %s': did you mean -p %s or -t %s?",
				    opts->command, word, word, word);
	fields->run.time_ns = ns;
	return 0;
}

static int take_command(struct sb_record_opts *fields, struct sb_opts *opts)
{
	if (opts->tail && !*opts->tail)
		return sb_opts_fail(opts, "the command after '--' is missing; append it");
	if (opts->tail && fields->shell_command)
		return sb_opts_fail(opts, "-c and '--' both name a command; use only one of "
					  "them");
	if (fields->shell_command) {
		fields->shell_argv[0] = "sh";
		fields->shell_argv[1] = "-c";
		fields->shell_argv[2] = (char *)fields->shell_command;
		fields->run.command = fields->shell_argv;
		/* What the line starts is a child of the shell. */
		fields->run.targets.follow_children = true;
	} else {
		fields->run.command = opts->tail;
	}
	return 0;
}

static int check_kind(const struct sb_record_opts *fields, struct sb_opts *opts)
{
	const char *name = NULL;

	if (!fields->kind)
		return 0;
	if (fields->run.freq_hz && !sb_record_opt_is_for("freq", fields->kind))
		name = "--freq";
	else if (fields->event && !sb_record_opt_is_for("event", fields->kind))
		name = "--event";
	else if (fields->run.idle != SB_IDLE_SHOW && !sb_record_opt_is_for("idle", fields->kind))
		name = "--idle";
	return name ? sb_opts_fail(opts, "%s has no effect on --kind=%s; leave it out", name,
				   fields->kind)
		    : 0;
}

/* A period that was asked for is a rate if it is one of time; otherwise there is no rate. */
static int take_period(struct sb_record_opts *fields, struct sb_opts *opts)
{
	uint64_t period = fields->counter.period;

	if (fields->run.is_freq_asked)
		return sb_opts_fail(opts,
				    "'%s' has a period, and -F is a rate; use only one of them",
				    fields->event);
	fields->run.is_freq_asked = true;
	fields->run.freq_hz = 0;
	if (!sb_counter_is_clock(&fields->counter))
		return 0;
	if (period < SB_NS_PER_SEC / SB_FREQ_HZ_MAX || period > SB_NS_PER_SEC)
		return sb_opts_fail(opts,
				    "'%s' has a period of %llu ns; choose one between 10000 and "
				    "1000000000",
				    fields->event, (unsigned long long)period);
	fields->run.freq_hz = (uint32_t)((SB_NS_PER_SEC + period / 2) / period);
	return 0;
}

/* The store adds up all that was ever recorded of a kind, so that has one unit. */
static bool records_oncpu(const struct sb_record_opts *fields, const struct sb_opts *opts)
{
	const struct sb_recorder_config *recorder = &fields->recorder;
	bool has_default = !recorder->nr_kinds;
	size_t i;

	for (i = 0; i < recorder->nr_kinds; i++)
		has_default |= recorder->kinds[i].view == sb_view_at(0);
	return has_default && sb_streq(opts->command, "record");
}

static int take_event(struct sb_record_opts *fields, struct sb_opts *opts)
{
	struct sb_reason reason = {};

	if (!fields->event)
		return 0;
	if (sb_counter_find(fields->event, &fields->counter, &reason))
		return sb_opts_fail(opts, "--event: %s", reason.text);
	if (!sb_counter_is_clock(&fields->counter) && records_oncpu(fields, opts))
		return sb_opts_fail(opts,
				    "--event: oncpu is recorded in samples of a clock, and '%s' is "
				    "none; use 'stackbpf oncpu -e' for it",
				    fields->event);
	fields->run.view_opts.counter = &fields->counter;
	return fields->counter.period ? take_period(fields, opts) : 0;
}

int sb_record_check_pairs(const struct sb_event_request *request, bool takes_pairs,
			  struct sb_reason *reason)
{
	bool has_pair = request->from.nr || request->to.nr;

	if (has_pair && (!request->from.nr || !request->to.nr))
		sb_reason_set(reason, 0, "--from and --to belong together: name the event that %s",
			      request->from.nr ? "ends what the other one begins, with --to"
					       : "begins what the other one ends, with --from");
	else if (has_pair && request->events.nr)
		sb_reason_set(reason, 0,
			      "'%s' is measured from its beginning to its return; leave it out, or "
			      "leave out --from and --to",
			      request->events.at[0]);
	else if (request->to_key && !request->key)
		sb_reason_set(reason, 0, "--to-key needs --key, the expression at the beginning");
	else if (!has_pair && takes_pairs && request->key)
		sb_reason_set(reason, 0, "--key needs --from and --to");
	return sb_reason_is_set(reason) ? -EINVAL : 0;
}

static int check_pair(const struct sb_record_opts *fields, struct sb_opts *opts)
{
	struct sb_reason reason = {};

	if (fields->run.view_opts.slowest && fields->request.value)
		return sb_opts_fail(opts, "--slowest and --value cannot be used together; leave "
					  "one out");
	if (sb_record_check_pairs(&fields->request, sb_record_opt_is_for("from", opts->command),
				  &reason))
		return sb_opts_fail(opts, "%s", reason.text);
	return 0;
}

/* What --distr is about: what the view or --weight measures, spans, or both. */
static int take_distr(struct sb_record_opts *fields, struct sb_opts *opts)
{
	const struct sb_view *view = sb_view_find(opts->command);
	uint32_t options = view ? view->kind->options : 0;
	bool is_lasting = options & SB_VIEW_LASTING;
	struct sb_view_opts *view_opts = &fields->run.view_opts;

	if (!view_opts->distr)
		return 0;
	if (!is_lasting && !fields->in && !fields->request.weight)
		return sb_opts_fail(opts,
				    "--distr shows how long spans take, since what '%s' "
				    "samples has no duration; name them with --in%s",
				    opts->command,
				    options & SB_VIEW_EXPRS
					    ? ", or say with --weight what it is to "
					      "show"
					    : "");
	view_opts->span_distr = fields->in;
	view_opts->distr = is_lasting || fields->request.weight;
	return 0;
}

static int check_spans(const struct sb_record_opts *fields, struct sb_opts *opts)
{
	struct sb_reason reason = {};
	const char *key;

	if (fields->in)
		return sb_run_span_label(fields->in, fields->until, &key, &reason)
			       ? sb_opts_fail(opts, "%s", reason.text)
			       : 0;
	if (fields->run.view_opts.slower_than_ns)
		return sb_opts_fail(opts, "--slower-than is about the calls of --in; name their "
					  "function, such as --in c:fsync");
	if (fields->until)
		return sb_opts_fail(opts, "--until ends what --in begins; give --in and its "
					  "event, too");
	return 0;
}

int sb_record_opts_finish(struct sb_record_opts *fields, struct sb_opts *opts)
{
	size_t i;
	int err;

	err = take_command(fields, opts);
	for (i = 0; !err && i < opts->operands.nr; i++)
		err = take_operand(fields, opts, opts->operands.at[i]);
	if (!err)
		err = check_kind(fields, opts);
	if (!err)
		err = check_pair(fields, opts);
	if (err)
		return err;
	if (fields->run.all && sb_run_has_allow_rule(&fields->run.targets))
		return sb_opts_fail(opts, "-a samples the whole machine; leave out -a or the other "
					  "targets");
	if (fields->run.targets.follow_children && !fields->run.command &&
	    !fields->run.targets.tgids.nr)
		return sb_opts_fail(opts, "-s follows the child processes of -p or of a "
					  "command, but neither was given; leave it out, or add "
					  "one");
	for (i = 0; fields->run.targets.follow_children && i < fields->run.targets.tgids.nr; i++)
		if (fields->run.targets.tgids.at[i].rule == SB_RULE_ALLOW)
			fields->run.targets.tgids.at[i].rule |= SB_RULE_FOLLOW;
	if (fields->run.unwind_bytes > UNWIND_MAX)
		return sb_opts_fail(opts, "--unwind-memory: the limit is 1G; choose less");
	if (fields->run.view_opts.max_ns &&
	    fields->run.view_opts.max_ns < fields->run.view_opts.min_ns)
		return sb_opts_fail(opts, "--max is shorter than --min, so no event could "
					  "match");
	err = check_spans(fields, opts);
	if (!err)
		err = take_distr(fields, opts);
	if (err)
		return err;
	if (fields->rate && fields->run.sides)
		return sb_opts_fail(opts, "--rate takes no stacks; leave out -u and -k");
	if (fields->rate) {
		fields->run.unwind = 0;
		fields->run.interp = SB_INTERP_OFF;
	} else if (!fields->run.sides) {
		fields->run.sides = SB_SIDE_USER | SB_SIDE_KERNEL;
	}
	fields->run.is_freq_asked = fields->run.freq_hz != 0;
	if (!fields->run.freq_hz)
		fields->run.freq_hz = FREQ_HZ_DEFAULT;
	err = take_event(fields, opts);
	if (err)
		return err;
	if (!fields->run.depth_max)
		fields->run.depth_max = SB_USTACK_DEPTH_MAX;
	return 0;
}

void sb_record_opts_release(struct sb_record_opts *fields)
{
	sb_run_config_release(&fields->run);
	sb_vec_release(&fields->output_paths);
	sb_event_request_release(&fields->request);
	sb_vec_release(&fields->allocators);
	sb_run_probes_release(&fields->probes);
	sb_definitions_release(&fields->definitions);
	sb_recorder_opts_release(&fields->recorder);
}
