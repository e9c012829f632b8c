// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "kinds/metadata.h"

/* All keys in the order of headers. */
static const char *const keys[][2] = {
	{ "v", "1" },
	{ "kind", "io" },
	{ "unit", "bytes" },
	{ "dur_us", "0" },
	{ "start_us", "17" },
	{ "hz", "99" },
	{ "cpus", "8" },
	{ "by", "comm,cpu" },
	{ "n", "12" },
	{ "labels", "a,b" },
	{ "lost", "0" },
	{ "trunc", "3" },
	{ "nosym", "0" },
	{ "idle", "4" },
	{ "of", "held" },
	{ "accounted", "0.00" },
	{ "governed_us", "5" },
	{ "every", "2.5ms" },
	{ "rate_hz", "25..99" },
	{ "attached", "0.2500" },
	{ "from", "x" },
	{ "to", "y" },
	{ "tags", "service=car" },
	{ "lost_weight", "6" },
	{ "damaged", "1" },
	{ "limited", "7" },
	{ "norm", "rate" },
	{ "n_a", "8" },
	{ "dur_us_a", "9" },
	{ "per_a", "1.500000" },
	{ "n_b", "10" },
	{ "dur_us_b", "11" },
	{ "per_b", "0.333333" },
	{ "rate", "cpus" },
};

#define NR_KEYS (sizeof(keys) / sizeof(keys[0]))

static void expect_all(const struct sb_metadata *metadata)
{
	struct sb_metadatum at = {};
	size_t i;

	for (i = 0; i < NR_KEYS; i++) {
		assert_true(sb_metadata_next(metadata, &at));
		assert_string_equal(at.key, keys[i][0]);
		assert_string_equal(at.value, keys[i][1]);
	}
	assert_false(sb_metadata_next(metadata, &at));
}

/* What is read is written again, and no two keys share a member. */
static void test_all_keys(void **state)
{
	struct sb_metadata metadata = {}, copy = {};
	struct sb_metadatum at = {};
	struct sb_arena texts = {};
	size_t i;

	assert_false(sb_metadata_next(&metadata, &at));
	for (i = NR_KEYS; i-- > 0;)
		assert_int_equal(sb_metadata_read(&metadata, keys[i][0], keys[i][1]), 0);
	expect_all(&metadata);
	assert_int_equal(sb_metadata_merge(&copy, &metadata, &texts), 0);
	assert_ptr_not_equal(copy.kind, metadata.kind);
	expect_all(&copy);
	sb_arena_release(&texts);
}

static void test_not_valid(void **state)
{
	static const char *const wrong[] = { "", "-1", "1x", "x", "1e3", "9223372036854775809" };
	struct sb_metadata metadata = {};
	struct sb_metadatum at = {};
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(sb_metadata_read(&metadata, "lost", wrong[i]), -EINVAL);
		assert_int_equal(sb_metadata_read(&metadata, "accounted", wrong[i]), -EINVAL);
	}
	assert_int_equal(sb_metadata_read(&metadata, "none", "1"), -ENOENT);
	assert_false(sb_metadata_next(&metadata, &at));
	/* A rate of 0 is none. */
	assert_int_equal(sb_metadata_read(&metadata, "hz", "0"), 0);
	assert_false(sb_metadata_next(&metadata, &at));
}

static void test_merge(void **state)
{
	static const struct sb_metadata a = {
		.unit = "us",
		.nr_samples = 3,
		.nr_lost = INT64_MAX,
		.accounted = 99.654,
		.hz = 99,
		.lost_weight = 5,
		.nr_damaged = 1,
		.limited_weight = 8,
		.governed_us = 9,
		.has_nr_truncated = true,
	};
	static const struct sb_metadata b = {
		.unit = "bytes",
		.kind = "io",
		.nr_samples = 4,
		.nr_lost = 1,
		.accounted = 98.246,
		.hz = 49,
		.idle_weight = 2,
		.lost_weight = 6,
		.nr_damaged = 2,
		.limited_weight = 1,
		.governed_us = 1,
		.has_nr_truncated = true,
	};
	struct sb_metadata sum = {};
	struct sb_arena texts = {};

	assert_int_equal(sb_metadata_merge(&sum, &a, &texts), 0);
	assert_true(sum.has_nr_samples && sum.has_nr_truncated && sum.has_accounted);
	assert_false(sum.has_dur_us || sum.has_nr_unnamed);
	/* As it would be read from its text. */
	assert_true(sum.accounted == 99.65);
	assert_int_equal(sb_metadata_merge(&sum, &b, &texts), -ERANGE);
	assert_string_equal(sum.unit, "us");
	assert_string_equal(sum.kind, "io");
	assert_int_equal(sum.nr_samples, 7);
	assert_true(sum.nr_lost == INT64_MAX);
	assert_int_equal(sum.hz, 99);
	assert_int_equal(sum.idle_weight, 2);
	assert_int_equal(sum.nr_truncated, 0);
	assert_int_equal(sum.lost_weight, 11);
	assert_int_equal(sum.nr_damaged, 3);
	assert_int_equal(sum.limited_weight, 9);
	assert_int_equal(sum.governed_us, 10);
	assert_true(sum.accounted == 98.25);
	sb_arena_release(&texts);
}

static void test_print(void **state)
{
	static const struct sb_metadata metadata = {
		.version = SB_METADATA_VERSION,
		.kind = "io",
		.attached = 0.00001,
		.tags = "a b;c\n",
		.has_nr_lost = true,
		.has_attached = true,
	};
	struct sb_str line = {};

	assert_int_equal(sb_metadata_print(&line, &metadata), 0);
	assert_int_equal(sb_metadata_print_part(&line, "tag:x", ""), 0);
	assert_string_equal(line.s, "#stackbpf;v=1;kind=io;lost=0;attached=0.0000;"
				    "tags=a_b:c?;tag:x=");
	sb_str_release(&line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_keys),
		cmocka_unit_test(test_not_valid),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_print),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
