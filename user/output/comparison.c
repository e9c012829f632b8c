// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The outputs of comparisons, and the text with two weights that pictures are drawn from. */
#include "output/comparison.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/num.h"
#include "model/fold.h"

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

const char *sb_comparison_unit(const struct sb_comparison *comparison)
{
	const char *unit = sb_profile_meta_get(comparison->sides[SB_TREE_B], "unit");

	return unit ? unit : "samples";
}

uint64_t sb_comparison_fact(const struct sb_comparison *comparison, int side, const char *key)
{
	const char *value = sb_profile_meta_get(comparison->sides[side], key);
	uint64_t val;

	return value && !sb_parse_u64(value, UINT64_MAX, &val) ? val : 0;
}

static bool both_say(const struct sb_comparison *comparison, const char *key)
{
	return sb_comparison_fact(comparison, SB_TREE_A, key) &&
	       sb_comparison_fact(comparison, SB_TREE_B, key);
}

const char *sb_comparison_rate(const struct sb_comparison *comparison)
{
	if (!sb_streq(sb_comparison_unit(comparison), "samples") || !both_say(comparison, "hz"))
		return "s";
	return both_say(comparison, "cpus") ? "cpus" : "cpu";
}

/* ---- text ---- */

struct folding {
	const struct sb_comparison *comparison;
	struct sb_str line;
	SB_VEC(size_t) ends; /* of the frames of the path, in the line */
};

static int add_fact(struct sb_str *line, const char *key, const char *side, uint64_t val)
{
	return val ? sb_str_addf(line, ";%s%s=%" PRIu64, key, side, val) : 0;
}

static int add_header(const struct sb_comparison *comparison, struct sb_str *line)
{
	static const char *const suffixes[SB_TREE_NR] = { "_a", "_b" };
	const char *kind = sb_profile_meta_get(comparison->sides[SB_TREE_B], "kind");
	const struct sb_diff *diff = &comparison->diff;
	int side, err = sb_str_add(line, "#stackbpf;v=1");
	size_t i;

	if (!err && kind)
		err = sb_str_addf(line, ";kind=%s", kind);
	err = err
		      ?: sb_str_addf(line, ";unit=%s;norm=%s", sb_comparison_unit(comparison),
				     sb_diff_norm_name(diff->norm));
	for (side = 0; side < SB_TREE_NR && !err; side++) {
		err = add_fact(line, "n", suffixes[side], comparison->tree->nr_samples[side]);
		err = err
			      ?: add_fact(line, "dur_us", suffixes[side],
					  sb_comparison_fact(comparison, side, "dur_us"));
		if (!err && diff->norm == SB_DIFF_RATE)
			err = sb_str_addf(line, ";per%s=%.6f", suffixes[side], diff->per[side]);
	}
	if (!err && diff->norm == SB_DIFF_RATE)
		err = sb_str_addf(line, ";rate=%s", sb_comparison_rate(comparison));
	/* Readers skip a line that has no space. */
	for (i = 0; !err && i < line->len; i++)
		if (line->s[i] == ' ')
			line->s[i] = '_';
	return err;
}

/* "#n;12;3.5" where the weights are not as many samples. Return: 0, 1: there is such a line, -ENOMEM. */
static int add_samples(const struct sb_tree_node *node, struct sb_str *line)
{
	double nr[SB_TREE_NR];
	bool is_count = true;
	int side, err;

	for (side = 0; side < SB_TREE_NR; side++) {
		double weight = (double)node->self[side], squares = node->self_squares[side];

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

/* The line of a node's path, of which the parent's is in folding->line. */
static int add_path(struct folding *folding, const struct sb_tree_node *node, size_t i)
{
	static const struct sb_fold_opts opts = { .annotate = true };
	const struct sb_frame frame = { .name = sb_tree_name(folding->comparison->tree, i),
					.kind = node->kind };
	int err = 0;

	folding->ends.nr = node->depth - 1;
	folding->line.len = node->depth > 1 ? folding->ends.at[node->depth - 2] : 0;
	if (node->depth > 1)
		err = sb_str_addc(&folding->line, ';');
	err = err ?: sb_fold_frame(&folding->line, &frame, &opts);
	/* Else the line would be a comment. */
	if (!err && folding->line.s[0] == '#')
		folding->line.s[0] = '?';
	return err ?: sb_vec_push(&folding->ends, folding->line.len);
}

static int fold_node(struct folding *folding, size_t i,
		     int (*fn)(void *arg, const char *line, size_t len), void *arg)
{
	const struct sb_tree_node *node = &folding->comparison->tree->nodes.at[i];
	sb_cleanup(sb_str_release) struct sb_str samples = {};
	int err = i ? add_path(folding, node, i) : 0;

	if (err || !i || (!node->self[SB_TREE_A] && !node->self[SB_TREE_B]))
		return err;
	err = add_samples(node, &samples);
	if (err > 0)
		err = fn(arg, samples.s, samples.len);
	err = err < 0 ? err
		      : sb_str_addf(&folding->line, " %" PRIu64 " %" PRIu64, node->self[SB_TREE_A],
				    node->self[SB_TREE_B]);
	return err ?: fn(arg, folding->line.s, folding->line.len);
}

int sb_comparison_fold(const struct sb_comparison *comparison,
		       int (*fn)(void *arg, const char *line, size_t len), void *arg)
{
	struct folding folding = { .comparison = comparison };
	size_t i;
	int err = add_header(comparison, &folding.line);

	err = err ?: fn(arg, folding.line.s, folding.line.len);
	for (i = 0; i < comparison->tree->nodes.nr && err >= 0; i++)
		err = fold_node(&folding, i, fn, arg);
	sb_str_release(&folding.line);
	sb_vec_release(&folding.ends);
	return err < 0 ? err : 0;
}

static int put_line(void *arg, const char *line, size_t len)
{
	FILE *out = arg;

	if (fwrite(line, 1, len, out) != len || putc('\n', out) == EOF)
		return -EIO;
	return 0;
}

static int write_folded(const struct sb_comparison *comparison,
			const struct sb_comparison_opts *opts, FILE *out)
{
	return sb_comparison_fold(comparison, put_line, out);
}

const struct sb_comparison_output sb_comparison_folded = {
	.name = "folded",
	.extension = ".folded",
	.summary = "one line a stack: root;...;leaf a b",
	.write = write_folded,
};
