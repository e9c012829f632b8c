// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Many arenas hold a few names each: a block is as big as all before it, within these. */
#define BLOCK_BYTES_MIN (1u << 10)
#define BLOCK_BYTES_MAX (64u << 10)

struct sb_arena_block {
	struct sb_arena_block *next;
	size_t used, size;
	_Alignas(8) char mem[];
};

static struct sb_arena_block *block_new(struct sb_arena *arena, size_t size)
{
	struct sb_arena_block *block;

	if (size > SIZE_MAX - sizeof(*block))
		return NULL;
	block = malloc(sizeof(*block) + size);
	if (!block)
		return NULL;
	block->used = 0;
	block->size = size;
	arena->nr_bytes += sizeof(*block) + size;
	return block;
}

static size_t next_block_bytes(const struct sb_arena *arena)
{
	size_t size = BLOCK_BYTES_MIN;

	while (size < BLOCK_BYTES_MAX && size < arena->nr_bytes)
		size *= 2;
	return size;
}

void *sb_arena_alloc(struct sb_arena *arena, size_t size)
{
	struct sb_arena_block *block = arena->blocks;
	size_t block_bytes;
	void *mem;

	if (size > SIZE_MAX - 8)
		return NULL;
	size = (size + 7) & ~(size_t)7;
	if (!block || block->size - block->used < size) {
		block_bytes = next_block_bytes(arena);
		block = block_new(arena, size > block_bytes / 4 ? size : block_bytes);
		if (!block)
			return NULL;
		if (size > block_bytes / 4 && arena->blocks) {
			/* A big object gets a block of its own behind the one that still has
			 * room. */
			block->next = arena->blocks->next;
			arena->blocks->next = block;
		} else {
			block->next = arena->blocks;
			arena->blocks = block;
		}
	}
	mem = block->mem + block->used;
	block->used += size;
	return mem;
}

char *sb_arena_strndup(struct sb_arena *arena, const char *s, size_t len)
{
	char *copy;

	if (len == SIZE_MAX)
		return NULL;
	copy = sb_arena_alloc(arena, len + 1);
	if (!copy)
		return NULL;
	memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

void sb_arena_release(struct sb_arena *arena)
{
	struct sb_arena_block *next;

	for (; arena->blocks; arena->blocks = next) {
		next = arena->blocks->next;
		free(arena->blocks);
	}
	arena->nr_bytes = 0;
}
