// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The tree against two naive models: sums over path strings, and boxes of a chart in order. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/str.h"
#include "flamegraph/text.h"
#include "flamegraph/tree.h"

#define NR_STACKS 400
#define DEPTH_MAX 6

static uint32_t random_state;

static uint32_t pick(uint32_t below)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % below;
}

struct stack {
	char frames[DEPTH_MAX][16];
	size_t nr;
	double weight;
};

/* Names that are prefixes of each other: sorting whole lines would part them. */
static struct stack random_stack(void)
{
	static const char *const names[] = { "b",   "b(int)",	       "a",
					     "b c", "operator new 12", "operator new",
					     "-",   "b_[k]",	       "[unknown]" };
	struct stack stack = { .nr = 1 + pick(DEPTH_MAX), .weight = pick(50) };
	size_t i;

	for (i = 0; i < stack.nr; i++)
		strcpy(stack.frames[i], names[pick(sizeof(names) / sizeof(names[0]))]);
	return stack;
}

static int add(struct sb_tree *tree, const struct stack *stack)
{
	struct sb_tree_frame frames[DEPTH_MAX];
	size_t i;

	for (i = 0; i < stack->nr; i++)
		frames[i] = sb_fg_frame_parse(stack->frames[i], strlen(stack->frames[i]));
	return sb_fg_tree_add(tree, frames, stack->nr, stack->weight, NULL);
}

static void path_of(const struct sb_tree *tree, uint32_t node, char *path)
{
	uint32_t nodes[DEPTH_MAX + 1];
	size_t nr = 0;

	for (; node; node = tree->nodes.at[node].parent)
		nodes[nr++] = node;
	*path = '\0';
	while (nr--) {
		strcat(path, sb_strtab_get(&tree->names, tree->nodes.at[nodes[nr]].name, NULL));
		if (!sb_fg_kinds[tree->kinds.at[nodes[nr]]].is_told)
			strcat(path, sb_fg_kinds[tree->kinds.at[nodes[nr]]].suffix);
		if (nr)
			strcat(path, ";");
	}
}

static void path_of_stack(const struct stack *stack, size_t depth, char *path)
{
	size_t i;

	*path = '\0';
	for (i = 0; i < depth; i++)
		strcat(strcat(path, i ? ";" : ""), stack->frames[i]);
}

static void test_merged(void **state)
{
	static struct stack stacks[NR_STACKS];
	struct sb_tree tree;
	char path[256], other[256];
	size_t i, n, depth;

	random_state = 1;
	assert_int_equal(sb_tree_init(&tree), 0);
	for (i = 0; i < NR_STACKS; i++) {
		stacks[i] = random_stack();
		assert_int_equal(add(&tree, &stacks[i]), 0);
	}
	assert_int_equal(sb_tree_seal(&tree, SB_TREE_SORT_NAME), 0);
	assert_int_equal(tree.nr_stacks, NR_STACKS);
	assert_int_equal(tree.depth_max, DEPTH_MAX);

	/* Each node: the sum over all stacks that begin with its path, and no other node has it. */
	for (n = 1; n < tree.nodes.nr; n++) {
		double sum = 0;

		path_of(&tree, (uint32_t)n, path);
		for (i = 0; i < NR_STACKS; i++) {
			for (depth = 1; depth <= stacks[i].nr; depth++) {
				path_of_stack(&stacks[i], depth, other);
				if (!strcmp(path, other))
					sum += stacks[i].weight;
			}
		}
		assert_true(sum == tree.nodes.at[n].total);
		for (i = n + 1; i < tree.nodes.nr; i++) {
			path_of(&tree, (uint32_t)i, other);
			assert_string_not_equal(path, other);
		}
	}
	/* And each path of a stack has a node. */
	for (i = 0; i < NR_STACKS; i++) {
		path_of_stack(&stacks[i], stacks[i].nr, path);
		for (n = 1; n < tree.nodes.nr; n++) {
			path_of(&tree, (uint32_t)n, other);
			if (!strcmp(path, other))
				break;
		}
		assert_true(n < tree.nodes.nr);
	}
	sb_tree_release(&tree);
}

