/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What views may call to take samples, in BPF programs on any CPU. Unless said otherwise, it is
 * implemented in core/sample.bpf.c and refers to the current task. @slot: enum sb_scratch_slot of
 * the calling program; its record is private to this CPU and kind of program, so calls need no
 * lock, and pointers into it are borrowed and valid until the program ends. No pointer that is
 * passed may be NULL, and none is kept. Times are CLOCK_MONOTONIC, in nanoseconds.
 *
 * A sample is taken in this order: sb_start_at() or sb_start_in_kernel(); sb_begin(); then, if the
 * event is still wanted (sb_thin(), sb_slice()), sb_take_stacks(); the view's fields of the key;
 * sb_account(), also without a stack that could not be taken; sb_spent(), or sb_spent_some() if it
 * took no sample. sb_start_*() may also come between sb_begin() and sb_take_stacks(). For a task
 * that is not current: sb_begin_task(); sb_take_kernel_of(); sb_take_asleep(); sb_account(), of a
 * copy if it is later.
 *
 * -ENOENT of sb_capture(), sb_begin() and sb_begin_task() means: no sample, for no error: the task
 * is the idle task or not asked for (the latter is counted in SB_STAT_FILTERED), it is in no span
 * (SB_STAT_OUTSIDE_SPANS), the run has ended (not of sb_begin_task()), or there is no such slot.
 * The program just returns; *@ret_capture means nothing, and the record of the slot may have been
 * overwritten.
 */
#ifndef SB_SAMPLE_BPF_H
#define SB_SAMPLE_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/sb_abi.h"

/*
 * Return: where the view stores the registers that it interrupted, before it takes stacks; NULL:
 * there is no such slot. If they are the kernel's, those with which user code entered the kernel
 * are looked up when stacks are taken, and overwrite them. In core/stack.bpf.c.
 */
struct sb_regs *sb_start_regs(__u32 slot);

/* Return: whether @regs are those of user code, not of the kernel. */
static __always_inline bool sb_regs_are_user(const struct sb_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return (regs->cs & 3) == 3;
#elif defined(__TARGET_ARCH_arm64)
	return (regs->pstate & 0xf) == 0; /* PSR_MODE_EL0t */
#endif
}

/* Value: whether @regs, a struct sb_regs or the kernel's pt_regs, are those of a 32-bit program. */
#if defined(__TARGET_ARCH_x86)
#define sb_regs_are_compat(regs) (((regs)->cs & 0xffff) == 0x23) /* __USER32_CS */
#elif defined(__TARGET_ARCH_arm64)
#define sb_regs_are_compat(regs) (((regs)->pstate >> 4) & 1) /* PSR_MODE32_BIT */
#endif

/* Return: the program counter in @regs. */
static __always_inline __u64 sb_regs_pc(const struct sb_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->ip;
#elif defined(__TARGET_ARCH_arm64)
	return regs->pc;
#endif
}

/* Return: the stack pointer in @regs. */
static __always_inline __u64 sb_regs_sp(const struct sb_regs *regs)
{
	return regs->sp;
}

/* Return: the register in @regs that code may use as frame pointer: rbp or x29. */
static __always_inline __u64 sb_regs_fp(const struct sb_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->bp;
#elif defined(__TARGET_ARCH_arm64)
	return regs->regs[29];
#endif
}

/* The bounds of a stack, which the runtime's `g` begins with (runtime2.go). */
struct sb_go_stack {
	__u64 lo, hi;
};

/* Return: the register in @regs that has the address of the goroutine's `g` while Go code runs, and
 * anything while other code runs: r14 or x28. */
static __always_inline __u64 sb_regs_goroutine(const struct sb_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->r14;
#elif defined(__TARGET_ARCH_arm64)
	return regs->regs[28];
#endif
}

/* Return: the link register in @regs, which may have the return address; 0 on x86-64, which has no
 * such register. */
static __always_inline __u64 sb_regs_lr(const struct sb_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return 0;
#elif defined(__TARGET_ARCH_arm64)
	return regs->regs[30];
#endif
}

