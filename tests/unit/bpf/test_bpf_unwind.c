// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* core/unwind.bpf.c, compiled for the host: chains of frame pointers, sound and broken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core.h"

#define BASE 0x7ffe00000000ull
#define PC   0x401000ull

enum { NR_WORDS = 4096 };
static uint64_t memory[NR_WORDS];

#define TRAMPOLINE 0x7fffffffe000ull
static struct xol_area xol = { .vaddr = TRAMPOLINE };
static struct mm_struct mm = { .uprobes_state.xol_area = &xol };
static struct return_instance calls[SB_RETURNS_MAX + 1];
static struct uprobe_task utask;
static struct task_struct task;

static int setup(void **state)
{
	shim_reset();
	task = (struct task_struct){ .mm = &mm };
	shim.task = &task;
	SHIM_MAP(scratch);
	SHIM_MAP(stats);
	memset(memory, 0, sizeof(memory));
	shim.user_addr = BASE;
	shim.user_mem = memory;
	shim.user_bytes = sizeof(memory);
	return 0;
}

/* A frame: {caller's frame pointer, return address} at word @at. */
static void frame(size_t at, uint64_t fp, uint64_t pc)
{
	memory[at] = fp;
	memory[at + 1] = pc;
}

static uint64_t addr(size_t word)
{
	return BASE + word * 8;
}

static struct sb_scratch *walk(uint64_t sp, uint64_t fp)
{
	struct sb_scratch *s = sb_scratch_get(0);

	size_t i;

	s->regs = (struct sb_regs){ .ip = PC, .sp = sp, .bp = fp };
	sb_unwind_user(0);
	for (i = 0; i < s->stack.nr_frames; i++)
		s->ip[i] &= ~SB_IP_MARKS;
	return s;
}

static void test_complete(void **state)
{
	struct sb_scratch *s;

	frame(10, addr(20), PC + 1);
	frame(20, addr(30), PC + 2);
	frame(30, 0, PC + 3);
	s = walk(addr(0), addr(10));
	assert_int_equal(s->stack.status, SB_STACK_COMPLETE);
	assert_int_equal(s->stack.nr_frames, 4);
	assert_int_equal(s->ip[0], PC);
	assert_int_equal(s->ip[1], PC + 1);
	assert_int_equal(s->ip[3], PC + 3);

	frame(30, addr(40), 0); /* no return address ends it, too */
	s = walk(addr(0), addr(10));
	assert_int_equal(s->stack.status, SB_STACK_COMPLETE);
	assert_int_equal(s->stack.nr_frames, 3);
}

static void test_cut(void **state)
{
	const struct {
		uint64_t fp, pc;
		uint32_t status;
	} rows[] = {
		{ 0, PC, SB_STACK_COMPLETE },
		{ addr(20) + 4, PC, SB_STACK_BAD_FP },		   /* not aligned */
		{ addr(10), PC, SB_STACK_BAD_FP },		   /* itself */
		{ addr(5), PC, SB_STACK_BAD_FP },		   /* down the stack */
		{ addr(12) + (1 << 20) + 8, PC, SB_STACK_BAD_FP }, /* too far up */
		{ addr(NR_WORDS), PC, SB_STACK_FAULT },		   /* just behind what is mapped */
		{ addr(NR_WORDS - 1), PC, SB_STACK_FAULT },	   /* half of the frame is */
		{ addr(20), 4095, SB_STACK_BAD_PC },
		{ addr(20), 1ull << 47, SB_STACK_BAD_PC },
		{ addr(20), ~0ull, SB_STACK_BAD_PC },
	};
	struct sb_scratch *s;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		frame(10, rows[i].fp, rows[i].pc);
		s = walk(addr(0), addr(10));
		if (s->stack.status != rows[i].status)
			fail_msg("row %zu: status %u", i, s->stack.status);
		/* What was found before the cut is kept. */
		assert_int_equal(s->stack.nr_frames, rows[i].status == SB_STACK_BAD_PC ? 1 : 2);
	}
	/* A leaf whose register holds nothing proves nothing. */
	assert_int_equal(walk(addr(0), 0)->stack.status, SB_STACK_BAD_FP);
	assert_int_equal(walk(addr(11), addr(10))->stack.status, SB_STACK_BAD_FP);
}

/* Recursion deeper than the limit: the leaves are kept, and it is said that the roots are not. */
static void test_deep(void **state)
{
	struct sb_scratch *s;
	size_t i;

	for (i = 0; i < SB_USTACK_DEPTH_MAX + 10; i++)
		frame(10 + 2 * i, addr(12 + 2 * i), PC + i + 1);
	s = walk(addr(0), addr(10));
	assert_int_equal(s->stack.status, SB_STACK_DEPTH);
	assert_int_equal(s->stack.nr_frames, SB_USTACK_DEPTH_MAX);
	for (i = 0; i < SB_USTACK_DEPTH_MAX; i++)
		assert_int_equal(s->ip[i], PC + i);

	/* One less than that fits. */
	frame(10 + 2 * (SB_USTACK_DEPTH_MAX - 2), 0, PC);
	s = walk(addr(0), addr(10));
	assert_int_equal(s->stack.status, SB_STACK_COMPLETE);
	assert_int_equal(s->stack.nr_frames, SB_USTACK_DEPTH_MAX);
}

