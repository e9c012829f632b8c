// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* core/label.bpf.c, compiled for the host: labels of the sampled thread, whatever it has forged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core.h"

#define TGID  42
#define FS    0x7f0000001000ull
#define BASE  0x7f0000000000ull
#define BYTES 0x8000u

static uint8_t memory[BYTES];
static struct sb_label_conf *conf;
static struct sb_scratch *s;

static int setup(void **state)
{
	struct sb_interp_proc proc = { .labels = 1 };
	static struct task_struct task;
	uint32_t tgid = TGID, zero = 0;
	struct sb_interp_conf *words;

	shim_reset();
	shim_core_maps(1 << 20);
	shim.user_addr = BASE;
	shim.user_mem = memory;
	shim.user_bytes = sizeof(memory);
	shim.task = &task;
	task.thread.fsbase = FS;
	memset(memory, 0, sizeof(memory));
	cfg_interp = cfg_labels = true;
	words = bpf_map_lookup_elem(&interp_confs, &zero);
	conf = (struct sb_label_conf *)words->word;
	*conf = (struct sb_label_conf){ .kind = SB_LABEL_OTEL, .at = (uint64_t)-64, .dtv_at = 8 };
	bpf_map_update_elem(&interp_procs, &tgid, &proc, BPF_ANY);
	s = sb_scratch_get(0);
	return 0;
}

static void put(uint64_t addr, const void *what, size_t len)
{
	memcpy(memory + (addr - BASE), what, len);
}

static void put_word(uint64_t addr, uint64_t word)
{
	put(addr, &word, sizeof(word));
}

/* A record of OTEL at @addr. */
static void put_record(uint64_t addr, uint8_t valid, const char *attrs, uint16_t len)
{
	uint8_t head[28] = {};

	head[24] = valid;
	memcpy(head + 26, &len, sizeof(len));
	put(addr, head, sizeof(head));
	put(addr + sizeof(head), attrs, len);
}

/* Return: the name of the set. */
static uint64_t sample(void)
{
	memset(&s->capture.key, 0, sizeof(s->capture.key));
	s->capture.key.tgid = TGID;
	s->capture.key.start_ns = 7;
	sb_interp_start(0);
	sb_labels_take(0);
	return s->capture.key.labels;
}

static const struct sb_interp_event *next(void)
{
	uint32_t len;
	const struct sb_interp_event *event = shim_ring_next(&interp_events, &len);

	if (event)
		assert_int_equal(len, sizeof(*event) + event->nr_frames);
	return event;
}

static void expect_data(const char *data, size_t len)
{
	const struct sb_interp_event *event = next();

	assert_non_null(event);
	assert_int_equal(event->kind, SB_INTERP_LABELS);
	assert_int_equal(event->id.lo, s->capture.key.labels);
	assert_int_equal(event->tgid, TGID);
	assert_int_equal(event->nr_frames, len);
	assert_memory_equal(event + 1, data, len);
}

static void test_once(void **state)
{
	uint64_t id;

	put_word(FS - 64, BASE);
	put_record(BASE, 1, "\0\3car\1\2eu", 9);
	id = sample();
	assert_int_not_equal(id, 0);
	expect_data("\0\3car\1\2eu", 9);
	assert_int_equal(sample(), id);
	assert_null(next());
	/* Whatever a set before has left behind it. */
	put_record(BASE, 1, "\0\7scooter\1\2eu", 13);
	assert_int_not_equal(sample(), id);
	assert_non_null(next());
	put_record(BASE, 1, "\0\3car\1\2eu", 9);
	assert_int_equal(sample(), id);
	assert_null(next());
	/* Being changed; none. */
	put_record(BASE, 0, "\0\3car", 5);
	assert_int_equal(sample(), 0);
	put_word(FS - 64, 0);
	assert_int_equal(sample(), 0);
}

