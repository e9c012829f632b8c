// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/fold.h"
#include "model/profile.h"
#include "read_meta.h"

static uint32_t frame(struct sb_profile *profile, const char *name, enum sb_frame_kind kind)
{
	uint32_t id;

	assert_int_equal(
		sb_profile_frame(profile, &(struct sb_frame){ .name = name, .kind = kind }, &id),
		0);
	return id;
}

static void test_frames_are_interned(void **state)
{
	struct sb_profile *profile;
	char name[] = "f";
	uint32_t f, g;

	assert_int_equal(sb_profile_new(&profile), 0);
	f = frame(profile, name, SB_FRAME_USER);
	name[0] = 'x'; /* the profile has its own copy */
	assert_string_equal(sb_profile_frame_at(profile, f)->name, "f");
	assert_int_equal(frame(profile, "f", SB_FRAME_USER), f);
	g = frame(profile, "f", SB_FRAME_KERNEL);
	assert_int_not_equal(g, f);
	assert_null(sb_profile_frame_at(profile, f)->module);
	assert_int_equal(sb_profile_nr_frames(profile), 2);
	sb_profile_free(profile);
}

static uint32_t attr(struct sb_profile *profile, const struct sb_attr *of)
{
	uint32_t id;

	assert_int_equal(sb_profile_attr(profile, of, &id), 0);
	return id;
}

/* What attributes are called, and that marks are known again by that. */
static void test_names_of_attributes(void **state)
{
	static const struct {
		struct sb_attr attr;
		const char *name;
	} cases[] = {
		{ { .kind = SB_ATTR_COMM, .text = "my-app 1/2" }, "my-app 1/2" },
		{ { .kind = SB_ATTR_PROCESS, .text = "my-app", .pid = 7 }, "my-app-7" },
		{ { .kind = SB_ATTR_THREAD, .text = "a/b", .pid = 7, .tid = 8 }, "a/b-7/8" },
		{ { .kind = SB_ATTR_CPU, .cpu = 3 }, "cpu 3" },
		{ { .kind = SB_ATTR_CGROUP, .text = "/a.slice" }, "/a.slice" },
		{ { .kind = SB_ATTR_CONTAINER, .text = "[host]" }, "[host]" },
		{ { .kind = SB_ATTR_LABEL, .key = "a=b", .text = "c" }, "a=b=c" },
		{ { .kind = SB_ATTR_TAG, .key = "host", .text = "web1" }, "web1" },
		{ { .kind = SB_ATTR_IDLE, .text = "epoll" }, "[idle: epoll]" },
		{ { .kind = SB_ATTR_LOCK, .text = "mutex" }, "[lock: mutex]" },
		{ { .kind = SB_ATTR_BLOCKED }, "[blocked]" },
		{ { .kind = SB_ATTR_STOPPED }, "[stopped]" },
		{ { .kind = SB_ATTR_RUNNING }, "[running]" },
		{ { .kind = SB_ATTR_RUNQUEUE }, "[runqueue]" },
		{ { .kind = SB_ATTR_THROTTLED }, "[throttled]" },
		{ { .kind = SB_ATTR_NOT_SAMPLED }, "[running: not sampled]" },
		{ { .kind = SB_ATTR_ALL_IDLE }, "[idle]" },
		{ { .kind = SB_ATTR_TRUNCATED, .text = "too deep" }, "[truncated: too deep]" },
		{ { .kind = SB_ATTR_TRUNCATED, .key = "php", .text = "x" }, "[php truncated: x]" },
		{ { .kind = SB_ATTR_LOST_STACK }, "[lost stack]" },
		{ { .kind = SB_ATTR_LOST_OBJECT }, "[lost object]" },
		{ { .kind = SB_ATTR_RESIDUAL }, "[residual]" },
	};
	static const char *const none[] = { "",
					    "[",
					    "]",
					    "main",
					    "[libc.so.6+0x12]",
					    "idle: epoll]",
					    "[idle: epoll",
					    "[running: x]",
					    "[runqueue] " };
	struct sb_profile *profile;
	size_t i;

	assert_int_equal(sb_profile_new(&profile), 0);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct sb_attr *want = &cases[i].attr;
		const uint32_t id = attr(profile, want);
		const struct sb_frame *shown = sb_profile_frame_at(profile, id);
		const bool is_mark = want->kind >= SB_ATTR_IDLE;

		assert_string_equal(shown->name, cases[i].name);
		assert_int_equal(shown->kind, is_mark ? SB_FRAME_MARK : SB_FRAME_ROOT);
		assert_int_equal(sb_profile_attr_at(profile, id)->kind, want->kind);
		assert_int_equal(attr(profile, want), id);
		if (is_mark)
			assert_int_equal(sb_fold_mark_kind(cases[i].name), want->kind);
	}
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_int_equal(sb_fold_mark_kind(none[i]), SB_ATTR_NONE);
	sb_profile_free(profile);
}

