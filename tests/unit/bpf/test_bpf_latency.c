// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* views/latency.bpf.c, compiled for the host: which end belongs to which beginning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core.h"

#define NEVER 1000u /* the expression that is false */

#define const
#include "views/latency.bpf.c"
#undef const

/* In place of bpf/core/expr.bpf.c: one place, and expressions whose numbers are their values. */
static struct sb_trace_place place;
static struct sb_call_context
	evaluated; /* what the last expression was over, if it was of a call */

struct sb_trace_place *sb_event_place(__u32 idx)
{
	return idx < 2 ? &place : NULL;
}

bool sb_event_is_wanted(void *ctx, __u32 place_idx, __u32 nr, __u32 slot)
{
	return nr != NEVER;
}

__u64 sb_event_weight(void *ctx, __u32 place_idx, __u32 nr, __u32 slot)
{
	if (ctx)
		evaluated = *(struct sb_call_context *)ctx;
	return nr;
}

__u64 sb_event_word(void *ctx, __u32 place_idx, __u32 nr, __u32 slot)
{
	return nr;
}

__u64 sb_event_value(void *ctx, __u32 place_idx, __u32 nr, __u32 slot)
{
	return nr;
}

/* Stacks of the kernel: of the thread, and of interrupts. */
static __u8 own_stack[KERNEL_STACK_BYTES], irq_stack[KERNEL_STACK_BYTES];

#define STACK 0x7ffe00001000ull
#define PC    0x401000ull

static struct counts_generation generation;
static struct task_struct tasks[3], leader;
static struct signal_struct process;

static int setup(void **state)
{
	int i;

	shim_reset();
	SHIM_MAP(stats);
	SHIM_MAP(spent_turns);
	SHIM_MAP(target_tgids);
	SHIM_MAP(scratch);
	SHIM_MAP(stacks_seen);
	SHIM_MAP(procs_announced);
	SHIM_MAP(proc_caches);
	SHIM_MAP(latency_calls);
	SHIM_MAP(latency_newest);
	SHIM_MAP(latency_contexts);
	SHIM_MAP(latency_go_processes);
	SHIM_MAP(probe_busy);
	SHIM_MAP(latency_objects);
	SHIM_MAP(latency_beginnings);
	SHIM_MAP(objects_seen);
	SHIM_RING(events, 1 << 20);
	SHIM_MAP_OF_MAPS(counts);
	SHIM_MAP_OF_BYTES(generation, 100);
	shim_set_inner(&counts, 0, &generation);
	leader = (struct task_struct){ .start_boottime = 1000 };
	process.live.counter = 1;
	for (i = 0; i < 3; i++)
		tasks[i] = (struct task_struct){ .tgid = i < 2 ? 10 : 20,
						 .pid = 10 + i,
						 .group_leader = &leader,
						 .signal = &process,
						 .stack = own_stack };
	nr_keys = 0;
	end_ns = 0;
	cfg_latency_min_ns = 0;
	cfg_latency_max_ns = ~0ull;
	cfg_latency_slowest = 0;
	cfg_latency_half = 0;
	begin_ns = 0;
	latency_nr_at_once = 0;
	memset(latency_slowest, 0, sizeof(latency_slowest));
	cfg_by = 0;
	cfg_sides = 0;
	cfg_nr_allow_rules = 0;
	thin_weight = 0;
	place = (struct sb_trace_place){};
	return 0;
}

static void be(int i)
{
	shim.task = &tasks[i];
	shim.pid_tgid = (uint64_t)(uint32_t)tasks[i].tgid << 32 | (uint32_t)tasks[i].pid;
}

/* Calls are numbered by how deep their caller is. */
static uint64_t sp_of(int deep)
{
	return STACK - 64 * (uint64_t)deep;
}

static void begin_at(uint64_t now_ns, int deep)
{
	struct sb_regs regs = { .ip = PC, .sp = sp_of(deep) - 8, .di = 7, .cs = 0x33 };

	shim.now_ns = now_ns;
	latency_begin((struct pt_regs *)&regs);
}

static void end_at(uint64_t now_ns, int deep)
{
	struct sb_regs regs = { .ip = PC, .sp = sp_of(deep), .ax = 9, .cs = 0x33 };

	shim.now_ns = now_ns;
	latency_end((struct pt_regs *)&regs);
}

