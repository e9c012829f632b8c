// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/uwpool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/search.h"
#include "base/time.h"
#include "base/vec.h"

/* One part in so many is reserved for lists, because without its list a process has no use for
 * tables. */
#define LISTS_SHARE 16

typedef SB_VEC(struct sb_uwpool_place) extents;

struct resting {
	struct sb_uwpool_place place;
	uint64_t since_ns;
};

struct sb_uwpool {
	struct sb_uwpool_opts opts;
	uint32_t *words;
	size_t reserved_bytes;
	uint32_t nr_parts, nr_parts_max;
	extents free;			  /* ascending; adjacent ones are joined */
	SB_VEC(struct resting) resting;	  /* freed, but not to be reused yet; oldest first */
	size_t nr_places;		  /* allocated or resting */
	uint64_t nr_words, nr_words_peak; /* allocated */
	uint64_t nr_resting_words;
};

uint32_t sb_uwpool_nr_parts(uint64_t bytes_max)
{
	uint64_t nr = bytes_max / SB_UWPOOL_PART_BYTES + !!(bytes_max % SB_UWPOOL_PART_BYTES);

	if (!nr)
		return 1;
	return nr < SB_UW_PARTS_MAX ? (uint32_t)nr : SB_UW_PARTS_MAX;
}

int sb_uwpool_new(const struct sb_uwpool_opts *opts, struct sb_uwpool **ret_pool)
{
	struct sb_uwpool *pool = calloc(1, sizeof(*pool));
	void *at;

	if (!pool)
		return -ENOMEM;
	pool->opts = *opts;
	if (!pool->opts.now_ns)
		pool->opts.now_ns = sb_now_ns;
	pool->nr_parts_max = sb_uwpool_nr_parts(opts->bytes_max);
	pool->reserved_bytes = pool->nr_parts_max * SB_UWPOOL_PART_BYTES;
	/* Reserve addresses only. */
	at = mmap(NULL, pool->reserved_bytes, PROT_NONE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED) {
		free(pool);
		return -ENOMEM;
	}
	pool->words = at;
	*ret_pool = pool;
	return 0;
}

void sb_uwpool_free(struct sb_uwpool *pool)
{
	if (!pool)
		return;
	munmap(pool->words, pool->reserved_bytes);
	sb_vec_release(&pool->free);
	sb_vec_release(&pool->resting);
	free(pool);
}

uint32_t *sb_uwpool_words(const struct sb_uwpool *pool)
{
	return pool->words;
}

static uint32_t end_of(struct sb_uwpool_place place)
{
	return place.word + place.nr_words;
}

static uint32_t round_up(uint32_t val, uint32_t to)
{
	return (val + to - 1) / to * to;
}

/* Find the first extent behind @word. */
static size_t find_behind(const extents *list, uint32_t word)
{
	return sb_bisect(list->nr, i, list->at[i].word <= word);
}

/* Add free words in order, and join them with adjacent ones. There is room for one more element. */
static void join(extents *list, struct sb_uwpool_place place)
{
	size_t i = find_behind(list, place.word);
	struct sb_uwpool_place *next = list->at + i;
	bool joins_next = i < list->nr && end_of(place) == next->word;

	if (i && end_of(next[-1]) == place.word) {
		next[-1].nr_words += place.nr_words;
		if (!joins_next)
			return;
		next[-1].nr_words += next->nr_words;
		memmove(next, next + 1, (list->nr - i - 1) * sizeof(*next));
		list->nr--;
		return;
	}
	if (joins_next) {
		next->word = place.word;
		next->nr_words += place.nr_words;
		return;
	}
	memmove(next + 1, next, (list->nr - i) * sizeof(*next));
	*next = place;
	list->nr++;
}

/* Take @place out of a free extent. There is room for one more element. */
static void carve(extents *list, size_t i, struct sb_uwpool_place place)
{
	struct sb_uwpool_place *at = list->at + i;
	struct sb_uwpool_place behind = { end_of(place), end_of(*at) - end_of(place) };

	at->nr_words = place.word - at->word;
	if (behind.nr_words && at->nr_words) {
		memmove(at + 2, at + 1, (list->nr - i - 1) * sizeof(*at));
		at[1] = behind;
		list->nr++;
	} else if (behind.nr_words) {
		*at = behind;
	} else if (!at->nr_words) {
		memmove(at, at + 1, (list->nr - i - 1) * sizeof(*at));
		list->nr--;
	}
}

/* Return: how many words a table takes there, rounded up to even; for absurd sizes more than any
 * pool has. */
static uint32_t table_words(const struct sb_uwpool_want *want, uint32_t word)
{
	size_t nr = want->words_at(want->arg, word);

	if (!nr)
		return 2;
	return nr < UINT32_MAX / 2 ? round_up((uint32_t)nr, 2) : UINT32_MAX / 2;
}

static bool fits(const struct sb_uwpool_want *want, struct sb_uwpool_place room,
		 struct sb_uwpool_place *ret_place)
{
	uint32_t word = room.word, nr = want->nr_words;

	if (want->words_at) {
		nr = table_words(want, word);
	} else {
		word = round_up(word, SB_UW_SEG_WORDS);
		if (word % SB_UW_CHUNK_WORDS + nr > SB_UW_CHUNK_WORDS)
			word = round_up(word, SB_UW_CHUNK_WORDS);
	}
	if (word > end_of(room) || nr > end_of(room) - word)
		return false;
	*ret_place = (struct sb_uwpool_place){ word, nr };
	return true;
}

/*
 * First fit. The size of a table at another address is known only by asking, which takes time in
 * proportion to its size; but padding never doubles it.
 */
