/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Perf events: timers on CPUs, and the ring buffers of side-band records. */
#ifndef SB_CAPTURE_PERF_EVENT_H
#define SB_CAPTURE_PERF_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/num.h"

struct perf_event_attr;
struct perf_event_mmap_page;

/* Return: a descriptor, or a negative errno. perf_event_open(2) with every pid on one CPU. */
int sb_perf_open(struct perf_event_attr *attr, int cpu);

/* The same, for an event whose ring says how many records there was no room for: *@ret_tells_lost, from
 * Linux 6.0 on. */
int sb_perf_open_telling_lost(struct perf_event_attr *attr, int cpu, bool *ret_tells_lost);

/*
 * A timer that fires @freq_hz times a second on @cpu: the clock of the CPU, or "cycles" where there
 * is a PMU. Not enabled. Return: a descriptor; -ENODEV: that CPU is offline; -ENOENT: no such
 * event on this machine; -EINVAL: not an event we know; or another negative errno.
 */
int sb_perf_open_timer(const char *event, uint32_t freq_hz, int cpu);

/*
 * Let a timer that sb_perf_open_timer() made, with the same arguments, fire once in @divisor of its
 * periods. Needs no privilege. Return: 0 or a negative errno: it goes on as it did.
 */
int sb_perf_slow_down(int fd, const char *event, uint32_t freq_hz, uint32_t divisor);

/* The CPUs that are online now, appended to @cpus. Return: 0 or a negative errno. */
int sb_cpus_online(sb_vec_u32 *cpus);

/* A mapped ring of one event, read by us. */
struct sb_perf_ring {
	int fd;
	struct perf_event_mmap_page *page;
	size_t nr_bytes;  /* of the data, a power of two */
	char *wrapped;	  /* a record that goes round the end is put together here */
	bool was_full;	  /* when it was read: records may have been lost since the last reading */
	uint64_t nr_lost; /* as of the last sb_perf_ring_lost() */
};

/* Take over @fd and map @nr_bytes of ring. Return: 0 or a negative errno; @fd is closed then. */
int sb_perf_ring_init(struct sb_perf_ring *ring, int fd, size_t nr_bytes);
void sb_perf_ring_release(struct sb_perf_ring *ring);

struct perf_event_header;
/*
 * Call @fn for each record there is. A record is valid during the call.
 * Return: 0, or what @fn returned when negative (that record is consumed).
 */
int sb_perf_ring_read(struct sb_perf_ring *ring,
		      int (*fn)(void *arg, const struct perf_event_header *record), void *arg);

/*
 * How many records were lost since the last call, of an event that tells. PERF_RECORD_LOST says so, too, but
 * with the next record, which may never come. Return: 0 or a negative errno.
 */
int sb_perf_ring_lost(struct sb_perf_ring *ring, uint64_t *ret_nr);

#endif