/* A function of the kernel. @sp: after its return */
static void enter_at(uint64_t now_ns, uint64_t sp, uint32_t idx)
{
	struct sb_regs regs = { .ip = PC, .sp = sp - 8, .di = 7, .cs = 0x10 };

	shim.now_ns = now_ns;
	shim.attach_cookie = idx;
	latency_kernel_begin((struct pt_regs *)&regs);
	shim.attach_cookie = 0;
}

static void leave_at(uint64_t now_ns, uint64_t sp, uint32_t idx)
{
	struct sb_regs regs = { .ip = PC, .sp = sp, .ax = 9, .cs = 0x10 };

	shim.now_ns = now_ns;
	shim.attach_cookie = idx;
	latency_kernel_end((struct pt_regs *)&regs);
	shim.attach_cookie = 0;
}

static uint64_t own_sp(int deep)
{
	return (uintptr_t)own_stack + sizeof(own_stack) - 64 * (uint64_t)deep;
}

static uint64_t irq_sp(int deep)
{
	return (uintptr_t)irq_stack + sizeof(irq_stack) - 64 * (uint64_t)deep;
}

static void settle_at(uint64_t now_ns)
{
	struct bpf_iter_meta meta = {};
	struct bpf_iter__task ctx = { .meta = &meta, .task = &tasks[0] };

	shim.now_ns = now_ns;
	latency_settle(&ctx);
	ctx.task = NULL;
	latency_settle(&ctx);
}

static void event_at(uint64_t now_ns, uint32_t roles, uint32_t key)
{
	shim.now_ns = now_ns;
	place.roles = roles;
	place.begin_key = place.end_key = key;
	latency_tracepoint(NULL);
}

static void later_at(uint64_t now_ns)
{
	shim.now_ns = now_ns;
	latency_stacks(NULL);
}

static uint64_t stat_of(uint32_t stat)
{
	uint32_t zero = 0;

	return ((struct sb_stats *)bpf_map_lookup_elem(&stats, &zero))->val[stat];
}

/* The weight of all samples with @op, to 100 ns: each look at the clock takes one. */
static uint64_t weight_of(uint32_t op)
{
	struct sb_sample_key key;
	struct sb_count count;
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < shim_map_nr(&generation); i++) {
		shim_map_at(&generation, i, &key, &count);
		sum += key.op == op ? count.weight : 0;
	}
	return (sum + 50) / 100 * 100;
}

static void expect_nothing_open(void)
{
	assert_int_equal(shim_map_nr(&latency_calls), 0);
	assert_int_equal(shim_map_nr(&latency_newest), 0);
}

static void test_call(void **state)
{
	be(0);
	begin_at(1000, 1);
	end_at(6000, 1);
	assert_int_equal(weight_of(0), 5000);
	assert_int_equal(stat_of(SB_STAT_SAMPLES), 1);
	expect_nothing_open();
}

static void test_recursion(void **state)
{
	be(0);
	begin_at(1000, 1);
	begin_at(2000, 2);
	begin_at(3000, 3);
	end_at(4000, 3);
	end_at(6000, 2);
	end_at(10000, 1);
	assert_int_equal(weight_of(0), 1000 + 4000 + 9000);
	assert_int_equal(stat_of(SB_STAT_SAMPLES), 3);
	assert_int_equal(stat_of(SB_STAT_CALLS_JUMPED), 0);
	expect_nothing_open();
}

/* Two threads at one address of their stacks, as after fork() or in threads of two processes. */
static void test_threads(void **state)
{
	be(0);
	begin_at(1000, 1);
	be(1);
	begin_at(2000, 1);
	end_at(3000, 1);
	assert_int_equal(weight_of(0), 1000);
	be(0);
	end_at(9000, 1);
	assert_int_equal(weight_of(0), 1000 + 8000);
	expect_nothing_open();
}

/* Out of calls 2 and 3 into the middle of 1, and on: another call at the place of 2. */
static void test_jump(void **state)
{
	be(0);
	begin_at(1000, 1);
	begin_at(2000, 2);
	begin_at(3000, 3);
	begin_at(5000, 2);
	assert_int_equal(stat_of(SB_STAT_CALLS_JUMPED), 2);
	end_at(6000, 2);
	assert_int_equal(weight_of(0), 1000);
	begin_at(7000, 4);
	end_at(9000, 1); /* and out of 4, by the end of 1 */
	assert_int_equal(weight_of(0), 1000 + 8000);
	assert_int_equal(stat_of(SB_STAT_CALLS_JUMPED), 3);
	assert_int_equal(stat_of(SB_STAT_CALLS_UNSEEN), 0);
	expect_nothing_open();
}

