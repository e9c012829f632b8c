// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* --when, --weight, --value and --key, compiled for each place with the names that its arguments
 * have. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/reason.h"
#include "base/str.h"
#include "bpf/abi/sb_abi_latency.h"
#include "events/format.h"
#include "events/preset.h"
#include "events/probe.h"
#include "events/tracefs.h"

/* What is compiled for one place after the other. */
struct compiling {
	struct sb_probes *probes;
	struct sb_reason *reason;
	const struct sb_probe *place;
	int events_fd; /* of tracefs, opened for the first tracepoint; -1 */
	char *format;  /* of the tracepoint, which names of fields point into */
	sb_vec_expr_field fields;
};

static bool is_system_call(const struct sb_probe *place)
{
	return place->kind == SB_PROBE_TRACEPOINT && !strncmp(place->function, "syscalls:", 9);
}

static int add_tracepoint(struct compiling *to)
{
	const char *name = to->place->function;
	int err;

	if (to->events_fd < 0)
		to->events_fd = sb_tracefs_open();
	err = to->events_fd < 0 ? to->events_fd
				: sb_tracefs_read_format(to->events_fd, name, &to->format);
	if (err)
		return sb_reason_set(to->reason, err, "cannot read the fields of tracepoint '%s'",
				     name);
	/* BPF programs get the arguments of a system call alone, without the strings that some
	 * kernels add to its record. */
	return sb_format_parse(to->format, !is_system_call(to->place), &to->fields);
}

static int add_arguments(struct compiling *to, struct sb_probe *place)
{
	if (to->probes->is_of_calls || place->is_call)
		return sb_call_fields(place->returns.nr != 0, &to->fields);
	switch (place->kind) {
	case SB_PROBE_TRACEPOINT:
		return add_tracepoint(to);
	case SB_PROBE_USDT:
		return sb_usdt_parse(place->args, place->arg, &to->fields);
	case SB_PROBE_PERF:
		return 0;
	default:
		return sb_function_fields(place->is_return, place->of_args, &to->fields);
	}
}

/* The names of @place, in to->fields. */
static int find_scope(struct compiling *to, struct sb_probe *place)
{
	int err = 0;
	size_t i;

	to->place = place;
	sb_vec_clear(&to->fields);
	free(to->format);
	to->format = NULL;
	for (i = 0; i < SB_EXPR_THREAD_FIELDS && !err; i++)
		err = sb_vec_push(&to->fields, sb_expr_thread_fields[i]);
	return err ? err : add_arguments(to, place);
}

/* Add @expr unless it is there already, as it is for functions, whose arguments are all the
 * same. */
static int add_expr(struct sb_probes *probes, const struct sb_expr *expr, uint32_t *ret_nr)
{
	size_t i;
	int err = 0;

	for (i = 0; i < probes->exprs.nr; i++)
		if (!memcmp(&probes->exprs.at[i], expr, sizeof(*expr)))
			break;
	if (i == probes->exprs.nr)
		err = sb_vec_push(&probes->exprs, *expr);
	*ret_nr = (uint32_t)i + 1;
	return err;
}

/* Whether an address is one of the process, also if it claims to be one of the kernel. */
static bool has_user_addresses(const struct sb_probe *place)
{
	return place->kind == SB_PROBE_USER || place->kind == SB_PROBE_USDT ||
	       is_system_call(place);
}

/* Return: what to do about a name that the place does not have but another one has: the end of a
 * sentence. */
static const char *advice(const struct compiling *to, const char *option, const char *why)
{
	const struct sb_probe *place = to->place;
	bool is_function = place->kind == SB_PROBE_USER || place->kind == SB_PROBE_KERNEL;

	if (to->probes->is_of_calls || !strstr(why, "there is no '"))
		return "";
	if (sb_streq(option, "--key") && place->roles == SB_EVENT_ENDS)
		return "; --to-key is the expression at the end, if it is another one";
	if (is_function && !place->is_return && strstr(why, "there is no 'retval'"))
		return "; the return of a function has it, spelled r:FILE:FUNCTION or kr:FUNCTION";
	if (is_function && place->is_return && strstr(why, "there is no 'arg"))
		return "; the beginning of a function has it, and 'stackbpf latency' has both";
	return "";
}

static int compile(struct compiling *to, const char *option, const char *text, bool may_be_text,
		   uint32_t *ret_nr)
{
	const struct sb_expr_scope scope = {
		.fields = to->fields.at,
		.nr = to->fields.nr,
		.is_user_only = has_user_addresses(to->place),
	};
	const char *frame = to->probes->names.at[to->place->name_idx];
	struct sb_reason why = {};
	struct sb_expr expr = {};
	int err;

	if (!text)
		return 0;
	err = sb_expr_compile(text, &scope, &expr, &why);
	if (!err && expr.kind == SB_EXPR_STRING && !may_be_text)
		err = sb_reason_set(&why, -EINVAL, "this is a string, but a number is needed");
	if (err) {
		sb_reason_set(to->reason, 0, "%s at '%.*s': %s%s", option, (int)strlen(frame) - 2,
			      frame + 1, why.text, advice(to, option, why.text));
		return err;
	}
	return add_expr(to->probes, &expr, ret_nr);
}

