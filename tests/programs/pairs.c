// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Measures its own requests: one thread begins them by begun(ID, bytes, name) and another one ends
 * them by done(ID, name). "pairs NR": of ten requests six begin in often(), three in seldom() and
 * one in rarely(). It prints how many there were of each, how many microseconds they took, and
 * their bytes; and how long the longest took. "pairs NR again"
 * begins each of them twice; "pairs NR open" begins one more, which never ends, in stay().
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SLEEP_NS     400000
#define REQUESTS_MAX 10000
#define NEVER	     REQUESTS_MAX

struct kind {
	const char *caller;
	uint64_t nr, ns, bytes;
};

static volatile struct kind kinds[] = { { .caller = "often" },
					{ .caller = "seldom" },
					{ .caller = "rarely" } };
static uint64_t longest_ns;
static uint64_t began_ns[REQUESTS_MAX + 1];
static int queue[2], is_again;
static volatile uint64_t sink;

static uint64_t now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

static int kind_of(int id)
{
	return id % 10 < 6 ? 0 : id % 10 < 9 ? 1 : 2;
}

__attribute__((noinline)) void begun(int id, uint64_t bytes, const char *name)
{
	sink = (uint64_t)id + bytes + (uintptr_t)name;
}

__attribute__((noinline)) void done(int id, const char *name)
{
	sink = (uint64_t)id + (uintptr_t)name;
}

static void begin(int id)
{
	volatile struct kind *kind = &kinds[kind_of(id)];
	char name[16];

	snprintf(name, sizeof(name), "request %d", id);
	kind->bytes += 100 + (uint64_t)id;
	if (is_again)
		begun(id, 100 + (uint64_t)id, name);
	begun(id, 100 + (uint64_t)id, name);
	began_ns[id] = now();
	if (id != NEVER && write(queue[1], &id, sizeof(id)) != sizeof(id))
		abort();
}

__attribute__((noinline)) void often(int id)
{
	begin(id);
	sink = 1;
}

__attribute__((noinline)) void seldom(int id)
{
	begin(id);
	sink = 2;
}

__attribute__((noinline)) void rarely(int id)
{
	begin(id);
	sink = 3;
}

__attribute__((noinline)) void stay(void)
{
	begin(NEVER);
	sink = 4;
}

static void *finish(void *arg)
{
	struct timespec delay = { .tv_nsec = SLEEP_NS };
	char name[16];
	uint64_t took;
	int id;

	while (read(queue[0], &id, sizeof(id)) == sizeof(id)) {
		volatile struct kind *kind = &kinds[kind_of(id)];

		snprintf(name, sizeof(name), "request %d", id);
		nanosleep(&delay, NULL);
		took = now() - began_ns[id];
		longest_ns = took > longest_ns ? took : longest_ns;
		kind->ns += took;
		kind->nr++;
		done(id, name);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static void (*const callers[])(int id) = { often, seldom, rarely };
	int i, nr = argc > 1 ? atoi(argv[1]) : 1000;
	const char *mode = argc > 2 ? argv[2] : "";
	pthread_t thread;

	is_again = !strcmp(mode, "again");
	if (nr > REQUESTS_MAX || pipe(queue) || pthread_create(&thread, NULL, finish, NULL))
		return 1;
	if (!strcmp(mode, "open"))
		stay();
	for (i = 0; i < nr; i++) {
		callers[kind_of(i)](i);
		/* Four requests at a time. */
		while (i - (int)(kinds[0].nr + kinds[1].nr + kinds[2].nr) > 2)
			usleep(100);
	}
	close(queue[1]);
	pthread_join(thread, NULL);
	for (i = 0; i < 3; i++)
		fprintf(stderr, "%s %llu %llu %llu\n", kinds[i].caller,
			(unsigned long long)kinds[i].nr, (unsigned long long)kinds[i].ns / 1000,
			(unsigned long long)kinds[i].bytes);
	fprintf(stderr, "longest %llu\n", (unsigned long long)longest_ns / 1000);
	return 0;
}
