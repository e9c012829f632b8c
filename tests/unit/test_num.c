// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/num.h"

static void test_u64(void **state)
{
	uint64_t val = 7;

	assert_int_equal(sb_parse_u64("0", 10, &val), 0);
	assert_int_equal(val, 0);
	assert_int_equal(sb_parse_u64("18446744073709551615", UINT64_MAX, &val), 0);
	assert_true(val == UINT64_MAX);
	assert_int_equal(sb_parse_u64("18446744073709551616", UINT64_MAX, &val), -ERANGE);
	assert_int_equal(sb_parse_u64("11", 10, &val), -ERANGE);
	assert_int_equal(sb_parse_u64("", 10, &val), -EINVAL);
	assert_int_equal(sb_parse_u64("-1", 10, &val), -EINVAL);
	assert_int_equal(sb_parse_u64("1 ", 10, &val), -EINVAL);
	assert_true(val == UINT64_MAX); /* untouched on failure */
}

static void test_duration(void **state)
{
	uint64_t ns;

	assert_int_equal(sb_parse_duration("5", 1000000000, &ns), 0);
	assert_int_equal(ns, 5000000000);
	assert_int_equal(sb_parse_duration("500ms", 1, &ns), 0);
	assert_int_equal(ns, 500000000);
	assert_int_equal(sb_parse_duration("1.5m", 1, &ns), 0);
	assert_int_equal(ns, 90000000000);
	assert_int_equal(sb_parse_duration("1.", 1, &ns), -EINVAL);
	assert_int_equal(sb_parse_duration("1x", 1, &ns), -EINVAL);
	assert_int_equal(sb_parse_duration("-1s", 1, &ns), -EINVAL);
	assert_int_equal(sb_parse_duration("99999999999h", 1, &ns), -ERANGE);
}

static void test_bytes(void **state)
{
	uint64_t val;

	assert_int_equal(sb_parse_bytes("64M", &val), 0);
	assert_int_equal(val, 64u << 20);
	assert_int_equal(sb_parse_bytes("17", &val), 0);
	assert_int_equal(val, 17);
	assert_int_equal(sb_parse_bytes("1T", &val), -EINVAL);
	assert_int_equal(sb_parse_bytes("1MM", &val), -EINVAL);
	assert_int_equal(sb_parse_bytes("99999999999999999G", &val), -ERANGE);
}

static void test_list(void **state)
{
	sb_vec_u32 list = {};

	assert_int_equal(sb_parse_list("1,2,5-7", 10, &list), 0);
	assert_int_equal(list.nr, 5);
	assert_int_equal(list.at[4], 7);
	assert_int_equal(sb_parse_list("7-5", 10, &list), -EINVAL);
	assert_int_equal(sb_parse_list("1,", 10, &list), -EINVAL);
	assert_int_equal(sb_parse_list("11", 10, &list), -ERANGE);
	assert_int_equal(sb_parse_list("0-4000000000", UINT32_MAX, &list), -E2BIG);
	sb_vec_release(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_u64),
		cmocka_unit_test(test_duration),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