/* Attributes go where their frames go; what looks like one is none. */
static void test_attributes_are_copied(void **state)
{
	char text[] = "epoll";
	struct sb_profile *from, *to;
	const struct sb_attr *copied;
	uint32_t ids[3];
	struct sb_row row;

	assert_int_equal(sb_profile_new(&from), 0);
	assert_int_equal(sb_profile_new(&to), 0);
	ids[0] = frame(from, "[idle: epoll]", SB_FRAME_MARK);
	ids[1] = attr(from, &(struct sb_attr){ .kind = SB_ATTR_IDLE, .text = text });
	ids[2] = attr(from,
		      &(struct sb_attr){ .kind = SB_ATTR_THREAD, .text = "a", .pid = 3, .tid = 4 });
	text[0] = 'x';
	assert_int_not_equal(ids[0], ids[1]);
	assert_int_equal(sb_profile_attr_at(from, ids[0])->kind, SB_ATTR_NONE);
	assert_int_equal(sb_profile_add(from, ids, 3, 1), 0);
	frame(to, "other", SB_FRAME_USER);
	assert_int_equal(sb_profile_merge(to, from), 0);
	sb_profile_free(from);
	row = sb_profile_row_at(to, 0);
	assert_int_equal(sb_profile_attr_at(to, row.frames[0])->kind, SB_ATTR_NONE);
	copied = sb_profile_attr_at(to, row.frames[1]);
	assert_int_equal(copied->kind, SB_ATTR_IDLE);
	assert_string_equal(copied->text, "epoll");
	copied = sb_profile_attr_at(to, row.frames[2]);
	assert_int_equal(copied->kind, SB_ATTR_THREAD);
	assert_int_equal(copied->tid, 4);
	/* A frame that is given the number of an attribute of elsewhere shows none. */
	assert_int_equal(sb_profile_frame(to, &(struct sb_frame){ .name = "f", .attr = 1 }, ids),
			 0);
	assert_int_equal(sb_profile_attr_at(to, ids[0])->kind, SB_ATTR_NONE);
	sb_profile_free(to);
}

/* Series keep equal frames apart, also in a copy; among equal weights they are in order. */
static void test_series(void **state)
{
	struct sb_profile *profile, *copy;
	struct sb_row row = { .nr = 1, .weight = 5, .series = 12 };
	uint32_t f;
	size_t i;

	assert_int_equal(sb_profile_new(&profile), 0);
	f = frame(profile, "f", SB_FRAME_USER);
	row.frames = &f;
	assert_int_equal(sb_profile_add_row(profile, &row), 0);
	row.series = 9;
	assert_int_equal(sb_profile_add_row(profile, &row), 0);
	assert_int_equal(sb_profile_add_row(profile, &row), 0);
	row.series = 7;
	row.weight = 10;
	assert_int_equal(sb_profile_add_row(profile, &row), 0);
	assert_int_equal(sb_profile_new(&copy), 0);
	assert_int_equal(sb_profile_merge(copy, profile), 0);
	sb_profile_free(profile);
	assert_int_equal(sb_profile_seal(copy), 0);
	assert_int_equal(sb_profile_nr_stacks(copy), 3);
	for (i = 0; i < 3; i++) {
		static const struct sb_row want[] = { { .series = 7, .weight = 10 },
						      { .series = 9, .weight = 10 },
						      { .series = 12, .weight = 5 } };

		row = sb_profile_row_at(copy, i);
		assert_int_equal(row.series, want[i].series);
		assert_int_equal(row.weight, want[i].weight);
		assert_int_equal(row.nr, 1);
		assert_string_equal(sb_profile_frame_at(copy, row.frames[0])->name, "f");
	}
	sb_profile_free(copy);
}

