// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* core/sample.bpf.c and core/stack.bpf.c, compiled for the host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core.h"
#define const
#include "views/oncpu.bpf.c"
#undef const

#define PC 0x401000ull

static struct counts_generation generation;
static struct mm_struct mm;
static struct task_struct task, leader;
static struct sb_regs regs;
static const uint64_t kstack[] = { 0xffffffff81000001, 0xffffffff81000002 };

static int setup_with(uint32_t counts_max, uint32_t ring_bytes)
{
	shim_reset();
	SHIM_MAP(stats);
	SHIM_MAP(spent_turns);
	SHIM_MAP(oncpu_counted);
	SHIM_MAP(target_tgids);
	SHIM_MAP(scratch);
	SHIM_MAP(stacks_seen);
	SHIM_MAP(procs_announced);
	SHIM_MAP(proc_caches);
	SHIM_MAP(raw_records);
	SHIM_MAP(raw_full_ns);
	SHIM_RING(events, ring_bytes);
	SHIM_MAP_OF_MAPS(counts);
	SHIM_MAP_OF_BYTES(generation, counts_max);
	shim_set_inner(&counts, 0, &generation);

	mm = (struct mm_struct){ .exec_vm = 1, .start_code = PC };
	leader = (struct task_struct){ .tgid = 42, .start_boottime = 1000 };
	task = (struct task_struct){ .tgid = 42, .pid = 43, .self_exec_id = 3, .mm = &mm };
	task.group_leader = &leader;
	memset(&regs, 0, sizeof(regs));
	shim.task = &task;
	shim.task_regs = &regs;
	shim.pid_tgid = 42ull << 32 | 43;
	shim.kstack = kstack;
	shim.kstack_bytes = sizeof(kstack);
	strcpy(shim.comm, "thread");
	nr_keys = 0;
	first_sample_ns = 0;
	cfg_sides = SB_SIDE_USER | SB_SIDE_KERNEL;
	cfg_by = 0;
	cfg_counts_nudge = 1000;
	cfg_started_boot_ns = 0;
	cfg_tick_ns = 0;
	return 0;
}

static int setup(void **state)
{
	return setup_with(100, 1 << 20);
}

static void set_thread(uint32_t tid)
{
	shim.pid_tgid = 42ull << 32 | tid;
	task.pid = (int)tid;
}

static uint64_t stat_of(uint32_t stat)
{
	uint32_t zero = 0;

	return ((struct sb_stats *)bpf_map_lookup_elem(&stats, &zero))->val[stat];
}

static struct bpf_perf_event_data in_user = { .regs = { .ip = PC, .cs = 0x33 } };
static struct bpf_perf_event_data in_kernel = { .regs = { .cs = 0x10 } };

static int sample(struct bpf_perf_event_data *ctx, struct sb_sample_key *ret_key)
{
	struct sb_capture *capture;
	int err;

	sb_start_at(ctx, SB_SCRATCH_TIMER);
	err = sb_capture(NULL, SB_SCRATCH_TIMER, &capture);
	if (err)
		return err;
	*ret_key = capture->key;
	return sb_account(capture, 1);
}

static const struct sb_event_stack *next_stack(void)
{
	const struct sb_event_stack *stack;
	uint32_t nr_bytes;

	stack = shim_ring_next(&events, &nr_bytes);
	if (!stack)
		return NULL;
	assert_int_equal(stack->hdr.kind, SB_EVENT_STACK);
	assert_int_equal(stack->hdr.nr_bytes, nr_bytes);
	assert_int_equal(nr_bytes, sizeof(*stack) + stack->nr_frames * sizeof(uint64_t));
	return stack;
}

