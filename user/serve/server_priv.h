/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by server.c, which has the connections, and pool.c, which has the workers. */
#ifndef SB_SERVE_SERVER_PRIV_H
#define SB_SERVE_SERVER_PRIV_H

#include "serve/access.h"
#include "serve/conn.h"
#include "serve/reply.h"
#include "serve/routes.h"
#include "serve/worker.h"

#define SB_FILE_NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._"

/* A worker, if there is one: it is made when there is something to do. */
struct sb_seat {
	struct sb_peer peer;
	bool is_busy;
	struct sb_conn *conn; /* who asked; NULL: is gone */
	uint64_t deadline_ns;
};

struct sb_serve {
	const struct sb_serve_opts *opts;
	int listen_fd, signal_fd, epoll_fd;
	char url[128]; /* longer than a path of unix(7) */
	struct sb_access access;
	struct sb_asset assets[SB_SERVE_NR_ASSETS];

	struct sb_conn *conns;
	size_t nr_conns_max;
	uint64_t next_expiry_ns;
	uint64_t nr_body_bytes; /* of answers that are being sent */

	struct sb_seat seats[SB_SERVE_WORKERS];
	struct sb_conn *first, *last; /* questions that wait */
	size_t nr_queued;

	struct sb_serve_counts counts;
	struct sb_serve_totals totals;
	struct sb_question question; /* scratch: it is large */
	struct sb_answer answer;
};

/* server.c */

/* Close it. */
void sb_serve_drop(struct sb_serve *serve, struct sb_conn *conn);
/* Begin an error as its reply; sb_serve_go_on() sends it. */
void sb_serve_refuse(struct sb_serve *serve, struct sb_conn *conn, int status, const char *why);
/* Begin what a worker answered; takes @fd. */
void sb_serve_answer(struct sb_serve *serve, struct sb_conn *conn, struct sb_answer *answer,
		     int fd);
void sb_serve_go_on(struct sb_serve *serve, struct sb_conn *conn);
int sb_serve_watch_worker(struct sb_serve *serve, size_t i);
/* In a worker: it has nothing to do with them. */
void sb_serve_close_all(struct sb_serve *serve);

/* pool.c */

/* A question waits. */
void sb_pool_add(struct sb_serve *serve, struct sb_conn *conn);
/* It does not any more, or its answer is nobody's. */
void sb_pool_forget(struct sb_serve *serve, struct sb_conn *conn);
/* Give questions to workers that have nothing to do. */
void sb_pool_go_on(struct sb_serve *serve);
/* A worker has answered, or ended. */
void sb_pool_on_worker(struct sb_serve *serve, size_t i);
/* End those whose question takes too long. */
void sb_pool_expire(struct sb_serve *serve, uint64_t now_ns);
bool sb_pool_is_busy(const struct sb_serve *serve);
void sb_pool_release(struct sb_serve *serve);

#endif
