// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The aggregates of a store: those that are wrong or missing are found, and those of a clock that
 * was wrong are right. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "store/ask.h"
#include "store/check.h"
#include "store/late_blocks.h"
#include "store/store_priv.h"
#include "store_puts.h"

struct wrongs {
	struct sb_store_wrong_sum last;
	uint64_t nr;
};

static void note_wrong(void *arg, const struct sb_store_wrong_sum *sum)
{
	struct wrongs *wrongs = arg;

	wrongs->last = *sum;
	wrongs->nr++;
}

static struct sb_store_sums_check check_sums_at(struct wrongs *wrongs, int64_t now_s)
{
	struct sb_store_sums_check check = { note_wrong, wrongs, now_s };
	struct sb_store *store;

	*wrongs = (struct wrongs){};
	assert_int_equal(sb_store_open(dir, &store), 0);
	assert_int_equal(sb_store_check_sums(store, &check), 0);
	sb_store_close(store);
	assert_int_equal(wrongs->nr, check.nr_wrong);
	return check;
}

static struct sb_store_sums_check check_sums(struct wrongs *wrongs)
{
	return check_sums_at(wrongs, INT64_MAX);
}

/* A block more in a file: @weight in its first row, and @nr_samples. */
static void append(const char *name, int64_t begin_s, uint32_t seconds, uint64_t weight,
		   uint64_t nr_samples)
{
	struct sb_segment_sums sums = { .figure = { [SB_BLOCK_SAMPLES] = nr_samples } };
	const struct sb_store_kind kind = { "oncpu", "samples" };
	struct sb_segment segment;
	int fd = open(dir, O_RDONLY | O_DIRECTORY);

	assert_int_equal(sb_segment_open(&segment, fd, name), 0);
	sums.weight = calloc(segment.dict.rows.nr, sizeof(*sums.weight));
	sums.weight[0] = weight;
	assert_int_equal(sb_segment_append(&segment, &(struct sb_segment_time){ begin_s, seconds },
					   &kind, &sums),
			 0);
	free(sums.weight);
	sb_segment_release(&segment);
	close(fd);
}

/* Three days of 10 minutes each half an hour, with late ones, are right; then one sum, and one
 * figure, is not. */
static void test_wrong_sum(void **state)
{
	struct sb_store_sums_check check;
	struct wrongs wrongs;
	struct sb_store *store;
	char path[128];
	uint32_t i;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	for (i = 0; i < 3 * 48; i++) {
		assert_int_equal(put_block(store, T0 + 1800 * i, 4), 0);
		assert_int_equal(put_block(store, T0 + 1800 * i + 10, 4), 0);
		if (i > 10 && i % 7 == 0)
			assert_int_equal(put_block(store, T0 + 1800 * (i - 10) + 20, 4), 0);
	}
	assert_int_equal(put_block(store, T0 + 4 * DAY, 4), 0);
	sb_store_close(store);
	check = check_sums(&wrongs);
	assert_int_equal(check.nr_wrong, 0);
	assert_int_equal(check.nr_left, 0);
	assert_int_equal(check.nr_equal, 3 * (48 + 24 + 1));

	append("1h/204001.sb", T0 + 5 * HOUR, HOUR, 7, 0);
	append("10min/20400102.sb", T0 + DAY + 1800, 600, 5, 3);
	check = check_sums(&wrongs);
	/* The hour above that is not that of its 10 minutes any more, and the day not that of its
	 * hours. */
	assert_int_equal(check.nr_wrong, 4);
	assert_int_equal(check.nr_equal, 3 * (48 + 24 + 1) - 4);
	assert_string_equal(wrongs.last.kind.name, "oncpu");

	/* What has expired is not compared. */
	snprintf(path, sizeof(path), "%s/10s/20400102.sb", dir);
	assert_int_equal(unlink(path), 0);
	check = check_sums(&wrongs);
	assert_int_equal(check.nr_wrong, 3);
	assert_int_equal(check.nr_left, 48);
	snprintf(path, sizeof(path), "%s/10min/20400101.sb", dir);
	assert_int_equal(unlink(path), 0);
	check = check_sums(&wrongs);
	assert_int_equal(check.nr_left, 48 + 24);
	/* The hour of the second day, and the first day, which has the other wrong hour. */
	assert_int_equal(check.nr_wrong, 2);
	assert_int_equal(wrongs.last.begin_s, T0);
	assert_int_equal(wrongs.last.seconds, DAY);
	assert_int_equal(wrongs.last.finer_weight - wrongs.last.weight, 7);
	assert_int_equal(wrongs.last.nr_figures, 0);
}

