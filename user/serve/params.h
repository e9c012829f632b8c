/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is behind the "?" of an address: "from=now-1h&tag=service%3Dcar&tag=region%21%3Deu". */
#ifndef SB_SERVE_PARAMS_H
#define SB_SERVE_PARAMS_H

#include <stddef.h>
#include <stdint.h>

#define SB_PARAMS_MAX 64

struct sb_params {
	size_t nr;
	char *text; /* of all */
	struct sb_param {
		const char *name, *value;
		/* Somebody has looked at it. */
		int is_known;
	} at[SB_PARAMS_MAX];
};

/*
 * Decode %XX and "+". Return: 0; -EINVAL: not encoded as it has to be, or NUL in it; -E2BIG: more
 * than SB_PARAMS_MAX; -ENOMEM. In any case sb_params_release() it.
 */
int sb_params_parse(struct sb_params *params, const char *query, size_t len);
void sb_params_release(struct sb_params *params);

/* Return: the value of the last one of that name, or NULL; an empty value is none. */
const char *sb_params_get(struct sb_params *params, const char *name);
/* Return: the value of the next one behind *@at, which is 0 at first, or NULL. */
const char *sb_params_next(struct sb_params *params, const char *name, size_t *at);
/* Return: the name of one that nobody asked for, or NULL: a mistake of the asker that must not be silent. */
const char *sb_params_unknown(const struct sb_params *params);

#endif
