// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/unwind.bpf.c, core/unwind_tables.bpf.c and core/rawstack.bpf.c, compiled for the host: what the walk does when tables
 * are there, are missing, or are out of date; and what it asks for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "core.h"

#define BASE	 0x7ffe00000000ull
#define LOADED	 0x555500000000ull /* where the binary is mapped */
#define CODE	 (LOADED + 0x2000)
#define TGID	 42
#define BIN	 3
#define EXEC_VM	 100
#define SEGS_AT	 64 /* words of the pool */
#define INDEX_AT 1024
#define RULES_AT 2048
#define ROWS_AT	 4096

enum { NR_WORDS = 4096 };
static uint64_t memory[NR_WORDS];
static const uint32_t zero;
static struct mm_struct mm;
static struct task_struct task = { .mm = &mm };

static struct sb_uw_bin *bin(void)
{
	uint32_t at = BIN;

	return bpf_map_lookup_elem(&uw_bins, &at);
}

static uint32_t *pool(void)
{
	return bpf_map_lookup_elem(&shim_part, &zero);
}

static struct sb_uw_proc *proc(void)
{
	uint32_t tgid = TGID;

	return bpf_map_lookup_elem(&uw_procs, &tgid);
}

/* Rules of a binary of two granules: all of the first is rsp+16, the second begins with rsp+8 and
 * has the root at 0x100. */
static void fill_tables(void)
{
	static const struct sb_uw_rule rules[] = {
		{ .cfa = SB_UW_CFA_FP_CHAIN },
		{ .cfa = SB_UW_CFA_STOP },
		{ .cfa = SB_UW_CFA_SP, .cfa_off = 16 },
		{ .cfa = SB_UW_CFA_SP, .cfa_off = 8 },
	};
	uint32_t *words = pool();
	struct sb_uw_seg *segs = (struct sb_uw_seg *)&words[SEGS_AT];

	segs[0] = (struct sb_uw_seg){
		.begin = LOADED, .end = LOADED + 0x4000, .bias = LOADED, .bin = BIN
	};
	segs[1] = (struct sb_uw_seg){ .begin = LOADED + 0x8000,
				      .end = LOADED + 0x9000,
				      .flags = SB_UW_SEG_ANON };
	words[INDEX_AT] = 2; /* a rule, not a row */
	words[INDEX_AT + 2] = ROWS_AT;
	words[INDEX_AT + 3] = 2;
	words[ROWS_AT] = SB_UW_ROW(3, 0);
	words[ROWS_AT + 1] = SB_UW_ROW(1, 0x100);
	memcpy(&words[RULES_AT], rules, sizeof(rules));
	*bin() = (struct sb_uw_bin){
		.text_lo = 0x2000,
		.index_word = INDEX_AT,
		.nr_granules = 2,
		.rules_word = RULES_AT,
		.nr_rules = 4,
		.state = SB_UW_BIN_READY,
	};
}

static uint32_t ring_bytes = 64 << 20;

static int setup(void **state)
{
	const struct sb_uw_proc known = {
		.start_ns = 7, .exec_vm = EXEC_VM, .exec_id = 1, .segs_word = SEGS_AT, .nr_segs = 2
	};
	uint32_t tgid = TGID;

	shim_reset();
	mm = (struct mm_struct){ .exec_vm = EXEC_VM, .start_code = CODE };
	task = (struct task_struct){ .mm = &mm };
	shim.task = &task;
	shim_core_maps(ring_bytes);
	memset(memory, 0, sizeof(memory));
	shim.user_addr = BASE;
	shim.user_mem = memory;
	shim.user_bytes = sizeof(memory);
	shim.now_ns = 1000000000;
	cfg_unwind = SB_UNWIND_CFI | SB_UNWIND_FP;
	fill_tables();
	bpf_map_update_elem(&uw_procs, &tgid, &known, BPF_ANY);
	return 0;
}

static struct sb_scratch *walk_from(uint64_t pc, uint64_t sp, uint64_t fp)
{
	struct sb_scratch *s = sb_scratch_get(0);

	s->capture.now_ns = bpf_ktime_get_ns();
	s->capture.key.tgid = TGID;
	s->capture.key.start_ns = 7;
	s->capture.key.exec_id = 1;
	s->map.exec_vm = EXEC_VM;
	s->regs = (struct sb_regs){ .ip = pc, .sp = sp, .bp = fp };
	sb_unwind_user(0);
	return s;
}

/* Two callers by rsp+16 and rsp+8, then the root. */
static void lay_stack(void)
{
	memory[1] = CODE + 0x1010; /* [sp + 8]: in the second granule */
	memory[2] = CODE + 0x1101; /* at the root's call */
}