/* What began before the run is not known, and leaves those around it alone. */
static void test_unseen(void **state)
{
	be(0);
	end_at(1000, 2);
	begin_at(2000, 1);
	end_at(3000, 2);
	end_at(4000, 1);
	assert_int_equal(weight_of(0), 2000);
	assert_int_equal(stat_of(SB_STAT_CALLS_UNSEEN), 2);
	expect_nothing_open();
}

static void test_open(void **state)
{
	be(0);
	begin_at(1000, 1);
	begin_at(2000, 2);
	settle_at(5000); /* a snapshot */
	assert_int_equal(weight_of(SB_LATENCY_OP_OPEN), 4000 + 3000);
	end_at(6000, 2);
	assert_int_equal(weight_of(0), 1000);
	end_ns = 9000;
	settle_at(20000);
	assert_int_equal(weight_of(SB_LATENCY_OP_OPEN), 4000 + 3000 + 4000);
}

/* --min and --max are about whole calls, also of those that a snapshot finds. */
static void test_bounds(void **state)
{
	cfg_latency_min_ns = 2000;
	be(0);
	begin_at(1000, 1);
	settle_at(2000);
	assert_int_equal(weight_of(SB_LATENCY_OP_OPEN), 0);
	settle_at(4000);
	assert_int_equal(weight_of(SB_LATENCY_OP_OPEN), 3000);
	end_at(4500, 1);
	assert_int_equal(weight_of(0), 500);
	begin_at(5000, 1);
	end_at(6000, 1);
	assert_int_equal(weight_of(0), 500);
	assert_int_equal(stat_of(SB_STAT_UNDER_MIN), 1);

	cfg_latency_max_ns = 5000;
	begin_at(10000, 1);
	settle_at(13000);
	end_at(16000, 1);
	assert_int_equal(weight_of(SB_LATENCY_OP_OPEN), 3000);
	assert_int_equal(stat_of(SB_STAT_OVER_MAX), 1);
	begin_at(20000, 1);
	end_ns = 23000;
	settle_at(23000);
	assert_int_equal(weight_of(SB_LATENCY_OP_OPEN), 3000 + 3000);
}

static void test_full(void **state)
{
	be(0);
	begin_at(1000, 1);
	shim.fail_map = &latency_calls;
	shim.fail_err = -E2BIG;
	begin_at(2000, 2);
	assert_int_equal(stat_of(SB_STAT_CALLS_FULL), 1);
	end_at(3000, 2);
	end_at(4000, 1);
	assert_int_equal(weight_of(0), 3000);
	assert_int_equal(stat_of(SB_STAT_CALLS_UNSEEN), 1);
	expect_nothing_open();
}

static void test_exit(void **state)
{
	unsigned long long ctx[] = { (uintptr_t)&tasks[0] };

	be(0);
	begin_at(1000, 1);
	begin_at(2000, 2);
	latency_exit(ctx);
	assert_int_equal(stat_of(SB_STAT_CALLS_EXITED), 2);
	assert_int_equal(weight_of(0), 0);
	expect_nothing_open();
}

/* However deep a recursion is, no call of it stays open, and calls of another thread stay. */
static void test_exit_of_many(void **state)
{
	unsigned long long ctx[] = { (uintptr_t)&tasks[0] };
	int i;

	be(1);
	begin_at(1000, 1);
	be(0);
	for (i = 0; i < 5 * SB_RETURNS_MAX; i++)
		begin_at(2000, i);
	latency_exit(ctx);
	assert_int_equal(stat_of(SB_STAT_CALLS_EXITED), 5 * SB_RETURNS_MAX);
	be(1);
	end_at(3000, 1);
	assert_int_equal(weight_of(0), 2000);
	expect_nothing_open();
}

#define GOROUTINE 0xc000002380ull

/* What the runtime has at GOROUTINE. */
static void move_stack(uint64_t hi)
{
	static struct sb_go_stack stack;

	stack = (struct sb_go_stack){ hi - 0x2000, hi };
	shim.user_addr = GOROUTINE;
	shim.user_mem = &stack;
	shim.user_bytes = sizeof(stack);
}