static void test_key(void **state)
{
	struct sb_sample_key key;

	shim.cpu = 2;
	shim.cgroup_id = 99;
	assert_int_equal(sample(&in_user, &key), 0);
	assert_int_equal(key.tgid, 42);
	assert_int_equal(key.start_ns, 1000);
	assert_int_equal(key.exec_id, 3);
	assert_string_equal(key.comm, "thread");
	/* What the run does not split by stays zero. */
	assert_int_equal(key.tid, 0);
	assert_int_equal(key.cpu, 0);
	assert_int_equal(key.cgroup_id, 0);

	cfg_by = SB_BY_THREAD | SB_BY_CPU | SB_BY_CGROUP;
	assert_int_equal(sample(&in_user, &key), 0);
	assert_int_equal(key.tid, 43);
	assert_int_equal(key.cpu, 2);
	assert_int_equal(key.cgroup_id, 99);
	assert_int_equal(shim_map_nr(&generation), 2);

	shim.pid_tgid = 0; /* the idle task */
	assert_int_equal(sample(&in_kernel, &key), -ENOENT);
}

/* Whose sample it is, the slot says. Kernel stacks of two views are two, user stacks are one. */
static void test_views(void **state)
{
	struct sb_sample_key first, second;
	const struct sb_event_stack *stack;
	uint32_t nr_kernel = 0, nr_user = 0;

	assert_int_equal(sample(&in_kernel, &first), 0);
	cfg_slot_view[SB_SCRATCH_TIMER] = 2;
	assert_int_equal(sample(&in_kernel, &second), 0);
	cfg_slot_view[SB_SCRATCH_TIMER] = 0;
	assert_int_equal(first.view, 0);
	assert_int_equal(second.view, 2);
	assert_memory_equal(&first.ustack, &second.ustack, sizeof(first.ustack));
	assert_memory_not_equal(&first.kstack, &second.kstack, sizeof(first.kstack));
	while ((stack = next_stack())) {
		nr_kernel += (stack->flags & SB_STACK_KERNEL) != 0;
		nr_user += !(stack->flags & SB_STACK_KERNEL);
	}
	assert_int_equal(nr_kernel, 2);
	assert_int_equal(nr_user, 1);
}

/* A process older than the run is announced with its first sample, and again under a reused pid. */
static void test_announce(void **state)
{
	const struct sb_event_process *event;
	struct sb_sample_key key;
	uint32_t nr_bytes;

	cfg_sides = 0;
	cfg_started_boot_ns = 2000;
	assert_int_equal(sample(&in_user, &key), 0);
	assert_int_equal(sample(&in_user, &key), 0);
	event = shim_ring_next(&events, &nr_bytes);
	assert_non_null(event);
	assert_int_equal(nr_bytes, sizeof(*event));
	assert_int_equal(event->hdr.kind, SB_EVENT_PROCESS);
	assert_int_equal(event->hdr.nr_bytes, nr_bytes);
	assert_int_equal(event->tgid, 42);
	assert_null(shim_ring_next(&events, &nr_bytes));

	leader.start_boottime = task.start_boottime = 1500;
	assert_int_equal(sample(&in_user, &key), 0);
	assert_non_null(shim_ring_next(&events, &nr_bytes));
	leader.start_boottime = task.start_boottime = 2000; /* known from its side-band events */
	assert_int_equal(sample(&in_user, &key), 0);
	assert_null(shim_ring_next(&events, &nr_bytes));
}

/* As user space writes a rule. */
static void set_rule(uint32_t rule)
{
	uint32_t tgid = 42;

	assert_int_equal(bpf_map_update_elem(&target_tgids, &tgid, &rule, BPF_ANY), 0);
}

static bool is_sampled(void)
{
	struct sb_sample_key key;

	return !sample(&in_user, &key);
}

