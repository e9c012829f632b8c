/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a view may call: implemented in core/sample.bpf.c. */
#ifndef SB_SAMPLE_BPF_H
#define SB_SAMPLE_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "sb_abi.h"

/* A sample in the making. */
struct sb_capture {
	struct sb_sample_key key;
	__u64 now_ns;
};

/* Return: where the view leaves the registers that it interrupted, NULL for no slot. If they are
 * the kernel's, those with which it was entered are looked up. */
struct sb_regs *sb_start_regs(__u32 slot);

/* Return: whether the registers are those of user code. */
static __always_inline bool sb_regs_are_user(const struct sb_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return (regs->cs & 3) == 3;
#elif defined(__TARGET_ARCH_arm64)
	return (regs->pstate & 0xf) == 0; /* PSR_MODE_EL0t */
#endif
}

/* Whether they are those of a program of 32 bits. Of struct sb_regs, and of the kernel's pt_regs. */
#if defined(__TARGET_ARCH_x86)
#define sb_regs_are_compat(regs) (((regs)->cs & 0xffff) == 0x23) /* __USER32_CS */
#elif defined(__TARGET_ARCH_arm64)
#define sb_regs_are_compat(regs) (((regs)->pstate >> 4) & 1) /* PSR_MODE32_BIT */
#endif

static __always_inline __u64 sb_regs_pc(const struct sb_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->ip;
#elif defined(__TARGET_ARCH_arm64)
	return regs->pc;
#endif
}

static __always_inline __u64 sb_regs_sp(const struct sb_regs *regs)
{
	return regs->sp;
}

static __always_inline __u64 sb_regs_fp(const struct sb_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->bp;
#elif defined(__TARGET_ARCH_arm64)
	return regs->regs[29];
#endif
}

/* The link register: where the return address may be. x86-64 has none. */
static __always_inline __u64 sb_regs_lr(const struct sb_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return 0;
#elif defined(__TARGET_ARCH_arm64)
	return regs->regs[30];
#endif
}

/*
 * The registers that a perf_event program was called with, as the start of the sample in @slot.
 * Word by word: the context may only be read at fixed places.
 */
static __always_inline void sb_start_at(const struct bpf_perf_event_data *ctx, __u32 slot)
{
	struct sb_regs *start = sb_start_regs(slot);

#define SB_REG(i) ((__u64 *)start)[i] = ((const __u64 *)&ctx->regs)[i]
	if (!start)
		return;
#pragma unroll
	for (int i = 0; i < (int)(sizeof(ctx->regs) / sizeof(__u64)); i++)
		SB_REG(i);
#undef SB_REG
}

/* The sample in @slot starts inside the kernel: the user's registers are looked up. For programs that
 * are not given registers. */
static __always_inline void sb_start_in_kernel(__u32 slot)
{
	struct sb_regs *start = sb_start_regs(slot);

	if (!start)
		return;
#if defined(__TARGET_ARCH_x86)
	start->cs = 0;
#elif defined(__TARGET_ARCH_arm64)
	start->pstate = 5; /* PSR_MODE_EL1h */
#endif
}

/*
 * Sample the current task: filters, identity, both stacks, from the registers in sb_start_regs().
 * New stacks are shipped on the way. It is sb_begin() and sb_take_stacks() with what was asked for.
 * Return: 0 and the capture, valid until the program ends; -ENOENT when the task is not asked for.
 */
int sb_capture(void *ctx, __u32 slot, struct sb_capture **ret_capture);

/* Bits of @how. */
enum {
	SB_BEGIN_ANYBODY = 1u << 0, /* whoever it is: a waker */
};

/* Return: whether the current task is asked for. Where something is noted down long before its
 * sample is taken, which can then do without asking again (SB_BEGIN_ANYBODY). */
bool sb_is_asked_for(void);

/* Filters, time and identity of the current task; no stacks yet. Return: as sb_capture(). */
int sb_begin(__u32 slot, __u32 how, struct sb_capture **ret_capture);
/* The same for a task that need not be the current one, and is not looked at by another CPU. */
int sb_begin_task(__u32 slot, struct task_struct *task, struct sb_capture **ret_capture);

/* After sb_begin(): stacks of @sides (SB_SIDE_*; those that were not asked for are left out). */
int sb_take_stacks(void *ctx, __u32 slot, __u32 sides);

/* After sb_begin(): the user stack of @task cannot be had any more, which @status (SB_STACK_*) says. */
int sb_cut_user(__u32 slot, const struct task_struct *task, __u32 status);

/* After sb_begin_task(), for one that is not running: its kernel stack. */
int sb_take_kernel_of(struct task_struct *task, __u32 slot);
/*
 * After sb_begin_task(), for one that is not running: name its user stack, which user space is to
 * walk by what is left in @ret for it; to be written to the output of the iterator.
 * Return: 0; -ENOENT: there is none (kernel thread), or it is not asked for.
 */
int sb_take_asleep(struct task_struct *task, __u32 slot, struct sb_asleep *ret);

/*
 * Add @weight (in the unit of the view) to the capture's key.
 * Return: 0; -E2BIG, -EBUSY when it was lost, which is counted.
 */
int sb_account(const struct sb_capture *capture, __u64 weight);

/* The same of a capture that was added before: no sample more. */
void sb_account_more(const struct sb_capture *capture, __u64 weight);
/* The same with the capture in @slot; for programs that account in several places. */
int sb_account_slot(__u32 slot, __u64 weight);
/* Return: the capture in @slot, to be filled in with one that was taken before; NULL for no slot. */
struct sb_capture *sb_capture_of(__u32 slot);

/* Our programs were at work from @since_ns (CLOCK_MONOTONIC) to now. */
void sb_spent(__u64 since_ns);

/*
 * The same for programs that are over in a fraction of a microsecond, and come often: one in 16 is
 * measured, and stands for all. begin() gives the time that end() is to be given, 0 where it is not
 * measured; some() is for programs that look at the clock anyway.
 */
__u64 sb_spent_begin(void);
void sb_spent_end(__u64 since_ns);
int sb_spent_some(__u64 since_ns);

/* Return: the weight of a tick of this CPU's timer, in periods of the rate that was asked for: 1, or
 * more while the timer is slower than that. */
__u32 sb_tick_weight(void);

/*
 * Before the stacks of an event of that weight are taken. Return: the weight that its sample is to have;
 * 0: it is to be none. On average it is @weight; above a bound, always.
 */
__u64 sb_thin(__u64 weight);

/* After the time that user space has set as the end, which this returns; 0: no end yet. */
__u64 sb_end_ns(void);
/* Begin of the run; 0: there is no such moment. Nothing before it is to be accounted. */
__u64 sb_begin_ns(void);

/* 1 + the logarithm of @ns, for sb_sample_key.log2_ns; 0 where the run does not split by it. */
__u32 sb_log2_of(__u64 ns);

/*
 * Objects. Return: what is known of the one called @id: 0 when it has to be shipped first.
 */
__u32 sb_object_known(__u64 id);
/* Ship @event, whose header this fills in but for kind, id and nr_bytes. At most SB_OBJECT_BYTES_MAX
 * follow. Return: 0, or -EAGAIN: not shipped, counted, to be tried again with the next sample. */
int sb_object_ship(struct sb_event_object *event);
#define SB_OBJECT_BYTES_MAX 4200u

#endif
