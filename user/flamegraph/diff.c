// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flamegraph/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "flamegraph/label.h"
#include "flamegraph/layout.h"
#include "flamegraph/opts.h"

#define GONE_CSS ".gone{stroke-dasharray:4 2}.gone+text{text-decoration:line-through}"

/* Ratios of the larger value to the smaller one at which the next step of the colour begins. */
static const double steps[SB_FG_DIFF_NR_STEPS - 1] = { 1.25, 2, 4 };

/* The contrast with the text, for light and for dark, fulfils WCAG 2.1, AA. */
static const struct {
	const char *class;
	struct sb_fg_rgb light, dark;
} colors[] = {
	{ "same", { 222, 222, 222 }, { 69, 72, 78 } },
	{ "more1", { 253, 227, 220 }, { 92, 58, 52 } },
	{ "more2", { 249, 183, 166 }, { 125, 59, 45 } },
	{ "more3", { 242, 138, 115 }, { 158, 56, 36 } },
	{ "more4", { 232, 96, 74 }, { 186, 56, 32 } },
	{ "less1", { 223, 234, 250 }, { 50, 63, 80 } },
	{ "less2", { 179, 207, 242 }, { 42, 78, 122 } },
	{ "less3", { 132, 176, 232 }, { 37, 92, 156 } },
	{ "less4", { 96, 151, 224 }, { 32, 106, 184 } },
};

/* ---- what is compared ---- */

void sb_fg_diff_init(struct sb_fg_diff *diff, const struct sb_tree *tree,
		     const struct sb_metadata *metadata, const struct sb_fg_opts *opts)
{
	const double per[SB_TREE_NR] = { metadata->side[0].per, metadata->side[1].per };
	const char *name = opts->norm ? opts->norm : metadata->norm;
	int norm = name ? sb_diff_norm_find(name) : SB_DIFF_SHARE;

	if (norm < 0 || (norm == SB_DIFF_RATE && !(per[SB_TREE_A] > 0 && per[SB_TREE_B] > 0)))
		norm = SB_DIFF_SHARE;
	*diff = (struct sb_fg_diff){ .rate = metadata->rate, .is_negated = opts->negate };
	sb_diff_init(&diff->diff, tree, (enum sb_diff_norm)norm, per);
}

/* The width of a node, in B's unit. */
static double width_of(const struct sb_diff *diff, const struct sb_tree_pair *self,
		       const struct sb_tree_pair *total, enum sb_fg_diff_width by)
{
	double a = self->weight[0] * diff->per[1] / diff->per[0], b = self->weight[1];

	switch (by) {
	case SB_FG_WIDTH_A:
		return total->weight[0] > 0 ? a : b;
	case SB_FG_WIDTH_BOTH:
		return (a + b) / 2;
	default:
		return total->weight[1] > 0 ? b : a;
	}
}

int sb_fg_diff_widths(struct sb_tree *tree, const struct sb_metadata *metadata,
		      const struct sb_fg_opts *opts)
{
	struct sb_fg_diff diff;
	size_t i;
	int err = sb_tree_sum_pairs(tree);

	if (err)
		return err;
	sb_fg_diff_init(&diff, tree, metadata, opts);
	for (i = 0; i < tree->nodes.nr; i++)
		tree->nodes.at[i].total = width_of(&diff.diff, &tree->pairs.at[i],
						   &tree->pair_totals.at[i], opts->diff_width);
	tree->has_fractions = true;
	return 0;
}

struct sb_tree_pair sb_fg_diff_box(const struct sb_tree *tree, const struct sb_fg_box *box)
{
	struct sb_tree_pair sum = {};
	uint32_t node = box->node, i;

	if (!box->nr_siblings)
		return tree->pair_totals.at[node];
	for (i = 0; i < box->nr_siblings; i++) {
		sb_tree_pair_add(&sum, &tree->pair_totals.at[node]);
		node = sb_tree_next_sibling(tree, node);
	}
	return sum;
}

/* ---- colours ---- */