/* The rule of a process is looked up once, and again when it may be another one. */
static void test_known_rules(void **state)
{
	const uint32_t parent = 41, follow = SB_RULE_ALLOW | SB_RULE_FOLLOW;

	cfg_sides = 0;
	cfg_nr_allow_rules = 1;
	set_rule(SB_RULE_ALLOW);
	assert_true(is_sampled());
	set_rule(SB_RULE_DENY);
	assert_true(is_sampled()); /* nobody said so */
	proc_changes[42]++;
	assert_false(is_sampled());

	set_rule(SB_RULE_ALLOW);
	task.self_exec_id++;
	assert_true(is_sampled());
	set_rule(SB_RULE_DENY);
	task.start_boottime++;
	assert_false(is_sampled());
	set_rule(SB_RULE_ALLOW);
	shim.now_ns += 1ull << 30;
	assert_true(is_sampled());

	set_rule(SB_RULE_DENY);
	set_thread(44);
	assert_false(is_sampled());
	set_thread(43);
	assert_true(is_sampled());

	set_rule(SB_RULE_ALLOW | SB_RULE_AT_EXEC);
	proc_changes[42]++;
	assert_false(is_sampled());
	sb_filter_exec(42);
	assert_true(is_sampled());
	sb_filter_gone(42);
	assert_false(is_sampled());
	assert_int_equal(bpf_map_update_elem(&target_tgids, &parent, &follow, BPF_ANY), 0);
	sb_filter_fork(parent, 42);
	assert_true(is_sampled());
	cfg_nr_allow_rules = 0;
}

static uint32_t list_of(struct sb_scratch *s)
{
	s->map.segs_word = s->map.nr_segs = 0;
	sb_unwind_find_list(s, SB_SCRATCH_TIMER);
	return s->map.segs_word;
}

static void set_list(uint32_t word)
{
	const struct sb_uw_proc proc = {
		.start_ns = 1000, .exec_vm = 7, .exec_id = 3, .segs_word = word, .nr_segs = 1
	};
	uint32_t tgid = 42;

	assert_int_equal(bpf_map_update_elem(&uw_procs, &tgid, &proc, BPF_ANY), 0);
}

/* So is its list of mappings, and which interpreters it has. */
static void test_known_maps(void **state)
{
	struct sb_interp_proc confs = { .start_ns = 1000, .exec_id = 3, .nr_confs = 1 };
	struct sb_scratch *s = sb_scratch_get(SB_SCRATCH_TIMER);
	uint32_t tgid = 42;

	SHIM_MAP(uw_procs);
	shim_map_add((struct shim_map_def){ &interp_procs, BPF_MAP_TYPE_HASH, sizeof(uint32_t),
					    sizeof(confs), 4 });
	cfg_sides = 0;
	assert_true(is_sampled());
	assert_null(find_proc_confs(s, SB_SCRATCH_TIMER));
	assert_int_equal(bpf_map_update_elem(&interp_procs, &tgid, &confs, BPF_ANY), 0);
	assert_int_equal(find_proc_confs(s, SB_SCRATCH_TIMER)->nr_confs, 1);
	confs.nr_confs = 2;
	assert_int_equal(bpf_map_update_elem(&interp_procs, &tgid, &confs, BPF_ANY), 0);
	assert_int_equal(find_proc_confs(s, SB_SCRATCH_TIMER)->nr_confs, 1);

	s->map.exec_vm = 7;
	assert_int_equal(list_of(s), 0);
	set_list(64);
	assert_int_equal(list_of(s), 64);
	set_list(128);
	assert_int_equal(list_of(s), 64); /* nobody said so */
	s->map.exec_vm = 8;
	assert_int_equal(list_of(s), 0); /* out of date, and so is what is known */
	s->map.exec_vm = 7;
	proc_changes[42]++;
	assert_true(is_sampled());
	assert_int_equal(list_of(s), 128);
	assert_int_equal(find_proc_confs(s, SB_SCRATCH_TIMER)->nr_confs, 2);
	s->capture.key.exec_id = 4; /* of another program */
	assert_int_equal(list_of(s), 0);
	assert_null(find_proc_confs(s, SB_SCRATCH_TIMER));
}

