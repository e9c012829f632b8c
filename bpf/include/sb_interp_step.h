/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What walkers of interpreters are made of. One source for both sides: in the kernel, and in user
 * space (user/interp/outside.c), which walks threads that sleep and tests what it is about to tell
 * the kernel. Who includes this defines before
 *
 *	SB_STEP_READ(mem, dst, len, addr)	copy @len bytes at @addr of the process; 0 when it worked
 *
 * (and SB_INTERP_READ, where walks of interpreters read by other means). A runtime has a header sb_step_<runtime>.h with the words of its configuration and
 *
 *	enum sb_step sb_<runtime>_begin(struct sb_interp_walk *w, void *mem)
 *	enum sb_step sb_<runtime>_step(struct sb_interp_walk *w, void *mem)
 *
 * begin() finds the state of the thread and leaves in w->at what step() goes by; step() moves over
 * one record of the interpreter's stack and pushes at most one frame (or none). Both return
 * SB_STEP_GO_ON, or SB_STEP_END with w->status set: SB_STACK_COMPLETE at the root, or when the
 * thread does not run this interpreter. A runtime whose frames lie on the native stack has instead
 *
 *	enum sb_step sb_<runtime>_native(struct sb_interp_walk *w, struct sb_walk *walk, void *mem)
 *
 * called for one native frame, at which @walk stands. It pushes the frames that this native frame
 * stands for, innermost first, and returns SB_STEP_FP_CHAIN: go on as without me (by the table's
 * rule, by the frame pointer); SB_STEP_GO_ON: it has moved @walk to the caller (sb_step_to());
 * SB_STEP_END: with sb_step_end(). When there may be many frames, it sets w->has_steps, and step()
 * is called until it returns SB_STEP_END, before the native walk goes on; w->status is ignored then.
 *
 * Everything read is the process's, and may be anything. There is no loop but with a constant
 * bound, and few of them: core/interp.bpf.c loops over steps.
 */
#ifndef SB_INTERP_STEP_H
#define SB_INTERP_STEP_H

#include "sb_abi_interp.h"
#include "sb_unwind_step.h"

#ifndef SB_INTERP_READ
#define SB_INTERP_READ SB_STEP_READ
#endif

/* Steps of one walk: frames, and records that are none. On the native stack those of all its frames. */
#define SB_INTERP_STEPS_MAX 1024

struct sb_interp_walk {
	struct sb_interp_conf conf; /* of the runtime whose walk this is */
	/* The thread, as it was interrupted or entered the kernel. */
	__u64 thread_pointer; /* x86-64: the base of fs; arm64: tpidr_el0 */
	__u64 pc, sp;
	__u64 regs[SB_UNWIND_REGS]; /* by DWARF numbers, see there */
	__u64 at[16];		    /* the walker's own; zero at begin() */
	__u64 fault_addr;	    /* that could not be read last */
	__u32 status;		    /* enum sb_stack_status, once SB_STEP_END was returned */
	__u32 wants_lines;	    /* whether positions are of use */
	__u64 hash[2];		    /* of the frames so far */
	/* Set by native(): the frames of this native frame are found by step(), now. */
	__u32 has_steps;
	__u32 reserved;
	__u64 nr_frames;
	struct sb_interp_event event; /* leads the frames on their way to user space */
	struct sb_interp_frame frame[SB_INTERP_FRAMES_MAX];
};

static __always_inline enum sb_step sb_interp_end(struct sb_interp_walk *w, __u32 status)
{
	w->status = status;
	return SB_STEP_END;
}

static __always_inline void sb_interp_mix(struct sb_interp_walk *w, __u64 word)
{
	w->hash[0] = (w->hash[0] ^ word) * 0x9e3779b97f4a7c15ull;
	w->hash[0] ^= w->hash[0] >> 29;
	w->hash[1] = (w->hash[1] + word) * 0xc2b2ae3d27d4eb4full;
	w->hash[1] ^= w->hash[1] >> 32;
}

/* Append a frame: code object, position in it, a few bits to know it again by. */
static __always_inline enum sb_step sb_interp_push(struct sb_interp_walk *w, __u64 obj,
						   __u64 position, __u64 check)
{
	__u64 at = w->nr_frames;
	__u64 where = (__u64)w->conf.runtime << SB_WHERE_RUNTIME_SHIFT |
		      (check & SB_WHERE_CHECK_MASK) << SB_WHERE_CHECK_SHIFT |
		      (position & SB_WHERE_POSITION_MASK);

	SB_STEP_OPAQUE(at);
	if (at >= SB_INTERP_FRAMES_MAX)
		return sb_interp_end(w, SB_STACK_DEPTH);
	w->frame[at].obj = obj;
	w->frame[at].where = where;
	w->nr_frames = at + 1;
	sb_interp_mix(w, obj);
	sb_interp_mix(w, where);
	return SB_STEP_GO_ON;
}

