// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/diff.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/num.h"
#include "base/str.h"
#include "model/owner.h"

static const char *const norm_names[] = {
	[SB_DIFF_SHARE] = "share",
	[SB_DIFF_RATE] = "rate",
	[SB_DIFF_RAW] = "raw",
};

_Static_assert(SB_ARRAY_SIZE(norm_names) == SB_DIFF_NORM_MAX, "each norm has a name");

const char *sb_diff_norm_name(enum sb_diff_norm norm)
{
	return norm_names[norm];
}

int sb_diff_norm_find(const char *name)
{
	int i;

	for (i = 0; i < SB_DIFF_NORM_MAX; i++)
		if (sb_streq(name, norm_names[i]))
			return i;
	return -EINVAL;
}

/* ---- what is compared ---- */

static uint64_t fact(const struct sb_profile *profile, const char *key)
{
	const char *value = sb_profile_meta_get(profile, key);
	uint64_t val;

	return value && !sb_parse_u64(value, UINT64_MAX, &val) ? val : 0;
}

static const char *unit_of(const struct sb_profile *profile)
{
	const char *unit = sb_profile_meta_get(profile, "unit");

	return unit ? unit : "samples";
}

/* Seconds, of all CPUs and of samples times Hz, as far as both say it. */
static int set_rate(struct sb_diff *diff, const struct sb_profile *const sides[SB_TREE_NR])
{
	static const char *const factors[] = { "cpus", "hz" };
	bool is_samples = sb_streq(unit_of(sides[SB_TREE_A]), "samples");
	size_t i, nr = SB_ARRAY_SIZE(factors) - !is_samples;
	int side;

	for (side = 0; side < SB_TREE_NR; side++) {
		diff->per[side] = (double)fact(sides[side], "dur_us") / 1e6;
		if (!(diff->per[side] > 0))
			return -ENODATA;
	}
	for (i = 0; i < nr; i++) {
		uint64_t a = fact(sides[SB_TREE_A], factors[i]);
		uint64_t b = fact(sides[SB_TREE_B], factors[i]);

		if (!a || !b)
			continue;
		diff->per[SB_TREE_A] *= (double)a;
		diff->per[SB_TREE_B] *= (double)b;
	}
	return 0;
}

int sb_diff_init(struct sb_diff *diff, const struct sb_tree *tree, const struct sb_profile *a,
		 const struct sb_profile *b, enum sb_diff_norm norm)
{
	const struct sb_profile *const sides[SB_TREE_NR] = { a, b };
	const struct sb_tree_node *root = &tree->nodes.at[0];
	int side;

	*diff = (struct sb_diff){ .norm = norm };
	if (!sb_streq(unit_of(a), unit_of(b)))
		return -EINVAL;
	for (side = 0; side < SB_TREE_NR; side++) {
		diff->all[side] = (double)root->total[side];
		diff->all_squares[side] = root->total_squares[side];
		diff->per[side] = 1;
		if (norm == SB_DIFF_SHARE && root->total[side])
			diff->per[side] = diff->all[side];
	}
	return norm == SB_DIFF_RATE ? set_rate(diff, sides) : 0;
}

double sb_diff_value(const struct sb_diff *diff, int side, double weight)
{
	return weight / diff->per[side];
}

double sb_diff_z(const struct sb_diff *diff, const uint64_t weights[SB_TREE_NR],
		 const double squares[SB_TREE_NR])
{
	struct sb_compare sides[SB_TREE_NR];
	int side;

	for (side = 0; side < SB_TREE_NR; side++)
		sides[side] = (struct sb_compare){
			.part = (double)weights[side],
			.squares = squares[side],
			.all = diff->all[side],
			.all_squares = diff->all_squares[side],
			.per = diff->per[side],
		};
	return sb_compare_z(&sides[SB_TREE_A], &sides[SB_TREE_B], diff->norm == SB_DIFF_SHARE);
}

/* ---- functions ---- */

struct counting {
	const struct sb_tree *tree;
	SB_VEC(struct sb_diff_row) rows;
	struct sb_index index;
	SB_VEC(uint32_t) path;	  /* of the node in question: rows, from the root's child on */
	SB_VEC(uint32_t) nodes;	  /* the same as nodes of the tree */
	SB_VEC(uint32_t) nr_open; /* by row: how often it is in the path */
};

