// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Batches to profiles, with a symbolizer of known answers in the place of the real one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "bpf/abi/sb_abi_latency.h"
#include "model/fold.h"
#include "model/profile.h"
#include "resolve/resolve.h"
#include "resolve/slowest.h"

/* What the stand-in was asked for last. */
static struct {
	uint32_t tgid;
	uint64_t time_ns;
	size_t nr_kernel_calls;
} asked;

/* Times at which what lies at 0x1001 changes, "un" to "vn" and back; 0 ends them. */
static uint64_t changes_ns[8];

/* Address 0x1000 + n is "un" (0x1005 has an inlined "i5"), a caller's name ends in '. */
static int answer(const struct sb_sym_query *query, char side)
{
	size_t i;
	int err = 0;

	for (i = 0; i < query->nr && !err; i++) {
		unsigned int n = (unsigned int)(query->reqs[i].addr & 0xfff);
		char name[32], inlined[16];
		struct sb_sym_frame frames[2] = {
			{ .name = inlined, .module = "m", .is_inlined = true },
			{ .name = name,
			  .module = "m",
			  .kind = side == 'k' ? SB_SYM_KERNEL : SB_SYM_USER },
		};

		snprintf(name, sizeof(name), "%c%u%s", side, n,
			 query->reqs[i].is_caller ? "'" : "");
		snprintf(inlined, sizeof(inlined), "i%u", n);
		if (n == 10)
			snprintf(name, sizeof(name), "asm_sysvec_timer");
		if (n == 9) {
			frames[1].name = NULL;
			frames[1].reason = SB_SYM_NO_MATCH;
			frames[1].module_addr = 0x99;
		}
		if (n == 11) {
			frames[1].name = NULL;
			frames[1].reason = SB_SYM_ANON;
			frames[1].module = side == 'k' ? "[kernel]" : "[anon]";
			frames[1].module_addr = 0xffffffff81000000;
			frames[1].is_absolute = true;
		}
		if (n == 7) {
			frames[1].name = NULL;
			frames[1].reason = SB_SYM_UNMAPPED;
			frames[1].module = "";
		}
		err = query->emit(query->arg, i, n == 5 ? frames : frames + 1, n == 5 ? 2 : 1);
	}
	return err;
}

int sb_symbolizer_user(struct sb_symbolizer *sym, uint32_t tgid, uint64_t time_ns,
		       const struct sb_sym_query *query)
{
	size_t nr_changes = 0;

	asked.tgid = tgid;
	asked.time_ns = time_ns;
	while (changes_ns[nr_changes] && changes_ns[nr_changes] <= time_ns)
		nr_changes++;
	return answer(query, nr_changes % 2 ? 'v' : 'u');
}

uint64_t sb_symbolizer_next_change(struct sb_symbolizer *sym, uint32_t tgid, uint64_t from_ns,
				   uint64_t to_ns, const struct sb_sym_query *query)
{
	size_t i;

	for (i = 0; changes_ns[i]; i++)
		if (changes_ns[i] > from_ns && changes_ns[i] <= to_ns)
			return changes_ns[i];
	return UINT64_MAX;
}

int sb_symbolizer_kernel(struct sb_symbolizer *sym, const struct sb_sym_query *query)
{
	asked.nr_kernel_calls++;
	return answer(query, 'k');
}

static const uint64_t user_ips[] = { 0x1001, 0x1005, 0x1009 };
static const uint64_t broken_ips[] = { 0x1001, 0x1002, 0x1007, 0x1003 };
static const uint64_t anon_ips[] = { 0x100b, 0x1009 };
static const uint64_t kernel_ips[] = { 0x1002, 0x1003 };
static const uint64_t interrupt_ips[] = { 0x1002, 0x100a, 0x1003 };

