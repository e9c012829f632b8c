// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* views/sched.bpf.c, compiled for the host: what becomes of the time of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core.h"

#define const
#include "views/sched.bpf.c"
#undef const

#define NR_TASKS 3

static struct counts_generation generation;
static struct task_struct idle, tasks[NR_TASKS], leaders[NR_TASKS];
static struct sb_regs regs;
/* The variables of the CPU, as kernels from 6.2 to 6.14 have them: pcpu_hot is the first. */
static union {
	struct pcpu_hot hot;
	struct sb_percpu variables;
} percpu;
static struct cfs_rq cfs_rq = { .rq = (struct rq *)&percpu.variables.runqueues };
static const uint64_t kstack[] = { 0xffffffff81000001 };

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
	SHIM_MAP(objects_seen);
	SHIM_MAP(raw_records);
	SHIM_MAP(raw_full_ns);
	SHIM_MAP(sched_records);
	SHIM_MAP(sched_owing);
	SHIM_MAP(sched_objects);
	SHIM_TASK_STORAGE(sched_tasks);
	SHIM_RING(events, 1 << 20);
	SHIM_MAP_OF_MAPS(counts);
	SHIM_MAP_OF_BYTES(generation, 100);
	shim_set_inner(&counts, 0, &generation);
	shim.kstack = kstack;
	shim.kstack_bytes = sizeof(kstack);
	shim.task_regs = &regs;
	idle = (struct task_struct){ .se.cfs_rq = &cfs_rq };
	percpu.hot.preempt_count = 1;
	for (i = 0; i < NR_TASKS; i++) {
		leaders[i] = (struct task_struct){ .start_boottime = 1000 };
		tasks[i] = (struct task_struct){ .tgid = 10 + i, .pid = 10 + i, .comm = "task" };
		tasks[i].group_leader = &leaders[i];
		tasks[i].se.cfs_rq = &cfs_rq;
		bpf_task_storage_get(&sched_tasks, &tasks[i], NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	}
	nr_keys = 0;
	end_ns = sched_expected_ns = 0;
	sched_has_begun = 1;
	sched_nr_owing = 0;
	cfg_by = 0;
	cfg_sides = SB_SIDE_KERNEL;
	cfg_nr_allow_rules = 0;
	cfg_sched_wall = 0;
	cfg_sched_waker = SCHED_WAKER_NONE;
	cfg_sched_every_ns = sched_every_ns = 0;
	cfg_sched_is_governed = sched_is_thinned = 0;
	thin_weight = 0;
	cfg_sched_pays_at_once = 1;
	cfg_sched_min_ns = 0;
	cfg_sched_max_ns = ~0ull;
	cfg_sched_states = ~0u;
	return 0;
}

static void be(struct task_struct *task)
{
	shim.task = percpu.hot.current_task = task;
	shim.pid_tgid = (uint64_t)(uint32_t)task->tgid << 32 | (uint32_t)task->pid;
	memcpy(shim.comm, task->comm, sizeof(shim.comm));
}

static void switch_at(uint64_t now_ns, struct task_struct *prev, struct task_struct *next,
		      bool is_preempted)
{
	unsigned long long ctx[] = { is_preempted, (uintptr_t)prev, (uintptr_t)next };

	be(prev);
	shim.now_ns = now_ns;
	sched_switch(ctx);
	be(next);
}

static void leave_at(uint64_t now_ns, struct task_struct *task, unsigned int state)
{
	task->__state = state;
	task->on_cpu = 0;
	switch_at(now_ns, task, &idle, false);
}

static void arrive_at(uint64_t now_ns, struct task_struct *task)
{
	task->__state = 0;
	task->on_cpu = 1;
	switch_at(now_ns, &idle, task, false);
}

static void wake_at(uint64_t now_ns, struct task_struct *task)
{
	unsigned long long ctx[] = { (uintptr_t)task };

	shim.now_ns = now_ns;
	sched_wakeup(ctx);
}

static void settle_at(uint64_t now_ns, struct task_struct *task)
{
	struct bpf_iter_meta meta = {};
	struct bpf_iter__task ctx = { .meta = &meta, .task = task };

	shim.now_ns = now_ns;
	sched_settle(&ctx);
}

static uint64_t stat_of(uint32_t stat)
{
	uint32_t zero = 0;

	return ((struct sb_stats *)bpf_map_lookup_elem(&stats, &zero))->val[stat];
}