/* The stack pointer is at the return address at the beginning as well as at the end. */
static void go_at(uint64_t now_ns, uint64_t sp, int (*program)(struct pt_regs *))
{
	struct sb_regs regs = { .ip = PC, .sp = sp, .r14 = GOROUTINE, .cs = 0x33 };

	shim.now_ns = now_ns;
	shim.attach_cookie = SB_COOKIE_GO;
	program((struct pt_regs *)&regs);
	shim.attach_cookie = 0;
}

/* It goes to another thread, and its stack moves. */
static void test_goroutine(void **state)
{
	be(0);
	move_stack(STACK);
	go_at(1000, STACK - 0x100, latency_begin);
	go_at(2000, STACK - 0x200, latency_begin);
	be(1);
	move_stack(STACK + 0x70000);
	go_at(5000, STACK + 0x70000 - 0x200, latency_end);
	go_at(9000, STACK + 0x70000 - 0x100, latency_end);
	assert_true(weight_of(0) > 10900 && weight_of(0) <= 11000);
	assert_int_equal(stat_of(SB_STAT_CALLS_UNSEEN), 0);
	expect_nothing_open();
}

/* The same addresses in two processes; a panic; the end of a process; a register that is no
 * goroutine. */
static void test_goroutines(void **state)
{
	unsigned long long ctx[] = { (uintptr_t)&tasks[1] };

	move_stack(STACK);
	be(0);
	go_at(1000, STACK - 0x100, latency_begin);
	go_at(2000, STACK - 0x200, latency_begin);
	be(2);
	go_at(3000, STACK - 0x100, latency_end);
	assert_int_equal(stat_of(SB_STAT_CALLS_UNSEEN), 1);
	go_at(3000, STACK - 0x100, latency_begin);
	be(0);
	go_at(4000, STACK - 0x100, latency_begin);
	assert_int_equal(stat_of(SB_STAT_CALLS_JUMPED), 2);
	go_at(5000, STACK + 0x100, latency_end);
	assert_int_equal(stat_of(SB_STAT_CALLS_UNSEEN), 2);
	latency_exit(ctx);
	assert_int_equal(shim_map_nr(&latency_calls), 2);
	process.live.counter = 0;
	latency_exit(ctx);
	assert_int_equal(stat_of(SB_STAT_CALLS_EXITED), 1);
	assert_int_equal(shim_map_nr(&latency_calls), 1);
	be(2);
	go_at(6000, STACK - 0x100, latency_end);
	expect_nothing_open();
}

static void test_pair_of_thread(void **state)
{
	unsigned long long ctx[] = { (uintptr_t)&tasks[0] };

	be(0);
	event_at(1000, SB_EVENT_BEGINS, 0);
	be(1);
	event_at(2000, SB_EVENT_ENDS, 0);
	assert_int_equal(stat_of(SB_STAT_CALLS_UNSEEN), 1);
	event_at(3000, SB_EVENT_BEGINS, 0);
	event_at(4000, SB_EVENT_ENDS, 0);
	assert_int_equal(weight_of(0), 1000);
	be(0);
	event_at(5000, SB_EVENT_ENDS, 0);
	assert_int_equal(weight_of(0), 1000 + 4000);
	event_at(6000, SB_EVENT_BEGINS, 0);
	latency_exit(ctx);
	assert_int_equal(stat_of(SB_STAT_CALLS_EXITED), 1);
	expect_nothing_open();
}

/* From one thread to another, several at once; one that begins again; one that stays. */
static void test_pair_by_key(void **state)
{
	be(0);
	event_at(1000, SB_EVENT_BEGINS, 7);
	event_at(2000, SB_EVENT_BEGINS, 8);
	be(1);
	event_at(3000, SB_EVENT_ENDS, 8);
	event_at(5000, SB_EVENT_ENDS, 7);
	assert_int_equal(weight_of(0), 1000 + 4000);
	event_at(6000, SB_EVENT_BEGINS, 7);
	event_at(7000, SB_EVENT_BEGINS, 7);
	assert_int_equal(stat_of(SB_STAT_CALLS_REPLACED), 1);
	event_at(7500, SB_EVENT_ENDS, 7);
	assert_int_equal(weight_of(0), 5000 + 500);
	event_at(8000, SB_EVENT_BEGINS, 9);
	end_ns = 10000;
	settle_at(20000);
	assert_int_equal(weight_of(SB_LATENCY_OP_OPEN), 2000);
}

