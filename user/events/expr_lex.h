/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Internal to expr.c: the text of an expression as tokens. Thread: any, one at a time for each
 * lexer. A lexer begins zeroed, but for `text` and `reason`, with sb_lex_next(); functions that
 * look at lexer->token come after that. There is nothing to free; to go back, keep a copy of the
 * lexer. Pointers are not NULL unless it says so. */
#ifndef SB_EVENTS_EXPR_LEX_H
#define SB_EVENTS_EXPR_LEX_H

#include "events/expr.h"

enum sb_token_kind {
	SB_TOKEN_END,
	SB_TOKEN_NUMBER,
	SB_TOKEN_STRING,
	SB_TOKEN_NAME,
	SB_TOKEN_SIGN, /* an operator, a parenthesis, "->", "." */
};

struct sb_token {
	enum sb_token_kind kind;
	size_t column;	  /* in bytes, from 1 */
	const char *text; /* borrowed: points into the text of the expression */
	size_t len;
	uint64_t number;
	/* SB_TOKEN_STRING: without quotes and escapes, padded with zeros. */
	char string[SB_EXPR_STRING_MAX + 1];
};

struct sb_lexer {
	const char *text;	  /* of at most SB_EXPR_TEXT_MAX bytes, ends in NUL; borrowed */
	size_t at;		  /* offset of the byte behind `token` */
	struct sb_reason *reason; /* borrowed; NULL: no reasons are kept */
	struct sb_token token;
};

/*
 * Read the next token into lexer->token; at the end of the text that is SB_TOKEN_END, again and
 * again. Return: 0; -EINVAL with a reason: what stands there is no token, or a number or a string
 * is too large; lexer->token is the one before then, and the lexer is not to be used further.
 */
int sb_lex_next(struct sb_lexer *lexer);

/* Return: whether lexer->token is this sign or this name; numbers and strings are neither. */
bool sb_lex_is(const struct sb_lexer *lexer, const char *text);

/* Set the reason, if there is none yet: "column @column: ", in bytes from 1, and @fmt as for
 * printf(). Return: -EINVAL. */
int sb_lex_fail(struct sb_lexer *lexer, size_t column, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Set the reason for lexer->token not being what was expected: "column 3: expected @expected, found
 * ')'". Return: -EINVAL. */
int sb_lex_unexpected(struct sb_lexer *lexer, const char *expected);

#endif
