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
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "sb_sample.bpf.h"
#include "sb_util.bpf.h"

/* Of task_struct.__state, include/linux/sched.h. */
#define TASK_INTERRUPTIBLE   0x0001u
#define TASK_UNINTERRUPTIBLE 0x0002u
#define TASK_STOPPED_TRACED  (0x0004u | 0x0008u)
#define TASK_PARKED	     0x0040u
#define TASK_DEAD	     0x0080u
#define TASK_WAKING	     0x0200u
#define TASK_NOLOAD	     0x0400u
#define TASK_NEW	     0x0800u
#define TASK_IDLE	     (TASK_UNINTERRUPTIBLE | TASK_NOLOAD)

#define WALL_NOT_SAMPLED     1 /* sb_sample_key.op: ran, and no tick fell into it */

const volatile bool cfg_sched_stacks = true; /* of those that leave a CPU */
const volatile bool cfg_sched_wall = false;  /* time on a CPU as well */
const volatile __u64 cfg_sched_min_ns = 0;
const volatile __u64 cfg_sched_max_ns = ~0ull;
const volatile __u32 cfg_sched_states = ~0u; /* bits 1 << enum sb_task_state */

/* All threads that were there have a state of their own. */
__u32 sched_has_begun = 0;
/* Of all threads, the time from their beginning, or the run's, to their end, or the run's. */
__u64 sched_expected_ns = 0;

struct sched_task {
	struct sb_capture capture; /* who waits, and from where */
	__u64 from_ns;		   /* see above */
	__u64 began_ns;		   /* of the wait */
	__u64 woken_ns;		   /* 0: not yet */
	__u64 on_ns;		   /* on its CPU, and not accounted since; 0: it is not */
	__u64 run_ns;		   /* ran before that, and was not accounted */
	__u64 born_ns;		   /* counted since; 0: it was not asked for yet */
	__u32 state;		   /* enum sb_task_state that the wait began with */
	__u32 is_throttled;	   /* woken into a cgroup that had used up its quota */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sched_task);
} sched_tasks SEC(".maps");

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
	if (state & TASK_STOPPED_TRACED)
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

static void account_part(struct sb_capture *capture, __u32 state, __u64 weight, __u64 ns)
{
	capture->key.state = state;
	capture->key.log2_ns = sb_log2_of(ns);
	sb_account(capture, weight);
}

static void account_wait(struct sb_capture *capture, const struct sched_task *st, __u64 from_ns,
			 __u64 now_ns)
{
	__u64 until_ns = clamp_to_end(now_ns);
	struct parts parts;

	if (until_ns <= from_ns)
		return;
	split(st, from_ns, until_ns, &parts);
	capture->now_ns = now_ns;
	if (parts.from_ns < parts.mid_ns && passes(st->state, parts.blocked_ns))
		account_part(capture, st->state, parts.mid_ns - parts.from_ns, parts.blocked_ns);
	if (parts.mid_ns < parts.until_ns && passes(parts.queue_state, parts.queued_ns))
		account_part(capture, parts.queue_state, parts.until_ns - parts.mid_ns,
			     parts.queued_ns);
}

/* The wait of @st begins, with what @capture has of it. */
static void open_wait(struct sched_task *st, const struct sb_capture *capture, __u32 state,
		      __u64 now_ns)
{
	st->capture = *capture;
	st->state = state;
	st->is_throttled = 0;
	st->woken_ns = 0;
	st->began_ns = now_ns;
	st->from_ns = now_ns;
}

