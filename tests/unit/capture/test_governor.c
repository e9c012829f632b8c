// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The law, under loads that are played to it: cost in, steps out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/time.h"
#include "capture/governor.h"

#define NR_CPUS 4
#define LIMIT	0.01

/* A machine: what a second costs, as a part of all CPUs, at a step. */
struct load {
	double sampled; /* in BPF, at step 0; each step halves it */
	double looked;	/* in BPF, at each event, whether it is a sample or not */
	double own;	/* of our own */
	double taking;	/* the same, for each sample; each step halves it */
	double reread;	/* the same, for processes whose mappings change: each thrift halves it */
	double first;	/* more than all the waits at step 0 cost: what the first step saves */
};

struct play {
	struct sb_governor governor;
	struct sb_governor_reading now;
	uint32_t step;
	uint32_t nr_seconds, nr_over; /* seconds over the limit */
};

static void begin(struct play *play, uint32_t step_max, uint32_t jump_max)
{
	const struct sb_governor_opts opts = {
		.limit = LIMIT,
		.step_max = step_max,
		.jump_max = jump_max,
		.own_step_max = step_max,
	};

	*play = (struct play){ .now = { .now_ns = 5 * SB_NS_PER_SEC, .nr_cpus = NR_CPUS } };
	sb_governor_init(&play->governor, &opts, &play->now);
}

static void second(struct play *play, const struct load *load)
{
	double bpf = load->looked + load->sampled / (1u << play->step);
	double reread = load->reread / (1u << play->governor.thrift);
	double own = load->own + reread + load->taking / (1u << play->step);

	if (!play->step)
		bpf += load->first;
	play->now.now_ns += SB_NS_PER_SEC;
	play->now.bpf_ns += (uint64_t)(bpf * NR_CPUS * 1e9);
	play->now.own_ns += (uint64_t)(own * NR_CPUS * 1e9);
	play->now.reread_ns += (uint64_t)(reread * NR_CPUS * 1e9);
	play->nr_seconds++;
	play->nr_over += bpf + own > LIMIT;
	play->step = sb_governor_step(&play->governor, &play->now);
}

static void seconds(struct play *play, uint32_t nr, const struct load *load)
{
	while (nr--)
		second(play, load);
}

/* Below the limit nothing changes, however long. */
static void test_leaves_alone(void **state)
{
	const struct load load = { .sampled = 0.006, .own = 0.0035 };
	struct play play;

	begin(&play, 6, 3);
	seconds(&play, 1000, &load);
	assert_int_equal(play.step, 0);
	assert_int_equal(play.governor.stats.nr_changes, 0);
	assert_int_equal(play.governor.stats.lowered_ns, 0);
}

/* One second of building tables is no reason; two are. */
static void test_begin_of_a_run(void **state)
{
	const struct load begins = { .sampled = 0.004, .own = 0.09 };
	const struct load goes_on = { .sampled = 0.004, .own = 0.001 };
	struct play play;

	begin(&play, 6, 3);
	second(&play, &begins);
	seconds(&play, 20, &goes_on);
	assert_int_equal(play.governor.stats.nr_changes, 0);
	second(&play, &begins); /* and later: a process starts */
	seconds(&play, 20, &goes_on);
	assert_int_equal(play.governor.stats.nr_changes, 0);
}

/* The first seconds of a run on a slow machine, as they were seen: tables and names, and little in
 * BPF. */
static void test_startup(void **state)
{
	static const double own[] = { 0.48, 0.31, 0.12, 0.05, 0.02, 0.003, 0.002, 0.002 };
	struct play play;
	size_t i;

	begin(&play, 6, 3);
	for (i = 0; i < sizeof(own) / sizeof(*own); i++)
		second(&play, &(struct load){ .sampled = 0.004, .own = own[i] });
	assert_int_equal(play.governor.stats.nr_changes, 0);
	assert_int_equal(play.governor.stats.helpless_ns, 0);
	/* What samples cost is judged from the first second on. */
	begin(&play, 6, 3);
	for (i = 0; i < sizeof(own) / sizeof(*own); i++)
		second(&play, &(struct load){ .sampled = 0.028, .own = own[i] });
	assert_int_equal(play.step, 2);
	/* It is over once it was calm: what comes later counts. */
	begin(&play, 6, 3);
	second(&play, &(struct load){ .sampled = 0.008, .own = 0.001 });
	seconds(&play, 5, &(struct load){ .sampled = 0.008, .own = 0.05 });
	assert_int_equal(play.step, 2);
}

