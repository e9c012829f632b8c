/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For core: walking user stacks, one step at a time. Implemented in core/unwind.bpf.c,
 * unwind_tables.bpf.c, memo.bpf.c and rawstack.bpf.c; runs in BPF programs, for the current task.
 *
 * @slot: enum sb_scratch_slot of the calling program. State is in its struct sb_scratch ("the
 * record"), whose key, time (capture.now_ns) and user registers are set before; for a slot that
 * does not exist nothing is done, and 0 or SB_STEP_END is returned, unless something else is said.
 * Results of a step, enum sb_step: SB_STEP_GO_ON: take the next one; SB_STEP_END: the walk has
 * ended. No pointer may be NULL, and none is kept.
 *
 * Order: the caller sets stack.flags, and stack.list to 0, and calls sb_interp_start(). If the
 * thread has a user stack, it then sets map.exec_vm and calls sb_unwind_user(), which does the rest
 * but for two things: an ID for a stack that has frames (sb_stack_intern()), and sb_memo_keep() for
 * it.
 */
#ifndef SB_UNWIND_BPF_H
#define SB_UNWIND_BPF_H

#include "bpf/core/sb_stack.bpf.h"

/*
 * For the memo of walks (core/memo.bpf.c). The result of a walk depends only on its registers and
 * on what it reads: a walk that would read the same as an earlier one has the same result.
 * Comparing what the earlier walk read with what is there now takes a fifth of the time of a walk.
 * It often pays, because threads that wait, or do I/O, come to the same places again and again.
 *
 * Look the walk up before its first step, when the list of mappings is set (map.segs_word, nr_segs)
 * and the walk stands at the leaf. Return: 1 when the walk is known: stack.id is its result, which
 * was shipped, and no callers are in ip[]; 0: it has to be walked, and its reads are logged from
 * here on, unless there is no list of mappings.
 */
int sb_memo_find(__u32 slot);
/*
 * Remember the walk that has just ended, with the ID in capture.key.ustack, for sb_memo_find(); not
 * to be called if a runtime is called for native frames (interp.has_hook) or the walk was not
 * taken. Walks that are incomplete, found a frame by the frame pointer instead of a rule, depend on
 * registers other than pc, sp, fp and arm64's lr, or read too much are not remembered. Return: 0.
 */
int sb_memo_keep(__u32 slot);
/* Return: whether walks of this slot are memoized; if not, sb_memo_find() and sb_memo_keep() are
 * not to be called. */
int sb_memo_is_on(__u32 slot);

/*
 * The parts of sb_unwind_user(): it works in rounds because the verifier follows each iteration of
 * a loop, and is inlined because calls may be eight deep. begin() starts at the registers in the
 * record, which it corrects if they are in the trampoline of a return probe, and pushes the leaf;
 * round() takes up to SB_UNWIND_ROUND steps; end(), also called when the last round has said
 * SB_STEP_GO_ON, sets the status of the record's stack; or, if its list of mappings may be wrong
 * and the stack can be shipped raw, it does that instead (map.is_raw).
 * Return: begin(): SB_STEP_GO_ON; SB_STEP_END: the walk is known (map.is_known), or there is no
 * such slot: call neither of the others;
 * round(): SB_STEP_GO_ON; SB_STEP_END: walk.status says why, or map.is_raw is set: call end();
 * end(): 0.
 */
int sb_unwind_begin(__u32 slot);
int sb_unwind_round(__u32 slot);
int sb_unwind_end(__u32 slot);
#define SB_UNWIND_ROUND 32

/*
 * Walk from the user registers in the record. Afterwards the record's stack has frames and status,
 * at least the leaf; or, if map.is_known is set, only the ID. If a table is missing, the stack is
 * shipped to be unwound by user space: then map.is_raw is set, and stack.id is its ID; if it is not
 * shipped, the walk goes on by frame pointers or ends, and the status is SB_STACK_NO_TABLE.
 */
static __always_inline void sb_unwind_user(__u32 slot)
{
	__u32 i;

	if (sb_unwind_begin(slot) != SB_STEP_GO_ON)
		return;
	for (i = 0; i < SB_USTACK_DEPTH_MAX / SB_UNWIND_ROUND; i++)
		if (sb_unwind_round(slot) != SB_STEP_GO_ON)
			break;
	sb_unwind_end(slot);
}

/*
 * Set by user space while the thread that reads the ring `uw_needs` is busy with something that
 * takes long; cfg_unwind: SB_UNWIND_*, how callers are found.
 */
extern __u32 uw_is_busy;
extern const volatile __u32 cfg_unwind;
/* --depth: frames of a user stack, at most SB_USTACK_DEPTH_MAX. */
extern const volatile __u32 cfg_ustack_depth_max;

/*
 * Ship the registers and a piece of the user stack (struct sb_event_raw), which user space unwinds,
 * and write its ID to stack.id. Nothing else of the record is changed: after 0 the caller sets
 * map.is_raw, and after an error it decides how to go on (map.is_cut_off: by frame pointers).
 * Return: 0; -EBUSY when it was not shipped: over the budget of this CPU and slot, or no room in
 * the ring (SB_STAT_RAW_LIMIT, SB_STAT_RAW_FULL); -ENOENT: programs of this slot take no pieces, or
 * there is no such slot. stack.id is unchanged on error.
 */
int sb_rawstack_capture(__u32 slot);
/*
 * Return: how many bytes from SB_RED_ZONE_BYTES below @sp the stack of @task can have, at most
 * SB_RAW_BYTES_MAX. It ends below what the kernel put there at exec, or, of another thread than the
 * main one, below the data of its libc, to which @thread_pointer leads: at the nearer of the two
 * that are not below @sp; SB_RAW_BYTES_MAX if there is none. This is a bound; nothing of the stack
 * is read. The task has an address space, and need not be the current one. @thread_pointer: 0: not
 * known.
 */
__u32 sb_rawstack_reach(const struct task_struct *task, __u64 sp, __u64 thread_pointer);

/* Copy the general registers, without the pc, in the order of their DWARF numbers. @ret:
 * SB_UNWIND_REGS words, all of which are set */
static __always_inline void sb_regs_by_dwarf(const struct sb_regs *regs, __u64 *ret)
{
#if defined(__TARGET_ARCH_x86)
	ret[0] = regs->ax;
	ret[1] = regs->dx;
	ret[2] = regs->cx;
	ret[3] = regs->bx;
	ret[4] = regs->si;
	ret[5] = regs->di;
	ret[6] = regs->bp;
	ret[7] = regs->sp;
	ret[8] = regs->r8;
	ret[9] = regs->r9;
	ret[10] = regs->r10;
	ret[11] = regs->r11;
	ret[12] = regs->r12;
	ret[13] = regs->r13;
	ret[14] = regs->r14;
	ret[15] = regs->r15;
#elif defined(__TARGET_ARCH_arm64)
	int i;

#pragma unroll
	for (i = 0; i < 31; i++)
		ret[i] = regs->regs[i];
	ret[31] = regs->sp;
#endif
}

/*
 * Process @tgid, any process, is about to map @len bytes, more than 0, at @addr. If it had code
 * there, its list of mappings is marked as out of date, so that the next walk asks for it again.
 * Does nothing for a process that has no list. Return: 0.
 */
int sb_unwind_mapped(__u32 tgid, __u64 addr, __u64 len);

/*
 * Return: 1 if user space was asked for @need (enum sb_uw_need) for this address space less than 20
 * ms before the sample in the record @s, or, except for NEED_TOUCH, if it is not to be asked:
 * because capture.is_brief is set, or the process has just been forked and may call exec in a
 * moment, or is in the midst of exec; 0: neither, and this counts as asking, so ask now, and call
 * sb_unwind_not_asked() if that fails. @about: tells needs of one kind apart: the binary's number
 * for NEED_BIN, the number of the list of mappings for NEED_PROC, otherwise 0.
 */
int sb_unwind_was_asked(struct sb_scratch *s, __u32 need, __u32 about);
/* Take sb_unwind_was_asked() back, because user space could not be asked. */
void sb_unwind_not_asked(struct sb_scratch *s, __u32 need, __u32 about);

/*
 * Ask user space for @need (enum sb_uw_need), unless sb_unwind_was_asked(). @addr: the
 * address that NEED_BIN and NEED_TOUCH are about; otherwise a hint or 0. The binary of NEED_BIN is
 * map.bin of the record. A full ring is counted (SB_STAT_NEEDS_FULL), and the next sample asks
 * again. Return: 0.
 */
int sb_unwind_need(struct sb_scratch *s, __u32 need, __u64 addr);

/*
 * Return: the number of the epoch of capture.now_ns of the record @s. What is remembered of walks
 * counts for one epoch of about a second: less than SB_UWPOOL_REST_NS (user/capture/uwpool.h),
 * after which the number of a list of mappings may be another list's. Whoever remembers something
 * stores this number with it, and does not use it if the number is another one by then.
 */
static __always_inline __u32 sb_unwind_epoch(const struct sb_scratch *s)
{
	return s->capture.now_ns >> 30;
}

#endif
