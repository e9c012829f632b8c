/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared by server.c, which has the connections, and pool.c, which has the workers.
 * Single-threaded: all functions are called on the thread of the server, with pointers that are not
 * NULL and seats that are not checked. A seat is a place for one worker process, by index below
 * SB_SERVE_WORKERS. A question is a request that a worker has to answer. A connection that is
 * closed stays in serve->conns, with the state SB_CONN_FREE: after each function that may close
 * connections, check the state before another use.
 *
 * A question: sb_pool_add(), and in each round of the loop sb_pool_on_worker() for workers that
 * epoll reports, sb_pool_expire(), sb_pool_go_on().
 */
#ifndef SB_SERVE_SERVER_PRIV_H
#define SB_SERVE_SERVER_PRIV_H

#include "serve/access.h"
#include "serve/conn.h"
#include "serve/reply.h"
#include "serve/routes.h"
#include "serve/worker.h"

#define SB_FILE_NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._"

/* Place of a worker process, which is started when there is something to do. */
struct sb_seat {
	struct sb_peer peer;
	bool is_busy;
	struct sb_conn *conn; /* who asked; NULL: the client is gone */
	uint64_t deadline_ns;
};

struct sb_serve {
	const struct sb_serve_opts *opts;
	int listen_fd, signal_fd, epoll_fd;
	char url[128]; /* a path of unix(7) fits */
	struct sb_access access;
	struct sb_asset assets[SB_SERVE_NR_ASSETS];

	struct sb_conn *conns;
	size_t nr_conns_max;
	uint64_t next_expiry_ns;
	uint64_t nr_body_bytes; /* of answers that are being sent */

	struct sb_seat seats[SB_SERVE_WORKERS];
	struct sb_conn *first, *last; /* queue of questions */
	size_t nr_queued;

	struct sb_serve_counts counts;
	struct sb_serve_totals totals;
	struct sb_question question; /* scratch: it is large */
	struct sb_answer answer;
};

/* server.c */

/* Make an error the reply; @why is copied. sb_serve_go_on() sends it. Without memory the connection
 * is closed, and sb_serve_go_on() does nothing. The connection is not queued, and no worker has it.
 */
void sb_serve_refuse(struct sb_serve *serve, struct sb_conn *conn, int status, const char *why);
/* Make a worker's answer the reply. @answer: untrusted, and its texts are terminated here; @fd: the
 * body, or -1, taken over. May evict other connections, for SB_SERVE_BODIES_MAX; without memory the
 * connection is closed. sb_serve_go_on() sends the reply. */
void sb_serve_answer(struct sb_serve *serve, struct sb_conn *conn, struct sb_answer *answer,
		     int fd);
/* Read or send as much as possible now. May close the connection. */
void sb_serve_go_on(struct sb_serve *serve, struct sb_conn *conn);
/* Let epoll report the worker of seat @i. Return: 0 or the negative errno of epoll_ctl(2), and then
 * it is not reported. */
int sb_serve_watch_worker(struct sb_serve *serve, size_t i);
/* In a new worker, and in sb_serve_free(): close all connections and the descriptors of the front.
 * Call it once in a process. */
void sb_serve_close_all(struct sb_serve *serve);

/* pool.c */

/* Queue the question of a connection, of which the caller has set route, query, accepts_gzip,
 * is_asked_again and state (SB_CONN_ASKING). It checks nr_queued before (SB_SERVE_QUEUE_MAX). */
void sb_pool_add(struct sb_serve *serve, struct sb_conn *conn);
/* Take a connection out of the queue, or discard the answer it was to get, if it waits for one. */
void sb_pool_forget(struct sb_serve *serve, struct sb_conn *conn);
/* Hand queued questions to idle workers; starts workers if necessary. A question for which that
 * fails gets status 503, and its connection may be closed. */
void sb_pool_go_on(struct sb_serve *serve);
/* The worker of seat @i has answered or died; else nothing is done. Sends the answer, if its
 * connection is still there; a question whose worker died is queued once more, then gets status
 * 503. The seat is free then, and empty after a death. May close connections. */
void sb_pool_on_worker(struct sb_serve *serve, size_t i);
/* Kill workers whose question takes longer than SB_SERVE_QUESTION_S, which gets status 503. May
 * close connections. @now_ns: CLOCK_MONOTONIC. */
void sb_pool_expire(struct sb_serve *serve, uint64_t now_ns);
/* Return: whether a worker has a question. */
bool sb_pool_is_busy(const struct sb_serve *serve);
/* Kill all workers, in sb_serve_free(); their questions are not answered. */
void sb_pool_release(struct sb_serve *serve);

#endif
