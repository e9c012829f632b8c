// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/last_walk.bpf.c, compiled for the host: a walk that is compared with the last one gives the
 * same stack as one that is not, whatever the process has done to its stack and its mappings in
 * between.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core.h"

#define BASE	  0x7ffe00000000ull
#define CODE	  0x555500002000ull /* one rule for each 16 bytes */
#define GENERATED 0x600000000000ull
#define TGID	  42
#define BIN	  3
#define EXEC_VM	  100
#define NR_LISTS  3  /* of mappings, which have tables that differ */
#define SEGS_AT	  64 /* words of the pool */
#define INDEX_AT  1024
#define RULES_AT  2048
#define ROWS_AT	  4096
#define STEP_NS	  1000000ull

enum { NR_WORDS = 4096, NR_SAMPLES = 20000, DEPTH_MAX = 200 };
static uint64_t memory[NR_WORDS];
static const uint32_t zero;
static uint64_t nr_readable; /* bytes of it */
static uint32_t nr_reads;
static struct mm_struct mm;
static struct task_struct task = { .mm = &mm };

/* The binary of each list has them in another order. */
static const struct sb_uw_rule rules[] = {
	{ .cfa = SB_UW_CFA_FP_CHAIN },
	{ .cfa = SB_UW_CFA_STOP },
	{ .cfa = SB_UW_CFA_SP, .cfa_off = 16 },
	{ .cfa = SB_UW_CFA_SP, .cfa_off = 8 },
	{ .cfa = SB_UW_CFA_SP, .cfa_off = 32, .fp = SB_UW_FP_AT_CFA, .fp_off = -16 },
	{ .cfa = SB_UW_CFA_SP, .cfa_off = 48, .fp = SB_UW_FP_AT_CFA, .fp_off = -32 },
	{ .cfa = SB_UW_CFA_FP, .cfa_off = 16, .fp = SB_UW_FP_AT_CFA, .fp_off = -16 },
	{ .cfa = SB_UW_CFA_FP, .cfa_off = 16, .fp = SB_UW_FP_AT_FP, .fp_off = 0 },
	{ .cfa = SB_UW_CFA_SP, .cfa_off = 24, .fp = SB_UW_FP_UNDEF },
	{ .cfa = SB_UW_CFA_SP, .cfa_off = 64, .bx = 3 },
	{ .cfa = SB_UW_CFA_SP, .cfa_off = 16, .bx = SB_UW_BX_LOST },
	{ .cfa = SB_UW_CFA_REG | SB_REG_BX, .cfa_off = 16 },
	{ .cfa = SB_UW_CFA_AT_FP, .cfa_off = 0x80000 | 0xfff8, .fp = SB_UW_FP_AT_FP },
	{ .cfa = SB_UW_CFA_AT_SP, .cfa_off = 0x80010 },
	{ .cfa = SB_UW_CFA_CLONE, .cfa_off = 16 },
	{ .cfa = SB_UW_CFA_PLT11 },
	{ .cfa = SB_UW_CFA_SWITCH, .cfa_off = 16, .fp = SB_UW_FP_AT_CFA, .fp_off = -16 },
	{ .cfa = SB_UW_CFA_SIGNAL },
	{ .cfa = SB_UW_CFA_SP, .cfa_off = 2400 },
	{ .cfa = SB_UW_CFA_UNSUP },
};
enum {
	NR_RULES = sizeof(rules) / sizeof(rules[0]),
	ROOT = 1,
	LOW_FP = 5,
	SAVES_BX = 9,
	BY_BX = 11,
	SIGNAL = 17
};

/* A stack that can be walked, root first. */
static struct {
	uint64_t pc, sp, fp;
} frames[DEPTH_MAX];
static uint32_t nr_frames;

static uint64_t seed = 1;
static uint32_t list_now, shift;

static uint32_t draw(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 33) % below;
}

