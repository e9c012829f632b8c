// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/calltree.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/spread.h"

_Static_assert((int)SB_FRAME_KIND_MAX <= SB_TREE_GAP, "kinds of frames are kinds of a tree");

/* In sb_tree.marks: code without a name. Other values are sb_frame.mark. */
#define UNNAMED SB_ATTR_KIND_MAX

/* A profile that is being added to a tree. */
struct builder {
	struct sb_tree *tree;
	const struct sb_profile *profile;
	int side;
	bool is_pair;
	uint32_t *names, *modules; /* by frame ID: indexes of tree->names */
};

static int number_text(struct sb_tree *tree, const char *s, uint32_t *ret)
{
	return sb_strtab_add(&tree->names, s, strlen(s), ret);
}

static int number_frames(struct builder *builder)
{
	size_t nr = sb_profile_nr_frames(builder->profile), i;
	int err = 0;

	builder->names = calloc(nr + 1, sizeof(*builder->names));
	builder->modules = calloc(nr + 1, sizeof(*builder->modules));
	if (!builder->names || !builder->modules)
		return -ENOMEM;
	for (i = 0; i < nr && !err; i++) {
		const struct sb_frame *frame = sb_profile_frame_at(builder->profile, (uint32_t)i);

		err = number_text(builder->tree, frame->name, &builder->names[i]);
		if (!err && frame->module)
			err = number_text(builder->tree, frame->module, &builder->modules[i]);
	}
	return err;
}

static int add_child(struct builder *builder, uint32_t parent, uint32_t frame, uint32_t *ret_node)
{
	struct sb_tree *tree = builder->tree;
	size_t nr = tree->nodes.nr;
	const struct sb_frame *from = sb_profile_frame_at(builder->profile, frame);
	int err = sb_tree_child_by_id(tree, parent, builder->names[frame], (uint8_t)from->kind,
				      ret_node);

	if (err || tree->nodes.nr == nr)
		return err;
	err = sb_vec_push(&tree->modules, builder->modules[frame]);
	return err ?: sb_vec_push(&tree->marks, from->is_unnamed ? UNNAMED : from->mark);
}

/* ---- weights ---- */

/*
 * For stacks that do not say how many samples they have: the mean weight of a sample; 0: not known.
 */
struct mean {
	double weight;
	bool is_even; /* all samples have this weight; else they vary as waits do */
};

static struct mean mean_of_rest(const struct sb_profile *profile, uint64_t *ret_nr_samples)
{
	const struct sb_metadata *metadata = sb_profile_metadata(profile);
	struct mean mean = { .is_even = sb_spread_is_even(metadata->unit) };
	uint64_t rest = 0, nr_said = metadata->nr_samples, nr = 0;
	size_t i;

	for (i = 0; i < sb_profile_nr_stacks(profile); i++) {
		const struct sb_row row = sb_profile_row_at(profile, i);

		nr += row.nr_samples;
		if (!row.nr_samples)
			rest += row.weight;
	}
	*ret_nr_samples = nr;
	if (!rest)
		return mean;
	*ret_nr_samples = nr_said > nr ? nr_said : 0;
	if (nr_said > nr)
		mean.weight = (double)rest / (double)(nr_said - nr);
	else if (mean.is_even)
		mean.weight = 1;
	/*
	 * A part of a profile has the metadata of the whole. A sample that is a count weighs at
	 * least 1.
	 */
	if (mean.is_even && mean.weight < 1)
		mean.weight = 1;
	if (mean.is_even && mean.weight == 1)
		*ret_nr_samples = nr + rest;
	return mean;
}

/* Return: for durations, the sum of their squares divided by the square of their sum. */
static double squares_by_log2(const uint64_t nr[SB_PROFILE_NR_LOG2])
{
	double sum = 0, squares = 0;
	size_t i;

	/*
	 * Assume durations are uniform in a bucket from 2^i to 2^(i+1): mean 3/2, mean square 7/3.
	 */
	for (i = 0; i < SB_PROFILE_NR_LOG2; i++) {
		sum += 1.5 * (double)nr[i] * ldexp(1, (int)i);
		squares += 7.0 / 3 * (double)nr[i] * ldexp(1, 2 * (int)i);
	}
	return sum > 0 ? fmin(squares / sum / sum, 1) : 1;
}

/* Return: the sum of squares of the weights of the samples of row @i; NAN if it is not known. */
static double squares_of(const struct sb_profile *profile, size_t i, const struct sb_row *row,
			 const struct mean *mean)
{
	const uint64_t *log2 = sb_profile_log2_at(profile, i);
	double nr = (double)row->nr_samples, all = (double)row->weight;
	double known = sb_profile_squares_at(profile, i);

	if (known > 0)
		return known;
	if (log2)
		return all * all * squares_by_log2(log2);
	if (!nr && !mean->weight)
		return NAN;
	if (!nr)
		nr = all / mean->weight;
	/*
	 * For n equal weights, the sum of squares is 1/n of the squared sum. For n exponential
	 * durations, between events that come at random, it is 2/(n+1) (moments of the flat
	 * Dirichlet distribution).
	 */
	if (mean->is_even)
		return all * fmax(all / nr, 1);
	return all * all * fmin(2 / (nr + 1), 1);
}

