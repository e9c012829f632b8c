// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Descriptions of arguments: of tracepoints, as tracefs has them, and of USDT probes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "events/format.h"

static const char format[] = "name: test\n"
			     "ID: 311\n"
			     "format:\n"
			     "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
			     "\n"
			     "\tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n"
			     "\tfield:pid_t old_pid;\toffset:12;\tsize:4;\tsigned:1;\n"
			     "\tfield:char comm[16];\toffset:16;\tsize:16;\tsigned:0;\n"
			     "\tfield:const char *name;\toffset:32;\tsize:8;\tsigned:0;\n"
			     "\tfield:unsigned long flags;\toffset:40;\tsize:8;\tsigned:0;\n"
			     "\tfield:__u8 saddr[4];\toffset:48;\tsize:4;\tsigned:0;\n"
			     "\tfield:__data_loc __u8[] data;\toffset:52;\tsize:4;\tsigned:0;\n"
			     "\tfield:__rel_loc char[] late;\toffset:56;\tsize:4;\tsigned:0;\n"
			     "\tfield:struct pair both;\toffset:60;\tsize:8;\tsigned:0;\n"
			     "\tfield:u8 odd;\toffset:68;\tsize:3;\tsigned:0;\n"
			     "\n"
			     "print fmt: \"field:int x;\toffset:8;\tsize:4;\tsigned:1;\", REC->x\n";

static const struct sb_expr_field fields_of_format[] = {
	{ "filename", SB_EXPR_STRING, SB_EXPR_FROM_DATA_LOC, 8, 4, false, true },
	{ "old_pid", SB_EXPR_INT, SB_EXPR_FROM_CONTEXT, 12, 4, true, true },
	{ "comm", SB_EXPR_STRING, SB_EXPR_FROM_CONTEXT, 16, 16, false, true },
	{ "name", SB_EXPR_POINTER, SB_EXPR_FROM_CONTEXT, 32, 8, false, true },
	{ "flags", SB_EXPR_INT, SB_EXPR_FROM_CONTEXT, 40, 8, false, true },
	{ "saddr", SB_EXPR_OTHER, SB_EXPR_FROM_CONTEXT, 48, 4, false, true },
	{ "data", SB_EXPR_OTHER, SB_EXPR_FROM_CONTEXT, 52, 4, false, true },
	{ "late", SB_EXPR_OTHER, SB_EXPR_FROM_CONTEXT, 56, 4, false, true },
	{ "both", SB_EXPR_OTHER, SB_EXPR_FROM_CONTEXT, 60, 8, false, true },
	{ "odd", SB_EXPR_OTHER, SB_EXPR_FROM_CONTEXT, 68, 3, false, true },
};

static void assert_field(const struct sb_expr_field *field, const struct sb_expr_field *want)
{
	print_message("%s\n", want->name);
	assert_string_equal(field->name, want->name);
	assert_int_equal(field->kind, want->kind);
	assert_int_equal(field->source, want->source);
	assert_int_equal(field->at, want->at);
	assert_int_equal(field->size, want->size);
	assert_int_equal(field->is_signed, want->is_signed);
	assert_int_equal(field->is_arg, want->is_arg);
}

static void test_format(void **state)
{
	sb_cleanup(sb_freep) char *text = strdup(format);
	sb_vec_expr_field fields = {};
	size_t i;

	assert_int_equal(sb_format_parse(text, true, &fields), 0);
	assert_int_equal(fields.nr, SB_ARRAY_SIZE(fields_of_format));
	for (i = 0; i < fields.nr; i++)
		assert_field(&fields.at[i], &fields_of_format[i]);
	sb_vec_release(&fields);
}

static void test_described(void **state)
{
	char text[] = "name: x\nformat:\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
		      "\n\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
		      "\tfield:__data_loc char[] path;\toffset:24;\tsize:4;\tsigned:0;\n"
		      "\tfield:broken\n";
	sb_cleanup(sb_str_release) struct sb_str str = {};

	assert_int_equal(sb_format_describe(text, &str), 0);
	assert_string_equal(str.s, "char comm[16], char[] path");
}

/* The record of a system call: what some kernels say to be behind its arguments is not there. */
static void test_format_of_a_call(void **state)
{
	sb_cleanup(sb_freep) char *text = strdup(format);
	sb_vec_expr_field fields = {};

	assert_int_equal(sb_format_parse(text, false, &fields), 0);
	assert_int_equal(fields.at[0].kind, SB_EXPR_OTHER);
	assert_int_equal(fields.at[2].kind, SB_EXPR_STRING);
	sb_vec_release(&fields);
}

static void test_bad_format(void **state)
{
	static const char *const lines[] = {
		"",
		"field:",
		"field:;",
		"field:int;offset:8;size:4;signed:1;",
		"field:int 1x;offset:8;size:4;signed:1;",
		"field:int x[4;offset:8;size:4;signed:1;",
		"field:int ];offset:8;size:4;signed:1;",
		"field:]];offset:8;size:4;signed:1;",
		"field:int x;offset:8;size:4",
		"field:int x;offset:8;size:4;",
		"field:int x;offset:-8;size:4;signed:1;",
		"field:int x;offset:99999999999999999999;size:4;signed:1;",
		"field:int x;offset:70000;size:4;signed:1;",
		"field:int x;size:4;offset:8;signed:1;",
		"offset:8;size:4;signed:1;",
	};
	sb_vec_expr_field fields = {};
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(lines); i++) {
		sb_cleanup(sb_freep) char *text = strdup(lines[i]);

		print_message("%s\n", lines[i]);
		assert_int_equal(sb_format_parse(text, true, &fields), 0);
		/* Not a type of one word that is taken for a name. */
		assert_int_equal(fields.nr, 0);
	}
	sb_vec_release(&fields);
}

