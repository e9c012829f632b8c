/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Results, to standard output or to a file that appears when it is whole: profiles as one of the formats, others. */
#ifndef SB_CLI_RESULT_H
#define SB_CLI_RESULT_H

#include "output/output.h"

/* The format of that name; @name NULL: the one by the extension of @path. NULL: there is none, which was
 * logged, with those that there are. */
const struct sb_output *sb_result_format(const char *path, const char *name);

/* Write to @out and flush it. Return: 0; -EPIPE: its reader has enough; others, not logged. */
int sb_result_write_stream(const struct sb_output *format, const struct sb_profile *profile,
			   const struct sb_output_opts *opts, FILE *out);

/* Writes to @out what @arg is. Return: 0 or a negative errno; errors of @out may be left in it. */
typedef int (*sb_result_writer)(const void *arg, FILE *out);

/* Write to the file @path, "-" is standard output. Return: 0, also if its reader had enough; a negative errno,
 * logged. */
int sb_result_write_by(const char *path, sb_result_writer writer, const void *arg);
/* The same of a profile. */
int sb_result_write(const struct sb_output *format, const char *path,
		    const struct sb_profile *profile, const struct sb_output_opts *opts);

/**
 * sb_result_cannot_write() - say why an output file could not be written, and what to do
 * @path: the file, as the user gave it
 * @err: what sb_output_file_new() and others returned
 *
 * Return: @err.
 */
int sb_result_cannot_write(const char *path, int err);

#endif
