// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A store against a plain list of what was put into it. */
#include <dirent.h>
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
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/fs.h"
#include "store/ask.h"
#include "store/check.h"
#include "store/late_blocks.h"
#include "store/store_priv.h"
#include "store_dir.h"

#define HOUR	    3600
#define DAY	    (24 * HOUR)
/* 2040-01-01 00:00 UTC: after now, so that nothing is late before it is put in late. */
#define T0	    2208988800ll

#define NR_STACKS   40
#define NR_SERVICES 3
#define NR_PIDS	    5

/* What was put in. */
struct put {
	int64_t begin_s;
	uint32_t stack, service, pid;
	uint64_t weight;
};
static SB_VEC(struct put) puts_made;

/* What a store takes for now; 0: what the clock says. */
static int64_t set_now_s;
time_t time(time_t *ret_time)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (set_now_s)
		now.tv_sec = set_now_s;
	if (ret_time)
		*ret_time = now.tv_sec;
	return now.tv_sec;
}

static int release_puts(void **state)
{
	sb_vec_release(&puts_made);
	return teardown(state);
}

/* "main;f3;g17" */
static struct sb_profile *profile_of(const struct put *put)
{
	struct sb_profile *profile;
	char f[16], g[16];
	uint32_t frames[3];

	snprintf(f, sizeof(f), "f%u", put->stack % 7);
	snprintf(g, sizeof(g), "g%u", put->stack);
	assert_int_equal(sb_profile_new(&profile), 0);
	frames[0] = frame_of(profile, "main");
	frames[1] = frame_of(profile, f);
	frames[2] = frame_of(profile, g);
	assert_int_equal(sb_profile_add(profile, frames, 3, put->weight), 0);
	assert_int_equal(sb_profile_seal(profile), 0);
	return profile;
}

/* @nr random series at one time. Return: as sb_store_put(). */
static int put_block(struct sb_store *store, int64_t begin_s, uint32_t nr)
{
	struct sb_store_series series[16] = {};
	struct sb_store_block block = { begin_s, "oncpu", "samples", { 10000 }, series, nr };
	struct sb_tag tags[16][2];
	char service[16][16], pid[16][16];
	struct put put[16];
	uint32_t i;
	int err;

	for (i = 0; i < nr; i++) {
		put[i] = (struct put){ begin_s, random_of(NR_STACKS), random_of(NR_SERVICES),
				       random_of(NR_PIDS), 1 + random_of(1000) };
		snprintf(service[i], sizeof(service[i]), "s%u", put[i].service);
		snprintf(pid[i], sizeof(pid[i]), "%u", put[i].pid);
		tags[i][0] = (struct sb_tag){ "pid", pid[i], true };
		tags[i][1] = (struct sb_tag){ "service", service[i], false };
		series[i] = (struct sb_store_series){ tags[i], 2, profile_of(&put[i]) };
	}
	err = sb_store_put(store, &block);
	for (i = 0; i < nr; i++) {
		sb_profile_free((struct sb_profile *)series[i].profile);
		if (!err)
			assert_int_equal(sb_vec_push(&puts_made, put[i]), 0);
	}
	return err;
}

static void sum_of(int64_t from_s, int64_t to_s, int service, uint64_t sums[NR_STACKS])
{
	size_t i;

	memset(sums, 0, NR_STACKS * sizeof(sums[0]));
	for (i = 0; i < puts_made.nr; i++) {
		const struct put *put = &puts_made.at[i];

		if (put->begin_s >= from_s && put->begin_s < to_s &&
		    (service < 0 || put->service == (uint32_t)service))
			sums[put->stack] += put->weight;
	}
}

/* All three frames are as they were put in, or said to be lost, or it is "(other)". */
static void add_stack(const struct sb_profile *profile, const uint32_t *frames, size_t nr,
		      uint64_t weight, uint64_t sums[NR_STACKS])
{
	const char *name[3];
	unsigned int stack;
	size_t i;

	for (i = 0; i < nr && i < 3; i++) {
		name[i] = sb_profile_frame_at(profile, frames[i])->name;
		if (name[i][0] == '(')
			return;
	}
	if (nr != 3)
		return;
	stack = (unsigned int)atoi(name[2] + 1);
	assert_true(name[2][0] == 'g' && stack < NR_STACKS);
	assert_string_equal(name[0], "main");
	assert_int_equal(atoi(name[1] + 1), stack % 7);
	sums[stack] += weight;
}

