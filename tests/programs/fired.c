// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * fired DEPTH NR_STACKS [call]: for each number that it reads, calls fired() so often, from below
 * DEPTH frames which are those of one of NR_STACKS (a power of 2) stacks by chance, and prints the
 * CPU time of a call in nanoseconds. With "call", fired() makes a system call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile long sink;
static int is_call;

__attribute__((noipa)) void fired(long i)
{
	sink += i;
	if (is_call)
		sink += syscall(SYS_getppid);
}

static void left(int depth, unsigned int path);
static void right(int depth, unsigned int path);

static inline void go_on(int depth, unsigned int path)
{
	if (!depth)
		fired((long)path);
	else if (path & 1)
		left(depth - 1, path >> 1);
	else
		right(depth - 1, path >> 1);
}

static __attribute__((noipa)) void left(int depth, unsigned int path)
{
	go_on(depth, path);
	sink++;
}

static __attribute__((noipa)) void right(int depth, unsigned int path)
{
	go_on(depth, path);
	sink--;
}

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
	int depth = argc > 1 ? atoi(argv[1]) : 10;
	unsigned int nr_stacks = argc > 2 ? (unsigned int)atoi(argv[2]) : 1, random = 1;
	double begin_ns;
	long nr, i;

	is_call = argc > 3;

	while (scanf("%ld", &nr) == 1) {
		begin_ns = cpu_ns();
		for (i = 0; i < nr; i++) {
			random = random * 1664525 + 1013904223;
			go_on(depth, (random >> 8) & (nr_stacks - 1));
		}
		printf("%.1f\n", (cpu_ns() - begin_ns) / (double)nr);
		fflush(stdout);
	}
	return 0;
}