/* One key: weights add up, first and last are of the samples, a stack is shipped once. */
static void test_aggregates(void **state)
{
	const struct sb_event_stack *stack;
	struct sb_sample_key key, again;
	struct sb_count *count;

	shim.now_ns = 500;
	assert_int_equal(sample(&in_user, &key), 0);
	shim.now_ns = 900;
	assert_int_equal(sample(&in_user, &again), 0);
	assert_memory_equal(&key, &again, sizeof(key));
	assert_int_equal(shim_map_nr(&generation), 1);
	count = bpf_map_lookup_elem(&generation, &key);
	assert_non_null(count);
	assert_int_equal(count->weight, 2);
	assert_int_equal(count->nr_samples, 2);
	assert_int_equal(count->first_ns, 500);
	assert_int_equal(count->last_ns, 900);
	assert_int_equal(first_sample_ns, 500);
	assert_int_equal(stat_of(SB_STAT_SAMPLES), 2);

	stack = next_stack();
	assert_non_null(stack);
	assert_memory_equal(&stack->id, &key.ustack, sizeof(key.ustack));
	assert_int_equal(stack->nr_frames, 1);
	assert_int_equal(((const uint64_t *)(stack + 1))[0], PC);
}

static void test_kernel_side(void **state)
{
	const struct sb_event_stack *stack;
	struct sb_sample_key key;
	uint64_t shipped_hi;

	regs.ip = regs.cx = PC;
	regs.cs = 0x33;
	assert_int_equal(sample(&in_kernel, &key), 0);
	stack = next_stack();
	assert_memory_equal(&stack->id, &key.kstack, sizeof(key.kstack));
	assert_int_equal(stack->flags, SB_STACK_KERNEL);
	assert_int_equal(stack->nr_frames, 2);
	assert_memory_equal(stack + 1, kstack, sizeof(kstack));
	stack = next_stack();
	assert_memory_equal(&stack->id, &key.ustack, sizeof(key.ustack));
	assert_int_equal(((const uint64_t *)(stack + 1))[0], PC);
	assert_int_equal(stack->flags, SB_STACK_LEAF_RETURNS); /* orig_ax: a system call */
	shipped_hi = key.ustack.hi;

	/* A system call after which a signal handler or a new program begins at the pc. */
	regs.cx = PC + 1;
	assert_int_equal(sample(&in_kernel, &key), 0);
	stack = next_stack();
	assert_non_null(stack);
	assert_memory_equal(&stack->id, &key.ustack, sizeof(key.ustack));
	assert_int_equal(stack->flags, 0);
	/* With FRED, the processor does not copy the pc. */
	regs.ss = 7ull << 48 | 0x2b;
	assert_int_equal(sample(&in_kernel, &key), 0);
	assert_int_equal(key.ustack.hi, shipped_hi);
	regs.ss = 6ull << 16 | 0x2b; /* what start_thread() leaves: the flags swevent and nmi */
	assert_int_equal(sample(&in_kernel, &key), 0);
	assert_int_not_equal(key.ustack.hi, shipped_hi);
	regs.ss = 0;
	regs.cx = PC;

	shim.kstack_bytes = -EFAULT;
	assert_int_equal(sample(&in_kernel, &key), 0);
	assert_int_equal(key.kstack.lo | key.kstack.hi, 0);
	assert_int_equal(stat_of(SB_STAT_KSTACK_ERR), 1);

	cfg_sides = SB_SIDE_USER;
	shim.kstack_bytes = sizeof(kstack);
	assert_int_equal(sample(&in_kernel, &key), 0);
	assert_int_equal(key.kstack.hi, 0);
	cfg_sides = SB_SIDE_KERNEL;
	assert_int_equal(sample(&in_kernel, &key), 0);
	assert_int_not_equal(key.kstack.hi, 0);
	assert_int_equal(key.ustack.hi, 0);
}

