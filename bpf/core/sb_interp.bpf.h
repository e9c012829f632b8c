/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Interpreter frames: what core calls, and what the walkers of bpf/interp are built with. State is
 * in the record of @slot (enum sb_scratch_slot). Implemented in core/interp.bpf.c. Functions
 * return 0 unless something else is said.
 */
#ifndef SB_INTERP_BPF_H
#define SB_INTERP_BPF_H

#include "bpf/core/sb_stack.bpf.h"

/*
 * Return: the configuration with this index, which user space wrote; NULL: there is no such index.
 */
struct sb_interp_conf *sb_interp_conf_at(__u32 at);
/*
 * Send a record through the ring interp_events, which a thread in user space reads as soon as
 * something is in it. Return: 0 or a negative errno.
 */
int sb_interp_ship(const void *event, __u64 nr_bytes);

/* Return: the thread pointer of @task, which leads to its thread-local variables. */
__u64 sb_interp_thread_pointer(const struct task_struct *task);

/* Before the native walk: find the interpreters of the process, and start from its registers. */
int sb_interp_start(__u32 slot);
/*
 * Return: whether the runtime whose frames lie on the native stack is to be called for the frame
 * where the native walk stands, before its rule is looked up.
 */
static __always_inline bool sb_interp_has_hook(const struct sb_scratch *s)
{
	const struct sb_interp_conf *conf = &s->interp.walk.conf;
	__u64 pc = sb_walk_key(&s->walk);

	return s->interp.has_hook && pc >= conf->hook_begin && pc < conf->hook_end;
}
/*
 * Call that runtime. Return: enum sb_step. If walk.has_steps is set, sb_interp_run() must follow;
 * then sb_interp_native_done(). These are three functions because calls may be eight deep.
 */
int sb_interp_native(__u32 slot);
int sb_interp_native_done(__u32 slot);
/* After the native walk: walk the frames of the @i-th runtime. */
int sb_interp_walk(__u32 slot, __u32 i);
/* Write the ID of the interpreter stack into the key, and ship the stack if it is new. */
int sb_interp_finish(__u32 slot);

/*
 * Write the ID of an interpreter stack into the key of a thread that sleeps; user space walks the
 * stack.
 */
int sb_interp_name_asleep(struct sb_sample_key *key);

/*
 * In bpf/interp/table.bpf.c: call the walker of the runtime whose configuration is in the record.
 * They are global functions, so that the verifier examines each once. Return: enum sb_step.
 */
int sb_interp_begin(__u32 slot);
int sb_interp_step(__u32 slot);
/*
 * Take up to SB_INTERP_ROUND steps, and no more than SB_INTERP_STEPS_MAX for all native frames
 * together.
 */
int sb_interp_steps(__u32 slot);
#define SB_INTERP_ROUND 32

/*
 * Take steps until the walker has come to an end. They are taken in rounds, because the verifier
 * follows each iteration of a loop.
 */
static __always_inline void sb_interp_run(__u32 slot)
{
	__u32 i;

	for (i = 0; i < SB_INTERP_STEPS_MAX / SB_INTERP_ROUND; i++)
		if (sb_interp_steps(slot) != SB_STEP_GO_ON)
			return;
}

/* Define the functions of a runtime's walker, for the table; to be used after its step header. */
#define SB_INTERP_WALKER(runtime)                                   \
	__hidden int sb_bpf_##runtime##_begin(struct sb_scratch *s) \
	{                                                           \
		return sb_##runtime##_begin(&s->interp.walk, s);    \
	}                                                           \
	__hidden int sb_bpf_##runtime##_step(struct sb_scratch *s)  \
	{                                                           \
		return sb_##runtime##_step(&s->interp.walk, s);     \
	}
#define SB_INTERP_NATIVE(runtime)                                           \
	__hidden int sb_bpf_##runtime##_native(struct sb_scratch *s)        \
	{                                                                   \
		return sb_##runtime##_native(&s->interp.walk, &s->walk, s); \
	}

/* Declare them in the table. */
#define SB_INTERP_HAS_WALKER(runtime)                       \
	int sb_bpf_##runtime##_begin(struct sb_scratch *s); \
	int sb_bpf_##runtime##_step(struct sb_scratch *s)
#define SB_INTERP_HAS_NATIVE(runtime) int sb_bpf_##runtime##_native(struct sb_scratch *s)

#endif
