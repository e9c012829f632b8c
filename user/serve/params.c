// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "serve/params.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static int hex_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 32;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*
 * Decode up to @end or one of @stops, which is not taken. Return: where it ended; NULL if it is
 * invalid.
 */
static const char *decode(const char *at, const char *end, const char *stops, char **to)
{
	for (; at < end && !strchr(stops, *at); at++) {
		int c = (unsigned char)*at;

		if (c == '%') {
			if (end - at < 3 || hex_of(at[1]) < 0 || hex_of(at[2]) < 0)
				return NULL;
			c = hex_of(at[1]) << 4 | hex_of(at[2]);
			at += 2;
		} else if (c == '+') {
			c = ' ';
		}
		if (!c)
			return NULL;
		*(*to)++ = (char)c;
	}
	*(*to)++ = '\0';
	return at;
}

int sb_params_parse(struct sb_params *params, const char *query, size_t len)
{
	const char *at = query, *end = query + len;
	char *to;

	*params = (struct sb_params){};
	if (!len)
		return 0;
	if (memchr(query, '\0', len))
		return -EINVAL;
	/* Each name and each value ends with a NUL: "a&b" becomes "a", "", "b", "". */
	params->text = to = malloc(2 * len + 4);
	if (!to)
		return -ENOMEM;
	while (at < end) {
		struct sb_param param = { .name = to };

		at = decode(at, end, "&=", &to);
		if (!at)
			return -EINVAL;
		param.value = to;
		at = decode(at < end && *at == '=' ? at + 1 : at, end, "&", &to);
		if (!at)
			return -EINVAL;
		at += at < end;
		if (!param.name[0] && !param.value[0])
			continue;
		if (params->nr == SB_PARAMS_MAX)
			return -E2BIG;
		params->at[params->nr++] = param;
	}
	return 0;
}

void sb_params_release(struct sb_params *params)
{
	free(params->text);
	*params = (struct sb_params){};
}

const char *sb_params_next(struct sb_params *params, const char *name, size_t *at)
{
	for (; *at < params->nr; (*at)++) {
		if (!sb_streq(params->at[*at].name, name))
			continue;
		params->at[*at].is_known = 1;
		if (params->at[*at].value[0])
			return params->at[(*at)++].value;
	}
	return NULL;
}

const char *sb_params_get(struct sb_params *params, const char *name)
{
	const char *value = NULL, *next;
	size_t at = 0;

	while ((next = sb_params_next(params, name, &at)))
		value = next;
	return value;
}

const char *sb_params_unknown(const struct sb_params *params)
{
	size_t i;

	for (i = 0; i < params->nr; i++)
		if (!params->at[i].is_known)
			return params->at[i].name;
	return NULL;
}
