// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Nodes of several files under one numbering. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "store/merged_tree.h"

static uint32_t frame(struct sb_dict *dict, const char *name)
{
	const struct sb_frame of = { .name = name, .module = "m", .kind = SB_FRAME_USER };
	uint32_t id;

	assert_int_equal(sb_dict_frame(dict, &of, &id), 0);
	return id;
}

static uint32_t child(struct sb_dict *dict, uint32_t parent, const char *name)
{
	uint32_t id;

	assert_int_equal(sb_dict_node(dict, parent, frame(dict, name), &id), 0);
	return id;
}

/* The names from the root on, with ';'. */
static void path(const struct sb_dict *dict, uint32_t node, char *to, size_t size)
{
	struct sb_frame of;

	*to = '\0';
	if (!node)
		return;
	path(dict, dict->nodes.at[node].parent, to, size);
	of = sb_dict_frame_at(dict, dict->nodes.at[node].frame);
	snprintf(to + strlen(to), size - strlen(to), "%s%s", *to ? ";" : "", of.name);
}

static void check_path(struct sb_merged_tree *merged, struct sb_merged_tree_map *map,
		       const struct sb_dict *dict, uint32_t node)
{
	char want[64], is[64];
	uint32_t id;

	assert_int_equal(sb_merged_tree_node(merged, map, dict, node, &id), 0);
	path(dict, node, want, sizeof(want));
	path(&merged->dict, id, is, sizeof(is));
	assert_string_equal(is, want);
}

/* Two files that say the same in another order, and some more. */
static void test_two(void **state)
{
	struct sb_dict one, two;
	struct sb_merged_tree merged = {};
	struct sb_merged_tree_map map_one = {}, map_two = {};
	uint32_t a, b, id_one, id_two, new, i;

	assert_int_equal(sb_dict_init(&one), 0);
	assert_int_equal(sb_dict_init(&two), 0);
	a = child(&one, child(&one, 0, "main"), "work");
	child(&one, child(&one, 0, "main"), "idle");
	child(&two, child(&two, 0, "main"), "idle");
	new = child(&two, child(&two, 0, "new"), "work");
	b = child(&two, child(&two, 0, "main"), "work");
	assert_int_equal(sb_merged_tree_fit(&merged, &map_one, &one), 0);
	for (i = 0; i < one.nodes.nr; i++)
		check_path(&merged, &map_one, &one, i);
	assert_int_equal(sb_merged_tree_fit(&merged, &map_two, &two), 0);
	for (i = two.nodes.nr; i-- > 0;)
		check_path(&merged, &map_two, &two, i);
	assert_int_equal(sb_merged_tree_node(&merged, &map_one, &one, a, &id_one), 0);
	assert_int_equal(sb_merged_tree_node(&merged, &map_two, &two, b, &id_two), 0);
	assert_int_equal(id_one, id_two);
	/* Of what is new there are two nodes. */
	assert_int_equal(merged.dict.nodes.nr, one.nodes.nr + 2);
	assert_int_equal(merged.weights.nr, merged.dict.nodes.nr);
	/* What is told later has its place, too. */
	b = child(&two, new, "later");
	assert_int_equal(sb_merged_tree_fit(&merged, &map_two, &two), 0);
	check_path(&merged, &map_two, &two, b);
	sb_merged_tree_map_release(&map_one);
	sb_merged_tree_map_release(&map_two);
	sb_merged_tree_release(&merged);
	sb_dict_release(&one);
	sb_dict_release(&two);
}

/* What is as deep as may be is there, the next is not. */
static void test_deep(void **state)
{
	struct sb_dict dict;
	struct sb_merged_tree merged = {};
	struct sb_merged_tree_map map = {};
	uint32_t node = 0, id, i;

	assert_int_equal(sb_dict_init(&dict), 0);
	for (i = 0; i < SB_DICT_DEPTH_MAX + 1; i++)
		assert_int_equal(sb_dict_node(&dict, node, frame(&dict, "f"), &node), 0);
	assert_int_equal(sb_merged_tree_fit(&merged, &map, &dict), 0);
	id = 77;
	assert_int_equal(sb_merged_tree_node(&merged, &map, &dict, node, &id), -EBADMSG);
	assert_int_equal(id, 77);
	assert_int_equal(sb_merged_tree_node(&merged, &map, &dict, node - 1, &id), 0);
	assert_int_equal(id, SB_DICT_DEPTH_MAX);
	sb_merged_tree_map_release(&map);
	sb_merged_tree_release(&merged);
	sb_dict_release(&dict);
}

/* Frames and nodes of a damaged record. */
static void test_lost(void **state)
{
	struct sb_dict dict;
	struct sb_merged_tree_map map = {}, map_two = {};
	struct sb_merged_tree merged = {};
	uint32_t node, id;
	char is[64];

	assert_int_equal(sb_dict_init(&dict), 0);
	node = child(&dict, child(&dict, 0, "main"), "work");
	dict.nodes.at[node - 1] = (struct sb_dict_node){ 0, SB_DICT_NONE };
	assert_int_equal(sb_merged_tree_fit(&merged, &map, &dict), 0);
	assert_int_equal(sb_merged_tree_node(&merged, &map, &dict, node, &id), 0);
	path(&merged.dict, id, is, sizeof(is));
	assert_string_equal(is, SB_DICT_LOST ";work");
	assert_int_equal(sb_merged_tree_fit(&merged, &map_two, &dict), 0);
	assert_int_equal(sb_merged_tree_node(&merged, &map_two, &dict, node, &node), 0);
	assert_int_equal(node, id);
	sb_merged_tree_map_release(&map);
	sb_merged_tree_map_release(&map_two);
	sb_merged_tree_release(&merged);
	sb_dict_release(&dict);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
