// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The evaluator of expressions in the kernel against the same source on the host; see
 * expr.bpf.c. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "events/expr.h"
#include "unit/events/expr_native.h"
/* Behind the types it names. */
#include "expr.skel.h"

#define VERIFIED_INSNS_MAX 10000u
#define CONTEXT_ADDR	   0xffff888000001000ull /* on the host: wherever the kernel has it */
#define NR_FORGED	   3000
#define LOG_STATS	   4 /* BPF_LOG_STATS of the kernel's bpf_verifier.h */

static struct expr_bpf *skel;
static char verifier_log[65536];
static char user_text[128] = "GET /index.html";

static struct sb_expr_field fields[12] = {
	{ .name = "len", .kind = SB_EXPR_INT, .source = SB_EXPR_FROM_CONTEXT, .size = 4 },
	{ .name = "small",
	  .kind = SB_EXPR_INT,
	  .source = SB_EXPR_FROM_CONTEXT,
	  .at = 4,
	  .size = 1,
	  .is_signed = true },
	{ .name = "task",
	  .kind = SB_EXPR_STRING,
	  .source = SB_EXPR_FROM_CONTEXT,
	  .at = 8,
	  .size = 16 },
	{ .name = "path", .kind = SB_EXPR_STRING, .source = SB_EXPR_FROM_DATA_LOC, .at = 24 },
	{ .name = "arg0", .kind = SB_EXPR_INT, .size = 8, .is_signed = true },
	{ .name = "arg1", .kind = SB_EXPR_INT, .at = 1, .size = 8 },
	{ .name = "retval",
	  .kind = SB_EXPR_INT,
	  .at = SB_EXPR_RETVAL,
	  .size = 4,
	  .is_signed = true },
	{ .name = "elapsed", .kind = SB_EXPR_INT, .at = SB_EXPR_ELAPSED, .size = 8 },
};

static int setup(void **state)
{
	static const uint32_t path_loc = 9 << 16 | 28;

	memcpy(fields + 8, sb_expr_thread_fields, sizeof(sb_expr_thread_fields));
	skel = expr_bpf__open();
	assert_non_null(skel);
	bpf_program__set_log_level(skel->progs.drive_expr, LOG_STATS);
	bpf_program__set_log_buf(skel->progs.drive_expr, verifier_log, sizeof(verifier_log));
	if (expr_bpf__load(skel)) {
		printf("%s\n", verifier_log);
		return -1;
	}
	memcpy(skel->bss->context, "\x88\x13\0\0\xf9", 5); /* len 5000, small -7 */
	memcpy(skel->bss->context + 8, "sixteen letters.", 16);
	memcpy(skel->bss->context + 24, &path_loc, sizeof(path_loc));
	memcpy(skel->bss->context + 28, "/bin/cat", 9);
	skel->bss->run.value[0] = (uintptr_t)user_text;
	skel->bss->run.value[1] = UINT64_MAX;
	skel->bss->run.value[SB_EXPR_RETVAL] = 0xdead0000fffffffeull;
	skel->bss->run.value[SB_EXPR_ELAPSED] = 12000000;
	memcpy(skel->bss->run.comm, "nginx", 6);
	return 0;
}

static int teardown(void **state)
{
	expr_bpf__destroy(skel);
	return 0;
}

/* Evaluate what is in the kernel's program on both sides. Return: whether all of both is equal. */
static bool is_equal(void)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	struct sb_expr_run native = skel->bss->run;
	struct expr_memory memory = { {
		{ CONTEXT_ADDR, skel->bss->context, sizeof(skel->bss->context), 0 },
		{ (uintptr_t)user_text, user_text, sizeof(user_text), 1 },
	} };

	native.context = CONTEXT_ADDR;
	expr_run(&native, &skel->bss->expr, &memory);
	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(skel->progs.drive_expr), &opts), 0);
	native.context = skel->bss->run.context;
	return !memcmp(&native, &skel->bss->run, sizeof(native));
}

static void compile(const char *text)
{
	const struct sb_expr_scope scope = { .fields = fields, .nr = SB_ARRAY_SIZE(fields) };
	struct sb_reason reason = {};

	if (sb_expr_compile(text, &scope, &skel->bss->expr, &reason))
		fail_msg("%s: %s", text, reason.text);
}

static void test_verifier(void **state)
{
	const char *said = strstr(verifier_log, "processed ");
	struct bpf_prog_info info = {};
	uint32_t len = sizeof(info), nr = 0;

	assert_int_equal(
		bpf_obj_get_info_by_fd(bpf_program__fd(skel->progs.drive_expr), &info, &len), 0);
	if (said)
		nr = (uint32_t)strtoul(said + strlen("processed "), NULL, 10);
	printf("%u instructions verified, %u bytes of machine code\n", nr, info.jited_prog_len);
	assert_true(nr > 0 && nr < VERIFIED_INSNS_MAX);
}