static void leave(void *ctx, struct task_struct *prev, bool is_preempted, __u64 now_ns)
{
	struct sched_task *st = find_task(prev);
	struct sb_capture *capture;
	__u32 state;

	sb_start_in_kernel(SB_SCRATCH_SWITCH);
	if (sb_begin(SB_SCRATCH_SWITCH, 0, &capture)) {
		if (st)
			st->from_ns = 0;
		return;
	}
	state = state_of(prev, is_preempted);
	if (state == SB_STATE_NONE)
		return;
	if (!st) {
		if (sched_has_begun)
			sb_stat_add(SB_STAT_TASK_FULL, 1);
		return;
	}
	/* Only a blocked thread gets into another state before it is back. */
	if (!is_wanted(state) && !(is_blocked(state) && is_wanted(SB_STATE_RUNQUEUE))) {
		st->from_ns = 0;
		sb_stat_add(SB_STAT_OTHER_STATE, 1);
		return;
	}
	if (cfg_sched_stacks)
		sb_take_stacks(ctx, SB_SCRATCH_SWITCH, SB_SIDE_USER | SB_SIDE_KERNEL);
	open_wait(st, capture, state, now_ns);
	sb_spent(now_ns);
}

static void arrive(struct task_struct *next, __u64 now_ns)
{
	struct sched_task *st = find_task(next);
	__u64 from_ns;

	if (!st || !st->from_ns)
		return;
	from_ns = __sync_lock_test_and_set(&st->from_ns, 0);
	if (from_ns)
		account_wait(&st->capture, st, from_ns, now_ns);
}

SEC("?tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool is_preempted, struct task_struct *prev, struct task_struct *next)
{
	__u64 now_ns = bpf_ktime_get_ns();

	/* The idle tasks neither wait nor run. */
	if (next->pid)
		arrive(next, now_ns);
	if (prev->pid)
		leave(ctx, prev, is_preempted, now_ns);
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
	return 0;
}

/* In copy_process(): threads of the kernel's own making are not seen by sched_process_fork. */
SEC("?tp_btf/task_newtask")
int BPF_PROG(sched_new, struct task_struct *task)
{
	if (!bpf_task_storage_get(&sched_tasks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE))
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
	open_wait(st, capture, SB_STATE_RUNQUEUE, now_ns);
	return 0;
}

static bool is_running(const struct task_struct *task)
{
	return bpf_core_field_exists(task->on_cpu) && task->on_cpu;
}

static __u64 nr_switches(const struct task_struct *task)
{
	return task->nvcsw + task->nivcsw;
}

/* Return: 0, or the error of a full buffer: the kernel will come with this task again. */
static long take_sleeper(struct seq_file *seq, struct task_struct *task, struct sb_asleep *asleep)
{
	if (!cfg_sched_stacks)
		return 0;
	sb_take_kernel_of(task, SB_SCRATCH_ITER);
	if (sb_take_asleep(task, SB_SCRATCH_ITER, asleep))
		return 0;
	return bpf_seq_write(seq, asleep, sizeof(*asleep));
}

/*
 * A thread that is there already: its wait begins with the run. Its state is made with all that is
 * to be in it: from then on it is the switches' to write.
 */
static void adopt(struct seq_file *seq, struct task_struct *task, struct sched_record *record)
{
	__u64 nr = nr_switches(task), now_ns;
	struct sb_capture *capture;
	struct sched_task *st;

	__builtin_memset(&record->fresh, 0, sizeof(record->fresh));
	now_ns = bpf_ktime_get_ns();
	if (is_running(task)) {
		record->fresh.on_ns = now_ns;
	} else if (!sb_begin_task(SB_SCRATCH_ITER, task, &capture)) {
		if (take_sleeper(seq, task, &record->asleep))
			return;
		open_wait(&record->fresh, capture, state_of(task, false), capture->now_ns);
		now_ns = capture->now_ns;
	}
	st = bpf_task_storage_get(&sched_tasks, task, &record->fresh,
				  BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!st)
		sb_stat_add(SB_STAT_TASK_FULL, 1);
	else if (nr != nr_switches(task) || is_running(task))
		__sync_val_compare_and_swap(&st->from_ns, now_ns, 0); /* it is back already */
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
		adopt(ctx->meta->seq, task, record);
	return 0;
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
	from_ns = st->from_ns;
	if (!from_ns || from_ns >= now_ns || is_running(task))
		return 0;
	*capture = st->capture;
	if (__sync_val_compare_and_swap(&st->from_ns, from_ns, now_ns) == from_ns)
		account_wait(capture, st, from_ns, now_ns);
	return 0;
}
