// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Readers of foreign memory and files: what they read is what is there; one that crashes, hangs or
 * lies costs its caller an error, and never more. The reader does its worst in the place of an
 * access, by order of the test.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
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
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "../under_valgrind.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/elf/owner.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/process/reader_priv.h"
#include "symbolizer/symbols/jit.h"
#include "symbolizer/symbols/perfmap.h"

/* Of tests that need it to run out. */
#define SHORT_NS 50000000ull
/* Of tests that must not run into it. */
#define LONG_NS	 60000000000ull
/* No process has such a number. */
#define NO_TGID	 (1u << 30)

enum how { HONEST, CRASH, HANG, HANG_AT, LIE_LEN, LIE_PART, LIE_FD, LIE_AT };

/* Seen by readers and spawner, too. */
static struct shared {
	enum how how;
	bool is_immortal; /* readers do not end when they are killed: see waitpid() below */
	bool is_short;	  /* of memory: see realloc() below */
	bool is_crowded;  /* no message can have descriptors: see sendmsg() below */
} * shared;
static bool is_on_fuse;

static char secret[] = "what is to be read";

int __real_sb_reader_serve(struct sb_reader_area *area, struct sb_reader_state *state, int root_fd);
int __wrap_sb_reader_serve(struct sb_reader_area *area, struct sb_reader_state *state, int root_fd);
pid_t __real_waitpid(pid_t pid, int *status, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);
int __real_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs64(int fd, struct statfs *fs);
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);

int __wrap_sb_reader_serve(struct sb_reader_area *area, struct sb_reader_state *state, int root_fd)
{
	int fd;

	if (shared && shared->how == CRASH)
		raise(SIGKILL);
	while (shared && shared->how == HANG)
		raise(SIGSTOP);
	fd = __real_sb_reader_serve(area, state, root_fd);
	while (shared && shared->how == HANG_AT) {
		__atomic_store_n(&area->part, 1, __ATOMIC_RELAXED);
		raise(SIGSTOP);
	}
	if (shared && shared->how == LIE_PART)
		area->parts[0].ret = sizeof(secret) + 1;
	if (shared && shared->how == LIE_LEN)
		area->answer.ret = SB_READER_DATA_BYTES + 1;
	if (shared && shared->how == LIE_FD) {
		area->answer.ret = 0;
		area->answer.has_fd = true;
	}
	if (shared && shared->how == LIE_AT) {
		area->answer.ret = 0;
		area->answer.addr = area->request.addr;
	}
	return fd;
}

/* What waits for a FUSE server does not even end when it is killed. */
pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
	return shared && shared->is_immortal && (options & WNOHANG)
		       ? 0
		       : __real_waitpid(pid, status, options);
}

void *__wrap_realloc(void *old, size_t size)
{
	return shared && shared->is_short ? NULL : __real_realloc(old, size);
}

/* With a low RLIMIT_NOFILE, when other processes of the user have sent descriptors that nobody
 * received yet. */
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (shared && shared->is_crowded && message->msg_controllen) {
		errno = ETOOMANYREFS;
		return -1;
	}
	return __real_sendmsg(fd, message, flags);
}

int __wrap_fstatfs(int fd, struct statfs *fs)
{
	int ret = __real_fstatfs(fd, fs);

	if (is_on_fuse)
		fs->f_type = FUSE_SUPER_MAGIC;
	return ret;
}

int __wrap_fstatfs64(int fd, struct statfs *fs)
{
	return __wrap_fstatfs(fd, fs);
}

static pid_t child;

