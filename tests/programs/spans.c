// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Serves requests of three kinds and measures them itself: "spans NR MICROS [MODE]" calls handle()
 * NR times. Of ten calls six are fast, three middle and one slow. Each kind burns CPU time, sleeps
 * and writes in functions of its own. Says for each kind: calls, those that took at least MICROS,
 * and of these the microseconds on a CPU and asleep, and the bytes written. Modes: "jump" leaves
 * every fast call by longjmp(), and is elsewhere for long after some; "threads" does all of it in
 * four threads, each of which ends inside of a last slow call; "exec" executes itself inside of
 * one, to be between requests; "open" stays in a last call that sleeps; "loop" has the requests as
 * callbacks of an epoll loop; "cost" only calls handle_waits(), and says how many microseconds of
 * CPU time a call takes. In "label" the thread has a label "request" during each call, another
 * value each time (with SPANS_CUSTOM in the form of Polar Signals), and in "trace" a trace ID.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* A program has one form of labels. */
#ifndef SPANS_CUSTOM
#define SB_LABELS_IMPLEMENTATION
#include "stackbpf-labels.h"
#endif

enum { FAST, MIDDLE, SLOW, NR_KINDS };

static const uint64_t burn_ns[] = { 500000, 4000000, 40000000 };
static const uint64_t sleep_ns[] = { 500000, 4000000, 40000000 };
static const size_t written_bytes[] = { 1000, 10000, 100000 };

struct sums {
	uint64_t nr, nr_slow, burnt_ns, slept_ns, bytes;
};

static struct sums sums[NR_KINDS];
static __thread struct sums mine; /* of the current request */
static __thread uint64_t began_ns;
static uint64_t slow_ns;
static const char *mode = "";
static __thread jmp_buf out;
static volatile uint64_t sink;
static char block[100000];

static uint64_t now(clockid_t clock)
{
	struct timespec at;

	clock_gettime(clock, &at);
	return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

static inline __attribute__((always_inline)) void burn(int kind)
{
	uint64_t from = now(CLOCK_THREAD_CPUTIME_ID), i;

	while (now(CLOCK_THREAD_CPUTIME_ID) - from < burn_ns[kind])
		for (i = 0; i < 5000; i++)
			sink = sink * 3 + i;
	mine.burnt_ns += now(CLOCK_THREAD_CPUTIME_ID) - from;
}

static inline __attribute__((always_inline)) void nap(int kind)
{
	struct timespec delay = { .tv_nsec = (long)sleep_ns[kind] };
	uint64_t from = now(CLOCK_MONOTONIC);

	nanosleep(&delay, NULL);
	mine.slept_ns += now(CLOCK_MONOTONIC) - from;
}

static inline __attribute__((always_inline)) void put(int kind)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (write(fd, block, written_bytes[kind]) > 0)
		mine.bytes += written_bytes[kind];
	close(fd);
}

#define KIND(name, kind)                                  \
	__attribute__((noinline)) void burn_##name(void)  \
	{                                                 \
		burn(kind);                               \
		sink++;                                   \
	}                                                 \
	__attribute__((noinline)) void nap_##name(void)   \
	{                                                 \
		nap(kind);                                \
		sink++;                                   \
	}                                                 \
	__attribute__((noinline)) void put_##name(void)   \
	{                                                 \
		put(kind);                                \
		sink++;                                   \
	}                                                 \
	__attribute__((noinline)) void serve_##name(void) \
	{                                                 \
		burn_##name();                            \
		nap_##name();                             \
		put_##name();                             \
		sink++;                                   \
	}

KIND(fast, FAST)
KIND(middle, MIDDLE)
KIND(slow, SLOW)

static void (*const serve[])(void) = { serve_fast, serve_middle, serve_slow };

static void begin_request(void)
{
	mine = (struct sums){ .nr = 1 };
	began_ns = now(CLOCK_MONOTONIC);
}

static void end_request(int kind)
{
	bool is_slow = now(CLOCK_MONOTONIC) - began_ns >= slow_ns;

	__sync_fetch_and_add(&sums[kind].nr, 1);
	if (!is_slow)
		return;
	__sync_fetch_and_add(&sums[kind].nr_slow, 1);
	__sync_fetch_and_add(&sums[kind].burnt_ns, mine.burnt_ns);
	__sync_fetch_and_add(&sums[kind].slept_ns, mine.slept_ns);
	__sync_fetch_and_add(&sums[kind].bytes, mine.bytes);
}

#ifdef SPANS_CUSTOM
/* https://github.com/polarsignals/custom-labels, version 1. */
struct custom_text {
	size_t len;
	const char *at;
};
struct custom_set {
	struct custom_label {
		struct custom_text key, value;
	} * storage;
	size_t count, capacity;
};
__thread struct custom_set *custom_labels_current_set;

static void set_value(const char *value)
{
	static __thread struct custom_label label = { { 7, "request" }, {} };
	static __thread struct custom_set set;

	label.value = (struct custom_text){ strlen(value), value };
	set = (struct custom_set){ &label, 1, 1 };
	custom_labels_current_set = *value ? &set : NULL;
}

static void set_trace(uint64_t id)
{
	(void)id;
}
#else
static void set_value(const char *value)
{
	if (sb_label_set("request", value))
		exit(1);
}

