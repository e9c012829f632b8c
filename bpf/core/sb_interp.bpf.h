/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Interpreter frames: what core calls, and what the walkers of bpf/interp are built with.
 * Implemented in core/interp.bpf.c. Everything runs in a BPF program, for the current task.
 *
 * @slot: enum sb_scratch_slot of the calling program; it names the struct sb_scratch ("the record")
 * of this CPU and kind of program, which holds the state of the walk. Functions return 0 unless
 * something else is said. A slot that does not exist makes them do nothing, and steps return
 * SB_STEP_END for it. No pointer may be NULL, and none is kept. For each sample, sb_interp_start()
 * comes first, then the native walk with sb_interp_native(), then, unless interp.nr_confs is 0,
 * sb_interp_walk() for each @i, and sb_interp_finish(). If the native stack was shipped raw
 * (map.is_raw), the caller drops its interpreter frames before these two (walk.nr_frames = 0).
 *
 * Results of a step, enum sb_step: SB_STEP_GO_ON: take the next one; SB_STEP_END: the walk has
 * ended, and walk.status of the record says why; SB_STEP_FP_CHAIN, of sb_interp_native() only: no
 * frame was found, so the native walk goes on by the table's rule or by the frame pointer.
 */
#ifndef SB_INTERP_BPF_H
#define SB_INTERP_BPF_H

#include "bpf/core/sb_stack.bpf.h"

/*
 * Return: the configuration at index @at of the array interp_confs, which user space wrote,
 * borrowed and valid until the program ends; it may be overwritten at any time, so copy it. NULL:
 * there is no such index.
 */
struct sb_interp_conf *sb_interp_conf_at(__u32 at);
/*
 * Copy the record @event (struct sb_interp_event and what follows it, @nr_bytes together) into the
 * ring interp_events, which a thread in user space reads as soon as something is in it.
 * Return: 0; -EAGAIN when the ring is full: nothing was copied. The caller counts the loss.
 */
int sb_interp_ship(const void *event, __u64 nr_bytes);

/*
 * Return: the thread pointer of @task (the base of fs, tpidr_el0), which leads to its thread-local
 * variables, as the kernel has last saved it in the task; 0 if it cannot be read, or user code has
 * not set one yet. Of a kernel thread it means nothing. @task need not be the current one.
 */
__u64 sb_interp_thread_pointer(const struct task_struct *task);

/*
 * Before the native walk, with the user's registers and the key in the record: find the
 * interpreters of the process, and where it has labels (interp.labels of the record), and drop the
 * frames of the last sample. Asks user space for them if the process is not known, in which case,
 * and if the run asks for neither, this sample has no interpreter frames and no labels
 * (interp.nr_confs, labels and has_hook are 0). If the ring is full, that is counted
 * (SB_STAT_INTERP_FULL, SB_STAT_NEEDS_FULL), and the next sample asks again.
 */
int sb_interp_start(__u32 slot);
/*
 * In place of sb_interp_start(), for another sample of the thread of the last one: keep what the
 * record has of the interpreters of the process (interp.proc, nr_confs, has_hook, labels), which
 * the caller has found to be up to date (sb_proc_changes()), and drop the frames of the last
 * sample. The key has its tgid, start_ns and exec_id already.
 */
int sb_interp_restart(__u32 slot);
/*
 * Return: whether the runtime whose frames lie on the native stack is to be called for the frame
 * where the native walk stands, before its rule is looked up: whether the process has such a
 * runtime, and the frame's address is in its range [hook_begin, hook_end).
 */
static __always_inline bool sb_interp_has_hook(const struct sb_scratch *s)
{
	const struct sb_interp_conf *conf = &s->interp.walk.conf;
	__u64 pc = sb_walk_key(&s->walk);

	return s->interp.has_hook && pc >= conf->hook_begin && pc < conf->hook_end;
}
/*
 * Call the runtime of sb_interp_has_hook(), in bpf/interp/table.bpf.c: for a frame for which that
 * is true, and for code without an unwind rule if interp.has_hook of the record is set. If
 * walk.has_steps is set afterwards, sb_interp_run() must follow; and always, whatever was returned,
 * sb_interp_native_done(), which marks the native frame if frames were found for it (SB_IP_INTERP).
 * These are three functions because calls may be eight deep.
 * Return: enum sb_step: SB_STEP_GO_ON: the native walk was moved to the caller, which is still to
 * be pushed; SB_STEP_FP_CHAIN also if the runtime has no such walker. sb_interp_native_done(): 0.
 */
int sb_interp_native(__u32 slot);
int sb_interp_native_done(__u32 slot);
/*
 * After the native walk: walk the frames of the @i-th runtime of the process (0 to
 * SB_INTERP_PER_PROC - 1), if there is one and its frames are reached from the thread's state; they
 * are added to those of earlier walks. If the walk does not end as complete, walk.event.status says
 * why, and the frames found until then remain; for memory that could not be read, user space is
 * asked to bring the page in.
 */
