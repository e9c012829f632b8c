// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is a change and what is noise, against draws from known shares. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "model/calltree.h"
#include "model/diff_rows.h"
#include "model/fold.h"
#include "model/spread.h"
#include "read_meta.h"

/* One comparison, with what it is made of. */
struct pair {
	struct sb_profile *sides[2];
	struct sb_tree *tree;
	struct sb_diff diff;
};

static void pair_begin(struct pair *pair, const char *unit)
{
	int side;

	*pair = (struct pair){};
	for (side = 0; side < 2; side++) {
		assert_int_equal(sb_profile_new(&pair->sides[side]), 0);
		assert_int_equal(read_meta(pair->sides[side], "unit", unit), 0);
	}
}

static void add(struct pair *pair, int side, const char *name, uint64_t weight, uint64_t nr_samples)
{
	struct sb_frame main = { .name = "main", .kind = SB_FRAME_USER };
	struct sb_frame frame = { .name = name, .kind = SB_FRAME_USER };
	uint32_t ids[2];

	assert_int_equal(sb_profile_frame(pair->sides[side], &main, &ids[0]), 0);
	assert_int_equal(sb_profile_frame(pair->sides[side], &frame, &ids[1]), 0);
	assert_int_equal(
		sb_profile_add_row(pair->sides[side], &(struct sb_row){ .frames = ids,
									.nr = 2,
									.weight = weight,
									.nr_samples = nr_samples }),
		0);
}

static int pair_end(struct pair *pair, enum sb_diff_norm norm)
{
	sb_profile_seal(pair->sides[0]);
	sb_profile_seal(pair->sides[1]);
	assert_int_equal(sb_calltree_new(pair->sides[0], pair->sides[1], &pair->tree), 0);
	return sb_calltree_diff(&pair->diff, pair->tree, pair->sides[0], pair->sides[1], norm);
}

static void pair_release(struct pair *pair)
{
	sb_tree_free(pair->tree);
	sb_profile_free(pair->sides[0]);
	sb_profile_free(pair->sides[1]);
}

static size_t find(const struct pair *pair, const char *name)
{
	size_t i;

	for (i = 0; i < pair->tree->nodes.nr; i++)
		if (!strcmp(sb_tree_name(pair->tree, i), name))
			return i;
	fail_msg("no node '%s'", name);
	return 0;
}

static double z_of(const struct pair *pair, size_t node)
{
	return sb_diff_z(&pair->diff, &pair->tree->pair_totals.at[node]);
}

/* Of @nr samples as many as fall to each share, the last being the rest: drawn. 0 ends the
 * shares. */
static void draw(struct pair *pair, int side, const double *shares, size_t nr, uint64_t weight,
		 unsigned short seed[3])
{
	size_t i, at;
	char name[24];
	double val;

	for (i = 0; i < nr; i++) {
		val = erand48(seed);
		for (at = 0; shares[at + 1] > 0 && val >= shares[at]; at++)
			val -= shares[at];
		snprintf(name, sizeof(name), "f%zu", at);
		add(pair, side, name, weight, weight == 1 ? 0 : 1);
	}
}

/* The textbook's z of two proportions, with the pooled variance. */
static void test_known_z(void **state)
{
	struct pair pair;
	double p = (700.0 + 500) / 2000, z = -0.2 / sqrt(p * (1 - p) * 2 / 1000);

	pair_begin(&pair, "samples");
	add(&pair, 0, "f", 700, 0);
	add(&pair, 0, "g", 300, 0);
	add(&pair, 1, "f", 500, 0);
	add(&pair, 1, "g", 500, 0);
	assert_int_equal(pair_end(&pair, SB_DIFF_SHARE), 0);
	assert_true(fabs(z_of(&pair, find(&pair, "f")) - z) < 1e-9);
	assert_true(fabs(z_of(&pair, find(&pair, "g")) + z) < 1e-9);
	assert_true(z_of(&pair, 0) == 0);
	assert_true(fabs(sb_diff_value(&pair.diff, SB_TREE_A, 700) - 0.7) < 1e-12);
	/* n = 4,100 are known to 2.2 points. */
	assert_true(fabs(sb_diff_error(4100, 4100) - 0.0219) < 1e-4);
	assert_true(sb_diff_error(1, 1) == 1);
	assert_true(isnan(sb_diff_error(0, 0)));
	assert_true(isnan(sb_diff_error(4100, NAN)));
	pair_release(&pair);
}

