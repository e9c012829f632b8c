// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A store of a model of a host, the same each time: 20 services by Zipf 0.9, 20,000 stacks by Zipf 1.0, depth
 * 30.7 +- 8, 4.3 new nodes of the tree a stack, load by the time of day, 2 % of the ranks exchanged each hour,
 * 1,000 new stacks a day. A block of 10 s has about 4,500 samples and 2,000 rows.
 *
 *	store_model make DIR BEGIN SECONDS STEP [SCALE [KIND...]]
 *						blocks of STEP seconds' samples, one each STEP and KIND
 *	store_model ask DIR FROM TO LENGTH NR NODES [RULE...]
 *						the first of NR random ranges of LENGTH, then all of them, files
 *						having been read; each with the next RULE; prints CPU us, blocks,
 *						stacks
 *	store_model open DIR				us that it takes to open for writing
 *	store_model rows DIR FROM TO			"time row weight" of all 10-second blocks
 *
 * What `make` prints is JSON: blocks, rows, samples, and the CPU time of sb_store_put() alone.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/time.h"
#include "kinds/view_kind.h"
#include "store/ask.h"
#include "store/search.h"

#define NR_SERVICES 20
#define NR_STACKS   20000
#define NR_NEW_DAY  1000
#define NR_NAMES    9600
#define SAMPLES_10S 4548
#define DEPTH_MAX   64
#define HOUR	    3600
#define DAY	    (24 * HOUR)

#define SEED	    20211121
static uint64_t seed = SEED;

static uint32_t random_of(uint32_t nr)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((seed >> 32) * nr >> 32);
}

static double random_unit(void)
{
	return random_of(1u << 30) / (double)(1u << 30);
}

static void must(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "store_model: %s: %s\n", what, strerror(-err));
	exit(1);
}

static double cpu_us(void)
{
	struct timespec at;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
	return (double)at.tv_sec * 1e6 + (double)at.tv_nsec / 1e3;
}

/* What there is to be sampled. */

struct stack {
	uint32_t service, nr;
	uint32_t names[DEPTH_MAX];
};

static char *names[NR_NAMES];
static struct stack stacks[NR_STACKS];
static uint32_t by_rank[NR_STACKS]; /* which stack has that rank */
static double cdf[NR_STACKS], service_cdf[NR_SERVICES];

static void make_cdf(double *to, size_t nr, double s)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < nr; i++)
		to[i] = sum += 1 / pow((double)i + 1, s);
	for (i = 0; i < nr; i++)
		to[i] /= sum;
}

