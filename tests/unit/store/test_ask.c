// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Questions from text; what is asked of a store against what was put into it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "model/fold.h"
#include "store/ask.h"
#include "store_dir.h"

#define NOW  1795255200ll /* 2026-11-21 10:00 UTC, says date(1) */
#define HOUR 3600
#define DAY  86400
/* 2040-01-01: after now. */
#define T0   2208988800ll

static void test_times(void **state)
{
	static const struct {
		const char *text;
		int64_t time_s; /* -1: none */
	} cases[] = {
		{ "now", NOW },
		{ "-1h", NOW - HOUR },
		{ "now-2d", NOW - 2 * DAY },
		{ "now+10s", NOW + 10 },
		{ "now-1h30m", NOW - 5400 },
		{ "-90", NOW - 90 },
		{ "-1w", NOW - 7 * DAY },
		{ "-5min", NOW - 300 },
		{ "@1795255200", NOW },
		{ "1795255200", NOW },
		{ "@0", 0 },
		{ "2026-11-21T10:00", NOW },
		{ "2026-11-21T10:00:00Z", NOW },
		{ "2026-11-21 10:00", NOW },
		{ "2026-11-21T10:00:00.5Z", NOW },
		{ "2026-11-21T11:00+01:00", NOW },
		{ "2026-11-21T04:30:00-0530", NOW },
		{ "2026-11-21", NOW - 10 * HOUR },
		/* Of today, in the zone of the time. */
		{ "10:00", NOW },
		{ "09:59:58", NOW - 2 },
		{ "14:00", NOW + 4 * HOUR },
		{ "00:00:00.9", NOW - 10 * HOUR },
		{ "10:00Z", NOW },
		{ "00:30+14:00", NOW + 1800 },
		{ "1970-01-01", 0 },
		{ "2024-02-29", 1709164800 },
		{ "9999-12-31T23:59:59", 253402300799 },
		{ "", -1 },
		{ "-", -1 },
		{ "@", -1 },
		{ "@-1", -1 },
		{ "now-", -1 },
		{ "nowhere", -1 },
		{ "-1x", -1 },
		{ "-1h2", -1 },
		{ "--1h", -1 },
		{ "yesterday", -1 },
		{ "2026-11", -1 },
		{ "2026-02-30", -1 },
		{ "2026-13-01", -1 },
		{ "2026-11-21T", -1 },
		{ "2026-11-21T25:00", -1 },
		{ "2026-11-21T10:60", -1 },
		{ "2026-11-21T10:00Zulu", -1 },
		{ "2026-11-2110:00", -1 },
		{ "T10:00", -1 },
		{ "10:0", -1 },
		{ "25:00", -1 },
		{ "10:00 ", -1 },
		{ "10:00:00x", -1 },
		{ "2026-11-21T10:00+25:00", -1 },
		{ "-9999999999999999999h", -1 },
		{ "-253402300799w", -1 },
		{ "now-100y", -1 },
		{ "@253402300800", -1 },
		{ "99999999999999999999999", -1 },
		{ "\xff\xff", -1 },
	};
	int64_t time_s;
	size_t i;

	setenv("TZ", "UTC0", 1);
	tzset();
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int err;

		time_s = -1; /* which stays on error */
		err = sb_ask_time(cases[i].text, NOW, &time_s);
		if (err != (cases[i].time_s < 0 ? -EINVAL : 0) || time_s != cases[i].time_s)
			fail_msg("'%s': %d, %lld", cases[i].text, err, (long long)time_s);
	}
}

/* A number without a unit is a length only if nothing stands before it. */
static void test_lengths(void **state)
{
	static const struct {
		const char *text;
		int64_t length_s; /* -1: none */
	} cases[] = {
		{ "0", 0 },	  { "5", 5 },	 { "0m", 0 },	{ "0m5s", 5 }, { "1h30m", 5400 },
		{ "1min2s", 62 }, { "0m5", -1 }, { "1m5", -1 }, { "0s0", -1 }, { "5m0", -1 },
		{ "", -1 },	  { "m", -1 },	 { "5 ", -1 },	{ "5x", -1 },
	};
	int64_t length_s;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int err;

		length_s = -1; /* which stays on error */
		err = sb_ask_length(cases[i].text, &length_s);
		if (err != (cases[i].length_s < 0 ? -EINVAL : 0) || length_s != cases[i].length_s)
			fail_msg("'%s': %d, %lld", cases[i].text, err, (long long)length_s);
	}
}

