// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "symbolizer/symbols/addrs.h"

#define NR_MAX 600

/* The last of @list that is <= @addr, one after the other. */
static size_t find_slowly(const uint64_t *list, size_t nr, uint64_t addr)
{
	size_t i, found = SIZE_MAX;

	for (i = 0; i < nr && list[i] <= addr; i++)
		found = i;
	return found;
}

/* Compare around each address, and far from all. */
static void check(const uint64_t *list, size_t nr)
{
	struct sb_addrs addrs;
	size_t i;
	int near;

	assert_int_equal(sb_addrs_init(&addrs, list[0], list[nr - 1], nr), 0);
	for (i = 0; i < nr; i++)
		sb_addrs_set(&addrs, i, list[i]);
	assert_int_equal(sb_addrs_find(&addrs, list[0]), SIZE_MAX);
	assert_int_equal(sb_addrs_index(&addrs), 0);
	for (i = 0; i < nr; i++) {
		assert_int_equal(sb_addrs_get(&addrs, i), list[i]);
		for (near = -2; near <= 2; near++)
			assert_int_equal(sb_addrs_find(&addrs, list[i] + (uint64_t)near),
					 find_slowly(list, nr, list[i] + (uint64_t)near));
	}
	assert_int_equal(sb_addrs_find(&addrs, UINT64_MAX), nr - 1);
	assert_int_equal(sb_addrs_find(&addrs, 0), find_slowly(list, nr, 0));
	assert_true(sb_addrs_bytes(&addrs) <= nr * 12 + 16);
	sb_addrs_release(&addrs);
}

/* Steps of one size, of very different sizes, and over more than 4 GiB. */
static void test_find(void **state)
{
	static const uint64_t bases[] = { 0, 0x1000, 0xffff888000000000ull };
	uint64_t list[NR_MAX], step_max;
	size_t nr, base, i;

	srand(7);
	for (base = 0; base < SB_ARRAY_SIZE(bases); base++) {
		for (step_max = 1; step_max <= 1ull << 20; step_max *= 4) {
			for (nr = 1; nr <= NR_MAX; nr = nr * 2 + 1) {
				list[0] = bases[base];
				for (i = 1; i < nr; i++)
					list[i] = list[i - 1] + 1 + (uint64_t)rand() % step_max;
				check(list, nr);
				for (i = nr / 2; i < nr && nr > 1; i++)
					list[i] += 5ull << 30;
				check(list, nr);
			}
		}
	}
}

/* A hostile file can have both the first address and the last. */
static void test_ends(void **state)
{
	static const uint64_t all[] = { 0, UINT64_MAX - 2 }, four_gib[] = { 1, 1ull << 32 };
	struct sb_addrs none;

	check(all, SB_ARRAY_SIZE(all));
	check(four_gib, SB_ARRAY_SIZE(four_gib));
	assert_int_equal(sb_addrs_init(&none, 0, 0, 0), 0);
	assert_int_equal(sb_addrs_index(&none), 0);
	assert_int_equal(sb_addrs_find(&none, 0), SIZE_MAX);
	sb_addrs_release(&none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
