// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Call trees as arrays: of one question, and of two over each other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/diff.h"
#include "output/measure.h"
#include "serve/api.h"

#define ROWS_MAX      500u
#define FUNCTIONS_MAX 10000u

int sb_api_tree(struct sb_asked *asked, struct sb_ask *ask, uint32_t nr_nodes_max,
		struct sb_profile **ret_profile, struct sb_tree **ret_tree,
		struct sb_store_answer *ret_answer)
{
	sb_cleanup(sb_profile_freep) struct sb_profile *profile = NULL;
	sb_cleanup(sb_tree_freep) struct sb_tree *tree = NULL;
	int err;

	/* Room for the tree to choose by itself: what it cuts is counted. 0: all of it. */
	ask->nr_nodes_max = 4 * nr_nodes_max;
	err = sb_ask_profile(asked->opts->store, ask, &profile, ret_answer);
	if (!err)
		err = sb_tree_new(profile, NULL, &tree);
	if (!err)
		err = nr_nodes_max ? sb_tree_prune(tree, nr_nodes_max) : 0;
	if (err)
		return err;
	*ret_profile = sb_take(profile);
	*ret_tree = sb_take(tree);
	return 0;
}

int sb_numbering_init(struct sb_numbering *numbering, const struct sb_tree *tree)
{
	numbering->number = calloc(tree->strings.strs.nr + 1, sizeof(*numbering->number));
	numbering->string = calloc(tree->strings.strs.nr + 1, sizeof(*numbering->string));
	return numbering->number && numbering->string ? 0 : -ENOMEM;
}

void sb_numbering_release(struct sb_numbering *numbering)
{
	free(numbering->number);
	free(numbering->string);
}

uint32_t sb_numbering_of(struct sb_numbering *numbering, uint32_t string)
{
	if (!numbering->number[string]) {
		numbering->string[numbering->nr] = string;
		numbering->number[string] = ++numbering->nr;
	}
	return numbering->number[string] - 1;
}

static void put_numbered(struct sb_json *json, const struct sb_tree *tree, const char *key,
			 const struct sb_numbering *numbering)
{
	uint32_t i;

	sb_json_raw(json, ",\"");
	sb_json_raw(json, key);
	sb_json_raw(json, "\":[");
	for (i = 0; i < numbering->nr; i++) {
		sb_json_raw(json, i ? "," : "");
		sb_json_string(json, sb_strtab_get(&tree->strings, numbering->string[i], NULL));
	}
	sb_json_raw(json, "]");
}

/* One array of all nodes. */
static void put_array(struct sb_json *json, const struct sb_tree *tree, const char *key,
		      uint64_t (*value)(const struct sb_tree_node *node))
{
	size_t i;

	sb_json_raw(json, ",\n\"");
	sb_json_raw(json, key);
	sb_json_raw(json, "\":[");
	for (i = 0; i < tree->nodes.nr; i++) {
		sb_json_raw(json, i ? "," : "");
		sb_json_u64(json, value(&tree->nodes.at[i]));
	}
	sb_json_raw(json, "]");
}

static void put_names(struct sb_json *json, const struct sb_tree *tree, bool is_module,
		      struct sb_numbering *numbering)
{
	size_t i;

	sb_json_raw(json, is_module ? ",\n\"module\":[" : "\n\"name\":[");
	for (i = 0; i < tree->nodes.nr; i++) {
		const struct sb_tree_node *node = &tree->nodes.at[i];

		sb_json_raw(json, i ? "," : "");
		sb_json_u64(json,
			    sb_numbering_of(numbering, is_module ? node->module : node->name));
	}
	sb_json_raw(json, "]");
}

static uint64_t kind_of(const struct sb_tree_node *node)
{
	return node->kind;
}

static uint64_t depth_of(const struct sb_tree_node *node)
{
	return node->depth;
}

static uint64_t self_of(const struct sb_tree_node *node)
{
	return node->self[SB_TREE_A];
}

static uint64_t total_of(const struct sb_tree_node *node)
{
	return node->total[SB_TREE_A];
}