/* As an SDK does: readers see no half of it. */
static void set_trace(uint64_t id)
{
	static __thread struct sb_labels_record record;

	__atomic_store_n(&record.is_valid, 0, __ATOMIC_SEQ_CST);
	memcpy(record.trace_id, &id, sizeof(id));
	memset(record.trace_id + sizeof(id), id ? 0xab : 0, sizeof(id));
	memcpy(record.span_id, &id, sizeof(id));
	__atomic_store_n(&record.is_valid, 1, __ATOMIC_SEQ_CST);
	otel_thread_ctx_v1 = &record;
}
#endif

/* @id: of the request; 0: there is none */
static void set_label(uint64_t id)
{
	static __thread char value[32];

	value[0] = '\0';
	if (id)
		snprintf(value, sizeof(value), "r%llu", (unsigned long long)id);
	if (!strcmp(mode, "label"))
		set_value(value);
	if (!strcmp(mode, "trace"))
		set_trace(id);
}

static void say(void)
{
	int i;

	for (i = 0; i < NR_KINDS; i++)
		printf("%llu %llu %llu %llu %llu\n", (unsigned long long)sums[i].nr,
		       (unsigned long long)sums[i].nr_slow,
		       (unsigned long long)sums[i].burnt_ns / 1000,
		       (unsigned long long)sums[i].slept_ns / 1000,
		       (unsigned long long)sums[i].bytes);
	fflush(stdout);
}

/* A call within a call: the outermost counts. */
__attribute__((noinline)) void handle(int kind, int depth)
{
	if (depth)
		handle(kind, depth - 1);
	else
		serve[kind]();
	if (!strcmp(mode, "jump") && kind == FAST && !depth) {
		end_request(kind);
		longjmp(out, 1);
	}
	if (!strcmp(mode, "threads") && kind == SLOW && depth == 2) {
		end_request(kind);
		pthread_exit(NULL);
	}
	if (!strcmp(mode, "exec") && kind == SLOW && depth == 2) {
		end_request(kind);
		say();
		execl("/proc/self/exe", "spans", "0", "0", "executed", NULL);
	}
	sink++;
}

/* Between requests: what is not in a call. It is on a CPU for half of the time. */
__attribute__((noinline)) void between(int millis)
{
	struct timespec delay = { .tv_nsec = millis * 500000L };
	uint64_t from = now(CLOCK_THREAD_CPUTIME_ID);

	while (now(CLOCK_THREAD_CPUTIME_ID) - from < (uint64_t)delay.tv_nsec)
		sink++;
	nanosleep(&delay, NULL);
	nanosleep(&delay, NULL);
}

static int kind_of(int i)
{
	return i % 10 < 6 ? FAST : i % 10 < 9 ? MIDDLE : SLOW;
}

static void *requests(void *arg)
{
	int i, nr = *(int *)arg;

	for (i = 0; i < nr; i++) {
		begin_request();
		if (!setjmp(out)) {
			set_label((uint64_t)i + 1);
			handle(kind_of(i), 1);
			set_label(0);
			end_request(kind_of(i));
			between(2);
		} else {
			between(i % 20 ? 2 : 150);
		}
	}
	begin_request();
	if (!strcmp(mode, "threads") || !strcmp(mode, "exec"))
		handle(SLOW, 2);
	return NULL;
}

__attribute__((noinline)) void stay(void)
{
	for (;;)
		pause();
}

__attribute__((noinline)) void forever(void)
{
	stay();
	sink++;
}

static void in_threads(int nr)
{
	pthread_t threads[4];
	int i;

	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, requests, &nr);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void loop(int nr)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC), fd = eventfd(1, EFD_CLOEXEC), i;

	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
	for (i = 0; i < nr; i++) {
		epoll_wait(epoll_fd, &event, 1, -1);
		begin_request();
		serve[kind_of(i)]();
		end_request(kind_of(i));
	}
}

/* Many short waits: what is dearest to sample. */
__attribute__((noinline)) void handle_waits(void)
{
	struct timespec delay = { .tv_nsec = 20000 };
	int i;

	for (i = 0; i < 1000; i++)
		nanosleep(&delay, NULL);
	sink++;
}

static int compare(const void *a, const void *b)
{
	return *(const uint64_t *)a < *(const uint64_t *)b ? -1 : 1;
}

/* The median, because somebody else may use the machine. */
static void cost(int nr)
{
	uint64_t *took_ns = calloc((size_t)nr, sizeof(*took_ns)), from;
	int i;

	prctl(PR_SET_TIMERSLACK, 1);
	for (i = 0; took_ns && i < nr; i++) {
		from = now(CLOCK_THREAD_CPUTIME_ID);
		handle_waits();
		took_ns[i] = now(CLOCK_THREAD_CPUTIME_ID) - from;
	}
	qsort(took_ns, (size_t)nr, sizeof(*took_ns), compare);
	printf("%llu\n", (unsigned long long)took_ns[nr / 2] / 1000);
	free(took_ns);
}

int main(int argc, char **argv)
{
	int nr = argc > 1 ? atoi(argv[1]) : 100;

	slow_ns = (argc > 2 ? strtoull(argv[2], NULL, 10) : 0) * 1000;
	mode = argc > 3 ? argv[3] : "";
	if (!strcmp(mode, "cost")) {
		cost(nr);
		return 0;
	}
	if (!strcmp(mode, "executed")) {
		between(300);
		return 0;
	}
	if (!strcmp(mode, "threads"))
		in_threads(nr);
	else if (!strcmp(mode, "loop"))
		loop(nr);
	else
		requests(&nr);
	say();
	if (!strcmp(mode, "open"))
		forever();
	return 0;
}
