// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/ids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NR_SLOTS_MIN 64u
#define ID_BITS_MIN  8u
#define ID_BITS_MAX  31u

/* From the highest bits of the hash; the lowest bits choose the slot. */
static uint32_t tag_of(const struct sb_ids *ids, uint64_t hash)
{
	return (uint32_t)(hash >> 32) >> ids->id_bits;
}

static struct sb_ids_iter probe(const struct sb_ids *ids, uint32_t at, uint32_t tag)
{
	const uint32_t id_mask = (1u << ids->id_bits) - 1;

	for (;; at = (at + 1) & ids->mask) {
		uint32_t slot = ids->slots[at];

		if (slot == SB_IDS_NONE)
			return (struct sb_ids_iter){ .id = SB_IDS_NONE };
		if (slot >> ids->id_bits == tag)
			return (struct sb_ids_iter){ .at = at, .tag = tag, .id = slot & id_mask };
	}
}

void sb_ids_prefetch(const struct sb_ids *ids, uint64_t hash)
{
	if (ids->slots)
		__builtin_prefetch(&ids->slots[(uint32_t)hash & ids->mask]);
}

struct sb_ids_iter sb_ids_first(const struct sb_ids *ids, uint64_t hash)
{
	if (!ids->slots)
		return (struct sb_ids_iter){ .id = SB_IDS_NONE };
	return probe(ids, (uint32_t)hash & ids->mask, tag_of(ids, hash));
}

struct sb_ids_iter sb_ids_next(const struct sb_ids *ids, struct sb_ids_iter iter)
{
	return probe(ids, (iter.at + 1) & ids->mask, iter.tag);
}

static void put(struct sb_ids *ids, uint32_t id, uint64_t hash)
{
	uint32_t at = (uint32_t)hash & ids->mask;

	while (ids->slots[at] != SB_IDS_NONE)
		at = (at + 1) & ids->mask;
	ids->slots[at] = tag_of(ids, hash) << ids->id_bits | id;
}

static uint64_t nr_slots_of(const struct sb_ids *ids)
{
	return ids->slots ? ids->mask + 1ull : 0;
}

static int resize(struct sb_ids *ids, uint64_t nr_slots, uint32_t id_bits,
		  const struct sb_ids_owner *owner)
{
	struct sb_ids other = { .nr = ids->nr, .id_bits = id_bits };
	const uint32_t id_mask = ids->slots ? (1u << ids->id_bits) - 1 : 0;
	uint64_t i;

	other.slots = malloc((size_t)nr_slots * sizeof(*other.slots));
	if (!other.slots)
		return -ENOMEM;
	memset(other.slots, 0xff, (size_t)nr_slots * sizeof(*other.slots));
	other.mask = (uint32_t)(nr_slots - 1);
	for (i = 0; i < nr_slots_of(ids); i++)
		if (ids->slots[i] != SB_IDS_NONE)
			put(&other, ids->slots[i] & id_mask,
			    owner->hash_of(owner->arg, ids->slots[i] & id_mask));
	free(ids->slots);
	*ids = other;
	return 0;
}

/*
 * Resize for @nr elements with IDs below @end. No ID may have all bits set: with such a hash it
 * would look like an empty slot.
 */
static int fit(struct sb_ids *ids, uint64_t nr, uint32_t end, const struct sb_ids_owner *owner)
{
	uint64_t nr_slots = ids->slots ? nr_slots_of(ids) : NR_SLOTS_MIN;
	uint32_t id_bits = ids->slots ? ids->id_bits : ID_BITS_MIN;

	while (nr_slots / 8 * 7 < nr)
		nr_slots *= 2;
	while (1u << id_bits <= end || (1ull << id_bits < nr_slots && id_bits < ID_BITS_MAX))
		id_bits++;
	if (nr_slots == nr_slots_of(ids) && id_bits == ids->id_bits)
		return 0;
	return resize(ids, nr_slots, id_bits, owner);
}

int sb_ids_add(struct sb_ids *ids, uint32_t id, const struct sb_ids_owner *owner)
{
	int err = fit(ids, ids->nr + 1ull, id + 1, owner);

	if (err)
		return err;
	put(ids, id, owner->hash_of(owner->arg, id));
	ids->nr++;
	return 0;
}

int sb_ids_reserve(struct sb_ids *ids, uint32_t nr, const struct sb_ids_owner *owner)
{
	return fit(ids, nr, nr, owner);
}

void sb_ids_release(struct sb_ids *ids)
{
	free(ids->slots);
	*ids = (struct sb_ids){};
}

size_t sb_ids_bytes(const struct sb_ids *ids)
{
	return (size_t)nr_slots_of(ids) * sizeof(*ids->slots);
}
