// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* core/span.bpf.c, compiled for the host: which samples are in a span, and which spans were
 * slow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core.h"

#define STACK 0x7ffe00001000ull
#define SLOW  1000u

static struct task_struct task = { .tgid = 10, .pid = 11 };
static struct sb_regs regs = { .cs = 0x33 };

/* A map that user space makes larger. */
#define MAP_OF(map_, nr)                                                                         \
	shim_map_add((struct shim_map_def){ &(map_), SHIM_UINT(map_, type), sizeof(*(map_).key), \
					    sizeof(*(map_).value), (nr) })

static int setup(void **state)
{
	shim_reset();
	SHIM_MAP(stats);
	SHIM_MAP(target_tgids);
	MAP_OF(spans_open, 2);
	MAP_OF(spans_slow, 2);
	MAP_OF(span_durations, SB_SPAN_BUCKETS);
	MAP_OF(span_go_processes, 2);
	SHIM_MAP(scratch);
	cfg_nr_allow_rules = 0;
	cfg_spans = true;
	cfg_span_slow_ns = SLOW;
	cfg_span_go = cfg_span_label = false;
	span_numbers = 0;
	shim.task = &task;
	shim.task_regs = &regs;
	shim.pid_tgid = (uint64_t)10 << 32 | 11;
	return 0;
}

/* Calls are numbered by how deep their caller is. */
static uint64_t sp_of(int deep)
{
	return STACK - 64 * (uint64_t)deep;
}

static void begin_at(uint64_t now_ns, int deep)
{
	struct sb_regs at = { .sp = sp_of(deep) - SB_RETURN_BYTES };

	shim.now_ns = now_ns;
	span_call((struct pt_regs *)&at);
}

static void end_at(uint64_t now_ns, int deep)
{
	struct sb_regs at = { .sp = sp_of(deep) };

	shim.now_ns = now_ns;
	span_return((struct pt_regs *)&at);
}

/* Return: the span of a sample of the thread, @deep calls deep. */
static uint64_t sample_at(uint64_t now_ns, int deep)
{
	regs.sp = sp_of(deep) - SB_RETURN_BYTES;
	return sb_span_of_current(SB_SCRATCH_PROBE, now_ns);
}

static uint64_t stat_of(uint32_t stat)
{
	uint32_t zero = 0;

	return ((struct sb_stats *)bpf_map_lookup_elem(&stats, &zero))->val[stat];
}

static bool is_slow(uint32_t number)
{
	return bpf_map_lookup_elem(&spans_slow, &number);
}

static void test_fast_and_slow(void **state)
{
	assert_true(sample_at(50, 2) == SB_SPAN_OUTSIDE);
	begin_at(100, 1);
	assert_int_equal(sample_at(200, 1), 1);
	end_at(300, 1);
	assert_true(sample_at(400, 1) == SB_SPAN_OUTSIDE);
	assert_false(is_slow(1));

	begin_at(1000, 1);
	assert_int_equal(sample_at(1999, 1), 2); /* it is not known yet */
	assert_int_equal(sample_at(2000, 1), 0);
	end_at(3000, 1);
	assert_true(is_slow(2));
	assert_int_equal(stat_of(SB_STAT_SPANS_SLOW), 1);

	begin_at(4000, 1); /* nobody asks for one without samples */
	end_at(6000, 1);
	assert_false(is_slow(3));
	assert_int_equal(stat_of(SB_STAT_SPANS_SLOW), 2);
}

static void test_no_threshold(void **state)
{
	cfg_span_slow_ns = 0;
	begin_at(100, 1);
	assert_int_equal(sample_at(100, 1), 0);
	end_at(101, 1);
	assert_true(sample_at(102, 1) == SB_SPAN_OUTSIDE);
	assert_false(is_slow(1));
}

static void test_recursion(void **state)
{
	begin_at(100, 1);
	begin_at(200, 2);
	end_at(300, 2);
	assert_int_equal(sample_at(400, 1), 1);
	end_at(1200, 1);
	assert_true(is_slow(1));
	assert_int_equal(stat_of(SB_STAT_SPANS_LEFT), 0);
}

/* A call is left by a jump to its caller: what follows is not in it, however long it is. */
static void test_jump(void **state)
{
	begin_at(100, 2);
	assert_int_equal(sample_at(200, 3), 1);
	assert_true(sample_at(5000, 1) == SB_SPAN_OUTSIDE);
	begin_at(6000, 2);
	assert_int_equal(stat_of(SB_STAT_SPANS_LEFT), 1);
	assert_false(is_slow(1));
	assert_int_equal(sample_at(6100, 2), 2);

	/* This one was slow before it was left. */
	assert_int_equal(sample_at(7100, 2), 0);
	begin_at(7200, 1);
	assert_true(is_slow(2));
	assert_int_equal(stat_of(SB_STAT_SPANS_LEFT), 2);
	assert_int_equal(stat_of(SB_STAT_SPANS_SLOW), 1);
}

