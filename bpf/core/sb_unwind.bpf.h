/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For core: walking user stacks, one step at a time. Implemented in core/unwind.bpf.c, memo.bpf.c
 * and raw.bpf.c. State is in the record of @slot.
 */
#ifndef SB_UNWIND_BPF_H
#define SB_UNWIND_BPF_H

#include "bpf/core/sb_stack.bpf.h"

/*
 * A memo of walks (core/memo.bpf.c). The result of a walk depends only on its registers and on
 * what it reads: a walk that would read the same as an earlier one has the same result. To read it
 * again takes a fifth of the time of the walk. Threads that wait, or do I/O, come to the same
 * places again and again.
 *
 * sb_memo_find(): Return: 1 when the walk that has begun is known; then stack.id is its result.
 * sb_memo_keep(): remember the walk that has just ended, whose stack has an ID and was shipped.
 */
int sb_memo_find(__u32 slot);
int sb_memo_keep(__u32 slot);
/* Return: whether walks of this slot are memoized. */
int sb_memo_is_on(__u32 slot);

/*
 * The parts of sb_unwind_user(): it works in rounds because the verifier follows each iteration of
 * a loop, and is inlined because calls may be eight deep. Return: enum sb_step.
 */
int sb_unwind_begin(__u32 slot);
int sb_unwind_round(__u32 slot);
int sb_unwind_end(__u32 slot);
#define SB_UNWIND_ROUND 32

/*
 * Walk from the user registers in the record. Afterwards the record's stack has frames and status,
 * at least the leaf; or, if map.is_known is set, only the ID. If a table is missing, the stack is
 * shipped to be unwound by user space: then map.is_raw is set, and stack.id is its ID.
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
 * Set by user space while the thread that reads `uw_needs` is busy with something that takes long.
 */
extern __u32 uw_is_busy;
extern const volatile __u32 cfg_unwind;

/*
 * Ship the registers and a piece of the stack (struct sb_event_raw), and write its ID to stack.id.
 * Return: 0; a negative errno when it was not shipped: over budget or no room, which are counted.
 */
int sb_raw_capture(__u32 slot);

/* Copy the registers in the order of their DWARF numbers. @ret: room for SB_UNWIND_REGS */
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
 * The process is about to map something at @addr. If it had code there, what is known of its
 * mappings is marked as out of date. Return: 0.
 */
int sb_unwind_mapped(__u32 tgid, __u64 addr, __u64 len);

/*
 * Return: whether user space was asked for @need (about @about) a moment ago; if not, this counts
 * as asking.
 */
int sb_unwind_was_asked(struct sb_scratch *s, __u32 need, __u32 about);
/* Take that back, because user space could not be asked. */
void sb_unwind_not_asked(struct sb_scratch *s, __u32 need, __u32 about);

/*
 * Ask user space for something, unless it was asked a moment ago. A full ring is counted. Return:
 * 0.
 */
int sb_unwind_need(struct sb_scratch *s, __u32 need, __u64 addr);

#endif
