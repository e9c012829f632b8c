// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "../under_valgrind.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/time.h"
#include "symbolizer/process/pagemap.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/process/reader.h"

static bool parse(const char *line, struct sb_maps_line *ret)
{
	return sb_maps_line_parse(line, strlen(line), ret);
}

/* As /proc says it of a process that ends just now. */
static bool is_ending;

int __real_stat64(const char *path, struct stat *st);
int __wrap_stat(const char *path, struct stat *st);
int __wrap_stat64(const char *path, struct stat *st);

int __wrap_stat64(const char *path, struct stat *st)
{
	if (is_ending) {
		errno = ESRCH;
		return -1;
	}
	return __real_stat64(path, st);
}

int __wrap_stat(const char *path, struct stat *st)
{
	return __wrap_stat64(path, st);
}

static void test_line(void **state)
{
	struct sb_maps_line line;

	assert_true(parse("7f94b610e000-7f94b6264000 r-xp 00026000 fe:00 332835"
			  "                     /usr/lib/my lib.so (deleted)",
			  &line));
	assert_true(line.start == 0x7f94b610e000 && line.end == 0x7f94b6264000);
	assert_true(line.pgoff == 0x26000 && line.ino == 332835 && line.is_exec);
	assert_int_equal(line.maj, 0xfe);
	assert_int_equal(line.min, 0);
	assert_int_equal(line.path_len, strlen("/usr/lib/my lib.so (deleted)"));
	assert_memory_equal(line.path, "/usr/lib/my lib.so (deleted)", line.path_len);
	assert_true(
		parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]", &line));
	assert_true(line.is_exec);
	assert_true(parse("1000-2000 rw-s 0 0:0 0", &line));
	assert_int_equal(line.path_len, 0);
	assert_false(line.is_exec);
	assert_true(parse("1000-2000 rw-s 0 0:0 0 ", &line));
	assert_int_equal(line.path_len, 0);
}

static void test_bad_lines(void **state)
{
	static const char *const bad[] = {
		"",
		"1000",
		"1000-",
		"1000-2000",
		"2000-1000 r-xp 0 0:0 0",
		"1000-1000 r-xp 0 0:0 0",
		"1000-2000 r-xp",
		"1000-2000 r-xq 0 0:0 0",
		"1000-2000 r-x 0 0:0 0",
		"1000-2000 r-xp 0 0:0",
		"1000-2000 r-xp 0 0-0 0",
		"1000-2000 r-xp 0 100000000:0 0",
		"1000-2000 r-xp 0 0:0 x",
		"1000-2000 r-xp 0 0:0 1x",
		"10000000000000000-20000000000000000 r-xp 0 0:0 0",
		"-1000-2000 r-xp 0 0:0 0",
	};
	struct sb_maps_line line = { .ino = 77 };
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(parse(bad[i], &line));
	assert_false(sb_maps_line_parse("1000-2000 r-xp 0 0:0 0 /a\0b", 27, &line));
	assert_true(line.ino == 77); /* untouched on failure */
}

struct search {
	uint64_t addr;
	struct sb_maps_line found;
	char path[PATH_MAX];
	uint64_t last_end;
};

static int search(void *arg, const struct sb_maps_line *line)
{
	struct search *s = arg;

	assert_true(line->start >= s->last_end);
	s->last_end = line->end;
	if (s->addr < line->start || s->addr >= line->end)
		return 0;
	s->found = *line;
	snprintf(s->path, sizeof(s->path), "%.*s", (int)line->path_len, line->path);
	return 0;
}