/* Tasks without a user side, and user sides that cannot be walked, which are said to be so. */
static void test_no_user_side(void **state)
{
	static struct bpf_perf_event_data compat = { .regs = { .ip = PC, .cs = 0x23 } };
	const struct sb_event_stack *stack;
	struct sb_sample_key key;

	task.mm = NULL;
	assert_int_equal(sample(&in_kernel, &key), 0);
	assert_int_equal(key.ustack.hi, 0);
	task.mm = &mm;
	/* execve() has mapped a part of the new program, and the registers are the old one's. */
	mm.start_code = 0;
	assert_int_equal(sample(&in_kernel, &key), 0);
	assert_int_equal(key.ustack.hi, 0);
	mm.start_code = PC;
	task.flags = PF_KTHREAD;
	assert_int_equal(sample(&in_kernel, &key), 0);
	assert_int_equal(key.ustack.hi, 0);
	task.flags = PF_IO_WORKER;
	assert_int_equal(sample(&in_kernel, &key), 0);
	assert_int_equal(key.ustack.hi, 0);
	assert_int_equal(next_stack()->flags, SB_STACK_KERNEL);
	assert_null(next_stack());

	task.flags = 0;
	regs.cs = 0x10; /* not from user mode */
	assert_int_equal(sample(&in_kernel, &key), 0);
	stack = next_stack();
	assert_int_equal(stack->status, SB_STACK_NO_REGS);
	assert_int_equal(stack->nr_frames, 0);
	assert_int_equal(sample(&compat, &key), 0);
	stack = next_stack();
	assert_int_equal(stack->status, SB_STACK_COMPAT);
	assert_int_equal(stack->nr_frames, 1);
}

static bool has_user_stack(void)
{
	struct sb_sample_key key;

	assert_int_equal(sample(&in_kernel, &key), 0);
	return key.ustack.hi != 0;
}

/* execve() clears the registers of the old program some time before it sets those of the new one. */
static void test_between_programs(void **state)
{
	u64 *others[] = { &regs.bx, &regs.bp, &regs.cx, &regs.dx, &regs.r11, &regs.r15 };
	size_t i;

	mm.start_stack = 0x7ffc00001000;
	regs = (struct sb_regs){ .ip = PC, .cx = PC, .cs = 0x33, .sp = 0x7ffe00000000 };
	regs.orig_ax = 59;
	regs.ax = (uint64_t)-ENOSYS;
	assert_true(has_user_stack());
	regs.cx = 0;
	assert_false(has_user_stack());
	for (i = 0; i < sizeof(others) / sizeof(*others); i++) {
		*others[i] = 1;
		assert_true(has_user_stack());
		*others[i] = 0;
	}
	regs.orig_ax = (uint64_t)-1; /* no system call */
	assert_true(has_user_stack());
	regs.orig_ax = 59;
	regs.sp = mm.start_stack; /* the new program, before its first instruction */
	assert_true(has_user_stack());
	mm.start_stack = 0;
}

/* Stacks with other frames, status, flags or mappings have other names. */
static void test_names(void **state)
{
	struct sb_scratch *s = sb_scratch_get(0);
	struct sb_stack_id ids[7];
	size_t i, j;

	memset(s, 0, sizeof(*s));
	for (i = 0; i < 7; i++) {
		s->stack.nr_frames = i == 1 ? 2 : 3;
		s->stack.status = i == 2;
		s->stack.flags = i == 3;
		s->stack.list = i == 6;
		s->ip[0] = i == 4 ? 1 : 0;
		s->ip[2] = i == 5 ? 1 : 0;
		assert_int_equal(sb_stack_intern(s, 0, &ids[i]), 0);
		for (j = 0; j < i; j++)
			assert_memory_not_equal(&ids[i], &ids[j], sizeof(ids[i]));
	}
	assert_int_equal(shim_map_nr(&stacks_seen), 7);
}