/* Without an offset a time is of the zone of this place, and what is printed says its offset. */
static void test_zones(void **state)
{
	static const struct {
		const char *zone, *text, *printed;
		int64_t time_s;
	} cases[] = {
		/* By date(1). */
		{ "CET-1CEST,M3.5.0,M10.5.0/3", "2026-11-21T11:00", "2026-11-21T11:00:00+01:00",
		  NOW },
		{ "CET-1CEST,M3.5.0,M10.5.0/3", "2026-07-01T12:00", "2026-07-01T12:00:00+02:00",
		  1782900000 },
		{ "<+0545>-5:45", "2026-11-21 15:45", "2026-11-21T15:45:00+05:45", NOW },
		{ "<+0545>-5:45", "15:45", "2026-11-21T15:45:00+05:45", NOW },
		/* It is the day after there. */
		{ "<+14>-14", "00:00:05", "2026-11-22T00:00:05+14:00", NOW + 5 },
		{ "EST5", "2026-11-21", "2026-11-21T00:00:00-05:00", NOW - 5 * HOUR },
		{ "EST5", "2026-11-21T10:00Z", "2026-11-21T05:00:00-05:00", NOW },
		{ "UTC0", "2026-11-21T10:00", "2026-11-21T10:00:00Z", NOW },
	};
	char printed[SB_ASK_TIME_BYTES];
	int64_t time_s;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setenv("TZ", cases[i].zone, 1);
		tzset();
		assert_int_equal(sb_ask_time(cases[i].text, NOW, &time_s), 0);
		assert_int_equal(time_s, cases[i].time_s);
		sb_ask_print_time(time_s, printed);
		assert_string_equal(printed, cases[i].printed);
		assert_int_equal(sb_ask_time(printed, NOW, &time_s), 0);
		assert_int_equal(time_s, cases[i].time_s);
	}
	setenv("TZ", "UTC0", 1);
	tzset();
}

static void test_range(void **state)
{
	struct sb_ask ask = {};
	const char *why = NULL;

	assert_int_equal(sb_ask_range(&ask, NULL, NULL, NOW, &why), 0);
	assert_int_equal(ask.from_s, NOW - HOUR);
	/* The second that has begun is in the range. */
	assert_int_equal(ask.to_s, NOW + 1);
	assert_int_equal(sb_ask_range(&ask, "now", "now", NOW, &why), 0);
	assert_int_equal(ask.from_s, NOW);
	assert_int_equal(ask.to_s, NOW + 1);
	assert_int_equal(sb_ask_range(&ask, "-0s", "now-0s", NOW, &why), 0);
	assert_int_equal(ask.from_s, NOW);
	assert_int_equal(ask.to_s, NOW + 1);
	assert_int_equal(sb_ask_range(&ask, NULL, "+0", NOW, &why), 0);
	assert_int_equal(ask.from_s, NOW - HOUR);
	assert_int_equal(ask.to_s, NOW + 1);
	/* A time that is given as such is exclusive. */
	assert_int_equal(sb_ask_range(&ask, NULL, "@1795255200", NOW, &why), 0);
	assert_int_equal(ask.to_s, NOW);
	assert_int_equal(sb_ask_range(&ask, NULL, "-1d", NOW, &why), 0);
	assert_int_equal(ask.from_s, NOW - DAY - HOUR);
	assert_int_equal(ask.to_s, NOW - DAY);
	assert_int_equal(sb_ask_range(&ask, "-1h", "-2h", NOW, &why), -EINVAL);
	assert_string_equal(why, "the range ends before it begins; choose an earlier start or a "
				 "later end");
	assert_int_equal(sb_ask_range(&ask, "+1h", NULL, NOW, &why), -EINVAL);
	assert_string_equal(why, "the range begins in the future; choose an earlier start");
	assert_int_equal(sb_ask_range(&ask, "x", NULL, NOW, &why), -EINVAL);
	assert_non_null(strstr(why, "the start"));
	assert_int_equal(sb_ask_range(&ask, NULL, "x", NOW, &why), -EINVAL);
	assert_non_null(strstr(why, "end"));
	sb_ask_release(&ask);
}

