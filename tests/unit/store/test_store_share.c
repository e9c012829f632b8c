// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* One user who fills a file of the store loses names; nobody else does, and all weight stays whose
 * it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "store/ask.h"
#include "store/check.h"
#include "store/share.h"
#include "store/store_priv.h"
#include "store_dir.h"

/* 2040-01-01 00:00 UTC. */
#define T0	  2208988800ll
#define NR_HONEST 3000u

/* Stacks of two frames; of @nr_first x @nr_second names. Each weighs 3. */
static struct sb_profile *profile_of(const char *prefix, uint32_t nr, uint32_t nr_second)
{
	struct sb_profile *profile;
	char name[SB_DICT_NAME_MAX];
	uint32_t ids[2], i;

	assert_int_equal(sb_profile_new(&profile), 0);
	for (i = 0; i < nr; i++) {
		snprintf(name, sizeof(name), "%s%u", prefix, i / nr_second);
		ids[0] = frame_of(profile, name);
		snprintf(name, sizeof(name), "%s%u", prefix, i % nr_second);
		ids[1] = frame_of(profile, name);
		assert_int_equal(sb_profile_add(profile, ids, 2, 3), 0);
	}
	assert_int_equal(sb_profile_seal(profile), 0);
	return profile;
}

static const struct sb_tag of_user[] = { { "cgroup", "/user.slice/user-1000.slice/a", false },
					 { "comm", "evil", false },
					 { "uid", "1000", false } };
static const struct sb_tag of_car[] = { { "cgroup", "/system.slice/car.service", false },
					{ "comm", "car", false },
					{ "uid", "0", false } };

static void put(struct sb_store *store, int64_t begin_s, const struct sb_tag tags[3],
		const struct sb_profile *profile)
{
	struct sb_store_series series = { tags, 3 };
	struct sb_store_block block = {
		begin_s, "oncpu", "samples", { 10000 }, &series, 1, profile
	};

	assert_int_equal(sb_store_put(store, &block), 0);
}

/* What one asks for by @rule: the weight of all of it, and of "(other)". */
static uint64_t weigh(struct sb_store *store, const char *rule, uint64_t *ret_other,
		      struct sb_store_answer *answer)
{
	struct sb_tag_rules rules = {};
	struct sb_store_query query = {
		.from_s = T0, .to_s = T0 + 3600, .kind = "oncpu", .rules = &rules
	};
	struct sb_profile *profile;
	uint64_t all = 0;
	size_t i;

	*ret_other = 0;
	assert_int_equal(sb_tag_rules_add(&rules, rule), 0);
	assert_int_equal(sb_profile_new(&profile), 0);
	assert_int_equal(sb_store_query(store, &query, profile, answer), 0);
	assert_int_equal(sb_profile_seal(profile), 0);
	for (i = 0; i < sb_profile_nr_stacks(profile); i++) {
		const struct sb_row row = sb_profile_row_at(profile, i);

		all += row.weight;
		if (!strcmp(sb_profile_frame_at(profile, row.frames[0])->name, "(other)"))
			*ret_other += row.weight;
	}
	sb_profile_free(profile);
	sb_tag_rules_release(&rules);
	assert_int_equal(all, answer->weight);
	return all;
}

static void ignore_wrong(void *arg, const struct sb_store_wrong_sum *sum) {}

static void check_sums(struct sb_store *store)
{
	struct sb_store_sums_check check = { .on_wrong = ignore_wrong, .now_s = T0 + 1200 };

	assert_int_equal(sb_store_check_sums(store, &check), 0);
	assert_true(check.nr_equal > 0);
	assert_int_equal(check.nr_wrong, 0);
}

/* The user's weight is the user's, the service's is the service's, and only the user's has lost
 * names. */
static void expect_fair(struct sb_store *store, uint64_t user, uint64_t car)
{
	struct sb_store_answer answer;
	uint64_t other;

	assert_int_equal(weigh(store, "cgroup=/system.slice/car.service", &other, &answer), car);
	assert_int_equal(other, 0);
	assert_int_equal(answer.all_weight, user + car);
	assert_int_equal(weigh(store, "cgroup=~^/user.slice/user-1000.slice", &other, &answer),
			 user);
	assert_true(other > 0);
	assert_int_equal(other, answer.figure[SB_BLOCK_OTHER]);
}

