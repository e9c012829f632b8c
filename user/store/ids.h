/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sb_index in half of its memory: 4 bytes a slot, the number of an element and, in the bits that it leaves, a part of
 * its hash. So elements that are not the ones sought come up more often, one in 2,000 of a million that are numbered
 * below two million, and when the table grows it asks for the hashes again. Not thread-safe.
 */
#ifndef SB_STORE_IDS_H
#define SB_STORE_IDS_H

#include <stddef.h>
#include <stdint.h>

#define SB_IDS_NONE UINT32_MAX

struct sb_ids {
	uint32_t *slots; /* linear probing, a power of two, at most 7/8 full */
	uint32_t nr, mask;
	uint32_t id_bits; /* of a slot, the lowest */
};

struct sb_ids_iter {
	uint32_t at, tag, id;
};

/* Elements whose hash may be @hash, one after the other; id is SB_IDS_NONE at the end. */
struct sb_ids_iter sb_ids_first(const struct sb_ids *ids, uint64_t hash);
struct sb_ids_iter sb_ids_next(const struct sb_ids *ids, struct sb_ids_iter iter);

/* Whoever knows the hash of an element. */
struct sb_ids_owner {
	uint64_t (*hash_of)(const void *arg, uint32_t id);
	const void *arg;
};
/* Remember element @id, less than INT32_MAX. Return: 0 or -ENOMEM. */
int sb_ids_add(struct sb_ids *ids, uint32_t id, const struct sb_ids_owner *owner);
/* Have room for @nr elements, numbered below @nr, at once. Return: as above. */
int sb_ids_reserve(struct sb_ids *ids, uint32_t nr, const struct sb_ids_owner *owner);
void sb_ids_release(struct sb_ids *ids);
/* Return: what it takes. */
size_t sb_ids_bytes(const struct sb_ids *ids);

#endif
