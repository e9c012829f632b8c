// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* /api/flame and /api/diff: call trees as arrays, of one query or of two. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "model/diff_rows.h"
#include "output/measure.h"
#include "output/paint.h"
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

	/*
	 * Fetch more nodes than are shown, so that the tree chooses and counts what it prunes; 0:
	 * all.
	 */
	ask->nr_nodes_max = 4 * nr_nodes_max;
	err = sb_ask_profile(asked->opts->store, ask, &profile, ret_answer);
	if (!err)
		err = sb_calltree_new(profile, NULL, &tree);
	if (!err)
		err = nr_nodes_max ? sb_tree_prune(tree, nr_nodes_max, SB_FRAME_MARK) : 0;
	if (err)
		return err;
	*ret_profile = sb_take(profile);
	*ret_tree = sb_take(tree);
	return 0;
}

int sb_numbering_init(struct sb_numbering *numbering, const struct sb_tree *tree)
{
	numbering->number = calloc(tree->names.strs.nr + 1, sizeof(*numbering->number));
	numbering->string = calloc(tree->names.strs.nr + 1, sizeof(*numbering->string));
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

	sb_json_array(json, key);
	for (i = 0; i < numbering->nr; i++)
		sb_json_string(json, NULL, sb_strtab_get(&tree->names, numbering->string[i], NULL));
	sb_json_close(json);
}

/* Write one array, @key, with a @value of each node @i of @tree. */
#define PUT_COLUMN(json, key, type, value)                  \
	do {                                                \
		sb_json_array(json, key);                   \
		for (size_t i = 0; i < tree->nodes.nr; i++) \
			sb_json_##type(json, NULL, value);  \
		sb_json_close(json);                        \
	} while (0)
#define WHOLE(what, side) sb_tree_whole(sb_tree_##what(tree, i, side))

static void put_nodes(struct sb_json *json, const struct sb_tree *tree, const struct sb_diff *diff,
		      const uint8_t *colors, struct sb_numbering *names,
		      struct sb_numbering *modules)
{
	sb_json_object(json, "nodes");
	PUT_COLUMN(json, "name", u64, sb_numbering_of(names, tree->nodes.at[i].name));
	PUT_COLUMN(json, "module", u64, sb_numbering_of(modules, tree->modules.at[i]));
	PUT_COLUMN(json, "kind", u64, tree->kinds.at[i]);
	PUT_COLUMN(json, "depth", u64, tree->nodes.at[i].depth);
	PUT_COLUMN(json, "self", u64, WHOLE(self, SB_TREE_A));
	PUT_COLUMN(json, "total", u64, WHOLE(total, SB_TREE_A));
	if (diff) {
		PUT_COLUMN(json, "self_b", u64, WHOLE(self, SB_TREE_B));
		PUT_COLUMN(json, "total_b", u64, WHOLE(total, SB_TREE_B));
		PUT_COLUMN(json, "z", double, sb_diff_z(diff, &tree->pair_totals.at[i]));
	}
	PUT_COLUMN(json, "color", u64,
		   diff ? sb_paint_change(diff, &tree->pair_totals.at[i]) : colors[i]);
	sb_json_close(json);
	put_numbered(json, tree, "names", names);
	put_numbered(json, tree, "modules", modules);
}

/*
 * Write "palette":{...},"nodes":{...},"names":[...],"modules":[...]: a comparison with @diff, else
 * one profile with @paint. Return: 0, -ENOMEM.
 */
static int put_tree(struct sb_json *json, const struct sb_tree *tree, const struct sb_diff *diff,
		    struct sb_paint *paint)
{
	sb_cleanup(sb_freep) uint8_t *colors_of = NULL;
	sb_cleanup(sb_numbering_release) struct sb_numbering names = {}, modules = {};
	int err = paint ? sb_paint_tree(paint, tree, &colors_of) : 0;

	if (!err)
		err = sb_numbering_init(&names, tree);
	if (!err)
		err = sb_numbering_init(&modules, tree);
	if (!err) {
		sb_paint_put(json, "palette", paint);
		put_nodes(json, tree, diff, colors_of, &names, &modules);
	}
	return err;
}

static bool is_other(const struct sb_tree *tree, size_t node)
{
	return tree->kinds.at[node] == SB_FRAME_MARK &&
	       sb_streq(sb_tree_name(tree, node), SB_TREE_OTHER);
}

/* Return: the weight of the nodes "(other)", which stand for pruned subtrees. */
static uint64_t weight_cut(const struct sb_tree *tree)
{
	double weight = 0;
	size_t i;

	for (i = 1; i < tree->nodes.nr; i++) {
		if (is_other(tree, i) && !is_other(tree, tree->nodes.at[i].parent))
			weight += sb_tree_total(tree, i, SB_TREE_A) +
				  sb_tree_total(tree, i, SB_TREE_B);
	}
	return sb_tree_whole(weight);
}