/* Return: whether a task is on a CPU; false if the kernel has no task_struct.on_cpu. on_cpu is an
 * int up to Linux 7.1 and then a byte; a plain read would have the size of our vmlinux.h. */
static __always_inline bool sb_is_running(const struct task_struct *task)
{
	return bpf_core_field_exists(task->on_cpu) && BPF_CORE_READ_BITFIELD_PROBED(task, on_cpu);
}

/*
 * Start the sample in @slot at the registers that a perf_event program was called with. They are
 * copied word by word, because the context may be read at fixed places only. Does nothing if there
 * is no such slot.
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
 * programs that are not given registers. Does nothing if there is no such slot.
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
 * run asks for. @ctx: the program's context, for bpf_get_stack(). @now_ns: the time now;
 * sb_capture() is for programs that have not read the clock.
 * Return: 0 and the capture, valid until the next sample in @slot on this CPU, so at least until
 * the program ends; -ENOENT.
 */
int sb_capture_at(void *ctx, __u32 slot, __u64 now_ns, struct sb_capture **ret_capture);
static __always_inline int sb_capture(void *ctx, __u32 slot, struct sb_capture **ret_capture)
{
	return sb_capture_at(ctx, slot, bpf_ktime_get_ns(), ret_capture);
}

/*
 * Take SB_SCRATCH_PROBE on this CPU for a program at a user function. Since Linux 6.0 (commit
 * 8c7dcb84e3b7) one can be preempted by a thread that comes to another probe on the same CPU. Each
 * call is counted (SB_STAT_PROBE_HITS). Return: true: the program has to give it back before it
 * ends, by sb_probe_give_back(); false: the record is in use, and the event is lost, which is
 * counted (SB_STAT_TRACE_BUSY) if the thread is asked for.
 */
bool sb_probe_take(void);
/* Give SB_SCRATCH_PROBE back, only after sb_probe_take() returned true. */
void sb_probe_give_back(void);

/* Bits of @how of sb_begin(). */
enum {
	SB_BEGIN_ANYBODY = 1u << 0,  /* apply no filter, also not to the idle task */
	SB_BEGIN_IDLE = 1u << 1,     /* the idle task, too: for what interrupts it */
	SB_BEGIN_ANYWHERE = 1u << 2, /* in a span or not: the sample is of another thread */
	SB_BEGIN_LATE = 1u << 3,     /* after the end of the run, too, until it is detached */
};

/*
 * Return: whether the filters accept the current task, for which the idle task is one like others;
 * nothing is counted if not. Spans and the end of the run are not looked at. Used when something is
 * noted long before its sample is taken, which then need not ask again (SB_BEGIN_ANYBODY, which
 * lets the idle task pass, too). In core/filter.bpf.c.
 */
bool sb_is_asked_for(void);

/*
 * Apply the filters, and fill in time and identity; all other fields of the key become 0, and no
 * stacks are taken yet. @how: SB_BEGIN_*, or 0. @now_ns: the time now; sb_begin() is for programs
 * that have not read the clock. Return: 0 and the capture, valid until the next sample in @slot on
 * this CPU; -ENOENT.
 */
int sb_begin_at(__u32 slot, __u32 how, __u64 now_ns, struct sb_capture **ret_capture);
static __always_inline int sb_begin(__u32 slot, __u32 how, struct sb_capture **ret_capture)
{
	return sb_begin_at(slot, how, bpf_ktime_get_ns(), ret_capture);
}
/*
 * Apply the filters to @task, which need not be the current one, and fill in the time and its
 * identity; the CPU of the key is the one that this runs on. The end of the run is not looked at.
 * No other CPU may be sampling @task.
 * Return: 0 and the capture, valid until the next sample in @slot on this CPU; -ENOENT.
 */
int sb_begin_task(__u32 slot, struct task_struct *task, struct sb_capture **ret_capture);

/*
 * After sb_begin(): take the stacks of @sides (SB_SIDE_*) that the run asks for, from the registers
 * in sb_start_regs(), and write their IDs into the key; with a user stack that of its interpreter
 * frames. If the run asks for labels, their ID is written, too, also without a user stack. With
 * key.tgid 0, an interrupt, there is neither a user stack nor labels. A side that the task does not
 * have stays 0, and so does a kernel stack that cannot be read, which is counted
 * (SB_STAT_KSTACK_ERR). @ctx: the program's context, for bpf_get_stack(). Return: 0;
 * -ENOENT: no such slot.
 */
