// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Lists of mappings, of this very process and of children. The truth: what the dynamic linker says
 * of a function, what we mapped ourselves, and sscanf() on /proc/self/maps.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "capture/uwprocs.h"
#include "process/process.h"

#define NR_BINS	 64u
#define NR_PROCS 2u
#define START_NS 7777u
#define PAGE	 4096ul

static uint64_t clock_ns;
static struct sb_uw_bin bins[NR_BINS];
static struct sb_uwpool *pool;
static struct sb_uwtables *tables;
static struct sb_processes *processes;
static struct sb_uwprocs *procs;
static struct sb_uwprocs_stats stats;

/* What the walker sees. */
static struct {
	uint32_t tgid; /* 0: nothing */
	struct sb_uw_proc proc;
	unsigned int nr_new, nr_same;
} shown[NR_PROCS + 1];
static uint32_t shown_max;

static uint64_t cpu_clock_ns, read_costs_ns;

static uint64_t now_ns(void)
{
	return clock_ns;
}

/* What a reading costs is the difference of two looks. */
static uint64_t cpu_ns(void)
{
	return cpu_clock_ns += read_costs_ns;
}

static int add_part(void *arg, uint32_t idx, void *at)
{
	void *mem = mmap(at, SB_UWPOOL_PART_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	return mem == at ? 0 : -ENOMEM;
}

static int find_shown(uint32_t tgid)
{
	int i;

	for (i = 0; i < (int)shown_max; i++)
		if (shown[i].tgid == tgid)
			return i;
	return -1;
}

static int publish(void *arg, uint32_t tgid, const struct sb_uw_proc *proc, bool is_same)
{
	int i = find_shown(tgid);

	if (i < 0)
		i = find_shown(0);
	if (i < 0)
		return -E2BIG;
	shown[i].tgid = tgid;
	shown[i].proc = *proc;
	if (is_same)
		shown[i].nr_same++;
	else
		shown[i].nr_new++;
	return 0;
}

static void unpublish(void *arg, uint32_t tgid)
{
	int i = find_shown(tgid);

	assert_true(i >= 0);
	memset(&shown[i], 0, sizeof(shown[i]));
}

/* A file with an interpreter; 0: there is none. */
static ino_t odd_ino;

static bool is_plain(void *arg, const struct stat *st)
{
	return st->st_ino != odd_ino;
}

static int setup(void **state)
{
	const struct sb_uwpool_opts pool_opts = { .add_part = add_part, .now_ns = now_ns };
	struct sb_uwtables_opts table_opts = {
		.bins = bins,
		.nr_bins_max = NR_BINS,
		.now_ns = now_ns,
	};
	struct sb_uwprocs_opts opts = {
		.nr_procs_max = NR_PROCS,
		.publish = publish,
		.unpublish = unpublish,
		.is_plain = is_plain,
		.now_ns = now_ns,
		.cpu_ns = cpu_ns,
	};

	clock_ns = 1000ull << 30;
	read_costs_ns = 1;
	memset(bins, 0, sizeof(bins));
	memset(shown, 0, sizeof(shown));
	shown_max = NR_PROCS + 1;
	assert_int_equal(sb_uwpool_new(&pool_opts, &pool), 0);
	opts.pool = table_opts.pool = pool;
	assert_int_equal(sb_uwtables_new(&table_opts, &tables), 0);
	opts.tables = tables;
	assert_int_equal(sb_processes_new(NULL, &processes), 0);
	opts.processes = processes;
	assert_int_equal(sb_uwprocs_new(&opts, &procs), 0);
	return 0;
}

static int teardown(void **state)
{
	sb_uwprocs_free(procs);
	sb_processes_free(processes);
	sb_uwtables_free(tables);
	sb_uwpool_free(pool);
	return 0;
}

static int need(uint32_t tgid, uint32_t exec_id, uint64_t addr)
{
	const struct sb_uw_need_event event = {
		.tgid = tgid,
		.exec_id = exec_id,
		.start_ns = START_NS,
		.addr = addr,
		.need = SB_UW_NEED_PROC,
	};
	int err = sb_uwprocs_need(procs, &event);

	sb_uwprocs_stats(procs, &stats);
	return err;
}

static int need_bin(uint32_t tgid, uint32_t bin)
{
	const struct sb_uw_need_event event = {
		.tgid = tgid,
		.start_ns = START_NS,
		.bin = bin,
		.need = SB_UW_NEED_BIN,
	};

	return sb_uwprocs_need_bin(procs, &event);
}

static const struct sb_uw_proc *shown_of(uint32_t tgid)
{
	int i = find_shown(tgid);

	return i < 0 ? NULL : &shown[i].proc;
}

static const struct sb_uw_seg *segs_of(const struct sb_uw_proc *proc)
{
	return (const struct sb_uw_seg *)(sb_uwpool_words(pool) + proc->segs_word);
}

static const struct sb_uw_seg *seg_at(uint32_t tgid, const void *addr)
{
	const struct sb_uw_proc *proc = shown_of(tgid);
	const struct sb_uw_seg *segs = segs_of(proc);
	uint64_t at = (uint64_t)(uintptr_t)addr;
	uint32_t i;

	for (i = 0; i < proc->nr_segs; i++)
		if (at >= segs[i].begin && at < segs[i].end)
			return &segs[i];
	return NULL;
}

static uint64_t addr_of(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* The address of a function as its own file has it. */
static void expect_function(const void *function)
{
	const struct sb_uw_seg *seg = seg_at((uint32_t)getpid(), function);
	const ElfW(Sym) * symbol;
	Dl_info info;

	assert_non_null(seg);
	assert_int_not_equal(dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT), 0);
	assert_non_null(symbol);
	assert_int_equal(addr_of(function) - seg->bias, symbol->st_value);
	assert_int_equal(seg->flags, 0);
	assert_true(seg->bin < NR_BINS);
}

static void expect_all_mappings(void)
{
	const struct sb_uw_proc *proc = shown_of((uint32_t)getpid());
	const struct sb_uw_seg *seg = segs_of(proc);
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long long begin, end;
	char line[512], exec;
	uint32_t nr = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		assert_int_equal(sscanf(line, "%llx-%llx %*c%*c%c", &begin, &end, &exec), 3);
		if (exec != 'x' || strstr(line, "[vsyscall]"))
			continue;
		assert_true(nr < proc->nr_segs);
		assert_int_equal(seg[nr].begin, begin);
		assert_int_equal(seg[nr].end, end);
		nr++;
	}
	fclose(maps);
	assert_int_equal(nr, proc->nr_segs);
}