static void put_measure(struct sb_json *json, const struct sb_ask *ask,
			const struct sb_profile *profile)
{
	struct sb_measure measure = sb_measure_of(profile);

	sb_json_object(json, NULL);
	sb_json_string(json, "kind", sb_ask_kind(ask));
	sb_json_string(json, "unit", measure.unit);
	sb_json_u64(json, "hz", measure.hz);
}

static void put_range(struct sb_json *json, const char *from_key, const char *to_key,
		      const struct sb_store_answer *answer, const struct sb_ask *ask)
{
	bool is_empty = !answer->nr_blocks;

	sb_json_i64(json, from_key, is_empty ? ask->from_s : answer->from_s);
	sb_json_i64(json, to_key, is_empty ? ask->to_s : answer->to_s);
}

/* Write the standard error of the shares of each side. */
static void put_errors(struct sb_json *json, const struct sb_tree *tree, int nr_sides)
{
	int side;

	sb_json_array(json, "errors");
	for (side = 0; side < nr_sides; side++)
		sb_json_double(
			json, NULL,
			sb_diff_error(sb_tree_total(tree, 0, side), sb_tree_squares(tree, side)));
	sb_json_close(json);
}

/* Functions of the whole profile: in a pruned tree they would lack weight. */
struct functions {
	struct sb_diff_row *rows;
	size_t nr, nr_all;
};

static int by_total(const void *a, const void *b)
{
	const struct sb_diff_row *x = a, *y = b;

	return sb_compare(y->total.weight[SB_TREE_A], x->total.weight[SB_TREE_A]);
}

static int by_self(const void *a, const void *b)
{
	const struct sb_diff_row *x = a, *y = b;

	return sb_compare(y->self.weight[SB_TREE_A], x->self.weight[SB_TREE_A]);
}

/* Choose the @nr_max heaviest functions by total, and as many of the rest by self. */
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

static int put_function(struct sb_json *json, const struct sb_tree *tree,
			const struct sb_diff_row *row, struct sb_paint *paint)
{
	const struct sb_frame frame = {
		.name = sb_strtab_get(&tree->names, row->name, NULL),
		.kind = row->kind,
		.mark = row->mark,
		.is_unnamed = row->is_unnamed,
	};
	uint32_t color;
	int err = sb_paint_function(paint, &frame, &color);

	if (err)
		return err;
	sb_json_object(json, NULL);
	sb_json_string(json, "name", frame.name);
	sb_json_string(json, "module", sb_strtab_get(&tree->names, row->module, NULL));
	sb_json_u64(json, "self", sb_tree_whole(row->self.weight[SB_TREE_A]));
	sb_json_u64(json, "total", sb_tree_whole(row->total.weight[SB_TREE_A]));
	sb_json_u64(json, "color", color);
	sb_json_close(json);
	return 0;
}

static int put_functions(struct sb_json *json, const struct sb_tree *tree,
			 const struct functions *functions, struct sb_paint *paint)
{
	size_t i;
	int err = 0;

	sb_json_rows(json, "table");
	for (i = 0; i < functions->nr && !err; i++)
		err = put_function(json, tree, &functions->rows[i], paint);
	sb_json_close(json);
	sb_json_u64(json, "nr_rows_cut", functions->nr_all - functions->nr);
	return err;
}

static void put_figures(struct sb_json *json, const struct sb_store_answer *answer)
{
	sb_json_u64(json, "lost", answer->figure[SB_BLOCK_LOST]);
	sb_json_u64(json, "trunc", sb_store_answer_trunc(answer));
	sb_json_u64(json, "nr_damaged", answer->nr_damaged);
	sb_json_u64(json, "nr_skipped_bytes", answer->nr_skipped_bytes);
	sb_json_u64(json, "lost_weight", answer->lost_weight);
}

static int put_flame(struct sb_asked *asked, struct sb_ask *ask, uint32_t nr_nodes,
		     uint32_t nr_functions)
{
	sb_cleanup(sb_profile_freep) struct sb_profile *profile = NULL;
	sb_cleanup(sb_tree_freep) struct sb_tree *tree = NULL;
	struct functions functions = {};
	struct sb_json *json = &asked->json;
	struct sb_store_answer answer;
	struct sb_paint paint;
	int err = sb_paint_init(&paint, sb_ask_kind(ask));

	if (err)
		return err;
	err = sb_api_tree(asked, ask, nr_functions ? 0 : nr_nodes, &profile, &tree, &answer);

	if (!err && nr_functions) {
		err = choose_functions(tree, nr_functions, &functions);
		if (!err)
			err = sb_tree_prune(tree, nr_nodes, SB_FRAME_MARK);
	}
	if (!err) {
		put_measure(json, ask, profile);
		put_range(json, "from", "to", &answer, ask);
		sb_json_u64(json, "total", sb_profile_weight(profile));
		sb_json_u64(json, "nr_samples", sb_store_answer_samples(&answer));
		put_errors(json, tree, 1);
		put_figures(json, &answer);
		sb_json_u64(json, "nr_nodes_cut", tree->nr_cut);
		sb_json_u64(json, "weight_cut", weight_cut(tree));
		err = put_tree(json, tree, NULL, &paint);
		if (!err && nr_functions)
			err = put_functions(json, tree, &functions, &paint);
	}
	free(functions.rows);
	sb_paint_release(&paint);
	return err;
}

