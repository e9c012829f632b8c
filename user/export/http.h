/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An HTTP client: requests with a body, one at a time. It is libcurl, loaded when it is needed, so that nobody
 * else has it in memory. HTTP and HTTPS only, certificates are checked, redirections are not followed: what is
 * sent carries tokens. Replies are cut to a bound. Proxies are taken from the environment (http_proxy, ...), as
 * curl(1) does. Not thread-safe.
 */
#ifndef SB_EXPORT_HTTP_H
#define SB_EXPORT_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* What is kept of a reply's body, and of one header. */
#define SB_HTTP_BODY_MAX    (1u << 20)
/* Longer waits are not believed. */
#define SB_HTTP_RETRY_MAX_S 3600u

struct sb_http;

struct sb_http_opts {
	const char *const
		*headers; /* "Key: value", checked by sb_http_header_is_good(); borrowed */
	size_t nr_headers;
	const char *token;   /* of "Authorization: Bearer"; NULL: none */
	const char *ca_file; /* certificates to trust instead of the system's; NULL: those */
	uint64_t timeout_ms; /* of a whole request */
	int stop_fd;	     /* readable: give up at once; -1: none */
};

struct sb_http_request {
	const char *url;
	const char *type;     /* Content-Type */
	const char *encoding; /* Content-Encoding, or NULL */
	const void *body;     /* NULL: a GET */
	size_t len;
};

/* Zero-initialize, use again, then release. */
struct sb_http_reply {
	long status;
	bool has_retry_after;
	uint32_t retry_after_s; /* of Retry-After; dates are taken, too */
	bool is_unsure;		/* no reply, but the other side may have taken the request */
	bool is_hopeless;   /* no reply, and there will be none: the address, or the certificate */
	struct sb_str body; /* at most SB_HTTP_BODY_MAX; NUL-terminated if there is any */
	struct sb_str location;
	struct sb_str error; /* why there is no reply */
};
void sb_http_reply_release(struct sb_http_reply *reply);

/* Return: 0; -ELIBACC: there is no libcurl here; -ENOMEM. */
int sb_http_new(const struct sb_http_opts *opts, struct sb_http **ret_http);
void sb_http_free(struct sb_http *http);

/* Return: 0: there is a status; -EIO: there is none, reply->error says why; -ECANCELED: stopped; -ENOMEM. */
int sb_http_send(struct sb_http *http, const struct sb_http_request *request,
		 struct sb_http_reply *reply);

/* "Key: value": a token of RFC 9110, and no control characters. */
bool sb_http_header_is_good(const char *header);
/* The value of Retry-After: seconds, or a date (RFC 9110, 10.2.3). Return: whether it is one. */
bool sb_http_retry_after(const char *value, int64_t now_s, uint32_t *ret_s);
/* Append @text with what is not unreserved in a URL (RFC 3986, 2.3) as %XX. Return: 0 or -ENOMEM. */
int sb_http_escape(struct sb_str *url, const char *text);
/* Append an address without user, password, and what follows '?' or '#': to be shown. 0 or -ENOMEM. */
int sb_http_add_shown(struct sb_str *out, const char *url);

#endif