static struct sb_scratch *walk(void)
{
	lay_stack();
	return walk_from(CODE + 0x10, BASE, 0);
}

static uint64_t stat_of(uint32_t stat)
{
	return ((struct sb_stats *)bpf_map_lookup_elem(&stats, &zero))->val[stat];
}

static const struct sb_uw_need_event *next_need(void)
{
	uint32_t len;

	return shim_ring_next(&uw_needs, &len);
}

static void test_by_table(void **state)
{
	struct sb_scratch *s = walk();

	assert_int_equal(s->stack.status, SB_STACK_COMPLETE);
	assert_int_equal(s->stack.nr_frames, 3);
	assert_int_equal(s->ip[1], CODE + 0x1010);
	assert_int_equal(s->ip[2], CODE + 0x1101);
	assert_int_equal(stat_of(SB_STAT_CFI_FRAMES), 2);
	assert_int_equal(stat_of(SB_STAT_FP_FRAMES), 0);
	assert_null(next_need());
	assert_true(bin()->used_s == s->capture.now_ns >> 30);
}

/* An unknown process, one that ran exec, one whose pid was used before, one that mapped more. */
static void test_unknown_process(void **state)
{
	const struct sb_uw_need_event *need;
	uint32_t round, tgid = TGID;
	struct sb_scratch *s;

	for (round = 0; round < 4; round++) {
		setup(NULL);
		if (round == 0)
			bpf_map_delete_elem(&uw_procs, &tgid);
		else if (round == 1)
			proc()->exec_id = 0;
		else if (round == 2)
			proc()->start_ns = 6;
		else
			proc()->exec_vm = EXEC_VM - 1;
		s = walk();
		assert_int_equal(s->map.is_raw, 1);
		assert_int_equal(stat_of(SB_STAT_RAW), 1);
		need = next_need();
		assert_non_null(need);
		assert_int_equal(need->need, SB_UW_NEED_PROC);
		assert_int_equal(need->tgid, TGID);
		assert_int_equal(need->addr, CODE + 0x10);
	}
}

/* User space is not told of a process that has just been forked and has run little, until it has
 * called execve() or has gone on running. Its stacks are complete in the meantime. */
static void test_just_forked(void **state)
{
	static const struct {
		uint32_t flags;
		uint64_t ran_ns, age_ns;
		bool is_asked;
		int other_tid;
		bool is_in_exec; /* its program is not mapped yet */
	} rows[] = {
		{ PF_FORKNOEXEC, 0, 0, false },
		{ PF_FORKNOEXEC, 999999, 9000000, false },
		{ PF_FORKNOEXEC, 1000000, 0, true },
		{ PF_FORKNOEXEC, 0, 10000000, true },
		{ 0, 0, 0, true },
		/* It runs in another thread than its first one. */
		{ PF_FORKNOEXEC, 0, 0, true, .other_tid = 1 },
		{ 0, 0, 0, false, .is_in_exec = true },
	};
	uint32_t tgid = TGID;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		setup(NULL);
		bpf_map_delete_elem(&uw_procs, &tgid);
		task.tgid = TGID;
		task.pid = TGID + rows[i].other_tid;
		task.flags = rows[i].flags;
		mm.start_code = rows[i].is_in_exec ? 0 : CODE;
		task.se.sum_exec_runtime = rows[i].ran_ns;
		shim.now_ns = 7 + rows[i].age_ns; /* it began at 7 */
		assert_int_equal(walk()->map.is_raw, 1);
		if (!next_need() == rows[i].is_asked)
			fail_msg("row %zu: asked: %d", i, !rows[i].is_asked);
	}
}

/* The piece goes from the red zone to the end of what is mapped, and has the registers. */
static void test_raw(void **state)
{
	const struct sb_event_raw *raw;
	struct sb_scratch *s;
	uint32_t len;

	bin()->state = SB_UW_BIN_ABSENT;
	lay_stack();
	s = walk_from(CODE + 0x10, BASE + 4096 + 8, 77);
	assert_int_equal(s->map.is_raw, 1);
	raw = shim_ring_next(&events, &len);
	assert_non_null(raw);
	assert_int_equal(raw->hdr.kind, SB_EVENT_RAW);
	assert_int_equal(raw->hdr.nr_bytes, len);
	assert_int_equal(len, sizeof(*raw) + raw->nr_stack_bytes);
	assert_int_equal(raw->nr_stack_bytes, SB_RED_ZONE_BYTES + sizeof(memory) - 4096 - 8);
	assert_int_equal(raw->pc, CODE + 0x10);
	assert_int_equal(raw->regs[SB_REG_FP], 77);
	assert_memory_equal(raw + 1, (const char *)memory + 4096 + 8 - SB_RED_ZONE_BYTES, 1024);
	assert_memory_equal(&raw->id, &s->stack.id, sizeof(raw->id));
	assert_int_equal(next_need()->need, SB_UW_NEED_BIN);

	s = walk();
	assert_memory_not_equal(&raw->id, &s->stack.id, sizeof(raw->id));
	assert_null(next_need()); /* asked a moment ago */
	shim.now_ns += 100000000;
	walk();
	assert_int_equal(next_need()->bin, BIN);
}