static uint32_t draw(const double *from, uint32_t nr)
{
	double at = random_unit();
	uint32_t low = 0, high = nr - 1, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (from[middle] < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* As long as C++ has them: 76 bytes; a fourth is short, as of the kernel: 23. */
static void make_name(uint32_t id)
{
	static const char *const words[] = {
		"net",	 "http",   "Server", "handle",	 "Request", "json",   "parse", "Value",
		"std",	 "vector", "alloc",  "detail",	 "invoke",  "impl",   "Task",  "queue",
		"push",	 "pop",	   "lock",   "guard",	 "tcp",	    "read",   "write", "buffer",
		"flush", "index",  "lookup", "Cache",	 "find",    "insert", "begin", "end",
		"map",	 "tree",   "node",   "iterator", "async",   "Future", "await", "poll",
	};
	bool is_short = id % 4 == 0;
	size_t want = is_short ? 15 + random_of(16) : 50 + random_of(52), len = 0;
	char name[160];

	while (len < want)
		len += (size_t)snprintf(name + len, sizeof(name) - len, "%s%s",
					words[random_of(SB_ARRAY_SIZE(words))],
					is_short       ? "_"
					: random_of(3) ? "::"
						       : "<");
	snprintf(name + len, sizeof(name) - len, "%u", id);
	names[id] = strdup(name);
}

/* Half of the frames are of what all have: the kernel, libraries. */
static uint32_t name_of(uint32_t service)
{
	uint32_t nr_shared = NR_NAMES / 4, nr_own = (NR_NAMES - nr_shared) / NR_SERVICES - 1;

	if (random_of(2))
		return NR_SERVICES + random_of(nr_shared - NR_SERVICES);
	return nr_shared + service * nr_own + random_of(nr_own);
}

/* Callers of one of @nr_there stacks, of the same service, and a few more frames. */
static void make_stack(uint32_t id, uint32_t nr_there)
{
	struct stack *stack = &stacks[id], *like;
	uint32_t depth = 1, nr_more = 1 + random_of(7), i, tries;

	stack->service = draw(service_cdf, NR_SERVICES);
	for (i = 0; i < 16; i++) /* about normal */
		depth += random_of(5);
	depth = depth < nr_more + 1 ? nr_more + 1 : depth;
	stack->nr = 1;
	stack->names[0] = stack->service;
	for (tries = 0; tries < 1000 && nr_there; tries++) {
		like = &stacks[random_of(nr_there)];
		if (like->service != stack->service || like->nr + nr_more < depth)
			continue;
		stack->nr = depth - nr_more < like->nr ? depth - nr_more : like->nr;
		memcpy(stack->names, like->names, stack->nr * sizeof(stack->names[0]));
		break;
	}
	while (stack->nr < depth && stack->nr < DEPTH_MAX)
		stack->names[stack->nr++] = name_of(stack->service);
}

static void make_host(void)
{
	uint32_t i;

	make_cdf(cdf, NR_STACKS, 1.0);
	make_cdf(service_cdf, NR_SERVICES, 0.9);
	for (i = 0; i < NR_NAMES; i++)
		make_name(i);
	for (i = 0; i < NR_STACKS; i++) {
		make_stack(i, i);
		by_rank[i] = i;
	}
}

static void swap(uint32_t a, uint32_t b)
{
	uint32_t of_a = by_rank[a];

	by_rank[a] = by_rank[b];
	by_rank[b] = of_a;
}

static void next_hour(void)
{
	uint32_t i;

	for (i = 0; i < NR_STACKS / 100; i++)
		swap(random_of(NR_STACKS), random_of(NR_STACKS));
}

static void next_day(void)
{
	uint32_t i;

	for (i = 0; i < NR_NEW_DAY; i++)
		make_stack(random_of(NR_STACKS), NR_STACKS);
}

/* Blocks. */

static struct sb_profile *block_profile;
/* Of the profile, by name; UINT32_MAX: not yet. */
static uint32_t frames[NR_NAMES];

/* As a writer gets it from a sampler: with the frames of this block alone. */
static void begin_profile(void)
{
	memset(frames, 0xff, sizeof(frames));
	must(sb_profile_new(&block_profile), "profile");
}

static void add_sample(uint32_t id, uint64_t weight)
{
	const struct stack *stack = &stacks[id];
	uint32_t ids[DEPTH_MAX], i;
	const struct sb_row row = { ids, stack->nr, .series = stack->service, .weight = weight };

	for (i = 0; i < stack->nr; i++) {
		uint32_t name = stack->names[i], *frame = &frames[name];
		struct sb_frame of = {
			.name = names[name],
			.module = name % 4 ? "libserver.so" : "kernel",
			.kind = name % 4 ? SB_FRAME_USER : SB_FRAME_KERNEL,
		};

		if (*frame == UINT32_MAX)
			must(sb_profile_frame(block_profile, &of, frame), "frame");
		ids[i] = *frame;
	}
	must(sb_profile_add_row(block_profile, &row), "stack");
}

static double load_at(int64_t time_s)
{
	return 1 + 0.5 * sin((double)(time_s % DAY) / DAY * 2 * M_PI);
}

/* Many samples are spread over the ranks as they would be, and not drawn one by one. */
static uint64_t sample(uint64_t nr_samples)
{
	uint64_t sum = 0, weight;
	uint32_t i;

	if (nr_samples < 100000) {
		for (i = 0; i < nr_samples; i++)
			add_sample(by_rank[draw(cdf, NR_STACKS)], 1);
		return nr_samples;
	}
	for (i = 0; i < NR_STACKS; i++) {
		double share = (i ? cdf[i] - cdf[i - 1] : cdf[0]) * (double)nr_samples;

		weight = (uint64_t)(share + random_unit());
		if (weight)
			add_sample(by_rank[i], weight);
		sum += weight;
	}
	return sum;
}

struct made {
	uint64_t nr_blocks, nr_rows, nr_samples;
	double cpu_us, cpu_max_us;
};

static void put_block(struct sb_store *store, int64_t begin_s, const char *kind,
		      uint64_t nr_samples, struct made *made)
{
	struct sb_store_series series[NR_SERVICES];
	struct sb_tag tags[NR_SERVICES][2];
	char service[NR_SERVICES][16];
	struct sb_store_block block = {
		.begin_s = begin_s,
		.kind = kind,
		.unit = "samples",
		.figure = { [SB_BLOCK_SAMPLED_MS] = 10000,
			    [SB_BLOCK_CPU_MS] = 160000,
			    [SB_BLOCK_HZ_MS] = 990000 },
		.series = series,
		.nr = NR_SERVICES,
	};
	uint32_t i;
	double before;

	begin_profile();
	block.profile = block_profile;
	block.figure[SB_BLOCK_SAMPLES] = sample(nr_samples);
	made->nr_samples += block.figure[SB_BLOCK_SAMPLES];
	must(sb_profile_seal(block_profile), "seal");
	made->nr_rows += sb_profile_nr_stacks(block_profile);
	for (i = 0; i < NR_SERVICES; i++) {
		snprintf(service[i], sizeof(service[i]), "service%u", i);
		tags[i][0] = (struct sb_tag){ "host", "model", false };
		tags[i][1] = (struct sb_tag){ "service", service[i], false };
		series[i] = (struct sb_store_series){ tags[i], 2 };
	}
	before = cpu_us();
	must(sb_store_put(store, &block), "put");
	before = cpu_us() - before;
	made->cpu_us += before;
	if (before > made->cpu_max_us)
		made->cpu_max_us = before;
	made->nr_blocks++;
	sb_profile_free(block_profile);
}

static int make(char **argv, int argc)
{
	char *default_kind = (char *)sb_view_kind_default()->name;
	const struct sb_store_opts opts = { .no_sync = true };
	int64_t begin_s = atoll(argv[1]), seconds = atoll(argv[2]), step_s = atoll(argv[3]), at_s;
	double scale = argc > 4 ? atof(argv[4]) : 1;
	struct sb_store *store;
	struct made made = {};
	char **kinds = argc > 5 ? argv + 5 : &default_kind;
	int k, nr_kinds = argc > 5 ? argc - 5 : 1;

	make_host();
	must(sb_store_open_to_write(argv[0], &opts, &store), "open");
	for (at_s = begin_s; at_s < begin_s + seconds; at_s += step_s) {
		if (at_s > begin_s && at_s % HOUR < step_s)
			next_hour();
		if (at_s > begin_s && at_s % DAY < step_s)
			next_day();
		for (k = 0; k < nr_kinds; k++)
			put_block(store, at_s, kinds[k],
				  (uint64_t)(scale * load_at(at_s) * SAMPLES_10S * (double)step_s /
					     10),
				  &made);
	}
	sb_store_close(store);
	printf("{\"blocks\": %llu, \"rows\": %llu, \"samples\": %llu, \"put_us\": %.1f, \"put_max_us\": %.1f}\n",
	       (unsigned long long)made.nr_blocks, (unsigned long long)made.nr_rows,
	       (unsigned long long)made.nr_samples, made.cpu_us / (double)made.nr_blocks,
	       made.cpu_max_us);
	return 0;
}

/* Questions. */

/* Return: the CPU time of the answer, us. */
static double ask_one(struct sb_store *store, struct sb_ask *ask, struct sb_store_answer *answer,
		      size_t *ret_nr_stacks)
{
	struct sb_profile *profile;
	double before_us = cpu_us();

	must(sb_ask_profile(store, ask, &profile, answer), "ask");
	before_us = cpu_us() - before_us;
	*ret_nr_stacks = sb_profile_nr_stacks(profile);
	sb_profile_free(profile);
	return before_us;
}

static int ask(char **argv, int argc)
{
	int64_t from_s = atoll(argv[1]), to_s = atoll(argv[2]), length_s = atoll(argv[3]);
	long i, nr = atol(argv[4]);
	struct sb_store_answer answer;
	struct sb_store *store;
	size_t nr_stacks;
	double us;

	must(sb_store_open(argv[0], &store), "open");
	/* The same ranges twice: first, files are read; of these, the first question of all is
	 * told. */
	for (i = 0; i < 2 * nr; i++) {
		struct sb_ask ask = { .nr_nodes_max = argc > 5 ? (uint32_t)atol(argv[5]) : 0 };

		if (i % nr == 0)
			seed = SEED;
		ask.from_s = from_s +
			     (int64_t)(random_unit() * (double)(to_s - from_s - length_s + 10)) /
				     10 * 10;
		ask.to_s = ask.from_s + length_s;
		if (argc > 6)
			must(sb_ask_rule(&ask, argv[6 + i % (argc - 6)]), "rule");
		us = ask_one(store, &ask, &answer, &nr_stacks);
		if (!i || i >= nr)
			printf("%.0f %llu %llu\n", us, (unsigned long long)answer.nr_blocks,
			       (unsigned long long)nr_stacks);
		sb_ask_release(&ask);
	}
	sb_store_close(store);
	return 0;
}

static int open_it(char **argv)
{
	const struct sb_store_opts opts = { .no_sync = true };
	uint64_t before_ns = sb_now_ns();
	struct sb_store *store;

	must(sb_store_open_to_write(argv[0], &opts, &store), "open");
	printf("%llu\n", (unsigned long long)(sb_now_ns() - before_ns) / 1000);
	sb_store_close(store);
	return 0;
}

static int print_rows(struct sb_search *search, struct sb_kept_file *kept,
		      const struct sb_record *block)
{
	uint64_t figure[SB_BLOCK_FIGURE_MAX] = {};
	struct sb_block_rows rows;
	size_t i;
	int err = sb_segment_rows(&kept->segment, block, &rows, figure);

	for (i = 0; i < rows.nr && !err; i++)
		printf("%lld %u %llu\n", (long long)block->begin_s, rows.row[i],
		       (unsigned long long)rows.weight[i]);
	return err;
}

static int rows(char **argv)
{
	struct sb_store_answer answer;
	struct sb_search search = { .kind = "oncpu", .answer = &answer, .visit = print_rows };
	int64_t at_s, to_s = atoll(argv[2]);

	must(sb_store_open(argv[0], &search.store), "open");
	sb_search_begin(&search);
	for (at_s = atoll(argv[1]); at_s < to_s; at_s += SB_STORE_BLOCK_S)
		must(sb_search_cover(&search, at_s, at_s + SB_STORE_BLOCK_S), "search");
	sb_search_end(&search);
	sb_store_close(search.store);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	if (!strcmp(what, "make") && argc >= 6)
		return make(argv + 2, argc - 2);
	if (!strcmp(what, "ask") && argc >= 7)
		return ask(argv + 2, argc - 2);
	if (!strcmp(what, "open"))
		return open_it(argv + 2);
	if (!strcmp(what, "rows") && argc >= 5)
		return rows(argv + 2);
	fprintf(stderr, "usage: store_model make|ask|open|rows DIR ...\n");
	return 2;
}
