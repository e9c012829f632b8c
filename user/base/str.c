// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sb_str_reserve(struct sb_str *str, size_t more)
{
	size_t need, cap = str->cap ? str->cap : 64;
	char *s;

	if (__builtin_add_overflow(str->len, more, &need) || need > SIZE_MAX / 2)
		return -ENOMEM;
	need++; /* the NUL */
	if (need <= str->cap)
		return 0;
	while (cap < need)
		cap *= 2;
	s = realloc(str->s, cap);
	if (!s)
		return -ENOMEM;
	str->s = s;
	str->cap = cap;
	return 0;
}

int sb_str_addn(struct sb_str *str, const char *s, size_t len)
{
	int err = len < str->cap - str->len ? 0 : sb_str_reserve(str, len);

	if (err)
		return err;
	if (len)
		memcpy(str->s + str->len, s, len);
	str->len += len;
	str->s[str->len] = '\0';
	return 0;
}

int sb_str_add(struct sb_str *str, const char *s)
{
	return sb_str_addn(str, s, strlen(s));
}

int sb_str_addc(struct sb_str *str, char c)
{
	return sb_str_addn(str, &c, 1);
}

int sb_str_addf(struct sb_str *str, const char *fmt, ...)
{
	va_list ap;
	int n, err;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -ENOMEM;
	err = sb_str_reserve(str, (size_t)n);
	if (err)
		return err;
	va_start(ap, fmt);
	vsnprintf(str->s + str->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	str->len += (size_t)n;
	return 0;
}

int sb_str_addu(struct sb_str *str, uint64_t val)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + val % 10);
		val /= 10;
	} while (val);
	return sb_str_addn(str, digits + at, sizeof(digits) - at);
}

void sb_str_clear(struct sb_str *str)
{
	str->len = 0;
	if (str->s)
		str->s[0] = '\0';
}

void sb_str_release(struct sb_str *str)
{
	free(str->s);
	*str = (struct sb_str){};
}

const char *sb_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool sb_glob_matches(const char *glob, size_t glob_len, const char *text)
{
	const char *end = glob + glob_len, *star = NULL, *from = NULL;

	for (;;) {
		if (glob < end && *glob == '*') {
			star = glob++;
			from = text;
			if (glob == end)
				return true;
		} else if (glob < end && *text && (*glob == *text || *glob == '?')) {
			glob++;
			text++;
		} else if (glob == end && !*text) {
			return true;
		} else if (star && *from) {
			glob = star + 1;
			text = ++from;
		} else {
			return false;
		}
	}
}
