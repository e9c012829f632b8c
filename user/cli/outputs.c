// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes the profile to files and to standard output. */
#include "cli/outputs.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "cli/command.h"
#include "cli/record.h"
#include "cli/result.h"
#include "cli/term.h"
#include "cli/wrap.h"
#include "workers/privileges.h"

#define FORMAT_DEFAULT	    "folded"
#define FORMAT_OF_DURATIONS "distr" /* with --distr, which would show nowhere else */

SB_DEFINE_CLEANUP(struct sb_output_file, sb_output_file_free)

/*
 * Whether the file can be made, asked before the run and not after it. Devices and FIFOs are not
 * touched: to open one may wait for its reader.
 */
static int try_path(const char *path)
{
	struct sb_output_file *file;
	struct stat st;
	int err;

	if (!lstat(path, &st) && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode) &&
	    !S_ISDIR(st.st_mode))
		return S_ISFIFO(st.st_mode) && st.st_uid && st.st_uid != sb_sudo_owner().uid
			       ? -EPERM
			       : 0;
	err = sb_output_file_new(path, &file);
	if (!err)
		sb_output_file_free(file);
	return err;
}

/* Whoever wants durations shown wants them collected. */
static int need_durations(struct sb_record_opts *opts, const struct sb_output *format)
{
	const struct sb_view_kind *kind = opts->run.views.at[0]->kind;

	if (!(kind->options & SB_VIEW_LASTING) && !opts->request.weight)
		return sb_fail(SB_EXIT_USAGE, 0,
			       "format '%s' needs the duration of each event, which %s does not "
			       "measure; choose another format",
			       format->name, kind->name);
	opts->run.view_opts.distr = true;
	return -1;
}

static int choose_output(struct sb_outputs *outputs, struct sb_record_opts *opts, const char *path)
{
	const struct sb_output *format;
	const char *name = opts->format;

	if (!name && sb_streq(path, "-"))
		name = opts->run.view_opts.distr ? FORMAT_OF_DURATIONS : FORMAT_DEFAULT;
	format = sb_result_format(path, name);
	if (!format)
		return SB_EXIT_USAGE;
	if (format->needs_durations) {
		int status = need_durations(opts, format);

		if (status >= 0)
			return status;
	}
	return sb_outputs_add(outputs, path, format);
}

int sb_outputs_choose(struct sb_outputs *outputs, struct sb_record_opts *opts)
{
	const sb_vec_str *paths = &opts->output_paths;
	size_t i, j;
	int status = -1;

	if (!paths->nr)
		return choose_output(outputs, opts, "-");
	for (i = 0; i < paths->nr && status < 0; i++) {
		for (j = 0; j < i; j++) {
			if (sb_streq(paths->at[i], paths->at[j]))
				return sb_fail(
					SB_EXIT_USAGE, 0,
					"-o '%s' is given twice; leave one out, or name another "
					"file",
					paths->at[i]);
		}
		status = choose_output(outputs, opts, paths->at[i]);
	}
	return status;
}

bool sb_outputs_have_places(const struct sb_outputs *outputs)
{
	size_t i;

	for (i = 0; i < outputs->at.nr; i++)
		if (outputs->at.at[i].format->has_places)
			return true;
	return false;
}

int sb_outputs_prepare(struct sb_outputs *outputs, struct sb_run *run)
{
	sb_vec_str paths = {};
	size_t i;
	int err = 0;
	bool is_root = geteuid() == 0 && sb_run_identity(run->config).uid != 0;

	for (i = 0; i < outputs->at.nr && !err; i++) {
		struct sb_output_place *output = &outputs->at.at[i];

		if (sb_streq(output->path, "-"))
			continue;
		/* No result could be written at the end. */
		if (sb_is_in_deleted_cwd(output->path)) {
			sb_vec_release(&paths);
			return sb_result_cannot_write(output->path, -ENOENT);
		}
		output->is_by_writer = is_root && !sb_output_is_fd(output->path);
		run->sink->writes_files |= !output->is_by_writer;
		if (!output->is_by_writer)
			continue;
		output->writer_i = paths.nr;
		err = sb_vec_push(&paths, output->path);
	}
	if (!err && paths.nr)
		err = sb_writer_new((const char *const *)paths.at, paths.nr, sb_privileges_to_start,
				    &outputs->writer);
	sb_vec_release(&paths);
	run->sink->has_file_writer = outputs->writer;
	return err ? sb_err(err,
			    "cannot start the helper process that writes files; check limits of "
			    "processes and memory")
		   : 0;
}