/* One event that is the end of a pair and the beginning of the next one. */
static void test_pair_in_a_row(void **state)
{
	be(0);
	event_at(1000, SB_EVENT_BEGINS | SB_EVENT_ENDS, 0);
	event_at(2000, SB_EVENT_BEGINS | SB_EVENT_ENDS, 0);
	event_at(5000, SB_EVENT_BEGINS | SB_EVENT_ENDS, 0);
	assert_int_equal(weight_of(0), 1000 + 3000);
	assert_int_equal(stat_of(SB_STAT_CALLS_REPLACED), 0);
}

/* The stacks are taken by another program, and the time counts from then on. */
static void test_pair_later(void **state)
{
	be(0);
	event_at(1000, SB_EVENT_BEGINS | SB_EVENT_SPLIT, 7);
	assert_int_equal(shim_map_nr(&latency_calls), 0);
	later_at(2000);
	later_at(2500); /* at an event that was not noted */
	event_at(3000, SB_EVENT_ENDS, 7);
	assert_int_equal(weight_of(0), 1000);
	assert_int_equal(stat_of(SB_STAT_TRACE_BUSY), 0);
	expect_nothing_open();
}

/* While stacks are taken, other pairs end, but none can begin. */
static void test_pair_interrupted(void **state)
{
	struct beginning *beginning = beginning_of(SB_SCRATCH_BEGIN);

	be(0);
	event_at(1000, SB_EVENT_BEGINS, 7);
	event_at(2000, SB_EVENT_BEGINS | SB_EVENT_SPLIT, 8);
	beginning->is_taking = 1;
	event_at(3000, SB_EVENT_ENDS, 7);
	assert_int_equal(weight_of(0), 2000);
	event_at(4000, SB_EVENT_BEGINS | SB_EVENT_SPLIT, 9);
	assert_int_equal(stat_of(SB_STAT_TRACE_BUSY), 2);
	later_at(4000);
	assert_int_equal(shim_map_nr(&latency_calls), 0);
	beginning->is_taking = 0;
	later_at(5000);
	event_at(6000, SB_EVENT_ENDS, 8);
	assert_int_equal(weight_of(0), 2000 + 1000);
	expect_nothing_open();
}

/* A beginning whose stacks nobody took is lost, and keeps none of those behind it from being
 * taken. */
static void test_pair_without_later(void **state)
{
	be(0);
	event_at(1000, SB_EVENT_BEGINS | SB_EVENT_SPLIT, 7);
	event_at(2000, SB_EVENT_BEGINS | SB_EVENT_SPLIT, 8);
	later_at(3000);
	assert_int_equal(stat_of(SB_STAT_TRACE_BUSY), 1);
	event_at(4000, SB_EVENT_ENDS, 8);
	assert_int_equal(weight_of(0), 1000);
	/* Also when none comes behind it. */
	event_at(5000, SB_EVENT_BEGINS | SB_EVENT_SPLIT, 9);
	assert_int_equal(stat_of(SB_STAT_TRACE_BUSY), 2);
	expect_nothing_open();
}

/* A weight is accounted once: at the end, or when the run ends. A begin that --when leaves out
 * still drops the one before. */
static void test_pair_weight(void **state)
{
	be(0);
	place.weigh = 4200;
	event_at(1000, SB_EVENT_BEGINS, 7);
	settle_at(2000);
	assert_int_equal(shim_map_nr(&generation), 0);
	event_at(3000, SB_EVENT_ENDS, 7);
	assert_int_equal(weight_of(0), 4200);
	assert_int_equal(stat_of(SB_STAT_SAMPLES), 1);
	event_at(4000, SB_EVENT_BEGINS, 7);
	place.when = NEVER;
	event_at(5000, SB_EVENT_BEGINS, 7);
	assert_int_equal(stat_of(SB_STAT_CALLS_REPLACED), 1);
	expect_nothing_open();
	place.when = 0;
	event_at(6000, SB_EVENT_BEGINS, 7);
	end_ns = 10000;
	settle_at(10000);
	event_at(11000, SB_EVENT_ENDS, 7);
	assert_int_equal(weight_of(SB_LATENCY_OP_OPEN), 4200);
	assert_int_equal(stat_of(SB_STAT_SAMPLES), 2);
}