static void test_rules(void **state)
{
	static const struct {
		const char *text;
		int err;
		const char *kind, *rules;
	} cases[] = {
		{ "service=a,b", 0, "oncpu", "service=a,b" },
		{ "kind=offcpu", 0, "offcpu", "" },
		{ "region!~^eu", 0, "oncpu", "region!~^eu" },
		{ "url=~a{2}=b", 0, "oncpu", "url=~a{2}=b" },
		{ "{}", 0, "oncpu", "" },
		{ "oncpu{}", 0, "oncpu", "" },
		{ "trace:ssl{}", 0, "trace:ssl", "" },
		{ "car.latency:fsync{}", 0, "latency:fsync", "service=car" },
		{ "io{service=\"car\"}", 0, "io", "service=car" },
		{ "car{}", 0, "oncpu", "service=car" },
		{ "car.offcpu{region!=\"eu\", pod=~\"^x\"}", 0, "offcpu",
		  "service=car region!=eu pod=~^x" },
		{ "ride.cpu{}", 0, "oncpu", "service=ride" },
		{ "{a=\"q\\\"}\\\\\"}", 0, "oncpu", "a=q\"}\\" },
		{ "{kind=\"wall\"}", 0, "wall", "" },
		{ "", -EINVAL, NULL, NULL },
		{ "service", -EINVAL, NULL, NULL },
		{ "{", -EINVAL, NULL, NULL },
		{ "{a}", -EINVAL, NULL, NULL },
		{ "{a=b}", -EINVAL, NULL, NULL },
		{ "{a=\"b\"", -EINVAL, NULL, NULL },
		{ "{a=\"b}", -EINVAL, NULL, NULL },
		{ "{a=\"b\"}x", -EINVAL, NULL, NULL },
		{ "{a=\"b\"c=\"d\"}", -EINVAL, NULL, NULL },
		{ "{=\"b\"}", -EINVAL, NULL, NULL },
		{ "{a=~\"(\"}", -EINVAL, NULL, NULL },
	};
	char *longest = malloc(5002);
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sb_ask ask = {};
		struct sb_str rules = {};
		int err = sb_ask_rule(&ask, cases[i].text);

		if (err != cases[i].err)
			fail_msg("'%s': %d", cases[i].text, err);
		assert_int_equal(sb_tag_rules_print(&ask.rules, &rules), 0);
		if (!err) {
			assert_string_equal(sb_ask_kind(&ask), cases[i].kind);
			assert_string_equal(rules.len ? rules.s : "", cases[i].rules);
		}
		sb_str_release(&rules);
		sb_ask_release(&ask);
	}
	memset(longest, 'a', 5000);
	memcpy(longest + 5000, "=", 2);
	assert_int_equal(sb_ask_rule(&(struct sb_ask){}, longest), -EINVAL);
	free(longest);
}

/* A store. */

static void add(struct sb_profile *profile, uint32_t series, const char *const names[], size_t nr,
		uint64_t weight)
{
	uint32_t ids[4];
	const struct sb_row row = { ids, nr, .series = series, .weight = weight };
	size_t i;

	for (i = 0; i < nr; i++)
		assert_int_equal(sb_profile_frame(profile,
						  &(struct sb_frame){ .name = names[i],
								      .kind = SB_FRAME_USER },
						  &ids[i]),
				 0);
	assert_int_equal(sb_profile_add_row(profile, &row), 0);
}

/* main;work and main;rest of service @i, 7 + @i to 3, in a block of 10 s. */
static void put(struct sb_store *store, int64_t at_s, const char *kind, const char *unit)
{
	static const char *const work[] = { "main", "work" }, *const rest[] = { "main", "rest" };
	struct sb_store_series series[3] = {};
	struct sb_tag tags[3][2];
	char service[3][8];
	struct sb_store_block block = {
		.begin_s = at_s,
		.kind = kind,
		.unit = unit,
		.figure = { [SB_BLOCK_SAMPLED_MS] = 10000,
			    [SB_BLOCK_HZ_MS] = 990000,
			    [SB_BLOCK_SAMPLES] = 33,
			    [SB_BLOCK_LOST] = 2,
			    [SB_BLOCK_CUT] = 1 },
		.series = series,
		.nr = 3,
	};
	struct sb_profile *profile;
	uint32_t i;

	assert_int_equal(sb_profile_new(&profile), 0);
	for (i = 0; i < 3; i++) {
		add(profile, i, work, 2, 7 + i);
		add(profile, i, rest, 2, 3);
		snprintf(service[i], sizeof(service[i]), "s%u", i);
		tags[i][0] = (struct sb_tag){ "pid", service[i], true };
		tags[i][1] = (struct sb_tag){ "service", service[i], false };
		series[i] = (struct sb_store_series){ tags[i], 2 };
	}
	assert_int_equal(sb_profile_seal(profile), 0);
	block.profile = profile;
	assert_int_equal(sb_store_put(store, &block), 0);
	sb_profile_free(profile);
}

/* An hour, of which minutes 20 to 30 were not recorded; a little of another kind. */
static struct sb_store *fill(void)
{
	struct sb_store *store;
	int64_t at_s;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	for (at_s = T0; at_s < T0 + HOUR + 100; at_s += 10) {
		if (at_s < T0 + 1200 || at_s >= T0 + 1800)
			put(store, at_s, "oncpu", "samples");
		if (at_s < T0 + 600)
			put(store, at_s, "offcpu", "us");
	}
	sb_store_close(store);
	assert_int_equal(sb_store_open(dir, &store), 0);
	return store;
}

