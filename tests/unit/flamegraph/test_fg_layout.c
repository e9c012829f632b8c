// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rectangles of random trees: inside their parents, apart from each other, nothing missing. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "flamegraph/layout.h"
#include "flamegraph/tree.h"

#define ROUNDING 1e-6

static uint32_t random_state;

static uint32_t random_below(uint32_t max)
{
	random_state = random_state * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)(random_state >> 4) * max >> 28);
}

static void add_stack(struct sb_tree *tree, const char *names, double weight)
{
	struct sb_tree_frame frames[64];
	size_t nr = 0;

	for (; *names; names++)
		frames[nr++] = (struct sb_tree_frame){ .name = names, .len = 1 };
	assert_int_equal(sb_fg_tree_add(tree, frames, nr, weight, NULL), 0);
}

static void make_tree(struct sb_tree *tree, uint32_t seed, bool in_order)
{
	char names[41];

	random_state = seed;
	assert_int_equal(sb_tree_init(tree), 0);
	tree->in_order = in_order;
	for (int i = 0; i < 300; i++) {
		uint32_t len = 1 + random_below(40), width = 1 + random_below(6);
		double weight = 1 + random_below(1000);

		for (uint32_t k = 0; k < len; k++)
			names[k] = (char)('a' + random_below(width));
		names[len] = '\0';
		if (seed % 3 == 0)
			weight += 0.25;
		add_stack(tree, names, weight);
	}
	assert_int_equal(sb_tree_seal(tree, SB_TREE_SORT_NAME), 0);
}

static uint32_t level_of(const struct sb_tree *tree, uint32_t node)
{
	uint32_t level = 0;

	for (; node; node = tree->nodes.at[node].parent)
		level++;
	return level;
}

/* What a parent has beside the boxes on it: its own weight, and gaps of a flame chart. */
static double own_weight(const struct sb_tree *tree, uint32_t node)
{
	double own = sb_tree_self(tree, node, SB_TREE_A);

	for (uint32_t i = sb_tree_first_child(tree, node); i; i = sb_tree_next_sibling(tree, i)) {
		if (tree->kinds.at[i] == SB_FG_GAP)
			own += tree->nodes.at[i].total;
	}
	return own;
}

static void check_places(const struct sb_tree *tree, const struct sb_fg_layout *layout)
{
	const struct sb_fg_box *boxes = layout->boxes.at;
	double *sums = calloc(layout->boxes.nr, sizeof(*sums));

	assert_non_null(sums);
	assert_true(boxes[0].node == 0 && boxes[0].start == 0);
	assert_true(boxes[0].weight == tree->nodes.at[0].total);
	for (size_t i = 1; i < layout->boxes.nr; i++) {
		const struct sb_fg_box *box = &boxes[i], *under = &boxes[box->parent];

		assert_true(box->weight > 0);
		assert_int_equal(box->level, under->level + 1);
		assert_true(box->level <= layout->level_max);
		assert_true(box->start >= under->start - ROUNDING);
		assert_true(box->start + box->weight <= under->start + under->weight + ROUNDING);
		if (boxes[i - 1].level == box->level)
			assert_true(boxes[i - 1].start + boxes[i - 1].weight <=
				    box->start + ROUNDING);
		sums[box->parent] += box->weight;
	}
	for (size_t i = 0; i < layout->boxes.nr; i++) {
		if (boxes[i].kind == SB_FG_BOX_FRAME)
			assert_float_equal(sums[i] + own_weight(tree, boxes[i].node),
					   boxes[i].weight, ROUNDING);
	}
	free(sums);
}

