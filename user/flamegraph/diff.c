// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flamegraph/diff.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "flamegraph/label.h"
#include "flamegraph/layout.h"
#include "flamegraph/opts.h"
#include "flamegraph/text.h"

#define NR_STEPS 4
#define GONE_CSS ".gone{stroke-dasharray:4 2}.gone+text{text-decoration:line-through}"

/* Of the larger by the smaller: where the next step of the colour begins. */
static const double steps[NR_STEPS - 1] = { 1.25, 2, 4 };

/* Darker than the text is light in the dark, and the other way round: WCAG 2.1, AA. */
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

static double fact_number(const struct sb_fg_facts *facts, const char *key)
{
	const char *value = sb_fg_fact(facts, key);
	double val;

	return value && sb_fg_parse_weight(value, strlen(value), &val) ? val : 0;
}

void sb_fg_diff_init(struct sb_fg_diff *diff, const struct sb_fg_tree *tree,
		     const struct sb_fg_facts *facts, const struct sb_fg_opts *opts)
{
	static const char *const keys[] = { "per_a", "per_b" };
	const struct sb_fg_pair *root = &tree->pair_totals.at[0];
	const char *norm = opts->norm ? opts->norm : sb_fg_fact(facts, "norm");
	int side;

	*diff = (struct sb_fg_diff){ .norm = "share", .is_negated = opts->negate };
	if (norm && sb_streq(norm, "raw"))
		diff->norm = "raw";
	if (norm && sb_streq(norm, "rate") && fact_number(facts, keys[0]) > 0 &&
	    fact_number(facts, keys[1]) > 0)
		diff->norm = "rate";
	diff->rate = sb_fg_fact(facts, "rate");
	diff->is_share = sb_streq(diff->norm, "share");
	for (side = 0; side < 2; side++) {
		diff->all[side] = root->weight[side];
		diff->all_squares[side] = root->squares[side];
		diff->per[side] = 1;
		if (diff->is_share && root->weight[side] > 0)
			diff->per[side] = root->weight[side];
		if (sb_streq(diff->norm, "rate"))
			diff->per[side] = fact_number(facts, keys[side]);
	}
}

static int sum_pairs(struct sb_fg_tree *tree)
{
	size_t nr = tree->nodes.nr, i;
	int side, err = sb_vec_reserve(&tree->pair_totals, nr);

	while (!err && tree->pairs.nr < nr)
		err = sb_vec_push(&tree->pairs, (struct sb_fg_pair){});
	if (err)
		return err;
	memcpy(tree->pair_totals.at, tree->pairs.at, nr * sizeof(*tree->pairs.at));
	tree->pair_totals.nr = nr;
	/* Numbers grow away from the root. */
	for (i = nr - 1; i > 0; i--) {
		const struct sb_fg_pair *pair = &tree->pair_totals.at[i];
		struct sb_fg_pair *parent = &tree->pair_totals.at[tree->nodes.at[i].parent];

		for (side = 0; side < 2; side++) {
			parent->weight[side] += pair->weight[side];
			parent->squares[side] += pair->squares[side];
		}
	}
	return 0;
}

/* In B's unit. */
static double width_of(const struct sb_fg_diff *diff, const struct sb_fg_pair *self,
		       const struct sb_fg_pair *total, enum sb_fg_diff_width by)
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

int sb_fg_diff_widths(struct sb_fg_tree *tree, const struct sb_fg_facts *facts,
		      const struct sb_fg_opts *opts)
{
	struct sb_fg_diff diff;
	size_t i;
	int err = sum_pairs(tree);

	if (err)
		return err;
	sb_fg_diff_init(&diff, tree, facts, opts);
	for (i = 0; i < tree->nodes.nr; i++)
		tree->nodes.at[i].total = width_of(&diff, &tree->pairs.at[i],
						   &tree->pair_totals.at[i], opts->diff_width);
	tree->has_fractions = true;
	return 0;
}

double sb_fg_diff_z(const struct sb_fg_diff *diff, const struct sb_fg_pair *pair)
{
	struct sb_compare sides[2];
	int side;

	for (side = 0; side < 2; side++)
		sides[side] = (struct sb_compare){ pair->weight[side], pair->squares[side],
						   diff->all[side], diff->all_squares[side],
						   diff->per[side] };
	return sb_compare_z(&sides[0], &sides[1], diff->is_share);
}

struct sb_fg_pair sb_fg_diff_box(const struct sb_fg_tree *tree, const struct sb_fg_box *box)
{
	struct sb_fg_pair sum = {};
	uint32_t node = box->node, i;
	int side;

	if (!box->nr_siblings)
		return tree->pair_totals.at[node];
	for (i = 0; i < box->nr_siblings; i++) {
		for (side = 0; side < 2; side++) {
			sum.weight[side] += tree->pair_totals.at[node].weight[side];
			sum.squares[side] += tree->pair_totals.at[node].squares[side];
		}
		node = tree->nodes.at[node].next_sibling;
	}
	return sum;
}

