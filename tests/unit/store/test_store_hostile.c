// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Files of a store that nobody wrote by mistake: checksums are right, and what they hold is not. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "store/ask.h"
#include "store/check.h"
#include "store/store_priv.h"
#include "store_dir.h"

#define DAY  86400
/* 2020-01-01 00:00 UTC: all periods of that day are over. */
#define T0   1577836800ll
#define FINE "10s/20200101.sb"
#define NEXT "10s/20200102.sb"

static const struct sb_store_kind kind = { "oncpu", "samples" };

static void make_store(void)
{
	struct sb_store *store;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	sb_store_close(store);
}

static struct sb_segment open_file(const char *name)
{
	struct sb_segment segment;
	int fd = open(dir, O_RDONLY | O_DIRECTORY);

	assert_int_equal(sb_segment_open(&segment, fd, name), 0);
	close(fd);
	/* A hostile writer keeps to no bounds. */
	segment.dict.is_unbounded = true;
	return segment;
}

/* Append a block in which each row of the dictionary has the weight 1. */
static void append_ones(struct sb_segment *segment, const struct sb_segment_time *time)
{
	size_t nr = segment->dict.rows.nr, i;
	struct sb_segment_sums sums = {
		.weight = calloc(nr + 1, sizeof(*sums.weight)),
		.figure = { [SB_BLOCK_SAMPLED_MS] = 10000, [SB_BLOCK_SAMPLES] = nr },
	};

	assert_non_null(sums.weight);
	for (i = 0; i < nr; i++)
		sums.weight[i] = 1;
	assert_int_equal(sb_segment_append(segment, time, &kind, &sums), 0);
	free(sums.weight);
}

static void add_row(struct sb_dict *dict, const char *name, const struct sb_tag *tags, size_t nr)
{
	const struct sb_frame frame = { .name = name, .kind = SB_FRAME_USER, .is_unnamed = true };
	uint32_t frame_id, node, tags_id, row;

	assert_int_equal(sb_dict_frame(dict, &frame, &frame_id), 0);
	assert_int_equal(sb_dict_node(dict, 0, frame_id, &node), 0);
	assert_int_equal(sb_dict_tags(dict, tags, nr, &tags_id), 0);
	assert_int_equal(sb_dict_row(dict, tags_id, node, &row), 0);
}

static struct sb_store *open_store(void)
{
	struct sb_store *store;

	assert_int_equal(sb_store_open(dir, &store), 0);
	return store;
}

/* Times. */

static const struct {
	int64_t begin_s;
	uint32_t seconds;
	uint16_t lead_ms;
	uint32_t length_ms;
} times[] = {
	{ INT64_MAX - 1, UINT32_MAX, UINT16_MAX, UINT32_MAX },
	{ INT64_MAX / 10 * 10, 10, 0, 0 },
	{ INT64_MAX / 1000, 10, UINT16_MAX, UINT32_MAX },
	{ INT64_MIN, 10, 0, 0 },
	{ INT64_MIN / 1000, 10, 0, 1 },
	{ -10, 10, 0, 0 },
	{ SB_LEVEL_TIME_MAX, 10, 0, 0 },
};
#define NR_TIMES (sizeof(times) / sizeof(times[0]))

static void write_times(const char *name, uint32_t seconds)
{
	const struct sb_tag tag = { "service", "web", false };
	struct sb_segment segment = open_file(name);
	size_t i;

	add_row(&segment.dict, "main", &tag, 1);
	append_ones(&segment, &(struct sb_segment_time){ T0, seconds, 0, 0 });
	for (i = 0; i < NR_TIMES; i++)
		append_ones(&segment, &(struct sb_segment_time){
					      times[i].begin_s,
					      times[i].seconds == 10 ? seconds : times[i].seconds,
					      times[i].lead_ms, times[i].length_ms });
	append_ones(&segment, &(struct sb_segment_time){ T0, seconds, 0, 0 });
	sb_segment_release(&segment);
}

