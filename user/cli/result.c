// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/result.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/str.h"

SB_DEFINE_CLEANUP(struct sb_output_file, sb_output_file_free)

/* All formats, by name or by extension. */
static int list_formats(struct sb_str *list, bool by_name)
{
	const struct sb_output *format;
	size_t i;
	int err = 0;

	for (i = 0; !err && (format = sb_output_at(i)); i++)
		err = sb_str_addf(list, "%s%s", i ? ", " : "",
				  by_name ? format->name : format->extension);
	return err;
}

static void unknown_format(const char *path, const char *name)
{
	sb_cleanup(sb_str_release) struct sb_str list = {};

	if (list_formats(&list, name))
		return;
	if (name)
		sb_err(0, "there is no format '%s'; the formats are %s", name, list.s);
	else
		sb_err(0, "-o '%s': no format has this extension; use one of %s, or --format", path,
		       list.s);
}

const struct sb_output *sb_result_format(const char *path, const char *name)
{
	const struct sb_output *format = name ? sb_output_find(name) : sb_output_by_path(path);

	if (!format)
		unknown_format(path, name);
	return format;
}

/* Who writes only knows that something went wrong; the stream knows what. */
int sb_result_write_stream(sb_result_writer writer, const void *arg, FILE *out)
{
	int err, err_write;

	errno = 0;
	err = writer(arg, out);
	err_write = errno;
	if (fflush(out) || ferror(out))
		return err_write ? -err_write : errno ? -errno : -EIO;
	return err;
}

int sb_result_cannot_write(const char *path, int err)
{
	struct stat st;

	if (err == -ENODATA) {
		sb_err(0, "cannot write '%s': its format needs samples, and there are none", path);
		return err;
	}
	if (err == -EEXIST) {
		sb_err(0,
		       "cannot write '%s': the file exists, and user %u, who called sudo, "
		       "may not replace it; delete it first, or choose another name",
		       path, sb_sudo_owner().uid);
		return err;
	}
	if (sb_is_in_deleted_cwd(path)) {
		sb_err(0,
		       "cannot write '%s': the current directory was deleted; change to another "
		       "one, or use a path that begins with '/'",
		       path);
		return err;
	}
	if (err == -ENOENT)
		return sb_err(err, "cannot write '%s'; create its directory, or choose another one",
			      path);
	if (err != -EPERM || lstat(path, &st) || !S_ISFIFO(st.st_mode))
		return sb_err(err, "cannot write '%s'", path);
	sb_err(0,
	       "cannot write '%s': user %u owns this FIFO and would read the result; delete "
	       "it first, or choose another name",
	       path, st.st_uid);
	return err;
}

static int write_file(const char *path, sb_result_writer writer, const void *arg)
{
	sb_cleanup(sb_output_file_freep) struct sb_output_file *file = NULL;
	int err = sb_output_file_new(path, &file);

	if (!err)
		err = sb_result_write_stream(writer, arg, sb_output_file_stream(file));
	return err ? err : sb_output_file_commit(file);
}

int sb_result_write_by(const char *path, sb_result_writer writer, const void *arg)
{
	bool is_stdout = sb_streq(path, "-");
	int err = is_stdout ? sb_result_write_stream(writer, arg, stdout)
			    : write_file(path, writer, arg);

	if (is_stdout)
		clearerr(stdout);
	/* The reader has enough: that is its right. */
	if (!err || err == -EPIPE)
		return 0;
	return is_stdout && err != -ENODATA
		       ? sb_err(err, "cannot write to standard output")
		       : sb_result_cannot_write(is_stdout ? "standard output" : path, err);
}

struct written {
	const struct sb_output *format;
	const struct sb_profile *profile;
	const struct sb_output_opts *opts;
};

static int write_profile(const void *arg, FILE *out)
{
	const struct written *written = arg;

	return written->format->write(written->profile, written->opts, out);
}

int sb_result_write(const struct sb_output *format, const char *path,
		    const struct sb_profile *profile, const struct sb_output_opts *opts)
{
	return sb_result_write_by(path, write_profile, &(struct written){ format, profile, opts });
}

int sb_result_note_limit(struct sb_profile *profile, size_t limit)
{
	struct sb_metadata metadata = *sb_profile_metadata(profile);
	const uint64_t weight = sb_profile_weight(profile);

	metadata.limited_weight = limit ? weight - sb_profile_weight_of(profile, limit) : 0;
	if (!metadata.limited_weight)
		return 0;
	sb_info("--limit omitted %llu of %llu %s; raise it to see them",
		(unsigned long long)metadata.limited_weight, (unsigned long long)weight,
		sb_profile_unit(profile));
	return sb_profile_set_metadata(profile, &metadata);
}
