// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Expressions: any text compiles or has a reason with a column in the text; what compiles keeps
 * within the bounds of the program and of both stacks, only jumps forward, and has the promised
 * kind of result. Spaces around it change nothing.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "events/expr.h"
#include "must.h"
#include "tests/unit/events/expr_native.h"

#define CONTEXT 0xffff888000001000ull

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const struct sb_expr_field fields[] = {
	{ .name = "arg0", .kind = SB_EXPR_INT, .size = 8, .is_signed = true },
	{ .name = "arg1", .kind = SB_EXPR_POINTER, .at = 1, .size = 8 },
	{ .name = "retval",
	  .kind = SB_EXPR_INT,
	  .at = SB_EXPR_RETVAL,
	  .size = 4,
	  .is_signed = true },
	{ .name = "comm", .kind = SB_EXPR_STRING, .source = SB_EXPR_FROM_COMM, .size = 16 },
	{ .name = "len",
	  .kind = SB_EXPR_INT,
	  .source = SB_EXPR_FROM_CONTEXT,
	  .at = 4,
	  .size = 2,
	  .is_arg = true },
	{ .name = "name",
	  .kind = SB_EXPR_STRING,
	  .source = SB_EXPR_FROM_CONTEXT,
	  .at = 8,
	  .size = 200,
	  .is_arg = true },
	{ .name = "path", .kind = SB_EXPR_STRING, .source = SB_EXPR_FROM_DATA_LOC, .is_arg = true },
	{ .name = "array", .kind = SB_EXPR_OTHER, .source = SB_EXPR_FROM_CONTEXT, .size = 24 },
};
static const struct sb_expr_scope scope = { .fields = fields, .nr = SB_ARRAY_SIZE(fields) };

static void check_program(const struct sb_expr *expr)
{
	static const char context[300] = "\x05\0\x03\0..name";
	struct expr_memory memory = { { { CONTEXT, context, sizeof(context), 0 } } };
	struct sb_expr_run run = { .context = CONTEXT };
	const struct sb_expr_insn *insn;
	uint32_t i;

	must(expr->nr_insns > 0 && expr->nr_insns <= SB_EXPR_INSNS_MAX);
	for (i = 0; i < expr->nr_insns; i++) {
		insn = &expr->insn[i];
		must(insn->op > SB_EXPR_OP_END && insn->op < SB_EXPR_OP_MAX);
		if (insn->op >= SB_EXPR_OP_JUMP && insn->op <= SB_EXPR_OP_OR)
			must(insn->at > i && insn->at <= expr->nr_insns);
	}
	sb_expr_begin(&run);
	for (i = 0; sb_expr_step(&run, expr, &memory); i++)
		must(i < expr->nr_insns && run.nr_ints <= SB_EXPR_INTS_MAX &&
		     run.nr_strings <= SB_EXPR_STRINGS_MAX);
	must(run.nr_ints == (expr->kind != SB_EXPR_STRING));
	must(run.nr_strings == (expr->kind == SB_EXPR_STRING));
	must(expr->kind > SB_EXPR_OTHER && expr->kind < SB_EXPR_KIND_MAX);
	must(!((const char *)run.strings[0])[SB_EXPR_STRING_MAX]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	sb_cleanup(sb_freep) char *text = strndup((const char *)data, len), *spaced = NULL;
	struct sb_reason reason = {};
	struct sb_expr expr, again;
	size_t column;
	int err;

	memset(&expr, 0, sizeof(expr));
	if (!text || asprintf(&spaced, " %s\t", text) < 0)
		return 0;
	err = sb_expr_compile(text, &scope, &expr, &reason);
	if (err) {
		must(sscanf(reason.text, "column %zu: ", &column) == 1);
		must(column >= 1 && column <= strlen(text) + 1);
		return 0;
	}
	must(!sb_reason_is_set(&reason));
	check_program(&expr);
	if (strlen(spaced) <= SB_EXPR_TEXT_MAX) {
		memset(&again, 0, sizeof(again));
		must(!sb_expr_compile(spaced, &scope, &again, NULL));
		must(!memcmp(&expr, &again, sizeof(expr)));
	}
	return 0;
}