static int add_row(struct builder *builder, size_t i, const struct mean *mean)
{
	const struct sb_row row = sb_profile_row_at(builder->profile, i);
	struct sb_tree_pair pair = {};
	uint32_t node = 0;
	size_t at;
	int err = 0;

	for (at = 0; at < row.nr && !err; at++)
		err = add_child(builder, node, row.frames[at], &node);
	if (err)
		return err;
	pair.weight[builder->side] = (double)row.weight;
	if (row.weight)
		pair.squares[builder->side] = squares_of(builder->profile, i, &row, mean);
	if (!builder->is_pair)
		builder->tree->squares += pair.squares[builder->side];
	return sb_tree_weigh(builder->tree, node, (uint32_t)row.nr, (double)row.weight,
			     builder->is_pair ? &pair : NULL);
}

static int add_profile(struct sb_tree *tree, const struct sb_profile *profile, int side,
		       bool is_pair)
{
	struct builder builder = { tree, profile, side, is_pair };
	struct mean mean = mean_of_rest(profile, &tree->nr_samples[side]);
	size_t i;
	int err = number_frames(&builder);

	for (i = 0; i < sb_profile_nr_stacks(profile) && !err; i++)
		err = add_row(&builder, i, &mean);
	free(builder.names);
	free(builder.modules);
	return err;
}

static int build(struct sb_tree *tree, const struct sb_profile *a, const struct sb_profile *b)
{
	int err = number_text(tree, "all", &tree->nodes.at[0].name), kind;

	for (kind = 0; kind < SB_FRAME_KIND_MAX; kind++)
		tree->same_kind[kind] = (uint8_t)sb_function_kind((enum sb_frame_kind)kind);
	tree->is_by_id = true;
	err = err ?: sb_vec_push(&tree->modules, 0) ?: sb_vec_push(&tree->marks, 0);
	/* Both profiles may be empty. */
	if (!err && b)
		err = sb_vec_fit(&tree->pairs, 1, 0);
	err = err ?: add_profile(tree, a, SB_TREE_A, b);
	if (!err && b)
		err = add_profile(tree, b, SB_TREE_B, b);
	return err ?: sb_tree_seal(tree, SB_TREE_SORT_NAME);
}

int sb_calltree_new(const struct sb_profile *a, const struct sb_profile *b,
		    struct sb_tree **ret_tree)
{
	struct sb_tree *tree = calloc(1, sizeof(*tree));
	int err;

	if (!tree)
		return -ENOMEM;
	err = sb_tree_init(tree) ?: build(tree, a, b);
	if (err)
		sb_tree_free(tree);
	else
		*ret_tree = tree;
	return err;
}

struct sb_frame sb_calltree_frame(const struct sb_tree *tree, size_t node)
{
	uint8_t mark = tree->marks.at[node];

	return (struct sb_frame){
		.name = sb_tree_name(tree, node),
		.kind = tree->kinds.at[node],
		.is_unnamed = mark == UNNAMED,
		.mark = mark == UNNAMED ? 0 : mark,
	};
}

/* ---- what is compared ---- */

/*
 * Find what to divide by for rates: seconds, times CPUs, and for samples times Hz, if both say it.
 */
static int find_rate(const struct sb_profile *const sides[SB_TREE_NR], double per[SB_TREE_NR])
{
	const struct sb_metadata *a = sb_profile_metadata(sides[SB_TREE_A]);
	const struct sb_metadata *b = sb_profile_metadata(sides[SB_TREE_B]);
	const bool is_samples = sb_streq(sb_profile_unit(sides[SB_TREE_A]), "samples");

	if (!a->dur_us || !b->dur_us)
		return -ENODATA;
	per[SB_TREE_A] = (double)a->dur_us / 1e6;
	per[SB_TREE_B] = (double)b->dur_us / 1e6;
	if (a->cpus && b->cpus) {
		per[SB_TREE_A] *= (double)a->cpus;
		per[SB_TREE_B] *= (double)b->cpus;
	}
	if (is_samples && a->hz && b->hz) {
		per[SB_TREE_A] *= (double)a->hz;
		per[SB_TREE_B] *= (double)b->hz;
	}
	return 0;
}

int sb_calltree_diff(struct sb_diff *diff, const struct sb_tree *tree, const struct sb_profile *a,
		     const struct sb_profile *b, enum sb_diff_norm norm)
{
	const struct sb_profile *const sides[SB_TREE_NR] = { a, b };
	double per[SB_TREE_NR];
	int err = 0;

	if (!sb_streq(sb_profile_unit(a), sb_profile_unit(b)))
		return -EINVAL;
	if (norm == SB_DIFF_RATE)
		err = find_rate(sides, per);
	if (!err)
		sb_diff_init(diff, tree, norm, per);
	return err;
}