static void test_equal_stacks_add_up_and_sort(void **state)
{
	struct sb_row row;
	struct sb_profile *profile;
	uint32_t ab[2], ba[2];

	assert_int_equal(sb_profile_new(&profile), 0);
	ab[0] = ba[1] = frame(profile, "b", SB_FRAME_USER);
	ab[1] = ba[0] = frame(profile, "a", SB_FRAME_USER);
	assert_int_equal(sb_profile_add(profile, ab, 2, 5), 0);
	assert_int_equal(sb_profile_add(profile, ba, 2, 7), 0);
	assert_int_equal(sb_profile_add(profile, ab, 1, 7), 0);
	assert_int_equal(sb_profile_add(profile, ab, 2, UINT32_MAX), 0);
	assert_int_equal(sb_profile_seal(profile), 0);
	assert_int_equal(sb_profile_nr_stacks(profile), 3);
	row = sb_profile_row_at(profile, 0);
	assert_int_equal(row.weight, 5ull + UINT32_MAX);
	assert_int_equal(row.nr, 2);
	assert_int_equal(row.frames[0], ab[0]);
	/* Equal weights: by name, "a;b" before "b". */
	row = sb_profile_row_at(profile, 1);
	assert_int_equal(row.frames[0], ba[0]);
	assert_int_equal(sb_profile_weight(profile), 19ull + UINT32_MAX);
	sb_profile_free(profile);
}

static void test_many_stacks_against_sums(void **state)
{
	enum { NR = 500 };
	uint64_t want[NR] = {}, weight, sum = 0;
	struct sb_profile *profile;
	uint32_t ids[NR];
	char name[16];
	size_t i;

	srand(7);
	assert_int_equal(sb_profile_new(&profile), 0);
	for (i = 0; i < NR; i++) {
		snprintf(name, sizeof(name), "f%zu", i);
		ids[i] = frame(profile, name, SB_FRAME_USER);
	}
	for (i = 0; i < 20000; i++) {
		size_t which = (size_t)rand() % NR;

		weight = (uint64_t)rand() % 100;
		want[which] += weight;
		assert_int_equal(sb_profile_add(profile, &ids[which], 1, weight), 0);
	}
	assert_int_equal(sb_profile_seal(profile), 0);
	for (i = 0; i < sb_profile_nr_stacks(profile); i++) {
		const struct sb_row row = sb_profile_row_at(profile, i);

		assert_int_equal(row.weight, want[row.frames[0]]);
		sum += row.weight;
	}
	assert_int_equal(sum, sb_profile_weight(profile));
	sb_profile_free(profile);
}

/* The frames of the two have other numbers; the original goes on afterwards. */
static void test_merge(void **state)
{
	struct sb_row row;
	struct sb_profile *from, *to;
	uint32_t a, b, ids[2];

	assert_int_equal(sb_profile_new(&from), 0);
	assert_int_equal(sb_profile_new(&to), 0);
	a = frame(from, "a", SB_FRAME_USER);
	b = frame(from, "b", SB_FRAME_KERNEL);
	assert_int_equal(sb_profile_add_row(from, &(struct sb_row){ .frames = (uint32_t[]){ a, b },
								    .nr = 2,
								    .weight = 5,
								    .nr_samples = 2 }),
			 0);
	assert_int_equal(sb_profile_add(from, (uint32_t[]){ b }, 1, 3), 0);
	assert_int_equal(read_meta(from, "kind", "oncpu"), 0);
	ids[1] = frame(to, "b", SB_FRAME_KERNEL);
	ids[0] = frame(to, "a", SB_FRAME_USER);
	assert_int_equal(
		sb_profile_add_row(
			to,
			&(struct sb_row){ .frames = ids, .nr = 2, .weight = 10, .nr_samples = 1 }),
		0);
	assert_int_equal(sb_profile_merge(to, from), 0);
	assert_int_equal(sb_profile_add(from, (uint32_t[]){ a }, 1, 100), 0);
	assert_int_equal(sb_profile_seal(to), 0);
	assert_int_equal(sb_profile_row_at(to, 0).nr_samples, 3);
	assert_int_equal(sb_profile_row_at(to, 1).nr_samples, 0);
	assert_int_equal(sb_profile_nr_stacks(to), 2);
	assert_int_equal(sb_profile_weight(to), 18);
	row = sb_profile_row_at(to, 0);
	assert_int_equal(row.weight, 15);
	assert_int_equal(row.nr, 2);
	assert_memory_equal(row.frames, ids, sizeof(ids));
	assert_null(sb_profile_metadata(to)->kind);
	assert_int_equal(sb_profile_weight(from), 108);
	sb_profile_free(from);
	sb_profile_free(to);
}