static void fill_list(uint32_t *words, uint32_t list)
{
	struct sb_uw_seg *segs = (struct sb_uw_seg *)&words[SEGS_AT + 32 * list];
	uint32_t bin = BIN + (list + shift) % NR_LISTS, i;
	struct sb_uw_bin *table = bpf_map_lookup_elem(&uw_bins, &bin);

	segs[0] = (struct sb_uw_seg){
		.begin = CODE, .end = CODE + 0x1000, .bias = CODE - 0x2000, .bin = bin
	};
	segs[1] = (struct sb_uw_seg){ .begin = GENERATED,
				      .end = GENERATED + 0x1000,
				      .flags = SB_UW_SEG_ANON };
	words[INDEX_AT + 2 * list] = ROWS_AT + 32 * list;
	words[INDEX_AT + 2 * list + 1] = NR_RULES;
	for (i = 0; i < NR_RULES; i++)
		words[ROWS_AT + 32 * list + i] =
			SB_UW_ROW((i + 2 * list + shift) % NR_RULES, 16 * i);
	memcpy(&words[RULES_AT], rules, sizeof(rules));
	*table = (struct sb_uw_bin){
		.text_lo = 0x2000,
		.index_word = INDEX_AT + 2 * list,
		.nr_granules = 1,
		.rules_word = RULES_AT,
		.nr_rules = NR_RULES,
		.state = SB_UW_BIN_READY,
	};
}

static void fill_lists(void)
{
	uint32_t list;

	for (list = 0; list < NR_LISTS; list++)
		fill_list(bpf_map_lookup_elem(&shim_part, &zero), list);
}

static void map_list(uint32_t list)
{
	const struct sb_uw_proc known = { .start_ns = 7,
					  .exec_vm = EXEC_VM,
					  .exec_id = 1,
					  .segs_word = SEGS_AT + 32 * list,
					  .nr_segs = 2,
					  .nr_confirmed = NR_CONFIRMED_MAX };
	uint32_t tgid = TGID;

	bpf_map_update_elem(&uw_procs, &tgid, &known, BPF_ANY);
}

/* The stack; and code, which consists of calls. */
static int read_process(void *dst, uint32_t size, uint64_t addr)
{
	uint64_t call = 0xe8000000, at = addr - BASE;

	nr_reads++;
	if (addr - CODE < 0x1000 && size == sizeof(call)) {
		memcpy(dst, &call, sizeof(call));
		return 0;
	}
	if (at > nr_readable || nr_readable - at < size)
		return -EFAULT;
	memcpy(dst, (const char *)memory + at, size);
	return 0;
}

static int setup(void **state)
{
	shim_reset();
	mm = (struct mm_struct){ .exec_vm = EXEC_VM, .start_code = CODE };
	shim.task = &task;
	shim_core_maps(64 << 20);
	shim.user_read = read_process;
	nr_readable = sizeof(memory);
	shim.now_ns = 1ull << 40;
	cfg_unwind = SB_UNWIND_CFI | SB_UNWIND_FP;
	list_now = shift = 0;
	fill_lists();
	map_list(0);
	return 0;
}

static uint64_t stat_of(uint32_t stat)
{
	return ((struct sb_stats *)bpf_map_lookup_elem(&stats, &zero))->val[stat];
}

static uint64_t code_of(uint32_t rule)
{
	return CODE + 16 * ((rule + NR_RULES * 3 - 2 * list_now - shift) % NR_RULES) + 1 + draw(14);
}

static uint64_t some_word(void)
{
	switch (draw(8)) {
	case 0:
		return draw(4) ? 0 : draw(1u << 31);
	case 1:
	case 2:
		return BASE + 8ull * draw(NR_WORDS) + (draw(16) ? 0 : draw(8));
	case 3:
		return draw(20) ? code_of(draw(NR_RULES)) : GENERATED + draw(0x1000);
	default:
		return code_of(2 + draw(7));
	}
}

static void put(uint64_t addr, uint64_t word)
{
	memory[(addr - BASE) / 8 % NR_WORDS] = word;
}

static void push_frame(uint64_t pc, uint64_t sp, uint64_t fp)
{
	frames[nr_frames].pc = pc;
	frames[nr_frames].sp = sp;
	frames[nr_frames++].fp = fp;
}

/* A frame of generated code, which has a frame pointer. */
static void lay_generated(uint64_t cfa, uint64_t fp)
{
	put(cfa - 16, fp);
	put(cfa - 8, frames[nr_frames - 1].pc);
	push_frame(GENERATED + draw(0x1000), cfa - 16 - 8ull * draw(6), cfa - 16);
}