static void test_sibling_order(void **state)
{
	struct sb_tree tree;
	uint32_t n, child, next;
	size_t i;

	random_state = 2;
	assert_int_equal(sb_tree_init(&tree), 0);
	for (i = 0; i < NR_STACKS; i++) {
		struct stack stack = random_stack();

		assert_int_equal(add(&tree, &stack), 0);
	}
	assert_int_equal(sb_tree_seal(&tree, SB_TREE_SORT_WEIGHT), 0);
	for (n = 0; n < tree.nodes.nr; n++) {
		for (child = sb_tree_first_child(&tree, n); child; child = next) {
			next = sb_tree_next_sibling(&tree, child);
			assert_int_equal(tree.nodes.at[child].parent, n);
			assert_true(!next ||
				    tree.nodes.at[child].total >= tree.nodes.at[next].total);
		}
	}
	assert_int_equal(sb_tree_seal(&tree, SB_TREE_SORT_NAME), 0);
	for (n = 0; n < tree.nodes.nr; n++) {
		for (child = sb_tree_first_child(&tree, n); child; child = next) {
			int cmp;

			next = sb_tree_next_sibling(&tree, child);
			if (!next)
				break;
			cmp = strcmp(sb_strtab_get(&tree.names, tree.nodes.at[child].name, NULL),
				     sb_strtab_get(&tree.names, tree.nodes.at[next].name, NULL));
			assert_true(cmp < 0 ||
				    (!cmp && tree.kinds.at[child] < tree.kinds.at[next]));
		}
	}
	sb_tree_release(&tree);
}

/* The model of a chart in order: a box lasts as long as consecutive stacks have its path. */
struct box {
	char path[256];
	double start, end;
};

static size_t model_boxes(const struct stack *stacks, size_t nr, struct box *boxes)
{
	char path[256], before[256];
	size_t i, depth, nr_boxes = 0;
	double at = 0;

	for (i = 0; i < nr; at += stacks[i].weight, i++) {
		for (depth = 1; depth <= stacks[i].nr; depth++) {
			size_t b;

			path_of_stack(&stacks[i], depth, path);
			if (i && stacks[i - 1].nr >= depth)
				path_of_stack(&stacks[i - 1], depth, before);
			else
				before[0] = '\0';
			if (strcmp(path, before)) {
				strcpy(boxes[nr_boxes].path, path);
				boxes[nr_boxes].start = at;
				boxes[nr_boxes++].end = at + stacks[i].weight;
				continue;
			}
			for (b = nr_boxes; strcmp(boxes[--b].path, path);)
				;
			boxes[b].end = at + stacks[i].weight;
		}
	}
	return nr_boxes;
}

static void test_in_order(void **state)
{
	static struct stack stacks[NR_STACKS];
	static struct box boxes[NR_STACKS * DEPTH_MAX];
	static double starts[NR_STACKS * DEPTH_MAX * 2];
	struct sb_tree tree;
	size_t i, nr_boxes, nr_drawn = 0;
	uint32_t n, child;
	char path[256];

	random_state = 3;
	assert_int_equal(sb_tree_init(&tree), 0);
	tree.in_order = true;
	for (i = 0; i < NR_STACKS; i++) {
		/* Often the same path, shorter or longer. */
		stacks[i] = random_stack();
		if (i && pick(3)) {
			size_t nr = stacks[i].nr;

			stacks[i] = stacks[i - 1];
			stacks[i].nr = nr < stacks[i].nr ? nr : stacks[i].nr;
			stacks[i].weight = 1 + pick(20);
		}
		stacks[i].weight += 1;
		assert_int_equal(add(&tree, &stacks[i]), 0);
	}
	assert_int_equal(sb_tree_seal(&tree, SB_TREE_SORT_WEIGHT), 0);
	nr_boxes = model_boxes(stacks, NR_STACKS, boxes);
	for (n = 0; n < tree.nodes.nr; n++) {
		double at = starts[n];

		for (child = sb_tree_first_child(&tree, n); child;
		     child = sb_tree_next_sibling(&tree, child)) {
			starts[child] = at;
			at += tree.nodes.at[child].total;
		}
	}
	for (n = 1; n < tree.nodes.nr; n++) {
		if (tree.kinds.at[n] == SB_FG_GAP)
			continue;
		nr_drawn++;
		path_of(&tree, n, path);
		for (i = 0; i < nr_boxes; i++)
			if (boxes[i].start == starts[n] && !strcmp(boxes[i].path, path))
				break;
		assert_true(i < nr_boxes);
		assert_true(boxes[i].end == starts[n] + tree.nodes.at[n].total);
	}
	assert_int_equal(nr_drawn, nr_boxes);
	sb_tree_release(&tree);
}