/* The file of blocks of 10 s. */
static void remove_fine(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/10s/20400101.sb", dir);
	assert_int_equal(unlink(path), 0);
}

static void expect_meta(const struct sb_profile *profile, const char *key, const char *value)
{
	struct sb_fold_meta meta = {};
	const char *have;

	while (sb_fold_next_meta(profile, &meta) && strcmp(meta.key, key))
		;
	have = meta.key ? meta.value : NULL;
	if (!value != !have || (value && strcmp(have, value)))
		fail_msg("%s is '%s', not '%s'", key, have ? have : "(none)",
			 value ? value : "(none)");
}

static void test_profile(void **state)
{
	struct sb_row row;
	struct sb_store *store = fill();
	struct sb_ask ask = { .from_s = T0, .to_s = T0 + 600, .by = "service" };
	struct sb_store_answer answer;
	struct sb_profile *profile;

	assert_int_equal(sb_ask_profile(store, &ask, &profile, &answer), 0);
	assert_int_equal(answer.weight, 60 * 33);
	expect_meta(profile, "kind", "oncpu");
	expect_meta(profile, "unit", "samples");
	expect_meta(profile, "hz", "99");
	expect_meta(profile, "dur_us", "600000000");
	expect_meta(profile, "start_us", "2208988800000000");
	expect_meta(profile, "by", "service");
	expect_meta(profile, "n", "1980");
	expect_meta(profile, "lost", "120");
	expect_meta(profile, "trunc", "0");
	expect_meta(profile, "from", "2040-01-01T00:00:00Z");
	expect_meta(profile, "to", "2040-01-01T00:10:00Z");
	expect_meta(profile, "tags", NULL);
	row = sb_profile_row_at(profile, 0);
	assert_int_equal(row.nr, 3);
	assert_int_equal(row.weight, 60 * 9);
	assert_string_equal(sb_profile_frame_at(profile, row.frames[0])->name, "s2");
	assert_string_equal(sb_profile_frame_at(profile, row.frames[2])->name, "work");
	sb_profile_free(profile);
	/* Kinds do not mix; a rule takes its share of the waits. */
	assert_int_equal(sb_ask_rule(&ask, "offcpu{service=\"s0\"}"), 0);
	ask.by = "service,nothing";
	assert_int_equal(sb_ask_profile(store, &ask, &profile, &answer), 0);
	assert_int_equal(answer.weight, 60 * 10);
	expect_meta(profile, "unit", "us");
	expect_meta(profile, "hz", NULL);
	expect_meta(profile, "n", "600");
	expect_meta(profile, "tags", "service=s0");
	row = sb_profile_row_at(profile, 0);
	assert_int_equal(row.nr, 4);
	assert_string_equal(sb_profile_frame_at(profile, row.frames[1])->name, "(none)");
	sb_profile_free(profile);
	sb_ask_release(&ask);
	/* Nothing was recorded then. */
	ask = (struct sb_ask){ .from_s = T0 + 1200, .to_s = T0 + 1800 };
	assert_int_equal(sb_ask_profile(store, &ask, &profile, &answer), 0);
	assert_int_equal(answer.nr_blocks, 0);
	assert_int_equal(sb_profile_nr_stacks(profile), 0);
	expect_meta(profile, "dur_us", "0");
	expect_meta(profile, "n", "0");
	sb_profile_free(profile);
	sb_store_close(store);
}

/* One of two series has stacks that were cut, the other one frames without names. */
static void put_marked(struct sb_store *store, const char *kind, const char *unit)
{
	static const struct sb_frame frames[] = {
		{ .name = "main", .kind = SB_FRAME_USER },
		{ .name = "[truncated: too deep]",
		  .kind = SB_FRAME_MARK,
		  .mark = SB_ATTR_TRUNCATED },
		{ .name = "[m+0x12]", .kind = SB_FRAME_USER, .is_unnamed = true },
	};
	struct sb_tag tags[2] = { { "service", "cut", false }, { "service", "unnamed", false } };
	struct sb_store_series series[2] = { { &tags[0], 1 }, { &tags[1], 1 } };
	struct sb_store_block block = {
		.begin_s = T0,
		.kind = kind,
		.unit = unit,
		.figure = { [SB_BLOCK_SAMPLED_MS] = 10000, [SB_BLOCK_SAMPLES] = 30 },
		.series = series,
		.nr = 2,
	};
	struct sb_profile *profile;
	uint32_t ids[3], i;
	struct sb_row row = { .frames = ids };

	assert_int_equal(sb_profile_new(&profile), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(sb_profile_frame(profile, &frames[0], &ids[0]), 0);
		assert_int_equal(sb_profile_frame(profile, &frames[i + 1], &ids[1]), 0);
		ids[2] = ids[1];
		row.nr = i + 2;
		row.series = i;
		row.weight = 100 * (i + 1);
		assert_int_equal(sb_profile_add_row(profile, &row), 0);
	}
	assert_int_equal(sb_profile_seal(profile), 0);
	block.profile = profile;
	assert_int_equal(sb_store_put(store, &block), 0);
	sb_profile_free(profile);
}

