// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Views "offcpu", "wall", "wakeup", "offwake": where threads wait. Weight: nanoseconds.
 *
 * A wait begins where a thread leaves its CPU (its stacks are taken there) and is accounted where
 * it comes back: first the part in which it was blocked, then, from its wake-up on, the part in
 * which it waited for a CPU. What is open is kept in the task's own storage, which is made where
 * threads are made, and for those that are there already by the iterator `sched_begin`; never where
 * they are switched, under the lock of the run queue.
 *
 * from_ns is the time up to which an open wait is accounted, and 0 when there is none. Whoever moves
 * it on by an atomic exchange has the time in between to account: the thread's return, or the
 * iterator `sched_settle`, which does it for waits that outlast the run, or a snapshot. No two waits
 * of a thread begin at one time, so a wait whose from_ns is unchanged is the same wait.
 *
 * With --every, nothing is taken where a thread leaves. The time that it waited is added up, from a
 * random phase on, and each time that so much has come together the wait in which it did is a sample
 * of that weight: a wait of any length has the weight that it took, on average. Its stacks are taken
 * when the thread is back: by the tracepoint at the end of the switch, where the kernel has one;
 * else the kernel's before it runs, and the user's where its system call returns (sys_exit).
 *
 * Where there is that tracepoint, user space may put --every into force while the run goes on, because
 * it costs too much, and take it back. Each wait is treated to its end as it was when it began.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/core/sb_sample.bpf.h"
#include "bpf/core/sb_util.bpf.h"

/* Of task_struct.__state, include/linux/sched.h. */
#define TASK_INTERRUPTIBLE   0x0001u
#define TASK_UNINTERRUPTIBLE 0x0002u
#define TASK_STOPPED_TRACED  (0x0004u | 0x0008u)
#define TASK_PARKED	     0x0040u
#define TASK_DEAD	     0x0080u
#define TASK_WAKING	     0x0200u
#define TASK_NOLOAD	     0x0400u
#define TASK_NEW	     0x0800u
#define TASK_FROZEN	     0x8000u /* since 6.1, by freezers other than that of cgroup2 */
#define TASK_IDLE	     (TASK_UNINTERRUPTIBLE | TASK_NOLOAD)

/* A thread that is there already is looked at so often, until it is not switched meanwhile. */
#define NR_MAKE_TRIES	     8
#define NR_ADOPT_TRIES	     4
#define WALL_NOT_SAMPLED     1 /* sb_sample_key.op: ran, and no tick fell into it */

enum {
	SCHED_WAKER_NONE,
	SCHED_WAKER_WEIGHS, /* "wakeup": its stacks have the time that the woken slept */
	SCHED_WAKER_NAMED,  /* "offwake": its stacks are the object of the wait */
};

const volatile __u32 cfg_sched_wall = 0; /* time on a CPU as well */
const volatile __u32 cfg_sched_waker = SCHED_WAKER_NONE;
const volatile __u64 cfg_sched_every_ns = 0;	 /* as it was asked for; 0: all waits */
const volatile __u32 cfg_sched_is_governed = 0;	 /* sched_is_thinned may be set */
const volatile __u32 cfg_sched_pays_at_once = 1; /* there is a tracepoint after the switch */
const volatile __u64 cfg_sched_min_ns = 0;
const volatile __u64 cfg_sched_max_ns = ~0ull;
const volatile __u32 cfg_sched_states = ~0u; /* bits 1 << enum sb_task_state */

/* All threads that were there have a state of their own. */
__u32 sched_has_begun = 0;
/* --every as it is now, by user space. sched_every_ns is not 0 where there may be such waits. */
__u64 sched_every_ns = 0;
__u32 sched_is_thinned = 0;
/* Of all threads, the time from their beginning, or the run's, to their end, or the run's. */
__u64 sched_expected_ns = 0;

/* What the stacks of a wait that is over are to be accounted with: the two parts of it. */
struct sched_owed {
	__u64 ns[2];
	__u64 part_ns[2];
	__u32 state[2];
};

struct sched_task {
	struct sb_capture capture; /* who waits, and from where */
	__u64 from_ns;		   /* see above */
	__u64 began_ns;		   /* of the wait */
	__u64 exec_ns;		   /* time on CPUs up to then, of task_struct.se */
	__u64 woken_ns;		   /* 0: not yet */
	__u64 waker;		   /* object; 0: not known */
	__u64 on_ns;		   /* wall: on its CPU, and not accounted since; 0: it is not */
	__u64 run_ns;		   /* wall: ran before that, and was not accounted */
	__u64 born_ns;		   /* wall: expected since; 0: it was not asked for yet */
	__u64 phase_ns;		   /* --every: waited since the last sample, */
	__u64 phase_every_ns;	   /* when it was so much; 0: none was drawn yet */
	struct sb_capture ran;	   /* wall: what the last tick fell into; now_ns 0: none did */
	struct sched_owed owed;	   /* --every: zero, nothing */
	__u64 owed_ip, owed_sp;	   /* --every: of the user, where the wait was */
	__u32 state;		   /* enum sb_task_state that the wait began with */
	__u32 is_throttled;	   /* woken into a cgroup that had used up its quota */
	__u32 is_unseen;	   /* the open wait has no stacks: --every */
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sched_task);
} sched_tasks SEC(".maps");

