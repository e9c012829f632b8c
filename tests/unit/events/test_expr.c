// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What expr_oracle.py cannot ask a C compiler: strings, reads, sentences, bounds, forged
 * programs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "events/expr.h"
#include "unit/events/expr_native.h"

#define CONTEXT 0xffff888000001000ull
#define KERNEL	0xffffffff81000000ull
#define USER	0x7f0000001000ull

/* A tracepoint's record. */
static struct {
	uint32_t len;
	int32_t pid;
	char comm[16], full[4], wide[128];
	uint32_t path_loc, bad_loc, empty_loc;
	char path[9];
	uint64_t name;
} record = {
	.len = 5000,
	.pid = -7,
	.comm = "worker",
	.full = { 'a', 'b', 'c', 'd' },
	.path = "/bin/cat",
	.name = KERNEL,
};
static const char kernel_text[] = "vfs_read";
static char user_text[200] = "GET /";

#define IN_RECORD(member, field_kind, from)                                                \
	{                                                                                  \
		.name = #member, .kind = (field_kind), .source = (from),                   \
		.at = offsetof(__typeof__(record), member), .size = sizeof(record.member), \
		.is_arg = true,                                                            \
	}

static struct sb_expr_field fields[] = {
	IN_RECORD(len, SB_EXPR_INT, SB_EXPR_FROM_CONTEXT),
	IN_RECORD(pid, SB_EXPR_INT, SB_EXPR_FROM_CONTEXT),
	IN_RECORD(comm, SB_EXPR_STRING, SB_EXPR_FROM_CONTEXT),
	IN_RECORD(full, SB_EXPR_STRING, SB_EXPR_FROM_CONTEXT),
	IN_RECORD(wide, SB_EXPR_STRING, SB_EXPR_FROM_CONTEXT),
	IN_RECORD(path_loc, SB_EXPR_STRING, SB_EXPR_FROM_DATA_LOC),
	IN_RECORD(bad_loc, SB_EXPR_STRING, SB_EXPR_FROM_DATA_LOC),
	IN_RECORD(empty_loc, SB_EXPR_STRING, SB_EXPR_FROM_DATA_LOC),
	IN_RECORD(path, SB_EXPR_OTHER, SB_EXPR_FROM_CONTEXT),
	IN_RECORD(name, SB_EXPR_POINTER, SB_EXPR_FROM_CONTEXT),
	{ .name = "arg0", .kind = SB_EXPR_INT, .size = 8, .is_signed = true },
	{ .name = "retval",
	  .kind = SB_EXPR_INT,
	  .at = SB_EXPR_RETVAL,
	  .size = 4,
	  .is_signed = true },
	{ .name = "elapsed", .kind = SB_EXPR_INT, .at = SB_EXPR_ELAPSED, .size = 8 },
	{ .name = "gone",
	  .kind = SB_EXPR_INT,
	  .source = SB_EXPR_FROM_CONTEXT,
	  .at = 1 << 20,
	  .size = 8 },
	{},
	{},
	{},
	{},
};
static struct sb_expr_scope scope = { .fields = fields, .nr = SB_ARRAY_SIZE(fields) };
static struct sb_expr_run run;
static struct sb_expr expr;

static int setup(void **state)
{
	memcpy(fields + SB_ARRAY_SIZE(fields) - SB_EXPR_THREAD_FIELDS, sb_expr_thread_fields,
	       sizeof(sb_expr_thread_fields));
	record.path_loc = sizeof(record.path) << 16 | offsetof(__typeof__(record), path);
	record.bad_loc = 9 << 16 | 0xffff;
	record.empty_loc = 0;
	memset(record.wide, 'w', sizeof(record.wide));
	memset(user_text + 100, 'u', 63);
	fields[1].is_signed = true; /* pid */
	run = (struct sb_expr_run){ .context = CONTEXT };
	run.value[0] = USER;
	run.value[SB_EXPR_RETVAL] =
		0xdead0000fffffffeull; /* -2, and what the register had before */
	run.value[SB_EXPR_ELAPSED] = 12000000;
	run.value[SB_EXPR_TGID] = 100;
	memcpy(run.comm, "nginx", 5);
	scope.is_user_only = false;
	return 0;
}