/* @nr stacks of a user, then some of a service; blocks of ten seconds, and their sum. */
static void fill_and_expect(struct sb_profile *user, uint64_t nr, bool is_opened_again)
{
	struct sb_profile *car = profile_of("car", NR_HONEST, 50);
	struct sb_store *store;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	put(store, T0, of_user, user);
	if (is_opened_again) {
		sb_store_close(store);
		assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	}
	put(store, T0 + 10, of_car, car);
	expect_fair(store, 3 * nr, 3ull * NR_HONEST);
	/* The sum of ten minutes is of a file, and a dictionary, of its own. */
	put(store, T0 + 600, of_car, car);
	expect_fair(store, 3 * nr, 6ull * NR_HONEST);
	check_sums(store);
	sb_store_close(store);
	sb_profile_free(user);
	sb_profile_free(car);
}

static void test_rows(void **state)
{
	const uint32_t nr = SB_DICT_ROWS_MAX + 5000;

	fill_and_expect(profile_of("x", nr, 2048), nr, false);
}

/* The next writer of the same file knows whose it is filled with. */
static void test_opened_again(void **state)
{
	const uint32_t nr = SB_DICT_ROWS_MAX + 5000;

	fill_and_expect(profile_of("x", nr, 2048), nr, true);
}

static void test_text(void **state)
{
	const uint32_t nr = SB_DICT_TEXT_MAX / 200 + 5000;
	char prefix[201];

	memset(prefix, 'y', sizeof(prefix) - 1);
	prefix[sizeof(prefix) - 1] = '\0';
	fill_and_expect(profile_of(prefix, nr, nr), nr, false);
}

/* More than one batch. */
#define NR_MIXED  (5 * SB_DICT_BATCH / 2)
#define NR_CHAIN  600u
#define IS_NEW(i) ((i) % 3 == 1)

/* Make a profile whose rows the store looks up together: two of three are stacks of @filling, and
 * each third is new. @new_name: new stacks have a new frame, whose name begins so and for which
 * there is no room; NULL: their frames are known, and there is no room for the node. */
static struct sb_profile *mix(const struct sb_profile *filling, const char *new_name)
{
	struct sb_profile *mixed;
	uint32_t ids[SB_DICT_DEPTH_MAX], i;
	char name[SB_DICT_NAME_MAX];
	size_t k;

	assert_int_equal(sb_profile_new(&mixed), 0);
	for (i = 0; i < NR_MIXED; i++) {
		struct sb_row row = sb_profile_row_at(filling, i);

		for (k = 0; k < row.nr; k++)
			assert_int_equal(
				sb_profile_frame(mixed, sb_profile_frame_at(filling, row.frames[k]),
						 &ids[k]),
				0);
		if (IS_NEW(i)) {
			snprintf(name, sizeof(name), "%s%u", new_name ? new_name : "", i);
			row.nr = 2;
			ids[1] = new_name ? frame_of(mixed, name) : ids[0];
		}
		/* They are added in the order of their weights. */
		assert_int_equal(sb_profile_add(mixed, ids, row.nr, 1000 - i), 0);
	}
	assert_int_equal(sb_profile_seal(mixed), 0);
	return mixed;
}

static void check_stack(const struct sb_profile *answered, const struct sb_row *have,
			const struct sb_profile *mixed)
{
	const size_t i = 1000 - have->weight;
	struct sb_row want;
	size_t k;

	assert_true(i < NR_MIXED && !IS_NEW(i));
	want = sb_profile_row_at(mixed, i);
	assert_int_equal(have->nr, want.nr);
	for (k = 0; k < want.nr; k++)
		assert_string_equal(sb_profile_frame_at(answered, have->frames[k])->name,
				    sb_profile_frame_at(mixed, want.frames[k])->name);
}

static void expect_mixed(struct sb_store *store, const struct sb_profile *mixed)
{
	struct sb_store_query query = { .from_s = T0 + 10, .to_s = T0 + 20, .kind = "oncpu" };
	struct sb_profile *answered;
	struct sb_store_answer answer;
	uint64_t new = 0;
	size_t i, nr_new = 0;

	for (i = 0; i < NR_MIXED; i++)
		if (IS_NEW(i))
			nr_new++, new += 1000 - i;
	assert_int_equal(sb_profile_new(&answered), 0);
	assert_int_equal(sb_store_query(store, &query, answered, &answer), 0);
	assert_int_equal(sb_profile_seal(answered), 0);
	assert_int_equal(answer.figure[SB_BLOCK_OTHER], new);
	assert_int_equal(sb_profile_nr_stacks(answered), NR_MIXED - nr_new + 1);
	for (i = 0; i < sb_profile_nr_stacks(answered); i++) {
		const struct sb_row row = sb_profile_row_at(answered, i);

		if (strcmp(sb_profile_frame_at(answered, row.frames[0])->name, "(other)"))
			check_stack(answered, &row, mixed);
		else
			assert_int_equal(row.weight, new);
	}
	sb_profile_free(answered);
}