/* Whether the thread that comes to this CPU owes stacks. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} sched_owing SEC(".maps");

/* Threads that owe their user stack. */
__u32 sched_nr_owing = 0;

/* What iterators put together is too large for a BPF stack. */
struct sched_record {
	struct sched_task fresh;
	struct sb_asleep asleep;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sched_record);
} sched_records SEC(".maps");

static struct sched_task *find_task(struct task_struct *task)
{
	return bpf_task_storage_get(&sched_tasks, task, 0, 0);
}

static bool is_wanted(__u32 state)
{
	return cfg_sched_states & (1u << state);
}

static bool is_blocked(__u32 state)
{
	return state != SB_STATE_RUNQUEUE && state != SB_STATE_THROTTLED;
}

/* Up to 6.17 whole run queues are throttled, from then on tasks. */
static bool is_throttled(const struct task_struct *task)
{
	if (bpf_core_field_exists(task->throttled))
		return task->throttled;
	if (bpf_core_field_exists(struct sched_entity, cfs_rq) &&
	    bpf_core_field_exists(struct cfs_rq, throttle_count))
		return BPF_CORE_READ(task, se.cfs_rq, throttle_count) > 0;
	return false;
}

/* By cgroup2, where it would have returned to user mode; its state is that of a sleep. Who waits for a
 * child of vfork() is marked so, too, as it may count as frozen: kernel/fork.c, wait_for_vfork_done(). */
static bool is_frozen(const struct task_struct *task, __u32 state)
{
	return (state & TASK_INTERRUPTIBLE) && bpf_core_field_exists(task->frozen) &&
	       BPF_CORE_READ_BITFIELD_PROBED(task, frozen);
}

/* What the thread that leaves its CPU, or has left it, waits for; SB_STATE_NONE: it is dead. */
static __u32 state_of(const struct task_struct *task, bool is_preempted)
{
	__u32 state = task->__state;

	if (is_preempted || !state || (state & TASK_NEW))
		return is_throttled(task) ? SB_STATE_THROTTLED : SB_STATE_RUNQUEUE;
	if (state & TASK_DEAD)
		return SB_STATE_NONE;
	/* Somebody was quicker, and wakes it while it leaves: its state is overwritten. */
	if (state & TASK_WAKING)
		return BPF_CORE_READ_BITFIELD_PROBED(task, sched_contributes_to_load)
			       ? SB_STATE_DISK
			       : SB_STATE_SLEEP;
	if ((state & (TASK_STOPPED_TRACED | TASK_FROZEN)) || is_frozen(task, state))
		return SB_STATE_STOPPED;
	if ((state & TASK_PARKED) || (state & TASK_IDLE) == TASK_IDLE)
		return SB_STATE_IDLE;
	return state & TASK_INTERRUPTIBLE ? SB_STATE_SLEEP : SB_STATE_DISK;
}

static __u64 clamp_to_end(__u64 now_ns)
{
	__u64 end_ns = sb_end_ns();

	return end_ns && end_ns < now_ns ? end_ns : now_ns;
}

/* The threads that are there already are found one after the other, and the run begins when all are. */
static __u64 clamp_to_begin(__u64 since_ns)
{
	__u64 first_ns = sb_begin_ns();

	return since_ns < first_ns ? first_ns : since_ns;
}

/* Return: whether a part of a wait that took @ns is asked for; if not, why is counted. */
static bool passes(__u32 state, __u64 ns)
{
	__u32 why = SB_STAT_MAX;

	if (!is_wanted(state))
		why = SB_STAT_OTHER_STATE;
	else if (ns < cfg_sched_min_ns)
		why = SB_STAT_UNDER_MIN;
	else if (ns > cfg_sched_max_ns)
		why = SB_STAT_OVER_MAX;
	else
		return true;
	sb_stat_add(why, 1);
	return false;
}

/* The two parts of an open wait that are to be accounted, [from, mid) and [mid, until). */
struct parts {
	__u64 from_ns, mid_ns, until_ns;
	__u64 blocked_ns, queued_ns; /* how long the parts took in all */
	__u32 queue_state;
};

static void split(const struct sched_task *st, __u64 from_ns, __u64 until_ns, struct parts *ret)
{
	__u64 mid_ns = until_ns;

	if (!is_blocked(st->state))
		mid_ns = st->began_ns;
	else if (st->woken_ns && st->woken_ns < until_ns)
		mid_ns = st->woken_ns;
	ret->blocked_ns = mid_ns - st->began_ns;
	ret->queued_ns = until_ns - mid_ns;
	ret->queue_state = is_blocked(st->state) ? SB_STATE_RUNQUEUE : st->state;
	if (st->is_throttled)
		ret->queue_state = SB_STATE_THROTTLED;
	ret->from_ns = from_ns;
	ret->mid_ns = mid_ns < from_ns ? from_ns : mid_ns;
	ret->until_ns = until_ns;
}

/* @capture is the one of @slot. */
static void account_part(struct sb_capture *capture, __u32 slot, __u32 state, __u64 weight,
			 __u64 ns)
{
	capture->key.state = state;
	capture->key.log2_ns = sb_log2_of(ns);
	sb_account_slot(slot, weight);
}

/* The object of the blocked part: whoever ended it is not to blame for what came then. */
static void name_waker(struct sb_capture *capture, __u64 waker)
{
	if (cfg_sched_waker == SCHED_WAKER_NAMED)
		capture->key.object = waker;
}

