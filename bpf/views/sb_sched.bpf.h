/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What sched.bpf.c knows about a thread, the filters for its waits, and how a wait is accounted. A
 * wait lasts from when a thread leaves its CPU until it is back on one. It has two parts: blocked,
 * until the thread is woken, and queued, in which it waits for a CPU; each is a sample. Only
 * sched.bpf.c and the headers beside it include this: it defines maps. Everything runs in BPF
 * programs. No pointer may be NULL, and none is kept; what is lost or left out is counted where
 * that happens. Times are CLOCK_MONOTONIC, in nanoseconds.
 *
 * Order: sb_begin(), sb_take_stacks() and open_wait() when a thread leaves its CPU; when it is
 * back, the caller sets st->from_ns to 0 by an atomic exchange, copies st->capture into that of its
 * slot, and calls account_wait() with the value that it got.
 */
#ifndef SB_SCHED_BPF_H
#define SB_SCHED_BPF_H

#include "bpf/core/sb_sample.bpf.h"
#include "bpf/core/sb_span.bpf.h"
#include "bpf/core/sb_util.bpf.h"

/* Bits of task_struct.__state, see include/linux/sched.h. */
#define TASK_INTERRUPTIBLE   0x0001u
#define TASK_UNINTERRUPTIBLE 0x0002u
#define TASK_STOPPED_TRACED  (0x0004u | 0x0008u)
#define TASK_PARKED	     0x0040u
#define TASK_DEAD	     0x0080u
#define TASK_WAKING	     0x0200u
#define TASK_NOLOAD	     0x0400u
#define TASK_NEW	     0x0800u
#define TASK_FROZEN	     0x8000u /* since 6.1; the freezer of cgroup2 does not set it */
#define TASK_IDLE	     (TASK_UNINTERRUPTIBLE | TASK_NOLOAD)

#define WALL_NOT_SAMPLED     1 /* sb_sample_key.op: the thread ran, and no timer tick sampled it */

enum {
	SCHED_WAKER_NONE,
	/* "wakeup": the stacks of the waker get the time that the woken thread slept */
	SCHED_WAKER_WEIGHS,
	SCHED_WAKER_NAMED, /* "offwake": the stacks of the waker are the object of the wait */
};

const volatile __u32 cfg_sched_wall = 0; /* account the time on CPUs, too */
const volatile __u32 cfg_sched_waker = SCHED_WAKER_NONE;
const volatile __u64 cfg_sched_every_ns = 0;	 /* --every as given by the user; 0: all waits */
const volatile __u32 cfg_sched_is_governed = 0;	 /* sched_is_thinned may be set */
const volatile __u32 cfg_sched_pays_at_once = 1; /* the kernel has a tracepoint after the switch */
const volatile __u64 cfg_sched_min_ns = 0;
const volatile __u64 cfg_sched_max_ns = ~0ull;
const volatile __u32 cfg_sched_states = ~0u; /* bits 1 << enum sb_task_state */

/* All threads that existed when the run began have their storage. */
__u32 sched_has_begun = 0;
/* The current --every, written by user space. sched_every_ns is not 0 if there may be sampled
 * waits. */
__u64 sched_every_ns = 0;
__u32 sched_is_thinned = 0;
/* The lifetime of all threads within the run, added up. */
__u64 sched_expected_ns = 0;

/* Samples of a wait that is over, whose stacks are still to be taken: one of each part of it. */
struct sched_owed {
	__u64 ns[2];	  /* weights; 0: nothing is owed, and the rest means nothing */
	__u64 part_ns[2]; /* how long the whole part took */
	__u32 state[2];
};

