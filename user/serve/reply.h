/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes the heads of replies, and replies that need no worker, to conn->head, whose contents are
 * replaced. The caller sends it with sb_conn_send(), and has set conn->closes and conn->has_no_body
 * before. Arguments are not kept, but for a struct sb_asset. Single-threaded. Pointers are not NULL
 * unless it says so. The functions return 0; or -ENOMEM, and then the connection can only be
 * closed. A connection has one reply at a time: sb_conn_next() removes it before the next.
 */
#ifndef SB_SERVE_REPLY_H
#define SB_SERVE_REPLY_H

#include "serve/access.h"
#include "serve/conn.h"
#include "serve/serve.h"

/* A file of the web page, which is part of the program. */
struct sb_asset {
	const char *path, *type;
	const char *text;
	size_t len;
	struct sb_str packed; /* with gzip */
	char etag[24];
};

#define SB_SERVE_NR_ASSETS 3u
/* Set the files of the page, compressed, too. Return: 0 or -ENOMEM; release them in both cases. */
int sb_assets_init(struct sb_asset assets[SB_SERVE_NR_ASSETS]);
/* Free the compressed texts, once no reply points to one, also of zeroed elements; call it once. */
void sb_assets_release(struct sb_asset assets[SB_SERVE_NR_ASSETS]);

struct sb_reply {
	int status;
	const char *type;
	uint64_t len;
	bool is_gzip;
	const char *etag;      /* NULL: nobody may cache the reply */
	const char *file_name; /* for a download; or NULL */
	const char *more;      /* further header lines; or NULL */
};

/* Write the head with the headers that all replies have. The texts of @reply are not checked: the
 * caller makes sure that they fit into a header, and that each line of `more` ends in CRLF. Sets
 * conn->status and conn->body_len, but no body: the caller sets conn->body or conn->body_fd. */
int sb_reply_head(struct sb_conn *conn, const struct sb_reply *reply);
/* A whole reply with the JSON body {"error":"..."}, which is in conn->head. @why: any text, cleaned
 * and escaped here. */
int sb_reply_error(struct sb_conn *conn, int status, const char *why);
/* A reply with a file of the page, compressed if the client accepts it; 304 if the client has it.
 * conn->body points into @asset until the reply is sent. */
int sb_reply_asset(struct sb_conn *conn, const struct sb_http_request *request,
		   const struct sb_asset *asset);
/* After "/?token=..." with the right token: set a cookie, and redirect to "/". access->token is not
 * NULL. */
int sb_reply_cookie(struct sb_conn *conn, const struct sb_access *access);
/* A whole reply with the text body "ok", which is in conn->head. */
int sb_reply_health(struct sb_conn *conn);

#endif