static uint64_t self_b_of(const struct sb_tree_node *node)
{
	return node->self[SB_TREE_B];
}

static uint64_t total_b_of(const struct sb_tree_node *node)
{
	return node->total[SB_TREE_B];
}

static void put_z(struct sb_json *json, const struct sb_tree *tree, const struct sb_diff *diff)
{
	size_t i;

	sb_json_raw(json, ",\n\"z\":[");
	for (i = 0; i < tree->nodes.nr; i++) {
		const struct sb_tree_node *node = &tree->nodes.at[i];

		sb_json_raw(json, i ? "," : "");
		sb_json_double(json, sb_diff_z(diff, node->total, node->total_squares));
	}
	sb_json_raw(json, "]");
}

static void put_nodes(struct sb_json *json, const struct sb_tree *tree, const struct sb_diff *diff,
		      struct sb_numbering *names, struct sb_numbering *modules)
{
	sb_json_raw(json, ",\n\"nodes\":{");
	put_names(json, tree, false, names);
	put_names(json, tree, true, modules);
	put_array(json, tree, "kind", kind_of);
	put_array(json, tree, "depth", depth_of);
	put_array(json, tree, "self", self_of);
	put_array(json, tree, "total", total_of);
	if (diff) {
		put_array(json, tree, "self_b", self_b_of);
		put_array(json, tree, "total_b", total_b_of);
		put_z(json, tree, diff);
	}
	sb_json_raw(json, "}");
	put_numbered(json, tree, "names", names);
	put_numbered(json, tree, "modules", modules);
}

/* "names":[...],"modules":[...],"nodes":{...}; @diff: of two profiles, or NULL. Return: 0, -ENOMEM. */
static int put_tree(struct sb_json *json, const struct sb_tree *tree, const struct sb_diff *diff)
{
	struct sb_numbering names = {}, modules = {};
	int err = sb_numbering_init(&names, tree);

	if (!err)
		err = sb_numbering_init(&modules, tree);
	if (!err)
		put_nodes(json, tree, diff, &names, &modules);
	sb_numbering_release(&names);
	sb_numbering_release(&modules);
	return err;
}

uint64_t sb_api_other(const struct sb_tree *tree)
{
	uint64_t weight = 0;
	size_t i;

	for (i = 1; i < tree->nodes.nr; i++) {
		const struct sb_tree_node *node = &tree->nodes.at[i];

		if (sb_streq(sb_tree_name(tree, i), SB_TREE_OTHER) &&
		    !sb_streq(sb_tree_name(tree, node->parent), SB_TREE_OTHER))
			weight += node->total[SB_TREE_A] + node->total[SB_TREE_B];
	}
	return weight;
}

static void put_measure(struct sb_json *json, const struct sb_ask *ask,
			const struct sb_profile *profile)
{
	struct sb_measure measure = sb_measure_of(profile);

	sb_json_raw(json, "{");
	sb_json_pair(json, "kind", sb_ask_kind(ask));
	sb_json_raw(json, ",");
	sb_json_pair(json, "unit", measure.unit);
	sb_json_u64_pair(json, "hz", measure.hz);
}

static void put_range(struct sb_json *json, const char *prefix,
		      const struct sb_store_answer *answer, const struct sb_ask *ask)
{
	bool is_empty = !answer->nr_blocks;

	sb_json_raw(json, ",\"");
	sb_json_raw(json, prefix);
	sb_json_raw(json, "from\":");
	sb_json_i64(json, is_empty ? ask->from_s : answer->from_s);
	sb_json_raw(json, ",\"");
	sb_json_raw(json, prefix);
	sb_json_raw(json, "to\":");
	sb_json_i64(json, is_empty ? ask->to_s : answer->to_s);
}

/* To how much shares are known, of as many sides. */
static void put_errors(struct sb_json *json, const struct sb_tree *tree, int nr_sides)
{
	const struct sb_tree_node *root = &tree->nodes.at[0];
	int side;

	for (side = 0; side < nr_sides; side++) {
		sb_json_raw(json, side ? "," : ",\"errors\":[");
		sb_json_double(json, sb_compare_error((double)root->total[side],
						      root->total_squares[side]));
	}
	sb_json_raw(json, "]");
}

