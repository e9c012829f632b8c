// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "events/event.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/num.h"
#include "base/reason.h"
#include "base/str.h"

/* "usdt:PATH:PROVIDER:NAME" has four. */
#define FIELDS_MAX 4u

/* What the first field says, if it is one of these, and how many fields may follow it. */
static const struct {
	const char *word;
	enum sb_probe_kind kind;
	bool is_return;
	unsigned int min, max;
	const char *example;
} prefixes[] = {
	{ "t", SB_PROBE_TRACEPOINT, false, 2, 2, "t:sched:sched_process_exec" },
	{ "rawtracepoint", SB_PROBE_TRACEPOINT, false, 1, 1, "rawtracepoint:sched_switch" },
	{ "tracepoint", SB_PROBE_TRACEPOINT, false, 2, 2, "tracepoint:sched:sched_process_exec" },
	{ "p", SB_PROBE_USER, false, 1, 2, "p:c:malloc" },
	{ "r", SB_PROBE_USER, true, 1, 2, "r:c:malloc" },
	{ "k", SB_PROBE_KERNEL, false, 1, 2, "k:vfs_read" },
	{ "kr", SB_PROBE_KERNEL, true, 1, 2, "kr:vfs_read" },
	{ "kprobe", SB_PROBE_KERNEL, false, 1, 2, "kprobe:vfs_read" },
	{ "kretprobe", SB_PROBE_KERNEL, true, 1, 2, "kretprobe:vfs_read" },
	{ "fentry", SB_PROBE_KERNEL, false, 1, 2, "fentry:vfs_read" },
	{ "fexit", SB_PROBE_KERNEL, true, 1, 2, "fexit:vfs_read" },
	{ "kfunc", SB_PROBE_KERNEL, false, 1, 2, "kfunc:vfs_read" },
	{ "kretfunc", SB_PROBE_KERNEL, true, 1, 2, "kretfunc:vfs_read" },
	{ "uprobe", SB_PROBE_USER, false, 2, 2, "uprobe:/bin/bash:readline" },
	{ "uretprobe", SB_PROBE_USER, true, 2, 2, "uretprobe:/bin/bash:readline" },
	{ "u", SB_PROBE_USDT, false, 2, 3, "u:/usr/bin/python3:function__entry" },
	{ "usdt", SB_PROBE_USDT, false, 2, 3, "usdt:/usr/bin/python3:python:function__entry" },
	{ "software", SB_PROBE_PERF, false, 1, 2, "software:faults:100" },
	{ "s", SB_PROBE_PERF, false, 1, 2, "s:faults:100" },
	{ "hardware", SB_PROBE_PERF, false, 1, 2, "hardware:cache-misses:100000" },
	{ "h", SB_PROBE_PERF, false, 1, 2, "h:cache-misses:100000" },
};

/* A spelling at its colons. */
struct fields {
	const char *text; /* of all, for messages */
	char copy[SB_EVENT_FILE_BYTES + 2 * SB_EVENT_NAME_BYTES];
	const char *at[FIELDS_MAX];
	unsigned int nr;
};

bool sb_event_is_glob(const char *name)
{
	return strpbrk(name, "*?") != NULL;
}

static int refuse(struct sb_reason *reason, const char *text, const char *why)
{
	sb_reason_set(reason, 0, "the event '%s' %s", text, why);
	return -EINVAL;
}

/* Return: where the field at @at ends; NULL: it is the last one. Names of C++ and Rust have
 * "::". */
static char *find_colon(char *at, bool may_have_scopes)
{
	for (at = strchr(at, ':'); at && may_have_scopes && at[1] == ':'; at = strchr(at + 2, ':'))
		;
	return at;
}

static int split(const char *text, struct fields *ret, struct sb_reason *reason)
{
	char *at = ret->copy, *colon;
	bool may_have_scopes = false;

	ret->text = text;
	ret->nr = 0;
	if (strlen(text) >= sizeof(ret->copy))
		return refuse(reason, text, "is too long");
	memcpy(ret->copy, text, strlen(text) + 1);
	for (; at && ret->nr < FIELDS_MAX; at = colon) {
		colon = find_colon(at, may_have_scopes);
		if (colon)
			*colon++ = '\0';
		ret->at[ret->nr++] = at;
		/* Names of USDT probes have none, and bpftrace spells any provider "PATH::NAME". */
		may_have_scopes = !sb_streq(ret->at[0], "u") && !sb_streq(ret->at[0], "usdt");
	}
	return at ? refuse(reason, text, "has too many colons") : 0;
}

static int copy(char *to, size_t size, const char *from, const struct fields *fields,
		struct sb_reason *reason)
{
	if (strlen(from) >= size)
		return refuse(reason, fields->text, "is too long");
	memcpy(to, from, strlen(from) + 1);
	return 0;
}

