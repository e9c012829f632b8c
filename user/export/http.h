/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An HTTP client for requests with a body, one at a time. Order: sb_http_new(), sb_http_send() for
 * each request, sb_http_free(), and sb_http_reply_release() for the reply. It uses libcurl, which
 * is loaded when it is needed, so that other commands do not have it in memory. Only HTTP and
 * HTTPS; certificates are checked; redirections are not followed, because requests carry tokens.
 * Replies are truncated to a limit. Proxies come from the environment (http_proxy, ...), as for
 * curl(1). Pointers are not NULL unless it says so. Not thread-safe: one thread at a time for each
 * client; functions without one may be called on any thread.
 */
#ifndef SB_EXPORT_HTTP_H
#define SB_EXPORT_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* Bytes that are kept of a reply's body. */
#define SB_HTTP_BODY_MAX    (1u << 20)
/* A longer Retry-After is shortened to this. */
#define SB_HTTP_RETRY_MAX_S 3600u

struct sb_http;

/*
 * The struct and the token are copied; the other texts, the array and stop_fd are borrowed until
 * sb_http_free(). Headers and the token are sent unchecked: the caller calls
 * sb_http_header_is_good() for each header, and makes sure that the token has no control
 * characters.
 */
struct sb_http_opts {
	const char *const *headers; /* "Key: value" */
	size_t nr_headers;
	const char *token;   /* for "Authorization: Bearer"; NULL: none */
	const char *ca_file; /* certificates to trust instead of the system's; NULL: the system's */
	uint64_t timeout_ms; /* for a whole request; 0: none, but 10 s to connect */
	int stop_fd;	     /* give up as soon as it is readable; -1: none */
};

struct sb_http_request {
	const char *url;
	const char *type;     /* Content-Type; NULL: text/plain */
	const char *encoding; /* Content-Encoding, or NULL */
	const void *body;     /* NULL: send a GET */
	size_t len;
};

/* Zero-initialize. It can be used for many requests, then must be released. */
struct sb_http_reply {
	long status; /* HTTP status; 0: there was no reply */
	bool has_retry_after;
	uint32_t retry_after_s; /* from Retry-After, in seconds, also if that is a date */
	bool is_unsure;		/* no reply, but the server may have accepted the request */
	bool is_hopeless;	/* no reply, and no use to try again: address or certificate */
	struct sb_str body;	/* at most SB_HTTP_BODY_MAX; NUL-terminated if not empty */
	struct sb_str location; /* where a redirection would lead; empty: none */
	struct sb_str error;	/* why there is no reply */
};
/* Free what the reply holds, also of a zero-initialized one; zero it before it is used again. */
void sb_http_reply_release(struct sb_http_reply *reply);

/* Make a client, owned by the caller. Not while another thread makes one: loading libcurl is not
 * thread-safe. Return: 0; -ELIBACC if libcurl is not installed, or the program is static; -ENOMEM.
 * *ret_http is untouched on error. */
int sb_http_new(const struct sb_http_opts *opts, struct sb_http **ret_http);
/* Free a client and close its connections; NULL is allowed. */
void sb_http_free(struct sb_http *http);

/*
 * Send one request and wait for the reply, at most timeout_ms of sb_http_opts. @request: borrowed
 * for the call. @reply: zeroed before the first one; overwritten, its memory is used again. Return:
 * 0 if there is a reply, of any reply->status; -EIO if there is none, and reply->error says why,
 * is_unsure that the server may have accepted the request, is_hopeless that it is no use to try
 * again; -ECANCELED if stop_fd became readable; -ENOMEM. On error the other members are not to be
 * used, but the client and the reply can be used for the next request.
 */
int sb_http_send(struct sb_http *http, const struct sb_http_request *request,
		 struct sb_http_reply *reply);

/* Return: whether it is "Key: value": a token of RFC 9110, a colon, and any value, also an empty
 * one, without control characters but tabs. */
bool sb_http_header_is_good(const char *header);
/* Parse Retry-After: seconds, or a date (RFC 9110, 10.2.3), from which @now_s, since the epoch, is
 * subtracted. Return: whether it is valid; then *ret_s is seconds, at most SB_HTTP_RETRY_MAX_S, and
 * 0 for a date that has passed; else it is not to be used. */
bool sb_http_retry_after(const char *value, int64_t now_s, uint32_t *ret_s);
/*
 * Append @text, percent-encoded except for unreserved characters (RFC 3986, 2.3). Return: 0;
 * -ENOMEM, and a part may have been appended: discard it.
 */
int sb_http_escape(struct sb_str *url, const char *text);
/*
 * Append an address for display: without user, password, query and fragment. @url: any text; one
 * that is no address is shown as it is, up to '?' or '#' and without what is before '@'. Return: 0;
 * -ENOMEM, and a part may have been appended: discard it.
 */
int sb_http_add_shown(struct sb_str *out, const char *url);

#endif
