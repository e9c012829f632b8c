// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The walk in the kernel on stacks of this very process, by the tables of the files it is made of.
 * The truth is backtrace(3), whose unwinder (libgcc's) has its own reader of CFI.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "bpf/abi/sb_abi.h"
#include "bpf/abi/sb_abi_unwind.h"
#include "capture/perf_event.h"
#include "capture/uwpool.h"
#include "capture/uwtables.h"
#include "symbolizer/process/procfs.h"
#include "symbolizer/sb_sym.h"
/* Behind the types it names. */
#include "driver.skel.h"

#define POOL_BYTES    (8u << 20)
#define TRUTH_MAX     SB_USTACK_DEPTH_MAX
#define SPEED_ROUNDS  200
#define START_NS      77
#define ALT_STACK_LEN (1u << 20)

static struct driver_bpf *skel;
static struct sb_uwpool *pool;
static struct sb_uwtables *tables;
static struct sb_uw_bin *bins;
static struct sb_uw_seg segs[SB_UW_SEGS_MAX];
static uint32_t nr_segs;
static void *truth[TRUTH_MAX];
static int nr_truth;

static int add_part(void *arg, uint32_t idx, void *at)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "part", sizeof(uint32_t),
				SB_UW_CHUNK_WORDS * sizeof(uint32_t), SB_UW_PART_CHUNKS, &opts);

	assert_true(fd >= 0);
	assert_ptr_equal(mmap(at, SB_UWPOOL_PART_BYTES, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_FIXED, fd, 0),
			 at);
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(skel->maps.uw_pool), &idx, &fd, 0), 0);
	close(fd);
	return 0;
}

static void add_file(const struct sb_maps_line *line, struct sb_uw_seg *seg)
{
	struct sb_uwtables_spot spot;
	char path[4096];
	int fd = -1;

	if (line->path_len == strlen("[vdso]") && !memcmp(line->path, "[vdso]", line->path_len)) {
		assert_int_equal(sb_uwtables_add_vdso(tables, &spot), 0);
	} else {
		snprintf(path, sizeof(path), "%.*s", (int)line->path_len, line->path);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		assert_int_equal(sb_uwtables_add(tables, fd, line->pgoff, &spot), 0);
	}
	seg->bin = spot.bin;
	seg->bias = line->start - spot.elf_addr;
	if (sb_uwtables_is_absent(tables, spot.bin))
		assert_int_equal(sb_uwtables_build(tables, spot.bin, fd, (uint32_t)getpid()), 0);
	if (fd >= 0)
		close(fd);
}

static int on_line(void *arg, const struct sb_maps_line *line)
{
	struct sb_uw_seg *seg = &segs[nr_segs];

	if (!line->is_exec || line->start >= 1ull << 63) /* not the vsyscall page */
		return 0;
	*seg = (struct sb_uw_seg){ .begin = line->start, .end = line->end };
	if (!line->path_len)
		seg->flags = SB_UW_SEG_ANON;
	else
		add_file(line, seg);
	nr_segs++;
	return 0;
}

static void publish(uint32_t nr)
{
	const uint32_t tgid = (uint32_t)getpid();
	struct sb_uw_proc proc = { .start_ns = START_NS, .exec_vm = 1, .nr_segs = nr };
	struct sb_uwpool_want want = { .nr_words = nr_segs * SB_UW_SEG_WORDS };
	struct sb_uwpool_place place;

	assert_int_equal(sb_uwpool_alloc(pool, &want, &place), 0);
	memcpy(sb_uwpool_words(pool) + place.word, segs, nr_segs * sizeof(*segs));
	proc.segs_word = place.word;
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(skel->maps.uw_procs), &tgid, &proc, 0), 0);
	skel->bss->in.key.tgid = tgid;
	skel->bss->in.key.start_ns = START_NS;
	skel->bss->in.nr_rounds = 1;
}

static int setup(void **state)
{
	const struct sb_uwpool_opts pool_opts = { .bytes_max = POOL_BYTES, .add_part = add_part };
	struct sb_uwtables_opts opts = { .nr_bins_max = SB_UW_BINS_MAX };

	skel = driver_bpf__open();
	assert_non_null(skel);
	skel->rodata->cfg_unwind = SB_UNWIND_CFI | SB_UNWIND_FP;
	skel->rodata->cfg_user_end = sb_sym_user_end();
	/* A record for each kind of program that test_reentry() has. */
	assert_int_equal(bpf_map__set_max_entries(skel->maps.scratch, 3), 0);
	assert_int_equal(bpf_map__set_max_entries(skel->maps.raw_full_ns, 3), 0);
	assert_int_equal(bpf_map__set_max_entries(skel->maps.raw_records,
						  (uint32_t)libbpf_num_possible_cpus() + 2),
			 0);
	assert_int_equal(driver_bpf__load(skel), 0);
	bins = mmap(NULL, SB_UW_BINS_MAX * sizeof(*bins), PROT_READ | PROT_WRITE, MAP_SHARED,
		    bpf_map__fd(skel->maps.uw_bins), 0);
	assert_ptr_not_equal(bins, MAP_FAILED);
	assert_int_equal(sb_uwpool_new(&pool_opts, &pool), 0);
	opts.bins = bins;
	opts.pool = pool;
	assert_int_equal(sb_uwtables_new(&opts, &tables), 0);
	nr_segs = 0;
	assert_int_equal(sb_procfs_maps((uint32_t)getpid(), on_line, NULL), 0);
	publish(nr_segs);
	return 0;
}

