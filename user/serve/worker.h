/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The processes that answer, seen from the front: which question goes to which, and what comes back. Messages
 * are of fixed size (base/peer.h); the body of an answer is a descriptor.
 */
#ifndef SB_SERVE_WORKER_H
#define SB_SERVE_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/peer.h"
#include "serve/http.h"
#include "serve/metrics.h"
#include "serve/serve.h"

struct sb_question {
	uint32_t route; /* number of the row in routes.c */
	uint32_t accepts_gzip;
	uint32_t query_len;
	struct sb_serve_counts counts; /* of the front, for /metrics */
	struct sb_serve_totals totals;
	char query[SB_HTTP_LINE_MAX];
};

struct sb_answer {
	int32_t status; /* 200: there is a body; else @error */
	uint32_t is_gzip;
	struct sb_serve_totals totals; /* for /metrics: what they are now */
	char file_name[64];	       /* of a file to keep; "": it is none */
	char error[512];
};

/* What a worker is to do; see routes.c. */
struct sb_route;

/* The process itself: answer what comes at @fd until it is closed. @arg: struct sb_serve_opts. */
void sb_worker_run(const struct sb_serve_opts *opts, int fd);

/* One question answered, in this process: for sb_worker_run(), tests and fuzzers. *ret_fd: the body,
 * the caller's, or -1. */
void sb_worker_answer(const struct sb_serve_opts *opts, const struct sb_question *question,
		      struct sb_answer *ret_answer, int *ret_fd);

#endif
