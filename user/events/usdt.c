// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Arguments in registers. Those of USDT probes are described as <sys/sdt.h> lets the assembler
 * write them: SIZE@OPERAND, where a negative size is that of a signed number. Offsets are those of
 * struct pt_regs (asm/ptrace.h), which is the context of the BPF programs.
 */
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/num.h"
#include "base/str.h"
#include "bpf/abi/sb_abi_latency.h"
#include "events/format.h"

#define ARG_BYTES 64u /* of one descriptor */

static const char *const arg_names[SB_TRACE_ARGS_MAX] = {
	"arg0", "arg1", "arg2", "arg3", "arg4",	 "arg5",
	"arg6", "arg7", "arg8", "arg9", "arg10", "arg11",
};

#ifdef SB_MACHINE_ARM64

static const uint16_t function_args[] = { 0, 8, 16, 24, 32, 40 };
#define go_args	  function_args
#define RETVAL_AT 0u

/* "x0", "w0", "sp". Return: its offset; SB_TRACE_NO_REG: there is no such register. */
static uint16_t find_register(const char *name)
{
	uint64_t nr;

	if (sb_streq(name, "sp"))
		return 31 * 8;
	if ((name[0] != 'x' && name[0] != 'w') || sb_parse_u64(name + 1, 30, &nr))
		return SB_TRACE_NO_REG;
	return (uint16_t)(8 * nr);
}

#else

static const uint16_t function_args[] = { 112, 104, 96, 88, 72, 64 }; /* rdi rsi rdx rcx r8 r9 */
static const uint16_t go_args[] = { 80, 40, 88, 112, 104, 72 };	      /* rax rbx rcx rdi rsi r8 */
#define RETVAL_AT 80u /* rax */

/* "%rdi", "%edi", "%dil". Return: its offset; SB_TRACE_NO_REG: there is no such register. */
static uint16_t find_register(const char *name)
{
	static const struct {
		const char *names[5];
		uint16_t at;
	} registers[] = {
		{ { "r15", "r15d", "r15w", "r15b" }, 0 },
		{ { "r14", "r14d", "r14w", "r14b" }, 8 },
		{ { "r13", "r13d", "r13w", "r13b" }, 16 },
		{ { "r12", "r12d", "r12w", "r12b" }, 24 },
		{ { "rbp", "ebp", "bp", "bpl" }, 32 },
		{ { "rbx", "ebx", "bx", "bl" }, 40 },
		{ { "r11", "r11d", "r11w", "r11b" }, 48 },
		{ { "r10", "r10d", "r10w", "r10b" }, 56 },
		{ { "r9", "r9d", "r9w", "r9b" }, 64 },
		{ { "r8", "r8d", "r8w", "r8b" }, 72 },
		{ { "rax", "eax", "ax", "al" }, 80 },
		{ { "rcx", "ecx", "cx", "cl" }, 88 },
		{ { "rdx", "edx", "dx", "dl" }, 96 },
		{ { "rsi", "esi", "si", "sil" }, 104 },
		{ { "rdi", "edi", "di", "dil" }, 112 },
		{ { "rsp", "esp", "sp", "spl" }, 152 },
		{ { "bh" }, 41 },
		{ { "ah" }, 81 },
		{ { "ch" }, 89 },
		{ { "dh" }, 97 },
	};
	size_t i, k;

	for (i = 0; *name == '%' && i < SB_ARRAY_SIZE(registers); i++)
		for (k = 0; registers[i].names[k]; k++)
			if (sb_streq(registers[i].names[k], name + 1))
				return registers[i].at;
	return SB_TRACE_NO_REG;
}

#endif

/* Parse a number with or without a sign, "-20", "0x10". Return: false: it is none. */
static bool parse_number(const char *text, __u64 *ret)
{
	bool is_negative = *text == '-';
	uint64_t val;

	text += is_negative;
	if (text[0] == '0' && text[1] == 'x' ? sb_parse_hex(text, &val)
					     : sb_parse_u64(text, UINT64_MAX, &val))
		return false;
	*ret = is_negative ? 0 - val : val;
	return true;
}

/* Cut @text at the first @separator. Return: what follows; NULL: there is none. */
static char *cut(char *text, char separator)
{
	char *at = strchr(text, separator);

	if (at)
		*at++ = '\0';
	return at;
}

#ifdef SB_MACHINE_ARM64

/* The inside of "[sp, 60]", "[x0]", "[x0,x1]". */
static bool parse_memory(char *text, struct sb_trace_arg *ret)
{
	char *close = cut(text, ']'), *offset = cut(text, ',');
	__u64 add = 0;

	if (!close || *close)
		return false;
	ret->base = find_register(text);
	if (offset) {
		offset += strspn(offset, " ");
		ret->index = find_register(offset);
		if (ret->index == SB_TRACE_NO_REG && !parse_number(offset, &add))
			return false;
	}
	ret->add = add;
	return ret->base != SB_TRACE_NO_REG;
}

