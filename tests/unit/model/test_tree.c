// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Call trees of one and of two profiles, against sums over their stacks. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "model/calltree.h"
#include "model/fold.h"
#include "read_meta.h"

static struct sb_profile *profile_new(const char *unit)
{
	struct sb_profile *profile;

	assert_int_equal(sb_profile_new(&profile), 0);
	assert_int_equal(read_meta(profile, "unit", unit), 0);
	return profile;
}

/* "a;b;c" */
static void add(struct sb_profile *profile, const char *path, uint64_t weight, uint64_t nr_samples)
{
	char text[256], *save = NULL, *name;
	uint32_t ids[64];
	size_t nr = 0;

	snprintf(text, sizeof(text), "%s", path);
	for (name = strtok_r(text, ";", &save); name; name = strtok_r(NULL, ";", &save)) {
		struct sb_frame frame = { .name = name, .module = "m", .kind = SB_FRAME_USER };

		assert_int_equal(sb_profile_frame(profile, &frame, &ids[nr++]), 0);
	}
	assert_int_equal(sb_profile_add_row(profile, &(struct sb_row){ .frames = ids,
								       .nr = nr,
								       .weight = weight,
								       .nr_samples = nr_samples }),
			 0);
}

static struct sb_tree *tree_of(struct sb_profile *a, struct sb_profile *b)
{
	struct sb_tree *tree;

	sb_profile_seal(a);
	if (b)
		sb_profile_seal(b);
	assert_int_equal(sb_calltree_new(a, b, &tree), 0);
	return tree;
}

static const char *module_of(const struct sb_tree *tree, size_t node)
{
	return sb_strtab_get(&tree->names, tree->modules.at[node], NULL);
}

/* What must hold of any tree. */
static void check(const struct sb_tree *tree)
{
	size_t i, nr = tree->nodes.nr;
	double *below = calloc(nr * 2, sizeof(*below));
	int side;

	assert_true(nr > 0 && tree->nodes.at[0].depth == 0);
	for (i = nr; i-- > 0;) {
		const struct sb_tree_node *node = &tree->nodes.at[i];

		for (side = 0; side < 2; side++) {
			assert_true(sb_tree_total(tree, i, side) ==
				    sb_tree_self(tree, i, side) + below[2 * i + side]);
			if (i)
				below[2 * node->parent + side] += sb_tree_total(tree, i, side);
		}
		assert_true(node->end > i && node->end <= nr);
		assert_true(node->end == nr || tree->nodes.at[node->end].depth <= node->depth);
		assert_true(node->end == i + 1 ||
			    tree->nodes.at[node->end - 1].depth > node->depth);
		if (!i)
			break;
		assert_true(node->parent < i);
		assert_int_equal(node->depth, tree->nodes.at[node->parent].depth + 1);
		/* Pre-order: right behind the parent, or behind something deep below it. */
		assert_true(node->parent == i - 1 || tree->nodes.at[i - 1].depth >= node->depth);
	}
	free(below);
}

static void test_union(void **state)
{
	static const struct {
		const char *name;
		uint32_t depth;
		double self[2], total[2];
	} wanted[] = {
		{ "all", 0, { 0, 0 }, { 10, 21 } },  { "main", 1, { 1, 0 }, { 10, 16 } },
		{ "alpha", 2, { 2, 4 }, { 2, 16 } }, { "new", 3, { 0, 12 }, { 0, 12 } },
		{ "gone", 2, { 7, 0 }, { 7, 0 } },   { "other", 1, { 0, 5 }, { 0, 5 } },
	};
	sb_cleanup(sb_profile_freep) struct sb_profile *a = profile_new("samples");
	sb_cleanup(sb_profile_freep) struct sb_profile *b = profile_new("samples");
	sb_cleanup(sb_tree_freep) struct sb_tree *tree = NULL;
	size_t i;

	add(a, "main;gone", 7, 0);
	add(a, "main;alpha", 2, 0);
	add(a, "main", 1, 0);
	/* Numbers of frames differ from those of the other. */
	add(b, "other", 5, 0);
	add(b, "main;alpha;new", 12, 0);
	add(b, "main;alpha", 4, 0);
	tree = tree_of(a, b);
	assert_int_equal(tree->nodes.nr, SB_ARRAY_SIZE(wanted));
	for (i = 0; i < SB_ARRAY_SIZE(wanted); i++) {
		const struct sb_tree_node *node = &tree->nodes.at[i];

		assert_string_equal(sb_tree_name(tree, i), wanted[i].name);
		assert_int_equal(node->depth, wanted[i].depth);
		assert_memory_equal(tree->pairs.at[i].weight, wanted[i].self,
				    sizeof(wanted[i].self));
		assert_memory_equal(tree->pair_totals.at[i].weight, wanted[i].total,
				    sizeof(wanted[i].total));
	}
	assert_int_equal(tree->modules.at[0], 0);
	assert_string_equal(module_of(tree, 1), "m");
	assert_int_equal(tree->nr_samples[0], 10);
	assert_int_equal(tree->nr_samples[1], 21);
	check(tree);
}