static int teardown(void **state)
{
	sb_uwtables_free(tables);
	sb_uwpool_free(pool);
	munmap(bins, SB_UW_BINS_MAX * sizeof(*bins));
	driver_bpf__destroy(skel);
	return 0;
}

static __attribute__((noinline)) int take(void)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	nr_truth = backtrace(truth, TRUTH_MAX);
	assert_int_equal(
		bpf_prog_test_run_opts(bpf_program__fd(skel->progs.drive_self_unwind), &opts), 0);
	return nr_truth;
}

/* All but what take() itself called, which are different calls, from the root down. */
static void expect_truth(void)
{
	uint32_t nr = skel->bss->out.nr_frames;
	int i;

	assert_int_equal(skel->bss->out.status, SB_STACK_COMPLETE);
	assert_true(nr >= (uint32_t)nr_truth);
	for (i = 1; i < nr_truth; i++)
		assert_int_equal(skel->bss->out.ip[nr - (uint32_t)i] & ~SB_IP_MARKS,
				 (uintptr_t)truth[nr_truth - i]);
}

static int depth;

/* Down through the C library, which has no frame pointers. */
static __attribute__((noinline)) int descend_small(const void *a, const void *b)
{
	volatile char frame[300];
	int two[2] = { 2, 1 };

	frame[0] = 1;
	if (!depth)
		return take();
	depth--;
	qsort(two, 2, sizeof(*two), descend_small);
	return frame[0];
}

static __attribute__((noinline)) int descend_big(const void *a, const void *b)
{
	volatile char frame[4096];
	int two[2] = { 2, 1 };

	frame[0] = 1;
	if (!depth)
		return take();
	depth--;
	qsort(two, 2, sizeof(*two), descend_big);
	return frame[0];
}

static void test_deep(void **state)
{
	static const int depths[] = { 1, 10, 20, 60, 120 };
	size_t i;

	for (i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		depth = depths[i];
		descend_small(NULL, NULL);
		assert_true(nr_truth > 3 * depths[i]);
		expect_truth();
		depth = depths[i];
		descend_big(NULL, NULL);
		expect_truth();
	}
}

static void test_too_deep(void **state)
{
	depth = 300;
	descend_small(NULL, NULL);
	assert_int_equal(skel->bss->out.status, SB_STACK_DEPTH);
	assert_int_equal(skel->bss->out.nr_frames, SB_USTACK_DEPTH_MAX);
}

static __attribute__((noinline)) int huge_frame(void)
{
	volatile char frame[600 << 10];

	frame[0] = frame[sizeof(frame) - 1] = 1;
	return take() + frame[0];
}

static void test_huge_frame(void **state)
{
	assert_true(huge_frame() > 1);
	expect_truth();
}

static void on_signal(int sig)
{
	depth = 5;
	descend_small(NULL, NULL);
}

/* From the signal's own stack through the frame that the kernel made back to what it
 * interrupted. */
static void test_signal(void **state)
{
	static char alt[ALT_STACK_LEN];
	const stack_t stack = { .ss_sp = alt, .ss_size = sizeof(alt) };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	assert_int_equal(sigaltstack(&stack, NULL), 0);
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_int_equal(raise(SIGUSR1), 0);
	expect_truth();
	assert_true(nr_truth > 15);
}

static void *on_thread(void *arg)
{
	depth = 5;
	descend_small(NULL, NULL);
	return NULL;
}

static void test_thread(void **state)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, on_thread, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	expect_truth();
}

/* What is missing is asked for, and the stack is taken raw. */
static void test_unknown(void **state)
{
	uint32_t i;

	publish(0);
	take();
	assert_int_equal(skel->bss->out.is_raw, 1);
	publish(nr_segs);
	for (i = 0; i < nr_segs; i++)
		bins[segs[i].bin].state = SB_UW_BIN_ABSENT;
	take();
	assert_int_equal(skel->bss->out.is_raw, 1);
	for (i = 0; i < nr_segs; i++)
		bins[segs[i].bin].state = SB_UW_BIN_READY;
	take();
	assert_int_equal(skel->bss->out.is_raw, 0);
	expect_truth();
}

/* A period, because the kernel refuses frequencies above a limit that it lowers on a busy
 * machine. */