/* The weight of all samples of @task in @state, whatever their stacks. */
static uint64_t weight_of(const struct task_struct *task, uint32_t state)
{
	struct sb_sample_key key;
	struct sb_count count;
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < shim_map_nr(&generation); i++) {
		shim_map_at(&generation, i, &key, &count);
		if (key.tgid == (uint32_t)task->tgid && key.state == state)
			sum += count.weight;
	}
	return sum;
}

static uint64_t weight_of_all(void)
{
	struct sb_sample_key key;
	struct sb_count count;
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < shim_map_nr(&generation); i++) {
		shim_map_at(&generation, i, &key, &count);
		sum += count.weight;
	}
	return sum;
}

static void test_split_by_wakeup(void **state)
{
	leave_at(1000, &tasks[0], TASK_INTERRUPTIBLE);
	wake_at(5000, &tasks[0]);
	arrive_at(7500, &tasks[0]);
	assert_int_equal(weight_of(&tasks[0], SB_STATE_SLEEP), 4000);
	assert_int_equal(weight_of(&tasks[0], SB_STATE_RUNQUEUE), 2500);
	assert_int_equal(shim_map_nr(&generation), 2);
	/* Who comes back without having waited has nothing to account. */
	arrive_at(9000, &tasks[0]);
	assert_int_equal(weight_of_all(), 6500);
}

static void test_states(void **state)
{
	static const struct {
		unsigned int kernel;
		uint32_t state;
	} rows[] = {
		{ 0, SB_STATE_RUNQUEUE },
		{ TASK_INTERRUPTIBLE, SB_STATE_SLEEP },
		{ TASK_UNINTERRUPTIBLE, SB_STATE_DISK },
		{ TASK_UNINTERRUPTIBLE | 0x100, SB_STATE_DISK }, /* killable */
		{ TASK_IDLE, SB_STATE_IDLE },
		{ TASK_PARKED, SB_STATE_IDLE },
		{ 0x4, SB_STATE_STOPPED },
		{ 0x8, SB_STATE_STOPPED },
		{ 0x8000, SB_STATE_STOPPED }, /* frozen */
		{ TASK_DEAD, SB_STATE_NONE },
		{ TASK_WAKING, SB_STATE_SLEEP },
		{ 0x1000, SB_STATE_DISK }, /* a lock of PREEMPT_RT */
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		tasks[0].__state = rows[i].kernel;
		assert_int_equal(state_of(&tasks[0], false), rows[i].state);
	}
	tasks[0].__state = TASK_WAKING;
	tasks[0].sched_contributes_to_load = 1;
	assert_int_equal(state_of(&tasks[0], false), SB_STATE_DISK);
	tasks[0].__state = TASK_INTERRUPTIBLE;
	tasks[0].frozen = 1; /* by cgroup2 */
	assert_int_equal(state_of(&tasks[0], false), SB_STATE_STOPPED);
	/* Marked while it waits for a child of vfork(). */
	tasks[0].__state = TASK_UNINTERRUPTIBLE | 0x100;
	assert_int_equal(state_of(&tasks[0], false), SB_STATE_DISK);
	/* Preempted: whatever it was about to do. */
	tasks[0].__state = TASK_INTERRUPTIBLE;
	assert_int_equal(state_of(&tasks[0], true), SB_STATE_RUNQUEUE);
	tasks[0].throttled = true;
	assert_int_equal(state_of(&tasks[0], true), SB_STATE_THROTTLED);
}

static void test_dead_do_not_wait(void **state)
{
	leave_at(1000, &tasks[0], TASK_DEAD);
	settle_at(2000, &tasks[0]);
	assert_int_equal(shim_map_nr(&generation), 0);
}

static void test_clamped_to_end(void **state)
{
	leave_at(1000, &tasks[0], TASK_INTERRUPTIBLE);
	leave_at(2000, &tasks[1], TASK_INTERRUPTIBLE);
	wake_at(5000, &tasks[0]);
	end_ns = 6000;
	leave_at(6500, &tasks[2], TASK_INTERRUPTIBLE);
	arrive_at(7500, &tasks[0]);
	arrive_at(7600, &tasks[1]);
	arrive_at(7700, &tasks[2]);
	assert_int_equal(weight_of(&tasks[0], SB_STATE_SLEEP), 4000);
	assert_int_equal(weight_of(&tasks[0], SB_STATE_RUNQUEUE), 1000);
	assert_int_equal(weight_of(&tasks[1], SB_STATE_SLEEP), 4000);
	assert_int_equal(weight_of(&tasks[2], SB_STATE_SLEEP), 0);
}

