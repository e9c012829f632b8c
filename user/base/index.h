/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The hash table of this project: an index from a hash to the number of an element which lives in
 * the caller's own array. The caller compares keys, so any key type works and nothing is copied.
 *
 *	for (it = sb_index_first(&idx, hash); it.id != SB_INDEX_NONE; it = sb_index_next(&idx, it))
 *		if (my_array.at[it.id] is the key)
 *			return it.id;
 *	...push to my_array...; sb_index_add(&idx, hash, new_id);
 *
 * Also here: the hash function, and interned strings built on the two. Not thread-safe.
 */
#ifndef SB_BASE_INDEX_H
#define SB_BASE_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/vec.h"

#define SB_INDEX_NONE UINT32_MAX

struct sb_index_slot {
	uint32_t hash, id;
};

struct sb_index {
	struct sb_index_slot *slots; /* linear probing, a power of two, at most 3/4 full */
	uint32_t nr, mask;
};

struct sb_index_iter {
	uint32_t at, hash, id;
};

/* Elements whose hash is @hash, one after the other; id is SB_INDEX_NONE at the end. */
struct sb_index_iter sb_index_first(const struct sb_index *index, uint64_t hash);
struct sb_index_iter sb_index_next(const struct sb_index *index, struct sb_index_iter iter);

/* Remember that element @id has hash @hash. Return: 0, -ENOMEM, or -E2BIG beyond 2^31 elements. */
int sb_index_add(struct sb_index *index, uint64_t hash, uint32_t id);
/* Have room for @nr elements in all, without growing again and again. Return: as sb_index_add(). */
int sb_index_reserve(struct sb_index *index, size_t nr);
void sb_index_release(struct sb_index *index);

/* 64-bit hash of bytes; not for keys an attacker gains from colliding beyond slowness. */
uint64_t sb_hash(const void *data, size_t len, uint64_t seed);

/* Strings, each kept once; the number of a string is its handle. Id 0 is always "". */
struct sb_strtab {
	struct sb_arena arena;
	struct sb_index index;
	SB_VEC(struct sb_strtab_entry {
		const char *s;
		uint32_t len;
	})
	strs;
};

int sb_strtab_init(struct sb_strtab *tab);
/* Return: 0 and the id, -ENOMEM, or -E2BIG for a string or a table beyond 2^31. */
int sb_strtab_add(struct sb_strtab *tab, const char *s, size_t len, uint32_t *ret_id);
/*
 * Append @s without a look whether it is there: its id is the number of strings before. Much faster, for
 * tables that are read from a file; sb_strtab_index() before sb_strtab_add() is called again.
 */
int sb_strtab_push(struct sb_strtab *tab, const char *s, size_t len);
int sb_strtab_index(struct sb_strtab *tab);
/* Return: the string, valid until the release; "" for an id that was never given out. */
const char *sb_strtab_get(const struct sb_strtab *tab, uint32_t id, size_t *ret_len);
void sb_strtab_release(struct sb_strtab *tab);

#endif