/* Our own test binary: the kernel says where it is, and the same file is behind all ways to it. */
static void test_self(void **state)
{
	struct search s = { .addr = (uint64_t)(uintptr_t)test_self };
	struct stat self, other;
	int fd, root_fd;

	assert_int_equal(sb_procfs_maps((uint32_t)getpid(), search, &s), 0);
	assert_true(s.found.is_exec);
	assert_int_equal(stat("/proc/self/exe", &self), 0);
	assert_true(s.found.ino == self.st_ino);
	fd = sb_procfs_open(-1, s.path);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &other), 0);
	assert_true(self.st_ino == other.st_ino && self.st_dev == other.st_dev);
	close(fd);
	root_fd = sb_reader_root((uint32_t)getpid(), false);
	assert_true(root_fd >= 0);
	fd = sb_procfs_open(root_fd, s.path);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &other), 0);
	assert_true(self.st_ino == other.st_ino && self.st_dev == other.st_dev);
	close(fd);
	close(root_fd);
}

/* Nothing but a regular file is opened, and ".." does not lead out of a root. */
static void test_open(void **state)
{
	char dir[] = "/tmp/sb-procfs-XXXXXX", path[64];
	int root_fd;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(sb_procfs_open(-1, path), -EINVAL);
	unlink(path);
	snprintf(path, sizeof(path), "%s/link", dir);
	assert_int_equal(symlink("../../../../../etc/passwd", path), 0);
	root_fd = open(dir, O_PATH | O_DIRECTORY);
	assert_true(root_fd >= 0);
	assert_int_equal(sb_procfs_open(root_fd, "link"), -ENOENT);
	assert_int_equal(sb_procfs_open(root_fd, "/../../../../etc/passwd"), -ENOENT);
	assert_int_equal(sb_procfs_open(-1, "/dev/null"), -EINVAL);
	assert_int_equal(sb_procfs_open(-1, dir), -EINVAL);
	close(root_fd);
	unlink(path);
	rmdir(dir);
}

static void test_ids(void **state)
{
	struct sb_procfs_ids ids;

	assert_int_equal(sb_procfs_ids((uint32_t)getpid(), &ids), 0);
	assert_int_equal(ids.inner_tgid, getpid());
	assert_int_equal(ids.uid, getuid());
	assert_int_equal(ids.euid, geteuid());
}

static void test_bad_ids(void **state)
{
	static const char *const bad[] = {
		"",
		"Uid:\t1\t2\t3\t4\n",
		"NStgid:\t1\n",
		"NStgid:\t1\nUid:\t1\n",
		"NStgid:\t4294967296\nUid:\t1\t2\n",
		"NStgid:\t1\nUid:\t1\t4294967296\n",
		/* More than the kernel has namespaces in one another. */
		"NStgid:\t1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4\nUid:\t1\t2\n",
	};
	struct sb_procfs_ids ids = { .uid = 77 };
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(sb_procfs_ids_parse(bad[i], &ids), -EBADMSG);
	assert_int_equal(ids.uid, 77);
	assert_int_equal(sb_procfs_ids_parse("Uid:\t1\t2\nNStgid:\t9\t4\n", &ids), 0);
	assert_true(ids.inner_tgid == 4 && ids.uid == 1 && ids.euid == 2);
}

