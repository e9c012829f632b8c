// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A recursive-descent parser with one token of lookahead (two for casts), which emits code while it
 * parses. Binary operators are parsed by precedence climbing. All operands know their type, so
 * the code says of each operator whether it is signed. Recursion is bounded by SB_EXPR_NESTING_MAX,
 * and both stacks of the evaluator are followed here (effects[]), so that no program can exceed
 * them.
 */
#include "events/expr.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "events/expr_lex.h"

#define NAMES_SHOWN_BYTES 160 /* of the names that a sentence lists */

const struct sb_expr_field sb_expr_thread_fields[SB_EXPR_THREAD_FIELDS] = {
	{ .name = "comm",
	  .kind = SB_EXPR_STRING,
	  .source = SB_EXPR_FROM_COMM,
	  .size = SB_COMM_LEN },
	{ .name = "pid", .kind = SB_EXPR_INT, .at = SB_EXPR_TGID, .size = 4 },
	{ .name = "tid", .kind = SB_EXPR_INT, .at = SB_EXPR_TID, .size = 4 },
	{ .name = "cpu", .kind = SB_EXPR_INT, .at = SB_EXPR_CPU, .size = 4 },
};

struct parser {
	struct sb_lexer lexer;
	const struct sb_expr_scope *scope;
	struct sb_expr expr;
	int nr_ints, nr_strings; /* heights of the evaluator's stacks here */
	uint32_t nr_consts;
	uint32_t nesting;
};

/* What stands on top of one of the stacks. */
struct operand {
	enum sb_expr_kind kind;
	bool is_unsigned; /* an integer with 64 bits that is */
	bool is_bool;	  /* it is 1 or 0 */
};

static const struct operand boolean = { .kind = SB_EXPR_INT, .is_bool = true };

/* By how many elements an instruction changes each stack. */
static const struct effect {
	int8_t ints, strings;
} effects[SB_EXPR_OP_MAX] = {
	[SB_EXPR_OP_CONST] = { 1, 0 },	      [SB_EXPR_OP_VALUE] = { 1, 0 },
	[SB_EXPR_OP_CONTEXT] = { 1, 0 },      [SB_EXPR_OP_STR_CONST] = { 0, 1 },
	[SB_EXPR_OP_STR_COMM] = { 0, 1 },     [SB_EXPR_OP_STR_CONTEXT] = { 0, 1 },
	[SB_EXPR_OP_STR_DATA_LOC] = { 0, 1 }, [SB_EXPR_OP_STR_AT] = { -1, 1 },
	[SB_EXPR_OP_STR_EQ] = { 1, -2 },      [SB_EXPR_OP_STR_NE] = { 1, -2 },
	[SB_EXPR_OP_JUMP_ZERO] = { -1, 0 },   [SB_EXPR_OP_AND] = { -1, 0 },
	[SB_EXPR_OP_OR] = { -1, 0 },	      [SB_EXPR_OP_ADD] = { -1, 0 },
	[SB_EXPR_OP_SUB] = { -1, 0 },	      [SB_EXPR_OP_MUL] = { -1, 0 },
	[SB_EXPR_OP_DIV] = { -1, 0 },	      [SB_EXPR_OP_MOD] = { -1, 0 },
	[SB_EXPR_OP_SHL] = { -1, 0 },	      [SB_EXPR_OP_SHR] = { -1, 0 },
	[SB_EXPR_OP_BIT_AND] = { -1, 0 },     [SB_EXPR_OP_BIT_OR] = { -1, 0 },
	[SB_EXPR_OP_BIT_XOR] = { -1, 0 },     [SB_EXPR_OP_EQ] = { -1, 0 },
	[SB_EXPR_OP_NE] = { -1, 0 },	      [SB_EXPR_OP_LT] = { -1, 0 },
	[SB_EXPR_OP_LE] = { -1, 0 },	      [SB_EXPR_OP_GT] = { -1, 0 },
	[SB_EXPR_OP_GE] = { -1, 0 },
};