/* Above where the first thread began there are no frames; that is nothing to a thread above it. */
static void test_raw_to_root(void **state)
{
	const uint64_t sp = BASE + 4096 + 8;
	const struct {
		uint64_t root;
		uint32_t nr_bytes;
	} cases[] = {
		{ sp, 0 },
		{ sp + 512, 512 },
		{ sp + 4096 - 8, 4096 - 8 },
		{ sp + 8192, 8192 },
		{ sp - 8, sizeof(memory) - 4096 - 8 - ROOT_BYTES },
		{ BASE + sizeof(memory) + 4096, sizeof(memory) - 4096 - 8 - ROOT_BYTES },
	};
	const struct sb_event_raw *raw;
	uint32_t len;
	size_t i;

	bin()->state = SB_UW_BIN_ABSENT;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		mm.start_stack = cases[i].root;
		assert_int_equal(walk_from(CODE + 0x10, sp, 77)->map.is_raw, 1);
		raw = shim_ring_next(&events, &len);
		assert_int_equal(raw->stack_addr, sp - SB_RED_ZONE_BYTES);
		assert_int_equal(raw->nr_stack_bytes,
				 SB_RED_ZONE_BYTES + cases[i].nr_bytes + ROOT_BYTES);
		assert_int_equal(len, sizeof(*raw) + raw->nr_stack_bytes);
	}
}

/* The stack of a thread that sleeps is read up to the nearer of two places above its stack pointer:
 * where the stack of the first thread begins, and the thread pointer, which is behind the stacks
 * that libc makes. */
static void test_reach(void **state)
{
	const uint64_t sp = BASE + 4096 + 8, more = SB_RED_ZONE_BYTES + ROOT_BYTES;
	const struct {
		uint64_t root, thread_pointer, nr_bytes;
	} cases[] = {
		{ sp + 512, 0, 512 + more },
		{ sp + 512, sp + 100, 100 + more },
		{ sp + 100, sp + 512, 100 + more },
		{ sp - 8, sp + 512, 512 + more },
		{ sp, sp - 8, more },
		{ sp - 8, sp - 8, SB_RAW_BYTES_MAX },
		{ sp + SB_RAW_BYTES_MAX - more, 0, SB_RAW_BYTES_MAX },
		{ sp + SB_RAW_BYTES_MAX, UINT64_MAX, SB_RAW_BYTES_MAX },
	};
	struct task_struct task = { .mm = &mm };
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		mm.start_stack = cases[i].root;
		assert_int_equal(sb_rawstack_reach(&task, sp, cases[i].thread_pointer),
				 cases[i].nr_bytes);
	}
}

/* Over budget the walk goes on by frame pointers, and does not pass for complete. */
static void test_over_budget(void **state)
{
	struct sb_scratch *s;
	uint32_t i;

	shim.user_bytes = 4096;
	bin()->state = SB_UW_BIN_ABSENT;
	for (i = 0; i < 6000 && walk()->map.is_raw; i++)
		;
	assert_in_range(i, 4090, 4105);
	memory[10] = 0;
	memory[11] = CODE + 0x1010;
	s = walk_from(CODE + 0x10, BASE, BASE + 80);
	assert_int_equal(s->map.is_raw, 0);
	assert_int_equal(s->stack.status, SB_STACK_NO_TABLE);
	assert_int_equal(s->stack.nr_frames, 2);
	assert_int_equal(s->ip[1], (CODE + 0x1010) | SB_IP_BY_FP);
	assert_int_equal(stat_of(SB_STAT_RAW_LIMIT), 2);
	shim.now_ns += 1000000000;
	assert_int_equal(walk()->map.is_raw, 1);
}

static uint64_t raw_until_full(uint32_t first_tgid)
{
	uint32_t i;

	ring_bytes = 256 << 10;
	setup(NULL);
	ring_bytes = 16 << 20;
	*(uint32_t *)&cfg_first_tgid = first_tgid;
	bin()->state = SB_UW_BIN_ABSENT;
	for (i = 0; i < 64 && !stat_of(SB_STAT_RAW_FULL); i++)
		walk();
	assert_int_equal(stat_of(SB_STAT_RAW_FULL), 1);
	assert_int_equal(sb_scratch_get(0)->stack.status, SB_STACK_NO_TABLE);
	*(uint32_t *)&cfg_first_tgid = 0;
	return stat_of(SB_STAT_RAW);
}