/* A signal handler's trampoline. */
static void lay_signal(uint64_t cfa, uint64_t fp)
{
	uint64_t sp = cfa - 512;

	put(sp + 40 + 8 * 10, fp);
	put(sp + 40 + 8 * 11, some_word());
	put(sp + 40 + 8 * 15, cfa);
	put(sp + 40 + 8 * 16, frames[nr_frames - 1].pc);
	push_frame(code_of(SIGNAL), sp, some_word());
}

/* A frame that is found by rbx, and what it called, which has saved that. */
static void lay_by_bx(uint64_t cfa, uint64_t fp)
{
	put(cfa - 8, frames[nr_frames - 1].pc);
	push_frame(code_of(BY_BX), cfa - 48, fp);
	put(cfa - 48 - 8, frames[nr_frames - 1].pc);
	put(cfa - 48 - 24, cfa - 16);
	push_frame(code_of(SAVES_BX), cfa - 48 - 64, fp);
}

/* Lay a frame by a plain rule. Return: whether it can be. */
static bool lay_plain(uint64_t cfa, uint64_t fp)
{
	uint32_t at = 2 + draw(NR_RULES - 2);
	const struct sb_uw_rule *rule = &rules[at];
	uint64_t sp = cfa - (uint64_t)rule->cfa_off, own_fp = fp;
	uint64_t fp_at = cfa + (uint64_t)rule->fp_off;

	switch (rule->cfa) {
	case SB_UW_CFA_SP:
	case SB_UW_CFA_CLONE:
		if (rule->fp == SB_UW_FP_UNDEF)
			return false;
		own_fp = rule->fp == SB_UW_FP_SAME ? fp : some_word();
		break;
	case SB_UW_CFA_FP:
	case SB_UW_CFA_SWITCH:
		own_fp = fp_at = cfa - 16;
		sp = own_fp - 8ull * draw(6);
		break;
	case SB_UW_CFA_AT_FP:
		own_fp = fp_at = cfa - 32;
		put(own_fp - 8, cfa - 8);
		sp = own_fp - 16;
		break;
	case SB_UW_CFA_AT_SP:
		sp = cfa - 40;
		put(sp + 16, cfa - 8);
		break;
	default:
		return false;
	}
	put(cfa - 8, frames[nr_frames - 1].pc);
	if (rule->fp != SB_UW_FP_SAME)
		put(fp_at, fp);
	push_frame(code_of(at), sp, own_fp);
	return true;
}

/* Lay a frame that is called by the last one. Return: whether it can be. */
static bool lay_frame(void)
{
	uint64_t cfa = frames[nr_frames - 1].sp, fp = frames[nr_frames - 1].fp;

	switch (draw(40)) {
	case 0:
		lay_generated(cfa, fp);
		return true;
	case 1:
		lay_signal(cfa, fp);
		return true;
	case 2:
		lay_by_bx(cfa, fp);
		return true;
	default:
		return lay_plain(cfa, fp);
	}
}

/* Return from some calls, and make others. */
static void go_on(void)
{
	uint32_t nr_back = draw(16) ? draw(5) : draw(DEPTH_MAX),
		 nr = draw(16) ? draw(6) : draw(DEPTH_MAX);

	nr_frames = nr_back < nr_frames ? nr_frames - nr_back : 0;
	if (!nr_frames) {
		frames[0].pc = code_of(ROOT);
		frames[0].sp = BASE + 8ull * (NR_WORDS - draw(64));
		frames[0].fp = some_word();
		nr_frames = 1;
	}
	while (nr && nr_frames < DEPTH_MAX - 1 && frames[nr_frames - 1].sp > BASE + 4096)
		nr -= lay_frame();
}

static void mutate(struct sb_regs *regs)
{
	uint32_t nr, i;

	if (!draw(256)) {
		if (draw(2)) /* or its code has other rules now */
			nr_frames = 0;
		list_now = draw(NR_LISTS);
		map_list(list_now);
	}
	/* Another list in the place of one that was freed; not at once: SB_UWPOOL_REST_NS. */
	if (!draw(256)) {
		shift = draw(NR_RULES);
		fill_lists();
		shim.now_ns += 2000000000;
	}
	if (draw(4) || !nr_frames)
		go_on();
	*regs = (struct sb_regs){ .cs = 0x33, .bx = some_word(), .ax = draw(2) };
	regs->sp = frames[nr_frames - 1].sp;
	regs->bp = draw(30) ? frames[nr_frames - 1].fp : some_word();
	regs->ip = draw(10) ? frames[nr_frames - 1].pc : code_of(2 + draw(NR_RULES - 2));
	if (!draw(40))
		regs->sp = BASE + 8ull * draw(NR_WORDS);
	/* Foreign hands on the stack. */
	nr = draw(12) ? 0 : draw(8) ? draw(4) : draw(NR_WORDS);
	for (i = 0; i < nr; i++)
		memory[draw(NR_WORDS)] = some_word();
	for (i = draw(12); i < 1; i++)
		put(frames[draw(nr_frames)].sp + 8 * draw(8) - 24, some_word());
	nr_readable = draw(40) ? sizeof(memory) : sizeof(memory) - 8ull * draw(256);
}

