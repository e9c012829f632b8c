// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* OTLP/HTTP, signal "profiles". output/otlp.c encodes the requests. */
#include "export/otlp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/utf8.h"
#include "export/kinds.h"
#include "output/gzip.h"
#include "store/bytes.h"

enum { RESPONSE_PARTIAL_SUCCESS = 1 };
enum { PARTIAL_REJECTED = 1, PARTIAL_MESSAGE };

/* ---- what comes back ---- */

/*
 * Read a field: its bytes in *ret_bytes, or its number in *ret. Return: false at the end, or if it
 * is invalid.
 */
static bool read_field(struct sb_cursor *from, uint32_t *ret_field, uint64_t *ret,
		       struct sb_cursor *ret_bytes)
{
	uint64_t tag;

	*ret_bytes = (struct sb_cursor){};
	if (from->p == from->end)
		return false;
	tag = sb_get_varint(from);
	*ret = sb_get_varint(from);
	*ret_field = (uint32_t)(tag >> 3);
	if ((tag & 7) == 2 && sb_get_bytes(from, *ret))
		*ret_bytes = (struct sb_cursor){ from->p - *ret, from->p };
	return !from->is_bad && tag >> 3 <= UINT32_MAX && ((tag & 7) == 0 || (tag & 7) == 2);
}

static void read_partial(struct sb_cursor cursor, uint64_t *nr_rejected, struct sb_str *message,
			 int *err)
{
	struct sb_cursor bytes;
	uint32_t field;
	uint64_t val;

	while (read_field(&cursor, &field, &val, &bytes)) {
		if (field == PARTIAL_REJECTED && !bytes.p)
			*nr_rejected = val;
		if (field != PARTIAL_MESSAGE || !bytes.p || *err)
			continue;
		sb_str_clear(message);
		*err = sb_str_addn(message, (const char *)bytes.p, (size_t)(bytes.end - bytes.p));
		if (!*err)
			sb_replace_controls(message->s, message->len);
	}
}

int sb_otlp_rejected(const struct sb_str *reply, uint64_t *ret_nr, struct sb_str *message)
{
	const uint8_t *s = (const uint8_t *)reply->s;
	struct sb_cursor cursor = { s, s + reply->len }, bytes;
	uint32_t field;
	uint64_t val;
	int err = 0;

	*ret_nr = 0;
	if (!reply->len)
		return 0;
	while (!err && read_field(&cursor, &field, &val, &bytes))
		if (field == RESPONSE_PARTIAL_SUCCESS && bytes.p)
			read_partial(bytes, ret_nr, message, &err);
	return err;
}

/* ---- the destination ---- */

struct dest {
	char *url;
	struct sb_otlp *otlp;
	struct sb_str body, packed, message;
	struct sb_export_opts opts; /* its address is not ours */
};

static void close_otlp(void *arg)
{
	struct dest *dest = arg;

	if (!dest)
		return;
	free(dest->url);
	sb_otlp_free(dest->otlp);
	sb_str_release(&dest->body);
	sb_str_release(&dest->packed);
	sb_str_release(&dest->message);
	free(dest);
}

static int open_otlp(const struct sb_export_opts *opts, void **ret_dest, const char **ret_why)
{
	struct dest *dest = calloc(1, sizeof(*dest));
	struct sb_str url = {};
	int err = dest ? sb_export_add_base(&url, opts->address) : -ENOMEM;

	/* If the address has a path with a version, use it unchanged. */
	if (!err && !strstr(url.s, "/v1"))
		err = sb_str_add(&url, "/v1development/profiles");
	if (dest) {
		dest->url = url.s;
		dest->opts = *opts;
	}
	if (err) {
		close_otlp(dest);
		return err;
	}
	*ret_dest = dest;
	return 0;
}

static int note_rejected(struct dest *dest, struct sb_export_link *link)
{
	uint64_t nr;
	int err;

	sb_str_clear(&dest->message);
	err = sb_otlp_rejected(&link->reply.body, &nr, &dest->message);
	if (err || !nr)
		return err;
	link->state->nr_refused += nr;
	sb_str_clear(&link->notes);
	return sb_str_addf(&link->notes, "'%s' rejected %llu profiles%s%.200s", dest->url,
			   (unsigned long long)nr, dest->message.len ? ": " : "",
			   dest->message.len ? dest->message.s : "");
}

