// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/index.h"

#include <errno.h>
#include <string.h>

#define NR_SLOTS_MIN 64u

static uint32_t fold32(uint64_t hash)
{
	return (uint32_t)(hash ^ (hash >> 32));
}

static struct sb_index_iter probe(const struct sb_index *index, uint32_t at, uint32_t hash)
{
	for (;; at = (at + 1) & index->mask) {
		const struct sb_index_slot *slot = &index->slots[at];

		if (slot->id == SB_INDEX_NONE || slot->hash == hash)
			return (struct sb_index_iter){ .at = at, .hash = hash, .id = slot->id };
	}
}

struct sb_index_iter sb_index_first(const struct sb_index *index, uint64_t hash)
{
	if (!index->slots)
		return (struct sb_index_iter){ .id = SB_INDEX_NONE };
	return probe(index, fold32(hash) & index->mask, fold32(hash));
}

struct sb_index_iter sb_index_next(const struct sb_index *index, struct sb_index_iter iter)
{
	return probe(index, (iter.at + 1) & index->mask, iter.hash);
}

static void put(struct sb_index *index, uint32_t hash, uint32_t id)
{
	uint32_t at = hash & index->mask;

	while (index->slots[at].id != SB_INDEX_NONE)
		at = (at + 1) & index->mask;
	index->slots[at] = (struct sb_index_slot){ .hash = hash, .id = id };
}

static int resize(struct sb_index *index, uint64_t nr_slots)
{
	struct sb_index bigger = { .nr = index->nr };
	uint32_t i;

	if (nr_slots > 1u << 31)
		return -E2BIG;
	bigger.slots = malloc((size_t)nr_slots * sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	memset(bigger.slots, 0xff, (size_t)nr_slots * sizeof(*bigger.slots));
	bigger.mask = (uint32_t)nr_slots - 1;
	if (index->slots) {
		for (i = 0; i <= index->mask; i++)
			if (index->slots[i].id != SB_INDEX_NONE)
				put(&bigger, index->slots[i].hash, index->slots[i].id);
	}
	free(index->slots);
	*index = bigger;
	return 0;
}

static uint64_t nr_slots_of(const struct sb_index *index)
{
	return index->slots ? index->mask + 1ull : 0;
}

/* Grow the index once, so that adding does not fail up to @nr elements in all. */
static int reserve(struct sb_index *index, size_t nr)
{
	uint64_t nr_slots = NR_SLOTS_MIN;

	while (nr_slots / 4 * 3 < nr && nr_slots <= 1u << 31)
		nr_slots *= 2;
	return nr_slots > nr_slots_of(index) ? resize(index, nr_slots) : 0;
}

int sb_index_add(struct sb_index *index, uint64_t hash, uint32_t id)
{
	int err;

	if (!index->slots || index->nr >= (index->mask + 1) / 4 * 3) {
		err = resize(index, index->slots ? nr_slots_of(index) * 2 : NR_SLOTS_MIN);
		if (err)
			return err;
	}
	put(index, fold32(hash), id);
	index->nr++;
	return 0;
}

void sb_index_release(struct sb_index *index)
{
	free(index->slots);
	*index = (struct sb_index){};
}

/* Multiply and fold: the full 128-bit product mixes every input bit into every output bit. */
static uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Load @nr bytes, 8 at most, as a little-endian number. Two loads that overlap take half as long as
 * memcpy() with a length that is not constant, which is a call. */
static uint64_t load_tail(const unsigned char *p, size_t nr)
{
	uint32_t low, high;

	if (!nr)
		return 0;
	if (nr < 4)
		return p[0] | (uint64_t)p[nr / 2] << (nr / 2 * 8) |
		       (uint64_t)p[nr - 1] << (nr - 1) * 8;
	memcpy(&low, p, 4);
	memcpy(&high, p + nr - 4, 4);
	return low | (uint64_t)high << (nr - 4) * 8;
}

uint64_t sb_hash(const void *data, size_t len, uint64_t seed)
{
	const uint64_t k0 = 0x9e3779b97f4a7c15ull, k1 = 0xd1b54a32d192ed03ull;
	const unsigned char *p = data;
	uint64_t hash = mix(seed ^ k0, len ^ k1), a, b;

	for (; len >= 16; p += 16, len -= 16) {
		memcpy(&a, p, 8);
		memcpy(&b, p + 8, 8);
		hash = mix(a ^ k0 ^ hash, b ^ k1);
	}
	a = load_tail(p, len < 8 ? len : 8);
	b = len > 8 ? load_tail(p + 8, len - 8) : 0;
	return mix(mix(a ^ k1 ^ hash, b ^ k0), hash ^ k1);
}

int sb_strtab_init(struct sb_strtab *tab)
{
	uint32_t id;

	*tab = (struct sb_strtab){};
	return sb_strtab_add(tab, "", 0, &id);
}

static bool find(const struct sb_strtab *tab, const char *s, size_t len, uint64_t hash,
		 uint32_t *ret_id)
{
	sb_index_each(it, &tab->index, hash) {
		const struct sb_strtab_entry *have = &tab->strs.at[it.id];

		if (have->len == len && !memcmp(have->s, s, len)) {
			*ret_id = it.id;
			return true;
		}
	}
	return false;
}

bool sb_strtab_find(const struct sb_strtab *tab, const char *s, size_t len, uint32_t *ret_id)
{
	return find(tab, s, len, sb_hash(s, len, 0), ret_id);
}

int sb_strtab_add(struct sb_strtab *tab, const char *s, size_t len, uint32_t *ret_id)
{
	uint64_t hash;
	int err;

	if (len >= INT32_MAX)
		return -E2BIG;
	hash = sb_hash(s, len, 0);
	if (find(tab, s, len, hash, ret_id))
		return 0;
	err = sb_strtab_push(tab, s, len);
	if (err)
		return err;
	err = sb_index_add(&tab->index, hash, (uint32_t)tab->strs.nr - 1);
	if (err) {
		tab->strs.nr--;
		return err;
	}
	*ret_id = (uint32_t)tab->strs.nr - 1;
	return 0;
}

int sb_strtab_push(struct sb_strtab *tab, const char *s, size_t len)
{
	struct sb_strtab_entry entry;

	if (len >= INT32_MAX || tab->strs.nr >= INT32_MAX)
		return -E2BIG;
	entry.s = sb_arena_strndup(&tab->arena, s, len);
	entry.len = (uint32_t)len;
	return entry.s ? sb_vec_push(&tab->strs, entry) : -ENOMEM;
}

int sb_strtab_index(struct sb_strtab *tab)
{
	size_t i;
	int err;

	sb_index_release(&tab->index);
	err = reserve(&tab->index, tab->strs.nr);
	for (i = 0; i < tab->strs.nr && !err; i++)
		err = sb_index_add(&tab->index, sb_hash(tab->strs.at[i].s, tab->strs.at[i].len, 0),
				   (uint32_t)i);
	return err;
}

const char *sb_strtab_get(const struct sb_strtab *tab, uint32_t id, size_t *ret_len)
{
	if (id >= tab->strs.nr) {
		if (ret_len)
			*ret_len = 0;
		return "";
	}
	if (ret_len)
		*ret_len = tab->strs.at[id].len;
	return tab->strs.at[id].s;
}

void sb_strtab_release(struct sb_strtab *tab)
{
	sb_arena_release(&tab->arena);
	sb_index_release(&tab->index);
	sb_vec_release(&tab->strs);
}
