// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The symbolizer's API, fed with events as a sampler would, of processes that do not exist (any
 * more). The functions looked up are this test's own: the linker's own words say where they are.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/time.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/process/reader.h"
#include "symbolizer/sb_sym.h"

/* Above PID_MAX_LIMIT: never a process. */
#define NOBODY	 5000000u
#define NOBODY_2 5000001u

/* Out of every program's way; nothing is mapped there. */
#define LIB_AT	 0x7000000000ull

static struct sb_symbolizer *sym;
static char dir[] = "/tmp/sb-symbolizer-XXXXXX";

/* What is asked for, with external linkage so that every symbol table has it. */
int function_one(int x);
int function_two(int x);

__attribute__((noinline)) int function_one(int x)
{
	return x + 1;
}

__attribute__((noinline)) int function_two(int x)
{
	return x * 3;
}

static int setup(void **state)
{
	struct sb_symbolizer_opts opts = {};

	return sb_symbolizer_new(&opts, &sym);
}

static int teardown(void **state)
{
	sb_symbolizer_free(sym);
	sym = NULL;
	return 0;
}

/* The executable mapping of this test that holds @addr, as an event of @tgid at @addr_at. */
struct own {
	uint64_t addr;
	struct sb_sym_mmap ev;
	char path[PATH_MAX];
};

static int find_own(void *arg, const struct sb_maps_line *line)
{
	struct own *own = arg;

	if (own->addr < line->start || own->addr >= line->end)
		return 0;
	snprintf(own->path, sizeof(own->path), "%.*s", (int)line->path_len, line->path);
	own->ev = (struct sb_sym_mmap){
		.addr = line->start,
		.len = line->end - line->start,
		.pgoff = line->pgoff,
		.ino = line->ino,
		.maj = line->maj,
		.min = line->min,
		.path = own->path,
		.fd = -1,
	};
	return 0;
}

static void get_own(struct own *own, const void *addr)
{
	*own = (struct own){ .addr = (uint64_t)(uintptr_t)addr };
	assert_int_equal(sb_procfs_maps((uint32_t)getpid(), find_own, own), 0);
	assert_non_null(own->ev.path);
}

/* The text of this test, mapped at @at in process @tgid. Return: where function_one() is then. */
static uint64_t map_own(uint32_t tgid, uint64_t time_ns, uint64_t at)
{
	struct own own;

	get_own(&own, function_one);
	own.ev.tgid = tgid;
	own.ev.time_ns = time_ns;
	own.addr = own.addr - own.ev.addr + at;
	own.ev.addr = at;
	assert_int_equal(sb_symbolizer_mmap(sym, &own.ev), 0);
	return own.addr;
}

struct answer {
	struct sb_sym_frame frame; /* the outermost one */
	size_t nr_frames, nr_calls;
};

static int note(void *arg, size_t i, const struct sb_sym_frame *frames, size_t nr_frames)
{
	struct answer *answer = arg;

	assert_int_equal(i, answer->nr_calls);
	answer->nr_calls++;
	answer->frame = frames[nr_frames - 1];
	answer->nr_frames = nr_frames;
	assert_non_null(answer->frame.module);
	return 0;
}

static struct sb_sym_frame ask(uint32_t tgid, uint64_t time_ns, uint64_t addr)
{
	struct sb_sym_req req = { .addr = addr };
	struct answer answer = {};
	struct sb_sym_query query = { .reqs = &req, .nr = 1, .emit = note, .arg = &answer };

	assert_int_equal(sb_symbolizer_user(sym, tgid, time_ns, &query), 0);
	assert_int_equal(answer.nr_calls, 1);
	return answer.frame;
}

static void expect(uint32_t tgid, uint64_t time_ns, uint64_t addr, const char *name)
{
	struct sb_sym_frame frame = ask(tgid, time_ns, addr);

	assert_non_null(frame.name);
	assert_string_equal(frame.name, name);
	assert_int_equal(frame.reason, SB_SYM_OK);
}

