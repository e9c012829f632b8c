// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Files as the command writes them: they appear whole or not at all. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "../under_valgrind.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "workers/writer.h"

/* As a filesystem that has no files without a name (NFS, vfat). */
static bool is_old_filesystem;

int __real_open64(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode);

int __wrap_open64(const char *path, int flags, mode_t mode)
{
	if (is_old_filesystem && (flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return __real_open64(path, flags, mode);
}

int __wrap_open(const char *path, int flags, mode_t mode)
{
	return __wrap_open64(path, flags, mode);
}

static int enter_dir(void **state)
{
	char dir[] = "/tmp/sb-fs.XXXXXX";

	if (!mkdtemp(dir) || chdir(dir))
		return -1;
	*state = strdup(dir);
	return *state ? 0 : -1;
}

static int leave_dir(void **state)
{
	sb_cleanup(sb_freep) char *dir = *state;
	struct dirent *entry;
	DIR *d = opendir(".");

	while (d && (entry = readdir(d)))
		if (unlinkat(dirfd(d), entry->d_name, 0))
			unlinkat(dirfd(d), entry->d_name, AT_REMOVEDIR);
	if (d)
		closedir(d);
	return chdir("/") || rmdir(dir);
}

static unsigned int nr_entries(void)
{
	struct dirent *entry;
	unsigned int nr = 0;
	DIR *d = opendir(".");

	assert_non_null(d);
	while ((entry = readdir(d)))
		nr += entry->d_name[0] != '.';
	closedir(d);
	return nr;
}

static void put(const char *path, const char *data, size_t len)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

static void assert_content(const char *path, const char *want)
{
	sb_cleanup(sb_freep) char *data = NULL;

	assert_int_equal(sb_read_file(path, 1 << 20, &data, NULL), 0);
	assert_string_equal(data, want);
}

static void test_read(void **state)
{
	char *data = (char *)"untouched";
	size_t len = 7;

	put("f", "a\0bc", 4);
	assert_int_equal(sb_read_file("f", 3, &data, &len), -EFBIG);
	assert_int_equal(sb_read_file("none", 3, &data, &len), -ENOENT);
	assert_int_equal(sb_read_file(".", 1 << 20, &data, &len), -EISDIR);
	assert_int_equal(sb_read_fd(-1, 1, &data, &len), -EBADF);
	assert_string_equal(data, "untouched");
	assert_int_equal(len, 7);

	assert_int_equal(sb_read_file("f", 4, &data, &len), 0);
	assert_int_equal(len, 4);
	assert_memory_equal(data, "a\0bc", 5);
	free(data);
	put("empty", "", 0);
	assert_int_equal(sb_read_file("empty", 0, &data, &len), 0);
	assert_int_equal(len, 0);
	assert_string_equal(data, "");
	free(data);
}

static void test_read_all_at(void **state)
{
	char buf[] = "....";
	int fd;

	put("f", "abcdef", 6);
	fd = open("f", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(sb_read_all_at(fd, 2, buf, 4), 0);
	assert_memory_equal(buf, "cdef", 4);
	assert_int_equal(sb_read_all_at(fd, 6, buf, 0), 0);
	assert_int_equal(sb_read_all_at(fd, 3, buf, 4), -EBADMSG);
	assert_int_equal(sb_read_all_at(-1, 0, buf, 1), -EBADF);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
	close(fd);
}

/* Sizes around each growth of the buffer; /proc, whose files say they are empty; a FIFO. */
static void test_read_odd(void **state)
{
	sb_cleanup(sb_freep) char *big = calloc(1, 70000);
	size_t sizes[] = { 16382, 16383, 16384, 32767, 32768, 65535, 65536, 70000 }, i, len;
	char *data;

	assert_non_null(big);
	memset(big, 'x', 70000);
	for (i = 0; i < SB_ARRAY_SIZE(sizes); i++) {
		put("f", big, sizes[i]);
		assert_int_equal(sb_read_file("f", sizes[i], &data, &len), 0);
		assert_int_equal(len, sizes[i]);
		assert_int_equal(strlen(data), sizes[i]);
		free(data);
		assert_int_equal(sb_read_file("f", sizes[i] - 1, &data, &len), -EFBIG);
	}
	assert_int_equal(sb_read_file("/proc/self/stat", 1 << 20, &data, &len), 0);
	assert_int_equal(atol(data), getpid());
	free(data);
	assert_int_equal(sb_read_file("/dev/zero", 100000, &data, &len), -EFBIG);
	/* Nobody writes to it: without O_NONBLOCK this would wait for ever. */
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(sb_read_file("fifo", 100, &data, &len), 0);
	assert_int_equal(len, 0);
	free(data);
}

static void ignore_signal(int signo) {}

/* Read what the parent writes, disturbing it with each read. Return: whether it was @want. */
static bool reader_disturbs(int fd, const char *want, size_t len)
{
	size_t at = 0;
	char part[4096];
	ssize_t n;

	while ((n = read(fd, part, sizeof(part))) > 0) {
		if (at + (size_t)n > len || memcmp(part, want + at, (size_t)n))
			return false;
		at += (size_t)n;
		kill(getppid(), SIGUSR1);
	}
	return n == 0 && at == len;
}

/* More than a pipe takes at once, and signals: write() gives back less than it was given. */
static void test_write_all(void **state)
{
	enum { NR = 1 << 20 };
	const struct sigaction noop = { .sa_handler = ignore_signal };
	sb_cleanup(sb_freep) char *big = calloc(1, NR);
	struct sigaction before;
	int fds[2], status, fd;
	size_t i;
	pid_t pid;

	assert_non_null(big);
	for (i = 0; i < NR; i++)
		big[i] = (char)(i % 251);
	assert_int_equal(sigaction(SIGUSR1, &noop, &before), 0);
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(fds[1]);
		_exit(!reader_disturbs(fds[0], big, NR));
	}
	close(fds[0]);
	assert_int_equal(sb_write_all(fds[1], big, NR), 0);
	close(fds[1]);
	while (waitpid(pid, &status, 0) < 0)
		assert_int_equal(errno, EINTR);
	assert_int_equal(status, 0);
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);

	assert_int_equal(sb_write_all(-1, "x", 1), -EBADF);
	assert_int_equal(sb_write_all(-1, "x", 0), 0);
	fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(sb_write_all(fd, "x", 1), -ENOSPC);
	close(fd);
}

static void test_output_appears(void **state)
{
	struct sb_output_file *file;
	struct stat st;

	umask(0);
	assert_int_equal(sb_output_file_new("out", &file), 0);
	fputs("first", sb_output_file_stream(file));
	assert_int_equal(access("out", F_OK), -1);
	assert_int_equal(sb_output_file_commit(file), 0);
	sb_output_file_free(file);
	assert_content("out", "first");
	assert_int_equal(stat("out", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);

	assert_int_equal(sb_output_file_new("out", &file), 0);
	fputs("second", sb_output_file_stream(file));
	fflush(sb_output_file_stream(file));
	assert_content("out", "first");
	assert_int_equal(sb_output_file_commit(file), 0);
	sb_output_file_free(file);
	assert_content("out", "second");
	assert_int_equal(nr_entries(), 1);
}

static void test_output_abandoned(void **state)
{
	struct sb_output_file *file;

	put("out", "old", 3);
	assert_int_equal(sb_output_file_new("out", &file), 0);
	fputs("half of it", sb_output_file_stream(file));
	sb_output_file_free(file);
	assert_content("out", "old");
	assert_int_equal(nr_entries(), 1);
	sb_output_file_free(NULL);
}

static void test_output_refused(void **state)
{
	struct sb_output_file *file = NULL;

	assert_int_equal(mkdir("dir", 0700), 0);
	assert_int_equal(sb_output_file_new("dir", &file), -EISDIR);
	assert_int_equal(sb_output_file_new("none/out", &file), -ENOENT);
	put("plain", "", 0);
	assert_int_equal(sb_output_file_new("plain/out", &file), -ENOTDIR);
	assert_int_equal(sb_output_file_new("", &file), -ENOENT);
	assert_null(file);
	assert_int_equal(nr_entries(), 2);
}

/* The disk fills up on the way, or only when the last buffer is written. */
static void test_output_full(void **state)
{
	const struct rlimit small = { .rlim_cur = 4096, .rlim_max = RLIM_INFINITY };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction before_sig;
	struct sb_output_file *file;
	struct rlimit before;
	size_t sizes[] = { 5000, 1 << 20 }, i, j;

	put("out", "old", 3);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(sigaction(SIGXFSZ, &ignore, &before_sig), 0);
	for (i = 0; i < SB_ARRAY_SIZE(sizes); i++) {
		assert_int_equal(sb_output_file_new("out", &file), 0);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
		for (j = 0; j < sizes[i]; j++)
			putc('x', sb_output_file_stream(file));
		assert_int_equal(sb_output_file_commit(file), -EFBIG);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		sb_output_file_free(file);
		assert_content("out", "old");
		assert_int_equal(nr_entries(), 1);

		assert_int_equal(sb_output_file_new("/dev/full", &file), 0);
		for (j = 0; j < sizes[i]; j++)
			putc('x', sb_output_file_stream(file));
		assert_int_equal(sb_output_file_commit(file), -ENOSPC);
		sb_output_file_free(file);
	}
	assert_int_equal(sigaction(SIGXFSZ, &before_sig, NULL), 0);
}

/* A write that failed on the way is not forgotten when there is room again at the end. */
static void test_output_failed_once(void **state)
{
	const struct rlimit small = { .rlim_cur = 4096, .rlim_max = RLIM_INFINITY };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction before_sig;
	struct sb_output_file *file;
	struct rlimit before;
	int i;

	put("out", "old", 3);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(sigaction(SIGXFSZ, &ignore, &before_sig), 0);
	assert_int_equal(sb_output_file_new("out", &file), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (i = 0; i < 100000; i++)
		putc('x', sb_output_file_stream(file));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(sb_output_file_commit(file), -EIO);
	sb_output_file_free(file);
	assert_content("out", "old");
	assert_int_equal(sigaction(SIGXFSZ, &before_sig, NULL), 0);
}

/* Where somebody else's link leads to is left alone; the link gives way to the file. */
static void test_output_symlink(void **state)
{
	struct sb_output_file *file;
	struct stat st;

	put("precious", "keep", 4);
	assert_int_equal(symlink("precious", "out"), 0);
	assert_int_equal(sb_output_file_new("out", &file), 0);
	fputs("new", sb_output_file_stream(file));
	assert_int_equal(sb_output_file_commit(file), 0);
	sb_output_file_free(file);
	assert_content("precious", "keep");
	assert_content("out", "new");
	assert_int_equal(lstat("out", &st), 0);
	assert_true(S_ISREG(st.st_mode));

	assert_int_equal(unlink("out"), 0);
	assert_int_equal(symlink("/dev/null", "out"), 0);
	assert_int_equal(sb_output_file_new("out", &file), 0);
	assert_int_equal(sb_output_file_commit(file), 0);
	sb_output_file_free(file);
	assert_int_equal(lstat("out", &st), 0);
	assert_true(S_ISREG(st.st_mode));
}

/* Our own descriptors by name: written where they stand, and /dev/stdout stays what it is. */
static void test_output_own_fd(void **state)
{
	static const char *const dirs[] = { "/dev/fd", "/proc/self/fd" };
	struct sb_output_file *file;
	char path[64], want[64] = "before ";
	struct stat before, after;
	size_t i;
	int fd;

	assert_int_equal(lstat("/dev/fd", &before), 0);
	fd = open("f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(sb_write_all(fd, want, strlen(want)), 0);
	for (i = 0; i < SB_ARRAY_SIZE(dirs); i++) {
		snprintf(path, sizeof(path), "%s/%d", dirs[i], fd);
		assert_int_equal(sb_output_file_new(path, &file), 0);
		fputs("added ", sb_output_file_stream(file));
		assert_int_equal(sb_output_file_commit(file), 0);
		sb_output_file_free(file);
		strcat(want, "added ");
		assert_content("f", want);
	}
	close(fd);
	assert_int_equal(sb_output_file_new(path, &file), -EBADF);
	assert_int_equal(lstat("/dev/fd", &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(nr_entries(), 1);
}

/* What a signal handler does: everything that is half written goes, and only that. */
static void test_output_discard(void **state)
{
	struct sb_output_file *a, *b, *c;

	sb_output_files_discard();
	assert_int_equal(sb_output_file_new("a", &a), 0);
	assert_int_equal(sb_output_file_new("b", &b), 0);
	assert_int_equal(sb_output_file_new("c", &c), 0);
	assert_int_equal(sb_output_file_commit(b), 0);
	/* What has no name yet is not there. */
	assert_int_equal(nr_entries(), is_old_filesystem ? 3 : 1);
	sb_output_files_discard();
	assert_int_equal(nr_entries(), 1);
	assert_content("b", "");
	sb_output_file_free(b);
	sb_output_file_free(a);
	sb_output_file_free(c);
	sb_output_files_discard();
}

static void test_output_stdout(void **state)
{
	struct sb_output_file *file;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		int fd = open("f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 ||
		    sb_output_file_new("/dev/stdout", &file))
			_exit(1);
		fputs("to stdout", sb_output_file_stream(file));
		_exit(sb_output_file_commit(file) != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_content("f", "to stdout");
}

/* By another process; there is no descriptor left for what it has opened. */
static void test_writer_without_descriptor(void **state)
{
	const char *const paths[] = { "a" };
	struct rlimit before, none;
	struct sb_writer *writer;
	int fd;

	not_under_valgrind();
	assert_int_equal(sb_writer_new(paths, 1, NULL, &writer), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(sb_writer_open(writer, 0), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	sb_writer_discard(writer, 0);
	assert_int_equal(nr_entries(), 0);
	fd = sb_writer_open(writer, 0);
	assert_true(fd >= 0);
	assert_int_equal(sb_write_all(fd, "x", 1), 0);
	close(fd);
	assert_int_equal(sb_writer_commit(writer, 0), 0);
	assert_content("a", "x");
	sb_writer_free(writer);
}

/* Of a process of its own, as limits do not come back: the limits as they are after lowering to
 * @value. */
static struct rlimit lowered_to(uint64_t value)
{
	const struct rlimit before = { .rlim_cur = 100, .rlim_max = 200 };
	struct rlimit after = {};
	int fds[2], status = 0;
	pid_t child;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	child = fork();
	if (!child) {
		if (setrlimit(RLIMIT_NOFILE, &before))
			_exit(1);
		sb_lower_limit(RLIMIT_NOFILE, value);
		if (getrlimit(RLIMIT_NOFILE, &after) || sb_write_all(fds[1], &after, sizeof(after)))
			_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(read(fds[0], &after, sizeof(after)), sizeof(after));
	close(fds[0]);
	close(fds[1]);
	return after;
}

/* The higher limits would be refused without CAP_SYS_RESOURCE, but not the soft one. */
static void test_limits_are_not_raised(void **state)
{
	static const uint64_t values[] = { 50, 150, 250 };
	struct rlimit after;
	size_t i;

	for (i = 0; i < 3; i++) {
		after = lowered_to(values[i]);
		assert_int_equal(after.rlim_cur, values[i] < 100 ? values[i] : 100);
		assert_int_equal(after.rlim_max, values[i] < 200 ? values[i] : 200);
	}
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, enter_dir, leave_dir)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits_are_not_raised),
		IN_DIR(test_read),
		IN_DIR(test_read_odd),
		IN_DIR(test_read_all_at),
		IN_DIR(test_write_all),
		IN_DIR(test_output_appears),
		IN_DIR(test_output_abandoned),
		IN_DIR(test_output_refused),
		IN_DIR(test_output_full),
		IN_DIR(test_output_failed_once),
		IN_DIR(test_output_symlink),
		IN_DIR(test_output_own_fd),
		IN_DIR(test_output_stdout),
		IN_DIR(test_output_discard),
		IN_DIR(test_writer_without_descriptor),
	};

	/* As root, a defect in what is tested could replace /dev/full for the whole machine. */
	if (geteuid() == 0 &&
	    (setgroups(0, NULL) || setgid(65534) || setuid(65534) || prctl(PR_SET_DUMPABLE, 1)))
		return 1;
	if (cmocka_run_group_tests(tests, NULL, NULL))
		return 1;
	is_old_filesystem = true;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