struct sched_task {
	struct sb_capture capture; /* identity and stacks of the open wait */
	__u64 from_ns;		   /* see the essay of sched.bpf.c */
	__u64 began_ns;		   /* when the wait began */
	__u64 exec_ns;		   /* task_struct.se.sum_exec_runtime at that time */
	__u64 woken_ns;		   /* 0: not yet */
	__u64 waker;		   /* object; 0: not known */
	__u64 on_ns;	/* wall: on its CPU, and accounted up to this time; 0: not on a CPU */
	__u64 run_ns;	/* wall: time on CPUs before that, not accounted yet */
	__u64 born_ns;	/* wall: its lifetime counts from here; 0: no match of the filters yet */
	__u64 phase_ns; /* --every: time waited since the last sample */
	__u64 phase_every_ns;	/* the --every that phase_ns was drawn for; 0: not drawn yet */
	struct sb_capture ran;	/* wall: the sample of the last tick; now_ns 0: there was none */
	struct sched_owed owed; /* --every */
	__u64 owed_ip, owed_sp; /* --every: user registers during the wait */
	__u32 state;		/* enum sb_task_state at the beginning of the wait */
	__u32 is_throttled;	/* at its wake-up, its cgroup had used up its CPU quota */
	__u32 is_unseen;	/* --every: the open wait has no stacks */
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sched_task);
} sched_tasks SEC(".maps");

/* 1 if the thread that is being switched in owes stacks. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} sched_owing SEC(".maps");

/* Number of threads that owe their user stack. */
__u32 sched_nr_owing = 0;

/* Scratch memory of the iterators: too large for a BPF stack. */
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

/* Return: what is known of @task, borrowed from the map and valid until the program ends; NULL:
 * nothing. */
static struct sched_task *find_task(struct task_struct *task)
{
	return bpf_task_storage_get(&sched_tasks, task, 0, 0);
}

/* Return: whether --state asks for waits of @state (enum sb_task_state). */
static bool is_wanted(__u32 state)
{
	return cfg_sched_states & (1u << state);
}

/* Return: whether a thread in @state waits for something else than a CPU. */
static bool is_blocked(__u32 state)
{
	return state != SB_STATE_RUNQUEUE && state != SB_STATE_THROTTLED;
}

/* Return: whether the CPU quota of its cgroup is used up. Up to Linux 6.17 whole run queues are
 * throttled, later single tasks. */
static bool is_throttled(const struct task_struct *task)
{
	if (bpf_core_field_exists(task->throttled))
		return task->throttled;
	if (bpf_core_field_exists(struct sched_entity, cfs_rq) &&
	    bpf_core_field_exists(struct cfs_rq, throttle_count))
		return BPF_CORE_READ(task, se.cfs_rq, throttle_count) > 0;
	return false;
}

/*
 * Return: whether the task is frozen; @state: its task_struct.__state. The freezer of cgroup2 stops
 * a task where it returns to user mode, and its state is that of a sleep. A task that waits for a
 * child of vfork() is marked in the same way, because it may count as frozen: see
 * wait_for_vfork_done() in kernel/fork.c.
 */
static bool is_frozen(const struct task_struct *task, __u32 state)
{
	return (state & TASK_INTERRUPTIBLE) && bpf_core_field_exists(task->frozen) &&
	       BPF_CORE_READ_BITFIELD_PROBED(task, frozen);
}

/*
 * Return: what @task, which leaves its CPU or has left it, waits for (enum sb_task_state);
 * SB_STATE_NONE: it is dead. @is_preempted: it did not leave the CPU by itself.
 */
