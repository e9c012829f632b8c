// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which part of the memory is held, of programs that are played: each piece is given back after a
 * time, and its address is handed out again at once, for as long as chance has it. Windows see a
 * part of it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "views/views.h"

#define SECONDS	 60.0
#define WINDOW_S 0.2
#define EVERY_S	 2.0
#define PIECES	 40 /* allocated in each window, of each kind */
#define FOREVER	 1e9

static double begins[64]; /* of windows, numbered from 1 on */
static uint32_t nr_windows;

static void begin(void)
{
	double at;

	nr_windows = 0;
	for (at = 1; at < SECONDS - WINDOW_S; at += EVERY_S * (0.5 + drand48()))
		begins[++nr_windows] = at;
}

/* Return: the first window behind @after that sees the time @at; 0: none. */
static uint32_t window_at(double at, uint32_t after)
{
	uint32_t i;

	for (i = after + 1; i <= nr_windows; i++)
		if (at >= begins[i] && at < begins[i] + WINDOW_S)
			return i;
	return 0;
}

/* A piece that is allocated at @at. @again: the probability that its address is given back once
 * more after another @age seconds, and so on. */
static void add(struct sb_survival *survival, uint64_t stack, uint32_t window, double at,
		double age, double again)
{
	struct sb_held_watch watch = { .window = window };
	uint32_t seen;

	for (at += age; at < SECONDS; at += age) {
		if (at < begins[window] + WINDOW_S)
			return;
		seen = window_at(at, window);
		if (seen && !watch.proof)
			watch.proof = seen;
		watch.last = seen ?: watch.last;
		if (drand48() > again)
			break;
	}
	if (begins[window] < SECONDS / 2)
		assert_int_equal(sb_survival_add(survival, stack, &watch, 50), 0);
}

/* Pieces of one stack, of which @nr_of_ten of ten are given back. */
static void pieces(struct sb_survival *survival, uint64_t stack, int nr_of_ten, double age,
		   double again)
{
	uint32_t window;
	int i;

	for (window = 1; window <= nr_windows; window++)
		for (i = 0; i < PIECES; i++)
			add(survival, stack, window, begins[window] + drand48() * 0.02,
			    i % 10 < nr_of_ten ? age * (0.9 + 0.2 * drand48()) : FOREVER, again);
}

/* Return: how many pieces are held by the estimate, where 1 is all that are held in truth, if any
 * are. */
static double held(const struct sb_survival *survival, uint64_t stack, int nr_of_ten)
{
	const struct sb_survival_group *group = &survival->groups.at[stack - 1];
	uint32_t window;
	double truth = 0;

	for (window = 1; window <= nr_windows; window++)
		if (begins[window] < SECONDS / 2)
			truth += 50.0 * PIECES * (nr_of_ten < 10 ? 10 - nr_of_ten : 10) / 10;
	return sb_survival_part(survival, stack) * group->unproven / truth;
}

static void check(int nr_of_ten, double age, double again, double wanted, double by)
{
	struct sb_survival survival = {};
	double is;

	srand48(7);
	begin();
	pieces(&survival, 1, nr_of_ten, age, again);
	sb_survival_judge(&survival, nr_windows * WINDOW_S / (SECONDS - 1));
	is = held(&survival, 1, nr_of_ten);
	sb_survival_release(&survival);
	if (fabs(is - wanted) > by)
		fail_msg("%d of 10, for %.3f s: %.3f instead of %.3f", nr_of_ten, age, is, wanted);
}

/* What leaks is held. */
static void test_leak(void **state)
{
	check(0, 1, 1, 1, 0);
}

/* What comes and goes is not, whatever its age. */
static void test_churn(void **state)
{
	check(10, 0.3, 1, 0, 0);
	check(10, 2, 1, 0, 0);
	check(10, 8, 1, 0, 0);
	check(10, 20, 1, 0, 0);
	check(10, 2, 0, 0, 0);
	check(10, 2, 0.5, 0, 0);
	check(10, 0.5, 0.9, 0, 0);
}

/* A stack that leaks a part: rather too little is told. */
static void test_part(void **state)
{
	check(5, 0.3, 1, 1, 0.1);
	check(5, 2, 1, 0.8, 0.2);
	check(2, 8, 1, 0.8, 0.3);
	/* One window in ten sees the end of a piece, and nothing comes after it: this is not told
	 * from nothing. */
	check(5, 2, 0, 0, 0);
}

/* Return: the part of ten pieces without proof that is held beside a hundred with proof in the
 * first windows, and an address that each window has seen. */
static double part_after(uint32_t nr)
{
	struct sb_survival survival = {};
	const struct sb_held_watch unproven = { .window = 1 };
	double part;
	uint32_t i;

	assert_int_equal(sb_survival_add(&survival, 1, &unproven, 10), 0);
	for (i = 0; i < nr; i++) {
		const struct sb_held_watch proven = { .window = 1, .proof = 2 + i, .last = 99 };

		assert_int_equal(sb_survival_add(&survival, 1, &proven, 100.0 / nr), 0);
	}
	sb_survival_judge(&survival, 0.1);
	part = sb_survival_part(&survival, 1);
	sb_survival_release(&survival);
	return part;
}

/* That one window has seen all addresses again does not say that it is always so. */
static void test_few_windows(void **state)
{
	assert_true(part_after(1) == 0);
	assert_true(part_after(3) == 0);
	assert_true(part_after(60) > 0.5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leak),
		cmocka_unit_test(test_churn),
		cmocka_unit_test(test_part),
		cmocka_unit_test(test_few_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
