// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Spends 70, 20 and 10 % of its time in three functions, by construction: they run the same loop
 * 7, 2 and 1 times as often. "split THREADS" does so in several threads.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#define CHUNK 200000u

static volatile uint32_t sink;

/* One loop for all, because two copies of it may differ in speed by how they are aligned. */
__attribute__((noinline)) static void spin(uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		sink = i;
}

__attribute__((noinline)) static void seventy(void)
{
	spin(7 * CHUNK);
}

__attribute__((noinline)) static void twenty(void)
{
	spin(2 * CHUNK);
}

__attribute__((noinline)) static void ten(void)
{
	spin(CHUNK);
}

static void *work(void *arg)
{
	for (;;) {
		seventy();
		twenty();
		ten();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int nr = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t thread;

	while (--nr > 0)
		if (pthread_create(&thread, NULL, work, NULL))
			return 1;
	work(NULL);
	return 0;
}