static int parse_number(const char *text, uint64_t *ret)
{
	return strncmp(text, "0x", 2) ? sb_parse_u64(text, UINT64_MAX, ret)
				      : sb_parse_hex(text, ret);
}

/* "malloc", "malloc+0x10", and in a file "0x1234". */
static int take_function(const char *text, struct sb_event_spec *spec, const struct fields *fields,
			 struct sb_reason *reason)
{
	char *plus;
	int err = copy(spec->name, sizeof(spec->name), text, fields, reason);

	if (err)
		return err;
	plus = strrchr(spec->name, '+');
	if (plus) {
		*plus++ = '\0';
		if (!*spec->name || parse_number(plus, &spec->offset))
			return refuse(reason, fields->text,
				      "has no offset after '+', such as malloc+0x10");
	} else if (!strncmp(text, "0x", 2)) {
		*spec->name = '\0';
		if (parse_number(text, &spec->offset))
			return refuse(reason, fields->text, "has no address after '0x'");
	}
	if (!plus && !*text)
		return refuse(reason, fields->text, "names no function");
	if (plus && sb_event_is_glob(spec->name))
		return refuse(reason, fields->text, "has a pattern and an offset; use only one");
	if (plus && spec->is_return)
		return refuse(reason, fields->text,
			      "has an offset, but a function returns as a whole");
	return 0;
}

static int take_user(const char *file, const char *name, struct sb_event_spec *spec,
		     const struct fields *fields, struct sb_reason *reason)
{
	int err = copy(spec->file, sizeof(spec->file), file, fields, reason);

	if (!err && !*file)
		err = refuse(reason, fields->text, "names no program or library");
	spec->kind = SB_PROBE_USER;
	return err ? err : take_function(name, spec, fields, reason);
}

/* "u", "k" or a period, after a counter. */
static int take_modifier(const char *text, struct sb_event_spec *spec, const struct fields *fields,
			 struct sb_reason *reason)
{
	if (isdigit((unsigned char)*text)) {
		if (parse_number(text, &spec->counter.period) || !spec->counter.period)
			return refuse(reason, fields->text,
				      "has a period that is not a number above 0");
		return 0;
	}
	if (!*text || text[strspn(text, "uk")])
		return refuse(reason, fields->text,
			      "has a modifier other than u (user), k (kernel) and a period");
	spec->counter.no_user |= !strchr(text, 'u');
	spec->counter.no_kernel |= !strchr(text, 'k');
	return 0;
}

/* A counter from field @first on. */
static int take_counter(unsigned int first, struct sb_event_spec *spec, const struct fields *fields,
			struct sb_reason *reason)
{
	unsigned int i;
	int err = copy(spec->name, sizeof(spec->name), fields->at[first], fields, reason);

	spec->kind = SB_PROBE_PERF;
	for (i = first + 1; i < fields->nr && !err; i++)
		err = take_modifier(fields->at[i], spec, fields, reason);
	return err;
}

static int unknown_counter(const char *name, const struct fields *fields, struct sb_reason *reason)
{
	struct sb_nearest nearest = { .typed = name };
	const char *counter;
	unsigned int i;

	for (i = 0; sb_counter_at(i, &counter); i++)
		sb_nearest_offer(&nearest, counter);
	sb_reason_set(reason, 0, "the event '%s': there is no counter '%s'; %s%s%s", fields->text,
		      name, nearest.name ? "did you mean '" : "'stackbpf trace --list' shows them",
		      nearest.name ? nearest.name : "", nearest.name ? "'?" : "");
	return -EINVAL;
}

static int take_usdt(struct sb_event_spec *spec, const struct fields *fields,
		     struct sb_reason *reason)
{
	bool has_provider = fields->nr == 4;
	int err = copy(spec->file, sizeof(spec->file), fields->at[1], fields, reason);

	if (!err && has_provider)
		err = copy(spec->provider, sizeof(spec->provider), fields->at[2], fields, reason);
	if (!err)
		err = copy(spec->name, sizeof(spec->name), fields->at[2 + has_provider], fields,
			   reason);
	if (!err && (!*spec->name || !*spec->file))
		err = refuse(reason, fields->text, "names no program or no probe");
	return err;
}

static int take_tracepoint(const char *category, const char *name, struct sb_event_spec *spec,
			   const struct fields *fields, struct sb_reason *reason)
{
	int err = copy(spec->file, sizeof(spec->file), category, fields, reason);

	if (!err)
		err = copy(spec->name, sizeof(spec->name), name, fields, reason);
	if (!err && (!*category || !*name || strchr(category, '/') || strchr(name, '/')))
		err = refuse(reason, fields->text, "is not CATEGORY:TRACEPOINT");
	return err;
}