/* Three quarters of the ring; two when the third is the command's. */
static void test_no_room_for_raw(void **state)
{
	uint64_t nr = raw_until_full(0), nr_of_others = raw_until_full(TGID + 1);

	assert_int_equal(raw_until_full(TGID), nr);
	assert_in_range(nr_of_others * 3, nr * 2 - 3, nr * 2 + 3);
}

/* Generated code, and binaries without tables: frame pointers, which is marked. */
static void test_by_frame_pointer(void **state)
{
	const uint64_t places[] = { LOADED + 0x8010, CODE + 0x10 };
	struct sb_scratch *s;
	size_t i;

	for (i = 0; i < 2; i++) {
		bin()->state = i ? SB_UW_BIN_FP_CHAIN : SB_UW_BIN_READY;
		memory[10] = 0;
		memory[11] = LOADED + 0x1020; /* before the table */
		s = walk_from(places[i], BASE, BASE + 80);
		assert_int_equal(s->stack.status, SB_STACK_COMPLETE);
		assert_int_equal(s->stack.nr_frames, 2);
		assert_int_equal(s->ip[1], (LOADED + 0x1020) | SB_IP_BY_FP);
	}
	assert_int_equal(stat_of(SB_STAT_FP_FRAMES), 2);
	proc()->nr_confirmed = 1000;  /* the list is beyond doubt */
	memory[11] = LOADED + 0x8020; /* no thread begins in generated code */
	s = walk_from(places[0], BASE, BASE + 80);
	assert_int_equal(s->stack.status, SB_STACK_BAD_FP);
	assert_int_equal(s->stack.nr_frames, 2);
	cfg_unwind = SB_UNWIND_CFI;
	s = walk_from(places[0], BASE, BASE + 80);
	assert_int_equal(s->stack.status, SB_STACK_NO_RULE);
	assert_int_equal(s->stack.nr_frames, 1);
}

/*
 * An address in no mapping: the list is doubted until user space has read it anew some times,
 * however many samples come before that; then the stack is.
 */
static void test_garbage(void **state)
{
	struct sb_scratch *s = NULL;
	uint32_t i;

	shim.user_bytes = 512;
	for (i = 0; i < 1000; i++) {
		memory[1] = LOADED - 0x1000;
		shim.now_ns += 100000000;
		proc()->nr_confirmed = i / 10;
		s = walk_from(CODE + 0x10, BASE, 0);
		if (!s->map.is_raw)
			break;
	}
	assert_int_equal(i, 640);
	assert_int_equal(s->stack.status, SB_STACK_BAD_PC);
	assert_int_equal(s->stack.nr_frames, 1);
}

/* New memory where code was: another library, perhaps of the same size. Elsewhere it says
 * nothing. */
static void test_mapped(void **state)
{
	const struct {
		uint64_t addr, len;
		bool is_stale;
	} rows[] = {
		{ LOADED - 0x2000, 0x2000, false },
		{ LOADED - 0x2000, 0x2001, true },
		{ LOADED, 1, true },
		{ LOADED + 0x3fff, 0x1000, true },
		{ LOADED + 0x4000, 0x4000, false },
		{ LOADED + 0x4000, 0x4001, true },
		{ LOADED + 0x9000, 0x9000, false },
		{ LOADED - 0x9000, 0x90000, true },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		proc()->exec_vm = EXEC_VM;
		proc_changes[TGID] = 0;
		sb_unwind_mapped(TGID, rows[i].addr, rows[i].len);
		assert_int_equal(proc_changes[TGID], rows[i].is_stale);
		assert_int_equal(walk()->map.is_raw, rows[i].is_stale);
		sb_unwind_mapped(TGID + 1, rows[i].addr, rows[i].len);
	}
	/* A list that differs for ever is believed after all. */
	shim.user_bytes = 512;
	for (i = 0; i < 100 && walk()->map.is_raw; i++)
		proc()->nr_confirmed++;
	assert_int_equal(i, 64);
	assert_int_equal(sb_scratch_get(0)->stack.status, SB_STACK_COMPLETE);
}

/* Nonsense may come of a library that is not there any more: somebody else looks, for a while. */
static void test_nonsense(void **state)
{
	struct sb_scratch *s;

	memory[1] = 12; /* no return address */
	s = walk_from(CODE + 0x10, BASE, 0);
	assert_int_equal(s->map.is_raw, 1);
	assert_int_equal(next_need()->need, SB_UW_NEED_PROC);
	proc()->nr_confirmed = 1000;
	s = walk_from(CODE + 0x10, BASE, 0);
	assert_int_equal(s->map.is_raw, 0);
	assert_int_equal(s->stack.status, SB_STACK_BAD_PC);
}