/* Arguments of the beginning, the result and the time of the end; what is open is not known. */
static void test_call_weight(void **state)
{
	place.weigh = 4200;
	be(0);
	begin_at(1000, 1);
	assert_int_equal(evaluated.arg[0], 7);
	end_at(6000, 1);
	assert_int_equal(weight_of(0), 4200);
	place.at_end = SB_AT_END_WEIGH;
	begin_at(11000, 1);
	memset(&evaluated, 0, sizeof(evaluated));
	settle_at(12000);
	end_at(16000, 1);
	assert_int_equal(weight_of(0), 2 * 4200);
	assert_int_equal(evaluated.arg[0], 7);
	assert_int_equal(evaluated.retval, 9);
	assert_in_range(evaluated.elapsed_ns, 4000, 5000);
	begin_at(21000, 1);
	end_ns = 30000;
	settle_at(30000);
	assert_int_equal(weight_of(SB_LATENCY_OP_OPEN), 0);
}

static void test_call_when(void **state)
{
	place.when = NEVER;
	be(0);
	begin_at(1000, 1);
	expect_nothing_open();
	place.at_end = SB_AT_END_WHEN;
	begin_at(2000, 1);
	assert_int_equal(shim_map_nr(&latency_calls), 1);
	end_at(3000, 1);
	assert_int_equal(shim_map_nr(&generation), 0);
	expect_nothing_open();
}

/* As kretprobes leave the stack pointer, and as the function graph tracer does. */
static void test_kernel(void **state)
{
	const uint64_t below = sizeof(struct sb_regs) + 8;

	be(0);
	enter_at(1000, own_sp(1), 0);
	enter_at(2000, own_sp(2), 1);
	leave_at(3000, own_sp(2), 1);
	leave_at(5000, own_sp(1), 0);
	assert_int_equal(weight_of(0), 1000 + 4000);
	enter_at(11000, own_sp(1), 0);
	enter_at(12000, own_sp(3), 0);
	leave_at(13000, own_sp(3) - below, 0);
	/* A call of the same function that was not sampled. */
	leave_at(13500, own_sp(4) - below, 0);
	leave_at(15000, own_sp(1) - below, 0);
	assert_int_equal(weight_of(0), 2 * (1000 + 4000));
	assert_int_equal(stat_of(SB_STAT_CALLS_UNSEEN), 1);
	assert_int_equal(stat_of(SB_STAT_CALLS_JUMPED), 0);
	expect_nothing_open();
}

/* A user function, what it calls in the kernel, and what interrupts that. */
static void test_interrupt(void **state)
{
	be(0);
	begin_at(1000, 1);
	enter_at(2000, own_sp(1), 0);
	enter_at(3000, irq_sp(1), 1);
	enter_at(4000, irq_sp(2), 1); /* its return is lost */
	leave_at(6000, irq_sp(1), 1);
	assert_int_equal(weight_of(0), 3000);
	assert_int_equal(stat_of(SB_STAT_CALLS_JUMPED), 1);
	enter_at(6500, irq_sp(1), 1); /* this one, too, which the next one tells */
	leave_at(7000, own_sp(1), 0);
	assert_int_equal(stat_of(SB_STAT_CALLS_JUMPED), 2);
	end_at(9000, 1);
	assert_int_equal(weight_of(0), 3000 + 5000 + 8000);
	assert_int_equal(stat_of(SB_STAT_CALLS_UNSEEN), 0);
	expect_nothing_open();
}

/* Memory that malloc() returns is held until free(), by address and process; each key is an
 * address. */
static void allocate_at(uint64_t now_ns, uint32_t address)
{
	place.roles = SB_EVENT_BEGINS | SB_EVENT_HELD;
	place.begin_key = address;
	begin_at(now_ns, 1);
	end_at(now_ns + 100, 1);
}

static void free_at(uint64_t now_ns, uint32_t address)
{
	event_at(now_ns, SB_EVENT_ENDS | SB_EVENT_HELD, address);
}