static const struct sb_batch_stack stacks[] = {
	{ .id = { 1, 1 }, .nr_frames = 3, .ip = user_ips },
	{ .id = { 10, 1 }, .flags = SB_STACK_CALLS, .nr_frames = 3, .ip = user_ips },
	{ .id = { 2, 1 }, .flags = SB_STACK_KERNEL, .nr_frames = 2, .ip = kernel_ips },
	{ .id = { 7, 1 }, .flags = SB_STACK_KERNEL, .nr_frames = 3, .ip = interrupt_ips },
	{ .id = { 4, 1 }, .nr_frames = 4, .ip = broken_ips },
	{ .id = { 8, 1 }, .nr_frames = 2, .ip = anon_ips },
	{ .id = { 9, 1 }, .flags = SB_STACK_KERNEL, .nr_frames = 1, .ip = anon_ips },
	{ .id = { 5, 1 }, .nr_frames = 1, .ip = broken_ips + 2 },
	{ .id = { 6, 1 }, .nr_frames = 2, .ip = broken_ips + 2, .flags = SB_STACK_LEAF_RETURNS },
	{ .id = { 3, 1 },
	  .status = SB_STACK_FAULT,
	  .nr_frames = 1,
	  .ip = user_ips,
	  .flags = SB_STACK_LEAF_RETURNS },
};

static char folded[4096];
static uint32_t series[8]; /* of its lines */

static int collect(void *arg, const char *line, size_t len)
{
	size_t have = strlen(folded);

	snprintf(folded + have, sizeof(folded) - have, "%.*s\n", (int)len, line);
	return 0;
}

static const struct sb_batch_labels *labels;
static size_t nr_labels;

static struct sb_resolve_stats resolve(const struct sb_resolve_opts *opts,
				       const struct sb_batch_count *counts, size_t nr_counts)
{
	const struct sb_batch batch = { .counts = counts,
					.nr_counts = nr_counts,
					.stacks = stacks,
					.nr_stacks = sizeof(stacks) / sizeof(stacks[0]),
					.labels = labels,
					.nr_labels = nr_labels };
	const struct sb_fold_opts fold = {};
	struct sb_resolve_stats stats;
	struct sb_resolver *resolver;
	struct sb_profile *profile;
	size_t i;

	assert_int_equal(sb_profile_new(&profile), 0);
	assert_int_equal(sb_resolver_new(opts, NULL, profile, &resolver), 0);
	assert_int_equal(sb_resolver_add(resolver, &batch), 0);
	sb_resolver_stats(resolver, 0, &stats);
	assert_int_equal(sb_profile_seal(profile), 0);
	folded[0] = '\0';
	assert_int_equal(sb_fold(profile, &fold, collect, NULL), 0);
	for (i = 0; i < sb_profile_nr_stacks(profile) && i < 8; i++)
		series[i] = sb_profile_row_at(profile, i).series;
	sb_resolver_free(resolver);
	sb_profile_free(profile);
	return stats;
}

/* dlclose and dlopen at the same address between two drains, several times. */
static void test_changes(void **state)
{
	const struct sb_resolve_opts opts = {};
	const struct sb_batch_count counts[] = {
		{ { .ustack = { 1, 1 }, .tgid = 42, .comm = "app" },
		  { .weight = 1020, .nr_samples = 102, .first_ns = 1000, .last_ns = 2000 } },
		{ { .ustack = { 1, 1 }, .tgid = 42, .comm = "one" },
		  { .weight = 10, .nr_samples = 1, .first_ns = 1250, .last_ns = 1250 } },
	};
	struct sb_resolve_stats stats;

	changes_ns[0] = 1200;
	changes_ns[1] = 1900;
	changes_ns[2] = 1901; /* too short for a sample */
	changes_ns[3] = 2000;
	stats = resolve(&opts, counts, 2);
	memset(changes_ns, 0, sizeof(changes_ns));
	/* v from 1200 to 1900 and from 1901 to 2000: 70 and 10 samples of 100; u after 2000: 1. */
	assert_string_equal(folded, "app;[m+0x99];v5';i5;v1 800\n"
				    "app;[m+0x99];u5';i5;u1 220\n"
				    "one;[m+0x99];v5';i5;v1 10\n");
	assert_int_equal(stats.nr_samples, 103);
	assert_int_equal(stats.nr_shared_out, 102);
	assert_int_equal(stats.nr_frames, 3 * 103);
}