static void ask(struct sb_store *store, int64_t from_s, int64_t to_s, int service,
		uint64_t sums[NR_STACKS], struct sb_store_answer *answer)
{
	struct sb_tag_rules rules = {};
	struct sb_store_query query = {
		.from_s = from_s,
		.to_s = to_s,
		.kind = "oncpu",
		.rules = &rules,
	};
	struct sb_profile *profile;
	char rule[32];
	size_t i;

	memset(sums, 0, NR_STACKS * sizeof(sums[0]));
	snprintf(rule, sizeof(rule), "service=s%d", service);
	if (service >= 0)
		assert_int_equal(sb_tag_rules_add(&rules, rule), 0);
	assert_int_equal(sb_profile_new(&profile), 0);
	assert_int_equal(sb_store_query(store, &query, profile, answer), 0);
	assert_int_equal(sb_profile_seal(profile), 0);
	for (i = 0; i < sb_profile_nr_stacks(profile); i++) {
		const struct sb_row row = sb_profile_row_at(profile, i);

		add_stack(profile, row.frames, row.nr, row.weight, sums);
	}
	sb_profile_free(profile);
	sb_tag_rules_release(&rules);
}

static void expect(struct sb_store *store, int64_t from_s, int64_t to_s, int service)
{
	uint64_t want[NR_STACKS], have[NR_STACKS];
	struct sb_store_answer answer;

	sum_of(from_s, to_s, service, want);
	ask(store, from_s, to_s, service, have, &answer);
	assert_memory_equal(have, want, sizeof(want));
	assert_int_equal(answer.nr_damaged + answer.nr_skipped_bytes + answer.lost_weight, 0);
}

/* The same, where other files of the store are damaged. */
static void expect_sums(struct sb_store *store, int64_t from_s, int64_t to_s)
{
	uint64_t want[NR_STACKS], have[NR_STACKS];
	struct sb_store_answer answer;

	sum_of(from_s, to_s, -1, want);
	ask(store, from_s, to_s, -1, have, &answer);
	assert_memory_equal(have, want, sizeof(want));
}

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

/* The 10-second file of T0, and what is in it. */
static char *fine_path(void)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/10s/20400101.sb", dir);
	return path;
}

static void read_fine(char **ret_bytes, size_t *ret_len)
{
	assert_int_equal(sb_read_file(fine_path(), 1 << 24, ret_bytes, ret_len), 0);
}

static void write_fine(const char *bytes, size_t len)
{
	int fd = open(fine_path(), O_WRONLY | O_TRUNC);

	assert_true(fd >= 0);
	assert_int_equal(sb_write_all(fd, bytes, len), 0);
	close(fd);
}

static uint64_t total_of(const uint64_t sums[NR_STACKS])
{
	uint64_t total = 0;
	size_t i;

	for (i = 0; i < NR_STACKS; i++)
		total += sums[i];
	return total;
}

#define NR_BLOCKS 12

static void fill(void)
{
	struct sb_store *store;
	uint32_t i;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	for (i = 0; i < NR_BLOCKS; i++)
		assert_int_equal(put_block(store, T0 + 10 * i, 4), 0);
	sb_store_close(store);
}

