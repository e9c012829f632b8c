// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* /metrics, in the text format of Prometheus, version 0.0.4. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "base/version.h"
#include "export/state.h"
#include "serve/api.h"

/* Leave out the newest block, which may still be added to. */
#define REST_S SB_STORE_BLOCK_S

_Static_assert(sizeof(((struct sb_store_extent *)0)->kind.name) <=
		       sizeof(((struct sb_serve_kind *)0)->name),
	       "a kind has room");

static void put_help(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP stackbpf_%s %s\n# TYPE stackbpf_%s %s\n", name, help, name, type);
}

/* Write the value of a label, escaped: kinds are text from a file. */
static void put_text(FILE *out, const char *value)
{
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			putc('\\', out);
		putc((unsigned char)*value < ' ' || (unsigned char)*value >= 0x7f ? '?' : *value,
		     out);
	}
}

static void put_kind(FILE *out, const char *name, const char *kind)
{
	fprintf(out, "stackbpf_%s{kind=\"", name);
	put_text(out, kind);
	fputs("\"} ", out);
}

/* What was recorded. */

static struct sb_serve_kind *find_kind(struct sb_serve_totals *totals,
				       const struct sb_store_extent *extent)
{
	struct sb_serve_kind *kind;
	uint32_t i;

	for (i = 0; i < totals->nr_kinds; i++)
		if (!strncmp(totals->kinds[i].name, extent->kind.name, sizeof(kind->name) - 1))
			return &totals->kinds[i];
	if (totals->nr_kinds == SB_SERVE_KINDS_MAX)
		return NULL;
	kind = &totals->kinds[totals->nr_kinds++];
	memcpy(kind->name, extent->kind.name, sizeof(extent->kind.name));
	/* Do not count what was there before the server looked. */
	kind->until_s = extent->to_s - REST_S;
	return kind;
}

static int add_kind(struct sb_asked *asked, const struct sb_store_extent *extent)
{
	sb_cleanup(sb_profile_freep) struct sb_profile *profile = NULL;
	struct sb_serve_kind *kind = find_kind(&asked->answer->totals, extent);
	struct sb_store_query query = { .to_s = extent->to_s - REST_S,
					.kind = extent->kind.name,
					.nr_nodes_max = 2 };
	struct sb_store_answer answer;
	size_t i;
	int err;

	if (!kind || kind->until_s >= query.to_s)
		return 0;
	query.from_s = kind->until_s;
	err = sb_profile_new(&profile);
	if (!err)
		err = sb_store_query(asked->opts->store, &query, profile, &answer);
	for (i = 0; i < SB_BLOCK_FIGURE_MAX && !err; i++)
		kind->figure[i] += answer.figure[i];
	if (!err)
		kind->until_s = query.to_s;
	return err;
}

static void put_totals(FILE *out, const struct sb_serve_totals *totals)
{
	static const struct {
		const char *name, *help;
		enum sb_block_figure figure;
		uint64_t per_second; /* 0: a count */
	} rows[] = {
		{ "samples_total", "Samples recorded since the server started to count",
		  SB_BLOCK_SAMPLES, 0 },
		{ "lost_samples_total", "Samples that were lost", SB_BLOCK_LOST, 0 },
		{ "truncated_stacks_total", "Stacks that were cut before their root", SB_BLOCK_CUT,
		  0 },
		{ "unnamed_frames_total", "Frames without a name", SB_BLOCK_UNNAMED, 0 },
		{ "sampled_seconds_total", "Time that was sampled", SB_BLOCK_SAMPLED_MS, 1000 },
		{ "recorder_cpu_seconds_total", "CPU time of the recorder", SB_BLOCK_OWN_US,
		  1000000 },
	};
	size_t i;
	uint32_t k;

	for (i = 0; i < SB_ARRAY_SIZE(rows); i++) {
		put_help(out, rows[i].name, "counter", rows[i].help);
		for (k = 0; k < totals->nr_kinds; k++) {
			uint64_t value = totals->kinds[k].figure[rows[i].figure];

			put_kind(out, rows[i].name, totals->kinds[k].name);
			if (rows[i].per_second)
				fprintf(out, "%.6f\n", (double)value / (double)rows[i].per_second);
			else
				fprintf(out, "%" PRIu64 "\n", value);
		}
	}
}

