// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ClickHouse over HTTP: two tables, rows as tab-separated text (clickhouse.com/docs, "HTTP
 * interface", "TabSeparated"). Everything used exists since 2018.
 *
 * stackbpf_stacks has each stack once, by its hash; stackbpf_samples has a row for each period,
 * kind, set of tags and stack. Both are ReplacingMergeTree: a row that is inserted twice has the
 * same key, and the next merge removes one of the two; FINAL hides it before. So a request can be
 * repeated whatever became of it. Other machines and other queries have other series numbers, and
 * so other keys.
 *
 * With ?cluster=NAME in the address the rows go to tables STACKBPF_..._local on each shard, through
 * Distributed tables that shard by the hash of the stack, so that a repeated row meets the first
 * one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/index.h"
#include "export/kinds.h"
#include "model/fold.h"
#include "output/gzip.h"

#define NAME_MAX_BYTES 128u
/*
 * Hashes of stacks that the server has. When there are more, all are forgotten and sent again. 1
 * MiB.
 */
#define KNOWN_MAX      (1u << 16)
/* "last_seen" of a stack that is in use is at most this old. */
#define SEEN_S	       86400

/* clang-format off */
static const char stacks_columns[] =
	"hash UInt64, last_seen DateTime, "
	"frames Array(String), modules Array(String), kinds Array(String)";
static const char stacks_engine[] =
	"ReplacingMergeTree(last_seen) ORDER BY hash";
static const char samples_columns[] =
	"start DateTime, end DateTime, kind String, unit String, hz UInt32, service String, "
	"tag_keys Array(String), tag_values Array(String), series UInt64, stack UInt64, value UInt64";
static const char samples_engine[] =
	"ReplacingMergeTree PARTITION BY toYYYYMM(start) ORDER BY (service, kind, start, end, series, stack)";
/* clang-format on */

static const struct table {
	const char *name, *columns, *engine, *shard_by;
} tables[] = {
	{ "stackbpf_stacks", stacks_columns, stacks_engine, "hash" },
	{ "stackbpf_samples", samples_columns, samples_engine, "stack" },
};
enum { STACKS, SAMPLES };

struct dest {
	struct sb_str base; /* "http://host:8123/?database=db" */
	char database[NAME_MAX_BYTES], cluster[NAME_MAX_BYTES];
	uint64_t salt;
	bool is_ready; /* the tables are there */
	struct sb_str url, sql, packed;
	struct sb_str rows[2]; /* by table */
	/* Hashes of stacks that were sent since @known_s. */
	SB_VEC(uint64_t) known;
	struct sb_index known_index;
	int64_t known_s;
};

static void forget(struct dest *dest)
{
	dest->known.nr = 0;
	sb_index_release(&dest->known_index);
}

static void close_clickhouse(void *arg)
{
	struct dest *dest = arg;

	if (!dest)
		return;
	sb_str_release(&dest->base);
	sb_str_release(&dest->url);
	sb_str_release(&dest->sql);
	sb_str_release(&dest->packed);
	sb_str_release(&dest->rows[STACKS]);
	sb_str_release(&dest->rows[SAMPLES]);
	sb_vec_release(&dest->known);
	sb_index_release(&dest->known_index);
	free(dest);
}

/* ---- the address ---- */

/* A name that is put into SQL unquoted. */
static int take_name(char name[NAME_MAX_BYTES], const char *text, size_t len)
{
	size_t i;

	if (!len || len >= NAME_MAX_BYTES)
		return -EINVAL;
	for (i = 0; i < len; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_",
			    text[i]))
			return -EINVAL;
	memcpy(name, text, len);
	name[len] = '\0';
	return 0;
}

/* "http://host:8123/db?cluster=NAME" */
static int parse_address(struct dest *dest, const char *address, const char **ret_why)
{
	const char *path = strstr(address, "://") + 3, *end = address + strcspn(address, "?#");
	int err;

	path += strcspn(path, "/?#");
	if (*path == '/')
		path++;
	*ret_why = "does not name a database; use http://HOST:8123/DATABASE, with letters, "
		   "digits and _ in the name";
	err = path < end ? take_name(dest->database, path, (size_t)(end - path)) : -EINVAL;
	if (err)
		return err;
	*ret_why = "has something other than cluster=NAME after the '?'";
	if (*end && (strncmp(end, "?cluster=", 9) != 0 ||
		     take_name(dest->cluster, end + 9, strlen(end + 9))))
		return -EINVAL;
	err = sb_str_addn(&dest->base, address, (size_t)(path - address));
	return err ?: sb_str_addf(&dest->base, "?database=%s", dest->database);
}

