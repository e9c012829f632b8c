/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Bump allocation: many small objects, freed all at once by sb_arena_release(), which ends an
 * arena. A zeroed struct is empty. No argument is NULL. Not thread-safe: one thread at a time for
 * each arena. */
#ifndef SB_BASE_ARENA_H
#define SB_BASE_ARENA_H

#include <stddef.h>

struct sb_arena_block;

struct sb_arena {
	struct sb_arena_block *blocks; /* newest first */
	size_t nr_bytes;	       /* allocated from the system so far */
};

/* Return: @size bytes (0 is allowed), aligned to 8 and not zeroed, valid until sb_arena_release();
 * NULL when there is no memory: nothing has changed. */
void *sb_arena_alloc(struct sb_arena *arena, size_t size);
/* Return: a NUL-terminated copy of the @len bytes at @s, valid until sb_arena_release(); NULL when
 * there is no memory: nothing has changed. */
char *sb_arena_strndup(struct sb_arena *arena, const char *s, size_t len);
/* Free all objects; accepts a zeroed struct. The arena is empty then, and can be used again. */
void sb_arena_release(struct sb_arena *arena);

#endif
