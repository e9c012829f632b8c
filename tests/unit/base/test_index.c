// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/index.h"

/* xorshift64*: the same sequence on every machine. */
static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * 0x2545f4914f6cdd1dull;
}

static bool find(const struct sb_index *index, const uint64_t *keys, uint64_t key, uint64_t hash,
		 uint32_t *ret_id)
{
	sb_index_each(it, index, hash) {
		if (keys[it.id] != key)
			continue;
		*ret_id = it.id;
		return true;
	}
	return false;
}

static void test_empty(void **state)
{
	struct sb_index index = {};

	assert_true(sb_index_first(&index, 0).id == SB_INDEX_NONE);
	assert_true(sb_index_first(&index, UINT64_MAX).id == SB_INDEX_NONE);
	sb_index_release(&index);
}

/*
 * Against a plain array as the model: random keys out of a small set, so that old and new ones mix.
 * @hash_mask thins the hashes out until whole runs of keys share one.
 */
static void model(uint64_t hash_mask)
{
	enum { NR_KEYS = 4000, NR_STEPS = 20000 };
	static uint64_t keys[NR_KEYS];
	static uint32_t id_of[NR_KEYS]; /* the model: key -> id + 1 */
	struct sb_index index = {};
	uint64_t seed = 42, key, hash;
	uint32_t nr = 0, id, i;

	memset(id_of, 0, sizeof(id_of));
	for (i = 0; i < NR_STEPS; i++) {
		key = next_random(&seed) % NR_KEYS;
		hash = sb_hash(&key, sizeof(key), 0) & hash_mask;
		if (find(&index, keys, key, hash, &id)) {
			assert_int_equal(id_of[key], id + 1);
			continue;
		}
		assert_int_equal(id_of[key], 0);
		keys[nr] = key;
		assert_int_equal(sb_index_add(&index, hash, nr), 0);
		id_of[key] = ++nr;
	}
	assert_int_equal(index.nr, nr);
	for (key = 0; key < NR_KEYS; key++) {
		hash = sb_hash(&key, sizeof(key), 0) & hash_mask;
		assert_int_equal(find(&index, keys, key, hash, &id), id_of[key] != 0);
	}
	sb_index_release(&index);
	assert_null(index.slots);
}

static void test_model(void **state)
{
	model(UINT64_MAX);
}

static void test_model_collisions(void **state)
{
	model(0xf);	     /* runs of 250 keys each */
	model(0x7ull << 61); /* only the upper half of the hash differs */
	model(0);	     /* all in one run */
}

/* Elements of one hash come one after the other, each once, and no others. */
static void test_same_hash(void **state)
{
	struct sb_index index = {};
	bool seen[100] = {};
	uint32_t i, nr = 0;

	for (i = 0; i < 100; i++)
		assert_int_equal(sb_index_add(&index, i % 2 ? 5 : 6, i), 0);
	sb_index_each(it, &index, 5) {
		assert_true(it.id < 100 && it.id % 2 == 1);
		assert_false(seen[it.id]);
		seen[it.id] = true;
		nr++;
	}
	assert_int_equal(nr, 50);
	sb_index_release(&index);
}

/* Each byte, each length and the seed matter; the bytes behind the end do not. */
static void test_hash(void **state)
{
	unsigned char data[64] = {}, other[64];
	uint64_t hash[65];
	size_t len, i;

	for (len = 0; len <= 64; len++) {
		hash[len] = sb_hash(data, len, 0);
		for (i = 0; i < len; i++)
			assert_true(hash[i] != hash[len]);
		assert_true(sb_hash(data, len, 1) != hash[len]);
		for (i = 0; i < 64; i++) {
			memcpy(other, data, sizeof(other));
			other[i] ^= 0x80;
			assert_int_equal(sb_hash(other, len, 0) != hash[len], i < len);
		}
	}
}

/* Exports name stacks and rows by hashes: the values must not change from version to version. */
static void test_hash_is_stable(void **state)
{
	unsigned char data[64];
	uint64_t hash = 0;
	size_t len;

	for (len = 0; len < sizeof(data); len++)
		data[len] = (unsigned char)(len * 37 + 1);
	for (len = 0; len <= sizeof(data); len++)
		hash = sb_hash(data, len, hash);
	assert_true(hash == 0x1a6c8ba6168959e1);
}

/* Sequential keys, the usual case: their low bits must spread like random ones. */
static void test_hash_spread(void **state)
{
	enum { NR = 1 << 16 };
	static unsigned char load[NR];
	uint32_t i, empty = 0;
	uint64_t key;

	for (i = 0; i < NR; i++) {
		key = 0x400000 + (uint64_t)i * 16;
		load[sb_hash(&key, sizeof(key), 0) % NR]++;
	}
	for (i = 0; i < NR; i++) {
		assert_true(load[i] < 16);
		empty += !load[i];
	}
	/* A random function leaves 1/e of the slots empty: 24,109. */
	assert_in_range(empty, 23000, 25200);
}

static void test_strtab(void **state)
{
	struct sb_strtab tab;
	uint32_t a, b, c;
	size_t len;

	assert_int_equal(sb_strtab_init(&tab), 0);
	assert_int_equal(sb_strtab_add(&tab, "", 0, &a), 0);
	assert_int_equal(a, 0);
	assert_int_equal(sb_strtab_add(&tab, "main", 4, &a), 0);
	assert_int_equal(sb_strtab_add(&tab, "mainly", 4, &b), 0);
	assert_int_equal(a, b);
	assert_int_equal(sb_strtab_add(&tab, "mai\0", 4, &b), 0);
	assert_int_not_equal(a, b);
	assert_int_equal(sb_strtab_add(&tab, "mai", 3, &c), 0);
	assert_int_not_equal(b, c);
	assert_string_equal(sb_strtab_get(&tab, a, &len), "main");
	assert_int_equal(len, 4);
	assert_memory_equal(sb_strtab_get(&tab, b, &len), "mai\0", 5);
	assert_int_equal(len, 4);
	assert_string_equal(sb_strtab_get(&tab, 12345, &len), "");
	assert_int_equal(len, 0);
	a = 99;
	assert_int_equal(sb_strtab_add(&tab, "", INT32_MAX, &a), -E2BIG);
	assert_int_equal(a, 99);
	sb_strtab_release(&tab);
}

static void test_strtab_many(void **state)
{
	struct sb_strtab tab;
	char text[32];
	uint32_t i, id, round;
	int len;

	assert_int_equal(sb_strtab_init(&tab), 0);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 50000; i++) {
			len = snprintf(text, sizeof(text), "function_%u", i);
			assert_int_equal(sb_strtab_add(&tab, text, (size_t)len, &id), 0);
			assert_int_equal(id, i + 1);
		}
	}
	for (i = 0; i < 50000; i++) {
		snprintf(text, sizeof(text), "function_%u", i);
		assert_string_equal(sb_strtab_get(&tab, i + 1, NULL), text);
	}
	sb_strtab_release(&tab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_model_collisions),
		cmocka_unit_test(test_same_hash),
		cmocka_unit_test(test_hash),
		cmocka_unit_test(test_hash_is_stable),
		cmocka_unit_test(test_hash_spread),
		cmocka_unit_test(test_strtab),
		cmocka_unit_test(test_strtab_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
