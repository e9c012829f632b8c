// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What becomes of names and numbers in the picture. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "flamegraph/label.h"

#define BAD "\xef\xbf\xbd"

static void check_xml(const char *s, size_t len, const char *expected, uint64_t nr_expected)
{
	struct sb_str out = {};
	uint64_t nr = 0;

	assert_int_equal(sb_fg_label_add_xml(&out, s, len, &nr), 0);
	assert_string_equal(out.s, expected);
	assert_int_equal(nr, nr_expected);
	sb_str_release(&out);
}

#define XML(s, expected, nr) check_xml(s, sizeof(s) - 1, expected, nr)

static void test_xml(void **state)
{
	XML("a<b>&\"c'", "a&lt;b&gt;&amp;&quot;c'", 0);
	XML("]]>", "]]&gt;", 0);
	XML("a\0b\tc\x1b[1m", "a" BAD "b" BAD "c" BAD "[1m", 3);
	XML("\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\xa5", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\xa5", 0);
	/* overlong, surrogate, beyond the last plane, stray continuation, cut at the end */
	XML("\xc0\xaf", BAD BAD, 2);
	XML("\xed\xa0\x80", BAD BAD BAD, 3);
	XML("\xf4\x90\x80\x80", BAD BAD BAD BAD, 4);
	XML("\x80z", BAD "z", 1);
	XML("z\xe2\x82", "z" BAD, 1);
	XML("\xf0\x9f\x94", BAD, 1);
	/* no characters of XML; C1; text that would read backwards */
	XML("\xef\xbf\xbe\xef\xbf\xbf", BAD BAD, 2);
	XML("\xc2\x85", BAD, 1);
	XML("\xe2\x80\xae"
	    "cexe",
	    BAD "cexe", 1);
	/* what was replaced before is no new loss */
	XML(BAD, BAD, 0);
}

static void check_fitted(const char *name, double max_em, const char *expected)
{
	struct sb_str out = {};

	/* Letters half an em wide, so that widths can be counted. */
	assert_int_equal(sb_fg_label_add_fitted(&out, name, strlen(name), max_em, 0.5), 0);
	assert_string_equal(out.s ? out.s : "", expected);
	sb_str_release(&out);
}

static void test_fitted(void **state)
{
	check_fitted("vfs_read", 4, "vfs_read");
	check_fitted("vfs_read", 3.9, "vfs_re…");
	check_fitted("vfs_read", 2, "vfs…");
	check_fitted("vfs_read", 1.5, "");
	check_fitted("f(int, char const*) const", 3, "f");
	check_fitted("std::vector<int, std::allocator<int> >::push_back(int const&)", 20,
		     "std::vector<…>::push_back");
	check_fitted("std::vector<int, std::allocator<int> >::push_back(int const&)", 6,
		     "…push_back");
	check_fitted("std::vector<int, std::allocator<int> >::push_back(int const&)", 3, "push_…");
	check_fitted("<alloc::vec::Vec<T> as core::ops::Drop>::drop", 7, "<…>::drop");
	check_fitted("/usr/lib/x86_64-linux-gnu/libc.so.6", 6, "…libc.so.6");
	check_fitted("(anonymous namespace)::parse(Token)", 7, "…parse");
	check_fitted("main.(*Server).Serve", 30, "main.(*Server).Serve");
	check_fitted("A::operator()(int)", 8, "A::operator()");
	check_fitted("A::operator<<(std::ostream&)", 10, "A::operator<<");
	check_fitted("A::operator->()", 7, "A::operator->");
	check_fitted("not < paired", 4, "not < p…");
	check_fitted("a>b", 10, "a>b");
	check_fitted("", 10, "");
	check_fitted("::", 1.9, "::");
	/* Not in the middle of a character. */
	check_fitted("ééééé", 2.4, "ééé…");
}

static void test_clip(void **state)
{
	assert_int_equal(sb_fg_label_clip("abc", 3, 5), 3);
	assert_int_equal(sb_fg_label_clip("abcdef", 6, 5), 5);
	assert_int_equal(sb_fg_label_clip("ab\xe2\x82\xac", 5, 4), 2);
	assert_int_equal(sb_fg_label_clip("\xff\xff\xff", 3, 2), 2);
}

static void check_number(double val, const char *expected)
{
	struct sb_str out = {};

	assert_int_equal(sb_fg_label_add_number(&out, val), 0);
	assert_string_equal(out.s, expected);
	sb_str_release(&out);
}

static void check_weight(double val, const char *unit, const char *expected)
{
	struct sb_str out = {};

	assert_int_equal(sb_fg_label_add_weight(&out, val, unit), 0);
	assert_string_equal(out.s, expected);
	sb_str_release(&out);
}

static void check_share(double val, const char *expected)
{
	struct sb_str out = {};

	assert_int_equal(sb_fg_label_add_share(&out, val), 0);
	assert_string_equal(out.s, expected);
	sb_str_release(&out);
}

static void check_px(double val, const char *expected)
{
	struct sb_str out = {};

	assert_int_equal(sb_fg_label_add_px(&out, val), 0);
	assert_string_equal(out.s, expected);
	sb_str_release(&out);
}

static void test_numbers(void **state)
{
	/* Where the decimal point is a comma, the picture's stays a point. */
	setlocale(LC_ALL, "de_DE.UTF-8");
	check_number(0, "0");
	check_number(999, "999");
	check_number(1000, "1,000");
	check_number(1234567.891, "1,234,567.89");
	check_number(0.1 + 0.2, "0.30");
	check_number(2.9999999, "3");
	check_number(-5, "-5");
	check_number(1e300, "1.000e+300");
	check_weight(12, "samples", "12 samples");
	check_weight(1500, "us", "1.50 ms");
	check_weight(61e6, "us", "61 s");
	check_weight(0.5, "us", "500 ns");
	check_weight(0, "us", "0 ns");
	check_weight(999999, "ns", "1 ms");
	check_weight(1536, "bytes", "1.50 KiB");
	check_weight(1536, "byte-seconds", "1.50 KiB·s");
	check_weight(500, "byte-seconds", "500 byte-seconds");
	check_weight(100, "bytes", "100 bytes");
	check_share(1, "100%");
	check_share(0, "0%");
	check_share(0.99996, "100%");
	check_share(0.123456, "12.3%");
	check_share(0.0123456, "1.23%");
	check_share(0.09996, "10.0%");
	check_share(1e-9, "under 0.01%");
	check_px(12.34, "12.3");
	check_px(12, "12");
	check_px(0.04, "0");
	check_px(-3.25, "-3.3");
	check_px(-0.01, "0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_xml),
		cmocka_unit_test(test_fitted),
		cmocka_unit_test(test_clip),
		cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
