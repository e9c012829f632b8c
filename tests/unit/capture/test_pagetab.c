// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The table of pages, against an array; and which windows of pages are followed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "bpf/abi/sb_abi_memory.h"
#include "capture/pageset.h"
#include "capture/pagetab.h"

#define NUMBERS 3000u

/* What is to be in the table: of two spaces, 1 + the owner of each page; 0: none. */
struct model {
	uint32_t owner[3][NUMBERS];
	size_t nr, nr_removed;
	struct sb_pagetab *pages;
};

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void check_all(struct model *model)
{
	struct sb_page page;
	uint32_t space, i;

	assert_int_equal(model->pages->nr, model->nr);
	for (space = 1; space < 3; space++)
		for (i = 0; i < NUMBERS; i++) {
			bool is_there = sb_pagetab_find(model->pages, space, i, false, &page);

			assert_int_equal(is_there, model->owner[space][i] != 0);
			if (!is_there)
				continue;
			assert_int_equal(page.owner, model->owner[space][i] - 1);
			assert_int_equal(page.space, space);
			assert_int_equal(page.number, i);
			assert_int_equal(page.time, page.owner % SB_PAGETAB_TIMES);
		}
}

static bool keeps_even(void *arg, struct sb_page *page)
{
	struct model *model = arg;

	assert_int_equal(model->owner[page->space][page->number], page->owner + 1);
	if (page->owner % 2 == 0)
		return true;
	model->owner[page->space][page->number] = 0;
	model->nr--;
	return false;
}

static void on_removed(void *arg, const struct sb_page *page)
{
	struct model *model = arg;

	assert_int_equal(model->owner[page->space][page->number], page->owner + 1);
	model->owner[page->space][page->number] = 0;
	model->nr--;
}

static void put(struct model *model, uint32_t space, uint32_t number, uint32_t owner)
{
	const struct sb_page page = {
		.space = space, .number = number, .owner = owner, .time = owner % SB_PAGETAB_TIMES
	};
	uint32_t *now = &model->owner[space][number];
	struct sb_page old = {};
	int ret = sb_pagetab_put(model->pages, &page, &old);

	assert_int_equal(ret, *now != 0);
	if (ret)
		assert_int_equal(old.owner, *now - 1);
	model->nr += !*now;
	*now = owner + 1;
}

static void test_as_model(void **state)
{
	static struct model model;
	struct sb_pagetab pages = { .nr_max = 2 * NUMBERS, .seed = 0x123456789abcdef0 };
	uint32_t random = 1, round, i;

	(void)state;
	model.pages = &pages;
	for (round = 0; round < 20; round++) {
		for (i = 0; i < NUMBERS; i++)
			put(&model, 1 + next_random(&random) % 2, next_random(&random) % NUMBERS,
			    next_random(&random) % SB_PAGETAB_OWNERS_MAX);
		check_all(&model);
		if (round % 3 == 0)
			sb_pagetab_sweep(&pages, keeps_even, &model);
		else
			sb_pagetab_remove(&pages, 1, round * 100, round % 2 ? 500 : 100000,
					  on_removed, &model);
		check_all(&model);
	}
	sb_pagetab_release(&pages);
}

static void test_full(void **state)
{
	struct sb_pagetab pages = { .nr_max = 100 };
	struct sb_page page = { .space = 1, .owner = 7, .shift = 20 }, old;

	(void)state;
	for (page.number = 0; page.number < 100; page.number++)
		assert_int_equal(sb_pagetab_put(&pages, &page, &old), 0);
	assert_int_equal(sb_pagetab_put(&pages, &page, &old), -ENOSPC);
	page.number = 99;
	assert_int_equal(sb_pagetab_put(&pages, &page, &old), 1);
	assert_int_equal(old.shift, 20);
	sb_pagetab_release(&pages);
}

/* What tables have mapped, in all; they have no other memory. */
static size_t nr_mapped_bytes;

void *__real_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *addr, size_t length);
void *__wrap_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *addr, size_t length, int prot, int flags, int fd, off_t offset);
int __wrap_munmap(void *addr, size_t length);

void *__wrap_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
	void *mem = __real_mmap(addr, length, prot, flags, fd, offset);

	nr_mapped_bytes += mem != MAP_FAILED ? length : 0;
	return mem;
}

