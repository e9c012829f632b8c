/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a profile can be written as. To add one: a file with a struct sb_output, and a row in
 * table.c. See docs/adding-an-output.md.
 */
#ifndef SB_OUTPUT_OUTPUT_H
#define SB_OUTPUT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "model/fold.h"
#include "model/profile.h"

/* A fact of this prefix is a tag of all samples: "tag:region". */
#define SB_OUTPUT_TAG "tag:"

struct sb_output_opts {
	struct sb_fold_opts fold;
	const char *title; /* of a picture; NULL: by the kind of the run */
};

struct sb_output {
	const char *name;      /* of --format */
	const char *extension; /* with its dot; chosen by the name of the file */
	const char *summary;
	bool needs_durations; /* of a profile that sb_profile_add_log2() made */
	bool has_places; /* shows modules, files and lines: a run that writes it asks for them */
	/* @profile is sealed. Return: 0, -ENODATA: it has no durations, or another negative errno;
	 * errors of @out may be left in it. */
	int (*write)(const struct sb_profile *profile, const struct sb_output_opts *opts,
		     FILE *out);
};

/* The heaviest functions, a line each, as many as fold.limit says (0: 40). No row of the table: it has no
 * stacks, which whoever names a file by its extension wants. */
extern const struct sb_output sb_output_top;

/* Return: how many stacks, from the heaviest on, are to be written. */
size_t sb_output_nr_stacks(const struct sb_profile *profile, const struct sb_output_opts *opts);

/* Return: the output of that name, or NULL. */
const struct sb_output *sb_output_find(const char *name);
/* Return: the output that the longest matching extension of @path names, or NULL. */
const struct sb_output *sb_output_by_path(const char *path);
/* Return: the i-th row, or NULL past the end. */
const struct sb_output *sb_output_at(size_t i);

#endif
