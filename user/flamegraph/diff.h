/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pictures of comparisons: the tree has both profiles. A frame is as wide as in B, and as in A if B
 * does not have it, so that removed code is drawn, too. Its colour shows the change, unless that is
 * noise (tree/diff.h). The viewer does the same with the embedded data. Called by fg.c and svg.c:
 * sb_fg_diff_widths() before the tree is sealed, then sb_fg_diff_init(), whose result the other
 * functions read. Pointers are not NULL, and nothing that is given is kept unless it says so. Not
 * thread-safe. All that append to @out return 0 or -ENOMEM; a part may have been appended then.
 */
#ifndef SB_FLAMEGRAPH_DIFF_H
#define SB_FLAMEGRAPH_DIFF_H

#include <stdbool.h>

#include "base/str.h"
#include "flamegraph/palette.h"
#include "flamegraph/tree.h"
#include "tree/diff.h"

struct sb_fg_opts;
struct sb_fg_box;

/* What is compared; nothing to release. */
struct sb_fg_diff {
	struct sb_diff diff;
	const char *
		rate; /* for SB_DIFF_RATE: "cpu": fraction of one CPU; "cpus": of all; else per second */
	bool is_negated; /* --negate: the colours of more and less are exchanged */
};

/*
 * After the last stack of a comparison: compute the widths from the pairs of weights, by opts->norm
 * and opts->diff_width. Again is allowed, with other options, before it is sealed anew. Return: 0;
 * -ENOMEM, and the tree is unchanged.
 */
int sb_fg_diff_widths(struct sb_tree *tree, const struct sb_metadata *metadata,
		      const struct sb_fg_opts *opts);

/*
 * Choose whether rates, shares or weights are compared: what opts->norm says, or metadata->norm if
 * that says nothing, or else shares. Rates need side[].per of the metadata for both profiles; if
 * one of them is not known, shares are compared. @diff is overwritten, and borrows metadata->rate.
 * The pairs of weights of @tree must be summed up already: it is sealed, or sb_fg_diff_widths() was
 * called.
 */
void sb_fg_diff_init(struct sb_fg_diff *diff, const struct sb_tree *tree,
		     const struct sb_metadata *metadata, const struct sb_fg_opts *opts);

/* Return: the weights of a box in both profiles; for one that stands for several frames, their
 * sum. @tree: sealed, the one that the box was made of. */
struct sb_tree_pair sb_fg_diff_box(const struct sb_tree *tree, const struct sb_fg_box *box);

#define SB_FG_DIFF_NR_STEPS 4

/**
 * sb_fg_diff_step() - how strongly the colour of a frame shows its change
 * @a, @b: the values to compare (sb_diff_value())
 * @z: difference in standard deviations (sb_diff_z()); NAN: not known, and then any difference
 *	counts
 *
 * Return: 0 if nothing changed, or the change may be chance; 1 to SB_FG_DIFF_NR_STEPS, by the
 * ratio, if @b is more; negative if it is less. Thread: any. It does not know of --negate: the
 * caller exchanges the signs (sb_fg_diff_class() does).
 */
int sb_fg_diff_step(double a, double b, double z);

/*
 * Return: the CSS class of a frame, a static string: "same", "more1" to "more4", "less1" to
 * "less4" if the second profile has more or less of it than the first, or the other way round with
 * diff->is_negated; with " new" or " gone" if only one profile has it.
 */
const char *sb_fg_diff_class(const struct sb_fg_diff *diff, const struct sb_tree_pair *pair);

/* Append "A 12.3%, B 18.4%: +6.1 points, z = 8.2", with ", noise" if z is small, and without the z
 * if it is not known; or "A 12.3%, B 12.3%: no change". @pair: weights of a frame, in @unit
 * ("samples", "us", ...), which is not used where the figures are shares. */
int sb_fg_diff_add_figures(const struct sb_fg_diff *diff, struct sb_str *out,
			   const struct sb_tree_pair *pair, const char *unit);

/* Append "A: 4,100 samples, ±2.2 points · B: ... · shares compared". The number of samples
 * and the duration in @metadata are shown if they are known. */
int sb_fg_diff_add_subtitle(const struct sb_fg_diff *diff, struct sb_str *out, const char *unit,
			    const struct sb_metadata *metadata);

/* Append the CSS rules of all classes of sb_fg_diff_class(), in light colours, or in the dark ones,
 * which come after the light ones in a style sheet. */
int sb_fg_diff_add_css(struct sb_str *out, bool is_dark);

/* Get row @i of the legend, from 0: its class and its meaning, static strings. Return: whether
 * there is such a row; if not, nothing is set. */
bool sb_fg_diff_legend(const struct sb_fg_diff *diff, size_t i, const char **ret_class,
		       const char **ret_name);

/*
 * Get fill @i: 0 is no change, then each step of more, then each step of less. Return: whether
 * there is one; if not, *ret is untouched.
 */
bool sb_fg_diff_color_at(size_t i, bool is_dark, struct sb_fg_rgb *ret);

#endif
