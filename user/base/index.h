/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The hash table of this project: an index from a hash to the number of an element which lives in
 * the caller's own array. The caller compares keys, so any key type works and nothing is copied.
 *
 *	sb_index_each(it, &idx, hash)
 *		if (my_array.at[it.id] is the key)
 *			return it.id;
 *	...push to my_array...; sb_index_add(&idx, hash, new_id);
 *
 * The caller zeroes a table before its first use, and ends it with sb_index_release(). If
 * sb_index_add() fails, the element has to be taken off the array again; sb_index_push() does that.
 * Elements cannot be removed.
 *
 * Also here: the hash function, and interned strings built on the two: sb_strtab_init(), then in
 * any order sb_strtab_add(), _find() and _get(), or first _push() of many and one _index(); at the
 * end sb_strtab_release(). Strings that come back are borrowed until then. Not thread-safe: one
 * thread at a time for each table. No argument is NULL unless a function says so.
 */
#ifndef SB_BASE_INDEX_H
#define SB_BASE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/vec.h"

#define SB_INDEX_NONE UINT32_MAX

struct sb_index_slot {
	uint32_t hash, id;
};

/* Zeroed it is empty. */
struct sb_index {
	struct sb_index_slot *slots; /* linear probing, a power of two, at most 3/4 full */
	uint32_t nr, mask;
};

struct sb_index_iter {
	uint32_t at, hash, id;
};

/*
 * Iterate over the elements that were added with @hash, and maybe others, since only 32 bits of a
 * hash are kept: the first one, and the one after @iter, whose id must not be SB_INDEX_NONE. After
 * the last one the iterator's id is SB_INDEX_NONE. Adding to the table invalidates iterators.
 */
struct sb_index_iter sb_index_first(const struct sb_index *index, uint64_t hash);
struct sb_index_iter sb_index_next(const struct sb_index *index, struct sb_index_iter iter);
/* Loop over the elements with hash @hash; @it is the name of the iterator that the loop defines.
 * `break` may end the loop. */
#define sb_index_each(it, index, hash)                                                      \
	for (struct sb_index_iter it = sb_index_first(index, hash); it.id != SB_INDEX_NONE; \
	     it = sb_index_next(index, it))

/* Remember that element @id, not SB_INDEX_NONE, has hash @hash; what is added twice is found twice.
 * Return: 0; -ENOMEM, or -E2BIG beyond 3/4 of 2^31 elements: nothing has changed, and the caller
 * removes the element from its array again, as sb_index_push() does. */
int sb_index_add(struct sb_index *index, uint64_t hash, uint32_t id);
/* Append an element to the array @v, whose indexes are the IDs, and remember it: sb_vec_push() and
 * sb_index_add() in one. Return: 0; -ENOMEM or -E2BIG: neither has changed. */
#define sb_index_push(index, hash, v, ...)                                              \
	({                                                                              \
		int pushed_ = sb_vec_push((v), __VA_ARGS__);                            \
                                                                                        \
		if (!pushed_) {                                                         \
			pushed_ = sb_index_add((index), (hash), (uint32_t)(v)->nr - 1); \
			(v)->nr -= !!pushed_;                                           \
		}                                                                       \
		pushed_;                                                                \
	})
/* Free the memory; the index is empty then, and can be used again. */
void sb_index_release(struct sb_index *index);

/*
 * Return: a 64-bit hash of @len bytes; @data may be NULL if there are none. @seed is any number,
 * such as 0 or the hash of what comes before; each number makes a hash function of its own. It is
 * not cryptographic: whoever chooses the bytes can make them collide, which may slow a table down
 * and must not do more harm than that.
 */
uint64_t sb_hash(const void *data, size_t len, uint64_t seed);

/* A table of interned strings: equal strings are stored once and have the same ID. ID 0 is always
 * "". */
struct sb_strtab {
	struct sb_arena arena;
	struct sb_index index;
	SB_VEC(struct sb_strtab_entry {
		const char *s;
		uint32_t len;
	})
	strs;
};

/* Overwrite @tab with a table that has the string "". The caller ends it with sb_strtab_release(),
 * also after an error. Return: 0 or -ENOMEM. */
int sb_strtab_init(struct sb_strtab *tab);
/*
 * Find @len bytes at @s, which may have NULs among them, in the table, or add a copy. Return: 0 and
 * the ID, the number of strings that were there before a new one; -ENOMEM; -E2BIG for a string of
 * 2^31 - 1 bytes or more, or beyond 3/4 of 2^31 strings. On error the table has not changed, and
 * *@ret_id is untouched.
 */
int sb_strtab_add(struct sb_strtab *tab, const char *s, size_t len, uint32_t *ret_id);
/* Return: whether the table has these bytes, and then their ID; what sb_strtab_push() added is
 * found only after sb_strtab_index(). Otherwise *@ret_id is untouched. */
bool sb_strtab_find(const struct sb_strtab *tab, const char *s, size_t len, uint32_t *ret_id);
/*
 * Append a copy of @s without looking for a duplicate; its ID is the number of strings that were
 * there before. This is much faster, for tables that are read from a file. Call sb_strtab_index()
 * before the next sb_strtab_add().
 * Return: 0; -ENOMEM; -E2BIG for a string of 2^31 - 1 bytes or more, or a table of so many strings.
 * On error the table has not changed.
 */
int sb_strtab_push(struct sb_strtab *tab, const char *s, size_t len);
/* Index what sb_strtab_push() added. Return: 0; -ENOMEM, or -E2BIG beyond 3/4 of 2^31 strings:
 * sb_strtab_add() would not find all strings, but sb_strtab_get() does; it can be called again. */
int sb_strtab_index(struct sb_strtab *tab);
/*
 * Return: the string with this ID, NUL-terminated, valid until sb_strtab_release(); "" for an ID
 * that was never returned. @ret_len: its bytes, without the last NUL; may be NULL
 */
const char *sb_strtab_get(const struct sb_strtab *tab, uint32_t id, size_t *ret_len);
/* Free all strings. Accepts an object of zeroes. The table must be initialized before it is used
 * again. */
void sb_strtab_release(struct sb_strtab *tab);

#endif