/* A rate that was asked for gives way to what its samples cost, and to nothing else. */
static void test_asked(void **state)
{
	struct play play;

	begin(&play, 6, 3);
	play.governor.opts.own_step_max = 0;
	seconds(&play, 100, &(struct load){ .sampled = 0.008, .own = 0.05 });
	assert_int_equal(play.governor.stats.nr_changes, 0);
	assert_true(play.governor.stats.helpless_ns > 80 * SB_NS_PER_SEC); /* which is said */
	assert_true(play.governor.stats.is_own_time);
	seconds(&play, 20, &(struct load){ .sampled = 0.03, .own = 0.05 });
	assert_int_equal(play.step, 2);
	seconds(&play, 200, &(struct load){ .sampled = 0.004, .own = 0.05 });
	assert_int_equal(play.step, 0);
	/* Of views that run at once, those of events make room. */
	begin(&play, 10, 1);
	play.governor.opts.own_step_max = 4;
	seconds(&play, 100, &(struct load){ .sampled = 0.1, .looked = 0.004, .own = 0.05 });
	assert_int_equal(play.step, 5);
}

/* Whatever the load is, two seconds at most are over the limit, and it comes to rest. */
static void test_converges(void **state)
{
	double times;

	for (times = 1.05; times < 100; times *= 1.3) {
		const struct load load = { .sampled = LIMIT * times, .own = 0.001 };
		struct play play;

		begin(&play, 12, 3);
		seconds(&play, 10, &load);
		assert_true(play.nr_over <= 2 * 3);
		assert_true(play.step > 0);
		/* No lower than needed: a step less would be over. */
		assert_true(load.sampled / (1u << (play.step - 1)) + load.own > LIMIT);
		play.governor.stats.nr_changes = play.nr_over = 0;
		seconds(&play, 500, &load);
		assert_int_equal(play.governor.stats.nr_changes, 0);
		assert_int_equal(play.nr_over, 0);
		assert_int_equal(play.governor.stats.helpless_ns, 0);
	}
}

/* The load goes: so does the governor, in the jumps that it came by. */
static void test_recovers(void **state)
{
	const struct load storm = { .sampled = 0.05, .own = 0.001 }, calm = { .sampled = 0.002 };
	struct play play;

	begin(&play, 6, 2);
	seconds(&play, 20, &storm);
	assert_int_equal(play.step, 3);
	seconds(&play, 40, &calm);
	assert_int_equal(play.step, 0);
	assert_true(play.governor.stats.lowered_ns < 40 * SB_NS_PER_SEC);
	assert_int_equal(play.governor.stats.step_worst, 3);
}

/* A load that comes and goes about as fast as the governor moves does not make it swing for
 * ever. */
static void test_does_not_swing(void **state)
{
	const struct load storm = { .sampled = 0.03 }, calm = { .sampled = 0.001 };
	uint32_t nr_on, nr_off, i;

	for (nr_on = 1; nr_on < 12; nr_on++) {
		for (nr_off = 1; nr_off < 12; nr_off++) {
			struct play play;

			begin(&play, 6, 3);
			for (i = 0; i < 100; i++) {
				seconds(&play, nr_on, &storm);
				seconds(&play, nr_off, &calm);
			}
			/* A change in five seconds is what a storm each ten of them asks for. */
			assert_true(play.governor.stats.nr_changes < 20 + play.nr_seconds / 5);
		}
	}
}

/* Our own time may press BPF to a quarter of the limit, and no further: it would not help. */
static void test_own_time(void **state)
{
	const struct load load = { .sampled = 0.02, .own = 0.03 };
	struct play play;

	begin(&play, 10, 3);
	seconds(&play, 100, &load);
	assert_int_equal(play.step, 3);
	assert_true(play.governor.stats.helpless_ns > 80 * SB_NS_PER_SEC);
	assert_true(play.governor.stats.is_own_time);
}

/* Processes whose mappings change are read more seldom while that costs too much, and again as
 * often when it does not. */
