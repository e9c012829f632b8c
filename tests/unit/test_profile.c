// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/profile.h"

static uint32_t frame(struct sb_profile *profile, const char *name, enum sb_frame_kind kind)
{
	uint32_t id;

	assert_int_equal(
		sb_profile_frame(profile, &(struct sb_frame){ .name = name, .kind = kind }, &id),
		0);
	return id;
}

static void test_frames_are_interned(void **state)
{
	struct sb_profile *profile;
	char name[] = "f";
	uint32_t f, g;

	assert_int_equal(sb_profile_new(&profile), 0);
	f = frame(profile, name, SB_FRAME_USER);
	name[0] = 'x'; /* the profile has its own copy */
	assert_string_equal(sb_profile_frame_at(profile, f)->name, "f");
	assert_int_equal(frame(profile, "f", SB_FRAME_USER), f);
	g = frame(profile, "f", SB_FRAME_KERNEL);
	assert_int_not_equal(g, f);
	assert_null(sb_profile_frame_at(profile, f)->module);
	assert_int_equal(sb_profile_nr_frames(profile), 2);
	sb_profile_free(profile);
}

static void test_equal_stacks_add_up_and_sort(void **state)
{
	struct sb_profile *profile;
	uint32_t ab[2], ba[2];
	const uint32_t *ids;
	uint64_t weight;
	size_t nr;

	assert_int_equal(sb_profile_new(&profile), 0);
	ab[0] = ba[1] = frame(profile, "b", SB_FRAME_USER);
	ab[1] = ba[0] = frame(profile, "a", SB_FRAME_USER);
	assert_int_equal(sb_profile_add(profile, ab, 2, 5), 0);
	assert_int_equal(sb_profile_add(profile, ba, 2, 7), 0);
	assert_int_equal(sb_profile_add(profile, ab, 1, 7), 0);
	assert_int_equal(sb_profile_add(profile, ab, 2, UINT32_MAX), 0);
	assert_int_equal(sb_profile_seal(profile), 0);
	assert_int_equal(sb_profile_nr_stacks(profile), 3);
	ids = sb_profile_stack_at(profile, 0, &nr, &weight);
	assert_int_equal(weight, 5ull + UINT32_MAX);
	assert_int_equal(nr, 2);
	assert_int_equal(ids[0], ab[0]);
	/* Equal weights: by name, "a;b" before "b". */
	ids = sb_profile_stack_at(profile, 1, &nr, &weight);
	assert_int_equal(ids[0], ba[0]);
	assert_int_equal(sb_profile_weight(profile), 19ull + UINT32_MAX);
	sb_profile_free(profile);
}

static void test_many_stacks_against_sums(void **state)
{
	enum { NR = 500 };
	uint64_t want[NR] = {}, weight, sum = 0;
	struct sb_profile *profile;
	uint32_t ids[NR];
	char name[16];
	size_t i, nr;

	srand(7);
	assert_int_equal(sb_profile_new(&profile), 0);
	for (i = 0; i < NR; i++) {
		snprintf(name, sizeof(name), "f%zu", i);
		ids[i] = frame(profile, name, SB_FRAME_USER);
	}
	for (i = 0; i < 20000; i++) {
		size_t which = (size_t)rand() % NR;

		weight = (uint64_t)rand() % 100;
		want[which] += weight;
		assert_int_equal(sb_profile_add(profile, &ids[which], 1, weight), 0);
	}
	assert_int_equal(sb_profile_seal(profile), 0);
	for (i = 0; i < sb_profile_nr_stacks(profile); i++) {
		const uint32_t *at = sb_profile_stack_at(profile, i, &nr, &weight);

		assert_int_equal(weight, want[*at]);
		sum += weight;
	}
	assert_int_equal(sum, sb_profile_weight(profile));
	sb_profile_free(profile);
}

/* The frames of the two have other numbers; the original goes on afterwards. */
static void test_merge(void **state)
{
	struct sb_profile *from, *to;
	uint32_t a, b, ids[2];
	const uint32_t *merged;
	uint64_t weight;
	size_t nr;

	assert_int_equal(sb_profile_new(&from), 0);
	assert_int_equal(sb_profile_new(&to), 0);
	a = frame(from, "a", SB_FRAME_USER);
	b = frame(from, "b", SB_FRAME_KERNEL);
	assert_int_equal(sb_profile_add(from, (uint32_t[]){ a, b }, 2, 5), 0);
	assert_int_equal(sb_profile_add(from, (uint32_t[]){ b }, 1, 3), 0);
	assert_int_equal(sb_profile_meta(from, "kind", "oncpu"), 0);
	ids[1] = frame(to, "b", SB_FRAME_KERNEL);
	ids[0] = frame(to, "a", SB_FRAME_USER);
	assert_int_equal(sb_profile_add(to, ids, 2, 10), 0);
	assert_int_equal(sb_profile_merge(to, from), 0);
	assert_int_equal(sb_profile_add(from, (uint32_t[]){ a }, 1, 100), 0);
	assert_int_equal(sb_profile_seal(to), 0);
	assert_int_equal(sb_profile_nr_stacks(to), 2);
	assert_int_equal(sb_profile_weight(to), 18);
	merged = sb_profile_stack_at(to, 0, &nr, &weight);
	assert_int_equal(weight, 15);
	assert_int_equal(nr, 2);
	assert_memory_equal(merged, ids, sizeof(ids));
	assert_null(sb_profile_meta_get(to, "kind"));
	assert_int_equal(sb_profile_weight(from), 108);
	sb_profile_free(from);
	sb_profile_free(to);
}

static void test_meta(void **state)
{
	struct sb_profile *profile;
	const char *value;

	assert_int_equal(sb_profile_new(&profile), 0);
	assert_int_equal(sb_profile_meta(profile, "kind", "%s", "oncpu"), 0);
	assert_int_equal(sb_profile_meta(profile, "n", "%d", 12), 0);
	assert_string_equal(sb_profile_meta_get(profile, "n"), "12");
	assert_null(sb_profile_meta_get(profile, "lost"));
	assert_string_equal(sb_profile_meta_at(profile, 0, &value), "kind");
	assert_string_equal(value, "oncpu");
	assert_null(sb_profile_meta_at(profile, 2, &value));
	sb_profile_free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames_are_interned),
		cmocka_unit_test(test_equal_stacks_add_up_and_sort),
		cmocka_unit_test(test_many_stacks_against_sums),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_meta),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
