// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Runs pieces of core with arguments that user space sets, by BPF_PROG_TEST_RUN: the same objects
 * as in stackbpf, in the kernel, without waiting for events. raw_tp, because it may use every map
 * that the real programs use (a "syscall" program may not).
 */
#include "bpf/core/sb_filter.bpf.h"
#include "bpf/core/sb_stack.bpf.h"
#include "bpf/core/sb_unwind.bpf.h"

struct {
	struct sb_sample_key key;
	__u64 weight;
	__u64 first_ip;
	__u32 nr_frames, status;
	__u64 pc, sp, fp;
	__u32 tgid, tid, child_tgid;
	__u32 nr_rounds; /* drive_self_unwind: so often, for its time */
	char comm[SB_COMM_LEN];
} in = {};

struct {
	__s32 ret;
	__u32 nr_frames, status;
	__u32 is_raw;
	__u64 ns; /* of all rounds */
	struct sb_stack_id id;
	__u64 ip[SB_USTACK_DEPTH_MAX];
} out = {};

SEC("raw_tp")
int drive_account(void *ctx)
{
	struct sb_scratch *s = sb_scratch_get(0);

	if (!s)
		return 0;
	s->capture.key = in.key;
	s->capture.now_ns = bpf_ktime_get_ns();
	out.ret = sb_account(&s->capture, in.weight);
	return 0;
}

SEC("raw_tp")
int drive_intern(void *ctx)
{
	struct sb_scratch *s = sb_scratch_get(0);
	__u32 i;

	if (!s)
		return 0;
	s->stack.nr_frames = in.nr_frames;
	s->stack.status = in.status;
	s->stack.flags = 0;
	s->stack.list = 0;
	for (i = 0; i < SB_USTACK_DEPTH_MAX; i++)
		s->ip[i] = in.first_ip + i;
	out.ret = sb_stack_intern(s, 0, (void *)&out.id);
	return 0;
}

/* Verified once, not once for each of a thousand rounds. */
__noinline int drive_walk(__u32 slot)
{
	sb_unwind_user(slot);
	return 0;
}

SEC("raw_tp")
int drive_unwind(void *ctx)
{
	struct sb_scratch *s = sb_scratch_get(0);
	__u32 i;

	if (!s)
		return 0;
#if defined(__TARGET_ARCH_x86)
	s->regs.ip = in.pc;
	s->regs.bp = in.fp;
#elif defined(__TARGET_ARCH_arm64)
	s->regs.pc = in.pc;
	s->regs.regs[29] = in.fp;
#endif
	s->regs.sp = in.sp;
	drive_walk(0);
	out.nr_frames = s->stack.nr_frames;
	out.status = s->stack.status;
	for (i = 0; i < SB_USTACK_DEPTH_MAX; i++)
		out.ip[i] = s->ip[i] & ~SB_IP_MARKS;
	return 0;
}

/* The stack of the very task that runs this, from where it made the system call. */
SEC("raw_tp")
int drive_self_unwind(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sb_scratch *s = sb_scratch_get(0);
	__u64 start_ns;
	__u32 i;

	if (!s || bpf_probe_read_kernel(&s->regs, sizeof(s->regs), (void *)bpf_task_pt_regs(task)))
		return 0;
	s->capture.key = in.key;
	s->capture.now_ns = start_ns = bpf_ktime_get_ns();
	s->map.exec_vm = 1;
	for (i = 0; i < 1000 && i < in.nr_rounds; i++)
		drive_walk(0);
	out.ns = bpf_ktime_get_ns() - start_ns;
	out.nr_frames = s->stack.nr_frames;
	out.status = s->stack.status;
	out.is_raw = s->map.is_raw;
	for (i = 0; i < SB_USTACK_DEPTH_MAX; i++)
		out.ip[i] = s->ip[i];
	return 0;
}

/* The same from three kinds of programs that interrupt one another, each in a record of its own. */
struct {
	__u64 root_ip[2]; /* outermost first */
	__u32 tid;	  /* whose stacks; 0: nobody's yet */
	__u32 reserved;
	__u64 nr_good[3], nr_bad[3];
	__u64 nr_nested; /* ticks that interrupted one of the others */
	__u32 bad_status, bad_frames;
} reentry = {};

__u32 nr_walking = 0; /* of the thread: it is on one CPU at a time */

static void check_stack(__u32 slot)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sb_scratch *s = sb_scratch_get(slot);
	__u32 nr;

	if (!s || !reentry.tid || (__u32)bpf_get_current_pid_tgid() != reentry.tid)
		return;
	if (!sb_regs_are_user(&s->regs) &&
	    bpf_probe_read_kernel(&s->regs, sizeof(s->regs), (void *)bpf_task_pt_regs(task)))
		return;
	s->capture.key = in.key;
	s->capture.now_ns = bpf_ktime_get_ns();
	s->map.exec_vm = 1;
	if (!slot && nr_walking)
		reentry.nr_nested++;
	if (slot)
		nr_walking = 1;
	drive_walk(slot);
	if (slot)
		nr_walking = 0;
	nr = s->stack.nr_frames;
	if (slot < 3 && nr >= 3 && nr <= SB_USTACK_DEPTH_MAX &&
	    s->stack.status == SB_STACK_COMPLETE &&
	    s->ip[(nr - 1) & (SB_USTACK_DEPTH_MAX - 1)] == reentry.root_ip[0] &&
	    s->ip[(nr - 2) & (SB_USTACK_DEPTH_MAX - 1)] == reentry.root_ip[1]) {
		__sync_fetch_and_add(&reentry.nr_good[slot], 1);
	} else if (slot < 3) {
		__sync_fetch_and_add(&reentry.nr_bad[slot], 1);
		reentry.bad_status = s->stack.status;
		reentry.bad_frames = nr;
	}
}

SEC("perf_event")
int reentry_tick(struct bpf_perf_event_data *ctx)
{
	sb_start_at(ctx, 0);
	check_stack(0);
	return 0;
}

SEC("raw_tp/sched_switch")
int reentry_switch(void *ctx)
{
	sb_start_in_kernel(1);
	check_stack(1);
	return 0;
}

SEC("raw_tp/sys_enter")
int reentry_syscall(void *ctx)
{
	sb_start_in_kernel(2);
	check_stack(2);
	return 0;
}

SEC("raw_tp")
int drive_filter(void *ctx)
{
	char comm[SB_COMM_LEN];

	__builtin_memcpy(comm, in.comm, sizeof(comm));
	out.ret = sb_filter_accepts(sb_filter_pid_rules(in.tgid, in.tid), comm);
	return 0;
}

SEC("raw_tp")
int drive_exec(void *ctx)
{
	out.ret = sb_filter_exec(in.tgid);
	return 0;
}

SEC("raw_tp")
int drive_gone(void *ctx)
{
	out.ret = sb_filter_gone(in.tgid);
	return 0;
}

SEC("raw_tp")
int drive_fork(void *ctx)
{
	out.ret = sb_filter_fork(in.tgid, in.child_tgid);
	return 0;
}