static void test_thrift(void **state)
{
	const struct load change = { .sampled = 0.001, .own = 0.002, .reread = 0.03 };
	const struct load names = { .sampled = 0.001, .own = 0.03, .reread = 0.001 };
	const struct load calm = { .sampled = 0.001, .own = 0.002 };
	struct play play;

	begin(&play, 10, 3);
	seconds(&play, 40, &change);
	assert_int_equal(play.governor.thrift, 2);
	assert_int_equal(play.governor.stats.thrift_worst, 2);
	assert_in_range(play.governor.stats.thrift_ns, 25 * SB_NS_PER_SEC, 40 * SB_NS_PER_SEC);
	assert_int_equal(play.step, 0);
	seconds(&play, 40, &calm);
	assert_int_equal(play.governor.thrift, 0);
	/* What is for something else does not get less by it. */
	begin(&play, 10, 3);
	seconds(&play, 40, &names);
	assert_int_equal(play.governor.thrift, 0);
}

/* What a look at each event costs does not get less: no precision is given away for nothing. */
static void test_futile(void **state)
{
	const struct load load = { .looked = 0.05, .sampled = 0.002, .first = 0.3 };
	struct play play;
	uint32_t i, nr_above = 0;

	begin(&play, 10, 1);
	for (i = 0; i < 400; i++) {
		second(&play, &load);
		nr_above += play.step > 1;
	}
	assert_int_equal(play.step, 1);
	assert_true(nr_above <= 10);
	assert_true(play.governor.stats.helpless_ns > 0);
	assert_false(play.governor.stats.is_own_time);
}

/* The first step has saved far more than half; going back is tried, ever more rarely. */
static void test_costly_way_back(void **state)
{
	const struct load load = { .looked = 0.001, .first = 0.05 };
	struct play play;

	begin(&play, 10, 1);
	seconds(&play, 3000, &load);
	assert_true(play.nr_over < 3000 / 100);
	assert_true(play.governor.stats.nr_changes > 2);
}

static void test_cannot(void **state)
{
	const struct load load = { .sampled = 0.05 };
	struct play play;

	begin(&play, 0, 0);
	seconds(&play, 10, &load);
	assert_int_equal(play.step, 0);
	assert_true(play.governor.stats.helpless_ns >= 8 * SB_NS_PER_SEC);

	begin(&play, 99, 99); /* more than there is room for */
	play.governor.opts.limit = 1e-12;
	seconds(&play, 200, &load);
	assert_int_equal(play.step, SB_GOVERNOR_STEPS_MAX);

	begin(&play, 6, 3);
	play.governor.opts.limit = 0; /* off */
	seconds(&play, 10, &load);
	assert_int_equal(play.governor.stats.nr_changes, 0);
	assert_int_equal(play.governor.stats.helpless_ns, 0);
}

/* Readings that come late, at once, or twice. */
static void test_windows(void **state)
{
	struct play play;
	int i;

	begin(&play, 6, 1);
	for (i = 0; i < 70; i++) {
		play.now.now_ns += 10 * SB_NS_PER_MS;
		play.now.bpf_ns += 10 * SB_NS_PER_MS;
		sb_governor_step(&play.governor, &play.now);
		sb_governor_step(&play.governor, &play.now);
	}
	/* Two windows of 300 ms, and what is no window yet. */
	assert_int_equal(play.governor.step, 1);
	play.now.now_ns += 60 * SB_NS_PER_SEC;
	assert_int_equal(sb_governor_step(&play.governor, &play.now), 1);
}

/* A load that takes a whole CPU is looked at each 50 ms. Return: the looks until it is throttled;
 * 100: it is not. */
static uint32_t looks_until_throttled(struct play *play)
{
	const uint64_t look_ns = 50 * SB_NS_PER_MS;
	uint32_t nr = 0;

	while (nr < 100 && !play->governor.step) {
		nr++;
		play->now.now_ns += look_ns;
		play->now.bpf_ns += look_ns;
		if (sb_governor_is_burst(&play->governor, &play->now))
			sb_governor_step(&play->governor, &play->now);
	}
	return nr;
}

static void test_burst(void **state)
{
	struct play play;

	begin(&play, 10, 10);
	assert_int_equal(looks_until_throttled(&play), 100);
	begin(&play, 10, 10);
	play.governor.opts.is_exact = true;
	/* 200 ms, and what the limit allows meanwhile; then six halves of 25 % of the machine. */
	assert_int_equal(looks_until_throttled(&play), 5);
	assert_int_equal(play.governor.step, 6);

	/* What goes on for ten more seconds is no burst any more. */
	begin(&play, 10, 10);
	play.governor.opts.is_exact = true;
	play.now.now_ns += SB_NS_PER_SEC / 4;
	play.now.bpf_ns += SB_NS_PER_SEC / 4;
	assert_true(sb_governor_is_burst(&play.governor, &play.now));
	play.now.now_ns += 10 * SB_NS_PER_SEC;
	assert_false(sb_governor_is_burst(&play.governor, &play.now));
}

