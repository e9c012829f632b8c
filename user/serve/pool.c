// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/time.h"
#include "serve/server_priv.h"

void sb_pool_add(struct sb_serve *serve, struct sb_conn *conn)
{
	conn->next = NULL;
	if (serve->last)
		serve->last->next = conn;
	else
		serve->first = conn;
	serve->last = conn;
	serve->nr_queued++;
}

static struct sb_conn *pop(struct sb_serve *serve)
{
	struct sb_conn *conn = serve->first;

	serve->first = conn->next;
	if (!serve->first)
		serve->last = NULL;
	serve->nr_queued--;
	return conn;
}

void sb_pool_forget(struct sb_serve *serve, struct sb_conn *conn)
{
	struct sb_conn **at, *before = NULL;
	size_t i;

	for (i = 0; i < SB_SERVE_WORKERS; i++)
		if (serve->seats[i].conn == conn)
			serve->seats[i].conn = NULL;
	for (at = &serve->first; *at; before = *at, at = &(*at)->next) {
		if (*at != conn)
			continue;
		*at = conn->next;
		if (serve->last == conn)
			serve->last = before;
		serve->nr_queued--;
		return;
	}
}

struct start {
	struct sb_serve *serve;
	size_t seat;
};

static void run(void *arg, int fd)
{
	const struct start *start = arg;
	struct sb_serve *serve = start->serve;
	size_t i;

	for (i = 0; i < SB_SERVE_WORKERS; i++)
		if (i != start->seat && serve->seats[i].peer.pid)
			close(serve->seats[i].peer.fd);
	sb_serve_close_all(serve);
	sb_worker_run(serve->opts, fd);
}

static int begin_worker(struct sb_serve *serve, size_t i)
{
	struct sb_seat *seat = &serve->seats[i];
	struct start start = { serve, i };
	int err;

	if (seat->peer.pid)
		return 0;
	err = sb_peer_new(run, &start, &seat->peer);
	if (!err)
		err = sb_serve_watch_worker(serve, i);
	if (err)
		sb_peer_kill(&seat->peer);
	return err;
}

static int give(struct sb_serve *serve, size_t i, const struct sb_conn *conn)
{
	struct sb_question *question = &serve->question;
	struct sb_seat *seat = &serve->seats[i];
	int err = begin_worker(serve, i);

	if (err)
		return err;
	*question = (struct sb_question){
		.route = conn->route,
		.accepts_gzip = conn->accepts_gzip,
		.query_len = (uint32_t)conn->query.len,
		.counts = serve->counts,
		.totals = serve->totals,
	};
	if (conn->query.len)
		memcpy(question->query, conn->query.s, conn->query.len);
	return sb_peer_send(seat->peer.fd, question, sizeof(*question), NULL, 0);
}

void sb_pool_go_on(struct sb_serve *serve)
{
	struct sb_conn *conn;
	size_t i;
	int err;

	for (i = 0; i < SB_SERVE_WORKERS; i++) {
		if (!serve->first)
			return;
		if (serve->seats[i].is_busy)
			continue;
		conn = pop(serve);
		err = give(serve, i, conn);
		if (err == -ECHILD) {
			/* The worker has died since it answered: start another one. */
			sb_peer_kill(&serve->seats[i].peer);
			serve->counts.nr_worker_ends++;
			err = give(serve, i, conn);
		}
		if (err) {
			sb_debug("cannot send the request to a worker process: %s", strerror(-err));
			sb_serve_refuse(serve, conn, 503,
					"cannot start a worker process; try again");
			sb_serve_go_on(serve, conn);
			continue;
		}
		serve->seats[i].is_busy = true;
		serve->seats[i].conn = conn;
		serve->seats[i].deadline_ns = sb_now_ns() + SB_SERVE_QUESTION_S * SB_NS_PER_SEC;
	}
}

static void end_worker(struct sb_serve *serve, struct sb_seat *seat, const char *why)
{
	struct sb_conn *conn = seat->conn;

	sb_peer_kill(&seat->peer);
	*seat = (struct sb_seat){};
	if (!conn)
		return;
	sb_serve_refuse(serve, conn, 503, why);
	sb_serve_go_on(serve, conn);
}

/* An event may belong to the worker that had this seat before: do not block on this one. */
static bool has_said(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

void sb_pool_on_worker(struct sb_serve *serve, size_t i)
{
	struct sb_seat *seat = &serve->seats[i];
	struct sb_conn *conn;
	int fd, ret;

	/* The worker was ended earlier in this round of events. */
	if (!seat->peer.pid || !has_said(seat->peer.fd))
		return;
	ret = sb_peer_receive(seat->peer.fd, &serve->answer, sizeof(serve->answer), &fd, 1);
	if (ret < 0 || !seat->is_busy) {
		conn = seat->conn;
		serve->counts.nr_worker_ends++;
		/* Ask once more: the worker may have died for another reason than the question. */
		if (conn && !conn->is_asked_again) {
			seat->conn = NULL;
			conn->is_asked_again = true;
			sb_pool_add(serve, conn);
		}
		end_worker(serve, seat,
			   "the worker process died; request a shorter time range or fewer tags");
		return;
	}
	conn = seat->conn;
	seat->conn = NULL;
	seat->is_busy = false;
	if (serve->answer.totals.version == serve->totals.version + 1)
		serve->totals = serve->answer.totals;
	if (!conn) {
		sb_closep(&fd);
		return;
	}
	sb_serve_answer(serve, conn, &serve->answer, fd);
	if (conn->state != SB_CONN_FREE)
		sb_serve_go_on(serve, conn);
}

void sb_pool_expire(struct sb_serve *serve, uint64_t now_ns)
{
	size_t i;

	for (i = 0; i < SB_SERVE_WORKERS; i++) {
		if (!serve->seats[i].is_busy || serve->seats[i].deadline_ns > now_ns)
			continue;
		serve->counts.nr_expired++;
		end_worker(serve, &serve->seats[i],
			   "the answer takes more than 10 seconds; request a shorter time range");
	}
}

bool sb_pool_is_busy(const struct sb_serve *serve)
{
	size_t i;

	for (i = 0; i < SB_SERVE_WORKERS; i++)
		if (serve->seats[i].is_busy)
			return true;
	return false;
}

void sb_pool_release(struct sb_serve *serve)
{
	size_t i;

	/* At once: nobody will read what they do. */
	for (i = 0; i < SB_SERVE_WORKERS; i++)
		sb_peer_kill(&serve->seats[i].peer);
}
