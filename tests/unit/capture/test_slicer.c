// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Slices of time under loads that are played to them: do they stay below the limit, and is the sum
 * right? */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/time.h"
#include "bpf/abi/sb_abi.h"
#include "capture/slicer.h"

#define ALLOWED	  0.014
#define MS	  SB_NS_PER_MS
#define ATTACH_NS (20 * MS)
#define DETACH_NS (40 * MS)

/* Events of a program. */
struct load {
	double per_second;
	double swing; /* the rate is higher and lower by this part of it, in turns of period_ns */
	uint64_t period_ns;
	double cost_ns;	  /* of an event while it is probed */
	bool is_slowed;	  /* all are of one thread, which makes fewer meanwhile */
	uint64_t rest_ns; /* how long a part of the probes stays after a slice */
};

struct play {
	struct sb_slicer slicer;
	struct sb_slicer_reading now;
	double weight; /* of all samples */
	double cost;
};

/* Return: the events from one time to another. */
static double events(const struct load *load, uint64_t from_ns, uint64_t to_ns)
{
	const double mean = load->per_second * (double)(to_ns - from_ns) / 1e9;
	const double turn = load->period_ns ? 2 * M_PI / (double)load->period_ns : 0;

	if (turn <= 0)
		return mean;
	return mean + load->swing * load->per_second / 1e9 *
			      (cos((double)from_ns * turn) - cos((double)to_ns * turn)) / turn;
}

/* Probes are attached from the present time on for @ns. Return: the events. */
static double probe(struct play *play, const struct load *load, uint64_t ns)
{
	double nr = events(load, play->now.now_ns, play->now.now_ns + ns);

	if (load->is_slowed && ns)
		nr /= 1 + nr * load->cost_ns / (double)ns;
	play->now.now_ns += ns;
	play->now.hits += (uint64_t)nr;
	play->now.cost_ns += (uint64_t)(nr * load->cost_ns);
	return nr;
}

static void slice(struct play *play, const struct load *load)
{
	uint64_t weight, end_ns;

	sb_slicer_prepare(&play->slicer, &play->now);
	play->now.now_ns += ATTACH_NS;
	do {
		end_ns = sb_slicer_begin(&play->slicer, &play->now, &weight);
		play->weight += probe(play, load, end_ns - play->now.now_ns) * (double)weight /
				(1 << SB_SLICE_SHIFT);
	} while (sb_slicer_stays(&play->slicer, &play->now) &&
		 play->now.now_ns < 3600 * SB_NS_PER_SEC);
	probe(play, load, load->rest_ns);
	play->now.now_ns += DETACH_NS;
	play->now.now_ns += sb_slicer_gap(&play->slicer, &play->now);
}

static void run(struct play *play, const struct load *load, uint64_t seed, uint64_t ns)
{
	*play = (struct play){ .now = { .now_ns = 1 } };
	sb_slicer_init(&play->slicer, ALLOWED, seed, &play->now);
	while (play->now.now_ns < ns)
		slice(play, load);
}

static void test_stays_below(void **state)
{
	const struct load loads[] = {
		{ .per_second = 1e6, .cost_ns = 1000 },	 /* a CPU is busy with it */
		{ .per_second = 16e6, .cost_ns = 1000 }, /* 16 are */
		{ .per_second = 1e5, .swing = 1, .period_ns = 700 * MS, .cost_ns = 2000 },
		{ .per_second = 1e4, .cost_ns = 2000 },
	};
	struct sb_slicer_stats stats;
	struct play play;
	size_t i;

	for (i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
		run(&play, &loads[i], i + 1, 600 * SB_NS_PER_SEC);
		sb_slicer_stats(&play.slicer, &stats);
		/* The last gap is not over. */
		assert_true((double)stats.cost_ns < ALLOWED * 1.15 * (double)play.now.now_ns);
		assert_true((double)stats.cost_ns > ALLOWED * 0.7 * (double)play.now.now_ns);
		assert_true(stats.nr > 10);
	}
}

