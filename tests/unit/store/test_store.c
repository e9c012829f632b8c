// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A store against a plain list of what was put into it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/fs.h"
#include "store/ask.h"
#include "store/late_blocks.h"
#include "store/store_priv.h"
#include "store_puts.h"

/* Any range is the sum of its blocks, whatever levels it is made of. */
static void test_sums(void **state)
{
	struct sb_store_answer answer;
	struct sb_store *store;
	uint64_t have[NR_STACKS];
	int64_t now_s = T0, from_s, to_s;
	uint32_t i;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	for (i = 0; i < 4000; i++) {
		assert_int_equal(put_block(store, now_s, random_of(4)), 0);
		/* Gaps, some of hours, one over the end of a month and another of a year. */
		now_s += 10 * (1 + (random_of(200) ? random_of(4) : random_of(2000)));
		now_s += i == 3000 ? 11 * DAY : i == 3600 ? 40 * DAY : 0;
		if (i % 1000 == 500) {
			sb_store_close(store);
			assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
		}
	}
	for (i = 0; i < 300; i++) {
		from_s = T0 + 10 * (int64_t)random_of((uint32_t)(now_s - T0) / 10);
		to_s = from_s +
		       10 * (1 + (int64_t)random_of(i % 3 ? 400 : (uint32_t)(now_s - T0) / 10));
		expect(store, from_s, to_s, (int)random_of(NR_SERVICES + 1) - 1);
	}
	/* Times that are no multiple of 10 are rounded outward. */
	from_s = puts_made.at[100].begin_s;
	ask(store, from_s + 3, from_s + 4, -1, have, &answer);
	assert_int_equal(answer.from_s, from_s);
	assert_int_equal(answer.to_s, from_s + 10);
	/* All, by days: a few blocks. */
	ask(store, 0, INT64_MAX, -1, have, &answer);
	assert_true(answer.nr_blocks < 400);
	expect(store, 0, INT64_MAX, 1);
	sb_store_close(store);
	assert_int_equal(sb_store_open(dir, &store), 0);
	expect(store, 0, INT64_MAX, -1);
	sb_store_close(store);
}

/* Only without blocks. */
static void test_remove_empty(void **state)
{
	struct sb_store *store;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	assert_int_equal(put_block(store, T0, 2), 0);
	sb_store_close(store);
	assert_int_equal(sb_store_remove_empty(dir), -ENOTEMPTY);
	assert_int_equal(sb_store_open(dir, &store), 0);
	expect(store, T0, T0 + 10, -1);
	sb_store_close(store);
	assert_int_equal(remove_below(dir), 0);
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	sb_store_close(store);
	assert_int_equal(sb_store_remove_empty(dir), 0);
	assert_int_equal(sb_store_remove_empty(dir), -ENOENT);
	/* For the teardown. */
	assert_int_equal(mkdir(dir, 0700), 0);
}