/* What is said of an answer's stacks is of those that it is made of, however it is asked and
 * cut. */
static void test_marks(void **state)
{
	static const struct {
		const char *rule, *trunc, *nosym;
	} cases[] = {
		{ "service!=x", "100", "400" },
		{ "service=cut", "100", "0" },
		{ "service=unnamed", "0", "400" },
		/* 30 waits of 300 us. */
		{ "offcpu{service=\"cut\"}", "10", "0" },
		{ "offcpu{service=\"unnamed\"}", "0", "40" },
	};
	struct sb_profile *profile;
	struct sb_store *store;
	size_t i, k;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	put_marked(store, "oncpu", "samples");
	put_marked(store, "offcpu", "us");
	for (i = 0; i < 2 * SB_ARRAY_SIZE(cases); i++) {
		struct sb_ask ask = { .from_s = T0, .to_s = T0 + 10 };

		k = i / 2;
		ask.nr_nodes_max = i % 2 ? 2 : 0;
		assert_int_equal(sb_ask_rule(&ask, cases[k].rule), 0);
		assert_int_equal(sb_ask_profile(store, &ask, &profile, NULL), 0);
		expect_meta(profile, "trunc", cases[k].trunc);
		expect_meta(profile, "nosym", cases[k].nosym);
		sb_profile_free(profile);
		sb_ask_release(&ask);
	}
	sb_store_close(store);
}

static void test_by(void **state)
{
	struct sb_store *store = fill();
	struct sb_ask ask = { .from_s = T0, .to_s = T0 + HOUR, .by = "service" };
	sb_cleanup(sb_str_release) struct sb_str why = {};

	assert_int_equal(sb_ask_check_by(store, &ask, &why), 0);
	ask.by = "pid"; /* in blocks of 10 s only */
	assert_int_equal(sb_ask_check_by(store, &ask, &why), 0);
	ask.by = "service,nosuch";
	assert_int_equal(sb_ask_check_by(store, &ask, &why), -ENOENT);
	assert_string_equal(
		why.s, "nothing in this time range has the tag 'nosuch'; the tags are service");
	/* Nothing was recorded then: that is for others to say. */
	ask.from_s = T0 + 1200;
	ask.to_s = T0 + 1800;
	assert_int_equal(sb_ask_check_by(store, &ask, &why), 0);
	sb_store_close(store);
}

/* What sums do not have is summed from what has it. */
static void test_wide(void **state)
{
	struct sb_row row;
	struct sb_store *store = fill();
	struct sb_ask ask = { .from_s = T0, .to_s = T0 + HOUR, .by = "pid" };
	const struct sb_timeline_opts opts = { .step_s = 1200 };
	struct sb_timeline *timeline;
	struct sb_store_answer answer;
	struct sb_profile *profile;

	assert_int_equal(sb_ask_profile(store, &ask, &profile, &answer), 0);
	assert_true(answer.is_fine_only);
	assert_int_equal(answer.weight, 300 * 33);
	row = sb_profile_row_at(profile, 0);
	assert_string_equal(sb_profile_frame_at(profile, row.frames[0])->name, "s2");
	assert_int_equal(row.weight, 300 * 9);
	sb_profile_free(profile);
	ask.by = NULL;
	assert_int_equal(sb_ask_rule(&ask, "pid=s1"), 0);
	assert_int_equal(sb_ask_profile(store, &ask, &profile, &answer), 0);
	assert_int_equal(answer.weight, 300 * 11);
	sb_profile_free(profile);
	assert_int_equal(sb_store_timeline(store, &ask, &opts, &timeline), 0);
	assert_int_equal(timeline->series.at[0].weights[0], 120 * 11);
	assert_int_equal(timeline->series.at[0].weights[1], 60 * 11);
	sb_timeline_free(timeline);
	sb_ask_release(&ask);
	/* Others are as quick as ever. */
	ask = (struct sb_ask){ .from_s = T0, .to_s = T0 + HOUR, .by = "service" };
	assert_int_equal(sb_ask_profile(store, &ask, &profile, &answer), 0);
	assert_false(answer.is_fine_only);
	assert_int_equal(answer.nr_blocks, 1);
	sb_profile_free(profile);
	sb_store_close(store);
}

