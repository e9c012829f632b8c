// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "serve/conn.h"

#include <errno.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

#define READ_BYTES 2048u
/* Send at most this much at once, then let other connections have their turn. */
#define SEND_BYTES (1u << 20)

void sb_conn_init(struct sb_conn *conn, int fd, uint64_t deadline_ns)
{
	*conn = (struct sb_conn){
		.fd = fd,
		.state = SB_CONN_READING,
		.deadline_ns = deadline_ns,
		.body_fd = -1,
	};
}

void sb_conn_release(struct sb_conn *conn)
{
	sb_closep(&conn->fd);
	sb_closep(&conn->body_fd);
	sb_str_release(&conn->in);
	sb_str_release(&conn->head);
	sb_str_release(&conn->query);
	*conn = (struct sb_conn){ .fd = -1, .body_fd = -1 };
}

static bool find_head(struct sb_conn *conn)
{
	conn->head_len =
		conn->in.len ? sb_http_head_len(conn->in.s, conn->in.len, &conn->looked_at) : 0;
	return conn->head_len;
}

int sb_conn_read(struct sb_conn *conn)
{
	size_t room = SB_HTTP_HEAD_MAX - conn->in.len;
	ssize_t nr;

	if (find_head(conn))
		return 1;
	if (!room)
		return -EMSGSIZE;
	room = room < READ_BYTES ? room : READ_BYTES;
	if (sb_str_reserve(&conn->in, room))
		return -ECONNRESET;
	do
		nr = recv(conn->fd, conn->in.s + conn->in.len, room, 0);
	while (nr < 0 && errno == EINTR);
	if (nr < 0)
		return errno == EAGAIN ? 0 : -ECONNRESET;
	if (!nr)
		return -ECONNRESET;
	conn->in.len += (size_t)nr;
	conn->in.s[conn->in.len] = '\0';
	if (find_head(conn))
		return 1;
	return conn->in.len < SB_HTTP_HEAD_MAX ? 0 : -EMSGSIZE;
}

void sb_conn_next(struct sb_conn *conn)
{
	conn->in.len -= conn->head_len;
	memmove(conn->in.s, conn->in.s + conn->head_len, conn->in.len);
	conn->looked_at = 0;
	sb_closep(&conn->body_fd);
	conn->body_fd = -1;
	conn->body = NULL;
	conn->head_sent = conn->body_sent = conn->body_len = 0;
	sb_str_clear(&conn->head);
}

static int error_of_send(void)
{
	return errno == EAGAIN || errno == EINTR ? 0 : -ECONNRESET;
}

/* Return: 1: sent, 0, -ECONNRESET. */
static int send_head(struct sb_conn *conn)
{
	bool has_more = conn->body_len && !conn->has_no_body;
	ssize_t nr;

	if (conn->head_sent == conn->head.len)
		return 1;
	nr = send(conn->fd, conn->head.s + conn->head_sent, conn->head.len - conn->head_sent,
		  MSG_NOSIGNAL | (has_more ? MSG_MORE : 0));
	if (nr < 0)
		return error_of_send();
	conn->head_sent += (size_t)nr;
	return conn->head_sent == conn->head.len;
}

int sb_conn_send(struct sb_conn *conn)
{
	off_t at = (off_t)conn->body_sent;
	uint64_t left;
	ssize_t nr;
	int ret = send_head(conn);

	if (ret <= 0)
		return ret;
	left = conn->has_no_body ? 0 : conn->body_len - conn->body_sent;
	if (!left)
		return 1;
	left = left < SEND_BYTES ? left : SEND_BYTES;
	nr = conn->body ? send(conn->fd, conn->body + conn->body_sent, left, MSG_NOSIGNAL)
			: sendfile(conn->fd, conn->body_fd, &at, left);
	if (nr < 0)
		return error_of_send();
	/* The file is shorter than it was when the reply began. */
	if (!nr)
		return -ECONNRESET;
	conn->body_sent += (uint64_t)nr;
	return conn->body_sent == conn->body_len;
}

int sb_conn_drain(struct sb_conn *conn)
{
	char bytes[4096];
	ssize_t nr = recv(conn->fd, bytes, sizeof(bytes), 0);

	if (nr < 0)
		return error_of_send();
	return nr ? 0 : -ECONNRESET;
}