/* All frames of values have one name: that of those that have no names of their own. */
static void name_values(struct sb_probes *probes, const char *value)
{
	const struct sb_expr *expr;
	const char *text;
	size_t i;

	probes->value_name = value;
	for (i = 0; !value && i < probes->places.nr; i++) {
		const struct sb_probe *place = &probes->places.at[i];

		expr = place->value ? &probes->exprs.at[place->value - 1] : NULL;
		if (!expr || expr->kind >= SB_EXPR_SYSCALL)
			continue;
		text = place->preset->value;
		if (probes->value_name && !sb_streq(probes->value_name, text)) {
			probes->value_name = NULL;
			return;
		}
		probes->value_name = text;
	}
}

/* What is compiled for each place: the expressions of samples, or the keys of pairs. */
struct texts {
	struct sb_preset sample;
	const char *key, *to_key;
	bool is_of_keys;
};

static int compile_sample(struct compiling *to, struct sb_probe *place, const struct texts *texts)
{
	static const struct sb_preset none = {};
	const struct sb_preset *asked = &texts->sample;
	const struct sb_preset *preset = place->preset ? place->preset : &none;
	int err;

	if (place->roles & SB_EVENT_ENDS && !(place->roles & SB_EVENT_BEGINS))
		return 0;
	err = compile(to, "--when", asked->when ? asked->when : preset->when, false, &place->when);
	if (!err)
		err = compile(to, "--weight", asked->weight ? asked->weight : preset->weight, false,
			      &place->weigh);
	return err ? err
		   : compile(to, "--value", asked->value ? asked->value : preset->value, true,
			     &place->value);
}

static int compile_keys(struct compiling *to, struct sb_probe *place, const struct texts *texts)
{
	const struct sb_preset *preset = place->preset;
	const char *key = texts->key, *to_key = texts->to_key;
	int err = 0;

	if (!key && preset) {
		key = preset->key;
		to_key = preset->to_key;
	}
	if (place->roles & SB_EVENT_BEGINS)
		err = compile(to, "--key", key, true, &place->begin_key);
	if (!err && place->roles & SB_EVENT_ENDS)
		err = compile(to, to_key ? "--to-key" : "--key", to_key ? to_key : key, true,
			      &place->end_key);
	return err;
}

/* Return: whether an expression of a call is about what is known at its end. @nr: as in struct
 * sb_probe */
static bool needs_end(const struct sb_probes *probes, uint32_t nr)
{
	const struct sb_expr *expr = nr ? &probes->exprs.at[nr - 1] : NULL;
	uint32_t i;

	for (i = 0; expr && i < expr->nr_insns; i++)
		if (expr->insn[i].op == SB_EXPR_OP_CONTEXT &&
		    expr->insn[i].at >= offsetof(struct sb_call_context, retval))
			return true;
	return false;
}

static void find_ends(const struct sb_probes *probes, struct sb_probe *place)
{
	place->at_end = (needs_end(probes, place->when) ? SB_AT_END_WHEN : 0) |
			(needs_end(probes, place->weigh) ? SB_AT_END_WEIGH : 0) |
			(needs_end(probes, place->value) ? SB_AT_END_VALUE : 0);
}

static bool has_texts(const struct sb_preset *preset)
{
	return preset && (preset->when || preset->weight || preset->value);
}

static bool has_keys(const struct sb_preset *preset)
{
	return preset && (preset->key || preset->to_key);
}

static int compile_all(struct sb_probes *probes, const struct texts *texts,
		       struct sb_reason *reason)
{
	struct compiling to = { .probes = probes, .reason = reason, .events_fd = -1 };
	size_t i;
	int err = 0;

	for (i = 0; i < probes->places.nr && !err; i++) {
		struct sb_probe *place = &probes->places.at[i];

		if (!has_texts(&texts->sample) && !has_texts(place->preset) && !texts->key &&
		    !has_keys(place->preset))
			continue;
		err = find_scope(&to, place);
		if (!err)
			err = texts->is_of_keys ? compile_keys(&to, place, texts)
						: compile_sample(&to, place, texts);
		if (!err && (probes->is_of_calls || place->is_call))
			find_ends(probes, place);
	}
	if (err && !sb_reason_is_set(reason))
		sb_reason_set(reason, err,
			      "cannot compile the expressions, such as --when or --key");
	sb_closep(&to.events_fd);
	free(to.format);
	sb_vec_release(&to.fields);
	return err;
}

int sb_probes_compile(struct sb_probes *probes, const char *when, const char *weight,
		      const char *value, struct sb_reason *reason)
{
	const struct texts texts = { .sample = { .when = when, .weight = weight, .value = value } };
	int err = compile_all(probes, &texts, reason);

	if (!err)
		name_values(probes, value);
	return err;
}

/* A string and a number are never equal. */
static int check_keys(const struct sb_probes *probes, struct sb_reason *reason)
{
	size_t nr_strings = 0, nr = 0, i;

	for (i = 0; i < 2 * probes->places.nr; i++) {
		const struct sb_probe *place = &probes->places.at[i / 2];
		uint32_t key = i % 2 ? place->begin_key : place->end_key;

		nr += key != 0;
		nr_strings += key && probes->exprs.at[key - 1].kind == SB_EXPR_STRING;
	}
	if (!nr_strings || nr_strings == nr)
		return 0;
	sb_reason_set(reason, 0,
		      "--key: it is a string at some of the events and a number at others, so no "
		      "begin would find its end");
	return -EINVAL;
}

int sb_probes_compile_keys(struct sb_probes *probes, const char *key, const char *to_key,
			   struct sb_reason *reason)
{
	const struct texts texts = { .key = key, .to_key = to_key, .is_of_keys = true };
	int err = compile_all(probes, &texts, reason);

	return err ? err : check_keys(probes, reason);
}