struct looked {
	uint64_t nr_blocks, nr_skipped_bytes;
	int64_t from_s, to_s;
};

static void note_file(void *arg, const struct sb_store_file_info *info)
{
	struct looked *looked = arg;

	assert_int_equal(info->err, 0);
	looked->nr_blocks += info->nr_blocks;
	looked->nr_skipped_bytes += info->nr_skipped_bytes;
	if (sb_streq(info->name, FINE)) {
		looked->from_s = info->from_s;
		looked->to_s = info->to_s;
	}
}

static void on_wrong(void *arg, const struct sb_store_wrong_sum *sum) {}

static void expect_two_blocks(struct sb_store *store)
{
	struct sb_ask ask = { .from_s = 0, .to_s = SB_LEVEL_TIME_MAX - 1 };
	const struct sb_timeline_opts opts = { .nr_steps_max = 100 };
	struct sb_store_sums_check check = { .on_wrong = on_wrong, .now_s = INT64_MAX };
	struct sb_store_extent extents[SB_STORE_KINDS_MAX];
	struct sb_store_answer answer;
	struct sb_timeline *timeline;
	struct sb_profile *profile;

	assert_int_equal(sb_store_extents(store, extents), 1);
	assert_int_equal(extents[0].from_s, T0);
	assert_int_equal(extents[0].to_s, T0 + 10);
	assert_int_equal(sb_ask_profile(store, &ask, &profile, &answer), 0);
	assert_int_equal(answer.weight, 2);
	assert_true(answer.nr_skipped_bytes > 0);
	sb_profile_free(profile);
	assert_int_equal(sb_store_timeline(store, &ask, &opts, &timeline), 0);
	assert_int_equal(timeline->answer.weight, 2);
	sb_timeline_free(timeline);
	assert_int_equal(sb_store_check_sums(store, &check), 0);
}

/* A block of a time that no block can have is damage: it is skipped, and its bytes are counted. */
static void test_times(void **state)
{
	struct looked looked = {};
	const struct sb_store_look look = { true, note_file, NULL, &looked };
	struct sb_store *store;
	size_t level;

	(void)state;
	make_store();
	write_times(FINE, 10);
	store = open_store();
	expect_two_blocks(store);
	assert_int_equal(sb_store_look(store, &look), 0);
	assert_int_equal(looked.nr_blocks, 2);
	assert_true(looked.nr_skipped_bytes >= NR_TIMES * SB_RECORD_HEADER_BYTES);
	assert_int_equal(looked.from_s, T0);
	assert_int_equal(looked.to_s, T0 + 10);
	sb_store_close(store);

	/* A writer finds out from them up to when there are aggregates. */
	for (level = 1; level < SB_STORE_LEVELS; level++) {
		char name[SB_LEVEL_NAME_MAX];

		sb_level_file(level, T0, name);
		write_times(name, sb_levels[level].seconds);
	}
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	for (level = 1; level < SB_STORE_LEVELS; level++)
		assert_true(store->summed_s[level] > T0 && store->summed_s[level] < T0 + 2 * DAY);
	expect_two_blocks(store);
	sb_store_close(store);
}

/* Names. */

/* A name of a frame that is longer than the store keeps, with an address behind that length. */
static void test_long_name(void **state)
{
	static const char end[] = "+0x7f0102030405]";
	const struct sb_tag tag = { "service", "web", false };
	struct sb_ask ask = { .from_s = T0, .to_s = T0 + DAY, .nr_nodes_max = 10 };
	struct sb_segment segment;
	struct sb_store *store;
	struct sb_profile *profile;
	const char *name;
	char text[4096];

	(void)state;
	make_store();
	memset(text, 'a', sizeof(text));
	text[0] = '[';
	memcpy(text + sizeof(text) - sizeof(end), end, sizeof(end));
	segment = open_file(FINE);
	/* So that it has its address when it is written. */
	add_row(&segment.dict, "x", &tag, 1);
	segment.dict.strings.strs.at[segment.dict.frames.at[0].name] =
		(struct sb_strtab_entry){ text, sizeof(text) - 1 };
	append_ones(&segment, &(struct sb_segment_time){ T0, 10, 0, 0 });
	sb_segment_release(&segment);

	store = open_store();
	assert_int_equal(sb_ask_profile(store, &ask, &profile, NULL), 0);
	name = sb_profile_frame_at(profile, sb_profile_row_at(profile, 0).frames[0])->name;
	assert_int_equal(strlen(name), SB_DICT_NAME_MAX);
	assert_string_equal(name + SB_DICT_NAME_MAX - 3, "...");
	sb_profile_free(profile);
	sb_store_close(store);
}

