// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A comparison as JSON for other programs; docs/formats.md describes it. */

#include "base/cleanup.h"
#include "output/comparison.h"
#include "output/functions.h"
#include "output/jsontext.h"

static void put_side(struct sb_json *json, const struct sb_comparison *comparison, int side)
{
	const struct sb_diff *diff = &comparison->diff;

	sb_json_object(json, side ? "b" : "a");
	sb_json_string(json, "what", comparison->what[side]);
	sb_json_u64(json, "total", sb_tree_whole(diff->all[side]));
	if (comparison->tree->nr_samples[side])
		sb_json_u64(json, "samples", comparison->tree->nr_samples[side]);
	else
		sb_json_string(json, "samples", NULL);
	sb_json_double(json, "error", sb_diff_error(diff->all[side], diff->all_squares[side]));
	sb_json_double(json, "per", diff->per[side]);
	sb_json_meta(json, "facts", comparison->sides[side]);
	sb_json_close(json);
}

static void put_function(struct sb_json *json, const struct sb_comparison *comparison,
			 const struct sb_diff_row *row)
{
	const struct sb_strtab *strings = &comparison->tree->names;

	sb_json_object(json, NULL);
	sb_json_string(json, "name", sb_strtab_get(strings, row->name, NULL));
	sb_json_string(json, "kind", sb_function_kind_name(row->kind));
	if (row->module)
		sb_json_string(json, "module", sb_strtab_get(strings, row->module, NULL));
	sb_json_weights(json, "self", &row->self);
	sb_json_weights(json, "total", &row->total);
	sb_json_two_doubles(json, "z", sb_diff_z(&comparison->diff, &row->self),
			    sb_diff_z(&comparison->diff, &row->total));
	sb_json_close(json);
}

static int put_functions(struct sb_json *json, const struct sb_comparison *comparison,
			 const struct sb_comparison_opts *opts)
{
	sb_cleanup(sb_freep) struct sb_diff_row *rows = NULL;
	size_t nr = 0, i;
	int err = sb_diff_rows(&comparison->diff, comparison->tree, opts->sort, &rows, &nr);

	sb_json_rows(json, "functions");
	for (i = 0; i < nr && !err; i++)
		put_function(json, comparison, &rows[i]);
	sb_json_close(json);
	return err;
}

static void put_node(struct sb_json *json, const struct sb_comparison *comparison, size_t i)
{
	const struct sb_tree *tree = comparison->tree;
	const struct sb_tree_pair *total = &tree->pair_totals.at[i];

	sb_json_object(json, NULL);
	sb_json_u64(json, "depth", tree->nodes.at[i].depth);
	sb_json_string(json, "name", sb_tree_name(tree, i));
	sb_json_string(json, "kind", sb_function_kind_name(tree->kinds.at[i]));
	sb_json_weights(json, "self", &tree->pairs.at[i]);
	sb_json_weights(json, "total", total);
	sb_json_double(json, "z", sb_diff_z(&comparison->diff, total));
	sb_json_close(json);
}

static int write_json(const struct sb_comparison *comparison, const struct sb_comparison_opts *opts,
		      FILE *out)
{
	struct sb_json json = { .put = sb_json_put_file, .arg = out };
	const char *kind = sb_profile_metadata(comparison->sides[SB_TREE_B])->kind;
	size_t i;
	int err, err_json;

	sb_json_object(&json, NULL);
	sb_json_string(&json, "format", "stackbpf-diff");
	sb_json_u64(&json, "version", 1);
	sb_json_generator(&json, "generator");
	sb_json_string(&json, "kind", kind ? kind : "profile");
	sb_json_string(&json, "unit", sb_profile_unit(comparison->sides[SB_TREE_B]));
	sb_json_string(&json, "norm", sb_diff_norm_name(comparison->diff.norm));
	put_side(&json, comparison, SB_TREE_A);
	put_side(&json, comparison, SB_TREE_B);
	err = put_functions(&json, comparison, opts);
	sb_json_rows(&json, "nodes");
	for (i = 0; i < comparison->tree->nodes.nr && !err; i++)
		put_node(&json, comparison, i);
	err_json = sb_json_end(&json);
	return err ?: err_json;
}

const struct sb_comparison_output sb_comparison_json = {
	.name = "json",
	.extension = ".json",
	.summary = "all that is known, for programs of your own",
	.write = write_json,
};