static void test_known_change_is_found(void **state)
{
	static const double before[] = { 0.7, 0.2, 0.1, 0 }, after[] = { 0.5, 0.4, 0.1, 0 };
	unsigned short seed[3] = { 1, 2, 3 };
	struct pair pair;

	pair_begin(&pair, "samples");
	draw(&pair, 0, before, 1000, 1, seed);
	draw(&pair, 1, after, 700, 1, seed);
	assert_int_equal(pair_end(&pair, SB_DIFF_SHARE), 0);
	assert_true(z_of(&pair, find(&pair, "f0")) < -SB_DIFF_NOISE_Z);
	assert_true(z_of(&pair, find(&pair, "f1")) > SB_DIFF_NOISE_Z);
	assert_true(fabs(z_of(&pair, find(&pair, "f2"))) < SB_DIFF_NOISE_Z);
	pair_release(&pair);
}

/*
 * Both profiles are drawn from the same shares, so every difference is chance. Of 9 functions in
 * 1,000 pairs of profiles, 0.27 % have |z| > 3 by chance: 24.3 +- 4.9 if they were independent. More
 * than five standard deviations above that is a fault. Approximations fail first for rare functions
 * and for profiles of unequal size.
 */
static void false_positives(size_t nr_a, size_t nr_b, uint64_t weight, enum sb_diff_norm norm)
{
	static const double shares[] = { 0.3, 0.25, 0.2, 0.1, 0.07, 0.05, 0.02, 0.007, 0.003, 0 };
	unsigned short seed[3] = { 4, 5, (unsigned short)nr_b };
	size_t i, at, nr_false = 0;
	struct pair pair;

	for (i = 0; i < 1000; i++) {
		pair_begin(&pair, weight == 1 ? "samples" : "us");
		draw(&pair, 0, shares, nr_a, weight, seed);
		draw(&pair, 1, shares, nr_b, weight, seed);
		assert_int_equal(pair_end(&pair, norm), 0);
		for (at = 2; at < pair.tree->nodes.nr; at++)
			nr_false += fabs(z_of(&pair, at)) >= SB_DIFF_NOISE_Z;
		pair_release(&pair);
	}
	print_message("%zu and %zu samples: %zu of 9000 are taken for a change\n", nr_a, nr_b,
		      nr_false);
	assert_in_range(nr_false, 0, 24 + 5 * 5);
}

static void test_noise_is_noise(void **state)
{
	false_positives(1000, 1000, 1, SB_DIFF_SHARE);
	false_positives(100, 2000, 1, SB_DIFF_SHARE);
	false_positives(2000, 100, 1, SB_DIFF_SHARE);
	false_positives(800, 800, 250, SB_DIFF_SHARE);
	/* That there are as many samples at all is chance, too; here they are, so it errs to
	 * grey. */
	false_positives(500, 500, 1, SB_DIFF_RAW);
}

/* Three waits of a second in the place of one are a wait more or less: weights of 1,000,000 are no
 * n. */
static void test_long_waits_are_few(void **state)
{
	struct pair pair;

	pair_begin(&pair, "us");
	add(&pair, 0, "long", 1000000, 1);
	add(&pair, 0, "short", 1000000, 10000);
	add(&pair, 1, "long", 3000000, 3);
	add(&pair, 1, "short", 1000000, 10000);
	assert_int_equal(pair_end(&pair, SB_DIFF_SHARE), 0);
	assert_true(fabs(z_of(&pair, find(&pair, "long"))) < SB_DIFF_NOISE_Z);
	pair_release(&pair);
	/* The same times of many waits. */
	pair_begin(&pair, "us");
	add(&pair, 0, "long", 1000000, 10000);
	add(&pair, 0, "short", 1000000, 10000);
	add(&pair, 1, "long", 3000000, 30000);
	add(&pair, 1, "short", 1000000, 10000);
	assert_int_equal(pair_end(&pair, SB_DIFF_SHARE), 0);
	assert_true(z_of(&pair, find(&pair, "long")) > 10);
	pair_release(&pair);
}

static void test_samples_not_known(void **state)
{
	struct pair pair;

	pair_begin(&pair, "us");
	add(&pair, 0, "f", 10, 0);
	add(&pair, 1, "f", 1000, 0);
	add(&pair, 1, "g", 1000, 0);
	assert_int_equal(pair_end(&pair, SB_DIFF_SHARE), 0);
	assert_true(isnan(z_of(&pair, find(&pair, "f"))));
	pair_release(&pair);
}

