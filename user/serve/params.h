/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parameters of a query string: "from=now-1h&tag=service%3Dcar&tag=region%21%3Deu". Not
 * thread-safe: one thread at a time for each struct, since a look-up marks it. Pointers are not
 * NULL.
 *
 * Parse a string, look up all names that are known, report what sb_params_unknown() returns, and
 * release the parameters.
 */
#ifndef SB_SERVE_PARAMS_H
#define SB_SERVE_PARAMS_H

#include <stddef.h>

#define SB_PARAMS_MAX 64

struct sb_params {
	size_t nr;
	char *text; /* memory of all names and values */
	struct sb_param {
		const char *name, *value;
		/* It was looked up. */
		int is_known;
	} at[SB_PARAMS_MAX];
};

/*
 * Parse and decode %XX and "+". @query: copied; may be NULL if @len is 0. A parameter without "="
 * has an empty value, and of several with one name all are kept, in their order. Return: 0; -EINVAL
 * if the encoding is wrong or contains NUL; -E2BIG for more than SB_PARAMS_MAX; -ENOMEM. @params is
 * overwritten, and what was in it is not freed; release it in all cases, and use it for nothing
 * else after an error.
 */
int sb_params_parse(struct sb_params *params, const char *query, size_t len);
/* Free all names and values, also of a zero-initialized struct; no parameters are left. */
void sb_params_release(struct sb_params *params);

/*
 * Return: the last value of @name that is not empty, borrowed until the release; NULL if there is
 * none. All parameters of this name count as looked up.
 */
const char *sb_params_get(struct sb_params *params, const char *name);
/*
 * Return: the next value of @name that is not empty, from *@at on, which is 0 at first and is moved
 * on; NULL at the end. Borrowed until the release. Those of this name that were passed count as
 * looked up.
 */
const char *sb_params_next(struct sb_params *params, const char *name, size_t *at);
/*
 * Return: the name of a parameter that was never looked up, so that mistakes are reported, borrowed
 * until the release; NULL if there is none.
 */
const char *sb_params_unknown(const struct sb_params *params);

#endif
