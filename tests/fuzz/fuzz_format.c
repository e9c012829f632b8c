// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Parses any text as a description of the arguments of a tracepoint or of a USDT probe. Each field
 * that comes out has an identifier for its name, and its size and offset are such as struct
 * sb_expr_field allows.
 */
#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "events/format.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(const sb_vec_expr_field *fields)
{
	size_t i, k;

	for (i = 0; i < fields->nr; i++) {
		const struct sb_expr_field *field = &fields->at[i];

		must(field->name && field->name[0] && !isdigit((unsigned char)field->name[0]));
		for (k = 0; field->name[k]; k++)
			must(isalnum((unsigned char)field->name[k]) || field->name[k] == '_');
		must(field->is_arg && field->kind < SB_EXPR_KIND_MAX);
		must(field->kind != SB_EXPR_POINTER || field->size == 8);
		must(field->kind != SB_EXPR_STRING || field->size);
		must(field->kind != SB_EXPR_INT || field->size == 1 || field->size == 2 ||
		     field->size == 4 || field->size == 8);
	}
}

static void check_args(const struct sb_trace_arg *args, const sb_vec_expr_field *fields)
{
	size_t i;

	must(fields->nr <= SB_TRACE_ARGS_MAX);
	for (i = 0; i < fields->nr; i++) {
		must(args[i].base == SB_TRACE_NO_REG || args[i].base < 34 * 8);
		must(args[i].index == SB_TRACE_NO_REG || args[i].index < 34 * 8);
		must(args[i].shift <= 3 && args[i].size <= 8);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sb_trace_arg args[SB_TRACE_ARGS_MAX] = {};
	char *text = strndup((const char *)data, len);
	sb_vec_expr_field fields = {};

	if (!text)
		return 0;
	must(!sb_usdt_parse(text, args, &fields));
	check(&fields);
	check_args(args, &fields);
	fields.nr = 0;
	must(!sb_format_parse(text, len & 1, &fields));
	check(&fields);
	sb_vec_release(&fields);
	free(text);
	return 0;
}