/*
 * Waits as they are: of each stack they are of their own length, from 20 us to 2 s, uneven
 * (lognormal), as many as the work is; 40 stacks below 5 functions. Of parts of an hour only sums
 * are known.
 */
#define NR_STACKS  40
#define NR_CALLERS 5
struct waiting {
	double mean_us[NR_STACKS], sigma[NR_STACKS], nr_of_part[NR_STACKS];
	double (*load)(size_t part, unsigned short seed[3]);
};

static double normal(unsigned short seed[3])
{
	return sqrt(-2 * log(1 - erand48(seed))) * cos(2 * M_PI * erand48(seed));
}

static double even_load(size_t part, unsigned short seed[3])
{
	return 1;
}

static double load_of_a_day(size_t part, unsigned short seed[3])
{
	return 1 + 0.7 * sin((double)part / SB_SPREAD_PARTS_MAX * 2 * M_PI);
}

static double load_in_bursts(size_t part, unsigned short seed[3])
{
	return exp(0.5 * normal(seed));
}

static uint64_t poisson(double mean, unsigned short seed[3])
{
	double at;
	uint64_t nr = 0;

	if (mean > 100)
		return (uint64_t)fmax(mean + sqrt(mean) * normal(seed) + 0.5, 0);
	for (at = -log(1 - erand48(seed)); at < mean; at -= log(1 - erand48(seed)))
		nr++;
	return nr;
}

static void make_waiting(struct waiting *waiting, unsigned short seed[3])
{
	size_t i;

	for (i = 0; i < NR_STACKS; i++) {
		waiting->mean_us[i] = 20 * pow(10, 5 * erand48(seed));
		waiting->sigma[i] = 1.5 * erand48(seed);
		/* At most three threads that do nothing else, in 150 s. */
		waiting->nr_of_part[i] = fmin(150e6 / waiting->mean_us[i] *
						      (0.01 + 3 * erand48(seed) * erand48(seed)),
					      1000);
	}
}

static void wait_for_part(struct pair *pair, int side, const struct waiting *waiting, size_t part,
			  double slower, unsigned short seed[3])
{
	double load = waiting->load(part, seed);
	char names[2][16];
	uint32_t ids[2];
	size_t i, k;

	for (i = 0; i < NR_STACKS; i++) {
		uint64_t nr = poisson(waiting->nr_of_part[i] * load, seed);
		double sum_us = 0, sigma = waiting->sigma[i], sharp = sigma * sigma / 2;

		while (nr--)
			sum_us += waiting->mean_us[i] * exp(sigma * normal(seed) - sharp);
		sum_us *= i % NR_CALLERS ? 1 : slower;
		snprintf(names[0], sizeof(names[0]), "caller%zu", i % NR_CALLERS);
		snprintf(names[1], sizeof(names[1]), "wait%zu", i);
		for (k = 0; k < 2; k++)
			assert_int_equal(
				sb_profile_frame(pair->sides[side],
						 &(struct sb_frame){ .name = names[k],
								     .kind = SB_FRAME_USER },
						 &ids[k]),
				0);
		if (sum_us >= 1)
			assert_int_equal(
				sb_profile_add(pair->sides[side], ids, 2, (uint64_t)sum_us), 0);
	}
}

/* The hour before and the hour after. */
static void wait_twice(struct pair *pair, const struct waiting *waiting, size_t nr_parts,
		       double slower, unsigned short seed[3])
{
	size_t part;
	int side;

	pair_begin(pair, "us");
	for (side = 0; side < 2; side++) {
		struct sb_spread spread = {};

		for (part = 0; part < nr_parts; part++) {
			wait_for_part(pair, side, waiting, part, side ? slower : 1, seed);
			assert_int_equal(sb_spread_part(&spread, pair->sides[side]), 0);
		}
		assert_int_equal(sb_spread_end(&spread, pair->sides[side]), 0);
		sb_spread_release(&spread);
	}
	assert_int_equal(pair_end(pair, SB_DIFF_SHARE), 0);
}