/* Binary operators; those with a higher precedence bind more tightly. */
static const struct binary {
	const char *sign;
	uint8_t precedence;
	enum sb_expr_op op;
} binaries[] = {
	{ "*", 10, SB_EXPR_OP_MUL },	{ "/", 10, SB_EXPR_OP_DIV },
	{ "%", 10, SB_EXPR_OP_MOD },	{ "+", 9, SB_EXPR_OP_ADD },
	{ "-", 9, SB_EXPR_OP_SUB },	{ "<<", 8, SB_EXPR_OP_SHL },
	{ ">>", 8, SB_EXPR_OP_SHR },	{ "<", 7, SB_EXPR_OP_LT },
	{ "<=", 7, SB_EXPR_OP_LE },	{ ">", 7, SB_EXPR_OP_GT },
	{ ">=", 7, SB_EXPR_OP_GE },	{ "==", 6, SB_EXPR_OP_EQ },
	{ "!=", 6, SB_EXPR_OP_NE },	{ "&", 5, SB_EXPR_OP_BIT_AND },
	{ "^", 4, SB_EXPR_OP_BIT_XOR }, { "|", 3, SB_EXPR_OP_BIT_OR },
	{ "&&", 2, SB_EXPR_OP_AND },	{ "||", 1, SB_EXPR_OP_OR },
};
#define PRECEDENCE_MIN 1

/* Names of integer types, behind "unsigned" or "signed", or alone. */
static const struct type {
	const char *name;
	uint8_t size;
	bool is_signed;
} types[] = {
	{ "s8", 1, true },	  { "s16", 2, true },	    { "s32", 4, true },
	{ "s64", 8, true },	  { "u8", 1, false },	    { "u16", 2, false },
	{ "u32", 4, false },	  { "u64", 8, false },	    { "int8_t", 1, true },
	{ "int16_t", 2, true },	  { "int32_t", 4, true },   { "int64_t", 8, true },
	{ "uint8_t", 1, false },  { "uint16_t", 2, false }, { "uint32_t", 4, false },
	{ "uint64_t", 8, false }, { "char", 1, true },	    { "short", 2, true },
	{ "int", 4, true },	  { "long", 8, true },	    { "size_t", 8, false },
};

/* Functions of one integer. Those with names for it leave it as it is. */
static const struct function {
	const char *name;
	enum sb_expr_kind kind; /* of the result */
	const char *takes;
} functions[] = {
	{ "str", SB_EXPR_STRING, "an address" },
	{ "syscall", SB_EXPR_SYSCALL, "a number" },
	{ "signal", SB_EXPR_SIGNAL, "a number" },
	{ "softirq", SB_EXPR_SOFTIRQ, "a number" },
};

static int parse_expr(struct parser *p, struct operand *ret);

static bool is_int(const struct operand *operand)
{
	return operand->kind != SB_EXPR_STRING;
}

/* Append an instruction. Return: 0; -EINVAL: there are too many, or a stack becomes too high. */
static int emit(struct parser *p, struct sb_expr_insn insn)
{
	size_t column = p->lexer.token.column;

	if (p->expr.nr_insns == SB_EXPR_INSNS_MAX)
		return sb_lex_fail(&p->lexer, column,
				   "the expression is too long up to here: it takes more than %u "
				   "instructions",
				   SB_EXPR_INSNS_MAX);
	p->expr.insn[p->expr.nr_insns++] = insn;
	p->nr_ints += effects[insn.op].ints;
	p->nr_strings += effects[insn.op].strings;
	if (p->nr_ints > (int)SB_EXPR_INTS_MAX)
		return sb_lex_fail(
			&p->lexer, column,
			"the expression has more than %u intermediate results up to here",
			SB_EXPR_INTS_MAX);
	if (p->nr_strings > (int)SB_EXPR_STRINGS_MAX)
		return sb_lex_fail(&p->lexer, column,
				   "the expression has more than %u strings at a time up to here",
				   SB_EXPR_STRINGS_MAX);
	return 0;
}

static int emit_op(struct parser *p, enum sb_expr_op op)
{
	return emit(p, (struct sb_expr_insn){ .op = (uint8_t)op });
}

/* Make the jump at @at go to what is emitted next. */
static void land(struct parser *p, uint32_t at)
{
	p->expr.insn[at].at = p->expr.nr_insns;
}

/* The token has to be this sign; go on behind it. */
static int expect(struct parser *p, const char *sign, const char *expected)
{
	if (!sb_lex_is(&p->lexer, sign))
		return sb_lex_unexpected(&p->lexer, expected);
	return sb_lex_next(&p->lexer);
}

