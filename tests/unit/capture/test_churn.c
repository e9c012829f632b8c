// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How many records of mappings are looked at: a model of time plays processes that map as fast as
 * they can. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/time.h"
#include "capture/churn.h"

#define BEGIN_NS (1000 * SB_NS_PER_SEC)
#define SECONDS	 10u

static struct sb_churn *churn;

static int setup(void **state)
{
	churn = calloc(1, sizeof(*churn));
	return !churn;
}

static int teardown(void **state)
{
	sb_churn_release(churn);
	free(churn);
	return 0;
}

/* One second of @per_sec records of each of @nr processes from @tgid on. Return: how many were
 * taken. */
static uint64_t play(uint64_t begin_ns, uint32_t tgid, uint32_t nr, uint32_t per_sec)
{
	uint64_t nr_taken = 0;
	uint32_t i, k;

	for (i = 0; i < per_sec; i++)
		for (k = 0; k < nr; k++)
			nr_taken += sb_churn_judge(churn, tgid + k,
						   begin_ns + i * SB_NS_PER_SEC / per_sec) ==
				    SB_CHURN_TAKE;
	return nr_taken;
}

static void test_one(void **state)
{
	uint64_t nr = 0, i;

	for (i = 0; i < SECONDS; i++) {
		nr += play(BEGIN_NS + i * SB_NS_PER_SEC, 7, 1, 200000);
		/* Others are not concerned. */
		assert_int_equal(play(BEGIN_NS + i * SB_NS_PER_SEC, 8, 1, SB_CHURN_PER_SEC / 2),
				 SB_CHURN_PER_SEC / 2);
	}
	assert_in_range(nr, SB_CHURN_BURST, SB_CHURN_BURST + SECONDS * SB_CHURN_PER_SEC);
	assert_int_equal(churn->nr_procs, 1);
	assert_int_equal(churn->nr_skipped, SECONDS * 200000 - nr);
	/* It is quiet for a while: then it may begin as another one. */
	i = SECONDS + SB_CHURN_BURST / SB_CHURN_PER_SEC + 1;
	assert_int_equal(play(BEGIN_NS + i * SB_NS_PER_SEC, 7, 1, SB_CHURN_BURST), SB_CHURN_BURST);
}

/* Of hundreds that do so there is a bound, too, and a program that begins meanwhile is seen. */
static void test_all(void **state)
{
	uint64_t nr = 0, i;

	for (i = 0; i < SECONDS; i++) {
		nr += play(BEGIN_NS + i * SB_NS_PER_SEC, 1000, 300, 4000);
		assert_int_equal(play(BEGIN_NS + (i + 1) * SB_NS_PER_SEC - 1, 5000 + (uint32_t)i, 1,
				      SB_CHURN_LITTLE),
				 SB_CHURN_LITTLE);
	}
	assert_in_range(nr, SB_CHURN_ALL_BURST,
			SB_CHURN_ALL_BURST + 2 * SECONDS * SB_CHURN_ALL_PER_SEC);
	assert_int_equal(churn->nr_procs, 300);
}

/* Processes that are new each time, without end. */
static void test_always_new(void **state)
{
	uint64_t nr = 0, i;

	for (i = 0; i < SECONDS; i++)
		nr += play(BEGIN_NS + i * SB_NS_PER_SEC, 1000 + 20000 * (uint32_t)i, 20000,
			   SB_CHURN_LITTLE - 1);
	assert_in_range(nr, 2 * SB_CHURN_ALL_BURST,
			2 * (SB_CHURN_ALL_BURST + SECONDS * SB_CHURN_ALL_PER_SEC));
}

enum { ROOT, ALICE, BOB, NR_USERS, PIDS_OF_USER = 10000 };

static unsigned int nr_asked;

static uint32_t uid_of(uint32_t tgid)
{
	nr_asked++;
	return tgid / PIDS_OF_USER;
}

/* Alice has a hundred processes that map as fast as they can. Those of root and of Bob are seen as
 * ever. */
static void test_users(void **state)
{
	const uint32_t steps = 500;
	uint64_t nr[NR_USERS] = {}, time_ns;
	uint32_t i, k, uid;

	churn->uid_of = uid_of;
	for (i = 0; i < SECONDS * steps; i++) {
		time_ns = BEGIN_NS + i * (SB_NS_PER_SEC / steps);
		for (k = 1; k <= 200; k++)
			sb_churn_judge(churn, ALICE * PIDS_OF_USER + k % 100, time_ns);
		for (uid = 0; uid < NR_USERS; uid++)
			nr[uid] += sb_churn_judge(churn, uid * PIDS_OF_USER + 9999, time_ns) ==
				   SB_CHURN_TAKE;
	}
	assert_int_equal(nr[ROOT], SECONDS * steps);
	assert_int_equal(nr[BOB], SECONDS * steps);
	assert_true(nr[ALICE] < SECONDS * steps);
	/* Once a second for each, and not before it is needed. */
	assert_in_range(nr_asked, 3, 103 * SECONDS);
}

static struct sb_churn_skip taken;
static unsigned int nr_taken;

static int note(void *arg, struct sb_churn_skip *skip)
{
	taken = *skip;
	skip->is_seen = true;
	nr_taken++;
	return 0;
}

static void test_told(void **state)
{
	uint64_t last_ns;

	assert_int_equal(play(BEGIN_NS, 7, 1, SB_CHURN_BURST), SB_CHURN_BURST);
	play(BEGIN_NS + SB_NS_PER_SEC, 7, 1, 2 * SB_CHURN_PER_SEC);
	last_ns = BEGIN_NS + 2 * SB_NS_PER_SEC;
	sb_churn_round(churn);
	while (sb_churn_judge(churn, 7, last_ns) == SB_CHURN_TAKE)
		;
	assert_int_equal(sb_churn_judge(churn, 7, last_ns), SB_CHURN_SKIP);
	sb_churn_round(churn);
	assert_int_equal(sb_churn_judge(churn, 7, last_ns), SB_CHURN_SKIP_FIRST);
	assert_int_equal(sb_churn_take(churn, note, NULL), 0);
	assert_int_equal(nr_taken, 1);
	assert_int_equal(taken.tgid, 7);
	assert_int_equal(taken.nr, churn->nr_skipped);
	assert_false(taken.is_seen);
	assert_in_range(taken.first_ns, BEGIN_NS + SB_NS_PER_SEC, last_ns);
	assert_true(taken.last_ns == last_ns);
	assert_int_equal(sb_churn_take(churn, note, NULL), 0);
	assert_int_equal(nr_taken, 1);
	/* What the caller knows of the process is kept, and not what was taken. */
	assert_int_equal(sb_churn_judge(churn, 7, last_ns), SB_CHURN_SKIP_FIRST);
	assert_int_equal(sb_churn_take(churn, note, NULL), 0);
	assert_true(taken.nr == 1 && taken.is_seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one, setup, teardown),
		cmocka_unit_test_setup_teardown(test_all, setup, teardown),
		cmocka_unit_test_setup_teardown(test_always_new, setup, teardown),
		cmocka_unit_test_setup_teardown(test_users, setup, teardown),
		cmocka_unit_test_setup_teardown(test_told, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