static void counting_release(struct counting *counting)
{
	sb_vec_release(&counting->rows);
	sb_index_release(&counting->index);
	sb_vec_release(&counting->path);
	sb_vec_release(&counting->nodes);
	sb_vec_release(&counting->nr_open);
}

static int find_row(struct counting *counting, const struct sb_tree_node *node, uint32_t *ret_row)
{
	struct sb_diff_row row = { .name = node->name,
				   .module = node->module,
				   .kind = sb_function_kind(node->kind) };
	uint64_t hash = sb_hash(&row.name, sizeof(row.name), row.kind);
	struct sb_index_iter it;
	int err;

	for (it = sb_index_first(&counting->index, hash); it.id != SB_INDEX_NONE;
	     it = sb_index_next(&counting->index, it)) {
		const struct sb_diff_row *have = &counting->rows.at[it.id];

		if (have->name == row.name && have->kind == row.kind) {
			*ret_row = it.id;
			return 0;
		}
	}
	*ret_row = (uint32_t)counting->rows.nr;
	err = sb_vec_push(&counting->rows, row);
	err = err ?: sb_vec_push(&counting->nr_open, 0);
	return err ?: sb_index_add(&counting->index, hash, *ret_row);
}

static const char *frame_at(const void *arg, size_t i, enum sb_frame_kind *ret_kind)
{
	const struct counting *counting = arg;
	const struct sb_tree_node *node = &counting->tree->nodes.at[counting->nodes.at[i]];

	*ret_kind = node->kind;
	return sb_strtab_get(&counting->tree->strings, node->name, NULL);
}

/* The own weight of the last node of the path, for whom it counts. */
static void add_self(struct counting *counting, const struct sb_tree_node *node)
{
	const struct sb_owner_path path = { frame_at, counting, counting->nodes.nr };
	struct sb_diff_row *row;
	int side;

	if (!node->self[SB_TREE_A] && !node->self[SB_TREE_B])
		return;
	row = &counting->rows.at[counting->path.at[sb_owner_find(&path)]];
	for (side = 0; side < SB_TREE_NR; side++) {
		row->self[side] += node->self[side];
		row->self_squares[side] += node->self_squares[side];
	}
}

static void add_total(struct sb_diff_row *row, const struct sb_tree_node *node)
{
	int side;

	for (side = 0; side < SB_TREE_NR; side++) {
		row->total[side] += node->total[side];
		row->total_squares[side] += node->total_squares[side];
	}
}

static int count(struct counting *counting)
{
	size_t i;
	uint32_t row;
	int err;

	for (i = 1; i < counting->tree->nodes.nr; i++) {
		const struct sb_tree_node *node = &counting->tree->nodes.at[i];

		while (counting->path.nr >= node->depth)
			counting->nr_open.at[counting->path.at[--counting->path.nr]]--;
		counting->nodes.nr = counting->path.nr;
		err = find_row(counting, node, &row);
		err = err ?: sb_vec_push(&counting->path, row);
		err = err ?: sb_vec_push(&counting->nodes, (uint32_t)i);
		if (err)
			return err;
		if (!counting->nr_open.at[row]++)
			add_total(&counting->rows.at[row], node);
		add_self(counting, node);
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
	const uint64_t *weights = sort == SB_DIFF_BY_SELF ? row->self : row->total;

	return fabs(sb_diff_value(by->diff, SB_TREE_B, (double)weights[SB_TREE_B]) -
		    sb_diff_value(by->diff, SB_TREE_A, (double)weights[SB_TREE_A]));
}

static int compare_rows(const void *va, const void *vb, void *arg)
{
	const struct sb_diff_row *a = va, *b = vb;
	const struct by_change *by = arg;
	int order;
	size_t i;

	for (i = 0; i < 2; i++) {
		/* The one, then the other. */
		enum sb_diff_sort sort =
			(by->sort == SB_DIFF_BY_SELF) == !i ? SB_DIFF_BY_SELF : SB_DIFF_BY_TOTAL;
		double of_a = change(by, a, sort), of_b = change(by, b, sort);

		if (of_a != of_b)
			return of_a > of_b ? -1 : 1;
	}
	order = strcmp(sb_strtab_get(&by->tree->strings, a->name, NULL),
		       sb_strtab_get(&by->tree->strings, b->name, NULL));
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
