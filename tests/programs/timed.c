// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Measures its own calls of timed(): "timed NR" says how often it was called and how many
 * microseconds all calls took, those within others included, and those from often(). Of ten calls
 * seven are from often(), and three from seldom(), which calls it three deep: timed(3, 0) calls
 * timed(2, 0). It returns ten times its first argument, but -1 at every fifth call from often().
 * "timed NR jump" leaves as many further calls by longjmp(). "timed NR open" begins with a call in
 * which another thread stays.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef SLEEP_NS
#define SLEEP_NS 300000
#endif

static uint64_t nr_calls, sum_ns, often_ns;
static volatile int stays;
static volatile uint32_t sink;
static jmp_buf out;

static uint64_t now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

__attribute__((noinline)) int timed(int levels, int how)
{
	struct timespec delay = { .tv_nsec = SLEEP_NS };
	uint64_t before;

	if (how == 'j')
		longjmp(out, 1);
	if (how == 'o')
		pause();
	if (levels > 1) {
		before = now();
		timed(levels - 1, how);
		sum_ns += now() - before;
		nr_calls++;
	} else {
		nanosleep(&delay, NULL);
	}
	sink = (uint32_t)levels;
	return how == 'f' ? -1 : 10 * levels;
}

static uint64_t measure(int levels, int how)
{
	uint64_t before = now(), took;

	timed(levels, how);
	took = now() - before;
	sum_ns += took;
	nr_calls++;
	return took;
}

__attribute__((noinline)) void often(void)
{
	static int nr;

	often_ns += measure(1, ++nr % 5 ? 0 : 'f');
	sink = 1;
}

__attribute__((noinline)) void seldom(void)
{
	measure(3, 0);
	sink = 2;
}

__attribute__((noinline)) void jump(void)
{
	if (!setjmp(out))
		timed(1, 'j');
	sink = 3;
}

static void *stay(void *arg)
{
	stays = 1;
	timed(1, 'o');
	return NULL;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[2] : "";
	int i, nr = argc > 1 ? atoi(argv[1]) : 1000;
	pthread_t thread;

	if (!strcmp(mode, "open") && pthread_create(&thread, NULL, stay, NULL))
		return 1;
	while (!strcmp(mode, "open") && !stays)
		usleep(1000);
	for (i = 0; i < nr; i++) {
		if (i % 10 < 7)
			often();
		else
			seldom();
		if (!strcmp(mode, "jump"))
			jump();
	}
	printf("%llu %llu %llu\n", (unsigned long long)nr_calls, (unsigned long long)sum_ns / 1000,
	       (unsigned long long)often_ns / 1000);
	fflush(stdout);
	if (!strcmp(mode, "open"))
		pause();
	return 0;
}
