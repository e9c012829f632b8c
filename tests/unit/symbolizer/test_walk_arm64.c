// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The walk by the rules of arm64, on whatever machine this runs: built with SB_MACHINE_ARM64. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "symbolizer/unwind/walk.h"

#ifndef SB_MACHINE_ARM64
#error "build with SB_MACHINE_ARM64"
#endif

#define STACK	    0xfffffff00000ull
#define BIAS	    0xaaaa00000000ull
#define TEXT_LO	    0x1000u
#define NR_GRANULES 8u
#define JIT	    0xffff00000000ull /* code without a table, that can be read */
#define JIT_WORDS   16u
#define PAC	    0x002a000000000000ull /* a signature: bits 48 to 54 */

enum { NR_WORDS = 4096, MAX = 16 };
enum { X3 = 3, X10 = 10, G = 28, FP = 29, LR = 30, SP = 31 };

static uint64_t memory[NR_WORDS];
static uint32_t jit[JIT_WORDS];
static uint32_t words[SB_UW_CHUNK_WORDS];
static struct sb_walk_table table;
static struct sb_walk_from from;
static uint64_t ip[MAX];
static struct sb_walk_frames frames;
static bool is_generated;

static uint64_t code(uint32_t g, uint32_t off)
{
	return BIAS + TEXT_LO + g * SB_UW_GRANULE_BYTES + off;
}

static uint64_t addr(size_t word)
{
	return STACK + word * 8;
}

static void add_rule(uint32_t g, struct sb_uw_rule rule)
{
	memcpy(&words[table.bin.rules_word + table.bin.nr_rules * 2], &rule, sizeof(rule));
	words[table.bin.index_word + g * 2] = table.bin.nr_rules++;
	words[table.bin.index_word + g * 2 + 1] = 0;
}

#define RULE(g, ...) add_rule((g), (struct sb_uw_rule){ __VA_ARGS__ })

/* What almost all functions have: a frame of @bytes with the record at its bottom. */
static void record_rule(uint32_t g, int bytes)
{
	RULE(g, .cfa = SB_UW_CFA_SP, .cfa_off = bytes, .fp = SB_UW_FP_AT_CFA,
	     .fp_off = (int16_t)(-bytes / 8), .bx = SB_UW_RA_PAIR);
}

static void put_record(size_t word, uint64_t fp, uint64_t lr)
{
	memory[word] = fp;
	memory[word + 1] = lr;
}

/* Granule 0 is the root's; 7 and what lies behind have no rule. */
static int setup(void **state)
{
	size_t i;

	memset(memory, 0, sizeof(memory));
	memset(words, 0, sizeof(words));
	for (i = 0; i < JIT_WORDS; i++)
		jit[i] = 0xd503201f; /* nop */
	table = (struct sb_walk_table){ .words = words, .nr_words = SB_UW_CHUNK_WORDS };
	table.bin = (struct sb_uw_bin){ .text_lo = TEXT_LO,
					.index_word = 2,
					.nr_granules = NR_GRANULES,
					.rules_word = 64,
					.state = SB_UW_BIN_READY };
	RULE(7, .cfa = SB_UW_CFA_FP_CHAIN);
	RULE(0, .cfa = SB_UW_CFA_STOP);
	for (i = 0; i < SB_UNWIND_REGS; i++)
		from.regs[i] = 0x1000 + i;
	from.pc = code(1, 0);
	from.regs[SP] = addr(0);
	is_generated = false;
	return 0;
}

static int find(void *arg, uint64_t at, struct sb_walk_code *ret)
{
	*ret = (struct sb_walk_code){ .is_generated = is_generated };
	if (at >= JIT && at < JIT + sizeof(jit))
		return 1;
	if (at < BIAS || at >= code(NR_GRANULES, 0))
		return 0;
	ret->table = &table;
	ret->bias = BIAS;
	return 1;
}

static int read_at(void *arg, void *buf, size_t len, uint64_t at)
{
	const bool is_code = at >= JIT && at < JIT + sizeof(jit);
	const char *mem = is_code ? (const char *)jit : (const char *)memory;
	uint64_t base = is_code ? JIT : STACK, size = is_code ? sizeof(jit) : sizeof(memory);

	if (at < base || at - base > size || len > size - (at - base))
		return -EFAULT;
	memcpy(buf, mem + (at - base), len);
	return 0;
}