/* No room in the ring: the stack is not taken for known, and goes with a later sample. */
static void test_ring_full(void **state)
{
	struct sb_sample_key key;

	setup_with(100, 16);
	assert_int_equal(sample(&in_user, &key), 0);
	assert_int_equal(stat_of(SB_STAT_RING_FULL), 1);
	assert_int_equal(shim_map_nr(&stacks_seen), 0);
	assert_null(next_stack());
	assert_int_equal(sample(&in_user, &key), 0);
	assert_int_equal(stat_of(SB_STAT_RING_FULL), 2);
	assert_int_equal(stat_of(SB_STAT_SAMPLES), 2); /* the samples are not lost */
}

static void test_seen_table(void **state)
{
	struct sb_sample_key key;

	shim.fail_map = &stacks_seen;
	shim.fail_err = -E2BIG;
	assert_int_equal(sample(&in_user, &key), 0);
	assert_int_equal(sample(&in_user, &key), 0);
	assert_int_equal(stat_of(SB_STAT_SEEN_FULL), 2);
	assert_non_null(next_stack());
	assert_non_null(next_stack()); /* again, rather than never */
	assert_int_equal(stat_of(SB_STAT_RING_FULL), 0);

	shim.fail_err = -EEXIST; /* another CPU was faster, and ships it */
	assert_int_equal(sample(&in_user, &key), 0);
	assert_null(next_stack());
	assert_int_equal(stat_of(SB_STAT_SEEN_FULL), 2);
}

static void test_counts_full(void **state)
{
	struct sb_sample_key key;
	uint32_t i, nr_bytes, nr_nudges = 0;
	const struct sb_event *event;

	setup_with(8, 1 << 20);
	cfg_by = SB_BY_THREAD;
	cfg_counts_nudge = 4;
	for (i = 0; i < 8; i++) {
		set_thread(100 + i);
		assert_int_equal(sample(&in_user, &key), 0);
	}
	set_thread(200);
	assert_int_equal(sample(&in_user, &key), -E2BIG);
	assert_int_equal(stat_of(SB_STAT_COUNTS_FULL), 1);
	set_thread(100); /* a key that is there still counts */
	assert_int_equal(sample(&in_user, &key), 0);
	assert_int_equal(stat_of(SB_STAT_SAMPLES), 9);
	while ((event = shim_ring_next(&events, &nr_bytes)))
		nr_nudges += event->kind == SB_EVENT_COUNTS_NUDGE;
	assert_int_equal(nr_nudges, 1);

	shim.fail_map = &generation;
	shim.fail_err = -EBUSY;
	set_thread(300);
	assert_int_equal(sample(&in_user, &key), -EBUSY);
	assert_int_equal(stat_of(SB_STAT_COUNTS_BUSY), 1);
	assert_int_equal(stat_of(SB_STAT_COUNTS_FULL), 1);
	/* Another CPU was faster, and user space has drained the key since. */
	shim.fail_err = -EEXIST;
	assert_int_equal(sample(&in_user, &key), -E2BIG);
	assert_int_equal(stat_of(SB_STAT_COUNTS_FULL), 2);
	assert_int_equal(stat_of(SB_STAT_SAMPLES), 9);
}

/* A timer that is slower than was asked for: its samples weigh more. Each CPU has its own. */
static void test_ticks_weigh(void **state)
{
	struct sb_sample_key key;
	struct sb_count count;

	memset(tick_weights, 0, sizeof(tick_weights));
	cfg_sides = 0;
	shim.cpu = 2;
	assert_int_equal(oncpu_tick(&in_user), 0);
	tick_weights[2] = 4;
	assert_int_equal(oncpu_tick(&in_user), 0);
	shim.cpu = 3;
	assert_int_equal(oncpu_tick(&in_user), 0);
	assert_int_equal(shim_map_nr(&generation), 1);
	shim_map_at(&generation, 0, &key, &count);
	assert_int_equal(count.weight, 1 + 4 + 1);
	assert_int_equal(count.nr_samples, 3);
}

