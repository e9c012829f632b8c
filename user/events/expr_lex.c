// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "events/expr_lex.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define SHOWN_MAX 40 /* bytes of a token that a sentence quotes */

int sb_lex_fail(struct sb_lexer *lexer, size_t column, const char *fmt, ...)
{
	char text[SB_REASON_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	sb_reason_set(lexer->reason, 0, "column %zu: %s", column, text);
	return -EINVAL;
}

int sb_lex_unexpected(struct sb_lexer *lexer, const char *expected)
{
	const struct sb_token *token = &lexer->token;
	int shown = token->len < SHOWN_MAX ? (int)token->len : SHOWN_MAX;

	if (token->kind == SB_TOKEN_END)
		return sb_lex_fail(lexer, token->column, "expected %s, found the end", expected);
	return sb_lex_fail(lexer, token->column, "expected %s, found '%.*s'", expected, shown,
			   token->text);
}

bool sb_lex_is(const struct sb_lexer *lexer, const char *text)
{
	const struct sb_token *token = &lexer->token;

	return (token->kind == SB_TOKEN_SIGN || token->kind == SB_TOKEN_NAME) &&
	       token->len == strlen(text) && !memcmp(token->text, text, token->len);
}

/* The letters behind the digits of a number. */
static const struct unit {
	const char *name;
	uint64_t factor;
} units[] = {
	{ "", 1 },   { "k", 1 << 10 }, { "K", 1 << 10 },  { "M", 1 << 20 },    { "G", 1 << 30 },
	{ "ns", 1 }, { "us", 1000 },   { "ms", 1000000 }, { "s", 1000000000 },
};

/* Return: the unit with this name, or NULL. */
static const struct unit *unit_of(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(units); i++)
		if (strlen(units[i].name) == len && !memcmp(units[i].name, name, len))
			return &units[i];
	return NULL;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* The token is a word that begins with a digit. */
static int lex_number(struct sb_lexer *lexer, struct sb_token *token)
{
	bool is_hex = token->len > 2 && token->text[0] == '0' && (token->text[1] | 0x20) == 'x';
	uint64_t base = is_hex ? 16 : 10, number = 0;
	size_t i = is_hex ? 2 : 0, first = i;
	int shown = token->len < SHOWN_MAX ? (int)token->len : SHOWN_MAX;
	const struct unit *unit;
	bool is_over = false;

	for (; i < token->len && digit_of(token->text[i]) < (int)base; i++) {
		is_over |= __builtin_mul_overflow(number, base, &number);
		is_over |=
			__builtin_add_overflow(number, (uint64_t)digit_of(token->text[i]), &number);
	}
	unit = unit_of(token->text + i, token->len - i);
	if (i == first || !unit)
		return sb_lex_fail(lexer, token->column,
				   "'%.*s' is not a number; behind one may stand k, M, G, ns, us, "
				   "ms or s",
				   shown, token->text);
	if (!is_hex && i > 1 && token->text[0] == '0')
		return sb_lex_fail(lexer, token->column,
				   "expected a decimal or hexadecimal number without zeros before "
				   "it, found '%.*s'",
				   shown, token->text);
	if (is_over || __builtin_mul_overflow(number, unit->factor, &number))
		return sb_lex_fail(lexer, token->column, "'%.*s' does not fit into 64 bits", shown,
				   token->text);
	token->kind = SB_TOKEN_NUMBER;
	token->number = number;
	return 0;
}

static char unescaped(char c)
{
	switch (c) {
	case 'n':
		return '\n';
	case 't':
		return '\t';
	case '"':
	case '\\':
		return c;
	default:
		return 0;
	}
}

static int lex_string(struct sb_lexer *lexer, struct sb_token *token)
{
	size_t nr = 0;
	const char *s;
	char c;

	for (s = token->text + 1; *s != '"'; s++) {
		c = *s;
		if (!c)
			return sb_lex_fail(lexer, token->column,
					   "the string has no '\"' at its end");
		if (c == '\\') {
			c = unescaped(*++s);
			if (!c)
				return sb_lex_fail(lexer, (size_t)(s - lexer->text),
						   "expected one of \\\" \\\\ \\n \\t");
		}
		if (nr == SB_EXPR_LITERAL_MAX)
			return sb_lex_fail(lexer, token->column,
					   "the string has more than %u bytes",
					   SB_EXPR_LITERAL_MAX);
		token->string[nr++] = c;
	}
	token->kind = SB_TOKEN_STRING;
	token->len = (size_t)(s + 1 - token->text);
	return 0;
}

static int lex_sign(struct sb_lexer *lexer, struct sb_token *token)
{
	static const char *const signs[] = {
		"<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "->", "+", "-", "*", "/",
		"%",  "<",  ">",  "&",	"^",  "|",  "!",  "~",	"?",  ":", "(", ")", ".",
	};
	unsigned char c = (unsigned char)token->text[0];
	size_t i;

	token->kind = SB_TOKEN_SIGN;
	for (i = 0; i < SB_ARRAY_SIZE(signs); i++) {
		token->len = strlen(signs[i]);
		if (!strncmp(token->text, signs[i], token->len))
			return 0;
	}
	if (c == '=')
		return sb_lex_fail(lexer, token->column,
				   "'=' would assign, which no expression can; '==' compares");
	if (c == '\'')
		return sb_lex_fail(lexer, token->column,
				   "strings stand in double quotes, and there are no characters");
	if (isprint(c))
		return sb_lex_fail(lexer, token->column, "no expression has a '%c'", c);
	return sb_lex_fail(lexer, token->column, "no expression has the byte 0x%02x", c);
}

/* Bytes of the word at @s: letters, digits and underscores. */
static size_t word_len(const char *s)
{
	size_t len = 0;

	while (isalnum((unsigned char)s[len]) || s[len] == '_')
		len++;
	return len;
}

int sb_lex_next(struct sb_lexer *lexer)
{
	struct sb_token token = {};
	int err = 0;

	lexer->at += strspn(lexer->text + lexer->at, " \t\n");
	token.text = lexer->text + lexer->at;
	token.column = lexer->at + 1;
	token.len = word_len(token.text);
	if (!*token.text)
		token.kind = SB_TOKEN_END;
	else if (token.len && isdigit((unsigned char)*token.text))
		err = lex_number(lexer, &token);
	else if (token.len)
		token.kind = SB_TOKEN_NAME;
	else if (*token.text == '"')
		err = lex_string(lexer, &token);
	else
		err = lex_sign(lexer, &token);
	if (err)
		return err;
	lexer->at += token.len;
	lexer->token = token;
	return 0;
}