/* A wait that snapshots fall into, and the end: each nanosecond once. */
static void test_settled_once(void **state)
{
	leave_at(1000, &tasks[0], TASK_INTERRUPTIBLE);
	settle_at(3000, &tasks[0]);
	assert_int_equal(weight_of_all(), 2000);
	settle_at(4000, &tasks[0]);
	wake_at(5000, &tasks[0]);
	settle_at(6000, &tasks[0]);
	arrive_at(7000, &tasks[0]);
	settle_at(8000, &tasks[0]);
	assert_int_equal(weight_of(&tasks[0], SB_STATE_SLEEP), 4000);
	assert_int_equal(weight_of(&tasks[0], SB_STATE_RUNQUEUE), 2000);
	leave_at(9000, &tasks[0], TASK_INTERRUPTIBLE);
	end_ns = 10000;
	settle_at(11000, &tasks[0]);
	settle_at(12000, &tasks[0]);
	arrive_at(13000, &tasks[0]);
	assert_int_equal(weight_of(&tasks[0], SB_STATE_SLEEP), 5000);
}

/* Bounds are for each part by itself, and what they leave out is counted. */
static void test_bounds(void **state)
{
	cfg_sched_min_ns = 1000;
	cfg_sched_max_ns = 3000;
	leave_at(1000, &tasks[0], TASK_INTERRUPTIBLE);
	wake_at(1999, &tasks[0]); /* too short */
	arrive_at(2999, &tasks[0]);
	assert_int_equal(weight_of_all(), 1000);
	assert_int_equal(stat_of(SB_STAT_UNDER_MIN), 1);
	leave_at(10000, &tasks[0], TASK_INTERRUPTIBLE);
	wake_at(13001, &tasks[0]); /* too long */
	arrive_at(16001, &tasks[0]);
	assert_int_equal(weight_of_all(), 4000);
	assert_int_equal(stat_of(SB_STAT_OVER_MAX), 1);
	assert_int_equal(weight_of(&tasks[0], SB_STATE_SLEEP), 0);
	/* What is settled first is a part of a long wait all the same. */
	leave_at(20000, &tasks[0], TASK_INTERRUPTIBLE);
	settle_at(22000, &tasks[0]);
	arrive_at(22500, &tasks[0]);
	assert_int_equal(weight_of(&tasks[0], SB_STATE_SLEEP), 2500);
}

/* A part that is open at a snapshot may still exceed --max. Then nothing of it is accounted. */
static void test_settled_under_max(void **state)
{
	cfg_sched_max_ns = 5000;
	leave_at(1000, &tasks[0], TASK_INTERRUPTIBLE);
	settle_at(4000, &tasks[0]);
	settle_at(8000, &tasks[0]);
	assert_int_equal(weight_of_all(), 0);
	arrive_at(101000, &tasks[0]);
	assert_int_equal(weight_of_all(), 0);
	assert_int_equal(stat_of(SB_STAT_OVER_MAX), 1);
	/* The part that has ended is decided, the time in the queue is not. */
	leave_at(200000, &tasks[1], TASK_INTERRUPTIBLE);
	wake_at(203000, &tasks[1]);
	settle_at(204000, &tasks[1]);
	assert_int_equal(weight_of(&tasks[1], SB_STATE_SLEEP), 3000);
	settle_at(207000, &tasks[1]);
	assert_int_equal(weight_of_all(), 3000);
	arrive_at(209000, &tasks[1]);
	assert_int_equal(weight_of_all(), 3000);
	assert_int_equal(stat_of(SB_STAT_OVER_MAX), 2);
	/* At the end of the run, it is as long as is known. */
	leave_at(400000, &tasks[0], TASK_INTERRUPTIBLE);
	end_ns = 403000;
	settle_at(403500, &tasks[0]);
	assert_int_equal(weight_of_all(), 6000);
	assert_int_equal(stat_of(SB_STAT_OVER_MAX), 2);
}

