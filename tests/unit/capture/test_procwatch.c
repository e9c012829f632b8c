// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A ring without a kernel behind it: its descriptor is an eventfd, and it has a record if it is
 * given one. */
#include <errno.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/time.h"
#include "capture/perf_event.h"
#include "capture/procwatch.h"
#include "capture/sideband.h"
#include "process/process.h"
#include "symbolizer/process/reader.h"
#include "symbolizer/sb_sym.h"

int __wrap_sb_perf_open_telling_lost(struct perf_event_attr *attr, int cpu, bool *ret_tells_lost);
int __wrap_sb_perf_ring_init(struct sb_perf_ring *ring, int fd, size_t nr_bytes);
int __wrap_sb_perf_ring_read(struct sb_perf_ring *ring,
			     int (*fn)(void *arg, const struct perf_event_header *record),
			     void *arg);
int __wrap_sb_symbolizer_lost(struct sb_symbolizer *sym, uint64_t time_ns);

#define LOOK_NS (100 * SB_NS_PER_MS) /* from one look to the next while nothing happens */

static const sb_vec_u32 none;
static int nr_told, answer, ring_fd, reads[2] = { -1, -1 };
static uint32_t wake_bytes;
static bool has_record, has_mapping;

/* Records as the kernel writes them, with the trailer of sb_sideband_attr(). */
static struct mmap_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
	char path[8];
	uint32_t id_pid, id_tid;
	uint64_t time_ns;
} mmap_record;
static struct exit_record {
	struct perf_event_header header;
	uint32_t pid, ppid, tid, ptid;
	uint64_t exit_ns;
	uint32_t id_pid, id_tid;
	uint64_t time_ns;
} exit_record;

int __wrap_sb_perf_open_telling_lost(struct perf_event_attr *attr, int cpu, bool *ret_tells_lost)
{
	*ret_tells_lost = true;
	wake_bytes = attr->wakeup_watermark;
	/* Readable as often as was written to it: each look reads it once. */
	ring_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
	return ring_fd;
}

int __wrap_sb_perf_ring_init(struct sb_perf_ring *ring, int fd, size_t nr_bytes)
{
	*ring = (struct sb_perf_ring){ .fd = fd, .was_full = true };
	return 0;
}

int __wrap_sb_perf_ring_read(struct sb_perf_ring *ring,
			     int (*fn)(void *arg, const struct perf_event_header *record),
			     void *arg)
{
	const uint64_t now_ns = sb_now_ns();
	const struct exit_record record = {
		.header = { .type = PERF_RECORD_EXIT, .size = sizeof(record) },
		.pid = 1,
		.tid = 1,
		.time_ns = now_ns,
	};

	if (__atomic_load_n(&has_record, __ATOMIC_SEQ_CST))
		fn(arg, &record.header);
	if (__atomic_exchange_n(&has_mapping, false, __ATOMIC_SEQ_CST)) {
		fn(arg, &mmap_record.header);
		fn(arg, &exit_record.header);
	}
	return reads[1] < 0 || write(reads[1], &now_ns, sizeof(now_ns)) == sizeof(now_ns) ? 0
											  : -errno;
}

int __wrap_sb_symbolizer_lost(struct sb_symbolizer *sym, uint64_t time_ns)
{
	nr_told++;
	return answer;
}

/* The eventfd counts 1 once, and its 8 bytes are not the 16 of a perf event. */
static void test_lost_is_not_stale(void **state)
{
	struct sb_perf_ring ring = { .fd = eventfd(1, EFD_CLOEXEC) };
	uint64_t nr = 7;

	errno = ENOENT;
	assert_int_equal(sb_perf_ring_lost(&ring, &nr), -EBADMSG);
	assert_int_equal(nr, 7);
	sb_perf_ring_release(&ring);
}

static void note_lost(void *arg, const struct sb_sideband *event)
{
	int *nr = arg;

	*nr += event && event->kind == SB_SIDEBAND_LOST;
}

/* A record that cannot be told, and a ring that lost others: both are told. */
static void test_losses_after_error(void **state)
{
	struct sb_procwatch *watch;
	int nr_lost = 0;

	assert_int_equal(sb_procwatch_new(&none, &none, &watch), 0);
	sb_procwatch_notify(watch, note_lost, &nr_lost);
	assert_int_equal(sb_procwatch_add_cpu(watch, 0), 0);
	answer = -ENOMEM;
	assert_int_equal(sb_procwatch_drain(watch, NULL, NULL), -ENOMEM);
	assert_int_equal(nr_told, 2);
	assert_true(nr_lost >= 2);
	sb_procwatch_free(watch);
}

/* When the reader read the ring, by its own account: this thread may learn it late. */
static uint64_t next_read(void)
{
	uint64_t time_ns;

	assert_int_equal(read(reads[0], &time_ns, sizeof(time_ns)), sizeof(time_ns));
	return time_ns;
}