static void test_frames(void **state)
{
	const struct sb_resolve_opts opts = { .delimited = true };
	const struct sb_batch_count counts[] = {
		{ { .ustack = { 1, 1 }, .kstack = { 2, 1 }, .tgid = 42, .comm = "app" },
		  { .weight = 50, .nr_samples = 5, .first_ns = 77 } },
	};
	struct sb_resolve_stats stats = resolve(&opts, counts, 1);

	assert_string_equal(folded, "app;[m+0x99];u5';i5;u1;-;k3';k2 50\n");
	assert_int_equal(asked.tgid, 42);
	assert_int_equal(asked.time_ns, 77);
	assert_int_equal(stats.nr_samples, 5);
	assert_int_equal(stats.nr_frames, 5 * 5);
	assert_int_equal(stats.nr_unnamed[SB_SYM_NO_MATCH], 5);
	assert_int_equal(stats.nr_status[SB_STACK_COMPLETE], 5);
	assert_int_equal(stats.nr_processes, 1);
}

/* Inlined calls that have addresses of their own appear once. */
static void test_calls(void **state)
{
	const struct sb_resolve_opts opts = {};
	const struct sb_batch_count counts[] = {
		{ { .ustack = { 10, 1 }, .tgid = 42, .comm = "app" },
		  { .weight = 50, .nr_samples = 5 } },
	};

	(void)resolve(&opts, counts, 1);
	assert_string_equal(folded, "app;[m+0x99];i5;u1 50\n");
}

/* What is kept for others to read says where in a file code is, and not where memory is. */
static void test_addresses(void **state)
{
	const struct sb_resolve_opts hidden = { .hides_addresses = true }, shown = {};
	const struct sb_batch_count counts[] = {
		{ { .ustack = { 8, 1 }, .kstack = { 9, 1 }, .tgid = 42, .comm = "app" },
		  { .weight = 50, .nr_samples = 5, .first_ns = 77 } },
	};

	(void)resolve(&hidden, counts, 1);
	assert_string_equal(folded, "app;[m+0x99];[anon];[kernel] 50\n");
	(void)resolve(&shown, counts, 1);
	assert_string_equal(folded, "app;[m+0x99];[anon+0xffffffff81000000];"
				    "[kernel+0xffffffff81000000] 50\n");
}

static void test_cut_and_lost(void **state)
{
	const struct sb_resolve_opts opts = {};
	const struct sb_batch_count counts[] = {
		{ { .ustack = { 3, 1 }, .tgid = 1, .comm = "cut" },
		  { .weight = 3, .nr_samples = 3 } },
		{ { .ustack = { 9, 9 }, .tgid = 2, .comm = "lost" },
		  { .weight = 2, .nr_samples = 2 } },
		{ { .tgid = 3, .comm = "" }, { .weight = 1, .nr_samples = 1 } },
	};
	struct sb_resolve_stats stats = resolve(&opts, counts, 3);

	assert_string_equal(folded, "cut;[truncated: unreadable stack];u1' 3\n"
				    "lost;[lost stack] 2\n"
				    "[no name] 1\n");
	assert_int_equal(stats.nr_status[SB_STACK_FAULT], 3);
	assert_int_equal(stats.nr_missing_stacks, 2);
	assert_int_equal(stats.nr_user_stacks, 5);
	assert_int_equal(stats.nr_processes, 3);
}

static const struct sb_batch_labels label_sets[] = {
	{ .id = 11, .nr_bytes = 7, .text = "car\0eu" },
	{ .id = 12, .nr_bytes = 6, .text = "\0asia" },
	{ .id = 13, .nr_bytes = 0 },
};

static int series_of(void *arg, const struct sb_sample_key *key, const char *const *values,
		     uint32_t *ret_series)
{
	assert_int_equal(key->tgid, 42);
	*ret_series = values[0] && !strcmp(values[0], "car") ? 7 : 8;
	++*(int *)arg;
	return 0;
}