static __u32 state_of(const struct task_struct *task, bool is_preempted)
{
	__u32 state = task->__state;

	if (is_preempted || !state || (state & TASK_NEW))
		return is_throttled(task) ? SB_STATE_THROTTLED : SB_STATE_RUNQUEUE;
	if (state & TASK_DEAD)
		return SB_STATE_NONE;
	/* It is being woken while it leaves, and its state has been overwritten already. */
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

/* Return: @now_ns, but not after the end of the run, if that is set. */
static __u64 clamp_to_end(__u64 now_ns)
{
	__u64 end_ns = sb_end_ns();

	return end_ns && end_ns < now_ns ? end_ns : now_ns;
}

/* Return: @since_ns, but not before the beginning of the run. The iterator needs time to find the
 * existing threads; the run begins when it has found all. */
static __u64 clamp_to_begin(__u64 since_ns)
{
	__u64 first_ns = sb_begin_ns();

	return since_ns < first_ns ? first_ns : since_ns;
}

/*
 * Return: whether --state, --min and --max want a part of a wait, in @state, that took @ns. If not,
 * the reason is counted, so ask once for each part.
 */
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

/* The two parts of a wait that are to be accounted: blocked [from, mid) and queued [mid, until). */
struct parts {
	__u64 from_ns, mid_ns, until_ns;
	__u64 blocked_ns, queued_ns; /* the whole parts, accounted time included */
	__u32 queue_state;
};

/*
 * Split the open wait of @st into its two parts, of which the time from @from_ns up to @until_ns,
 * which is later, is to be accounted; either part may be empty. A thread that nobody has woken is
 * blocked up to @until_ns; one whose state is not is_blocked(), such as a preempted one, is queued
 * from the beginning. All of *@ret is set.
 */
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

/*
 * Return: whether it is not known yet if --min and --max will want a part of a wait that is still
 * open and has taken @ns so far: it is shorter than --min, or --max is given, with which no open
 * part is decided, however long it is. A snapshot does not account such a part; the end of the run
 * does not ask.
 */
static bool is_undecided(__u64 ns)
{
	return ns < cfg_sched_min_ns || cfg_sched_max_ns != ~0ull;
}

/*
 * For a wait of @st that is open at @now_ns, while the run goes on. Return: the time up to which it
 * can be accounted. That is @now_ns. But if --min or --max may still leave out the last part of the
 * wait, it is the time at which that part began. The wait has been accounted up to @from_ns; if the
 * result is not later, the caller accounts nothing yet.
 */
static __u64 decided_until(const struct sched_task *st, __u64 from_ns, __u64 now_ns)
{
	struct parts parts;

	if (!is_undecided(0) || from_ns >= now_ns)
		return now_ns;
	split(st, from_ns, now_ns, &parts);
	if (parts.mid_ns == now_ns) /* still blocked */
		return is_undecided(parts.blocked_ns) ? from_ns : now_ns;
	return is_undecided(parts.queued_ns) ? parts.mid_ns : now_ns;
}

/*
 * Account one part of a wait, which was in @state (enum sb_task_state). The caller has applied the
 * filters before, by passes(). @capture: the capture of @slot (enum sb_scratch_slot), with identity
 * and stacks; @weight: nanoseconds that are accounted; @ns: how long the whole part took, for
 * --distr.
 */
static void account_part(struct sb_capture *capture, __u32 slot, __u32 state, __u64 weight,
			 __u64 ns)
{
	capture->key.state = state;
	capture->key.log2_ns = sb_log2_of(ns);
	sb_account_slot(slot, weight);
}

/* In "offwake", set the object of @capture to @waker, 0 for none. The waker is the object of the
 * blocked part only: it is not responsible for the time in the run queue. */
static void name_waker(struct sb_capture *capture, __u64 waker)
{
	if (cfg_sched_waker == SCHED_WAKER_NAMED)
		capture->key.object = waker;
}

/*
 * Account both parts of the open wait of @st, from @from_ns up to @now_ns, within the run and as
 * the filters want them. @capture: the capture of @slot, with identity and stacks; its now_ns,
 * state, log2_ns, and in "offwake" object are overwritten. @st is unchanged.
 */
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

/* Begin a wait of @st, a thread's value in sched_tasks, at @now_ns in @state (enum sb_task_state).
 * @is_unseen: its stacks are not taken now, but when the thread is back, if a sample is owed then.
 * Identity, stacks, waker and exec_ns are not set here. open_wait() and leave_unseen()
 * (sb_sched_every.bpf.h) call it. */
static void start_wait(struct sched_task *st, __u32 state, __u64 now_ns, bool is_unseen)
{
	st->is_unseen = is_unseen;
	st->state = state;
	st->is_throttled = 0;
	st->woken_ns = 0;
	st->began_ns = now_ns;
	st->from_ns = now_ns;
}

/* Begin a wait of @st in @state (enum sb_task_state) at @now_ns, with the identity and the stacks
 * in @capture, which is copied. With --every it counts as one without stacks. The caller sets
 * st->exec_ns, unless the thread is new. */
static void open_wait(struct sched_task *st, const struct sb_capture *capture, __u32 state,
		      __u64 now_ns)
{
	st->capture = *capture;
	start_wait(st, state, now_ns, cfg_sched_every_ns != 0);
}

#endif