/*
 * A call is left by a jump, and code further down the stack runs: another call has its return
 * address where that of the call was. The return probe replaces the address as well, but by its
 * own.
 */
static void test_jump_before_calls(void **state)
{
	static struct xol_area area = { .vaddr = 0x7fffffffe000 };
	static struct mm_struct mm = { .uprobes_state = { .xol_area = &area } };
	static uint64_t memory[64];
	uint64_t *ret = &memory[63];

	shim.user_mem = memory;
	shim.user_addr = sp_of(1) - sizeof(memory);
	shim.user_bytes = sizeof(memory);
	task.mm = &mm;
	*ret = 0x401234;
	begin_at(100, 1);
	assert_int_equal(sample_at(200, 3), 1);
	*ret = area.vaddr;
	assert_int_equal(sample_at(300, 3), 1);
	*ret = 0x405678;
	assert_true(sample_at(5000, 3) == SB_SPAN_OUTSIDE);
	begin_at(6000, 2);
	assert_int_equal(stat_of(SB_STAT_SPANS_LEFT), 1);
	assert_false(is_slow(1));
	assert_int_equal(sample_at(6100, 3), 2);
	task.mm = NULL;
}

static void test_return_probe_is_late(void **state)
{
	begin_at(100, 1);
	(void)sample_at(150, 0); /* it has returned, but its return probe has not run */
	end_at(160, 1);
	assert_int_equal(stat_of(SB_STAT_SPANS_LEFT), 0);
}

static void test_events(void **state)
{
	span_end_tracepoint(NULL); /* of one that began before the run */
	shim.now_ns = 100;
	span_begin_tracepoint(NULL);
	assert_int_equal(sample_at(200, -5), 1); /* anywhere */
	shim.now_ns = 300;
	span_begin_kernel(NULL);
	assert_int_equal(stat_of(SB_STAT_SPANS_LEFT), 1);
	assert_int_equal(sample_at(400, 1), 2);
	shim.now_ns = 1500;
	span_end_user(NULL);
	assert_true(is_slow(2));
	assert_false(is_slow(1));
}

static void test_thread_ends(void **state)
{
	unsigned long long ctx[] = { (unsigned long long)(uintptr_t)&task };

	begin_at(100, 1);
	assert_int_equal(sample_at(200, 1), 1);
	shim.now_ns = 2000;
	span_exit(ctx);
	assert_true(is_slow(1));
	assert_int_equal(stat_of(SB_STAT_SPANS_EXITED), 1);
	assert_true(sample_at(2100, 1) == SB_SPAN_OUTSIDE);
}

static void test_full(void **state)
{
	int i;

	for (i = 0; i < 3; i++) {
		shim.pid_tgid = (uint64_t)10 << 32 | (uint32_t)(20 + i);
		begin_at(100, 1);
	}
	assert_int_equal(stat_of(SB_STAT_SPANS_FULL), 1);
}

#define GOROUTINE 0xc000002380ull

/* The runtime's `g`, whose stack ends at @end, runs on the current thread. */
static void run_goroutine(uint64_t end)
{
	static struct sb_go_stack stack;

	stack = (struct sb_go_stack){ end - 0x2000, end };
	shim.user_addr = GOROUTINE;
	shim.user_mem = &stack;
	shim.user_bytes = sizeof(stack);
	shim.attach_cookie = SB_COOKIE_GO;
	cfg_span_go = true;
	sb_scratch_get(SB_SCRATCH_PROBE)->labels.goroutine = GOROUTINE;
}

static void go_at(uint64_t now_ns, uint64_t sp, int (*program)(struct pt_regs *))
{
	struct sb_regs at = { .sp = sp, .r14 = GOROUTINE };

	shim.now_ns = now_ns;
	program((struct pt_regs *)&at);
}

