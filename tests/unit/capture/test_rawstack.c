// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Pieces of stack as the BPF side ships them: kept whole, unwound in order, cut where it is said.
 * The stacks are chains of frame pointers, whose callers we know without any table.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/time.h"
#include "capture/rawstack.h"
#include "symbolizer/sb_sym.h"

#define NR_FRAMES  20u
#define SP	   0x7ffe00001000ull
#define RED_WORDS  (SB_RED_ZONE_BYTES / 8)
#define CODE_BYTES 65536u
#define PC(id)	   (code + 0x100 * ((id) % (CODE_BYTES / 0x100)))

struct record {
	struct sb_event_raw event;
	uint64_t below[RED_WORDS]; /* the stack pointer */
	uint64_t stack[SB_RAW_BYTES_MAX / 8 - RED_WORDS];
};

static struct record record;
static struct sb_rawstacks raw;
static struct sb_symbolizer *sym;
static uint64_t code; /* mapped, without a file: there is no table to ask */

static struct {
	uint64_t nr;
	uint64_t nr_of[SB_STACK_STATUS_MAX];
	struct sb_batch_stack last;
	uint64_t ip[SB_USTACK_DEPTH_MAX];
	int ret;
} got;

/* Callers PC(id) + 1, + 2, ...; the frames are 16 bytes each, from the stack pointer on. */
static size_t fill(uint64_t id, uint32_t nr_frames, uint32_t nr_bytes_above)
{
	uint32_t nr_stack_bytes = SB_RED_ZONE_BYTES + nr_bytes_above, i;

	memset(&record, 0, sizeof(record));
	for (i = 0; i < nr_frames; i++) {
		record.stack[2 * i] = i + 1 < nr_frames ? SP + 16 * (i + 1) : 0;
		record.stack[2 * i + 1] = PC(id) + i + 1;
	}
	record.event = (struct sb_event_raw){
		.hdr = { .kind = SB_EVENT_RAW },
		.id = { .lo = id, .hi = ~id },
		.now_ns = sb_now_ns(),
		.tgid = (uint32_t)getpid(),
		.flags = SB_STACK_LEAF_RETURNS,
		.nr_stack_bytes = nr_stack_bytes,
		.stack_addr = SP - SB_RED_ZONE_BYTES,
		.pc = PC(id),
	};
	record.event.regs[6] = record.event.regs[7] = SP;
	record.event.hdr.nr_bytes = (uint32_t)(sizeof(record.event) + nr_stack_bytes);
	return record.event.hdr.nr_bytes;
}

static int add(void *arg, const struct sb_batch_stack *stack)
{
	assert_ptr_equal(arg, &got);
	got.nr++;
	got.nr_of[stack->status]++;
	got.last = *stack;
	memcpy(got.ip, stack->ip, stack->nr_frames * sizeof(*stack->ip));
	return got.ret;
}

static int unwind(uint32_t depth_max)
{
	const struct sb_rawstacks_into into = {
		.modes = SB_UNWIND_FP,
		.depth_max = depth_max,
		.add = add,
		.arg = &got,
	};

	memset(&got, 0, offsetof(__typeof__(got), ret));
	return sb_rawstacks_unwind(&raw, sym, &into);
}