/* What was not looked up is found afterwards. */
static void test_pushed(void **state)
{
	struct sb_row row;
	const struct sb_frame a = { .name = "a", .module = "m", .kind = SB_FRAME_USER },
			      b = { .name = "b", .module = "m", .file = "f", .line = 3 };
	struct sb_profile *profile;
	uint32_t ids[2], id;

	assert_int_equal(sb_profile_new(&profile), 0);
	assert_int_equal(sb_profile_push_frame(profile, &a, &ids[0]), 0);
	assert_int_equal(sb_profile_push_frame(profile, &b, &ids[1]), 0);
	assert_int_equal(sb_profile_push(profile, ids, 2, 5), 0);
	assert_int_equal(sb_profile_push(profile, ids, 1, 3), 0);
	assert_int_equal(sb_profile_push(profile, ids, 0, 1), 0);
	assert_int_equal(sb_profile_frame(profile, &b, &id), 0);
	assert_int_equal(id, ids[1]);
	assert_int_equal(frame(profile, "a", SB_FRAME_USER), 3);
	assert_int_equal(sb_profile_add(profile, ids, 1, 30), 0);
	assert_int_equal(sb_profile_push(profile, &id, 1, 7), 0);
	assert_int_equal(sb_profile_add(profile, &id, 1, 70), 0);
	assert_int_equal(sb_profile_add(profile, NULL, 0, 10), 0);
	assert_int_equal(sb_profile_seal(profile), 0);
	assert_int_equal(sb_profile_weight(profile), 126);
	assert_int_equal(sb_profile_nr_stacks(profile), 4);
	assert_int_equal(sb_profile_nr_frames(profile), 4);
	row = sb_profile_row_at(profile, 0);
	assert_int_equal(row.weight, 77);
	assert_string_equal(sb_profile_frame_at(profile, row.frames[0])->module, "m");
	assert_string_equal(sb_profile_frame_at(profile, row.frames[0])->file, "f");
	row = sb_profile_row_at(profile, 1);
	assert_int_equal(row.weight, 33);
	row = sb_profile_row_at(profile, 2);
	assert_int_equal(row.weight, 11);
	assert_int_equal(row.nr, 1);
	assert_string_equal(sb_profile_frame_at(profile, row.frames[0])->name, SB_PROFILE_NO_STACK);
	sb_profile_free(profile);
}

/* Of each number of bytes, and all ties, against the order that it is to be. */
static void test_order(void **state)
{
	enum { NR = 300 };
	struct sb_profile *profile;
	uint32_t ids[NR], i;
	uint64_t weight, before = UINT64_MAX;
	const char *name, *name_before = "";
	char text[16];

	srand(11);
	assert_int_equal(sb_profile_new(&profile), 0);
	for (i = 0; i < NR; i++) {
		snprintf(text, sizeof(text), "%s%03u", i % 2 ? "f" : "functions",
			 (uint32_t)(i * 7919u) % NR);
		ids[i] = frame(profile, text, SB_FRAME_USER);
		weight = (uint64_t)(rand() % 3) << (rand() % 9 * 7);
		assert_int_equal(sb_profile_add(profile, &ids[i], 1, weight), 0);
	}
	assert_int_equal(sb_profile_seal(profile), 0);
	assert_int_equal(sb_profile_nr_stacks(profile), NR);
	for (i = 0; i < NR; i++) {
		const struct sb_row row = sb_profile_row_at(profile, i);

		weight = row.weight;
		name = sb_profile_frame_at(profile, row.frames[0])->name;
		assert_true(weight < before || (weight == before && strcmp(name, name_before) > 0));
		before = weight;
		name_before = name;
	}
	sb_profile_free(profile);
}