static void put_host(struct sb_store *store, int64_t begin_s, const char *host)
{
	struct put one = { begin_s, random_of(NR_STACKS), 0, 0, 1 + random_of(1000) };
	struct sb_tag tag = { "host", host, false };
	struct sb_store_series series = { &tag, 1 };
	struct sb_profile *profile = profile_of(&one);
	struct sb_store_block block = {
		begin_s, "oncpu", "samples", { 10000 }, &series, 1, profile
	};

	assert_int_equal(sb_store_put(store, &block), 0);
	sb_profile_free(profile);
}

/* A host whose finer blocks had expired when it was merged in is no damage of the sums that have
 * it; another is. */
static void test_merged_sum(void **state)
{
	struct sb_store_overlap overlap = {};
	struct sb_store_sums_check check;
	struct sb_store *store, *other;
	struct wrongs wrongs;
	char path[80], fine[128];
	uint32_t i;

	snprintf(path, sizeof(path), "%s-other", dir);
	assert_int_equal(sb_store_open_to_write(path, &no_sync, &other), 0);
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	for (i = 0; i < 12; i++) {
		put_host(store, T0 + 600 * i, "a");
		put_host(other, T0 + 600 * i, "b");
	}
	snprintf(fine, sizeof(fine), "%s/10s/20400101.sb", path);
	assert_int_equal(unlink(fine), 0);
	assert_int_equal(sb_store_find_overlap(store, other, &overlap), 0);
	assert_int_equal(sb_store_merge(store, other, T0 + 6600), 0);
	assert_int_equal(sb_store_find_overlap(store, other, &overlap), -EEXIST);
	assert_string_equal(overlap.host, "b");
	assert_string_equal(overlap.kind.name, "oncpu");
	free(overlap.host);
	sb_store_close(store);
	sb_store_close(other);
	check = check_sums(&wrongs);
	assert_int_equal(check.nr_wrong, 0);
	assert_int_equal(check.nr_left, 11);
	assert_int_equal(check.nr_equal, 1);
	append("10min/20400101.sb", T0 + 600, 600, 3, 0);
	check = check_sums(&wrongs);
	/* Of host "b" or "a": the hour is wrong in any case. */
	assert_in_range(check.nr_wrong, 1, 2);
	assert_int_equal(remove_below(path), 0);
}

static void put_stack(const char *path, uint32_t stack, const char *service)
{
	struct put one = { T0, stack, 0, 0, 77 };
	struct sb_tag tag = { "service", service, false };
	struct sb_store_series series = { &tag, 1 };
	struct sb_profile *profile = profile_of(&one);
	struct sb_store_block block = { T0, "oncpu", "samples", { 10000 }, &series, 1, profile };
	struct sb_store *store;

	assert_int_equal(sb_store_open_to_write(path, &no_sync, &store), 0);
	assert_int_equal(sb_store_put(store, &block), 0);
	block.begin_s += 600;
	assert_int_equal(sb_store_put(store, &block), 0);
	sb_store_close(store);
	sb_profile_free(profile);
}