static int setup(void **state)
{
	const struct sb_symbolizer_opts opts = {};
	void *mem =
		mmap(NULL, CODE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(mem != MAP_FAILED);
	code = (uint64_t)(uintptr_t)mem;
	got.ret = 0;
	return sb_symbolizer_new(&opts, &sym);
}

static int teardown(void **state)
{
	munmap((void *)(uintptr_t)code, CODE_BYTES);
	sb_symbolizer_free(sym);
	sb_rawstacks_release(&raw);
	return 0;
}

static void expect_callers(uint64_t id, uint32_t nr)
{
	uint32_t i;

	assert_int_equal(got.last.id.lo, id);
	assert_int_equal(got.last.id.hi, ~id);
	assert_int_equal(got.last.flags, SB_STACK_LEAF_RETURNS);
	assert_int_equal(got.last.nr_frames, nr);
	for (i = 0; i < nr; i++)
		assert_int_equal(got.ip[i] & ~SB_IP_MARKS, PC(id) + i);
}

static void test_whole(void **state)
{
	/* An odd size: what comes behind must not be the worse for it. */
	assert_int_equal(sb_rawstacks_add(&raw, &record, fill(1, NR_FRAMES, 16 * NR_FRAMES + 3)),
			 0);
	assert_int_equal(sb_rawstacks_add(&raw, &record, fill(2, 2, 32)), 0);
	memset(&record, 0xff, sizeof(record)); /* it was copied */
	assert_int_equal(unwind(0), 0);
	assert_int_equal(got.nr, 2);
	assert_int_equal(got.nr_of[SB_STACK_COMPLETE], 2);
	expect_callers(2, 3);

	sb_rawstacks_clear(&raw);
	assert_int_equal(sb_rawstacks_add(&raw, &record, fill(3, NR_FRAMES, 16 * NR_FRAMES)), 0);
	assert_int_equal(unwind(0), 0);
	assert_int_equal(got.nr, 1);
	expect_callers(3, NR_FRAMES + 1);
}

/* Registers of 32-bit code lead to no caller, whether the thread has gone on since or not. */
static void test_32_bits(void **state)
{
	size_t len = fill(1, 2, 32), i;

	for (i = 0; i < 2; i++) {
		record.event.flags |= SB_STACK_32_BITS | (i ? SB_STACK_ASLEEP : 0);
		assert_int_equal(sb_rawstacks_add(&raw, &record, len), 0);
	}
	assert_int_equal(unwind(0), 0);
	assert_int_equal(got.nr_of[SB_STACK_COMPAT], 2);
	expect_callers(1, 1);
}

static void test_cut(void **state)
{
	assert_int_equal(sb_rawstacks_add(&raw, &record, fill(1, NR_FRAMES, 16 * 5)), 0);
	assert_int_equal(unwind(0), 0);
	assert_int_equal(got.last.status, SB_STACK_FAULT);
	expect_callers(1, 6);
	assert_int_equal(unwind(4), 0);
	assert_int_equal(got.last.status, SB_STACK_DEPTH);
	expect_callers(1, 4);
	got.ret = -ENOMEM;
	assert_int_equal(unwind(0), -ENOMEM);
}

static void test_broken(void **state)
{
	size_t len = fill(1, 4, 64);

	assert_int_equal(sb_rawstacks_add(&raw, &record, sizeof(record.event) - 1), -EBADMSG);
	assert_int_equal(sb_rawstacks_add(&raw, &record, len - 1), -EBADMSG);
	record.event.nr_stack_bytes = SB_RAW_BYTES_MAX + 1;
	assert_int_equal(sb_rawstacks_add(&raw, &record, SIZE_MAX), -EBADMSG);
	assert_int_equal(unwind(0), 0);
	assert_int_equal(got.nr, 0);
}

/* None is lost when there are too many: those give their leaf, and say why no more. */
static void test_too_many(void **state)
{
	const uint32_t nr_kept = SB_RAWSTACKS_BYTES_MAX / sizeof(record) + 1, nr = nr_kept + 10;
	uint32_t i;

	for (i = 0; i < nr; i++)
		assert_int_equal(sb_rawstacks_add(&raw, &record,
						  fill(i, 1, SB_RAW_BYTES_MAX - SB_RED_ZONE_BYTES)),
				 0);
	assert_true(raw.bytes.nr < SB_RAWSTACKS_BYTES_MAX + 2 * sizeof(record));
	assert_int_equal(unwind(0), 0);
	assert_int_equal(got.nr, nr);
	assert_int_equal(got.nr_of[SB_STACK_COMPLETE], nr_kept);
	assert_int_equal(got.nr_of[SB_STACK_NO_TABLE], nr - nr_kept);
	expect_callers(nr - 1, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_whole),  TEST(test_32_bits),	TEST(test_cut),
		TEST(test_broken), TEST(test_too_many),
	};

#ifndef __x86_64__
	printf("skipped: pieces of stack are taken on x86-64 only\n");
	return 77;
#endif
	return cmocka_run_group_tests(tests, NULL, NULL);
}