/* Labels of threads stand outside; a thread need not have all; those that were lost are counted. */
static void test_labels(void **state)
{
	static const char *const keys[] = { "vehicle", "region" };
	struct sb_resolve_opts opts = { .labels = keys, .nr_labels = 2 };
	const struct sb_batch_count counts[] = {
		{ { .labels = 11, .tgid = 42, .comm = "a" }, { .weight = 4, .nr_samples = 4 } },
		{ { .labels = 12, .tgid = 42, .comm = "a" }, { .weight = 3, .nr_samples = 3 } },
		{ { .labels = 13, .tgid = 42, .comm = "a" }, { .weight = 2, .nr_samples = 2 } },
		{ { .labels = 14, .tgid = 42, .comm = "a" }, { .weight = 1, .nr_samples = 1 } },
	};
	struct sb_resolve_stats stats;
	int nr_asked = 0;

	labels = label_sets;
	nr_labels = 3;
	stats = resolve(&opts, counts, 4);
	assert_string_equal(folded, "vehicle=car;region=eu;a 4\n"
				    "a 3\n"
				    "region=asia;a 3\n");
	assert_int_equal(stats.nr_labelled, 7);
	assert_int_equal(stats.nr_missing_labels, 1);
	opts.series = series_of;
	opts.series_arg = &nr_asked;
	resolve(&opts, counts, 4);
	assert_string_equal(folded, "[no stack] 6\n[no stack] 4\n"); /* neither roots nor labels */
	assert_int_equal(series[0], 8);
	assert_int_equal(series[1], 7);
	assert_int_equal(nr_asked, 4);
	nr_labels = 0;
}

/* Who was interrupted has nothing to do with it, and neither have its labels. */
static void test_interrupt(void **state)
{
	static const char *const keys[] = { "vehicle", "region" };
	const struct sb_resolve_opts opts = { .labels = keys,
					      .nr_labels = 2,
					      .views[0].is_of_wakers = true };
	const struct sb_batch_count counts[] = {
		{ { .labels = 11, .ustack = { 1, 1 }, .kstack = { 7, 1 }, .tgid = 42, .comm = "a" },
		  { .weight = 4, .nr_samples = 4 } },
	};

	labels = label_sets;
	nr_labels = 3;
	resolve(&opts, counts, 1);
	assert_string_equal(folded, "[interrupt];asm_sysvec_timer;k2 4\n");
	nr_labels = 0;
}

static const struct sb_stack_id *evicted_stacks(const struct sb_resolver *resolver, size_t *ret_nr)
{
	struct sb_batch_evicted evicted;

	sb_resolver_evicted(resolver, &evicted);
	*ret_nr = evicted.nr_stacks;
	return evicted.stacks;
}

static size_t nr_evicted_labels(const struct sb_resolver *resolver)
{
	struct sb_batch_evicted evicted;

	sb_resolver_evicted(resolver, &evicted);
	return evicted.nr_labels;
}

/* More sets than are kept at a time: those of no use are forgotten, on both sides. */
static void test_many_labels(void **state)
{
	static const char *const keys[] = { "vehicle" };
	const struct sb_resolve_opts opts = { .labels = keys, .nr_labels = 1 };
	static struct sb_batch_labels sets[40000];
	struct sb_batch batch = { .labels = sets, .nr_labels = 40000 };
	const struct sb_batch none = {};
	const struct sb_batch_count last = { { .labels = 58999, .comm = "a" },
					     { .weight = 5, .nr_samples = 5 } };
	static char text[2048];
	struct sb_resolve_stats stats;
	struct sb_resolver *resolver;
	struct sb_profile *profile;
	size_t i, nr;

	for (i = 0; i < 40000; i++)
		sets[i] = (struct sb_batch_labels){ .id = i + 1, .nr_bytes = 2, .text = "x" };
	assert_int_equal(sb_profile_new(&profile), 0);
	assert_int_equal(sb_resolver_new(&opts, NULL, profile, &resolver), 0);
	assert_int_equal(sb_resolver_add(resolver, &batch), 0);
	nr = nr_evicted_labels(resolver);
	assert_int_equal(nr, 0);
	/* They may still be named by the next one. */
	assert_int_equal(sb_resolver_add(resolver, &none), 0);
	nr = nr_evicted_labels(resolver);
	assert_int_equal(nr, 0);
	assert_int_equal(sb_resolver_add(resolver, &none), 0);
	nr = nr_evicted_labels(resolver);
	assert_int_equal(nr, 40000);
	/* Longer than all that is kept of texts: "(other)". */
	memset(text, 'y', sizeof(text) - 1);
	for (i = 0; i < 9000; i++)
		sets[i] = (struct sb_batch_labels){ .id = 50000 + i,
						    .nr_bytes = sizeof(text),
						    .text = text };
	batch.nr_labels = 9000;
	batch.counts = &last;
	batch.nr_counts = 1;
	assert_int_equal(sb_resolver_add(resolver, &batch), 0);
	sb_resolver_stats(resolver, 0, &stats);
	assert_int_equal(stats.nr_other_labels, 5);
	sb_resolver_free(resolver);
	sb_profile_free(profile);
}