/* A part that is too short at a snapshot may still reach --min. Then all of it is accounted. */
static void test_settled_under_min(void **state)
{
	cfg_sched_min_ns = 5000;
	leave_at(1000, &tasks[0], TASK_INTERRUPTIBLE);
	settle_at(4000, &tasks[0]);
	arrive_at(101000, &tasks[0]);
	assert_int_equal(weight_of_all(), 100000);
	assert_int_equal(stat_of(SB_STAT_UNDER_MIN), 0);
	/* It reaches --min before it ends; then the time in the queue is too short, and reaches
	 * it. */
	leave_at(200000, &tasks[1], TASK_INTERRUPTIBLE);
	settle_at(203000, &tasks[1]);
	settle_at(206000, &tasks[1]);
	assert_int_equal(weight_of(&tasks[1], SB_STATE_SLEEP), 6000);
	wake_at(207000, &tasks[1]);
	settle_at(209000, &tasks[1]);
	assert_int_equal(weight_of(&tasks[1], SB_STATE_SLEEP), 7000);
	settle_at(210000, &tasks[1]);
	arrive_at(213000, &tasks[1]);
	assert_int_equal(weight_of(&tasks[1], SB_STATE_SLEEP), 7000);
	assert_int_equal(weight_of(&tasks[1], SB_STATE_RUNQUEUE), 6000);
	assert_int_equal(stat_of(SB_STAT_UNDER_MIN), 0);
	/* What never reaches it is counted once. */
	leave_at(300000, &tasks[0], TASK_INTERRUPTIBLE);
	settle_at(302000, &tasks[0]);
	wake_at(303000, &tasks[0]);
	settle_at(304000, &tasks[0]);
	assert_int_equal(stat_of(SB_STAT_UNDER_MIN), 1);
	arrive_at(305000, &tasks[0]);
	assert_int_equal(stat_of(SB_STAT_UNDER_MIN), 2);
	/* At the end of the run, it is as short as is known. */
	leave_at(400000, &tasks[0], TASK_INTERRUPTIBLE);
	end_ns = 403000;
	settle_at(403500, &tasks[0]);
	arrive_at(501000, &tasks[0]);
	assert_int_equal(stat_of(SB_STAT_UNDER_MIN), 3);
	assert_int_equal(weight_of_all(), 113000);
}

/* The same with --every. */
static void test_settled_under_min_every(void **state)
{
	cfg_sched_every_ns = sched_every_ns = 1000;
	cfg_sched_min_ns = 5000;
	leave_at(1000, &tasks[0], TASK_INTERRUPTIBLE);
	settle_at(4000, &tasks[0]);
	arrive_at(101000, &tasks[0]);
	shim.task = &tasks[0];
	sched_arrived(NULL);
	assert_int_equal(weight_of_all(), 100000);
	leave_at(200000, &tasks[1], TASK_INTERRUPTIBLE);
	settle_at(206000, &tasks[1]);
	assert_int_equal(weight_of_all(), 106000);
	assert_int_equal(stat_of(SB_STAT_UNDER_MIN), 0);
	end_ns = 300000;
	leave_at(297000, &tasks[0], TASK_INTERRUPTIBLE);
	settle_at(300500, &tasks[0]);
	assert_int_equal(stat_of(SB_STAT_UNDER_MIN), 1);
}

static void test_wanted_states(void **state)
{
	cfg_sched_states = 1u << SB_STATE_DISK;
	leave_at(1000, &tasks[0], TASK_INTERRUPTIBLE);
	arrive_at(2000, &tasks[0]);
	assert_int_equal(stat_of(SB_STAT_OTHER_STATE), 1);
	leave_at(3000, &tasks[0], TASK_UNINTERRUPTIBLE);
	wake_at(4000, &tasks[0]);
	arrive_at(5000, &tasks[0]);
	assert_int_equal(weight_of_all(), 1000);
	assert_int_equal(weight_of(&tasks[0], SB_STATE_DISK), 1000);
	assert_int_equal(stat_of(SB_STAT_OTHER_STATE), 2);
}

static void test_who_is_asked_for(void **state)
{
	uint32_t tgid = 10, rule = SB_RULE_ALLOW;

	cfg_nr_allow_rules = 1;
	bpf_map_update_elem(&target_tgids, &tgid, &rule, BPF_ANY);
	leave_at(1000, &tasks[0], TASK_INTERRUPTIBLE);
	leave_at(1000, &tasks[1], TASK_INTERRUPTIBLE);
	arrive_at(3000, &tasks[0]);
	arrive_at(3000, &tasks[1]);
	assert_int_equal(weight_of(&tasks[0], SB_STATE_SLEEP), 2000);
	assert_int_equal(weight_of_all(), 2000);
}

/* No memory for the state of a thread: its waits are lost, and counted, but not before all had
 * one. */