static struct sb_scratch *take(const struct sb_regs *regs, bool is_compared)
{
	struct sb_scratch *s = sb_scratch_get(SB_SCRATCH_TIMER);

	cfg_last_walk = is_compared;
	s->capture.now_ns = shim.now_ns;
	s->capture.key = (struct sb_sample_key){ .tgid = TGID, .start_ns = 7, .exec_id = 1 };
	s->regs = *regs;
	capture_user(&task, s, SB_SCRATCH_TIMER);
	return s;
}

/* Take a sample by both ways. Return: that of the second, which is the same. */
static struct sb_scratch *take_both(const struct sb_regs *regs)
{
	static struct sb_event_stack truth;
	static uint64_t truth_ip[SB_USTACK_DEPTH_MAX];
	uint64_t by_fp = stat_of(SB_STAT_FP_FRAMES), by_cfi = stat_of(SB_STAT_CFI_FRAMES);
	struct sb_scratch *s = take(regs, false);
	struct sb_stack_id truth_id = s->capture.key.ustack;

	truth = s->stack;
	memcpy(truth_ip, s->ip, sizeof(truth_ip));
	by_fp = 2 * stat_of(SB_STAT_FP_FRAMES) - by_fp;
	by_cfi = 2 * stat_of(SB_STAT_CFI_FRAMES) - by_cfi;
	s = take(regs, true);
	assert_int_equal(s->stack.status, truth.status);
	assert_int_equal(s->stack.nr_frames, truth.nr_frames);
	assert_memory_equal(s->ip, truth_ip, truth.nr_frames * sizeof(s->ip[0]));
	assert_memory_equal(&s->capture.key.ustack, &truth_id, sizeof(truth_id));
	assert_int_equal(stat_of(SB_STAT_FP_FRAMES), by_fp);
	assert_int_equal(stat_of(SB_STAT_CFI_FRAMES), by_cfi);
	return s;
}

static void test_random_stacks(void **state)
{
	uint64_t nr_complete = 0, nr_ips = 0;
	struct sb_scratch *s;
	struct sb_regs regs;
	uint32_t i;

	nr_frames = 0;
	for (i = 0; i < NR_WORDS; i++)
		memory[i] = some_word();
	for (i = 0; i < NR_SAMPLES; i++) {
		mutate(&regs);
		shim.pid_tgid = (uint64_t)TGID << 32 | (100 + 64 * draw(3)); /* one place */
		s = take_both(&regs);
		if (s->stack.status == SB_STACK_COMPLETE) {
			nr_complete++;
			nr_ips += s->stack.nr_frames;
		}
		shim.now_ns += STEP_NS;
	}
	printf("%u samples, %llu complete, %llu frames in these, %llu as they were\n", NR_SAMPLES,
	       (unsigned long long)nr_complete, (unsigned long long)nr_ips,
	       (unsigned long long)stat_of(SB_STAT_SAME_FRAMES));
	assert_true(nr_complete > NR_SAMPLES / 4);
	assert_true(stat_of(SB_STAT_SAME_FRAMES) > nr_ips / 3);
}

/* Return: the registers of a thread with eight frames, which are laid on the stack. */
static struct sb_regs lay_eight(void)
{
	nr_frames = 0;
	go_on();
	for (nr_frames = 1; nr_frames < 8;)
		lay_plain(frames[nr_frames - 1].sp, frames[nr_frames - 1].fp);
	return (struct sb_regs){ .cs = 0x33,
				 .ip = frames[nr_frames - 1].pc,
				 .sp = frames[nr_frames - 1].sp,
				 .bp = frames[nr_frames - 1].fp };
}