static int put_str(void *arg, const char *s, size_t len)
{
	return sb_str_addn(arg, s, len);
}

static void test_fold(void **state)
{
	static const struct stack stacks[] = {
		{ { "a", "c" }, 2, 3 },	       { { "a" }, 1, 0.25 },
		{ { "a", "b_[k]" }, 2, 1 },    { { "z" }, 1, 1 },
		{ { "a", "c" }, 2, 0.5 },      { { "a", "b" }, 2, 0.1 },
		{ { "a", "b", "z" }, 3, 0.2 },
	};
	struct sb_tree tree;
	struct sb_str text = {};
	size_t i;

	assert_int_equal(sb_tree_init(&tree), 0);
	for (i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++)
		assert_int_equal(add(&tree, &stacks[i]), 0);
	assert_int_equal(sb_tree_seal(&tree, SB_TREE_SORT_NAME), 0);
	assert_int_equal(sb_fg_tree_fold(&tree, put_str, &text), 0);
	assert_string_equal(text.s, "a 0.25\na;b 0.1\na;b;z 0.2\na;b_[k] 1\na;c 3.5\nz 1\n");
	sb_str_release(&text);
	sb_tree_release(&tree);
}

/* Bounds: deep stacks end in a mark, long names are cut and stay apart. */
static void test_bounds(void **state)
{
	const size_t nr = SB_FG_DEPTH_MAX + 10;
	struct sb_tree_frame *frames = calloc(nr, sizeof(*frames));
	static char long_a[SB_TREE_NAME_MAX + 100], long_b[SB_TREE_NAME_MAX + 100];
	struct sb_tree_frame one[] = { { long_a, sizeof(long_a), SB_FG_PLAIN },
				       { long_b, sizeof(long_b), SB_FG_PLAIN } };
	struct sb_tree tree;
	size_t i, len;
	uint32_t leaf;

	for (i = 0; i < nr; i++)
		frames[i] = (struct sb_tree_frame){ "f", 1, SB_FG_PLAIN };
	assert_int_equal(sb_tree_init(&tree), 0);
	assert_int_equal(sb_fg_tree_add(&tree, frames, SB_FG_DEPTH_MAX, 1, NULL), 0);
	assert_int_equal(tree.nr_deep, 0);
	assert_int_equal(sb_fg_tree_add(&tree, frames, nr, 2, NULL), 0);
	assert_int_equal(tree.nr_deep, 1);
	assert_int_equal(tree.depth_max, SB_FG_DEPTH_MAX);
	leaf = (uint32_t)tree.nodes.nr - 1;
	assert_int_equal(tree.kinds.at[leaf], SB_FG_MARK);
	assert_int_equal(sb_tree_seal(&tree, SB_TREE_SORT_NAME), 0);
	/* Nodes have other numbers now. */
	for (leaf = 1; tree.kinds.at[leaf] != SB_FG_MARK;)
		leaf++;
	assert_int_equal(tree.nodes.at[leaf].depth, SB_FG_DEPTH_MAX);
	assert_true(tree.nodes.at[0].total == 3 && tree.nodes.at[leaf].total == 2);
	sb_tree_release(&tree);

	memset(long_a, 'x', sizeof(long_a));
	memcpy(long_b, long_a, sizeof(long_b));
	long_b[sizeof(long_b) - 1] = 'y';
	assert_int_equal(sb_tree_init(&tree), 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(sb_fg_tree_add(&tree, &one[i % 2], 1, 1, NULL), 0);
	assert_int_equal(tree.nodes.nr, 3);
	sb_strtab_get(&tree.names, tree.nodes.at[1].name, &len);
	assert_int_equal(len, SB_TREE_NAME_MAX);
	assert_int_equal(tree.nr_long_names, 4);
	sb_tree_release(&tree);
	free(frames);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merged),	 cmocka_unit_test(test_sibling_order),
		cmocka_unit_test(test_in_order), cmocka_unit_test(test_fold),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
