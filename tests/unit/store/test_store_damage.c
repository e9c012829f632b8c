// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A store whose files are damaged, cut short or replaced, and what is kept of them in memory. */
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

#include "store/check.h"
#include "store/store_priv.h"
#include "store_puts.h"

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
	io.series = &series;
	io.nr = 1;
	io.profile = profile;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