/* A caller where no code is: the frame pointer was none, so nothing above it counts. */
static void test_broken_chain(void **state)
{
	const struct sb_resolve_opts opts = {};
	const struct sb_batch_count counts[] = {
		{ { .ustack = { 4, 1 }, .tgid = 1, .comm = "broken" },
		  { .weight = 3, .nr_samples = 3 } },
		{ { .ustack = { 5, 1 }, .tgid = 1, .comm = "leaf" },
		  { .weight = 2, .nr_samples = 2 } },
		{ { .ustack = { 6, 1 }, .kstack = { 2, 1 }, .tgid = 1, .comm = "exec" },
		  { .weight = 1, .nr_samples = 1 } },
	};
	struct sb_resolve_stats stats = resolve(&opts, counts, 3);

	assert_string_equal(folded, "broken;[truncated: bad return address];u2';u1 3\n"
				    "leaf;[unknown] 2\n"
				    "exec;k3';k2 1\n");
	assert_int_equal(stats.nr_status[SB_STACK_NONE], 1);
	assert_int_equal(stats.nr_status[SB_STACK_BAD_PC], 3);
	assert_int_equal(stats.nr_status[SB_STACK_COMPLETE], 2);
	assert_int_equal(stats.nr_unnamed[SB_SYM_UNMAPPED], 2);
	assert_int_equal(stats.nr_frames, 3 * 2 + 2 + 2);
}

/* Kernel addresses are looked up once for each stack; every sample is counted all the same. */
static void test_kernel_stacks_are_remembered(void **state)
{
	const struct sb_resolve_opts opts = { .roots = { SB_ATTR_CPU, SB_ATTR_THREAD },
					      .nr_roots = 2 };
	const struct sb_batch_count counts[] = {
		{ { .kstack = { 2, 1 }, .tgid = 4, .tid = 5, .cpu = 1, .comm = "k" },
		  { .weight = 1, .nr_samples = 1 } },
		{ { .kstack = { 2, 1 }, .tgid = 4, .tid = 6, .cpu = 2, .comm = "k" },
		  { .weight = 2, .nr_samples = 2 } },
	};
	struct sb_resolve_stats stats;

	asked.nr_kernel_calls = 0;
	stats = resolve(&opts, counts, 2);
	assert_int_equal(asked.nr_kernel_calls, 1);
	assert_int_equal(stats.nr_frames, 2 * 3);
	assert_string_equal(folded, "cpu 2;k-4/6;k3';k2 2\ncpu 1;k-4/5;k3';k2 1\n");
	assert_int_equal(sb_root_by(SB_ATTR_THREAD) | sb_root_by(SB_ATTR_CPU),
			 SB_BY_THREAD | SB_BY_CPU);
}

/* A wait that began there, and goes on: the BPF side may forget the stack, we may not. */
static struct sb_stack_id pending;

static void add_batch(struct sb_resolver *resolver, const struct sb_batch *batch)
{
	if (sb_resolver_wants_pending(resolver))
		sb_resolver_note_pending(resolver, &pending, 1);
	assert_int_equal(sb_resolver_add(resolver, batch), 0);
}

static void add(struct sb_resolver *resolver, struct sb_stack_id id, uint32_t tgid, bool is_new,
		bool is_single)
{
	const struct sb_batch_stack stack = {
		.id = id, .nr_frames = 3, .ip = user_ips, .is_single = is_single
	};
	const struct sb_batch_count count = { { .ustack = id, .tgid = tgid, .comm = "app" },
					      { .weight = 1, .nr_samples = 1 } };
	const struct sb_batch batch = {
		.counts = &count, .nr_counts = 1, .stacks = &stack, .nr_stacks = is_new
	};

	add_batch(resolver, &batch);
}