/* What costs little is seen as a whole, once. */
static void test_cheap(void **state)
{
	const struct load load = { .per_second = 1000, .cost_ns = 2000 };
	struct sb_slicer_stats stats;
	struct play play;

	run(&play, &load, 7, 60 * SB_NS_PER_SEC);
	sb_slicer_stats(&play.slicer, &stats);
	assert_true(sb_slicer_attached(&stats, stats.covered_ns) > 0.98);
	/* Of the run, and not of the time up to the last slice. */
	assert_true(sb_slicer_attached(&stats, 4 * stats.covered_ns) < 0.25);
	assert_true(sb_slicer_attached(&stats, 0) <= 1);
	assert_true(fabs(play.weight / (1000.0 * (double)stats.covered_ns / 1e9) - 1) < 0.001);
}

/* Slices stand for all the time, also for events that come in turn with the distance of slices. */
static void test_unbiased(void **state)
{
	const struct load steady = { .per_second = 1e5, .cost_ns = 2000 };
	const struct load with_rest = { .per_second = 1e5, .cost_ns = 2000, .rest_ns = 50 * MS };
	struct load swinging = { .per_second = 1e5, .swing = 1, .cost_ns = 2000 };
	struct sb_slicer_stats stats;
	struct play play;
	double sum = 0, truth = 0, nr_errors = 0;
	int i;

	run(&play, &steady, 3, 60 * SB_NS_PER_SEC);
	sb_slicer_stats(&play.slicer, &stats);
	assert_true(fabs(play.weight / (1e5 * (double)stats.covered_ns / 1e9) - 1) < 0.001);
	assert_true(stats.error < 0.5 && fabs(stats.busy - 0.2) < 0.001);
	run(&play, &with_rest, 3, 60 * SB_NS_PER_SEC);
	sb_slicer_stats(&play.slicer, &stats);
	assert_true(fabs(stats.busy - 0.2) < 0.001);
	for (i = 0; i < 400; i++) {
		swinging.period_ns = (uint64_t)(i % 20 + 1) * 150 * MS;
		run(&play, &swinging, (uint64_t)i * 77 + 5, 60 * SB_NS_PER_SEC);
		sb_slicer_stats(&play.slicer, &stats);
		sum += play.weight;
		truth += events(&swinging, 1, 1 + stats.covered_ns);
		nr_errors += fabs(play.weight / events(&swinging, 1, 1 + stats.covered_ns) - 1) <
			     2 * stats.error;
	}
	assert_true(fabs(sum / truth - 1) < 0.02);
	assert_true(nr_errors > 0.85 * 400);
}

/* A thread that is slowed down: how much is missing is known, if it is busy all the time or in
 * turns. Of threads that take more than one CPU it is not. */
static void test_missing(void **state)
{
	struct load load = { .per_second = 1e5, .is_slowed = true };
	const double costs_ns[] = { 100, 1000, 10000, 100000 };
	struct sb_slicer_stats stats;
	struct play play;
	double truth;
	size_t i;

	for (i = 0; i < 2 * sizeof(costs_ns) / sizeof(costs_ns[0]); i++) {
		load.cost_ns = costs_ns[i / 2];
		load.swing = i % 2 ? 0.8 : 0;
		load.period_ns = i % 2 ? 30 * SB_NS_PER_SEC : 0;
		run(&play, &load, i + 1, 600 * SB_NS_PER_SEC);
		sb_slicer_stats(&play.slicer, &stats);
		truth = events(&load, 1, 1 + stats.covered_ns);
		assert_true(stats.missing > 0 && stats.missing < 1);
		assert_true(fabs(play.weight / (1 - stats.missing) / truth - 1) <
			    0.01 + 4 * stats.error);
	}
	load = (struct load){ .per_second = 1e6, .cost_ns = 2000 };
	run(&play, &load, 1, 60 * SB_NS_PER_SEC);
	sb_slicer_stats(&play.slicer, &stats);
	assert_true(stats.busy > 1.9 && stats.missing <= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stays_below),
		cmocka_unit_test(test_cheap),
		cmocka_unit_test(test_unbiased),
		cmocka_unit_test(test_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