/* What nobody asked for makes no difference; what is not known yet is shipped. */
static void test_wanted(void **state)
{
	uint64_t id;

	put_word(FS - 64, BASE);
	conf->nr_keys = 3;
	conf->wanted[0] = 1 << 1;
	put_record(BASE, 1, "\0\3abc\1\2eu\2\1x", 12);
	id = sample();
	expect_data("\1\2eu", 4);
	put_record(BASE, 1, "\0\1d\1\2eu\2\4long", 13);
	assert_int_equal(sample(), id);
	put_record(BASE, 1, "\0\1d", 3);
	assert_int_equal(sample(), 0);
	put_record(BASE, 1, "\0\1d\3\1y", 6);
	assert_int_not_equal(sample(), 0);
	expect_data("\3\1y", 3);
}

/* A length past the end ends it; sizes beyond the bound are cut, and that is counted. */
static void test_forged(void **state)
{
	uint8_t long_ones[2000];
	uint32_t zero = 0;
	uint64_t *stat = bpf_map_lookup_elem(&stats, &zero);
	size_t i;

	put_word(FS - 64, BASE);
	put_record(BASE, 1, "\0\3car\1\377eu", 9);
	sample();
	expect_data("\0\3car", 5);
	put_record(BASE, 1, "\0", 1);
	assert_int_equal(sample(), 0);
	for (i = 0; i < sizeof(long_ones); i++)
		long_ones[i] = i % 257 == 0 ? 0 : 255;
	put_record(BASE, 1, (const char *)long_ones, sizeof(long_ones));
	sample();
	assert_int_equal(s->labels.nr_bytes, 3 * 257);
	assert_int_equal(stat[SB_STAT_LABELS_CUT], 1);
	memset(long_ones, 0, sizeof(long_ones));
	put_record(BASE, 1, (const char *)long_ones, 900);
	sample();
	assert_int_equal(s->labels.nr_bytes, 2 * SB_LABEL_ATTRS_MAX);
	/* Pointers that lead nowhere, and over the end. */
	put_word(FS - 64, 1);
	assert_int_equal(sample(), 0);
	put_word(FS - 64, BASE + BYTES - 20);
	assert_int_equal(sample(), 0);
	put_word(FS - 64, BASE + BYTES - 30);
	put_record(BASE + BYTES - 30, 1, "\0\3", 2);
	memory[BYTES - 4] = 200;
	assert_int_equal(sample(), 0);
	assert_int_equal(stat[SB_STAT_LABELS_BAD], 3);
}

static void test_dtv(void **state)
{
	conf->module = 3;
	conf->at = 16;
	put_word(FS + 8, BASE + 0x100); /* the vector, */
	put_word(BASE + 0x100 - 16, 8); /* of so many */
	put_word(BASE + 0x100 + 3 * 16, BASE + 0x400);
	put_word(BASE + 0x410, BASE + 0x600);
	put_record(BASE + 0x600, 1, "\0\3car", 5);
	sample();
	expect_data("\0\3car", 5);
	/* Not there yet in this thread; no such module. */
	put_word(BASE + 0x100 + 3 * 16, ~0ull);
	assert_int_equal(sample(), 0);
	put_word(BASE + 0x100 + 3 * 16, BASE + 0x400);
	put_word(BASE + 0x100 - 16, 2);
	assert_int_equal(sample(), 0);
	put_word(BASE + 0x100 - 16, ~0ull);
	conf->module = SB_LABEL_MODULES_MAX + 1;
	assert_int_equal(sample(), 0);
	/* musl: its number first, one word each. */
	conf->module = 3;
	conf->is_musl = 1;
	put_word(BASE + 0x100, 3);
	put_word(BASE + 0x100 + 3 * 8, BASE + 0x400);
	assert_int_not_equal(sample(), 0);
}

static void put_custom(uint64_t at, uint64_t key, uint64_t key_len, uint64_t value,
		       uint64_t value_len)
{
	put_word(at, key_len);
	put_word(at + 8, key);
	put_word(at + 16, value_len);
	put_word(at + 24, value);
}