/* The names of the slowest calls' frames are those of the new profile. */
static void test_slowest_are_moved(void **state)
{
	static const struct sb_object_call call = { .elapsed_ns = 5 };
	const struct sb_batch_object object = {
		.id = 7, .kind = SB_OBJECT_CALL, .nr_bytes = sizeof(call), .data = &call
	};
	const struct sb_batch_count count = {
		{ .ustack = stacks[0].id, .tgid = 7, .comm = "app", .object = 7 },
		{ .weight = 5, .nr_samples = 1 }
	};
	const struct sb_batch batch = { .counts = &count,
					.nr_counts = 1,
					.stacks = stacks,
					.nr_stacks = 1,
					.objects = &object,
					.nr_objects = 1 };
	const struct sb_slow_call *slow;
	struct sb_profile *profile, *next;
	struct sb_resolver *resolver;
	uint32_t others[16], nr_frames, i;
	char name[32], names[16][32];

	assert_int_equal(sb_profile_new(&profile), 0);
	assert_int_equal(sb_profile_new(&next), 0);
	assert_int_equal(sb_resolver_new(&(struct sb_resolve_opts){}, NULL, profile, &resolver), 0);
	assert_int_equal(sb_resolver_add(resolver, &batch), 0);
	assert_int_equal(sb_resolver_slowest(resolver)->nr, 1);
	slow = &sb_resolver_slowest(resolver)->at[0];
	nr_frames = (uint32_t)slow->nr_frames;
	assert_in_range(nr_frames, 3, 16);
	for (i = 0; i < nr_frames; i++)
		snprintf(names[i], sizeof(names[i]), "%s",
			 sb_profile_frame_at(profile, slow->frames[i])->name);
	for (i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "other%u", i);
		assert_int_equal(
			sb_profile_frame(next, &(struct sb_frame){ .name = name }, &others[i]), 0);
	}
	assert_int_equal(sb_resolver_move(resolver, next), 0);
	sb_profile_free(profile);
	for (i = 0; i < nr_frames; i++)
		assert_string_equal(sb_profile_frame_at(next, slow->frames[i])->name, names[i]);
	sb_resolver_free(resolver);
	sb_profile_free(next);
}

/* Stacks of processes that have ended are forgotten, and told; those of living ones stay. */
static void test_evicted_stacks(void **state)
{
	const struct sb_resolve_opts opts = { .stacks_max = 10 };
	const uint32_t gone = 4194303, here = (uint32_t)getpid();
	const struct sb_stack_id *evicted;
	struct sb_resolve_stats stats;
	struct sb_resolver *resolver;
	struct sb_profile *profile;
	struct sb_stack_id late;
	size_t nr, nr_told = 0, nr_late = 0, i, k;

	assert_int_equal(sb_profile_new(&profile), 0);
	assert_int_equal(sb_resolver_new(&opts, NULL, profile, &resolver), 0);
	for (i = 1; i <= 100; i++) {
		add(resolver, (struct sb_stack_id){ i, 1 }, gone, true, i % 2);
		evicted = evicted_stacks(resolver, &nr);
		nr_told += nr;
		for (k = 0; k < nr; k++)
			assert_int_equal(evicted[k].lo % 2, 0); /* nobody asks for single ones */
		if (!nr)
			continue;
		/* It ended after the last batch, and this was counted before. */
		late = evicted[0];
		add(resolver, late, gone, false, false);
		nr_late++;
	}
	assert_true(nr_late > 1);
	sb_resolver_stats(resolver, 0, &stats);
	assert_in_range(stats.nr_evicted, 80, 98);
	assert_in_range(nr_told, 40, 59);
	for (i = 1; i <= 20; i++)
		add(resolver, (struct sb_stack_id){ i, 2 }, here, true, false);
	for (i = 1; i <= 20; i++)
		add(resolver, (struct sb_stack_id){ i, 2 }, here, false, false);
	add(resolver, (struct sb_stack_id){ 2, 1 }, gone, true, false); /* shipped again */
	sb_resolver_stats(resolver, 0, &stats);
	assert_int_equal(stats.nr_missing_stacks, 0);
	assert_int_equal(stats.nr_samples, 141 + nr_late);
	sb_resolver_free(resolver);
	sb_profile_free(profile);
}

struct watched {
	struct sb_resolver *resolver;
	size_t nr_calls, nr_amid; /* when some samples were added, and others were not */
	uint64_t nr_samples;
};