static void test_expressions(void **state)
{
	static const struct {
		const char *text;
		uint64_t val;
		const char *string;
	} rows[] = {
		{ "len > 4096 && retval < 0", 1 },
		{ "len - 5001", UINT64_MAX },
		{ "small * 3", (uint64_t)-21 },
		{ "arg1 > -1", 0 },
		{ "arg1 / 10", UINT64_MAX / 10 },
		{ "small / 2 + small % 2 * 100", (uint64_t)-103 },
		{ "1 / (len - 5000)", 0 },
		{ "(s64)arg1 >> 63 == -1 ? arg1 >> 63 : 7", 1 },
		{ "elapsed / 1ms", 12 },
		{ "comm == \"nginx\" && str(arg0) == \"GET /index.html\"", 1 },
		{ "task == \"sixteen letters.\" && path != \"/bin/ca\"", 1 },
		{ "path", 0, "/bin/cat" },
		{ "len > 1 ? task : comm", 0, "sixteen letters." },
		{ "str(arg0 + 4)", 0, "/index.html" },
		{ "str(8)", 0, "" },
		{ "(u8)len | 0x100", 0x188 },
		{ "!len || ~retval == 1 && (len ^ 5000) == 0", 1 },
	};
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(rows); i++) {
		compile(rows[i].text);
		if (!is_equal())
			fail_msg("%s: the kernel has another result than the host", rows[i].text);
		if (rows[i].string)
			assert_string_equal((char *)skel->bss->run.strings[0], rows[i].string);
		else
			assert_true(skel->bss->run.ints[0] == rows[i].val);
	}
}

/* Of 62 bytes all are there, of 63 it is not known whether there are more. */
static void test_cut(void **state)
{
	memset(user_text + 16, 'u', 63);
	compile("str(arg0 + 17)");
	assert_true(is_equal());
	assert_int_equal(strlen((char *)skel->bss->run.strings[0]), 62);
	assert_int_equal(skel->bss->run.flags, 0);
	compile("str(arg0 + 16)");
	assert_true(is_equal());
	assert_int_equal(strlen((char *)skel->bss->run.strings[0]), 63);
	assert_int_equal(skel->bss->run.flags, SB_EXPR_CUT);
}

/* Random programs, which sb_expr_compile() would never make: any instructions in any order, with
 * any operands. The evaluator has to survive them. */
static void test_forged(void **state)
{
	struct sb_expr_insn *insn;
	unsigned int seed = 1;
	size_t nr, i, nr_bad = 0;

	for (nr = 0; nr < NR_FORGED; nr++) {
		for (i = 0; i < sizeof(skel->bss->expr); i++)
			((uint8_t *)&skel->bss->expr)[i] = (uint8_t)rand_r(&seed);
		for (i = 0; i < SB_EXPR_INSNS_MAX; i++) {
			insn = &skel->bss->expr.insn[i];
			insn->op = (uint8_t)(1 + insn->op % SB_EXPR_OP_MAX);
			/* Of the context: both sides know the same memory. */
			insn->at %= sizeof(skel->bss->context) - 64;
			insn->size %= 9;
			if (insn->op == SB_EXPR_OP_STR_DATA_LOC)
				insn->at = 24;
			if (insn->op == SB_EXPR_OP_STR_AT)
				insn->is_signed = 1;
		}
		nr_bad += !is_equal();
	}
	assert_int_equal(nr_bad, 0);
}

static void test_time(void **state)
{
	static const char *const texts[] = {
		"1",
		"len > 4096",
		"len > 4096 && retval < 0",
		"comm == \"nginx\"",
		"str(arg0) == \"GET /index.html\"",
	};
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	size_t i;

	skel->data->nr_rounds = 1000;
	for (i = 0; i < SB_ARRAY_SIZE(texts); i++) {
		compile(texts[i]);
		assert_int_equal(
			bpf_prog_test_run_opts(bpf_program__fd(skel->progs.drive_expr), &opts), 0);
		printf("%5llu ns: %s\n", (unsigned long long)skel->bss->ns / 1000, texts[i]);
	}
	skel->data->nr_rounds = 1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verifier), cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_cut),	 cmocka_unit_test(test_forged),
		cmocka_unit_test(test_time),
	};

	if (geteuid()) {
		printf("skipped: loading BPF programs needs root\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