/* The page that sp is in is not there yet; what is above is. */
static void test_raw_above_fault(void **state)
{
	const struct sb_event_raw *raw;
	uint32_t len;

	bin()->state = SB_UW_BIN_ABSENT;
	walk_from(CODE + 0x10, BASE - 8, 0);
	raw = shim_ring_next(&events, &len);
	assert_non_null(raw);
	assert_true(raw->stack_addr == BASE);
	assert_int_equal(raw->nr_stack_bytes, sizeof(memory));
}

/* A page that is not there: said, and asked for. */
static void test_fault(void **state)
{
	struct sb_scratch *s = walk_from(CODE + 0x10, BASE - 4096, 0);
	const struct sb_uw_need_event *need = next_need();

	assert_int_equal(s->stack.status, SB_STACK_FAULT);
	assert_non_null(need);
	assert_int_equal(need->need, SB_UW_NEED_TOUCH);
	assert_int_equal(need->addr, BASE - 4096 + 8);
}

/* Any words for tables: the walk ends, and reads nothing but words. */
static void test_random_tables(void **state)
{
	unsigned int seed = 5, i, j;

	for (i = 0; i < 3000; i++) {
		fill_tables();
		for (j = 0; j < 20; j++)
			pool()[rand_r(&seed) % (2 * ROWS_AT)] = (uint32_t)rand_r(&seed) << 1;
		if (i % 3 == 0)
			((uint32_t *)bin())[rand_r(&seed) % 6] = (uint32_t)rand_r(&seed) << 1;
		for (j = 0; j < 64; j++)
			memory[j] = CODE + (unsigned int)rand_r(&seed) % 0x2000;
		walk_from(CODE + (unsigned int)rand_r(&seed) % 0x2000, BASE, BASE + 64);
		assert_in_range(sb_scratch_get(0)->stack.nr_frames, 1, SB_USTACK_DEPTH_MAX);
	}
}

/* The unwind rows of one granule; the first is at word @first. Each row has a rule of its own, whose
 * number is the offset of the CFA. */
struct rows {
	uint32_t first, nr;
	uint16_t off[SB_UW_GRANULE_BYTES];
};

/* Offsets that ascend from 0: one after the other, all but the first at the end, or spread. */
static void make_rows(struct rows *rows, uint32_t nr, uint32_t shape)
{
	uint32_t i;

	rows->nr = nr;
	for (i = 0; i < nr; i++)
		rows->off[i] = (uint16_t)(shape == 0   ? i
					  : shape == 1 ? (i ? SB_UW_GRANULE_BYTES - nr + i : 0)
						       : i * SB_UW_GRANULE_BYTES / nr);
}

/* Before and behind them lie rows of others, which begin low and high. */
static void place_rows(const struct rows *rows)
{
	uint32_t *words = pool(), i, nr_rules = rows->nr + 2;
	uint32_t chunk = rows->first / SB_UW_CHUNK_WORDS * SB_UW_CHUNK_WORDS;
	struct sb_uw_rule *rules = (struct sb_uw_rule *)&words[3 * SB_UW_CHUNK_WORDS];

	for (i = 0; i < SB_UW_CHUNK_WORDS; i++)
		words[chunk + i] = SB_UW_ROW(nr_rules - 1, i % 3 ? 0 : SB_UW_GRANULE_BYTES - 1);
	for (i = 0; i < nr_rules; i++)
		rules[i] = (struct sb_uw_rule){ .cfa = SB_UW_CFA_SP, .cfa_off = (int32_t)i };
	for (i = 0; i < rows->nr; i++)
		words[rows->first + i] = SB_UW_ROW(i, rows->off[i]);
	words[INDEX_AT] = rows->first;
	words[INDEX_AT + 1] = rows->nr;
	bin()->rules_word = 3 * SB_UW_CHUNK_WORDS;
	bin()->nr_rules = nr_rules;
}

/* The row in force, looked for one by one. */
static uint32_t plain_row(const struct rows *rows, uint32_t off)
{
	uint32_t i, row = 0;

	for (i = 0; i < rows->nr; i++)
		if (rows->off[i] <= off)
			row = i;
	return row;
}

static void check_row(const struct rows *rows, uint32_t off)
{
	struct sb_scratch *s = sb_scratch_get(0);

	if (off >= SB_UW_GRANULE_BYTES)
		return;
	s->walk.pc = CODE + off;
	s->walk.flags = SB_WALK_LEAF;
	assert_int_equal(sb_unwind_find_rule(0), 0);
	if (s->map.rule.cfa != SB_UW_CFA_SP || s->map.rule.cfa_off != (int32_t)plain_row(rows, off))
		fail_msg("%u rows at word %u: offset %u is in row %u, found as row %d", rows->nr,
			 rows->first, off, plain_row(rows, off), s->map.rule.cfa_off);
}

