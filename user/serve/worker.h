/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Worker processes: which question the front sends them, and what comes back. Messages have a fixed
 * size (base/peer.h); the body of an answer is a descriptor. A worker has one thread, which calls
 * the functions. Pointers are not NULL; what is given is borrowed for the call.
 */
#ifndef SB_SERVE_WORKER_H
#define SB_SERVE_WORKER_H

#include <stdint.h>

#include "base/peer.h"
#include "serve/http.h"
#include "serve/metrics.h"
#include "serve/serve.h"

struct sb_question {
	uint32_t route; /* index of the row in routes.c */
	uint32_t accepts_gzip;
	uint32_t query_len;
	struct sb_serve_counts counts; /* the front's, for /metrics */
	struct sb_serve_totals totals;
	char query[SB_HTTP_LINE_MAX];
};

struct sb_answer {
	int32_t status; /* 200: there is a body; else see @error */
	uint32_t is_gzip;
	struct sb_serve_totals totals; /* for /metrics: with what this worker added */
	char file_name[64];	       /* for a download; "": none */
	char error[512];
};

/* See routes.h. */
struct sb_route;

/*
 * Main function of a worker, in a process that was forked for it and has closed the front's
 * descriptors: set limits, drop privileges, answer questions from the socket @fd, which stays the
 * caller's, until it is closed or fails. Returns, too, if it cannot begin; the caller then exits.
 * The process is killed when its parent ends.
 */
void sb_worker_run(const struct sb_serve_opts *opts, int fd);

/*
 * Answer one question in this process, for sb_worker_run(), tests and fuzzers. @question need not
 * be valid. Errors become ret_answer->status and its message. Both results are always set; *@ret_fd
 * is the body, a file in memory whose offset may be anywhere, owned by the caller; -1 after an
 * error.
 */
void sb_worker_answer(const struct sb_serve_opts *opts, const struct sb_question *question,
		      struct sb_answer *ret_answer, int *ret_fd);

#endif
