// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Questions whose answers are cut to few nodes, against what their definition says, by lists of
 * paths as texts. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/vec.h"
#include "store/ask.h"
#include "store_dir.h"

/* 2040-01-02 00:00 UTC: nothing is late. */
#define T0	       2209075200ll
#define NR_BLOCKS      12
#define DEPTH_MAX      9
#define PATH_BYTES_MAX 256

/* Paths with weights, each once: linear, as the lists are short. */
struct item {
	char path[PATH_BYTES_MAX];
	uint64_t weight;
};
struct list {
	SB_VEC(struct item) items;
};

static struct item *find(const struct list *list, const char *path)
{
	size_t i;

	for (i = 0; i < list->items.nr; i++)
		if (!strcmp(list->items.at[i].path, path))
			return &list->items.at[i];
	return NULL;
}

static void add(struct list *list, const char *path, uint64_t weight)
{
	struct item item = {}, *have = find(list, path);

	if (!have) {
		snprintf(item.path, sizeof(item.path), "%s", path);
		assert_int_equal(sb_vec_push(&list->items, item), 0);
		have = &list->items.at[list->items.nr - 1];
	}
	have->weight += weight;
}

/* Each prefix of each, with all that is below it. */
static void add_totals(struct list *totals, const struct list *list)
{
	char path[PATH_BYTES_MAX];
	size_t i, at;

	for (i = 0; i < list->items.nr; i++)
		for (at = 0; at < strlen(list->items.at[i].path); at++) {
			strcpy(path, list->items.at[i].path);
			at += strcspn(path + at, ";");
			path[at] = '\0';
			add(totals, path, list->items.at[i].weight);
		}
}

/* The least of 1, 2, 3, 4, 6, 8, 12, ... that at most @nr_max weigh. */
static uint64_t least_of(const struct list *totals, size_t nr_max)
{
	uint64_t least;
	size_t i, nr;

	for (least = 1;; least = least & (least - 1) ? least / 3 * 4 : least + (least + 1) / 2) {
		for (i = nr = 0; i < totals->items.nr; i++)
			nr += totals->items.at[i].weight >= least;
		if (nr <= nr_max)
			return least;
	}
}

/* What is left of @from is added to @to; of what is not, the weight to @other, by the path that is
 * left above it. */
static void cut(const struct list *from, size_t nr_max, struct list *to, struct list *other)
{
	struct list totals = {};
	uint64_t least;
	char path[PATH_BYTES_MAX];
	size_t i;

	add_totals(&totals, from);
	least = least_of(&totals, nr_max);
	for (i = 0; i < from->items.nr; i++) {
		strcpy(path, from->items.at[i].path);
		while (*path && find(&totals, path)->weight < least)
			*(strrchr(path, ';') ?: path) = '\0';
		add(strlen(path) == strlen(from->items.at[i].path) ? to : other, path,
		    from->items.at[i].weight);
	}
	sb_vec_release(&totals.items);
}

/* "(other)" is a frame that a recorder may have put, too. */
static void frame(struct sb_profile *profile, uint32_t depth, bool is_last, uint32_t *ret_id)
{
	char name[16];
	struct sb_frame of = { .name = name, .module = "m", .kind = SB_FRAME_USER };

	snprintf(name, sizeof(name), "f%u", random_of(2 + depth / 3));
	if (is_last && !random_of(8))
		of = (struct sb_frame){ .name = "(other)", .kind = SB_FRAME_MARK };
	assert_int_equal(sb_profile_frame(profile, &of, ret_id), 0);
}

static void add_random(struct sb_profile *profile, uint32_t series)
{
	uint32_t ids[DEPTH_MAX], i, k;
	struct sb_row row = { .frames = ids, .series = series };

	for (i = 0; i < 40; i++) {
		row.nr = 1 + random_of(DEPTH_MAX);
		for (k = 0; k < row.nr; k++)
			frame(profile, k, k + 1 == row.nr, &ids[k]);
		row.weight = 1 + random_of(1000) / (i + 1);
		assert_int_equal(sb_profile_add_row(profile, &row), 0);
	}
}

/* Two services have the same stacks. */
static void put_block(struct sb_store *store, int64_t begin_s)
{
	const struct sb_tag tags[] = { { "service", "a", false }, { "service", "b", false } };
	struct sb_store_series series[] = { { &tags[0], 1 }, { &tags[1], 1 } };
	struct sb_store_block block = { begin_s, "oncpu", "samples", { 10000 }, series, 2 };
	struct sb_profile *profile;

	assert_int_equal(sb_profile_new(&profile), 0);
	add_random(profile, 0);
	add_random(profile, 1);
	assert_int_equal(sb_profile_seal(profile), 0);
	block.profile = profile;
	assert_int_equal(sb_store_put(store, &block), 0);
	sb_profile_free(profile);
}

/* The last blocks of a day and the first ones of the next, of which no sum is of use: two files. */
static int64_t begin_of(int block)
{
	return T0 + 10ll * (block - NR_BLOCKS / 2);
}

