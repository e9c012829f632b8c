// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What of user/base only root can do: give files away, find a cgroup by its id. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cgroup.h"
#include "base/cleanup.h"
#include "base/fs.h"

#define SOMEBODY 54321u

static void sudo_says(const char *uid, const char *gid)
{
	if (!uid || setenv("SUDO_UID", uid, 1))
		unsetenv("SUDO_UID");
	if (!gid || setenv("SUDO_GID", gid, 1))
		unsetenv("SUDO_GID");
}

static void test_sudo_owner(void **state)
{
	static const char *const wrong[][2] = {
		{ NULL, NULL }, { "1", NULL },	 { NULL, "1" },		{ "x", "1" },
		{ "1", "" },	{ "-1", "1" },	 { "1", "4294967295" }, { "4294967296", "1" },
		{ "1 ", "1" },	{ "0x10", "1" },
	};
	struct sb_owner owner;
	size_t i;

	sudo_says("54321", "4294967294");
	owner = sb_sudo_owner();
	assert_int_equal(owner.uid, SOMEBODY);
	assert_int_equal(owner.gid, 4294967294u);
	for (i = 0; i < SB_ARRAY_SIZE(wrong); i++) {
		sudo_says(wrong[i][0], wrong[i][1]);
		owner = sb_sudo_owner();
		assert_int_equal(owner.uid, 0);
		assert_int_equal(owner.gid, 0);
	}
}

/* Without root the environment is anybody's word. */
static void test_unprivileged(void **state)
{
	int status;
	pid_t pid;

	sudo_says("1", "1");
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct sb_owner owner;

		if (setgroups(0, NULL) || setgid(SOMEBODY) || setuid(SOMEBODY))
			_exit(1);
		owner = sb_sudo_owner();
		_exit(owner.uid != SOMEBODY || owner.gid != SOMEBODY);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void write_out(const char *path)
{
	struct sb_output_file *file;

	assert_int_equal(sb_output_file_new(path, &file), 0);
	fputs("x", sb_output_file_stream(file));
	assert_int_equal(sb_output_file_commit(file), 0);
	sb_output_file_free(file);
}

static void test_output(void **state)
{
	char dir[] = "/tmp/sb-own.XXXXXX";
	struct stat st;
	int fd;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	/* A file is made with the rights of the user, who has to be able to write here. */
	assert_int_equal(chown(dir, SOMEBODY, SOMEBODY), 0);
	sudo_says("54321", "54321");
	write_out("out");
	assert_int_equal(stat("out", &st), 0);
	assert_int_equal(st.st_uid, SOMEBODY);
	assert_int_equal(st.st_gid, SOMEBODY);
	sudo_says(NULL, NULL);
	write_out("out");
	assert_int_equal(stat("out", &st), 0);
	assert_int_equal(st.st_uid, 0);
	/* What was there before, and is no regular file, is not ours to give away. */
	sudo_says("54321", "54321");
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(chmod("fifo", 0666), 0); /* root made it for the user to write to */
	fd = open("fifo", O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	write_out("fifo");
	assert_int_equal(stat("fifo", &st), 0);
	assert_int_equal(st.st_uid, 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(close(fd), 0);
	assert_int_equal(unlink("fifo"), 0);
	assert_int_equal(unlink("out"), 0);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(rmdir(dir), 0);
}

/* The id of a cgroup is the inode number of its directory (on 64-bit systems, cgroup-v2.rst). */
static void test_cgroup_path(void **state)
{
	static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	char dir[128], want[64];
	struct sb_str path = {};
	struct stat st;
	size_t i;

	snprintf(want, sizeof(want), "/stackbpf-test-%d", getpid());
	for (i = 0; i < SB_ARRAY_SIZE(mounts); i++) {
		snprintf(dir, sizeof(dir), "%s/cgroup.procs", mounts[i]);
		if (!access(dir, F_OK))
			break;
	}
	if (i == SB_ARRAY_SIZE(mounts))
		skip(); /* no cgroup2 */
	snprintf(dir, sizeof(dir), "%s%s", mounts[i], want);
	if (mkdir(dir, 0700))
		skip(); /* not ours to make */
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(sb_cgroup_path(st.st_ino, &path), 0);
	assert_string_equal(path.s, want);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(sb_cgroup_path(st.st_ino, &path), -ESTALE);
	assert_string_equal(path.s, want);

	assert_int_equal(stat(mounts[i], &st), 0);
	sb_str_clear(&path);
	assert_int_equal(sb_cgroup_path(st.st_ino, &path), 0);
	assert_string_equal(path.s, "/");
	sb_str_release(&path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sudo_owner),
		cmocka_unit_test(test_unprivileged),
		cmocka_unit_test(test_output),
		cmocka_unit_test(test_cgroup_path),
	};

	if (geteuid() != 0) {
		puts("root only may give files away and open by handle");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