static void test_no_state(void **state)
{
	struct task_struct stranger = tasks[0];

	sched_has_begun = 0;
	leave_at(1000, &stranger, TASK_INTERRUPTIBLE);
	assert_int_equal(stat_of(SB_STAT_TASK_FULL), 0);
	sched_has_begun = 1;
	leave_at(2000, &stranger, TASK_INTERRUPTIBLE);
	arrive_at(3000, &stranger);
	assert_int_equal(stat_of(SB_STAT_TASK_FULL), 1);
	assert_int_equal(shim_map_nr(&generation), 0);
}

/* Over many waits, the weight is what they took, but for less than one sample of each thread. */
static void test_every(void **state)
{
	uint64_t now_ns = 1000, total_ns = 0, ns;
	uint32_t i;

	cfg_sched_every_ns = sched_every_ns = 10000;
	for (i = 0; i < 2000; i++) {
		ns = bpf_get_prandom_u32() % 8000;
		leave_at(now_ns, &tasks[0], TASK_INTERRUPTIBLE);
		wake_at(now_ns + ns / 2, &tasks[0]);
		arrive_at(now_ns + ns, &tasks[0]);
		shim.task = &tasks[0];
		sched_arrived(NULL);
		total_ns += ns;
		now_ns += ns + 1000;
	}
	assert_in_range(weight_of_all(), total_ns - 10000, total_ns + 10000);
	assert_int_equal(weight_of_all() % 10000, 0);
	/* Both parts have their share. */
	assert_in_range(weight_of(&tasks[0], SB_STATE_SLEEP), total_ns / 2 - total_ns / 10,
			total_ns / 2 + total_ns / 10);
	/* One wait as long as many samples, up to now. */
	total_ns = weight_of_all();
	leave_at(now_ns, &tasks[0], TASK_INTERRUPTIBLE);
	settle_at(now_ns + 100000, &tasks[0]);
	assert_int_equal(weight_of_all(), total_ns + 100000);
}

/* A wait of @ns from @now_ns on. */
static void wait_for(uint64_t now_ns, struct task_struct *task, uint64_t ns)
{
	leave_at(now_ns, task, TASK_INTERRUPTIBLE);
	wake_at(now_ns + ns / 2, task);
	arrive_at(now_ns + ns, task);
	shim.task = task;
	sched_arrived(NULL);
}

/* --every grows while it runs: each thread's part is right on average, however short it waits in
 * all. */