#ifdef SB_MACHINE_X86

#define NO SB_TRACE_NO_REG

static void test_usdt(void **state)
{
	static const struct {
		const char *text;
		uint32_t size;
		bool is_signed;
		struct sb_trace_arg where;
	} rows[] = {
		{ "8@%rdi", 8, false, { 0, 112, NO, 0, 0, 0 } },
		{ "-4@%esi", 4, true, { 0, 104, NO, 0, 0, 0 } },
		{ "1@%ah", 1, false, { 0, 81, NO, 0, 0, 0 } },
		{ "2@%r10w", 2, false, { 0, 56, NO, 0, 0, 0 } },
		{ "8@$5", 8, false, { 5, NO, NO, 0, 0, 0 } },
		{ "-4@$-1", 4, true, { (uint64_t)-1, NO, NO, 0, 0, 0 } },
		{ "-4@-20(%rbp)", 4, true, { (uint64_t)-20, 32, NO, 0, 4, 0 } },
		{ "8@(%rsp)", 8, false, { 0, 152, NO, 0, 8, 0 } },
		{ "8@0x10(%rax,%rbx,8)", 8, false, { 16, 80, 40, 3, 8, 0 } },
		{ "4@(%rax,%rbx)", 4, false, { 0, 80, 40, 0, 4, 0 } },
		{ "4@64(,%rbx,4)", 4, false, { 64, NO, 40, 2, 4, 0 } },
	};
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(rows); i++) {
		struct sb_trace_arg args[SB_TRACE_ARGS_MAX] = {};
		sb_vec_expr_field fields = {};

		print_message("%s\n", rows[i].text);
		assert_int_equal(sb_usdt_parse(rows[i].text, args, &fields), 0);
		assert_int_equal(fields.nr, 1);
		assert_int_equal(fields.at[0].kind, SB_EXPR_INT);
		assert_int_equal(fields.at[0].size, rows[i].size);
		assert_int_equal(fields.at[0].is_signed, rows[i].is_signed);
		assert_memory_equal(&args[0], &rows[i].where, sizeof(args[0]));
		sb_vec_release(&fields);
	}
}

#endif

/* What cannot be read has a name, so that a sentence can say that it cannot be used. */
static void test_bad_usdt(void **state)
{
	static const char *const rows[] = {
		"8",
		"@",
		"8@",
		"%rdi",
		"3@%rdi",
		"16@%rdi",
		"-9@%rdi",
		"8@%nosuch",
		"8f@%xmm0",
		"4@global(%rip)",
		"8@$",
		"8@$x",
		"8@(%rax",
		"8@(%rax)x",
		"8@()",
		"8@(%rax,",
		"8@(%rax,%rbx,3)",
		"8@(%rax,%rbx,16)",
		"8@(%rax,%rbx,-1)",
		"8@[x0",
		"99999999999999999999@%rdi",
		"8@99999999999999999999999999999999999999999999999999999999999999(%rdi)",
	};
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(rows); i++) {
		struct sb_trace_arg args[SB_TRACE_ARGS_MAX] = {};
		sb_vec_expr_field fields = {};

		print_message("%s\n", rows[i]);
		assert_int_equal(sb_usdt_parse(rows[i], args, &fields), 0);
		assert_int_equal(fields.nr, 1);
		assert_int_equal(fields.at[0].kind, SB_EXPR_OTHER);
		assert_string_equal(fields.at[0].name, "arg0");
		sb_vec_release(&fields);
	}
}

static void test_many_usdt(void **state)
{
	struct sb_trace_arg args[SB_TRACE_ARGS_MAX + 1] = {};
	sb_vec_expr_field fields = {};

	assert_int_equal(
		sb_usdt_parse("  1@a 1@b  1@[c, d] 1@e 1@f 1@g 1@h 1@i 1@j 1@k 1@l 1@m 1@n ", args,
			      &fields),
		0);
	assert_int_equal(fields.nr, SB_TRACE_ARGS_MAX);
	assert_string_equal(fields.at[11].name, "arg11");
	assert_int_equal(args[SB_TRACE_ARGS_MAX].base, 0);
	sb_vec_release(&fields);
	assert_int_equal(sb_usdt_parse("", args, &fields), 0);
	assert_int_equal(fields.nr, 0);
}

static void test_function(void **state)
{
	sb_vec_expr_field fields = {};

	assert_int_equal(sb_function_fields(false, SB_ARGS_OF_C, &fields), 0);
	assert_int_equal(sb_function_fields(true, SB_ARGS_OF_C, &fields), 0);
	assert_int_equal(fields.nr, 7);
	assert_string_equal(fields.at[5].name, "arg5");
	assert_string_equal(fields.at[6].name, "retval");
	/* Go's first argument is where its results, and those of C, are. */
	assert_int_equal(sb_function_fields(false, SB_ARGS_OF_GO, &fields), 0);
	assert_int_equal(fields.nr, 13);
	assert_int_equal(sb_function_fields(false, SB_ARGS_ON_STACK, &fields), 0);
	assert_int_equal(sb_function_fields(true, SB_ARGS_ON_STACK, &fields), 0);
	assert_int_equal(fields.nr, 13);
	assert_string_equal(fields.at[7].name, "arg0");
	assert_int_equal(fields.at[7].at, fields.at[6].at);
	sb_vec_release(&fields);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_described),
		cmocka_unit_test(test_format_of_a_call),
		cmocka_unit_test(test_bad_format),
#ifdef SB_MACHINE_X86
		cmocka_unit_test(test_usdt),
#endif
		cmocka_unit_test(test_bad_usdt),
		cmocka_unit_test(test_many_usdt),
		cmocka_unit_test(test_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
