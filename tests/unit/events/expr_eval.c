// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Expressions by our compiler and our evaluator, for expr_oracle.py. A line of stdin is eight
 * hexadecimal words and an expression. The words are the fields a to h, of all types of integers,
 * in the context, and ra to rh, the same in registers. A line of stdout is "VALUE s|u FLAGS", or
 * "- REASON".
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "events/expr.h"
#include "unit/events/expr_native.h"

#define NR_WORDS     8
#define CONTEXT_ADDR 0xffff888000001000ull

static const struct {
	uint8_t size;
	bool is_signed;
} types[NR_WORDS] = {
	{ 1, true }, { 1, false }, { 2, true }, { 2, false },
	{ 4, true }, { 4, false }, { 8, true }, { 8, false },
};

static struct sb_expr_field fields[2 * NR_WORDS];
static char names[2 * NR_WORDS][3];

static void make_fields(void)
{
	size_t i;

	for (i = 0; i < 2 * NR_WORDS; i++) {
		fields[i] = (struct sb_expr_field){
			.name = names[i],
			.kind = SB_EXPR_INT,
			.source = i < NR_WORDS ? SB_EXPR_FROM_CONTEXT : SB_EXPR_FROM_VALUE,
			.at = (uint32_t)(i < NR_WORDS ? 8 * i : i - NR_WORDS),
			.size = types[i % NR_WORDS].size,
			.is_signed = types[i % NR_WORDS].is_signed,
		};
		if (i < NR_WORDS)
			names[i][0] = (char)('a' + i);
		else
			memcpy(names[i], (char[]){ 'r', (char)('a' + i - NR_WORDS) }, 2);
	}
}

static void evaluate(char *line)
{
	const struct sb_expr_scope scope = { .fields = fields, .nr = 2 * NR_WORDS };
	struct sb_expr_run run = { .context = CONTEXT_ADDR };
	struct expr_memory memory = { { { CONTEXT_ADDR, run.value, 8 * NR_WORDS, 0 } } };
	struct sb_reason reason = {};
	struct sb_expr expr;
	int i;

	for (i = 0; i < NR_WORDS; i++)
		run.value[i] = strtoull(line, &line, 16);
	line[strcspn(line, "\n")] = '\0';
	if (sb_expr_compile(line, &scope, &expr, &reason)) {
		printf("- %s\n", reason.text);
		return;
	}
	expr_run(&run, &expr, &memory);
	printf("%" PRIu64 " %c %u\n", (uint64_t)run.ints[0], expr.result_is_signed ? 's' : 'u',
	       run.flags);
}

int main(void)
{
	sb_cleanup(sb_freep) char *line = NULL;
	size_t cap = 0;

	make_fields();
	while (getline(&line, &cap, stdin) > 0)
		evaluate(line);
	return 0;
}
