// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/diff_rows.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/calltree.h"
#include "model/owner.h"

struct counting {
	const struct sb_tree *tree;
	SB_VEC(struct sb_diff_row) rows;
	struct sb_index index;
	SB_VEC(uint32_t) path;	  /* rows from the root's child to the current node */
	SB_VEC(uint32_t) nodes;	  /* the same as nodes of the tree */
	SB_VEC(uint32_t) nr_open; /* by row: how often the path has it */
};

static void counting_release(struct counting *counting)
{
	sb_vec_release(&counting->rows);
	sb_index_release(&counting->index);
	sb_vec_release(&counting->path);
	sb_vec_release(&counting->nodes);
	sb_vec_release(&counting->nr_open);
}

static int find_row(struct counting *counting, size_t node, uint32_t *ret_row)
{
	const struct sb_tree *tree = counting->tree;
	const struct sb_frame frame = sb_calltree_frame(tree, node);
	struct sb_diff_row row = { .name = tree->nodes.at[node].name,
				   .module = tree->modules.at[node],
				   .kind = sb_function_kind(frame.kind),
				   .mark = frame.mark,
				   .is_unnamed = frame.is_unnamed };
	uint64_t hash = sb_hash(&row.name, sizeof(row.name), row.kind);
	int err;

	sb_index_each(it, &counting->index, hash) {
		const struct sb_diff_row *have = &counting->rows.at[it.id];

		if (have->name == row.name && have->kind == row.kind) {
			*ret_row = it.id;
			return 0;
		}
	}
	*ret_row = (uint32_t)counting->rows.nr;
	err = sb_index_push(&counting->index, hash, &counting->rows, row);
	return err ?: sb_vec_push(&counting->nr_open, 0);
}

static struct sb_owner_frame frame_at(const void *arg, size_t i)
{
	const struct counting *counting = arg;
	const struct sb_frame frame = sb_calltree_frame(counting->tree, counting->nodes.at[i]);

	return (struct sb_owner_frame){ frame.name, frame.kind, frame.mark };
}

static void add(struct sb_tree_pair *to, const struct sb_tree *tree, size_t node, bool is_self)
{
	const struct sb_tree_pair alone = {
		.weight = { is_self ? sb_tree_self(tree, node, SB_TREE_A)
				    : tree->nodes.at[node].total },
	};
	const struct sb_tree_pair *from = !tree->pairs.nr ? &alone
					  : is_self	  ? &tree->pairs.at[node]
							  : &tree->pair_totals.at[node];

	sb_tree_pair_add(to, from);
}

/* Add the own weight of the current node to the function that owner.h finds. */
static void add_self(struct counting *counting, size_t node)
{
	const struct sb_owner_path path = { frame_at, counting, counting->nodes.nr };
	const struct sb_tree *tree = counting->tree;

	if (sb_tree_self(tree, node, SB_TREE_A) > 0 || sb_tree_self(tree, node, SB_TREE_B) > 0)
		add(&counting->rows.at[counting->path.at[sb_owner_find(&path)]].self, tree, node,
		    true);
}

static int count(struct counting *counting)
{
	const struct sb_tree *tree = counting->tree;
	size_t i;
	uint32_t row;
	int err;

	for (i = 1; i < tree->nodes.nr; i++) {
		while (counting->path.nr >= tree->nodes.at[i].depth)
			counting->nr_open.at[counting->path.at[--counting->path.nr]]--;
		counting->nodes.nr = counting->path.nr;
		err = find_row(counting, i, &row);
		err = err ?: sb_vec_push(&counting->path, row);
		err = err ?: sb_vec_push(&counting->nodes, (uint32_t)i);
		if (err)
			return err;
		if (!counting->nr_open.at[row]++)
			add(&counting->rows.at[row].total, tree, i, false);
		add_self(counting, i);
	}
	return 0;
}

struct by_change {
	const struct sb_diff *diff;
	const struct sb_tree *tree;
	enum sb_diff_sort sort;
};

static double change(const struct by_change *by, const struct sb_diff_row *row,
		     enum sb_diff_sort sort)
{
	const struct sb_tree_pair *pair = sort == SB_DIFF_BY_SELF ? &row->self : &row->total;

	return fabs(sb_diff_value(by->diff, SB_TREE_B, pair->weight[SB_TREE_B]) -
		    sb_diff_value(by->diff, SB_TREE_A, pair->weight[SB_TREE_A]));
}

static int compare_rows(const void *va, const void *vb, void *arg)
{
	const struct sb_diff_row *a = va, *b = vb;
	const struct by_change *by = arg;
	int order;
	size_t i;

	for (i = 0; i < 2; i++) {
		/* By @sort, then by the other one. */
		enum sb_diff_sort sort =
			(by->sort == SB_DIFF_BY_SELF) == !i ? SB_DIFF_BY_SELF : SB_DIFF_BY_TOTAL;
		double of_a = change(by, a, sort), of_b = change(by, b, sort);

		if (of_a != of_b)
			return of_a > of_b ? -1 : 1;
	}
	order = strcmp(sb_strtab_get(&by->tree->names, a->name, NULL),
		       sb_strtab_get(&by->tree->names, b->name, NULL));
	return order ? order : (a->kind > b->kind) - (a->kind < b->kind);
}

int sb_diff_functions(const struct sb_tree *tree, struct sb_diff_row **ret_rows, size_t *ret_nr)
{
	struct counting counting = { .tree = tree };
	int err = sb_vec_reserve(&counting.rows, 1) ?: count(&counting);

	if (!err) {
		*ret_nr = counting.rows.nr;
		*ret_rows = sb_take(counting.rows.at);
	}
	counting_release(&counting);
	return err;
}

int sb_diff_rows(const struct sb_diff *diff, const struct sb_tree *tree, enum sb_diff_sort sort,
		 struct sb_diff_row **ret_rows, size_t *ret_nr)
{
	struct by_change by = { diff, tree, sort };
	int err = sb_diff_functions(tree, ret_rows, ret_nr);

	if (!err && *ret_nr)
		qsort_r(*ret_rows, *ret_nr, sizeof(**ret_rows), compare_rows, &by);
	return err;
}