/* Functions of the whole profile: in a tree that was cut they have a part of their weight only. */
struct functions {
	struct sb_diff_row *rows;
	size_t nr, nr_all;
};

static int by_total(const void *a, const void *b)
{
	const struct sb_diff_row *x = a, *y = b;

	return (x->total[SB_TREE_A] < y->total[SB_TREE_A]) -
	       (x->total[SB_TREE_A] > y->total[SB_TREE_A]);
}

static int by_self(const void *a, const void *b)
{
	const struct sb_diff_row *x = a, *y = b;

	return (x->self[SB_TREE_A] < y->self[SB_TREE_A]) -
	       (x->self[SB_TREE_A] > y->self[SB_TREE_A]);
}

/* The @nr_max heaviest by total, and as many of the rest by self. */
static int choose_functions(const struct sb_tree *tree, size_t nr_max, struct functions *functions)
{
	int err = sb_diff_functions(tree, &functions->rows, &functions->nr_all);
	size_t nr = functions->nr_all;

	if (err)
		return err;
	if (nr)
		qsort(functions->rows, nr, sizeof(*functions->rows), by_total);
	if (nr > nr_max)
		qsort(functions->rows + nr_max, nr - nr_max, sizeof(*functions->rows), by_self);
	functions->nr = nr < 2 * nr_max ? nr : 2 * nr_max;
	return 0;
}

static void put_functions(struct sb_json *json, const struct sb_tree *tree,
			  const struct functions *functions)
{
	size_t i;

	sb_json_raw(json, ",\n\"table\":[");
	for (i = 0; i < functions->nr; i++) {
		const struct sb_diff_row *row = &functions->rows[i];

		sb_json_raw(json, i ? ",\n{" : "\n{");
		sb_json_pair(json, "name", sb_strtab_get(&tree->strings, row->name, NULL));
		sb_json_raw(json, ",");
		sb_json_pair(json, "module", sb_strtab_get(&tree->strings, row->module, NULL));
		sb_json_u64_pair(json, "self", row->self[SB_TREE_A]);
		sb_json_u64_pair(json, "total", row->total[SB_TREE_A]);
		sb_json_raw(json, "}");
	}
	sb_json_raw(json, "]");
	sb_json_u64_pair(json, "nr_rows_cut", functions->nr_all - functions->nr);
}

static void put_figures(struct sb_json *json, const struct sb_store_answer *answer)
{
	sb_json_u64_pair(json, "lost", answer->figure[SB_BLOCK_LOST]);
	sb_json_u64_pair(json, "trunc", sb_store_answer_trunc(answer));
	sb_json_u64_pair(json, "nr_damaged", answer->nr_damaged);
	sb_json_u64_pair(json, "nr_skipped_bytes", answer->nr_skipped_bytes);
	sb_json_u64_pair(json, "lost_weight", answer->lost_weight);
}

static int put_flame(struct sb_asked *asked, struct sb_ask *ask, uint32_t nr_nodes,
		     uint32_t nr_functions)
{
	sb_cleanup(sb_profile_freep) struct sb_profile *profile = NULL;
	sb_cleanup(sb_tree_freep) struct sb_tree *tree = NULL;
	struct functions functions = {};
	struct sb_json *json = &asked->json;
	struct sb_store_answer answer;
	int err = sb_api_tree(asked, ask, nr_functions ? 0 : nr_nodes, &profile, &tree, &answer);

	if (!err && nr_functions) {
		err = choose_functions(tree, nr_functions, &functions);
		if (!err)
			err = sb_tree_prune(tree, nr_nodes);
	}
	if (!err) {
		put_measure(json, ask, profile);
		put_range(json, "", &answer, ask);
		sb_json_u64_pair(json, "total", sb_profile_weight(profile));
		sb_json_u64_pair(json, "nr_samples", sb_store_answer_samples(&answer));
		put_errors(json, tree, 1);
		put_figures(json, &answer);
		sb_json_u64_pair(json, "nr_nodes_cut", tree->nr_cut);
		sb_json_u64_pair(json, "weight_cut", sb_api_other(tree));
		err = put_tree(json, tree, NULL);
		if (!err && nr_functions)
			put_functions(json, tree, &functions);
		sb_json_raw(json, "}\n");
	}
	free(functions.rows);
	return err;
}