int sb_fg_diff_step(double a, double b, double z)
{
	double ratio = fmax(a, b) / fmin(a, b);
	int step = 1;

	if (a == b || fabs(z) < SB_DIFF_NOISE_Z)
		return 0;
	while (step < SB_FG_DIFF_NR_STEPS && ratio >= steps[step - 1])
		step++;
	if (!(a > 0) || !(b > 0))
		step = SB_FG_DIFF_NR_STEPS;
	return b > a ? step : -step;
}

const char *sb_fg_diff_class(const struct sb_fg_diff *diff, const struct sb_tree_pair *pair)
{
	static const char *const classes[2][SB_FG_DIFF_NR_STEPS + 2] = {
		{ "less1", "less2", "less3", "less4", "less4 gone", "less4 new" },
		{ "more1", "more2", "more3", "more4", "more4 gone", "more4 new" },
	};
	double a = sb_diff_value(&diff->diff, SB_TREE_A, pair->weight[SB_TREE_A]);
	double b = sb_diff_value(&diff->diff, SB_TREE_B, pair->weight[SB_TREE_B]);
	int step = sb_fg_diff_step(a, b, sb_diff_z(&diff->diff, pair));
	bool is_one_sided = !(a > 0) || !(b > 0);
	size_t i = (size_t)abs(step) - 1 + is_one_sided * (1 + (b > a));

	if (!step)
		return b > 0 || !(a > 0) ? "same" : "same gone";
	return classes[(b > a) != diff->is_negated][i];
}

bool sb_fg_diff_color_at(size_t i, bool is_dark, struct sb_fg_rgb *ret)
{
	if (i >= SB_ARRAY_SIZE(colors))
		return false;
	*ret = is_dark ? colors[i].dark : colors[i].light;
	return true;
}

int sb_fg_diff_add_css(struct sb_str *out, bool is_dark)
{
	size_t i;
	int err = 0;

	for (i = 0; i < SB_ARRAY_SIZE(colors) && !err; i++) {
		const struct sb_fg_rgb *rgb = is_dark ? &colors[i].dark : &colors[i].light;

		err = sb_str_addf(out, ".%s{fill:#%02x%02x%02x}\n", colors[i].class, rgb->r, rgb->g,
				  rgb->b);
	}
	/* Frames that are gone by chance get no edge: they are many, and narrow. */
	return err
		       ?: sb_str_addf(out,
				      "%s.gone{stroke:%s}.new{stroke:%s}.same.gone{stroke:none}\n",
				      is_dark ? "" : GONE_CSS, is_dark ? "#b9c4d4" : "#3c4654",
				      is_dark ? "#ffb4a4" : "#8c1d0c");
}

bool sb_fg_diff_legend(const struct sb_fg_diff *diff, size_t i, const char **ret_class,
		       const char **ret_name)
{
	static const struct {
		const char *class, *negated, *name;
	} rows[] = {
		{ "less4", "more4", "less than a quarter" }, { "less2", "more2", "less" },
		{ "same", "same", "noise, or no change" },   { "more2", "less2", "more" },
		{ "more4", "less4", "more than 4 times" },   { "less4 gone", "more4 gone", "gone" },
		{ "more4 new", "less4 new", "new" },
	};

	if (i >= SB_ARRAY_SIZE(rows))
		return false;
	*ret_class = diff->is_negated ? rows[i].negated : rows[i].class;
	*ret_name = rows[i].name;
	return true;
}

/* ---- texts ---- */

static int add_rate(const struct sb_fg_diff *diff, struct sb_str *out, double val, const char *unit)
{
	bool is_cpu = diff->rate && sb_streq(diff->rate, "cpu");

	if (!is_cpu && !(diff->rate && sb_streq(diff->rate, "cpus")))
		return sb_fg_label_add_weight(out, val, unit) ?: sb_str_add(out, "/s");
	return sb_fg_label_add_share(out, val)
		       ?: sb_str_add(out, is_cpu ? " of a CPU" : " of the CPUs");
}