int sb_take_stacks(void *ctx, __u32 slot, __u32 sides);

/*
 * After sb_begin(): note that the user stack of @task is not available, for the reason @status
 * (SB_STACK_*): the key gets the ID of a stack without frames and with this status, which is
 * shipped if it is new. Return: 0; -ENOENT: there is none, or it is not asked for: the ID in the
 * key stays 0, and the sample is accounted all the same.
 */
int sb_cut_user(__u32 slot, const struct task_struct *task, __u32 status);

/*
 * After sb_begin_task(), for a task that is not running: take its kernel stack, and write its ID
 * into the key. If the stack cannot be read, that is counted (SB_STAT_KSTACK_ERR), and the ID stays
 * 0. Return: 0; -ENOENT: kernel stacks are not asked for, and the ID stays 0. In both cases the
 * sample goes on without a kernel stack: callers ignore the result. The user stack is taken by
 * sb_take_asleep(), or once the task is current. Whoever accounts the sample later keeps a copy of
 * the capture until then.
 */
int sb_take_kernel_of(struct task_struct *task, __u32 slot);
/*
 * After sb_begin_task(), for a task that is not running: give its user stack an ID, which is
 * written into the key with those of its interpreter frames and labels, and write into @ret what
 * user space needs to walk it. The caller writes @ret to the output of the iterator.
 * Return: 0; -ENOENT: there is no user stack (a kernel thread, or in the midst of execve(2)), its
 * registers cannot be read, or it is not asked for: @ret is untouched and not to be written, and
 * the sample has no user stack.
 */
int sb_take_asleep(struct task_struct *task, __u32 slot, struct sb_asleep *ret);

/*
 * Count a sample: add @weight, in the unit of the view, to the count of the capture's key. @capture
 * need not be in a record, and may be a copy.
 * Return: 0; -E2BIG when the table of counts is full, or user space has drained it just now;
 * -EBUSY, and since Linux 6.15 -EDEADLK or -ETIMEDOUT, when this CPU had it locked; or another
 * negative errno of bpf_map_update_elem(): the sample is lost, which is counted
 * (SB_STAT_COUNTS_BUSY when it was locked, else SB_STAT_COUNTS_FULL); callers ignore the result.
 */
int sb_account(const struct sb_capture *capture, __u64 weight);

/*
 * Add @weight, in the unit of the view, to the count of a key that sb_account() has counted a
 * sample of, without counting another sample, at any time after that: @capture may be a kept copy.
 * If user space has drained the counts meanwhile, the key is added again, with 0 samples; if there
 * is no room for it, the weight is lost, and counted as a lost sample. sb_spent() comes later.
 */
void sb_account_more(const struct sb_capture *capture, __u64 weight);
/*
 * sb_account() of the capture in @slot, of whichever task it is; for programs that account in
 * several places, since the verifier examines it once. Return: 0; the negative errno of
 * sb_account(), which has counted the lost sample; -ENOENT: no such slot, and nothing is counted.
 */
int sb_account_slot(__u32 slot, __u64 weight);
/*
 * Return: the capture in the record of @slot, for a program that copies an earlier one into it to
 * account it, or whose sb_begin() came before; NULL: no such slot.
 */
struct sb_capture *sb_capture_of(__u32 slot);

/*
 * Count the time from @since_ns (CLOCK_MONOTONIC) until now as time of our programs, in
 * SB_STAT_RUN_NS.
 */
void sb_spent(__u64 since_ns);

/*
 * Begin to measure the time that this BPF program takes. For programs that take a fraction of a
 * microsecond and run often, of which one run in 16 is measured and stands for all: call it first.
 * Return: the time now, or 0 when this run is not measured. The program passes either to
 * sb_spent_end() at its end. In core/thin.bpf.c.
 */
__u64 sb_spent_begin(void);
/* At the end of such a program: count the time since sb_spent_begin(), which returned @since_ns, as
 * time of 16 runs, in SB_STAT_RUN_NS. Does nothing for 0. In core/thin.bpf.c. */