static int open_clickhouse(const struct sb_export_opts *opts, void **ret_dest, const char **ret_why)
{
	struct dest *dest = calloc(1, sizeof(*dest));
	int err = dest ? parse_address(dest, opts->address, ret_why) : -ENOMEM;

	if (err) {
		close_clickhouse(dest);
		return err;
	}
	dest->salt = opts->salt;
	*ret_dest = dest;
	return 0;
}

/* ---- tables ---- */

static int run_sql(struct dest *dest, struct sb_export_link *link)
{
	struct sb_http_request request = { .url = dest->base.s, .type = "text/plain" };

	request.body = dest->sql.s;
	request.len = dest->sql.len;
	return sb_export_ask(link, &request);
}

/* @on_cluster: " ON CLUSTER name" or "". */
static int create(struct dest *dest, struct sb_export_link *link, const struct table *table,
		  const char *on_cluster)
{
	const char *local = dest->cluster[0] ? "_local" : "";
	int err;

	sb_str_clear(&dest->sql);
	err = sb_str_addf(&dest->sql, "CREATE TABLE IF NOT EXISTS %s%s%s (%s) ENGINE = %s",
			  table->name, local, on_cluster, table->columns, table->engine);
	err = err ?: run_sql(dest, link);
	if (err || !dest->cluster[0])
		return err;
	sb_str_clear(&dest->sql);
	err = sb_str_addf(
		&dest->sql,
		"CREATE TABLE IF NOT EXISTS %s%s (%s) ENGINE = Distributed(%s, %s, %s_local, %s)",
		table->name, on_cluster, table->columns, dest->cluster, dest->database, table->name,
		table->shard_by);
	return err ?: run_sql(dest, link);
}

/* ON CLUSTER needs ZooKeeper or the like, which small clusters do not have. */
static int has_zookeeper(struct dest *dest, struct sb_export_link *link, bool *ret_has)
{
	const struct sb_str *body = &link->reply.body;
	int err;

	sb_str_clear(&dest->sql);
	err = sb_str_add(&dest->sql,
			 "SELECT count() FROM system.tables "
			 "WHERE database = 'system' AND name = 'zookeeper' FORMAT TabSeparated");
	err = err ?: run_sql(dest, link);
	*ret_has = !err && body->len && body->s[0] == '1';
	return err;
}

static int create_all(struct dest *dest, struct sb_export_link *link)
{
	char on_cluster[NAME_MAX_BYTES + 16] = "";
	bool has = false;
	size_t i;
	int err = dest->cluster[0] ? has_zookeeper(dest, link, &has) : 0;

	if (has)
		snprintf(on_cluster, sizeof(on_cluster), " ON CLUSTER %s", dest->cluster);
	for (i = 0; i < SB_ARRAY_SIZE(tables) && !err; i++)
		err = create(dest, link, &tables[i], on_cluster);
	if (!err && dest->cluster[0] && !has) {
		sb_str_clear(&link->notes);
		err = sb_str_addf(
			&link->notes,
			"the server has no ZooKeeper, so the tables of cluster '%s' are "
			"created on this server only; run an export to each other server of "
			"the cluster to create them there",
			dest->cluster);
	}
	dest->is_ready = !err;
	return err;
}

/* ---- rows ---- */

/* Append a quoted string, for an array. */
static int add_quoted(struct sb_str *row, const char *text, size_t len)
{
	static const char from[] = "\\'\t\n\r\b\f", to[] = "\\'tnrbf";
	int err = sb_str_addc(row, '\'');
	size_t i, plain;

	for (i = 0; i < len && !err; i += plain) {
		const char *at = memchr(from, text[i], sizeof(from)); /* its NUL, too */

		plain = 1;
		if (!at) {
			while (i + plain < len && !memchr(from, text[i + plain], sizeof(from)))
				plain++;
			err = sb_str_addn(row, text + i, plain);
		} else {
			err = sb_str_addc(row, '\\') ?: sb_str_addc(row, *at ? to[at - from] : '0');
		}
	}
	return err ?: sb_str_addc(row, '\'');
}

