/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Formats that a profile can be written in: seal it, find the output, and call its write(). To add
 * one, write a file with a struct sb_output and add a row to outputs.def; see
 * docs/adding-an-output.md. Thread: any, one for each stream, while nobody modifies the profile.
 * Pointers are not NULL unless it says so.
 */
#ifndef SB_OUTPUT_OUTPUT_H
#define SB_OUTPUT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "model/fold.h"
#include "model/profile.h"

/* Metadata with this prefix is a tag of all samples: "tag:region". */
#define SB_OUTPUT_TAG "tag:"

struct sb_output_opts {
	struct sb_fold_opts fold;
	const char *title; /* of a picture; NULL: chosen by the kind of the profile */
};

struct sb_output {
	const char *name;      /* for --format */
	const char *extension; /* with its dot: the file's name chooses the format */
	const char *summary;
	bool needs_durations; /* of rows, see sb_row.log2_ns */
	bool has_places;      /* shows modules, files and lines: a recording for it collects them */
	/*
	 * @profile is sealed. Nothing is kept. Return: 0; -ENODATA if it lacks durations or weight,
	 * which the format needs; -ENOMEM; another negative errno. The caller checks @out for
	 * errors with ferror(). After an error a part may have been written.
	 */
	int (*write)(const struct sb_profile *profile, const struct sb_output_opts *opts,
		     FILE *out);
};

/*
 * The heaviest functions, one in each line, as many as fold.limit (0: 40). It is not in the table,
 * which is searched by extension: whoever names a file wants the stacks.
 */
extern const struct sb_output sb_output_top;

/* Return: how many stacks to write, the heaviest first: all, or fold.limit. */
size_t sb_output_nr_stacks(const struct sb_profile *profile, const struct sb_output_opts *opts);

/* Return: the output of the table with that name, a constant; NULL if there is none, as for
 * "top". */
const struct sb_output *sb_output_find(const char *name);
/* Return: the output with the longest extension that @path ends with, after at least one other
 * byte, a constant; NULL if there is none. */
const struct sb_output *sb_output_by_path(const char *path);
/* Return: row @i of the table, a constant; NULL past the end. */
const struct sb_output *sb_output_at(size_t i);

#endif
