// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The programs of the views "offcpu", "wall", "wakeup" and "offwake", which show where threads
 * wait. The weight is in nanoseconds.
 *
 * A wait begins when a thread leaves its CPU, and that is when its stacks are taken. It is
 * accounted when the thread comes back, in two parts: the time in which it was blocked, and, from
 * its wake-up on, the time in which it waited for a CPU. Open waits are kept in task local storage
 * (struct sched_task in sb_sched.bpf.h). The storage of a new thread is made when the thread is
 * made, and that of an existing thread by the iterator `sched_begin`. It is never made during a
 * switch, where the lock of the run queue is held.
 *
 * sched_task.from_ns is the time up to which an open wait has been accounted; it is 0 when no wait
 * is open. Whoever changes it by an atomic exchange must account the time between the two values:
 * the switch by which the thread returns, or the iterator `sched_settle`, which accounts waits that
 * are still open at the end of the run or at a snapshot. At a snapshot it leaves a part as it is
 * that is shorter than --min, because the part may still become long enough, and with --max every
 * open part; all of it is accounted, or left out, when that is decided. Two waits of a thread never
 * begin at the same time, so an unchanged from_ns means the same wait.
 *
 * How --every samples waits is described in sb_sched_every.bpf.h.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/views/sb_sched.bpf.h"
#include "bpf/views/sb_sched_every.bpf.h"
#include "bpf/views/sb_sched_waker.bpf.h"

/*
 * Time on CPUs. A tick that comes by an NMI can interrupt any of this.
 */

/* The thread has run until @now_ns. */
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

/* Account time on CPUs that no tick will sample any more. @capture: without stacks */
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

/* The lifetime of the thread ends at @now_ns. */
static void end_life(struct sched_task *st, __u64 now_ns)
{
	__u64 born_ns = __sync_lock_test_and_set(&st->born_ns, 0), since_ns;

	since_ns = clamp_to_begin(born_ns);
	if (born_ns && since_ns < now_ns)
		__sync_fetch_and_add(&sched_expected_ns, now_ns - since_ns);
}

/* The last switch of a thread. Iterators may not find it any more, so all is accounted here. */
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

/* Return: whether the filters can want a part of a wait in this state. */
static bool is_wanted_part(__u32 state)
{
	return is_wanted(state) || (is_blocked(state) && is_wanted(SB_STATE_RUNQUEUE));
}

/* The wait that begins at @now_ns is left out. With spans the thread's time on CPUs is counted all
 * the same, because each tick stands for the time since the last one, wherever that was. */
