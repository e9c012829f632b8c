// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Paths below another root. The truth is openat2(2) with RESOLVE_IN_ROOT, and what chroot(2) means
 * by a path. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/openat2.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/beneath.h"
#include "base/cleanup.h"

static char base[] = "/tmp/beneath.XXXXXX";

static int make_tree(void **state)
{
	static const char *const dirs[] = { "root", "root/a", "root/a/b", "root/etc", "outside" };
	static const char *const files[] = { "root/f", "root/a/b/f", "root/etc/f", "outside/f",
					     "f" };
	static const char *const links[][2] = {
		{ "/etc", "root/a/abs" },
		{ "../etc", "root/a/rel" },
		{ "../../../outside", "root/a/out" },
		{ "loop", "root/loop" },
		{ "/a/abs/f", "root/chain" },
		{ "/", "root/a/top" },
		{ "nowhere", "root/dangling" },
		{ "b//./f", "root/a/dots" },
	};
	char path[256];
	size_t i;

	if (!mkdtemp(base))
		return -1;
	if (chdir(base))
		return -1;
	for (i = 0; i < SB_ARRAY_SIZE(dirs); i++)
		if (mkdir(dirs[i], 0755))
			return -1;
	for (i = 0; i < SB_ARRAY_SIZE(files); i++)
		close(open(files[i], O_WRONLY | O_CREAT, 0644));
	for (i = 0; i < SB_ARRAY_SIZE(links); i++)
		if (symlink(links[i][0], links[i][1]))
			return -1;
	/* Escapes by the absolute name of what is outside. */
	snprintf(path, sizeof(path), "%s/outside", base);
	return symlink(path, "root/absout");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int remove_tree(void **state)
{
	return chdir("/") || nftw(base, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static long by_kernel(int root_fd, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static void test_as_the_kernel_does(void **state)
{
	static const char *const paths[] = {
		"f",	   "/f",	 "a/b/f",     "a/../f",	     "../f",	   "/../../f",
		"a/abs/f", "a/rel/f",	 "a/out/f",   "absout/f",    "loop",	   "chain",
		"a/top/f", "dangling",	 "a/dots",    "a/none",	     "f/x",	   ".",
		"/",	   "..",	 "a/b/../..", "a/b/../../f", "a/abs/../f", "a/./b/.//f",
		"",	   "a/rel/../f",
	};
	sb_cleanup(sb_closep) int root_fd = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat a, b;
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(paths); i++) {
		sb_cleanup(sb_closep) int ours = sb_open_beneath(root_fd, paths[i]);
		sb_cleanup(sb_closep) int theirs = (int)by_kernel(root_fd, paths[i]);

		if (theirs == -ENOSYS)
			skip();
		if (theirs < 0 || ours < 0) {
			assert_string_equal(theirs < 0 ? strerror(-theirs) : paths[i],
					    ours < 0 ? strerror(-ours) : "it was opened");
			continue;
		}
		assert_int_equal(fstat(ours, &a), 0);
		assert_int_equal(fstat(theirs, &b), 0);
		assert_int_equal(a.st_ino, b.st_ino);
		assert_int_equal(fcntl(ours, F_GETFL) & O_ACCMODE, O_RDONLY);
		assert_true(fcntl(ours, F_GETFL) & O_PATH);
		assert_true(fcntl(ours, F_GETFD) & FD_CLOEXEC);
	}
}

static void test_limits(void **state)
{
	sb_cleanup(sb_closep) int root_fd = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char path[8192] = "";
	size_t i;

	for (i = 0; i < 200; i++)
		strcat(path, "a/../");
	strcat(path, "f");
	close(sb_open_beneath(root_fd, path));
	memset(path, 'x', 300);
	path[300] = '\0';
	assert_int_equal(sb_open_beneath(root_fd, path), -ENAMETOOLONG);
	memset(path, '/', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(sb_open_beneath(root_fd, path), -ENAMETOOLONG);
	assert_int_equal(sb_open_beneath(-1, "f"), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_the_kernel_does),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