/* Compile and evaluate @text; the result is in `run`. */
static void evaluate(const char *text)
{
	struct expr_memory memory = { {
		{ CONTEXT, &record, sizeof(record), 0 },
		{ KERNEL, kernel_text, sizeof(kernel_text), 0 },
		{ USER, user_text, sizeof(user_text), 1 },
	} };
	struct sb_reason reason = {};

	if (sb_expr_compile(text, &scope, &expr, &reason))
		fail_msg("%s: %s", text, reason.text);
	expr_run(&run, &expr, &memory);
}

static uint64_t integer(const char *text)
{
	evaluate(text);
	assert_int_equal(expr.kind, SB_EXPR_INT);
	assert_int_equal(run.nr_ints, 1);
	assert_int_equal(run.nr_strings, 0);
	return run.ints[0];
}

static const char *string(const char *text)
{
	evaluate(text);
	assert_int_equal(expr.kind, SB_EXPR_STRING);
	assert_int_equal(run.nr_ints, 0);
	assert_int_equal(run.nr_strings, 1);
	return (const char *)run.strings[0];
}

static void expect_error(const char *text, const char *expected)
{
	struct sb_expr before = expr;
	struct sb_reason reason = {};

	assert_int_equal(sb_expr_compile(text, &scope, &expr, &reason), -EINVAL);
	assert_string_equal(reason.text, expected);
	assert_memory_equal(&expr, &before, sizeof(expr));
	assert_int_equal(sb_expr_compile(text, &scope, &expr, NULL), -EINVAL);
}

static void test_integers(void **state)
{
	assert_int_equal(integer("args->len > 4096"), 1);
	assert_int_equal(integer("len > 4k && args.len < 1M"), 1);
	assert_int_equal(integer("retval < 0"), 1);
	assert_int_equal(integer("retval"), -2);
	assert_true(expr.result_is_signed);
	assert_int_equal(integer("elapsed / 1ms"), 12);
	assert_false(expr.result_is_signed);
	assert_int_equal(integer("elapsed >= 12ms && elapsed < 0x1s"), 1);
	assert_int_equal(integer("2G"), 2ull << 30);
	/* All of C's rules that surprise: see expr.h. */
	assert_int_equal(integer("len - 5001 < 0"), 1);
	assert_int_equal(integer("elapsed > -1"), 0);
	assert_int_equal(integer("(s64)elapsed > -1"), 1);
	assert_int_equal(integer("(arg0 | 1 << 63) / -1 < 0"), 0);
	assert_int_equal(integer("(1 << 63) / -1 < 0"), 1);
	assert_int_equal(integer("-0x8000000000000000"), 1ull << 63);
	assert_int_equal(integer("arg0 == 0x7f0000001000 ? 3 : 4"), 3);
}

/* A plain name is the thread's, args->NAME the event's. */
static void test_names(void **state)
{
	assert_int_equal(integer("pid"), 100);
	assert_int_equal(integer("args->pid"), -7);
	assert_string_equal(string("comm"), "nginx");
	assert_string_equal(string("args->comm"), "worker");
	assert_int_equal(integer("1 + 1"), 2);
	assert_int_equal(expr.values, 0);
	assert_false(expr.needs_comm);
	evaluate("comm == \"x\" || retval && arg0");
	assert_int_equal(expr.values, 1u << SB_EXPR_RETVAL | 1u << SB_EXPR_ARG0);
	assert_true(expr.needs_comm);
	evaluate("name");
	assert_int_equal(expr.kind, SB_EXPR_POINTER);
	assert_int_equal(run.ints[0], KERNEL);
}