/* A process in as many groups as there may be: its status has hundreds of kilobytes. */
static void test_groups(void **state)
{
	static gid_t groups[65536];
	struct sb_procfs_ids ids;
	int ready[2], end[2];
	char c;
	size_t i;
	pid_t pid;

	if (geteuid())
		skip();
	for (i = 0; i < 65536; i++)
		groups[i] = (gid_t)(4294900000u + i);
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(end), 0);
	pid = fork();
	if (!pid) {
		close(end[1]);
		if (setgroups(65536, groups) || write(ready[1], "", 1) != 1)
			_exit(1);
		_exit(read(end[0], &c, 1) < 0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(sb_procfs_ids((uint32_t)pid, &ids), 0);
	assert_int_equal(ids.inner_tgid, pid);
	close(end[1]);
	close(end[0]);
	close(ready[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_memory(void **state)
{
	static const char text[] = "in memory";
	char buf[sizeof(text)];

	assert_int_equal(sb_procfs_read_memory((uint32_t)getpid(), (uint64_t)(uintptr_t)text, buf,
					       sizeof(buf)),
			 0);
	assert_string_equal(buf, text);
	assert_int_equal(sb_procfs_read_memory((uint32_t)getpid(), 0, buf, sizeof(buf)), -EFAULT);
}

/* A process that is no more: ESRCH from all. */
struct code {
	struct {
		struct sb_maps_line line;
		char path[PATH_MAX];
	} at[256];
	size_t nr;
};

static int keep_line(void *arg, const struct sb_maps_line *line)
{
	struct code *code = arg;

	assert_true(code->nr < 256);
	code->at[code->nr].line = *line;
	memcpy(code->at[code->nr].path, line->path, line->path_len);
	code->at[code->nr++].path[line->path_len] = '\0';
	return 0;
}

static void drop_all_but_code(struct code *code)
{
	size_t i, nr = 0;

	for (i = 0; i < code->nr; i++)
		if (code->at[i].line.is_exec && strcmp(code->at[i].path, "[vsyscall]"))
			code->at[nr++] = code->at[i];
	code->nr = nr;
}

/* However it is asked for, code is what the text says, and so is what lies behind anonymous
 * code. */
static void test_code(void **state)
{
	static struct code text, code;
	const size_t page = (size_t)getpagesize();
	char dir[] = "/tmp/sb-procfs-XXXXXX", path[64];
	bool has_behind = false;
	size_t i;
	int fd;

	not_under_valgrind(); /* its own mappings are in one of the two only */
	/* Text in the midst of a file that was moved, and a file whose name is two lines. */
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/two\nlines", dir);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_int_equal(ftruncate(fd, 3 * (off_t)page), 0);
	char *at = mmap(NULL, 3 * page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(at != MAP_FAILED);
	assert_true(mmap(at + page, page, PROT_READ | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
	assert_int_equal(mprotect(at + 2 * page, page, PROT_READ), 0);
	assert_int_equal(sb_procfs_maps((uint32_t)getpid(), keep_line, &text), 0);
	assert_int_equal(sb_procfs_code((uint32_t)getpid(), keep_line, &code), 0);
	for (i = 0; i < code.nr; i++)
		has_behind |= code.at[i].line.start == (uintptr_t)at + 2 * page &&
			      !code.at[i].line.is_exec && code.at[i].line.pgoff == 2 * page;
	assert_true(has_behind);
	drop_all_but_code(&text);
	drop_all_but_code(&code);
	assert_int_equal(code.nr, text.nr);
	for (i = 0; i < code.nr; i++) {
		const struct sb_maps_line *a = &code.at[i].line, *b = &text.at[i].line;

		assert_true(a->start == b->start && a->end == b->end && a->pgoff == b->pgoff);
		assert_true(a->ino == b->ino && a->maj == b->maj && a->min == b->min);
		assert_int_equal(a->is_writable, b->is_writable);
		assert_null(strchr(code.at[i].path, '\n'));
		if (a->start != (uintptr_t)at)
			assert_string_equal(code.at[i].path, text.at[i].path);
		assert_int_equal(sb_map_kind(code.at[i].path, a->path_len),
				 sb_map_kind(text.at[i].path, b->path_len));
	}
	munmap(at, 3 * page);
	close(fd);
	unlink(path);
	rmdir(dir);
}

static bool has_page(const struct code *code, const void *page)
{
	size_t i;

	for (i = 0; i < code->nr; i++)
		if (code->at[i].line.start <= (uintptr_t)page &&
		    code->at[i].line.end > (uintptr_t)page)
			return true;
	return false;
}

/* What was read of a process serves those who need nothing newer, and nobody else. */
static void test_code_since(void **state)
{
	static struct code first, old, new;
	const uint32_t own = (uint32_t)getpid();
	const uint64_t before_ns = sb_now_ns();
	sb_cleanup(sb_str_release) struct sb_str records = {};
	void *page;

	not_under_valgrind();
	assert_int_equal(sb_reader_code_since(own, before_ns, &records), -ENODATA);
	assert_int_equal(sb_procfs_code(own, keep_line, &first), 0);
	if (sb_reader_code_since(own, before_ns, &records) == -ENODATA)
		skip(); /* no PROCMAP_QUERY: it is read as text, which is not kept */
	page = mmap(NULL, (size_t)getpagesize(), PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	assert_true(page != MAP_FAILED);
	assert_false(has_page(&first, page));
	assert_int_equal(sb_procfs_code_since(own, before_ns, keep_line, &old), 0);
	assert_int_equal(old.nr, first.nr);
	assert_false(has_page(&old, page));
	assert_int_equal(sb_procfs_code_since(own, sb_now_ns(), keep_line, &new), 0);
	assert_true(has_page(&new, page));
	assert_int_equal(sb_reader_code_since(own + 1, before_ns, &records), -ENODATA);
	/* Nor is a process asked for again that was not there. */
	assert_int_equal(sb_procfs_code(UINT32_MAX / 2, keep_line, &old), -ESRCH);
	assert_int_equal(sb_reader_code_since(UINT32_MAX / 2, before_ns, &records), -ESRCH);
	munmap(page, (size_t)getpagesize());
}

static int take_line(void *arg, const struct sb_maps_line *line)
{
	++*(size_t *)arg;
	return 0;
}

/* Return: a child that unmaps all that it has, and stops at the signal that follows; with
 * @is_zombie, one that has ended and is not waited for. */
static pid_t fork_without_code(bool is_zombie)
{
	pid_t pid = fork();
	int status;

	if (!pid && is_zombie)
		_exit(0);
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		munmap(NULL, (1ul << 47) - (1ul << 16));
		_exit(1);
	}
	assert_true(pid > 0);
	if (!is_zombie) {
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSEGV);
	}
	return pid;
}

/* A process that ends, or is in execve(2), has no code. One request tells that, and is enough. */
static void test_without_code(void **state)
{
	sb_cleanup(sb_str_release) struct sb_str records = {};
	struct sb_reader_stats before, after;
	uint64_t before_ns = sb_now_ns();
	siginfo_t info;
	size_t nr = 0;
	pid_t pid;
	int i;

	not_under_valgrind();
	assert_int_equal(sb_procfs_code((uint32_t)getpid(), take_line, &nr), 0);
	if (sb_reader_code_since((uint32_t)getpid(), before_ns, &records) == -ENODATA)
		skip(); /* as above */
	for (i = 0; i < 2; i++) {
		pid = fork_without_code(i);
		if (i)
			assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
		nr = 0;
		sb_reader_stats(&before);
		assert_int_equal(sb_procfs_code((uint32_t)pid, take_line, &nr), 0);
		assert_int_equal(nr, 0);
		assert_int_equal(sb_procfs_code_since((uint32_t)pid, before_ns, take_line, &nr), 0);
		sb_reader_stats(&after);
		assert_int_equal(after.nr_requests - before.nr_requests, 1);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
}

/* A list that is too long to be kept, or to be read in one piece, replaces the one that was. */
static void test_code_since_too_long(void **state)
{
	const size_t nr_pages[] = { 400, 6000 }, page = (size_t)getpagesize();
	const uint32_t own = (uint32_t)getpid();
	sb_cleanup(sb_str_release) struct sb_str records = {};
	uint64_t before_ns;
	size_t i, j, nr = 0;
	char *at;

	not_under_valgrind();
	for (i = 0; i < 2; i++) {
		before_ns = sb_now_ns();
		assert_int_equal(sb_procfs_code(own, take_line, &nr), 0);
		if (sb_reader_code_since(own, before_ns, &records) == -ENODATA)
			skip(); /* as above */
		at = mmap(NULL, nr_pages[i] * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_true(at != MAP_FAILED);
		for (j = 0; j < nr_pages[i]; j += 2)
			assert_int_equal(mprotect(at + j * page, page, PROT_READ | PROT_EXEC), 0);
		assert_int_equal(sb_procfs_code(own, take_line, &nr), 0);
		assert_int_equal(sb_reader_code_since(own, before_ns, &records), -ENODATA);
		munmap(at, nr_pages[i] * page);
	}
}

static void test_stat(void **state)
{
	struct sb_procfs_stat stat, child;
	int fds[2];
	char c;

	assert_int_equal(sb_procfs_stat((uint32_t)getpid(), &stat), 0);
	assert_int_equal(stat.state, 'R');
	assert_int_equal(stat.ppid, getppid());
	assert_true(stat.start_ticks > 0);
	assert_true(stat.stack_addr > (uintptr_t)&stat);
	/* A child's name may be anything. */
	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_NAME, ") Z 1 (");
		close(fds[1]);
		_exit(read(fds[0], &c, 1) < 0);
	}
	assert_int_equal(sb_procfs_stat((uint32_t)pid, &child), 0);
	assert_int_equal(child.ppid, getpid());
	assert_true(child.stack_addr == stat.stack_addr);
	close(fds[1]);
	close(fds[0]);
	waitpid(pid, NULL, 0);
}

static void *wait_for_byte(void *arg)
{
	char c;

	if (read(*(int *)arg, &c, 1) < 0)
		_exit(1);
	_exit(0);
}

static void *end_after_byte(void *arg)
{
	char c;

	if (read(*(int *)arg, &c, 1) < 0)
		_exit(1);
	return NULL;
}

static void wait_for_zombie(uint32_t tgid, uint32_t tid)
{
	char path[64], text[512] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", tgid, tid);
	while (!strstr(text, ") Z ")) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
		close(fd);
	}
}

/* Make a process whose main thread has ended, and so has the next one, if it @is_traced, which
 * keeps that in the list of threads. The last one ends when *@ret_fd is closed. */
static uint32_t make_orphan(bool is_traced, uint32_t *ret_tid, int *ret_fd)
{
	int ends[2][2];
	pthread_t thread;
	DIR *dir;

	assert_true(!pipe(ends[0]) && !pipe(ends[1]));
	pid_t pid = fork();
	if (!pid) {
		close(ends[0][1]);
		close(ends[1][1]);
		if ((is_traced && pthread_create(&thread, NULL, end_after_byte, &ends[0][0])) ||
		    pthread_create(&thread, NULL, wait_for_byte, &ends[1][0]))
			_exit(1);
		pthread_exit(NULL);
	}
	wait_for_zombie((uint32_t)pid, (uint32_t)pid);
	dir = sb_procfs_threads((uint32_t)pid);
	assert_non_null(dir);
	*ret_tid = sb_procfs_next_task(dir, (uint32_t)pid);
	closedir(dir);
	if (is_traced)
		assert_int_equal(ptrace(PTRACE_SEIZE, (pid_t)*ret_tid, NULL, NULL), 0);
	close(ends[0][0]);
	close(ends[0][1]);
	close(ends[1][0]);
	if (is_traced)
		wait_for_zombie((uint32_t)pid, *ret_tid);
	*ret_fd = ends[1][1];
	return (uint32_t)pid;
}

static const char kept[] = "the memory stays";

/* Other threads go on when the main thread has ended, and others. */
static void test_stat_of_threads(void **state)
{
	static struct sb_page_run runs[SB_READER_RUNS_MAX];
	const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t here = (uint64_t)(uintptr_t)&page_bytes & ~(page_bytes - 1);
	struct sb_procfs_stat before, after;
	char memory[sizeof(kept)];
	uint32_t tgid, tid;
	uint64_t at;
	int i, fd;

	not_under_valgrind();
	assert_int_equal(sb_procfs_stat((uint32_t)getpid(), &before), 0);
	for (i = 0; i < 2; i++) {
		tgid = make_orphan(i, &tid, &fd);
		assert_int_equal(sb_procfs_stat(tgid, &after), 0);
		assert_non_null(strchr("RSD", after.state));
		assert_true(after.stack_addr == before.stack_addr);
		assert_true(after.start_ticks >= before.start_ticks);
		at = here;
		assert_int_equal(sb_reader_pages(tgid, true, true, here + page_bytes, &at, runs),
				 1);
		assert_int_equal(
			sb_procfs_read_memory(tgid, (uintptr_t)kept, memory, sizeof(memory)), 0);
		assert_string_equal(memory, kept);
		close(fd);
		while (!kill((pid_t)tgid, 0) && !sb_procfs_stat(tgid, &after) && after.state != 'Z')
			;
		assert_int_equal(after.state, 'Z');
		assert_int_equal(
			sb_procfs_read_memory(tgid, (uintptr_t)kept, memory, sizeof(memory)),
			-ESRCH);
		if (i)
			waitpid((pid_t)tid, NULL, __WALL);
		waitpid((pid_t)tgid, NULL, 0);
	}
}

/* Of the file that is mapped, also when another one has its name by now. */
static void test_stat_line(void **state)
{
	char dir[] = "/tmp/sb-procfs-XXXXXX", path[64], other[64];
	struct search s = {};
	struct stat mapped, st;
	int fd, err;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/mapped", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_int_equal(write(fd, "text", 4), 4);
	assert_int_equal(fstat(fd, &mapped), 0);
	s.addr = (uint64_t)(uintptr_t)mmap(NULL, 4, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_int_equal(sb_procfs_maps((uint32_t)getpid(), search, &s), 0);
	s.found.path = s.path;
	assert_int_equal(sb_procfs_stat_line((uint32_t)getpid(), &s.found, &st), 0);
	assert_true(st.st_ino == mapped.st_ino && st.st_size == 4);
	close(open(other, O_RDWR | O_CREAT, 0600));
	assert_int_equal(rename(other, path), 0);
	err = sb_procfs_stat_line((uint32_t)getpid(), &s.found, &st);
	/* Where that is not for us to see, nothing is better than another file. */
	if (err)
		assert_true(err == -EPERM || err == -EACCES);
	else
		assert_true(st.st_ino == mapped.st_ino && st.st_size == 4);
	munmap((void *)(uintptr_t)s.addr, 4);
	assert_int_equal(unlink(path), 0);
	err = sb_procfs_stat_line((uint32_t)getpid(), &s.found, &st);
	assert_true(err == -ENOENT || err == -EPERM || err == -EACCES);
	close(fd);
	rmdir(dir);
}

static void test_gone(void **state)
{
	struct search s = {};
	struct sb_procfs_ids ids;
	pid_t pid = fork();
	uint32_t tgid = (uint32_t)pid;

	if (pid == 0)
		_exit(0);
	assert_true(pid > 0);
	assert_true(sb_procfs_exists(tgid)); /* a zombie, too */
	is_ending = true;
	assert_false(sb_procfs_exists(tgid));
	is_ending = false;
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(sb_procfs_exists(tgid));
	assert_int_equal(sb_procfs_maps(tgid, search, &s), -ESRCH);
	assert_int_equal(sb_procfs_code(tgid, search, &s), -ESRCH);
	assert_int_equal(sb_procfs_ids(tgid, &ids), -ESRCH);
	assert_int_equal(sb_reader_root(tgid, false), -ESRCH);
	assert_int_equal(sb_procfs_read_memory(tgid, 0, &ids, sizeof(ids)), -ESRCH);
	assert_int_equal(sb_procfs_open_mapped(tgid, 0x1000, 0x2000), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),	     cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_self),	     cmocka_unit_test(test_open),
		cmocka_unit_test(test_ids),	     cmocka_unit_test(test_memory),
		cmocka_unit_test(test_bad_ids),	     cmocka_unit_test(test_groups),
		cmocka_unit_test(test_stat),	     cmocka_unit_test(test_stat_of_threads),
		cmocka_unit_test(test_gone),	     cmocka_unit_test(test_code),
		cmocka_unit_test(test_code_since),   cmocka_unit_test(test_code_since_too_long),
		cmocka_unit_test(test_without_code), cmocka_unit_test(test_stat_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