/* ---- colours ---- */

const char *sb_fg_diff_class(const struct sb_fg_diff *diff, const struct sb_fg_pair *pair)
{
	static const char *const classes[2][NR_STEPS + 1] = {
		{ "less1", "less2", "less3", "less4", "less4 gone" },
		{ "more1", "more2", "more3", "more4", "more4 new" },
	};
	static const char *const negated[2][NR_STEPS + 1] = {
		{ "more1", "more2", "more3", "more4", "more4 gone" },
		{ "less1", "less2", "less3", "less4", "less4 new" },
	};
	double a = pair->weight[0] / diff->per[0], b = pair->weight[1] / diff->per[1];
	double z = sb_fg_diff_z(diff, pair), ratio = fmax(a, b) / fmin(a, b);
	size_t step = 0;

	if (a == b || fabs(z) < SB_COMPARE_NOISE_Z)
		return b > 0 || !(a > 0) ? "same" : "same gone";
	while (step < NR_STEPS - 1 && ratio >= steps[step])
		step++;
	if (!(a > 0) || !(b > 0))
		step = NR_STEPS;
	return diff->is_negated ? negated[b > a][step] : classes[b > a][step];
}

bool sb_fg_diff_color(const char *class, bool is_dark, struct sb_fg_rgb *ret)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(colors); i++) {
		if (!sb_streq(colors[i].class, class))
			continue;
		*ret = is_dark ? colors[i].dark : colors[i].light;
		return true;
	}
	return false;
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
	/* What is gone by chance needs no edge: there is much of it, and it is narrow. */
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

/* ---- words ---- */

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
	if (diff->is_share)
		return sb_fg_label_add_share(out, val);
	if (sb_streq(diff->norm, "raw"))
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
	if (diff->is_share)
		return err
			       ?: sb_str_addf(out, "%.*f points", fabs(by) < 0.0995 ? 2 : 1,
					      fabs(by) * 100);
	return err ?: add_value(diff, out, fabs(by), unit);
}

int sb_fg_diff_add_figures(const struct sb_fg_diff *diff, struct sb_str *out,
			   const struct sb_fg_pair *pair, const char *unit)
{
	double a = pair->weight[0] / diff->per[0], b = pair->weight[1] / diff->per[1];
	double z = sb_fg_diff_z(diff, pair);
	int err = sb_str_add(out, "A ") ?: add_value(diff, out, a, unit);

	err = err ?: sb_str_add(out, ", B ") ?: add_value(diff, out, b, unit);
	err = err ?: sb_str_add(out, ": ") ?: add_change(diff, out, b - a, unit);
	if (!err && a != b && !isnan(z))
		err = sb_str_addf(out, ", z = %s%.1f%s", z < 0 ? "\xe2\x88\x92" : "", fabs(z),
				  fabs(z) < SB_COMPARE_NOISE_Z ? ", noise" : "");
	return err;
}

/* "A: 4,100 samples, ±2.2 points" */
static int add_side(const struct sb_fg_diff *diff, struct sb_str *out, int side, const char *unit,
		    const struct sb_fg_facts *facts)
{
	static const char *const nr_keys[] = { "n_a", "n_b" }, *const dur_keys[] = { "dur_us_a",
										     "dur_us_b" };
	double error = sb_compare_error(diff->all[side], diff->all_squares[side]);
	double nr = fact_number(facts, nr_keys[side]), dur_us = fact_number(facts, dur_keys[side]);
	int err = sb_str_addf(out, "%s: ", side ? "B" : "A");

	err = err ?: sb_fg_label_add_weight(out, diff->all[side], unit);
	if (!err && dur_us > 0)
		err = sb_str_add(out, " in ") ?: sb_fg_label_add_weight(out, dur_us, "us");
	if (!err && nr > 0 && nr != diff->all[side])
		err = sb_str_add(out, ", n = ") ?: sb_fg_label_add_number(out, nr);
	if (!err && !isnan(error))
		err = sb_str_addf(out, ", \xc2\xb1%.*f points", error < 0.0995 ? 1 : 0,
				  error * 100);
	return err ?: sb_str_add(out, " \xc2\xb7 ");
}

int sb_fg_diff_add_subtitle(const struct sb_fg_diff *diff, struct sb_str *out, const char *unit,
			    const struct sb_fg_facts *facts)
{
	static const struct {
		const char *norm, *words;
	} compared[] = {
		{ "share", "shares compared" },
		{ "rate", "rates compared" },
		{ "raw", "compared as they are" },
	};
	size_t i = 0;
	int err = add_side(diff, out, 0, unit, facts) ?: add_side(diff, out, 1, unit, facts);

	while (!sb_streq(compared[i].norm, diff->norm))
		i++;
	err = err ?: sb_str_add(out, compared[i].words);
	if (!err && (isnan(diff->all_squares[0]) || isnan(diff->all_squares[1])))
		err = sb_str_add(out, "; number of samples not known, so noise is not told");
	return err;
}