static void test_strings(void **state)
{
	assert_int_equal(integer("comm == \"nginx\""), 1);
	assert_int_equal(integer("comm != \"nginx\""), 0);
	assert_int_equal(integer("comm == \"ngin\" || \"nginxx\" == comm"), 0);
	assert_int_equal(integer("str(arg0) == \"GET /\""), 1);
	assert_int_equal(integer("str(name) == \"vfs_read\" && args->path_loc == \"/bin/cat\""), 1);
	assert_int_equal(run.flags, 0);
	assert_string_equal(string("str(name + 4)"), "read");
	assert_string_equal(string("full"), "abcd"); /* no zero at its end */
	assert_int_equal(run.flags, 0);
	assert_string_equal(string("len > 1 ? \"big\" : comm"), "big");
	assert_string_equal(string("len < 1 ? \"big\" : comm"), "nginx");
	assert_string_equal(string("\"a\\\"b\\\\c\\n\\t\""), "a\"b\\c\n\t");
	assert_string_equal(string("empty_loc"), "");
	assert_int_equal(run.flags, 0);
	assert_int_equal(integer("(len ? comm : \"y\") == (pid == 1 ? \"x\" : str(arg0) == \"\" ? "
				 "\"z\" : \"nginx\")"),
			 1);
}

static void test_cut(void **state)
{
	char text[128], w[64] = "";

	memset(w, 'w', 63);
	assert_string_equal(string("wide"), w);
	assert_int_equal(run.flags, SB_EXPR_CUT);
	assert_int_equal(strlen(string("str(arg0 + 100)")), 63);
	assert_int_equal(run.flags, SB_EXPR_CUT);
	assert_int_equal(strlen(string("str(arg0 + 101)")), 62);
	assert_int_equal(run.flags, 0);
	w[62] = '\0';
	snprintf(text, sizeof(text), "wide == \"%s\"", w);
	assert_int_equal(integer(text), 0);
	snprintf(text, sizeof(text), "\"%sw\"", w);
	expect_error(text, "column 1: the string has more than 62 bytes");
}

static void test_bad_reads(void **state)
{
	assert_string_equal(string("str(1)"), "");
	assert_int_equal(run.flags, SB_EXPR_BAD_READ);
	assert_string_equal(string("bad_loc"), "");
	assert_int_equal(run.flags, SB_EXPR_BAD_READ);
	assert_int_equal(integer("gone"), 0);
	assert_int_equal(run.flags, SB_EXPR_BAD_READ);
	/* An address of the kernel, where only those of the process are to be read. */
	scope.is_user_only = true;
	assert_string_equal(string("str(name)"), "");
	assert_int_equal(run.flags, SB_EXPR_BAD_READ);
	assert_string_equal(string("str(arg0)"), "GET /");
	assert_int_equal(run.flags, 0);
}

/* What is not chosen is not evaluated. */
static void test_short_circuit(void **state)
{
	assert_int_equal(integer("1 / (len - 5000)"), 0);
	assert_int_equal(run.flags, SB_EXPR_DIV_ZERO);
	assert_int_equal(integer("7 % (len - 5000)"), 0);
	assert_int_equal(run.flags, SB_EXPR_DIV_ZERO);
	assert_int_equal(integer("len == 5000 || 1 / 0"), 1);
	assert_int_equal(run.flags, 0);
	assert_int_equal(integer("len != 5000 && gone"), 0);
	assert_int_equal(run.flags, 0);
	assert_int_equal(integer("len ? 2 : 1 / 0"), 2);
	assert_int_equal(run.flags, 0);
}

static void test_wrong_names(void **state)
{
	expect_error("args->lem > 1",
		     "column 7: there is no 'args->lem'; did you mean 'args->len'?");
	expect_error("1 + elapse", "column 5: there is no 'elapse'; did you mean 'elapsed'?");
	expect_error("args->retval",
		     "column 7: there is no 'args->retval'; there are: len, pid, comm, "
		     "full, wide, path_loc, bad_loc, empty_loc, path, name");
	expect_error("xyzzy",
		     "column 1: there is no 'xyzzy'; there are: len, pid, comm, full, wide, "
		     "path_loc, bad_loc, empty_loc, path, name, arg0, retval, elapsed, gone, "
		     "tid, cpu");
	expect_error("strlen(arg0)",
		     "column 1: there is no function 'strlen'; there are str(ADDRESS), "
		     "syscall(NUMBER), signal(NUMBER) and softirq(NUMBER)");
	expect_error("signal(comm)", "column 8: signal() takes a number, and this is a string");
	expect_error("arg0->len", "column 5: only 'args' has members: args->NAME");
	expect_error("path == \"x\"",
		     "column 1: 'path' is neither an integer nor a pointer nor a string");
}