static void test_parts_say_what_is_noise(void **state)
{
	double (*const loads[])(size_t, unsigned short *) = { even_load, load_of_a_day,
							      load_in_bursts };
	static const size_t nr_parts[] = { SB_SPREAD_PARTS_MIN, SB_SPREAD_PARTS_MAX };
	unsigned short seed[3] = { 3, 4, 5 };
	size_t i, n, round, node;

	for (i = 0; i < SB_ARRAY_SIZE(loads); i++) {
		for (n = 0; n < SB_ARRAY_SIZE(nr_parts); n++) {
			size_t nr = 0, nr_grey = 0, nr_found = 0, nr_large = 0;

			for (round = 0; round < 8; round++) {
				struct waiting waiting = { .load = loads[i] };
				struct pair pair;

				make_waiting(&waiting, seed);
				wait_twice(&pair, &waiting, nr_parts[n], 1, seed);
				for (node = 1; node < pair.tree->nodes.nr; node++, nr++)
					nr_grey += fabs(z_of(&pair, node)) < SB_DIFF_NOISE_Z;
				pair_release(&pair);
				wait_twice(&pair, &waiting, nr_parts[n], 1.2, seed);
				nr_large++;
				nr_found += z_of(&pair, find(&pair, "caller0")) >= SB_DIFF_NOISE_Z;
				pair_release(&pair);
			}
			printf("%zu parts, load %zu: %zu of %zu are noise, %zu of %zu changes are found\n",
			       nr_parts[n], i, nr_grey, nr, nr_found, nr_large);
			assert_true((double)nr_grey >= 0.98 * (double)nr);
			assert_true(nr_found >= nr_large * nr_parts[n] / (SB_SPREAD_PARTS_MAX + 4));
		}
	}
}

static void test_of_itself_and_swapped(void **state)
{
	static const enum sb_diff_norm norms[] = { SB_DIFF_SHARE, SB_DIFF_RATE, SB_DIFF_RAW };
	static const double all[] = { 0.5, 0.3, 0.15, 0.05, 0 }, three[] = { 0.5, 0.3, 0.2, 0 };
	unsigned short seed[3] = { 9, 8, 7 };
	size_t i, at;
	int side;

	for (i = 0; i < SB_ARRAY_SIZE(norms); i++) {
		struct pair pair, swapped, same;
		struct sb_diff_row *rows, *rows_swapped;
		size_t nr, nr_swapped;

		pair_begin(&pair, "samples");
		draw(&pair, 0, all, 400, 1, seed);
		draw(&pair, 1, three, 300, 1, seed);
		for (side = 0; side < 2; side++)
			assert_int_equal(
				read_meta(pair.sides[side], "dur_us", side ? "2000000" : "1000000"),
				0);
		assert_int_equal(pair_end(&pair, norms[i]), 0);
		swapped = same = pair;
		assert_int_equal(sb_calltree_new(pair.sides[1], pair.sides[0], &swapped.tree), 0);
		assert_int_equal(sb_calltree_diff(&swapped.diff, swapped.tree, pair.sides[1],
						  pair.sides[0], norms[i]),
				 0);
		assert_int_equal(sb_calltree_new(pair.sides[0], pair.sides[0], &same.tree), 0);
		assert_int_equal(sb_calltree_diff(&same.diff, same.tree, pair.sides[0],
						  pair.sides[0], norms[i]),
				 0);
		assert_int_equal(swapped.tree->nodes.nr, pair.tree->nodes.nr);
		for (at = 0; at < pair.tree->nodes.nr; at++) {
			assert_true(fabs(z_of(&pair, at) + z_of(&swapped, at)) < 1e-9);
			assert_string_equal(sb_tree_name(pair.tree, at),
					    sb_tree_name(swapped.tree, at));
		}
		for (at = 0; at < same.tree->nodes.nr; at++)
			assert_true(z_of(&same, at) == 0);
		assert_int_equal(sb_diff_rows(&pair.diff, pair.tree, SB_DIFF_BY_SELF, &rows, &nr),
				 0);
		assert_int_equal(sb_diff_rows(&swapped.diff, swapped.tree, SB_DIFF_BY_SELF,
					      &rows_swapped, &nr_swapped),
				 0);
		assert_int_equal(nr, nr_swapped);
		for (at = 0; at < nr; at++) {
			assert_int_equal(rows[at].self.weight[0], rows_swapped[at].self.weight[1]);
			assert_int_equal(rows[at].total.weight[1],
					 rows_swapped[at].total.weight[0]);
		}
		free(rows);
		free(rows_swapped);
		sb_tree_free(swapped.tree);
		sb_tree_free(same.tree);
		pair_release(&pair);
	}
}

