// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/str.h"

static void test_append(void **state)
{
	struct sb_str str = {};

	assert_null(str.s);
	assert_int_equal(sb_str_add(&str, ""), 0);
	assert_string_equal(str.s, ""); /* NUL-terminated as soon as anything was added */
	assert_int_equal(sb_str_add(&str, "a;"), 0);
	assert_int_equal(sb_str_addc(&str, 'b'), 0);
	assert_int_equal(sb_str_addn(&str, "c\0d", 3), 0);
	assert_int_equal(str.len, 6);
	assert_memory_equal(str.s, "a;bc\0d", 7);
	assert_int_equal(sb_str_addf(&str, "%s-%d", "x", -5), 0);
	assert_memory_equal(str.s, "a;bc\0dx--5", 11);
	assert_int_equal(str.len, 10);
	sb_str_clear(&str);
	assert_int_equal(str.len, 0);
	assert_string_equal(str.s, "");
	sb_str_release(&str);
	assert_null(str.s);
	sb_str_clear(&str); /* usable, empty, after the release */
	assert_int_equal(sb_str_add(&str, "again"), 0);
	assert_string_equal(str.s, "again");
	sb_str_release(&str);
}

static void test_decimal(void **state)
{
	static const struct {
		uint64_t val;
		const char *text;
	} rows[] = {
		{ 0, "0" },
		{ 9, "9" },
		{ 10, "10" },
		{ 1234567890, "1234567890" },
		{ UINT64_MAX, "18446744073709551615" },
	};
	struct sb_str str = {};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sb_str_clear(&str);
		assert_int_equal(sb_str_addu(&str, rows[i].val), 0);
		assert_string_equal(str.s, rows[i].text);
	}
	sb_str_release(&str);
}

/* Every length around each growth step, by both ways to append. */
static void test_growth(void **state)
{
	struct sb_str a = {}, b = {};
	size_t i;

	for (i = 0; i < 5000; i++) {
		assert_int_equal(sb_str_addc(&a, (char)('a' + i % 26)), 0);
		assert_int_equal(sb_str_addf(&b, "%c", (char)('a' + i % 26)), 0);
		assert_int_equal(a.len, i + 1);
		assert_true(a.cap > a.len);
		assert_int_equal(a.s[a.len], '\0');
	}
	assert_int_equal(b.len, a.len);
	assert_string_equal(a.s, b.s);
	sb_str_release(&a);
	sb_str_release(&b);
}

static void test_too_long(void **state)
{
	struct sb_str str = {};

	assert_int_equal(sb_str_add(&str, "kept"), 0);
	assert_int_equal(sb_str_addn(&str, "", SIZE_MAX), -ENOMEM);
	assert_int_equal(sb_str_addn(&str, "", SIZE_MAX / 2), -ENOMEM);
	assert_string_equal(str.s, "kept");
	assert_int_equal(str.len, 4);
	sb_str_release(&str);
}

/* Every byte at every place of strings around the length of a word. */
static void test_replace_controls(void **state)
{
	char text[24], want[24];
	size_t len, at;
	int c;

	for (len = 0; len < sizeof(text); len++) {
		for (at = 0; at < len; at++) {
			for (c = 0; c < 256; c++) {
				memset(text, 'a', sizeof(text));
				memset(want, 'a', sizeof(want));
				text[at] = (char)c;
				want[at] = (char)(c < 32 || c == 127 ? '?' : c);
				sb_replace_controls(text, len);
				assert_memory_equal(text, want, sizeof(text));
			}
		}
	}
}

static void test_base_name(void **state)
{
	(void)state;
	assert_string_equal(sb_base_name("/usr/lib/libc.so.6"), "libc.so.6");
	assert_string_equal(sb_base_name("program"), "program");
	assert_string_equal(sb_base_name("dir/"), "");
	assert_string_equal(sb_base_name(""), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replace_controls), cmocka_unit_test(test_append),
		cmocka_unit_test(test_decimal),		 cmocka_unit_test(test_growth),
		cmocka_unit_test(test_too_long),	 cmocka_unit_test(test_base_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
