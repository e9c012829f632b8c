// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The walk over hand-made tables and stacks: each rule, each end, each mark. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "symbolizer/unwind/walk.h"

static int read_at(void *arg, void *buf, size_t len, uint64_t addr);
#define SB_STEP_READ(mem, dst, len, addr) read_at(mem, dst, len, addr)
#include "bpf/step/sb_unwind_step.h"

#define STACK	    0x7ffe00000000ull
#define BIAS	    0x550000000000ull
#define TEXT_LO	    0x1000u
#define NR_GRANULES 8u
/* Code without a table; its bytes can be read. */
#define JIT	    0x7f0000000000ull
#define JIT_BYTES   64u
#define NOWHERE	    0x7f1111111000ull

enum { NR_WORDS = 4096, MAX = 16 };
enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R9, R10 };

static uint64_t memory[NR_WORDS];
static uint8_t jit[JIT_BYTES];
static uint32_t words[SB_UW_CHUNK_WORDS];
static struct sb_walk_table table;
static struct sb_walk_from from;
static uint32_t modes;
static int find_err;
static bool is_generated; /* the code at JIT */
static uint64_t ip[MAX];
static struct sb_walk_frames frames;
static struct sb_sym_hook hook;

/* An address in granule @g of the only binary. */
static uint64_t code(uint32_t g, uint32_t off)
{
	return BIAS + TEXT_LO + g * SB_UW_GRANULE_BYTES + off;
}

static uint64_t addr(size_t word)
{
	return STACK + word * 8;
}

static uint32_t add_rule(uint8_t cfa, int32_t cfa_off, uint8_t fp, int16_t fp_off)
{
	struct sb_uw_rule rule = { .cfa = cfa, .cfa_off = cfa_off, .fp = fp, .fp_off = fp_off };

	memcpy(&words[table.bin.rules_word + table.bin.nr_rules * 2], &rule, sizeof(rule));
	return table.bin.nr_rules++;
}

static void bx_of_last_rule(uint8_t bx)
{
	uint32_t last = table.bin.rules_word + (table.bin.nr_rules - 1) * 2;

	((struct sb_uw_rule *)&words[last])->bx = bx & SB_UW_BX_SLOT_MAX;
}

/* One rule for all of granule @g. */
static void whole(uint32_t g, uint32_t rule)
{
	words[table.bin.index_word + g * 2] = rule;
	words[table.bin.index_word + g * 2 + 1] = 0;
}

static void rule(uint32_t g, uint8_t cfa, int32_t cfa_off, uint8_t fp, int16_t fp_off)
{
	whole(g, add_rule(cfa, cfa_off, fp, fp_off));
}

/* Granule 0 is the root's, all others have no rule; registers are all different. */
static int setup(void **state)
{
	size_t i;

	memset(memory, 0, sizeof(memory));
	memset(words, 0, sizeof(words));
	memset(jit, 0x90, sizeof(jit)); /* nop */
	table = (struct sb_walk_table){ .words = words, .nr_words = SB_UW_CHUNK_WORDS };
	table.bin = (struct sb_uw_bin){ .text_lo = TEXT_LO,
					.index_word = 2,
					.nr_granules = NR_GRANULES,
					.rules_word = 64,
					.state = SB_UW_BIN_READY };
	add_rule(SB_UW_CFA_FP_CHAIN, 0, 0, 0);
	add_rule(SB_UW_CFA_STOP, 0, 0, 0);
	whole(0, SB_UW_RULE_STOP);
	for (i = 0; i < SB_UNWIND_REGS; i++)
		from.regs[i] = 0x1000 + i;
	from.pc = code(1, 0);
	from.regs[RSP] = addr(0);
	modes = SB_UNWIND_CFI | SB_UNWIND_FP;
	find_err = 0;
	return 0;
}

static int find(void *arg, uint64_t at, struct sb_walk_code *ret)
{
	if (find_err)
		return find_err;
	*ret = (struct sb_walk_code){};
	ret->is_generated = is_generated && at >= JIT && at < JIT + JIT_BYTES;
	if (at >= JIT && at < JIT + JIT_BYTES)
		return 1;
	/* One granule on either side is mapped, but has no table. */
	if (at < BIAS || at >= code(NR_GRANULES + 1, 0))
		return 0;
	ret->table = &table;
	ret->bias = BIAS;
	return 1;
}