/* The CPU was away: how many ticks did not come is known from the next one; jitter below a period
 * is no reason. */
static void test_skipped_ticks(void **state)
{
	static const struct {
		uint64_t at; /* in tenths of a period */
		uint32_t nr; /* ticks since the last one */
	} ticks[] = {
		{ 0, 1 },
		{ 10, 1 },
		{ 21, 1 },
		{ 30, 1 },
		{ 61, 3 },
		{ 70, 1 },
		/* More than half of a period late: one too many, which the next skipped ones
		 * lack. */
		{ 86, 2 },
		{ 90, 1 },
		{ 100, 1 },
		{ 116, 1 },
		{ 120, 1 },
		{ 200, 7 },
		{ 211, 1 },
	};
	uint64_t from_ns = 1000000000, period_ns = 2004008;
	uint32_t i, settings, cpu = 3;

	for (settings = 1; settings <= 2; settings++) {
		memset(tick_weights, 0, sizeof(tick_weights));
		tick_weights[cpu] = settings;
		cfg_tick_ns = period_ns / settings;
		shim.cpu = cpu;
		from_ns += 1000000000000;
		for (i = 0; i < sizeof(ticks) / sizeof(ticks[0]); i++) {
			shim.now_ns = from_ns + ticks[i].at * period_ns / 10;
			assert_int_equal(sb_ticks(bpf_ktime_get_ns()), ticks[i].nr);
		}
	}
	/* Another thread, or the same one after a switch: the CPU may have been idle meanwhile. */
	task.pid++;
	shim.now_ns += 30 * period_ns;
	assert_int_equal(sb_ticks(bpf_ktime_get_ns()), 1);
	shim.now_ns += 3 * period_ns;
	assert_int_equal(sb_ticks(bpf_ktime_get_ns()), 3);
	task.nvcsw++;
	shim.now_ns += 30 * period_ns;
	assert_int_equal(sb_ticks(bpf_ktime_get_ns()), 1);
	/* Another rate is another grid. */
	shim.now_ns += 5 * period_ns;
	tick_weights[cpu] = 4;
	assert_int_equal(sb_ticks(bpf_ktime_get_ns()), 1);
	/* A counter of cycles has no periods. */
	cfg_tick_ns = 0;
	shim.now_ns += 50 * period_ns;
	assert_int_equal(sb_ticks(bpf_ktime_get_ns()), 1);
}

/* What was skipped is counted, but is no sample and no weight. */
static void test_skipped_are_counted(void **state)
{
	struct sb_sample_key key;
	struct sb_count count;

	memset(tick_weights, 0, sizeof(tick_weights));
	cfg_tick_ns = 1000000;
	cfg_sides = 0;
	shim.now_ns = 5000000000;
	assert_int_equal(oncpu_tick(&in_user), 0);
	shim.now_ns = 5004000000;
	assert_int_equal(oncpu_tick(&in_user), 0);
	shim_map_at(&generation, 0, &key, &count);
	assert_int_equal(count.weight, 2);
	assert_int_equal(count.nr_samples, 2);
	assert_int_equal(stat_of(SB_STAT_TICKS_SKIPPED), 3);
	cfg_tick_ns = 0;
}

/* Whatever the period is that the kernel is at, and whoever had the sample before. */
static void test_counted_weigh(void **state)
{
	struct sb_sample_key key;
	struct sb_count count;

	cfg_sides = 0;
	cfg_oncpu_counts = true;
	in_user.sample_period = 1000;
	shim.counter = 7;
	assert_int_equal(oncpu_tick(&in_user), 0);
	shim.counter = 5000000007;
	assert_int_equal(oncpu_tick(&in_user), 0);
	shim_map_at(&generation, 0, &key, &count);
	assert_true(count.weight == 5000000007);
	/* The CPU was offline. */
	shim.counter = 3;
	assert_int_equal(oncpu_tick(&in_user), 0);
	shim_map_at(&generation, 0, &key, &count);
	assert_true(count.weight == 5000000010);
	cfg_oncpu_counts = false;
}