/* Writing ended in the middle of anything: all whole blocks are there, and it goes on. */
static void test_cut_short(void **state)
{
	uint64_t want[NR_STACKS], have[NR_STACKS];
	struct sb_store_answer answer;
	struct sb_store *store;
	size_t len, cut, nr, nr_before = 0;
	char *bytes;

	fill();
	read_fine(&bytes, &len);
	for (cut = 0; cut <= len; cut++) {
		write_fine(bytes, cut);
		assert_int_equal(sb_store_open(dir, &store), 0);
		ask(store, T0, T0 + HOUR, -1, have, &answer);
		sb_store_close(store);
		nr = answer.nr_blocks;
		assert_true(nr == nr_before || nr == nr_before + 1);
		nr_before = nr;
		sum_of(T0, T0 + 10 * (int64_t)nr, -1, want);
		assert_memory_equal(have, want, sizeof(want));
		if (cut % 97)
			continue;
		assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
		assert_int_equal(put_block(store, T0 + 10 * NR_BLOCKS, 4), 0);
		ask(store, T0 + 10 * NR_BLOCKS, T0 + HOUR, -1, have, &answer);
		sum_of(T0 + 10 * NR_BLOCKS, T0 + HOUR, -1, want);
		assert_memory_equal(have, want, sizeof(want));
		assert_int_equal(answer.nr_damaged + answer.nr_skipped_bytes, 0);
		sb_store_close(store);
		puts_made.nr -= 4;
	}
	assert_int_equal(nr_before, NR_BLOCKS);
	free(bytes);
}

/* One bit is another one: at most the record that has it is lost, and it is always said. */
static void test_flipped(void **state)
{
	uint64_t want[NR_STACKS], have[NR_STACKS];
	struct sb_store_answer answer;
	struct sb_store *store;
	size_t len, i, at, nr_lost = 0;
	char *bytes;

	fill();
	read_fine(&bytes, &len);
	sum_of(T0, T0 + HOUR, -1, want);
	for (i = 0; i < 1000; i++) {
		at = random_of((uint32_t)len);
		bytes[at] ^= (char)(1 << i % 8);
		write_fine(bytes, len);
		assert_int_equal(sb_store_open(dir, &store), 0);
		ask(store, T0, T0 + HOUR, -1, have, &answer);
		sb_store_close(store);
		assert_true(answer.nr_damaged || answer.nr_skipped_bytes);
		assert_true(answer.nr_blocks >= NR_BLOCKS - 1);
		/* Nothing is made up. */
		assert_true(total_of(have) + answer.lost_weight <= total_of(want));
		nr_lost += answer.nr_blocks < NR_BLOCKS;
		bytes[at] ^= (char)(1 << i % 8);
	}
	assert_true(nr_lost > 100);
	free(bytes);
}

/* Question after question, as the store grows: what is kept of those before is not seen in the
 * next. */
static void test_again(void **state)
{
	uint64_t want[NR_STACKS], have[NR_STACKS];
	SB_VEC(int64_t) begins = {};
	struct sb_store_answer answer;
	struct sb_store *store;
	int64_t from_s, to_s;
	size_t i, k, nr;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	for (i = 0; i < 800; i++) {
		/* Every fifth is late. */
		if (i < 200 || i % 4 == 0)
			assert_int_equal(
				sb_vec_push(&begins,
					    T0 - 900 +
						    10 * (i % 5 ? (int64_t)i
								: random_of((uint32_t)i + 1))),
				0);
		if (i < 200 || i % 4 == 0)
			assert_int_equal(put_block(store, begins.at[begins.nr - 1], random_of(4)),
					 0);
		/* Most of them, or few; the same ones often. */
		from_s = T0 - 900 + 10 * (int64_t)random_of(i % 3 ? 6 : 600);
		to_s = from_s + 10 * (1 + (int64_t)random_of(i % 7 ? 90 : 9));
		/* Some in turns: more than are kept, and as many. */
		if (i % 2) {
			from_s = T0 - 900 + (int64_t)(i % (i < 400 ? 23 : 8)) * 250;
			to_s = from_s + 600;
		}
		sum_of(from_s, to_s, -1, want);
		ask(store, from_s, to_s, -1, have, &answer);
		assert_memory_equal(have, want, sizeof(want));
		for (k = nr = 0; k < begins.nr; k++)
			nr += begins.at[k] >= from_s && begins.at[k] < to_s;
		assert_int_equal(answer.figure[SB_BLOCK_SAMPLED_MS], nr * 10000);
		if (i % 5 == 0)
			expect(store, from_s, to_s, (int)random_of(NR_SERVICES));
	}
	sb_vec_release(&begins);
	sb_store_close(store);
}

