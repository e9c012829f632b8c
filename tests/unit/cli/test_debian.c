// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/debian.h"

static char dir[] = "/tmp/test_debian.XXXXXX";

static void put_list(const char *name, const char *text)
{
	sb_cleanup(sb_fclosep) FILE *file = NULL;
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
}

static void remove_list(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unlink(path);
}

static void test_owners(void **state)
{
	const char *const paths[] = { "/usr/lib/libx.so.1", "/usr/bin/y", "/bin/z", "/none",
				      "/usr/lib/libx.so",   "/lib/last" };
	char *owners[SB_ARRAY_SIZE(paths)];
	size_t i;

	assert_non_null(mkdtemp(dir));
	/* Either name of a file of a merged /usr, and a last line without its end. */
	put_list("libx1:amd64.list", "/.\n/lib\n/lib/libx.so.1\n");
	put_list("y.list", "/usr/bin/y\n\n/usr/bin/z\n/usr/lib/last");
	put_list("y.md5sums", "/none\n");
	put_list("none.list.old", "/none\n");
	assert_int_equal(sb_debian_owners(dir, paths, SB_ARRAY_SIZE(paths), owners), 0);
	assert_string_equal(owners[0], "libx1");
	assert_string_equal(owners[1], "y");
	assert_string_equal(owners[2], "y");
	assert_null(owners[3]);
	assert_null(owners[4]);
	assert_string_equal(owners[5], "y");
	for (i = 0; i < SB_ARRAY_SIZE(paths); i++)
		free(owners[i]);
	remove_list("libx1:amd64.list");
	remove_list("y.list");
	remove_list("y.md5sums");
	remove_list("none.list.old");
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(sb_debian_owners(dir, paths, 0, owners), -ENOENT);
}

static void test_debug_package(void **state)
{
	const char *const pairs[][2] = {
		{ "libc6", "libc6-dbg" },
		{ "libc60", "libc60-dbgsym" },
		{ "python3.11-minimal", "python3.11-dbg" },
		{ "libpython3.11-stdlib", "python3.11-dbg" },
		{ "zlib1g", "zlib1g-dbgsym" },
	};
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(pairs); i++) {
		sb_cleanup(sb_freep) char *name = sb_debian_debug_package(pairs[i][0]);

		assert_string_equal(name, pairs[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_debug_package),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
