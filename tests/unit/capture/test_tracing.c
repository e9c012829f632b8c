// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* When tracing of all calls is given up, under loads that are played to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/time.h"
#include "capture/tracing.h"

#define ALLOWED 0.02
#define EACH_NS 2000u

struct play {
	struct sb_tracing tracing;
	struct sb_slicer_reading now;
};

static void begin(struct play *play)
{
	play->now = (struct sb_slicer_reading){ .now_ns = 5 * SB_NS_PER_SEC };
	sb_tracing_init(&play->tracing, ALLOWED, &play->now);
}

/* Return: how long it went on, @ns at most. */
static uint64_t go(struct play *play, uint64_t per_s, uint64_t ns)
{
	uint64_t ran_ns = 0, look_ns, nr;

	while (ran_ns < ns) {
		look_ns = sb_tracing_look_ns(&play->tracing);
		nr = per_s * look_ns / SB_NS_PER_SEC;
		ran_ns += look_ns;
		play->now.now_ns += look_ns;
		play->now.hits += nr;
		play->now.cost_ns += nr * EACH_NS;
		if (!sb_tracing_goes_on(&play->tracing, &play->now))
			return ran_ns;
	}
	return ns;
}

static void test_cheap(void **state)
{
	struct sb_tracing_stats stats;
	struct play play;

	(void)state;
	begin(&play);
	assert_int_equal(go(&play, 9000, 600 * SB_NS_PER_SEC), 600 * SB_NS_PER_SEC);
	sb_tracing_stats(&play.tracing, &stats);
	assert_int_equal(stats.end, SB_TRACING_NOT_ENDED);
	assert_true(stats.hits_per_s > 8990 && stats.hits_per_s < 9010);
	assert_true(stats.each_ns > 1999 && stats.each_ns < 2001);
	assert_true(stats.cost > 0.0179 && stats.cost < 0.0181);
}

/* A program that does nothing but allocate: it is left alone soon. */
static void test_storm(void **state)
{
	struct sb_tracing_stats stats;
	struct play play;

	(void)state;
	begin(&play);
	assert_true(go(&play, 500000, 60 * SB_NS_PER_SEC) <= 120 * SB_NS_PER_MS);
	sb_tracing_stats(&play.tracing, &stats);
	assert_int_equal(stats.end, SB_TRACING_COST);
	assert_true(stats.cost > 0.9);
	/* In slices it goes on, and says what all calls cost. */
	sb_tracing_sample(&play.tracing);
	sb_tracing_stats(&play.tracing, &stats);
	assert_true(stats.is_sampled && stats.cost > 0.9);
	assert_int_equal(stats.end, SB_TRACING_NOT_ENDED);
}

/* Of a rate that rises later, the figures are those of then. */
static void test_rises(void **state)
{
	struct sb_tracing_stats stats;
	struct play play;
	uint64_t ns;

	(void)state;
	begin(&play);
	(void)go(&play, 100, 30 * SB_NS_PER_SEC);
	ns = go(&play, 20000, 60 * SB_NS_PER_SEC);
	assert_true(ns > SB_NS_PER_SEC && ns < 10 * SB_NS_PER_SEC);
	sb_tracing_stats(&play.tracing, &stats);
	assert_true(stats.hits_per_s > 19000 && stats.hits_per_s < 21000);
	assert_true(stats.traced_ns > 30 * SB_NS_PER_SEC);
}

/* Bursts are no reason as long as they are paid for. */
static void test_bursts(void **state)
{
	struct play play;
	int i;

	(void)state;
	begin(&play);
	for (i = 0; i < 100; i++) {
		assert_int_equal(go(&play, 100000, 200 * SB_NS_PER_MS), 200 * SB_NS_PER_MS);
		assert_int_equal(go(&play, 10, 3 * SB_NS_PER_SEC), 3 * SB_NS_PER_SEC);
	}
}

/* What is seen of a run of a minute. */
static void test_saw_enough(void **state)
{
	static const struct {
		uint64_t traced_s;
		struct sb_tracing_seen seen;
		bool is_enough;
	} cases[] = {
		{ 1, { .nr_slices = 4, .nr_pieces = 50, .page_bytes = 1 << 20 }, true },
		{ 1, { .nr_slices = 3, .nr_pieces = 500 }, false },
		{ 1, { .nr_slices = 4, .nr_pieces = 49, .page_bytes = 1 << 20 }, false },
		/* All was given back at once; pages agree, or know of something else. */
		{ 1, { .nr_slices = 9, .nr_at_once = 100 }, true },
		{ 1, { .nr_slices = 9, .nr_at_once = 98 }, false },
		{ 1, { .nr_slices = 9, .nr_at_once = 1000, .page_bytes = 1 << 20 }, false },
		/* Of the first half, nearly each call was traced; of the run. */
		{ 20, { .nr_slices = 9, .page_bytes = 1 << 20 }, false },
		{ 23, { .nr_slices = 9, .page_bytes = 1 << 20 }, true },
		{ 44, { .nr_slices = 3, .page_bytes = 1 << 20 }, false },
		{ 46, { .page_bytes = 1 << 20 }, true },
		/* What was given back when nobody saw it; memory that the heap had before. */
		{ 23, { .nr_slices = 9, .call_bytes = 1 << 20 }, false },
		{ 46, { .call_bytes = 1 << 20 }, false },
		{ 46, { .nr_slices = 9, .call_bytes = 1 << 20 }, false },
		{ 46, { .call_bytes = 2 << 20, .page_bytes = 2 << 20 }, true },
		{ 46, { .call_bytes = 100 << 10 }, true },
	};
	struct sb_tracing_seen seen;
	struct play play;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(&play);
		(void)go(&play, 100, cases[i].traced_s * SB_NS_PER_SEC);
		seen = cases[i].seen;
		seen.run_ns = 60 * SB_NS_PER_SEC;
		assert_int_equal(sb_tracing_saw_enough(&play.tracing, &seen), cases[i].is_enough);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cheap),	   cmocka_unit_test(test_storm),
		cmocka_unit_test(test_rises),	   cmocka_unit_test(test_bursts),
		cmocka_unit_test(test_saw_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
