/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For core/unwind.bpf.c: the last walk of each thread at a timer's tick, so that frames that still
 * stand as they stood are compared with it instead of being looked up. Implemented in
 * core/last_walk.bpf.c, where the mechanism is described. Runs in BPF programs, for the current
 * task.
 *
 * @slot: enum sb_scratch_slot of the calling program; without such a slot nothing is done. State is
 * in its struct sb_scratch ("the record"). The functions are global, so that the verifier examines
 * each once. Order: sb_last_walk_begin(); if that has set map.is_last_walk_on, sb_last_walk_after()
 * for each step, and sb_last_walk_keep() at the end, unless the stack was shipped raw (map.is_raw).
 */
#ifndef SB_LAST_WALK_BPF_H
#define SB_LAST_WALK_BPF_H

#include "bpf/core/sb_stack.bpf.h"

/* Whether walks of the timer's slot are remembered. */
extern const volatile bool cfg_last_walk;

/*
 * Before the first step, when the record's walk stands at the leaf, and the list of mappings
 * (map.segs_word, nr_segs) and map.returns are set: find the last walk of this thread, and set
 * map.is_last_walk_on to whether this one is compared and remembered. It is not if the run does not
 * want that, for slots other than the timer's, without a list of mappings, if a runtime is called
 * for native frames, and for a thread whose returns are probed. Return: 0.
 */
int sb_last_walk_begin(__u32 slot);
/*
 * After each sb_unwind_step(), which returned @step (enum sb_step): note the step, and then pass
 * all frames that stand as they stood at the last walk. Their addresses are pushed to the record's
 * stack, and the walk stands at the last of them.
 * Return: SB_STEP_GO_ON: take the next step; SB_STEP_END: walk.status says why.
 */
int sb_last_walk_after(__u32 slot, __u32 step);
/*
 * When the walk has ended and the record's stack has its status: remember the walk for the next
 * sample of this thread, if it is complete; if not, the earlier one stays. Return: 0.
 */
int sb_last_walk_keep(__u32 slot);

#endif
