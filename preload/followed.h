/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The set of pointers whose free() is awaited, for preload/alloc.c: those of sampled allocations.
 * It is bounded, lock-free, and lies in zeroed memory, so there is nothing to set up and nothing
 * that fork() could find half-done. Almost every pointer that is freed is none of the set, so a
 * byte for each class of pointers says how many are in it: neighbours in memory share the cache
 * lines of these bytes.
 *
 * A pointer is a number here and is not followed. It is not NULL, which stands for an empty place;
 * that is not checked. The set is not NULL.
 *
 * Thread: any, several at once, also with the same pointer: realloc() has given memory back before
 * it can say so, and another thread may have it by then. So a pointer can be in the set twice, and
 * two threads can remove it at once; each time that it was added, one removal succeeds.
 */
#ifndef SB_PRELOAD_FOLLOWED_H
#define SB_PRELOAD_FOLLOWED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SB_FOLLOWED_BUCKETS 8192u
#define SB_FOLLOWED_EACH    8u /* pointers in a bucket, which is a cache line */
#define SB_FOLLOWED_CLASSES 65536u

struct sb_followed {
	_Alignas(64) uintptr_t bucket[SB_FOLLOWED_BUCKETS][SB_FOLLOWED_EACH];
	_Alignas(64) uint8_t nr_of_class[SB_FOLLOWED_CLASSES];
	_Alignas(64) uint64_t nr;
};

/* Return: a hash of the number, of which the highest bits are the best. */
static inline uint64_t sb_followed_hash(uintptr_t pointer)
{
	return (uint64_t)pointer * 0x9e3779b97f4a7c15ull;
}

/*
 * Return: the place in the set that counts its pointers of the class of @pointer. It is read and
 * written by atomic operations only. A class is of pointers to the same 16 bytes of a KiB of
 * memory, and of others with the same hash.
 */
static inline uint8_t *sb_followed_class(struct sb_followed *set, uintptr_t pointer)
{
	uint64_t neighbours = sb_followed_hash(pointer >> 10) >> 54 << 6;

	return &set->nr_of_class[neighbours | (pointer >> 4 & 63)];
}

/* Return: the SB_FOLLOWED_EACH places in the set where @pointer can be; an empty one is 0. */
static inline uintptr_t *sb_followed_bucket(struct sb_followed *set, uintptr_t pointer)
{
	return set->bucket[sb_followed_hash(pointer >> 4) >> 51];
}

/* Return: true: @pointer is not in the set, which is empty or has none of its class; false: it may
 * be. */
static inline bool sb_followed_lacks(struct sb_followed *set, const void *pointer)
{
	return !__atomic_load_n(&set->nr, __ATOMIC_RELAXED) ||
	       !__atomic_load_n(sb_followed_class(set, (uintptr_t)pointer), __ATOMIC_RELAXED);
}

/* Add @by, 1 or -1, to the number of a class, which is above 0 if it is -1. Return: true: it was
 * done; false: it is 255 already, and stays so. */
static inline bool sb_followed_count(uint8_t *nr, int by)
{
	uint8_t old = __atomic_load_n(nr, __ATOMIC_RELAXED);

	do {
		if (by > 0 && old == UINT8_MAX)
			return false;
	} while (!__atomic_compare_exchange_n(nr, &old, (uint8_t)(old + by), true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return true;
}

/* Add @pointer, once more if it is in the set. Return: true: it is in the set until it is removed;
 * false: there was no room in its bucket or its class, and the set is unchanged. */
static inline bool sb_followed_add(struct sb_followed *set, const void *pointer)
{
	uintptr_t *bucket = sb_followed_bucket(set, (uintptr_t)pointer), none;
	uint8_t *nr = sb_followed_class(set, (uintptr_t)pointer);
	unsigned int i;

	if (!sb_followed_count(nr, 1))
		return false;
	for (i = 0; i < SB_FOLLOWED_EACH; i++) {
		none = 0;
		if (__atomic_compare_exchange_n(&bucket[i], &none, (uintptr_t)pointer, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			__atomic_fetch_add(&set->nr, 1, __ATOMIC_RELAXED);
			return true;
		}
	}
	sb_followed_count(nr, -1);
	return false;
}

/* Remove @pointer, once. Return: true: it was in the set; false: it was not, or others removed it
 * meanwhile, and nothing is changed. */
static inline bool sb_followed_remove(struct sb_followed *set, const void *pointer)
{
	uintptr_t *bucket = sb_followed_bucket(set, (uintptr_t)pointer), found;
	unsigned int i;

	for (i = 0; i < SB_FOLLOWED_EACH; i++) {
		found = __atomic_load_n(&bucket[i], __ATOMIC_RELAXED);
		if (found != (uintptr_t)pointer ||
		    !__atomic_compare_exchange_n(&bucket[i], &found, 0, false, __ATOMIC_RELAXED,
						 __ATOMIC_RELAXED))
			continue;
		sb_followed_count(sb_followed_class(set, (uintptr_t)pointer), -1);
		__atomic_fetch_sub(&set->nr, 1, __ATOMIC_RELAXED);
		return true;
	}
	return false;
}

#endif
