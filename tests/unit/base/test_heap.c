// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Memory of a process that ends soon. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/heap.h"

enum { MAPPED_BYTES = 128 << 10, BYTES = 8 << 20, PAGE_BYTES_MAX = 64 << 10 };

/* Return: how many page faults it takes to allocate, fill and free memory. */
static long faults_of_use(void)
{
	struct rusage before, after;
	char *volatile mem; /* or the compiler would leave it out */

	getrusage(RUSAGE_SELF, &before);
	mem = malloc(BYTES);
	assert_non_null(mem);
	memset(mem, 1, BYTES);
	free(mem);
	getrusage(RUSAGE_SELF, &after);
	return after.ru_minflt - before.ru_minflt;
}

static void test_keeps_what_is_freed(void **state)
{
	faults_of_use();
	assert_true(faults_of_use() < BYTES / PAGE_BYTES_MAX);
}

/* Return: whether huge pages are asked for in the mapping that has @at. */
static bool wants_huge_pages(const void *at)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	bool is_in = false, wants = false;
	uintptr_t start, end;
	char line[512];

	assert_non_null(smaps);
	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			is_in = (uintptr_t)at >= start && (uintptr_t)at < end;
		if (is_in && !strncmp(line, "VmFlags:", 8))
			wants = strstr(line, " hg") != NULL;
	}
	fclose(smaps);
	return wants;
}

static void test_asks_for_huge_pages(void **state)
{
	char *mem = malloc(BYTES);

	assert_non_null(mem);
	if (!access("/sys/kernel/mm/transparent_hugepage", F_OK))
		assert_true(wants_huge_pages(mem + BYTES / 2));
	free(mem);
}

static long resident_bytes(void)
{
	FILE *statm = fopen("/proc/self/statm", "re");
	long size, resident;

	assert_non_null(statm);
	assert_int_equal(fscanf(statm, "%ld %ld", &size, &resident), 2);
	fclose(statm);
	return resident * sysconf(_SC_PAGESIZE);
}

/* As in a run, which sets this threshold before it knows how long it is; and as in a test, where
 * each allocation is filled. The room for what comes is not touched. */
static int set_up(void **state)
{
	long resident;

	mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
	mallopt(M_PERTURB, 11);
	resident = resident_bytes();
	sb_heap_for_short_life();
	assert_in_range(resident_bytes() - resident, 0, BYTES);
	mallopt(M_PERTURB, 0);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keeps_what_is_freed),
		cmocka_unit_test(test_asks_for_huge_pages),
	};

#ifdef SB_SANITIZED
	return 0; /* its malloc() is another one, as that of valgrind */
#endif
	if (getenv("STACKBPF_UNDER_VALGRIND"))
		return 0;
	return cmocka_run_group_tests(tests, set_up, NULL);
}
