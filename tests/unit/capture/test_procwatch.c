// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A ring without a kernel behind it: its descriptor is an eventfd, and it has a record if it is given one. */
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
#include "process/process.h"
#include "symbolizer/process/reader.h"
#include "symbolizer/sb_sym.h"

int __wrap_sb_perf_open_telling_lost(struct perf_event_attr *attr, int cpu, bool *ret_tells_lost);
int __wrap_sb_perf_ring_init(struct sb_perf_ring *ring, int fd, size_t nr_bytes);
int __wrap_sb_perf_ring_read(struct sb_perf_ring *ring,
			     int (*fn)(void *arg, const struct perf_event_header *record),
			     void *arg);
int __wrap_sb_symbolizer_lost(struct sb_symbolizer *sym, uint64_t time_ns);

static int nr_told, answer, ring_fd, reads_fd = -1;
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
	const struct perf_event_header record = { .type = PERF_RECORD_AUX, .size = sizeof(record) };
	const uint64_t one = 1;

	if (__atomic_exchange_n(&has_record, false, __ATOMIC_SEQ_CST))
		fn(arg, &record);
	if (__atomic_exchange_n(&has_mapping, false, __ATOMIC_SEQ_CST)) {
		fn(arg, &mmap_record.header);
		fn(arg, &exit_record.header);
	}
	return reads_fd < 0 || write(reads_fd, &one, sizeof(one)) == sizeof(one) ? 0 : -errno;
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

/* A record that cannot be told, and a ring that lost others: both are told. */
static void test_losses_after_error(void **state)
{
	struct sb_procwatch *watch;

	assert_int_equal(sb_procwatch_new(NULL, 0, &watch), 0);
	assert_int_equal(sb_procwatch_add_cpu(watch, 0), 0);
	answer = -ENOMEM;
	assert_int_equal(sb_procwatch_drain(watch, NULL, NULL), -ENOMEM);
	assert_int_equal(nr_told, 2);
	sb_procwatch_free(watch);
}

/* Return: ns until the ring was read @nr times more. */
static uint64_t time_reads(int nr)
{
	uint64_t begin_ns = sb_now_ns(), one;

	while (nr--)
		assert_int_equal(read(reads_fd, &one, sizeof(one)), sizeof(one));
	return sb_now_ns() - begin_ns;
}

/* While nothing happens the reader looks ten times a second; while the kernel wakes it, and for a
 * second after a record that was too small for that, up to fifty times. */
static void test_wakes_by_news(void **state)
{
	struct sb_procwatch *watch;
	const uint64_t many = 1000;

	reads_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	assert_int_equal(sb_procwatch_new(NULL, 0, &watch), 0);
	assert_int_equal(sb_procwatch_add_cpu(watch, 0), 0);
	time_reads(1);
	assert_true(time_reads(3) > 200 * SB_NS_PER_MS);
	__atomic_store_n(&has_record, true, __ATOMIC_SEQ_CST);
	time_reads(1);
	assert_true(time_reads(20) < 1800 * SB_NS_PER_MS);
	time_reads(40);
	assert_true(time_reads(3) > 200 * SB_NS_PER_MS);
	assert_int_equal(write(ring_fd, &many, sizeof(many)), sizeof(many));
	assert_true(time_reads(20) < 1800 * SB_NS_PER_MS);
	sb_procwatch_free(watch);
}

/* Have the records of a mapping by this process at time 2 read, and of its end at @exit_ns. Return:
 * how many accesses it took. */
static uint64_t accesses_of_mapping(uint64_t exit_ns)
{
	struct sb_reader_stats before, after;
	struct sb_procwatch_stats stats;
	struct sb_procwatch *watch;
	uint32_t pid = (uint32_t)getpid();

	reads_fd = -1;
	assert_int_equal(sb_procwatch_new(NULL, 0, &watch), 0);
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
	sb_procwatch_stats(watch, &stats);
	assert_int_equal(stats.nr_unopened, 1);
	sb_procwatch_free(watch);
	return after.nr_requests - before.nr_requests;
}

/* The file of a mapping is not asked for by way of a process that has ended since. */
static void test_asks_no_ended_process(void **state)
{
	assert_int_equal(accesses_of_mapping(1), 1); /* of one that had its number before */
	assert_int_equal(accesses_of_mapping(3), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost_is_not_stale),
		cmocka_unit_test(test_losses_after_error),
		cmocka_unit_test(test_wakes_by_news),
		cmocka_unit_test(test_asks_no_ended_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