/* Counts of @counts, each at its bucket, and no others. */
static void check_log2(const uint64_t *log2, const uint32_t (*want)[2], size_t nr_want)
{
	uint64_t rest[SB_PROFILE_NR_LOG2];
	size_t i;

	assert_non_null(log2);
	memcpy(rest, log2, sizeof(rest));
	for (i = 0; i < nr_want; i++) {
		assert_int_equal(rest[want[i][0]], want[i][1]);
		rest[want[i][0]] = 0;
	}
	for (i = 0; i < SB_PROFILE_NR_LOG2; i++)
		assert_int_equal(rest[i], 0);
}

/* Add @nr_events durations of bucket @log2 to the row of these frames. */
static int add_log2(struct sb_profile *profile, const uint32_t *ids, size_t nr, uint64_t weight,
		    uint32_t log2, uint64_t nr_events)
{
	const struct sb_row row = { .frames = ids,
				    .nr = nr,
				    .log2_ns = log2 + 1,
				    .weight = weight,
				    .nr_samples = nr_events };

	return sb_profile_add_row(profile, &row);
}

static void test_log2(void **state)
{
	struct sb_row row;
	static const uint32_t of_a[][2] = { { 0, 1 }, { 20, 7 } }, of_b[][2] = { { 63, 2 } },
			      of_all[][2] = { { 0, 1 }, { 20, 7 }, { 63, 2 } },
			      of_both[][2] = { { 0, 1 }, { 20, 7 }, { 63, 3 } },
			      of_both_b[][2] = { { 63, 3 } };
	struct sb_profile *from, *to;
	uint32_t a, b, c;

	assert_int_equal(sb_profile_new(&from), 0);
	a = frame(from, "a", SB_FRAME_USER);
	b = frame(from, "b", SB_FRAME_USER);
	c = frame(from, "c", SB_FRAME_USER);
	assert_null(sb_profile_log2_total(from));
	assert_int_equal(sb_profile_add(from, &c, 1, 5), 0);
	assert_null(sb_profile_log2_total(from));
	assert_int_equal(add_log2(from, &a, 1, 100, 20, 4), 0);
	assert_int_equal(add_log2(from, &b, 1, 200, 63, 2), 0);
	assert_int_equal(add_log2(from, &a, 1, 300, 20, 3), 0);
	assert_int_equal(add_log2(from, &a, 1, 0, 0, 1), 0);
	assert_int_equal(add_log2(from, &a, 1, 1, 64, 1), -EINVAL);

	/* Into one that has one of the stacks, without and with durations. */
	assert_int_equal(sb_profile_new(&to), 0);
	a = frame(to, "b", SB_FRAME_USER);
	assert_int_equal(add_log2(to, &a, 1, 1, 63, 1), 0);
	a = frame(to, "a", SB_FRAME_USER);
	assert_int_equal(sb_profile_add(to, &a, 1, 1), 0);
	assert_int_equal(sb_profile_merge(to, from), 0);

	assert_int_equal(sb_profile_seal(from), 0);
	assert_int_equal(sb_profile_weight(from), 605);
	check_log2(sb_profile_log2_at(from, 0), of_a, 2);
	check_log2(sb_profile_log2_at(from, 1), of_b, 1);
	assert_null(sb_profile_log2_at(from, 2));
	check_log2(sb_profile_log2_total(from), of_all, 3);
	sb_profile_free(from);

	assert_int_equal(sb_profile_seal(to), 0);
	row = sb_profile_row_at(to, 0);
	assert_int_equal(row.weight, 401);
	check_log2(sb_profile_log2_at(to, 0), of_a, 2);
	check_log2(sb_profile_log2_at(to, 1), of_both_b, 1);
	assert_null(sb_profile_log2_at(to, 2));
	check_log2(sb_profile_log2_total(to), of_both, 3);
	sb_profile_free(to);
}