/* Two hours of waits: some all the time, and one of 5 ms. */
static struct sb_store *fill_waits(const char *unit)
{
	static const char *const always[] = { "main", "always" },
				 *const other[] = { "main", "other" },
				 *const once[] = { "main", "once" };
	struct sb_store_series series = {};
	struct sb_store_block block = {
		.kind = "offcpu", .unit = unit, .series = &series, .nr = 1
	};
	struct sb_store *store;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	for (block.begin_s = T0; block.begin_s < T0 + 2 * HOUR; block.begin_s += 10) {
		struct sb_profile *profile;

		assert_int_equal(sb_profile_new(&profile), 0);
		add(profile, 0, always, 2, 1000);
		add(profile, 0, other, 2, 700 + block.begin_s % 70);
		if (block.begin_s == T0 + 1230)
			add(profile, 0, once, 2, 5000);
		assert_int_equal(sb_profile_seal(profile), 0);
		block.profile = profile;
		assert_int_equal(sb_store_put(store, &block), 0);
		sb_profile_free(profile);
	}
	assert_int_equal(sb_store_put(store, &(struct sb_store_block){ .begin_s = T0 + 2 * DAY,
								       .kind = "offcpu",
								       .unit = unit }),
			 0);
	sb_store_close(store);
	assert_int_equal(sb_store_open(dir, &store), 0);
	return store;
}

/* The same as if nothing was to be compared, and whether it is known how uneven they are:
 * @is_known. */
static void expect_compared(struct sb_store *store, int64_t from_s, int64_t to_s, bool is_known)
{
	struct sb_ask ask = { .from_s = from_s, .to_s = to_s };
	struct sb_profile *plain, *compared;
	size_t i;

	assert_int_equal(sb_ask_set_kind(&ask, "offcpu"), 0);
	assert_int_equal(sb_ask_profile(store, &ask, &plain, NULL), 0);
	ask.is_compared = true;
	assert_int_equal(sb_ask_profile(store, &ask, &compared, NULL), 0);
	assert_int_equal(sb_profile_nr_stacks(plain), 3);
	assert_int_equal(sb_profile_nr_stacks(compared), 3);
	for (i = 0; i < 3; i++) {
		const struct sb_row row = sb_profile_row_at(compared, i);
		const struct sb_row row_plain = sb_profile_row_at(plain, i);
		double squares = sb_profile_squares_at(compared, i),
		       is_one = squares / (double)row.weight / (double)row.weight;

		assert_int_equal(row.weight, row_plain.weight);
		assert_string_equal(sb_profile_frame_at(compared, row.frames[1])->name,
				    sb_profile_frame_at(plain, row_plain.frames[1])->name);
		assert_true(sb_profile_squares_at(plain, i) == 0);
		if (!is_known)
			assert_true(squares == 0);
		else if (row.weight == 5000)
			assert_true(is_one > 0.9 && is_one <= 1);
		else
			assert_true(is_one > 0 && is_one < 0.05);
	}
	assert_int_equal(sb_profile_metadata(compared)->nr_samples,
			 sb_profile_metadata(plain)->nr_samples);
	expect_meta(compared, "from", sb_profile_metadata(plain)->from);
	sb_profile_free(plain);
	sb_profile_free(compared);
	sb_ask_release(&ask);
}

static void test_compared(void **state)
{
	struct sb_store *store = fill_waits("us");

	expect_compared(store, T0, T0 + 2 * HOUR, true);
	expect_compared(store, T0 + 1003, T0 + 1507, true);
	expect_compared(store, T0 + 1200, T0 + 1270, false);
	/* By sums of ten minutes then; within one there is nothing to be learned. */
	remove_fine();
	sb_store_close(store);
	assert_int_equal(sb_store_open(dir, &store), 0);
	expect_compared(store, T0, T0 + 2 * HOUR, true);
	expect_compared(store, T0 + 1003, T0 + 1507, false);
	sb_store_close(store);
}

/* Samples are as many as they weigh. */
static void test_compared_counts(void **state)
{
	struct sb_store *store = fill_waits("samples");

	expect_compared(store, T0, T0 + 2 * HOUR, false);
	sb_store_close(store);
}

/* Few nodes: no weight is lost, and each node that is left has what it had. */
static void test_nodes_max(void **state)
{
	struct sb_row row;
	struct sb_store *store = fill();
	struct sb_ask ask = { .from_s = T0, .to_s = T0 + 600, .nr_nodes_max = 2 };
	struct sb_store_answer answer;
	struct sb_profile *profile;

	assert_int_equal(sb_ask_profile(store, &ask, &profile, &answer), 0);
	assert_int_equal(sb_profile_weight(profile), 60 * 33);
	assert_int_equal(sb_profile_nr_stacks(profile), 2);
	assert_int_equal(answer.cut_weight, 60 * 9);
	row = sb_profile_row_at(profile, 0);
	assert_int_equal(row.weight, 60 * 24);
	assert_string_equal(sb_profile_frame_at(profile, row.frames[1])->name, "work");
	row = sb_profile_row_at(profile, 1);
	assert_int_equal(row.weight, 60 * 9);
	assert_string_equal(sb_profile_frame_at(profile, row.frames[0])->name, "main");
	assert_string_equal(sb_profile_frame_at(profile, row.frames[1])->name, "(other)");
	sb_profile_free(profile);
	sb_store_close(store);
}

