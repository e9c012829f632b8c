// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Blocks on their way to the store: what comes out is what went in, and what is none is refused. */
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "store/block.h"
#include "store/bytes.h"

static uint32_t frame(struct sb_profile *profile, const char *name, enum sb_frame_kind kind)
{
	uint32_t id;

	assert_int_equal(
		sb_profile_frame(profile,
				 &(struct sb_frame){ .name = name, .module = "m.so", .kind = kind },
				 &id),
		0);
	return id;
}

static void add(struct sb_profile *profile, uint32_t series, const uint32_t *ids, size_t nr,
		uint64_t weight)
{
	const struct sb_row row = { .frames = ids, .nr = nr, .series = series, .weight = weight };

	assert_int_equal(sb_profile_add_row(profile, &row), 0);
}

/* Two series; @extra more stacks in the second one. */
static struct sb_profile *make_profile(size_t extra)
{
	struct sb_profile *profile;
	uint32_t ids[2];
	char name[32];
	size_t i;

	assert_int_equal(sb_profile_new(&profile), 0);
	ids[0] = frame(profile, "main", SB_FRAME_USER);
	ids[1] = frame(profile, "hot", SB_FRAME_INLINED);
	add(profile, 1, ids, 2, 7000);
	add(profile, 0, NULL, 0, 3000);
	add(profile, 0, ids, 1, 499); /* less than half of the unit */
	add(profile, 2, ids, 1, 1500);
	for (i = 0; i < extra; i++) {
		snprintf(name, sizeof(name), "f%zu", i);
		ids[1] = frame(profile, name, SB_FRAME_KERNEL);
		add(profile, 2, ids, 2, 1000);
	}
	assert_int_equal(sb_profile_seal(profile), 0);
	return profile;
}

static const struct sb_tag one[] = { { .key = "comm", .value = "a" },
				     { .key = "pid", .value = "12", .is_wide = true } };
static const struct sb_tag two[] = { { .key = "comm", .value = "b" } };
static const struct sb_block_tags tags[] = { { NULL, 0, 0 }, { one, 2, 0 }, { two, 1, 0 } };

static void encode(size_t extra, struct sb_str *out)
{
	const struct sb_block_head head = {
		.begin_s = 1795255200,
		.figure = { [SB_BLOCK_SAMPLES] = 9, [SB_BLOCK_OTHER] = 1 },
		.divisor = 1000,
	};
	struct sb_profile *profile = make_profile(extra);
	uint64_t tiny = 0;

	assert_int_equal(sb_block_encode(out, &head, profile, tags, 3, &tiny), 0);
	assert_int_equal(tiny, 499);
	sb_profile_free(profile);
}

/* The weight of a series; *ret_row is its last row. */
static uint64_t weigh(const struct sb_block *block, uint32_t series, struct sb_row *ret_row)
{
	uint64_t weight = 0;
	size_t i;

	for (i = 0; i < sb_profile_nr_stacks(block->profile); i++) {
		const struct sb_row row = sb_profile_row_at(block->profile, i);

		assert_true(row.series < block->nr_series);
		if (row.series != series)
			continue;
		weight += row.weight;
		*ret_row = row;
	}
	return weight;
}

/* No frames: outputs get one that says so. */
static void check_first(const struct sb_block *block)
{
	struct sb_row row;

	assert_int_equal(block->series[0].nr_tags, 0);
	assert_int_equal(weigh(block, 0, &row), 3);
	assert_int_equal(row.nr, 1);
	assert_string_equal(sb_profile_frame_at(block->profile, row.frames[0])->name, "[no stack]");
}

static void test_round(void **state)
{
	struct sb_row row;
	sb_cleanup(sb_str_release) struct sb_str out = {};
	struct sb_block block;
	const struct sb_frame *leaf;
	size_t len;

	encode(0, &out);
	assert_int_equal(sb_block_scan(out.s, out.len, &len), 0);
	assert_int_equal(len, out.len);
	assert_int_equal(sb_block_decode(out.s, out.len, 2, 1, &block), 0);
	assert_int_equal(block.begin_s, 1795255200);
	assert_int_equal(block.figure[SB_BLOCK_SAMPLES], 9);
	assert_int_equal(block.figure[SB_BLOCK_OTHER], 1);
	assert_int_equal(block.nr_series, 3);
	check_first(&block);
	assert_int_equal(block.series[1].nr_tags, 2);
	assert_string_equal(block.series[1].tags[1].key, "pid");
	assert_string_equal(block.series[1].tags[1].value, "12");
	assert_true(block.series[1].tags[1].is_wide && !block.series[1].tags[0].is_wide);
	assert_int_equal(sb_profile_nr_stacks(block.profile), 3);
	assert_int_equal(weigh(&block, 1, &row), 7);
	assert_int_equal(row.nr, 2);
	leaf = sb_profile_frame_at(block.profile, row.frames[1]);
	assert_string_equal(leaf->name, "hot");
	assert_string_equal(leaf->module, "m.so");
	assert_int_equal(leaf->kind, SB_FRAME_INLINED);
	/* 1500 of 1000 is 2. */
	assert_int_equal(weigh(&block, 2, &row), 2);
	sb_block_release(&block);
}

