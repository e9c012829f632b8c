/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Perf events: the timers of CPUs, and the ring buffers of side-band records. See
 * perf_event_open(2). Functions that open return: a descriptor, which the caller closes; -ENODEV
 * when the CPU is offline; -EACCES, -EPERM without privilege; or another negative errno of
 * perf_event_open(2). Order of a ring: open the event, sb_perf_ring_init(), read,
 * sb_perf_ring_release(). Thread: any, one at a time for each ring. No pointer may be NULL, and
 * none is kept. */
#ifndef SB_CAPTURE_PERF_EVENT_H
#define SB_CAPTURE_PERF_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/num.h"

struct perf_event_attr;
struct perf_event_mmap_page;
struct sb_counter; /* events/counter.h; borrowed during a call */

/* Open an event for all processes on CPU @cpu. Sets attr->size; the caller has set the rest. It is
 * enabled unless attr->disabled. */
int sb_perf_open(struct perf_event_attr *attr, int cpu);

/* Open an event for all processes on CPU @cpu that counts the records for which its ring had no
 * room. Sets attr->size and attr->read_format; the caller has set the rest. *ret_tells_lost, set in
 * any case: whether the kernel can do that (Linux 6.0 and later); if not, an event that does not
 * count them is opened. */
int sb_perf_open_telling_lost(struct perf_event_attr *attr, int cpu, bool *ret_tells_lost);

/*
 * Open a timer on @cpu that fires each time @counter has counted its period, or, if it has none,
 * @freq_hz times a second (not looked at if it has one); a clock does not while the CPU is idle. It
 * is enabled when libbpf attaches a program to it.
 *
 * Return, too: -ENOENT, -EOPNOTSUPP when the machine has no such counter; -EINVAL when the kernel
 * refuses the frequency or the period.
 */
int sb_perf_open_timer(const struct sb_counter *counter, uint32_t freq_hz, int cpu);

/* Return: the period of a clock in ns: its own or, if it has none, that of @freq_hz, 1 to 10^9
 * times a second; 0: @counter is no clock. */
uint64_t sb_perf_timer_period_ns(const struct sb_counter *counter, uint32_t freq_hz);

/*
 * Divide the rate that a timer was opened with, not its current one, by @divisor, not 0; 1 restores
 * it. The other arguments are those that it was opened with. Needs no privilege.
 * Return: 0; or a negative errno of ioctl(2), and the rate has not changed.
 */
int sb_perf_slow_down(int fd, const struct sb_counter *counter, uint32_t freq_hz, uint32_t divisor);

/* Append the numbers of the CPUs that are online to @cpus. Return: 0; -ENOMEM; -EINVAL, -ERANGE,
 * -E2BIG, -EFBIG: the kernel's list in /sys is not understood; or another negative errno of open(2)
 * or read(2) of it. Nothing was appended on error. */
int sb_cpus_online(sb_vec_u32 *cpus);

/* The mapped ring buffer of one event. */
struct sb_perf_ring {
	int fd;
	struct perf_event_mmap_page *page;
	size_t nr_bytes;  /* size of the data, a power of two */
	char *wrapped;	  /* buffer for a record that wraps around the end */
	bool was_full;	  /* at the last read: records may have been lost before it */
	uint64_t nr_lost; /* the total at the last sb_perf_ring_lost() */
};

/* Map the ring of @fd, with @nr_bytes of data, a power of two of pages (else -EINVAL). @ring may be
 * uninitialized. Takes over @fd, which is closed on error. Return: 0; -ENOMEM; or a negative errno
 * of mmap(2); there is nothing to release then, which does no harm. */
int sb_perf_ring_init(struct sb_perf_ring *ring, int fd, size_t nr_bytes);
/* Unmap the ring and close its descriptor; a second call does no harm. Not for a ring of zeroes,
 * whose descriptor would be 0. */
void sb_perf_ring_release(struct sb_perf_ring *ring);

struct perf_event_header;
/*
 * Call @fn for each record in the ring, and consume it. A record is valid during the call, in which
 * @fn must not use the ring. Sets ring->was_full. Return: 0; -EBADMSG when the ring is corrupt: no
 * call reads anything from it any more; or what @fn returned, if not 0: that record is consumed,
 * and the rest stays in the ring.
 */
int sb_perf_ring_read(struct sb_perf_ring *ring,
		      int (*fn)(void *arg, const struct perf_event_header *record), void *arg);

/*
 * Get how many records were lost since the last call, at first since the event was opened. Only for
 * events of sb_perf_open_telling_lost() with *ret_tells_lost. (PERF_RECORD_LOST has the same
 * number, but is written with the next record, which may never come.) Return: 0; -EBADMSG: the
 * kernel's answer is too short; or a negative errno of read(2). On error *ret_nr is untouched, and
 * the next call counts these records.
 */
int sb_perf_ring_lost(struct sb_perf_ring *ring, uint64_t *ret_nr);

#endif