/* The same weight, but of another stack, or of other tags. */
static void test_moved_sum(void **state)
{
	static const struct {
		uint32_t stack;
		const char *service;
		uint64_t nr_wrong;
	} cases[] = { { 1, "a", 0 }, { 2, "a", 1 }, { 1, "b", 1 } };
	struct wrongs wrongs;
	char path[80], from[128], to[128];
	size_t i;

	put_stack(dir, 1, "a");
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(path, sizeof(path), "%s-other", dir);
		put_stack(path, cases[i].stack, cases[i].service);
		snprintf(from, sizeof(from), "%s/10min/20400101.sb", path);
		snprintf(to, sizeof(to), "%s/10min/20400101.sb", dir);
		assert_int_equal(rename(from, to), 0);
		assert_int_equal(check_sums(&wrongs).nr_wrong, cases[i].nr_wrong);
		assert_int_equal(wrongs.last.nr_stacks, 2 * cases[i].nr_wrong);
		assert_int_equal(wrongs.last.weight, wrongs.last.finer_weight);
		assert_int_equal(remove_below(path), 0);
	}
}

/* A sum that is not there, while a later one is; figures alone. */
static void test_missing_sum(void **state)
{
	struct sb_store_sums_check check;
	struct wrongs wrongs;
	struct sb_store *store;
	uint32_t i;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	for (i = 0; i < 12; i++)
		assert_int_equal(put_block(store, T0 + 600 * i, 1), 0);
	sb_store_close(store);
	assert_int_equal(check_sums(&wrongs).nr_wrong, 0);
	append("10min/20400101.sb", T0 + 1200, 600, 0, 9);
	check = check_sums(&wrongs);
	/* The hour of it, too. */
	assert_int_equal(check.nr_wrong, 2);
	assert_int_equal(wrongs.last.nr_figures, 1);
	assert_int_equal(wrongs.last.nr_stacks, 0);
	append("10s/20400101.sb", T0 + 12 * 600, 10, 3, 0);
	append("10min/20400101.sb", T0 + 13 * 600, 600, 3, 0);
	check = check_sums(&wrongs);
	/* Those of the last block that was put, and of this one; the sum of nothing cannot be
	 * compared. */
	assert_int_equal(check.nr_wrong, 4);
	assert_int_equal(check.nr_left, 1);
	/* Not of what is not over. */
	assert_int_equal(check_sums_at(&wrongs, T0 + 1800).nr_wrong, 1);
	assert_int_equal(check_sums_at(&wrongs, T0 + 1799).nr_wrong, 0);
}

static void count_blocks(void *arg, const struct sb_store_file_info *info)
{
	size_t *nr_blocks = arg;

	nr_blocks[info->level] += info->nr_blocks;
}

static void expect_timeline(struct sb_store *store, int64_t from_s, int64_t to_s)
{
	const struct sb_ask ask = { .from_s = from_s, .to_s = to_s };
	uint64_t want[NR_STACKS];
	struct sb_timeline *timeline;

	sum_of(from_s, to_s, -1, want);
	assert_int_equal(sb_store_timeline(store, &ask, &(struct sb_timeline_opts){}, &timeline),
			 0);
	assert_int_equal(timeline->series.at[0].weight, total_of(want));
	sb_timeline_free(timeline);
}

/* 9892-01-01: a clock that was wrong. */
#define FAR 249994166400ll

/*
 * One block of millennia later costs nothing of what is between, neither to write nor to ask, and
 * what comes after it, when the clock is right again, is summed as ever: a sum for each period, and
 * not for each block.
 */
static void test_far(void **state)
{
	size_t nr_blocks[SB_STORE_LEVELS] = {};
	const struct sb_store_look look = { .on_file = count_blocks, .arg = nr_blocks };
	struct wrongs wrongs;
	struct sb_store *store;
	uint32_t i;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	for (i = 0; i < 400; i++) {
		assert_int_equal(put_block(store, T0 + 30 * i, 2), 0);
		if (i == 100 || i == 300)
			assert_int_equal(put_block(store, FAR, 2), 0);
		if (i != 200)
			continue;
		/* Whoever opens it then knows what is missing. */
		sb_store_close(store);
		assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	}
	assert_int_equal(put_block(store, T0 + 2 * DAY, 1), 0);
	expect(store, 0, INT64_MAX, -1);
	expect(store, T0 + 1000, FAR + 10, 1);
	expect(store, T0 + DAY, FAR, -1);
	expect(store, FAR - DAY, FAR + DAY, -1);
	expect(store, T0, T0 + 3 * HOUR, -1);
	expect_timeline(store, 0, FAR + DAY);
	assert_int_equal(sb_store_look(store, &look), 0);
	/* 20 periods; what was summed when the clock went wrong has the rest of its blocks one by
	 * one. */
	assert_in_range(nr_blocks[1], 20, 20 + 2 * 60);
	assert_int_equal(
		sb_store_put(store, &(struct sb_store_block){ SB_LEVEL_TIME_MAX, "a", "b" }),
		-EINVAL);
	sb_store_close(store);
	assert_int_equal(check_sums(&wrongs).nr_wrong, 0);
}

