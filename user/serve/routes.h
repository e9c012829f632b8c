/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What workers answer: to add a route, a function and a row in routes.c. */
#ifndef SB_SERVE_ROUTES_H
#define SB_SERVE_ROUTES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "output/jsontext.h"
#include "serve/http.h"
#include "serve/params.h"
#include "serve/worker.h"

/* A question while it is answered. */
struct sb_asked {
	const struct sb_serve_opts *opts;
	const struct sb_question *question;
	struct sb_params params;
	int64_t now_s;
	FILE *out;	     /* the body; or */
	struct sb_json json; /* which goes to it, too */
	struct sb_answer *answer;
};

struct sb_route {
	const char *path, *type;
	/* Write the body. Return: 0; -EINVAL or -EIO with answer->error and answer->status; -ENOMEM, others of I/O. */
	int (*answer)(struct sb_asked *asked);
};

/* Return: the number of the row, or -1. */
int sb_route_find(struct sb_http_text path);
/* Return: the row, NULL past the end. */
const struct sb_route *sb_route_at(size_t i);

/* The question cannot be answered: say why. Return: -EINVAL. */
int sb_asked_fail(struct sb_asked *asked, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* If parameters are left that nobody asked for, say so. Return: 0 or -EINVAL. */
int sb_asked_all(struct sb_asked *asked);

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