int sb_api_flame(struct sb_asked *asked)
{
	sb_cleanup(sb_ask_release) struct sb_ask ask = {};
	uint32_t nr_nodes, nr_functions;
	int err = sb_api_ask(asked, "", &ask);

	if (!err)
		err = sb_api_number(asked, "nodes", 2, SB_API_NODES_MAX, SB_API_NODES, &nr_nodes);
	err = err ?: sb_api_number(asked, "table", 1, FUNCTIONS_MAX, 0, &nr_functions);
	err = err ?: sb_asked_all(asked);
	return err ?: put_flame(asked, &ask, nr_nodes, nr_functions);
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
		return sb_asked_fail(asked, 400, "norm: there is no '%s'; use share, rate or raw",
				     name);
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
		err = sb_calltree_new(two->profile[SB_TREE_A], two->profile[SB_TREE_B], &two->tree);
	if (err)
		return err;
	err = sb_calltree_diff(&two->diff, two->tree, two->profile[SB_TREE_A],
			       two->profile[SB_TREE_B], norm);
	/* Without a duration there is no weight either. */
	if (err == -ENODATA)
		return sb_asked_fail(asked, 400,
				     "norm=rate: nothing was recorded in one of the two "
				     "ranges; choose another range");
	if (err == -EINVAL)
		return sb_asked_fail(asked, 400,
				     "the two profiles have different units; compare "
				     "two of one kind");
	return err;
}

static void put_table(struct sb_json *json, const struct two *two, const struct sb_diff_row *rows,
		      size_t nr)
{
	const struct sb_tree *tree = two->tree;
	size_t i;

	sb_json_rows(json, "table");
	for (i = 0; i < nr && i < ROWS_MAX; i++) {
		sb_json_object(json, NULL);
		sb_json_string(json, "name", sb_strtab_get(&tree->names, rows[i].name, NULL));
		sb_json_string(json, "module", sb_strtab_get(&tree->names, rows[i].module, NULL));
		sb_json_weights(json, "self", &rows[i].self);
		sb_json_weights(json, "total", &rows[i].total);
		sb_json_double(json, "z", sb_diff_z(&two->diff, &rows[i].self));
		sb_json_double(json, "z_total", sb_diff_z(&two->diff, &rows[i].total));
		sb_json_close(json);
	}
	sb_json_close(json);
	sb_json_u64(json, "nr_rows_cut", nr > ROWS_MAX ? nr - ROWS_MAX : 0);
}

static int put_diff(struct sb_json *json, struct two *two, uint32_t nr_nodes)
{
	sb_cleanup(sb_freep) struct sb_diff_row *rows = NULL;
	const struct sb_ask *ask_a = &two->ask[SB_TREE_A], *ask_b = &two->ask[SB_TREE_B];
	const struct sb_profile *in_a = two->profile[SB_TREE_A], *in_b = two->profile[SB_TREE_B];
	const struct sb_store_answer *a = &two->answer[SB_TREE_A], *b = &two->answer[SB_TREE_B];
	size_t nr;
	int err;

	/* Functions of the whole tree, before it is pruned. */
	err = sb_diff_rows(&two->diff, two->tree, SB_DIFF_BY_SELF, &rows, &nr);
	if (!err)
		err = sb_tree_prune(two->tree, nr_nodes, SB_FRAME_MARK);
	if (err)
		return err;
	put_measure(json, ask_a, sb_profile_weight(in_a) ? in_a : in_b);
	put_range(json, "from", "to", a, ask_a);
	put_range(json, "vs_from", "vs_to", b, ask_b);
	sb_json_two(json, "totals", sb_profile_weight(in_a), sb_profile_weight(in_b));
	sb_json_two(json, "nr_samples", sb_store_answer_samples(a), sb_store_answer_samples(b));
	put_errors(json, two->tree, SB_TREE_NR);
	sb_json_two(json, "lost", a->figure[SB_BLOCK_LOST], b->figure[SB_BLOCK_LOST]);
	sb_json_two(json, "trunc", sb_store_answer_trunc(a), sb_store_answer_trunc(b));
	sb_json_two(json, "nr_damaged", a->nr_damaged, b->nr_damaged);
	sb_json_two(json, "nr_skipped_bytes", a->nr_skipped_bytes, b->nr_skipped_bytes);
	sb_json_string(json, "norm", sb_diff_norm_name(two->diff.norm));
	/* The values that weights are divided by for the comparison. */
	sb_json_two_doubles(json, "per", two->diff.per[SB_TREE_A], two->diff.per[SB_TREE_B]);
	sb_json_u64(json, "nr_nodes_cut", two->tree->nr_cut);
	sb_json_u64(json, "weight_cut", weight_cut(two->tree));
	err = put_tree(json, two->tree, &two->diff, NULL);
	if (!err)
		put_table(json, two, rows, nr);
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