/* All that has no place is there as one stack, and is told. */
static void test_too_many(void **state)
{
	sb_cleanup(sb_str_release) struct sb_str out = {};
	struct sb_block block;
	struct sb_row row;

	encode(SB_BLOCK_STACKS_MAX + 10, &out);
	assert_int_equal(sb_block_decode(out.s, out.len, 2, 1, &block), 0);
	assert_int_equal(block.nr_series, 3);
	assert_int_equal(weigh(&block, 1, &row), 7);
	assert_int_equal(weigh(&block, 2, &row), 2 + SB_BLOCK_STACKS_MAX + 10);
	assert_int_equal(block.figure[SB_BLOCK_OTHER], 1 + 13);
	sb_block_release(&block);
}

/* Names that are together more than a message may be: others' series are in it, and all of the
 * weight. */
static void test_long_names(void **state)
{
	const struct sb_block_head head = { .begin_s = 1795255200, .divisor = 1 };
	sb_cleanup(sb_str_release) struct sb_str out = {};
	struct sb_profile *profile;
	struct sb_block block;
	uint32_t id, i;
	uint64_t tiny;
	char name[4096];

	assert_int_equal(sb_profile_new(&profile), 0);
	id = frame(profile, "main", SB_FRAME_USER);
	add(profile, 1, &id, 1, 7000);
	memset(name, 'x', sizeof(name));
	for (i = 0; i < SB_BLOCK_STACKS_MAX + 1000; i++) {
		snprintf(name, sizeof(name), "%u", i);
		name[strlen(name)] = 'x';
		name[600] = '\0';
		id = frame(profile, name, SB_FRAME_USER);
		add(profile, 2, &id, 1, 1);
	}
	assert_int_equal(sb_profile_seal(profile), 0);
	assert_int_equal(sb_block_encode(&out, &head, profile, tags, 3, &tiny), 0);
	assert_int_equal(sb_block_decode(out.s, out.len, 0, 1, &block), 0);
	assert_int_equal(block.nr_series, 2);
	assert_int_equal(sb_profile_weight(block.profile), 7000 + SB_BLOCK_STACKS_MAX + 1000);
	assert_true(block.figure[SB_BLOCK_OTHER] > 1000);
	sb_block_release(&block);
	sb_profile_free(profile);
}