/* Granules of few rows and of as many as bytes, in the middle of a chunk and at its ends: at each
 * row's first byte, at the one before and the one behind, every row is found that is found one by
 * one. */
static void test_row_search(void **state)
{
	static const uint32_t nrs[] = { 1,    2,    3,	  4,	5,    15,   16,	 17,  31,
					32,   33,   34,	  63,	64,   65,   127, 128, 129,
					255,  256,  257,  258,	511,  512,  513, 999, 1023,
					1024, 1025, 2047, 2048, 2049, 4095, 4096 };
	static struct rows rows;
	uint32_t i, row;

	walk(); /* the list of mappings is found */
	for (i = 0; i < SB_ARRAY_SIZE(nrs) * 9; i++) {
		make_rows(&rows, nrs[i / 9], i % 3);
		rows.first = SB_UW_CHUNK_WORDS + i / 3 % 3 * (SB_UW_CHUNK_WORDS - rows.nr) / 2;
		place_rows(&rows);
		for (row = 0; row < rows.nr; row++) {
			check_row(&rows, rows.off[row] - 1u);
			check_row(&rows, rows.off[row]);
			check_row(&rows, rows.off[row] + 1u);
		}
		check_row(&rows, SB_UW_GRANULE_BYTES - 1);
	}
}

/* Mapping @at of a list: some lie next to one another, others have room between them. */
static struct sb_uw_seg seg_at(uint32_t at)
{
	uint64_t begin = LOADED + at * 0x3000ull;

	return (struct sb_uw_seg){
		.begin = begin, .end = begin + (at % 3 ? 0x3000 : 0x1000), .bias = begin, .bin = at
	};
}

static void check_seg(uint32_t nr, uint64_t addr)
{
	struct sb_scratch *s = sb_scratch_get(0);
	int want = -ENOENT, found;
	uint32_t i, bin = 0;

	for (i = 0; i < nr; i++)
		if (addr >= seg_at(i).begin && addr < seg_at(i).end) {
			want = 0;
			bin = i;
		}
	s->walk.pc = addr;
	s->walk.flags = SB_WALK_LEAF;
	found = sb_unwind_find_seg(0);
	if (found != want || (!found && s->map.bin != bin))
		fail_msg("%u mappings: %llx is in %u (%d), found as %u (%d)", nr,
			 (unsigned long long)addr, bin, want, s->map.bin, found);
}

/* The same of lists of mappings. */
static void test_seg_search(void **state)
{
	static const uint32_t nrs[] = { 1,  2,	 3,   15,  16,	17,  31,  32,	33,
					64, 128, 255, 256, 257, 511, 512, 1023, SB_UW_SEGS_MAX };
	uint32_t i, at, first, word;
	struct sb_scratch *s;

	s = walk();
	for (i = 0; i < SB_ARRAY_SIZE(nrs) * 2; i++) {
		uint32_t nr = nrs[i / 2], room = SB_UW_CHUNK_WORDS - nr * SB_UW_SEG_WORDS;

		first = SB_UW_CHUNK_WORDS +
			(i % 2 ? room : room / 2 / SB_UW_SEG_WORDS * SB_UW_SEG_WORDS);
		for (word = 0; word < SB_UW_CHUNK_WORDS; word++)
			pool()[SB_UW_CHUNK_WORDS + word] = 0;
		for (at = 0; at < nr; at++)
			((struct sb_uw_seg *)&pool()[first])[at] = seg_at(at);
		s->map.segs_word = first;
		s->map.nr_segs = nr;
		for (at = 0; at < nr; at++) {
			check_seg(nr, seg_at(at).begin - 1);
			check_seg(nr, seg_at(at).begin);
			check_seg(nr, seg_at(at).begin + 1);
			check_seg(nr, seg_at(at).end - 1);
			check_seg(nr, seg_at(at).end);
		}
	}
}

/* The stack; and behind every other address there is a call. */
static int read_calls(void *dst, uint32_t size, uint64_t addr)
{
	if (addr - BASE < sizeof(memory))
		memcpy(dst, (const char *)memory + (addr - BASE), size);
	else
		memset(dst, 0xe8, size);
	return 0;
}

/* A word about mapping @at: at its ends, next to them, or what no address of a process is. */
static uint64_t word_about(uint32_t at, uint32_t which)
{
	const uint64_t words[] = { seg_at(at).begin,
				   seg_at(at).begin + 1,
				   seg_at(at).end,
				   seg_at(at).end + 1,
				   BASE + 8 * at,
				   at,
				   0,
				   -1ull - at,
				   seg_at(at).end - 1,
				   LOADED - at };

	return words[which % SB_ARRAY_SIZE(words)];
}

