// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Runs until it is killed, in one of these ways. To be built without frame pointers.
 *
 *	mix calls	its own functions only: recursion, pointers to functions, big arguments
 *	mix libc	functions of libc, which call it back
 *	mix threads	the same in two threads, which end and are made anew
 *	mix signals	a handler on its own stack, at synchronous and at arbitrary places
 *	mix syscalls	short system calls
 *	mix files	system calls that work on files and memory
 *	mix vdso	the clock
 *	mix spawn FILE [ARG]	makes processes by vfork and posix_spawn
 *	mix once	what "libc" does, a few times, and ends
 *	mix big		frames of 600 KB
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BIG_FRAME_BYTES (600 * 1024)
#define NOINLINE	__attribute__((noinline))

extern char **environ;

static volatile unsigned long sink;

struct big_argument {
	long at[40];
};

static NOINLINE unsigned long turn(unsigned long x, int nr)
{
	while (nr-- > 0)
		x = x * 6364136223846793005ul + 1442695040888963407ul;
	sink += x;
	return x;
}

static NOINLINE long sum_of(struct big_argument arg, long (*next)(long), long n)
{
	long sum = next(n) + (long)turn((unsigned long)arg.at[n & 31], 20);
	int i;

	for (i = 0; i < 40; i++)
		sum += arg.at[i];
	return sum;
}

static NOINLINE long descend(long n)
{
	struct big_argument arg;
	volatile char room[64];
	int i;

	room[n & 63] = (char)n;
	for (i = 0; i < 40; i++)
		arg.at[i] = n + i;
	if (n <= 0)
		return (long)turn((unsigned long)room[0], 300);
	return sum_of(arg, descend, n - 1) + room[n & 63];
}

static NOINLINE void calls(void)
{
	sink += (unsigned long)descend(12);
}

static int compare(const void *a, const void *b)
{
	const unsigned int *x = a, *y = b;

	turn(*x, 4);
	return *x < *y ? -1 : *x > *y;
}

static NOINLINE void use_libc(void)
{
	unsigned int numbers[256];
	char text[512];
	void *blocks[16];
	unsigned int seed = 1;
	size_t i;

	for (i = 0; i < 256; i++)
		numbers[i] = (unsigned int)rand_r(&seed);
	qsort(numbers, 256, sizeof(numbers[0]), compare);
	for (i = 0; i < 16; i++) {
		blocks[i] = malloc(numbers[i] & 0xfff);
		snprintf(text, sizeof(text), "%zu %.17g %s %#x", i, numbers[i] / 3.0, "text",
			 numbers[i]);
		sink += strlen(text) + (unsigned long)strtod(text, NULL);
		sink += (unsigned long)(strstr(text, "text") - text);
	}
	for (i = 0; i < 16; i++)
		free(blocks[i]);
}

static void *short_thread(void *arg)
{
	int i;

	for (i = 0; i < 100; i++) {
		calls();
		use_libc();
	}
	return arg;
}

static NOINLINE void once(void)
{
	int i;

	for (i = 0; i < 100; i++)
		use_libc();
	exit(0);
}

static NOINLINE void two_threads(void)
{
	pthread_t threads[2];
	int i;

	for (i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, short_thread, NULL))
			exit(1);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

static void on_signal(int sig)
{
	turn((unsigned long)sig, 2000);
}

static NOINLINE void take_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_RESTART };
	struct itimerval every = { { 0, 1000 }, { 0, 1000 } };
	stack_t stack = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
	for (;;) {
		calls();
		use_libc();
		raise(SIGUSR1);
	}
}

static NOINLINE void short_syscalls(void)
{
	char buf[4096];
	int from = open("/dev/zero", O_RDONLY), to = open("/dev/null", O_WRONLY);

	for (;;)
		if (read(from, buf, sizeof(buf)) < 0 || write(to, buf, sizeof(buf)) < 0)
			exit(1);
}

static NOINLINE void use_files(void)
{
	char path[64];
	void *page;
	FILE *file;
	struct stat st;

	snprintf(path, sizeof(path), "/proc/self/stat");
	file = fopen(path, "r");
	if (!file)
		exit(1);
	if (fgets(path, sizeof(path), file))
		sink += strlen(path);
	fclose(file);
	page = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		exit(1);
	memset(page, 1, 1 << 16);
	munmap(page, 1 << 16);
	sink += (unsigned long)stat("/usr/bin", &st);
}

static NOINLINE void ask_clock(void)
{
	struct timespec now;
	struct timeval tv;

	clock_gettime(CLOCK_MONOTONIC, &now);
	gettimeofday(&tv, NULL);
	sink += (unsigned long)now.tv_nsec + (unsigned long)tv.tv_usec + (unsigned long)time(NULL);
}

static NOINLINE void spawn(char *argv[])
{
	const char *path = argv[0];
	pid_t child = vfork();

	if (!child) {
		execv(path, argv);
		_exit(127);
	}
	if (child < 0 || waitpid(child, NULL, 0) != child)
		exit(1);
	if (posix_spawn(&child, path, NULL, NULL, argv, environ) ||
	    waitpid(child, NULL, 0) != child)
		exit(1);
}

static NOINLINE unsigned long big_frames(int n)
{
	volatile char room[BIG_FRAME_BYTES];

	room[0] = (char)n;
	room[sizeof(room) - 1] = room[0];
	sink += turn(sink, 2000);
	if (n > 0)
		sink += big_frames(n - 1);
	return sink + (unsigned long)room[sizeof(room) - 1];
}

/* One round of what MIX says; 0 if there is no such thing. */
static int round_of(const char *mix, char **args)
{
	if (!strcmp(mix, "calls"))
		calls();
	else if (!strcmp(mix, "libc"))
		use_libc();
	else if (!strcmp(mix, "threads"))
		two_threads();
	else if (!strcmp(mix, "signals"))
		take_signals();
	else if (!strcmp(mix, "syscalls"))
		short_syscalls();
	else if (!strcmp(mix, "files"))
		use_files();
	else if (!strcmp(mix, "vdso"))
		ask_clock();
	else if (!strcmp(mix, "spawn") && args[0])
		spawn(args);
	else if (!strcmp(mix, "once"))
		once();
	else if (!strcmp(mix, "big"))
		big_frames(10);
	else
		return 0;
	return 1;
}

int main(int argc, char **argv)
{
	while (argc > 1 && round_of(argv[1], argv + 2))
		sink++;
	fprintf(stderr, "usage: mix WHAT [FILE [ARG]]\n");
	return 2;
}