/* An output while it is written. */
struct writing {
	struct sb_outputs *outputs;
	const struct sb_output_place *output;
	const struct sb_profile *profile;
	const struct sb_output_opts *opts;
};

/* Whether what is written stays even if it is not completed. */
static bool is_direct(const char *path, FILE *out)
{
	struct stat st;

	return sb_streq(path, "-") || sb_output_is_fd(path) || fstat(fileno(out), &st) ||
	       !S_ISREG(st.st_mode);
}

static int write_profile(const void *arg, FILE *out)
{
	const struct writing *writing = arg;
	const struct sb_output_place *output = writing->output;
	int err;

	if (is_direct(output->path, out))
		writing->outputs->written = SB_OUTPUTS_SOME;
	err = output->format->write(writing->profile, writing->opts, out);
	/* The caller gives the file its name next. */
	if (!err)
		writing->outputs->written = SB_OUTPUTS_SOME;
	return err;
}

/* As sb_result_write_by(), into a file that the other process makes. */
static int write_by_writer(const struct writing *writing)
{
	const struct sb_output_place *output = writing->output;
	struct sb_writer *writer = writing->outputs->writer;
	sb_cleanup(sb_fclosep) FILE *out = NULL;
	int fd = sb_writer_open(writer, output->writer_i), err = fd < 0 ? fd : 0;

	if (!err) {
		out = fdopen(fd, "w");
		if (!out) {
			err = -errno;
			close(fd);
		}
	}
	if (!err)
		err = sb_result_write_stream(write_profile, writing, out);
	if (!err && fclose(sb_take(out)))
		err = -errno;
	if (!err)
		err = sb_writer_commit(writer, output->writer_i);
	else
		sb_writer_discard(writer, output->writer_i);
	if (err == -EPIPE)
		return 0;
	return err ? sb_result_cannot_write(output->path, err) : 0;
}

static bool lacks_durations(const struct sb_output *format, const struct sb_profile *profile)
{
	return format->needs_durations && sb_profile_nr_stacks(profile) &&
	       !sb_profile_log2_total(profile);
}

static int say_no_durations(const struct sb_output_place *output)
{
	sb_err(0,
	       "cannot write '%s': format '%s' shows durations, but nothing that was sampled has "
	       "one; choose another format",
	       output->path, output->format->name);
	return -EINVAL;
}

int sb_outputs_write(struct sb_outputs *outputs, const struct sb_profile *profile,
		     const struct sb_output_opts *opts)
{
	size_t i;
	int err = 0, err_one;

	outputs->written = SB_OUTPUTS_NONE;
	for (i = 0; i < outputs->at.nr; i++) {
		const struct sb_output_place *output = &outputs->at.at[i];
		const struct writing writing = { outputs, output, profile, opts };

		if (lacks_durations(output->format, profile))
			err_one = say_no_durations(output);
		else if (output->is_by_writer)
			err_one = write_by_writer(&writing);
		else
			err_one = sb_result_write_by(output->path, write_profile, &writing);
		err = err ? err : err_one;
	}
	if (!err)
		outputs->written = SB_OUTPUTS_ALL;
	return err;
}

int sb_outputs_add(struct sb_outputs *outputs, const char *path, const struct sb_output *format)
{
	struct sb_output_place output = { .path = path, .format = format };
	int err = sb_streq(path, "-") ? 0 : try_path(path);

	if (!err)
		err = sb_vec_push(&outputs->at, output);
	if (!err)
		return -1;
	(void)sb_result_cannot_write(path, err);
	return SB_EXIT_FAILED;
}

void sb_outputs_release(struct sb_outputs *outputs)
{
	sb_writer_free(outputs->writer);
	sb_vec_release(&outputs->at);
}