static void expect_reason(uint32_t tgid, uint64_t time_ns, uint64_t addr, enum sb_sym_reason reason)
{
	struct sb_sym_frame frame = ask(tgid, time_ns, addr);

	assert_null(frame.name);
	assert_int_equal(frame.reason, reason);
}

static void test_exited(void **state)
{
	uint64_t one;

	assert_int_equal(sb_symbolizer_exec(sym, 10, NOBODY), 0);
	one = map_own(NOBODY, 11, LIB_AT);
	assert_int_equal(sb_symbolizer_exit(sym, 20, NOBODY), 0);
	expect(NOBODY, 15, one, "function_one");
	expect(NOBODY, 30, one, "function_one");
	expect_reason(NOBODY, 10, one, SB_SYM_UNMAPPED);
	assert_string_equal(ask(NOBODY, 15, one).module, "unit_symbolizer");
	sb_symbolizer_forget(sym, 100);
	expect_reason(NOBODY, 15, one, SB_SYM_GONE);
}

static size_t count_fds(void)
{
	size_t nr = 0;
	DIR *fds = opendir("/proc/self/fd");

	assert_non_null(fds);
	while (readdir(fds))
		nr++;
	closedir(fds);
	return nr;
}

/* On a machine that builds programs, each process runs a file of its own. The symbolizer keeps
 * neither descriptors nor memory of files whose processes have ended. */
static void test_files_come_and_go(void **state)
{
	const size_t nr_before = count_fds();
	uint64_t time_ns = 10, one = 0;
	struct own own;
	uint32_t i;

	(void)state;
	get_own(&own, function_one);
	for (i = 1; i <= 2000; i++, time_ns += 10) {
		struct sb_sym_mmap ev = own.ev;

		assert_int_equal(sb_symbolizer_exec(sym, time_ns, NOBODY), 0);
		ev.tgid = NOBODY;
		ev.time_ns = time_ns + 1;
		ev.ino += i;
		ev.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		assert_true(ev.fd >= 0);
		assert_int_equal(sb_symbolizer_mmap(sym, &ev), 0);
		/* One that stays, and is asked about again. */
		if (i == 1) {
			assert_int_equal(sb_symbolizer_exec(sym, time_ns, NOBODY_2), 0);
			one = map_own(NOBODY_2, time_ns + 1, LIB_AT);
		}
		expect(NOBODY_2, time_ns + 2, one, "function_one");
		assert_int_equal(sb_symbolizer_exit(sym, time_ns + 5, NOBODY), 0);
		sb_symbolizer_forget(sym, time_ns);
		assert_true(count_fds() < nr_before + 300);
	}
	expect(NOBODY_2, time_ns, one, "function_one");
}

/* fork without exec sees the parent's, as it was; pid reuse does not see the old process. */
static void test_fork_and_reuse(void **state)
{
	uint64_t one;

	assert_int_equal(sb_symbolizer_exec(sym, 10, NOBODY), 0);
	one = map_own(NOBODY, 11, LIB_AT);
	assert_int_equal(sb_symbolizer_fork(sym, 20, NOBODY_2, NOBODY), 0);
	assert_int_equal(sb_symbolizer_exit(sym, 30, NOBODY), 0);
	expect(NOBODY_2, 40, one, "function_one");
	assert_int_equal(sb_symbolizer_exec(sym, 50, NOBODY_2), 0);
	expect(NOBODY_2, 49, one, "function_one");
	expect_reason(NOBODY_2, 50, one, SB_SYM_GONE);
}

/* Two libraries, one after the other, at one address. */
static void test_same_address(void **state)
{
	struct own libc;
	uint64_t one, in_libc;

	get_own(&libc, dlsym(RTLD_DEFAULT, "gnu_get_libc_version"));
	assert_int_equal(sb_symbolizer_exec(sym, 10, NOBODY), 0);
	one = map_own(NOBODY, 11, LIB_AT);
	in_libc = libc.addr - libc.ev.addr + LIB_AT;
	libc.ev.tgid = NOBODY;
	libc.ev.time_ns = 20;
	libc.ev.addr = LIB_AT;
	assert_int_equal(sb_symbolizer_mmap(sym, &libc.ev), 0);
	expect(NOBODY, 19, one, "function_one");
	/* With the debug file of libc its stronger alias wins: __gnu_get_libc_version. */
	assert_non_null(strstr(ask(NOBODY, 20, in_libc).name, "gnu_get_libc_version"));
	assert_string_equal(ask(NOBODY, 20, one).module, "libc.so.6");
}