/* And the file becomes longer, so that it is looked at again. */
static void flip_block(size_t nr)
{
	struct sb_segment segment;
	size_t len;
	char *bytes;

	assert_int_equal(sb_segment_read(&segment, AT_FDCWD, fine_path()), 0);
	read_fine(&bytes, &len);
	bytes[segment.blocks.at[nr].at + SB_RECORD_HEADER_BYTES + 1] ^= 1;
	write_fine(bytes, len + 1); /* the NUL that ends them */
	free(bytes);
	sb_segment_release(&segment);
}

/* What was read once and cannot be read now: as if it had never been. */
static void test_damaged_again(void **state)
{
	uint64_t want[NR_STACKS], have[NR_STACKS];
	struct sb_store_answer answer;
	struct sb_store *store, *fresh;
	int64_t to_s = T0 + 10 * NR_BLOCKS;
	uint32_t i;

	fill();
	assert_int_equal(sb_store_open(dir, &store), 0);
	/* Kept both: one of nearly the same range as the next question. */
	expect(store, T0 + 30, T0 + 70, -1);
	expect(store, T0, to_s, -1);
	/* One that is to be taken away, and one that is not. */
	flip_block(0);
	flip_block(5);
	assert_int_equal(sb_store_open(dir, &fresh), 0);
	ask(fresh, T0 + 10, to_s, -1, want, &answer);
	assert_int_equal(answer.nr_damaged, 1);
	for (i = 0; i < 3; i++) {
		ask(store, T0 + 10, to_s, -1, have, &answer);
		assert_memory_equal(have, want, sizeof(want));
		assert_int_equal(answer.nr_damaged, 1);
		assert_int_equal(answer.nr_blocks, NR_BLOCKS - 2);
		assert_int_equal(answer.figure[SB_BLOCK_SAMPLED_MS], 10000 * (NR_BLOCKS - 2));
	}
	/* Nor in what else had it. */
	ask(fresh, T0 + 30, T0 + 70, -1, want, &answer);
	ask(store, T0 + 30, T0 + 70, -1, have, &answer);
	assert_memory_equal(have, want, sizeof(want));
	assert_int_equal(answer.nr_damaged, 1);
	sb_store_close(fresh);
	sb_store_close(store);
}

/* Blocks from @first on, by what is kept and without it. */
static void expect_resum(struct sb_resum *resum, struct sb_segment *segment, uint64_t question,
			 size_t first, size_t nr)
{
	struct sb_sums want = {};
	uint64_t nr_damaged;
	size_t i;

	assert_int_equal(sb_sums_fit(&want, &segment->dict), 0);
	assert_int_equal(sb_resum_begin(resum, segment, question), 0);
	for (i = first; i < first + nr; i++) {
		const struct sb_record *block = &segment->blocks.at[i];

		assert_int_equal(sb_segment_add(segment, block, &want.sums), 0);
		assert_int_equal(sb_resum_add(resum, segment, block), 0);
	}
	assert_int_equal(sb_resum_end(resum, segment, &nr_damaged), 0);
	assert_int_equal(nr_damaged, 0);
	assert_true(!nr == !resum->result);
	for (i = 0; nr && i < want.weight.nr; i++)
		assert_int_equal(resum->result->weight[i], want.weight.at[i]);
	for (i = 0; nr && i < SB_BLOCK_FIGURE_MAX; i++)
		assert_int_equal(resum->result->figure[i], want.sums.figure[i]);
	sb_sums_release(&want);
}

