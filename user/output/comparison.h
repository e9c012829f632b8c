/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Formats for a comparison of two profiles, A and B: the one before, and the one in question. To
 * add one, write a file with a struct sb_comparison_output and add a row to comparison.c. Called by
 * the diff command. Not thread-safe. The strings that come back are static, or borrowed from the
 * profiles of the comparison; those that are given are not kept. To write one: fill a struct
 * sb_comparison, find the output, and call its write(). Pointers are not NULL.
 */
#ifndef SB_OUTPUT_COMPARISON_H
#define SB_OUTPUT_COMPARISON_H

#include <stdint.h>
#include <stdio.h>

#include "model/diff_rows.h"

/* Everything is borrowed. */
struct sb_comparison {
	const struct sb_profile *sides[SB_TREE_NR]; /* sealed */
	const char *what[SB_TREE_NR];		    /* "before.folded", "service=car, -2h to -1h" */
	const struct sb_tree *tree;		    /* of both, see sb_calltree_new() */
	struct sb_diff diff;			    /* what is compared: sb_calltree_diff() */
};

struct sb_comparison_opts {
	const char *title; /* of a picture; NULL: what is compared */
	const char *width; /* of the boxes of a picture: "b", "a", "both" */
	bool is_negated;   /* of a picture: blue means more */
	enum sb_diff_sort sort;
	uint64_t nr_rows; /* of the table; 0: all */
	/*
	 * Width of the terminal in columns. A row that does not fit is printed on two lines. 0: the
	 * width is not known, and each function is printed on one line.
	 */
	unsigned int nr_columns;
};

struct sb_comparison_output {
	const char *name;      /* for --format */
	const char *extension; /* with its dot */
	const char *summary;
	/*
	 * Keeps nothing. Return: 0; -ENODATA if both profiles are empty; another negative errno.
	 * The caller checks @out for errors with ferror(). After an error a part may have been
	 * written.
	 */
	int (*write)(const struct sb_comparison *comparison, const struct sb_comparison_opts *opts,
		     FILE *out);
};

/*
 * Return: the output of that name; the first one whose extension @path ends with, after at least
 * one other byte; or row @i of the table, from 0; a constant. NULL if there is none.
 */
const struct sb_comparison_output *sb_comparison_output_find(const char *name);
const struct sb_comparison_output *sb_comparison_output_by_path(const char *path);
const struct sb_comparison_output *sb_comparison_output_at(size_t i);

/* ---- for the outputs ---- */

extern const struct sb_comparison_output sb_comparison_table, sb_comparison_svg, sb_comparison_html;
extern const struct sb_comparison_output sb_comparison_folded, sb_comparison_json;

/* Return: the metadata of a comparison, for pictures and the header of folded text. Its strings are
 * constant, or borrowed from the profiles. */
struct sb_metadata sb_comparison_metadata(const struct sb_comparison *comparison);

/*
 * Return: the unit of values if comparison->diff.norm is SB_DIFF_RATE, a constant; else it means
 * nothing. "cpu": fraction of one CPU; "cpus": of all CPUs; "s": the unit of the weights per
 * second.
 */
const char *sb_comparison_rate(const struct sb_comparison *comparison);

#endif