/* In a slice samples weigh more, outside of it there are none. */
static void test_slice(void **state)
{
	assert_int_equal(sb_slice(7, 1000), 7);
	cfg_slices = 1;
	slice_weight = 50ull << SB_SLICE_SHIFT | 1ull << (SB_SLICE_SHIFT - 1);
	slice_end_ns = 1000;
	assert_int_equal(sb_slice(2, 999), 101);
	assert_int_equal(sb_slice(2, 1000), 0);
	assert_int_equal(sb_slice(1ull << 40, 999), 101ull << 39);
	slice_end_ns = 0;
	assert_int_equal(sb_slice(2, 999), 0);
	cfg_slices = 0;
}

/* Heavy ones as they are; the others by chance, and right on average. */
static void test_thin(void **state)
{
	uint64_t sum = 0, total = 0, nr = 0, one;
	uint32_t i;

	thin_weight = 0;
	assert_int_equal(sb_thin(3), 3);
	thin_weight = 4096;
	assert_int_equal(sb_thin(4096), 4096);
	assert_int_equal(sb_thin(1ull << 40), 1ull << 40);
	assert_int_equal(sb_thin(0), 0);
	for (i = 0; i < 200000; i++) {
		one = sb_thin(i % 1000);
		assert_true(one == 0 || one == 4096);
		sum += one;
		nr += one != 0;
		total += i % 1000;
	}
	assert_in_range(sum, total - total / 50, total + total / 50);
	assert_true(nr < 200000 / 7);
	thin_weight = 1ull << 40;
	for (i = 0, sum = 0; i < 100000; i++)
		sum += sb_thin(1ull << 36) != 0;
	assert_in_range(sum, 100000 / 16 - 600, 100000 / 16 + 600);
	thin_weight = 0;
}

/* One in 16 is measured, in whatever rhythm they come, and stands for all. */
static void test_spent(void **state)
{
	uint64_t spent[2] = {}, before, since_ns;
	uint32_t i;

	for (i = 0; i < 32000; i++) {
		before = stat_of(SB_STAT_RUN_NS);
		shim.now_ns += 1000;
		since_ns = sb_spent_begin();
		shim.now_ns += i % 2 ? 999 : 0;
		sb_spent_end(since_ns);
		spent[i % 2] += stat_of(SB_STAT_RUN_NS) - before;
	}
	assert_in_range(spent[0], 16000 * 9 / 10, 16000 * 11 / 10);
	assert_in_range(spent[1], 16000000ull * 98 / 100, 16000000ull * 102 / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_key, setup),
		cmocka_unit_test_setup(test_views, setup),
		cmocka_unit_test_setup(test_announce, setup),
		cmocka_unit_test_setup(test_known_rules, setup),
		cmocka_unit_test_setup(test_known_maps, setup),
		cmocka_unit_test_setup(test_aggregates, setup),
		cmocka_unit_test_setup(test_kernel_side, setup),
		cmocka_unit_test_setup(test_no_user_side, setup),
		cmocka_unit_test_setup(test_between_programs, setup),
		cmocka_unit_test_setup(test_names, setup),
		cmocka_unit_test_setup(test_ring_full, setup),
		cmocka_unit_test_setup(test_seen_table, setup),
		cmocka_unit_test_setup(test_counts_full, setup),
		cmocka_unit_test_setup(test_ticks_weigh, setup),
		cmocka_unit_test_setup(test_counted_weigh, setup),
		cmocka_unit_test_setup(test_skipped_ticks, setup),
		cmocka_unit_test_setup(test_skipped_are_counted, setup),
		cmocka_unit_test_setup(test_thin, setup),
		cmocka_unit_test(test_slice),
		cmocka_unit_test_setup(test_spent, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
