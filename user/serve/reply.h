/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Heads of replies, and those that need no worker. Each returns 0 or -ENOMEM. */
#ifndef SB_SERVE_REPLY_H
#define SB_SERVE_REPLY_H

#include "serve/access.h"
#include "serve/conn.h"
#include "serve/serve.h"

/* A file that is part of the program. */
struct sb_asset {
	const char *path, *type;
	const char *text;
	size_t len;
	char *packed; /* by gzip */
	size_t packed_len;
	char etag[24];
};

#define SB_SERVE_NR_ASSETS 3u
/* Return: 0 or -ENOMEM; in any case release it. */
int sb_assets_init(struct sb_asset assets[SB_SERVE_NR_ASSETS]);
void sb_assets_release(struct sb_asset assets[SB_SERVE_NR_ASSETS]);

struct sb_reply {
	int status;
	const char *type;
	uint64_t len;
	bool is_gzip;
	const char *etag;      /* or NULL: not to be kept by anybody */
	const char *file_name; /* of one to keep, or NULL */
	const char *more;      /* lines, or NULL */
};

/* What all have: policies, and whether the connection is kept. conn->body_len is set, no body is. */
int sb_reply_head(struct sb_conn *conn, const struct sb_reply *reply);
/* {"error":"..."} */
int sb_reply_error(struct sb_conn *conn, int status, const char *why);
int sb_reply_asset(struct sb_conn *conn, const struct sb_http_request *request,
		   const struct sb_asset *asset);
/* "/?token=..." was right: a cookie for it, and the page without. */
int sb_reply_cookie(struct sb_conn *conn, const struct sb_access *access);
/* "ok" */
int sb_reply_health(struct sb_conn *conn);

#endif
