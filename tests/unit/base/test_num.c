// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/cleanup.h"
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
	assert_int_equal(sb_parse_u64("99999999999999999999x", 10, &val), -ERANGE);
	assert_true(val == UINT64_MAX); /* untouched on failure */
}

static void test_hex(void **state)
{
	uint64_t val = 7;

	assert_int_equal(sb_parse_hex("0xfFffFfff81000000", &val), 0);
	assert_true(val == 0xffffffff81000000);
	assert_int_equal(sb_parse_hex("10", &val), 0);
	assert_int_equal(val, 16);
	assert_int_equal(sb_parse_hex("0x", &val), -EINVAL);
	assert_int_equal(sb_parse_hex("", &val), -EINVAL);
	assert_int_equal(sb_parse_hex("0x1g", &val), -EINVAL);
	assert_int_equal(sb_parse_hex("10000000000000000", &val), -ERANGE);
	assert_int_equal(val, 16);
}

/* The scanners stop at @end, whatever stands behind it. */
static void test_scan(void **state)
{
	const char text[] = "7f00-7fff r-xp";
	const char *p = text;
	uint64_t val = 1;

	assert_true(sb_scan_hex(&p, text + 2, &val));
	assert_int_equal(val, 0x7f);
	assert_ptr_equal(p, text + 2);
	assert_true(sb_scan_hex(&p, text + sizeof(text) - 1, &val));
	assert_int_equal(val, 0);
	assert_ptr_equal(p, text + 4);
	assert_false(sb_scan_hex(&p, text + sizeof(text) - 1, &val)); /* the dash */
	assert_false(sb_scan_u64(&p, p, &val));			      /* nothing left */
	assert_ptr_equal(p, text + 4);
	assert_int_equal(val, 0);
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
	assert_int_equal(sb_parse_duration("99999999999999999999s", 1, &ns), -ERANGE);
	assert_int_equal(sb_parse_duration("0.123456789s", 1, &ns), 0);
	assert_int_equal(ns, 123456789);
	assert_int_equal(sb_parse_duration("0.9999999999999s", 1, &ns), 0);
	assert_int_equal(ns, 999999999);
	assert_int_equal(sb_parse_duration("0.3333333333333333333333333333333s", 1, &ns), 0);
	assert_int_equal(ns, 333333333);
	assert_int_equal(sb_parse_duration("0.5", 1000000, &ns), 0);
	assert_int_equal(ns, 500000);
	assert_int_equal(sb_parse_duration("876000h", 1, &ns), 0);
	assert_int_equal(sb_parse_duration("876001h", 1, &ns), -ERANGE);
	assert_int_equal(sb_parse_duration("s", 1, &ns), -EINVAL);
	assert_int_equal(sb_parse_duration(".5s", 1, &ns), -EINVAL);
	assert_int_equal(sb_parse_duration("1s ", 1, &ns), -EINVAL);
}