static void test_what_is_one_node(void **state)
{
	sb_cleanup(sb_profile_freep) struct sb_profile *a = profile_new("samples");
	sb_cleanup(sb_tree_freep) struct sb_tree *tree = NULL;
	static const struct sb_frame frames[] = {
		{ .name = "f", .kind = SB_FRAME_USER, .module = "/lib/a.so.1", .line = 3 },
		{ .name = "f", .kind = SB_FRAME_INLINED, .module = "/lib/a.so.2", .line = 9 },
		{ .name = "f", .kind = SB_FRAME_KERNEL },
		{ .name = "f", .kind = SB_FRAME_KERNEL_INLINED },
		{ .name = "f", .kind = SB_FRAME_INTERP },
	};
	size_t i;
	uint32_t id;

	for (i = 0; i < SB_ARRAY_SIZE(frames); i++) {
		assert_int_equal(sb_profile_frame(a, &frames[i], &id), 0);
		assert_int_equal(sb_profile_add(a, &id, 1, 10 - i), 0);
	}
	tree = tree_of(a, NULL);
	assert_int_equal(tree->nodes.nr, 4);
	assert_int_equal(sb_tree_total(tree, 1, 0), 19);
	assert_string_equal(module_of(tree, 1), "/lib/a.so.1");
	assert_int_equal(tree->kinds.at[2], SB_FRAME_KERNEL);
	assert_int_equal(sb_tree_total(tree, 2, 0), 15);
	assert_int_equal(sb_tree_total(tree, 3, 0), 6);
}

static void test_empty(void **state)
{
	sb_cleanup(sb_profile_freep) struct sb_profile *a = profile_new("samples");
	sb_cleanup(sb_profile_freep) struct sb_profile *b = profile_new("samples");
	sb_cleanup(sb_tree_freep) struct sb_tree *tree = NULL;

	assert_int_equal(sb_profile_add(b, NULL, 0, 3), 0); /* a stack without frames */
	tree = tree_of(a, b);
	assert_int_equal(tree->nodes.nr, 2);
	assert_string_equal(sb_tree_name(tree, 1), SB_PROFILE_NO_STACK);
	assert_int_equal(sb_tree_self(tree, 1, 1), 3);
	assert_int_equal(sb_tree_prune(tree, 2, SB_FRAME_MARK), 0);
	assert_int_equal(sb_tree_prune(tree, 1, SB_FRAME_MARK), -EINVAL);
	check(tree);
}

/* Of how many samples a weight is: said of the stack, of all, by the unit, or not at all. */
static void test_squares(void **state)
{
	static const struct {
		const char *unit, *n;
		uint64_t weight, nr_samples;
		double squares; /* of the root */
		uint64_t nr;
	} cases[] = {
		{ "samples", NULL, 50, 0, 50, 50 },   { "samples", NULL, 50, 50, 50, 50 },
		{ "samples", NULL, 50, 25, 100, 25 }, /* thinned: each stands for two */
		{ "samples", "25", 50, 0, 100, 25 },  { "samples", "900", 50, 0, 50, 50 },
		{ "calls", NULL, 50, 0, 50, 50 },     { "us", NULL, 50, 0, NAN, 0 },
		{ "us", NULL, 50, 1, 2500, 1 },	      { "us", NULL, 50, 9, 500, 9 },
		{ "us", "9", 50, 0, 500, 9 },
	};
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(cases); i++) {
		sb_cleanup(sb_profile_freep) struct sb_profile *a = profile_new(cases[i].unit);
		sb_cleanup(sb_tree_freep) struct sb_tree *tree = NULL;
		double squares;

		if (cases[i].n)
			assert_int_equal(read_meta(a, "n", cases[i].n), 0);
		add(a, "f;g", cases[i].weight, cases[i].nr_samples);
		tree = tree_of(a, NULL);
		squares = sb_tree_squares(tree, 0);
		assert_true(isnan(cases[i].squares) ? isnan(squares)
						    : fabs(squares - cases[i].squares) < 1e-6);
		assert_int_equal(tree->nr_samples[0], cases[i].nr);
	}
}