/* A return address among the words of a frame is found wherever it is, whatever was looked up
 * before. */
static void test_hidden(void **state)
{
	enum { NR_SEGS = 17, NR_HIDDEN = 20 };
	struct sb_scratch *s = walk();
	unsigned int seed = 1;
	uint32_t at, i, j, nr, nr_found = 0;

	s->map.segs_word = SB_UW_CHUNK_WORDS;
	s->map.nr_segs = NR_SEGS;
	for (at = 0; at < NR_SEGS; at++)
		((struct sb_uw_seg *)&pool()[SB_UW_CHUNK_WORDS])[at] = seg_at(at);
	shim.user_read = read_calls;
	for (i = 0; i < 20000; i++) {
		bool want = false;

		nr = (uint32_t)rand_r(&seed) % NR_HIDDEN;
		for (j = 0; j < NR_HIDDEN; j++) {
			uint32_t which = (uint32_t)rand_r(&seed);

			memory[j] = word_about(which / 16 % NR_SEGS,
					       which % 16 ? 3 + which % 5 : which / 512);
			for (at = 0; at < NR_SEGS && j < nr; at++)
				want |= memory[j] > seg_at(at).begin && memory[j] <= seg_at(at).end;
		}
		s->walk.sp = BASE;
		s->walk.fp = BASE + 8 * nr;
		nr_found += want;
		assert_int_equal(sb_unwind_hides(0), want);
	}
	assert_in_range(nr_found, 2000, 18000);
}

/* Where a table, a list of rules and a mapping end: what lies behind is nobody's, though there are
 * words. */
static void test_ends(void **state)
{
	const struct {
		uint64_t pc;
		int err;
		uint32_t cfa;
	} rows[] = {
		{ CODE - 1, 0, SB_UW_CFA_FP_CHAIN },		/* before the table */
		{ CODE, 0, SB_UW_CFA_SP },			/* its first granule */
		{ CODE + 0xfff, 0, SB_UW_CFA_SP },		/* its last byte */
		{ CODE + 0x1fff, 0, SB_UW_CFA_STOP },		/* the last row */
		{ CODE + 0x2000, -ENOENT, SB_UW_CFA_FP_CHAIN }, /* behind the mapping */
		{ LOADED - 1, -ENOENT, SB_UW_CFA_FP_CHAIN },
	};
	struct sb_scratch *s = walk();
	uint32_t *words = pool();
	size_t i;

	words[INDEX_AT + 4] = 2;
	s->walk.flags = SB_WALK_LEAF;
	for (i = 0; i < SB_ARRAY_SIZE(rows); i++) {
		s->walk.pc = CODE;
		assert_int_equal(sb_unwind_find_rule(0), 0); /* from here on the mapping is known */
		s->walk.pc = rows[i].pc;
		assert_int_equal(sb_unwind_find_rule(0), rows[i].err);
		assert_int_equal(s->map.rule.cfa, rows[i].cfa);
	}
	bin()->nr_granules = 1;
	s->walk.pc = CODE + 0x1000;
	assert_int_equal(sb_unwind_find_rule(0), 0);
	assert_int_equal(s->map.rule.cfa, SB_UW_CFA_FP_CHAIN);
	memcpy(&words[RULES_AT + 8], &words[RULES_AT + 4], sizeof(struct sb_uw_rule));
	for (i = 3; i <= 4; i++) {
		words[INDEX_AT] = (uint32_t)i; /* the last rule, and one that is not there */
		s->walk.pc = CODE;
		assert_int_equal(sb_unwind_find_rule(0), 0);
		assert_int_equal(s->map.rule.cfa, i == 3 ? SB_UW_CFA_SP : SB_UW_CFA_FP_CHAIN);
	}
}

/* One sample, by all of the way that samples go. Return: whether the walk was known. */
static bool take(uint64_t pc, uint64_t sp, uint64_t fp, struct sb_stack_id *ret_id)
{
	struct sb_scratch *s = sb_scratch_get(0);

	s->capture.now_ns = bpf_ktime_get_ns();
	s->capture.key = (struct sb_sample_key){ .tgid = TGID, .start_ns = 7, .exec_id = 1 };
	s->regs = (struct sb_regs){ .ip = pc, .sp = sp, .bp = fp, .cs = 0x33, .orig_ax = ~0ull };
	capture_user(&task, s, 0);
	*ret_id = s->capture.key.ustack;
	return s->map.is_known;
}