int sb_api_flame(struct sb_asked *asked)
{
	struct sb_ask ask = {};
	uint32_t nr_nodes, nr_functions;
	int err = sb_api_ask(asked, "", &ask);

	if (!err)
		err = sb_api_number(asked, "nodes", 2, SB_API_NODES_MAX, SB_API_NODES, &nr_nodes);
	if (!err)
		err = sb_api_number(asked, "table", 1, FUNCTIONS_MAX, 0, &nr_functions);
	if (!err)
		err = sb_asked_all(asked);
	if (!err)
		err = put_flame(asked, &ask, nr_nodes, nr_functions);
	sb_ask_release(&ask);
	return err;
}

/* /api/diff */

struct two {
	struct sb_ask ask[SB_TREE_NR];
	struct sb_profile *profile[SB_TREE_NR];
	struct sb_store_answer answer[SB_TREE_NR];
	struct sb_tree *tree;
	struct sb_diff diff;
};

static void two_release(struct two *two)
{
	int side;

	for (side = 0; side < SB_TREE_NR; side++) {
		sb_ask_release(&two->ask[side]);
		sb_profile_free(two->profile[side]);
	}
	sb_tree_free(two->tree);
}

static int find_norm(struct sb_asked *asked, enum sb_diff_norm *ret_norm)
{
	const char *name = sb_params_get(&asked->params, "norm");
	int norm = name ? sb_diff_norm_find(name) : SB_DIFF_SHARE;

	if (norm < 0)
		return sb_asked_fail(asked, 400,
				     "norm: there is no '%s'; there are share, rate, raw", name);
	*ret_norm = (enum sb_diff_norm)norm;
	return 0;
}

static int compare(struct sb_asked *asked, struct two *two, enum sb_diff_norm norm)
{
	int side, err = 0;

	for (side = 0; side < SB_TREE_NR && !err; side++) {
		two->ask[side].is_compared = true;
		err = sb_ask_profile(asked->opts->store, &two->ask[side], &two->profile[side],
				     &two->answer[side]);
	}
	if (!err)
		err = sb_tree_new(two->profile[SB_TREE_A], two->profile[SB_TREE_B], &two->tree);
	if (err)
		return err;
	err = sb_diff_init(&two->diff, two->tree, two->profile[SB_TREE_A], two->profile[SB_TREE_B],
			   norm);
	/* Without a duration there is no weight either. */
	if (err == -ENODATA)
		return sb_asked_fail(asked, 400,
				     "norm=rate: one of the two ranges has nothing recorded");
	if (err == -EINVAL)
		return sb_asked_fail(asked, 400, "the two are not measured in the same unit");
	return err;
}

static int put_table(struct sb_json *json, const struct two *two, const struct sb_diff_row *rows,
		     size_t nr)
{
	const struct sb_tree *tree = two->tree;
	size_t i;

	sb_json_raw(json, ",\n\"table\":[");
	for (i = 0; i < nr && i < ROWS_MAX; i++) {
		sb_json_raw(json, i ? ",\n{" : "\n{");
		sb_json_pair(json, "name", sb_strtab_get(&tree->strings, rows[i].name, NULL));
		sb_json_raw(json, ",");
		sb_json_pair(json, "module", sb_strtab_get(&tree->strings, rows[i].module, NULL));
		sb_json_two_pair(json, "self", rows[i].self);
		sb_json_two_pair(json, "total", rows[i].total);
		sb_json_double_pair(json, "z",
				    sb_diff_z(&two->diff, rows[i].self, rows[i].self_squares));
		sb_json_double_pair(json, "z_total",
				    sb_diff_z(&two->diff, rows[i].total, rows[i].total_squares));
		sb_json_raw(json, "}");
	}
	sb_json_raw(json, "]");
	sb_json_u64_pair(json, "nr_rows_cut", nr > ROWS_MAX ? nr - ROWS_MAX : 0);
	return 0;
}