/* mm->exec_vm, as the kernel tells it: split in two, in kB. */
static uint64_t pages_of_code(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	unsigned long kb, sum = 0;
	char line[256];

	assert_non_null(status);
	while (fgets(line, sizeof(line), status))
		if (sscanf(line, "VmExe: %lu", &kb) == 1 || sscanf(line, "VmLib: %lu", &kb) == 1)
			sum += kb;
	fclose(status);
	return sum * 1024 / (uint64_t)getpagesize();
}

static void test_own_mappings(void **state)
{
	void *code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	uint32_t self = (uint32_t)getpid(), libc, own;

	assert_true(code != MAP_FAILED);
	assert_int_equal(need(self, 5, addr_of((void *)qsort) + 1), 0);
	assert_int_equal(shown_of(self)->start_ns, START_NS);
	assert_int_equal(shown_of(self)->exec_id, 5);
	assert_int_equal(shown_of(self)->exec_vm, pages_of_code());
	expect_all_mappings();
	expect_function((void *)qsort);
	expect_function((void *)cmocka_set_message_output);
	assert_int_equal(seg_at(self, code)->flags, SB_UW_SEG_ANON);
	if (vdso) {
		assert_true(sb_uwtables_is_vdso(tables, seg_at(self, vdso)->bin));
		assert_int_equal(need_bin(self, seg_at(self, vdso)->bin), 0);
		assert_int_equal(bins[seg_at(self, vdso)->bin].state, SB_UW_BIN_READY);
	}
	/* What is asked for gets a table, and nothing else. */
	assert_true(sb_uwprocs_bin_at(procs, self, addr_of((void *)qsort) + 1, &libc));
	assert_int_equal(libc, seg_at(self, (void *)qsort)->bin);
	assert_false(sb_uwprocs_bin_at(procs, self, 0, &libc));
	assert_false(sb_uwprocs_bin_at(procs, self, addr_of(code), &own));
	assert_int_equal(need_bin(self, libc), 0);
	own = seg_at(self, (void *)test_own_mappings)->bin;
	assert_int_equal(bins[libc].state, SB_UW_BIN_READY);
	assert_int_equal(bins[own].state, SB_UW_BIN_ABSENT);
	assert_int_equal(need_bin(self, own), 0);
	assert_int_equal(bins[own].state, SB_UW_BIN_READY);
	assert_int_equal(need_bin(self, NR_BINS - 1), 0); /* there is no such thing */
	assert_int_equal(stats.nr_refused, 0);
	munmap(code, PAGE);
}