/* What was asked for longest ago is forgotten first, and nothing but it. */
static void test_dropped(void **state)
{
	struct sb_resum resum = {};
	struct sb_segment segment;
	uint64_t question, oldest;
	size_t before, i;

	fill();
	assert_int_equal(sb_segment_read(&segment, AT_FDCWD, fine_path()), 0);
	assert_int_equal(sb_resum_oldest(&resum), UINT64_MAX);
	for (question = 1; question <= 500; question++) {
		/* Now and then the same one, or none at all. */
		i = random_of(4) ? random_of(NR_BLOCKS) : 3;
		expect_resum(&resum, &segment, question, i,
			     i == 3 ? 4 : random_of((uint32_t)(NR_BLOCKS - i) + 1));
		if (question % 5)
			continue;
		before = sb_resum_bytes(&resum);
		oldest = sb_resum_oldest(&resum);
		assert_in_range(oldest, 1, question);
		sb_resum_drop(&resum, oldest);
		assert_true(sb_resum_bytes(&resum) < before);
		assert_true(sb_resum_oldest(&resum) > oldest);
	}
	while (sb_resum_oldest(&resum) != UINT64_MAX)
		sb_resum_drop(&resum, sb_resum_oldest(&resum));
	expect_resum(&resum, &segment, question, 0, NR_BLOCKS);
	sb_resum_release(&resum);
	sb_segment_release(&segment);
}

/* What is kept is as it was, or gone, and a day of blocks is kept. */
static void test_unpacked(void **state)
{
	static uint8_t bytes[100003];
	struct sb_unpacked unpacked = {};
	SB_VEC(uint64_t) places = {};
	const uint8_t *kept;
	size_t i, k, nr, nr_kept = 0;

	assert_null(sb_unpacked_at(&unpacked, 0, 1));
	assert_int_equal(sb_unpacked_keep(&unpacked, bytes, 0), 0);
	assert_int_equal(sb_unpacked_keep(&unpacked, bytes, SB_UNPACKED_BYTES), 0);
	for (i = 0; i < 700; i++) {
		nr = 1 + (i * 7919) % sizeof(bytes);
		memset(bytes, (int)i, nr);
		assert_int_equal(sb_vec_push(&places, sb_unpacked_keep(&unpacked, bytes, nr)), 0);
		assert_int_not_equal(places.at[i], 0);
	}
	for (i = 0; i < 700; i++) {
		nr = 1 + (i * 7919) % sizeof(bytes);
		kept = sb_unpacked_at(&unpacked, places.at[i], nr);
		assert_true(kept || !nr_kept);
		nr_kept += kept ? nr : 0;
		for (k = 0; kept && k < nr; k++)
			assert_int_equal(kept[k], i & 0xff);
	}
	assert_in_range(nr_kept, SB_UNPACKED_BYTES - SB_UNPACKED_BYTES / 10, SB_UNPACKED_BYTES);
	assert_int_equal(sb_unpacked_bytes(&unpacked), SB_UNPACKED_BYTES);
	sb_vec_release(&places);
	sb_unpacked_release(&unpacked);
}

/* A file that is removed and made anew has nothing to do with what was kept. */
static void test_another_file(void **state)
{
	struct sb_store *store;

	fill();
	assert_int_equal(sb_store_open(dir, &store), 0);
	expect(store, T0, T0 + HOUR, -1);
	assert_int_equal(unlink(fine_path()), 0);
	puts_made.nr = 0;
	fill();
	expect(store, T0, T0 + HOUR, -1);
	sb_store_close(store);
}

/* Pages of the disk that became zeros: what they had is lost, and said; nothing else is. */
static void test_zeroed(void **state)
{
	uint64_t want[NR_STACKS], have[NR_STACKS];
	struct sb_store_answer answer;
	struct sb_store *store;
	size_t len, at, nr;
	char *bytes, page[4096];
	uint32_t i;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	for (i = 0; i < 360; i++)
		assert_int_equal(put_block(store, T0 + 10 * i, 8), 0);
	sb_store_close(store);
	read_fine(&bytes, &len);
	assert_true(len > 5 * sizeof(page));
	sum_of(T0, T0 + 590, -1, want);
	for (at = 0; at < len; at += sizeof(page)) {
		nr = len - at < sizeof(page) ? len - at : sizeof(page);
		memcpy(page, bytes + at, nr);
		memset(bytes + at, 0, nr);
		write_fine(bytes, len);
		assert_int_equal(sb_store_open(dir, &store), 0);
		/* Not ten minutes: the sum of these is in another file. */
		ask(store, T0, T0 + 590, -1, have, &answer);
		assert_true(answer.nr_damaged || answer.nr_skipped_bytes);
		assert_true(total_of(have) + answer.lost_weight <= total_of(want));
		expect_sums(store, T0, T0 + 600);
		sb_store_close(store);
		memcpy(bytes + at, page, nr);
	}
	free(bytes);
}

