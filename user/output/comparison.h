/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a comparison of two profiles can be written as. To add one: a file with a struct sb_comparison_output,
 * and a row in comparison.c.
 */
#ifndef SB_OUTPUT_COMPARISON_H
#define SB_OUTPUT_COMPARISON_H

#include <stdint.h>
#include <stdio.h>

#include "base/str.h"
#include "model/diff.h"

/* All of it borrowed. */
struct sb_comparison {
	const struct sb_profile *sides[SB_TREE_NR]; /* sealed */
	const char *what[SB_TREE_NR];		    /* "before.folded", "service=car, -2h to -1h" */
	const struct sb_tree *tree;		    /* of the two */
	struct sb_diff diff;
};

struct sb_comparison_opts {
	const char *title; /* of a picture; NULL: what was compared */
	const char *width; /* of a picture: "b", "a", "both" */
	bool is_negated;   /* of a picture: blue is more */
	enum sb_diff_sort sort;
	uint64_t nr_rows; /* of the table; 0: all */
	/* Of the terminal that the table is for: what does not fit stands in two lines; 0: a line for each function. */
	unsigned int nr_columns;
};

struct sb_comparison_output {
	const char *name;      /* of --format */
	const char *extension; /* with its dot */
	const char *summary;
	/* Return: 0, -ENODATA: both are empty, or another negative errno; errors of @out may be left in it. */
	int (*write)(const struct sb_comparison *comparison, const struct sb_comparison_opts *opts,
		     FILE *out);
};

/* Return: the output of that name, or that the extension of @path names, or NULL; the i-th row. */
const struct sb_comparison_output *sb_comparison_output_find(const char *name);
const struct sb_comparison_output *sb_comparison_output_by_path(const char *path);
const struct sb_comparison_output *sb_comparison_output_at(size_t i);

/* ---- for the outputs ---- */

extern const struct sb_comparison_output sb_comparison_table, sb_comparison_svg, sb_comparison_html;
extern const struct sb_comparison_output sb_comparison_folded, sb_comparison_json;

/*
 * Lines of text with two weights, header first: "root;...;leaf a b", as flamegraph(1) reads them. Return: 0,
 * -ENOMEM, or what @fn returned when negative.
 */
int sb_comparison_fold(const struct sb_comparison *comparison,
		       int (*fn)(void *arg, const char *line, size_t len), void *arg);

/* Of a profile: what its weights are in, "samples" if it does not say; a number that it says, 0: it does not. */
const char *sb_comparison_unit(const struct sb_comparison *comparison);
uint64_t sb_comparison_fact(const struct sb_comparison *comparison, int side, const char *key);
/* Of SB_DIFF_RATE, what a value is: "cpu": parts of one; "cpus": of all; "s": the unit per second. */
const char *sb_comparison_rate(const struct sb_comparison *comparison);

#endif