static void test_syntax(void **state)
{
	expect_error("", "column 1: expected a number, a string, a name or '(', found the end");
	expect_error("len >",
		     "column 6: expected a number, a string, a name or '(', found the end");
	expect_error("len > * 2",
		     "column 7: expected a number, a string, a name or '(', found '*'");
	expect_error("(len", "column 5: expected an operator or ')', found the end");
	expect_error("len 7", "column 5: expected an operator or the end, found '7'");
	expect_error("len)", "column 4: expected an operator or the end, found ')'");
	expect_error("len ? 1", "column 8: expected an operator or ':', found the end");
	expect_error("args->7", "column 7: expected the name of an argument, found '7'");
	expect_error("len = 7",
		     "column 5: '=' would assign, which no expression can; '==' compares");
	expect_error("comm == 'a'",
		     "column 9: strings stand in double quotes, and there are no characters");
	expect_error("comm == \"a", "column 9: the string has no '\"' at its end");
	expect_error("comm == \"\\", "column 10: expected one of \\\" \\\\ \\n \\t");
	expect_error("len @ 1", "column 5: no expression has a '@'");
	expect_error("len \x01", "column 5: no expression has the byte 0x01");
	expect_error("12x",
		     "column 1: '12x' is not a number; behind one may stand k, M, G, ns, us, ms "
		     "or s");
	expect_error("017",
		     "column 1: expected a decimal or hexadecimal number without zeros before "
		     "it, found '017'");
	expect_error("18446744073709551616",
		     "column 1: '18446744073709551616' does not fit into 64 "
		     "bits");
	expect_error("1 + 0x8000000000000000k",
		     "column 5: '0x8000000000000000k' does not fit into 64 "
		     "bits");
	expect_error("(u8",
		     "column 2: there is no 'u8'; there are: len, pid, comm, full, wide, "
		     "path_loc, bad_loc, empty_loc, path, name, arg0, retval, elapsed, gone, "
		     "tid, cpu");
}

static void test_types(void **state)
{
	expect_error("comm == 1", "column 6: '==' cannot compare an integer with a string; "
				  "str(ADDRESS) is the string at an address");
	expect_error("comm < \"a\"", "column 6: '<' takes integers; strings have only == and !=");
	expect_error("comm + 1", "column 6: '+' takes integers; strings have only == and !=");
	expect_error("len && comm", "column 5: '&&' takes integers, and this is a string");
	expect_error("comm || len", "column 6: '||' takes integers, and this is a string");
	expect_error("!comm", "column 1: this operator takes an integer, and this is a string");
	expect_error("(int)comm", "column 1: a cast takes an integer, and this is a string");
	expect_error("str(comm)", "column 5: str() takes an address, and this is a string");
	expect_error("comm ? 1 : 2", "column 6: '?' takes an integer, and this is a string");
	expect_error("len ? 1 : comm",
		     "column 5: behind '?' stand an integer and a string; both have "
		     "to be of one kind");
}

/* Repeat @text @nr times, between @before and @after, and compile it. */
static void expect_bound(const char *before, const char *text, int nr, const char *after,
			 const char *expected)
{
	static char all[2 * SB_EXPR_TEXT_MAX];
	struct sb_reason reason = {};
	int i;

	strcpy(all, before);
	for (i = 0; i < nr; i++)
		strcat(all, text);
	strcat(all, after);
	if (!expected) {
		assert_int_equal(sb_expr_compile(all, &scope, &expr, &reason), 0);
		return;
	}
	assert_int_equal(sb_expr_compile(all, &scope, &expr, &reason), -EINVAL);
	if (!strstr(reason.text, expected))
		fail_msg("'%s' is not in '%s'", expected, reason.text);
}

