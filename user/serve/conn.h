/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One connection: bytes in, a reply out. Who decides what to reply is server.c. */
#ifndef SB_SERVE_CONN_H
#define SB_SERVE_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "serve/http.h"

enum sb_conn_state {
	SB_CONN_FREE,
	SB_CONN_READING, /* a head is to come */
	SB_CONN_ASKING,	 /* its question waits, or a worker has it */
	SB_CONN_SENDING,
	SB_CONN_DRAINING, /* all is sent; what still comes would make the kernel take it back */
};

struct sb_conn {
	int fd;
	enum sb_conn_state state;
	uint64_t deadline_ns; /* of the state */
	uint32_t events;      /* that epoll waits for */
	uint32_t nr_requests;

	struct sb_str in; /* at most SB_HTTP_HEAD_MAX */
	size_t looked_at, head_len;
	bool has_ended; /* nothing more comes */

	struct sb_str head;
	size_t head_sent;
	const char *body; /* borrowed; or @body_fd */
	int body_fd;	  /* or -1 */
	uint64_t body_len, body_sent;
	int status;
	bool closes;	  /* when it is sent */
	bool has_no_body; /* HEAD */

	/* Asking. */
	uint32_t route;
	bool accepts_gzip;
	bool is_asked_again; /* the worker that had it has ended */
	struct sb_str query;
	struct sb_conn *next; /* in the queue */
};

void sb_conn_init(struct sb_conn *conn, int fd, uint64_t deadline_ns);
void sb_conn_release(struct sb_conn *conn);

/*
 * Read on. Return: 1: a whole head is at the beginning of @in, head_len long; 0: it is not there yet;
 * -ECONNRESET: they are gone; -EMSGSIZE: it is longer than it may be.
 */
int sb_conn_read(struct sb_conn *conn);
/* The head is done with; the next one may be behind it. */
void sb_conn_next(struct sb_conn *conn);
/* Send on. Return: 1: all is sent; 0: there is no room; -ECONNRESET: they are gone. */
int sb_conn_send(struct sb_conn *conn);
/* Nothing more will be sent. Return: 0: there may be more to come; -ECONNRESET: there is not. */
int sb_conn_drain(struct sb_conn *conn);

#endif
