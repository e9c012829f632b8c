/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For core/unwind.bpf.c: the last walk of each thread at a timer's tick, so that frames that still
 * stand as they stood are compared with it instead of being looked up. Implemented in
 * core/last.bpf.c, where the mechanism is described. Runs in BPF programs, for the current task.
 *
 * @slot: enum sb_scratch_slot of the calling program; without such a slot nothing is done. The
 * functions are global, so that the verifier examines each once.
 */
#ifndef SB_LAST_BPF_H
#define SB_LAST_BPF_H

#include "bpf/core/sb_stack.bpf.h"

/* Whether walks of the timer's slot are remembered. */
extern const volatile bool cfg_last;

/*
 * Before the first step, when the record's walk stands at the leaf and the list of mappings is set
 * (map.segs_word, nr_segs): find the last walk of this thread, and set map.is_last_on if this one
 * will be remembered. It will not be if the run does not want that, for slots other than the
 * timer's, without a list of mappings, if a runtime is called for native frames, and for a thread
 * whose returns are probed. Return: 0.
 */
int sb_last_begin(__u32 slot);
/*
 * With map.is_last_on, after each sb_unwind_step(): note the step, and then pass all frames that
 * stand as they stood at the last walk. @step: what sb_unwind_step() returned.
 * Return: SB_STEP_GO_ON; SB_STEP_END: walk.status says why.
 */
int sb_last_after(__u32 slot, __u32 step);
/*
 * When the walk has ended and the record's stack has its status, with map.is_last_on: remember it,
 * for the next sample of this thread, if it is complete.
 * Return: 0.
 */
int sb_last_keep(__u32 slot);

#endif