static void test_bounds(void **state)
{
	expect_bound("1", " ", SB_EXPR_TEXT_MAX - 1, "", NULL);
	expect_bound("1", " ", SB_EXPR_TEXT_MAX, "", "more than 1024 bytes");
	expect_bound("", "(", SB_EXPR_NESTING_MAX - 1, "1)))))))))))))))))))))))))))))))", NULL);
	expect_bound("", "(", SB_EXPR_NESTING_MAX, "1", "nested more than 32 deep");
	expect_bound("", "-", 1000, "1", "nested more than 32 deep");
	expect_bound("", "(u8)", 200, "1", "nested more than 32 deep");
	expect_bound("", "1?", 400, "1", "more than 32 instructions");
	expect_bound("", "1?1:", 200, "1", "32");
	expect_bound("len", "+1", 15, "", NULL);
	expect_bound("len", "+1", 16, "", "more than 32 instructions");
	expect_bound("", "1+(", 7, "1)))))))", NULL);
	expect_bound("", "1+(", 8, "1))))))))", "more than 8 intermediate results");
	expect_bound("", "comm==(", 3, "comm==\"a\"?\"a\":\"b\")?\"a\":\"b\")?\"a\":\"b\")",
		     "more than 4 strings at a time");
	expect_bound("", "comm==(", 2, "comm==\"a\"?\"a\":\"b\")?\"a\":\"b\")", NULL);
	expect_bound("\"1\"==\"2\"&&\"3\"==\"4\"&&\"5\"==\"6\"&&\"7\"==\"8\"", "&&\"9\"==\"\"", 1,
		     "", "more than 8 different strings");
	assert_int_equal(
		integer("\"a\"==\"a\"&&\"a\"==\"a\"&&\"a\"==\"a\"&&\"a\"==\"a\"&&\"b\"==\"b\""), 1);
}

/* Whatever an instruction is, evaluation ends and touches nothing but `run`. */
static void test_forged(void **state)
{
	struct expr_memory memory = { { { CONTEXT, &record, sizeof(record), 0 } } };
	struct {
		uint64_t before[64];
		struct sb_expr_run run;
		uint64_t after[64];
	} guarded;
	struct sb_expr forged;
	unsigned int seed = 1;
	size_t i, nr;

	memset(&guarded, 0x5a, sizeof(guarded));
	for (nr = 0; nr < 20000; nr++) {
		for (i = 0; i < sizeof(forged); i++)
			((uint8_t *)&forged)[i] = (uint8_t)rand_r(&seed);
		for (i = 0; i < SB_EXPR_INSNS_MAX; i++)
			forged.insn[i].op %= SB_EXPR_OP_MAX + 1;
		assert_true(expr_run(&guarded.run, &forged, &memory) <= SB_EXPR_INSNS_MAX);
	}
	for (i = 0; i < SB_ARRAY_SIZE(guarded.before); i++) {
		assert_int_equal(guarded.before[i], 0x5a5a5a5a5a5a5a5aull);
		assert_int_equal(guarded.after[i], 0x5a5a5a5a5a5a5a5aull);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_integers, setup),
		cmocka_unit_test_setup(test_names, setup),
		cmocka_unit_test_setup(test_strings, setup),
		cmocka_unit_test_setup(test_cut, setup),
		cmocka_unit_test_setup(test_bad_reads, setup),
		cmocka_unit_test_setup(test_short_circuit, setup),
		cmocka_unit_test_setup(test_wrong_names, setup),
		cmocka_unit_test_setup(test_syntax, setup),
		cmocka_unit_test_setup(test_types, setup),
		cmocka_unit_test_setup(test_bounds, setup),
		cmocka_unit_test_setup(test_forged, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
