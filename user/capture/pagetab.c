// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/pagetab.h"

#include <errno.h>
#include <sys/mman.h>

/* Of a part: 12 bytes each, in a page of memory. */
#define SLOTS_MIN    256u
/* At most so many eighths of the slots of a part are used, before it grows by a quarter. */
#define FULL_EIGHTHS 7u
/* A sweep that leaves less than one in so many slots of a part in use makes the part smaller. */
#define SPARSE	     8u

/* Of a value: 20 bits for the owner, 5 for the shift, 1 for is_seen, 6 for the time. */
#define SHIFT_AT     20
#define SEEN_AT	     25
#define TIME_AT	     26

static uint64_t key_of(uint32_t space, uint64_t number)
{
	return (uint64_t)space << SB_PAGE_NUMBER_BITS |
	       (number & ((1ull << SB_PAGE_NUMBER_BITS) - 1));
}

static uint32_t value_of(const struct sb_page *page)
{
	return page->owner | page->shift << SHIFT_AT | (uint32_t)page->is_seen << SEEN_AT |
	       page->time << TIME_AT;
}

static struct sb_page page_of(uint64_t key, uint32_t value)
{
	return (struct sb_page){
		.space = (uint32_t)(key >> SB_PAGE_NUMBER_BITS),
		.number = key & ((1ull << SB_PAGE_NUMBER_BITS) - 1),
		.owner = value & (SB_PAGETAB_OWNERS_MAX - 1),
		.shift = value >> SHIFT_AT & 31,
		.is_seen = value >> SEEN_AT & 1,
		.time = value >> TIME_AT,
	};
}

static uint64_t hash_of(const struct sb_pagetab *pages, uint64_t key)
{
	uint64_t hash = key ^ pages->seed;

	hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15ull;
	hash ^= hash >> 29;
	return hash * 0xbf58476d1ce4e5b9ull;
}

static struct sb_pagetab_part *part_of(struct sb_pagetab *pages, uint64_t key)
{
	return &pages->parts[hash_of(pages, key) >> (64 - SB_PAGETAB_PART_BITS)];
}

/* The rest of the hash is multiplied by the number of slots, which is no power of two (Lemire
 * 2019). */
static size_t home_of(const struct sb_pagetab *pages, uint64_t key, size_t nr_slots)
{
	const uint64_t rest = hash_of(pages, key) << SB_PAGETAB_PART_BITS;

	return (size_t)((unsigned __int128)rest * nr_slots >> 64);
}

/* Return: the slot of the key, or the free one where it would be. The part has slots. */
static size_t slot_of(const struct sb_pagetab *pages, const struct sb_pagetab_part *part,
		      uint64_t key)
{
	size_t at = home_of(pages, key, part->nr_slots);

	while (part->keys[at] && part->keys[at] != key)
		if (++at == part->nr_slots)
			at = 0;
	return at;
}

static size_t bytes_of(size_t nr_slots)
{
	return nr_slots * (sizeof(uint64_t) + sizeof(uint32_t));
}

static void release_part(struct sb_pagetab_part *part)
{
	if (part->keys)
		munmap(part->keys, bytes_of(part->nr_slots));
	*part = (struct sb_pagetab_part){};
}

/* Not by malloc(): parts grow by turns, and would leave gaps that the next one does not fit
 * into. */
