/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For core: user stacks, one step at a time. */
#ifndef SB_UNWIND_BPF_H
#define SB_UNWIND_BPF_H

#include "vmlinux.h"

/*
 * Walk from the registers in the record's walk and leave frames and status in its stack.
 * Always leaves at least the leaf.
 */
int sb_unwind_user(__u32 slot);

/* A step: one caller found and appended, or the end, with the status set. */
enum sb_step {
	SB_STEP_GO_ON,
	SB_STEP_END,
};

#endif
