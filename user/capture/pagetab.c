// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/pagetab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_MIN    1024u
/* At most so many eighths of the slots are used, before the table grows by half. */
#define FULL_EIGHTHS 7u

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

/* The hash is multiplied by the number of slots, which is no power of two (Lemire 2019). */
static size_t home_of(uint64_t key, size_t nr_slots)
{
	uint64_t hash = (key ^ key >> 32) * 0x9e3779b97f4a7c15ull;

	hash ^= hash >> 29;
	hash *= 0xbf58476d1ce4e5b9ull;
	return (size_t)((unsigned __int128)hash * nr_slots >> 64);
}

/* Return: the slot of the key, or the free one where it would be. */
static size_t slot_of(const struct sb_pagetab *pages, uint64_t key)
{
	size_t at = home_of(key, pages->nr_slots);

	while (pages->keys[at] && pages->keys[at] != key)
		if (++at == pages->nr_slots)
			at = 0;
	return at;
}

static int resize(struct sb_pagetab *pages, size_t nr_slots)
{
	struct sb_pagetab bigger = { .nr = pages->nr,
				     .nr_slots = nr_slots,
				     .nr_max = pages->nr_max };
	size_t i, at;

	bigger.keys = calloc(nr_slots, sizeof(*bigger.keys));
	bigger.values = malloc(nr_slots * sizeof(*bigger.values));
	if (!bigger.keys || !bigger.values) {
		sb_pagetab_release(&bigger);
		return -ENOMEM;
	}
	for (i = 0; i < pages->nr_slots; i++) {
		if (!pages->keys[i])
			continue;
		at = slot_of(&bigger, pages->keys[i]);
		bigger.keys[at] = pages->keys[i];
		bigger.values[at] = pages->values[i];
	}
	sb_pagetab_release(pages);
	*pages = bigger;
	return 0;
}

void sb_pagetab_release(struct sb_pagetab *pages)
{
	free(pages->keys);
	free(pages->values);
	*pages = (struct sb_pagetab){ .nr_max = pages->nr_max };
}

int sb_pagetab_put(struct sb_pagetab *pages, const struct sb_page *page, struct sb_page *ret_before)
{
	const uint64_t key = key_of(page->space, page->number);
	size_t at;
	int err;

	if (!pages->nr_slots || pages->nr + 1 > pages->nr_slots / 8 * FULL_EIGHTHS) {
		err = resize(pages, pages->nr_slots ? pages->nr_slots / 2 * 3 : SLOTS_MIN);
		if (err)
			return err;
	}
	at = slot_of(pages, key);
	if (pages->keys[at]) {
		*ret_before = page_of(key, pages->values[at]);
		pages->values[at] = value_of(page);
		return 1;
	}
	if (pages->nr >= pages->nr_max)
		return -ENOSPC;
	pages->keys[at] = key;
	pages->values[at] = value_of(page);
	pages->nr++;
	return 0;
}

bool sb_pagetab_find(struct sb_pagetab *pages, uint32_t space, uint64_t number, bool is_seen,
		     struct sb_page *ret_page)
{
	size_t at;

	if (!pages->nr)
		return false;
	at = slot_of(pages, key_of(space, number));
	if (!pages->keys[at])
		return false;
	if (is_seen)
		pages->values[at] |= 1u << SEEN_AT;
	*ret_page = page_of(pages->keys[at], pages->values[at]);
	return true;
}

/* Remove what is in a slot, and move what follows into the gap, as far as it belongs there (Knuth,
 * volume 3, 6.4, algorithm R). */
static void remove_at(struct sb_pagetab *pages, size_t gap)
{
	const size_t nr = pages->nr_slots;
	size_t at = gap, home;

	for (;;) {
		if (++at == nr)
			at = 0;
		if (!pages->keys[at])
			break;
		home = home_of(pages->keys[at], nr);
		/* Whether the home is behind the gap and not behind the slot, around the end. */
		if (gap <= at ? gap < home && home <= at : gap < home || home <= at)
			continue;
		pages->keys[gap] = pages->keys[at];
		pages->values[gap] = pages->values[at];
		gap = at;
	}
	pages->keys[gap] = 0;
	pages->nr--;
}

/* It begins behind a free slot, so that removing moves nothing from before the beginning behind it. */
void sb_pagetab_sweep(struct sb_pagetab *pages, bool (*keeps)(void *arg, struct sb_page *page),
		      void *arg)
{
	size_t first = 0, i = 0, at;
	struct sb_page page;

	while (first < pages->nr_slots && pages->keys[first])
		first++;
	while (i < pages->nr_slots) {
		at = (first + i) % pages->nr_slots;
		if (!pages->keys[at]) {
			i++;
			continue;
		}
		page = page_of(pages->keys[at], pages->values[at]);
		if (!keeps(arg, &page)) {
			remove_at(pages, at);
			continue;
		}
		pages->values[at] = value_of(&page);
		i++;
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
	struct sb_page page;
	uint64_t i;
	size_t at;

	if (nr > pages->nr) {
		sb_pagetab_sweep(pages, keeps_others, &removal);
		return;
	}
	for (i = 0; i < nr && pages->nr; i++) {
		at = slot_of(pages, key_of(space, number + i));
		if (!pages->keys[at])
			continue;
		page = page_of(pages->keys[at], pages->values[at]);
		remove_at(pages, at);
		fn(arg, &page);
	}
}

size_t sb_pagetab_bytes(const struct sb_pagetab *pages)
{
	return pages->nr_slots * (sizeof(*pages->keys) + sizeof(*pages->values));
}