static void fill_and_mix(struct sb_profile *filling, const char *new_name)
{
	struct sb_profile *mixed = mix(filling, new_name);
	struct sb_store *store;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	put(store, T0, of_user, filling);
	put(store, T0 + 10, of_user, mixed);
	expect_mixed(store, mixed);
	sb_store_close(store);
	sb_profile_free(filling);
	sb_profile_free(mixed);
}

static void test_batch_without_frames(void **state)
{
	const uint32_t nr = SB_DICT_TEXT_MAX / 500 + 5000;
	char prefix[501], name[501];

	memset(prefix, 'y', sizeof(prefix) - 1);
	memset(name, 'z', sizeof(name) - 1);
	prefix[sizeof(prefix) - 1] = name[sizeof(name) - 1] = '\0';
	fill_and_mix(profile_of(prefix, nr, nr), name);
}

/* Few names, and stacks of so many of them that there are more nodes than a file may have. */
static void test_batch_without_nodes(void **state)
{
	struct sb_profile *filling;
	uint32_t ids[NR_CHAIN], path[SB_DICT_DEPTH_MAX], i, k;
	char name[16];

	assert_int_equal(sb_profile_new(&filling), 0);
	for (i = 0; i < NR_CHAIN; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		ids[i] = frame_of(filling, name);
	}
	for (i = 0; i < NR_CHAIN; i++) {
		for (k = 0; k < SB_DICT_DEPTH_MAX; k++)
			path[k] = ids[(i + k) % NR_CHAIN];
		assert_int_equal(sb_profile_add(filling, path, SB_DICT_DEPTH_MAX, 3), 0);
	}
	assert_int_equal(sb_profile_seal(filling), 0);
	fill_and_mix(filling, NULL);
}

/* As many names of threads as there may be, in as many cgroups as the user may make. */
static void test_tags(void **state)
{
	const uint32_t nr = 300000;
	struct sb_profile *all, *car = profile_of("car", NR_HONEST, 50);
	struct sb_store_series *series = calloc(nr, sizeof(*series));
	struct sb_tag(*tags)[3] = calloc(nr, sizeof(*tags));
	struct sb_store_block block = { T0, "oncpu", "samples", { 10000 }, series, nr };
	char(*text)[2][64] = calloc(nr, sizeof(*text));
	struct sb_store *store;
	uint32_t i, ids[2];

	assert_true(series && tags && text);
	assert_int_equal(sb_profile_new(&all), 0);
	ids[0] = ids[1] = frame_of(all, "x0");
	for (i = 0; i < nr; i++) {
		snprintf(text[i][0], sizeof(text[i][0]), "/user.slice/user-1000.slice/%u", i);
		snprintf(text[i][1], sizeof(text[i][1]), "comm%u", i);
		tags[i][0] = (struct sb_tag){ "cgroup", text[i][0], false };
		tags[i][1] = (struct sb_tag){ "comm", text[i][1], false };
		tags[i][2] = (struct sb_tag){ "uid", "1000", false };
		series[i] = (struct sb_store_series){ tags[i], 3 };
		assert_int_equal(sb_profile_add_row(all, &(struct sb_row){ .frames = ids,
									   .nr = 2,
									   .series = i,
									   .weight = 3 }),
				 0);
	}
	assert_int_equal(sb_profile_seal(all), 0);
	block.profile = all;
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	for (i = 0; i < 4; i++) {
		uint32_t k;

		assert_int_equal(sb_store_put(store, &block), 0);
		for (k = 0; k < nr; k++)
			text[k][1][0] = (char)('d' + i);
	}
	put(store, T0 + 10, of_car, car);
	expect_fair(store, 4 * 3ull * nr, 3ull * NR_HONEST);
	sb_store_close(store);
	sb_profile_free(all);
	sb_profile_free(car);
	free(series);
	free(tags);
	free(text);
}

/* A name that is too long for a store is cut, which is marked and counted, and not within a
 * character. */
static void test_long_names(void **state)
{
	struct sb_profile *profile, *answered;
	struct sb_store_query query = { .from_s = T0, .to_s = T0 + 10, .kind = "oncpu" };
	struct sb_store_answer answer;
	struct sb_store *store;
	char name[5000];
	const char *have;
	uint32_t id;
	size_t i;

	for (i = 0; i + 2 < sizeof(name); i += 2)
		memcpy(name + i, "\xc3\xa4", 2);
	name[i] = '\0';
	assert_int_equal(sb_profile_new(&profile), 0);
	id = frame_of(profile, name);
	assert_int_equal(sb_profile_add(profile, &id, 1, 3), 0);
	assert_int_equal(sb_profile_seal(profile), 0);
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	put(store, T0, of_user, profile);
	assert_int_equal(sb_profile_new(&answered), 0);
	assert_int_equal(sb_store_query(store, &query, answered, &answer), 0);
	assert_int_equal(sb_profile_seal(answered), 0);
	have = sb_profile_frame_at(answered, sb_profile_row_at(answered, 0).frames[0])->name;
	assert_true(strlen(have) <= SB_DICT_NAME_MAX && strlen(have) > SB_DICT_NAME_MAX - 3);
	assert_string_equal(have + strlen(have) - 5, "\xc3\xa4...");
	assert_memory_equal(have, name, strlen(have) - 3);
	assert_int_equal(answer.figure[SB_BLOCK_NAMES_CUT], 1);
	sb_profile_free(profile);
	sb_profile_free(answered);
	sb_store_close(store);
}