#define REENTRY_NS 100000

static volatile bool stop_thread;

static void be_busy(void)
{
	volatile unsigned int i;

	for (i = 0; i < 2000; i++)
		;
	sched_yield();
	(void)getppid();
}

static int nr_turns;

static __attribute__((noinline)) int descend_and_work(const void *a, const void *b)
{
	int two[2] = { 2, 1 };

	be_busy();
	if (nr_turns++ % 8 != 7)
		qsort(two, 2, sizeof(*two), descend_and_work);
	return 0;
}

static void *on_busy_thread(void *arg)
{
	nr_truth = backtrace(truth, TRUTH_MAX);
	skel->bss->reentry.root_ip[0] = (uintptr_t)truth[nr_truth - 1];
	skel->bss->reentry.root_ip[1] = (uintptr_t)truth[nr_truth - 2];
	nr_turns = 0;
	skel->bss->reentry.tid = (uint32_t)gettid();
	while (!stop_thread)
		descend_and_work(NULL, NULL);
	skel->bss->reentry.tid = 0;
	return NULL;
}

/* Return: on how many CPUs there are ticks; some may be offline. */
static int attach_ticks(struct bpf_link **links, int nr)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.size = sizeof(attr),
		.sample_period = REENTRY_NS,
	};
	int cpu, nr_attached = 0;

	for (cpu = 0; cpu < nr; cpu++) {
		int fd = sb_perf_open(&attr, cpu);

		links[cpu] = fd < 0 ? NULL
				    : bpf_program__attach_perf_event(skel->progs.reentry_tick, fd);
		nr_attached += links[cpu] != NULL;
	}
	return nr_attached;
}

/* Ticks interrupt the walks of other programs, and each still sees the stack as it is. */
static void test_reentry(void **state)
{
	int nr_cpus = libbpf_num_possible_cpus(), i;
	struct bpf_link **ticks, *links[2];
	pthread_t thread;

	assert_true(nr_cpus > 0);
	ticks = calloc((size_t)nr_cpus, sizeof(*ticks));
	assert_non_null(ticks);
	links[0] = bpf_program__attach(skel->progs.reentry_switch);
	links[1] = bpf_program__attach(skel->progs.reentry_syscall);
	assert_non_null(links[0]);
	assert_non_null(links[1]);
	assert_true(attach_ticks(ticks, nr_cpus) > 0);
	stop_thread = false;
	assert_int_equal(pthread_create(&thread, NULL, on_busy_thread, NULL), 0);
	while (skel->bss->reentry.nr_nested < 20 || skel->bss->reentry.nr_good[0] < 2000)
		(void)poll(NULL, 0, 1);
	stop_thread = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (i = 0; i < nr_cpus; i++)
		bpf_link__destroy(ticks[i]);
	free(ticks);
	bpf_link__destroy(links[0]);
	bpf_link__destroy(links[1]);
	printf("good: %llu at ticks, %llu at switches, %llu at system calls; %llu ticks inside of "
	       "the others; bad: %llu, %llu, %llu (status %u, %u frames)\n",
	       (unsigned long long)skel->bss->reentry.nr_good[0],
	       (unsigned long long)skel->bss->reentry.nr_good[1],
	       (unsigned long long)skel->bss->reentry.nr_good[2],
	       (unsigned long long)skel->bss->reentry.nr_nested,
	       (unsigned long long)skel->bss->reentry.nr_bad[0],
	       (unsigned long long)skel->bss->reentry.nr_bad[1],
	       (unsigned long long)skel->bss->reentry.nr_bad[2], skel->bss->reentry.bad_status,
	       skel->bss->reentry.bad_frames);
	for (i = 0; i < 3; i++)
		assert_int_equal(skel->bss->reentry.nr_bad[i], 0);
}

/* Not a test: the figure, for the eye. */
static void test_speed(void **state)
{
	static const int depths[] = { 4, 13, 60 };
	size_t i;

	skel->bss->in.nr_rounds = SPEED_ROUNDS;
	for (i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		depth = depths[i];
		descend_small(NULL, NULL);
		expect_truth();
		printf("%u frames: %.2f us a stack, %.0f ns a frame\n", skel->bss->out.nr_frames,
		       (double)skel->bss->out.ns / SPEED_ROUNDS / 1e3,
		       (double)skel->bss->out.ns / SPEED_ROUNDS / skel->bss->out.nr_frames);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deep),	   cmocka_unit_test(test_too_deep),
		cmocka_unit_test(test_huge_frame), cmocka_unit_test(test_signal),
		cmocka_unit_test(test_thread),	   cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_reentry),	   cmocka_unit_test(test_speed),
	};

	if (geteuid()) {
		printf("skipped: loading BPF programs needs root\n");
		return 77;
	}
	/* The programs are loaded once: in an emulated machine the verifier takes seconds. */
	return cmocka_run_group_tests(tests, setup, teardown);
}
