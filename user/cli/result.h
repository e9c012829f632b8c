/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes results to standard output, or to a file that appears only when it is complete. One
 * thread. Pointers are not NULL unless it says so, and nothing is kept. */
#ifndef SB_CLI_RESULT_H
#define SB_CLI_RESULT_H

#include "output/output.h"

/* Find an output format by @name, or if that is NULL by the extension of @path. With a @name, @path
 * is not used, and may be NULL. No file is opened. Return: the format, a constant; NULL when there
 * is none, after that was logged with a list of all formats. */
const struct sb_output *sb_result_format(const char *path, const char *name);

/* Write @arg to @out. Return: 0 or a negative errno; errors of @out itself need not be returned. */
typedef int (*sb_result_writer)(const void *arg, FILE *out);

/* Call @writer with @arg to write to @out, and flush it; @out is not closed. Return: 0; -EPIPE when
 * the reader has closed it; or another negative errno of @writer or of @out, which may have a part
 * then. Nothing is logged. */
int sb_result_write_stream(sb_result_writer writer, const void *arg, FILE *out);
/* Call @writer with @arg to write the file @path; "-" is standard output. Return: 0, also
 * when the reader of a pipe has closed it; or the negative errno of @writer or of the file, logged,
 * and a regular file is as it was before. */
int sb_result_write_by(const char *path, sb_result_writer writer, const void *arg);
/* Write a sealed profile to the file @path, which appears when it is complete; "-" is standard
 * output. Return: 0, also when the reader of a pipe has closed it; or the negative errno of the
 * format or of the file, logged, and a regular file is as it was before. */
int sb_result_write(const struct sb_output *format, const char *path,
		    const struct sb_profile *profile, const struct sb_output_opts *opts);
/* Log that only @limit stacks of a sealed profile are written, if it has more, and say it in its
 * metadata. @limit: 0: all. Return: 0 or -ENOMEM. */
int sb_result_note_limit(struct sb_profile *profile, size_t limit);

/**
 * sb_result_cannot_write() - log why an output file could not be written, and what to do
 * @path: the file, as the user gave it
 * @err: the negative errno of making, writing or renaming it; -ENODATA: of its format, which
 *	has nothing to show
 *
 * Return: @err.
 */
int sb_result_cannot_write(const char *path, int err);

#endif
