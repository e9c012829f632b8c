// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Go's heap profile in memory of the test's own: as Go writes it, and broken in each way that is
 * refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "interp/core/go_heap.h"

/* Words of memory from this address on. */
#define BASE	   0x10000u
#define NR_WORDS   4096u
/* Three variables, then buckets of this many words. */
#define FIRST	   8u
#define NR_FRAMES  3u
#define NR_BUCKET  (6u + NR_FRAMES + 16u)
#define NR_BUCKETS 20u
/* Words of a bucket. */
enum {
	ALLNEXT = 1,
	TYPE,
	HASH,
	SIZE,
	NR_STACK,
	STACK,
	ALLOCS = STACK + NR_FRAMES,
	FREES,
	BYTES,
	BYTES_FREED
};

static uint64_t words[NR_WORDS];
static size_t words_bytes; /* those that can be read */
static unsigned int nr_reads;
static struct sb_go_heap heap;
static struct sb_go_look look;

static uint64_t address_of(size_t word)
{
	return BASE + 8 * word;
}

static int read_words(void *arg, void *dst, size_t len, uint64_t addr)
{
	nr_reads++;
	if (addr < BASE || addr - BASE > words_bytes || len > words_bytes - (addr - BASE))
		return -EFAULT;
	memcpy(dst, (uint8_t *)words + (addr - BASE), len);
	return 0;
}

static const struct sb_memory memory = { .read = read_words };

static uint64_t *bucket(size_t i)
{
	return words + FIRST + i * NR_BUCKET;
}

/* As stkbucket() of Go's runtime. */
static void hash_bucket(uint64_t *at)
{
	uint64_t hash = 0;
	size_t i;

	for (i = 0; i < at[NR_STACK]; i++) {
		hash += at[STACK + i];
		hash += hash << 10;
		hash ^= hash >> 6;
	}
	hash += at[SIZE];
	hash += hash << 10;
	hash ^= hash >> 6;
	hash += hash << 3;
	at[HASH] = hash ^ hash >> 11;
}

/* Write the sets of bucket @i: i + 5 objects were allocated and i freed, and 7 more were allocated
 * since the collection. @set_words: of a set, 4 or 2. */
static void set_sums(size_t i, size_t set_words)
{
	const uint64_t sets[4][2] = { { i + 5, i }, { 3, 0 }, { 0, 0 }, { 4, 0 } };
	uint64_t *at = bucket(i);
	size_t k;

	memset(at + ALLOCS, 0, 8 * (NR_BUCKET - ALLOCS));
	for (k = 0; k < 4; k++) {
		uint64_t *set = at + ALLOCS + k * set_words;

		memcpy(set, sets[k], sizeof(sets[k]));
		if (set_words == 4) {
			set[2] = set[0] * at[SIZE];
			set[3] = set[1] * at[SIZE];
		}
	}
}

/* Bucket i has objects of 100 * (i + 1) bytes. */
static int setup(void **state)
{
	size_t i, k;

	memset(words, 0, sizeof(words));
	words[0] = address_of(FIRST + (NR_BUCKETS - 1) * NR_BUCKET);
	words[1] = 512;
	words[2] = 42 << 1 | 1;
	for (i = 0; i < NR_BUCKETS; i++) {
		uint64_t *at = bucket(i);

		at[ALLNEXT] = i ? address_of(FIRST + (i - 1) * NR_BUCKET) : 0;
		at[TYPE] = 1;
		at[SIZE] = 100 * (i + 1);
		at[NR_STACK] = NR_FRAMES;
		for (k = 0; k < NR_FRAMES; k++)
			at[STACK + k] = 0x400000 + 16 * i + k;
		hash_bucket(at);
		set_sums(i, 4);
	}
	heap = (struct sb_go_heap){
		.places = { .buckets = address_of(0),
			    .rate = address_of(1),
			    .cycle = address_of(2),
			    .is_flagged = true },
	};
	nr_reads = 0;
	words_bytes = sizeof(words);
	return 0;
}

static int teardown(void **state)
{
	sb_go_heap_release(&heap);
	sb_vec_release(&look.use);
	return 0;
}

