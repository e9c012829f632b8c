/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Interpreter frames: what core calls, and what the runtimes of bpf/interp are made with. */
#ifndef SB_INTERP_BPF_H
#define SB_INTERP_BPF_H

#include "sb_stack.bpf.h"

/* Return: what user space has written down under this number, or NULL. */
struct sb_interp_conf *sb_interp_conf_at(__u32 at);
/* Hand a record to the thread of user space that serves them at once. Return: 0 or a negative errno. */
int sb_interp_ship(const void *event, __u64 nr_bytes);

/* Where thread-local variables of @task are found from. */
__u64 sb_interp_thread_pointer(const struct task_struct *task);

/* Before the native walk: what interpreters are there, and the registers they start from. */
int sb_interp_start(__u32 slot);
/* Return: whether the runtime whose frames lie on the native stack wants to see where the native walk
 * stands, before its rule is looked up. */
static __always_inline bool sb_interp_has_hook(const struct sb_scratch *s)
{
	const struct sb_interp_conf *conf = &s->interp.walk.conf;
	__u64 pc = sb_walk_key(&s->walk);

	return s->interp.has_hook && pc >= conf->hook_begin && pc < conf->hook_end;
}
/* Let it see. Return: enum sb_step. If walk.has_steps is set, sb_interp_run() comes next; then
 * sb_interp_native_done(). Three calls, because calls may be eight deep. */
int sb_interp_native(__u32 slot);
int sb_interp_native_done(__u32 slot);
/* After the native walk: the frames of the @i-th runtime. */
int sb_interp_walk(__u32 slot, __u32 i);
/* Name what was found in the key, and ship it if it is new. */
int sb_interp_finish(__u32 slot);

/* Name the frames of a thread that sleeps, and that user space is to walk. */
int sb_interp_name_asleep(struct sb_sample_key *key);

/*
 * In bpf/interp/table.bpf.c, for the runtime whose conf is in the record. Return: enum sb_step. Global:
 * the verifier looks at each once.
 */
int sb_interp_begin(__u32 slot);
int sb_interp_step(__u32 slot);
/* Up to SB_INTERP_ROUND steps; none beyond SB_INTERP_STEPS_MAX, which are for all native frames together. */
int sb_interp_steps(__u32 slot);
#define SB_INTERP_ROUND 32

/* Steps until the walker says that it has come to an end: rounds, because the verifier goes through a
 * loop as often as it can be taken. */
static __always_inline void sb_interp_run(__u32 slot)
{
	__u32 i;

	for (i = 0; i < SB_INTERP_STEPS_MAX / SB_INTERP_ROUND; i++)
		if (sb_interp_steps(slot) != SB_STEP_GO_ON)
			return;
}

/* The functions of a runtime's walker, for the table; behind its step header. */
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

/* And how the table knows them. */
#define SB_INTERP_HAS_WALKER(runtime)                       \
	int sb_bpf_##runtime##_begin(struct sb_scratch *s); \
	int sb_bpf_##runtime##_step(struct sb_scratch *s)
#define SB_INTERP_HAS_NATIVE(runtime) int sb_bpf_##runtime##_native(struct sb_scratch *s)

#endif