static void test_scale(void **state)
{
	static const struct {
		uint64_t divisor, weight, scaled;
	} cases[] = {
		{ 1000, 1499, 1 },
		{ 1000, 1500, 2 },
		{ 1000, 499, 0 },
		{ 1000, 500, 1 },
		{ 1, 7, 7 },
		{ 3, 4, 1 },
		{ 3, 5, 2 },
		{ 1000, UINT64_MAX, UINT64_MAX / 1000 + 1 },
		{ UINT64_MAX, UINT64_MAX, 1 },
		{ UINT64_MAX, UINT64_MAX / 2, 0 },
		{ UINT64_MAX, UINT64_MAX / 2 + 1, 1 },
	};
	struct sb_profile *profile;
	uint64_t weight;
	size_t i;
	uint32_t f;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(sb_profile_new(&profile), 0);
		f = frame(profile, "f", SB_FRAME_USER);
		assert_int_equal(sb_profile_add(profile, &f, 1, cases[i].weight), 0);
		assert_int_equal(sb_profile_scale_by(profile, 1, cases[i].divisor), 0);
		assert_int_equal(sb_profile_seal(profile), 0);
		assert_int_equal(sb_profile_weight(profile), cases[i].scaled);
		assert_int_equal(sb_profile_nr_stacks(profile), cases[i].scaled > 0);
		assert_int_equal(sb_profile_nr_tiny(profile, &weight), cases[i].scaled == 0);
		assert_int_equal(weight, cases[i].scaled ? 0 : cases[i].weight);
		if (cases[i].scaled)
			assert_int_equal(sb_profile_row_at(profile, 0).weight, cases[i].scaled);
		sb_profile_free(profile);
	}
}

/* What is left out is not counted away: its number, its weight, its durations. */
static void test_scale_by(void **state)
{
	static const struct {
		uint64_t factor, divisor, weight, scaled;
	} cases[] = {
		{ 3, 2, 5, 8 },
		{ 10, 9000, 1800, 2 },
		{ UINT64_MAX, 2, 4, UINT64_MAX },
		{ UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX },
	};
	struct sb_profile *profile;
	size_t i;
	uint32_t f;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(sb_profile_new(&profile), 0);
		f = frame(profile, "f", SB_FRAME_USER);
		assert_int_equal(sb_profile_add(profile, &f, 1, cases[i].weight), 0);
		assert_int_equal(sb_profile_scale_by(profile, cases[i].factor, cases[i].divisor),
				 0);
		assert_int_equal(sb_profile_seal(profile), 0);
		assert_int_equal(sb_profile_weight(profile), cases[i].scaled);
		sb_profile_free(profile);
	}
}

static void test_scale_keeps_account(void **state)
{
	static const uint32_t left[][2] = { { 8, 1 } }, all[][2] = { { 5, 2 }, { 8, 1 } };
	struct sb_profile *profile;
	uint32_t ids[4];
	uint64_t weight;
	size_t i;

	assert_int_equal(sb_profile_new(&profile), 0);
	for (i = 0; i < 4; i++)
		ids[i] = frame(profile, (const char *[]){ "a", "b", "c", "d" }[i], SB_FRAME_USER);
	assert_int_equal(add_log2(profile, &ids[0], 1, 400, 5, 1), 0);
	assert_int_equal(add_log2(profile, &ids[1], 1, 2600, 8, 1), 0);
	assert_int_equal(sb_profile_add(profile, &ids[2], 1, 700), 0);
	assert_int_equal(add_log2(profile, &ids[3], 1, 99, 5, 1), 0);
	assert_int_equal(sb_profile_scale_by(profile, 1, 0), -EINVAL);
	assert_int_equal(sb_profile_scale_by(profile, 1, 1000), 0);
	assert_int_equal(sb_profile_seal(profile), 0);
	assert_int_equal(sb_profile_nr_stacks(profile), 2);
	assert_int_equal(sb_profile_weight(profile), 4);
	assert_int_equal(sb_profile_nr_tiny(profile, &weight), 2);
	assert_int_equal(weight, 499);
	assert_int_equal(sb_profile_row_at(profile, 0).frames[0], ids[1]);
	check_log2(sb_profile_log2_at(profile, 0), left, 1);
	assert_null(sb_profile_log2_at(profile, 1));
	check_log2(sb_profile_log2_total(profile), all, 2);
	sb_profile_free(profile);
}

