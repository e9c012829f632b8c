// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What calls cost, and switches: prints figures after SECONDS. Times are CPU time, so that they are not
 * those of others on the same CPU.
 *
 *	calls read SECONDS FILE		ns for each read of 4 KiB of FILE, which is cached
 *	calls getppid SECONDS		ns for each getppid(2)
 *	calls faults SECONDS FRAMES	ns for each fault of a page of fresh memory, below so many functions
 *	calls mallocs SECONDS BYTES	ns for each malloc() and free() of an older piece
 *	calls switches SECONDS PAIRS	round trips per second of PAIRS of processes that pass a byte to
 *					each other through pipes, and ns for each, of both processes
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE  __attribute__((noinline))
#define NSEC	  1000000000ull
#define BATCH	  1000
#define PAIRS_MAX 64
#define PAGES	  4096
#define PAGE	  4096

static char data[4096];

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NSEC + (uint64_t)ts.tv_nsec;
}

static NOINLINE void read_once(int fd)
{
	if (pread(fd, data, sizeof(data), 0) != (ssize_t)sizeof(data))
		_exit(1);
}

static NOINLINE void getppid_once(int fd)
{
	syscall(SYS_getppid);
}

static int loop(void (*once)(int), int fd, uint64_t seconds)
{
	uint64_t begin = now_ns(CLOCK_MONOTONIC), calls = 0,
		 cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	int i;

	do {
		for (i = 0; i < BATCH; i++)
			once(fd);
		calls += BATCH;
	} while (now_ns(CLOCK_MONOTONIC) < begin + seconds * NSEC);
	cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	return printf("%.2f\n", (double)cpu_ns / (double)calls) < 0;
}

static int loop_read(uint64_t seconds, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? 1 : loop(read_once, fd, seconds);
}

static int loop_getppid(uint64_t seconds, const char *arg)
{
	return loop(getppid_once, -1, seconds);
}

static NOINLINE void touch_below(volatile char *memory, int nr_frames)
{
	int i;

	if (nr_frames > 0)
		touch_below(memory, nr_frames - 1);
	for (i = 0; i < PAGES && nr_frames <= 0; i++)
		memory[(size_t)i * PAGE] = 1;
	__asm__ volatile("" ::: "memory"); /* no tail call */
}

static int loop_faults(uint64_t seconds, const char *arg)
{
	uint64_t begin = now_ns(CLOCK_MONOTONIC), nr = 0, cpu_ns = 0;
	char *memory = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || madvise(memory, (size_t)PAGES * PAGE, MADV_NOHUGEPAGE))
		return 1;
	do {
		cpu_ns -= now_ns(CLOCK_THREAD_CPUTIME_ID);
		touch_below(memory, arg ? atoi(arg) : 8);
		cpu_ns += now_ns(CLOCK_THREAD_CPUTIME_ID);
		nr += PAGES;
		if (madvise(memory, (size_t)PAGES * PAGE, MADV_DONTNEED))
			return 1;
	} while (now_ns(CLOCK_MONOTONIC) < begin + seconds * NSEC);
	return printf("%.2f\n", (double)cpu_ns / (double)nr) < 0;
}

static int loop_mallocs(uint64_t seconds, const char *arg)
{
	uint64_t begin = now_ns(CLOCK_MONOTONIC), nr = 0, cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	size_t size = arg ? (size_t)atoi(arg) : 64;
	/* Volatile, so that no pair is left out by the compiler. */
	char *volatile pieces[16] = {};
	int i;

	do {
		for (i = 0; i < BATCH; i++) {
			free(pieces[i % 16]);
			pieces[i % 16] = malloc(size);
		}
		nr += BATCH;
	} while (now_ns(CLOCK_MONOTONIC) < begin + seconds * NSEC);
	cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	return printf("%.2f\n", (double)cpu_ns / (double)nr) < 0;
}

/* Passes a byte on for as long as there is one. */
static void relay(int in, int out, volatile uint64_t *count)
{
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(in, &c, 1) == 1 && write(out, &c, 1) == 1)
		(*count)++;
	_exit(0);
}

static int start_pair(pid_t children[2], volatile uint64_t *counts)
{
	int there[2], back[2];

	if (pipe2(there, O_CLOEXEC) || pipe2(back, O_CLOEXEC))
		return 1;
	children[0] = fork();
	if (!children[0])
		relay(there[0], back[1], &counts[0]);
	children[1] = fork();
	if (!children[1])
		relay(back[0], there[1], &counts[1]);
	return children[0] < 0 || children[1] < 0 || write(there[1], "", 1) != 1;
}

static uint64_t sum_of(const volatile uint64_t *counts, int nr)
{
	uint64_t sum = 0;

	while (nr-- > 0)
		sum += counts[nr];
	return sum;
}

static int loop_switches(uint64_t seconds, const char *arg)
{
	int nr = arg ? atoi(arg) : 4, i;
	struct timespec ts = { (time_t)seconds, 0 };
	volatile uint64_t *counts;
	pid_t children[2 * PAIRS_MAX];
	uint64_t begin, trips, cpu_us;
	struct rusage usage;

	counts = mmap(NULL, sizeof(*counts) * 2 * PAIRS_MAX, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counts == MAP_FAILED || nr < 1 || nr > PAIRS_MAX)
		return 2;
	for (i = 0; i < nr; i++)
		if (start_pair(&children[2 * i], &counts[2 * i]))
			return 1;
	begin = now_ns(CLOCK_MONOTONIC);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
	for (i = 0; i < 2 * nr; i++)
		kill(children[i], SIGKILL);
	begin = now_ns(CLOCK_MONOTONIC) - begin;
	while (wait(NULL) > 0)
		;
	getrusage(RUSAGE_CHILDREN, &usage);
	cpu_us = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
		 (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
	trips = sum_of(counts, 2 * nr) / 2;
	printf("%.0f %.0f\n", (double)trips * 1e9 / (double)begin,
	       (double)cpu_us * 1000 / (double)trips);
	return 0;
}

static const struct {
	const char *name;
	int (*work)(uint64_t seconds, const char *arg);
} modes[] = {
	{ "read", loop_read },	     { "getppid", loop_getppid },   { "faults", loop_faults },
	{ "mallocs", loop_mallocs }, { "switches", loop_switches },
};

int main(int argc, char **argv)
{
	size_t i;

	for (i = 0; argc > 2 && i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(modes[i].name, argv[1]))
			return modes[i].work((uint64_t)atoi(argv[2]), argc > 3 ? argv[3] : NULL);
	return 2;
}