/* Durations are known by their logarithm: eight of 1 us and one of 1 ms are as good as one. */
static void test_squares_of_durations(void **state)
{
	sb_cleanup(sb_profile_freep) struct sb_profile *a = profile_new("us");
	sb_cleanup(sb_tree_freep) struct sb_tree *tree = NULL;
	uint32_t id;
	double part;

	assert_int_equal(sb_profile_frame(a, &(struct sb_frame){ .name = "f" }, &id), 0);
	assert_int_equal(sb_profile_add_row(a, &(struct sb_row){ .frames = &id,
								 .nr = 1,
								 .log2_ns = 11,
								 .weight = 8,
								 .nr_samples = 8 }),
			 0);
	assert_int_equal(sb_profile_add_row(a, &(struct sb_row){ .frames = &id,
								 .nr = 1,
								 .log2_ns = 21,
								 .weight = 1000,
								 .nr_samples = 1 }),
			 0);
	tree = tree_of(a, NULL);
	part = sb_tree_squares(tree, 0) / (1008.0 * 1008);
	assert_true(part > 0.95 && part <= 1);
	assert_int_equal(tree->nr_samples[0], 9);
}

static void add_random(struct sb_profile *profile, unsigned int *seed, size_t nr)
{
	char path[256];
	size_t i, at, len;

	for (i = 0; i < nr; i++) {
		len = 0;
		for (at = (size_t)rand_r(seed) % 10 + 1; at; at--)
			len += (size_t)snprintf(path + len, sizeof(path) - len, "f%d;",
						rand_r(seed) % 6);
		add(profile, path, (uint64_t)rand_r(seed) % 100, 0);
	}
}

static void test_random_sums(void **state)
{
	unsigned int seed = 7;
	int i, side;

	for (i = 0; i < 100; i++) {
		sb_cleanup(sb_profile_freep) struct sb_profile *a = profile_new("samples");
		sb_cleanup(sb_profile_freep) struct sb_profile *b = profile_new("samples");
		sb_cleanup(sb_tree_freep) struct sb_tree *tree = NULL;
		const struct sb_profile *both[] = { a, b };
		size_t at;

		add_random(a, &seed, 60);
		add_random(b, &seed, 40);
		tree = tree_of(a, b);
		check(tree);
		for (side = 0; side < 2; side++)
			assert_true(sb_tree_total(tree, 0, side) == sb_profile_weight(both[side]));
		/* Each stack of A, followed by its names, ends in a node that has its weight. */
		for (at = 0; at < sb_profile_nr_stacks(a); at++) {
			const struct sb_row row = sb_profile_row_at(a, at);
			size_t node = 0, level = 0, next;

			for (next = 1; next < tree->nodes.nr && level < row.nr; next++)
				if (tree->nodes.at[next].parent == node &&
				    !strcmp(sb_tree_name(tree, next),
					    sb_profile_frame_at(a, row.frames[level])->name)) {
					node = next;
					level++;
				}
			assert_int_equal(level, row.nr);
			assert_true(sb_tree_self(tree, node, 0) == row.weight);
		}
	}
}

static void test_siblings_are_in_order(void **state)
{
	unsigned int seed = 5;
	sb_cleanup(sb_profile_freep) struct sb_profile *a = profile_new("samples");
	sb_cleanup(sb_tree_freep) struct sb_tree *tree = NULL;
	size_t i;

	add_random(a, &seed, 500);
	tree = tree_of(a, NULL);
	for (i = 1; i < tree->nodes.nr; i++) {
		size_t next = i + 1;

		while (next < tree->nodes.nr &&
		       tree->nodes.at[next].depth > tree->nodes.at[i].depth)
			next++;
		if (next < tree->nodes.nr &&
		    tree->nodes.at[next].parent == tree->nodes.at[i].parent)
			assert_true(strcmp(sb_tree_name(tree, i), sb_tree_name(tree, next)) < 0);
	}
}

