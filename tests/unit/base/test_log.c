// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/log.h"

static char text[65536]; /* what went to stderr since capture() */
static int saved = -1, sink = -1;

static void capture(void)
{
	char name[] = "/tmp/sb-log.XXXXXX";

	sink = mkstemp(name);
	assert_true(sink >= 0);
	unlink(name);
	fflush(stderr);
	saved = dup(STDERR_FILENO);
	assert_true(dup2(sink, STDERR_FILENO) >= 0);
}

static const char *captured(void)
{
	ssize_t len;

	dup2(saved, STDERR_FILENO);
	close(saved);
	len = pread(sink, text, sizeof(text) - 1, 0);
	close(sink);
	assert_true(len >= 0);
	text[len] = '\0';
	return text;
}

static int setup(void **state)
{
	sb_log_init("prog", SB_LOG_INFO);
	return 0;
}

static void test_forms(void **state)
{
	capture();
	sb_info("took %d samples", 5);
	sb_warn("cannot read '%s'", "/proc/7/maps");
	sb_debug("not shown");
	assert_int_equal(sb_err(-ENOENT, "cannot open '%s'", "x"), -ENOENT);
	sb_err(-ENOSPC, "cannot write '%s'", "x; y");
	sb_err(-ENOSPC, "cannot write '%s'; use 'z'", "x");
	sb_err(-EMFILE, "cannot write '%s'; use 'z'", "x");
	assert_int_equal(sb_err(0, "plain; as it is"), 0);
	assert_string_equal(captured(), "prog: took 5 samples\n"
					"prog: warning: cannot read '/proc/7/maps'\n"
					"prog: cannot open 'x': No such file or directory\n"
					"prog: cannot write 'x; y': No space left on device; "
					"delete files, or choose a place on another file system\n"
					"prog: cannot write 'x': No space left on device; use 'z'\n"
					"prog: cannot write 'x': Too many open files; use 'z'; "
					"raise the limit: ulimit -n\n"
					"prog: plain; as it is\n");
}

static void test_levels(void **state)
{
	sb_log_init("prog", SB_LOG_ERR);
	assert_int_equal(sb_log_max(), SB_LOG_ERR);
	capture();
	sb_warn("quiet");
	sb_info("quiet");
	sb_err(0, "heard");
	assert_string_equal(captured(), "prog: heard\n");

	sb_log_init("prog", SB_LOG_DEBUG);
	capture();
	sb_debug("heard");
	assert_string_equal(captured(), "prog: debug: heard\n");
}

/* Somebody else's file name must not reach the terminal as an escape sequence. */
static void test_control_characters(void **state)
{
	capture();
	sb_info("'%s'", "a\033[2Jb\rc\x7f\xc3\xa9\td");
	assert_string_equal(captured(), "prog: 'a?[2Jb?c?\xc3\xa9\td'\n");
}

static void __attribute__((format(printf, 2, 3)))
library_prints(enum sb_log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	sb_vlog(level, fmt, ap);
	va_end(ap);
}

static void test_library(void **state)
{
	capture();
	library_prints(SB_LOG_WARN, "prog '%s': failed\n", "x");
	assert_string_equal(captured(), "prog: warning: prog 'x': failed\n");
}

/* A verifier log: much longer than a line, and it arrives whole. */
static void test_long(void **state)
{
	static char big[50000];

	memset(big, 'x', sizeof(big) - 1);
	capture();
	sb_info("%s", big);
	captured();
	assert_int_equal(strlen(text), strlen("prog: ") + sizeof(big) - 1 + 1);
	assert_memory_equal(text + strlen("prog: "), big, sizeof(big) - 1);
	assert_int_equal(text[strlen(text) - 1], '\n');
}

/* stderr may be gone; that is no reason to fail. */
static void test_closed(void **state)
{
	capture();
	close(STDERR_FILENO);
	assert_int_equal(sb_err(-EIO, "nobody hears this"), -EIO);
	assert_string_equal(captured(), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_forms, setup),
		cmocka_unit_test_setup(test_levels, setup),
		cmocka_unit_test_setup(test_control_characters, setup),
		cmocka_unit_test_setup(test_library, setup),
		cmocka_unit_test_setup(test_long, setup),
		cmocka_unit_test_setup(test_closed, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