static bool parse_operand(char *text, uint8_t size, struct sb_trace_arg *ret)
{
	if (*text == '[') {
		ret->size = size;
		return parse_memory(text + 1, ret);
	}
	ret->base = find_register(text);
	if (ret->base != SB_TRACE_NO_REG)
		return true;
	return parse_number(text, &ret->add);
}

#else

/* "-20(%rbp)", "(%rax,%rbx,8)". */
static bool parse_memory(char *text, struct sb_trace_arg *ret)
{
	char *base = cut(text, '('), *close = base ? cut(base, ')') : NULL, *index, *scale;
	__u64 add = 0, times = 1;

	if (!close || *close || (*text && !parse_number(text, &add)))
		return false;
	index = cut(base, ',');
	scale = index ? cut(index, ',') : NULL;
	ret->add = add;
	ret->base = find_register(base);
	if (index)
		ret->index = find_register(index);
	if ((ret->base == SB_TRACE_NO_REG && *base) || (index && ret->index == SB_TRACE_NO_REG))
		return false;
	if (scale && !parse_number(scale, &times))
		return false;
	for (; times > 1 && !(times & 1) && ret->shift < 3; times >>= 1)
		ret->shift++;
	return times == 1 && (*base || index);
}

static bool parse_operand(char *text, uint8_t size, struct sb_trace_arg *ret)
{
	if (*text == '$')
		return parse_number(text + 1, &ret->add);
	ret->base = find_register(text);
	if (ret->base != SB_TRACE_NO_REG)
		return true;
	ret->size = size;
	return parse_memory(text, ret);
}

#endif

/* Return: the length of the descriptor at @text. On arm64 there are blanks between brackets. */
static size_t length_of(const char *text)
{
	bool is_inside = false;
	size_t i;

	for (i = 0; text[i] && (is_inside || text[i] != ' '); i++)
		is_inside = text[i] == '[' || (is_inside && text[i] != ']');
	return i;
}

/* Take one descriptor apart; if that is not possible, @field stays SB_EXPR_OTHER. */
static void parse_arg(const char *text, size_t len, struct sb_expr_field *field,
		      struct sb_trace_arg *ret)
{
	char copy[ARG_BYTES], *operand;
	uint64_t size;

	if (len >= sizeof(copy))
		return;
	memcpy(copy, text, len);
	copy[len] = '\0';
	operand = cut(copy, '@');
	field->is_signed = *copy == '-';
	if (!operand || sb_parse_u64(copy + field->is_signed, 8, &size))
		return;
	if ((size == 1 || size == 2 || size == 4 || size == 8) &&
	    parse_operand(operand, (uint8_t)size, ret)) {
		field->kind = SB_EXPR_INT;
		field->size = (uint32_t)size;
	}
}

int sb_usdt_parse(const char *text, struct sb_trace_arg *args, sb_vec_expr_field *fields)
{
	uint32_t i;
	size_t len;
	int err = 0;

	text += strspn(text, " ");
	for (i = 0; i < SB_TRACE_ARGS_MAX && *text && !err; i++) {
		struct sb_expr_field field = { .name = arg_names[i],
					       .kind = SB_EXPR_OTHER,
					       .source = SB_EXPR_FROM_VALUE,
					       .at = SB_EXPR_ARG0 + i,
					       .is_arg = true };

		args[i] =
			(struct sb_trace_arg){ .base = SB_TRACE_NO_REG, .index = SB_TRACE_NO_REG };
		len = length_of(text);
		parse_arg(text, len, &field, &args[i]);
		err = sb_vec_push(fields, field);
		text += len;
		text += strspn(text, " ");
	}
	return err;
}

static int add_register(const char *name, uint32_t at, sb_vec_expr_field *fields)
{
	return sb_vec_push(fields, (struct sb_expr_field){ .name = name,
							   .kind = SB_EXPR_INT,
							   .source = SB_EXPR_FROM_CONTEXT,
							   .at = at,
							   .size = 8,
							   .is_signed = true,
							   .is_arg = true });
}

int sb_call_fields(bool is_of_go, sb_vec_expr_field *fields)
{
	uint32_t i;
	int err = 0;

	for (i = 0; i < SB_CALL_ARGS && !is_of_go && !err; i++)
		err = add_register(arg_names[i], i * 8, fields);
	if (!err)
		err = add_register("retval", offsetof(struct sb_call_context, retval), fields);
	return err ? err
		   : add_register("elapsed", offsetof(struct sb_call_context, elapsed_ns), fields);
}

int sb_function_fields(bool is_return, enum sb_probe_args args, sb_vec_expr_field *fields)
{
	const uint16_t *registers = args == SB_ARGS_OF_GO ? go_args : function_args;
	size_t i;
	int err = 0;

	if (args == SB_ARGS_ON_STACK)
		return 0;
	if (is_return)
		return add_register("retval", RETVAL_AT, fields);
	for (i = 0; i < SB_ARRAY_SIZE(function_args) && !err; i++)
		err = add_register(arg_names[i], registers[i], fields);
	return err;
}
