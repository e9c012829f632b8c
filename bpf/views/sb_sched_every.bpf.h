/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits sampled by --every. No stacks are taken when a thread leaves its CPU. The time that it
 * waits is added up, starting from a random phase. Each time the sum reaches a full period, the
 * wait in which it does becomes a sample with the period as its weight. So on average a wait of any
 * length has the weight of its duration. The stacks are taken when the thread is back ("what it
 * owes"): by the tracepoint at the end of the switch where the kernel has one; otherwise the kernel
 * stack before the thread runs, and its user stack where its system call returns (sys_exit).
 *
 * Where the kernel has that tracepoint, user space may switch --every on and off during the run, to
 * reduce the cost. A wait is treated until its end as it was when it began.
 *
 * Everything runs in BPF programs of sched.bpf.c, at a switch of threads, where a system call
 * returns, or in the iterator sched_settle. Unless a contract says otherwise, no pointer may be
 * NULL, and what is lost or left out is counted where that happens. No pointer is kept. Times are
 * CLOCK_MONOTONIC, in nanoseconds.
 *
 * Order: leave_unseen(); arrive_unseen(), which decides what is owed; then, where the kernel has
 * the tracepoint, pay() with a new capture, else end_paying(). For a wait that is still open at the
 * end of the run or at a snapshot: split(), owe_wait() and pay().
 */
#ifndef SB_SCHED_EVERY_BPF_H
#define SB_SCHED_EVERY_BPF_H

#include "bpf/views/sb_sched.bpf.h"

/* Return: whether there may be waits without stacks. */
static bool has_unseen(void)
{
	return cfg_sched_every_ns || cfg_sched_is_governed;
}

/* Return: whether waits that begin now are sampled by --every: then leave_unseen() is to be called,
 * which notes it in st->is_unseen for as long as the wait lasts. */
static bool is_thinned(void)
{
	return cfg_sched_every_ns || (cfg_sched_is_governed && sched_is_thinned);
}

/*
 * Return: the phase of @st, of the thread that waits, for the current --every, @every_ns: less than
 * that, in nanoseconds; 0 if it is 0, and it can be 0 by chance.
 * When --every changes, a new random phase is drawn, and stored in @st. With the old one, each
 * thread would lose half of the difference on average.
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

/* Return: whether samples are owed, whose stacks are still to be taken. */
static bool is_owing(const struct sched_owed *owed)
{
	return owed->ns[0] || owed->ns[1];
}

/*
 * Add @ns of waiting in @part of a wait (0: blocked, 1: in the run queue) to the phase in @st. Full
 * periods are owed as samples: they are added to owed->ns[@part]; owed->state[@part] becomes @state
 * (enum sb_task_state of that part). Does nothing while --every is off.
 */
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

/* owe() for those of the two parts that the filters want. @owed: zeroed before, or what an earlier
 * wait of @st owes: ns[] is added to, part_ns[] and state[] become those of this wait. */
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

/* Account what is owed with the stacks in @capture, the capture of @slot, whose state and log2_ns
 * are overwritten; nothing is owed then. */
static void pay(struct sb_capture *capture, __u32 slot, struct sched_owed *owed)
{
	if (owed->ns[0])
		account_part(capture, slot, owed->state[0], owed->ns[0], owed->part_ns[0]);
	if (owed->ns[1])
		account_part(capture, slot, owed->state[1], owed->ns[1], owed->part_ns[1]);
	owed->ns[0] = owed->ns[1] = 0;
}

/* Get the user's program counter and stack pointer of @task, which is in the kernel; each is 0 if
 * it cannot be read. */
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

/* Take the kernel stack of @next now, which owes samples (@st); its user stack is taken when it is
 * current, by end_paying(). If it is not asked for, nothing is owed any more. */
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

/*
 * Take the user stack of @task, the current one, and account what it owes, with the kernel stack
 * that begin_paying() has taken. To be called after begin_paying(), which is only used where the
 * kernel has no tracepoint at the end of the switch, and while @st owes something; it owes nothing
 * afterwards. If the task is not asked for any more, or the run is over, what it owes is dropped,
 * and not counted as lost. @ctx: of the program, for the stacks. @is_same: it has not run in user
 * mode since the wait, so that its user stack is still that of the wait; if not, none is taken, and
 * samples have a user stack that says so (SB_STACK_RAN).
 */
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

/*
 * The current thread @prev leaves its CPU again before the stacks of the samples that it owes were
 * taken. Account the samples now. Where the kernel has no tracepoint at the end of the switch, that
 * is by end_paying(), with SB_STACK_RAN if the user registers have changed since the wait. Where it
 * has one, the samples have no stacks; then, if @prev is not asked for, it owes them still.
 * Otherwise it owes nothing afterwards. The caller has checked is_owing(), and calls it before it
 * begins the next wait. @ctx: of the program, for the stacks.
 */
static void pay_late(void *ctx, struct task_struct *prev, struct sched_task *st)
{
	struct sb_capture *capture;
	__u64 ip, sp;

	if (!cfg_sched_pays_at_once) {
		read_user_place(prev, &ip, &sp);
		end_paying(ctx, prev, st, ip == st->owed_ip && sp == st->owed_sp);
		return;
	}
	/* A new thread comes to its CPU without sched_exit_tp: its wait has no stacks. */
	if (!sb_begin(SB_SCRATCH_SWITCH, 0, &capture))
		pay(capture, SB_SCRATCH_SWITCH, &st->owed);
}

/* Return: whether --min, --max or --state is given. */
static bool has_bounds(void)
{
	return cfg_sched_min_ns || cfg_sched_max_ns != ~0ull || cfg_sched_states != ~0u;
}

/*
 * The current thread @prev leaves its CPU at @now_ns, to wait in @state (enum sb_task_state). What
 * it still owes for an earlier wait is paid now, late. @ctx: of the program, for the stacks. Of the
 * new wait only the time is noted, because most waits end without a sample. With bounds, waits that
 * are left out are counted, so the filters are checked first, and a thread that is not asked for
 * has no wait.
 * @st: NULL: there was no memory for it, and the wait is lost, which is counted (SB_STAT_TASK_FULL)
 * once the run has begun
 */
static void leave_unseen(void *ctx, struct task_struct *prev, struct sched_task *st, __u32 state,
			 __u64 now_ns)
{
	struct sb_capture *capture;

	if (!st) {
		if (sched_has_begun)
			sb_stat_add(SB_STAT_TASK_FULL, 1);
		return;
	}
	/* If --every was set by the governor, nothing is owed here: see sched_arrived(). */
	if (cfg_sched_every_ns && is_owing(&st->owed))
		pay_late(ctx, prev, st);
	if (has_bounds() && sb_begin(SB_SCRATCH_SWITCH, 0, &capture))
		st->from_ns = 0;
	else
		start_wait(st, state, now_ns, true);
}

/*
 * A thread comes to its CPU after an unseen wait, which began at @from_ns: find out whether samples
 * are owed for it, and see that their stacks are taken: by begin_paying(), or by a note for
 * sched_arrived() (sched_owing). @st: the state of @next, in which the wait is over already
 * (from_ns is 0)
 */
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

#endif
