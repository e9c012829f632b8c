// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* --when, --weight and --value, compiled for each place with the names that its arguments have. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/reason.h"
#include "base/str.h"
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
	switch (place->kind) {
	case SB_PROBE_TRACEPOINT:
		return add_tracepoint(to);
	case SB_PROBE_USDT:
		return sb_usdt_parse(place->args, place->arg, &to->fields);
	case SB_PROBE_PERF:
		return 0;
	default:
		return sb_function_fields(place->is_return, &to->fields);
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

/* Add @expr unless it is there already, as it is for functions, whose arguments are all the same. */
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

static int compile(struct compiling *to, const char *option, const char *text, uint32_t *ret_nr)
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
	if (!err && expr.kind == SB_EXPR_STRING && ret_nr != &to->place->value)
		err = sb_reason_set(&why, -EINVAL, "this is a string, but a number is needed");
	if (err) {
		sb_reason_set(to->reason, 0, "%s at '%.*s': %s", option, (int)strlen(frame) - 2,
			      frame + 1, why.text);
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

static int compile_place(struct compiling *to, struct sb_probe *place,
			 const struct sb_preset *asked)
{
	static const struct sb_preset none = {};
	const struct sb_preset *preset = place->preset ? place->preset : &none;
	const char *when = asked->when ? asked->when : preset->when;
	const char *weight = asked->weight ? asked->weight : preset->weight;
	const char *value = asked->value ? asked->value : preset->value;
	int err;

	if (!when && !weight && !value)
		return 0;
	err = find_scope(to, place);
	if (!err)
		err = compile(to, "--when", when, &place->when);
	if (!err)
		err = compile(to, "--weight", weight, &place->weigh);
	if (!err)
		err = compile(to, "--value", value, &place->value);
	return err;
}

int sb_probes_compile(struct sb_probes *probes, const char *when, const char *weight,
		      const char *value, struct sb_reason *reason)
{
	struct compiling to = { .probes = probes, .reason = reason, .events_fd = -1 };
	const struct sb_preset asked = { .when = when, .weight = weight, .value = value };
	size_t i;
	int err = 0;

	for (i = 0; i < probes->places.nr && !err; i++)
		err = compile_place(&to, &probes->places.at[i], &asked);
	if (!err)
		name_values(probes, value);
	if (err && !sb_reason_is_set(reason))
		sb_reason_set(reason, err, "cannot compile the expressions");
	sb_closep(&to.events_fd);
	free(to.format);
	sb_vec_release(&to.fields);
	return err;
}