/* Tags. */

static void test_many_tags(void **state)
{
	struct sb_tag tags[SB_DICT_TAGS_MAX + 8];
	char keys[SB_DICT_TAGS_MAX + 8][24];
	struct sb_store_series series = { tags, SB_DICT_TAGS_MAX + 8 };
	struct sb_store_block block = { T0, "oncpu", "samples", { 10000 }, &series, 1 };
	struct sb_profile *profile;
	struct sb_store *store;
	uint32_t frame;
	size_t i;

	(void)state;
	for (i = 0; i < series.nr_tags; i++) {
		snprintf(keys[i], sizeof(keys[i]), "k%02zu", i);
		tags[i] = (struct sb_tag){ keys[i], "v", false };
	}
	assert_int_equal(sb_profile_new(&profile), 0);
	frame = frame_of(profile, "main");
	assert_int_equal(sb_profile_add(profile, &frame, 1, 7), 0);
	assert_int_equal(sb_profile_seal(profile), 0);
	block.profile = profile;
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	assert_int_equal(sb_store_put(store, &block), -EINVAL);
	series.nr_tags = SB_DICT_TAGS_MAX;
	assert_int_equal(sb_store_put(store, &block), 0);
	sb_store_close(store);
	sb_profile_free(profile);
}

static void test_no_series(void **state)
{
	struct sb_store_series series = {};
	struct sb_store_block block = { T0, "oncpu", "samples", { 10000 }, &series, 1 };
	struct sb_profile *profile;
	struct sb_store *store;
	struct sb_row row = { .series = 1, .weight = 7 };

	(void)state;
	assert_int_equal(sb_profile_new(&profile), 0);
	assert_int_equal(sb_profile_add_row(profile, &row), 0);
	assert_int_equal(sb_profile_seal(profile), 0);
	block.profile = profile;
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	assert_int_equal(sb_store_put(store, &block), -EINVAL);
	block.series = NULL;
	block.nr = 0;
	assert_int_equal(sb_store_put(store, &block), -EINVAL);
	sb_store_close(store);
	sb_profile_free(profile);
}

#define NR_PAIRS 200000u
#define NR_KEYS	 256u

static void write_pairs(const char *name, int64_t begin_s, uint32_t nr, uint32_t nr_keys)
{
	struct sb_segment segment = open_file(name);
	char key[16], value[16];
	const struct sb_tag tag = { key, value, false };
	uint32_t i;

	for (i = 0; i < nr; i++) {
		snprintf(key, sizeof(key), "k%u", i % nr_keys);
		snprintf(value, sizeof(value), "v%u", i);
		add_row(&segment.dict, "main", &tag, 1);
	}
	append_ones(&segment, &(struct sb_segment_time){ begin_s, 10, 0, 0 });
	sb_segment_release(&segment);
}

/* Of more values than are kept, those that are kept have their whole weight, and the rest is
 * told. */
