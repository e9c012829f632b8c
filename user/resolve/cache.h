/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the caches of the resolver share: the frames of an entry, when to look for entries to evict,
 * and which processes have ended. Internal to resolve; not thread-safe. No pointer is NULL unless
 * it says so. */
#ifndef SB_RESOLVE_CACHE_H
#define SB_RESOLVE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Return: a copy of @nr_bytes bytes, which the caller frees with free(), also if there are none,
 * and then @from may be NULL; NULL: no memory. */
void *sb_cache_copy(const void *from, size_t nr_bytes);

/* The frames of a cache's entry, which are made once. Zero-initialise it; the owner of the entry
 * frees `at` with free(). */
struct sb_frame_ids {
	uint32_t *at; /* IDs in the profile, root first; NULL: not made yet */
	size_t nr;
};
/* Set frames to a copy of @nr IDs; 0 is allowed, @at may be NULL then, and frames->at is not NULL.
 * There were none before: an old array is not freed. Return: 0; -ENOMEM, and nothing changes. */
int sb_frame_ids_set(struct sb_frame_ids *frames, const uint32_t *at, size_t nr);

/* Return: whether to look for entries to evict in a cache of @nr entries: since the last time, when
 * @nr_kept were left (0: never yet), @nr_max or a quarter of @nr_kept, the larger one, were added.
 * The cache sets its nr_kept after each look. So looking at all of them costs less than adding
 * these did. */
static inline bool sb_evict_is_due(size_t nr, size_t nr_kept, size_t nr_max)
{
	return nr >= nr_kept + (nr_kept / 4 > nr_max ? nr_kept / 4 : nr_max);
}

/* Remembers which processes have ended, so that each is looked up once while entries are evicted.
 * sb_ended_has() fills it. Answers grow old, so whoever evicts makes one for each batch, shares it
 * among the caches, and ends it with sb_ended_release(). Zero-initialise it. */
struct sb_ended {
	uint8_t *known; /* by PID; NULL: no memory, so each call looks it up */
};
/* Free its memory. It cannot be used again, unless it is zeroed. */
void sb_ended_release(struct sb_ended *ended);
/* Return: whether the process had ended at the first call for it, which is when /proc/PID was not
 * there. A PID that was reused counts as alive, and so does PID 0, which stands for none. Cannot
 * fail. */
bool sb_ended_has(struct sb_ended *ended, uint32_t tgid);

#endif
