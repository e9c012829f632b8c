// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/heap.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_BYTES (2u << 20)
/* Address space: most short runs need less, and what is beyond it comes in small pages. */
#define ROOM_BYTES (64u << 20)
/* More than the room, or freeing it would give it back. */
#define KEPT_BYTES (128 << 20)

void sb_heap_for_short_life(void)
{
#ifndef SB_SANITIZED
	uintptr_t start, end;
	void *room;

	/* No allocation is a mapping of its own, which would be gone when it is freed. */
	(void)mallopt(M_MMAP_MAX, 0);
	(void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
	room = malloc(ROOM_BYTES);
	if (!room)
		return;
	/* Without the huge pages that the room shares with what was allocated before. */
	start = ((uintptr_t)room + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
	end = ((uintptr_t)room + ROOM_BYTES) / HUGE_BYTES * HUGE_BYTES;
	(void)madvise((void *)start, end - start, MADV_HUGEPAGE);
	free(room);
#endif
}