static int read_at(void *arg, void *buf, size_t len, uint64_t at)
{
	const void *mem = memory;
	uint64_t base = STACK, size = sizeof(memory);

	if (at >= JIT && at < JIT + JIT_BYTES) {
		mem = jit;
		base = JIT;
		size = sizeof(jit);
	}
	if (at < base || at - base > size || len > size - (at - base))
		return -EFAULT;
	memcpy(buf, (const char *)mem + (at - base), len);
	return 0;
}

static int walk_up_to(size_t max)
{
	struct sb_walk_env env = { .find = find, .read = read_at, .modes = modes, .hook = hook };

	memset(ip, 0xee, sizeof(ip));
	frames = (struct sb_walk_frames){ .ip = ip, .max = max, .status = 0xee };
	return sb_walk_run(&env, &from, &frames);
}

/* Walk, and expect the status and the @nr addresses behind the leaf. */
#define expect(status_, ...)                                         \
	do {                                                         \
		const uint64_t want_[] = { from.pc, ##__VA_ARGS__ }; \
                                                                     \
		assert_int_equal(walk_up_to(MAX), 0);                \
		assert_int_equal(frames.status, status_);            \
		assert_int_equal(frames.nr, SB_ARRAY_SIZE(want_));   \
		assert_memory_equal(ip, want_, sizeof(want_));       \
	} while (0)

static void test_sp(void **state)
{
	rule(1, SB_UW_CFA_SP, 24, SB_UW_FP_SAME, 0);
	memory[2] = code(0, 7);
	expect(SB_STACK_COMPLETE, code(0, 7));
}

static void test_fp(void **state)
{
	rule(1, SB_UW_CFA_FP, 16, SB_UW_FP_AT_CFA, -16);
	from.regs[RBP] = addr(10);
	memory[10] = addr(20);
	memory[11] = code(1, 8);
	memory[20] = 1;
	memory[21] = code(0, 7);
	expect(SB_STACK_COMPLETE, code(1, 8), code(0, 7));
}

/* A return address that a return probe has replaced. */
static void test_return_probe(void **state)
{
	rule(1, SB_UW_CFA_SP, 24, SB_UW_FP_SAME, 0);
	rule(2, SB_UW_CFA_SP, 8, SB_UW_FP_SAME, 0);
	memory[2] = code(2, 7);
	memory[3] = from.trampoline = NOWHERE;
	expect(SB_STACK_RETURN_PROBE, code(2, 7));
	memory[3] = from.trampoline = 0xffffffffffe000; /* with 5-level paging */
	expect(SB_STACK_RETURN_PROBE, code(2, 7));
	from.trampoline = 0;
	expect(SB_STACK_BAD_PC, code(2, 7));
}

/* Where the caller's rbp is: seen by the caller's rule, which goes by it. */
static void test_saved_fp(void **state)
{
	rule(2, SB_UW_CFA_FP, 16, SB_UW_FP_SAME, 0);
	from.regs[RBP] = addr(8);
	memory[3] = code(2, 8);
	memory[9] = memory[21] = code(0, 7);

	rule(1, SB_UW_CFA_SP, 32, SB_UW_FP_SAME, 0);
	expect(SB_STACK_COMPLETE, code(2, 8), code(0, 7));
	memory[2000] = 1;
	from.regs[RBP] = addr(2000); /* and there is nothing: it was that register */
	expect(SB_STACK_BAD_PC, code(2, 8));

	from.regs[RBP] = addr(1);
	memory[0] = addr(20);
	rule(1, SB_UW_CFA_SP, 32, SB_UW_FP_AT_CFA, -32);
	expect(SB_STACK_COMPLETE, code(2, 8), code(0, 7));
	rule(1, SB_UW_CFA_SP, 32, SB_UW_FP_AT_FP, -8);
	expect(SB_STACK_COMPLETE, code(2, 8), code(0, 7));
	rule(1, SB_UW_CFA_SP, 32, SB_UW_FP_UNDEF, 0);
	expect(SB_STACK_BAD_CFA, code(2, 8));
	rule(1, SB_UW_CFA_SP, 32, SB_UW_FP_AT_CFA, -64); /* below the stack */
	expect(SB_STACK_FAULT);
}

static void test_plt(void **state)
{
	uint32_t off;

	memory[0] = code(0, 7);
	memory[1] = code(0, 9);
	rule(1, SB_UW_CFA_PLT10, 0, SB_UW_FP_SAME, 0);
	rule(2, SB_UW_CFA_PLT11, 0, SB_UW_FP_SAME, 0);
	for (off = 0; off < 32; off++) {
		from.pc = code(1, off);
		expect(SB_STACK_COMPLETE, code(0, off % 16 >= 10 ? 9 : 7));
		from.pc = code(2, off);
		expect(SB_STACK_COMPLETE, code(0, off % 16 >= 11 ? 9 : 7));
	}
}

static int32_t deref(int16_t off, uint16_t add)
{
	return (int32_t)((uint32_t)add << 16 | (uint16_t)off);
}

static void test_deref(void **state)
{
	rule(1, SB_UW_CFA_AT_SP, deref(16, 8), SB_UW_FP_SAME, 0);
	memory[2] = addr(30);
	memory[30] = code(0, 7);
	expect(SB_STACK_COMPLETE, code(0, 7));
	rule(1, SB_UW_CFA_AT_SP, deref(16, 0), SB_UW_FP_SAME, 0);
	memory[29] = code(0, 8);
	expect(SB_STACK_COMPLETE, code(0, 8));
	/* A realigned frame: rbp is below, and was saved at *rbp. */
	rule(1, SB_UW_CFA_AT_FP, deref(-8, 0xfff0), SB_UW_FP_AT_FP, 0);
	rule(2, SB_UW_CFA_FP, 16, SB_UW_FP_SAME, 0);
	from.regs[RBP] = addr(5);
	memory[4] = addr(40) - 0xfff0 + 8;
	memory[5] = addr(50);
	memory[40] = code(2, 1);
	memory[51] = code(0, 7);
	expect(SB_STACK_COMPLETE, code(2, 1), code(0, 7));
	from.regs[RBP] = addr(NR_WORDS) + 16;
	expect(SB_STACK_FAULT);
}

/* Registers other than rbp and rsp are those of what was interrupted, and of nothing else. */
static void test_registers(void **state)
{
	uint32_t reg;

	rule(2, SB_UW_CFA_SP, 16, SB_UW_FP_SAME, 0);
	memory[33] = code(0, 7);
	for (reg = 0; reg < SB_UNWIND_REGS; reg++) {
		uint64_t saved = from.regs[reg];

		if (reg == RSP)
			continue;
		from.regs[reg] = addr(30);
		rule(1, (uint8_t)(SB_UW_CFA_REG + reg), 32, SB_UW_FP_SAME, 0);
		from.pc = code(1, 0);
		expect(SB_STACK_COMPLETE, code(0, 7));
		from.pc = code(2, 0);
		memory[1] = code(1, 8);
		if (reg == RBX) /* nobody has touched it */
			expect(SB_STACK_COMPLETE, code(1, 8), code(0, 7));
		else
			expect(SB_STACK_NO_RULE, code(1, 8));
		from.regs[reg] = saved;
	}
}

static void test_at_sp_r9(void **state)
{
	rule(1, SB_UW_CFA_AT_SP_R9, 8 << 16 | 16, SB_UW_FP_SAME, 0);
	rule(2, SB_UW_CFA_SP, 16, SB_UW_FP_SAME, 0);
	from.regs[R9] = 3;
	memory[5] = addr(10); /* sp + 16 + 3 * 8 */
	memory[10] = code(0, 7);
	from.pc = code(1, 0);
	expect(SB_STACK_COMPLETE, code(0, 7));
	from.pc = code(2, 0);
	memory[1] = code(1, 8);
	expect(SB_STACK_NO_RULE, code(1, 8));
}

/* rbx, where a function on the way saved it; where it was lost, by a rule or a frame pointer. */
static void test_saved_rbx(void **state)
{
	rule(1, SB_UW_CFA_REG + RBX, 32, SB_UW_FP_SAME, 0);
	rule(2, SB_UW_CFA_SP, 32, SB_UW_FP_SAME, 0);
	bx_of_last_rule(3);
	from.regs[RBX] = 0xdead;
	from.pc = code(2, 0);
	memory[1] = addr(30);
	memory[3] = code(1, 8);
	memory[33] = code(0, 7);
	expect(SB_STACK_COMPLETE, code(1, 8), code(0, 7));
	bx_of_last_rule(SB_UW_BX_LOST);
	expect(SB_STACK_NO_RULE, code(1, 8));
	from.pc = code(3, 0);
	from.regs[RBP] = addr(2);
	expect(SB_STACK_NO_RULE, code(1, 8) | SB_IP_BY_FP);
}

static void test_return_in_register(void **state)
{
	rule(1, SB_UW_CFA_RA_REG, 0, SB_UW_FP_SAME, RDX);
	rule(2, SB_UW_CFA_SP, 16, SB_UW_FP_SAME, 0);
	from.regs[RDX] = code(2, 3);
	memory[1] = code(0, 7);
	expect(SB_STACK_COMPLETE, code(2, 3), code(0, 7));
	from.regs[RDX] = code(0, 3);
	memory[1] = code(1, 9);
	from.pc = code(2, 0);
	expect(SB_STACK_NO_RULE, code(1, 9));
}

/* Behind the system call that makes threads: the caller goes on, and the new thread begins. */
static void test_new_thread(void **state)
{
	rule(1, SB_UW_CFA_CLONE, 8, SB_UW_FP_SAME, 0);
	rule(2, SB_UW_CFA_SP, 16, SB_UW_FP_SAME, 0);
	memory[0] = code(2, 3);
	memory[2] = code(0, 7);
	from.regs[RAX] = (uint64_t)-38; /* within the call */
	expect(SB_STACK_COMPLETE, code(2, 3), code(0, 7));
	from.regs[RAX] = 4711;
	expect(SB_STACK_COMPLETE, code(2, 3), code(0, 7));
	from.regs[RAX] = 0; /* its stack is empty, and what is above is not its own */
	expect(SB_STACK_COMPLETE);
	memory[0] = addr(5);
	expect(SB_STACK_COMPLETE);
	/* A frame that calls something is not just behind its system call. */
	from.pc = code(2, 0);
	memory[1] = code(1, 3);
	memory[2] = code(0, 7);
	expect(SB_STACK_COMPLETE, code(1, 3), code(0, 7));
}

static void test_no_rule(void **state)
{
	rule(1, SB_UW_CFA_UNSUP, 0, SB_UW_FP_SAME, 0);
	from.regs[RBP] = addr(10); /* which is not followed: it would be a guess */
	memory[11] = code(0, 7);
	expect(SB_STACK_NO_RULE);
	whole(1, SB_UW_RULE_FP_CHAIN);
	modes = SB_UNWIND_CFI;
	expect(SB_STACK_NO_RULE);
	modes = 0;
	rule(1, SB_UW_CFA_SP, 96, SB_UW_FP_SAME, 0);
	expect(SB_STACK_COMPLETE);
	modes = SB_UNWIND_FP; /* which asks nobody what lies there */
	find_err = -ENOMEM;
	expect(SB_STACK_COMPLETE, code(0, 7) | SB_IP_BY_FP);
}

/* struct ucontext at sp, the registers as the kernel's UAPI has them (struct sigcontext_64). */
static void put_signal_frame(size_t word, const uint64_t *regs, uint64_t pc)
{
	static const uint8_t order[] = { 8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7 };
	size_t i;

	for (i = 0; i < sizeof(order); i++)
		memory[word + 5 + i] = regs[order[i]];
	memory[word + 5 + 16] = pc;
}

static void test_signal(void **state)
{
	uint64_t regs[SB_UNWIND_REGS];
	uint32_t reg;

	rule(1, SB_UW_CFA_SP, 8, SB_UW_FP_UNDEF, 0);
	rule(2, SB_UW_CFA_SIGNAL, 0, 0, 0);
	rule(4, SB_UW_CFA_FP, 16, SB_UW_FP_SAME, 0);
	memory[0] = code(2, 1);
	memory[111] = code(4, 1);
	memory[203] = code(0, 9);
	for (reg = 0; reg < SB_UNWIND_REGS; reg++) {
		uint64_t *base = &regs[reg];

		if (reg == RSP || reg == RBP)
			continue;
		memset(regs, 0x11, sizeof(regs));
		*base = addr(110);
		regs[RSP] = addr(100);
		regs[RBP] = addr(202);
		/* Its own registers: valid again. Its own address: the rule of the byte itself. */
		rule(3, (uint8_t)(SB_UW_CFA_REG + reg), 16, SB_UW_FP_SAME, 0);
		put_signal_frame(1, regs, code(3, 0));
		expect(SB_STACK_COMPLETE, code(2, 1), code(3, 0) | SB_IP_EXACT, code(4, 1),
		       code(0, 9));
	}
	/* A handler on a stack of its own, above the one that it interrupted. */
	regs[RSP] = addr(98);
	from.regs[RSP] = addr(300);
	memory[300] = code(2, 1);
	put_signal_frame(301, regs, code(1, 0));
	memory[98] = code(0, 4);
	expect(SB_STACK_COMPLETE, code(2, 1), code(1, 0) | SB_IP_EXACT, code(0, 4));
	put_signal_frame(301, regs, NOWHERE); /* a jump to where nothing is was the reason */
	expect(SB_STACK_BAD_PC, code(2, 1));
	from.regs[RSP] = addr(NR_WORDS - 10);
	memory[NR_WORDS - 10] = code(2, 1);
	expect(SB_STACK_FAULT, code(2, 1));
}

/* A return address belongs to the call before it, also when that was the last of its function. */
static void test_key(void **state)
{
	uint32_t sp8 = add_rule(SB_UW_CFA_SP, 8, SB_UW_FP_SAME, 0);
	uint32_t sp16 = add_rule(SB_UW_CFA_SP, 16, SB_UW_FP_SAME, 0);

	words[table.bin.index_word + 2] = 1000;
	words[table.bin.index_word + 3] = 2;
	words[1000] = SB_UW_ROW(sp8, 0);
	words[1001] = SB_UW_ROW(sp16, 0x20);
	memory[0] = code(0, 1);
	memory[1] = code(1, 0x20);
	memory[2] = code(0, 2);
	from.pc = code(1, 0x1f);
	expect(SB_STACK_COMPLETE, code(0, 1));
	from.pc = code(1, 0x20);
	expect(SB_STACK_COMPLETE, code(1, 0x20), code(0, 2));
	from.regs[RBP] = 0;
	memory[2] = code(0, 0); /* one before the table: the root's by frame pointer */
	expect(SB_STACK_COMPLETE, code(1, 0x20), code(0, 0));
}

/* The search against the plain meaning of rows. */
static void test_rows(void **state)
{
	uint32_t nr, first, i, off, want;
	uint64_t seed = 1;

	for (nr = 1; nr < 4096; nr = nr * 3 / 2 + 1) {
		uint32_t at = 0;

		first = nr % 7 ? 200 : SB_UW_CHUNK_WORDS - nr;
		words[table.bin.index_word + 2] = first;
		words[table.bin.index_word + 3] = nr;
		for (i = 0; i < nr; i++) {
			words[first + i] = SB_UW_ROW(i % 50, at);
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			at += 1 + (uint32_t)(seed >> 40) % ((4095 - at) / (nr - i) + 1);
		}
		for (i = 0; i < 50; i++)
			words[table.bin.rules_word + i * 2 + 1] = i; /* cfa_off */
		want = 0;
		for (off = 0; off < SB_UW_GRANULE_BYTES; off++) {
			while (want + 1 < nr && (words[first + want + 1] & 0xffff) <= off)
				want++;
			assert_int_equal(sb_walk_table_rule(&table, TEXT_LO + 4096 + off).cfa_off,
					 words[first + want] >> 16);
		}
	}
}

static void test_outside_of_table(void **state)
{
	assert_int_equal(sb_walk_table_rule(&table, TEXT_LO - 1).cfa, SB_UW_CFA_FP_CHAIN);
	assert_int_equal(sb_walk_table_rule(&table, 0).cfa, SB_UW_CFA_FP_CHAIN);
	assert_int_equal(sb_walk_table_rule(&table, UINT64_MAX).cfa, SB_UW_CFA_FP_CHAIN);
	assert_int_equal(sb_walk_table_rule(&table, TEXT_LO).cfa, SB_UW_CFA_STOP);
	assert_int_equal(
		sb_walk_table_rule(&table, TEXT_LO + NR_GRANULES * SB_UW_GRANULE_BYTES).cfa,
		SB_UW_CFA_FP_CHAIN);
	table.bin.state = SB_UW_BIN_FP_CHAIN;
	assert_int_equal(sb_walk_table_rule(&table, TEXT_LO).cfa, SB_UW_CFA_FP_CHAIN);
}

static void test_ends(void **state)
{
	rule(1, SB_UW_CFA_SP, 8, SB_UW_FP_SAME, 0);
	memory[0] = 0;
	expect(SB_STACK_BAD_PC);
	memory[0] = 4095;
	expect(SB_STACK_BAD_PC);
	memory[0] = sb_sym_user_end();
	expect(SB_STACK_BAD_PC);
	memory[0] = NOWHERE;
	expect(SB_STACK_BAD_PC);
	memory[0] = code(2, 8);
	rule(2, SB_UW_CFA_SP, 8, SB_UW_FP_SAME, 0);
	memory[1] = 0; /* the first function of a fiber */
	expect(SB_STACK_COMPLETE, code(2, 8));
	memory[1] = 1;
	expect(SB_STACK_BAD_PC, code(2, 8));
	rule(2, SB_UW_CFA_FP, 16, SB_UW_FP_AT_CFA, -16);
	from.regs[RBP] = addr(4);
	memory[4] = memory[5] = 0;
	expect(SB_STACK_COMPLETE, code(2, 8));
	memory[4] = 1;
	expect(SB_STACK_BAD_PC, code(2, 8));
	from.regs[RSP] = STACK - 8;
	expect(SB_STACK_FAULT);
	from.regs[RSP] = addr(0);
	rule(1, SB_UW_CFA_SP, 0, SB_UW_FP_SAME, 0);
	expect(SB_STACK_BAD_CFA);
	rule(1, SB_UW_CFA_FP, 16, SB_UW_FP_SAME, 0);
	from.regs[RBP] = addr(0) - 24;
	expect(SB_STACK_BAD_CFA);
	from.pc = NOWHERE; /* what was sampled is what was sampled */
	expect(SB_STACK_BAD_PC);
	find_err = -ENOMEM;
	assert_int_equal(walk_up_to(MAX), -ENOMEM);
}

static void test_depth(void **state)
{
	size_t i;

	rule(1, SB_UW_CFA_SP, 8, SB_UW_FP_SAME, 0);
	for (i = 0; i < 4; i++)
		memory[i] = code(1, 8);
	memory[4] = code(0, 1);
	assert_int_equal(walk_up_to(6), 0);
	assert_int_equal(frames.status, SB_STACK_COMPLETE);
	assert_int_equal(frames.nr, 6);
	assert_int_equal(walk_up_to(5), 0);
	assert_int_equal(frames.status, SB_STACK_DEPTH);
	assert_int_equal(frames.nr, 5);
	assert_int_equal(ip[4], code(1, 8));
	assert_int_equal(walk_up_to(1), 0);
	assert_int_equal(frames.status, SB_STACK_DEPTH);
	assert_int_equal(frames.nr, 1);
}

static void test_fp_chain(void **state)
{
	from.pc = JIT + 16;
	from.regs[RBP] = addr(4);
	memory[4] = addr(8);
	memory[5] = JIT + 32;
	memory[8] = 0;
	memory[9] = code(7, 4); /* a gap in the table */
	expect(SB_STACK_COMPLETE, (JIT + 32) | SB_IP_BY_FP, code(7, 4) | SB_IP_BY_FP);
	/* From tables to frame pointers and back. */
	from.pc = code(1, 0);
	rule(1, SB_UW_CFA_SP, 16, SB_UW_FP_SAME, 0);
	rule(2, SB_UW_CFA_SP, 8, SB_UW_FP_SAME, 0);
	memory[1] = JIT + 48;
	memory[5] = code(2, 4);
	memory[6] = code(0, 4);
	expect(SB_STACK_COMPLETE, JIT + 48, code(2, 4) | SB_IP_BY_FP, code(0, 4));
}

/* A walker whose frames are of 16 bytes each; in granule 3 it has seen what stands there, and
 * leaves it to the rule. */
static int hook_step(void *arg, struct sb_walk *walk, bool *ret_has_frames)
{
	uint32_t *nr_asked = arg;

	++*nr_asked;
	*ret_has_frames = true;
	if (walk->pc >= code(3, 0) && walk->pc < code(4, 0))
		return SB_STEP_FP_CHAIN;
	walk->mark = 0;
	return sb_step_to(walk, memory[(walk->sp - STACK) / 8 + 1], walk->sp + 16, walk->fp);
}

static void test_hook(void **state)
{
	uint32_t nr_asked = 0;

	hook = (struct sb_sym_hook){
		.begin = code(3, 0), .end = code(4, 0), .step = hook_step, .arg = &nr_asked
	};
	/* Code without a rule, wherever it is; the hook's own; code with a rule, about which it is
	 * not asked. */
	from.pc = JIT + 16;
	rule(2, SB_UW_CFA_SP, 8, SB_UW_FP_SAME, 0);
	rule(3, SB_UW_CFA_SP, 8, SB_UW_FP_SAME, 0);
	memory[1] = code(3, 8);
	memory[2] = code(2, 8);
	memory[3] = code(0, 8);
	assert_int_equal(walk_up_to(MAX), 0);
	assert_int_equal(frames.status, SB_STACK_COMPLETE);
	assert_int_equal(frames.nr, 4);
	assert_int_equal(ip[0], (JIT + 16) | SB_IP_INTERP);
	assert_int_equal(ip[1], code(3, 8) | SB_IP_INTERP);
	assert_int_equal(ip[2], code(2, 8));
	assert_int_equal(ip[3], code(0, 8));
	assert_int_equal(nr_asked, 2);
	hook = (struct sb_sym_hook){};
}

/*
 * Generated code that keeps no frame pointer: rbp is that of a frame further out, and a word below
 * it is a return address. One that is data, or lies in code that nothing was called from, is none.
 */
static void test_hidden_callers(void **state)
{
	from.pc = JIT + 16;
	from.regs[RBP] = addr(4);
	memory[4] = 0;
	memory[5] = code(0, 7);
	is_generated = true;
	expect(SB_STACK_COMPLETE, code(0, 7) | SB_IP_BY_FP);
	memory[2] = JIT + 40;
	expect(SB_STACK_COMPLETE, code(0, 7) | SB_IP_BY_FP);
	jit[40 - 5] = 0xe8;
	expect(SB_STACK_COMPLETE, code(0, 7) | SB_IP_BY_FP | SB_IP_HIDES);
	memory[2] = NOWHERE;
	expect(SB_STACK_COMPLETE, code(0, 7) | SB_IP_BY_FP);
	/* The code at pc says that there is no frame yet: it does not go by rbp. */
	memory[2] = JIT + 40;
	memory[0] = code(0, 7);
	memcpy(jit + 16, "\x55\x48\x89\xe5", 4); /* push, mov */
	expect(SB_STACK_COMPLETE, code(0, 7) | SB_IP_BY_FP);
	is_generated = false;
}

static void test_fp_broken(void **state)
{
	from.pc = JIT + 16;
	from.regs[RBP] = 0;
	expect(SB_STACK_BAD_FP);
	from.regs[RBP] = addr(4) + 4;
	expect(SB_STACK_BAD_FP);
	from.regs[RBP] = addr(0) - 8;
	expect(SB_STACK_BAD_FP);
	from.regs[RBP] = addr(0) + (1u << 20) + 8;
	expect(SB_STACK_BAD_FP);
	from.regs[RBP] = addr(NR_WORDS);
	expect(SB_STACK_FAULT);
	from.regs[RBP] = addr(4);
	memory[5] = 17;
	expect(SB_STACK_BAD_PC);
	memory[5] = NOWHERE; /* no code: rbp held something else, and that is no frame */
	expect(SB_STACK_BAD_FP);
}

/* The first and last instructions of a function, where rbp is still, or again, the caller's. */
static void test_fp_leaf(void **state)
{
	static const struct {
		uint8_t bytes[9];
		uint8_t before;
		int pair; /* 1: at rbp; 0: at rsp; -1: the return address alone is at rsp */
	} rows[] = {
		{ { 0x55 }, 0x90, -1 },				/* push %rbp */
		{ { 0xf3, 0x0f, 0x1e, 0xfa, 0x55 }, 0x90, -1 }, /* endbr64; push %rbp */
		{ { 0xf3, 0x0f, 0x1e, 0xfa, 0x53 }, 0x90, 1 },	/* endbr64; push %rbx */
		{ { 0x48, 0x83, 0xec, 0x08 }, 0x90, -1 },	/* sub $8, %rsp: _init */
		{ { 0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x08 }, 0x90, -1 },
		{ { 0xff, 0x25 }, 0x90, -1 }, /* jmp *mem: a PLT stub */
		{ { 0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25 }, 0x90, -1 },
		{ { 0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25 }, 0x90, -1 },
		{ { 0x48, 0x89, 0xe5 }, 0x55, 0 }, /* push %rbp; ->mov %rsp,%rbp */
		{ { 0x48, 0x8b, 0xec }, 0x55, 0 }, /* the same, encoded otherwise */
		{ { 0x48, 0x89, 0xe5 }, 0x90, 1 }, /* not behind a push */
		{ { 0xc3 }, 0x5d, -1 },		   /* pop %rbp; ->ret */
		{ { 0x90 }, 0x55, 1 },
	};
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(rows); i++) {
		memset(memory, 0, sizeof(memory));
		memset(jit, 0x90, sizeof(jit));
		from.pc = JIT + 16;
		jit[15] = rows[i].before;
		memcpy(&jit[16], rows[i].bytes, sizeof(rows[i].bytes));
		from.regs[RBP] = addr(8);
		memory[0] = rows[i].pair ? JIT + 32 : addr(8);
		memory[1] = JIT + 33;
		memory[8] = 0;
		memory[9] = JIT + 48;
		if (rows[i].pair == 1)
			expect(SB_STACK_COMPLETE, (JIT + 48) | SB_IP_BY_FP);
		else
			expect(SB_STACK_COMPLETE, (JIT + (rows[i].pair ? 32 : 33)) | SB_IP_BY_FP,
			       (JIT + 48) | SB_IP_BY_FP);
	}
	/* At the end of what can be read, it is taken to be set up. */
	from.pc = JIT + JIT_BYTES - 1;
	jit[JIT_BYTES - 1] = 0x55;
	expect(SB_STACK_COMPLETE, (JIT + 48) | SB_IP_BY_FP);
	from.pc = JIT + 16;
	jit[16] = 0xc3;
	from.regs[RSP] = addr(NR_WORDS);
	expect(SB_STACK_FAULT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_sp, setup),
		cmocka_unit_test_setup(test_hook, setup),
		cmocka_unit_test_setup(test_hidden_callers, setup),
		cmocka_unit_test_setup(test_fp, setup),
		cmocka_unit_test_setup(test_return_probe, setup),
		cmocka_unit_test_setup(test_saved_fp, setup),
		cmocka_unit_test_setup(test_plt, setup),
		cmocka_unit_test_setup(test_deref, setup),
		cmocka_unit_test_setup(test_registers, setup),
		cmocka_unit_test_setup(test_saved_rbx, setup),
		cmocka_unit_test_setup(test_at_sp_r9, setup),
		cmocka_unit_test_setup(test_return_in_register, setup),
		cmocka_unit_test_setup(test_new_thread, setup),
		cmocka_unit_test_setup(test_no_rule, setup),
		cmocka_unit_test_setup(test_signal, setup),
		cmocka_unit_test_setup(test_key, setup),
		cmocka_unit_test_setup(test_rows, setup),
		cmocka_unit_test_setup(test_outside_of_table, setup),
		cmocka_unit_test_setup(test_ends, setup),
		cmocka_unit_test_setup(test_depth, setup),
		cmocka_unit_test_setup(test_fp_chain, setup),
		cmocka_unit_test_setup(test_fp_broken, setup),
		cmocka_unit_test_setup(test_fp_leaf, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