static struct sb_store *fill(void)
{
	struct sb_store *store;
	int i;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	for (i = 0; i < NR_BLOCKS; i++)
		put_block(store, begin_of(i));
	return store;
}

static void ask(struct sb_store *store, int64_t from_s, int64_t to_s, uint32_t nr_nodes_max,
		struct list *to, struct sb_store_answer *answer)
{
	struct sb_row row;
	struct sb_ask of = { .from_s = from_s, .to_s = to_s, .nr_nodes_max = nr_nodes_max };
	struct sb_profile *profile;
	char path[PATH_BYTES_MAX];
	size_t i, k, len;

	assert_int_equal(sb_ask_profile(store, &of, &profile, answer), 0);
	for (i = 0; i < sb_profile_nr_stacks(profile); i++) {
		row = sb_profile_row_at(profile, i);
		for (k = len = 0, path[0] = '\0'; k < row.nr; k++)
			len += (size_t)snprintf(path + len, sizeof(path) - len, "%s%s",
						k ? ";" : "",
						sb_profile_frame_at(profile, row.frames[k])->name);
		/* No stack is there twice. */
		assert_null(find(to, path));
		add(to, path, row.weight);
	}
	sb_profile_free(profile);
}

/* What is left of all files, and what their cuts left aside, cut once again: that weighs on the
 * nodes above it, and is nobody's own. */
static uint64_t cut_again(struct list *left, const struct list *others, size_t nr_max,
			  struct list *want)
{
	struct list all = {}, kept = {}, cut_now = {};
	uint64_t cut_weight = 0;
	size_t i;

	for (i = 0; i < left->items.nr; i++)
		add(&all, left->items.at[i].path, left->items.at[i].weight);
	for (i = 0; i < others->items.nr; i++)
		add(&all, others->items.at[i].path, others->items.at[i].weight);
	cut(&all, nr_max, &kept, &cut_now);
	for (i = 0; i < kept.items.nr; i++) {
		const struct item *item = &kept.items.at[i], *self = find(left, item->path);
		uint64_t weight = self ? self->weight : 0;

		if (weight)
			add(want, item->path, weight);
		if (item->weight > weight)
			add(&cut_now, item->path, item->weight - weight);
	}
	for (i = 0; i < cut_now.items.nr; i++) {
		const struct item *item = &cut_now.items.at[i];
		char path[PATH_BYTES_MAX + 8];

		snprintf(path, sizeof(path), "%s%s(other)", item->path, item->path[0] ? ";" : "");
		add(want, path, item->weight);
		cut_weight += item->weight;
	}
	sb_vec_release(&all.items);
	sb_vec_release(&kept.items);
	sb_vec_release(&cut_now.items);
	return cut_weight;
}

/* Each file is cut to twice as many. */
static void expect(struct sb_store *store, int64_t from_s, int64_t to_s, uint32_t nr_nodes_max)
{
	const int64_t ends[] = { from_s, from_s < T0 && to_s > T0 ? T0 : to_s, to_s };
	struct list left = {}, others = {}, want = {}, have = {};
	struct sb_store_answer answer;
	size_t i;

	for (i = 0; i < 2 && ends[i] < ends[i + 1]; i++) {
		struct list whole = {};

		ask(store, ends[i], ends[i + 1], 0, &whole, &answer);
		cut(&whole, 2 * (size_t)nr_nodes_max, &left, &others);
		sb_vec_release(&whole.items);
	}
	ask(store, from_s, to_s, nr_nodes_max, &have, &answer);
	assert_int_equal(answer.cut_weight, cut_again(&left, &others, nr_nodes_max, &want));
	assert_int_equal(have.items.nr, want.items.nr);
	for (i = 0; i < want.items.nr; i++) {
		struct item *item = find(&have, want.items.at[i].path);

		assert_non_null(item);
		assert_int_equal(item->weight, want.items.at[i].weight);
	}
	sb_vec_release(&left.items);
	sb_vec_release(&others.items);
	sb_vec_release(&want.items);
	sb_vec_release(&have.items);
}

/* One file or both, few nodes or many; some ranges again, and after the store has grown. */
static void test_cut(void **state)
{
	static const uint32_t nr_nodes[] = { 1, 2, 5, 20, 60, 100, 200, 100000 };
	struct sb_store *store = fill();
	int i, first, nr;

	for (i = 0; i < 40; i++) {
		if (i % 10 == 9)
			put_block(store, begin_of((int)random_of(NR_BLOCKS)));
		first = (int)random_of(NR_BLOCKS);
		nr = 1 + (int)random_of((uint32_t)(NR_BLOCKS - first));
		expect(store, begin_of(first), begin_of(first + nr), nr_nodes[i % 8]);
	}
	sb_store_close(store);
}

/* Nothing there, and nothing wanted. */
static void test_nothing(void **state)
{
	struct sb_store *store = fill();
	struct sb_store_answer answer;
	struct list list = {};

	ask(store, T0 + 86400, T0 + 90000, 100, &list, &answer);
	assert_int_equal(list.items.nr, 0);
	assert_int_equal(answer.weight, 0);
	sb_store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