static int write_all(struct sb_result_sink *result, const struct sb_profile *profile)
{
	const struct sb_record_opts *from = result->opts;
	const struct sb_output_opts opts = {
		.fold = {
			.annotate = from->annotate,
			.lines = from->lines,
			.modules = from->modules,
			.offsets = from->run.offsets,
			.header = !from->no_header,
			.limit = from->limit,
		},
		.title = from->title,
	};

	return sb_outputs_write(&result->outputs, profile, &opts);
}

static int write_result(struct sb_result_sink *result, struct sb_run *run, bool is_last)
{
	sb_cleanup(sb_profile_freep) struct sb_profile *copy = NULL;
	struct sb_profile *profile = run->profile;
	int err = 0;

	if (!is_last) {
		err = sb_profile_new(&copy);
		if (!err)
			err = sb_profile_merge(copy, run->profile);
		profile = copy;
	}
	if (!err)
		err = sb_run_complete_profile(run, profile);
	if (!err)
		err = sb_result_note_limit(profile, result->opts->limit);
	return err ? sb_err(err, "cannot add up the samples for the result")
		   : write_all(result, profile);
}

/* The result, as a sink. */

void sb_result_sink_clear(const struct sb_result_sink *result)
{
	if (result->has_progress)
		sb_wrap_clear_line();
}

static int prepare(struct sb_run_sink *sink, struct sb_run *run)
{
	return sb_outputs_prepare(&((struct sb_result_sink *)sink)->outputs, run);
}

/* A hint for people at a terminal. The command has the terminal to itself. */
static int begin(struct sb_run_sink *sink, struct sb_run *run)
{
	struct sb_result_sink *result = (struct sb_result_sink *)sink;
	const struct sb_record_opts *opts = result->opts;

	if (!isatty(STDERR_FILENO) || opts->common.quiet || opts->run.command)
		return 0;
	result->has_progress = sb_term_is_there(STDERR_FILENO);
	if (isatty(STDOUT_FILENO) && !opts->output_paths.nr)
		sb_info("folded stacks are printed here; use -o FILE.svg for a flame graph");
	if (!opts->run.time_ns)
		sb_info("sampling until Ctrl-C");
	return 0;
}

static void show_progress(struct sb_run_sink *sink, struct sb_run *run)
{
	struct sb_result_sink *result = (struct sb_result_sink *)sink;
	struct sb_resolve_stats stats;
	char line[128];
	int n;

	if (!result->has_progress)
		return;
	sb_resolver_stats(run->resolver, 0, &stats);
	n = snprintf(line, sizeof(line), "\r\033[Kstackbpf: %.0f s, %llu %s",
		     (double)(sb_now_ns() - run->start_ns) / 1e9,
		     (unsigned long long)stats.nr_samples,
		     sb_view_event(run->config->views.at[0], stats.nr_samples));
	/* A terminal that is gone is no reason to stop. */
	(void)!write(STDERR_FILENO, line, (size_t)n);
}

/* What could not be written before the end is said, and may be possible later. */
static void take_snapshot(struct sb_result_sink *result, struct sb_run *run)
{
	const bool is_of_held = sb_view_is_of_held(run->config->views.at[sb_run_shown(run)]);
	int err = write_result(result, run, false);

	result->outputs.written = SB_OUTPUTS_NONE;
	if (!err)
		sb_info("wrote a snapshot%s; sampling goes on",
			is_of_held
				? " without any memory, because what is held is looked at when the run ends"
				: "");
	else if (err == -ENODATA)
		sb_info("%s; sampling goes on",
			is_of_held ? "what is held is looked at when the run ends"
				   : "there are no samples yet");
}

static int take(struct sb_run_sink *sink, struct sb_run *run)
{
	struct sb_result_sink *result = (struct sb_result_sink *)sink;

	sb_result_sink_clear(result);
	if (!run->end_ns) {
		take_snapshot(result, run);
		return 0;
	}
	if (!sb_run_has_samples(run))
		return 0;
	result->err = write_result(result, run, true);
	return 0;
}

void sb_result_sink_init(struct sb_result_sink *result, const struct sb_record_opts *opts)
{
	*result = (struct sb_result_sink){
		.sink = {
			.prepare = prepare,
			.begin = begin,
			.take = take,
			.keeps_all = true,
			.is_slow = true,
			.tick = show_progress,
		},
		.opts = opts,
	};
}