static void test_timeline(void **state)
{
	struct sb_store *store = fill();
	struct sb_ask ask = { .from_s = T0 + 5, .to_s = T0 + HOUR, .by = "service" };
	struct sb_timeline_opts opts = { .step_s = 300, .nr_series_max = 2 };
	struct sb_timeline *timeline;
	size_t i;

	assert_int_equal(sb_store_timeline(store, &ask, &opts, &timeline), 0);
	assert_int_equal(timeline->from_s, T0);
	assert_int_equal(timeline->nr_steps, 12);
	assert_string_equal(timeline->kind.unit, "samples");
	assert_int_equal(timeline->series.nr, 3);
	assert_string_equal(timeline->series.at[0].value, "s2");
	assert_string_equal(timeline->series.at[1].value, "s1");
	assert_string_equal(timeline->series.at[2].value, "(other)");
	for (i = 0; i < 12; i++) {
		bool is_there = i < 4 || i >= 6;

		assert_int_equal(timeline->sampled_ms[i], is_there ? 300000 : 0);
		assert_int_equal(timeline->lost[i], is_there ? 60 : 0);
		assert_int_equal(timeline->series.at[0].weights[i], is_there ? 30 * 12 : 0);
		assert_int_equal(timeline->series.at[2].weights[i], is_there ? 30 * 10 : 0);
	}
	sb_timeline_free(timeline);
	/* Steps of their own choice are few enough, and add up to the same. */
	ask.by = NULL;
	opts = (struct sb_timeline_opts){ .nr_steps_max = 7 };
	assert_int_equal(sb_store_timeline(store, &ask, &opts, &timeline), 0);
	assert_int_equal(timeline->step_s, 600);
	assert_int_equal(timeline->series.nr, 1);
	assert_int_equal(timeline->series.at[0].weight, 300 * 33);
	sb_timeline_free(timeline);
	/* An hour that ends now is a second longer. */
	ask.from_s = T0;
	ask.to_s = T0 + HOUR + 1;
	opts = (struct sb_timeline_opts){ .nr_steps_max = 60 };
	assert_int_equal(sb_store_timeline(store, &ask, &opts, &timeline), 0);
	assert_int_equal(timeline->step_s, 60);
	sb_timeline_free(timeline);
	opts = (struct sb_timeline_opts){ .step_s = 15 };
	assert_int_equal(sb_store_timeline(store, &ask, &opts, &timeline), -EINVAL);
	opts.step_s = 10;
	ask.to_s = T0 + 10 * DAY;
	assert_int_equal(sb_store_timeline(store, &ask, &opts, &timeline), -E2BIG);
	sb_store_close(store);
}

static uint64_t weight_of(struct sb_store *store, const struct sb_ask *ask,
			  struct sb_store_answer *answer)
{
	struct sb_profile *profile;

	assert_int_equal(sb_ask_profile(store, ask, &profile, answer), 0);
	sb_profile_free(profile);
	return answer->weight;
}

/* Blocks of 10 s are gone: each step has whole sums, and none is in two of them. */
static void test_coarse_steps(void **state)
{
	struct sb_store *store = fill();
	struct sb_ask ask = { .from_s = T0 + 300, .to_s = T0 + HOUR };
	struct sb_timeline_opts opts;
	struct sb_timeline *timeline;

	remove_fine();
	for (opts = (struct sb_timeline_opts){ .step_s = 10 }; opts.step_s < 2000;
	     opts.step_s += 10) {
		assert_int_equal(sb_store_timeline(store, &ask, &opts, &timeline), 0);
		if (timeline->step_s % 600 == 0)
			assert_int_equal(timeline->series.at[0].weight, 300 * 33);
		assert_int_equal(timeline->answer.weight, timeline->series.at[0].weight);
		assert_in_range(timeline->series.at[0].weight, 240 * 33, 300 * 33);
		assert_int_equal(timeline->answer.nr_damaged, 0);
		sb_timeline_free(timeline);
	}
	sb_store_close(store);
}