/* The store. */

static void measure_level(int dir_fd, uint64_t *ret_bytes, uint64_t *ret_files)
{
	DIR *dir = fdopendir(dir_fd);
	const struct dirent *entry;
	struct stat st;

	if (!dir) {
		close(dir_fd);
		return;
	}
	while ((entry = readdir(dir))) {
		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		*ret_bytes += (uint64_t)st.st_size;
		(*ret_files)++;
	}
	closedir(dir);
}

static void put_levels(FILE *out, const char *path)
{
	sb_cleanup(sb_closep) int store_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t bytes[SB_STORE_LEVELS] = {}, files[SB_STORE_LEVELS] = {};
	size_t i;

	for (i = 0; i < SB_STORE_LEVELS; i++) {
		int fd = store_fd < 0 ? -1
				      : openat(store_fd, sb_levels[i].name,
					       O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

		if (fd >= 0)
			measure_level(fd, &bytes[i], &files[i]);
	}
	put_help(out, "store_bytes", "gauge", "Size of the files of each level");
	for (i = 0; i < SB_STORE_LEVELS; i++)
		fprintf(out, "stackbpf_store_bytes{level=\"%s\"} %" PRIu64 "\n", sb_levels[i].name,
			bytes[i]);
	put_help(out, "store_files", "gauge", "Files of each level");
	for (i = 0; i < SB_STORE_LEVELS; i++)
		fprintf(out, "stackbpf_store_files{level=\"%s\"} %" PRIu64 "\n", sb_levels[i].name,
			files[i]);
}

static void put_extents(FILE *out, const struct sb_store_extent *extents, int nr, int64_t now_s)
{
	int i;

	put_help(out, "store_oldest_block_timestamp_seconds", "gauge",
		 "Start time of the oldest block");
	for (i = 0; i < nr; i++) {
		put_kind(out, "store_oldest_block_timestamp_seconds", extents[i].kind.name);
		fprintf(out, "%" PRId64 "\n", extents[i].from_s);
	}
	put_help(out, "store_newest_block_timestamp_seconds", "gauge",
		 "End time of the newest block");
	for (i = 0; i < nr; i++) {
		put_kind(out, "store_newest_block_timestamp_seconds", extents[i].kind.name);
		fprintf(out, "%" PRId64 "\n", extents[i].to_s);
	}
	put_help(out, "store_newest_block_age_seconds", "gauge", "Age of the newest block");
	for (i = 0; i < nr; i++) {
		put_kind(out, "store_newest_block_age_seconds", extents[i].kind.name);
		fprintf(out, "%" PRId64 "\n", now_s - extents[i].to_s);
	}
}

/* Exports: what export/state.h says of each. */

struct exports {
	SB_VEC(struct sb_export_state) at;
};

static int note_export(void *arg, const struct sb_export_state *state)
{
	struct exports *exports = arg;

	return sb_vec_push(&exports->at, *state);
}

static int put_exports(FILE *out, const char *path)
{
	static const struct {
		const char *name, *type, *help;
		size_t offset;
	} rows[] = {
#define ROW(name, type, field, help) { name, type, help, offsetof(struct sb_export_state, field) }
		ROW("export_periods_total", "counter", nr_periods, "Periods that were sent"),
		ROW("export_bytes_total", "counter", nr_bytes, "Bytes that were sent"),
		ROW("export_failures_total", "counter", nr_failed,
		    "Failed attempts, which are repeated"),
		ROW("export_refused_pieces_total", "counter", nr_refused,
		    "Requests that the server rejected"),
		ROW("export_unsure_pieces_total", "counter", nr_unsure,
		    "Requests sent again that may have been received before"),
		ROW("export_expired_seconds_total", "counter", expired_s,
		    "Time that expired in the store before it could be sent"),
		ROW("export_late_blocks_total", "counter", nr_late,
		    "Blocks that were recorded after their period was sent, and are not sent"),
		ROW("export_behind_seconds", "gauge", behind_s, "Time that is not sent yet"),
		ROW("export_sent_timestamp_seconds", "gauge", sent_s,
		    "Time of the last successful attempt"),
#undef ROW
	};
	struct exports exports = {};
	size_t i, k;
	uint64_t value;
	int ret = sb_export_state_each(path, note_export, &exports);

	for (i = 0; i < SB_ARRAY_SIZE(rows) && exports.at.nr; i++) {
		put_help(out, rows[i].name, rows[i].type, rows[i].help);
		for (k = 0; k < exports.at.nr; k++) {
			const struct sb_export_state *state = &exports.at.at[k];

			memcpy(&value, (const char *)state + rows[i].offset, sizeof(value));
			fprintf(out, "stackbpf_%s{to=\"", rows[i].name);
			put_text(out, state->to);
			fputs("\",what=\"", out);
			put_text(out, state->what);
			fprintf(out, "\"} %" PRId64 "\n", (int64_t)value);
		}
	}
	sb_vec_release(&exports.at);
	return ret < 0 ? ret : 0;
}

/* The server. */

static void put_one(FILE *out, const char *name, const char *type, const char *help, uint64_t value)
{
	put_help(out, name, type, help);
	fprintf(out, "stackbpf_%s %" PRIu64 "\n", name, value);
}

static void put_server(FILE *out, const struct sb_serve_counts *counts)
{
	size_t i;

	put_help(out, "serve_replies_total", "counter",
		 "Replies by the first digit of their status");
	for (i = 2; i < SB_SERVE_NR_CLASSES; i++)
		fprintf(out, "stackbpf_serve_replies_total{class=\"%zuxx\"} %" PRIu64 "\n", i,
			counts->nr_replies[i]);
	put_one(out, "serve_connections", "gauge", "Open connections", counts->nr_conns);
	put_one(out, "serve_evicted_connections_total", "counter",
		"Connections closed to make room for others", counts->nr_evicted);
	put_one(out, "serve_late_connections_total", "counter",
		"Connections that took too long to send a request or to read the answer",
		counts->nr_late);
	put_one(out, "serve_refused_questions_total", "counter",
		"Requests rejected because too many were waiting", counts->nr_refused);
	put_one(out, "serve_expired_questions_total", "counter",
		"Requests whose answer took too long", counts->nr_expired);
	put_one(out, "serve_worker_ends_total", "counter",
		"Worker processes that died while preparing an answer", counts->nr_worker_ends);
	put_one(out, "serve_unauthorized_requests_total", "counter", "Requests without the token",
		counts->nr_unknown);
	put_one(out, "serve_sent_bytes_total", "counter", "Bytes of answers",
		counts->nr_sent_bytes);
	put_one(out, "serve_start_timestamp_seconds", "gauge", "Start time of the server",
		counts->start_s);
}

int sb_api_metrics(struct sb_asked *asked)
{
	struct sb_store_extent extents[SB_STORE_KINDS_MAX];
	struct sb_serve_totals *totals = &asked->answer->totals;
	FILE *out = asked->out;
	int nr, i, err = sb_asked_all(asked);

	if (err)
		return err;
	nr = sb_store_extents(asked->opts->store, extents);
	*totals = asked->question->totals;
	if (totals->nr_kinds > SB_SERVE_KINDS_MAX)
		return -EPROTO;
	for (i = 0; i < nr && !err; i++)
		err = add_kind(asked, &extents[i]);
	if (nr < 0 || err)
		return nr < 0 ? nr : err;
	totals->version++;
	put_help(out, "build_info", "gauge", "Version of stackbpf");
	fprintf(out, "stackbpf_build_info{version=\"%s\",commit=\"%s\"} 1\n", sb_version,
		sb_commit);
	put_totals(out, totals);
	put_levels(out, asked->opts->store_path);
	put_extents(out, extents, nr, asked->now_s);
	put_server(out, &asked->question->counts);
	return put_exports(out, asked->opts->store_path);
}