static int setup(void **state)
{
	char ready;
	int fds[2];

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED || pipe(fds))
		return -1;
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* readers are none of its ancestors */
		secret[0] = 'W';
		if (write(fds[1], "", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	close(fds[1]);
	if (child < 0 || read(fds[0], &ready, 1) != 1)
		return -1;
	close(fds[0]);
	return 0;
}

static int teardown(void **state)
{
	shared->how = HONEST;
	shared->is_immortal = false;
	sb_reader_end();
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	munmap(shared, sizeof(*shared));
	shared = NULL;
	return 0;
}

static void begin(uint64_t patience_ns)
{
	assert_int_equal(sb_reader_begin(&(struct sb_reader_opts){ .patience_ns = patience_ns }),
			 0);
	assert_int_equal(sb_reader_settle(), 0);
}

static ssize_t read_secret(void)
{
	char buf[sizeof(secret)] = "";
	ssize_t nr = sb_reader_memory((uint32_t)child, (uintptr_t)secret, buf, sizeof(buf));

	if (nr >= 0) {
		assert_int_equal(nr, sizeof(secret));
		assert_string_equal(buf, "What is to be read");
	}
	return nr;
}

static struct sb_reader_stats stats(void)
{
	struct sb_reader_stats now;

	sb_reader_stats(&now);
	return now;
}

static void test_memory(void **state)
{
	char buf[64];

	begin(LONG_NS);
	assert_int_equal(read_secret(), sizeof(secret));
	assert_int_equal(sb_reader_memory((uint32_t)child, 0, buf, sizeof(buf)), -EFAULT);
	assert_int_equal(sb_reader_memory(NO_TGID, (uintptr_t)secret, buf, sizeof(buf)), -ESRCH);
	assert_true(stats().nr_readers == 1 && stats().nr_requests == 3);
	assert_true(!stats().nr_abandoned && !stats().nr_crashed && !stats().nr_refused);
}

static void read_ahead(const struct sb_reader_want *wants, size_t nr, size_t want_nr)
{
	assert_int_equal(sb_reader_ahead(wants, nr), want_nr);
}

#define SECRET_OF(pid)                                                                    \
	{                                                                                 \
		.tgid = (uint32_t)(pid), .len = sizeof(secret), .addr = (uintptr_t)secret \
	}

/* One request for all; each is taken once, and what failed is asked for again. */
static void test_ahead(void **state)
{
	const struct sb_reader_want wants[] = { SECRET_OF(child),
						SECRET_OF(NO_TGID),
						{ .tgid = (uint32_t)child } };
	sb_cleanup(sb_str_release) struct sb_str code = {}, again = {};
	char buf[sizeof(secret)];
	uint64_t at = 0;

	begin(LONG_NS);
	read_ahead(wants, 3, 3);
	assert_int_equal(stats().nr_requests, 1);
	assert_int_equal(read_secret(), sizeof(secret));
	assert_true(sb_reader_code((uint32_t)child, true, &at, &code) > 0);
	assert_true(at == UINT64_MAX && stats().nr_requests == 1);
	assert_int_equal(sb_reader_memory(NO_TGID, (uintptr_t)secret, buf, sizeof(buf)), -ESRCH);
	assert_int_equal(stats().nr_requests, 2);
	assert_int_equal(read_secret(), sizeof(secret));
	at = 0;
	assert_true(sb_reader_code((uint32_t)child, true, &at, &again) > 0);
	assert_int_equal(stats().nr_requests, 4);
	assert_int_equal(code.len, again.len);
	/* Without memory for it nothing was got, so nothing is skipped. */
	read_ahead(wants, 3, 3);
	sb_str_release(&code);
	at = 0;
	shared->is_short = true;
	assert_int_equal(sb_reader_code((uint32_t)child, true, &at, &code), -ENOMEM);
	shared->is_short = false;
	assert_int_equal(at, 0);
	assert_true(sb_reader_code((uint32_t)child, true, &at, &code) > 0);
	assert_true(at == UINT64_MAX && stats().nr_requests == 6);
	assert_int_equal(code.len, again.len);
	/* What was not taken is dropped. */
	read_ahead(wants, 3, 3);
	read_ahead(NULL, 0, 0);
	assert_int_equal(read_secret(), sizeof(secret));
	assert_int_equal(stats().nr_requests, 8);
}

/* What pointers lead to is read by the same request, each piece once, and taken by its address. */
static void test_ahead_of_pointers(void **state)
{
	enum { PIECE = 64 };
	static char pieces[2][PIECE] __attribute__((aligned(PIECE)));
	static const void *const pointers[] = { &pieces[0][7], &pieces[0][9], &pieces[1][1], NULL };
	struct sb_reader_want wants[SB_ARRAY_SIZE(pointers)];
	char buf[PIECE];
	size_t i;

	memset(pieces[0], 'a', PIECE);
	memset(pieces[1], 'b', PIECE);
	begin(LONG_NS);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	for (i = 0; i < SB_ARRAY_SIZE(wants); i++)
		wants[i] = (struct sb_reader_want){ .tgid = (uint32_t)getpid(),
						    .len = PIECE,
						    .addr = (uintptr_t)&pointers[i],
						    .is_pointer = true };
	read_ahead(wants, SB_ARRAY_SIZE(wants), SB_ARRAY_SIZE(wants));
	for (i = 0; i < 2; i++) {
		assert_true(sb_reader_has_read(wants[0].tgid, (uintptr_t)pieces[i], PIECE));
		assert_int_equal(sb_reader_memory(wants[0].tgid, (uintptr_t)pieces[i], buf, PIECE),
				 PIECE);
		assert_memory_equal(buf, pieces[i], PIECE);
		/* Two pointers lead to the first piece. */
		assert_false(sb_reader_has_read(wants[0].tgid, (uintptr_t)pieces[i], PIECE));
	}
	assert_false(sb_reader_has_read(wants[0].tgid, 0, PIECE));
	assert_int_equal(stats().nr_requests, 1);
}

/* What does not fit is left to the next round. */
static void test_ahead_in_rounds(void **state)
{
	enum { NR = SB_READER_AHEAD_MAX + 8, PIECE = SB_READER_DATA_BYTES / 8 };
	static char big[PIECE], buf[PIECE];
	struct sb_reader_want wants[NR];
	size_t i, ahead = 0, nr_rounds = 0;

	memset(big, 'b', sizeof(big));
	begin(LONG_NS);
	for (i = 0; i < NR; i++)
		wants[i] = (struct sb_reader_want)SECRET_OF(child);
	read_ahead(wants, NR, SB_READER_AHEAD_MAX);
	for (i = 0; i < NR; i++)
		wants[i] = (struct sb_reader_want){ .tgid = (uint32_t)getpid(),
						    .len = PIECE - (uint32_t)i,
						    .addr = (uintptr_t)big + i };
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	for (i = 0; i < NR; i++) {
		if (i == ahead) {
			ahead += sb_reader_ahead(&wants[i], NR - i);
			nr_rounds++;
		}
		memset(buf, 0, sizeof(buf));
		assert_int_equal(sb_reader_memory(wants[i].tgid, wants[i].addr, buf, wants[i].len),
				 wants[i].len);
		assert_memory_equal(buf, big + i, wants[i].len);
	}
	assert_int_equal(stats().nr_requests, 1 + nr_rounds);
	assert_in_range(nr_rounds, NR / 9, NR / 8 + 1);
}

/* Who did not answer is left alone, and the others are read. */
static void test_ahead_hang(void **state)
{
	const struct sb_reader_want wants[] = { SECRET_OF(child), SECRET_OF(NO_TGID),
						SECRET_OF(child) };
	char text[SB_READER_CULPRIT_BYTES], want[64], buf[sizeof(secret)];

	not_under_valgrind();
	begin(SHORT_NS);
	shared->how = HANG_AT;
	read_ahead(wants, 3, 1);
	shared->how = HONEST;
	assert_int_equal(stats().nr_abandoned, 1);
	snprintf(want, sizeof(want), "process %u (", NO_TGID);
	assert_true(sb_reader_culprit(0, text));
	assert_memory_equal(text, want, strlen(want));
	assert_false(sb_reader_culprit(1, text));
	assert_int_equal(read_secret(), sizeof(secret));
	read_ahead(wants + 1, 2, 1);
	assert_int_equal(sb_reader_memory(NO_TGID, (uintptr_t)secret, buf, sizeof(buf)),
			 -ETIMEDOUT);
	read_ahead(wants, 3, 1);
	read_ahead(wants + 2, 1, 1);
	assert_int_equal(read_secret(), sizeof(secret));
}

static void test_ahead_forged(void **state)
{
	const struct sb_reader_want wants[] = { SECRET_OF(child), SECRET_OF(child) };

	begin(LONG_NS);
	shared->how = LIE_LEN;
	read_ahead(wants, 2, 1);
	shared->how = LIE_PART;
	read_ahead(wants, 2, 1);
	shared->how = CRASH;
	read_ahead(wants, 2, 1);
	shared->how = HONEST;
	assert_int_equal(read_secret(), sizeof(secret));
	assert_int_equal(stats().nr_requests, 4);
}

/* Time that the reader spends counts for the thread that it works for. */
static void test_cpu_time(void **state)
{
	uint64_t begin_ns, reader_ns, own_ns;
	int i;

	begin(LONG_NS);
	assert_int_equal(read_secret(), sizeof(secret));
	begin_ns = sb_reader_thread_cpu_ns();
	reader_ns = stats().cpu_ns;
	for (i = 0; i < 2000; i++)
		assert_int_equal(read_secret(), sizeof(secret));
	reader_ns = stats().cpu_ns - reader_ns;
	own_ns = sb_reader_thread_cpu_ns() - begin_ns;
	assert_true(reader_ns > 0);
	assert_true(own_ns > reader_ns);
}

static void test_crash(void **state)
{
	begin(LONG_NS);
	shared->how = CRASH;
	assert_int_equal(read_secret(), -EIO);
	assert_int_equal(stats().nr_crashed, 1);
	/* Nobody is to blame, and another reader takes its place. */
	shared->how = HONEST;
	assert_int_equal(read_secret(), sizeof(secret));
	assert_true(stats().nr_readers == 2 && !stats().nr_abandoned);
}

/* A reader whose descriptors cannot be sent is given up; the caller hears of it and goes on. */
static void test_crowded(void **state)
{
	begin(LONG_NS);
	shared->is_crowded = true;
	assert_int_equal(read_secret(), -ETIMEDOUT);
	assert_int_equal(stats().nr_readers, 0);
	assert_int_equal(stats().nr_refused, 1);
	shared->is_crowded = false;
	assert_int_equal(read_secret(), sizeof(secret));
	assert_int_equal(stats().nr_readers, 1);
}

static void test_hang(void **state)
{
	char text[SB_READER_CULPRIT_BYTES], want[64], buf[sizeof(secret)];

	not_under_valgrind();
	begin(SHORT_NS);
	assert_false(sb_reader_culprit(0, text));
	shared->how = HANG;
	assert_int_equal(read_secret(), -ETIMEDOUT);
	assert_true(stats().nr_abandoned == 1 && !stats().nr_refused);
	snprintf(want, sizeof(want), "process %d (", child);
	assert_true(sb_reader_culprit(0, text));
	assert_memory_equal(text, want, strlen(want));
	assert_false(sb_reader_culprit(1, text));
	/* It is left alone, even if it would answer now; others are not. */
	shared->how = HONEST;
	assert_int_equal(read_secret(), -ETIMEDOUT);
	assert_true(stats().nr_abandoned == 1 && stats().nr_refused == 1);
	assert_int_equal(sb_reader_memory(NO_TGID, 0, buf, sizeof(buf)), -ESRCH);
}

static void test_abandoned_max(void **state)
{
	uint32_t i;
	char buf[8];

	not_under_valgrind();
	begin(SHORT_NS);
	shared->how = HANG;
	shared->is_immortal = true;
	for (i = 0; i < SB_READER_ABANDONED_MAX; i++)
		assert_int_equal(sb_reader_memory(NO_TGID + i, 0, buf, sizeof(buf)), -ETIMEDOUT);
	assert_int_equal(stats().nr_abandoned, SB_READER_ABANDONED_MAX);
	assert_int_equal(read_secret(), -ETIMEDOUT);
	assert_int_equal(stats().nr_readers, SB_READER_ABANDONED_MAX);
	assert_int_equal(stats().nr_refused, 1);
	/* When they have ended, there is room. */
	shared->how = HONEST;
	shared->is_immortal = false;
	while (sb_reader_memory(NO_TGID + i++, 0, buf, sizeof(buf)) == -ETIMEDOUT)
		; /* the spawner looks for their ends each time */
}

static int take_line(void *arg, const struct sb_maps_line *line)
{
	return 0;
}

/* Answers that are longer than the buffer, and descriptors that never came. */
static void test_forged(void **state)
{
	sb_cleanup(sb_str_release) struct sb_str code = {};
	struct sb_reader_file file = { .place = SB_READER_HERE, .path = "/dev/null/none" };
	struct {
		char buf[8], behind[8];
	} memory = {};
	uint64_t at = 0;

	begin(LONG_NS);
	shared->how = LIE_LEN;
	assert_int_equal(sb_reader_memory((uint32_t)child, (uintptr_t)secret, memory.buf, 8),
			 -EFAULT);
	assert_int_equal(sb_reader_entry((uint32_t)child, SB_READER_MAPS, 0, memory.buf, 8),
			 -EPROTO);
	assert_int_equal(sb_reader_code((uint32_t)child, true, &at, &code), -EPROTO);
	assert_memory_equal(memory.behind, "\0\0\0\0\0\0\0", 8);
	shared->how = LIE_FD;
	assert_int_equal(sb_reader_open(&file), -EPROTO);
	/* And mappings that never end. */
	shared->how = LIE_AT;
	assert_int_equal(sb_procfs_code((uint32_t)child, take_line, NULL), -EPROTO);
}

/* The kernel gives a page of lines at a time; an access reads on until the end. */
static void test_entry_at_once(void **state)
{
	static char text[SB_READER_CODE_BYTES], rest[1];
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), nr_bytes = 400 * page;
	char *maps = mmap(NULL, nr_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ssize_t nr;

	assert_ptr_not_equal(maps, MAP_FAILED);
	for (size_t at = 0; at < nr_bytes; at += 2 * page)
		assert_int_equal(mprotect(maps + at, page, PROT_NONE), 0);
	begin(LONG_NS);
	nr = sb_reader_entry((uint32_t)getpid(), SB_READER_MAPS, 0, text, sizeof(text));
	assert_true(nr > (ssize_t)page && nr < (ssize_t)sizeof(text));
	assert_int_equal(sb_reader_entry((uint32_t)getpid(), SB_READER_MAPS, (uint64_t)nr, rest, 1),
			 0);
	munmap(maps, nr_bytes);
}

static void test_files(void **state)
{
	char dir[] = "/tmp/sb-reader-XXXXXX", path[64];
	struct sb_reader_file file = { .place = SB_READER_HERE };
	int fd;

	begin(LONG_NS);
	assert_non_null(mkdtemp(dir));
	file.path = dir;
	assert_int_equal(sb_reader_open(&file), -EINVAL);
	file.path = "/dev/null";
	assert_int_equal(sb_reader_open(&file), -EINVAL);
	file.path = path;
	snprintf(path, sizeof(path), "%s/file", dir);
	assert_int_equal(sb_reader_open(&file), -ENOENT);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(sb_reader_open(&file), -EINVAL);
	assert_int_equal(unlink(path), 0);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	fd = sb_reader_open(&file);
	assert_true(fd >= 0 && !sb_reader_is_copy(fd));
	close(fd);
	unlink(path);
	rmdir(dir);
}

/* The reader finds it where the caller is, though its own working directory is another one. */
static void test_relative(void **state)
{
	char dir[] = "/tmp/sb-reader-XXXXXX", path[64];
	const struct sb_reader_file file = { .place = SB_READER_HERE, .path = "../file" };
	struct stat st, want;
	int fd;

	not_under_valgrind();
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/below", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	begin(SHORT_NS);
	assert_int_equal(chdir(path), 0);
	fd = open("../file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && !fstat(fd, &want));
	close(fd);
	assert_int_equal(sb_reader_stat(&file, &st), 0);
	assert_true(st.st_ino == want.st_ino && st.st_dev == want.st_dev);
	fd = sb_reader_open(&file);
	assert_true(fd >= 0 && !fstat(fd, &st) && st.st_ino == want.st_ino);
	close(fd);
	assert_int_equal(stats().nr_requests, 2);
	shared->how = HANG;
	assert_int_equal(sb_reader_open(&file), -ETIMEDOUT);
	unlink("../file");
	rmdir(path);
	rmdir(dir);
	assert_int_equal(chdir("/"), 0);
}

/*
 * A file on the mount of our root is asked for once, and what it is afterwards is known without a
 * reader; until it has no name any more.
 */
static void test_held(void **state)
{
	char path[] = "/var/tmp/sb-reader-XXXXXX";
	int fd = mkstemp(path), other_fd;
	struct sb_maps_line line = { .path = path, .path_len = strlen(path) };
	struct statx root, own;
	struct stat want, st;

	not_under_valgrind();
	assert_true(fd >= 0 && !fstat(fd, &want));
	assert_int_equal(statx(AT_FDCWD, "/", 0, STATX_TYPE | STATX_MNT_ID, &root), 0);
	assert_int_equal(statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_MNT_ID, &own), 0);
	if (!(own.stx_mask & STATX_MNT_ID) || own.stx_mnt_id != root.stx_mnt_id) {
		unlink(path);
		skip();
	}
	line.ino = want.st_ino;
	line.maj = major(want.st_dev);
	line.min = minor(want.st_dev);
	begin(LONG_NS);
	assert_int_equal(sb_procfs_stat_line((uint32_t)child, &line, &st), 0);
	assert_int_equal(stats().nr_requests, 1);
	sb_reader_tidy();
	assert_int_equal(write(fd, "more", 4), 4);
	assert_int_equal(sb_procfs_stat_line((uint32_t)child, &line, &st), 0);
	assert_true(st.st_ino == want.st_ino && st.st_size == 4);
	assert_int_equal(stats().nr_requests, 1);
	other_fd = sb_procfs_open_line((uint32_t)child, &line);
	assert_true(other_fd >= 0 && !fstat(other_fd, &st) && st.st_ino == want.st_ino);
	close(other_fd);
	assert_int_equal(stats().nr_requests, 1);
	/* Another file of that name is not taken for it. */
	line.ino++;
	assert_int_equal(sb_procfs_stat_line((uint32_t)child, &line, &st), -ENOENT);
	assert_int_equal(stats().nr_requests, 3);
	line.ino--;
	unlink(path);
	assert_int_equal(sb_procfs_stat_line((uint32_t)child, &line, &st), -ENOENT);
	assert_int_equal(stats().nr_requests, 5);
	assert_false(sb_reader_held_stat(want.st_dev, want.st_ino, &st));
	close(fd);
}

/* A file of FUSE has no known owner, nor has its copy. A file that is only called as copies are is
 * its owner's. */
static void test_copy_owner(void **state)
{
	int fd = memfd_create("stackbpf-copy", MFD_CLOEXEC), copy_fd;
	struct sb_file_owner owner;
	struct stat st;
	char path[64];

	assert_true(fd >= 0);
	assert_int_equal(write(fd, secret, sizeof(secret)), sizeof(secret));
	assert_int_equal(sb_reader_fstat(fd, &st), 0);
	owner = sb_file_owner(fd, &st);
	assert_true(sb_is_known_owner(&owner) && owner.uid == geteuid());
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	is_on_fuse = true;
	copy_fd = sb_reader_open(&(struct sb_reader_file){ .place = SB_READER_HERE, .path = path });
	is_on_fuse = false;
	assert_true(copy_fd >= 0 && sb_reader_is_copy(copy_fd) && !sb_reader_is_copy(fd));
	assert_int_equal(sb_reader_fstat(copy_fd, &st), 0);
	owner = sb_file_owner(copy_fd, &st);
	assert_false(sb_is_known_owner(&owner));
	close(copy_fd);
	close(fd);
}

/* A server says who owns its files: root, if it wants to. */
static void test_perf_map_owner(void **state)
{
	struct sb_perfmaps maps = {};
	struct sb_jit *jit;
	uint64_t start;
	char path[64];
	FILE *file;
	int i;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", child);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs("1000 10 compiled\n", file);
	fclose(file);
	for (i = 0; i < 2; i++) {
		is_on_fuse = i;
		jit = sb_jit_new(&maps, (uint32_t)child, false);
		assert_non_null(jit);
		if (is_on_fuse)
			assert_null(sb_jit_lookup(jit, 0x1000, 0, &start));
		else
			assert_string_equal(sb_jit_lookup(jit, 0x1000, 0, &start), "compiled");
		sb_jit_free(jit);
	}
	is_on_fuse = false;
	sb_perfmaps_release(&maps);
	unlink(path);
}

/* A copy is made by us, perhaps by root, who has no bounds; and the original's server may say that
 * root owns it. */
static void test_copy_payer(void **state)
{
	sb_cleanup(sb_closep) int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int fd = memfd_create("program", MFD_CLOEXEC), copy_fd;
	struct sb_elf *elf;
	char path[64];

	while (sendfile(fd, exe, NULL, 1 << 20) > 0)
		;
	assert_int_equal(sb_elf_new_fd(fd, &elf), 0);
	assert_int_equal(elf->uid, geteuid());
	sb_elf_free(elf);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	is_on_fuse = true;
	copy_fd = sb_reader_open(&(struct sb_reader_file){ .place = SB_READER_HERE, .path = path });
	is_on_fuse = false;
	assert_int_equal(sb_elf_new_fd(copy_fd, &elf), 0);
	assert_int_equal(elf->uid, SB_OWNER_NOBODY);
	sb_elf_free(elf);
	close(copy_fd);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ahead, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ahead_of_pointers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ahead_in_rounds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ahead_hang, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ahead_forged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cpu_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_crash, setup, teardown),
		cmocka_unit_test_setup_teardown(test_crowded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hang, setup, teardown),
		cmocka_unit_test_setup_teardown(test_abandoned_max, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_entry_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_relative, setup, teardown),
		cmocka_unit_test_setup_teardown(test_held, setup, teardown),
		cmocka_unit_test_setup_teardown(test_copy_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(test_copy_payer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_perf_map_owner, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