static void watch_progress(void *arg)
{
	struct watched *watched = arg;
	struct sb_resolve_stats stats;

	sb_resolver_stats(watched->resolver, 0, &stats);
	watched->nr_calls++;
	watched->nr_amid += stats.nr_samples && stats.nr_samples < watched->nr_samples;
}

/* A batch can take minutes, and sampling has to be throttled meanwhile. */
static void test_progress(void **state)
{
	enum { NR = 1000 };
	struct watched watched = { .nr_samples = NR };
	const struct sb_resolve_opts opts = { .progress = watch_progress,
					      .progress_arg = &watched };
	struct sb_batch_stack all[NR];
	struct sb_batch_count counts[NR];
	const struct sb_batch batch = {
		.counts = counts, .nr_counts = NR, .stacks = all, .nr_stacks = NR
	};
	struct sb_profile *profile;
	size_t i, nr_with_stacks;

	for (i = 0; i < NR; i++) {
		all[i] = (struct sb_batch_stack){ .id = { i + 1, 5 },
						  .flags = SB_STACK_KERNEL,
						  .nr_frames = 2,
						  .ip = kernel_ips };
		counts[i] = (struct sb_batch_count){
			{ .kstack = all[i].id, .tgid = 1, .comm = "kernel" },
			{ .weight = 1, .nr_samples = 1 },
		};
	}
	assert_int_equal(sb_profile_new(&profile), 0);
	assert_int_equal(sb_resolver_new(&opts, NULL, profile, &watched.resolver), 0);
	assert_int_equal(sb_resolver_add(watched.resolver, &batch), 0);
	nr_with_stacks = watched.nr_calls;
	assert_in_range(watched.nr_amid, NR / 100, NR);
	/* As many more while stacks were copied. */
	assert_in_range(watched.nr_calls - watched.nr_amid, NR / 100, NR);
	watched.nr_samples = 2 * NR;
	add_batch(watched.resolver, &(struct sb_batch){ .counts = counts, .nr_counts = 1 });
	assert_in_range(watched.nr_calls, nr_with_stacks, nr_with_stacks + 1);
	sb_resolver_free(watched.resolver);
	sb_profile_free(profile);
}

static void add_kernel(struct sb_resolver *resolver, struct sb_stack_id id, bool is_new)
{
	const struct sb_batch_stack stack = {
		.id = id, .flags = SB_STACK_KERNEL, .nr_frames = 2, .ip = kernel_ips
	};
	const struct sb_batch_count count = {
		{ .kstack = id, .tgid = 1, .comm = "kernel" },
		{ .weight = 1, .nr_samples = 1 },
	};
	const struct sb_batch batch = {
		.counts = &count, .nr_counts = 1, .stacks = &stack, .nr_stacks = is_new
	};

	add_batch(resolver, &batch);
}

/* A program that goes on and on: stacks of it, and of the kernel, that were not met for long are
 * forgotten, but not before the BPF side has been told to and everything that it had counted has
 * come. */