/* Copy this test's binary. */
static void copy_self(const char *to, size_t nr_extra)
{
	sb_cleanup(sb_freep) char *data = NULL;
	size_t len;
	int fd;

	assert_int_equal(sb_read_file("/proc/self/exe", 1 << 30, &data, &len), 0);
	fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	assert_int_equal(sb_write_all(fd, data, len), 0);
	while (nr_extra--)
		assert_int_equal(sb_write_all(fd, "x", 1), 0);
	close(fd);
}

/* An event for a file that only its path leads to; -1: no inode, as with a build ID. */
static uint64_t map_file(uint64_t time_ns, const char *path, int fd, const struct sb_sym_mmap *how)
{
	struct own own;

	get_own(&own, function_one);
	own.addr = own.addr - own.ev.addr + LIB_AT;
	own.ev.addr = LIB_AT;
	own.ev.tgid = NOBODY;
	own.ev.time_ns = time_ns;
	own.ev.path = path;
	own.ev.fd = fd;
	own.ev.ino = how->ino;
	own.ev.maj = how->maj;
	own.ev.min = how->min;
	own.ev.build_id_bytes = how->build_id_bytes;
	memcpy(own.ev.build_id, how->build_id, sizeof(how->build_id));
	assert_int_equal(sb_symbolizer_mmap(sym, &own.ev), 0);
	return own.addr;
}

static struct sb_sym_mmap by_inode(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (struct sb_sym_mmap){ .ino = st.st_ino,
				     .maj = major(st.st_dev),
				     .min = minor(st.st_dev) };
}