static void forget(struct sched_task *st, __u64 now_ns)
{
	if (!st)
		return;
	st->from_ns = 0;
	if (cfg_spans) {
		stop_running(st, now_ns);
		return;
	}
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
 * The thread leaves its CPU, but its arrival was not seen: some kernels do not trace certain
 * threads, nor the switches away from them. When it arrived follows from the time that it has run
 * since. With
 * --every, the stack of the wait is lost. This is a global function, so that the verifier checks it
 * on its own.
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
		return false; /* the run is over; `sched_settle` accounts the time up to its end */
	if (is_thinned()) {
		leave_unseen(ctx, prev, st, state, now_ns);
		return false;
	}
	sb_start_in_kernel(SB_SCRATCH_SWITCH);
	if (sb_begin(SB_SCRATCH_SWITCH, 0, &capture)) {
		forget(st, now_ns);
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

	/* Idle tasks neither wait nor run. */
	if (next->pid)
		arrive(next, now_ns);
	if (prev->pid && leave(ctx, prev, is_preempted, now_ns))
		sb_spent(now_ns);
	else
		sb_spent_some(now_ns);
	return 0;
}

/* At the end of a switch, in the thread that was switched in. */
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

/* The thread is in a run queue. It has left its CPU by now, even if it was woken before that. */
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

/* Called in copy_process(). sched_process_fork is not called for kernel threads. */
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

/* A thread that did not match the filters under its old name is accounted from now on. */
SEC("?tp_btf/sched_process_exec")
int BPF_PROG(sched_exec, struct task_struct *task)
{
	struct sched_task *st = find_task(task);

	if (st && !st->born_ns && st->on_ns)
		st->on_ns = bpf_ktime_get_ns();
	return 0;
}

/*
 * Iterators soon do not find a thread that ends, and its last switch may come much later, when the
 * run is over. So its lifetime is accounted up to now.
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

/* A tick outside of spans has the time since the last one, which is left out. */
static void tick_outside(struct sched_task *st)
{
	__sync_lock_test_and_set(&st->on_ns, bpf_ktime_get_ns());
	__sync_lock_test_and_set(&st->run_ns, 0);
	st->ran.now_ns = 0;
}

/*
 * The CPU time that the thread has used since its last tick is divided between the stack of that
 * tick and the stack of this one. With spans, part of that time can be outside of them, so a tick
 * is worth the period of the timer.
 */
SEC("?perf_event")
int sched_tick(struct bpf_perf_event_data *ctx)
{
	struct sched_task *st = find_task(bpf_get_current_task_btf());
	__u64 now_ns = bpf_ktime_get_ns(), period_ns = cfg_spans ? sb_ticks_ns(now_ns) : 0;
	struct sb_capture *capture;
	__u64 on_ns, run_ns, half_ns;

	if (!st || !st->on_ns)
		return 0;
	sb_start_at(ctx, SB_SCRATCH_TIMER);
	if (sb_capture_at(ctx, SB_SCRATCH_TIMER, now_ns, &capture)) {
		if (cfg_spans)
			tick_outside(st);
		return 0;
	}
	capture->key.state = SB_STATE_RUNNING;
	if (period_ns) {
		sb_account(capture, period_ns);
		sb_spent(capture->now_ns);
		return 0;
	}
	on_ns = __sync_lock_test_and_set(&st->on_ns, capture->now_ns);
	if (!st->born_ns)
		st->born_ns = on_ns;
	run_ns = __sync_lock_test_and_set(&st->run_ns, 0);
	on_ns = clamp_to_begin(on_ns);
	if (on_ns < capture->now_ns)
		run_ns += capture->now_ns - on_ns;
	if (!run_ns)
		return 0;
	/*
	 * Each of the two ticks gets half of the time between them. If the later one got all, code
	 * that runs late between two sleeps would get too much.
	 */
	half_ns = st->ran.now_ns ? run_ns / 2 : 0;
	if (half_ns)
		sb_account_more(&st->ran, half_ns);
	sb_account(capture, run_ns - half_ns);
	st->ran = *capture;
	sb_spent(capture->now_ns);
	return 0;
}

/* How often an existing thread is tried again if it is switched meanwhile. */
#define NR_ADOPT_TRIES 4

static __u64 nr_switches(const struct task_struct *task)
{
	return task->nvcsw + task->nivcsw;
}

/* Return: 0; or the error of a full buffer, and then the kernel calls the iterator for this task
 * again. */
static long take_sleeper(struct seq_file *seq, struct task_struct *task, struct sb_asleep *asleep)
{
	sb_take_kernel_of(task, SB_SCRATCH_ITER);
	if (sb_take_asleep(task, SB_SCRATCH_ITER, asleep))
		return 0;
	return bpf_seq_write(seq, asleep, sizeof(*asleep));
}

/*
 * This fails without memory, or if another user of task storage was preempted on this CPU, such as
 * the iterator of another stackbpf (bpf_task_storage_trylock() in kernel/bpf/bpf_task_storage.c).
 * So user space runs the iterator twice, and failures are only counted in the second pass.
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
 * Begin the wait of a thread that exists already. Its storage is made complete, because from then
 * on the switches write to it. This iterator may be preempted, and the thread may be switched
 * between the look at its state and the making of its storage.
 * Return: false if that happened: the storage is of an earlier state.
 */
static bool adopt(struct seq_file *seq, struct task_struct *task, struct sched_record *record)
{
	__u64 nr = nr_switches(task), now_ns;
	struct sched_task *fresh = &record->fresh;
	bool is_accepted, was_running = sb_is_running(task);
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
	       (nr == nr_switches(task) && was_running == sb_is_running(task));
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

/* For the end of the run. At a snapshot, the next tick accounts this time. */
static void settle_run(struct sb_capture *capture, struct sched_task *st, __u64 end_ns)
{
	stop_running(st, end_ns);
	account_rest(capture, SB_SCRATCH_ITER, st);
	end_life(st, end_ns);
}

/*
 * Account the samples of a wait that is still open, up to @until_ns. Nothing is written to @st
 * before the output had room: otherwise the kernel calls the iterator for this task again.
 */
static void settle_unseen(struct seq_file *seq, struct task_struct *task, struct sched_task *st,
			  __u64 from_ns, __u64 until_ns)
{
	__u32 zero = 0;
	struct sched_record *record = bpf_map_lookup_elem(&sched_records, &zero);
	struct sb_capture *capture = sb_capture_of(SB_SCRATCH_ITER);
	__u64 every_ns = sched_every_ns;
	struct sched_owed owed = {};
	struct parts parts;

	if (!record || !capture)
		return;
	if (until_ns - from_ns >= every_ns - phase_of(st, every_ns) &&
	    take_sleeper(seq, task, &record->asleep))
		return;
	if (__sync_val_compare_and_swap(&st->from_ns, from_ns, until_ns) != from_ns)
		return;
	split(st, clamp_to_begin(from_ns), until_ns, &parts);
	owe_wait(st, &owed, &parts);
	pay(capture, SB_SCRATCH_ITER, &owed);
}

SEC("?iter/task")
int sched_settle(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct sb_capture *capture;
	struct sched_task *st;
	__u64 from_ns, until_ns;
	bool is_over;

	if (!task || !task->pid)
		return 0;
	st = find_task(task);
	if (!st || sb_begin_task(SB_SCRATCH_ITER, task, &capture))
		return 0;
	until_ns = clamp_to_end(capture->now_ns);
	is_over = until_ns < capture->now_ns;
	/* With spans, what no tick has sampled is not theirs alone. */
	if (cfg_sched_wall && is_over && !cfg_spans)
		settle_run(capture, st, until_ns);
	from_ns = st->from_ns;
	if (!from_ns || sb_is_running(task))
		return 0;
	if (!is_over)
		until_ns = decided_until(st, from_ns, until_ns);
	if (clamp_to_begin(from_ns) >= until_ns)
		return 0;
	if (has_unseen() && st->is_unseen) {
		settle_unseen(ctx->meta->seq, task, st, from_ns, until_ns);
		return 0;
	}
	*capture = st->capture;
	if (__sync_val_compare_and_swap(&st->from_ns, from_ns, until_ns) == from_ns)
		account_wait(capture, SB_SCRATCH_ITER, st, from_ns, until_ns);
	return 0;
}

/* Write the three stack IDs of a key. If there is no room, the kernel calls again for this task. */
static void put_stacks(struct seq_file *seq, struct sb_capture *capture)
{
	if (capture->now_ns)
		bpf_seq_write(seq, &capture->key, offsetof(struct sb_sample_key, object));
}

/* The stacks of open waits and of the last ticks: they were shipped already and will be referenced
 * later. */
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
