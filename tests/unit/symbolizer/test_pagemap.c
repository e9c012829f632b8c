// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which pages the kernel says are there, of a memory of which every other page was touched. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "symbolizer/process/pagemap.h"

#define NR_MAX	 2100u
#define RUNS_MAX 4096u

/* Return: pages found, if all are at the places that were touched; or a negative errno. */
static int find_all(int fd, uint64_t start, uint64_t page_bytes)
{
	static struct sb_page_run runs[RUNS_MAX];
	const uint64_t end = start + 2 * NR_MAX * page_bytes;
	uint64_t at = start;
	int found = 0, nr, i;

	while (at < end) {
		nr = sb_pagemap_scan(fd, end, runs, RUNS_MAX, &at);
		if (nr < 0)
			return nr;
		for (i = 0; i < nr; i++, found++) {
			assert_int_equal(runs[i].start, start + 2 * (uint64_t)found * page_bytes);
			assert_int_equal(runs[i].nr, 1);
		}
	}
	return found;
}

/* The kernel tells less than usual when the regions are as many as it was given room for. */
static void test_any_number_of_regions(void **state)
{
	const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	const size_t nr_bytes = 2 * NR_MAX * page_bytes;
	char *memory =
		mmap(NULL, nr_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), nr, found;

	(void)state;
	assert_true(fd >= 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	madvise(memory, nr_bytes, MADV_NOHUGEPAGE);
	for (nr = 1; nr <= (int)NR_MAX; nr++) {
		memory[2 * (size_t)(nr - 1) * page_bytes] = 1;
		found = find_all(fd, (uint64_t)(uintptr_t)memory, page_bytes);
		if (found == -ENOTTY)
			skip();
		assert_int_equal(found, nr);
	}
	munmap(memory, nr_bytes);
	close(fd);
}

/* Of a process that has ended, pages are not gone, but not known. */
static void test_ended(void **state)
{
	const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t here = (uint64_t)(uintptr_t)&page_bytes & ~(page_bytes - 1);
	uint64_t at = here;
	struct sb_page_run run;
	char path[64];
	pid_t pid = fork();
	int fd;

	(void)state;
	if (!pid)
		pause();
	assert_true(pid > 0);
	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(sb_pagemap_read(fd, here + page_bytes, &run, 1, &at), 1);
	/* Beyond the last address there are no words either. */
	at = UINT64_MAX - page_bytes + 1;
	assert_int_equal(sb_pagemap_read(fd, UINT64_MAX, &run, 1, &at), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	at = here;
	assert_int_equal(sb_pagemap_read(fd, here + page_bytes, &run, 1, &at), -ESRCH);
	assert_int_equal(at, here);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_number_of_regions),
		cmocka_unit_test(test_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
