// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Pyroscope's first interface, which later versions kept: POST /ingest with folded text, one
 * request for each series (grafana.com/docs/pyroscope, "Server HTTP API"). Requests of the same
 * time and name add up. So a long series is several requests, and a request that is sent twice
 * counts twice.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "export/kinds.h"
#include "kinds/view_kind.h"
#include "model/fold.h"

struct dest {
	char *base; /* up to "/ingest" */
	struct sb_str url, name, body;
};

static void close_pyroscope(void *arg)
{
	struct dest *dest = arg;

	if (!dest)
		return;
	free(dest->base);
	sb_str_release(&dest->url);
	sb_str_release(&dest->name);
	sb_str_release(&dest->body);
	free(dest);
}

static int open_pyroscope(const struct sb_export_opts *opts, void **ret_dest, const char **ret_why)
{
	struct dest *dest = calloc(1, sizeof(*dest));
	struct sb_str base = {};
	int err = dest ? sb_export_add_base(&base, opts->address) : -ENOMEM;

	if (!err && (base.len < 7 || !sb_streq(base.s + base.len - 7, "/ingest")))
		err = sb_str_add(&base, "/ingest");
	if (dest)
		dest->base = base.s;
	if (err) {
		close_pyroscope(dest);
		return err;
	}
	*ret_dest = dest;
	return 0;
}

/* Its parser of names has no quoting: characters that would end a word become '_'. */
static int add_word(struct sb_str *name, const char *text, bool is_key)
{
	int err = 0;

	for (; *text && !err; text++) {
		unsigned char c = (unsigned char)*text;
		bool is_good = is_key ? isalnum(c) || c == '_'
				      : c > ' ' && c != 0x7f && !strchr("{}=,\"", c);

		err = sb_str_addc(name, is_good ? (char)c : '_');
	}
	return err;
}

/* "car.cpu{host=a,region=eu}" */
static int name_of(struct dest *dest, const struct sb_export_period *period,
		   const struct sb_export_series *series)
{
	const char *service = sb_tag_value(series->tags, series->nr_tags, "service");
	struct sb_str *name = &dest->name;
	char mark = '{';
	size_t i;
	int err;

	sb_str_clear(name);
	err = add_word(name, *service ? service : "stackbpf", false);
	err = err
		      ?: sb_str_addf(
				 name, ".%s",
				 sb_view_kind_objects(period->measure.kind, period->measure.unit)
					 ?: sb_view_kind_pyroscope(period->measure.kind));
	for (i = 0; i < series->nr_tags && !err; i++) {
		if (sb_streq(series->tags[i].key, "service"))
			continue;
		err = sb_str_addc(name, mark);
		err = err ?: add_word(name, series->tags[i].key, true);
		err = err ?: sb_str_addc(name, '=') ?: add_word(name, series->tags[i].value, false);
		mark = ',';
	}
	return err ?: sb_str_add(name, mark == ',' ? "}" : "{}");
}

/*
 * Microseconds are sent as samples with a rate of a million a second, so that it shows them as
 * time.
 */
static int url_of(struct dest *dest, const struct sb_export_period *period,
		  const struct sb_export_series *series)
{
	const struct sb_measure *measure = &period->measure;
	bool is_time = measure->dimension == SB_DIMENSION_TIME && !measure->is_of_timer;
	uint64_t rate = is_time ? 1000000000u / measure->ns_nominator : measure->hz;
	struct sb_str *url = &dest->url;
	int err = name_of(dest, period, series);

	sb_str_clear(url);
	err = err ?: sb_str_addf(url, "%s?name=", dest->base);
	err = err ?: sb_http_escape(url, dest->name.s);
	err = err
		      ?: sb_str_addf(
				 url,
				 "&from=%lld&until=%lld&spyName=stackbpf&aggregationType=sum&units=%s",
				 (long long)period->begin_s, (long long)period->end_s,
				 measure->dimension == SB_DIMENSION_BYTES ? "bytes" : "samples");
	return err || !rate ? err : sb_str_addf(url, "&sampleRate=%llu", (unsigned long long)rate);
}

static int post(struct dest *dest, struct sb_export_link *link)
{
	struct sb_http_request request = { .url = dest->url.s, .type = "text/plain" };
	int err = 0;

	request.body = dest->body.s;
	request.len = dest->body.len;
	if (!sb_export_is_sent(link))
		err = sb_export_post(link, &request);
	sb_str_clear(&dest->body);
	return err;
}

static int add_line(struct dest *dest, const struct sb_export_period *period, uint32_t i)
{
	const struct sb_row row = sb_export_row(period, i);
	const struct sb_fold_opts opts = {};
	int err = row.nr ? sb_fold_frames(&dest->body, period->profile, &row, &opts)
			 : sb_str_add(&dest->body, "[empty]");

	return err ?: sb_str_addf(&dest->body, " %llu\n", (unsigned long long)row.weight);
}

static int send_series(struct dest *dest, struct sb_export_link *link,
		       const struct sb_export_period *period, const struct sb_export_series *series)
{
	size_t i;
	int err = url_of(dest, period, series);

	for (i = 0; i < series->nr_stacks && !err; i++) {
		err = add_line(dest, period, series->stacks[i]);
		if (!err && (dest->body.len >= SB_EXPORT_PIECE_BYTES || i + 1 == series->nr_stacks))
			err = post(dest, link);
	}
	return err;
}

static int send_pyroscope(void *arg, struct sb_export_link *link,
			  const struct sb_export_period *period)
{
	struct dest *dest = arg;
	size_t i;
	int err = 0;

	sb_str_clear(&dest->body);
	for (i = 0; i < period->nr_series && !err; i++)
		err = send_series(dest, link, period, &period->series[i]);
	return err;
}

const struct sb_export_kind sb_export_pyroscope = {
	.scheme = "pyroscope",
	.example = "pyroscope:http://HOST:4040",
	.summary = "Pyroscope's POST /ingest",
	.without = "cgroup,comm",
	.is_http = true,
	.open = open_pyroscope,
	.send = send_pyroscope,
	.close = close_pyroscope,
};