static void walk(uint32_t modes)
{
	struct sb_walk_env env = { .find = find, .read = read_at, .modes = modes };

	memset(ip, 0xee, sizeof(ip));
	frames = (struct sb_walk_frames){ .ip = ip, .max = MAX, .status = 0xee };
	assert_int_equal(sb_walk_run(&env, &from, &frames), 0);
}

#define expect(status_, ...)                                         \
	do {                                                         \
		const uint64_t want_[] = { from.pc, ##__VA_ARGS__ }; \
                                                                     \
		walk(SB_UNWIND_CFI | SB_UNWIND_FP);                  \
		assert_int_equal(frames.status, status_);            \
		assert_int_equal(frames.nr, SB_ARRAY_SIZE(want_));   \
		assert_memory_equal(ip, want_, sizeof(want_));       \
	} while (0)

/* A leaf has its return address in x30, and may have no stack at all. */
static void test_link_register(void **state)
{
	RULE(1, .cfa = SB_UW_CFA_SP, .bx = SB_UW_RA_LR);
	record_rule(2, 32);
	from.regs[LR] = code(2, 8);
	put_record(0, 0, code(0, 7));
	expect(SB_STACK_COMPLETE, code(2, 8), code(0, 7));
	/* But a caller cannot have it there. */
	put_record(0, 0, code(1, 8));
	expect(SB_STACK_NO_RULE, code(2, 8), code(1, 8));
}

/* Behind the system call that makes threads: the new one has its maker's x30. */
static void test_new_thread(void **state)
{
	RULE(1, .cfa = SB_UW_CFA_CLONE, .bx = SB_UW_RA_LR);
	record_rule(2, 32);
	from.regs[LR] = code(2, 8);
	put_record(0, 0, code(0, 7));
	expect(SB_STACK_COMPLETE, code(2, 8), code(0, 7));
	from.regs[0] = 0;
	expect(SB_STACK_COMPLETE);
}

static void test_record(void **state)
{
	record_rule(1, 48);
	RULE(2, .cfa = SB_UW_CFA_FP, .cfa_off = 64, .fp = SB_UW_FP_AT_CFA, .fp_off = -8,
	     .bx = SB_UW_RA_PAIR);
	put_record(0, addr(20), code(2, 8));
	put_record(20, 0, code(0, 7));
	expect(SB_STACK_COMPLETE, code(2, 8), code(0, 7));
	/* Where sp or x29 points, however big the frame is. */
	RULE(2, .cfa = SB_UW_CFA_FP, .cfa_off = 1 << 20, .fp = SB_UW_FP_AT_FP, .bx = SB_UW_RA_PAIR);
	expect(SB_STACK_COMPLETE, code(2, 8), code(0, 7));
	RULE(1, .cfa = SB_UW_CFA_SP, .cfa_off = 1 << 20, .fp = SB_UW_FP_AT_FP, .fp_off = 1,
	     .bx = SB_UW_RA_PAIR);
	put_record(1, 0, code(0, 7));
	expect(SB_STACK_COMPLETE, code(0, 7));
}

/* Go: the record lies below sp. A function that calls on another stack, which may lie anywhere,
 * still has x29 at its record. */
static void test_go(void **state)
{
	RULE(1, .cfa = SB_UW_CFA_SP, .cfa_off = 64, .fp = SB_UW_FP_AT_FP, .fp_off = -1,
	     .bx = SB_UW_RA_PAIR);
	RULE(2, .cfa = SB_UW_CFA_SWITCH, .cfa_off = 8 + 32, .fp = SB_UW_FP_AT_FP,
	     .bx = SB_UW_RA_PAIR);
	RULE(3, .cfa = SB_UW_CFA_SP, .cfa_off = 16, .fp = SB_UW_FP_AT_FP, .fp_off = -1,
	     .bx = SB_UW_RA_PAIR);
	from.regs[SP] = addr(100);
	put_record(99, addr(9), code(2, 8));
	put_record(9, 0, code(3, 8));
	put_record(13, 0, code(0, 7));
	expect(SB_STACK_COMPLETE, code(2, 8), code(3, 8), code(0, 7));
	/* By the chain to a function of Go: x29 is at its record, and so tells its sp. */
	from.pc = JIT;
	from.regs[SP] = addr(50);
	from.regs[FP] = addr(60);
	put_record(60, addr(99), code(1, 8));
	expect(SB_STACK_COMPLETE, code(1, 8) | SB_IP_BY_FP, code(2, 8), code(3, 8), code(0, 7));
}

/* Words of the runtime's records, and where they are in these tests: a thread, its system stack's
 * `g`, and that of its goroutine. The goroutine's stack is from word 2000 to word 2100. */
enum { GO_M = 6, GO_SP, GO_PC, GO_LR_LATE = 11, GO_CURG = 23, THREAD = 3000, G0 = 3100, G1 = 3200 };

/* @late: as since Go 1.25. */
static void go_thread(size_t late)
{
	memory[THREAD] = addr(G0);
	memory[THREAD + GO_CURG + 1 - late] = addr(G1);
	/* A function that the thread began with, before which has no thread. */
	memory[THREAD + GO_CURG + late] = late ? 0 : addr(3300);
	memory[G0 + GO_M] = memory[G1 + GO_M] = addr(THREAD);
	memory[G1] = addr(2000);
	memory[G1 + 1] = addr(2100);
	memory[G1 + GO_SP] = addr(2050);
	memory[G1 + GO_PC] = code(3, 8);
	memory[G1 + GO_LR_LATE + 1 - late] = code(2, 8);
	memory[G1 + GO_LR_LATE + 2 - late] = addr(9);
	from.regs[G] = addr(G0);
}

/* Go's calls on the system stack, which lies above or below that of the goroutine:
 * systemstack(). */
static void test_go_system(void **state)
{
	size_t late;

	RULE(1, .cfa = SB_UW_CFA_GO_SYSTEM, .cfa_off = 16, .fp = SB_UW_FP_AT_FP, .fp_off = -1,
	     .bx = SB_UW_RA_PAIR);
	RULE(2, .cfa = SB_UW_CFA_SP, .cfa_off = 16, .fp = SB_UW_FP_AT_FP, .fp_off = -1,
	     .bx = SB_UW_RA_PAIR);
	record_rule(3, 32);
	put_record(2049, 0, code(2, 8));
	put_record(2051, 0, code(0, 7));
	put_record(100, 0, code(1, 8));
	for (late = 0; late < 2; late++) {
		go_thread(late);
		from.pc = code(3, 0);
		from.regs[SP] = addr(100);
		expect(SB_STACK_COMPLETE, code(1, 8), code(2, 8), code(0, 7));
		/* As a leaf it may stand on either stack, with either `g`. */
		from.pc = code(1, 4);
		expect(SB_STACK_COMPLETE, code(2, 8), code(0, 7));
		from.regs[G] = addr(G1);
		expect(SB_STACK_COMPLETE, code(2, 8), code(0, 7));
		from.regs[SP] = addr(2060);
		put_record(2059, 0, code(0, 9));
		expect(SB_STACK_COMPLETE, code(0, 9));
		/* The thread has left the goroutine; and x28 is not Go's any more. */
		from.regs[G] = addr(G0);
		memory[THREAD + GO_CURG + 1 - late] = 0;
		expect(SB_STACK_COMPLETE);
		memory[THREAD] = addr(3300);
		expect(SB_STACK_NO_RULE);
		from.regs[G] = 1;
		expect(SB_STACK_FAULT);
	}
}

/* The same to C, which may overwrite x28: asmcgocall(). */
static void test_go_c(void **state)
{
	record_rule(1, 32);
	RULE(2, .cfa = SB_UW_CFA_GO_C, .cfa_off = 16, .fp = SB_UW_FP_AT_FP, .fp_off = -1,
	     .bx = SB_UW_RA_PAIR);
	put_record(0, 0, code(2, 8));
	put_record(4, addr(G1), 8 * 50);
	memory[G1 + 1] = addr(2100);
	put_record(2049, 0, code(0, 7));
	expect(SB_STACK_COMPLETE, code(2, 8), code(0, 7));
	/* It was called on the system stack. */
	put_record(4, 0, addr(10));
	put_record(9, 0, code(0, 9));
	expect(SB_STACK_COMPLETE, code(2, 8), code(0, 9));
	put_record(4, 16, 8);
	expect(SB_STACK_FAULT, code(2, 8));
}

/* A handler of signals lets a goroutine call the runtime, and pushes its x30: asyncPreempt(). */
static void test_go_interrupted(void **state)
{
	RULE(1, .cfa = SB_UW_CFA_GO_PUSHED, .cfa_off = 32 + 16, .fp = SB_UW_FP_AT_FP, .fp_off = -1,
	     .bx = SB_UW_RA_PAIR);
	RULE(2, .cfa = SB_UW_CFA_SP, .bx = SB_UW_RA_LR);
	record_rule(3, 32);
	from.regs[SP] = addr(1);
	put_record(0, 0, code(2, 0));
	memory[5] = code(3, 8);
	put_record(7, 0, code(0, 7));
	expect(SB_STACK_COMPLETE, code(2, 0) | SB_IP_EXACT, code(3, 8), code(0, 7));
	/* It has not made its frame yet. */
	RULE(1, .cfa = SB_UW_CFA_GO_PUSHED, .cfa_off = 16, .bx = SB_UW_RA_LR);
	from.regs[SP] = addr(5);
	from.regs[LR] = code(2, 0);
	expect(SB_STACK_COMPLETE, code(2, 0) | SB_IP_EXACT, code(3, 8), code(0, 7));
}

/* A goroutine's stack grows: morestack(), which the function's prologue calls. */
static void test_go_grow(void **state)
{
	size_t late;

	record_rule(1, 32);
	RULE(4, .cfa = SB_UW_CFA_GO_GROW);
	RULE(3, .cfa = SB_UW_CFA_SP, .bx = SB_UW_RA_LR);
	RULE(2, .cfa = SB_UW_CFA_FP, .cfa_off = 16, .fp = SB_UW_FP_AT_CFA, .fp_off = -2,
	     .bx = SB_UW_RA_PAIR);
	put_record(0, 0, code(4, 8));
	put_record(2055, 0, code(0, 7));
	for (late = 0; late < 2; late++) {
		go_thread(late);
		memory[G1 + GO_LR_LATE + 2 - late] = addr(2055);
		from.pc = code(1, 0);
		expect(SB_STACK_COMPLETE, code(4, 8), code(3, 8), code(2, 8), code(0, 7));
		/* Before it has saved anything. */
		from.pc = code(4, 0);
		from.regs[G] = addr(G1);
		from.regs[LR] = code(3, 12);
		from.regs[X3] = code(2, 12);
		from.regs[SP] = addr(2054);
		from.regs[FP] = addr(2055);
		expect(SB_STACK_COMPLETE, code(3, 12), code(2, 12), code(0, 7));
		from.regs[SP] = addr(0);
	}
}

static void test_return_address_apart(void **state)
{
	/* x30 at CFA - 40, x29 untouched; then x30 at CFA - 16 and x29 at CFA - 48. */
	RULE(1, .cfa = SB_UW_CFA_SP, .cfa_off = 48, .bx = 5);
	RULE(2, .cfa = SB_UW_CFA_SP, .cfa_off = 64, .fp = SB_UW_FP_AT_CFA, .fp_off = -6, .bx = 2);
	RULE(3, .cfa = SB_UW_CFA_FP, .cfa_off = 16, .fp = SB_UW_FP_AT_CFA, .fp_off = -2,
	     .bx = SB_UW_RA_PAIR);
	memory[1] = code(2, 8);
	memory[6 + 2] = addr(100);
	memory[6 + 6] = code(3, 8);
	put_record(100, 0, code(0, 7));
	expect(SB_STACK_COMPLETE, code(2, 8), code(3, 8), code(0, 7));
	/* x30 alone, far below the CFA. */
	RULE(1, .cfa = SB_UW_CFA_SP, .cfa_off = 8192, .fp_off = 23, .bx = SB_UW_RA_PAIR);
	memory[24] = code(0, 7);
	expect(SB_STACK_COMPLETE, code(0, 7));
}

/* A signature is taken off, but what is no user address does not become one. */
static void test_signed(void **state)
{
	RULE(1, .cfa = SB_UW_CFA_SP, .bx = SB_UW_RA_LR);
	record_rule(2, 32);
	from.regs[LR] = code(2, 8) | PAC;
	put_record(0, 0, code(0, 7) | PAC << 1);
	expect(SB_STACK_COMPLETE, code(2, 8), code(0, 7));
	memory[1] = code(0, 7) | 1ull << 55;
	expect(SB_STACK_BAD_PC, code(2, 8));
	memory[1] = code(0, 7) | 1ull << 56;
	expect(SB_STACK_BAD_PC, code(2, 8));
}

/* Registers other than sp and x29 are those of the leaf. */
static void test_other_register(void **state)
{
	RULE(1, .cfa = SB_UW_CFA_REG + X10, .cfa_off = 16, .bx = 1);
	from.regs[X10] = addr(8);
	memory[9] = code(0, 7);
	expect(SB_STACK_COMPLETE, code(0, 7));
	memory[9] = code(1, 7);
	expect(SB_STACK_NO_RULE, code(1, 7));
	RULE(1, .cfa = SB_UW_CFA_UNSUP);
	expect(SB_STACK_NO_RULE);
}

static void test_bad_cfa(void **state)
{
	record_rule(1, 0);
	expect(SB_STACK_BAD_CFA);
	record_rule(1, -16);
	expect(SB_STACK_BAD_CFA);
	RULE(1, .cfa = SB_UW_CFA_SP, .cfa_off = 8 * NR_WORDS + 16, .bx = 1);
	expect(SB_STACK_FAULT);
}

/*
 * A chain of records does not tell the caller's sp: its record does, to which x29 points. Where
 * the rule knows of no record, the chain goes on.
 */
static void test_sp_after_chain(void **state)
{
	from.pc = JIT;
	from.regs[FP] = addr(10);
	put_record(10, addr(40), code(1, 8));
	record_rule(1, 32); /* its sp is word 40, not 12 */
	put_record(40, addr(60), code(2, 8));
	RULE(2, .cfa = SB_UW_CFA_SP, .cfa_off = 16, .bx = 1); /* by sp, which is word 44 again */
	memory[45] = code(3, 8);
	record_rule(3, 32);
	put_record(46, 0, code(0, 7));
	expect(SB_STACK_COMPLETE, code(1, 8) | SB_IP_BY_FP, code(2, 8), code(3, 8), code(0, 7));

	RULE(1, .cfa = SB_UW_CFA_SP, .cfa_off = 16, .bx = 1);
	put_record(40, 0, code(0, 7));
	expect(SB_STACK_COMPLETE, code(1, 8) | SB_IP_BY_FP, code(0, 7) | SB_IP_BY_FP);
}

/* A leaf without a rule, in the middle of its code: x30 is its caller's, if a rule covers that. */
static void test_leaf_without_rule(void **state)
{
	from.pc = JIT + 8;
	from.regs[FP] = addr(10);
	from.regs[LR] = code(1, 8) | PAC;
	record_rule(1, 48);
	put_record(10, 0, code(0, 7));
	expect(SB_STACK_COMPLETE, code(1, 8) | SB_IP_BY_FP, code(0, 7));
	/* Its own code: it has called something, so it has a record. */
	from.regs[LR] = JIT + 4;
	expect(SB_STACK_COMPLETE, code(0, 7) | SB_IP_BY_FP);
	from.regs[LR] = 0x123; /* nowhere */
	expect(SB_STACK_COMPLETE, code(0, 7) | SB_IP_BY_FP);
}

/* On the way in and out x29 is the caller's, and sp often, too. */
static void test_prologue(void **state)
{
	static const struct {
		const char *what;
		uint32_t before, at, behind;
		int nr_words; /* of stack that the leaf has taken; negative: x29 is its own */
	} cases[] = {
		{ "stp x29, x30, [sp, #-48]!", 0xd503201f, 0xa9bd7bfd, 0xd503201f, 0 },
		{ "paciasp; stp x29, x30, [sp, #-48]!", 0xd503201f, 0xd503233f, 0xa9bd7bfd, 0 },
		{ "bti c; stp x29, x30, [sp, #-48]!", 0xd503201f, 0xd503245f, 0xa9bd7bfd, 0 },
		{ "stp; mov x29, sp", 0xa9bd7bfd, 0x910003fd, 0xd503201f, 6 },
		{ "mov x29, sp", 0xd503201f, 0x910003fd, 0xd503201f, -1 },
		{ "ret", 0xd503201f, 0xd65f03c0, 0xd503201f, 0 },
		{ "retaa", 0xd503201f, 0xd65f0bff, 0xd503201f, 0 },
		{ "autiasp; ret", 0xd503201f, 0xd50323bf, 0xd65f03c0, 0 },
		{ "adrp x16", 0xd503201f, 0xb0000090, 0xf9400a11, 0 },
		{ "ldr x17", 0xd503201f, 0xf9400a11, 0x91004210, 0 },
		{ "add x16", 0xd503201f, 0x91004210, 0xd61f0220, 0 },
		{ "br x17", 0xd503201f, 0xd61f0220, 0xd503201f, 0 },
		{ "stp x29, x30, [sp, #16]", 0xd503201f, 0xa9017bfd, 0xd503201f, 0 },
		{ "nop", 0xd503201f, 0xd503201f, 0xa9bd7bfd, -1 },
	};
	size_t i;

	record_rule(1, 48);
	from.pc = JIT + 8;
	from.regs[LR] = JIT + 40; /* a caller without a rule, which it is not taken for */
	for (i = 0; i < SB_ARRAY_SIZE(cases); i++) {
		jit[1] = cases[i].before;
		jit[2] = cases[i].at;
		jit[3] = cases[i].behind;
		from.regs[FP] = addr(20);
		put_record(20, 0, code(0, 7));
		print_message("%s\n", cases[i].what);
		if (cases[i].nr_words < 0)
			expect(SB_STACK_COMPLETE, code(0, 7) | SB_IP_BY_FP);
		else
			expect(SB_STACK_COMPLETE, (JIT + 40) | SB_IP_BY_FP,
			       code(0, 7) | SB_IP_BY_FP);
		if (cases[i].nr_words < 0)
			continue;
		/* The sp is right: a caller that goes by it alone is found. */
		from.regs[LR] = code(2, 8);
		RULE(2, .cfa = SB_UW_CFA_SP, .cfa_off = 16, .bx = 1);
		memory[cases[i].nr_words + 1] = code(0, 11);
		if ((cases[i].at & 0xffc07fff) != 0xa9007bfd)
			expect(SB_STACK_COMPLETE, code(2, 8) | SB_IP_BY_FP, code(0, 11));
		memory[cases[i].nr_words + 1] = 0;
		from.regs[LR] = JIT + 40;
	}
}

/* The vDSO's trampoline has no rule: it is known by its code. */
static void test_signal(void **state)
{
	static const uint32_t trampoline[] = { 0xd2801168, 0xd4000001 };
	const size_t frame = 6, regs = frame + (128 + 176 + 8) / 8;

	memcpy(&jit[4], trampoline, sizeof(trampoline));
	record_rule(1, 48);
	RULE(2, .cfa = SB_UW_CFA_REG + X10, .cfa_off = 0, .bx = SB_UW_RA_LR);
	put_record(0, addr(3000), JIT + 16);
	memory[regs + X10] = addr(200);
	memory[regs + LR] = code(3, 8);
	memory[regs + SP] = addr(120);
	memory[regs + 32] = code(2, 0);
	record_rule(3, 32);
	put_record(200, 0, code(0, 7));
	expect(SB_STACK_COMPLETE, JIT + 16, code(2, 0) | SB_IP_EXACT, code(3, 8), code(0, 7));
	/* The handler has returned: before the system call, at it, and in it. */
	from.regs[SP] = addr(frame);
	for (from.pc = JIT + 16; from.pc <= JIT + 24; from.pc += 4)
		expect(SB_STACK_COMPLETE, code(2, 0) | SB_IP_EXACT, code(3, 8), code(0, 7));
	from.pc = code(1, 0);
	from.regs[SP] = addr(0);
	memory[regs + 32] = 0; /* a call of NULL */
	expect(SB_STACK_BAD_PC, JIT + 16);
	/* The same by a rule, as older vDSOs have it. */
	memory[regs + 32] = code(2, 0);
	RULE(4, .cfa = SB_UW_CFA_SIGNAL);
	put_record(0, addr(3000), code(4, 8));
	expect(SB_STACK_COMPLETE, code(4, 8), code(2, 0) | SB_IP_EXACT, code(3, 8), code(0, 7));
}

static void test_chain_end(void **state)
{
	from.pc = JIT;
	from.regs[FP] = addr(10);
	put_record(10, 0, JIT + 32);
	expect(SB_STACK_COMPLETE, (JIT + 32) | SB_IP_BY_FP);
	is_generated = true; /* where anything may be in x29 */
	expect(SB_STACK_BAD_FP, (JIT + 32) | SB_IP_BY_FP);
	is_generated = false;
	put_record(10, addr(9), JIT + 32);
	expect(SB_STACK_BAD_FP, (JIT + 32) | SB_IP_BY_FP);
	from.regs[FP] = addr(10) + 4;
	expect(SB_STACK_BAD_FP);
	walk(SB_UNWIND_CFI);
	assert_int_equal(frames.status, SB_STACK_NO_RULE);
}

#define TEST(name) cmocka_unit_test_setup(test_##name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(link_register),
		TEST(new_thread),
		TEST(record),
		TEST(go),
		TEST(go_system),
		TEST(go_c),
		TEST(go_interrupted),
		TEST(go_grow),
		TEST(return_address_apart),
		TEST(signed),
		TEST(other_register),
		TEST(bad_cfa),
		TEST(sp_after_chain),
		TEST(leaf_without_rule),
		TEST(prologue),
		TEST(signal),
		TEST(chain_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