static void test_held(void **state)
{
	place.weigh = 4200;
	be(0);
	allocate_at(1000, 7);
	allocate_at(2000, 8);
	allocate_at(3000, 0); /* malloc() had none */
	assert_int_equal(shim_map_nr(&latency_calls), 2);
	be(1); /* another thread of the process */
	free_at(4000, 7);
	assert_int_equal(shim_map_nr(&latency_calls), 1);
	be(2); /* another process */
	free_at(5000, 8);
	assert_int_equal(shim_map_nr(&latency_calls), 1);
	assert_int_equal(shim_map_nr(&generation), 0);
	/* Told twice of the same memory. */
	be(0);
	event_at(6000, SB_EVENT_BEGINS | SB_EVENT_HELD, 8);
	assert_int_equal(stat_of(SB_STAT_CALLS_REPLACED), 0);
	settle_at(7000); /* a snapshot */
	assert_int_equal(shim_map_nr(&generation), 0);
	/* Still inside of malloc(). */
	place.roles = SB_EVENT_BEGINS | SB_EVENT_HELD;
	place.begin_key = 9;
	begin_at(8000, 1);
	end_ns = 10000;
	settle_at(10000);
	assert_int_equal(weight_of(SB_LATENCY_OP_OPEN), 4200);
	assert_int_equal(weight_of(0), 0);
	assert_int_equal(stat_of(SB_STAT_SAMPLES), 1);
}

/* With its process, or with its program, memory is given back. */
static void test_held_until_exit(void **state)
{
	unsigned long long ctx[] = { (uintptr_t)&tasks[0] };

	place.weigh = 4200;
	be(2);
	allocate_at(1000, 7);
	be(0);
	allocate_at(2000, 7);
	latency_exec(ctx);
	assert_int_equal(shim_map_nr(&latency_calls), 1);
	allocate_at(3000, 7);
	process.live.counter = 0;
	latency_exit(ctx);
	assert_int_equal(shim_map_nr(&latency_calls), 1);
	assert_int_equal(stat_of(SB_STAT_CALLS_EXITED), 0);
	end_ns = 10000;
	settle_at(10000);
	assert_int_equal(weight_of(SB_LATENCY_OP_OPEN), 4200);
}

/* What leaks is older than half of the run. */
static void test_held_for_half(void **state)
{
	cfg_latency_half = 1;
	begin_ns = 2000;
	be(0);
	place.weigh = 4200;
	allocate_at(2100, 7);
	allocate_at(8000, 8);
	end_ns = 10000;
	settle_at(10000);
	assert_int_equal(weight_of(SB_LATENCY_OP_OPEN), 4200);
	assert_int_equal(stat_of(SB_STAT_UNDER_MIN), 0);
}

/* What is allocated in a slice stands for the time between slices. Memory at the address of other
 * memory is proof that the other one was given back, if no slice has seen that. */
static void test_held_in_slices(void **state)
{
	cfg_slices = 1;
	slice_weight = 50ull << SB_SLICE_SHIFT;
	slice_end_ns = 5000;
	place.weigh = 4200;
	be(0);
	allocate_at(1000, 7);
	allocate_at(2000, 8);
	allocate_at(3000, 8);
	allocate_at(6000, 9);
	assert_int_equal(shim_map_nr(&latency_calls), 2);
	end_ns = 10000;
	settle_at(10000);
	assert_int_equal(weight_of(SB_LATENCY_OP_OPEN), 2 * 50 * 4200);
	cfg_slices = 0;
	slice_weight = slice_end_ns = 0;
}

/* Return: what was seen of the memory at an address, which is followed or, with @until, was set
 * aside. */
static struct sb_held_watch watched(uint32_t address, uint32_t until)
{
	struct sb_latency_call key = { .value = address, .caller = { .id = until, .tgid = 10 } };
	struct sb_latency_record *record = bpf_map_lookup_elem(&latency_calls, &key);

	assert_non_null(record);
	return record->watch;
}

/* What a later window sees at an address is proof that the memory there was given back. What the
 * same window sees is known for sure. */
static void test_held_in_windows(void **state)
{
	place.weigh = 4200;
	be(0);
	allocate_at(1000, 7);
	latency_window = 1;
	allocate_at(2000, 8);
	allocate_at(2200, 9);
	free_at(2500, 9);
	assert_int_equal(shim_map_nr(&latency_calls), 2);
	latency_window = 2;
	free_at(3000, 7);
	allocate_at(3200, 8);
	assert_int_equal(watched(7, 0).window, 0);
	assert_int_equal(watched(7, 0).proof, 2);
	assert_int_equal(watched(8, 2).window, 1);
	assert_int_equal(watched(8, 2).proof, 2);
	assert_int_equal(watched(8, 2).until, 2);
	assert_int_equal(watched(8, 0).window, 2);
	assert_int_equal(watched(8, 0).proof, 0);
	free_at(3500, 7);
	assert_int_equal(watched(7, 0).last, 2);
	latency_window = 5;
	free_at(4000, 7);
	free_at(4500, 7);
	assert_int_equal(watched(7, 0).proof, 2);
	assert_int_equal(watched(7, 0).last, 5);
	end_ns = 10000;
	settle_at(10000);
	/* The second one at 8. */
	assert_int_equal(weight_of(SB_LATENCY_OP_OPEN), 4200);
	assert_int_equal(latency_nr_at_once, 1);
	latency_window = 0;
}