/* Enter a construct that can contain itself; the caller leaves it by p->nesting--. */
static int nest(struct parser *p)
{
	if (++p->nesting > SB_EXPR_NESTING_MAX)
		return sb_lex_fail(&p->lexer, p->lexer.token.column,
				   "the expression is nested more than %d deep",
				   SB_EXPR_NESTING_MAX);
	return 0;
}

static int parse_number(struct parser *p, struct operand *ret)
{
	uint64_t number = p->lexer.token.number;
	int err;

	ret->kind = SB_EXPR_INT;
	ret->is_unsigned = number > INT64_MAX;
	err = emit(p, (struct sb_expr_insn){ .op = SB_EXPR_OP_CONST, .imm = number });
	return err ? err : sb_lex_next(&p->lexer);
}

static int parse_string(struct parser *p, struct operand *ret)
{
	const char *string = p->lexer.token.string;
	uint32_t i;
	int err;

	for (i = 0; i < p->nr_consts; i++)
		if (!memcmp(p->expr.string[i], string, sizeof(p->expr.string[i])))
			break;
	if (i == SB_EXPR_CONSTS_MAX)
		return sb_lex_fail(&p->lexer, p->lexer.token.column,
				   "the expression has more than %u different strings",
				   SB_EXPR_CONSTS_MAX);
	if (i == p->nr_consts)
		memcpy(p->expr.string[p->nr_consts++], string, sizeof(p->expr.string[i]));
	ret->kind = SB_EXPR_STRING;
	err = emit(p, (struct sb_expr_insn){ .op = SB_EXPR_OP_STR_CONST, .at = i });
	return err ? err : sb_lex_next(&p->lexer);
}

/* Return: whether a list of names has the field: each name once, and only those that are meant. */
static bool is_listed(const struct sb_expr_scope *scope, size_t at, bool is_arg)
{
	size_t i;

	if (is_arg)
		return scope->fields[at].is_arg;
	for (i = 0; i < at; i++)
		if (!strcmp(scope->fields[i].name, scope->fields[at].name))
			return false;
	return true;
}

/*
 * "arg0, arg1, comm": the names of the scope, and "..." if there is no room for all of them.
 * @is_arg: only those of arguments
 */
static void list_names(const struct sb_expr_scope *scope, bool is_arg, char *text, size_t bytes)
{
	size_t used = 0, i;
	int nr;

	text[0] = '\0';
	for (i = 0; i < scope->nr; i++) {
		if (!is_listed(scope, i, is_arg))
			continue;
		nr = snprintf(text + used, bytes - used, "%s%s", used ? ", " : "",
			      scope->fields[i].name);
		if ((size_t)nr + sizeof(", ...") > bytes - used) {
			snprintf(text + used, bytes - used, "%s...", used ? ", " : "");
			return;
		}
		used += (size_t)nr;
	}
}

/* Say that there is no such name, and which one is near. @is_arg: only args->NAME is meant. */
static int fail_name(struct parser *p, const struct sb_token *name, bool is_arg)
{
	const struct sb_expr_scope *scope = p->scope;
	char typed[SB_EXPR_STRING_MAX + 1] = "", names[NAMES_SHOWN_BYTES];
	struct sb_nearest nearest = { .typed = typed };
	const char *args = is_arg ? "args->" : "";
	size_t i;

	memcpy(typed, name->text, name->len < sizeof(typed) ? name->len : sizeof(typed) - 1);
	for (i = 0; i < scope->nr; i++)
		if (!is_arg || scope->fields[i].is_arg)
			sb_nearest_offer(&nearest, scope->fields[i].name);
	if (nearest.name)
		return sb_lex_fail(&p->lexer, name->column,
				   "there is no '%s%s'; did you mean '%s%s'?", args, typed, args,
				   nearest.name);
	if (!scope->nr)
		return sb_lex_fail(&p->lexer, name->column,
				   "there is no '%s%s', nor any other name", args, typed);
	list_names(scope, is_arg, names, sizeof(names));
	return sb_lex_fail(&p->lexer, name->column, "there is no '%s%s'; there are: %s", args,
			   typed, names);
}