/* A list is read again no sooner than after a rest, but for the first times, and replaced only if
 * it changed. */
/* By all files of this very program, once they are known. */
static void test_plain(void **state)
{
	struct sb_uw_need_event event = {
		.tgid = (uint32_t)getpid(),
		.exec_id = 5,
		.start_ns = START_NS,
		.need = SB_UW_NEED_INTERP,
	};
	struct stat st;

	assert_int_equal(stat("/proc/self/exe", &st), 0);
	odd_ino = 0;
	assert_false(sb_uwprocs_is_plain(procs, &event));
	assert_int_equal(need(event.tgid, 5, 0), 0);
	assert_false(sb_uwprocs_is_plain(procs, &event)); /* they were new */
	assert_int_equal(need(event.tgid, 5, 0), 0);
	assert_true(sb_uwprocs_is_plain(procs, &event));
	event.exec_id = 6;
	assert_false(sb_uwprocs_is_plain(procs, &event));
	odd_ino = st.st_ino;
	assert_int_equal(need(event.tgid, 6, 0), 0);
	assert_false(sb_uwprocs_is_plain(procs, &event));
	odd_ino = 0;
	assert_int_equal(need(event.tgid, 6, 0), 0);
	assert_true(sb_uwprocs_is_plain(procs, &event));
	sb_uwprocs_forget(procs, event.tgid);
	assert_false(sb_uwprocs_is_plain(procs, &event));
	assert_int_equal(find_shown(event.tgid), -1);
}