static void test_custom(void **state)
{
	uint64_t key[8] = {};

	memcpy(key, "vehicle", 7);
	conf->kind = SB_LABEL_CUSTOM;
	conf->key_hash[2] = sb_label_key_hash((__u64 *)key);
	put_word(FS - 64, BASE);
	put_word(BASE, BASE + 0x100);
	put_word(BASE + 8, 3);
	put(BASE + 0x800, "vehicle", 7);
	put(BASE + 0x900, "car", 3);
	put_custom(BASE + 0x100, BASE + 0x800, 4, BASE + 0x900, 3);	/* "vehi" */
	put_custom(BASE + 0x120, BASE + 0x800, ~0ull, BASE + 0x900, 3); /* no key is so long */
	put_custom(BASE + 0x140, BASE + 0x800, 7, BASE + 0x900, 3);
	sample();
	expect_data("\2\3car", 5);
	/* More than there are, values that are too long or not there. */
	put_word(BASE + 8, ~0ull);
	put_custom(BASE + 0x140, BASE + 0x800, 7, BASE + 0x900, 1ull << 40);
	sample();
	assert_int_equal(s->labels.nr_bytes, 2 + SB_LABEL_VALUE_MAX);
	assert_non_null(next());
	put_custom(BASE + 0x140, BASE + 0x800, 7, 1, 3);
	assert_int_equal(sample(), 0);
	put_custom(BASE + 0x140, 1, 7, BASE + 0x900, 3);
	assert_int_equal(sample(), 0);
	put_word(BASE, 1);
	assert_int_equal(sample(), 0);
}

#define GO_G	   (BASE + 0x100)
#define GO_M	   (BASE + 0x300)
#define GO_RUNNING (BASE + 0x500)
#define GO_LABELS  (BASE + 0x900)
#define GO_KEY	   (BASE + 0x1000)

/* A thread that is on a stack of the runtime, and runs a goroutine whose labels are at
 * GO_LABELS. */
static void put_goroutine(bool is_map)
{
	uint64_t key[8] = {};

	memcpy(key, "vehicle", 7);
	conf->kind = SB_LABEL_GO;
	conf->key_hash[1] = sb_label_key_hash((__u64 *)key);
	conf->go_labels = 0x160;
	conf->go_curg = 184;
	conf->go_is_map = is_map;
	put_word(FS - 64, GO_G);
	put_word(GO_G + SB_LABEL_GO_M, GO_M);
	put_word(GO_M + 184, GO_RUNNING);
	put_word(GO_RUNNING + SB_LABEL_GO_M, GO_M);
	put_word(GO_RUNNING + 0x160, GO_LABELS);
	put(GO_KEY, "vehicle", 7);
	put(GO_KEY + 16, "car", 3);
}

static void put_string(uint64_t at, uint64_t text, uint64_t len)
{
	put_word(at, text);
	put_word(at + 8, len);
}

static void test_go_list(void **state)
{
	put_goroutine(false);
	put_word(GO_LABELS, GO_LABELS + 0x100);
	put_word(GO_LABELS + 8, 2);
	put_string(GO_LABELS + 0x100, GO_KEY, 4);
	put_string(GO_LABELS + 0x110, GO_KEY, 7);
	put_string(GO_LABELS + 0x120, GO_KEY, 7);
	put_string(GO_LABELS + 0x130, GO_KEY + 16, 3);
	sample();
	expect_data("\1\3car", 5);
	assert_int_equal(s->labels.goroutine, GO_RUNNING);
	/* As on arm64: the variable is 0, or there is none, and the register counts; it counts on
	 * no other machine. */
	conf->go_in_register = 1;
	s->labels.go_register = GO_G;
	put_word(FS - 64, 0);
	sample();
	assert_int_equal(s->labels.goroutine, GO_RUNNING);
	conf->at = 0;
	put_word(FS, GO_G + 8);
	sample();
	assert_int_equal(s->labels.goroutine, GO_RUNNING);
	conf->go_in_register = 0;
	assert_int_equal(sample(), 0);
	assert_int_equal(s->labels.goroutine, 0);
	conf->at = (uint64_t)-64;
	put_word(FS - 64, GO_G);
	sample();
	assert_int_equal(s->labels.goroutine, GO_RUNNING);
	/* No goroutine; one that is not the thread's. */
	put_word(GO_RUNNING + SB_LABEL_GO_M, GO_M + 8);
	assert_int_equal(sample(), 0);
	assert_int_equal(s->labels.goroutine, 0);
	put_word(GO_M + 184, 0);
	assert_int_equal(sample(), 0);
	assert_int_equal(s->labels.goroutine, 0);
}