static void test_many_values(void **state)
{
	const struct sb_ask ask = { .from_s = T0, .to_s = T0 + 2 * DAY };
	const struct sb_tag_counts *counts;
	struct sb_tags *tags;
	struct sb_store *store;
	uint64_t weight;
	size_t i;

	(void)state;
	make_store();
	write_pairs(FINE, T0, NR_PAIRS + 5, 1);
	write_pairs(NEXT, T0 + DAY, 10, 1);
	store = open_store();
	assert_int_equal(sb_store_tags(store, &ask, 10, &tags), 0);
	assert_int_equal(tags->keys.nr, 1);
	assert_false(tags->has_more);
	counts = &tags->keys.at[0];
	assert_int_equal(counts->values.nr, 10);
	for (i = 0, weight = 0; i < 10; i++) {
		assert_int_equal(counts->values.at[i].weight, 2);
		weight += counts->values.at[i].weight;
	}
	assert_int_equal(counts->nr_more, NR_PAIRS - 10);
	assert_true(counts->has_more);
	assert_int_equal(weight + counts->weight_more, NR_PAIRS + 5 + 10);
	sb_tags_free(tags);
	sb_store_close(store);
}

static void test_many_keys(void **state)
{
	const struct sb_ask ask = { .from_s = T0, .to_s = T0 + DAY };
	struct sb_tags *tags;
	struct sb_store *store;

	(void)state;
	make_store();
	write_pairs(FINE, T0, NR_PAIRS, NR_PAIRS);
	store = open_store();
	assert_int_equal(sb_store_tags(store, &ask, 10, &tags), 0);
	assert_int_equal(tags->keys.nr, NR_KEYS);
	assert_true(tags->has_more);
	sb_tags_free(tags);
	sb_store_close(store);
}

/* Files that never answer. */

static void make_fifo(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	(void)!unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
}

/* A FIFO that nobody writes to. */
static void test_fifo(void **state)
{
	const struct sb_ask ask = { .from_s = T0, .to_s = T0 + DAY };
	struct sb_profile *profile;
	struct sb_store *store;

	(void)state;
	make_store();
	alarm(60);
	make_fifo("LOCK");
	make_fifo(FINE);
	store = open_store();
	assert_false(sb_store_has_writer(store));
	assert_int_equal(sb_ask_profile(store, &ask, &profile, NULL), -EINVAL);
	sb_store_close(store);
	make_fifo(SB_STORE_MARK);
	assert_int_equal(sb_store_open(dir, &store), -EPROTO);
	alarm(0);
}

/* Blocks that take next to no room in the file, but each its memory when they are listed. */
static void test_many_blocks(void **state)
{
	enum { NR_AT_ONCE = 1024 };
	struct sb_record record = { .type = SB_RECORD_BLOCK, .begin_s = T0, .seconds = 10 };
	sb_cleanup(sb_str_release) struct sb_str block = {}, blocks = {};
	const struct sb_str nothing = {};
	struct sb_codec codec = {};
	struct sb_segment segment;
	char path[128];
	FILE *file;
	int fd = open(dir, O_RDONLY | O_DIRECTORY), i;

	make_store();
	assert_true(sb_store_kind_set("oncpu", "samples", &record.kind));
	assert_int_equal(sb_record_pack(&codec, &block, &record, &nothing), 0);
	sb_codec_release(&codec);
	for (i = 0; i < NR_AT_ONCE; i++)
		assert_int_equal(sb_str_addn(&blocks, block.s, block.len), 0);
	snprintf(path, sizeof(path), "%s/" FINE, dir);
	file = fopen(path, "w");
	assert_non_null(file);
	for (i = 0; i < (int)SB_SEGMENT_BLOCKS_MAX / NR_AT_ONCE; i++)
		assert_int_equal(fwrite(blocks.s, blocks.len, 1, file), 1);
	assert_int_equal(fflush(file), 0);
	assert_int_equal(sb_segment_list(&segment, fd, FINE), 0);
	assert_int_equal(segment.blocks.nr, SB_SEGMENT_BLOCKS_MAX);
	sb_segment_release(&segment);
	assert_int_equal(fwrite(block.s, block.len, 1, file), 1);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(sb_segment_list(&segment, fd, FINE), -EFBIG);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_times, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_series, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_tags, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_values, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_keys, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fifo, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_blocks, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