static int put_diff(struct sb_json *json, struct two *two, uint32_t nr_nodes)
{
	sb_cleanup(sb_freep) struct sb_diff_row *rows = NULL;
	const struct sb_profile *a = two->profile[SB_TREE_A];
	uint64_t totals[SB_TREE_NR];
	size_t nr;
	int side, err;

	/* Functions of the whole tree, before it is cut. */
	err = sb_diff_rows(&two->diff, two->tree, SB_DIFF_BY_SELF, &rows, &nr);
	if (!err)
		err = sb_tree_prune(two->tree, nr_nodes);
	if (err)
		return err;
	put_measure(json, &two->ask[SB_TREE_A], sb_profile_weight(a) ? a : two->profile[SB_TREE_B]);
	put_range(json, "", &two->answer[SB_TREE_A], &two->ask[SB_TREE_A]);
	put_range(json, "vs_", &two->answer[SB_TREE_B], &two->ask[SB_TREE_B]);
	for (side = 0; side < SB_TREE_NR; side++)
		totals[side] = sb_profile_weight(two->profile[side]);
	sb_json_two_pair(json, "totals", totals);
	for (side = 0; side < SB_TREE_NR; side++)
		totals[side] = sb_store_answer_samples(&two->answer[side]);
	sb_json_two_pair(json, "nr_samples", totals);
	put_errors(json, two->tree, SB_TREE_NR);
	for (side = 0; side < SB_TREE_NR; side++)
		totals[side] = two->answer[side].figure[SB_BLOCK_LOST];
	sb_json_two_pair(json, "lost", totals);
	for (side = 0; side < SB_TREE_NR; side++)
		totals[side] = sb_store_answer_trunc(&two->answer[side]);
	sb_json_two_pair(json, "trunc", totals);
	for (side = 0; side < SB_TREE_NR; side++)
		totals[side] = two->answer[side].nr_damaged;
	sb_json_two_pair(json, "nr_damaged", totals);
	for (side = 0; side < SB_TREE_NR; side++)
		totals[side] = two->answer[side].nr_skipped_bytes;
	sb_json_two_pair(json, "nr_skipped_bytes", totals);
	sb_json_raw(json, ",");
	sb_json_pair(json, "norm", sb_diff_norm_name(two->diff.norm));
	/* What weights are divided by, to be compared. */
	sb_json_raw(json, ",\"per\":[");
	sb_json_double(json, two->diff.per[SB_TREE_A]);
	sb_json_raw(json, ",");
	sb_json_double(json, two->diff.per[SB_TREE_B]);
	sb_json_raw(json, "]");
	sb_json_u64_pair(json, "nr_nodes_cut", two->tree->nr_cut);
	sb_json_u64_pair(json, "weight_cut", sb_api_other(two->tree));
	err = put_tree(json, two->tree, &two->diff);
	if (!err)
		err = put_table(json, two, rows, nr);
	sb_json_raw(json, "}\n");
	return err;
}

int sb_api_diff(struct sb_asked *asked)
{
	struct two two = {};
	enum sb_diff_norm norm = SB_DIFF_SHARE;
	uint32_t nr_nodes;
	int err = sb_api_ask(asked, "", &two.ask[SB_TREE_A]);

	if (!err)
		err = sb_api_ask(asked, "vs_", &two.ask[SB_TREE_B]);
	if (!err)
		err = sb_api_number(asked, "nodes", 2, SB_API_NODES_MAX, SB_API_NODES, &nr_nodes);
	if (!err)
		err = find_norm(asked, &norm);
	if (!err)
		err = sb_asked_all(asked);
	if (!err)
		err = compare(asked, &two, norm);
	if (!err)
		err = put_diff(&asked->json, &two, nr_nodes);
	two_release(&two);
	return err;
}
