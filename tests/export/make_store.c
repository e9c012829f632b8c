// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * make_store DIR BEGIN NR [EVERY]: put NR blocks of 10 s into a store, the first at BEGIN (a
 * multiple of 10), one each EVERY seconds (10): of two kinds, with services, regions and process
 * numbers, and names that are not easy. On stdout is what was put in: BEGIN, KIND, SERVICE, REGION,
 * WEIGHT and the frames in hexadecimal, root first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"

#define NR_SERIES 6
#define NR_STACKS 9

static void fail(const char *what, int err)
{
	fprintf(stderr, "make_store: %s: %s\n", what, strerror(-err));
	exit(2);
}

static const struct sb_frame frames[] = {
	{ .name = "main", .module = "app", .kind = SB_FRAME_USER },
	{ .name = "parse", .module = "app", .kind = SB_FRAME_USER },
	{ .name = "a;b c", .module = "app", .kind = SB_FRAME_USER },
	{ .name = "it's \\ \"quoted\"", .module = "lib", .kind = SB_FRAME_USER },
	{ .name = "tab\there\nand line", .kind = SB_FRAME_JIT },
	{ .name = "\xc3\xa9t\xc3\xa9 \xff", .module = "app", .kind = SB_FRAME_INTERP },
	{ .name = "std::vector<int, std::allocator<int> >::push_back(int&&)",
	  .kind = SB_FRAME_USER },
	{ .name = "do_syscall_64", .module = "[kernel]", .kind = SB_FRAME_KERNEL },
	{ .name = "[truncated: too deep]", .kind = SB_FRAME_MARK },
	{ .name = "parse", .module = "other", .kind = SB_FRAME_USER },
};
#define NR_FRAMES (sizeof(frames) / sizeof(frames[0]))

static uint64_t seed = 1;

static uint32_t random_of(uint32_t nr)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % nr;
}

/* Stack number @i has frames by its number, so that all blocks have the same ones. */
static void add_stack(struct sb_profile *profile, uint32_t series, uint32_t i, uint64_t weight,
		      const char *prefix)
{
	uint32_t ids[1 + NR_STACKS];
	struct sb_row row = { .frames = ids, .series = series, .weight = weight };
	size_t nr = 1 + i % 4, k, byte;

	printf("%s\t%llu", prefix, (unsigned long long)weight);
	for (k = 0; k < nr; k++) {
		const struct sb_frame *frame = &frames[k ? (i * 3 + k) % NR_FRAMES : 0];

		if (sb_profile_frame(profile, frame, &ids[k]))
			fail("cannot add a frame", -ENOMEM);
		putchar(k ? ' ' : '\t');
		for (byte = 0; frame->name[byte]; byte++)
			printf("%02x", (unsigned char)frame->name[byte]);
	}
	putchar('\n');
	row.nr = nr;
	if (sb_profile_add_row(profile, &row))
		fail("cannot add a stack", -ENOMEM);
}

static void put(struct sb_store *store, int64_t begin_s, const char *kind, const char *unit,
		uint32_t weight_max)
{
	static const char *const services[] = { "bike", "car", "" };
	static const char *const regions[] = { "eu", "us east" };
	struct sb_store_series series[NR_SERIES];
	struct sb_tag tags[NR_SERIES][3];
	struct sb_profile *profile;
	char pids[NR_SERIES][16], prefix[128];
	struct sb_store_block block = {
		begin_s, kind,
		unit,	 { [SB_BLOCK_SAMPLED_MS] = 10000, [SB_BLOCK_CPU_MS] = 40000 },
		series,	 NR_SERIES
	};
	uint32_t i, k, nr;
	int err;

	if (sb_profile_new(&profile))
		fail("cannot make a profile", -ENOMEM);
	block.figure[SB_BLOCK_HZ_MS] = strcmp(unit, "samples") ? 0 : 990000;
	for (i = 0; i < NR_SERIES; i++) {
		const char *service = services[i % 3], *region = regions[i / 3];

		nr = 0;
		snprintf(pids[i], sizeof(pids[i]), "%u", 1000 + random_of(3));
		tags[i][nr++] = (struct sb_tag){ "pid", pids[i], true };
		tags[i][nr++] = (struct sb_tag){ "region", region, false };
		if (*service)
			tags[i][nr++] = (struct sb_tag){ "service", service, false };
		snprintf(prefix, sizeof(prefix), "%lld\t%s\t%s\t%s", (long long)begin_s, kind,
			 service, region);
		for (k = 0; k < NR_STACKS; k++)
			if (random_of(3))
				add_stack(profile, i, k, 1 + random_of(weight_max), prefix);
		series[i] = (struct sb_store_series){ tags[i], nr };
	}
	block.profile = profile;
	err = sb_profile_seal(profile) ?: sb_store_put(store, &block);
	if (err)
		fail("cannot put a block", err);
	sb_profile_free(profile);
}

int main(int argc, char **argv)
{
	const struct sb_store_opts opts = { .no_sync = true };
	struct sb_store *store;
	int64_t begin_s, every_s, i;
	int err;

	if (argc < 4)
		fail("DIR BEGIN NR [EVERY]", -EINVAL);
	begin_s = atoll(argv[2]);
	every_s = argc > 4 ? atoll(argv[4]) : 10;
	seed = (uint64_t)begin_s;
	err = sb_store_open_to_write(argv[1], &opts, &store);
	if (err)
		fail("cannot open the store", err);
	for (i = 0; i < atoll(argv[3]); i++) {
		put(store, begin_s + i * every_s, "oncpu", "samples", 50);
		put(store, begin_s + i * every_s, "offcpu", "us", 5000000);
	}
	sb_store_close(store);
	return 0;
}