/* Return: the field that a name means, or NULL. A plain name prefers what is no argument. */
static const struct sb_expr_field *find_field(const struct sb_expr_scope *scope,
					      const struct sb_token *name, bool is_arg)
{
	const struct sb_expr_field *found = NULL, *field;

	for (field = scope->fields; field < scope->fields + scope->nr; field++) {
		if (strlen(field->name) != name->len ||
		    memcmp(field->name, name->text, name->len) || (is_arg && !field->is_arg))
			continue;
		if (is_arg || !field->is_arg)
			return field;
		found = found ? found : field;
	}
	return found;
}

/* Return: whether the field is one that the evaluator can load. */
static bool is_usable(const struct sb_expr_field *field)
{
	switch (field->kind) {
	case SB_EXPR_INT:
		return (field->size == 1 || field->size == 2 || field->size == 4 ||
			field->size == 8) &&
		       (field->source == SB_EXPR_FROM_CONTEXT ||
			(field->source == SB_EXPR_FROM_VALUE && field->at < SB_EXPR_VALUES_MAX));
	case SB_EXPR_POINTER:
		return field->size == 8 &&
		       (field->source == SB_EXPR_FROM_CONTEXT ||
			(field->source == SB_EXPR_FROM_VALUE && field->at < SB_EXPR_VALUES_MAX));
	case SB_EXPR_STRING:
		return field->source == SB_EXPR_FROM_COMM ||
		       field->source == SB_EXPR_FROM_DATA_LOC ||
		       (field->source == SB_EXPR_FROM_CONTEXT && field->size);
	default:
		return false;
	}
}

/* Return: the instruction that loads a string field. */
static enum sb_expr_op string_op(enum sb_expr_source source)
{
	switch (source) {
	case SB_EXPR_FROM_COMM:
		return SB_EXPR_OP_STR_COMM;
	case SB_EXPR_FROM_DATA_LOC:
		return SB_EXPR_OP_STR_DATA_LOC;
	default:
		return SB_EXPR_OP_STR_CONTEXT;
	}
}

static int load_field(struct parser *p, const struct sb_expr_field *field, struct operand *ret)
{
	uint32_t size = field->size < SB_EXPR_STRING_MAX ? field->size : SB_EXPR_STRING_MAX;
	bool is_signed = field->kind == SB_EXPR_INT && field->is_signed;
	enum sb_expr_op op;

	if (field->kind == SB_EXPR_STRING)
		op = string_op(field->source);
	else
		op = field->source == SB_EXPR_FROM_VALUE ? SB_EXPR_OP_VALUE : SB_EXPR_OP_CONTEXT;
	if (op == SB_EXPR_OP_VALUE)
		p->expr.values |= 1u << field->at;
	p->expr.needs_comm |= op == SB_EXPR_OP_STR_COMM;
	ret->kind = field->kind;
	ret->is_unsigned = !is_signed && field->size == 8;
	return emit(p, (struct sb_expr_insn){ .op = (uint8_t)op,
					      .size = (uint8_t)size,
					      .is_signed = is_signed,
					      .at = field->at });
}

/* A name that is none of a function, and the token behind it. */
static int parse_field(struct parser *p, struct sb_token name, struct operand *ret)
{
	bool is_member = sb_lex_is(&p->lexer, "->") || sb_lex_is(&p->lexer, ".");
	const struct sb_expr_field *field;
	int err;

	if (is_member && (name.len != 4 || memcmp(name.text, "args", 4)))
		return sb_lex_fail(&p->lexer, p->lexer.token.column,
				   "only 'args' has members: args->NAME");
	if (is_member) {
		err = sb_lex_next(&p->lexer);
		if (err)
			return err;
		name = p->lexer.token;
		if (name.kind != SB_TOKEN_NAME)
			return sb_lex_unexpected(&p->lexer, "the name of an argument");
		err = sb_lex_next(&p->lexer);
		if (err)
			return err;
	}
	field = find_field(p->scope, &name, is_member);
	if (!field)
		return fail_name(p, &name, is_member);
	if (!is_usable(field))
		return sb_lex_fail(&p->lexer, name.column,
				   "'%s' is neither an integer nor a pointer nor a string",
				   field->name);
	return load_field(p, field, ret);
}