/* Append a string that is a column. */
static int add_text(struct sb_str *row, const char *text)
{
	size_t at = row->len;
	int err = add_quoted(row, text, strlen(text));

	/* The same escapes, without the quotes. */
	if (err)
		return err;
	memmove(row->s + at, row->s + at + 1, row->len - at - 2);
	row->len -= 2;
	row->s[row->len] = '\0';
	return 0;
}

static uint64_t hash_of_stack(const struct sb_profile *profile, const uint32_t *ids, size_t nr)
{
	uint64_t hash = 0;
	size_t i;

	for (i = 0; i < nr; i++) {
		const struct sb_frame *frame = sb_profile_frame_at(profile, ids[i]);
		uint64_t what = (uint64_t)frame->kind << 1 | frame->is_unnamed;

		hash = sb_hash(frame->name, strlen(frame->name), hash);
		if (frame->module)
			hash = sb_hash(frame->module, strlen(frame->module), hash);
		hash = sb_hash(&what, sizeof(what), hash);
	}
	return hash;
}

enum column { COLUMN_NAME, COLUMN_MODULE, COLUMN_KIND };

static int add_frame(struct sb_str *row, const struct sb_frame *frame, enum column column)
{
	const char *kind = sb_frame_kinds[frame->kind].name;
	struct sb_fold_opts opts = {};
	sb_cleanup(sb_str_release) struct sb_str name = {};
	int err;

	if (column == COLUMN_KIND)
		return add_quoted(row, kind, strlen(kind));
	if (column == COLUMN_MODULE)
		return add_quoted(row, frame->module ? frame->module : "",
				  frame->module ? strlen(frame->module) : 0);
	/* As in folded text: a stack joined by ';' is a folded line. */
	err = sb_fold_frame(&name, frame, &opts);
	return err ?: add_quoted(row, name.s ? name.s : "", name.len);
}

static int add_frames(struct sb_str *row, const struct sb_profile *profile, const uint32_t *ids,
		      size_t nr, enum column column)
{
	size_t i;
	int err = sb_str_add(row, "\t[");

	for (i = 0; i < nr && !err; i++) {
		err = i ? sb_str_addc(row, ',') : 0;
		err = err ?: add_frame(row, sb_profile_frame_at(profile, ids[i]), column);
	}
	return err ?: sb_str_addc(row, ']');
}

static bool is_known(const struct dest *dest, uint64_t hash)
{
	sb_index_each(it, &dest->known_index, hash)
		if (dest->known.at[it.id] == hash)
			return true;
	return false;
}

static int add_stack(struct dest *dest, const struct sb_export_period *period, uint64_t hash,
		     const uint32_t *ids, size_t nr)
{
	struct sb_str *rows = &dest->rows[STACKS];
	int err;

	if (is_known(dest, hash))
		return 0;
	if (dest->known.nr >= KNOWN_MAX)
		forget(dest);
	err = sb_str_addf(rows, "%llu\t%lld", (unsigned long long)hash, (long long)period->begin_s);
	err = err ?: add_frames(rows, period->profile, ids, nr, COLUMN_NAME);
	err = err ?: add_frames(rows, period->profile, ids, nr, COLUMN_MODULE);
	err = err ?: add_frames(rows, period->profile, ids, nr, COLUMN_KIND);
	err = err ?: sb_str_addc(rows, '\n');
	return err ?: sb_index_push(&dest->known_index, hash, &dest->known, hash);
}

static int add_tags(struct sb_str *row, const struct sb_export_series *series, bool is_keys)
{
	int err = sb_str_add(row, "\t[");

	for (size_t i = 0; i < series->nr_tags && !err; i++) {
		const struct sb_tag *tag = &series->tags[i];
		const char *text = is_keys ? tag->key : tag->value;

		err = i ? sb_str_addc(row, ',') : 0;
		err = err ?: add_quoted(row, text, strlen(text));
	}
	return err ?: sb_str_addc(row, ']');
}

/* All columns but the last two, which are the same for a whole series. */
static int add_head(const struct dest *dest, struct sb_str *head,
		    const struct sb_export_period *period, const struct sb_export_series *series)
{
	const struct sb_measure *measure = &period->measure;
	int err;

	sb_str_clear(head);
	err = sb_str_addf(head, "%lld\t%lld\t", (long long)period->begin_s,
			  (long long)period->end_s);
	err = err ?: add_text(head, measure->kind) ?: sb_str_addc(head, '\t');
	err = err ?: add_text(head, measure->unit);
	err = err
		      ?: sb_str_addf(head, "\t%u\t",
				     (unsigned int)(measure->hz < UINT32_MAX ? measure->hz : 0));
	err = err ?: add_text(head, sb_tag_value(series->tags, series->nr_tags, "service"));
	err = err ?: add_tags(head, series, true) ?: add_tags(head, series, false);
	return err
		       ?: sb_str_addf(
				  head, "\t%llu\t",
				  (unsigned long long)sb_export_series_hash(series, dest->salt));
}

