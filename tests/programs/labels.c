// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Threads with labels. labels HOW [LIBRARY]: with the library's functions, or those linked in.
 *
 *	shares		threads that are "car" for 70 % of their time, "bike" for 20 %, "scooter" for 10 %
 *	waits		the same of their time asleep, for 1.5 s; then it says how long each took, in ns
 *	asleep		one that set its labels before, and sleeps
 *	torn		changes between two sets of labels as fast as it can
 *	keys		a new key now and then
 *	many		a new value each time
 *	custom		labels as custom-labels 1 has them
 *	forged		records with sizes and pointers that lead anywhere
 *	none		no labels
 *
 * LABELS_SLOWNESS: how much longer each of these times lasts, where an emulated CPU stands still now and then.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef LABELS_LINKED
#define SB_LABELS_IMPLEMENTATION
#endif
#include "stackbpf-labels.h"

#define THREADS 2

static int (*set)(const char *key, const char *value);
static int (*replace)(const struct sb_label *labels, size_t nr);
static volatile uint64_t sink;
/* The block of thread-local variables is aligned, and its size is no multiple of that. */
static __thread volatile char odd[3] __attribute__((aligned(64)));

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* By the thread's own clock: whatever else the machine does, it is so much. */
static void work_ms(uint64_t ms)
{
	uint64_t end = now_ns(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000;
	int i;

	while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (i = 0; i < 2000; i++)
			sink += (uint64_t)i;
}

/* To a time that is so much later than the last one: to come late makes the next one shorter. */
static void sleep_ms(uint64_t ms)
{
	static __thread uint64_t end;
	struct timespec ts;

	if (!end)
		end = now_ns(CLOCK_MONOTONIC);
	end += ms * 1000000;
	ts.tv_sec = (time_t)(end / 1000000000);
	ts.tv_nsec = (long)(end % 1000000000);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

static void must(int err)
{
	odd[1]++;
	if (!err)
		return;
	fprintf(stderr, "labels: %s\n", strerror(-err));
	exit(1);
}

static const struct {
	const char *vehicle;
	uint64_t ms;
} turns[] = { { "car", 35 }, { "bike", 10 }, { "scooter", 5 } };
#define NR_TURNS (sizeof(turns) / sizeof(turns[0]))
#define NR_WAITS (30 * NR_TURNS)
static uint64_t spent_ns[NR_TURNS]; /* of all threads */

static void take_turns(void (*spend_ms)(uint64_t ms), size_t nr)
{
	const char *slowness = getenv("LABELS_SLOWNESS");
	uint64_t times = slowness ? strtoull(slowness, NULL, 10) : 1;
	uint64_t from_ns = now_ns(CLOCK_MONOTONIC), to_ns;
	size_t i;

	must(set("region", "eu-north"));
	for (i = 0; i < nr; i++) {
		must(set("vehicle", turns[i % NR_TURNS].vehicle));
		spend_ms(turns[i % NR_TURNS].ms * times);
		to_ns = now_ns(CLOCK_MONOTONIC);
		__atomic_fetch_add(&spent_ns[i % NR_TURNS], to_ns - from_ns, __ATOMIC_RELAXED);
		from_ns = to_ns;
	}
}

static void *shares(void *arg)
{
	take_turns(work_ms, SIZE_MAX);
	return arg;
}

static void *waits(void *arg)
{
	take_turns(sleep_ms, NR_WAITS);
	return arg;
}

static void *asleep(void *arg)
{
	must(set("vehicle", "asleep"));
	for (;;)
		pause();
	return arg;
}

/* Sets that belong together, of different lengths, one of them with one label less. */
static void *torn(void *arg)
{
	static const struct sb_label a[] = { { "vehicle", "aaaaaaaa" }, { "region", "aaaaaaaa" } };
	static const struct sb_label b[] = { { "vehicle", "b" },
					     { "other", "a-label-that-nobody-asked-for" },
					     { "region", "b" } };

	for (;;) {
		must(replace(a, 2));
		must(replace(b, 3));
	}
	return arg;
}

static void *keys(void *arg)
{
	char key[16];
	int i;

	for (i = 0;; i = (i + 1) % 40) {
		snprintf(key, sizeof(key), "key%d", i);
		must(replace((const struct sb_label[]){ { key, "yes" } }, 1));
		work_ms(4);
	}
	return arg;
}

static void *many(void *arg)
{
	char value[32];
	uint64_t i;

	for (i = 0;; i++) {
		snprintf(value, sizeof(value), "v%llu", (unsigned long long)i);
		must(set("vehicle", value));
		sink += i;
	}
	return arg;
}

static void *none(void *arg)
{
	for (;;)
		work_ms(10);
	return arg;
}

#ifdef LABELS_CUSTOM
/* https://github.com/polarsignals/custom-labels, version 1. */
struct custom_text {
	size_t len;
	const unsigned char *buf;
};
struct custom_label {
	struct custom_text key, value;
};
struct custom_set {
	struct custom_label *storage;
	size_t count, capacity;
};
const uint32_t custom_labels_abi_version = 1;
__thread struct custom_set *custom_labels_current_set;

#define TEXT(s)                                           \
	{                                                 \
		sizeof(s) - 1, (const unsigned char *)(s) \
	}
static void *custom(void *arg)
{
	static struct custom_label car[] = { { TEXT("x"), TEXT("1") },
					     { TEXT("vehicle"), TEXT("car") } };
	static struct custom_label bike[] = { { TEXT("vehicle"), TEXT("bike") } };
	static struct custom_set sets[] = { { car, 2, 2 }, { bike, 1, 1 } };

	for (;;) {
		custom_labels_current_set = &sets[0];
		work_ms(35);
		custom_labels_current_set = &sets[1];
		work_ms(15);
	}
	return arg;
}
#endif

#ifdef LABELS_FORGED
/* The variable of the specification, and whatever in it. */
__thread uint8_t *otel_thread_ctx_v1;

static uint64_t random_next(void)
{
	static __thread uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void *forged(void *arg)
{
	static const uint64_t pointers[] = {
		1, 0x7ffffffff000ull, ~0ull, 0xffffffff81000000ull, 0x800000000000ull, 4096
	};
	uint8_t record[28 + 70000];
	size_t i;

	for (;;) {
		for (i = 0; i < sizeof(record); i++)
			record[i] = (uint8_t)random_next();
		if (random_next() % 4)
			record[24] = 1;
		if (random_next() % 2)
			memset(record + 28, (int)(random_next() % 3 ? 0 : 255), 2000);
		otel_thread_ctx_v1 =
			random_next() % 3 ? record : (uint8_t *)pointers[random_next() % 6];
		for (i = 0; i < 100000; i++)
			sink += i;
	}
	return arg;
}
#endif

static const struct {
	const char *name;
	void *(*run)(void *arg);
} ways[] = {
	{ "shares", shares }, { "waits", waits }, { "asleep", asleep }, { "torn", torn },
	{ "keys", keys },     { "many", many },	  { "none", none },
#ifdef LABELS_CUSTOM
	{ "custom", custom },
#endif
#ifdef LABELS_FORGED
	{ "forged", forged },
#endif
};

/* A static program loads nothing. */
#ifdef LABELS_STATIC
#define dlopen(path, how) NULL
#define dlsym(lib, name)  NULL
#define dlerror()	  "a static program"
#endif

static void load(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW);

	if (!lib) {
		fprintf(stderr, "labels: %s\n", dlerror());
		exit(1);
	}
	*(void **)&set = dlsym(lib, "sb_label_set");
	*(void **)&replace = dlsym(lib, "sb_labels_replace");
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	size_t way, i;

	for (way = 0; way < sizeof(ways) / sizeof(ways[0]); way++)
		if (argc > 1 && !strcmp(ways[way].name, argv[1]))
			break;
	if (way == sizeof(ways) / sizeof(ways[0]))
		return 2;
	if (argc > 2)
		load(argv[2]);
#ifdef LABELS_LINKED
	else
		set = sb_label_set, replace = sb_labels_replace;
#endif
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, ways[way].run, NULL))
			return 1;
	if (ways[way].run != waits) {
		puts("ready");
		fflush(stdout);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < NR_TURNS; i++)
		fprintf(stderr, "spent %s %llu\n", turns[i].vehicle,
			(unsigned long long)spent_ns[i]);
	return 0;
}
