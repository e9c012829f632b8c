/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Clocks, in nanoseconds unless said otherwise. Thread: any. */
#ifndef SB_BASE_TIME_H
#define SB_BASE_TIME_H

#include <stdint.h>
#include <time.h>
#include <unistd.h>

#define SB_NS_PER_SEC 1000000000ull
#define SB_NS_PER_MS  1000000ull

static inline uint64_t sb_timespec_ns(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * SB_NS_PER_SEC + (uint64_t)ts->tv_nsec;
}

static inline struct timespec sb_ns_timespec(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / SB_NS_PER_SEC), (long)(ns % SB_NS_PER_SEC) };
}

/* The time of any clock; 0: there is no such clock. */
static inline uint64_t sb_clock_ns(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		return 0;
	return sb_timespec_ns(&ts);
}

/* CLOCK_MONOTONIC: the clock of bpf_ktime_get_ns() and of our perf events. */
static inline uint64_t sb_now_ns(void)
{
	return sb_clock_ns(CLOCK_MONOTONIC);
}

/* CLOCK_BOOTTIME: the clock of the beginning of processes. */
static inline uint64_t sb_boot_ns(void)
{
	return sb_clock_ns(CLOCK_BOOTTIME);
}

/* What the beginning of a process is rounded down to in /proc/PID/stat. */
static inline uint64_t sb_tick_ns(void)
{
	return SB_NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* Microseconds since 1970. */
static inline uint64_t sb_real_us(void)
{
	return sb_clock_ns(CLOCK_REALTIME) / 1000;
}

/* CPU time of this thread, in user and kernel mode. */
static inline uint64_t sb_thread_time_ns(void)
{
	return sb_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* CPU time of this process, all threads, in user and kernel mode. */
static inline uint64_t sb_cpu_time_ns(void)
{
	return sb_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/*
 * CPU time of all threads of process @pid; 0: there is no such process, or @pid is 0. The ID of the
 * clock is computed as clock_getcpuclockid(3) does, without its call that asks the kernel whether
 * the process exists: MAKE_PROCESS_CPUCLOCK() and CPUCLOCK_SCHED in linux/posix-timers_types.h.
 */
static inline uint64_t sb_process_time_ns(pid_t pid)
{
	return pid ? sb_clock_ns((clockid_t)(~(uint32_t)pid << 3 | 2)) : 0;
}

#endif
