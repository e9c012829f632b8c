/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A share of a CPU's time for work that other people's processes make for us, and whose cost they choose: reading a
 * long list of mappings again each time it changes. What was done is paid for by a rest before it is done again, in a
 * queue with what others made us do, so that all of it together has a bound. There are three queues, so that nobody
 * waits for those who cost more by an order of magnitude: cheap work has a fifth of a CPU, the others have a twentieth
 * each. Who holds a run to a cost can make that a part of it. One thread works by it; any thread may call the two
 * functions at the end.
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
	uint32_t thrift;	 /* rests are 2^thrift times as long */
};

/* Work that cost @cpu_ns ended at @now_ns. Return: when it may be done again. */
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

/* Return: what work that is not cheap cost so far. */
static inline uint64_t sb_ration_spent_ns(const struct sb_ration *ration)
{
	return __atomic_load_n(&ration->spent_ns, __ATOMIC_RELAXED);
}

/* Rests that begin from now on are 2^@thrift times as long. */
static inline void sb_ration_set_thrift(struct sb_ration *ration, uint32_t thrift)
{
	__atomic_store_n(&ration->thrift, thrift, __ATOMIC_RELAXED);
}

#endif