/* Where memory is, of a process or of the kernel, is in no store; offsets in files are. */
static void test_addresses(void **state)
{
	static const struct {
		const char *name, *want;
		bool is_unnamed;
	} cases[] = {
		{ "[anon+0x7f0102030405]", "[anon]", true },
		{ "[kernel+0xffffffff81000000]", "[kernel]", true },
		{ "[libc.so.6+0x1234]", "[libc.so.6+0x1234]", true },
		{ "[unknown]", "[unknown]", true },
		{ "operator+0x7f0102030405]", "operator+0x7f0102030405]", false },
	};
	struct sb_store_query query = { .from_s = T0, .to_s = T0 + 10, .kind = "oncpu" };
	struct sb_store_answer answer;
	struct sb_profile *profile, *answered;
	struct sb_store *store;
	uint32_t id;
	size_t i;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	for (i = 0; i < SB_ARRAY_SIZE(cases); i++) {
		struct sb_frame frame = { .name = cases[i].name,
					  .is_unnamed = cases[i].is_unnamed };

		assert_int_equal(sb_profile_new(&profile), 0);
		assert_int_equal(sb_profile_frame(profile, &frame, &id), 0);
		assert_int_equal(sb_profile_add(profile, &id, 1, 3), 0);
		assert_int_equal(sb_profile_seal(profile), 0);
		query.from_s = T0 + 10 * (int64_t)i;
		query.to_s = query.from_s + 10;
		put(store, query.from_s, of_user, profile);
		assert_int_equal(sb_profile_new(&answered), 0);
		assert_int_equal(sb_store_query(store, &query, answered, &answer), 0);
		assert_int_equal(sb_profile_seal(answered), 0);
		id = sb_profile_row_at(answered, 0).frames[0];
		assert_string_equal(sb_profile_frame_at(answered, id)->name, cases[i].want);
		sb_profile_free(profile);
		sb_profile_free(answered);
	}
	sb_store_close(store);
}

static void check_owner(const char *cgroup, const char *owner)
{
	assert_int_equal(sb_share_cgroup(cgroup), strlen(owner));
	assert_memory_equal(cgroup, owner, strlen(owner));
}

static void test_owners(void **state)
{
	check_owner("/user.slice/user-1000.slice/user@1000.service/a.slice",
		    "/user.slice/user-1000.slice");
	check_owner("/system.slice/nginx.service/sub", "/system.slice/nginx.service");
	check_owner("/system.slice/system-getty.slice/getty@tty1.service",
		    "/system.slice/system-getty.slice/getty@tty1.service");
	check_owner("/kubepods.slice/kubepods-pod1.slice/cri-2.scope/x",
		    "/kubepods.slice/kubepods-pod1.slice/cri-2.scope");
	check_owner("/docker/0123/sub", "/docker/0123");
	check_owner("/init.scope/x", "/init.scope");
	check_owner("/", "");
	check_owner("", "");
	check_owner("(other)", "");
}

/* Whoever uses least is served first; the whole is never exceeded. */
static void test_rule(void **state)
{
	const uint64_t max = 1000;
	uint64_t own[3] = {}, all = 0, i;

	while (sb_share_allows(max, all, own[0]))
		own[0]++, all++;
	assert_true(own[0] >= 740 && own[0] <= 760);
	for (i = 0; i < 50; i++, own[1]++, all++)
		assert_true(sb_share_allows(max, all, own[1]));
	assert_false(sb_share_allows(max, all, own[0]));
	while (all < max && sb_share_allows(max, all, own[1]))
		own[1]++, all++;
	assert_true(sb_share_allows(max, all, own[2]));
	assert_false(sb_share_allows(max, max, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rule),
		cmocka_unit_test(test_owners),
		cmocka_unit_test_setup_teardown(test_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_opened_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_text, setup, teardown),
		cmocka_unit_test_setup_teardown(test_batch_without_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(test_batch_without_nodes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tags, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_addresses, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
