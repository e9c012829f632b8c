// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a dictionary takes in memory, and that what is given back of it is found again. */
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/index.h"
#include "store/dict.h"
#include "store/search.h"

/* Of half an hour of a test suite. */
#define NR_ROWS		245000u
#define NODES_A_ROW	36u /* tenths, that are no other row's */
#define HALF		(NR_ROWS / 2)
#define BYTES_A_ROW_MAX 120u

static uint64_t hash_few(const void *arg, uint32_t id)
{
	const uint64_t *nr_hashes = arg;

	return sb_hash(&id, sizeof(id), 0) % *nr_hashes << 32 | id % *nr_hashes;
}

static uint32_t nr_found(const struct sb_ids *ids, uint64_t hash, uint32_t id)
{
	struct sb_ids_iter it;
	uint32_t nr = 0;

	for (it = sb_ids_first(ids, hash); it.id != SB_IDS_NONE; it = sb_ids_next(ids, it))
		nr += it.id == id;
	return nr;
}

/* All that are in it come up, however few hashes there are and however it has grown; others do
 * not. */
static void test_ids(void **state)
{
	static const uint64_t hashes[] = { 1, 7, 1ull << 31 };
	static const uint32_t steps[] = { 1, 3, 70000 };
	uint32_t h, s, i, nr;

	(void)state;
	for (h = 0; h < 3; h++) {
		for (s = 0; s < 3; s++) {
			const struct sb_ids_owner owner = { hash_few, &hashes[h] };
			struct sb_ids ids = {};

			nr = h ? 3000 : 300;
			assert_int_equal(sb_ids_first(&ids, 5).id, SB_IDS_NONE);
			for (i = 0; i < nr; i++)
				assert_int_equal(sb_ids_add(&ids, i * steps[s], &owner), 0);
			for (i = 0; i < nr; i++)
				assert_int_equal(nr_found(&ids, hash_few(&hashes[h], i * steps[s]),
							  i * steps[s]),
						 1);
			assert_int_equal(
				nr_found(&ids, hash_few(&hashes[h], 1000000007u), 1000000007u), 0);
			assert_true(sb_ids_bytes(&ids) <= nr * 16);
			sb_ids_release(&ids);
			assert_int_equal(sb_ids_bytes(&ids), 0);
		}
	}
}

/* A row like those of programs that come and go: most of its path is others', too. */
static uint32_t add_row(struct sb_dict *dict, uint32_t i)
{
	const uint32_t nr = NODES_A_ROW / 10 + (i % 10 < NODES_A_ROW % 10);
	struct sb_tag tag = { .key = "comm" };
	uint32_t path[30], id, tags, row, k;
	char text[64];

	for (k = 0; k < 30; k++) {
		uint32_t number = k < 30 - nr ? k : i / HALF * 5 + i + k;

		snprintf(text, sizeof(text), "%u_name_of_a_function", number % HALF * 7919);
		assert_int_equal(sb_dict_frame(dict, &(struct sb_frame){ .name = text }, &path[k]),
				 0);
	}
	assert_int_equal(sb_dict_path(dict, path, 30, &id), 0);
	tag.value = text;
	snprintf(text, sizeof(text), "comm%u", i % 3000);
	assert_int_equal(sb_dict_tags(dict, &tag, 1, &tags), 0);
	assert_int_equal(sb_dict_row(dict, tags, id, &row), 0);
	return row;
}

