/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For core: the record in which a stack is built, and what turns it into an id.
 *
 * The record is per CPU and per kind of program (see enum sb_scratch_slot), because 512 frames do
 * not fit a BPF stack and because a sample may interrupt a program that has one in the making.
 */
#ifndef SB_STACK_BPF_H
#define SB_STACK_BPF_H

#include "sb_sample.bpf.h"
#include "sb_util.bpf.h"

/* Where the walk stands: the registers of the frame whose caller is looked for next. */
struct sb_walk {
	__u64 pc, sp, fp;
};

struct sb_scratch {
	struct sb_capture capture;
	struct sb_walk walk;
	struct sb_event_stack stack;
	__u64 ip[SB_USTACK_DEPTH_MAX]; /* stack.ip */
};

/* Return: the record of this CPU, NULL only for a slot that does not exist. */
struct sb_scratch *sb_scratch_get(__u32 slot);

/*
 * Name the stack in the record by its hash, and ship it if it was not seen before. A stack that
 * cannot be shipped is tried again with its next sample; the failure is counted.
 */
int sb_stack_intern(struct sb_scratch *scratch, __u32 slot, struct sb_stack_id *ret_id);

#endif
