// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Overlays of our own mount table: found while they are mounted, not after, and the table of
 * thousands of mounts is read again only when it has changed. In a mount namespace of its own.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "symbolizer/process/reader_priv.h"

#define MANY 2000

static unsigned int nr_reads;

int __real_fseek(FILE *file, long offset, int whence);
int __wrap_fseek(FILE *file, long offset, int whence);

int __wrap_fseek(FILE *file, long offset, int whence)
{
	nr_reads++;
	return __real_fseek(file, offset, whence);
}

static char work[] = "/tmp/stackbpf-mounts-XXXXXX";

static void make_dir(const char *name)
{
	assert_true(!mkdir(name, 0755) || errno == EEXIST);
}

/* Return: the device of the overlay. */
static dev_t mount_overlay(void)
{
	struct stat st;

	assert_int_equal(mount("overlay", "merged", "overlay", 0, "lowerdir=lower:lower2"), 0);
	assert_int_equal(stat("merged", &st), 0);
	return st.st_dev;
}

static int enter(void **state)
{
	static const char *const names[] = { "lower", "lower2", "merged", "many" };
	size_t i;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    !mkdtemp(work) || mount("work", work, "tmpfs", 0, NULL) || chdir(work))
		return -1;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		make_dir(names[i]);
	return 0;
}

static int leave(void **state)
{
	return chdir("/") || umount2(work, MNT_DETACH) || rmdir(work) ? -1 : 0;
}

static void test_changes(void **state)
{
	struct sb_reader_mounts mounts = {};
	struct stat st;
	dev_t dev;
	int i;

	assert_int_equal(stat("lower", &st), 0);
	assert_false(sb_reader_is_mounted(&mounts, st.st_dev, SB_READER_OVERLAY));
	for (i = 0; i < 3; i++) {
		dev = mount_overlay();
		assert_true(sb_reader_is_mounted(&mounts, dev, SB_READER_OVERLAY));
		assert_false(sb_reader_is_mounted(&mounts, dev, SB_READER_VIRTIOFS));
		assert_false(sb_reader_is_mounted(&mounts, st.st_dev, SB_READER_OVERLAY));
		assert_int_equal(umount("merged"), 0);
		assert_false(sb_reader_is_mounted(&mounts, dev, SB_READER_OVERLAY));
	}
	sb_reader_mounts_release(&mounts);
}

/* A mount that another process of our namespace makes is a change, too; what another namespace has
 * is none of ours. */
static void test_others(void **state)
{
	struct sb_reader_mounts mounts = {};
	struct stat st;
	int status, is_own;
	pid_t pid;

	assert_int_equal(stat("lower", &st), 0);
	for (is_own = 0; is_own < 2; is_own++) {
		assert_false(sb_reader_is_mounted(&mounts, st.st_dev, SB_READER_OVERLAY));
		pid = fork();
		assert_true(pid >= 0);
		if (!pid)
			_exit((is_own && unshare(CLONE_NEWNS)) ||
			      mount("overlay", "merged", "overlay", 0, "lowerdir=lower:lower2"));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_int_equal(stat("merged", &st), 0);
		assert_int_equal(sb_reader_is_mounted(&mounts, st.st_dev, SB_READER_OVERLAY),
				 !is_own);
		if (!is_own)
			assert_int_equal(umount("merged"), 0);
	}
	sb_reader_mounts_release(&mounts);
}

static void test_many(void **state)
{
	struct sb_reader_mounts mounts = {};
	char path[64];
	dev_t dev;
	int i;

	assert_int_equal(mount("many", "many", "tmpfs", 0, NULL), 0);
	for (i = 0; i < MANY; i++) {
		snprintf(path, sizeof(path), "many/mount-point-of-a-container-%d", i);
		make_dir(path);
		assert_int_equal(mount("lower", path, NULL, MS_BIND, NULL), 0);
	}
	dev = mount_overlay();
	nr_reads = 0;
	for (i = 0; i < MANY; i++)
		assert_true(sb_reader_is_mounted(&mounts, dev, SB_READER_OVERLAY));
	assert_int_equal(nr_reads, 1);
	assert_int_equal(umount(path), 0);
	for (i = 0; i < MANY; i++)
		assert_true(sb_reader_is_mounted(&mounts, dev, SB_READER_OVERLAY));
	assert_int_equal(nr_reads, 2);
	assert_int_equal(umount("merged"), 0);
	assert_int_equal(umount2("many", MNT_DETACH), 0);
	sb_reader_mounts_release(&mounts);
}

/* Nothing is believed of a table that cannot be read. */
static void test_unreadable(void **state)
{
	struct sb_reader_mounts mounts = { .table = fopen("/dev/full", "we") };
	dev_t dev = mount_overlay();

	assert_non_null(mounts.table);
	assert_false(sb_reader_is_mounted(&mounts, dev, SB_READER_OVERLAY));
	sb_reader_mounts_release(&mounts);
	assert_true(sb_reader_is_mounted(&mounts, dev, SB_READER_OVERLAY));
	sb_reader_mounts_release(&mounts);
	assert_int_equal(umount("merged"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_unreadable),
	};

	if (geteuid() != 0) {
		printf("skipped: needs root\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, enter, leave);
}
