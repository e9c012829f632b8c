// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * faults PAGES [TURNS [MS]]: touch() writes to each page of fresh memory, TURNS times, MS apart.
 * Before that count() runs a loop. Prints how many page faults touch() had.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u

static long nr_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

__attribute__((noipa)) static void touch(volatile char *memory, size_t nr_pages)
{
	size_t i;

	for (i = 0; i < nr_pages; i++)
		memory[i * PAGE] = 1;
}

__attribute__((noipa)) static void count(long turns)
{
	volatile long sink = 0;

	while (sink < turns)
		sink++;
}

int main(int argc, char **argv)
{
	size_t nr_pages = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	int turns = argc > 2 ? atoi(argv[2]) : 1, ms = argc > 3 ? atoi(argv[3]) : 0;
	long faults = 0, before;
	char *memory;

	count(100000000);
	while (turns--) {
		memory = mmap(NULL, nr_pages * PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED || madvise(memory, nr_pages * PAGE, MADV_NOHUGEPAGE))
			return 1;
		before = nr_faults();
		touch(memory, nr_pages);
		faults += nr_faults() - before;
		munmap(memory, nr_pages * PAGE);
		usleep((useconds_t)ms * 1000);
	}
	fprintf(stderr, "faults %ld\n", faults);
	return 0;
}