static void test_reread(void **state)
{
	uint32_t self = (uint32_t)getpid(), word, nr_segs, nr_early = 0;
	struct sb_uwpool_stats used;
	uint64_t when_ns = 0;
	void *code;
	int at;

	assert_int_equal(sb_uwprocs_reread(procs, self, &when_ns), 0); /* nobody asked yet */
	assert_int_equal(find_shown(self), -1);
	assert_false(sb_uwprocs_is_read_since(procs, self, clock_ns - 1));
	assert_int_equal(need(self, 5, 0), 0);
	assert_true(sb_uwprocs_is_read_since(procs, self, clock_ns - 1));
	assert_false(sb_uwprocs_is_read_since(procs, self, clock_ns));
	at = find_shown(self);
	word = shown[at].proc.segs_word;
	nr_segs = shown[at].proc.nr_segs;
	while (!need(self, 5, 0))
		nr_early++;
	assert_int_equal(nr_early, SB_UWPROCS_NR_EARLY_MAX);
	assert_int_equal(need(self, 5, 0), -EAGAIN);
	assert_int_equal(sb_uwprocs_reread(procs, self, &when_ns), -EAGAIN);
	assert_true(when_ns > clock_ns);
	clock_ns = when_ns;
	assert_int_equal(sb_uwprocs_reread(procs, self, &when_ns), 0);
	assert_true(sb_uwprocs_is_read_since(procs, self,
					     clock_ns - 1)); /* the same list, read again */
	assert_int_equal(shown[at].nr_new, 1);
	assert_int_equal(shown[at].nr_same, nr_early + 1);
	assert_int_equal(shown[at].proc.segs_word, word);

	code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(sb_uwprocs_reread(procs, self, &when_ns), -EAGAIN);
	assert_null(seg_at(self, code));
	clock_ns = when_ns;
	assert_int_equal(sb_uwprocs_reread(procs, self, &when_ns), 0);
	sb_uwpool_stats(pool, &used); /* the old list was given back */
	assert_int_equal(used.nr_bytes, shown[at].proc.nr_segs * sizeof(struct sb_uw_seg));
	assert_int_equal(shown[at].nr_new, 2);
	assert_int_not_equal(shown[at].proc.segs_word, word);
	assert_int_equal(shown[at].proc.nr_segs, nr_segs + 1);
	assert_int_equal(shown[at].proc.exec_id, 5);
	assert_int_equal(shown[at].proc.start_ns, START_NS);
	expect_all_mappings();

	/* A twentieth of our time is for it, however much one costs. */
	read_costs_ns = 3000000;
	clock_ns = when_ns + 100000000;
	assert_int_equal(sb_uwprocs_reread(procs, self, &when_ns), 0);
	assert_int_equal(sb_uwprocs_reread(procs, self, &when_ns), -EAGAIN);
	assert_int_equal(when_ns, clock_ns + 20 * read_costs_ns);

	/* Another address space by the same number: no rest, another label. */
	munmap(code, PAGE);
	assert_int_equal(need(self, 6, 0), 0);
	assert_int_equal(shown[at].proc.exec_id, 6);
	expect_all_mappings();
	assert_int_equal(stats.nr_processes, 1);
}

static pid_t child(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		for (;;)
			pause();
	return pid;
}