/* The frame pushed last is the outermost of its segment. */
static __always_inline void sb_interp_segment_end(struct sb_interp_walk *w)
{
	__u64 at = w->nr_frames - 1;

	SB_STEP_OPAQUE(at);
	if (at >= SB_INTERP_FRAMES_MAX)
		return;
	w->frame[at].where |= SB_WHERE_END;
	sb_interp_mix(w, SB_WHERE_END);
}

/* Copy from the process; an address that cannot be read is noted. Return: 0 when it worked. */
#define sb_interp_read(w, mem, dst, len, addr)                   \
	({                                                       \
		__u64 addr_ = (addr);                            \
		int err_ = SB_INTERP_READ(mem, dst, len, addr_); \
                                                                 \
		if (err_)                                        \
			(w)->fault_addr = addr_;                 \
		err_;                                            \
	})

/*
 * What a read that may have failed has left: the kernel's helper zeroes it then. Not a question asked
 * of the result, because the verifier would follow both answers from there on.
 */
#ifdef __bpf__
#define sb_interp_read_or_0(failed, val) ((void)(failed), (val))
#else
#define sb_interp_read_or_0(failed, val) ((failed) ? 0 : (val))
#endif

/* Return: the word at @addr; 0 when it cannot be read. */
static __always_inline __u64 sb_interp_word(struct sb_interp_walk *w, void *mem, __u64 addr)
{
	__u64 val = 0;
	int err = sb_interp_read(w, mem, &val, sizeof(val), addr);

	return sb_interp_read_or_0(err, val);
}

static __always_inline __u32 sb_interp_u32(struct sb_interp_walk *w, void *mem, __u64 addr)
{
	__u32 val = 0;
	int err = sb_interp_read(w, mem, &val, sizeof(val), addr);

	return sb_interp_read_or_0(err, val);
}

static __always_inline __u8 sb_interp_u8(struct sb_interp_walk *w, void *mem, __u64 addr)
{
	__u8 val = 0;
	int err = sb_interp_read(w, mem, &val, sizeof(val), addr);

	return sb_interp_read_or_0(err, val);
}

/* How pthread_getspecific() finds its values: user/interp/threads.c fills it in by the libc. */
struct sb_interp_tsd {
	__u16 is_musl;
	__u16 first_block; /* glibc: struct pthread.specific_1stblock */
	__u16 blocks;	   /* glibc: struct pthread.specific; musl: struct pthread.tsd */
	__u16 below;	   /* arm64: how far struct pthread lies below the thread pointer */
};

/* What pthread_self() returns. On x86-64 the thread pointer points to it. */
static __always_inline __u64 sb_interp_pthread(const struct sb_interp_walk *w,
					       const struct sb_interp_tsd *tsd)
{
#ifdef SB_MACHINE_ARM64
	return w->thread_pointer - tsd->below;
#else
	return w->thread_pointer;
#endif
}

/*
 * pthread_getspecific(@key). glibc: nptl/pthread_getspecific.c; musl: src/thread/
 * pthread_getspecific.c. Return: 0 when it is not set.
 */
static __always_inline __u64 sb_interp_tsd_get(struct sb_interp_walk *w, void *mem,
					       const struct sb_interp_tsd *tsd, __u32 key)
{
	__u64 self = sb_interp_pthread(w, tsd), block = self + tsd->first_block;

	if (tsd->is_musl)
		return sb_interp_word(w, mem,
				      sb_interp_word(w, mem, self + tsd->blocks) + 8ull * key);
	if (key >= 32) {
		block = sb_interp_word(w, mem, self + tsd->blocks + 8ull * (key / 32));
		if (!block || key >= 1024)
			return 0;
	}
	return sb_interp_word(w, mem, block + 16ull * (key % 32) + 8);
}

/*
 * A thread-local variable of a library, by the pair {module, offset} that the dynamic linker left in
 * the library's GOT: "ELF Handling For Thread-Local Storage" (Drepper), section 3.4.3, variant II.
 * @is_musl: one word for each module, not two. Return: its address; 0: not there.
 */
static __always_inline __u64 sb_interp_tls_addr(struct sb_interp_walk *w, void *mem, __u64 got,
						__u32 is_musl)
{
	__u64 module = sb_interp_word(w, mem, got), offset = sb_interp_word(w, mem, got + 8);
	__u64 dtv = sb_interp_word(w, mem, w->thread_pointer + 8), block;

	if (!dtv || !module || module > 4096)
		return 0;
	block = sb_interp_word(w, mem, dtv + module * (is_musl ? 8 : 16));
	/* TLS_DTV_UNALLOCATED is -1: this thread has not touched the variable yet. */
	return block && block != ~0ull ? block + offset : 0;
}

#endif
