/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For core: calls whose returns are probed, so that their stacks can be walked. A return probe
 * (uretprobe, of any tool) replaces the return address on the stack when its function is entered.
 * The new one is that of a trampoline, which is the beginning of the mapping [uprobes]. The true
 * address is in a list in the task, newest call first, together with the stack pointer at the entry
 * (kernel/events/uprobes.c, prepare_uretprobe()).
 *
 * bpf_get_stack() goes by that list since Linux 6.11 (kernel/events/callchain.c), but in the order
 * of the list alone. Here a call is found by its stack pointer, because the list may still have
 * calls that longjmp() or an exception has left. A walk begins at the newest frame, so one pass
 * over the list serves all frames of a walk: sb_returns_begin() first, then sb_returns_find() for
 * each frame whose return address is map.returns.trampoline; or sb_returns_next() for each call.
 * Runs in BPF programs. The state is in map.returns of a record (struct sb_scratch of this CPU and
 * kind of program). Memory of the kernel that cannot be read counts as 0.
 */
#ifndef SB_RETURNS_BPF_H
#define SB_RETURNS_BPF_H

#include <bpf/bpf_core_read.h>

#include "bpf/core/sb_stack.bpf.h"

/* Calls that the kernel allows to be pending: MAX_URETPROBE_DEPTH of linux/uprobes.h. */
#define SB_RETURNS_MAX 64

/*
 * How much higher than at the entry of a function the stack pointer is for its caller. On x86-64 it
 * points to the return address at the entry.
 */
#if defined(__TARGET_ARCH_x86)
#define SB_RETURN_BYTES 8
#else
#define SB_RETURN_BYTES 0
#endif

/* Set map.returns of the record @s to before the newest call of @task, which may be another task.
 * If no return of @task has ever been probed, map.returns.trampoline is 0; stack and addr stay as
 * they are. No pointer may be NULL. */
static __always_inline void sb_returns_begin(struct sb_scratch *s, const struct task_struct *task)
{
	struct uprobe_task *utask;

	s->map.returns.trampoline = s->map.returns.next = 0;
	if (!bpf_core_field_exists(task->utask))
		return;
	utask = BPF_CORE_READ(task, utask);
	if (!utask)
		return;
	s->map.returns.next = (__u64)BPF_CORE_READ(utask, return_instances);
	s->map.returns.trampoline = BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
}

/*
 * Advance @returns, the map.returns of a record, to the next older call, and set its stack and addr
 * to those of this call. Global, so that the verifier examines it once and not for each iteration
 * of a loop. Implemented in core/unwind.bpf.c.
 * Return: 0; -ENOENT: there is none, and @returns is unchanged, or it is NULL.
 */
int sb_returns_next(struct sb_returns *returns);

/*
 * Advance map.returns to the call whose caller has its stack pointer at @sp, or up to @more bytes
 * above. Several calls may have the same stack pointer, when several tools probe one function or a
 * function ends with a jump to another one; then each of them has the true address. Implemented in
 * core/unwind.bpf.c. @slot: enum sb_scratch_slot of the calling program, which names the record.
 * Return: 0: map.returns.addr is the true address, and map.returns.stack + SB_RETURN_BYTES the
 * caller's stack pointer; -ENOENT: there is none, and all calls have been passed, so that later
 * ones are not found either: the walk ends (SB_STACK_RETURN_PROBE); or there is no such slot.
 */
int sb_returns_find(__u32 slot, __u64 sp, __u64 more);

#endif