/* Where the end of the run is known, what is too young to count at that time is forgotten as soon as
 * it is given back. */
static void test_held_too_late(void **state)
{
	cfg_latency_half = 1;
	begin_ns = 1000;
	end_ns = 101000;
	be(0);
	latency_window = 1;
	allocate_at(50800, 7);
	allocate_at(51100, 8);
	allocate_at(52000, 9);
	assert_int_equal(shim_map_nr(&latency_calls), 3);
	latency_window = 2;
	free_at(60000, 7);
	free_at(61000, 8);
	allocate_at(62000, 9);
	assert_int_equal(watched(7, 0).proof, 2);
	assert_int_equal(watched(9, 0).window, 2);
	assert_int_equal(shim_map_nr(&latency_calls), 2);
	latency_window = 0;
}

/* Return: how many samples have an object. */
static uint32_t nr_described(void)
{
	struct sb_sample_key key;
	struct sb_count count;
	uint32_t nr = 0, i;

	for (i = 0; i < shim_map_nr(&generation); i++) {
		shim_map_at(&generation, i, &key, &count);
		nr += key.object != 0;
	}
	return nr;
}

/* A call is described while it is one of the slowest so far. */
static void test_slowest(void **state)
{
	static const struct {
		uint32_t took_ns, nr_described;
	} calls[] = {
		{ 3000, 1 }, { 5000, 2 }, { 1000, 2 }, { 4000, 3 }, { 3500, 3 }, { 4500, 4 }
	};
	uint64_t at = 1000;
	size_t i;

	cfg_latency_slowest = 2;
	be(0);
	for (i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		begin_at(at, 1);
		end_at(at + calls[i].took_ns, 1);
		assert_int_equal(nr_described(), calls[i].nr_described);
		at += 10000;
	}
	begin_at(at, 1);
	settle_at(at + 9000); /* a snapshot: it is not known yet how long it will be */
	assert_int_equal(nr_described(), 4);
	end_ns = at + 9500;
	settle_at(at + 9500);
	assert_int_equal(nr_described(), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_call, setup),
		cmocka_unit_test_setup(test_recursion, setup),
		cmocka_unit_test_setup(test_threads, setup),
		cmocka_unit_test_setup(test_jump, setup),
		cmocka_unit_test_setup(test_unseen, setup),
		cmocka_unit_test_setup(test_open, setup),
		cmocka_unit_test_setup(test_bounds, setup),
		cmocka_unit_test_setup(test_full, setup),
		cmocka_unit_test_setup(test_exit, setup),
		cmocka_unit_test_setup(test_exit_of_many, setup),
		cmocka_unit_test_setup(test_goroutine, setup),
		cmocka_unit_test_setup(test_goroutines, setup),
		cmocka_unit_test_setup(test_pair_of_thread, setup),
		cmocka_unit_test_setup(test_pair_by_key, setup),
		cmocka_unit_test_setup(test_pair_in_a_row, setup),
		cmocka_unit_test_setup(test_pair_later, setup),
		cmocka_unit_test_setup(test_pair_interrupted, setup),
		cmocka_unit_test_setup(test_pair_without_later, setup),
		cmocka_unit_test_setup(test_pair_weight, setup),
		cmocka_unit_test_setup(test_call_weight, setup),
		cmocka_unit_test_setup(test_call_when, setup),
		cmocka_unit_test_setup(test_kernel, setup),
		cmocka_unit_test_setup(test_interrupt, setup),
		cmocka_unit_test_setup(test_held, setup),
		cmocka_unit_test_setup(test_held_until_exit, setup),
		cmocka_unit_test_setup(test_held_for_half, setup),
		cmocka_unit_test_setup(test_held_in_slices, setup),
		cmocka_unit_test_setup(test_held_in_windows, setup),
		cmocka_unit_test_setup(test_held_too_late, setup),
		cmocka_unit_test_setup(test_slowest, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