static int look_now(void)
{
	return sb_go_heap_look(&heap, &memory, &look);
}

static void check_all(void)
{
	size_t i;

	assert_int_equal(look_now(), 0);
	assert_int_equal(look.rate, 512);
	assert_int_equal(look.cycle, 42);
	assert_int_equal(look.use.nr, NR_BUCKETS);
	for (i = 0; i < NR_BUCKETS; i++) {
		/* The newest comes first. */
		const struct sb_go_bucket *at = &heap.buckets.at[NR_BUCKETS - 1 - i];
		const struct sb_go_use *use = &look.use.at[NR_BUCKETS - 1 - i];

		assert_int_equal(at->size, 100 * (i + 1));
		assert_int_equal(at->nr, NR_FRAMES);
		assert_memory_equal(heap.frames.at + at->first, bucket(i) + STACK, 8 * NR_FRAMES);
		assert_int_equal(use->objects, 5);
		assert_int_equal(use->freed, i);
		assert_int_equal(use->allocated, i + 12);
	}
}

static void test_good(void **state)
{
	check_all();
	assert_false(heap.is_without_bytes);
}

/* As of Go 1.27. There may be no memory behind the last bucket, the first of the list. */
static void test_without_bytes(void **state)
{
	const size_t nr_bytes = 8 * (FIRST + NR_BUCKETS * NR_BUCKET - 8);
	size_t i;

	for (i = 0; i < NR_BUCKETS; i++)
		set_sums(i, 2);
	/* Objects of one byte are the same in each layout. */
	bucket(3)[SIZE] = 1;
	hash_bucket(bucket(3));
	assert_int_equal(look_now(), 0);
	assert_true(heap.is_without_bytes);
	bucket(3)[SIZE] = 400;
	hash_bucket(bucket(3));
	teardown(NULL);
	heap.is_without_bytes = false;
	words_bytes = nr_bytes;
	check_all();
	assert_true(heap.is_without_bytes);
	/* Few buckets, and nothing yet in the first set, as at the beginning of a program. */
	words[0] = address_of(FIRST + NR_BUCKET);
	memset(bucket(0) + ALLOCS, 0, 16);
	memset(bucket(1) + ALLOCS, 0, 16);
	heap.is_without_bytes = false;
	assert_int_equal(look_now(), 0);
	assert_true(heap.is_without_bytes);
	assert_int_equal(look.use.at[NR_BUCKETS - 1].objects, 0);
	assert_int_equal(look.use.at[NR_BUCKETS - 1].allocated, 7);
}

/* Buckets keep their numbers, and new ones come behind. */
static void test_again(void **state)
{
	uint64_t *at = bucket(NR_BUCKETS);

	assert_int_equal(look_now(), 0);
	memcpy(at, bucket(0), 8 * NR_BUCKET);
	at[ALLNEXT] = words[0];
	at[STACK] = 0x500000;
	hash_bucket(at);
	words[0] = address_of(FIRST + NR_BUCKETS * NR_BUCKET);
	bucket(0)[FREES] = 2;
	bucket(0)[BYTES_FREED] = 2 * bucket(0)[SIZE];
	assert_int_equal(look_now(), 0);
	assert_int_equal(look.use.nr, NR_BUCKETS + 1);
	assert_int_equal(heap.buckets.at[NR_BUCKETS].addr, words[0]);
	assert_int_equal(look.use.at[NR_BUCKETS - 1].objects, 3);
	assert_int_equal(heap.frames.nr, (NR_BUCKETS + 1) * NR_FRAMES);
	words[0] = 0;
	assert_int_equal(look_now(), 0);
	assert_int_equal(look.use.at[0].objects, 0);
}