void sb_spent_end(__u64 since_ns);
/* For programs that run often, at their end: in one run of 16, count the time since @since_ns as
 * time of 16 runs, in SB_STAT_RUN_NS. It replaces sb_spent_begin() and sb_spent_end() where a
 * program has read the clock anyway. @since_ns: when it began. Return: 0. In core/thin.bpf.c. */
int sb_spent_some(__u64 since_ns);

/*
 * Return: the weight of a tick of this CPU's timer, in periods of the requested rate: 1, or more
 * while the timer is throttled. In core/thin.bpf.c.
 */
__u32 sb_tick_weight(void);

/*
 * Call it once for each tick of this CPU's timer, which comes at @now_ns. Return: the number of
 * ticks since the last one: 1, also if the timer has no period; or more when the timer skipped
 * ticks while the current thread ran: the host did not run the virtual CPU for longer than a
 * period, or interrupts were disabled. In core/thin.bpf.c.
 */
__u32 sb_ticks(__u64 now_ns);

/* Return: the time that this tick stands for, in ns: sb_ticks(), of as many periods as
 * sb_tick_weight() says; 0: the timer has no period, as counters of cycles. It calls sb_ticks(), so
 * call only one of the two for each tick. In core/thin.bpf.c. */
__u64 sb_ticks_ns(__u64 now_ns);

/*
 * Throttle an event of @weight, in the unit of the view, before its stacks are taken; once for each
 * event. Return: the weight that its sample gets; 0: no sample is taken. On average that is
 * @weight. An event whose weight reaches the one that user space has set for samples always returns
 * its own weight. In core/thin.bpf.c.
 */
__u64 sb_thin(__u64 weight);

/*
 * Of programs that are attached in slices of time. Return: what an event at @now_ns weighs, whose
 * own weight is @weight, as of sb_thin(): more, because a slice stands for the time before it, too;
 * 0: it is in no slice, so take no sample. Without slices it is @weight. In core/thin.bpf.c.
 */
__u64 sb_slice(__u64 weight, __u64 now_ns);
/* Whether there are slices. In core/thin.bpf.c. */
extern const volatile __u32 cfg_slices;

/* Return: the end (CLOCK_MONOTONIC) that user space has set, after which no sample is taken; 0: no
 * end yet. */
__u64 sb_end_ns(void);
/*
 * Return: the beginning of the run (CLOCK_MONOTONIC): time before it is not accounted. It is
 * UINT64_MAX until the iterator of sb_view.begin() has looked at all existing threads, and 0 in
 * runs without that iterator, which account everything.
 */
__u64 sb_begin_ns(void);

/*
 * Return: 1 + log2 of @ns, rounded down (1 for 0 ns), for sb_sample_key.log2_ns; 0 if the run does
 * not split by duration.
 */
__u32 sb_log2_of(__u64 ns);

/*
 * An object is what a sample names beside its stacks: a file, a waker, a value, a call (enum
 * sb_object_kind). Ask before its ID goes into the key. Return: what is known of it:
 * SB_OBJECT_UNSEEN (0), also of one that was forgotten for lack of room: call sb_object_ship()
 * before a sample names it; SB_OBJECT_SEEN: it was shipped; SB_OBJECT_UNWANTED: --path leaves it
 * out, so take no sample. Any @id may be asked for. In core/object.bpf.c.
 */
__u32 sb_object_known(__u64 id);
/*
 * Ship @event and the nr_bytes bytes that follow it in memory, SB_OBJECT_BYTES_MAX at most, and
 * note the object as seen. The caller sets kind, id and nr_bytes of @event; this function sets its
 * hdr. All is copied. In core/object.bpf.c. Return: 0; -EAGAIN: not shipped, because the ring is
 * full, which is counted (SB_STAT_OBJECT_FULL): the sample is accounted with the ID all the same,
 * and the next one tries again. -E2BIG, for too long an object, is for the verifier: all kinds of
 * objects are shorter.
 */
int sb_object_ship(struct sb_event_object *event);
#define SB_OBJECT_BYTES_MAX 4200u

#endif