/* A walk that would read the same as the one before is not taken again; any other is. */
static void test_known_walks(void **state)
{
	struct sb_stack_id first, id, other;
	uint64_t pc = CODE + 0x10;

	cfg_memo = true;
	lay_stack();
	assert_false(take(pc, BASE, 0, &first));
	assert_true(take(pc, BASE, 0, &id));
	assert_memory_equal(&first, &id, sizeof(id));
	assert_int_equal(stat_of(SB_STAT_KNOWN), 1);
	assert_int_equal(stat_of(SB_STAT_CFI_FRAMES), 4);
	assert_true(take(pc, BASE, 77, &id)); /* no rule on the way uses rbp */
	memory[0] = 99;			      /* nor what lies between return addresses */
	assert_true(take(pc, BASE, 0, &id));

	memory[2] = CODE + 0x1102; /* another call of the root */
	assert_false(take(pc, BASE, 0, &other));
	assert_memory_not_equal(&first, &other, sizeof(other));
	lay_stack();
	assert_false(take(pc, BASE, 0, &id)); /* one place, one walk */
	assert_memory_equal(&first, &id, sizeof(id));
	shim.user_bytes = 512; /* not enough for a piece that is compared at once */
	assert_true(take(pc, BASE, 0, &id));
	memory[2] = CODE + 0x1102;
	assert_false(take(pc, BASE, 0, &other));
	lay_stack();
	assert_false(take(pc, BASE, 0, &id));
	shim.user_bytes = sizeof(memory);

	proc()->exec_id = 2; /* exec: the list is another process's */
	assert_false(take(pc, BASE, 0, &id));
	proc()->exec_id = 1;
	assert_true(take(pc, BASE, 0, &id));
	bpf_map_delete_elem(&stacks_seen, &first); /* it never reached user space */
	assert_false(take(pc, BASE, 0, &id));
	assert_true(take(pc, BASE, 0, &id));
	shim.user_bytes = 16; /* gone */
	assert_false(take(pc, BASE, 0, &id));
	cfg_memo = false;
}

/* What depends on more than pc and sp. */
static void test_walks_by_registers(void **state)
{
	struct sb_uw_rule *rule = (struct sb_uw_rule *)&pool()[RULES_AT] + 2;
	uint64_t pc = CODE + 0x10;
	struct sb_stack_id id;

	cfg_memo = true;
	lay_stack();
	memory[9] = CODE + 0x1101;
	*rule = (struct sb_uw_rule){ .cfa = SB_UW_CFA_FP, .cfa_off = 16 };
	assert_false(take(pc, BASE, BASE, &id)); /* CFA is BASE + 16 */
	assert_true(take(pc, BASE, BASE, &id));
	rule->fp = SB_UW_FP_AT_CFA; /* rbp and the return address are read as a pair */
	rule->fp_off = -16;
	take(pc, BASE, BASE + 64, &id); /* in the place of the walk by the other rule */
	assert_false(take(pc, BASE, BASE, &id));
	assert_true(take(pc, BASE, BASE, &id));
	memory[1] = CODE + 0x1012;
	assert_false(take(pc, BASE, BASE, &id));
	assert_true(take(pc, BASE, BASE, &id));
	lay_stack();
	rule->fp = SB_UW_FP_SAME;
	assert_false(take(pc, BASE, BASE + 64, &id)); /* the root, by [BASE + 72] */
	assert_int_equal(sb_scratch_get(0)->stack.nr_frames, 2);
	*rule = (struct sb_uw_rule){ .cfa = SB_UW_CFA_REG | 12, .cfa_off = (int)0 };
	take(pc, BASE, BASE, &id);
	assert_false(take(pc, BASE, BASE, &id));
	cfg_memo = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_by_table, setup),
		cmocka_unit_test_setup(test_unknown_process, setup),
		cmocka_unit_test_setup(test_just_forked, setup),
		cmocka_unit_test_setup(test_raw, setup),
		cmocka_unit_test_setup(test_raw_to_root, setup),
		cmocka_unit_test_setup(test_reach, setup),
		cmocka_unit_test_setup(test_over_budget, setup),
		cmocka_unit_test_setup(test_no_room_for_raw, setup),
		cmocka_unit_test_setup(test_by_frame_pointer, setup),
		cmocka_unit_test_setup(test_garbage, setup),
		cmocka_unit_test_setup(test_mapped, setup),
		cmocka_unit_test_setup(test_nonsense, setup),
		cmocka_unit_test_setup(test_known_walks, setup),
		cmocka_unit_test_setup(test_walks_by_registers, setup),
		cmocka_unit_test_setup(test_raw_above_fault, setup),
		cmocka_unit_test_setup(test_fault, setup),
		cmocka_unit_test_setup(test_random_tables, setup),
		cmocka_unit_test_setup(test_ends, setup),
		cmocka_unit_test_setup(test_row_search, setup),
		cmocka_unit_test_setup(test_seg_search, setup),
		cmocka_unit_test_setup(test_hidden, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