static void account_wait(struct sb_capture *capture, __u32 slot, const struct sched_task *st,
			 __u64 from_ns, __u64 now_ns)
{
	__u64 until_ns = clamp_to_end(now_ns);
	struct parts parts;

	from_ns = clamp_to_begin(from_ns);
	if (until_ns <= from_ns)
		return;
	split(st, from_ns, until_ns, &parts);
	capture->now_ns = now_ns;
	name_waker(capture, st->waker);
	if (parts.from_ns < parts.mid_ns && passes(st->state, parts.blocked_ns))
		account_part(capture, slot, st->state, parts.mid_ns - parts.from_ns,
			     parts.blocked_ns);
	name_waker(capture, 0);
	if (parts.mid_ns < parts.until_ns && passes(parts.queue_state, parts.queued_ns))
		account_part(capture, slot, parts.queue_state, parts.until_ns - parts.mid_ns,
			     parts.queued_ns);
}

static void start_wait(struct sched_task *st, __u32 state, __u64 now_ns, bool is_unseen)
{
	st->is_unseen = is_unseen;
	st->state = state;
	st->is_throttled = 0;
	st->woken_ns = 0;
	st->began_ns = now_ns;
	st->from_ns = now_ns;
}

/* The wait of @st begins, with what @capture has of it. */
static void open_wait(struct sched_task *st, const struct sb_capture *capture, __u32 state,
		      __u64 now_ns)
{
	st->capture = *capture;
	start_wait(st, state, now_ns, cfg_sched_every_ns != 0);
}

/* --every */

static bool has_unseen(void)
{
	return cfg_sched_every_ns || cfg_sched_is_governed;
}

/* Waits that begin now have no stacks. */
static bool is_thinned(void)
{
	return cfg_sched_every_ns || (cfg_sched_is_governed && sched_is_thinned);
}

/*
 * The phase of @st in what --every is now. When that changes a new one is drawn, of which nothing that
 * came before knows: to go on with the old one would give each thread half the difference too little.
 */