/* With -D_FILE_OFFSET_BITS=64 the calls are these. */
void *__wrap_mmap64(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
	return __wrap_mmap(addr, length, prot, flags, fd, offset);
}

int __wrap_munmap(void *addr, size_t length)
{
	nr_mapped_bytes -= length;
	return __real_munmap(addr, length);
}

/* The promise is at most 18 bytes for each page, whenever there are many. */
static void test_bytes(void **state)
{
	struct sb_pagetab pages = { .nr_max = 1u << 20 };
	struct sb_page page = { .space = 1 }, old;

	(void)state;
	for (page.number = 0; page.number < 200000; page.number++) {
		assert_int_equal(sb_pagetab_put(&pages, &page, &old), 0);
		if (page.number > 5000)
			assert_in_range(nr_mapped_bytes, 12 * pages.nr, 18 * pages.nr);
	}
	sb_pagetab_release(&pages);
	assert_int_equal(nr_mapped_bytes, 0);
}

static bool keeps_few(void *arg, struct sb_page *page)
{
	(void)arg;
	return page->number % 1000 == 0;
}

/* A table that was large once is not swept as a large one for ever. */
static void test_shrinks(void **state)
{
	struct sb_pagetab pages = { .nr_max = 1u << 20 };
	struct sb_page page = { .space = 1 }, old;
	size_t bytes;

	(void)state;
	for (page.number = 0; page.number < 200000; page.number++)
		assert_int_equal(sb_pagetab_put(&pages, &page, &old), 0);
	bytes = nr_mapped_bytes;
	sb_pagetab_sweep(&pages, keeps_few, NULL);
	assert_int_equal(pages.nr, 200);
	assert_true(nr_mapped_bytes < bytes / 20);
	for (page.number = 0; page.number < 200000; page.number += 1000)
		assert_true(sb_pagetab_find(&pages, 1, page.number, false, &old));
	for (page.number = 0; page.number < 200000; page.number++)
		assert_int_equal(sb_pagetab_put(&pages, &page, &old), page.number % 1000 == 0);
	assert_int_equal(pages.nr, 200000);
	sb_pagetab_release(&pages);
}

struct order {
	uint64_t numbers[1000];
	size_t nr;
};

static bool note_number(void *arg, struct sb_page *page)
{
	struct order *order = arg;

	order->numbers[order->nr++] = page->number;
	return true;
}

static void order_by_seed(uint64_t seed, struct order *ret_order)
{
	struct sb_pagetab pages = { .nr_max = 1000, .seed = seed };
	struct sb_page page = { .space = 1 }, old;

	for (page.number = 0; page.number < 1000; page.number++)
		assert_int_equal(sb_pagetab_put(&pages, &page, &old), 0);
	ret_order->nr = 0;
	sb_pagetab_sweep(&pages, note_number, ret_order);
	assert_int_equal(ret_order->nr, 1000);
	sb_pagetab_release(&pages);
	assert_int_equal(pages.seed, seed);
}

/* Which pages are neighbours in the table depends on the seed: of two orders at random, one pair of
 * neighbours is in both, on average. */
static void test_seeds(void **state)
{
	struct order first, second;
	uint64_t behind[1000] = {};
	size_t i, nr_same = 0;

	(void)state;
	order_by_seed(1, &first);
	order_by_seed(2ull << 60, &second);
	for (i = 0; i + 1 < 1000; i++)
		behind[first.numbers[i]] = first.numbers[i + 1];
	for (i = 0; i + 1 < 1000; i++)
		nr_same += behind[second.numbers[i]] == second.numbers[i + 1];
	assert_in_range(nr_same, 0, 20);
	order_by_seed(1, &second);
	assert_memory_equal(first.numbers, second.numbers, sizeof(first.numbers));
}

/* Each window has the same chance, whatever its address is like; what is followed at a shift is
 * followed at any lower one. Mean and bound: of a binomial distribution, five standard
 * deviations. */
static void test_unbiased(void **state)
{
	static const uint64_t strides[] = { 1ull << 16, 1ull << 20, 1ull << 21, 1ull << 30,
					    4096 * 17 };
	const uint32_t shift = 4, nr = 64000, mean = nr >> shift;
	uint64_t hash;
	uint32_t i, n, followed;

	(void)state;
	for (i = 0; i < sizeof(strides) / sizeof(strides[0]); i++) {
		followed = 0;
		for (n = 0; n < nr; n++) {
			hash = sb_window_hash(0x1234567, 1000 + n % 3,
					      0x7f0000000000 + n * strides[i]);
			if (!sb_window_is_followed(hash, shift))
				continue;
			followed++;
			assert_true(sb_window_is_followed(hash, shift - 1));
			assert_true(sb_window_is_followed(hash, 0));
		}
		assert_in_range(followed, mean - 5 * 61, mean + 5 * 61);
	}
}