/* Each word of the stack is another one for one sample. */
static void test_each_word(void **state)
{
	struct sb_regs regs;
	uint32_t round, i, k;
	uint64_t before;

	for (round = 0; round < 20; round++) {
		regs = lay_eight();
		assert_int_equal(take_both(&regs)->stack.status, SB_STACK_COMPLETE);
		for (i = (uint32_t)((regs.sp - BASE) / 8); i < NR_WORDS; i++) {
			before = memory[i];
			for (k = 0; k < 3; k++) {
				take_both(&regs);
				memory[i] = k ? some_word() : before + 1;
				take_both(&regs);
				memory[i] = before;
			}
		}
	}
}

/* core/unwind_tables.bpf.c: a rule that was found serves other threads, too, until the epoch ends,
 * but no other list of mappings. */
static void test_found_rules(void **state)
{
	uint32_t bin = BIN;
	struct sb_uw_bin *table = bpf_map_lookup_elem(&uw_bins, &bin);
	struct sb_regs regs = lay_eight();
	struct sb_stack_id id;

	shim.pid_tgid = (uint64_t)TGID << 32 | 100;
	assert_int_equal(take(&regs, true)->stack.status, SB_STACK_COMPLETE);
	id = sb_scratch_get(SB_SCRATCH_TIMER)->capture.key.ustack;
	table->state = SB_UW_BIN_ABSENT;
	assert_true(take(&regs, false)->map.is_raw);
	shim.pid_tgid++;
	assert_false(take(&regs, true)->map.is_raw);
	assert_memory_equal(&sb_scratch_get(SB_SCRATCH_TIMER)->capture.key.ustack, &id, sizeof(id));
	map_list(1);
	table = bpf_map_lookup_elem(&uw_bins, &(uint32_t){ BIN + 1 });
	table->state = SB_UW_BIN_ABSENT;
	shim.pid_tgid++;
	assert_true(take(&regs, true)->map.is_raw);
	map_list(0);
	assert_false(take(&regs, true)->map.is_raw);
	shim.pid_tgid++;
	shim.now_ns += 2000000000;
	assert_true(take(&regs, true)->map.is_raw);
}

/* memo.bpf.c: a walk is not remembered until another list may have the number of the one that it
 * went by. */
static void test_memo_ends(void **state)
{
	const uint64_t known = stat_of(SB_STAT_KNOWN);
	struct sb_regs regs;

	cfg_memo = true;
	regs = lay_eight();
	assert_int_equal(take(&regs, false)->stack.status, SB_STACK_COMPLETE);
	take(&regs, false);
	assert_int_equal(stat_of(SB_STAT_KNOWN), known + 1);
	shift = 1;
	fill_lists();
	shim.now_ns += 2000000000;
	take(&regs, false);
	assert_int_equal(stat_of(SB_STAT_KNOWN), known + 1);
	cfg_memo = false;
}

/* memo.bpf.c: the words that a walk has read are compared by pieces of the stack, also where the
 * first frame has saved a register below all else that was read; and each of them is. */
static void test_memo_reads(void **state)
{
	const uint64_t sp = BASE + 1024;
	const struct sb_regs regs = {
		.cs = 0x33, .ip = code_of(LOW_FP), .sp = sp, .orig_ax = ~0ull
	};
	struct sb_scratch *s;
	uint32_t i;

	cfg_memo = true;
	memset(memory, 0, sizeof(memory));
	for (i = 1; i <= 10; i++) {
		put(sp + 48ull * i - 8, code_of(i < 10 ? LOW_FP : ROOT));
		put(sp + 48ull * i - 32, i);
	}
	assert_int_equal(take(&regs, false)->stack.status, SB_STACK_COMPLETE);
	nr_reads = 0;
	assert_int_equal(take(&regs, false)->map.is_known, 1);
	assert_in_range(nr_reads, 1, 3);
	for (i = 1; i <= 10; i++) {
		put(sp + 48ull * i - 32, 0);
		s = take(&regs, false);
		assert_int_equal(s->map.is_known, 0);
		assert_int_equal(s->stack.nr_frames, 11);
	}
	cfg_memo = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_random_stacks, setup),
		cmocka_unit_test_setup(test_each_word, setup),
		cmocka_unit_test_setup(test_found_rules, setup),
		cmocka_unit_test_setup(test_memo_ends, setup),
		cmocka_unit_test_setup(test_memo_reads, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