/* Twice as long, at five times the Hz, on half the CPUs: the same work is no change. */
static void test_rates(void **state)
{
	static const struct {
		const char *key;
		const char *a, *b;
	} facts[] = { { "dur_us", "10000000", "20000000" },
		      { "hz", "99", "495" },
		      { "cpus", "8", "4" } };
	struct pair pair;
	size_t i, node;

	pair_begin(&pair, "samples");
	add(&pair, 0, "f", 1000, 0);
	add(&pair, 0, "g", 500, 0);
	add(&pair, 1, "f", 5000, 0);
	add(&pair, 1, "g", 5000, 0);
	assert_int_equal(pair_end(&pair, SB_DIFF_RATE), -ENODATA);
	for (i = 0; i < SB_ARRAY_SIZE(facts); i++) {
		assert_int_equal(read_meta(pair.sides[0], facts[i].key, facts[i].a), 0);
		assert_int_equal(read_meta(pair.sides[1], facts[i].key, facts[i].b), 0);
	}
	assert_int_equal(
		sb_calltree_diff(&pair.diff, pair.tree, pair.sides[0], pair.sides[1], SB_DIFF_RATE),
		0);
	node = find(&pair, "f");
	assert_true(z_of(&pair, node) == 0);
	assert_true(fabs(sb_diff_value(&pair.diff, 0, 1000) - 1000.0 / 7920) < 1e-12);
	assert_true(z_of(&pair, find(&pair, "g")) > SB_DIFF_NOISE_Z);
	pair_release(&pair);
}

static void test_units_differ(void **state)
{
	struct pair pair;

	pair_begin(&pair, "us");
	add(&pair, 0, "f", 1, 1);
	sb_profile_free(pair.sides[1]);
	assert_int_equal(sb_profile_new(&pair.sides[1]), 0);
	assert_int_equal(pair_end(&pair, SB_DIFF_SHARE), -EINVAL);
	pair_release(&pair);
}

static void test_rows(void **state)
{
	static const char *const paths[][4] = { { "f", "g", "f", NULL },
						{ "g", "f", NULL },
						{ "h", NULL } };
	struct sb_diff_row *rows;
	struct pair pair;
	size_t i, at, nr;

	pair_begin(&pair, "samples");
	for (i = 0; i < 3; i++) {
		uint32_t ids[4];

		for (at = 0; paths[i][at]; at++)
			assert_int_equal(
				sb_profile_frame(
					pair.sides[1],
					&(struct sb_frame){ .name = paths[i][at],
							    .kind = i % 2 ? SB_FRAME_USER
									  : SB_FRAME_INLINED },
					&ids[at]),
				0);
		assert_int_equal(sb_profile_add(pair.sides[1], ids, at, 10 + i), 0);
	}
	assert_int_equal(pair_end(&pair, SB_DIFF_RAW), 0);
	assert_int_equal(sb_diff_rows(&pair.diff, pair.tree, SB_DIFF_BY_SELF, &rows, &nr), 0);
	assert_int_equal(nr, 3);
	assert_string_equal(sb_strtab_get(&pair.tree->names, rows[0].name, NULL), "f");
	assert_int_equal(rows[0].self.weight[1], 21);
	assert_int_equal(rows[0].total.weight[1], 21); /* once, though it is twice in a stack */
	assert_true(rows[0].total.squares[1] == 21);
	assert_int_equal(rows[1].self.weight[1], 12);
	assert_string_equal(sb_strtab_get(&pair.tree->names, rows[2].name, NULL), "g");
	assert_int_equal(rows[2].self.weight[1], 0);
	assert_int_equal(rows[2].total.weight[1], 21);
	assert_int_equal(rows[2].total.weight[0], 0);
	free(rows);
	assert_int_equal(sb_diff_rows(&pair.diff, pair.tree, SB_DIFF_BY_TOTAL, &rows, &nr), 0);
	assert_string_equal(sb_strtab_get(&pair.tree->names, rows[1].name, NULL), "g");
	free(rows);
	pair_release(&pair);
}

static void test_names(void **state)
{
	assert_int_equal(sb_diff_norm_find("rate"), SB_DIFF_RATE);
	assert_int_equal(sb_diff_norm_find("cpu"), -EINVAL);
	assert_string_equal(sb_diff_norm_name(SB_DIFF_SHARE), "share");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_z),
		cmocka_unit_test(test_known_change_is_found),
		cmocka_unit_test(test_noise_is_noise),
		cmocka_unit_test(test_long_waits_are_few),
		cmocka_unit_test(test_samples_not_known),
		cmocka_unit_test(test_parts_say_what_is_noise),
		cmocka_unit_test(test_of_itself_and_swapped),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_units_differ),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