/* Return: the function with this name; NULL if there is none. */
static const struct function *find_function(const struct sb_token *name)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(functions); i++)
		if (strlen(functions[i].name) == name->len &&
		    !memcmp(functions[i].name, name->text, name->len))
			return &functions[i];
	return NULL;
}

/* A function, such as str(ADDRESS). The token is the parenthesis. */
static int parse_call(struct parser *p, const struct sb_token *name, struct operand *ret)
{
	const struct function *function = find_function(name);
	size_t column;
	int err;

	if (!function)
		return sb_lex_fail(&p->lexer, name->column,
				   "there is no function '%.*s'; there are str(ADDRESS), "
				   "syscall(NUMBER), signal(NUMBER) and softirq(NUMBER)",
				   name->len < SB_EXPR_STRING_MAX ? (int)name->len
								  : (int)SB_EXPR_STRING_MAX,
				   name->text);
	err = sb_lex_next(&p->lexer);
	if (err)
		return err;
	column = p->lexer.token.column;
	err = parse_expr(p, ret);
	if (err)
		return err;
	if (!is_int(ret))
		return sb_lex_fail(&p->lexer, column, "%s() takes %s, and this is a string",
				   function->name, function->takes);
	if (function->kind == SB_EXPR_STRING)
		err = emit(p, (struct sb_expr_insn){ .op = SB_EXPR_OP_STR_AT,
						     .is_signed = p->scope->is_user_only });
	if (err)
		return err;
	ret->kind = function->kind;
	return expect(p, ")", "an operator or ')'");
}

static int parse_primary(struct parser *p, struct operand *ret)
{
	struct sb_token token = p->lexer.token;
	int err;

	switch (token.kind) {
	case SB_TOKEN_NUMBER:
		return parse_number(p, ret);
	case SB_TOKEN_STRING:
		return parse_string(p, ret);
	case SB_TOKEN_NAME:
		err = sb_lex_next(&p->lexer);
		if (err)
			return err;
		return sb_lex_is(&p->lexer, "(") ? parse_call(p, &token, ret)
						 : parse_field(p, token, ret);
	default:
		break;
	}
	if (!sb_lex_is(&p->lexer, "("))
		return sb_lex_unexpected(&p->lexer, "a number, a string, a name or '('");
	err = sb_lex_next(&p->lexer);
	if (!err)
		err = parse_expr(p, ret);
	return err ? err : expect(p, ")", "an operator or ')'");
}

/*
 * Try "(TYPE)": the token is '('. Return: 1: it is one, and the token is the one behind it; 0: it
 * is none, and the lexer stands where it stood.
 */
static int try_cast(struct parser *p, struct type *ret)
{
	struct sb_lexer before = p->lexer;
	bool is_unsigned, has_sign, is_found = false;
	size_t i;

	/* An error behind the parenthesis is reported when the token is read again. */
	p->lexer.reason = NULL;
	if (sb_lex_next(&p->lexer))
		goto none;
	is_unsigned = sb_lex_is(&p->lexer, "unsigned");
	has_sign = is_unsigned || sb_lex_is(&p->lexer, "signed");
	if (has_sign && sb_lex_next(&p->lexer))
		goto none;
	*ret = (struct type){ .size = 4, .is_signed = !is_unsigned };
	for (i = 0; i < SB_ARRAY_SIZE(types) && !is_found; i++) {
		if (!sb_lex_is(&p->lexer, types[i].name))
			continue;
		is_found = true;
		ret->size = types[i].size;
		ret->is_signed = types[i].is_signed && !is_unsigned;
	}
	if ((is_found && sb_lex_next(&p->lexer)) || (!is_found && !has_sign) ||
	    !sb_lex_is(&p->lexer, ")") || sb_lex_next(&p->lexer))
		goto none;
	p->lexer.reason = before.reason;
	return 1;
none:
	p->lexer = before;
	return 0;
}