static size_t heap_bytes(void)
{
	const struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static void test_bytes(void **state)
{
	struct sb_dict dict;
	size_t before, bytes;
	uint32_t i;

	(void)state;
	before = heap_bytes();
	assert_int_equal(sb_dict_init(&dict), 0);
	for (i = 0; i < NR_ROWS; i++)
		assert_int_equal(add_row(&dict, i), i);
	assert_in_range(dict.nodes.nr, NR_ROWS * 3, NR_ROWS * 4);
	assert_in_range(dict.frames.nr, NR_ROWS / 3, NR_ROWS);
	bytes = sb_dict_bytes(&dict);
	assert_true(bytes < NR_ROWS * BYTES_A_ROW_MAX);
	/* It says so itself: but for what arrays have been given beyond their elements, it is
	 * so. */
	assert_true(heap_bytes() - before < 2 * bytes);
	/* What is there is found, and found again when all but itself was given back. */
	assert_int_equal(add_row(&dict, 77), 77);
	sb_dict_drop_indexes(&dict);
	assert_true(sb_dict_bytes(&dict) < bytes * 3 / 4);
	for (i = 0; i < NR_ROWS; i += 7)
		assert_int_equal(add_row(&dict, i), i);
	assert_int_equal(dict.rows.nr, NR_ROWS);
	assert_true(sb_dict_bytes(&dict) < NR_ROWS * BYTES_A_ROW_MAX);
	sb_dict_release(&dict);
	assert_true(heap_bytes() < before + (64u << 10));
}

/* What is read back is what the frame was, not what its name looks like; a record of an older
 * version ends before the marks, a damaged one does not get to them, and the names of marks, not of
 * functions, tell them. */
static void test_marks(void **state)
{
	static const struct sb_frame frames[] = {
		{ .name = "[lock: mutex]", .kind = SB_FRAME_JIT },
		{ .name = "[lock: mutex]", .kind = SB_FRAME_MARK, .mark = SB_ATTR_LOCK },
		{ .name = "[idle]", .kind = SB_FRAME_USER },
		{ .name = "(other)", .kind = SB_FRAME_MARK },
		{ .name = "[python truncated: x]",
		  .kind = SB_FRAME_MARK,
		  .mark = SB_ATTR_TRUNCATED },
	};
	const size_t nr = sizeof(frames) / sizeof(*frames);
	/* Of the marks: their number, and two bytes for each. One more is of the rows. */
	static const struct {
		size_t nr_cut;
		int err;
	} records[] = { { 0, 0 }, { 1 + 2 * 2, 0 }, { 1 + 2 * 2 + 1, -EBADMSG } };
	struct sb_dict from, to;
	struct sb_str text = {};
	uint32_t id;
	size_t i, k;

	(void)state;
	assert_int_equal(sb_dict_init(&from), 0);
	for (i = 0; i < nr; i++) {
		assert_int_equal(sb_dict_frame(&from, &frames[i], &id), 0);
		assert_int_equal(id, i);
	}
	assert_int_equal(sb_dict_encode(&from, &text), 0);
	for (k = 0; k < sizeof(records) / sizeof(*records); k++) {
		struct sb_cursor cursor = {
			.p = (const uint8_t *)text.s,
			.end = (const uint8_t *)text.s + text.len - records[k].nr_cut,
		};

		assert_int_equal(sb_dict_init(&to), 0);
		assert_int_equal(sb_dict_decode(&to, &cursor), records[k].err);
		assert_ptr_equal(cursor.p, cursor.end);
		for (i = 0; i < nr; i++) {
			const struct sb_frame have = sb_dict_frame_at(&to, (uint32_t)i);

			assert_string_equal(have.name, frames[i].name);
			assert_int_equal(have.kind, frames[i].kind);
			assert_int_equal(have.mark, frames[i].mark);
			assert_int_equal(sb_dict_frame(&to, &frames[i], &id), 0);
			assert_int_equal(id, i);
		}
		sb_dict_release(&to);
	}
	sb_str_release(&text);
	sb_dict_release(&from);
}

/* Return: a byte of the record of a dictionary with this frame only. */
static uint32_t byte_of(const struct sb_frame *frame, size_t from_end)
{
	struct sb_str text = {};
	struct sb_dict dict;
	uint32_t id, byte;

	assert_int_equal(sb_dict_init(&dict), 0);
	assert_int_equal(sb_dict_frame(&dict, frame, &id), 0);
	assert_int_equal(sb_dict_encode(&dict, &text), 0);
	byte = (uint8_t)text.s[text.len - from_end];
	sb_str_release(&text);
	sb_dict_release(&dict);
	return byte;
}

/* The rows of tree/frames.def have these numbers in files, which must not change. A new row comes
 * here, too. */
static void test_numbers(void **state)
{
	static const struct {
		enum sb_frame_kind kind;
		uint32_t number;
	} kinds[] = {
		{ SB_FRAME_ROOT, 0 },	   { SB_FRAME_USER, 1 },   { SB_FRAME_INLINED, 2 },
		{ SB_FRAME_JIT, 3 },	   { SB_FRAME_KERNEL, 4 }, { SB_FRAME_KERNEL_INLINED, 5 },
		{ SB_FRAME_DELIMITER, 6 }, { SB_FRAME_MARK, 7 },   { SB_FRAME_FILE, 8 },
		{ SB_FRAME_INTERP, 9 },	   { SB_FRAME_WAKER, 10 },
	};
	static const struct {
		enum sb_attr_kind mark;
		uint32_t number;
	} marks[] = {
		{ SB_ATTR_IDLE, 1 },	   { SB_ATTR_LOCK, 2 },	       { SB_ATTR_BLOCKED, 3 },
		{ SB_ATTR_STOPPED, 4 },	   { SB_ATTR_RUNNING, 5 },     { SB_ATTR_RUNQUEUE, 6 },
		{ SB_ATTR_THROTTLED, 7 },  { SB_ATTR_NOT_SAMPLED, 8 }, { SB_ATTR_ALL_IDLE, 9 },
		{ SB_ATTR_TRUNCATED, 10 }, { SB_ATTR_LOST_STACK, 11 }, { SB_ATTR_LOST_OBJECT, 12 },
		{ SB_ATTR_RESIDUAL, 13 },
	};
	struct sb_frame frame = { .name = "f" };
	size_t i;

	(void)state;
	assert_int_equal(SB_ARRAY_SIZE(kinds), SB_FRAME_KIND_MAX);
	assert_int_equal(SB_ARRAY_SIZE(marks), SB_ATTR_KIND_MAX - SB_ATTR_IDLE);
	/* Behind it are the numbers of nodes, tags, rows and marks. */
	for (i = 0; i < SB_ARRAY_SIZE(kinds); i++) {
		frame.kind = kinds[i].kind;
		assert_int_equal(byte_of(&frame, 8), kinds[i].number << 1);
	}
	frame.kind = SB_FRAME_MARK;
	for (i = 0; i < SB_ARRAY_SIZE(marks); i++) {
		frame.mark = (uint8_t)marks[i].mark;
		assert_int_equal(byte_of(&frame, 1), marks[i].number);
	}
}

/* A function may have the name of the frame that stands for stacks without room. */
static void test_is_other(void **state)
{
	static const enum sb_frame_kind kinds[] = { SB_FRAME_JIT, SB_FRAME_MARK };
	struct sb_dict dict;
	uint32_t frame, node;
	size_t i;

	(void)state;
	assert_int_equal(sb_dict_init(&dict), 0);
	for (i = 0; i < 2; i++) {
		const struct sb_frame of = { .name = "(other)", .kind = kinds[i] };

		assert_int_equal(sb_dict_frame(&dict, &of, &frame), 0);
		assert_int_equal(sb_dict_path(&dict, &frame, 1, &node), 0);
		assert_int_equal(sb_dict_is_other(&dict, node), kinds[i] == SB_FRAME_MARK);
	}
	sb_dict_release(&dict);
}

struct frame_text {
	char name[16], module[16];
};

/* Different ones up to 400, which differ in the name, the module or the kind alone. A module comes again
 * in later batches. */
static struct sb_frame nth_frame(struct frame_text *text, size_t i)
{
	snprintf(text->name, sizeof(text->name), "f%zu", i / 40);
	snprintf(text->module, sizeof(text->module), "lib%zu.so", i % 40);
	return (struct sb_frame){ .name = text->name,
				  .module = i % 40 ? text->module : NULL,
				  .kind = i < 200 ? SB_FRAME_USER : SB_FRAME_KERNEL };
}

/* Frames, paths and rows that were looked up one by one are found together, and no others. */
static void test_find(void **state)
{
	enum { NR = 400, TAGS = 7 };
	struct sb_dict_path paths[SB_DICT_BATCH] = {};
	uint32_t ids[NR] = {}, order[NR], found[NR], nodes[NR], rows[NR], of_profile;
	struct sb_profile *profile;
	struct frame_text name;
	struct sb_dict dict;
	size_t i;

	(void)state;
	assert_int_equal(sb_dict_init(&dict), 0);
	assert_int_equal(sb_profile_new(&profile), 0);
	for (i = 0; i < NR; i++) {
		const struct sb_frame frame = nth_frame(&name, i);

		assert_int_equal(sb_profile_frame(profile, &frame, &of_profile), 0);
		assert_int_equal(of_profile, i);
		order[i] = (uint32_t)i;
		if (i % 3)
			assert_int_equal(sb_dict_frame(&dict, &frame, &ids[i]), 0);
	}
	sb_dict_find_frames(&dict, profile, found);
	for (i = 0; i < NR; i++)
		assert_int_equal(found[i], i % 3 ? ids[i] : SB_DICT_NONE);
	for (i = 0; i < SB_DICT_BATCH; i++) {
		paths[i] = (struct sb_dict_path){ .frames = order + i, .nr = 1 + i % 4 };
		if (i % 5)
			assert_int_equal(
				sb_dict_path(&dict, paths[i].frames, paths[i].nr, &nodes[i]), 0);
		if (i % 5 > 2)
			assert_int_equal(sb_dict_row(&dict, TAGS, nodes[i], &rows[i]), 0);
	}
	sb_dict_find_paths(&dict, TAGS, paths, SB_DICT_BATCH);
	for (i = 0; i < SB_DICT_BATCH; i++) {
		assert_int_equal(paths[i].node, i % 5 ? nodes[i] : SB_DICT_NONE);
		assert_int_equal(paths[i].row, i % 5 > 2 ? rows[i] : SB_DICT_NONE);
	}
	sb_dict_find_paths(&dict, TAGS + 1, paths, SB_DICT_BATCH);
	for (i = 0; i < SB_DICT_BATCH; i++)
		assert_int_equal(paths[i].row, SB_DICT_NONE);
	sb_profile_free(profile);
	sb_dict_release(&dict);
}

/* A path for which there is no room. */
static void test_no_room(void **state)
{
	const uint32_t path[] = { 0, 0, 0 };
	struct sb_dict dict;
	uint32_t id = 77;

	(void)state;
	assert_int_equal(sb_dict_init(&dict), 0);
	assert_int_equal(sb_dict_path(&dict, path, 1, &id), 0);
	while (!sb_dict_node(&dict, 0, (uint32_t)dict.nodes.nr, &id))
		;
	id = 77;
	assert_int_equal(sb_dict_path(&dict, path, 3, &id), -E2BIG);
	assert_int_equal(id, 77);
	sb_dict_release(&dict);
}

/* The ID of a set that is damaged or not there is no index. */
static void test_no_tags(void **state)
{
	const struct sb_tag tag = { "key", "value", false };
	struct sb_tag tags[SB_DICT_TAGS_MAX];
	struct sb_wanted wanted;
	struct sb_dict dict;
	uint32_t id;

	(void)state;
	assert_int_equal(sb_dict_init(&dict), 0);
	assert_int_equal(sb_dict_tags(&dict, &tag, 1, &id), 0);
	assert_int_equal(sb_wanted_init(&wanted, &dict, NULL), 0);
	assert_int_equal(sb_dict_tags_at(&dict, id, tags), 1);
	assert_true(sb_wanted_is(&wanted, id));
	assert_int_equal(sb_dict_tags_at(&dict, id + 1, tags), 0);
	assert_int_equal(sb_dict_tags_at(&dict, SB_DICT_NONE, tags), 0);
	assert_false(sb_wanted_is(&wanted, id + 1));
	assert_false(sb_wanted_is(&wanted, SB_DICT_NONE));
	sb_wanted_release(&wanted);
	sb_dict_release(&dict);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids),	 cmocka_unit_test(test_marks),
		cmocka_unit_test(test_is_other), cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_bytes),	 cmocka_unit_test(test_no_tags),
		cmocka_unit_test(test_numbers),	 cmocka_unit_test(test_find),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