/* Two buckets, the second of which has a further one. */
static void test_go_map(void **state)
{
	const uint64_t map = GO_LABELS + 0x100, bucket = BASE + 0x2000 + SB_LABEL_GO_BUCKET;
	uint32_t zero = 0;
	uint64_t *stat = bpf_map_lookup_elem(&stats, &zero);

	put_goroutine(true);
	put_word(GO_LABELS, map);
	put_word(map, 1);
	put_word(map + 8, 1 << 8);
	put_word(map + 16, BASE + 0x2000);
	memory[bucket - BASE + 6] = SB_LABEL_GO_TOP_MIN;
	memory[bucket - BASE + 5] = SB_LABEL_GO_TOP_MIN - 1;
	put_string(bucket + 8 + 5 * 16, GO_KEY, 7);
	put_string(bucket + 8 + 8 * 16 + 5 * 16, GO_KEY + 16, 2);
	put_string(bucket + 8 + 6 * 16, GO_KEY, 7);
	put_string(bucket + 8 + 8 * 16 + 6 * 16, GO_KEY + 16, 3);
	sample();
	expect_data("\1\3car", 5);
	assert_int_equal(stat[SB_STAT_LABELS_CUT], 0);
	put_word(bucket + SB_LABEL_GO_BUCKET - 8, BASE);
	sample();
	assert_int_equal(stat[SB_STAT_LABELS_CUT], 1);
	put_word(map, 0);
	assert_int_equal(sample(), 0);
	put_word(GO_LABELS, 0);
	assert_int_equal(sample(), 0);
	assert_int_equal(stat[SB_STAT_LABELS_BAD], 1);
}

/* Where the ring is full, the next sample ships it. */
static void test_full_ring(void **state)
{
	uint32_t zero = 0;
	uint64_t *stat = bpf_map_lookup_elem(&stats, &zero);
	char attrs[16];
	unsigned int i, len, nr_sets = 0;

	put_word(FS - 64, BASE);
	for (i = 0; i < 5000 && !stat[SB_STAT_LABELS_FULL]; i++) {
		len = (unsigned int)snprintf(attrs + 2, sizeof(attrs) - 2, "%u", i);
		attrs[0] = 0;
		attrs[1] = (char)len;
		put_record(BASE, 1, attrs, (uint16_t)(len + 2));
		/* All the room that there is to remember them. */
		shim_map_clear(&labels_seen);
		nr_sets += sample() != 0;
	}
	assert_in_range(nr_sets, 1000, 4999);
	assert_int_equal(stat[SB_STAT_LABELS_FULL], 1);
	shim_map_clear(&interp_events);
	sample();
	assert_non_null(next());
}

/* A process that has none, and a run that does not ask. */
static void test_nothing(void **state)
{
	struct sb_interp_proc proc = {};
	uint32_t tgid = TGID;

	put_word(FS - 64, BASE);
	put_record(BASE, 1, "\0\3car", 5);
	cfg_labels = false;
	assert_int_equal(sample(), 0);
	cfg_labels = true;
	bpf_map_update_elem(&interp_procs, &tgid, &proc, BPF_ANY);
	assert_int_equal(sample(), 0);
	proc.labels = 1000; /* no such number */
	bpf_map_update_elem(&interp_procs, &tgid, &proc, BPF_ANY);
	assert_int_equal(sample(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_once, setup),
		cmocka_unit_test_setup(test_wanted, setup),
		cmocka_unit_test_setup(test_forged, setup),
		cmocka_unit_test_setup(test_dtv, setup),
		cmocka_unit_test_setup(test_custom, setup),
		cmocka_unit_test_setup(test_go_list, setup),
		cmocka_unit_test_setup(test_go_map, setup),
		cmocka_unit_test_setup(test_full_ring, setup),
		cmocka_unit_test_setup(test_nothing, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
