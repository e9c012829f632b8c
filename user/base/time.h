/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Clocks; nanoseconds unless said otherwise. They cannot fail. Thread: any. */
#ifndef SB_BASE_TIME_H
#define SB_BASE_TIME_H

#include <stdint.h>
#include <time.h>

#define SB_NS_PER_SEC 1000000000ull
#define SB_NS_PER_MS  1000000ull

/* CLOCK_MONOTONIC: the clock of bpf_ktime_get_ns() and of our perf events. */
static inline uint64_t sb_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SB_NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* CLOCK_BOOTTIME: the clock of the beginning of processes. */
static inline uint64_t sb_boot_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * SB_NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Microseconds since 1970. */
static inline uint64_t sb_real_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* CPU time of this thread, in user and kernel mode. */
static inline uint64_t sb_thread_time_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * SB_NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* CPU time of this process, all threads, in user and kernel mode. */
static inline uint64_t sb_cpu_time_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * SB_NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

#endif
