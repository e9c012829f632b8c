// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Work for other people's processes: each is done again as soon as it may be, for a minute. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/ration.h"

enum { NR = 200 };

#define SPAN_NS (60 * SB_NS_PER_SEC)

/* What each costs; how often it was done. */
static uint64_t cost_ns[NR];
static unsigned int nr_done[NR];

/* Return: what all cost together, as a part of the time. */
static double play(struct sb_ration *ration, size_t nr)
{
	uint64_t next_ns[NR] = {}, now_ns = SB_NS_PER_SEC, end_ns = now_ns + SPAN_NS, spent_ns = 0;
	size_t i;

	for (; now_ns < end_ns; now_ns += SB_NS_PER_MS) {
		for (i = 0; i < nr; i++) {
			if (now_ns < next_ns[i])
				continue;
			next_ns[i] = sb_ration_next_ns(ration, now_ns, cost_ns[i]);
			spent_ns += cost_ns[i];
			nr_done[i]++;
		}
	}
	return (double)spent_ns / (double)SPAN_NS;
}

static double play_all_of(size_t nr, uint64_t each_ns, uint32_t thrift)
{
	struct sb_ration ration = {};
	double part;
	size_t i;

	sb_ration_set_thrift(&ration, thrift);
	for (i = 0; i < nr; i++)
		cost_ns[i] = each_ns;
	part = play(&ration, nr);
	assert_int_equal(sb_ration_spent_ns(&ration) != 0, each_ns >= SB_RATION_CHEAP_NS);
	return part;
}

/* One or hundreds, cheap or dear: a part of a CPU. The first round is free. */
static void test_bound(void **state)
{
	const double first = 1.0 / 60;

	assert_true(play_all_of(1, 3 * SB_NS_PER_MS, 0) <= 0.05 + 0.003 * first);
	assert_true(play_all_of(NR, SB_NS_PER_MS, 0) <= 0.05 + NR * 0.001 * first);
	assert_true(play_all_of(NR, 50 * SB_NS_PER_MS, 0) <= 0.05 + NR * 0.05 * first);
	assert_true(play_all_of(NR, SB_NS_PER_MS / 10, 0) <= 0.2 + NR * 0.0001 * first);
	assert_true(play_all_of(NR, SB_NS_PER_MS, 3) <= 0.05 / 8 + NR * 0.001 * first);
}

/* Those that cost most do not keep the others waiting. */
static void test_apart(void **state)
{
	struct sb_ration ration = {};
	size_t i;

	for (i = 0; i < NR; i++) {
		cost_ns[i] = 100 * SB_NS_PER_MS;
		nr_done[i] = 0;
	}
	cost_ns[0] = SB_NS_PER_MS;
	cost_ns[1] = SB_NS_PER_MS / 5;
	play(&ration, NR);
	assert_true(nr_done[0] >= SPAN_NS / (21 * SB_NS_PER_MS));
	assert_true(nr_done[1] >= SPAN_NS / (2 * SB_NS_PER_MS));
	assert_true(nr_done[2] <= 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
