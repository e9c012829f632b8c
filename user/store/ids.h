/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A hash table of IDs that takes 4 bytes a slot, half of sb_index: the ID of an element, and as
 * much of its hash as the remaining bits hold. In exchange, look-ups find wrong candidates more
 * often (one in 2,000 with a million elements), and the table asks its owner for the hashes again
 * when it grows. Not thread-safe; several threads may iterate while nobody adds. Pointers are not
 * NULL, and none is kept. To find or add an element: sb_ids_first() and sb_ids_next() until the
 * caller finds it equal, else sb_ids_add().
 */
#ifndef SB_STORE_IDS_H
#define SB_STORE_IDS_H

#include <stddef.h>
#include <stdint.h>

#define SB_IDS_NONE UINT32_MAX

/* Zero-initialize. */
struct sb_ids {
	uint32_t *slots; /* linear probing; a power of two, at most 7/8 full */
	uint32_t nr, mask;
	uint32_t id_bits; /* lowest bits of a slot, which hold the ID */
};

struct sb_ids_iter {
	uint32_t at, tag, id;
};

/*
 * Iterate over candidates: elements whose hash may be @hash. The caller compares them. At the end
 * iter.id is SB_IDS_NONE, and sb_ids_next() is not to be called any more. Adding an element ends
 * all iterations.
 */
struct sb_ids_iter sb_ids_first(const struct sb_ids *ids, uint64_t hash);
struct sb_ids_iter sb_ids_next(const struct sb_ids *ids, struct sb_ids_iter iter);
/* Begin to load the memory that sb_ids_first() reads for @hash, so that a later call of it waits
 * less. No element of the table changes. */
void sb_ids_prefetch(const struct sb_ids *ids, uint64_t hash);

/* Computes the hash of element @id, which was added or is being added. Borrowed for the call. */
struct sb_ids_owner {
	uint64_t (*hash_of)(const void *arg, uint32_t id);
	const void *arg;
};
/* Add element @id, less than INT32_MAX, without looking for a duplicate. @owner must know its hash
 * already, and those of all elements before. Return: 0; -ENOMEM, and the table is unchanged. */
int sb_ids_add(struct sb_ids *ids, uint32_t id, const struct sb_ids_owner *owner);
/* Make room for @nr elements in all, with IDs below @nr: to add them cannot fail then. Return: 0;
 * -ENOMEM, and the table is unchanged. */
int sb_ids_reserve(struct sb_ids *ids, uint32_t nr, const struct sb_ids_owner *owner);
/* Free the table, and empty it: it can be used again. */
void sb_ids_release(struct sb_ids *ids);
/* Return: the memory it takes, in bytes. */
size_t sb_ids_bytes(const struct sb_ids *ids);

#endif