static void test_every_grows(void **state)
{
	uint64_t total_ns = 0, now_ns = 1000, sum_ns = 0;
	uint32_t i, j;

	cfg_sched_every_ns = 1;
	for (i = 0; i < 4000; i++) {
		/* Anew, as if it were another thread. */
		bpf_task_storage_delete(&sched_tasks, &tasks[0]);
		bpf_task_storage_get(&sched_tasks, &tasks[0], NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
		for (j = 0; j < 4; j++) {
			sched_every_ns = 10000u << j;
			wait_for(now_ns, &tasks[0], 3000);
			now_ns += 5000;
			total_ns += 3000;
		}
	}
	sum_ns = weight_of_all();
	assert_in_range(sum_ns, total_ns - total_ns / 20, total_ns + total_ns / 20);
}

/* It is put into force, and taken back: waits end as they began, and nothing is missing. */
static void test_governed(void **state)
{
	uint64_t now_ns = 1000, total_ns = 0;
	uint32_t i;

	cfg_sched_is_governed = 1;
	sched_every_ns = 10000;
	wait_for(now_ns, &tasks[0], 7);
	assert_int_equal(weight_of_all(), 7); /* not yet */
	leave_at(2000, &tasks[1], TASK_INTERRUPTIBLE);
	sched_is_thinned = 1;
	arrive_at(2300, &tasks[1]); /* it has its stacks */
	assert_int_equal(weight_of_all(), 307);
	shim.task = &tasks[1];
	sched_arrived(NULL);
	assert_int_equal(weight_of_all(), 307);
	now_ns = 10000;
	for (i = 0; i < 2000; i++) {
		wait_for(now_ns, &tasks[0], 3000);
		now_ns += 4000;
		total_ns += 3000;
	}
	assert_in_range(weight_of_all(), 307 + total_ns - 10000, 307 + total_ns + 10000);
	assert_int_equal((weight_of_all() - 307) % 10000, 0);
	leave_at(now_ns, &tasks[1], TASK_INTERRUPTIBLE);
	leave_at(now_ns, &tasks[2], TASK_INTERRUPTIBLE);
	sched_is_thinned = 0;
	total_ns = weight_of_all();
	arrive_at(now_ns + 40000, &tasks[1]); /* it has none, and goes on as it began */
	shim.task = &tasks[1];
	sched_arrived(NULL);
	assert_int_equal(weight_of_all(), total_ns + 40000);
	settle_at(now_ns + 50000, &tasks[2]);
	assert_int_equal(weight_of_all(), total_ns + 90000);
	wait_for(now_ns + 60000, &tasks[1], 11);
	assert_int_equal(weight_of_all(), total_ns + 90011);
}

/* "wakeup": wake-ups that are no sample give their weight to others. */
static void test_wakeups_thinned(void **state)
{
	uint64_t now_ns = 1000, total_ns = 0, ns;
	struct sb_sample_key key;
	struct sb_count count;
	uint32_t i;

	cfg_sched_waker = SCHED_WAKER_WEIGHS;
	thin_weight = 50000;
	for (i = 0; i < 20000; i++) {
		unsigned long long ctx[] = { (uintptr_t)&tasks[0] };

		ns = i % 2 ? 1000 : 9000; /* in turn, by two wakers */
		leave_at(now_ns, &tasks[0], TASK_INTERRUPTIBLE);
		be(&tasks[1 + i % 2]);
		shim.now_ns = now_ns + ns;
		sched_waking(ctx);
		arrive_at(now_ns + ns + 100, &tasks[0]);
		total_ns += ns;
		now_ns += 20000;
	}
	assert_in_range(weight_of_all(), total_ns - total_ns / 20, total_ns + total_ns / 20);
	assert_in_range(weight_of(&tasks[1], SB_STATE_NONE), total_ns * 85 / 100,
			total_ns * 95 / 100);
	shim_map_at(&generation, 0, &key, &count);
	assert_int_equal(count.weight % 50000, 0);
	assert_true(stat_of(SB_STAT_SAMPLES) < 20000 / 8);
}

/* All time of a thread that is born and dies: in the queue, running with and without ticks,
 * blocked. */
static void test_wall_adds_up(void **state)
{
	struct bpf_perf_event_data tick = { .regs = { .cs = 0x10 } };
	unsigned long long ctx[] = { (uintptr_t)&tasks[0] };

	cfg_sched_wall = 1;
	be(&tasks[1]);
	shim.now_ns = 1000;
	sched_wakeup_new(ctx);
	arrive_at(2000, &tasks[0]);
	leave_at(3000, &tasks[0], TASK_INTERRUPTIBLE);
	wake_at(7000, &tasks[0]);
	arrive_at(8000, &tasks[0]);
	shim.now_ns = 9000;
	sched_tick(&tick);
	assert_in_range(weight_of(&tasks[0], SB_STATE_RUNNING), 2000, 2010);
	shim.now_ns = 9200;
	sched_exit(ctx);
	assert_in_range(sched_expected_ns, 8190, 8200);
	leave_at(9500, &tasks[0], TASK_DEAD);
	assert_in_range(sched_expected_ns, 8490, 8500);
	assert_in_range(weight_of_all(), sched_expected_ns - 10, sched_expected_ns);
	assert_int_equal(weight_of(&tasks[0], SB_STATE_RUNNING), 2500);
	/* Once only. */
	end_ns = 10000;
	settle_at(11000, &tasks[0]);
	assert_in_range(sched_expected_ns, 8490, 8500);
}

/* Running when the run begins, and when it ends. */
static void test_wall_of_a_running_thread(void **state)
{
	struct sched_task *st = find_task(&tasks[0]);

	cfg_sched_wall = 1;
	st->on_ns = st->born_ns = 1000;
	tasks[0].on_cpu = 1;
	settle_at(5000, &tasks[0]); /* a snapshot leaves it to the next tick */
	assert_int_equal(weight_of_all(), 0);
	end_ns = 8000;
	settle_at(9000, &tasks[0]);
	assert_int_equal(weight_of(&tasks[0], SB_STATE_RUNNING), 7000);
	assert_int_equal(sched_expected_ns, 7000);
}

static void test_wakeup(void **state)
{
	unsigned long long ctx[] = { (uintptr_t)&tasks[0] };
	const struct sb_event_object *object = NULL;
	uint32_t nr_bytes, nr_objects = 0, i;

	cfg_sched_waker = SCHED_WAKER_WEIGHS;
	strcpy(tasks[0].comm, "woken");
	for (i = 0; i < 2; i++) {
		leave_at(1000, &tasks[0], TASK_INTERRUPTIBLE);
		be(&tasks[1]);
		shim.now_ns = 5000;
		sched_waking(ctx);
		sched_waking(ctx); /* it is awake */
		arrive_at(7000, &tasks[0]);
	}
	assert_int_equal(weight_of(&tasks[1], SB_STATE_NONE), 8000);
	assert_int_equal(weight_of_all(), 8000);
	do {
		const struct sb_event *event = shim_ring_next(&events, &nr_bytes);

		if (!event)
			break;
		if (event->kind == SB_EVENT_OBJECT) {
			object = (const void *)event;
			nr_objects++;
		}
	} while (true);
	assert_int_equal(nr_objects, 1);
	assert_int_equal(object->kind, SB_OBJECT_TASK);
	assert_string_equal((const char *)(object + 1), "woken");
}

/* Wake tasks[0] while tasks[1] is the current task. Return: the sample's key. */
static struct sb_sample_key wake_from(int preempt, bool is_syscall)
{
	unsigned long long ctx[] = { (uintptr_t)&tasks[0] };
	struct sb_sample_key key;
	struct sb_count count;

	leave_at(1000, &tasks[0], TASK_INTERRUPTIBLE);
	be(&tasks[1]);
	shim.now_ns = 5000;
	percpu.hot.preempt_count = preempt;
#if defined(__TARGET_ARCH_x86)
	regs.orig_ax = is_syscall ? 1 : ~0ull;
	((struct pt_regs *)&regs)->orig_ax = regs.orig_ax; /* where our own type has it */
#endif
	sched_waking(ctx);
	percpu.hot.preempt_count = 1;
	arrive_at(7000, &tasks[0]);
	assert_int_equal(shim_map_nr(&generation), 1);
	shim_map_at(&generation, 0, &key, &count);
	shim_map_clear(&generation);
	return key;
}

static bool is_same_user_stack(struct sb_sample_key a, struct sb_sample_key b)
{
	return a.ustack.lo == b.ustack.lo && a.ustack.hi == b.ustack.hi;
}

/* An interrupt wakes, not the thread that it interrupted, whose stack need not be walked. */
static void test_woken_by_interrupt(void **state)
{
	struct sb_sample_key hard, soft, fault, call;

	cfg_sched_waker = SCHED_WAKER_WEIGHS;
	cfg_sides = SB_SIDE_USER | SB_SIDE_KERNEL;
	cfg_by = SB_BY_CGROUP;
	shim.cgroup_id = 77;
	tasks[1].mm = (void *)&tasks[1];
	hard = wake_from(0x00010001, true);
	assert_int_equal(hard.cgroup_id, 1);
	assert_string_equal(hard.comm, "[interrupt]");
	assert_int_equal(hard.tgid, 0);
	assert_false(hard.ustack.lo | hard.ustack.hi);
	fault = wake_from(0x00000001, false);
	call = wake_from(0x00000001, true);
	/* A softirq after an interrupt, or in a fault. */
	soft = wake_from(0x00000101, false);
	assert_int_equal(soft.tgid, 11);
	assert_false(is_same_user_stack(soft, fault));
	/* Perhaps the system call has raised it. */
	assert_true(is_same_user_stack(wake_from(0x00000101, true), call));
	/* Softirqs are disabled, and none runs. */
	assert_true(is_same_user_stack(wake_from(0x00000201, false), fault));
	cfg_by = 0;
}

/* The waker is the object of the blocked part, not of the time in the queue. */
static void test_offwake(void **state)
{
	unsigned long long ctx[] = { (uintptr_t)&tasks[0] };
	struct sb_sample_key key;
	struct sb_count count;
	uint32_t i;

	cfg_sched_waker = SCHED_WAKER_NAMED;
	leave_at(1000, &tasks[0], TASK_INTERRUPTIBLE);
	be(&tasks[1]);
	shim.now_ns = 4900;
	sched_waking(ctx);
	wake_at(5000, &tasks[0]);
	arrive_at(7000, &tasks[0]);
	assert_int_equal(shim_map_nr(&generation), 2);
	for (i = 0; i < 2; i++) {
		shim_map_at(&generation, i, &key, &count);
		assert_int_equal(!!key.object, key.state == SB_STATE_SLEEP);
	}
	/* The next wait has not been ended by it. */
	leave_at(8000, &tasks[0], TASK_INTERRUPTIBLE);
	settle_at(9000, &tasks[0]);
	shim_map_at(&generation, 2, &key, &count);
	assert_int_equal(key.object, 0);
	assert_int_equal(count.weight, 1000);
}

/* A thread comes to its CPU without a trace: the time that it ran says when. */
static void test_unseen_switch(void **state)
{
	cfg_sched_wall = 1;
	arrive_at(500, &tasks[0]);
	tasks[0].se.sum_exec_runtime = 500;
	leave_at(1000, &tasks[0], TASK_INTERRUPTIBLE);
	wake_at(5000, &tasks[0]);
	tasks[0].se.sum_exec_runtime = 3500;
	leave_at(9000, &tasks[0], TASK_UNINTERRUPTIBLE);
	assert_int_equal(weight_of(&tasks[0], SB_STATE_SLEEP), 4000);
	assert_int_equal(weight_of(&tasks[0], SB_STATE_RUNQUEUE), 1000);
	assert_int_equal(find_task(&tasks[0])->run_ns, 500 + 3000);
	assert_int_equal(stat_of(SB_STAT_UNSEEN), 1);
	arrive_at(9500, &tasks[0]);
	assert_int_equal(weight_of(&tasks[0], SB_STATE_DISK), 500);
}

static struct task_struct *moving;

/* It ran when it was looked at, and sleeps by the time it has its storage. */
static void fall_asleep(struct task_struct *task)
{
	if (task != moving)
		return;
	moving = NULL;
	bpf_task_storage_delete(&sched_tasks, task);
	leave_at(shim.now_ns + 10, task, TASK_INTERRUPTIBLE); /* there was none yet: not seen */
	task->nvcsw++;
	bpf_task_storage_get(&sched_tasks, task, &(struct sched_task){ .on_ns = shim.now_ns },
			     BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* The other way round. */
static void wake_up(struct task_struct *task)
{
	if (task != moving)
		return;
	moving = NULL;
	task->on_cpu = 1;
	task->__state = 0;
}

/* Threads that are switched while the run begins lose no wait, and get none that they have not. */
static void test_switched_while_adopted(void **state)
{
	struct bpf_iter_meta meta = {};
	struct bpf_iter__task ctx = { .meta = &meta };
	int i;

	sched_has_begun = 0;
	for (i = 0; i < 2; i++) {
		bpf_task_storage_delete(&sched_tasks, &tasks[i]);
		tasks[i].on_cpu = i == 0;
		tasks[i].__state = i == 0 ? 0 : TASK_INTERRUPTIBLE;
		ctx.task = moving = &tasks[i];
		shim.on_storage_made = i == 0 ? fall_asleep : wake_up;
		shim.now_ns = 1000;
		sched_begin(&ctx);
		shim.on_storage_made = NULL;
	}
	assert_in_range(find_task(&tasks[0])->from_ns, 1000, 2000);
	assert_int_equal(find_task(&tasks[1])->from_ns, 0);
	assert_in_range(find_task(&tasks[1])->on_ns, 1000, 2000);
	arrive_at(101000, &tasks[0]);
	assert_in_range(weight_of(&tasks[0], SB_STATE_SLEEP), 99000, 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_split_by_wakeup, setup),
		cmocka_unit_test_setup(test_states, setup),
		cmocka_unit_test_setup(test_dead_do_not_wait, setup),
		cmocka_unit_test_setup(test_clamped_to_end, setup),
		cmocka_unit_test_setup(test_settled_once, setup),
		cmocka_unit_test_setup(test_bounds, setup),
		cmocka_unit_test_setup(test_settled_under_max, setup),
		cmocka_unit_test_setup(test_settled_under_min, setup),
		cmocka_unit_test_setup(test_settled_under_min_every, setup),
		cmocka_unit_test_setup(test_wanted_states, setup),
		cmocka_unit_test_setup(test_who_is_asked_for, setup),
		cmocka_unit_test_setup(test_no_state, setup),
		cmocka_unit_test_setup(test_every, setup),
		cmocka_unit_test_setup(test_every_grows, setup),
		cmocka_unit_test_setup(test_governed, setup),
		cmocka_unit_test_setup(test_wakeups_thinned, setup),
		cmocka_unit_test_setup(test_wall_adds_up, setup),
		cmocka_unit_test_setup(test_wall_of_a_running_thread, setup),
		cmocka_unit_test_setup(test_wakeup, setup),
		cmocka_unit_test_setup(test_woken_by_interrupt, setup),
		cmocka_unit_test_setup(test_offwake, setup),
		cmocka_unit_test_setup(test_unseen_switch, setup),
		cmocka_unit_test_setup(test_switched_while_adopted, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
