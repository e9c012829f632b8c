// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * "selfcheck LEVELS [main|thread|signal]": goes that many levels deep, each of them a callback of
 * qsort() with a frame of 300 bytes or 4 KiB, and there asks glibc's backtrace() for its callers:
 * one address a line, innermost first, then "ready". It stays in that frame until it is killed.
 * To be built without frame pointers.
 */
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_MAX    1024
#define SIGNAL_LEVELS 5 /* below the signal, on its own stack */
#define NOINLINE      __attribute__((noinline))

static volatile unsigned int spins;
static _Thread_local int level;
static int raise_at;

static NOINLINE void arrive(void)
{
	static void *callers[FRAMES_MAX];
	int i, nr = backtrace(callers, FRAMES_MAX);

	for (i = 0; i < nr; i++)
		printf("%lx\n", (unsigned long)callers[i]);
	puts("ready");
	fflush(stdout);
	for (;;)
		spins++;
}

static int small_frame(const void *a, const void *b);
static int big_frame(const void *a, const void *b);

static NOINLINE void deeper(void)
{
	int pair[2] = { 1, 2 };

	if (level == raise_at)
		raise(SIGUSR1);
	else if (level-- <= 0)
		arrive();
	qsort(pair, 2, sizeof(pair[0]), level & 1 ? small_frame : big_frame);
	spins += (unsigned int)pair[0];
}

static int small_frame(const void *a, const void *b)
{
	volatile char room[300];

	memset((char *)room, *(const int *)a, sizeof(room));
	deeper();
	return room[spins % sizeof(room)];
}

static int big_frame(const void *a, const void *b)
{
	volatile char room[4096];

	memset((char *)room, *(const int *)b, sizeof(room));
	deeper();
	return room[spins % sizeof(room)];
}

static void on_signal(int sig)
{
	raise_at = -1;
	level = SIGNAL_LEVELS;
	deeper();
}

static int use_alternate_stack(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	stack_t stack = { .ss_sp = malloc(1 << 17), .ss_size = 1 << 17 };

	return !stack.ss_sp || sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL);
}

static void *start(void *arg)
{
	level = *(const int *)arg;
	deeper();
	return NULL;
}

int main(int argc, char **argv)
{
	int nr = argc > 1 ? atoi(argv[1]) : 10;
	const char *where = argc > 2 ? argv[2] : "main";
	pthread_t thread;

	raise_at = -1;
	if (!strcmp(where, "signal")) {
		raise_at = 0;
		if (use_alternate_stack())
			return 1;
	}
	if (strcmp(where, "thread") != 0)
		start(&nr);
	else if (!pthread_create(&thread, NULL, start, &nr))
		pthread_join(thread, NULL);
	return 1;
}