static __u64 phase_of(struct sched_task *st, __u64 every_ns)
{
	__u64 random;

	if (st->phase_every_ns == every_ns)
		return st->phase_ns;
	random = (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();
	st->phase_ns = every_ns ? random % every_ns : 0;
	st->phase_every_ns = every_ns;
	return st->phase_ns;
}

static bool is_owing(const struct sched_owed *owed)
{
	return owed->ns[0] || owed->ns[1];
}

/* Another @ns of waiting, in @part of a wait. */
static void owe(struct sched_task *st, struct sched_owed *owed, __u32 part, __u32 state, __u64 ns)
{
	__u64 every_ns = sched_every_ns, phase_ns;

	if (!every_ns)
		return;
	phase_ns = phase_of(st, every_ns) + ns;
	st->phase_ns = phase_ns % every_ns;
	owed->ns[part] += phase_ns - st->phase_ns;
	owed->state[part] = state;
}

static void owe_wait(struct sched_task *st, struct sched_owed *owed, const struct parts *parts)
{
	if (parts->from_ns < parts->mid_ns && passes(st->state, parts->blocked_ns)) {
		owe(st, owed, 0, st->state, parts->mid_ns - parts->from_ns);
		owed->part_ns[0] = parts->blocked_ns;
	}
	if (parts->mid_ns < parts->until_ns && passes(parts->queue_state, parts->queued_ns)) {
		owe(st, owed, 1, parts->queue_state, parts->until_ns - parts->mid_ns);
		owed->part_ns[1] = parts->queued_ns;
	}
}

static void pay(struct sb_capture *capture, __u32 slot, struct sched_owed *owed)
{
	if (owed->ns[0])
		account_part(capture, slot, owed->state[0], owed->ns[0], owed->part_ns[0]);
	if (owed->ns[1])
		account_part(capture, slot, owed->state[1], owed->ns[1], owed->part_ns[1]);
	owed->ns[0] = owed->ns[1] = 0;
}

static void read_user_place(struct task_struct *task, __u64 *ret_ip, __u64 *ret_sp)
{
	struct sb_regs *regs = (struct sb_regs *)bpf_task_pt_regs(task);

#if defined(__TARGET_ARCH_x86)
	bpf_probe_read_kernel(ret_ip, sizeof(*ret_ip), &regs->ip);
#elif defined(__TARGET_ARCH_arm64)
	bpf_probe_read_kernel(ret_ip, sizeof(*ret_ip), &regs->pc);
#endif
	bpf_probe_read_kernel(ret_sp, sizeof(*ret_sp), &regs->sp);
}

/* The kernel's stack, now; the user's, when it is current. */
static void begin_paying(struct task_struct *next, struct sched_task *st)
{
	struct sb_capture *capture;

	if (sb_begin_task(SB_SCRATCH_SWITCH, next, &capture)) {
		st->owed.ns[0] = st->owed.ns[1] = 0;
		return;
	}
	sb_take_kernel_of(next, SB_SCRATCH_SWITCH);
	st->capture = *capture;
	read_user_place(next, &st->owed_ip, &st->owed_sp);
	__sync_fetch_and_add(&sched_nr_owing, 1);
}

/* The current task has not run in user mode since the wait that it owes for, or has, as @is_same says:
 * then its stack is not what it was. */
static void end_paying(void *ctx, struct task_struct *task, struct sched_task *st, bool is_same)
{
	struct sb_capture *capture;

	__sync_fetch_and_add(&sched_nr_owing, -1);
	sb_start_in_kernel(SB_SCRATCH_SWITCH);
	if (sb_begin(SB_SCRATCH_SWITCH, 0, &capture)) {
		st->owed.ns[0] = st->owed.ns[1] = 0;
		return;
	}
	if (is_same)
		sb_take_stacks(ctx, SB_SCRATCH_SWITCH, SB_SIDE_USER);
	else
		sb_cut_user(SB_SCRATCH_SWITCH, task, SB_STACK_RAN);
	capture->key.kstack = st->capture.key.kstack;
	pay(capture, SB_SCRATCH_SWITCH, &st->owed);
}

/* It leaves again, and has not paid yet. */
static void pay_late(void *ctx, struct task_struct *prev, struct sched_task *st)
{
	struct sb_capture *capture;
	__u64 ip, sp;

	if (!cfg_sched_pays_at_once) {
		read_user_place(prev, &ip, &sp);
		end_paying(ctx, prev, st, ip == st->owed_ip && sp == st->owed_sp);
		return;
	}
	/* A new thread, which comes to its CPU by another way: its wait has no stacks. */
	if (!sb_begin(SB_SCRATCH_SWITCH, 0, &capture))
		pay(capture, SB_SCRATCH_SWITCH, &st->owed);
}

static bool has_bounds(void)
{
	return cfg_sched_min_ns || cfg_sched_max_ns != ~0ull || cfg_sched_states != ~0u;
}

/* Of whoever leaves: most of it comes back without a sample. What is left out is counted, so then it
 * must be known whose it is. */
static void leave_unseen(void *ctx, struct task_struct *prev, struct sched_task *st, __u32 state,
			 __u64 now_ns)
{
	struct sb_capture *capture;

	if (!st) {
		if (sched_has_begun)
			sb_stat_add(SB_STAT_TASK_FULL, 1);
		return;
	}
	/* Where it is governed, new threads are seen, and all others have paid when they came. */
	if (cfg_sched_every_ns && is_owing(&st->owed))
		pay_late(ctx, prev, st);
	if (has_bounds() && sb_begin(SB_SCRATCH_SWITCH, 0, &capture))
		st->from_ns = 0;
	else
		start_wait(st, state, now_ns, true);
}

static void arrive_unseen(struct task_struct *next, struct sched_task *st, __u64 from_ns,
			  __u64 now_ns)
{
	__u64 until_ns = clamp_to_end(now_ns);
	struct parts parts;
	__u32 zero = 0, *owing;

	from_ns = clamp_to_begin(from_ns);
	if (until_ns <= from_ns)
		return;
	split(st, from_ns, until_ns, &parts);
	owe_wait(st, &st->owed, &parts);
	if (!is_owing(&st->owed))
		return;
	owing = bpf_map_lookup_elem(&sched_owing, &zero);
	if (!cfg_sched_pays_at_once)
		begin_paying(next, st);
	else if (owing)
		*owing = 1;
}

/* Time on a CPU. A tick may interrupt all of this, if it comes by an NMI. */

/* It has run until @now_ns. */
static void stop_running(struct sched_task *st, __u64 now_ns)
{
	__u64 on_ns = __sync_lock_test_and_set(&st->on_ns, 0);

	if (!on_ns)
		return;
	if (!st->born_ns)
		st->born_ns = on_ns;
	on_ns = clamp_to_begin(on_ns);
	if (on_ns < now_ns)
		__sync_fetch_and_add(&st->run_ns, now_ns - on_ns);
}

/* What is left of the time on a CPU when no more tick comes; @capture has no stacks. */
static void account_rest(struct sb_capture *capture, __u32 slot, struct sched_task *st)
{
	__u64 run_ns = __sync_lock_test_and_set(&st->run_ns, 0);

	if (!run_ns)
		return;
	capture->key.state = SB_STATE_RUNNING;
	capture->key.op = WALL_NOT_SAMPLED;
	sb_account_slot(slot, run_ns);
	capture->key.op = 0;
}

/* No more of its time is expected. */
static void end_life(struct sched_task *st, __u64 now_ns)
{
	__u64 born_ns = __sync_lock_test_and_set(&st->born_ns, 0), since_ns;

	since_ns = clamp_to_begin(born_ns);
	if (born_ns && since_ns < now_ns)
		__sync_fetch_and_add(&sched_expected_ns, now_ns - since_ns);
}

/* The last switch of a thread, which iterators may not find any more, so not only up to the end. */
static void die(struct task_struct *prev, struct sched_task *st, __u64 now_ns)
{
	struct sb_capture *capture;

	if (!cfg_sched_wall || !st || sb_begin_task(SB_SCRATCH_SWITCH, prev, &capture))
		return;
	now_ns = clamp_to_end(now_ns);
	stop_running(st, now_ns);
	account_rest(capture, SB_SCRATCH_SWITCH, st);
	end_life(st, now_ns);
}

/* Return: whether a wait in this state can have a part that is asked for. */
static bool is_wanted_part(__u32 state)
{
	return is_wanted(state) || (is_blocked(state) && is_wanted(SB_STATE_RUNQUEUE));
}

static void forget(struct sched_task *st)
{
	if (!st)
		return;
	st->from_ns = 0;
	st->on_ns = 0;
	st->run_ns = 0;
}

static void arrive_seen(struct sched_task *st, __u64 from_ns, __u64 now_ns)
{
	struct sb_capture *capture = sb_capture_of(SB_SCRATCH_SWITCH);

	if (!capture)
		return;
	*capture = st->capture;
	account_wait(capture, SB_SCRATCH_SWITCH, st, from_ns, now_ns);
}

/*
 * The thread leaves its CPU, and was never seen to come: there are kernels that do not trace what
 * some of their threads do, switches away from them included. The time that it ran since says when it
 * came. With --every, the stack of the wait is gone. A function of its own for the verifier's sake.
 */
__noinline int sched_mend(__u64 now_ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sched_task *st = find_task(task);
	__u64 from_ns, came_ns, ran_ns;

	if (!st)
		return 0;
	from_ns = came_ns = __sync_lock_test_and_set(&st->from_ns, 0);
	ran_ns = BPF_CORE_READ(task, se.sum_exec_runtime) - st->exec_ns;
	if (ran_ns < now_ns - from_ns)
		came_ns = now_ns - ran_ns;
	sb_stat_add(SB_STAT_UNSEEN, 1);
	if (!(has_unseen() && st->is_unseen) && cfg_sched_waker != SCHED_WAKER_WEIGHS)
		arrive_seen(st, from_ns, came_ns);
	if (cfg_sched_wall)
		st->on_ns = came_ns;
	return 0;
}

/* Return: whether stacks were taken. */
static bool leave(void *ctx, struct task_struct *prev, bool is_preempted, __u64 now_ns)
{
	__u32 state = state_of(prev, is_preempted);
	struct sched_task *st = find_task(prev);
	struct sb_capture *capture;

	if (st && st->from_ns)
		sched_mend(now_ns);
	if (state == SB_STATE_NONE) {
		die(prev, st, now_ns);
		return false;
	}
	if (clamp_to_end(now_ns) < now_ns)
		return false; /* it ran up to the end, as `sched_settle` will find */
	if (is_thinned()) {
		leave_unseen(ctx, prev, st, state, now_ns);
		return false;
	}
	sb_start_in_kernel(SB_SCRATCH_SWITCH);
	if (sb_begin(SB_SCRATCH_SWITCH, 0, &capture)) {
		forget(st);
		return false;
	}
	if (!st) {
		if (sched_has_begun)
			sb_stat_add(SB_STAT_TASK_FULL, 1);
		return false;
	}
	if (cfg_sched_wall)
		stop_running(st, now_ns);
	if (!is_wanted_part(state)) {
		st->from_ns = 0;
		sb_stat_add(SB_STAT_OTHER_STATE, 1);
		return false;
	}
	if (cfg_sched_waker != SCHED_WAKER_WEIGHS)
		sb_take_stacks(ctx, SB_SCRATCH_SWITCH, SB_SIDE_USER | SB_SIDE_KERNEL);
	open_wait(st, capture, state, now_ns);
	st->exec_ns = BPF_CORE_READ(prev, se.sum_exec_runtime);
	return cfg_sched_waker != SCHED_WAKER_WEIGHS;
}

static void arrive(struct task_struct *next, __u64 now_ns)
{
	struct sched_task *st = find_task(next);
	__u64 from_ns;

	if (!st)
		return;
	if (cfg_sched_wall && clamp_to_end(now_ns) == now_ns)
		st->on_ns = now_ns;
	if (!st->from_ns)
		return;
	from_ns = __sync_lock_test_and_set(&st->from_ns, 0);
	if (from_ns && has_unseen() && st->is_unseen)
		arrive_unseen(next, st, from_ns, now_ns);
	else if (from_ns && cfg_sched_waker != SCHED_WAKER_WEIGHS)
		arrive_seen(st, from_ns, now_ns);
	st->waker = 0;
}

SEC("?tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool is_preempted, struct task_struct *prev, struct task_struct *next)
{
	__u64 now_ns = bpf_ktime_get_ns();

	/* The idle tasks neither wait nor run. */
	if (next->pid)
		arrive(next, now_ns);
	if (prev->pid && leave(ctx, prev, is_preempted, now_ns))
		sb_spent(now_ns);
	else
		sb_spent_some(now_ns);
	return 0;
}

/* At the end of a switch, in the thread that came. */
SEC("?tp_btf/sched_exit_tp")
int sched_arrived(void *ctx)
{
	__u32 zero = 0, *owing = bpf_map_lookup_elem(&sched_owing, &zero);
	struct sb_capture *capture;
	struct sched_task *st;

	if (!owing || !*owing)
		return 0;
	*owing = 0;
	st = find_task(bpf_get_current_task_btf());
	if (!st || !is_owing(&st->owed))
		return 0;
	sb_start_in_kernel(SB_SCRATCH_SWITCH);
	if (sb_capture(ctx, SB_SCRATCH_SWITCH, &capture)) {
		st->owed.ns[0] = st->owed.ns[1] = 0;
		return 0;
	}
	pay(capture, SB_SCRATCH_SWITCH, &st->owed);
	sb_spent(capture->now_ns);
	return 0;
}

SEC("?raw_tp/sys_exit")
int sched_sys_exit(void *ctx)
{
	struct task_struct *task;
	struct sched_task *st;

	if (!sched_nr_owing)
		return 0;
	task = bpf_get_current_task_btf();
	st = find_task(task);
	if (st && is_owing(&st->owed))
		end_paying(ctx, task, st, true);
	return 0;
}

/* The thread is in a run queue; it has left its CPU by now, however early it was woken. */
SEC("?tp_btf/sched_wakeup")
int BPF_PROG(sched_wakeup, struct task_struct *task)
{
	struct sched_task *st = find_task(task);

	if (!st || !st->from_ns)
		return 0;
	st->woken_ns = bpf_ktime_get_ns();
	if (!bpf_core_field_exists(task->throttled))
		st->is_throttled = is_throttled(task);
	sb_spent_some(st->woken_ns);
	return 0;
}

/* In copy_process(): threads of the kernel's own making are not seen by sched_process_fork. */
SEC("?tp_btf/task_newtask")
int BPF_PROG(sched_new, struct task_struct *task)
{
	struct sched_task *st;

	st = bpf_task_storage_get(&sched_tasks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!st)
		sb_stat_add(SB_STAT_TASK_FULL, 1);
	return 0;
}

/* A new thread waits for its first CPU. It has no stack yet. */
SEC("?tp_btf/sched_wakeup_new")
int BPF_PROG(sched_wakeup_new, struct task_struct *task)
{
	struct sched_task *st = find_task(task);
	struct sb_capture *capture;
	__u64 now_ns;

	if (!st || sb_begin_task(SB_SCRATCH_WAKE, task, &capture))
		return 0;
	now_ns = capture->now_ns;
	if (clamp_to_end(now_ns) < now_ns)
		return 0;
	if (cfg_sched_wall)
		st->born_ns = now_ns;
	open_wait(st, capture, SB_STATE_RUNQUEUE, now_ns);
	return 0;
}

/* Whoever is not asked for under its old name has run for itself until now. */
SEC("?tp_btf/sched_process_exec")
int BPF_PROG(sched_exec, struct task_struct *task)
{
	struct sched_task *st = find_task(task);

	if (st && !st->born_ns && st->on_ns)
		st->on_ns = bpf_ktime_get_ns();
	return 0;
}

/*
 * A thread that ends is soon not found any more by iterators, and its last switch may come much later,
 * when the run is over: what is expected of it up to now is put down now.
 */
SEC("?tp_btf/sched_process_exit")
int BPF_PROG(sched_exit, struct task_struct *task)
{
	__u64 now_ns = bpf_ktime_get_ns();
	struct sched_task *st = find_task(task);

	if (!st || !st->born_ns || clamp_to_end(now_ns) < now_ns)
		return 0;
	end_life(st, now_ns);
	st->born_ns = now_ns;
	return 0;
}

/* All time that the thread was on a CPU since its last tick goes to the stack of this one. */
SEC("?perf_event")
int sched_tick(struct bpf_perf_event_data *ctx)
{
	struct sched_task *st = find_task(bpf_get_current_task_btf());
	struct sb_capture *capture;
	__u64 on_ns, run_ns, half_ns;

	if (!st || !st->on_ns)
		return 0;
	sb_start_at(ctx, SB_SCRATCH_TIMER);
	if (sb_capture(ctx, SB_SCRATCH_TIMER, &capture))
		return 0;
	on_ns = __sync_lock_test_and_set(&st->on_ns, capture->now_ns);
	if (!st->born_ns)
		st->born_ns = on_ns;
	run_ns = __sync_lock_test_and_set(&st->run_ns, 0);
	on_ns = clamp_to_begin(on_ns);
	if (on_ns < capture->now_ns)
		run_ns += capture->now_ns - on_ns;
	if (!run_ns)
		return 0;
	capture->key.state = SB_STATE_RUNNING;
	/*
	 * Half of the time between two ticks is the one's, half the other's: that before a tick alone is the
	 * longer the later it comes in what the thread does between two sleeps.
	 */
	half_ns = st->ran.now_ns ? run_ns / 2 : 0;
	if (half_ns)
		sb_account_more(&st->ran, half_ns);
	sb_account(capture, run_ns - half_ns);
	st->ran = *capture;
	sb_spent(capture->now_ns);
	return 0;
}

/*
 * The identity of the waker, and its stacks. The idle task wakes nobody, interrupts do; who else was
 * interrupted, and has nothing to do with it, is known by the names of the frames, in user space.
 */
static int capture_waker(void *ctx, struct sb_capture **ret_capture)
{
	const char interrupt_comm[SB_COMM_LEN] = "[interrupt]";
	const struct task_struct *task = bpf_get_current_task_btf();

	sb_start_in_kernel(SB_SCRATCH_WAKE);
	if (sb_begin(SB_SCRATCH_WAKE, SB_BEGIN_ANYBODY, ret_capture))
		return -ENOENT;
	if (!task->pid)
		__builtin_memcpy((*ret_capture)->key.comm, interrupt_comm, SB_COMM_LEN);
	return sb_take_stacks(ctx, SB_SCRATCH_WAKE, SB_SIDE_USER | SB_SIDE_KERNEL);
}

static __u64 hash_comm(__u64 hash, const char *comm)
{
	__u64 words[2];

	__builtin_memcpy(words, comm, sizeof(words));
	hash = sb_hash_word(hash, words[0]);
	hash = sb_hash_word(hash, words[1]);
	return hash | 1;
}

/* An object in the making. sb_object_ship() is told its size at run time, and takes the largest. */
struct sched_object {
	struct sb_event_object event;
	union {
		struct sb_object_task task;
		struct sb_object_waker waker;
		__u8 room[SB_OBJECT_BYTES_MAX];
	};
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sched_object);
} sched_objects SEC(".maps");

static __u64 ship_object(struct sched_object *object, __u32 kind, __u32 nr_bytes, __u64 id)
{
	object->event.kind = kind;
	object->event.nr_bytes = nr_bytes;
	object->event.id = id;
	if (sb_object_known(id) == SB_OBJECT_UNSEEN)
		sb_object_ship(&object->event);
	return id;
}

/* Return: the id of the object that is this waker. It is the same whenever it wakes from there. */
static __u64 object_of_waker(const struct sb_capture *capture)
{
	const struct sb_sample_key *key = &capture->key;
	__u32 zero = 0;
	struct sched_object *object = bpf_map_lookup_elem(&sched_objects, &zero);
	__u64 hash = SB_OBJECT_WAKER;

	if (!object)
		return 0;
	object->waker.kstack = key->kstack;
	object->waker.ustack = key->ustack;
	object->waker.istack = key->istack;
	object->waker.start_ns = key->start_ns;
	object->waker.now_ns = capture->now_ns;
	object->waker.tgid = key->tgid;
	object->waker.exec_id = key->exec_id;
	__builtin_memcpy(object->waker.comm, key->comm, sizeof(key->comm));
	hash = sb_hash_word(hash, key->kstack.lo);
	hash = sb_hash_word(hash, key->kstack.hi);
	hash = sb_hash_word(hash, key->ustack.lo);
	hash = sb_hash_word(hash, key->ustack.hi);
	hash = sb_hash_word(hash, key->istack.lo);
	hash = sb_hash_word(hash, key->istack.hi);
	hash = sb_hash_word(hash, key->start_ns);
	hash = sb_hash_word(hash, (__u64)key->tgid << 32 | key->exec_id);
	return ship_object(object, SB_OBJECT_WAKER, sizeof(object->waker),
			   hash_comm(hash, key->comm));
}

static __u64 object_of_woken(const struct task_struct *task)
{
	__u32 zero = 0;
	struct sched_object *object = bpf_map_lookup_elem(&sched_objects, &zero);

	if (!object)
		return 0;
	BPF_CORE_READ_STR_INTO(&object->task.comm, task, comm);
	return ship_object(object, SB_OBJECT_TASK, sizeof(object->task),
			   hash_comm(SB_OBJECT_TASK, object->task.comm));
}

/* The time that @task slept, up to now, goes to whoever wakes it. */
static void account_to_waker(void *ctx, const struct task_struct *task, struct sched_task *st)
{
	__u64 from_ns = __sync_lock_test_and_set(&st->from_ns, 0), until_ns, weight;
	__u64 now_ns = bpf_ktime_get_ns();
	struct sb_capture *capture;

	until_ns = clamp_to_end(now_ns);
	if (from_ns)
		from_ns = clamp_to_begin(from_ns);
	if (!from_ns || until_ns <= from_ns || !passes(st->state, until_ns - from_ns))
		return;
	weight = sb_thin(until_ns - from_ns);
	if (!weight) {
		sb_spent_some(now_ns);
		return;
	}
	if (!capture_waker(ctx, &capture)) {
		capture->key.object = object_of_woken(task);
		account_part(capture, SB_SCRATCH_WAKE, SB_STATE_NONE, weight, until_ns - from_ns);
	}
	sb_spent(now_ns);
}

/* In the context of the waker. Only who is asked for has an open wait. */
SEC("?tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *task)
{
	struct sched_task *st = find_task(task);
	struct sb_capture *capture;

	if (!st || !st->from_ns || !is_blocked(st->state))
		return 0;
	if (cfg_sched_waker == SCHED_WAKER_WEIGHS) {
		account_to_waker(ctx, task, st);
	} else if (!capture_waker(ctx, &capture)) {
		st->waker = object_of_waker(capture);
		sb_spent(capture->now_ns);
	}
	return 0;
}

/* An int up to 7.1, then a byte: a plain read is one of the size that we were compiled with. */
static bool is_running(const struct task_struct *task)
{
	return bpf_core_field_exists(task->on_cpu) && BPF_CORE_READ_BITFIELD_PROBED(task, on_cpu);
}

static __u64 nr_switches(const struct task_struct *task)
{
	return task->nvcsw + task->nivcsw;
}

/* Return: 0, or the error of a full buffer: the kernel will come with this task again. */
static long take_sleeper(struct seq_file *seq, struct task_struct *task, struct sb_asleep *asleep)
{
	sb_take_kernel_of(task, SB_SCRATCH_ITER);
	if (sb_take_asleep(task, SB_SCRATCH_ITER, asleep))
		return 0;
	return bpf_seq_write(seq, asleep, sizeof(*asleep));
}

/*
 * Without memory; or somebody was preempted on this CPU while they made one for any map of this kind, such as
 * another stackbpf's iterator: kernel/bpf/bpf_task_storage.c, bpf_task_storage_trylock(). So user space
 * runs the iterator twice, and what the first pass could not make is not counted.
 */
static struct sched_task *make_task(struct task_struct *task, struct sched_task *fresh)
{
	struct sched_task *st =
		bpf_task_storage_get(&sched_tasks, task, fresh, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!st && sched_has_begun)
		sb_stat_add(SB_STAT_TASK_FULL, 1);
	return st;
}

/*
 * A thread that is there already: its wait begins with the run. Its state is made with all that is
 * to be in it: from then on it is the switches' to write. One that is switched between the look at it
 * and that moment (this iterator may be preempted there) got the state of another time.
 * Return: whether it was not.
 */
static bool adopt(struct seq_file *seq, struct task_struct *task, struct sched_record *record)
{
	__u64 nr = nr_switches(task), now_ns;
	struct sched_task *fresh = &record->fresh;
	bool is_accepted, was_running = is_running(task);
	struct sb_capture *capture;

	__builtin_memset(fresh, 0, sizeof(*fresh));
	is_accepted = !sb_begin_task(SB_SCRATCH_ITER, task, &capture);
	now_ns = is_accepted ? capture->now_ns : bpf_ktime_get_ns();
	if (is_accepted)
		fresh->born_ns = now_ns;
	if (was_running) {
		fresh->on_ns = now_ns;
	} else if (is_accepted) {
		if (!cfg_sched_every_ns && cfg_sched_waker != SCHED_WAKER_WEIGHS &&
		    take_sleeper(seq, task, &record->asleep))
			return true;
		open_wait(fresh, capture, state_of(task, false), now_ns);
		fresh->exec_ns = BPF_CORE_READ(task, se.sum_exec_runtime);
	}
	return !make_task(task, fresh) ||
	       (nr == nr_switches(task) && was_running == is_running(task));
}

static void adopt_at_last(struct seq_file *seq, struct task_struct *task,
			  struct sched_record *record)
{
	int i;

	for (i = 0; i < NR_ADOPT_TRIES; i++) {
		if (adopt(seq, task, record))
			return;
		if (i + 1 < NR_ADOPT_TRIES && bpf_task_storage_delete(&sched_tasks, task))
			return;
	}
}

SEC("?iter/task")
int sched_begin(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct sched_record *record;
	__u32 zero = 0;

	if (!task) {
		sched_has_begun = 1;
		return 0;
	}
	record = bpf_map_lookup_elem(&sched_records, &zero);
	if (record && task->pid && !task->exit_state && !find_task(task))
		adopt_at_last(ctx->meta->seq, task, record);
	return 0;
}

/* At the end, not at a snapshot: there, the next tick has it. */
static void settle_run(struct sb_capture *capture, struct sched_task *st, __u64 end_ns)
{
	stop_running(st, end_ns);
	account_rest(capture, SB_SCRATCH_ITER, st);
	end_life(st, end_ns);
}

/* What is owed for a wait that goes on. The kernel comes again with a task that there was no room for
 * in the output, so nothing is written to @st before that. */
static void settle_unseen(struct seq_file *seq, struct task_struct *task, struct sched_task *st,
			  struct sb_capture *capture, __u64 now_ns)
{
	__u32 zero = 0;
	struct sched_record *record = bpf_map_lookup_elem(&sched_records, &zero);
	__u64 from_ns = st->from_ns, every_ns;
	struct sched_owed owed = {};
	struct parts parts;

	if (!record || !from_ns || clamp_to_begin(from_ns) >= now_ns)
		return;
	every_ns = sched_every_ns;
	if (now_ns - from_ns >= every_ns - phase_of(st, every_ns) &&
	    take_sleeper(seq, task, &record->asleep))
		return;
	if (__sync_val_compare_and_swap(&st->from_ns, from_ns, now_ns) != from_ns)
		return;
	split(st, clamp_to_begin(from_ns), now_ns, &parts);
	owe_wait(st, &owed, &parts);
	pay(capture, SB_SCRATCH_ITER, &owed);
}

SEC("?iter/task")
int sched_settle(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct sb_capture *capture;
	struct sched_task *st;
	__u64 from_ns, now_ns;

	if (!task || !task->pid)
		return 0;
	st = find_task(task);
	if (!st || sb_begin_task(SB_SCRATCH_ITER, task, &capture))
		return 0;
	now_ns = clamp_to_end(capture->now_ns);
	if (cfg_sched_wall && now_ns < capture->now_ns)
		settle_run(capture, st, now_ns);
	if (has_unseen() && st->is_unseen) {
		if (!is_running(task))
			settle_unseen(ctx->meta->seq, task, st, capture, now_ns);
		return 0;
	}
	from_ns = st->from_ns;
	if (!from_ns || from_ns >= now_ns || is_running(task))
		return 0;
	*capture = st->capture;
	if (__sync_val_compare_and_swap(&st->from_ns, from_ns, now_ns) == from_ns)
		account_wait(capture, SB_SCRATCH_ITER, st, from_ns, now_ns);
	return 0;
}

/* The three ids at the beginning of a key: the kernel comes again with a task there was no room for. */
static void put_stacks(struct seq_file *seq, struct sb_capture *capture)
{
	if (capture->now_ns)
		bpf_seq_write(seq, &capture->key, offsetof(struct sb_sample_key, object));
}

/* Of waits that go on, and of runs: they were shipped when these began, and are named at the end. */
SEC("?iter/task")
int sched_pending(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct sched_task *st;

	if (!task)
		return 0;
	st = find_task(task);
	if (!st)
		return 0;
	put_stacks(ctx->meta->seq, &st->capture);
	put_stacks(ctx->meta->seq, &st->ran);
	return 0;
}
