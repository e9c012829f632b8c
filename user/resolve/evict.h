/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the caches of the resolver share to evict entries: when to look for some, and which
 * processes have ended. Internal to resolve; not thread-safe. */
#ifndef SB_RESOLVE_EVICT_H
#define SB_RESOLVE_EVICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Return: the number of entries from which to look again, after @nr were left of a cache that may
 * hold @nr_max. Looking at the ones that stay costs less than making a quarter of them did. */
static inline size_t sb_evict_next(size_t nr, size_t nr_max)
{
	return nr + (nr / 4 > nr_max ? nr / 4 : nr_max);
}

/* Remembers which processes have ended, so that each is looked up once while entries are evicted.
 * Zero-initialise it. */
struct sb_ended {
	uint8_t *known;
};
void sb_ended_release(struct sb_ended *ended);
/* Return: whether the process had ended at the first call for it. A PID that was reused counts as
 * alive, and so does PID 0, which stands for none. */
bool sb_ended_has(struct sb_ended *ended, uint32_t tgid);

#endif
