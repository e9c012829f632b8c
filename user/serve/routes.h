/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The addresses that workers answer. To add one, write a function and add a row to routes.c. Not
 * thread-safe; runs in a worker process, but for sb_route_find() and sb_route_at(), which the front
 * calls, too. Pointers are not NULL; nothing is kept beyond the answer.
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
/* Return: row @i of the table; NULL past the end. */
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

/* The functions of the table: see sb_route.answer. */
int sb_api_info(struct sb_asked *asked);
int sb_api_tags(struct sb_asked *asked);
int sb_api_timeline(struct sb_asked *asked);
int sb_api_flame(struct sb_asked *asked);
int sb_api_diff(struct sb_asked *asked);
int sb_api_profile(struct sb_asked *asked);
int sb_api_render(struct sb_asked *asked);
int sb_api_render_diff(struct sb_asked *asked);
int sb_api_metrics(struct sb_asked *asked);

#endif