static void test_same_page(void **state)
{
	uint64_t at;

	(void)state;
	for (at = 0; at < 1 << 16; at += 4096)
		assert_int_equal(sb_window_hash(1, 2, 0x550000000000 + at),
				 sb_window_hash(1, 2, 0x550000000000));
	assert_int_not_equal(sb_window_hash(1, 2, 0), sb_window_hash(1, 3, 0));
	assert_int_not_equal(sb_window_hash(1, 2, 0), sb_window_hash(2, 2, 0));
}

static int nr_pages(const struct sb_pageset *set)
{
	int nr = 0;
	size_t i;

	for (i = 0; i < set->blocks.nr; i++)
		nr += __builtin_popcountll(set->blocks.at[i].bits);
	return nr;
}

static void test_set(void **state)
{
	struct sb_pageset set = {};

	(void)state;
	assert_int_equal(sb_pageset_bits(&set, 0), 0);
	assert_int_equal(sb_pageset_append(&set, 3), 0);
	assert_int_equal(sb_pageset_append(&set, 63), 0);
	assert_int_equal(sb_pageset_append(&set, 1ull << 40), 0);
	assert_int_equal(nr_pages(&set), 3);
	assert_int_equal(sb_pageset_bits(&set, 0), 1ull << 3 | 1ull << 63);
	assert_int_equal(sb_pageset_bits(&set, 64), 0);
	assert_int_equal(sb_pageset_bits(&set, 1ull << 40), 1);
	sb_pageset_keep(&set, 0, ~(1ull << 3));
	sb_pageset_keep(&set, 128, 0);
	assert_int_equal(sb_pageset_bits(&set, 0), 1ull << 63);
	assert_int_equal(nr_pages(&set), 2);
	sb_pageset_release(&set);
}

static void move(struct sb_pageset *set, uint64_t from, uint64_t nr, uint64_t to)
{
	const struct sb_pageset_range range = { from, nr, to };

	assert_int_equal(sb_pageset_move(set, &range), 0);
}

/* The set stays right and small, however large the ranges are and however often pages move. */
static void test_set_moves(void **state)
{
	struct sb_pageset set = {};
	uint64_t i;

	(void)state;
	move(&set, 0, 1ull << 51, 64);
	assert_int_equal(set.blocks.nr, 0);
	for (i = 60; i < 70; i++)
		assert_int_equal(sb_pageset_append(&set, i), 0);
	assert_int_equal(sb_pageset_append(&set, 1ull << 40), 0);
	move(&set, 62, 3, 1001); /* 62 to 64 */
	assert_int_equal(nr_pages(&set), 11);
	assert_int_equal(sb_pageset_bits(&set, 0), 3ull << 60);
	assert_int_equal(sb_pageset_bits(&set, 64), 0x3eull);
	assert_int_equal(sb_pageset_bits(&set, 960), 7ull << 41);
	move(&set, 70, 1ull << 45, 2); /* 1001 to 1003, and the last */
	assert_int_equal(sb_pageset_bits(&set, 896), 7ull << 37);
	assert_int_equal(sb_pageset_bits(&set, (1ull << 40) - 128), 1ull << 60);
	assert_int_equal(nr_pages(&set), 11);
	for (i = 0; i < 1000000; i++)
		move(&set, i % 2 ? 1ull << 43 : 0, 1ull << 42, i % 2 ? 0 : 1ull << 43);
	for (i = 0; i < 10000; i++)
		move(&set, 100 * i, 100, 100 * (i + 1));
	assert_int_equal(nr_pages(&set), 11);
	assert_true(set.blocks.nr <= 11);
	sb_pageset_release(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_model), cmocka_unit_test(test_full),
		cmocka_unit_test(test_bytes),	 cmocka_unit_test(test_shrinks),
		cmocka_unit_test(test_unbiased), cmocka_unit_test(test_same_page),
		cmocka_unit_test(test_set),	 cmocka_unit_test(test_set_moves),
		cmocka_unit_test(test_seeds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
