// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Formats of comparisons, and the folded text with two weights. */
#include "output/comparison.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/calltree.h"
#include "model/fold.h"
#include "output/outputs.h"

static const struct sb_comparison_output *const outputs[] = {
	&sb_comparison_table,  &sb_comparison_svg,  &sb_comparison_html,
	&sb_comparison_folded, &sb_comparison_json,
};

const struct sb_comparison_output *sb_comparison_output_at(size_t i)
{
	return i < SB_ARRAY_SIZE(outputs) ? outputs[i] : NULL;
}

const struct sb_comparison_output *sb_comparison_output_find(const char *name)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(outputs); i++)
		if (sb_streq(outputs[i]->name, name))
			return outputs[i];
	return NULL;
}

const struct sb_comparison_output *sb_comparison_output_by_path(const char *path)
{
	size_t i, len = strlen(path);

	for (i = 0; i < SB_ARRAY_SIZE(outputs); i++) {
		size_t ext_len = strlen(outputs[i]->extension);

		if (len > ext_len && sb_streq(path + len - ext_len, outputs[i]->extension))
			return outputs[i];
	}
	return NULL;
}

const char *sb_comparison_rate(const struct sb_comparison *comparison)
{
	const struct sb_metadata *a = sb_profile_metadata(comparison->sides[SB_TREE_A]);
	const struct sb_metadata *b = sb_profile_metadata(comparison->sides[SB_TREE_B]);

	if (!sb_streq(sb_profile_unit(comparison->sides[SB_TREE_B]), "samples") || !a->hz || !b->hz)
		return "s";
	return a->cpus && b->cpus ? "cpus" : "cpu";
}

/* ---- text ---- */

struct folding {
	const struct sb_comparison *comparison;
	struct sb_str line;
	SB_VEC(size_t) ends; /* where the frames of the path end in the line */
};

struct sb_metadata sb_comparison_metadata(const struct sb_comparison *comparison)
{
	const struct sb_profile *b = comparison->sides[SB_TREE_B];
	const struct sb_diff *diff = &comparison->diff;
	const bool is_rate = diff->norm == SB_DIFF_RATE;
	struct sb_metadata metadata = {
		.version = SB_METADATA_VERSION,
		.kind = sb_profile_metadata(b)->kind,
		.unit = sb_profile_unit(b),
		.norm = sb_diff_norm_name(diff->norm),
		.rate = is_rate ? sb_comparison_rate(comparison) : NULL,
	};
	int side;

	for (side = 0; side < SB_TREE_NR; side++)
		metadata.side[side] = (struct sb_metadata_side){
			.nr_samples = comparison->tree->nr_samples[side],
			.dur_us = sb_profile_metadata(comparison->sides[side])->dur_us,
			.per = is_rate ? diff->per[side] : 0,
		};
	return metadata;
}

/*
 * Append "#n;12;3.5" if the weights are not numbers of samples. Return: 1 if there is such a line;
 * 0; -ENOMEM.
 */
static int add_samples(const struct sb_tree_pair *self, struct sb_str *line)
{
	double nr[SB_TREE_NR];
	bool is_count = true;
	int side, err;

	for (side = 0; side < SB_TREE_NR; side++) {
		double weight = self->weight[side], squares = self->squares[side];

		if (isnan(squares))
			return 0;
		nr[side] = squares > 0 ? weight * weight / squares : 0;
		is_count = is_count && fabs(nr[side] - weight) <= weight * 1e-9;
	}
	if (is_count)
		return 0;
	err = sb_str_addf(line, "#n;%.3f;%.3f", nr[SB_TREE_A], nr[SB_TREE_B]);
	return err ? err : 1;
}

/* Make the line of a node's path from that of its parent in folding->line. */
static int add_path(struct folding *folding, size_t i)
{
	static const struct sb_fold_opts opts = { .annotate = true };
	const struct sb_tree *tree = folding->comparison->tree;
	const struct sb_frame frame = sb_calltree_frame(tree, i);
	uint32_t depth = tree->nodes.at[i].depth;
	int err = 0;

	folding->ends.nr = depth - 1;
	folding->line.len = depth > 1 ? folding->ends.at[depth - 2] : 0;
	if (depth > 1)
		err = sb_str_addc(&folding->line, ';');
	err = err ?: sb_fold_frame(&folding->line, &frame, &opts);
	/* Otherwise the line would be a comment. */
	if (!err && folding->line.s[0] == '#')
		folding->line.s[0] = '?';
	return err ?: sb_vec_push(&folding->ends, folding->line.len);
}

static int fold_node(struct folding *folding, size_t i, FILE *out)
{
	const struct sb_tree_pair *self = &folding->comparison->tree->pairs.at[i];
	sb_cleanup(sb_str_release) struct sb_str samples = {};
	int err = i ? add_path(folding, i) : 0;

	if (err || !i || (!(self->weight[SB_TREE_A] > 0) && !(self->weight[SB_TREE_B] > 0)))
		return err;
	err = add_samples(self, &samples);
	if (err > 0)
		err = sb_put_line(out, samples.s, samples.len);
	err = err < 0 ? err
		      : sb_str_addf(&folding->line, " %" PRIu64 " %" PRIu64,
				    sb_tree_whole(self->weight[SB_TREE_A]),
				    sb_tree_whole(self->weight[SB_TREE_B]));
	return err ?: sb_put_line(out, folding->line.s, folding->line.len);
}

static int write_folded(const struct sb_comparison *comparison,
			const struct sb_comparison_opts *opts, FILE *out)
{
	const struct sb_metadata metadata = sb_comparison_metadata(comparison);
	struct folding folding = { .comparison = comparison };
	size_t i;
	int err = sb_metadata_print(&folding.line, &metadata);

	err = err ?: sb_put_line(out, folding.line.s, folding.line.len);
	for (i = 0; i < comparison->tree->nodes.nr && !err; i++)
		err = fold_node(&folding, i, out);
	sb_str_release(&folding.line);
	sb_vec_release(&folding.ends);
	return err;
}

const struct sb_comparison_output sb_comparison_folded = {
	.name = "folded",
	.extension = ".folded",
	.summary = "one line a stack: root;...;leaf a b",
	.write = write_folded,
};