static const char *below(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void make_file(const char *name)
{
	int fd = open(below(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

/* A store with anything else in it stays whole, and so does one that is being written to. */
static void test_remove_others(void **state)
{
	static const char *const others[] = { "10min/20261121.sb", "1d/.other", "other" };
	struct sb_store *store;
	size_t i;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	assert_int_equal(sb_store_remove_empty(dir), -EBUSY);
	assert_int_equal(put_block(store, T0, 2), 0);
	sb_store_close(store);
	assert_int_equal(remove_below(dir), 0);
	for (i = 0; i < SB_ARRAY_SIZE(others); i++) {
		assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
		sb_store_close(store);
		make_file(others[i]);
		assert_int_equal(sb_store_remove_empty(dir), -ENOTEMPTY);
		assert_int_equal(access(below("10s"), F_OK), 0);
		assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
		assert_int_equal(put_block(store, T0, 2), 0);
		sb_store_close(store);
		assert_int_equal(remove_below(dir), 0);
	}
	/* For the teardown. */
	assert_int_equal(mkdir(dir, 0700), 0);
}

/* What another one's link leads to stays, also if the path ends in a slash. */
static void test_remove_link(void **state)
{
	char link[80];
	struct sb_store *store;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	sb_store_close(store);
	snprintf(link, sizeof(link), "%s-link", dir);
	assert_int_equal(symlink(dir, link), 0);
	assert_int_equal(sb_store_remove_empty(link), -ENOTDIR);
	assert_int_equal(sb_store_remove_empty(strcat(link, "/")), -ENOTDIR);
	assert_int_equal(sb_store_open(dir, &store), 0);
	sb_store_close(store);
	link[strlen(link) - 1] = '\0';
	assert_int_equal(unlink(link), 0);
}

/* A store of which only a part was made. */
static void test_remove_part(void **state)
{
	assert_int_equal(sb_store_remove_empty(dir), 0);
	assert_int_equal(mkdir(dir, 0700), 0);
	make_file("LOCK");
	assert_int_equal(mkdir(below("10s"), 0700), 0);
	assert_int_equal(sb_store_remove_empty(dir), 0);
	/* For the teardown. */
	assert_int_equal(mkdir(dir, 0700), 0);
}

static void *remove_often(void *arg)
{
	const bool *is_done = arg;

	while (!__atomic_load_n(is_done, __ATOMIC_RELAXED))
		(void)sb_store_remove_empty(dir);
	return NULL;
}

/* What can be opened for writing stays. */
static void test_remove_race(void **state)
{
	struct sb_store *store;
	bool is_done = false;
	pthread_t thread;
	size_t nr_open = 0;

	assert_int_equal(pthread_create(&thread, NULL, remove_often, &is_done), 0);
	while (nr_open < 1000) {
		if (sb_store_open_to_write(dir, &no_sync, &store))
			continue;
		nr_open++;
		assert_int_equal(access(below("10s"), F_OK), 0);
		assert_int_equal(access(below("1d"), F_OK), 0);
		assert_int_equal(access(below(SB_STORE_MARK), F_OK), 0);
		sb_store_close(store);
	}
	__atomic_store_n(&is_done, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	/* For the teardown. */
	(void)mkdir(dir, 0700);
}

static size_t nr_sums_open(const struct sb_store *store)
{
	size_t level, nr = 0;

	for (level = 1; level < SB_STORE_LEVELS; level++)
		nr += store->out[level].is_open;
	return nr;
}

/* Clocks are set back: what comes for an hour that is summed is in all sums of it. */
static void test_late(void **state)
{
	struct sb_store *store;
	uint32_t i;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	/* Dictionaries of sums are not held on to, but while such blocks come. */
	for (i = 0; i < 1000; i++) {
		assert_int_equal(put_block(store, T0 + 10 * i, 2), 0);
		assert_int_equal(nr_sums_open(store), 0);
	}
	for (i = 0; i < 10; i++) {
		assert_int_equal(put_block(store, T0 + 500 + 10 * i, 2), 0);
		assert_true(nr_sums_open(store) > 0);
	}
	assert_int_equal(put_block(store, T0 + 10 * 1000, 2), 0);
	assert_int_equal(nr_sums_open(store), 0);
	assert_int_equal(put_block(store, T0 + 2 * DAY, 2), 0);
	assert_int_equal(nr_sums_open(store), 0);
	expect(store, T0, T0 + 600, -1);
	expect(store, T0, T0 + HOUR, -1);
	expect(store, T0, T0 + DAY, -1);
	expect(store, T0 + 500, T0 + 510, -1);
	sb_store_close(store);
}

/* A block of one stack that began @lead_ms after @begin_s, and how long it was sampled. */
static void put_long(struct sb_store *store, int64_t begin_s, uint16_t lead_ms, uint64_t length_ms,
		     uint64_t weight)
{
	struct put one = { begin_s, 1, 0, 0, weight };
	struct sb_tag tag = { "service", "a", false };
	struct sb_store_series series = { &tag, 1 };
	struct sb_profile *profile = profile_of(&one);
	struct sb_store_block block = { begin_s, "oncpu", "samples", { length_ms },
					&series, 1,	  profile };

	block.lead_ms = lead_ms;
	block.figure[SB_BLOCK_HZ_MS] = 99 * length_ms;
	assert_int_equal(sb_store_put(store, &block), 0);
	sb_profile_free(profile);
}

static void expect_steps(struct sb_store *store, int64_t from_s, size_t nr,
			 const uint64_t (*want)[2])
{
	const struct sb_ask ask = { .from_s = from_s, .to_s = from_s + 10 * (int64_t)nr };
	struct sb_timeline *timeline;
	size_t i;

	assert_int_equal(sb_store_timeline(store, &ask, &(struct sb_timeline_opts){ .step_s = 10 },
					   &timeline),
			 0);
	assert_int_equal(timeline->nr_steps, nr);
	for (i = 0; i < nr; i++) {
		assert_int_equal(timeline->sampled_ms[i], want[i][0]);
		assert_int_equal(timeline->series.at[0].weights[i], want[i][1]);
	}
	assert_string_equal(timeline->kind.unit, "samples");
	assert_true(timeline->answer.from_s >= from_s && timeline->answer.to_s <= ask.to_s);
	sb_timeline_free(timeline);
}

/* The range of a result contains all of its last block. */
static void expect_end(struct sb_store *store, int64_t from_s, int64_t to_s, int64_t end_s)
{
	struct sb_ask ask = { .from_s = from_s, .to_s = to_s };
	char want[SB_ASK_TIME_BYTES];
	struct sb_store_answer answer;
	struct sb_profile *profile;

	assert_int_equal(sb_ask_profile(store, &ask, &profile, &answer), 0);
	assert_int_equal(answer.end_s, end_s);
	sb_ask_print_time(end_s, want);
	assert_string_equal(sb_profile_metadata(profile)->to, want);
	sb_profile_free(profile);
}

/* Kinds that there is no room for are left out, which is said. We never write so many. */
static void test_many_kinds(void **state)
{
	struct sb_store_extent extents[SB_STORE_KINDS_MAX];
	struct put one = { T0, 1, 0, 0, 1 };
	struct sb_tag tag = { "service", "a", false };
	struct sb_store_series series = { &tag, 1 };
	struct sb_profile *profile = profile_of(&one);
	struct sb_store *store;
	char name[16];
	int i;

	(void)state;
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	for (i = 0; i <= SB_STORE_KINDS_MAX; i++) {
		struct sb_store_block block = {
			T0, name, "samples", { 10000 }, &series, 1, profile
		};

		assert_false(store->has_told_kinds);
		snprintf(name, sizeof(name), "kind%d", i);
		assert_int_equal(sb_store_put(store, &block), 0);
		assert_int_equal(sb_store_extents(store, extents),
				 i < SB_STORE_KINDS_MAX ? i + 1 : SB_STORE_KINDS_MAX);
	}
	assert_true(store->has_told_kinds);
	sb_profile_free(profile);
	sb_store_close(store);
}

/* Under load a block is longer than its period: it is drawn as long as it is, and at its rate, not
 * as a peak and a gap. */
static void test_long_block(void **state)
{
	static const uint64_t want[][2] = {
		{ 10000, 100 }, { 10000, 100 }, { 10000, 100 }, { 4000, 40 }, { 6000, 60 },
	};
	struct sb_store_extent extents[SB_STORE_KINDS_MAX];
	struct sb_store *store;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	put_long(store, T0, 3, 10000, 100); /* a timer is not exact */
	put_long(store, T0 + 10, 0, 24000, 240);
	put_long(store, T0 + 40, 4000, 6000, 60);
	expect_steps(store, T0, 5, want);
	/* Ranges that begin, or are, within a block. */
	expect_steps(store, T0 + 20, 3, want + 2);
	expect_steps(store, T0 + 20, 1, want + 2);
	expect_end(store, T0, T0 + 10, T0 + 10);
	expect_end(store, T0, T0 + 20, T0 + 40);
	assert_int_equal(sb_store_extents(store, extents), 1);
	assert_int_equal(extents[0].to_s, T0 + 50);
	/* A last block of no time has no rate: the one before says it. */
	put_long(store, T0 + 50, 0, 0, 1);
	assert_int_equal(sb_store_extents(store, extents), 1);
	assert_int_equal(extents[0].to_s, T0 + 60);
	assert_int_equal(extents[0].hz, 99);
	sb_store_close(store);
	assert_int_equal(remove_below(dir), 0);
	/* The last one ends long after its period; and at midnight it is in another file. */
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	put_long(store, T0 + DAY - 10, 0, 20000, 200);
	assert_int_equal(sb_store_extents(store, extents), 1);
	assert_int_equal(extents[0].to_s, T0 + DAY + 10);
	put_long(store, T0 + DAY + 10, 0, 10000, 100);
	expect_steps(store, T0 + DAY, 2, want);
	sb_store_close(store);
}

static void count_late(void *arg, const struct sb_record *block)
{
	(*(int *)arg)++;
	assert_true(block->begin_s < T0 + 60);
}

static int late_of(struct sb_store *store, struct sb_read_place *place)
{
	int nr = 0;

	assert_int_equal(sb_store_late_blocks(store, place, T0 + 60, count_late, &nr), 0);
	return nr;
}

/* What is added for a time that is done with, also in a new file; each once, whoever kept the place
 * as text. */
static void test_late_place(void **state)
{
	struct sb_read_place place = {};
	struct sb_store *store;
	char text[512], cut[20];

	fill();
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	assert_int_equal(late_of(store, &place), 0);
	assert_int_equal(put_block(store, T0 + 300, 2), 0);
	assert_int_equal(late_of(store, &place), 0);
	assert_int_equal(put_block(store, T0 + 20, 2), 0);
	assert_int_equal(put_block(store, T0 - DAY, 2), 0);
	assert_int_equal(put_block(store, T0 + 400, 2), 0);
	sb_read_place_print(&place, text, sizeof(text));
	sb_read_place_parse(&place, text);
	assert_int_equal(late_of(store, &place), 2);
	assert_int_equal(late_of(store, &place), 0);
	sb_read_place_print(&place, text, sizeof(text));
	sb_read_place_print(&place, cut, sizeof(cut));
	/* The newest. */
	assert_string_equal(strchr(text, ' ') + 1, cut);
	sb_read_place_parse(&place, "5:6 7");
	assert_int_equal(place.nr, 1);
	sb_read_place_parse(&place, "253402300800:6 7:8");
	assert_int_equal(place.nr, 0);
	sb_store_close(store);
}

/* Two hosts in one: each range is the sum of both. */
static void test_merge(void **state)
{
	struct sb_store *store, *other;
	char path[80];
	uint32_t i;

	snprintf(path, sizeof(path), "%s-other", dir);
	assert_int_equal(sb_store_open_to_write(path, &no_sync, &other), 0);
	for (i = 0; i < 500; i++)
		assert_int_equal(put_block(other, T0 + 20 * i, 2), 0);
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	for (i = 0; i < 300; i++)
		assert_int_equal(put_block(store, T0 + 50 * i, 2), 0);
	assert_int_equal(sb_store_merge(store, other, T0 + 15000), 0);
	assert_int_equal(put_block(store, T0 + 2 * DAY, 1), 0);
	for (i = 0; i < 50; i++) {
		int64_t from_s = T0 + 10 * (int64_t)random_of(1500);

		expect(store, from_s, from_s + 10 * (1 + (int64_t)random_of(700)),
		       (int)random_of(NR_SERVICES + 1) - 1);
	}
	expect(store, T0, T0 + 3 * DAY, -1);
	sb_store_close(store);
	sb_store_close(other);
	assert_int_equal(remove_below(path), 0);
}

static void test_one_writer(void **state)
{
	struct sb_store *store, *other;
	char path[128];
	int fd;

	assert_int_equal(sb_store_open(dir, &store), -ENOTEMPTY);
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &other), -EBUSY);
	assert_int_equal(put_block(store, T0, 4), 0);
	assert_int_equal(sb_store_open(dir, &other), 0);
	expect(other, T0, T0 + 10, -1);
	assert_int_equal(put_block(store, T0 + 10, 4), 0);
	expect(other, T0, T0 + 20, -1);
	assert_int_equal(put_block(other, T0 + 20, 4), -EINVAL);
	assert_int_equal(put_block(store, T0 + 5, 1), -EINVAL);
	sb_store_close(other);
	sb_store_close(store);
	assert_int_equal(sb_store_open("/nonexistent", &store), -ENOENT);
	/* Of another version. */
	snprintf(path, sizeof(path), "%s/stackbpf-store", dir);
	fd = open(path, O_WRONLY | O_TRUNC);
	assert_int_equal(sb_write_all(fd, "stackbpf store 2\n", 17), 0);
	close(fd);
	assert_int_equal(sb_store_open(dir, &store), -EPROTO);
	/* Files of somebody else. */
	unlink(path);
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), -ENOTEMPTY);
}

/* What is too old goes, level by level; ranges are then as fine as what is left, and say so. */
static void test_expiry(void **state)
{
	struct sb_store_opts keep = { .no_sync = true, .keep_s = { DAY, 3 * DAY, 0, 0 } };
	uint64_t want[NR_STACKS], have[NR_STACKS];
	struct sb_store_answer answer;
	struct sb_store *store;
	uint32_t i;

	assert_int_equal(sb_store_open_to_write(dir, &keep, &store), 0);
	for (i = 0; i < 6 * 24 * 6; i++)
		assert_int_equal(put_block(store, T0 + 600 * i, 2), 0);
	assert_int_equal(sb_store_expire(store, T0 + 6 * DAY), 0);
	/* Of the first day, hours are left. */
	ask(store, T0 + 10 * HOUR + 100, T0 + 10 * HOUR + 200, -1, have, &answer);
	assert_int_equal(answer.from_s, T0 + 10 * HOUR);
	assert_int_equal(answer.to_s, T0 + 11 * HOUR);
	sum_of(T0 + 10 * HOUR, T0 + 11 * HOUR, -1, want);
	assert_memory_equal(have, want, sizeof(want));
	/* Of the fourth, ten minutes. */
	ask(store, T0 + 3 * DAY + 601, T0 + 3 * DAY + 700, -1, have, &answer);
	assert_int_equal(answer.from_s, T0 + 3 * DAY + 600);
	assert_int_equal(answer.to_s, T0 + 3 * DAY + 1200);
	expect(store, T0, T0 + 6 * DAY, -1);
	expect(store, T0 + 5 * DAY, T0 + 5 * DAY + 10, -1);
	sb_store_close(store);
	/* Not more than so many bytes: the finest first, never what is being written. */
	keep = (struct sb_store_opts){ .no_sync = true, .bytes_max = 1 };
	assert_int_equal(sb_store_open_to_write(dir, &keep, &store), 0);
	assert_int_equal(put_block(store, T0 + 6 * DAY, 2), 0);
	assert_int_equal(sb_store_expire(store, T0 + 6 * DAY), 0);
	expect(store, T0 + 6 * DAY, T0 + 7 * DAY, -1);
	sb_store_close(store);
}

/* More than there is place for is "(other)", with its weight. */
static void test_other(void **state)
{
	const uint32_t nr = SB_DICT_ROWS_MAX + 1000;
	uint64_t have[NR_STACKS];
	struct sb_store_series series = {};
	struct sb_store_block block = { T0, "oncpu", "samples", {}, &series, 1 };
	struct sb_store_query query = { .from_s = T0, .to_s = T0 + 10, .kind = "oncpu" };
	struct sb_store_answer answer;
	struct sb_profile *profile;
	struct sb_store *store;
	uint32_t ids[2], i;
	char name[16];

	assert_int_equal(sb_profile_new(&profile), 0);
	for (i = 0; i < nr; i++) {
		snprintf(name, sizeof(name), "%u", i % 2048);
		ids[0] = frame_of(profile, name);
		snprintf(name, sizeof(name), "%u", i / 2048);
		ids[1] = frame_of(profile, name);
		assert_int_equal(sb_profile_add(profile, ids, 2, 3), 0);
	}
	assert_int_equal(sb_profile_seal(profile), 0);
	block.profile = profile;
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	assert_int_equal(sb_store_put(store, &block), 0);
	ask(store, T0, T0 + 10, -1, have, &answer);
	assert_int_equal(answer.weight, 3ull * nr);
	assert_true(answer.figure[SB_BLOCK_OTHER] >= 3 * 1000);
	sb_profile_free(profile);
	assert_int_equal(sb_profile_new(&profile), 0);
	assert_int_equal(sb_store_query(store, &query, profile, &answer), 0);
	assert_int_equal(sb_profile_seal(profile), 0);
	ids[0] = sb_profile_row_at(profile, 0).frames[0];
	assert_string_equal(sb_profile_frame_at(profile, ids[0])->name, "(other)");
	assert_int_equal(sb_profile_row_at(profile, 0).weight, answer.figure[SB_BLOCK_OTHER]);
	sb_profile_free(profile);
	sb_store_close(store);
}

static void test_tags(void **state)
{
	static const struct {
		const char *rule;
		int err;
		bool matches;
	} cases[] = {
		{ "service=nginx", 0, true },	  { "service=php", 0, false },
		{ "service=php,nginx", 0, true }, { "service!=php,nginx", 0, false },
		{ "service!=php", 0, true },	  { "service=~^ng.*x$", 0, true },
		{ "service!~ng", 0, false },	  { "region=", 0, true },
		{ "region!=", 0, false },	  { "service=", 0, false },
		{ "service", -EINVAL, false },	  { "=x", -EINVAL, false },
		{ "a!b", -EINVAL, false },	  { "a~b", -EINVAL, false },
		{ "a=~(", -EINVAL, false },	  { "", -EINVAL, false },
	};
	static const struct sb_tag tags[] = { { "kind", "oncpu", false },
					      { "service", "nginx", false } };
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sb_tag_rules rules = {};

		assert_int_equal(sb_tag_rules_add(&rules, cases[i].rule), cases[i].err);
		if (!cases[i].err)
			assert_int_equal(sb_tag_rules_match(&rules, tags, 2), cases[i].matches);
		sb_tag_rules_release(&rules);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sums, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_remove_empty, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_remove_others, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_remove_link, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_remove_part, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_remove_race, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_late, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_many_kinds, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_long_block, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_late_place, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_merge, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_one_writer, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_expiry, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_other, setup, release_puts),
		cmocka_unit_test(test_tags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
