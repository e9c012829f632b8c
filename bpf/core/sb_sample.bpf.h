/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What views may call to take samples. Unless said otherwise, it is implemented in
 * core/sample.bpf.c and refers to the current task. @slot: enum sb_scratch_slot of the calling
 * program; its record is private to this CPU and kind of program.
 */
#ifndef SB_SAMPLE_BPF_H
#define SB_SAMPLE_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "bpf/abi/sb_abi.h"

/* A sample that is being built. */
struct sb_capture {
	struct sb_sample_key key;
	__u64 now_ns; /* CLOCK_MONOTONIC */
};

/*
 * Return: where the view stores the registers that it interrupted; NULL: there is no such slot. If
 * they are the kernel's, those with which user code entered the kernel are looked up.
 */
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

/* Whether they are those of a 32-bit program. For struct sb_regs and the kernel's pt_regs. */
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

/* The link register, which may have the return address; 0 on x86-64, which has none. */
static __always_inline __u64 sb_regs_lr(const struct sb_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return 0;
#elif defined(__TARGET_ARCH_arm64)
	return regs->regs[30];
#endif
}

/*
 * Start the sample in @slot at the registers that a perf_event program was called with. They are
 * copied word by word, because the context may be read at fixed places only.
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

/*
 * Start the sample in @slot inside the kernel, so that the user's registers are looked up: for
 * programs that are not given registers.
 */
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
 * New stacks are shipped. This is sb_begin() followed by sb_take_stacks() with the sides that the
 * run asks for.
 * Return: 0 and the capture, valid until the program ends; -ENOENT when the task is not asked for.
 */
int sb_capture(void *ctx, __u32 slot, struct sb_capture **ret_capture);

/* Bits of @how of sb_begin(). */
enum {
	SB_BEGIN_ANYBODY = 1u << 0, /* apply no filter: for wakers */
};

/*
 * Return: whether the current task is asked for. Used when something is noted long before its
 * sample is taken, which then need not ask again (SB_BEGIN_ANYBODY). In core/filter.bpf.c.
 */
bool sb_is_asked_for(void);

/* Apply the filters, and fill in time and identity; take no stacks yet. Return: as sb_capture(). */
int sb_begin(__u32 slot, __u32 how, struct sb_capture **ret_capture);
/* The same for any task, which no other CPU may be sampling. */
int sb_begin_task(__u32 slot, struct task_struct *task, struct sb_capture **ret_capture);

/*
 * After sb_begin(): take the stacks of @sides (SB_SIDE_*) that the run asks for. Return: 0 or
 * -ENOENT.
 */
int sb_take_stacks(void *ctx, __u32 slot, __u32 sides);

/*
 * After sb_begin(): note that the user stack of @task is not available, for the reason @status
 * (SB_STACK_*). Return: 0; -ENOENT: there is none, or it is not asked for.
 */
int sb_cut_user(__u32 slot, const struct task_struct *task, __u32 status);

/*
 * After sb_begin_task(), for a task that is not running: take its kernel stack. Return: 0 or
 * -ENOENT.
 */
int sb_take_kernel_of(struct task_struct *task, __u32 slot);
/*
 * After sb_begin_task(), for a task that is not running: give its user stack an ID, and write into
 * @ret what user space needs to walk it. The caller writes @ret to the output of the iterator.
 * Return: 0; -ENOENT: there is no user stack (kernel thread), or it is not asked for.
 */
int sb_take_asleep(struct task_struct *task, __u32 slot, struct sb_asleep *ret);

/*
 * Add @weight, in the unit of the view, to the count of the capture's key.
 * Return: 0; -E2BIG, -EBUSY or another negative errno when the sample was lost, which is counted.
 */
int sb_account(const struct sb_capture *capture, __u64 weight);

/* Add weight to a key that was accounted before, without counting another sample. */
void sb_account_more(const struct sb_capture *capture, __u64 weight);
/* sb_account() of the capture in @slot; for programs that account in several places. */
int sb_account_slot(__u32 slot, __u64 weight);
/*
 * Return: the capture in @slot, to be filled in with one that was taken before; NULL: no such
 * slot.
 */
struct sb_capture *sb_capture_of(__u32 slot);

/* Count the time from @since_ns (CLOCK_MONOTONIC) until now as time of our programs. */
void sb_spent(__u64 since_ns);

/*
 * The same for programs that take a fraction of a microsecond and run often: one run in 16 is
 * measured and stands for all. begin() returns the time to be passed to end(), 0 if this run is
 * not measured; some() is for programs that read the clock anyway.
 */
__u64 sb_spent_begin(void);
void sb_spent_end(__u64 since_ns);
int sb_spent_some(__u64 since_ns);

/*
 * Return: the weight of a tick of this CPU's timer, in periods of the requested rate: 1, or more
 * while the timer is throttled.
 */
__u32 sb_tick_weight(void);

/*
 * Throttle an event of @weight, before its stacks are taken. Return: the weight that its sample
 * gets; 0: no sample is taken. On average that is @weight. An event whose weight reaches the one
 * that user space has set for samples always returns its own weight.
 */
__u64 sb_thin(__u64 weight);

/* Return: the end that user space has set, after which no sample is taken; 0: no end yet. */
__u64 sb_end_ns(void);
/* Return: the beginning of the run, before which nothing is accounted; 0: there is none. */
__u64 sb_begin_ns(void);

/* Return: 1 + log2 of @ns, for sb_sample_key.log2_ns; 0 if the run does not split by duration. */
__u32 sb_log2_of(__u64 ns);

/* Return: what is known of an object (SB_OBJECT_*); UNSEEN (0): it has to be shipped first. */
__u32 sb_object_known(__u64 id);
/*
 * Ship an object of at most SB_OBJECT_BYTES_MAX bytes after @event. The caller sets kind, id and
 * nr_bytes of @event; its header is filled in. Return: 0; -EAGAIN: not shipped, which is counted;
 * the next sample tries again. -E2BIG is for the verifier: all kinds of objects are shorter.
 */
int sb_object_ship(struct sb_event_object *event);
#define SB_OBJECT_BYTES_MAX 4200u

#endif