/* Each frame is drawn once or stands in exactly one cut box. */
static void check_complete(const struct sb_tree *tree, const struct sb_fg_layout *layout,
			   const struct sb_fg_layout_params *params)
{
	uint64_t nr_frames = 0, nr_cut = 0, nr_drawn = 0, nr_deep = 0;
	bool *seen = calloc(tree->nodes.nr, sizeof(*seen));

	assert_non_null(seen);
	for (size_t i = 0; i < layout->boxes.nr; i++) {
		const struct sb_fg_box *box = &layout->boxes.at[i];

		assert_false(seen[box->node]);
		seen[box->node] = true;
		nr_drawn += box->kind == SB_FG_BOX_FRAME;
		nr_deep += box->kind == SB_FG_BOX_DEEP ? box->nr_cut : 0;
		nr_cut += box->nr_cut;
		if (box->kind != SB_FG_BOX_FRAME) {
			assert_true(box->nr_cut > 0);
			continue;
		}
		if (i)
			assert_true(box->weight >= layout->min_weight);
		assert_true(!params->max_level || box->level <= params->max_level);
	}
	for (uint32_t i = 0; i < tree->nodes.nr; i++) {
		bool fits = tree->nodes.at[i].total >= layout->min_weight &&
			    (!params->max_level || level_of(tree, i) <= params->max_level);

		nr_frames += tree->kinds.at[i] != SB_FG_GAP;
		if (fits && tree->kinds.at[i] != SB_FG_GAP)
			assert_true(seen[i]);
	}
	assert_int_equal(nr_drawn + nr_cut, nr_frames);
	assert_int_equal(nr_cut, layout->nr_cut);
	assert_int_equal(nr_deep, layout->nr_cut_deep);
	if (params->max_rects)
		assert_true(nr_drawn <= params->max_rects);
	free(seen);
}

static void check(const struct sb_tree *tree, struct sb_fg_layout_params params)
{
	struct sb_fg_layout layout;

	assert_int_equal(sb_fg_layout_make(tree, &params, &layout), 0);
	check_places(tree, &layout);
	check_complete(tree, &layout, &params);
	assert_true(layout.min_weight >= params.min_weight);
	assert_int_equal(layout.is_raised, layout.min_weight > params.min_weight);
	sb_fg_layout_release(&layout);
}

static void test_random_trees(void **state)
{
	for (uint32_t seed = 1; seed <= 40; seed++) {
		struct sb_tree tree;
		double total;

		make_tree(&tree, seed, seed % 2);
		total = tree.nodes.at[0].total;
		check(&tree, (struct sb_fg_layout_params){});
		check(&tree, (struct sb_fg_layout_params){ .min_weight = total * 0.001 });
		check(&tree, (struct sb_fg_layout_params){ .min_weight = total * 0.2 });
		check(&tree, (struct sb_fg_layout_params){ .max_rects = 100 });
		check(&tree, (struct sb_fg_layout_params){ .max_rects = 1 });
		check(&tree, (struct sb_fg_layout_params){ .max_level = 3 });
		check(&tree, (struct sb_fg_layout_params){ .min_weight = total * 0.002,
							   .max_rects = 50,
							   .max_level = 7 });
		sb_tree_release(&tree);
	}
}

static void test_neighbours_are_cut_together(void **state)
{
	const struct sb_fg_layout_params params = { .min_weight = 10 };
	struct sb_fg_layout layout;
	struct sb_tree tree;

	assert_int_equal(sb_tree_init(&tree), 0);
	add_stack(&tree, "a", 1);
	add_stack(&tree, "bx", 2);
	add_stack(&tree, "by", 2);
	add_stack(&tree, "m", 50);
	add_stack(&tree, "z", 3);
	assert_int_equal(sb_tree_seal(&tree, SB_TREE_SORT_NAME), 0);
	assert_int_equal(sb_fg_layout_make(&tree, &params, &layout), 0);
	/* root, [a and b with 2 above it], m, [z] */
	assert_int_equal(layout.boxes.nr, 4);
	assert_int_equal(layout.boxes.at[1].kind, SB_FG_BOX_NARROW);
	assert_int_equal(layout.boxes.at[1].nr_cut, 4);
	assert_int_equal(layout.boxes.at[1].nr_levels, 1);
	assert_true(layout.boxes.at[1].start == 0 && layout.boxes.at[1].weight == 5);
	assert_true(layout.boxes.at[2].start == 5 && layout.boxes.at[2].weight == 50);
	assert_true(layout.boxes.at[3].start == 55 && layout.boxes.at[3].weight == 3);
	sb_fg_layout_release(&layout);
	sb_tree_release(&tree);
}

static void test_no_weight(void **state)
{
	const struct sb_fg_layout_params params = {};
	struct sb_fg_layout layout;
	struct sb_tree tree;

	assert_int_equal(sb_tree_init(&tree), 0);
	assert_int_equal(sb_tree_seal(&tree, SB_TREE_SORT_NAME), 0);
	assert_int_equal(sb_fg_layout_make(&tree, &params, &layout), -ENODATA);
	sb_tree_release(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_trees),
		cmocka_unit_test(test_neighbours_are_cut_together),
		cmocka_unit_test(test_no_weight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