/* Any bytes for a stack, any registers: the walk ends, within its bounds. */
static void test_random(void **state)
{
	unsigned int seed = 3, i, j;
	struct sb_scratch *s;

	for (i = 0; i < 2000; i++) {
		for (j = 0; j < NR_WORDS; j++)
			memory[j] = rand_r(&seed) % 4 ? addr((unsigned int)rand_r(&seed) % NR_WORDS)
						      : (uint64_t)rand_r(&seed) << 20;
		s = walk(addr((unsigned int)rand_r(&seed) % 64),
			 addr((unsigned int)rand_r(&seed) % 128));
		assert_in_range(s->stack.nr_frames, 1, SB_USTACK_DEPTH_MAX);
		assert_in_range(s->stack.status, SB_STACK_COMPLETE, SB_STACK_STATUS_MAX - 1);
		assert_int_equal(s->ip[0], PC);
	}
}

/* The frame at word @at has returned to the trampoline in place of @pc, by call @i of the list. */
static void probe(size_t i, size_t at, uint64_t pc)
{
	calls[i] = (struct return_instance){
		.stack = addr(at + 1),
		.orig_ret_vaddr = pc,
		.next = calls[i].next,
	};
	memory[at + 1] = xol.vaddr;
}

static void chain(size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		calls[i].next = i + 1 < nr ? &calls[i + 1] : NULL;
	utask.return_instances = nr ? &calls[0] : NULL;
	task.utask = &utask;
}

/*
 * The list still has two calls that the thread left by longjmp(): one at the stack pointer where a
 * newer call is now, and one where no call is.
 */
static void test_returns(void **state)
{
	struct sb_scratch *s;

	chain(4);
	frame(10, addr(20), 0);
	probe(1, 10, PC + 1);
	probe(2, 10, PC + 7);
	probe(0, 14, PC + 8);
	memory[15] = 0;
	frame(20, addr(30), PC + 2);
	frame(30, 0, 0);
	probe(3, 30, PC + 3);
	s = walk(addr(0), addr(10));
	assert_int_equal(s->stack.status, SB_STACK_COMPLETE);
	assert_int_equal(s->stack.nr_frames, 4);
	assert_int_equal(s->ip[1], PC + 1);
	assert_int_equal(s->ip[2], PC + 2);
	assert_int_equal(s->ip[3], PC + 3);

	chain(2); /* and not of the one around: it is unknown */
	s = walk(addr(0), addr(10));
	assert_int_equal(s->stack.status, SB_STACK_RETURN_PROBE);
	assert_int_equal(s->stack.nr_frames, 3);
}

/* With 5-level paging, the trampoline is above all code. */
static void test_far_trampoline(void **state)
{
	xol.vaddr = 0xffffffffffe000;
	test_returns(state);
	xol.vaddr = TRAMPOLINE;
}

/* As many as the kernel allows, and one more. */
static void test_many_returns(void **state)
{
	struct sb_scratch *s;
	size_t i;

	for (i = 0; i <= SB_RETURNS_MAX; i++) {
		frame(10 + 2 * i, i < SB_RETURNS_MAX ? addr(12 + 2 * i) : 0, 0);
		probe(i, 10 + 2 * i, PC + i + 1);
	}
	chain(SB_RETURNS_MAX);
	s = walk(addr(0), addr(10));
	assert_int_equal(s->stack.status, SB_STACK_RETURN_PROBE);
	assert_int_equal(s->stack.nr_frames, SB_RETURNS_MAX + 1);
	for (i = 0; i <= SB_RETURNS_MAX; i++)
		assert_int_equal(s->ip[i], PC + i);
}

/* The thread is in the trampoline: before the kernel knows it, and when it has dealt with it. */
static void test_returning(void **state)
{
	const struct {
		uint64_t offset;
		size_t sp, nr;
	} rows[] = { { 0, 12, 1 },   { 4, 9, 1 },     { 0x0d, 9, 1 },
		     { 0x0d, 9, 0 }, { 0x0f, 10, 0 }, { 0x10, 11, 0 } };
	struct sb_scratch *s;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		chain(rows[i].nr);
		probe(0, 10, PC + 5);
		if (!rows[i].nr)
			memory[11] = PC + 5;
		frame(20, 0, PC + 6);
		s = sb_scratch_get(0);
		s->regs = (struct sb_regs){ .ip = TRAMPOLINE + rows[i].offset,
					    .sp = addr(rows[i].sp),
					    .bp = addr(20) };
		sb_unwind_user(0);
		assert_int_equal(s->stack.status, SB_STACK_COMPLETE);
		assert_int_equal(s->stack.nr_frames, 2);
		assert_int_equal(s->ip[0], PC + 5);
		assert_int_equal(sb_regs_sp(&s->regs), addr(12));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_complete, setup),
		cmocka_unit_test_setup(test_cut, setup),
		cmocka_unit_test_setup(test_deep, setup),
		cmocka_unit_test_setup(test_random, setup),
		cmocka_unit_test_setup(test_returns, setup),
		cmocka_unit_test_setup(test_far_trampoline, setup),
		cmocka_unit_test_setup(test_many_returns, setup),
		cmocka_unit_test_setup(test_returning, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