/* The fields after a word of prefixes[]. */
static int take_prefixed(struct sb_event_spec *spec, const struct fields *fields,
			 struct sb_reason *reason)
{
	const char *last = fields->at[fields->nr - 1];

	switch (spec->kind) {
	case SB_PROBE_TRACEPOINT:
		/* bpftrace: "rawtracepoint:sched_switch" has no category. */
		return take_tracepoint(fields->nr == 3 ? fields->at[1] : "*", last, spec, fields,
				       reason);
	case SB_PROBE_USDT:
		return take_usdt(spec, fields, reason);
	case SB_PROBE_PERF:
		if (!sb_counter_by_name(fields->at[1], &spec->counter))
			return unknown_counter(fields->at[1], fields, reason);
		return take_counter(1, spec, fields, reason);
	case SB_PROBE_USER:
		if (fields->nr == 3 && *fields->at[1])
			return take_user(fields->at[1], last, spec, fields, reason);
		spec->kind = SB_PROBE_KERNEL; /* bcc: "p::vfs_read" */
		break;
	default:
		break;
	}
	return take_function(last, spec, fields, reason);
}

static int refuse_prefix(const struct fields *fields, struct sb_reason *reason)
{
	struct sb_nearest nearest = { .typed = fields->at[0] };
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(prefixes); i++)
		sb_nearest_offer(&nearest, prefixes[i].word);
	if (!nearest.name)
		return refuse(
			reason, fields->text,
			"begins with no kind of event, such as tracepoint:, uprobe: or usdt:");
	sb_reason_set(reason, 0, "the event '%s' begins with no kind of event; did you mean '%s:'?",
		      fields->text, nearest.name);
	return -EINVAL;
}

/* "cpu/event=0xa8/": a PMU, its terms, modifiers. A path begins with a slash or a dot, and ends in
 * a function. Return: whether it was one. */
static bool take_pmu(struct fields *fields, struct sb_event_spec *spec, struct sb_reason *reason,
		     int *ret_err)
{
	char *first = strchr(fields->copy, '/'), *second = first ? strchr(first + 1, '/') : NULL;

	if (!second || first == fields->copy || fields->copy[0] == '.' ||
	    second[1 + strspn(second + 1, "uk")])
		return false;
	*first++ = *second++ = '\0';
	spec->kind = SB_PROBE_PERF;
	*ret_err = copy(spec->file, sizeof(spec->file), fields->copy, fields, reason);
	if (!*ret_err)
		*ret_err = copy(spec->name, sizeof(spec->name), first, fields, reason);
	if (!*ret_err && *second)
		*ret_err = take_modifier(second, spec, fields, reason);
	if (!*ret_err && fields->nr > 1)
		*ret_err = take_modifier(fields->at[1], spec, fields, reason);
	return true;
}

int sb_event_parse(const char *text, struct sb_event_spec *ret_spec, struct sb_reason *reason)
{
	struct fields fields;
	unsigned int i;
	int err = split(text, &fields, reason);

	*ret_spec = (struct sb_event_spec){ .kind = SB_PROBE_KERNEL };
	if (err)
		return err;
	if (fields.nr <= 2 && take_pmu(&fields, ret_spec, reason, &err))
		return err;
	for (i = 0; i < SB_ARRAY_SIZE(prefixes) && fields.nr > 1; i++) {
		if (!sb_streq(prefixes[i].word, fields.at[0]))
			continue;
		if (fields.nr - 1 < prefixes[i].min || fields.nr - 1 > prefixes[i].max) {
			sb_reason_set(reason, 0,
				      "the event '%s' is not spelled like '%s'; see "
				      "stackbpf-trace(8)",
				      text, prefixes[i].example);
			return -EINVAL;
		}
		ret_spec->kind = prefixes[i].kind;
		ret_spec->is_return = prefixes[i].is_return;
		return take_prefixed(ret_spec, &fields, reason);
	}
	if (sb_counter_by_name(fields.at[0], &ret_spec->counter))
		return take_counter(0, ret_spec, &fields, reason);
	if (fields.nr == 1)
		return take_function(fields.at[0], ret_spec, &fields, reason);
	if (fields.nr == 3 && !*fields.at[1])
		return refuse(reason, text, "names no file; write it as in ./server:Worker::run");
	if (fields.nr > 2)
		return refuse_prefix(&fields, reason);
	err = take_user(fields.at[0], fields.at[1], ret_spec, &fields, reason);
	if (!err && !strchr(fields.at[0], '/') && !ret_spec->offset) {
		ret_spec->kind = SB_PROBE_TRACEPOINT;
		ret_spec->is_either = true;
	}
	return err;
}