static bool find(const extents *list, const struct sb_uwpool_want *want, size_t *ret_i,
		 struct sb_uwpool_place *ret_place)
{
	uint32_t least = want->words_at ? table_words(want, 0) / 2 : want->nr_words;
	size_t i;

	for (i = 0; i < list->nr; i++) {
		if (list->at[i].nr_words >= least && fits(want, list->at[i], ret_place)) {
			*ret_i = i;
			return true;
		}
	}
	return false;
}

static void end_rests(struct sb_uwpool *pool)
{
	uint64_t now_ns = pool->opts.now_ns();
	size_t i;

	for (i = 0; i < pool->resting.nr; i++) {
		if (now_ns - pool->resting.at[i].since_ns < SB_UWPOOL_REST_NS)
			break;
		join(&pool->free, pool->resting.at[i].place);
		pool->nr_resting_words -= pool->resting.at[i].place.nr_words;
	}
	if (!i)
		return;
	memmove(pool->resting.at, pool->resting.at + i,
		(pool->resting.nr - i) * sizeof(*pool->resting.at));
	pool->resting.nr -= i;
	pool->nr_places -= i;
}

static int add_part(struct sb_uwpool *pool)
{
	struct sb_uwpool_place part = { pool->nr_parts * SB_UW_PART_WORDS, SB_UW_PART_WORDS };
	int err;

	if (pool->nr_parts == pool->nr_parts_max)
		return -ENOSPC;
	err = pool->opts.add_part(pool->opts.arg, pool->nr_parts, pool->words + part.word);
	if (err) {
		sb_debug("no part %u of the unwind tables: %s", pool->nr_parts, strerror(-err));
		pool->nr_parts_max = pool->nr_parts;
		return -ENOSPC;
	}
	pool->nr_parts++;
	join(&pool->free, part);
	return 0;
}

/*
 * Between two free extents there is at least one place that is allocated or resting. So with room
 * for as many elements as there are places, nothing can fail when one is freed.
 */
static int make_room_for_lists(struct sb_uwpool *pool)
{
	int err = sb_vec_reserve(&pool->free, pool->nr_places + 3);

	return err ? err : sb_vec_reserve(&pool->resting, pool->nr_places + 1);
}

/* Return: how much there may be of tables and lists, counted together. */
static uint64_t words_max(const struct sb_uwpool *pool, const struct sb_uwpool_want *want)
{
	uint64_t nr_words = (uint64_t)pool->nr_parts_max * SB_UW_PART_WORDS;

	return want->words_at ? nr_words - nr_words / LISTS_SHARE : nr_words;
}

static bool is_too_big(const struct sb_uwpool *pool, const struct sb_uwpool_want *want)
{
	if (!want->words_at)
		return want->nr_words > SB_UW_CHUNK_WORDS;
	return table_words(want, 0) > pool->nr_parts_max * SB_UW_PART_WORDS / 2;
}

int sb_uwpool_alloc(struct sb_uwpool *pool, const struct sb_uwpool_want *want,
		    struct sb_uwpool_place *ret_place)
{
	struct sb_uwpool_place place;
	size_t i;
	int err;

	if (!pool->nr_parts_max)
		return -ENOSPC;
	if (is_too_big(pool, want))
		return -EFBIG;
	err = make_room_for_lists(pool);
	if (err)
		return err;
	end_rests(pool);
	while (!find(&pool->free, want, &i, &place)) {
		err = add_part(pool);
		if (err)
			return err;
	}
	if (pool->nr_words + pool->nr_resting_words + place.nr_words > words_max(pool, want))
		return -ENOSPC;
	carve(&pool->free, i, place);
	*ret_place = place;
	pool->nr_places++;
	pool->nr_words += place.nr_words;
	if (pool->nr_words > pool->nr_words_peak)
		pool->nr_words_peak = pool->nr_words;
	return 0;
}

void sb_uwpool_release(struct sb_uwpool *pool, struct sb_uwpool_place place)
{
	struct resting resting = { place, pool->opts.now_ns() };

	if (!place.nr_words)
		return;
	pool->nr_words -= place.nr_words;
	pool->nr_resting_words += place.nr_words;
	pool->resting.at[pool->resting.nr++] = resting;
}

int sb_uwpool_grow(struct sb_uwpool *pool)
{
	int err = make_room_for_lists(pool);

	return err ? err : add_part(pool);
}

bool sb_uwpool_will_fit(const struct sb_uwpool *pool, const struct sb_uwpool_want *want)
{
	struct sb_uwpool_place place;
	extents all = {};
	bool is_found;
	size_t i;

	/* Without memory the answer is no, and more is evicted than necessary. */
	if (sb_vec_reserve(&all, pool->free.nr + pool->resting.nr + 1))
		return false;
	for (i = 0; i < pool->free.nr; i++)
		all.at[all.nr++] = pool->free.at[i];
	for (i = 0; i < pool->resting.nr; i++)
		join(&all, pool->resting.at[i].place);
	is_found = find(&all, want, &i, &place) &&
		   pool->nr_words + place.nr_words <= words_max(pool, want);
	sb_vec_release(&all);
	return is_found;
}

void sb_uwpool_stats(const struct sb_uwpool *pool, struct sb_uwpool_stats *ret_stats)
{
	*ret_stats = (struct sb_uwpool_stats){
		.nr_bytes = pool->nr_words * sizeof(*pool->words),
		.nr_bytes_peak = pool->nr_words_peak * sizeof(*pool->words),
		.nr_bytes_max = (uint64_t)pool->nr_parts_max * SB_UWPOOL_PART_BYTES,
	};
}