int sb_interp_walk(__u32 slot, __u32 i);
/*
 * After all walks: write the ID of the interpreter stack into the key, and ship the stack if it is
 * new. If the ring is full, that is counted (SB_STAT_INTERP_FULL), the key has the ID all the same,
 * and the next sample with this stack tries again. Without frames the key stays as it is.
 */
int sb_interp_finish(__u32 slot);
/* Call sb_interp_walk() for all runtimes of the process, and then sb_interp_finish(). */
static __always_inline void sb_interp_walk_all(__u32 slot)
{
	__u32 i;

	for (i = 0; i < SB_INTERP_PER_PROC; i++)
		sb_interp_walk(slot, i);
	sb_interp_finish(slot);
}

/*
 * For a thread that sleeps and is not the current task (sb_take_asleep()): write an ID for its
 * interpreter stack into @key, derived from @key->ustack, which must be set. User space does not
 * see this from the key: the caller also ships the raw native stack (struct sb_event_raw) with the
 * ID @key->ustack, from which user space derives the same ID and walks the stack. Does nothing if
 * the run asks for no interpreters. @key need not be in a record.
 */
int sb_interp_name_asleep(struct sb_sample_key *key);

/*
 * In bpf/interp/table.bpf.c: call the walker of the runtime walk.conf.runtime, for runtimes whose
 * frames are reached from the thread's state. begin() finds that state; steps() then takes up to
 * SB_INTERP_ROUND steps, each of which moves over one record of the interpreter's stack and pushes
 * at most one frame. Only bpf/core calls them: sb_interp_walk() has set walk.conf, and walk.at to
 * zeros. At SB_INTERP_STEPS_MAX steps, counted for one walk by state or for all native frames
 * together, the walk ends with SB_STACK_DEPTH. They are global functions, so that the verifier
 * examines each once.
 * Return: SB_STEP_GO_ON: call steps() (again); SB_STEP_END, also for a runtime without a walker,
 * and then walk.status stays as it is.
 */
int sb_interp_begin(__u32 slot);
int sb_interp_steps(__u32 slot);
#define SB_INTERP_ROUND 16

/*
 * After sb_interp_begin(), or sb_interp_native() with walk.has_steps: take steps until the walker
 * has come to an end, at most SB_INTERP_STEPS_MAX. They are taken in rounds, because the verifier
 * follows each iteration of a loop.
 */
static __always_inline void sb_interp_run(__u32 slot)
{
	__u32 i;

	for (i = 0; i < SB_INTERP_STEPS_MAX / SB_INTERP_ROUND; i++)
		if (sb_interp_steps(slot) != SB_STEP_GO_ON)
			return;
}

/*
 * The walkers that the program has, bits 1 << enum sb_runtime_kind, set before load. The verifier
 * does not follow code that is behind a test of the others: most of what it follows is walkers. Up
 * to Linux 6.7 it examines every global function, called or not, so each of them has such a test at
 * its beginning.
 */
extern const volatile __u32 cfg_interp_walkers;
enum {
#define SB_RUNTIME(number, name, how) SB_INTERP_BIT_##name = 1u << SB_RUNTIME_##number,
#include "bpf/abi/sb_runtimes.def"
#undef SB_RUNTIME
};
#define SB_INTERP_HAS(runtime) (cfg_interp_walkers & SB_INTERP_BIT_##runtime)

/*
 * Define the functions of a runtime's walker, for the table; to be used after its step header
 * bpf/step/sb_step_<runtime>.h. WALKER: frames reached from the thread's state; NATIVE: frames that
 * lie on the native stack.
 */
#define SB_INTERP_WALKER(runtime)                                   \
	__hidden int sb_bpf_##runtime##_begin(struct sb_scratch *s) \
	{                                                           \
		return sb_##runtime##_begin(&s->interp.walk, s);    \
	}                                                           \
	__noinline int sb_bpf_##runtime##_step(__u32 slot)          \
	{                                                           \
		struct sb_scratch *s = sb_scratch_get(slot);        \
                                                                    \
		if (!SB_INTERP_HAS(runtime) || !s)                  \
			return SB_STEP_END;                         \
		return sb_##runtime##_step(&s->interp.walk, s);     \
	}
#define SB_INTERP_NATIVE(runtime)                                           \
	__hidden int sb_bpf_##runtime##_native(struct sb_scratch *s)        \
	{                                                                   \
		return sb_##runtime##_native(&s->interp.walk, &s->walk, s); \
	}

/* Declare these functions in the table. */
#define SB_INTERP_HAS_WALKER(runtime)                       \
	int sb_bpf_##runtime##_begin(struct sb_scratch *s); \
	int sb_bpf_##runtime##_step(__u32 slot)
#define SB_INTERP_HAS_NATIVE(runtime) int sb_bpf_##runtime##_native(struct sb_scratch *s)

#endif
