/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The output files of a run, and the sink that writes the result to them: at the end, and on
 * SIGUSR1 what there is so far. When stackbpf runs as root, a separate process creates the files,
 * because the run itself has dropped that right. One thread: that of the run. Pointers are not NULL
 * unless it says so. Order: sb_outputs_choose() or sb_outputs_add(), sb_outputs_prepare(),
 * sb_outputs_write() once or several times, sb_outputs_release(), which is all that is left after
 * an error, except one of sb_outputs_write(), which may be repeated.
 */
#ifndef SB_CLI_OUTPUTS_H
#define SB_CLI_OUTPUTS_H

#include <stdbool.h>

#include "base/vec.h"
#include "cli/record_opts.h"
#include "output/output.h"
#include "run/run.h"
#include "workers/writer.h"

/* Zero-initialize. */
struct sb_outputs {
	SB_VEC(struct sb_output_place {
		const char *path; /* borrowed; "-": stdout */
		const struct sb_output *format;
		size_t writer_i; /* its index in the writer process, with is_by_writer */
		bool is_by_writer;
	})
	at;
	struct sb_writer *writer; /* NULL: this process creates the files */
	/* How much of the result would stay if the program ended now, as a signal handler may. */
	enum sb_outputs_written {
		SB_OUTPUTS_NONE,
		SB_OUTPUTS_SOME, /* perhaps none or all of it: an output is just being completed */
		SB_OUTPUTS_ALL,
	} written;
};

/**
 * sb_outputs_choose() - choose the outputs that the options name, and their formats
 * @outputs: outputs are added; they borrow the paths of @opts until sb_outputs_release()
 * @opts: with views; if a format shows durations, their measurement is switched on
 *
 * Return: -1 to go on; SB_EXIT_USAGE for a format that does not exist or that the view cannot fill,
 * or a path that is given twice; SB_EXIT_FAILED for a file that cannot be created, or without
 * memory. Errors were logged, and outputs before the wrong one stay.
 */
int sb_outputs_choose(struct sb_outputs *outputs, struct sb_record_opts *opts);
/* Add an output. @path and @format are borrowed until sb_outputs_release(). It is tested whether
 * the file can be created, of which nothing remains.
 * Return: -1 to go on; SB_EXIT_FAILED, which was logged, and nothing is added. */
int sb_outputs_add(struct sb_outputs *outputs, const char *path, const struct sb_output *format);
/* Return: whether one of the formats shows modules, files and lines. */
bool sb_outputs_have_places(const struct sb_outputs *outputs);
/* For sb_run_sink.prepare(), so before threads start: fork the process that writes files as root,
 * if the run becomes another user, which sb_outputs_release() ends; and tell run->sink who writes.
 * Return: 0; a negative errno of fork(2) or -ENOMEM, logged, and the run ends. */
int sb_outputs_prepare(struct sb_outputs *outputs, struct sb_run *run);
/* Write @profile, which is sealed, to all outputs, also if one of them fails. outputs->written is
 * SB_OUTPUTS_ALL afterwards only if none has failed. Return: 0, also when the reader of a pipe has
 * closed it; or the negative errno of the first that failed; each is logged. -EINVAL: a format
 * needs durations, and no sample has any. */
int sb_outputs_write(struct sb_outputs *outputs, const struct sb_profile *profile,
		     const struct sb_output_opts *opts);
/* End the writer process, and free the list. Call it once, at any stage, also for a zeroed one. */
void sb_outputs_release(struct sb_outputs *outputs);

/* The sink that writes the result of a run with one view. In outputs.written, snapshots do not
 * count. */
struct sb_result_sink {
	struct sb_run_sink sink; /* first */
	struct sb_outputs outputs;
	const struct sb_record_opts *opts; /* borrowed */
	bool has_progress;		   /* a progress line is shown on the terminal */
	int err;			   /* why the result was not written; it was logged */
};
/* Initialise it without outputs: add them with sb_outputs_choose(). @opts is borrowed as long as
 * @result is used. The outputs are ended with sb_outputs_release(). */
void sb_result_sink_init(struct sb_result_sink *result, const struct sb_record_opts *opts);
/* Remove the progress line, before anything else is written to the terminal. The next tick of the
 * run draws it again. Does nothing if there is none. */
void sb_result_sink_clear(const struct sb_result_sink *result);

#endif
