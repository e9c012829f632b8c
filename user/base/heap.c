// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/heap.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_BYTES (2u << 20)
/* Address space: most short runs need less, and what is beyond it comes in small pages. */
#define ROOM_BYTES (64 << 20)
/* What malloc() reserves by default when it asks the kernel for memory. */
#define PAD_BYTES  (128 << 10)
/* More than the room, or freeing it would give it back. */
#define KEPT_BYTES (128 << 20)

void sb_heap_for_short_life(void)
{
#ifndef SB_SANITIZED
	const uintptr_t old_end = (uintptr_t)sbrk(0);
	void *volatile grown; /* or the compiler would leave it out */
	uintptr_t start, end;

	/* No allocation is a mapping of its own, which would be gone when it is freed. */
	(void)mallopt(M_MMAP_MAX, 0);
	(void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
	/*
	 * An allocation of the whole room would be filled where MALLOC_PERTURB_ is set. A small one
	 * makes the heap grow by the room, too. Further growth is as usual, so that a limit of
	 * memory is not met earlier than needed.
	 */
	(void)mallopt(M_TOP_PAD, ROOM_BYTES);
	grown = malloc(HUGE_BYTES);
	free(grown);
	(void)mallopt(M_TOP_PAD, PAD_BYTES);
	/* Other memory may share the first and the last huge page. */
	start = (old_end + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
	end = (uintptr_t)sbrk(0) / HUGE_BYTES * HUGE_BYTES;
	if (end > start)
		(void)madvise((void *)start, end - start, MADV_HUGEPAGE);
#endif
}