/* A kind whose sum the last writer did not come to has it from the next one. */
static void test_half_summed(void **state)
{
	struct sb_store_query query = { .from_s = T0, .to_s = T0 + 600, .kind = "io" };
	struct sb_store_block io = { T0, "io", "bytes" };
	struct sb_store_series series = {};
	struct put one = { T0, 1, 0, 0, 77 };
	struct sb_store_answer answer;
	struct sb_profile *profile, *found;
	struct sb_store *store;
	char path[128];
	struct stat before, after;

	profile = profile_of(&one);
	series.profile = profile;
	io.series = &series;
	io.nr = 1;
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	assert_int_equal(put_block(store, T0, 4), 0);
	assert_int_equal(put_block(store, T0 + 600, 4), 0);
	snprintf(path, sizeof(path), "%s/10min/20400101.sb", dir);
	assert_int_equal(stat(path, &before), 0);
	sb_store_close(store);
	/* As if it had been there, and its sum not. */
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_size, after.st_size);
	assert_int_equal(sb_store_put(store, &io), 0);
	sb_store_close(store);
	assert_int_equal(truncate(path, before.st_size), 0);
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	assert_int_equal(put_block(store, T0 + 1200, 1), 0);
	expect_sums(store, T0, T0 + 600);
	sb_store_close(store);
	/* Without the finer blocks, it is all that there is. */
	assert_int_equal(unlink(fine_path()), 0);
	assert_int_equal(sb_store_open(dir, &store), 0);
	assert_int_equal(sb_profile_new(&found), 0);
	assert_int_equal(sb_store_query(store, &query, found, &answer), 0);
	assert_int_equal(answer.weight, 77);
	sb_profile_free(found);
	sb_profile_free(profile);
	sb_store_close(store);
}

struct looked {
	uint64_t nr_files, nr_blocks, nr_damaged, nr_named;
	uint64_t nr_skipped;
};

static void note_file(void *arg, const struct sb_store_file_info *info)
{
	struct looked *looked = arg;

	looked->nr_files++;
	looked->nr_skipped += info->nr_skipped_bytes;
	looked->nr_blocks += info->nr_blocks;
	looked->nr_damaged += info->nr_damaged_blocks + info->nr_damaged_dicts +
			      (info->nr_skipped_bytes > 0) + (info->nr_tail_bytes > 0);
}

static void note_damaged(void *arg, const char *name, const struct sb_record *block)
{
	struct looked *looked = arg;

	assert_string_equal(name, "10s/20400101.sb");
	assert_in_range(block->begin_s, T0, T0 + 10 * NR_BLOCKS);
	looked->nr_named++;
}

/* Whatever bit is another one, a look at all of it finds it. */
static void test_look(void **state)
{
	struct looked looked = {};
	const struct sb_store_look look = { true, note_file, note_damaged, &looked };
	struct sb_store *store;
	size_t len, at, i, nr_named = 0;
	char *bytes;

	fill();
	assert_int_equal(sb_store_open(dir, &store), 0);
	assert_int_equal(sb_store_look(store, &look), 0);
	assert_int_equal(looked.nr_files, 1);
	assert_int_equal(looked.nr_blocks, NR_BLOCKS);
	assert_int_equal(looked.nr_damaged, 0);
	read_fine(&bytes, &len);
	for (i = 0; i < 200; i++) {
		at = random_of((uint32_t)len);
		bytes[at] ^= (char)(1 << i % 8);
		write_fine(bytes, len);
		looked = (struct looked){};
		assert_int_equal(sb_store_look(store, &look), 0);
		assert_true(looked.nr_damaged > 0);
		nr_named += looked.nr_named;
		bytes[at] ^= (char)(1 << i % 8);
	}
	assert_true(nr_named > 20);
	/* What a question calls damaged, a look does, too: the end of a file that nobody writes any
	 * more. */
	write_fine(bytes, len - 7);
	looked = (struct looked){};
	assert_int_equal(sb_store_look(store, &look), 0);
	assert_true(looked.nr_skipped > 0);
	free(bytes);
	sb_store_close(store);
}

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
	struct sb_store_series series = { &tag, 1, profile_of(&one) };
	struct sb_store_block block = { begin_s, "oncpu", "samples", { 10000 }, &series, 1 };

	assert_int_equal(sb_store_put(store, &block), 0);
	sb_profile_free((struct sb_profile *)series.profile);
}