/* ---- sending ---- */

/* Insert the rows of @table. Samples are a piece, stacks are not. */
static int insert(struct dest *dest, struct sb_export_link *link, size_t table)
{
	struct sb_http_request request = { .type = "text/tab-separated-values",
					   .encoding = "gzip" };
	struct sb_str *rows = &dest->rows[table];
	int err;

	if (!rows->len)
		return 0;
	sb_str_clear(&dest->sql);
	sb_str_clear(&dest->url);
	err = sb_str_addf(&dest->sql, "INSERT INTO %s FORMAT TabSeparated", tables[table].name);
	/* Otherwise the reply comes before the shards have the rows. */
	err = err
		      ?: sb_str_addf(&dest->url, "%s%s&query=", dest->base.s,
				     dest->cluster[0] ? "&insert_distributed_sync=1" : "");
	err = err ?: sb_http_escape(&dest->url, dest->sql.s);
	err = err ?: sb_gzip_pack(rows->s, rows->len, &dest->packed);
	request.url = dest->url.s;
	request.body = dest->packed.s;
	request.len = dest->packed.len;
	if (!err)
		err = table == STACKS ? sb_export_ask(link, &request)
				      : sb_export_post(link, &request);
	if (!err)
		sb_str_clear(rows);
	return err;
}

/*
 * A piece is rows of samples, whose number does not depend on which stacks the server has. Stacks
 * are sent first, so that no sample refers to a missing stack.
 */
static int flush(struct dest *dest, struct sb_export_link *link)
{
	if (sb_export_is_sent(link)) {
		sb_str_clear(&dest->rows[STACKS]);
		sb_str_clear(&dest->rows[SAMPLES]);
		return 0;
	}
	return insert(dest, link, STACKS) ?: insert(dest, link, SAMPLES);
}

static int send_series(struct dest *dest, struct sb_export_link *link,
		       const struct sb_export_period *period, const struct sb_export_series *series)
{
	sb_cleanup(sb_str_release) struct sb_str head = {};
	size_t i;
	int err = add_head(dest, &head, period, series);

	for (i = 0; i < series->nr_stacks && !err; i++) {
		const struct sb_row row = sb_export_row(period, series->stacks[i]);
		const uint64_t hash = hash_of_stack(period->profile, row.frames, row.nr);

		err = add_stack(dest, period, hash, row.frames, row.nr);
		err = err ?: sb_str_addn(&dest->rows[SAMPLES], head.s, head.len);
		err = err
			      ?: sb_str_addf(&dest->rows[SAMPLES], "%llu\t%llu\n",
					     (unsigned long long)hash,
					     (unsigned long long)row.weight);
		if (!err &&
		    dest->rows[SAMPLES].len + dest->rows[STACKS].len >= SB_EXPORT_PIECE_BYTES)
			err = flush(dest, link);
	}
	return err;
}

static int send_clickhouse(void *arg, struct sb_export_link *link,
			   const struct sb_export_period *period)
{
	struct dest *dest = arg;
	size_t i;
	int err = dest->is_ready ? 0 : create_all(dest, link);

	if (period->begin_s >= dest->known_s + SEEN_S || period->begin_s < dest->known_s) {
		forget(dest);
		dest->known_s = period->begin_s;
	}
	sb_str_clear(&dest->rows[STACKS]);
	sb_str_clear(&dest->rows[SAMPLES]);
	for (i = 0; i < period->nr_series && !err; i++)
		err = send_series(dest, link, period, &period->series[i]);
	if (!err && dest->rows[SAMPLES].len)
		err = flush(dest, link);
	/* It is not known which stacks of the failed request arrived. */
	if (err)
		forget(dest);
	return err;
}

const struct sb_export_kind sb_export_clickhouse = {
	.scheme = "clickhouse",
	.example = "clickhouse:http://HOST:8123/DATABASE",
	.summary = "two tables in ClickHouse, which are created if they are missing",
	.is_http = true,
	.open = open_clickhouse,
	.send = send_clickhouse,
	.close = close_clickhouse,
};
