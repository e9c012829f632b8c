/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a view may call: implemented in core/sample.bpf.c. */
#ifndef SB_SAMPLE_BPF_H
#define SB_SAMPLE_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "sb_abi.h"

/* Kinds of programs that can interrupt one another; each builds its sample in a record of its own.
 * Programs of one kind do not nest: the kernel skips, and counts, what would. */
enum sb_scratch_slot {
	SB_SCRATCH_TIMER,
	SB_SCRATCH_MAX,
};

/* A sample in the making. */
struct sb_capture {
	struct sb_sample_key key;
	__u64 now_ns;
};

/* Where a user stack starts. */
struct sb_start {
	__u64 pc, sp, fp;
	__u32 is_user;	 /* 0: the event interrupted the kernel; the entry to it is looked up */
	__u32 is_compat; /* 32-bit code */
};

/* Return: where the context of a perf_event program was interrupted. */
static __always_inline struct sb_start sb_start_of(const struct bpf_perf_event_data *ctx)
{
#if defined(__TARGET_ARCH_x86)
	return (struct sb_start){
		.pc = ctx->regs.ip,
		.sp = ctx->regs.sp,
		.fp = ctx->regs.bp,
		.is_user = (ctx->regs.cs & 3) == 3,
		.is_compat = (ctx->regs.cs & 0xffff) == 0x23, /* __USER32_CS */
	};
#elif defined(__TARGET_ARCH_arm64)
	return (struct sb_start){
		.pc = ctx->regs.pc,
		.sp = ctx->regs.sp,
		.fp = ctx->regs.regs[29],
		.is_user = (ctx->regs.pstate & 0xf) == 0, /* PSR_MODE_EL0t */
		.is_compat = (ctx->regs.pstate >> 4) & 1, /* PSR_MODE32_BIT */
	};
#endif
}

/*
 * Sample the current task: filters, identity, both stacks. New stacks are shipped on the way.
 * Return: 0 and the capture, valid until the program ends; -ENOENT when the task is not asked for.
 */
int sb_capture(void *ctx, const struct sb_start *start, __u32 slot,
	       struct sb_capture **ret_capture);

/*
 * Add @weight (in the unit of the view) to the capture's key.
 * Return: 0; -E2BIG, -EBUSY when it was lost, which is counted.
 */
int sb_account(const struct sb_capture *capture, __u64 weight);

#endif