/* What comes for a period that was the last one to be summed, after opening: its sum has it,
 * too. */
static void test_late_after_opening(void **state)
{
	struct wrongs wrongs;
	struct sb_store *store;
	uint32_t i;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(put_block(store, T0 + 600 * i, 2), 0);
	sb_store_close(store);
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	assert_int_equal(put_block(store, T0 + 1210, 2), 0);
	assert_int_equal(put_block(store, T0 + 2400, 2), 0);
	expect(store, T0 + 1200, T0 + 1800, -1);
	sb_store_close(store);
	assert_int_equal(check_sums(&wrongs).nr_wrong, 0);
}

/* Every ten minutes from @from_s on; as the clock says. */
static void record(struct sb_store *store, int64_t from_s, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++) {
		set_now_s = from_s + 600 * i + 10;
		assert_int_equal(put_block(store, from_s + 600 * i, 2), 0);
	}
}

/* A clock was hours ahead, was set right, and soon the recorder ended. It begins again when those
 * hours are over: of what it had come to there are sums. */
static void test_was_ahead(void **state)
{
	/* Within a day, and over the end of one. */
	static const int64_t begins[] = { T0 + 2 * HOUR, T0 + 20 * HOUR };
	struct wrongs wrongs;
	struct sb_store *store;
	size_t i;

	for (i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		int64_t begin_s = begins[i] + (int64_t)i * 10 * DAY;

		set_now_s = begin_s;
		assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
		record(store, begin_s, 6);
		record(store, begin_s + 5 * HOUR, 9);
		record(store, begin_s + HOUR, 4);
		sb_store_close(store);
		set_now_s = begin_s + 9 * HOUR;
		assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
		record(store, begin_s + 9 * HOUR, 12);
		expect(store, 0, INT64_MAX, -1);
		sb_store_close(store);
		assert_int_equal(check_sums_at(&wrongs, set_now_s).nr_wrong, 0);
	}
	set_now_s = 0;
}

/* Stores of a recorder that ended before the first aggregate get all levels when they are opened
 * again, also to be merged. */
static void test_short_store(void **state)
{
	struct sb_store_sums_check check;
	struct sb_store *store, *other;
	struct wrongs wrongs;
	char path[80];

	snprintf(path, sizeof(path), "%s-other", dir);
	set_now_s = T0;
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	put_host(store, T0, "a");
	sb_store_close(store);
	assert_int_equal(sb_store_open_to_write(path, &no_sync, &other), 0);
	put_host(other, T0 + 10, "b");
	sb_store_close(other);
	set_now_s = T0 + 2 * DAY;
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	put_host(store, T0 + 2 * DAY, "a");
	assert_int_equal(check_sums(&wrongs).nr_equal, 3);
	assert_int_equal(sb_store_open_to_write(path, &no_sync, &other), 0);
	assert_int_equal(sb_store_merge(store, other, T0 + 2 * DAY), 0);
	sb_store_close(store);
	sb_store_close(other);
	check = check_sums(&wrongs);
	assert_int_equal(check.nr_wrong, 0);
	assert_int_equal(check.nr_equal, 3);
	set_now_s = 0;
	assert_int_equal(remove_below(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_wrong_sum, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_merged_sum, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_moved_sum, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_missing_sum, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_far, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_late_after_opening, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_was_ahead, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_short_store, setup, release_puts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
