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

static __always_inline __u64 sb_regs_pc(const struct sb_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->ip;
#elif defined(__TARGET_ARCH_arm64)
	return regs->pc;
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

/*
 * Sample the current task: filters, identity, both stacks, from the registers in sb_start_regs().
 * New stacks are shipped on the way.
 * Return: 0 and the capture, valid until the program ends; -ENOENT when the task is not asked for.
 */
int sb_capture(void *ctx, __u32 slot, struct sb_capture **ret_capture);

/*
 * Add @weight (in the unit of the view) to the capture's key.
 * Return: 0; -E2BIG, -EBUSY when it was lost, which is counted.
 */
int sb_account(const struct sb_capture *capture, __u64 weight);

#endif
