// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "base/utf8.h"

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
				want[at] = (char)(c < 32 || c >= 127 ? '?' : c);
				sb_replace_controls(text, len);
				assert_memory_equal(text, want, sizeof(text));
			}
		}
	}
}

/* What sb_print_clean() makes of @text. */
static void print_to(char *buf, size_t size, const char *text)
{
	FILE *out = fmemopen(buf, size, "w");

	assert_non_null(out);
	sb_print_clean(out, text, strlen(text));
	assert_int_equal(fclose(out), 0);
}

/* Each of these inside of text, at all distances from the begin and the end of eight bytes. */
static const struct {
	const char *s, *want;
} foreign_texts[] = {
	{ "\xc2\x80", "??" }, /* C1 controls, the first and the last; U+009B is CSI */
	{ "\xc2\x9b"
	  "31m",
	  "??31m" },
	{ "\xc2\x9f", "??" },
	{ "\xc2\xa0", "\xc2\xa0" }, /* what follows them is a space */
	{ "\x1b[31m\r\n\t", "?[31m???" },
	{ "\x7f", "?" },
	{ "\xe2\x80\xa7", "\xe2\x80\xa7" },
	{ "\xe2\x80\xa8", "???" }, /* separators of lines and paragraphs */
	{ "\xe2\x80\xa9", "???" },
	{ "\xe2\x80\xaa", "???" }, /* overrides of direction, from the first to the last */
	{ "\xe2\x80\xae", "???" },
	{ "\xe2\x80\xaf", "\xe2\x80\xaf" },
	{ "\xe2\x81\xa5", "\xe2\x81\xa5" },
	{ "\xe2\x81\xa6", "???" }, /* isolates */
	{ "\xe2\x81\xa9", "???" },
	{ "\xe2\x81\xaa", "\xe2\x81\xaa" },
	{ "\xef\xbf\xbf", "???" }, /* a non-character */
	{ "\xed\xa0\x80", "???" }, /* half of a pair of UTF-16 */
	{ "\xc0\x9b", "??" },	   /* U+001B, longer than it need be */
	{ "\xe0\x82\x9b", "???" }, /* U+009B, the same */
	{ "\xf0\x80\x82\x9b", "????" },
	{ "\xf4\x90\x80\x80", "????" }, /* above U+10FFFF */
	{ "\x9b", "?" },		/* as Latin-1 has it */
	{ "\xe9t\xe9", "?t?" },
	{ "\xe2\x80", "??" }, /* cut short */
	{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x98", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x98" },
};

static void test_foreign_texts(void **state)
{
	static const char filler[] = "0123456789";
	char text[64], want[64], printed[64];
	size_t i, before, after;

	(void)state;
	for (i = 0; i < SB_ARRAY_SIZE(foreign_texts); i++) {
		for (before = 0; before < sizeof(filler); before++) {
			after = (before * 3) % sizeof(filler);
			snprintf(text, sizeof(text), "%.*s%s%.*s", (int)before, filler,
				 foreign_texts[i].s, (int)after, filler);
			snprintf(want, sizeof(want), "%.*s%s%.*s", (int)before, filler,
				 foreign_texts[i].want, (int)after, filler);
			print_to(printed, sizeof(printed), text);
			assert_string_equal(printed, want);
			sb_replace_controls(text, strlen(text));
			assert_string_equal(text, want);
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
		cmocka_unit_test(test_foreign_texts), cmocka_unit_test(test_replace_controls),
		cmocka_unit_test(test_append),	      cmocka_unit_test(test_decimal),
		cmocka_unit_test(test_growth),	      cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_base_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
