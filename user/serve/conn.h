/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One connection: reads requests, sends replies. It does not block, and makes no decisions:
 * server.c does, which sets the state. Single-threaded, as the whole front. Pointers are not NULL.
 * After -ECONNRESET the connection is only to be released.
 *
 * Order: sb_conn_init(); for each request sb_conn_read() until it returns 1, a reply (reply.h),
 * sb_conn_send() until it returns 1, and sb_conn_next(); after the last reply, shutdown(2) for
 * writing and sb_conn_drain() until it fails; sb_conn_release().
 */
#ifndef SB_SERVE_CONN_H
#define SB_SERVE_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "serve/http.h"

enum sb_conn_state {
	SB_CONN_FREE,
	SB_CONN_READING, /* waiting for the head of a request */
	SB_CONN_ASKING,	 /* its question is queued, or a worker has it */
	SB_CONN_SENDING,
	SB_CONN_DRAINING, /* all is sent; unread input would make the kernel discard the reply */
};

struct sb_conn {
	int fd;
	enum sb_conn_state state;
	uint64_t deadline_ns; /* of the state, monotonic clock */
	uint32_t events;      /* that epoll waits for */

	struct sb_str in; /* at most SB_HTTP_HEAD_MAX */
	size_t looked_at, head_len;

	struct sb_str head;
	size_t head_sent;
	const char *body; /* borrowed; NULL: use body_fd */
	int body_fd;	  /* owned; or -1 */
	uint64_t body_len, body_sent;
	int status;
	bool closes;	  /* close the connection after the reply */
	bool has_no_body; /* for HEAD */

	/* The question. */
	uint32_t route;
	bool accepts_gzip;
	bool is_asked_again; /* the worker that had it died */
	struct sb_str query;
	struct sb_conn *next; /* in the queue */
};

/* Begin with a connected, non-blocking socket, which the connection then owns, in the state
 * SB_CONN_READING until @deadline_ns (CLOCK_MONOTONIC). */
void sb_conn_init(struct sb_conn *conn, int fd, uint64_t deadline_ns);
/* Close the socket and the body, and free all, after which the state is SB_CONN_FREE. Again is
 * harmless, but not for a zeroed struct, whose descriptors are 0 and not -1. The caller has taken
 * it out of the queue and away from its worker before. */
void sb_conn_release(struct sb_conn *conn);

/*
 * Read what has arrived, unless conn->in has a whole head already. Return: 1 if a whole head of
 * head_len bytes is at the beginning of conn->in, where it stays until sb_conn_next(); 0 if not
 * yet: call again when the socket is readable; -EMSGSIZE if it is longer than SB_HTTP_HEAD_MAX, and
 * a last reply can still be sent; -ECONNRESET if the client is gone or sends nothing more, or
 * without memory.
 */
int sb_conn_read(struct sb_conn *conn);
/*
 * After a reply: remove the head that was answered and the reply, and close body_fd; a body in
 * memory stays its owner's. The caller sets @state to SB_CONN_READING and a new @deadline_ns, and
 * calls sb_conn_read(), because the next request may be in conn->in already. Other members keep
 * their values until the next request overwrites them.
 */
void sb_conn_next(struct sb_conn *conn);
/*
 * Send what the socket takes of conn->head and the body, without blocking. Return: 1 if all is
 * sent; 0 if not yet: call again when the socket is writable; -ECONNRESET if the client is gone, or
 * conn->body_fd cannot be read or is shorter than conn->body_len: the caller closes the connection.
 */
int sb_conn_send(struct sb_conn *conn);
/* After the last reply: discard input that has arrived. Return: 0 if more may come; -ECONNRESET at
 * its end, or after an error. */
int sb_conn_drain(struct sb_conn *conn);

#endif
