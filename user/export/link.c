// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sends one request, and decides what the reply means: accepted, try later, refused, refuses all.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "export/export.h"

/* Bytes of a reply that are quoted in a message. */
#define SAID_MAX 200u

bool sb_export_is_sent(struct sb_export_link *link)
{
	bool is_sent = link->nr_pieces < link->state->nr_part_pieces;

	link->nr_pieces += is_sent;
	return is_sent;
}

/* Statuses that refuse this request, but perhaps not the next one. */
static bool is_refusal(long status)
{
	return status == 400 || status == 413 || status == 415 || status == 422;
}

static bool is_for_later(long status)
{
	return status == 408 || status == 425 || status == 429 || status >= 500;
}

/* Append the first line of the reply. */
static int add_said(struct sb_str *out, const struct sb_http_reply *reply)
{
	const char *body = reply->body.s ? reply->body.s : "";
	size_t len, at = out->len;
	int err;

	body += strspn(body, " \t\r\n");
	len = strcspn(body, "\r\n");
	if (!len)
		return 0;
	err = sb_str_addf(out, ": %.*s%s", (int)(len < SAID_MAX ? len : SAID_MAX), body,
			  len < SAID_MAX ? "" : "...");
	if (!err)
		sb_replace_controls(out->s + at, out->len - at);
	return err;
}

static int explain(struct sb_export_link *link, const struct sb_http_request *request)
{
	const struct sb_http_reply *reply = &link->reply;
	struct sb_str *why = &link->why;
	int err = 0;

	sb_str_clear(why);
	if (!reply->status) {
		err = sb_str_add(why, "cannot send to '");
		err = err ?: sb_http_add_shown(why, request->url);
		return err ?: sb_str_addf(why, "': %s", reply->error.s ? reply->error.s : "?");
	}
	err = sb_str_add(why, "'");
	err = err ?: sb_http_add_shown(why, request->url);
	err = err ?: sb_str_addf(why, "' says %ld", reply->status);
	if (reply->status >= 300 && reply->status < 400)
		return err
			       ?: sb_str_addf(why, ": the server moved to '%s'; use that address",
					      reply->location.len ? reply->location.s : "?");
	if (reply->status == 401 || reply->status == 403)
		err = err
			      ?: sb_str_add(why, ": the server requires a token, or a different "
						 "one; see --token-file");
	return err ?: add_said(why, reply);
}

/* Return: 0 for a status 2xx; 1 if this request was refused; negative as sb_export_post(). */
static int send_one(struct sb_export_link *link, const struct sb_http_request *request)
{
	struct sb_http_reply *reply = &link->reply;
	int err = sb_http_send(link->http, request, reply);
	int said;

	link->retry_after_s = 0;
	if (err && err != -EIO)
		return err;
	if (!err && reply->status >= 200 && reply->status < 300)
		return 0;
	said = explain(link, request);
	if (said)
		return said;
	if (!err && is_refusal(reply->status))
		return 1;
	if (err ? reply->is_hopeless : !is_for_later(reply->status))
		return -EPERM;
	link->retry_after_s = reply->has_retry_after ? reply->retry_after_s : 0;
	link->state->nr_failed++;
	link->state->nr_unsure += reply->is_unsure;
	return -EAGAIN;
}

int sb_export_ask(struct sb_export_link *link, const struct sb_http_request *request)
{
	int ret = send_one(link, request);

	return ret > 0 ? -EPERM : ret;
}

int sb_export_done(struct sb_export_link *link, uint64_t nr_bytes)
{
	link->has_taken = true;
	link->state->nr_pieces++;
	link->state->nr_bytes += nr_bytes;
	link->state->nr_part_pieces = ++link->nr_pieces;
	return link->save(link->arg);
}

int sb_export_post(struct sb_export_link *link, const struct sb_http_request *request)
{
	int ret = send_one(link, request);

	/*
	 * A server that refuses the very first piece does not speak this protocol. Then nothing is
	 * left out, and the store keeps everything.
	 */
	if (ret > 0 && !link->has_taken)
		return -EPERM;
	if (ret > 0) {
		link->state->nr_refused++;
		link->state->nr_part_pieces = ++link->nr_pieces;
		sb_str_clear(&link->notes);
		ret = sb_str_add(&link->notes, link->why.s) ?: link->save(link->arg);
		return ret;
	}
	return ret ? ret : sb_export_done(link, request->len);
}

bool sb_export_is_url(const char *address)
{
	const char *host = NULL;

	if (!strncmp(address, "http://", 7))
		host = address + 7;
	if (!strncmp(address, "https://", 8))
		host = address + 8;
	if (!host || !strcspn(host, "/?#"))
		return false;
	for (; *address; address++)
		if ((unsigned char)*address <= ' ' || *address == 0x7f)
			return false;
	return true;
}

int sb_export_add_base(struct sb_str *out, const char *url)
{
	size_t len = strcspn(url, "?#");

	while (len && url[len - 1] == '/')
		len--;
	return sb_str_addn(out, url, len);
}
