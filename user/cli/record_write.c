// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* From the profile to files and to standard output. */
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

#define FORMAT_DEFAULT	    "folded"
#define FORMAT_OF_DURATIONS "distr" /* with --distr, which would show nowhere else */

SB_DEFINE_CLEANUP(struct sb_profile, sb_profile_free)
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
static int need_durations(struct sb_run *run, const struct sb_output *format)
{
	if (!sb_record_opt_is_for("distr", run->views.at[0]->name)) {
		sb_err(0, "format '%s' is made of durations, and %s measures none", format->name,
		       run->views.at[0]->name);
		return SB_EXIT_USAGE;
	}
	run->opts.view.distr = true;
	return -1;
}

static int add_output(struct sb_run *run, const char *path)
{
	const struct sb_output *format;
	const char *name = run->opts.format;

	if (!name && sb_streq(path, "-"))
		name = run->opts.view.distr ? FORMAT_OF_DURATIONS : FORMAT_DEFAULT;
	format = sb_result_format(path, name);
	if (!format)
		return SB_EXIT_USAGE;
	if (format->needs_durations) {
		int status = need_durations(run, format);

		if (status >= 0)
			return status;
	}
	return sb_run_add_output(run, path, format);
}

int sb_run_choose_outputs(struct sb_run *run)
{
	const sb_vec_str *paths = &run->opts.output_paths;
	size_t i, j;
	int status = -1;

	if (run->sink)
		return -1;
	if (!paths->nr)
		return add_output(run, "-");
	for (i = 0; i < paths->nr && status < 0; i++) {
		for (j = 0; j < i; j++) {
			if (sb_streq(paths->at[i], paths->at[j])) {
				sb_err(0, "-o '%s' is given twice", paths->at[i]);
				return SB_EXIT_USAGE;
			}
		}
		status = add_output(run, paths->at[i]);
	}
	return status;
}

bool sb_run_has_places(const struct sb_run *run)
{
	size_t i;

	for (i = 0; i < run->outputs.nr; i++)
		if (run->outputs.at[i].format->has_places)
			return true;
	return false;
}

/* Weight of the stacks that --limit leaves out. */
static uint64_t weight_cut(const struct sb_run *run, const struct sb_profile *profile)
{
	size_t i, nr = sb_profile_nr_stacks(profile), nr_frames;
	uint64_t weight, cut = 0;

	for (i = run->opts.limit; run->opts.limit && i < nr; i++) {
		sb_profile_stack_at(profile, i, &nr_frames, &weight);
		cut += weight;
	}
	return cut;
}

/* That it was sampled less, and how much less at the least, for so long. */
static int add_governed(const struct sb_run *run, const struct sb_thinning_stats *stats,
			struct sb_profile *profile)
{
	int err;

	if (!stats->governor.lowered_ns)
		return 0;
	err = sb_profile_meta(profile, "governed_us", "%llu",
			      (unsigned long long)stats->governor.lowered_ns / 1000);
	if (err)
		return err;
	if (stats->weight)
		return sb_profile_meta(profile, "every", "%llu",
				       (unsigned long long)(stats->weight / run->units[0].divisor));
	return sb_profile_meta(profile, "rate_hz", "%.4g..%u", stats->rate_hz, run->opts.freq_hz);
}

/* When it was, and what a sample of the timer stands for. Of cycles, that is not known as time. */
static int add_times(const struct sb_run *run, const struct sb_run_figures *figures,
		     struct sb_profile *profile)
{
	uint64_t ago_us = (sb_now_ns() - run->start_ns) / 1000, now_us = sb_real_us();
	int err = sb_profile_meta(profile, "dur_us", "%llu",
				  (unsigned long long)figures->wall_ns / 1000);

	if (!err && now_us > ago_us)
		err = sb_profile_meta(profile, "start_us", "%llu",
				      (unsigned long long)(now_us - ago_us));
	if (!err && sb_streq(run->units[0].name, "samples") && run->opts.freq_hz &&
	    (!run->opts.event || sb_streq(run->opts.event, "cpu-clock")))
		err = sb_profile_meta(profile, "hz", "%u", run->opts.freq_hz);
	return err;
}

/* What the outermost frames are: labels, of those that have any, and roots. */
static int add_roots(const struct sb_run *run, struct sb_profile *profile)
{
	sb_cleanup(sb_str_release) struct sb_str by = {};
	const struct sb_root_list *roots = &run->opts.roots;
	size_t i;
	int err = roots->nr ? 0 : sb_str_add(&by, sb_root_names[SB_ROOT_COMM]);

	for (i = 0; i < roots->nr && !err; i++)
		err = sb_str_addf(&by, "%s%s", i ? "," : "", sb_root_names[roots->at[i]]);
	if (!err)
		err = sb_profile_meta(profile, "by", "%s", by.s);
	if (err || !run->opts.recorder.nr_labels)
		return err;
	sb_str_clear(&by);
	for (i = 0; i < run->opts.recorder.nr_labels && !err; i++)
		err = sb_str_addf(&by, "%s%s", i ? "," : "", run->opts.recorder.labels[i]);
	return err ? err : sb_profile_meta(profile, "labels", "%s", by.s);
}

