/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The addresses that workers answer. To add one, write a function and add a row to routes.c. The
 * functions sb_api_*() write the body of an answer to asked->json or asked->out. They return 0;
 * -EINVAL after sb_asked_fail(), which has set what the client is told; or -ENOMEM or another
 * negative errno of I/O, of which the worker makes an error for the client. After an error it
 * discards what was written of the body. Not thread-safe; runs in a worker process, but for
 * sb_route_find() and sb_route_at(), which the front calls, too. Pointers are not NULL; nothing is
 * kept beyond the answer.
 */
#ifndef SB_SERVE_ROUTES_H
#define SB_SERVE_ROUTES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "output/jsontext.h"
#include "serve/http.h"
#include "serve/params.h"
#include "serve/worker.h"

/* A question that is being answered. */
struct sb_asked {
	const struct sb_serve_opts *opts;
	const struct sb_question *question;
	struct sb_params params;
	int64_t now_s;	     /* seconds since the epoch */
	FILE *out;	     /* the body: write to it, or */
	struct sb_json json; /* to this, which writes to `out` */
	struct sb_answer *answer;
};

struct sb_route {
	const char *path, *type;
	/*
	 * Write the body; objects and arrays of JSON may be left open. Return: 0; -EINVAL after
	 * sb_asked_fail(); -ENOMEM or another negative errno of I/O, of which the worker makes an
	 * error for the client.
	 */
	int (*answer)(struct sb_asked *asked);
};

/* Return: the index of the route with this path, without a query, byte by byte as sent; -1 if there
 * is none. */
int sb_route_find(struct sb_http_text path);
/* Return: row @i of the table, a constant; NULL past the end. */
const struct sb_route *sb_route_at(size_t i);

/*
 * Refuse the question with an HTTP status from 400 on and a message, truncated to 511 bytes, which
 * replace the body. Return: -EINVAL, for the caller to return.
 */
int sb_asked_fail(struct sb_asked *asked, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Refuse the question if it has parameters that were not looked up: call it when all were. Return:
 * 0; -EINVAL after sb_asked_fail(). */
int sb_asked_all(struct sb_asked *asked);

/*
 * The functions of the table, called through it only: see sb_route.answer. "A query" is the
 * parameters from, to, tag (any number of them), kind and by.
 */
/* /api/info, without parameters: what is in the store (kinds and their time ranges, hosts), the
 * version and the time now, and the formats of /api/profile. */
int sb_api_info(struct sb_asked *asked);
/* /api/tags: the keys of tags and their values, with weights, that the series of a query have. */
int sb_api_tags(struct sb_asked *asked);
/* /api/timeline: the weight of a query over time, in at most `points` steps. */
int sb_api_timeline(struct sb_asked *asked);
/* /api/flame: the call tree of a query, of at most `nodes` nodes, and a table of at most `table`
 * functions, none without that parameter. */
int sb_api_flame(struct sb_asked *asked);
/* /api/diff: the call tree of a query compared with that of vs_from, vs_to and vs_tag, of at most
 * `nodes` nodes; `norm`: share, which is the default, rate or raw. */
int sb_api_diff(struct sb_asked *asked);
/* /api/profile: the profile of a query as a file in `format`, pprof by default. */
int sb_api_profile(struct sb_asked *asked);
/* /render: the call tree of one query, in the form of Pyroscope and by its parameters: query, from,
 * until and max-nodes. The body goes to asked->json. */
int sb_api_render(struct sb_asked *asked);
/* /render-diff: the call trees of two queries compared, in the same way: leftQuery, leftFrom,
 * leftUntil, rightQuery, rightFrom, rightUntil and max-nodes. The body goes to asked->json. */
int sb_api_render_diff(struct sb_asked *asked);
/* /metrics, without parameters: figures of the store, the server and exports for Prometheus. */
int sb_api_metrics(struct sb_asked *asked);

#endif