static int add_value(const struct sb_fg_diff *diff, struct sb_str *out, double val,
		     const char *unit)
{
	if (diff->diff.norm == SB_DIFF_SHARE)
		return sb_fg_label_add_share(out, val);
	if (diff->diff.norm == SB_DIFF_RAW)
		return sb_fg_label_add_weight(out, val, unit);
	return add_rate(diff, out, val, unit);
}

static int add_change(const struct sb_fg_diff *diff, struct sb_str *out, double by,
		      const char *unit)
{
	int err;

	if (by == 0)
		return sb_str_add(out, "no change");
	/* U+2212, as wide as the plus sign. */
	err = sb_str_add(out, by > 0 ? "+" : "\xe2\x88\x92");
	if (diff->diff.norm == SB_DIFF_SHARE)
		return err
			       ?: sb_str_addf(out, "%.*f points", fabs(by) < 0.0995 ? 2 : 1,
					      fabs(by) * 100);
	return err ?: add_value(diff, out, fabs(by), unit);
}

int sb_fg_diff_add_figures(const struct sb_fg_diff *diff, struct sb_str *out,
			   const struct sb_tree_pair *pair, const char *unit)
{
	double a = sb_diff_value(&diff->diff, SB_TREE_A, pair->weight[SB_TREE_A]);
	double b = sb_diff_value(&diff->diff, SB_TREE_B, pair->weight[SB_TREE_B]);
	double z = sb_diff_z(&diff->diff, pair);
	int err = sb_str_add(out, "A ") ?: add_value(diff, out, a, unit);

	err = err ?: sb_str_add(out, ", B ") ?: add_value(diff, out, b, unit);
	err = err ?: sb_str_add(out, ": ") ?: add_change(diff, out, b - a, unit);
	if (!err && a != b && !isnan(z))
		err = sb_str_addf(out, ", z = %s%.1f%s", z < 0 ? "\xe2\x88\x92" : "", fabs(z),
				  fabs(z) < SB_DIFF_NOISE_Z ? ", noise" : "");
	return err;
}

/* "A: 4,100 samples, ±2.2 points" */
static int add_side(const struct sb_fg_diff *diff, struct sb_str *out, int side, const char *unit,
		    const struct sb_metadata_side *metadata)
{
	double error = sb_diff_error(diff->diff.all[side], diff->diff.all_squares[side]);
	double nr = (double)metadata->nr_samples, dur_us = (double)metadata->dur_us;
	int err = sb_str_addf(out, "%s: ", side ? "B" : "A");

	err = err ?: sb_fg_label_add_weight(out, diff->diff.all[side], unit);
	if (!err && dur_us > 0)
		err = sb_str_add(out, " in ") ?: sb_fg_label_add_weight(out, dur_us, "us");
	if (!err && nr > 0 && nr != diff->diff.all[side])
		err = sb_str_add(out, ", n = ") ?: sb_fg_label_add_number(out, nr);
	if (!err && !isnan(error))
		err = sb_str_addf(out, ", \xc2\xb1%.*f points", error < 0.0995 ? 1 : 0,
				  error * 100);
	return err ?: sb_str_add(out, " \xc2\xb7 ");
}

int sb_fg_diff_add_subtitle(const struct sb_fg_diff *diff, struct sb_str *out, const char *unit,
			    const struct sb_metadata *metadata)
{
	static const char *const compared[] = {
		[SB_DIFF_SHARE] = "shares compared",
		[SB_DIFF_RATE] = "rates compared",
		[SB_DIFF_RAW] = "compared as they are",
	};
	int err = add_side(diff, out, 0, unit, &metadata->side[0])
			  ?: add_side(diff, out, 1, unit, &metadata->side[1]);

	err = err ?: sb_str_add(out, compared[diff->diff.norm]);
	if (!err && (isnan(diff->diff.all_squares[0]) || isnan(diff->diff.all_squares[1])))
		err = sb_str_add(out, "; number of samples not known, so noise is not told");
	return err;
}
