/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For core: user stacks, one step at a time. */
#ifndef SB_UNWIND_BPF_H
#define SB_UNWIND_BPF_H

#include "sb_stack.bpf.h"

/*
 * Walks are functions of their registers and of what they read: one that would read the same as one
 * before gives the same. To read it again takes a fifth of the time of the walk. Threads that wait, or
 * do I/O, come to the same places again and again.
 *
 * sb_memo_find(): return 1 when the walk that has begun is known; then stack.id names its result.
 * sb_memo_keep(): remember the walk that has just ended, and was named and shipped.
 */
int sb_memo_find(__u32 slot);
int sb_memo_keep(__u32 slot);
/* Return: whether walks of this slot are remembered. */
int sb_memo_is_on(__u32 slot);

/* The parts of sb_unwind_user(). Rounds, because the verifier goes through a loop as often as it can
 * be taken; and here, because calls may be eight deep. Return: enum sb_step. */
int sb_unwind_begin(__u32 slot);
int sb_unwind_round(__u32 slot);
int sb_unwind_end(__u32 slot);
#define SB_UNWIND_ROUND 32

/*
 * Walk from the user registers in the record and leave frames and status in its stack, at least the
 * leaf, or, if map.is_known is set, only its name. A stack that is to be unwound by user space instead, because a table is missing, is shipped;
 * then map.is_raw is set, and stack.id names it already.
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

/* Set by user space: what reads `uw_needs` is at something that takes long. */
extern __u32 uw_is_busy;
extern const volatile __u32 cfg_unwind;

/*
 * Ship the registers and a piece of the stack (struct sb_event_raw), and name it in stack.id.
 * Return: 0, or a reason not to: over budget, unreadable, no room; those are counted.
 */
int sb_raw_capture(__u32 slot);

/* The registers in the order of their DWARF numbers. */
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

/* The current process is about to map something at @addr: if that is where it had code, what is
 * known of its mappings is out of date. */
int sb_unwind_mapped(__u32 tgid, __u64 addr, __u64 len);

/* Return: whether user space was asked for @need (of @about) a moment ago; if not, it is now. */
int sb_unwind_was_asked(struct sb_scratch *s, __u32 need, __u32 about);
/* It could not be asked after all. */
void sb_unwind_not_asked(struct sb_scratch *s, __u32 need, __u32 about);

/* Ask user space for something, not too often. */
int sb_unwind_need(struct sb_scratch *s, __u32 need, __u64 addr);

#endif