static void test_broken(void **state)
{
	static const struct {
		size_t word; /* of bucket 3 */
		uint64_t value;
		int err;
	} cases[] = {
		{ ALLNEXT, BASE + 8 * (FIRST + 9 * NR_BUCKET), -ELOOP },
		{ ALLNEXT, BASE + 8 * (FIRST + 3 * NR_BUCKET), -ELOOP },
		{ ALLNEXT, 12, -EBADMSG },
		{ ALLNEXT, 8, -EFAULT },
		{ ALLNEXT, UINT64_MAX - 7, -EFAULT },
		{ TYPE, 2, -EBADMSG },
		{ HASH, 1, -EBADMSG },
		{ SIZE, 1, -EBADMSG },
		{ STACK + 1, 1, -EBADMSG },
		{ NR_STACK, 2, -EBADMSG },
		{ NR_STACK, SB_GO_HEAP_DEPTH_MAX + 1, -EBADMSG },
		{ NR_STACK, UINT64_MAX, -EBADMSG },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setup(state);
		bucket(3)[cases[i].word] = cases[i].value;
		assert_int_equal(look_now(), cases[i].err);
		teardown(state);
	}
	/* What was met before must not become another one. */
	setup(state);
	assert_int_equal(look_now(), 0);
	bucket(3)[NR_STACK] = 2;
	hash_bucket(bucket(3));
	assert_int_equal(look_now(), -EBADMSG);
}

/* One bucket may be changing while it is read; in another layout, many are wrong. */
static void test_sums(void **state)
{
	size_t i;

	bucket(3)[BYTES] += 100;
	bucket(4)[FREES] = 1000;
	assert_int_equal(look_now(), 0);
	assert_int_equal(look.use.at[NR_BUCKETS - 1 - 4].objects, 0);
	for (i = 5; i < 10; i++)
		bucket(i)[BYTES] += 100;
	assert_int_equal(look_now(), -EBADMSG);
}

/* Each page is a bucket without a stack, whose successor is the next page; a variable points to the
 * first one. */
static int read_endless(void *arg, void *dst, size_t len, uint64_t addr)
{
	uint64_t at[NR_BUCKET] = { [ALLNEXT] = addr + 4096, [TYPE] = 1 };
	const uint64_t first = 1 << 20;

	nr_reads++;
	hash_bucket(at);
	memset(dst, 0, len);
	if (len <= sizeof(first))
		memcpy(dst, &first, len);
	else
		memcpy(dst, at, sizeof(at));
	return 0;
}

static void test_endless(void **state)
{
	const struct sb_memory endless = { .read = read_endless };

	assert_int_equal(sb_go_heap_look(&heap, &endless, &look), -E2BIG);
	assert_in_range(heap.buckets.nr, 1000, SB_GO_HEAP_BUCKETS_MAX);
	assert_true(nr_reads <= 33000);
}

/* Whatever the memory has, reading ends, within bounds. */
static void test_random(void **state)
{
	unsigned int round, i;

	srand(1);
	for (round = 0; round < 20000; round++) {
		if (round % 100 == 0) {
			teardown(state);
			setup(state);
		}
		nr_reads = 0;
		for (i = 0; i < 3; i++)
			words[rand() % (FIRST + NR_BUCKETS * NR_BUCKET)] =
				rand() % 2 ? address_of((size_t)rand() % NR_WORDS)
					   : (uint64_t)rand() % 64;
		words[0] = address_of(FIRST + (size_t)(rand() % NR_BUCKETS) * NR_BUCKET);
		(void)look_now();
		assert_true(nr_reads <= 3 * NR_WORDS);
		assert_true(heap.buckets.nr <= NR_WORDS && look.use.nr <= heap.buckets.nr);
	}
}

/* As scaleHeapSample() of runtime/pprof. */
static void test_bytes(void **state)
{
	assert_int_equal(sb_go_heap_bytes(10, 100, 1), 1000);
	assert_int_equal(sb_go_heap_bytes(10, 0, 512), 0);
	assert_int_equal(sb_go_heap_bytes(0, 100, 512), 0);
	assert_int_equal(sb_go_heap_bytes(0, 8, INT64_MAX), 0);
	/* 1000 / (1 - exp(-100 / 512)) = 5636.3 */
	assert_int_equal(sb_go_heap_bytes(10, 100, 512), 5636);
	/* Nearly all of those that are much larger than the rate are sampled. */
	assert_int_equal(sb_go_heap_bytes(1, 1 << 20, 512), 1 << 20);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_good), TEST(test_without_bytes), TEST(test_again),  TEST(test_broken),
		TEST(test_sums), TEST(test_endless),	   TEST(test_random), TEST(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