/* Emit what a unary operator, or a cast, does to @ret, which is an integer. */
static int emit_unary(struct parser *p, char sign, const struct type *cast, struct operand *ret)
{
	if (cast) {
		*ret = (struct operand){ .kind = SB_EXPR_INT,
					 .is_unsigned = !cast->is_signed && cast->size == 8 };
		if (cast->size == 8)
			return 0;
		return emit(p, (struct sb_expr_insn){ .op = SB_EXPR_OP_EXTEND,
						      .size = cast->size,
						      .is_signed = cast->is_signed });
	}
	if (sign == '!') {
		*ret = boolean;
		return emit_op(p, SB_EXPR_OP_NOT);
	}
	ret->kind = SB_EXPR_INT;
	ret->is_bool = false;
	return emit_op(p, sign == '-' ? SB_EXPR_OP_NEGATE : SB_EXPR_OP_INVERT);
}

static int parse_unary(struct parser *p, struct operand *ret)
{
	size_t column = p->lexer.token.column;
	bool is_paren = sb_lex_is(&p->lexer, "("), is_cast, is_sign;
	char sign = *p->lexer.token.text;
	struct sb_expr_insn *begin;
	struct type type = {};
	int err;

	is_sign =
		sb_lex_is(&p->lexer, "-") || sb_lex_is(&p->lexer, "!") || sb_lex_is(&p->lexer, "~");
	is_cast = is_paren && try_cast(p, &type);
	if (!is_cast && !is_sign)
		return parse_primary(p, ret);
	err = nest(p);
	if (!err && is_sign)
		err = sb_lex_next(&p->lexer);
	begin = &p->expr.insn[p->expr.nr_insns];
	if (!err)
		err = parse_unary(p, ret);
	if (err)
		return err;
	p->nesting--;
	/* A negative literal is one instruction. */
	if (sign == '-' && begin->op == SB_EXPR_OP_CONST &&
	    begin + 1 == &p->expr.insn[p->expr.nr_insns]) {
		begin->imm = 0 - begin->imm;
		return 0;
	}
	if (!is_int(ret))
		return sb_lex_fail(&p->lexer, column, "%s takes an integer, and this is a string",
				   is_cast ? "a cast" : "this operator");
	return emit_unary(p, sign, is_cast ? &type : NULL, ret);
}

/* Emit a comparison of strings. */
static int emit_strings(struct parser *p, const struct binary *binary, size_t column,
			const struct operand *right, struct operand *left)
{
	bool is_eq = binary->op == SB_EXPR_OP_EQ;

	if (is_int(left) != is_int(right) && (is_eq || binary->op == SB_EXPR_OP_NE))
		return sb_lex_fail(&p->lexer, column,
				   "'%s' cannot compare an integer with a string; str(ADDRESS) is "
				   "the string at an address",
				   binary->sign);
	if (!is_eq && binary->op != SB_EXPR_OP_NE)
		return sb_lex_fail(
			&p->lexer, column,
			"'%s' takes integers; strings have only == and !=", binary->sign);
	*left = boolean;
	return emit_op(p, is_eq ? SB_EXPR_OP_STR_EQ : SB_EXPR_OP_STR_NE);
}

/* Emit an operator whose operands are both on their stack. @left becomes the result. */
static int emit_binary(struct parser *p, const struct binary *binary, size_t column,
		       const struct operand *right, struct operand *left)
{
	bool is_unsigned = left->is_unsigned || right->is_unsigned;
	enum sb_expr_op op = binary->op;

	if (!is_int(left) || !is_int(right))
		return emit_strings(p, binary, column, right, left);
	if (op == SB_EXPR_OP_SHL || op == SB_EXPR_OP_SHR)
		is_unsigned = left->is_unsigned;
	if (op >= SB_EXPR_OP_EQ)
		*left = boolean;
	else
		*left = (struct operand){ .kind = SB_EXPR_INT, .is_unsigned = is_unsigned };
	return emit(p, (struct sb_expr_insn){ .op = (uint8_t)op, .is_signed = !is_unsigned });
}

static int parse_binary(struct parser *p, uint8_t precedence, struct operand *ret);

/* Parse and emit && or ||, whose left operand is there; the token is the one behind the sign. */
static int parse_logical(struct parser *p, const struct binary *binary, size_t column,
			 struct operand *left)
{
	struct operand right = {};
	uint32_t jump = p->expr.nr_insns;
	int err;

