/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Behind <cmocka.h>: a store, and a plain list of what was put into it. Each question is answered
 * by both. */
#ifndef SB_UNIT_STORE_PUTS_H
#define SB_UNIT_STORE_PUTS_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/vec.h"
#include "store/store.h"
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

static inline int release_puts(void **state)
{
	sb_vec_release(&puts_made);
	return teardown(state);
}

/* "main;f3;g17" */
static inline void add_put(struct sb_profile *profile, const struct put *put, uint32_t series)
{
	char f[16], g[16];
	uint32_t frames[3];
	const struct sb_row row = { frames, 3, .series = series, .weight = put->weight };

	snprintf(f, sizeof(f), "f%u", put->stack % 7);
	snprintf(g, sizeof(g), "g%u", put->stack);
	frames[0] = frame_of(profile, "main");
	frames[1] = frame_of(profile, f);
	frames[2] = frame_of(profile, g);
	assert_int_equal(sb_profile_add_row(profile, &row), 0);
}

static inline struct sb_profile *profile_of(const struct put *put)
{
	struct sb_profile *profile;

	assert_int_equal(sb_profile_new(&profile), 0);
	add_put(profile, put, 0);
	assert_int_equal(sb_profile_seal(profile), 0);
	return profile;
}

/* @nr random series at one time. Return: as sb_store_put(). */
static inline int put_block(struct sb_store *store, int64_t begin_s, uint32_t nr)
{
	struct sb_store_series series[16] = {};
	struct sb_store_block block = { begin_s, "oncpu", "samples", { 10000 }, series, nr };
	struct sb_profile *profile;
	struct sb_tag tags[16][2];
	char service[16][16], pid[16][16];
	struct put put[16];
	uint32_t i;
	int err;

	assert_int_equal(sb_profile_new(&profile), 0);
	for (i = 0; i < nr; i++) {
		put[i] = (struct put){ begin_s, random_of(NR_STACKS), random_of(NR_SERVICES),
				       random_of(NR_PIDS), 1 + random_of(1000) };
		snprintf(service[i], sizeof(service[i]), "s%u", put[i].service);
		snprintf(pid[i], sizeof(pid[i]), "%u", put[i].pid);
		tags[i][0] = (struct sb_tag){ "pid", pid[i], true };
		tags[i][1] = (struct sb_tag){ "service", service[i], false };
		series[i] = (struct sb_store_series){ tags[i], 2 };
		add_put(profile, &put[i], i);
	}
	assert_int_equal(sb_profile_seal(profile), 0);
	block.profile = profile;
	err = sb_store_put(store, &block);
	sb_profile_free(profile);
	for (i = 0; i < nr && !err; i++)
		assert_int_equal(sb_vec_push(&puts_made, put[i]), 0);
	return err;
}

static inline void sum_of(int64_t from_s, int64_t to_s, int service, uint64_t sums[NR_STACKS])
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
static inline void add_stack(const struct sb_profile *profile, const uint32_t *frames, size_t nr,
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

static inline void ask(struct sb_store *store, int64_t from_s, int64_t to_s, int service,
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

static inline void expect(struct sb_store *store, int64_t from_s, int64_t to_s, int service)
{
	uint64_t want[NR_STACKS], have[NR_STACKS];
	struct sb_store_answer answer;

	sum_of(from_s, to_s, service, want);
	ask(store, from_s, to_s, service, have, &answer);
	assert_memory_equal(have, want, sizeof(want));
	assert_int_equal(answer.nr_damaged + answer.nr_skipped_bytes + answer.lost_weight, 0);
}

/* The same, where other files of the store are damaged. */
static inline void expect_sums(struct sb_store *store, int64_t from_s, int64_t to_s)
{
	uint64_t want[NR_STACKS], have[NR_STACKS];
	struct sb_store_answer answer;

	sum_of(from_s, to_s, -1, want);
	ask(store, from_s, to_s, -1, have, &answer);
	assert_memory_equal(have, want, sizeof(want));
}

/* The 10-second file of T0, and what is in it. */
static inline char *fine_path(void)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/10s/20400101.sb", dir);
	return path;
}

static inline void read_fine(char **ret_bytes, size_t *ret_len)
{
	assert_int_equal(sb_read_file(fine_path(), 1 << 24, ret_bytes, ret_len), 0);
}

static inline void write_fine(const char *bytes, size_t len)
{
	int fd = open(fine_path(), O_WRONLY | O_TRUNC);

	assert_true(fd >= 0);
	assert_int_equal(sb_write_all(fd, bytes, len), 0);
	close(fd);
}

static inline uint64_t total_of(const uint64_t sums[NR_STACKS])
{
	uint64_t total = 0;
	size_t i;

	for (i = 0; i < NR_STACKS; i++)
		total += sums[i];
	return total;
}

#define NR_BLOCKS 12

static inline void fill(void)
{
	struct sb_store *store;
	uint32_t i;

	assert_int_equal(sb_store_open_to_write(dir, &no_sync, &store), 0);
	for (i = 0; i < NR_BLOCKS; i++)
		assert_int_equal(put_block(store, T0 + 10 * i, 4), 0);
	sb_store_close(store);
}

#endif
