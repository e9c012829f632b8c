/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rate limit for work that other people's processes cause and whose cost they choose, such as
 * reading a long list of mappings again each time it changes. After such work its subject has to
 * rest, several times as long as the work took, before it is done again; rests of all subjects
 * follow one another in a queue, so that all of the work together has a bound. There are three
 * queues, so that nobody waits for those who cost more by an order of magnitude: cheap work may
 * take a fifth of a CPU, the others a twentieth each. Whoever limits the cost of a run can make
 * rests longer (thrift). A zeroed struct is a new ration; it need not be released. Nothing waits
 * here: the caller does the work, asks sb_ration_next_ns(), and does not repeat it before that
 * time. No pointer is NULL. One thread calls sb_ration_next_ns(); any thread may call
 * sb_ration_spent_ns() and sb_ration_set_thrift().
 */
#ifndef SB_BASE_RATION_H
#define SB_BASE_RATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

/* A rest is so many times as long as the work. */
#define SB_RATION_FACTOR       20u
#define SB_RATION_CHEAP_FACTOR 5u
/* What costs less is cheap; what costs more than the second is in the last queue. */
#define SB_RATION_CHEAP_NS     (SB_NS_PER_MS / 2)
#define SB_RATION_DEAR_NS      (10 * SB_NS_PER_MS)

struct sb_ration {
	uint64_t reserved_ns[3]; /* up to then our time is given away */
	uint64_t spent_ns;	 /* for work that is not cheap */
	uint32_t thrift;	 /* rests after such work are 2^thrift times as long */
};

/* Note that work which cost @cpu_ns of CPU time ended at @now_ns. Return: when it may be done
 * again, by the same clock. */
static inline uint64_t sb_ration_next_ns(struct sb_ration *ration, uint64_t now_ns, uint64_t cpu_ns)
{
	bool is_cheap = cpu_ns < SB_RATION_CHEAP_NS;
	uint64_t *reserved_ns =
		&ration->reserved_ns[is_cheap ? 0 : 1 + (cpu_ns >= SB_RATION_DEAR_NS)];
	uint64_t rest_ns = SB_RATION_CHEAP_FACTOR * cpu_ns;

	if (!is_cheap) {
		__atomic_fetch_add(&ration->spent_ns, cpu_ns, __ATOMIC_RELAXED);
		rest_ns = (SB_RATION_FACTOR * cpu_ns)
			  << __atomic_load_n(&ration->thrift, __ATOMIC_RELAXED);
	}
	if (*reserved_ns < now_ns)
		*reserved_ns = now_ns;
	*reserved_ns += rest_ns;
	return *reserved_ns;
}

/* Return: CPU time, in ns, that work which is not cheap cost so far. */
static inline uint64_t sb_ration_spent_ns(const struct sb_ration *ration)
{
	return __atomic_load_n(&ration->spent_ns, __ATOMIC_RELAXED);
}

/* Rests that begin from now on, of work that is not cheap, are 2^@thrift times as long; a @thrift
 * so large that they exceed 64 bits is not checked. */
static inline void sb_ration_set_thrift(struct sb_ration *ration, uint32_t thrift)
{
	__atomic_store_n(&ration->thrift, thrift, __ATOMIC_RELAXED);
}

#endif