/* The facts that travel with the result. Readers know these keys: see flamegraph(1). */
static int add_facts(const struct sb_run *run, struct sb_profile *profile)
{
	struct sb_run_figures figures;
	uint64_t cut = weight_cut(run, profile);
	int err;

	sb_run_figures(run, 0, &figures);
	err = sb_profile_meta(profile, "kind", "%s", run->views.at[0]->name);
	if (!err)
		err = sb_profile_meta(profile, "unit", "%s", run->units[0].name);
	if (!err)
		err = add_times(run, &figures, profile);
	if (!err)
		err = add_roots(run, profile);
	if (!err)
		err = sb_profile_meta(profile, "n", "%llu", (unsigned long long)figures.nr_samples);
	if (!err && !figures.session.err)
		err = sb_profile_meta(profile, "lost", "%llu", (unsigned long long)figures.nr_lost);
	if (!err)
		err = sb_profile_meta(profile, "trunc", "%llu", (unsigned long long)figures.nr_cut);
	if (!err)
		err = sb_profile_meta(profile, "nosym", "%llu",
				      (unsigned long long)figures.nr_unnamed);
	if (!err && figures.resolve.idle_weight)
		err = sb_profile_meta(
			profile, "idle", "%llu",
			(unsigned long long)(figures.resolve.idle_weight / run->units[0].divisor));
	if (!err && figures.session.expected)
		err = sb_profile_meta(profile, "accounted", "%.2f", sb_run_accounted(&figures));
	if (!err)
		err = add_governed(run, &figures.session.thinning, profile);
	if (!err && cut) {
		err = sb_profile_meta(profile, "limited", "%llu", (unsigned long long)cut);
		sb_info("--limit left out %llu of %llu %s", (unsigned long long)cut,
			(unsigned long long)sb_profile_weight(profile), run->units[0].name);
	}
	return err;
}

/* As sb_result_write(), into a file that the other process makes. */
static int write_by_writer(struct sb_writer *writer, const struct sb_run_output *output,
			   const struct sb_profile *profile, const struct sb_output_opts *opts)
{
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
		err = sb_result_write_stream(output->format, profile, opts, out);
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

int sb_run_write_as(struct sb_run *run, const struct sb_profile *profile,
		    const struct sb_output_opts *opts)
{
	size_t i;
	int err = 0, err_one;

	for (i = 0; i < run->outputs.nr; i++) {
		const struct sb_run_output *output = &run->outputs.at[i];

		if (lacks_durations(output->format, profile))
			err_one = sb_err(0, "-o '%s': no durations were measured", output->path);
		else if (output->is_by_writer)
			err_one = write_by_writer(run->writer, output, profile, opts);
		else
			err_one = sb_result_write(output->format, output->path, profile, opts);
		err = err ? err : err_one;
	}
	return err;
}

static int write_all(struct sb_run *run, const struct sb_profile *profile)
{
	const struct sb_record_opts *from = &run->opts;
	const struct sb_output_opts opts = {
		.fold = {
			.annotate = from->annotate,
			.lines = from->lines,
			.modules = from->modules,
			.offsets = from->offsets,
			.header = !from->no_header,
			.limit = from->limit,
		},
		.title = from->title,
	};

	return sb_run_write_as(run, profile, &opts);
}

int sb_run_add_output(struct sb_run *run, const char *path, const struct sb_output *format)
{
	struct sb_run_output output = { .path = path, .format = format };
	int err = sb_streq(path, "-") ? 0 : try_path(path);

	if (!err)
		err = sb_vec_push(&run->outputs, output);
	if (!err)
		return -1;
	(void)sb_result_cannot_write(path, err);
	return SB_EXIT_FAILED;
}

/* Weights as they are shown, and what is missing to the whole. */
static int weigh(const struct sb_run *run, struct sb_profile *profile)
{
	struct sb_run_figures figures;
	uint64_t known;
	int err = 0;

	sb_run_figures(run, 0, &figures);
	known = figures.resolve.weight + figures.resolve.idle_weight;
	if (figures.session.expected > known)
		err = sb_resolver_add_residual(profile, figures.session.expected - known);
	if (!err && run->units[0].divisor > 1)
		err = sb_profile_scale(profile, run->units[0].divisor);
	return err;
}

int sb_run_write(struct sb_run *run, bool is_last)
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
		err = weigh(run, profile);
	if (!err)
		err = sb_profile_seal(profile);
	if (!err)
		err = add_facts(run, profile);
	if (err)
		return sb_err(err, "cannot put the result together");
	err = write_all(run, profile);
	if (!is_last && !err)
		sb_info("snapshot written, going on");
	return err;
}