	err = is_int(left) ? emit_op(p, binary->op) : 0;
	if (!err)
		err = parse_binary(p, (uint8_t)(binary->precedence + 1), &right);
	if (err)
		return err;
	if (!is_int(left) || !is_int(&right))
		return sb_lex_fail(&p->lexer, column, "'%s' takes integers, and this is a string",
				   binary->sign);
	err = right.is_bool ? 0 : emit_op(p, SB_EXPR_OP_BOOL);
	land(p, jump);
	*left = boolean;
	return err;
}

/* Return: the operator that the token is, or NULL. */
static const struct binary *binary_of(const struct parser *p)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(binaries); i++)
		if (sb_lex_is(&p->lexer, binaries[i].sign))
			return &binaries[i];
	return NULL;
}

/* Parse operands that are joined by operators of at least this precedence. */
static int parse_binary(struct parser *p, uint8_t precedence, struct operand *ret)
{
	const struct binary *binary;
	struct operand right;
	size_t column;
	int err;

	err = parse_unary(p, ret);
	while (!err) {
		binary = binary_of(p);
		if (!binary || binary->precedence < precedence)
			return 0;
		column = p->lexer.token.column;
		err = sb_lex_next(&p->lexer);
		if (err)
			return err;
		if (binary->op == SB_EXPR_OP_AND || binary->op == SB_EXPR_OP_OR) {
			err = parse_logical(p, binary, column, ret);
			continue;
		}
		right = (struct operand){};
		err = parse_binary(p, (uint8_t)(binary->precedence + 1), &right);
		if (!err)
			err = emit_binary(p, binary, column, &right, ret);
	}
	return err;
}

/* Parse what follows the '?', which is the token; the condition is there. */
static int parse_choice(struct parser *p, struct operand *ret)
{
	size_t column = p->lexer.token.column;
	struct operand yes = {}, no = {};
	uint32_t to_no = p->expr.nr_insns, to_end;
	int err;

	if (!is_int(ret))
		return sb_lex_fail(&p->lexer, column, "'?' takes an integer, and this is a string");
	err = emit_op(p, SB_EXPR_OP_JUMP_ZERO);
	if (!err)
		err = sb_lex_next(&p->lexer);
	if (!err)
		err = parse_expr(p, &yes);
	if (!err)
		err = expect(p, ":", "an operator or ':'");
	to_end = p->expr.nr_insns;
	if (!err)
		err = emit_op(p, SB_EXPR_OP_JUMP);
	if (err)
		return err;
	land(p, to_no);
	/* Only one of them is evaluated. */
	if (is_int(&yes))
		p->nr_ints--;
	else
		p->nr_strings--;
	err = parse_expr(p, &no);
	if (err)
		return err;
	land(p, to_end);
	if (is_int(&yes) != is_int(&no))
		return sb_lex_fail(
			&p->lexer, column,
			"behind '?' stand an integer and a string; both have to be of one kind");
	*ret = (struct operand){ .kind = yes.kind == no.kind ? yes.kind : SB_EXPR_INT,
				 .is_unsigned = yes.is_unsigned || no.is_unsigned,
				 .is_bool = yes.is_bool && no.is_bool };
	return 0;
}

static int parse_expr(struct parser *p, struct operand *ret)
{
	int err = nest(p);

	if (!err)
		err = parse_binary(p, PRECEDENCE_MIN, ret);
	if (!err && sb_lex_is(&p->lexer, "?"))
		err = parse_choice(p, ret);
	p->nesting--;
	return err;
}

int sb_expr_compile(const char *text, const struct sb_expr_scope *scope, struct sb_expr *ret_expr,
		    struct sb_reason *reason)
{
	struct parser p = { .lexer = { .text = text, .reason = reason }, .scope = scope };
	struct operand result = {};
	int err;

	if (strlen(text) > SB_EXPR_TEXT_MAX)
		return sb_lex_fail(&p.lexer, SB_EXPR_TEXT_MAX + 1,
				   "the expression has more than %d bytes", SB_EXPR_TEXT_MAX);
	err = sb_lex_next(&p.lexer);
	if (!err)
		err = parse_expr(&p, &result);
	if (!err && p.lexer.token.kind != SB_TOKEN_END)
		err = sb_lex_unexpected(&p.lexer, "an operator or the end");
	if (err)
		return err;
	p.expr.kind = (uint8_t)result.kind;
	p.expr.result_is_signed = is_int(&result) && !result.is_unsigned;
	*ret_expr = p.expr;
	return 0;
}
