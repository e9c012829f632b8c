/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The head of an HTTP/1.1 request (RFC 9110, RFC 9112), read strictly: what is not sure to mean one thing is
 * refused, so that nobody in between can mean another. There are no bodies: all that we do is to answer.
 *
 * Why not libmicrohttpd: its time limit is for silence, not for a request, and it takes no new connection
 * when it has as many as it may. 1,000 clients that send a byte a second shut out all others for as long as
 * they like (tried with 0.9.75). Here a request has one deadline, and the slowest client makes room.
 */
#ifndef SB_SERVE_HTTP_H
#define SB_SERVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>

/* A head that is longer is refused. */
#define SB_HTTP_HEAD_MAX (16u << 10)
/* Longer ones are refused; what is asked for is in it. */
#define SB_HTTP_LINE_MAX (8u << 10)

struct sb_http_text {
	const char *s; /* not ended by NUL; NULL: there was none */
	size_t len;
};

struct sb_http_request {
	bool is_head;			 /* HEAD, else GET */
	bool keeps;			 /* the connection, for the next request */
	struct sb_http_text path, query; /* as sent: encoded by %; @query without its "?" */
	struct sb_http_text host, authorization, cookie, accept_encoding, if_none_match;
	struct sb_http_text fetch_site, fetch_mode;
};

/* Return: how long the head at the beginning of @bytes is, with the empty line that ends it; 0: the end
 * is not there. Nothing before @from is looked at again: *from is for the next call. */
size_t sb_http_head_len(const char *bytes, size_t len, size_t *from);

/* @len: what sb_http_head_len() said. @ret borrows from @bytes. Return: 0, or the status to refuse it with:
 * 400, 405, 413, 414, 431, 505. */
int sb_http_parse(const char *bytes, size_t len, struct sb_http_request *ret);

/* Return: "Not Found", ... of one that we send, else "Error". */
const char *sb_http_reason(int status);

/* Whether @list ("gzip;q=1.0, br") has @token, and not with a weight of 0. Letters are of any case. */
bool sb_http_list_has(struct sb_http_text list, const char *token);
bool sb_http_text_is(struct sb_http_text text, const char *s);

#endif