static void test_bytes(void **state)
{
	uint64_t val;

	assert_int_equal(sb_parse_bytes("64M", &val), 0);
	assert_int_equal(val, 64u << 20);
	assert_int_equal(sb_parse_bytes("17", &val), 0);
	assert_int_equal(val, 17);
	assert_int_equal(sb_parse_bytes("2k", &val), 0);
	assert_int_equal(val, 2048);
	assert_int_equal(sb_parse_bytes("17179869183G", &val), 0);
	assert_true(val == 17179869183ull << 30);
	assert_int_equal(sb_parse_bytes("17179869184G", &val), -ERANGE);
	assert_int_equal(sb_parse_bytes("1 ", &val), -EINVAL);
	assert_int_equal(sb_parse_bytes("1\x0b", &val), -EINVAL);
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
	assert_int_equal(list.at[2], 5);
	assert_int_equal(sb_parse_list("9", 10, &list), 0); /* appended */
	assert_int_equal(list.nr, 6);
	assert_int_equal(sb_parse_list("7-5", 10, &list), -EINVAL);
	assert_int_equal(sb_parse_list("", 10, &list), -EINVAL);
	assert_int_equal(sb_parse_list("1,,2", 10, &list), -EINVAL);
	assert_int_equal(sb_parse_list("1-", 10, &list), -EINVAL);
	assert_int_equal(sb_parse_list("1-2-3", 10, &list), -EINVAL);
	assert_int_equal(sb_parse_list("!1", 10, &list), -EINVAL);
	assert_int_equal(sb_parse_list("1,99999999999999999999", 10, &list), -ERANGE);
	assert_int_equal(sb_parse_list("1-99999999999999999999,2", 10, &list), -ERANGE);
	assert_int_equal(sb_parse_list("1,", 10, &list), -EINVAL);
	assert_int_equal(sb_parse_list("11", 10, &list), -ERANGE);
	assert_int_equal(sb_parse_list("0-4000000000", UINT32_MAX, &list), -E2BIG);
	assert_int_equal(sb_parse_list("0-65530", UINT32_MAX, &list), -E2BIG);
	assert_int_equal(list.nr, 6); /* as before, after all these failures */
	assert_int_equal(sb_parse_list("4294967290-4294967295", UINT32_MAX, &list), 0);
	assert_int_equal(list.nr, 12);
	assert_true(list.at[11] == UINT32_MAX);
	sb_vec_release(&list);
}

static void test_percent(void **state)
{
	uint32_t ppm = 7;

	assert_int_equal(sb_parse_percent("1", &ppm), 0);
	assert_int_equal(ppm, 10000);
	assert_int_equal(sb_parse_percent("0.25%", &ppm), 0);
	assert_int_equal(ppm, 2500);
	assert_int_equal(sb_parse_percent("100", &ppm), 0);
	assert_int_equal(ppm, 1000000);
	assert_int_equal(sb_parse_percent("0", &ppm), 0);
	assert_int_equal(ppm, 0);
	assert_int_equal(sb_parse_percent("100.1", &ppm), -ERANGE);
	assert_int_equal(sb_parse_percent("", &ppm), -EINVAL);
	assert_int_equal(sb_parse_percent("%", &ppm), -EINVAL);
	assert_int_equal(sb_parse_percent("1s", &ppm), -EINVAL);
	assert_int_equal(sb_parse_percent("1%%", &ppm), -EINVAL);
	assert_int_equal(sb_parse_percent("-1", &ppm), -EINVAL);
	assert_int_equal(sb_parse_percent("1.2.3", &ppm), -EINVAL);
	assert_int_equal(sb_parse_percent("1111111111111111111111111", &ppm), -EINVAL);
}

static void test_format_ns(void **state)
{
	static const struct {
		uint64_t ns;
		const char *want;
	} cases[] = {
		{ 0, "0 ns" },
		{ 999, "999 ns" },
		{ 1000, "1.00 us" },
		{ 1024, "1.02 us" },
		{ 1005, "1.01 us" },
		{ 9995, "10.0 us" },
		{ 9994, "9.99 us" },
		{ 99950, "100 us" },
		{ 999499, "999 us" },
		{ 999500, "1.00 ms" },
		{ 131072000, "131 ms" },
		{ 2500000000, "2.50 s" },
		{ 999500000000, "1000 s" },
		{ UINT64_MAX, "18446744074 s" },
	};
	char number[SB_FORMAT_NS_BYTES], text[SB_FORMAT_NS_BYTES + 4];
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(cases); i++) {
		const char *unit = sb_format_ns(cases[i].ns, number);

		snprintf(text, sizeof(text), "%s %s", number, unit);
		assert_string_equal(text, cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_u64),	cmocka_unit_test(test_hex),
		cmocka_unit_test(test_scan),	cmocka_unit_test(test_duration),
		cmocka_unit_test(test_bytes),	cmocka_unit_test(test_list),
		cmocka_unit_test(test_percent), cmocka_unit_test(test_format_ns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