static void test_prune(void **state)
{
	unsigned int seed = 3;
	size_t nr_max;

	for (nr_max = 2; nr_max < 400; nr_max += 1 + nr_max / 3) {
		sb_cleanup(sb_profile_freep) struct sb_profile *a = profile_new("samples");
		sb_cleanup(sb_profile_freep) struct sb_profile *b = profile_new("samples");
		sb_cleanup(sb_tree_freep) struct sb_tree *tree = NULL, *again = NULL;
		uint64_t nr_others = 0;
		size_t nr, i;

		add_random(a, &seed, 150);
		add_random(b, &seed, 150);
		tree = tree_of(a, b);
		again = tree_of(a, b);
		nr = tree->nodes.nr;
		assert_int_equal(sb_tree_prune(tree, nr_max, SB_FRAME_MARK), 0);
		assert_int_equal(sb_tree_prune(again, nr_max, SB_FRAME_MARK), 0);
		check(tree);
		assert_true(tree->nodes.nr <= nr_max && tree->nodes.nr + 2 >= nr_max);
		assert_true(sb_tree_total(tree, 0, 0) == sb_profile_weight(a));
		assert_true(sb_tree_total(tree, 0, 1) == sb_profile_weight(b));
		assert_true(sb_tree_squares(tree, 1) == (double)sb_profile_weight(b));
		for (i = 0; i < tree->nodes.nr; i++)
			nr_others += !strcmp(sb_tree_name(tree, i), SB_TREE_OTHER);
		assert_int_equal(tree->nodes.nr - nr_others + tree->nr_cut, nr);
		assert_int_equal(again->nodes.nr, tree->nodes.nr);
		for (i = 0; i < nr_max && i < tree->nodes.nr; i++) {
			assert_int_equal(again->nodes.at[i].name, tree->nodes.at[i].name);
			assert_memory_equal(&again->pair_totals.at[i], &tree->pair_totals.at[i],
					    sizeof(tree->pair_totals.at[i]));
		}
	}
}

/* What is large in one of the two stays, however small its profile; one name is not cut for
 * another. */
static void test_prune_keeps_the_largest(void **state)
{
	sb_cleanup(sb_profile_freep) struct sb_profile *a = profile_new("samples");
	sb_cleanup(sb_profile_freep) struct sb_profile *b = profile_new("samples");
	sb_cleanup(sb_tree_freep) struct sb_tree *tree = NULL;
	size_t i;

	add(a, "m;x", 6, 0);
	add(a, "m;y", 1, 0);
	add(a, "m;z", 1, 0);
	add(b, "m;new", 500, 0);
	add(b, "m;p", 400, 0);
	add(b, "m;q", 300, 0);
	tree = tree_of(a, b);
	assert_int_equal(sb_tree_prune(tree, 5, SB_FRAME_MARK), 0);
	assert_int_equal(tree->nodes.nr, 5);
	assert_string_equal(sb_tree_name(tree, 2), "new");
	assert_string_equal(sb_tree_name(tree, 3), "x");
	assert_string_equal(sb_tree_name(tree, 4), SB_TREE_OTHER);
	assert_int_equal(tree->kinds.at[4], SB_FRAME_MARK);
	assert_int_equal(sb_tree_self(tree, 4, 0), 2);
	assert_int_equal(sb_tree_total(tree, 4, 1), 700);
	assert_int_equal(tree->nr_cut, 4);
	/* Once more: what stood for some stands for more. */
	assert_int_equal(sb_tree_prune(tree, 3, SB_FRAME_MARK), 0);
	assert_int_equal(tree->nodes.nr, 3);
	assert_int_equal(sb_tree_total(tree, 2, 0), 8);
	assert_int_equal(tree->nr_cut, 6);
	for (i = 0; i < tree->nodes.nr; i++)
		assert_int_equal(tree->nodes.at[i].depth, i);
	check(tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_union),
		cmocka_unit_test(test_what_is_one_node),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_squares),
		cmocka_unit_test(test_squares_of_durations),
		cmocka_unit_test(test_random_sums),
		cmocka_unit_test(test_siblings_are_in_order),
		cmocka_unit_test(test_prune),
		cmocka_unit_test(test_prune_keeps_the_largest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