/* Is the file that is opened the one that was mapped? */
static void test_identity(void **state)
{
	struct sb_sym_mmap id, wrong_build_id = { .build_id = { 1, 2, 3 }, .build_id_bytes = 20 };
	char path[64], gone[80];
	uint64_t one;
	int fd;

	snprintf(path, sizeof(path), "%s/binary", dir);
	snprintf(gone, sizeof(gone), "%s (deleted)", path);
	copy_self(path, 0);
	id = by_inode(path);
	one = map_file(5, path, -1, &wrong_build_id);
	expect_reason(NOBODY, 5, one, SB_SYM_NO_FILE);
	map_file(10, path, -1, &id);
	expect(NOBODY, 10, one, "function_one");
	/* Another inode: another file. */
	id.ino++;
	map_file(20, path, -1, &id);
	expect_reason(NOBODY, 20, one, SB_SYM_NO_FILE);
	assert_string_equal(ask(NOBODY, 20, one).module, "binary");
	wrong_build_id.build_id[0]++;
	map_file(30, path, -1, &wrong_build_id);
	expect_reason(NOBODY, 30, one, SB_SYM_NO_FILE);
	/* Unlinked, but opened in time. A different file altogether: another size. */
	copy_self(path, 1);
	id = by_inode(path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	unlink(path);
	map_file(40, gone, fd, &id);
	expect(NOBODY, 40, one, "function_one");
	assert_string_equal(ask(NOBODY, 40, one).module, "binary");
}

static void test_unlinked_and_gone(void **state)
{
	struct sb_sym_mmap id;
	char path[64];
	uint64_t one;

	snprintf(path, sizeof(path), "%s/binary", dir);
	copy_self(path, 0);
	id = by_inode(path);
	unlink(path);
	one = map_file(10, path, -1, &id);
	expect_reason(NOBODY, 10, one, SB_SYM_NO_FILE);
}

static void test_bad_file(void **state)
{
	struct sb_sym_mmap id = by_inode("/etc/passwd");
	uint64_t one = map_file(10, "/etc/passwd", -1, &id);
	struct sb_sym_frame frame = ask(NOBODY, 10, one);

	expect_reason(NOBODY, 10, one, SB_SYM_BAD_FILE);
	assert_string_equal(frame.module, "passwd");
}

static void test_no_match_and_no_symbols(void **state)
{
	struct sb_sym_req reqs[] = { { .addr = 1 } };
	struct answer answer = {};
	struct sb_sym_query query = { .reqs = reqs, .nr = 1, .emit = note, .arg = &answer };
	char path[64];

	assert_int_equal(sb_symbolizer_file(sym, "/proc/self/exe", &query), 0);
	assert_int_equal(answer.frame.reason, SB_SYM_NO_MATCH);
	assert_true(answer.frame.module_addr == 1);
	/* Without any symbol table: section headers and dynamic symbols cut off. */
	snprintf(path, sizeof(path), "%s/stripped", dir);
	copy_self(path, 0);
	if (!fork()) {
		execlp("objcopy", "objcopy", "--strip-all", "--remove-section=.note.gnu.build-id",
		       path, NULL);
		_exit(127);
	}
	wait(NULL);
	answer.nr_calls = 0;
	assert_int_equal(sb_symbolizer_file(sym, path, &query), 0);
	assert_int_equal(answer.frame.reason, SB_SYM_NO_SYMBOLS);
	unlink(path);
	answer.nr_calls = 0;
	assert_int_equal(sb_symbolizer_file(sym, path, &query), -ENOENT);
	assert_int_equal(sb_symbolizer_file(sym, "/etc/passwd", &query), -ENOEXEC);
	assert_int_equal(answer.nr_calls, 0);
}

static void test_anon_and_jit(void **state)
{
	struct sb_sym_mmap ev = { .tgid = NOBODY,
				  .time_ns = 10,
				  .addr = LIB_AT,
				  .len = 0x1000,
				  .path = "//anon",
				  .fd = -1 };
	struct sb_sym_frame frame;
	char path[64];
	FILE *map;

	assert_int_equal(sb_symbolizer_mmap(sym, &ev), 0);
	expect_reason(NOBODY, 10, LIB_AT, SB_SYM_ANON);
	assert_string_equal(ask(NOBODY, 10, LIB_AT).module, "[anon]");
	snprintf(path, sizeof(path), "/tmp/perf-%u.map", NOBODY);
	map = fopen(path, "w");
	assert_non_null(map);
	fprintf(map, "%llx 10 made in time\n", LIB_AT + 16);
	fclose(map);
	/* The process has ended: its map is read then. */
	assert_int_equal(sb_symbolizer_exit(sym, 20, NOBODY), 0);
	unlink(path);
	frame = ask(NOBODY, 10, LIB_AT + 20);
	assert_string_equal(frame.name, "made in time");
	assert_int_equal(frame.kind, SB_SYM_JIT);
	assert_true(frame.func_offset == 4);
	expect_reason(NOBODY, 10, LIB_AT, SB_SYM_ANON);
}

static void test_kernel(void **state)
{
	static const char *const texts[] = {
		"0000000000000000 T f\n",
		"ffffffff81000000 T f\nffffffff81000100 t _RNvC3foo3bar\n"
		"ffffffff81000200 D end\nffffffffc0000000 t m\t[mod]\n"
		"ffffffffc0001000 t bpf_prog_x\t[bpf]\n",
	};
	struct sb_symbolizer_opts opts = {};
	struct sb_sym_req reqs[] = { { .addr = 0xffffffff81000101, .is_caller = true } };
	struct answer answer = {};
	struct sb_sym_query query = { .reqs = reqs, .nr = 1, .emit = note, .arg = &answer };
	struct sb_symbolizer *kernel;
	char path[64];
	size_t i;

	snprintf(path, sizeof(path), "%s/kallsyms", dir);
	opts.kallsyms_path = path;
	for (i = 0; i < 2; i++) {
		FILE *file = fopen(path, "w");

		assert_non_null(file);
		fputs(texts[i], file);
		fclose(file);
		assert_int_equal(sb_symbolizer_new(&opts, &kernel), 0);
		answer.nr_calls = 0;
		assert_int_equal(sb_symbolizer_kernel(kernel, &query), 0);
		assert_string_equal(answer.frame.module, "[kernel]");
		assert_int_equal(answer.frame.kind, SB_SYM_KERNEL);
		if (i == 0)
			assert_int_equal(answer.frame.reason, SB_SYM_RESTRICTED);
		if (i == 0)
			sb_symbolizer_free(kernel);
	}
	assert_string_equal(answer.frame.name, "foo::bar");
	assert_string_equal(answer.frame.raw_name, "_RNvC3foo3bar");
	assert_true(answer.frame.func_offset == 1); /* of what was asked, not of the call */
	reqs[0] = (struct sb_sym_req){ .addr = 0xffffffffc0000010 };
	answer.nr_calls = 0;
	assert_int_equal(sb_symbolizer_kernel(kernel, &query), 0);
	assert_string_equal(answer.frame.module, "[mod]");
	assert_int_equal(answer.frame.kind, SB_SYM_KMOD);
	reqs[0].addr = 0xffffffffc0001010;
	answer.nr_calls = 0;
	assert_int_equal(sb_symbolizer_kernel(kernel, &query), 0);
	assert_int_equal(answer.frame.kind, SB_SYM_BPF);
	sb_symbolizer_free(kernel);
	unlink(path);
}

static void test_limit(void **state)
{
	struct sb_sym_mmap ev = { .tgid = NOBODY, .len = 0x1000, .path = "//anon", .fd = -1 };
	struct sb_sym_stats stats;
	int i;

	for (i = 0; i < 40000; i++) {
		ev.time_ns = 10 + (uint64_t)i;
		ev.addr = LIB_AT + (uint64_t)i * 0x1000;
		assert_int_equal(sb_symbolizer_mmap(sym, &ev), 0);
	}
	expect_reason(NOBODY, SB_NS_PER_SEC, LIB_AT + 39999 * 0x1000ull, SB_SYM_LIMIT);
	sb_symbolizer_stats(sym, &stats);
	assert_true(stats.nr_refused > 0);
	assert_true(stats.nr_reason[SB_SYM_LIMIT] == 1 && stats.nr_lookups == 1);
}

/* A living process: ourselves, without any event; and what it loads while events are lost. */
static void test_lost(void **state)
{
	uint32_t self = (uint32_t)getpid();
	uint64_t now_ns = sb_now_ns(), addr;
	struct sb_sym_mmap old = { .path = "//anon", .fd = -1 };
	struct own own;
	void *copy;
	int fd;

	expect(self, now_ns, (uint64_t)(uintptr_t)function_two, "function_two");
	get_own(&own, function_two);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	copy = mmap(NULL, own.ev.len, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, (off_t)own.ev.pgoff);
	close(fd);
	assert_true(copy != MAP_FAILED);
	addr = own.addr - own.ev.addr + (uint64_t)(uintptr_t)copy;
	expect_reason(self, sb_now_ns(), addr, SB_SYM_UNMAPPED);
	/* What was there before, by an event, is there no longer. */
	old.tgid = self;
	old.time_ns = sb_now_ns();
	old.addr = (uint64_t)(uintptr_t)copy;
	old.len = own.ev.len;
	assert_int_equal(sb_symbolizer_mmap(sym, &old), 0);
	expect_reason(self, sb_now_ns(), addr, SB_SYM_ANON);
	now_ns = sb_now_ns();
	assert_int_equal(sb_symbolizer_lost(sym, now_ns), 0);
	expect(self, sb_now_ns(), addr, "function_two");
	munmap(copy, own.ev.len);
}

static void miss(uint32_t tgid, uint64_t first_ns, uint64_t last_ns)
{
	assert_int_equal(
		sb_symbolizer_skipped(sym, &(struct sb_sym_skip){ tgid, first_ns, last_ns }), 0);
}

/* A process is not read again at once. */
static void expect_soon(uint32_t tgid, uint64_t time_ns, uint64_t addr, const char *name)
{
	uint64_t deadline_ns = sb_now_ns() + 60 * SB_NS_PER_SEC;

	while (!ask(tgid, time_ns, addr).name)
		assert_true(sb_now_ns() < deadline_ns);
	expect(tgid, time_ns, addr, name);
}

/* Records of mappings were skipped: what lies there still has its name, what came and went has
 * none. */
static void test_skipped(void **state)
{
	uint32_t self = (uint32_t)getpid();
	uint64_t two = (uint64_t)(uintptr_t)function_two, begin_ns = sb_now_ns(), one;
	struct sb_sym_mmap gone = { .tgid = self, .addr = LIB_AT, .len = 0x1000, .fd = -1 };

	expect(self, begin_ns, two, "function_two");
	gone.time_ns = sb_now_ns();
	gone.path = "//anon";
	assert_int_equal(sb_symbolizer_mmap(sym, &gone), 0);
	gone.time_ns = begin_ns + SB_NS_PER_MS;
	gone.addr = two & ~0xfffull;
	assert_int_equal(sb_symbolizer_mmap(sym, &gone), 0);
	miss(self, begin_ns, begin_ns + 2 * SB_NS_PER_MS);
	expect_reason(self, begin_ns + SB_NS_PER_MS, two, SB_SYM_LIMIT);
	expect_reason(self, begin_ns + SB_NS_PER_MS, LIB_AT + 0x5000, SB_SYM_LIMIT);
	expect(self, begin_ns, two, "function_two");
	expect(self, begin_ns + 2 * SB_NS_PER_MS, two, "function_two");
	/* The next time is one of its own. */
	miss(self, begin_ns + 3 * SB_NS_PER_MS, begin_ns + 4 * SB_NS_PER_MS);
	expect_soon(self, begin_ns + 3 * SB_NS_PER_MS, two, "function_two");
	/* One that cannot be read any more. */
	assert_int_equal(sb_symbolizer_exec(sym, 10, NOBODY), 0);
	one = map_own(NOBODY, 11, LIB_AT);
	miss(NOBODY, 20, 30);
	expect(NOBODY, 19, one, "function_one");
	expect_reason(NOBODY, 25, one, SB_SYM_LIMIT);
	expect_reason(NOBODY, 40, one, SB_SYM_LIMIT);
}

/* A process that is long to read is read again after a rest only. */
static void test_skipped_long(void **state)
{
	enum { NR = 20000 };
	uint32_t self = (uint32_t)getpid();
	uint64_t two = (uint64_t)(uintptr_t)function_two, now_ns;
	char *pages = mmap(NULL, NR * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i;

	assert_true(pages != MAP_FAILED);
	for (i = 0; i < NR; i += 2)
		assert_int_equal(mprotect(pages + i * 4096, 4096, PROT_READ | PROT_EXEC), 0);
	expect(self, sb_now_ns(), two, "function_two");
	now_ns = sb_now_ns();
	miss(self, now_ns, now_ns);
	expect_soon(self, sb_now_ns(), two, "function_two");
	now_ns = sb_now_ns();
	miss(self, now_ns, now_ns);
	expect_reason(self, now_ns, two, SB_SYM_LIMIT);
	expect_soon(self, now_ns, two, "function_two");
	munmap(pages, NR * 4096);
}

static void test_batch(void **state)
{
	enum { NR = 10000 };
	struct sb_sym_req *reqs = calloc(NR, sizeof(*reqs));
	struct answer answer = {};
	struct sb_sym_query query = { .reqs = reqs, .nr = NR, .emit = note, .arg = &answer };
	uint64_t one;
	int i;

	assert_non_null(reqs);
	assert_int_equal(sb_symbolizer_exec(sym, 10, NOBODY), 0);
	one = map_own(NOBODY, 11, LIB_AT);
	for (i = 0; i < NR; i++)
		reqs[i].addr = i % 3 ? one : 1;
	assert_int_equal(sb_symbolizer_user(sym, NOBODY, 12, &query), 0);
	assert_int_equal(answer.nr_calls, NR);
	free(reqs);
}

static int refuse(void *arg, size_t i, const struct sb_sym_frame *frames, size_t nr_frames)
{
	return i == 1 ? -ENOSPC : 0;
}

static void test_emit_fails(void **state)
{
	struct sb_sym_req reqs[3] = {};
	struct sb_sym_query query = { .reqs = reqs, .nr = 3, .emit = refuse };

	assert_int_equal(sb_symbolizer_user(sym, NOBODY, 1, &query), -ENOSPC);
	assert_int_equal(sb_symbolizer_kernel(sym, &query), -ENOSPC);
	assert_int_equal(sb_symbolizer_file(sym, "/proc/self/exe", &query), -ENOSPC);
}

/* DWARF that does not fit is dropped and comes back; answers stay the same. */
static void test_heavy(void **state)
{
	struct sb_symbolizer_opts opts = { .inlines = true, .lines = true, .heavy_bytes_max = 1 };
	struct sb_symbolizer *small;
	struct sb_sym_stats stats;
	struct sb_sym_req req = { .addr = (uint64_t)(uintptr_t)function_one };
	struct answer answer = {};
	struct sb_sym_query query = { .reqs = &req, .nr = 1, .emit = note, .arg = &answer };
	uint32_t line = 0, i;

	assert_int_equal(sb_symbolizer_new(&opts, &small), 0);
	for (i = 0; i < 3; i++) {
		answer.nr_calls = 0;
		req.addr = (uint64_t)(uintptr_t)function_one + i;
		assert_int_equal(sb_symbolizer_user(small, (uint32_t)getpid(), sb_now_ns(), &query),
				 0);
		assert_string_equal(answer.frame.name, "function_one");
		assert_non_null(answer.frame.file);
		assert_true(!line || answer.frame.decl_line == line);
		line = answer.frame.decl_line;
		assert_true(line > 0);
	}
	sb_symbolizer_stats(small, &stats);
	assert_true(stats.nr_heavy_bytes == 0);
	assert_true(stats.nr_heavy_bytes_peak > 0);
	assert_true(stats.nr_evictions >= 3);
	/* From the memo: nothing is read again. */
	answer.nr_calls = 0;
	assert_int_equal(sb_symbolizer_user(small, (uint32_t)getpid(), sb_now_ns(), &query), 0);
	assert_string_equal(answer.frame.name, "function_one");
	assert_true(answer.frame.decl_line == line);
	sb_symbolizer_free(small);
}

/* Symbol tables, too: and a file that nobody can open again stays open. */
static void test_light(void **state)
{
	struct sb_symbolizer_opts opts = { .heavy_bytes_max = 1 };
	struct sb_symbolizer *whole = sym;
	struct sb_sym_mmap id;
	struct sb_sym_stats stats;
	struct own libc;
	uint64_t one, libc_bytes, both_bytes;
	char path[64];
	int fd, i;

	(void)state;
	snprintf(path, sizeof(path), "%s/binary", dir);
	copy_self(path, 0);
	id = by_inode(path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	unlink(path);
	get_own(&libc, dlsym(RTLD_NEXT, "gnu_get_libc_version"));
	assert_int_equal(sb_symbolizer_new(&opts, &sym), 0);
	one = map_file(10, path, fd, &id);
	libc.ev.tgid = NOBODY;
	libc.ev.time_ns = 10;
	assert_int_equal(sb_symbolizer_mmap(sym, &libc.ev), 0);
	ask(NOBODY, 10, libc.addr);
	sb_symbolizer_stats(sym, &stats);
	libc_bytes = stats.nr_light_bytes;
	for (i = 0; i < 2; i++) {
		expect(NOBODY, 10, one, "function_one");
		ask(NOBODY, 10, libc.addr);
		sb_symbolizer_stats(sym, &stats);
		assert_true(stats.nr_light_bytes < libc_bytes + 100);
		assert_int_equal(stats.nr_modules, 2);
	}
	sb_symbolizer_free(sym);
	/* Where there is room, both are kept. */
	sym = whole;
	ask((uint32_t)getpid(), sb_now_ns(), (uint64_t)(uintptr_t)function_one);
	ask((uint32_t)getpid(), sb_now_ns(), libc.addr);
	sb_symbolizer_stats(sym, &stats);
	both_bytes = stats.nr_light_bytes;
	assert_true(both_bytes > libc_bytes + 1000);
	assert_int_equal(stats.nr_evictions, 0);
}

struct seen {
	bool self, libc, vdso;
	uint64_t last;
};

static int on_source(void *arg, const struct sb_sym_source *source)
{
	struct seen *seen = arg;

	assert_true(source->addr >= seen->last);
	seen->last = source->addr + source->len;
	assert_non_null(source->symbols);
	assert_non_null(source->unwind);
	if (strstr(source->path, "unit_symbolizer")) {
		seen->self = true;
		assert_string_equal(source->symbols, ".symtab");
		assert_true(source->has_dwarf);
	}
	if (strstr(source->path, "libc.so")) {
		seen->libc = true;
		assert_string_equal(source->unwind, ".eh_frame");
		assert_int_equal(source->build_id_bytes, 20);
	}
	seen->vdso |= !strcmp(source->path, "[vdso]") && !strcmp(source->symbols, ".dynsym");
	return 0;
}

static void test_sources(void **state)
{
	struct seen seen = {};

	assert_int_equal(sb_symbolizer_sources(sym, (uint32_t)getpid(), on_source, &seen), 0);
	assert_true(seen.self && seen.libc && seen.vdso);
	assert_int_equal(sb_symbolizer_sources(sym, NOBODY, on_source, &seen), -ESRCH);
	assert_int_equal(sb_symbolizer_seed(sym, 1, NOBODY), -ESRCH);
}

static uint64_t requests(void)
{
	struct sb_reader_stats stats;

	sb_reader_stats(&stats);
	return stats.nr_requests;
}

/* A process is read once: from then on events tell what it maps, unless some were lost. */
static void test_seed_unknown(void **state)
{
	const uint32_t tgids[] = { NOBODY, (uint32_t)getpid() };
	uint64_t before = requests(), first;

	assert_int_equal(sb_symbolizer_seed_unknown(sym, 10, tgids, 2), 0);
	first = requests() - before;
	assert_true(first >= 2);
	before = requests();
	assert_int_equal(sb_symbolizer_seed_unknown(sym, 20, tgids + 1, 1), 0);
	assert_true(requests() == before);
	sb_symbolizer_lost(sym, 25);
	assert_int_equal(sb_symbolizer_seed_unknown(sym, 30, tgids + 1, 1), 0);
	assert_true(requests() > before);
	before = requests();
	assert_int_equal(sb_symbolizer_exit(sym, 40, tgids[1]), 0);
	assert_int_equal(sb_symbolizer_seed_unknown(sym, 50, tgids + 1, 1), 0);
	assert_true(requests() > before);
}

/* Of a process that has ended, /proc has no mappings until its parent has waited: its names
 * stay. */
static void test_seed_zombie(void **state)
{
	const pid_t pid = fork();
	const uint32_t tgid = (uint32_t)pid;
	uint64_t addr;
	siginfo_t info;

	if (!pid)
		_exit(0);
	assert_true(pid > 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(sb_symbolizer_exec(sym, 10, tgid), 0);
	addr = map_own(tgid, 11, 0x7000000);
	assert_int_equal(sb_symbolizer_exit(sym, 20, tgid), 0);
	assert_int_equal(sb_symbolizer_seed_unknown(sym, 30, &tgid, 1), 0);
	expect(tgid, 40, addr, "function_one");
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int make_dir(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_files_come_and_go, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exited, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork_and_reuse, setup, teardown),
		cmocka_unit_test_setup_teardown(test_same_address, setup, teardown),
		cmocka_unit_test_setup_teardown(test_identity, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unlinked_and_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_match_and_no_symbols, setup, teardown),
		cmocka_unit_test_setup_teardown(test_anon_and_jit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kernel, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(test_skipped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_skipped_long, setup, teardown),
		cmocka_unit_test_setup_teardown(test_batch, setup, teardown),
		cmocka_unit_test_setup_teardown(test_emit_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_heavy, setup, teardown),
		cmocka_unit_test_setup_teardown(test_light, setup, teardown),
		cmocka_unit_test_setup_teardown(test_seed_unknown, setup, teardown),
		cmocka_unit_test_setup_teardown(test_seed_zombie, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sources, setup, teardown),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