static void end_child(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

#define NR_LONG 2 /* fewer than NR_PROCS, so that each keeps its list */

/* Any number of processes with long lists share one twentieth of our time. */
static void test_many_reread(void **state)
{
	const uint64_t span_ns = 6000000000ull;
	pid_t pids[NR_LONG];
	uint64_t when_ns[NR_LONG], first_ns = clock_ns, end_ns;
	unsigned int nr_reads = 0;
	size_t i;

	for (i = 0; i < NR_LONG; i++) {
		when_ns[i] = 0;
		pids[i] = child();
		assert_int_equal(need((uint32_t)pids[i], 5, 0), 0);
	}
	read_costs_ns = 3000000;
	for (end_ns = first_ns + span_ns; clock_ns < end_ns; clock_ns += 10000000)
		for (i = 0; i < NR_LONG; i++)
			if (clock_ns >= when_ns[i] &&
			    !sb_uwprocs_reread(procs, (uint32_t)pids[i], &when_ns[i]))
				nr_reads++;
	for (i = 0; i < NR_LONG; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	assert_in_range(nr_reads, NR_LONG, span_ns / (20 * read_costs_ns) + NR_LONG);
}

static void test_process_ends(void **state)
{
	pid_t pid = child();
	siginfo_t info;
	uint64_t when_ns;

	assert_int_equal(need((uint32_t)pid, 1, 0), 0);
	assert_true(sb_uwprocs_has(procs, (uint32_t)pid));
	assert_int_equal(kill(pid, SIGKILL), 0);
	/* A zombie has no mappings either. */
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	clock_ns += 100 * 1000000000ull;
	assert_int_equal(sb_uwprocs_reread(procs, (uint32_t)pid, &when_ns), 0);
	assert_int_equal(find_shown((uint32_t)pid), -1);
	assert_false(sb_uwprocs_has(procs, (uint32_t)pid));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(need((uint32_t)pid, 1, 0), -ESRCH);
}

/* The one published longest ago makes room, at our bound and at that of the map. */
static void test_processes_run_out(void **state)
{
	pid_t pids[3] = { child(), child(), child() };
	struct sb_uwpool_stats before, after;
	int i;

	for (i = 0; i < 2; i++) {
		clock_ns++;
		assert_int_equal(need((uint32_t)pids[i], 1, 0), 0);
	}
	sb_uwpool_stats(pool, &before);
	clock_ns++;
	assert_int_equal(need((uint32_t)pids[2], 1, 0), 0);
	assert_null(shown_of((uint32_t)pids[0]));
	assert_non_null(shown_of((uint32_t)pids[1]));
	assert_non_null(shown_of((uint32_t)pids[2]));
	assert_int_equal(stats.nr_processes, 2);
	assert_int_equal(stats.nr_refused, 1);
	sb_uwpool_stats(pool, &after);
	assert_int_equal(after.nr_bytes, before.nr_bytes);

	end_child(pids[1]);
	clock_ns += 100 * 1000000000ull;
	assert_int_equal(need((uint32_t)pids[1], 1, 0), -ESRCH);
	shown_max = 1 + (uint32_t)find_shown((uint32_t)pids[2]);
	for (i = 0; i < (int)shown_max; i++)
		if (!shown[i].tgid)
			shown[i].tgid = UINT32_MAX; /* of others */
	assert_int_equal(need((uint32_t)pids[0], 1, 0), 0);
	assert_null(shown_of((uint32_t)pids[2]));
	assert_int_equal(stats.nr_processes, 1);
	end_child(pids[0]);
	end_child(pids[2]);
}

/* Huge pages in place of a piece of a file's text: still that file's code. */
static void test_moved_text(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint8_t *text = mmap(NULL, 3 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	const struct sb_uw_seg *first, *moved, *last;
	uint32_t self = (uint32_t)getpid();

	assert_true(text != MAP_FAILED);
	assert_ptr_equal(mmap(text + PAGE, PAGE, PROT_READ | PROT_EXEC,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 text + PAGE);
	assert_int_equal(need(self, 1, 0), 0);
	first = seg_at(self, text);
	moved = seg_at(self, text + PAGE);
	last = seg_at(self, text + 2 * PAGE);
	assert_true(first != moved && moved != last);
	assert_int_equal(first->flags | moved->flags | last->flags, 0);
	assert_int_equal(moved->bin, first->bin);
	assert_int_equal(last->bin, first->bin);
	assert_int_equal(moved->bias, first->bias);
	assert_int_equal(last->bias, first->bias);
	munmap(text, 3 * PAGE);
	close(fd);
}

#define NR_MANY (SB_UW_SEGS_MAX + 50)

/* Of more mappings than a list holds, the lowest are known, and it is said. */
static void test_too_many(void **state)
{
	uint8_t *code =
		mmap(NULL, 2 * NR_MANY * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t self = (uint32_t)getpid(), i;

	assert_true(code != MAP_FAILED);
	for (i = 0; i < NR_MANY; i++)
		assert_int_equal(mprotect(code + 2 * i * PAGE, PAGE, PROT_READ | PROT_EXEC), 0);
	assert_int_equal(need(self, 1, 0), 0);
	assert_int_equal(shown_of(self)->nr_segs, SB_UW_SEGS_MAX);
	assert_int_equal(stats.nr_refused, 1);
	munmap(code, 2 * NR_MANY * PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_own_mappings), TEST(test_plain),
		TEST(test_reread),	 TEST(test_many_reread),
		TEST(test_process_ends), TEST(test_moved_text),
		TEST(test_too_many),	 TEST(test_processes_run_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