/* Sealed, scaled, with durations: it is as new, but for its frames. */
static void test_clear(void **state)
{
	struct sb_profile *profile;
	uint64_t weight;
	uint32_t a, b;

	assert_int_equal(sb_profile_new(&profile), 0);
	a = frame(profile, "a", SB_FRAME_USER);
	b = frame(profile, "b", SB_FRAME_USER);
	assert_int_equal(add_log2(profile, &a, 1, 3000, 4, 1), 0);
	assert_int_equal(sb_profile_add(profile, &b, 1, 300), 0);
	assert_int_equal(sb_profile_scale_by(profile, 1, 1000), 0);
	assert_int_equal(sb_profile_seal(profile), 0);
	sb_profile_clear(profile);
	assert_int_equal(sb_profile_nr_stacks(profile), 0);
	assert_int_equal(sb_profile_weight(profile), 0);
	assert_int_equal(sb_profile_nr_tiny(profile, &weight), 0);
	assert_int_equal(weight, 0);
	assert_null(sb_profile_log2_total(profile));
	assert_int_equal(frame(profile, "b", SB_FRAME_USER), b);
	assert_int_equal(sb_profile_add(profile, &b, 1, 7), 0);
	assert_int_equal(sb_profile_add(profile, &b, 1, 1), 0);
	assert_int_equal(sb_profile_seal(profile), 0);
	assert_int_equal(sb_profile_nr_stacks(profile), 1);
	assert_int_equal(sb_profile_row_at(profile, 0).frames[0], b);
	assert_int_equal(sb_profile_row_at(profile, 0).weight, 8);
	assert_null(sb_profile_log2_at(profile, 0));
	sb_profile_free(profile);
}

static void test_meta(void **state)
{
	struct sb_profile *profile;
	struct sb_fold_meta meta = {};
	struct sb_str line = {};
	char by[] = "comm,cpu";
	const char *value;
	const struct sb_metadata metadata = {
		.kind = "oncpu", .by = by, .hz = 99, .nr_samples = 12
	};

	assert_int_equal(sb_profile_new(&profile), 0);
	assert_string_equal(sb_profile_unit(profile), "samples");
	assert_false(sb_fold_next_meta(profile, &meta));
	assert_int_equal(sb_profile_meta(profile, "tag:a", "%d", 0), 0);
	assert_int_equal(sb_profile_set_metadata(profile, &metadata), 0);
	by[0] = '!';
	assert_string_equal(sb_profile_meta_at(profile, 0, &value), "tag:a");
	assert_string_equal(value, "0");
	assert_null(sb_profile_meta_at(profile, 1, &value));
	assert_int_equal(sb_fold_header(&line, profile), 0);
	assert_string_equal(line.s, "#stackbpf;v=1;kind=oncpu;hz=99;by=comm,cpu;n=12;tag:a=0");
	/* What is no number is no number, and stays visible. */
	assert_int_equal(read_meta(profile, "cpus", "-1"), 0);
	assert_int_equal(read_meta(profile, "dur_us", "1500"), 0);
	assert_int_equal(read_meta(profile, "unit", "us"), 0);
	assert_int_equal(sb_profile_metadata(profile)->cpus, 0);
	assert_int_equal(sb_profile_metadata(profile)->dur_us, 1500);
	sb_str_clear(&line);
	assert_int_equal(sb_fold_header(&line, profile), 0);
	assert_string_equal(line.s,
			    "#stackbpf;v=1;kind=oncpu;unit=us;dur_us=1500;hz=99;by=comm,cpu;n=12;"
			    "tag:a=0;cpus=-1");
	/* Nothing was sampled, in no time; a rate of 0 is none. */
	assert_int_equal(read_meta(profile, "dur_us", "0"), 0);
	assert_int_equal(read_meta(profile, "n", "0"), 0);
	assert_int_equal(read_meta(profile, "hz", "0"), 0);
	sb_str_clear(&line);
	assert_int_equal(sb_fold_header(&line, profile), 0);
	assert_string_equal(line.s, "#stackbpf;v=1;kind=oncpu;unit=us;dur_us=0;by=comm,cpu;n=0;"
				    "tag:a=0;cpus=-1");
	sb_str_release(&line);
	sb_profile_free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames_are_interned),
		cmocka_unit_test(test_names_of_attributes),
		cmocka_unit_test(test_attributes_are_copied),
		cmocka_unit_test(test_series),
		cmocka_unit_test(test_equal_stacks_add_up_and_sort),
		cmocka_unit_test(test_many_stacks_against_sums),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_log2),
		cmocka_unit_test(test_pushed),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_scale),
		cmocka_unit_test(test_scale_by),
		cmocka_unit_test(test_scale_keeps_account),
		cmocka_unit_test(test_clear),
		cmocka_unit_test(test_meta),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