static size_t heap_bytes(void)
{
	const struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* Of programs that come and go there are many series. */
static void test_memory(void **state)
{
	enum { NR_SERIES = 1000, NR_FRAMES = 100 };
	const struct sb_block_head head = { .begin_s = 1795255200, .divisor = 1 };
	sb_cleanup(sb_str_release) struct sb_str out = {};
	static struct sb_block_tags series[NR_SERIES];
	uint32_t ids[NR_FRAMES], i, k;
	struct sb_profile *profile;
	struct sb_block block;
	char name[64];
	size_t before;
	uint64_t tiny;

	assert_int_equal(sb_profile_new(&profile), 0);
	for (i = 0; i < NR_SERIES; i++) {
		for (k = 0; k < NR_FRAMES; k++) {
			snprintf(name, sizeof(name), "a_function_of_a_program_%u", k);
			ids[k] = frame(profile, name, SB_FRAME_USER);
		}
		add(profile, i, ids, NR_FRAMES, 1);
	}
	assert_int_equal(sb_profile_seal(profile), 0);
	assert_int_equal(sb_block_encode(&out, &head, profile, series, NR_SERIES, &tiny), 0);
	sb_profile_free(profile);
	before = heap_bytes();
	assert_int_equal(sb_block_decode(out.s, out.len, 2, 1, &block), 0);
	assert_int_equal(block.nr_series, NR_SERIES);
	assert_true(heap_bytes() - before < (size_t)NR_SERIES * NR_FRAMES * 8);
	sb_block_release(&block);
}

/* What the head says to follow is what there is, so that the rest is looked at. */
static void set_len(struct sb_str *out, size_t len)
{
	size_t i;

	for (i = 0; i < 4; i++)
		out->s[4 + i] = (char)((len - SB_BLOCK_HEAD_BYTES) >> (8 * i));
}

static void put(struct sb_str *out, uint64_t value)
{
	assert_int_equal(sb_put_varint(out, value), 0);
}

/* A message of the longest strings, of @nr_frames frames that each take three bytes and name two of
 * them, and of as many frames in stacks as have room. */
static void make_message(struct sb_str *out, size_t nr_frames)
{
	const size_t nr_stacks = (SB_BLOCK_BYTES_MAX - 3 * nr_frames) / (SB_BLOCK_FRAMES_MAX + 10);
	char bytes[SB_BLOCK_FRAMES_MAX] = "sbk4";
	size_t i;

	assert_int_equal(sb_str_addn(out, bytes, SB_BLOCK_HEAD_BYTES), 0);
	put(out, 0);
	put(out, 1795255200);
	put(out, 0);
	put(out, 0);
	put(out, 2);
	for (i = 0; i < 2; i++) {
		memset(bytes, 'a' + (int)i, sizeof(bytes));
		put(out, SB_BLOCK_STRING_MAX);
		assert_int_equal(sb_str_addn(out, bytes, SB_BLOCK_STRING_MAX), 0);
	}
	put(out, nr_frames);
	for (i = 0; i < nr_frames; i++) {
		put(out, 1 + i % 2);
		put(out, 1 + i / 2 % 2);
		put(out, SB_FRAME_USER << 1);
	}
	put(out, 0);
	put(out, nr_stacks);
	for (i = 0; i < nr_stacks; i++) {
		bytes[0] = (char)(i % 100);
		bytes[1] = (char)(i / 100);
		put(out, 1);
		put(out, sizeof(bytes));
		assert_int_equal(sb_str_addn(out, bytes, sizeof(bytes)), 0);
	}
	set_len(out, out->len);
}

/* The memory that a message takes is bounded, whatever it says. */
static void test_hostile_bytes(void **state)
{
	size_t nr, before;
	struct sb_block block;

	for (nr = SB_BLOCK_ENTRIES_MAX; nr <= SB_BLOCK_ENTRIES_MAX + 1; nr++) {
		sb_cleanup(sb_str_release) struct sb_str out = {};

		make_message(&out, nr);
		before = heap_bytes();
		if (nr > SB_BLOCK_ENTRIES_MAX) {
			assert_int_equal(sb_block_decode(out.s, out.len, 2, 1, &block), -EPROTO);
			continue;
		}
		assert_int_equal(sb_block_decode(out.s, out.len, 2, 1, &block), 0);
		assert_true(heap_bytes() - before < 256u << 20);
		sb_block_release(&block);
	}
}

/* More frames than a message may have: there are fewer stacks, with all of the weight. */
static void test_many_frames(void **state)
{
	enum { NR_FRAMES = SB_BLOCK_ENTRIES_MAX / SB_BLOCK_STACKS_MAX + 1 };
	const struct sb_block_head head = { .begin_s = 1795255200, .divisor = 1 };
	sb_cleanup(sb_str_release) struct sb_str out = {};
	uint32_t ids[NR_FRAMES], i, k;
	struct sb_profile *profile;
	struct sb_block block;
	char name[32];
	uint64_t tiny;

	assert_int_equal(sb_profile_new(&profile), 0);
	for (i = 0; i < SB_BLOCK_STACKS_MAX; i++) {
		for (k = 0; k < NR_FRAMES; k++) {
			snprintf(name, sizeof(name), "%x", i * NR_FRAMES + k);
			ids[k] = frame(profile, name, SB_FRAME_USER);
		}
		add(profile, 0, ids, NR_FRAMES, 1);
	}
	assert_int_equal(sb_profile_seal(profile), 0);
	assert_int_equal(sb_block_encode(&out, &head, profile, tags, 1, &tiny), 0);
	sb_profile_free(profile);
	assert_int_equal(sb_block_decode(out.s, out.len, 0, 1, &block), 0);
	assert_int_equal(sb_profile_weight(block.profile), SB_BLOCK_STACKS_MAX);
	assert_int_equal(sb_profile_nr_stacks(block.profile), SB_BLOCK_STACKS_MAX / 4 + 1);
	sb_block_release(&block);
}

/* Of several kinds that are sampled together, a block is of one; one that no sampler said it has is
 * refused. */
static void test_kinds(void **state)
{
	static const struct sb_block_tags mixed[] = { { NULL, 0, 0 },
						      { one, 2, 1 },
						      { two, 1, 0 } };
	struct sb_block_head head = { .begin_s = 1795255200, .divisor = 1000 };
	struct sb_profile *profile = make_profile(0);
	static const uint64_t weights[] = { 3 + 2, 7 };
	struct sb_block block;
	uint64_t tiny;

	for (; head.kind < 2; head.kind++) {
		sb_cleanup(sb_str_release) struct sb_str out = {};

		assert_int_equal(sb_block_encode(&out, &head, profile, mixed, 3, &tiny), 0);
		assert_int_equal(tiny, head.kind ? 0 : 499);
		assert_int_equal(sb_block_decode(out.s, out.len, 2, head.kind, &block), -EPROTO);
		assert_int_equal(sb_block_decode(out.s, out.len, 2, 2, &block), 0);
		assert_int_equal(block.kind, head.kind);
		assert_int_equal(sb_profile_weight(block.profile), weights[head.kind]);
		sb_block_release(&block);
	}
	sb_profile_free(profile);
}

static void test_unknown_series(void **state)
{
	sb_cleanup(sb_str_release) struct sb_str out = {};
	const struct sb_block_head head = { .divisor = 1000 };
	struct sb_profile *profile = make_profile(0);
	uint64_t tiny;

	assert_int_equal(sb_block_encode(&out, &head, profile, tags, 2, &tiny), -EINVAL);
	assert_int_equal(out.len, 0);
	sb_profile_free(profile);
}

static void test_no_samples(void **state)
{
	sb_cleanup(sb_str_release) struct sb_str out = {};
	const struct sb_block_head head = { .divisor = 1, .figure = { 10000 } };
	struct sb_profile *profile;
	struct sb_block block;
	uint64_t tiny;

	assert_int_equal(sb_profile_new(&profile), 0);
	assert_int_equal(sb_block_encode(&out, &head, profile, NULL, 0, &tiny), 0);
	assert_int_equal(sb_block_decode(out.s, out.len, 2, 1, &block), 0);
	assert_int_equal(block.nr_series, 0);
	assert_int_equal(block.figure[0], 10000);
	sb_block_release(&block);
	sb_profile_free(profile);
}

static void test_hostile(void **state)
{
	sb_cleanup(sb_str_release) struct sb_str out = {};
	sb_cleanup(sb_freep) char *copy = NULL;
	struct sb_block block;
	unsigned int seed = 1;
	size_t i, len;
	int err;

	encode(3, &out);
	copy = malloc(out.len);
	assert_non_null(copy);
	memcpy(copy, out.s, out.len);
	/* Cut anywhere: a series less, or nothing. */
	for (i = SB_BLOCK_HEAD_BYTES; i < out.len; i++) {
		set_len(&out, i);
		err = sb_block_decode(out.s, i, 2, 1, &block);
		assert_true(err == -EPROTO || !err);
		if (!err) {
			assert_true(block.nr_series < 3);
			sb_block_release(&block);
		}
	}
	for (i = 0; i < 20000; i++) {
		memcpy(out.s, copy, out.len);
		out.s[SB_BLOCK_HEAD_BYTES +
		      (size_t)rand_r(&seed) % (out.len - SB_BLOCK_HEAD_BYTES)] ^=
			(char)(1u << rand_r(&seed) % 8);
		err = sb_block_decode(out.s, out.len, 2, 1, &block);
		assert_true(err == -EPROTO || !err);
		if (!err)
			sb_block_release(&block);
	}
	/* No tags are left for the message. */
	assert_int_equal(sb_block_decode(copy, out.len, SB_DICT_TAGS_MAX, 1, &block), -EPROTO);
	assert_int_equal(sb_block_decode(copy, out.len, SB_DICT_TAGS_MAX + 1, 1, &block), -EINVAL);
	assert_int_equal(sb_block_scan(copy, 7, &len), -EAGAIN);
	copy[0] ^= 1;
	assert_int_equal(sb_block_scan(copy, 8, &len), -EPROTO);
	copy[0] ^= 1;
	copy[7] = 0x7f;
	assert_int_equal(sb_block_scan(copy, 8, &len), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round),	       cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_kinds),	       cmocka_unit_test(test_memory),
		cmocka_unit_test(test_unknown_series), cmocka_unit_test(test_no_samples),
		cmocka_unit_test(test_hostile),	       cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_hostile_bytes),  cmocka_unit_test(test_many_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