static int resize(const struct sb_pagetab *pages, struct sb_pagetab_part *part, size_t nr_slots)
{
	struct sb_pagetab_part bigger = { .nr = part->nr, .nr_slots = nr_slots };
	void *mem = mmap(NULL, bytes_of(nr_slots), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t i, at;

	if (mem == MAP_FAILED)
		return -ENOMEM;
	bigger.keys = mem;
	bigger.values = (uint32_t *)(bigger.keys + nr_slots);
	for (i = 0; i < part->nr_slots; i++) {
		if (!part->keys[i])
			continue;
		at = slot_of(pages, &bigger, part->keys[i]);
		bigger.keys[at] = part->keys[i];
		bigger.values[at] = part->values[i];
	}
	release_part(part);
	*part = bigger;
	return 0;
}

void sb_pagetab_release(struct sb_pagetab *pages)
{
	size_t i;

	for (i = 0; i < SB_PAGETAB_PARTS; i++)
		release_part(&pages->parts[i]);
	*pages = (struct sb_pagetab){ .nr_max = pages->nr_max, .seed = pages->seed };
}

static int make_room(struct sb_pagetab *pages, struct sb_pagetab_part *part)
{
	const size_t before = part->nr_slots;
	int err;

	if (before && part->nr + 1 <= before / 8 * FULL_EIGHTHS)
		return 0;
	err = resize(pages, part, before ? before / 4 * 5 : SLOTS_MIN);
	if (!err)
		pages->nr_slots += part->nr_slots - before;
	return err;
}

int sb_pagetab_put(struct sb_pagetab *pages, const struct sb_page *page, struct sb_page *ret_before)
{
	const uint64_t key = key_of(page->space, page->number);
	struct sb_pagetab_part *part = part_of(pages, key);
	size_t at;
	int err = make_room(pages, part);

	if (err)
		return err;
	at = slot_of(pages, part, key);
	if (part->keys[at]) {
		*ret_before = page_of(key, part->values[at]);
		part->values[at] = value_of(page);
		return 1;
	}
	if (pages->nr >= pages->nr_max)
		return -ENOSPC;
	part->keys[at] = key;
	part->values[at] = value_of(page);
	part->nr++;
	pages->nr++;
	return 0;
}

bool sb_pagetab_find(struct sb_pagetab *pages, uint32_t space, uint64_t number, bool is_seen,
		     struct sb_page *ret_page)
{
	const uint64_t key = key_of(space, number);
	struct sb_pagetab_part *part = part_of(pages, key);
	size_t at;

	if (!part->nr)
		return false;
	at = slot_of(pages, part, key);
	if (!part->keys[at])
		return false;
	if (is_seen)
		part->values[at] |= 1u << SEEN_AT;
	*ret_page = page_of(key, part->values[at]);
	return true;
}

/* Remove what is in a slot, and move what follows into the gap, as far as it belongs there (Knuth,
 * volume 3, 6.4, algorithm R). */
static void remove_at(struct sb_pagetab *pages, struct sb_pagetab_part *part, size_t gap)
{
	const size_t nr = part->nr_slots;
	size_t at = gap, home;

	for (;;) {
		if (++at == nr)
			at = 0;
		if (!part->keys[at])
			break;
		home = home_of(pages, part->keys[at], nr);
		/* Whether the home is behind the gap and not behind the slot, around the end. */
		if (gap <= at ? gap < home && home <= at : gap < home || home <= at)
			continue;
		part->keys[gap] = part->keys[at];
		part->values[gap] = part->values[at];
		gap = at;
	}
	part->keys[gap] = 0;
	part->nr--;
	pages->nr--;
}

/* It begins behind a free slot, so that removing moves nothing from before the beginning behind
 * it. */
static void sweep_part(struct sb_pagetab *pages, struct sb_pagetab_part *part,
		       bool (*keeps)(void *arg, struct sb_page *page), void *arg)
{
	size_t first = 0, i = 0, at;
	struct sb_page page;

	while (first < part->nr_slots && part->keys[first])
		first++;
	while (i < part->nr_slots) {
		at = (first + i) % part->nr_slots;
		if (!part->keys[at]) {
			i++;
			continue;
		}
		page = page_of(part->keys[at], part->values[at]);
		if (!keeps(arg, &page)) {
			remove_at(pages, part, at);
			continue;
		}
		part->values[at] = value_of(&page);
		i++;
	}
}

/* Each sweep looks at all slots, so a table that was large once must not stay large. Without memory
 * it does, which is no error. */
static void shrink(struct sb_pagetab *pages, struct sb_pagetab_part *part)
{
	const size_t before = part->nr_slots;
	const size_t wanted = part->nr * 2 > SLOTS_MIN ? part->nr * 2 : SLOTS_MIN;

	if (part->nr < before / SPARSE && wanted < before && !resize(pages, part, wanted))
		pages->nr_slots -= before - part->nr_slots;
}

void sb_pagetab_sweep(struct sb_pagetab *pages, bool (*keeps)(void *arg, struct sb_page *page),
		      void *arg)
{
	size_t i;

	for (i = 0; i < SB_PAGETAB_PARTS; i++) {
		sweep_part(pages, &pages->parts[i], keeps, arg);
		shrink(pages, &pages->parts[i]);
	}
}

struct removal {
	uint32_t space;
	uint64_t number, nr;
	void (*fn)(void *arg, const struct sb_page *page);
	void *arg;
};

static bool keeps_others(void *arg, struct sb_page *page)
{
	const struct removal *removal = arg;

	if (page->space != removal->space || page->number - removal->number >= removal->nr)
		return true;
	removal->fn(removal->arg, page);
	return false;
}

void sb_pagetab_remove(struct sb_pagetab *pages, uint32_t space, uint64_t number, uint64_t nr,
		       void (*fn)(void *arg, const struct sb_page *page), void *arg)
{
	struct removal removal = { space, number, nr, fn, arg };
	struct sb_pagetab_part *part;
	struct sb_page page;
	uint64_t i, key;
	size_t at;

	if (nr > pages->nr) {
		sb_pagetab_sweep(pages, keeps_others, &removal);
		return;
	}
	for (i = 0; i < nr && pages->nr; i++) {
		key = key_of(space, number + i);
		part = part_of(pages, key);
		if (!part->nr)
			continue;
		at = slot_of(pages, part, key);
		if (!part->keys[at])
			continue;
		page = page_of(key, part->values[at]);
		remove_at(pages, part, at);
		fn(arg, &page);
	}
}