/* A host whose finer blocks had expired when it was merged in is no damage of the sums that have
 * it; another is. */
static void test_merged_sum(void **state)
{
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
	assert_int_equal(sb_store_merge(store, other, T0 + 6600), 0);
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
	struct sb_store_series series = { &tag, 1, profile_of(&one) };
	struct sb_store_block block = { T0, "oncpu", "samples", { 10000 }, &series, 1 };
	struct sb_store *store;

	assert_int_equal(sb_store_open_to_write(path, &no_sync, &store), 0);
	assert_int_equal(sb_store_put(store, &block), 0);
	block.begin_s += 600;
	assert_int_equal(sb_store_put(store, &block), 0);
	sb_store_close(store);
	sb_profile_free((struct sb_profile *)series.profile);
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

/* A block of one stack that began @lead_ms after @begin_s, and how long it was sampled. */
static void put_long(struct sb_store *store, int64_t begin_s, uint16_t lead_ms, uint64_t length_ms,
		     uint64_t weight)
{
	struct put one = { begin_s, 1, 0, 0, weight };
	struct sb_tag tag = { "service", "a", false };
	struct sb_store_series series = { &tag, 1, profile_of(&one) };
	struct sb_store_block block = { begin_s, "oncpu", "samples", { length_ms }, &series, 1 };

	block.lead_ms = lead_ms;
	block.figure[SB_BLOCK_HZ_MS] = 99 * length_ms;
	assert_int_equal(sb_store_put(store, &block), 0);
	sb_profile_free((struct sb_profile *)series.profile);
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
	sb_timeline_free(timeline);
}

/* Kinds that there is no room for are left out, which is said. We never write so many. */
static void test_many_kinds(void **state)
{
	struct sb_store_extent extents[SB_STORE_KINDS_MAX];
	struct put one = { T0, 1, 0, 0, 1 };
	struct sb_tag tag = { "service", "a", false };
	struct sb_store_series series = { &tag, 1, profile_of(&one) };
	struct sb_store *store;
	char name[16];
	int i;

	(void)state;
	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	for (i = 0; i <= SB_STORE_KINDS_MAX; i++) {
		struct sb_store_block block = { T0, name, "samples", { 10000 }, &series, 1 };

		assert_false(store->has_told_kinds);
		snprintf(name, sizeof(name), "kind%d", i);
		assert_int_equal(sb_store_put(store, &block), 0);
		assert_int_equal(sb_store_extents(store, extents),
				 i < SB_STORE_KINDS_MAX ? i + 1 : SB_STORE_KINDS_MAX);
	}
	assert_true(store->has_told_kinds);
	sb_profile_free((struct sb_profile *)series.profile);
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
	series.profile = profile;
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
		cmocka_unit_test_setup_teardown(test_late, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_cut_short, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_flipped, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_again, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_damaged_again, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_dropped, setup, release_puts),
		cmocka_unit_test(test_unpacked),
		cmocka_unit_test_setup_teardown(test_another_file, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_zeroed, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_half_summed, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_look, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_wrong_sum, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_merged_sum, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_moved_sum, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_missing_sum, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_far, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_many_kinds, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_long_block, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_late_after_opening, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_was_ahead, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_late_place, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_merge, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_short_store, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_one_writer, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_expiry, setup, release_puts),
		cmocka_unit_test_setup_teardown(test_other, setup, release_puts),
		cmocka_unit_test(test_tags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