/* The same, while there are new ones of that day. */
static void test_made_anew(void **state)
{
	struct sb_store *store = fill();
	struct sb_ask ask = { .from_s = T0 + 300, .to_s = T0 + 400 };
	struct sb_store_answer answer;

	sb_store_close(store);
	remove_fine();
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	put(store, T0 + 2 * HOUR, "oncpu", "samples");
	assert_int_equal(weight_of(store, &ask, &answer), 60 * 33);
	assert_int_equal(answer.from_s, T0);
	assert_int_equal(answer.to_s, T0 + 600);
	/* Nor is one of another kind of that time. */
	put(store, T0 + 300, "offcpu", "us");
	assert_int_equal(weight_of(store, &ask, &answer), 60 * 33);
	/* One that is left of many is not all that there was. */
	put(store, T0 + 310, "oncpu", "samples");
	assert_int_equal(weight_of(store, &ask, &answer), 61 * 33);
	assert_int_equal(answer.from_s, T0);
	assert_int_equal(answer.to_s, T0 + 600);
	ask = (struct sb_ask){ .from_s = T0 + 1000, .to_s = T0 + 1100 };
	assert_int_equal(weight_of(store, &ask, &answer), 60 * 33);
	ask = (struct sb_ask){ .from_s = T0, .to_s = T0 + DAY };
	assert_int_equal(weight_of(store, &ask, &answer), 302 * 33);
	ask.from_s = T0 + 2 * HOUR + 10;
	assert_int_equal(weight_of(store, &ask, &answer), 0);
	sb_store_close(store);
}

/* A recorder that began in the middle of a period, or stood still in it, has lost nothing. */
static void test_gap(void **state)
{
	struct sb_ask ask = { .from_s = T0 + 300, .to_s = T0 + 400 };
	struct sb_store_answer answer;
	struct sb_store *store;
	int64_t at_s;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	for (at_s = T0 + 200; at_s < T0 + DAY + 700; at_s += at_s < T0 + 7000 ? 10 : 1010)
		put(store, at_s, "oncpu", "samples");
	assert_int_equal(weight_of(store, &ask, &answer), 10 * 33);
	assert_int_equal(answer.from_s, T0 + 300);
	assert_int_equal(answer.to_s, T0 + 400);
	ask = (struct sb_ask){ .from_s = T0, .to_s = T0 + 10000 };
	assert_int_equal(weight_of(store, &ask, &answer), 683 * 33);
	sb_store_close(store);
}

static void test_tags(void **state)
{
	struct sb_store *store = fill();
	struct sb_ask ask = { .from_s = T0, .to_s = T0 + 500 };
	struct sb_tags *tags;

	assert_int_equal(sb_store_tags(store, &ask, 2, &tags), 0);
	assert_int_equal(tags->keys.nr, 2);
	assert_string_equal(tags->keys.at[0].key, "pid");
	assert_true(tags->keys.at[0].is_wide);
	assert_string_equal(tags->keys.at[1].key, "service");
	assert_int_equal(tags->keys.at[1].values.nr, 2);
	assert_string_equal(tags->keys.at[1].values.at[0].value, "s2");
	assert_int_equal(tags->keys.at[1].values.at[0].weight, 50 * 12);
	assert_int_equal(tags->keys.at[1].nr_more, 1);
	assert_int_equal(tags->keys.at[1].weight_more, 50 * 10);
	sb_tags_free(tags);
	/* Sums have no wide tags. */
	ask.to_s = T0 + 600;
	assert_int_equal(sb_ask_rule(&ask, "service!=s2"), 0);
	assert_int_equal(sb_store_tags(store, &ask, 0, &tags), 0);
	assert_int_equal(tags->keys.nr, 1);
	assert_int_equal(tags->keys.at[0].values.nr, 2);
	sb_tags_free(tags);
	sb_ask_release(&ask);
	sb_store_close(store);
}

static void test_extents(void **state)
{
	struct sb_store_extent extents[SB_STORE_KINDS_MAX];
	struct sb_store *store = fill();

	assert_int_equal(sb_store_extents(store, extents), 2);
	assert_string_equal(extents[0].kind.name, "offcpu");
	assert_int_equal(extents[0].to_s, T0 + 600);
	assert_string_equal(extents[1].kind.name, "oncpu");
	assert_int_equal(extents[1].from_s, T0);
	assert_int_equal(extents[1].to_s, T0 + HOUR + 100);
	assert_int_equal(extents[1].hz, 99);
	sb_store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_zones),
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_rules),
		cmocka_unit_test_setup_teardown(test_profile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_marks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_by, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wide, setup, teardown),
		cmocka_unit_test_setup_teardown(test_compared, setup, teardown),
		cmocka_unit_test_setup_teardown(test_compared_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nodes_max, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timeline, setup, teardown),
		cmocka_unit_test_setup_teardown(test_coarse_steps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_made_anew, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tags, setup, teardown),
		cmocka_unit_test_setup_teardown(test_extents, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