static int post(struct dest *dest, struct sb_export_link *link)
{
	struct sb_http_request request = { .url = dest->url,
					   .type = "application/x-protobuf",
					   .encoding = "gzip" };
	int err = sb_otlp_take(dest->otlp, &dest->body);

	if (err || sb_export_is_sent(link))
		return err;
	err = sb_gzip_pack(dest->body.s, dest->body.len, &dest->packed);
	request.body = dest->packed.s;
	request.len = dest->packed.len;
	err = err ?: sb_export_post(link, &request);
	return err ?: note_rejected(dest, link);
}

/*
 * The ID of a profile: equal for the same period, kind, tags and first stack, so that receivers can
 * detect repetitions.
 */
static int begin(const struct dest *dest, const struct sb_export_period *period,
		 const struct sb_export_series *series, size_t first)
{
	uint64_t place[4] = { (uint64_t)period->begin_s, (uint64_t)period->end_s, first,
			      sb_export_series_hash(series, dest->opts.salt) };
	const char *kind = period->measure.kind;
	uint64_t id[2];

	for (size_t i = 0; i < 2; i++)
		id[i] = sb_hash(place, sizeof(place), sb_hash(kind, strlen(kind), i + 1));
	_Static_assert(sizeof(id) == SB_OTLP_ID_BYTES, "two halves");
	return sb_otlp_begin(dest->otlp, period->profile, (uint64_t)period->begin_s * 1000000000u,
			     (uint64_t)(period->end_s - period->begin_s) * 1000000000u,
			     (const uint8_t *)id);
}

static int end(const struct dest *dest, const struct sb_export_series *series)
{
	int err = 0;

	for (size_t i = 0; i < series->nr_tags && !err; i++)
		err = sb_otlp_tag(dest->otlp, series->tags[i].key, series->tags[i].value);
	return err ?: sb_otlp_end(dest->otlp);
}

static int send_series(struct dest *dest, struct sb_export_link *link,
		       const struct sb_export_period *period, const struct sb_export_series *series)
{
	struct sb_otlp *otlp = dest->otlp;
	size_t i;
	int err = begin(dest, period, series, 0);

	for (i = 0; i < series->nr_stacks && !err; i++) {
		const struct sb_row row = sb_export_row(period, series->stacks[i]);

		err = sb_otlp_add_stack(otlp, row.frames, row.nr, row.weight);
		if (err || sb_otlp_nr_bytes(otlp) < SB_EXPORT_PIECE_BYTES ||
		    i + 1 == series->nr_stacks)
			continue;
		err = end(dest, series) ?: post(dest, link);
		err = err ?: begin(dest, period, series, i + 1);
	}
	return err ?: end(dest, series);
}

static int send_otlp(void *arg, struct sb_export_link *link, const struct sb_export_period *period)
{
	struct dest *dest = arg;
	size_t i;
	int err = 0;

	/* Start again after a failure. */
	sb_otlp_free(dest->otlp);
	dest->otlp = NULL;
	err = sb_otlp_new(dest->opts.attrs, &dest->otlp);
	for (i = 0; i < period->nr_series && !err; i++) {
		err = send_series(dest, link, period, &period->series[i]);
		if (!err && (sb_otlp_nr_bytes(dest->otlp) >= SB_EXPORT_PIECE_BYTES ||
			     i + 1 == period->nr_series))
			err = post(dest, link);
	}
	return err;
}

const struct sb_export_kind sb_export_otlp = {
	.scheme = "otlp",
	.example = "otlp:http://HOST:4318",
	.summary = "OpenTelemetry profiles, protocol 1.10 or newer: collector, Pyroscope, Parca",
	.without = "cgroup,comm",
	.is_http = true,
	.open = open_otlp,
	.send = send_otlp,
	.close = close_otlp,
};
