/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A growing byte string, always NUL-terminated when it holds anything. Zero-initialize, then use,
 * and end it with sb_str_release(). Adding and reserving may move s. Not thread-safe: one thread at
 * a time for each string. No argument is NULL.
 */
#ifndef SB_BASE_STR_H
#define SB_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sb_str {
	char *s; /* NULL as long as nothing was added or reserved */
	size_t len, cap;
};

/* Make room for @more bytes after those that are there, and for the NUL. Nothing is written:
 * whoever fills the room sets len and the NUL. Return: 0; -ENOMEM: nothing has changed. */
int sb_str_reserve(struct sb_str *str, size_t more);

/* Append bytes (also NULs), a string, a character, formatted text, which must not lie in @str
 * itself. Return: 0, and then @str->s is not NULL; -ENOMEM, also for formatted text of 2 GiB, in
 * which case nothing was appended. */
int sb_str_addn(struct sb_str *str, const char *s, size_t len);
int sb_str_add(struct sb_str *str, const char *s);
int sb_str_addc(struct sb_str *str, char c);
int sb_str_addf(struct sb_str *str, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Append @val in decimal; much faster than sb_str_addf(). Return: 0; -ENOMEM: nothing was
 * appended. */
int sb_str_addu(struct sb_str *str, uint64_t val);

/* Make the string empty and keep its memory for reuse: s, if it is not NULL, is "" then. */
void sb_str_clear(struct sb_str *str);
/* Free the memory; the string is empty then, and can be used again. */
void sb_str_release(struct sb_str *str);

/* Return: the part of @path after its last slash, which may be "", or all of it if there is none: a
 * pointer into @path. Thread: any. */
const char *sb_base_name(const char *path);

/*
 * Return: whether the whole of @text, a string, matches the pattern of @glob_len bytes at @glob, in
 * which '*' matches any text, also none, '?' any one byte, and every other character itself; there
 * is no escape. Unlike fnmatch(3) it does not take brackets, which names of functions have, for a
 * set of characters; and it takes a tenth of the time.
 */
bool sb_glob_matches(const char *glob, size_t glob_len, const char *text);

/* Return: whether the @len bytes at @s, which need no NUL behind them, are the string @text; begin
 * with it; end with it. Thread: any. */
static inline bool sb_text_is(const char *s, size_t len, const char *text)
{
	return len == __builtin_strlen(text) && !__builtin_memcmp(s, text, len);
}

static inline bool sb_text_begins(const char *s, size_t len, const char *text)
{
	size_t nr = __builtin_strlen(text);

	return len >= nr && !__builtin_memcmp(s, text, nr);
}

static inline bool sb_text_ends(const char *s, size_t len, const char *text)
{
	size_t nr = __builtin_strlen(text);

	return len >= nr && !__builtin_memcmp(s + len - nr, text, nr);
}

/* Return: whether the two strings are equal; whether @s begins with @text. */
static inline bool sb_streq(const char *a, const char *b)
{
	return __builtin_strcmp(a, b) == 0;
}

static inline bool sb_begins(const char *s, const char *text)
{
	return __builtin_strncmp(s, text, __builtin_strlen(text)) == 0;
}

#endif
