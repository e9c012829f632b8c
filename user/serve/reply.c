// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "serve/reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/index.h"
#include "output/gzip.h"
#include "output/jsontext.h"
#include "serve/page.h"

/* Load nothing from other sites, run only our own files, and do not let others frame the page. */
#define POLICIES                                                                             \
	"Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; " \
	"connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "    \
	"frame-ancestors 'none'\r\n"                                                         \
	"X-Content-Type-Options: nosniff\r\n"                                                \
	"X-Frame-Options: DENY\r\n"                                                          \
	"Referrer-Policy: no-referrer\r\n"                                                   \
	"Cross-Origin-Resource-Policy: same-origin\r\n"                                      \
	"Cross-Origin-Opener-Policy: same-origin\r\n"

/* Files of the page. */

int sb_assets_init(struct sb_asset assets[SB_SERVE_NR_ASSETS])
{
	const struct sb_asset all[SB_SERVE_NR_ASSETS] = {
		{ "/", "text/html; charset=utf-8", sb_serve_page_html },
		{ "/page.css", "text/css; charset=utf-8", sb_serve_page_css },
		{ "/page.js", "text/javascript; charset=utf-8", sb_serve_page_js },
	};
	size_t i;
	int err = 0;

	memcpy(assets, all, sizeof(all));
	for (i = 0; i < SB_SERVE_NR_ASSETS && !err; i++) {
		assets[i].len = strlen(assets[i].text);
		snprintf(assets[i].etag, sizeof(assets[i].etag), "\"%016" PRIx64 "\"",
			 sb_hash(assets[i].text, assets[i].len, 0));
		err = sb_gzip_pack(assets[i].text, assets[i].len, &assets[i].packed);
	}
	return err;
}

void sb_assets_release(struct sb_asset assets[SB_SERVE_NR_ASSETS])
{
	size_t i;

	for (i = 0; i < SB_SERVE_NR_ASSETS; i++)
		sb_str_release(&assets[i].packed);
}

/* Heads. */

static int add_date(struct sb_str *head)
{
	char text[64];
	time_t now = time(NULL);
	struct tm tm;

	if (!gmtime_r(&now, &tm) ||
	    !strftime(text, sizeof(text), "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &tm))
		return 0;
	return sb_str_add(head, text);
}

int sb_reply_head(struct sb_conn *conn, const struct sb_reply *reply)
{
	struct sb_str *head = &conn->head;
	int err;

	sb_str_clear(head);
	conn->body_len = reply->len;
	conn->status = reply->status;
	err = sb_str_addf(head, "HTTP/1.1 %d %s\r\nServer: stackbpf\r\n", reply->status,
			  sb_http_reason(reply->status));
	if (!err)
		err = add_date(head);
	if (!err && reply->status != 304)
		err = sb_str_addf(head, "Content-Type: %s\r\nContent-Length: %" PRIu64 "\r\n",
				  reply->type, reply->len);
	if (!err && reply->is_gzip)
		err = sb_str_add(head, "Content-Encoding: gzip\r\n");
	if (!err)
		err = reply->etag ? sb_str_addf(head, "ETag: W/%s\r\nCache-Control: no-cache\r\n",
						reply->etag)
				  : sb_str_add(head, "Cache-Control: no-store\r\n");
	if (!err && reply->file_name)
		err = sb_str_addf(head, "Content-Disposition: attachment; filename=\"%s\"\r\n",
				  reply->file_name);
	if (!err)
		err = sb_str_addf(head, "Vary: Accept-Encoding\r\nConnection: %s\r\n%s%s\r\n",
				  conn->closes ? "close" : "keep-alive",
				  reply->more ? reply->more : "", POLICIES);
	return err;
}

static int add_bytes(void *arg, const void *data, size_t len)
{
	return sb_str_addn(arg, data, len);
}

/* Put a small body behind the head. */
static int add_text(struct sb_conn *conn, const char *text, size_t len)
{
	conn->body_len = 0;
	return conn->has_no_body ? 0 : sb_str_addn(&conn->head, text, len);
}

int sb_reply_error(struct sb_conn *conn, int status, const char *why)
{
	sb_cleanup(sb_str_release) struct sb_str body = {};
	struct sb_json json = { .put = add_bytes, .arg = &body };
	struct sb_reply reply = { .status = status, .type = "application/json" };
	int err;

	sb_json_object(&json, NULL);
	sb_json_string(&json, "error", why);
	err = sb_json_end(&json);
	if (err)
		return err;
	reply.len = body.len;
	if (status == 405)
		reply.more = "Allow: GET, HEAD\r\n";
	else if (status == 401)
		reply.more = "WWW-Authenticate: Bearer\r\n";
	else if (status == 503)
		reply.more = "Retry-After: 1\r\n";
	err = sb_reply_head(conn, &reply);
	return err ? err : add_text(conn, body.s, body.len);
}

int sb_reply_health(struct sb_conn *conn)
{
	static const char text[] = "ok\n";
	int err = sb_reply_head(conn, &(struct sb_reply){
					      .status = 200,
					      .type = "text/plain; charset=utf-8",
					      .len = sizeof(text) - 1,
				      });

	return err ? err : add_text(conn, text, sizeof(text) - 1);
}

int sb_reply_cookie(struct sb_conn *conn, const struct sb_access *access)
{
	char more[SB_SERVE_TOKEN_MAX + 256];

	/* The browser keeps the fragment, which has the state of the page. */
	snprintf(more, sizeof(more),
		 "Location: /\r\nSet-Cookie: %s=%s; Path=/; HttpOnly; SameSite=Strict; "
		 "Max-Age=31536000\r\n",
		 access->cookie, access->token);
	return sb_reply_head(conn, &(struct sb_reply){
					   .status = 303,
					   .type = "text/plain; charset=utf-8",
					   .more = more,
				   });
}

static bool is_known(const struct sb_http_request *request, const char *etag)
{
	struct sb_http_text seen = request->if_none_match;

	return seen.s && memmem(seen.s, seen.len, etag, strlen(etag));
}

int sb_reply_asset(struct sb_conn *conn, const struct sb_http_request *request,
		   const struct sb_asset *asset)
{
	struct sb_reply reply = { .status = 200, .type = asset->type, .etag = asset->etag };

	if (is_known(request, asset->etag)) {
		reply.status = 304;
		return sb_reply_head(conn, &reply);
	}
	reply.is_gzip = sb_http_list_has(request->accept_encoding, "gzip");
	reply.len = reply.is_gzip ? asset->packed.len : asset->len;
	conn->body = reply.is_gzip ? asset->packed.s : asset->text;
	return sb_reply_head(conn, &reply);
}
