/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pictures of what changed: the tree is that of A and B over each other, widths are B's, and A's where B has
 * nothing any more, so that what is gone is drawn, too. Colours say what changed, unless it is noise
 * (base/compare.h). The viewer does the same with the data.
 */
#ifndef SB_FLAMEGRAPH_DIFF_H
#define SB_FLAMEGRAPH_DIFF_H

#include <stdbool.h>

#include "base/str.h"
#include "flamegraph/palette.h"
#include "flamegraph/tree.h"

struct sb_fg_opts;
struct sb_fg_box;

struct sb_fg_diff {
	/* "share": of all; "raw": as it is; "rate": per what the data says. */
	const char *norm;
	const char *rate; /* "cpu": parts of one; "cpus": of all; else weights per second */
	bool is_share, is_negated;
	double per[2], all[2], all_squares[2];
};

/*
 * Before the seal of a comparison: make weights out of the pairs, by opts->norm and opts->diff_width.
 * Return: 0 or -ENOMEM.
 */
int sb_fg_diff_widths(struct sb_fg_tree *tree, const struct sb_fg_facts *facts,
		      const struct sb_fg_opts *opts);

/* Of a tree that sb_fg_diff_widths() has seen. */
void sb_fg_diff_init(struct sb_fg_diff *diff, const struct sb_fg_tree *tree,
		     const struct sb_fg_facts *facts, const struct sb_fg_opts *opts);

/* Return: standard deviations between the two, NAN: not known. */
double sb_fg_diff_z(const struct sb_fg_diff *diff, const struct sb_fg_pair *pair);

/* Return: what a box has; of one that stands for frames the sum over these. */
struct sb_fg_pair sb_fg_diff_box(const struct sb_fg_tree *tree, const struct sb_fg_box *box);

/* Return: the class of a frame: "same", "more1" to "more4", "less1" to "less4", the last with " new" or " gone". */
const char *sb_fg_diff_class(const struct sb_fg_diff *diff, const struct sb_fg_pair *pair);

/* Append "A 12.3%, B 18.4%: +6.1 points, z = 8.2". Return: 0 or -ENOMEM. */
int sb_fg_diff_add_figures(const struct sb_fg_diff *diff, struct sb_str *out,
			   const struct sb_fg_pair *pair, const char *unit);

/* Append "A: 4,100 samples, ±2.2 points · B: ... · shares compared". Return: 0 or -ENOMEM. */
int sb_fg_diff_add_subtitle(const struct sb_fg_diff *diff, struct sb_str *out, const char *unit,
			    const struct sb_fg_facts *facts);

/* Append the rules of the classes. Return: 0 or -ENOMEM. */
int sb_fg_diff_add_css(struct sb_str *out, bool is_dark);

/* The i-th entry of the legend: its class and what it means; false past the end. */
bool sb_fg_diff_legend(const struct sb_fg_diff *diff, size_t i, const char **ret_class,
		       const char **ret_name);

/* Fill of a class without its mark. Return: false: there is none. */
bool sb_fg_diff_color(const char *class, bool is_dark, struct sb_fg_rgb *ret);

#endif
