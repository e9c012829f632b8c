// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/time.h"
#include "symbolizer/elf/budget.h"
#include "symbolizer/symbols/perfmap.h"

#define POOL_BYTES 1000
#define ALICE	   1000
#define BOB	   1001

static struct sb_budget_pool pool;

static int setup(void **state)
{
	sb_budget_pool_init(&pool, POOL_BYTES);
	return 0;
}

static int teardown(void **state)
{
	sb_budget_pool_release(&pool);
	return 0;
}

static struct sb_budget open_for(uint32_t uid)
{
	struct sb_budget budget;

	sb_budget_init(&budget, &pool, uid, "test");
	return budget;
}

/* A file has half of the pool, and what it gives back others can have. */
static void test_file(void **state)
{
	struct sb_budget a = open_for(0), b = open_for(0), c = open_for(0);

	assert_int_equal(sb_budget_charge(&a, 501), -EFBIG);
	assert_true(a.is_refused && pool.nr_refused_files == 1 && !pool.bytes);
	assert_int_equal(sb_budget_charge(&a, 400), 0);
	assert_int_equal(sb_budget_charge(&a, 101), -EFBIG);
	assert_int_equal(sb_budget_charge(&a, 100), 0);
	assert_true(pool.nr_refused_files == 1); /* each file counts once */
	assert_int_equal(sb_budget_charge(&b, 500), 0);
	assert_int_equal(sb_budget_charge(&c, 1), -EFBIG);
	sb_budget_settle(&a, 100);
	assert_true(pool.bytes == 600 && pool.bytes_peak == 1000);
	assert_int_equal(sb_budget_charge(&c, 400), 0);
	sb_budget_settle(&a, 200); /* not more than is charged */
	assert_true(a.bytes == 100 && pool.bytes == 1000);
	assert_int_equal(sb_budget_charge(NULL, SIZE_MAX), 0);
	assert_int_equal(sb_budget_charge(&c, SIZE_MAX), -EFBIG);
}

/* A quarter of the pool is left to others, whatever one user brings along. */
static void test_user(void **state)
{
	struct sb_budget alice[2] = { open_for(ALICE), open_for(ALICE) }, bob = open_for(BOB);

	assert_int_equal(sb_budget_charge(&alice[0], 500), 0);
	assert_int_equal(sb_budget_charge(&alice[1], 251), -EFBIG);
	assert_int_equal(sb_budget_charge(&alice[1], 250), 0);
	assert_int_equal(sb_budget_charge(&bob, 250), 0);
}

struct held {
	struct sb_budget budget;
	int nr_calls;
};

static void give_up(void *arg, const struct sb_budget *keep, size_t bytes)
{
	struct held *held = arg;

	held->nr_calls++;
	assert_true(keep != &held->budget && bytes == 300);
	sb_budget_settle(&held->budget, 0);
}

/* What is kept for later makes room. */
static void test_reclaim(void **state)
{
	struct held held = { open_for(0), 0 };
	struct sb_budget a = open_for(0), b = open_for(0);

	pool.reclaim = give_up;
	pool.reclaim_arg = &held;
	assert_int_equal(sb_budget_charge(&held.budget, 400), 0);
	assert_int_equal(sb_budget_charge(&a, 500), 0);
	assert_int_equal(sb_budget_charge(&b, 300), 0);
	assert_true(held.nr_calls == 1 && pool.bytes == 800);
}

/* Work runs out for the file, then for its owner, and others go on. */
static void test_work(void **state)
{
	const uint64_t piece = pool.work_max / 1000;
	struct sb_budget alice = open_for(ALICE), bob = open_for(BOB);
	int nr_files, nr = 0;

	while (!sb_budget_work(&alice, piece))
		nr++;
	assert_in_range(nr, 100, 499);
	assert_false(sb_budget_may_retry(&alice));
	assert_true(sb_budget_may_retry(&bob));
	for (nr_files = 1; nr < 600 && nr_files < 100; nr_files++)
		for (alice = open_for(ALICE); !sb_budget_work(&alice, piece);)
			nr++;
	assert_true(nr >= 490 && nr < 600);
	assert_int_equal(sb_budget_work(&bob, piece), 0);
	assert_int_equal(sb_budget_work(NULL, UINT64_MAX), 0);
	/* Time fills it again: as if a minute had passed. */
	alice.work_ns -= 60000000000ull;
	pool.work_ns -= 60000000000ull;
	assert_int_equal(sb_budget_work(&alice, piece), 0);
}

static FILE *open_map(void)
{
	int fd = memfd_create("map", MFD_CLOEXEC);
	FILE *file = fd >= 0 ? fdopen(fd, "w+") : NULL;

	assert_non_null(file);
	return file;
}

static int write_map(FILE *file, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		fprintf(file, "%x 10 function_%d\n", 0x1000 + i * 16, i);
	return fflush(file);
}

/* Processes that link to one file share its map; one that is too large is cut, and says so. */
static void test_perfmaps(void **state)
{
	struct sb_perfmaps maps = { .pool = &pool };
	struct sb_perfmap *first = NULL, *second = NULL, *other = NULL;
	FILE *file = open_map(), *large = open_map();
	uint64_t start;
	size_t bytes;

	pool.bytes_max = 8 * POOL_BYTES;
	assert_int_equal(write_map(file, 4), 0);
	assert_int_equal(sb_perfmaps_read(&maps, fileno(file), &first), 0);
	bytes = pool.bytes;
	assert_int_equal(sb_perfmaps_read(&maps, fileno(file), &second), 0);
	assert_true(first == second && maps.at.nr == 1 && bytes && pool.bytes == bytes);
	assert_string_equal(sb_perfmap_lookup(second, 0x1010, &start), "function_1");
	assert_int_equal(write_map(large, 1000), 0);
	assert_int_equal(sb_perfmaps_read(&maps, fileno(large), &other), 0);
	assert_true(other != first && other->is_cut && pool.bytes <= pool.bytes_max);
	sb_perfmaps_put(&maps, first);
	assert_string_equal(sb_perfmap_lookup(second, 0x1010, &start), "function_1");
	sb_perfmaps_put(&maps, second);
	sb_perfmaps_put(&maps, other);
	sb_perfmaps_put(&maps, NULL);
	assert_true(!maps.at.nr && !pool.bytes);
	sb_perfmaps_release(&maps);
	fclose(file);
	fclose(large);
}

/* The last one: it is so for the rest of the process. */
static void test_hurry(void **state)
{
	struct sb_budget budget = open_for(ALICE);
	uint64_t begin_ns = sb_now_ns(), passed_ns;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	assert_int_equal(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	assert_int_equal(sb_budget_work(&budget, SB_NS_PER_SEC), 0);
	/* It waits, as while the thread that would take it is busy. */
	assert_int_equal(raise(SIGINT), 0);
	do {
		passed_ns = sb_now_ns() - begin_ns;
		assert_true(passed_ns < 60 * SB_NS_PER_SEC);
		sb_budget_init(&budget, &pool, BOB, "test");
		pool.work = 0;
		pool.users.nr = 0;
	} while (!sb_budget_work(&budget, 20 * SB_NS_PER_MS));
	assert_int_equal(sb_budget_work(&budget, 1), -EFBIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_user, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reclaim, setup, teardown),
		cmocka_unit_test_setup_teardown(test_work, setup, teardown),
		cmocka_unit_test_setup_teardown(test_perfmaps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hurry, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
