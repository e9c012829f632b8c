// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The pool of table memory: what it gives out is inside the parts there are, apart from all else,
 * and as the contract wants it; against a model that colours each word.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "capture/uwpool.h"

#define NR_PARTS 3u

static uint64_t clock_ns;
static uint32_t nr_parts;
static int part_err;

static uint64_t now_ns(void)
{
	return clock_ns;
}

static int add_part(void *arg, uint32_t idx, void *at)
{
	assert_int_equal(idx, nr_parts);
	assert_ptr_equal(arg, &nr_parts);
	if (part_err)
		return part_err;
	assert_ptr_equal(mmap(at, SB_UWPOOL_PART_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 at);
	nr_parts++;
	return 0;
}

static struct sb_uwpool *new_pool(uint64_t bytes_max)
{
	const struct sb_uwpool_opts opts = {
		.bytes_max = bytes_max,
		.add_part = add_part,
		.arg = &nr_parts,
		.now_ns = now_ns,
	};
	struct sb_uwpool *pool;

	clock_ns = 1;
	nr_parts = 0;
	part_err = 0;
	assert_int_equal(sb_uwpool_new(&opts, &pool), 0);
	return pool;
}

/* A table of *@arg words, and a pad of two in each chunk it begins in at an odd eighth. */
static size_t words_at(const void *arg, uint32_t word)
{
	return *(const uint32_t *)arg + (word / SB_UW_CHUNK_WORDS % 2 ? 2 : 0);
}

static int alloc_table(struct sb_uwpool *pool, uint32_t nr_words, struct sb_uwpool_place *ret)
{
	const struct sb_uwpool_want want = { .words_at = words_at, .arg = &nr_words };

	return sb_uwpool_alloc(pool, &want, ret);
}

static int alloc_list(struct sb_uwpool *pool, uint32_t nr_words, struct sb_uwpool_place *ret)
{
	const struct sb_uwpool_want want = { .nr_words = nr_words };

	return sb_uwpool_alloc(pool, &want, ret);
}

static void test_sizes(void **state)
{
	assert_int_equal(sb_uwpool_nr_parts(0), 1);
	assert_int_equal(sb_uwpool_nr_parts(SB_UWPOOL_PART_BYTES), 1);
	assert_int_equal(sb_uwpool_nr_parts(SB_UWPOOL_PART_BYTES + 1), 2);
	assert_int_equal(sb_uwpool_nr_parts(UINT64_MAX), SB_UW_PARTS_MAX);
}

/* Parts are made when they are needed, no sooner; the pool ends where it was told to. */
static void test_grows_to_its_bound(void **state)
{
	struct sb_uwpool *pool = new_pool(NR_PARTS * SB_UWPOOL_PART_BYTES);
	struct sb_uwpool_place place;
	struct sb_uwpool_stats stats;
	uint32_t i;

	assert_int_equal(nr_parts, 0);
	for (i = 0; i < NR_PARTS * SB_UW_PART_CHUNKS; i++) {
		assert_int_equal(alloc_list(pool, SB_UW_CHUNK_WORDS, &place), 0);
		assert_int_equal(place.word, i * SB_UW_CHUNK_WORDS);
		assert_int_equal(nr_parts, i / SB_UW_PART_CHUNKS + 1);
		memset(sb_uwpool_words(pool) + place.word, 0xff, place.nr_words * 4ul);
	}
	assert_int_equal(alloc_table(pool, 2, &place), -ENOSPC);
	assert_int_equal(alloc_list(pool, SB_UW_SEG_WORDS, &place), -ENOSPC);
	sb_uwpool_stats(pool, &stats);
	assert_int_equal(stats.nr_bytes, NR_PARTS * SB_UWPOOL_PART_BYTES);
	assert_int_equal(stats.nr_bytes_peak, stats.nr_bytes);
	assert_int_equal(stats.nr_bytes_max, stats.nr_bytes);
	sb_uwpool_free(pool);
}

/* Tables leave room for lists. */
static void test_share_of_lists(void **state)
{
	struct sb_uwpool *pool = new_pool(0);
	const uint32_t nr_words = 1000, max = SB_UW_PART_WORDS / 16 * 15;
	const struct sb_uwpool_want want = { .words_at = words_at, .arg = &nr_words };
	struct sb_uwpool_place place, last;
	uint32_t sum = 0;

	while (!alloc_table(pool, nr_words, &place)) {
		sum += place.nr_words;
		last = place;
	}
	assert_true(sum <= max && sum > max - nr_words - 2);
	assert_false(sb_uwpool_will_fit(pool, &want));
	assert_int_equal(alloc_list(pool, SB_UW_CHUNK_WORDS, &place), 0);
	/* What rests is not there for tables, either. */
	sb_uwpool_release(pool, place);
	sb_uwpool_release(pool, last);
	assert_true(sb_uwpool_will_fit(pool, &want));
	assert_int_equal(alloc_table(pool, nr_words, &place), -ENOSPC);
	clock_ns += SB_UWPOOL_REST_NS;
	assert_int_equal(alloc_table(pool, nr_words, &place), 0);
	sb_uwpool_free(pool);
}

/* A table may lie across parts; one that would push out everything else is refused. */
static void test_spans_parts(void **state)
{
	struct sb_uwpool *pool = new_pool(NR_PARTS * SB_UWPOOL_PART_BYTES);
	struct sb_uwpool_place place;

	assert_int_equal(alloc_table(pool, 2 * SB_UW_PART_WORDS, &place), -EFBIG);
	assert_int_equal(nr_parts, 0);
	assert_int_equal(alloc_table(pool, SB_UW_PART_WORDS + 2, &place), 0);
	assert_int_equal(nr_parts, 2);
	sb_uwpool_words(pool)[place.word + place.nr_words - 1] = 1;
	assert_int_equal(alloc_list(pool, SB_UW_CHUNK_WORDS + 8, &place), -EFBIG);
	sb_uwpool_free(pool);
}

static void test_lists_stay_in_a_chunk(void **state)
{
	struct sb_uwpool *pool = new_pool(0);
	struct sb_uwpool_place place;

	assert_int_equal(alloc_table(pool, 2, &place), 0);
	assert_int_equal(alloc_list(pool, SB_UW_CHUNK_WORDS - 8, &place), 0);
	assert_int_equal(place.word, 8);
	assert_int_equal(alloc_list(pool, 8, &place), 0);
	assert_int_equal(place.word, SB_UW_CHUNK_WORDS);
	assert_int_equal(alloc_list(pool, SB_UW_CHUNK_WORDS, &place), 0);
	assert_int_equal(place.word, 2 * SB_UW_CHUNK_WORDS);
	/* What was left over for them is there for others. */
	assert_int_equal(alloc_table(pool, 6, &place), 0);
	assert_int_equal(place.word, 2);
	sb_uwpool_free(pool);
}

/* What a walk may still read is not written to. */
static void test_rest(void **state)
{
	struct sb_uwpool *pool = new_pool(0);
	const uint32_t half = SB_UW_PART_WORDS / 32 * 15; /* of what tables may take */
	const struct sb_uwpool_want want = { .words_at = words_at, .arg = &half };
	struct sb_uwpool_place first, second, place;

	assert_int_equal(alloc_table(pool, half, &first), 0);
	assert_int_equal(alloc_table(pool, half, &second), 0);
	assert_false(sb_uwpool_will_fit(pool, &want));
	clock_ns += 1000;
	sb_uwpool_release(pool, first);
	assert_true(sb_uwpool_will_fit(pool, &want));
	assert_int_equal(alloc_table(pool, half, &place), -ENOSPC);
	clock_ns += SB_UWPOOL_REST_NS - 1;
	sb_uwpool_release(pool, second);
	assert_int_equal(alloc_table(pool, half, &place), -ENOSPC);
	clock_ns++;
	assert_int_equal(alloc_table(pool, half, &place), 0);
	assert_int_equal(place.word, first.word);
	assert_int_equal(alloc_table(pool, half, &place), -ENOSPC);
	clock_ns += SB_UWPOOL_REST_NS;
	assert_int_equal(alloc_table(pool, half, &place), 0);
	assert_int_equal(place.word, second.word);
	sb_uwpool_free(pool);
}

/* No memory for another part: the pool goes on with those it has. */
static void test_part_fails(void **state)
{
	struct sb_uwpool *pool = new_pool(NR_PARTS * SB_UWPOOL_PART_BYTES);
	struct sb_uwpool_place place;
	struct sb_uwpool_stats stats;

	assert_int_equal(alloc_table(pool, SB_UW_PART_WORDS, &place), 0);
	part_err = -ENOMEM;
	place = (struct sb_uwpool_place){ 7, 7 };
	assert_int_equal(alloc_table(pool, 10, &place), -ENOSPC);
	assert_int_equal(place.word, 7);
	sb_uwpool_stats(pool, &stats);
	assert_int_equal(stats.nr_bytes_max, SB_UWPOOL_PART_BYTES);
	sb_uwpool_free(pool);
}

#define NR_OWNERS 300

struct model {
	uint16_t *owner; /* of each word; 0: nobody */
	struct sb_uwpool_place places[NR_OWNERS + 1];
	struct {
		struct sb_uwpool_place place;
		uint64_t until_ns;
	} resting[NR_OWNERS * 64];
	size_t nr_resting;
	uint64_t nr_words;
};

static void model_take(struct model *model, uint16_t owner, struct sb_uwpool_place place)
{
	uint32_t i;

	assert_true(place.word % 2 == 0 && place.nr_words % 2 == 0 && place.nr_words);
	assert_true(place.word + place.nr_words <= nr_parts * SB_UW_PART_WORDS);
	for (i = place.word; i < place.word + place.nr_words; i++) {
		assert_int_equal(model->owner[i], 0);
		model->owner[i] = owner;
	}
	model->places[owner] = place;
	model->nr_words += place.nr_words;
}

/* Its words stay coloured until they have rested. */
static void model_release(struct model *model, uint16_t owner)
{
	assert_true(model->nr_resting < NR_OWNERS * 64);
	model->resting[model->nr_resting].place = model->places[owner];
	model->resting[model->nr_resting++].until_ns = clock_ns + SB_UWPOOL_REST_NS;
	model->nr_words -= model->places[owner].nr_words;
	model->places[owner].nr_words = 0;
}

static void model_end_rests(struct model *model)
{
	size_t i, kept = 0;

	for (i = 0; i < model->nr_resting; i++) {
		struct sb_uwpool_place place = model->resting[i].place;

		if (model->resting[i].until_ns > clock_ns)
			model->resting[kept++] = model->resting[i];
		else
			memset(model->owner + place.word, 0, place.nr_words * 2ul);
	}
	model->nr_resting = kept;
}

static void one_step(struct sb_uwpool *pool, struct model *model)
{
	uint16_t owner = (uint16_t)(1 + rand() % NR_OWNERS);
	struct sb_uwpool_place place;
	struct sb_uwpool_stats stats;
	int err;

	clock_ns += (uint64_t)rand() % (SB_UWPOOL_REST_NS / 50);
	model_end_rests(model);
	if (model->places[owner].nr_words) {
		sb_uwpool_release(pool, model->places[owner]);
		model_release(model, owner);
	} else if (rand() % 2) {
		err = alloc_list(pool, 8 * (1 + (uint32_t)rand() % 1024), &place);
		if (!err) {
			assert_int_equal(place.word % SB_UW_SEG_WORDS, 0);
			assert_int_equal(place.word / SB_UW_CHUNK_WORDS,
					 (place.word + place.nr_words - 1) / SB_UW_CHUNK_WORDS);
			model_take(model, owner, place);
		}
	} else {
		err = alloc_table(pool, 1 + (uint32_t)rand() % 40000, &place);
		if (!err)
			model_take(model, owner, place);
	}
	sb_uwpool_stats(pool, &stats);
	assert_int_equal(stats.nr_bytes, model->nr_words * 4);
}

static void test_random(void **state)
{
	struct sb_uwpool *pool = new_pool(NR_PARTS * SB_UWPOOL_PART_BYTES);
	struct model *model = calloc(1, sizeof(*model));
	struct sb_uwpool_place place;
	uint16_t owner;
	int i;

	assert_non_null(model);
	model->owner = calloc((size_t)NR_PARTS * SB_UW_PART_WORDS, sizeof(*model->owner));
	assert_non_null(model->owner);
	srand(1);
	for (i = 0; i < 20000; i++)
		one_step(pool, model);
	assert_int_equal(nr_parts, NR_PARTS);
	/* All that was cut to pieces is whole again. */
	for (owner = 1; owner <= NR_OWNERS; owner++)
		sb_uwpool_release(pool, model->places[owner]);
	clock_ns += SB_UWPOOL_REST_NS;
	assert_int_equal(alloc_table(pool, SB_UW_PART_WORDS * NR_PARTS / 32 * 15, &place), 0);
	assert_int_equal(alloc_table(pool, SB_UW_PART_WORDS * NR_PARTS / 32 * 15, &place), 0);
	assert_int_equal(place.word + place.nr_words, SB_UW_PART_WORDS * NR_PARTS / 16 * 15);
	free(model->owner);
	free(model);
	sb_uwpool_free(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_grows_to_its_bound),
		cmocka_unit_test(test_share_of_lists),
		cmocka_unit_test(test_spans_parts),
		cmocka_unit_test(test_lists_stay_in_a_chunk),
		cmocka_unit_test(test_rest),
		cmocka_unit_test(test_part_fails),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
