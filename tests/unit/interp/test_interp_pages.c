// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The process that is read is this one, so that it is known what its pages hold, and held. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "interp/core/memory.h"
#include "interp/core/pages.h"

#define NR_PAGES (SB_READER_AHEAD_MAX + 8u)

static uint8_t *memory; /* NR_PAGES, and one that cannot be read */
static struct sb_pages pages;

static uint64_t page_at(size_t i)
{
	return (uint64_t)(uintptr_t)memory + i * SB_PAGE_BYTES;
}

static int setup(void **state)
{
	size_t i;

	memory = mmap(NULL, (NR_PAGES + 1) * SB_PAGE_BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	for (i = 0; i < NR_PAGES; i++)
		memset(memory + i * SB_PAGE_BYTES, (int)i + 1, SB_PAGE_BYTES);
	assert_int_equal(mprotect(memory + NR_PAGES * SB_PAGE_BYTES, SB_PAGE_BYTES, PROT_NONE), 0);
	pages = (struct sb_pages){ .tgid = (uint32_t)getpid(), .is_noting = true };
	return 0;
}

static int teardown(void **state)
{
	sb_pages_release(&pages);
	return munmap(memory, (NR_PAGES + 1) * SB_PAGE_BYTES);
}

/* Return: the byte at @addr, or a negative errno. */
static int byte_at(uint64_t addr)
{
	uint8_t byte;
	int err = sb_pages_read(&pages, &byte, 1, addr);

	return err ? err : byte;
}

/* A page is noted when it is missing, and from then on it is what it was when it was read. */
static void test_noted(void **state)
{
	uint8_t byte;

	assert_int_equal(byte_at(page_at(0)), -EFAULT);
	assert_true(pages.is_short);
	assert_int_equal(byte_at(page_at(1)),
			 -EFAULT); /* not noted: it comes after one that is missing */
	assert_true(sb_pages_fetch(&pages));
	assert_false(sb_pages_fetch(&pages));
	pages.is_short = false;
	memory[5] = 99;
	assert_int_equal(byte_at(page_at(0) + 5), 1);
	assert_false(pages.is_short);
	/* Read again, it is what it has become, but not while pages are only noted. */
	assert_int_equal(sb_pages_read_again(&pages, &byte, 1, page_at(0) + 5), -EFAULT);
	pages.is_noting = false;
	assert_int_equal(sb_pages_read_again(&pages, &byte, 1, page_at(0) + 5), 0);
	assert_int_equal(byte, 99);
	pages.is_noting = true;
	assert_false(pages.is_short);
	assert_int_equal(byte_at(page_at(1)), -EFAULT);
	assert_true(pages.is_short);
}

/* Two pages, the second of which is missing at first. */
static void test_across(void **state)
{
	uint8_t bytes[8];
	size_t i;

	for (i = 0; i < 2; i++) {
		pages.is_short = false;
		assert_int_equal(sb_pages_read(&pages, bytes, 8, page_at(1) - 4), -EFAULT);
		assert_true(sb_pages_fetch(&pages));
	}
	assert_int_equal(sb_pages_read(&pages, bytes, 8, page_at(1) - 4), 0);
	assert_memory_equal(bytes, "\1\1\1\1\2\2\2\2", 8);
}

/* Pages that are said to be needed are read by one request, and are not noted again. */
static void test_wanted(void **state)
{
	size_t i;

	for (i = 0; i < 3; i++)
		sb_pages_want(&pages, page_at(i) + 7);
	assert_int_equal(pages.nr_wants, 3);
	assert_true(pages.is_short);
	assert_true(sb_pages_fetch(&pages));
	pages.is_short = false;
	sb_pages_want(&pages, page_at(0));
	assert_false(pages.is_short);
	for (i = 0; i < 3; i++)
		assert_int_equal(byte_at(page_at(i)), i + 1);
	pages.is_noting = false;
	sb_pages_want(&pages, page_at(3));
	assert_int_equal(pages.nr_wants, 0);
}

/* What a pointer leads to is there at the next fetch, and no longer when the pages are cleared. */
static void test_target(void **state)
{
	const uint64_t target = page_at(2) + 5, last = page_at(4);
	struct sb_reader_stats before, after;

	assert_int_equal(sb_reader_begin(&(struct sb_reader_opts){}), 0);
	memcpy(memory + SB_PAGE_BYTES, &target, sizeof(target));
	sb_pages_want_target(&pages, page_at(1));
	assert_false(pages.is_short);
	byte_at(page_at(1));
	assert_true(sb_pages_fetch(&pages));
	sb_reader_stats(&before);
	pages.is_short = false;
	assert_int_equal(byte_at(target), -EFAULT);
	assert_true(sb_pages_fetch(&pages));
	pages.is_short = false;
	assert_int_equal(byte_at(target), 3);
	sb_reader_stats(&after);
	assert_int_equal(after.nr_requests, before.nr_requests);
	sb_pages_want_target(&pages, page_at(1)); /* it is there, and is read without a hint */
	assert_int_equal(pages.nr_pointers, 0);
	/* A pointer that is noted beside such a target waits for the next request. */
	sb_pages_clear(&pages);
	memcpy(memory + 3 * SB_PAGE_BYTES, &last, sizeof(last));
	sb_pages_want_target(&pages, page_at(1));
	byte_at(page_at(1));
	assert_true(sb_pages_fetch(&pages));
	pages.is_short = false;
	byte_at(target);
	sb_pages_want_target(&pages, page_at(3));
	assert_true(sb_pages_fetch(&pages));
	pages.is_short = false;
	byte_at(page_at(3));
	assert_true(sb_pages_fetch(&pages));
	assert_true(sb_reader_has_read(pages.tgid, page_at(4), SB_PAGE_BYTES));
	sb_pages_clear(&pages);
	sb_pages_want_target(&pages, page_at(1));
	byte_at(page_at(0));
	assert_true(sb_pages_fetch(&pages));
	sb_pages_clear(&pages);
	assert_false(sb_reader_has_read(pages.tgid, page_at(2), SB_PAGE_BYTES));
	sb_reader_end();
}

/* Another process has other pages at the same addresses. */
static void test_other_process(void **state)
{
	byte_at(page_at(0));
	assert_true(sb_pages_fetch(&pages));
	pages.is_short = false;
	pages.tgid = UINT32_MAX;
	assert_int_equal(byte_at(page_at(0)), -EFAULT);
	assert_true(pages.is_short);
}

/* What could not be read is not asked for again. */
static void test_unreadable(void **state)
{
	assert_int_equal(byte_at(page_at(NR_PAGES)), -EFAULT);
	assert_true(sb_pages_fetch(&pages));
	pages.is_short = false;
	assert_int_equal(byte_at(page_at(NR_PAGES)), -EFAULT);
	assert_false(pages.is_short);
	assert_false(sb_pages_fetch(&pages));
}

/* A process that has ended is asked for one page, and not for all of them. */
static void test_ended(void **state)
{
	struct sb_reader_stats stats;
	uint64_t before;
	pid_t pid = fork();
	size_t i;

	assert_true(pid >= 0);
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	pages.tgid = (uint32_t)pid;
	for (i = 0; i < 20; i++) {
		pages.is_short = false;
		byte_at(page_at(i));
	}
	sb_reader_stats(&stats);
	before = stats.nr_requests;
	assert_true(sb_pages_fetch(&pages));
	pages.is_noting = pages.is_short = false;
	for (i = 0; i < 40; i++)
		assert_int_equal(byte_at(page_at(i)), -EFAULT);
	sb_reader_stats(&stats);
	assert_int_equal(stats.nr_requests - before, 1);
}

/* A page that several need is noted once; what is beyond one request is left for the next one. */
static void test_many(void **state)
{
	size_t i;

	for (i = 0; i < 2 * NR_PAGES; i++) {
		pages.is_short = false;
		byte_at(page_at(i % NR_PAGES));
	}
	assert_int_equal(pages.nr_wants, SB_READER_AHEAD_MAX);
	assert_true(sb_pages_fetch(&pages));
	assert_int_equal(pages.at.nr, SB_READER_AHEAD_MAX);
	for (i = 0; i < NR_PAGES; i++) {
		pages.is_short = false;
		byte_at(page_at(i));
	}
	assert_true(sb_pages_fetch(&pages));
	for (i = 0; i < NR_PAGES; i++)
		assert_int_equal(byte_at(page_at(i)), i + 1);
}

/* Without noting, it is read from the process, and not kept. */
static void test_direct(void **state)
{
	pages.is_noting = false;
	assert_int_equal(byte_at(page_at(2)), 3);
	assert_int_equal(byte_at(page_at(NR_PAGES)), -EFAULT);
	assert_int_equal(pages.at.nr, 0);
	memory[2 * SB_PAGE_BYTES] = 77;
	assert_int_equal(byte_at(page_at(2)), 77);
}

/* Pages that were read last are read once more only after they were forgotten. */
static void test_forget(void **state)
{
	static struct sb_memory_recent recent;
	const struct sb_memory process = { .tgid = (uint32_t)getpid(), .recent = &recent };
	uint8_t byte;

	assert_int_equal(sb_memory_u8(&process, page_at(3), &byte), 0);
	assert_int_equal(byte, 4);
	memory[3 * SB_PAGE_BYTES] = 55;
	assert_int_equal(sb_memory_u8(&process, page_at(3), &byte), 0);
	assert_int_equal(byte, 4);
	sb_memory_forget(&process);
	assert_int_equal(sb_memory_u8(&process, page_at(3), &byte), 0);
	assert_int_equal(byte, 55);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_noted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_across, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wanted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_target, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unreadable, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_direct, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forget, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