static void test_idle(void **state)
{
	enum { NR = 400, IDLE = 20 };
	const struct sb_resolve_opts opts = { .stacks_max = 10, .idle_batches = IDLE };
	const struct sb_stack_id busy = { 1, 3 }, busy_kernel = { 2, 3 }, waits = { 3, 4 };
	const uint32_t here = (uint32_t)getpid();
	const struct sb_fold_opts fold = {};
	const struct sb_stack_id *evicted;
	struct sb_stack_id late = {};
	struct sb_resolve_stats stats;
	struct sb_resolver *resolver;
	struct sb_profile *profile;
	size_t nr, nr_told = 0, i, k;

	assert_int_equal(sb_profile_new(&profile), 0);
	assert_int_equal(sb_resolver_new(&opts, NULL, profile, &resolver), 0);
	add(resolver, waits, here, true, false);
	pending = waits;
	for (i = 1; i <= NR; i++) {
		add(resolver, (struct sb_stack_id){ i, 1 }, here, true, false);
		evicted = evicted_stacks(resolver, &nr);
		for (k = 0; k < nr; k++) {
			assert_true(evicted[k].hi != 3);
			late = evicted[k];
		}
		nr_told += nr;
		/* Its sample was taken just before, and comes now. */
		if (nr && late.hi == 1)
			add(resolver, late, here, false, false);
		add_kernel(resolver, (struct sb_stack_id){ i, 2 }, true);
		(void)evicted_stacks(resolver, &nr);
		nr_told += nr;
		add(resolver, busy, here, i == 1, false);
		(void)evicted_stacks(resolver, &nr);
		nr_told += nr;
		add_kernel(resolver, busy_kernel, i == 1);
		(void)evicted_stacks(resolver, &nr);
		nr_told += nr;
	}
	sb_resolver_stats(resolver, 0, &stats);
	assert_int_equal(stats.nr_missing_stacks, 0);
	assert_true(nr_told >= stats.nr_evicted);
	assert_in_range(stats.nr_evicted, 2 * NR - 200, 2 * NR);
	sb_profile_clear(profile);
	add_kernel(resolver, busy_kernel, false);
	folded[0] = '\0';
	sb_profile_seal(profile);
	assert_int_equal(sb_fold(profile, &fold, collect, NULL), 0);
	assert_string_equal(folded, "kernel;k3';k2 1\n");
	/* The wait is over. */
	add(resolver, waits, here, false, false);
	sb_resolver_stats(resolver, 0, &stats);
	assert_int_equal(stats.nr_missing_stacks, 0);
	/* It has gone: what names it without being told of it is lost, which is said. */
	add(resolver, (struct sb_stack_id){ 5, 1 }, here, false, false);
	sb_resolver_stats(resolver, 0, &stats);
	assert_int_equal(stats.nr_missing_stacks, 1);
	sb_resolver_free(resolver);
	sb_profile_free(profile);
}

/* A wait that the waker @id ended; @is_new: which is shipped with it. */
static void add_wait(struct sb_resolver *resolver, uint64_t id, uint32_t tgid, bool is_new)
{
	const struct sb_object_waker waker = { .start_ns = id, .tgid = tgid, .comm = "waker" };
	const struct sb_batch_object object = {
		.id = id, .kind = SB_OBJECT_WAKER, .nr_bytes = sizeof(waker), .data = &waker
	};
	const struct sb_batch_count count = {
		{ .tgid = tgid, .start_ns = id, .object = id, .comm = "app" },
		{ .weight = 1, .nr_samples = 1 }
	};
	const struct sb_batch batch = {
		.counts = &count, .nr_counts = 1, .objects = &object, .nr_objects = is_new
	};

	assert_int_equal(sb_resolver_add(resolver, &batch), 0);
}

/* Wakers, and processes, that have ended are forgotten, without a word: no wait can name them. */
static void test_evicted_wakers(void **state)
{
	const struct sb_resolve_opts opts = { .stacks_max = 10 };
	const uint32_t gone = 4194303, here = (uint32_t)getpid();
	struct sb_resolve_stats stats;
	struct sb_resolver *resolver;
	struct sb_profile *profile;
	size_t i;

	assert_int_equal(sb_profile_new(&profile), 0);
	assert_int_equal(sb_resolver_new(&opts, NULL, profile, &resolver), 0);
	for (i = 1; i <= 20; i++)
		add_wait(resolver, i, here, true);
	for (; i <= 100; i++)
		add_wait(resolver, i, gone, true);
	/* The two parts of a wait may come in two batches. */
	add_wait(resolver, 100, gone, false);
	for (i = 1; i <= 20; i++)
		add_wait(resolver, i, here, false);
	sb_resolver_stats(resolver, 0, &stats);
	assert_int_equal(stats.nr_missing_objects, 0);
	assert_int_equal(stats.nr_processes, 100);
	assert_int_equal(stats.nr_samples, 121);
	/* Of who is gone only what came last is left. */
	for (i = 21; i <= 60; i++)
		add_wait(resolver, i, gone, false);
	sb_resolver_stats(resolver, 0, &stats);
	assert_int_equal(stats.nr_missing_objects, 40);
	sb_resolver_free(resolver);
	sb_profile_free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_interrupt),
		cmocka_unit_test(test_many_labels),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_cut_and_lost),
		cmocka_unit_test(test_broken_chain),
		cmocka_unit_test(test_slowest_are_moved),
		cmocka_unit_test(test_evicted_stacks),
		cmocka_unit_test(test_progress),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_evicted_wakers),
		cmocka_unit_test(test_kernel_stacks_are_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
