// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * User stacks, walked step by step: each step finds one caller from the registers of one frame.
 * There is one source of steps so far, the chain of frame pointers; another one (tables from
 * .eh_frame) is another function next to fp_step(), chosen in sb_unwind_step() by the pc.
 */
#include "sb_stack.bpf.h"
#include "sb_unwind.bpf.h"

/* A frame bigger than this is taken for a frame pointer register used for something else. */
#define FP_FRAME_BYTES_MAX (1u << 20)
#define PC_MIN		   4096ull

/* First address that no user code can have: 47 bits on x86-64, 48 on arm64; 5-level paging (56)
 * is only used by programs that ask for it. */
#if defined(__TARGET_ARCH_arm64)
const volatile __u64 cfg_user_end = 1ull << 48;
#else
const volatile __u64 cfg_user_end = 1ull << 47;
#endif

/* --depth: frames of a user stack, at most SB_USTACK_DEPTH_MAX. */
const volatile __u32 cfg_ustack_depth_max = SB_USTACK_DEPTH_MAX;

static enum sb_step end(struct sb_scratch *s, __u32 status)
{
	s->stack.status = status;
	return SB_STEP_END;
}

static enum sb_step push(struct sb_scratch *s, __u64 pc)
{
	__u32 at = s->stack.nr_frames;

	sb_opaque(at);
	if (at >= SB_USTACK_DEPTH_MAX || at >= cfg_ustack_depth_max)
		return end(s, SB_STACK_DEPTH);
	s->ip[at & (SB_USTACK_DEPTH_MAX - 1)] = pc;
	s->stack.nr_frames = at + 1;
	return SB_STEP_GO_ON;
}

/* {caller's frame pointer, return address} lie at the frame pointer: System V ABI for x86-64,
 * section 3.2.2; AAPCS64, section 6.4.6. */
static enum sb_step fp_step(struct sb_scratch *s)
{
	__u64 fp = s->walk.fp, frame[2];

	/* The outermost frame has none. A leaf with zero in the register proves nothing. */
	if (!fp)
		return end(s, s->stack.nr_frames > 1 ? SB_STACK_COMPLETE : SB_STACK_BAD_FP);
	if ((fp & 7) || fp < s->walk.sp || fp - s->walk.sp > FP_FRAME_BYTES_MAX)
		return end(s, SB_STACK_BAD_FP);
	if (bpf_probe_read_user(frame, sizeof(frame), (const void *)fp))
		return end(s, SB_STACK_FAULT);
	if (!frame[1])
		return end(s, SB_STACK_COMPLETE);
	if (frame[1] < PC_MIN || frame[1] >= cfg_user_end)
		return end(s, SB_STACK_BAD_PC);
	s->walk.pc = frame[1];
	s->walk.sp = fp + sizeof(frame);
	s->walk.fp = frame[0];
	return push(s, frame[1]);
}

/* Global for the verifier's sake, see sb_stack_hash(). */
__noinline int sb_unwind_step(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (!s)
		return SB_STEP_END;
	return fp_step(s);
}

__noinline int sb_unwind_user(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	int i;

	if (!s)
		return 0;
	s->stack.nr_frames = 0;
	s->stack.status = SB_STACK_DEPTH;
	push(s, s->walk.pc);
	for (i = 0; i < SB_USTACK_DEPTH_MAX; i++)
		if (sb_unwind_step(slot) != SB_STEP_GO_ON)
			break;
	return 0;
}