/*
 * Return: whether @nr reads in a row, of the next 1,000, come sooner than LOOK_NS after the one
 * before (@soon), or none of them does. A reader that does not get a CPU is late, but never early.
 */
static bool are_reads(bool soon, int nr)
{
	uint64_t last_ns = next_read(), now_ns;
	int i, nr_so = 0;

	for (i = 0; i < 1000 && nr_so < nr; i++) {
		now_ns = next_read();
		nr_so = (now_ns - last_ns < LOOK_NS) == soon ? nr_so + 1 : 0;
		last_ns = now_ns;
	}
	return nr_so == nr;
}

/* While nothing happens the reader looks ten times a second; while the kernel wakes it, and for a
 * second after a record that was too small for that, up to fifty times. */
static void test_wakes_by_news(void **state)
{
	struct sb_procwatch *watch;
	const uint64_t many = 1000;

	assert_int_equal(pipe(reads), 0);
	assert_int_equal(sb_procwatch_new(&none, &none, &watch), 0);
	assert_int_equal(sb_procwatch_add_cpu(watch, 0), 0);
	next_read(); /* by sb_procwatch_add_cpu(), or when the reader begins */
	assert_true(are_reads(false, 3));
	__atomic_store_n(&has_record, true, __ATOMIC_SEQ_CST);
	assert_true(are_reads(true, 3));
	__atomic_store_n(&has_record, false, __ATOMIC_SEQ_CST);
	assert_true(are_reads(false, 6));
	assert_int_equal(write(ring_fd, &many, sizeof(many)), sizeof(many));
	assert_true(are_reads(true, 3));
	sb_procwatch_free(watch);
}

/* Have the records of a mapping by this process at time 2 read, and of its end at @exit_ns, while
 * those of @tgids are wanted. *ret_stats: what was counted. Return: how many accesses it took. */
static uint64_t accesses_of_mapping(uint64_t exit_ns, const sb_vec_u32 *tgids,
				    struct sb_procwatch_stats *ret_stats)
{
	struct sb_reader_stats before, after;
	struct sb_procwatch *watch;
	uint32_t pid = (uint32_t)getpid();

	reads[1] = -1;
	assert_int_equal(sb_procwatch_new(&none, tgids, &watch), 0);
	assert_int_equal(sb_procwatch_add_cpu(watch, 0), 0);
	mmap_record = (struct mmap_record){
		.header = { .type = PERF_RECORD_MMAP2, .size = sizeof(mmap_record) },
		.pid = pid,
		.addr = 1,
		.len = 1,
		.path = "/file",
		.time_ns = 2,
	};
	exit_record = (struct exit_record){
		.header = { .type = PERF_RECORD_EXIT, .size = sizeof(exit_record) },
		.pid = pid,
		.tid = pid,
		.time_ns = exit_ns,
	};
	sb_reader_stats(&before);
	__atomic_store_n(&has_mapping, true, __ATOMIC_SEQ_CST);
	sb_procwatch_drop_cpu(watch, 0); /* reads the ring */
	sb_reader_stats(&after);
	sb_procwatch_stats(watch, ret_stats);
	sb_procwatch_free(watch);
	return after.nr_requests - before.nr_requests;
}

/* The file of a mapping is not asked for by way of a process that has ended since. */
static void test_asks_no_ended_process(void **state)
{
	struct sb_procwatch_stats stats;

	/* The first end is of a process that had its number before. */
	assert_int_equal(accesses_of_mapping(1, &none, &stats), 1);
	assert_int_equal(stats.nr_unopened, 1);
	assert_int_equal(accesses_of_mapping(3, &none, &stats), 0);
	assert_int_equal(stats.nr_unopened, 1);
}

/* Records of processes that are not wanted are read, but nothing follows from them, and few of them
 * do not wake the reader. */
static void test_wants_some(void **state)
{
	uint32_t pid = (uint32_t)getpid(), others[] = { pid + 1, 1 }, ours[] = { pid + 1, pid, 1 };
	struct sb_procwatch_stats stats;

	assert_int_equal(accesses_of_mapping(1, &(sb_vec_u32){ .at = others, .nr = 2 }, &stats), 0);
	assert_int_equal(stats.nr_records, 2);
	assert_int_equal(stats.nr_unopened, 0);
	assert_true(wake_bytes >= 16384);
	assert_int_equal(accesses_of_mapping(1, &(sb_vec_u32){ .at = ours, .nr = 3 }, &stats), 1);
	assert_int_equal(stats.nr_unopened, 1);
	assert_int_equal(accesses_of_mapping(1, &none, &stats), 1);
	assert_true(wake_bytes <= 256);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost_is_not_stale),
		cmocka_unit_test(test_losses_after_error),
		cmocka_unit_test(test_wakes_by_news),
		cmocka_unit_test(test_asks_no_ended_process),
		cmocka_unit_test(test_wants_some),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