/* It goes to another thread, and its stack moves; its thread is on a stack of the runtime. */
static void test_goroutine(void **state)
{
	run_goroutine(STACK);
	go_at(100, STACK - 0x108, span_call);
	regs.sp = STACK - 0x200;
	assert_int_equal(sb_span_of_current(SB_SCRATCH_PROBE, 200), 1);
	shim.pid_tgid++;
	task.pid++;
	run_goroutine(STACK + 0x70000);
	regs.sp = STACK + 0x70000 - 0x200;
	assert_int_equal(sb_span_of_current(SB_SCRATCH_PROBE, 300), 1);
	regs.sp = STACK - 0x900000;
	assert_int_equal(sb_span_of_current(SB_SCRATCH_PROBE, 1200), 0);
	regs.sp = STACK + 0x70000 - 0x80;
	assert_true(sb_span_of_current(SB_SCRATCH_PROBE, 1300) == SB_SPAN_OUTSIDE);
	sb_scratch_get(SB_SCRATCH_PROBE)->labels.goroutine = 0; /* the thread runs no goroutine */
	assert_true(sb_span_of_current(SB_SCRATCH_PROBE, 1300) == SB_SPAN_OUTSIDE);
	go_at(1400, STACK + 0x70000 - 0x108, span_return);
	assert_true(is_slow(1));
	assert_int_equal(stat_of(SB_STAT_SPANS_SLOW), 1);
	/* Nothing is kept of one that has ended, so there is room for others. */
	go_at(1500, STACK + 0x70000 - 0x108, span_call);
	go_at(1600, STACK + 0x70000 - 0x108, span_return);
	assert_int_equal(stat_of(SB_STAT_SPANS_FULL) + stat_of(SB_STAT_SPANS_LEFT), 0);
	task.pid--;
}

/* A panic; a register that is no goroutine; the same addresses in another process; the end of
 * one. */
static void test_goroutine_left(void **state)
{
	static struct signal_struct signals;
	unsigned long long ctx[] = { (unsigned long long)(uintptr_t)&task };

	run_goroutine(STACK);
	task.signal = &signals;
	go_at(100, STACK - 0x208, span_call);
	go_at(200, STACK - 0x108, span_call);
	assert_int_equal(stat_of(SB_STAT_SPANS_LEFT), 1);
	go_at(300, STACK + 0x108, span_call);
	shim.pid_tgid += 1ull << 32;
	assert_true(sb_span_of_current(SB_SCRATCH_PROBE, 300) == SB_SPAN_OUTSIDE);
	shim.pid_tgid -= 1ull << 32;
	regs.sp = STACK - 0x200;
	assert_int_equal(sb_span_of_current(SB_SCRATCH_PROBE, 400), 2);
	shim.now_ns = 5000;
	span_exit(ctx);
	assert_int_equal(stat_of(SB_STAT_SPANS_EXITED), 1);
	assert_false(is_slow(2));
	assert_true(sb_span_of_current(SB_SCRATCH_PROBE, 5100) == SB_SPAN_OUTSIDE);
	task.signal = NULL;
}

/* The label of a goroutine that waits in between: its span ends when it was last seen with the
 * value. */
static void test_goroutine_label(void **state)
{
	struct sb_scratch *s = sb_scratch_get(SB_SCRATCH_PROBE);
	uint64_t times[] = { 100, 900, 9000, 9100, 99000 }, values[] = { 3, 3, 5, 5, 0 };
	size_t i;

	run_goroutine(STACK);
	cfg_span_label = true;
	for (i = 0; i < 5; i++) {
		s->capture.now_ns = times[i];
		sb_span_follow(SB_SCRATCH_PROBE, values[i]);
		if (i == 0)
			assert_int_equal(sb_span_of_current(SB_SCRATCH_PROBE, 150), 1);
	}
	assert_int_equal(stat_of(SB_STAT_SPANS_SLOW), 0);
	assert_true(sb_span_of_current(SB_SCRATCH_PROBE, 99100) == SB_SPAN_OUTSIDE);
}

/* The last bucket is that of the longest times; each is an eighth of its power of two. */
static void test_buckets(void **state)
{
	assert_int_equal(sb_span_bucket_of(0), 0);
	assert_int_equal(sb_span_bucket_of(7), 7);
	assert_int_equal(sb_span_bucket_of(8), 3 << SB_SPAN_STEP_BITS);
	assert_int_equal(sb_span_bucket_of(1024), 10 << SB_SPAN_STEP_BITS);
	assert_int_equal(sb_span_bucket_of(1024 + 128), (10 << SB_SPAN_STEP_BITS) + 1);
	assert_int_equal(sb_span_bucket_of(UINT64_MAX), SB_SPAN_BUCKETS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_fast_and_slow, setup),
		cmocka_unit_test_setup(test_no_threshold, setup),
		cmocka_unit_test_setup(test_recursion, setup),
		cmocka_unit_test_setup(test_jump, setup),
		cmocka_unit_test_setup(test_jump_before_calls, setup),
		cmocka_unit_test_setup(test_return_probe_is_late, setup),
		cmocka_unit_test_setup(test_events, setup),
		cmocka_unit_test_setup(test_thread_ends, setup),
		cmocka_unit_test_setup(test_full, setup),
		cmocka_unit_test_setup(test_goroutine, setup),
		cmocka_unit_test_setup(test_goroutine_left, setup),
		cmocka_unit_test_setup(test_goroutine_label, setup),
		cmocka_unit_test_setup(test_buckets, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
