/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parses the head of an HTTP/1.1 request (RFC 9110, RFC 9112), strictly: what is ambiguous is
 * refused, so that no proxy can read it differently. Requests with a body are refused, too. Called
 * by server.c. Thread: any. Pointers are not NULL, but sb_http_text.s may be. sb_http_head_len() is
 * called until the head is there, then sb_http_parse() once.
 *
 * Why not libmicrohttpd: its time limit is for silence, not for a request, and it accepts no
 * connection when it has its maximum. 1,000 clients that send a byte a second shut out all others
 * for as long as they like (tried with 0.9.75). Here a request has one deadline, and the slowest
 * client is evicted.
 */
#ifndef SB_SERVE_HTTP_H
#define SB_SERVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>

/* A longer head is refused. */
#define SB_HTTP_HEAD_MAX (16u << 10)
/* A longer first line, which has the address, is refused. */
#define SB_HTTP_LINE_MAX (8u << 10)

struct sb_http_text {
	const char *s; /* not NUL-terminated; NULL: it was not there */
	size_t len;
};

struct sb_http_request {
	bool is_head;			 /* HEAD, else GET */
	bool keeps;			 /* the client keeps the connection for another request */
	struct sb_http_text path, query; /* percent-encoded, as sent; @query without its "?" */
	struct sb_http_text host, authorization, cookie, accept_encoding, if_none_match;
	struct sb_http_text fetch_site, fetch_mode;
};

/*
 * Find the end of the head at the beginning of @bytes. *@from, 0 at first for each head, is
 * updated, so that the next call does not search the same bytes again. Return: the length of the
 * head with the empty line that ends it; 0 if that is not there yet. SB_HTTP_HEAD_MAX is not
 * checked.
 */
size_t sb_http_head_len(const char *bytes, size_t len, size_t *from);

/*
 * Parse a head of @len bytes, as sb_http_head_len() says. @ret is overwritten, and borrows from
 * @bytes. Return: 0; or the HTTP status to refuse it with: 400 if it is not valid or has no Host,
 * 405 for other methods than GET and HEAD, 413 for a body, 414 for a first line beyond
 * SB_HTTP_LINE_MAX, 431 for more than 100 headers, 505 for other versions than 1.0 and 1.1; then
 * only ret->is_head is to be used.
 */
int sb_http_parse(const char *bytes, size_t len, struct sb_http_request *ret);

/* Return: the reason phrase of a status that we send, such as "Not Found"; "Error" for others; a
 * constant. */
const char *sb_http_reason(int status);

/* Return: whether a list like "gzip;q=1.0, br" has @token, in upper or lower case, with a weight
 * above 0; false if the list was not there. "*" in the list stands for no token but itself. */
bool sb_http_list_has(struct sb_http_text list, const char *token);
/* Return: whether @text is the string @s, byte by byte; false if @text was not there. */
bool sb_http_text_is(struct sb_http_text text, const char *s);

#endif