static void begin_exact(struct play *play)
{
	begin(play, 10, 10);
	play->governor.opts.is_exact = true;
}

/* The load grows fourfold while it is throttled: no step was in vain. */
static void test_exact(void **state)
{
	struct play play;

	begin_exact(&play);
	seconds(&play, 2, &(struct load){ .sampled = 0.02 });
	assert_int_equal(play.step, 2);
	seconds(&play, 4, &(struct load){ .sampled = 0.08 });
	assert_int_equal(play.step, 4);
	/* It becomes a third: some of the steps are taken back, and no more than there is room
	 * for. */
	seconds(&play, 20, &(struct load){ .sampled = 0.026 });
	assert_int_equal(play.step, 2);
}

/* A second, looked at 20 times, as when a ring fills. Return: its cost, as a part of all CPUs. */
static double storm(struct play *play, const struct load *load)
{
	const uint64_t before_ns = play->now.bpf_ns + play->now.own_ns;
	int i;

	for (i = 1; i <= 20; i++) {
		double times = NR_CPUS * 1e9 / 20 / (1u << play->step);

		play->now.now_ns += SB_NS_PER_SEC / 20;
		play->now.bpf_ns += (uint64_t)(load->sampled * times);
		play->now.own_ns += (uint64_t)(load->taking * times);
		if (i == 20 || sb_governor_is_burst(&play->governor, &play->now))
			play->step = sb_governor_step(&play->governor, &play->now);
	}
	return (double)(play->now.bpf_ns + play->now.own_ns - before_ns) / (NR_CPUS * 1e9);
}

/* A storm costs more than the limit until the governor throttles it. Within twenty seconds the
 * average is below the limit again, and soon after the storm the full rate is back. */
static void test_repays(void **state)
{
	struct play play;
	double times, cost;
	int i;

	for (times = 0.6; times < 20; times *= 1.1) {
		const struct load load = { .sampled = LIMIT * times,
					   .taking = LIMIT * times * 0.7 };

		begin_exact(&play);
		for (i = 0, cost = 0; i < 20; i++)
			cost += storm(&play, &load);
		assert_true(cost <= LIMIT * 20);
		seconds(&play, 20, &(struct load){ .sampled = 0.002, .own = 0.001 });
		assert_int_equal(play.step, 0);
	}
	/* Our own time for something else, however long it was too much, does not keep it
	 * throttled. */
	begin_exact(&play);
	seconds(&play, 100, &(struct load){ .sampled = 0.1, .own = 0.2 });
	assert_int_equal(play.step, 6);
	seconds(&play, 10, &(struct load){ .sampled = 0.001, .own = 0.2 });
	assert_int_equal(play.step, 0);
}

/* Storms of a few seconds that come again and again cost no more than the limit, either. */
static void test_repays_often(void **state)
{
	const struct load load = { .sampled = 0.2, .taking = 0.1 }, calm = { .sampled = 0.0005 };
	struct play play;
	double cost = 0;
	int i, at;

	begin_exact(&play);
	for (i = 0; i < 50; i++)
		for (at = 0; at < 14; at++)
			cost += storm(&play, at < 3 ? &load : &calm);
	assert_true(cost <= LIMIT * 50 * 14);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaves_alone),	cmocka_unit_test(test_begin_of_a_run),
		cmocka_unit_test(test_converges),	cmocka_unit_test(test_recovers),
		cmocka_unit_test(test_does_not_swing),	cmocka_unit_test(test_own_time),
		cmocka_unit_test(test_thrift),		cmocka_unit_test(test_futile),
		cmocka_unit_test(test_costly_way_back), cmocka_unit_test(test_cannot),
		cmocka_unit_test(test_windows),		cmocka_unit_test(test_startup),
		cmocka_unit_test(test_asked),		cmocka_unit_test(test_burst),
		cmocka_unit_test(test_exact),		cmocka_unit_test(test_repays),
		cmocka_unit_test(test_repays_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
