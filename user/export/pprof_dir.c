// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A directory of pprof files, one for each period, kind and series:
 *
 *	20261121T101500Z-60s-oncpu-car-1f0a8c3e55d07b12.pb.gz
 *
 * Names sort by time. The last word is a hash of the tags, the machine and the query: the same
 * period of the same series has the same name, and is replaced when it is written again.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "export/kinds.h"
#include "output/output.h"

/* Bytes of a tag's value in a name. */
#define WORD_MAX 64u

SB_DEFINE_CLEANUP(struct sb_output_file, sb_output_file_free)

struct dest {
	char *path;
	uint64_t salt;
	const struct sb_output *output;
};

static void close_dir(void *arg)
{
	struct dest *dest = arg;

	if (dest)
		free(dest->path);
	free(dest);
}

static int open_dir(const struct sb_export_opts *opts, void **ret_dest, const char **ret_why)
{
	struct dest *dest;

	if (!*opts->address) {
		*ret_why = "does not name a directory";
		return -EINVAL;
	}
	dest = calloc(1, sizeof(*dest));
	if (!dest)
		return -ENOMEM;
	dest->salt = opts->salt;
	dest->output = sb_output_find("pprof");
	dest->path = strdup(opts->address);
	if (!dest->path) {
		close_dir(dest);
		return -ENOMEM;
	}
	*ret_dest = dest;
	return 0;
}

/* Append a word that needs no quoting; other characters become '_'. */
static int add_word(struct sb_str *name, const char *text)
{
	size_t len = strnlen(text, WORD_MAX), i;
	int err = sb_str_addc(name, '-');

	for (i = 0; i < len && !err; i++) {
		bool is_plain = (text[i] >= 'a' && text[i] <= 'z') ||
				(text[i] >= 'A' && text[i] <= 'Z') ||
				(text[i] >= '0' && text[i] <= '9') || strchr("._", text[i]);

		err = sb_str_addc(name, is_plain ? text[i] : '_');
	}
	return err;
}

static int name_of(const struct dest *dest, const struct sb_export_period *period,
		   const struct sb_export_series *series, struct sb_str *name)
{
	const char *service = sb_tag_value(series->tags, series->nr_tags, "service");
	time_t begin = (time_t)period->begin_s;
	char text[32];
	struct tm tm;
	int err;

	if (!gmtime_r(&begin, &tm) || !strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &tm))
		return -EINVAL;
	err = sb_str_addf(name, "%s/%s-%llds", dest->path, text,
			  (long long)(period->end_s - period->begin_s));
	err = err ?: add_word(name, period->measure.kind);
	if (*service)
		err = err ?: add_word(name, service);
	return err
		       ?: sb_str_addf(name, "-%016llx%s",
				      (unsigned long long)sb_export_series_hash(series, dest->salt),
				      dest->output->extension);
}

/* Return: the length of the file, or a negative errno. */
static long write_file(const struct dest *dest, const struct sb_profile *profile, const char *name)
{
	sb_cleanup(sb_output_file_freep) struct sb_output_file *file = NULL;
	struct sb_output_opts opts = {};
	FILE *stream;
	long len;
	int err;

	err = sb_output_file_new(name, &file);
	if (err)
		return err;
	stream = sb_output_file_stream(file);
	err = dest->output->write(profile, &opts, stream);
	if (err)
		return err;
	len = ftell(stream);
	/* The saved position will be on disk soon, and must not be ahead of the file. */
	if (fflush(stream) || fdatasync(fileno(stream)))
		return -errno;
	err = sb_output_file_commit(file);
	return err ? err : len;
}

static int explain(struct sb_export_link *link, const char *what, int err)
{
	sb_str_clear(&link->why);
	if (err == -ENOMEM)
		return err;
	link->state->nr_failed++;
	return sb_str_addf(&link->why, "cannot write '%s': %s", what, strerror(-err))
		       ?: err == -ENOSPC || err == -EDQUOT || err == -EIO ? -EAGAIN
									  : -EPERM;
}

static int send_one(struct dest *dest, struct sb_export_link *link,
		    const struct sb_export_period *period, const struct sb_export_series *series)
{
	sb_cleanup(sb_profile_freep) struct sb_profile *profile = NULL;
	sb_cleanup(sb_str_release) struct sb_str name = {};
	long len = 0;
	int err = name_of(dest, period, series, &name);

	err = err ?: sb_export_series_profile(period, series, &profile);
	if (!err) {
		len = write_file(dest, profile, name.s);
		err = len < 0 ? explain(link, name.s, (int)len) : 0;
	}
	return err ? err : sb_export_done(link, (uint64_t)len);
}

static int send_dir(void *arg, struct sb_export_link *link, const struct sb_export_period *period)
{
	struct dest *dest = arg;
	size_t i;
	int err = 0;

	if (mkdir(dest->path, 0777) && errno != EEXIST)
		return explain(link, dest->path, -errno);
	for (i = 0; i < period->nr_series && !err; i++)
		if (!sb_export_is_sent(link))
			err = send_one(dest, link, period, &period->series[i]);
	return err;
}

const struct sb_export_kind sb_export_pprof_dir = {
	.scheme = "pprof-dir",
	.example = "pprof-dir:DIRECTORY",
	.summary = "a .pb.gz file for each period, kind and series",
	.without = "cgroup,comm",
	.open = open_dir,
	.send = send_dir,
	.close = close_dir,
};
