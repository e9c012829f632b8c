/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The building blocks of walkers of interpreters. Both sides compile this source: the kernel, and
 * user space (user/interp/core/user_walk.c), which walks threads that sleep, and tests a
 * configuration before it gives it to the kernel. Before including it, define
 *
 *	SB_STEP_READ(mem, dst, len, addr)	copy @len bytes at @addr of the process; 0: success
 *
 * and SB_INTERP_READ, if walkers of interpreters read by other means. Each runtime has a header
 * sb_step_<runtime>.h with the words of its configuration and
 *
 *	enum sb_step sb_<runtime>_begin(struct sb_interp_walk *w, void *mem)
 *	enum sb_step sb_<runtime>_step(struct sb_interp_walk *w, void *mem)
 *
 * begin() finds the state of the thread and stores what step() needs in w->at. step() moves over
 * one record of the interpreter's stack and pushes at most one frame. Both return SB_STEP_GO_ON,
 * or SB_STEP_END with w->status set: SB_STACK_COMPLETE at the root, or if the thread does not run
 * this interpreter. A runtime whose frames lie on the native stack has instead
 *
 *	enum sb_step sb_<runtime>_native(struct sb_interp_walk *w, struct sb_walk *walk, void *mem)
 *
 * It is called for the native frame where @walk stands, if its address is in [conf.hook_begin,
 * conf.hook_end) or has no unwind rule, and pushes the frames that this native frame stands for,
 * innermost first. It returns SB_STEP_FP_CHAIN: continue as without it (by the table's rule, or by
 * the frame pointer); SB_STEP_GO_ON: it has moved @walk to the caller (sb_step_to()); or
 * SB_STEP_END, by sb_step_end(). If there may be many frames, it sets w->has_steps: then step() is
 * called until it returns SB_STEP_END, before the native walk continues; w->status is ignored in
 * that case. The caller clears w->has_steps before each call of native(). It zeroes w->at before
 * the first native frame of a thread, and leaves it alone until the last.
 *
 * Everything that is read belongs to the process and may be anything. All loops have a constant
 * bound, and there are few of them: core/interp.bpf.c loops over steps. Frames that were pushed
 * remain, also when a walk ends with an error: w->nr_frames in w->frame, leaf first. In all
 * functions, *@w is all the state there is (one thread for each, or any BPF program), @mem is
 * passed to SB_INTERP_READ, and addresses are those of the process. No pointer may be NULL, except
 * @mem if SB_INTERP_READ does without it, and none is kept.
 */
#ifndef SB_INTERP_STEP_H
#define SB_INTERP_STEP_H

#include "bpf/abi/sb_abi_interp.h"

#include "bpf/step/sb_unwind_step.h"

#ifndef SB_INTERP_READ
#define SB_INTERP_READ SB_STEP_READ
#endif

/*
 * Bound of the steps of one walk, including records that are not frames. For a runtime on the
 * native stack it is shared by all native frames.
 */
#define SB_INTERP_STEPS_MAX 1024

#define SB_INTERP_AT_WORDS  28
#define SB_INTERP_BUF_WORDS 16 /* a power of two, so that an index can be masked */

/*
 * The state of a walk of one runtime in one thread. The caller sets conf, thread_pointer, pc, sp,
 * regs and wants_lines before begin() or the first native(), and at to zeros; before begin() also
 * status to SB_STACK_DEPTH, which remains if the steps come to no end; and, before the first
 * runtime of a thread, nr_frames to 0 and hash to the seed of IDs.
 */
struct sb_interp_walk {
	struct sb_interp_conf conf; /* configuration of the runtime */
	/* The thread, as it was interrupted or entered the kernel. */
	__u64 thread_pointer; /* x86-64: the base of fs; arm64: tpidr_el0 */
	__u64 pc, sp;
	__u64 regs[SB_UNWIND_REGS];	/* by DWARF numbers, see there */
	__u64 at[SB_INTERP_AT_WORDS];	/* private to the walker; zero at begin() */
	__u64 buf[SB_INTERP_BUF_WORDS]; /* private to one step; never zeroed */
	__u64 fault_addr;		/* the last address that could not be read */
	__u32 status;			/* enum sb_stack_status, once SB_STEP_END was returned */
	__u32 wants_lines;		/* whether positions are wanted */
	__u64 hash[2];			/* of the frames so far */
	/* Set by native(): step() is to be called now for the frames of this native frame. */
	__u32 has_steps;
	__u32 reserved;
	__u64 nr_frames;
	struct sb_interp_event event; /* header of the record in which the frames are shipped */
	struct sb_interp_frame frame[SB_INTERP_FRAMES_MAX];
};

/* End the walk of the interpreter with @status (enum sb_stack_status). Return: SB_STEP_END, for
 * step() to return. This does not end the native walk: sb_step_end() does. */
static __always_inline enum sb_step sb_interp_end(struct sb_interp_walk *w, __u32 status)
{
	w->status = status;
	return SB_STEP_END;
}

/* Add @word to w->hash, from which the ID of the interpreter stack is made. Frames are added by
 * sb_interp_push() and sb_interp_segment_end() themselves. */
static __always_inline void sb_interp_mix(struct sb_interp_walk *w, __u64 word)
{
	w->hash[0] = (w->hash[0] ^ word) * 0x9e3779b97f4a7c15ull;
	w->hash[0] ^= w->hash[0] >> 29;
	w->hash[1] = (w->hash[1] + word) * 0xc2b2ae3d27d4eb4full;
	w->hash[1] ^= w->hash[1] >> 32;
}

/*
 * Append a frame, towards the root: the code object @obj, the @position in it (in the runtime's own
 * unit; 0 if it is not wanted), and @check, a few bits by which the object is recognized if another
 * one is made at its address. Higher bits of @position and @check are cut off (SB_WHERE_*_MASK).
 * Return: SB_STEP_GO_ON; SB_STEP_END with SB_STACK_DEPTH in w->status when there are
 * SB_INTERP_FRAMES_MAX already: the frame was not added. step() returns that as it is; native() may
 * not, because walk->status is not set: it uses sb_step_end(), or goes on without the frame.
 */
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

/*
 * Mark the frame that was pushed last as the root frame of its segment: C code called it. Does
 * nothing if there is no frame. For frames of native(), and of the steps after it, the caller of
 * native() does this.
 */
static __always_inline void sb_interp_segment_end(struct sb_interp_walk *w)
{
	__u64 at = w->nr_frames - 1;

	SB_STEP_OPAQUE(at);
	if (at >= SB_INTERP_FRAMES_MAX)
		return;
	w->frame[at].where |= SB_WHERE_END;
	sb_interp_mix(w, SB_WHERE_END);
}

/*
 * Copy @len bytes from the process; an address that cannot be read is noted in w->fault_addr, and
 * then @dst is zero in BPF, and for native() in user space, too; else it may be partly overwritten.
 * Return: 0 on success.
 */
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
 * The value of a read that may have failed, in which case it is 0: the kernel's helper has zeroed
 * it then. In BPF there is no test, because the verifier would follow both results from there on.
 */
#ifdef __bpf__
#define sb_interp_read_or_0(failed, val) ((void)(failed), (val))
#else
#define sb_interp_read_or_0(failed, val) ((failed) ? 0 : (val))
#endif

/* Return: the word (8 bytes) at @addr of the process; 0 when it cannot be read, and then
 * w->fault_addr is @addr. */
static __always_inline __u64 sb_interp_word(struct sb_interp_walk *w, void *mem, __u64 addr)
{
	__u64 val = 0;
	int err = sb_interp_read(w, mem, &val, sizeof(val), addr);

	return sb_interp_read_or_0(err, val);
}

/* Return: the 4 bytes at @addr of the process; 0 when they cannot be read, and then w->fault_addr
 * is @addr. */
static __always_inline __u32 sb_interp_u32(struct sb_interp_walk *w, void *mem, __u64 addr)
{
	__u32 val = 0;
	int err = sb_interp_read(w, mem, &val, sizeof(val), addr);

	return sb_interp_read_or_0(err, val);
}

/* Return: the byte at @addr of the process; 0 when it cannot be read, and then w->fault_addr is
 * @addr. */
static __always_inline __u8 sb_interp_u8(struct sb_interp_walk *w, void *mem, __u64 addr)
{
	__u8 val = 0;
	int err = sb_interp_read(w, mem, &val, sizeof(val), addr);

	return sb_interp_read_or_0(err, val);
}

/*
 * The layout by which pthread_getspecific() finds its values; user/interp/core/threads.c fills it
 * in for the process's libc.
 */
struct sb_interp_tsd {
	__u16 is_musl;
	__u16 first_block; /* glibc: struct pthread.specific_1stblock */
	__u16 blocks;	   /* glibc: struct pthread.specific; musl: struct pthread.tsd */
	__u16 below;	   /* arm64: how far struct pthread lies below the thread pointer */
};

/*
 * Return: what pthread_self() returns in the thread that is walked, without reading memory. On
 * x86-64 that is the thread pointer itself, and @tsd is not used; on arm64 it lies tsd->below bytes
 * below it.
 */
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
 * Return: what pthread_getspecific(@key) returns in the thread that is walked; 0 if it is not set
 * or cannot be read. Layouts: glibc nptl/pthread_getspecific.c; musl
 * src/thread/pthread_getspecific.c.
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
 * Return: the offset from the thread pointer of the word that points to the dynamic thread vector.
 * glibc: tcbhead_t.dtv of sysdeps/x86_64/nptl/tls.h, sysdeps/aarch64/nptl/tls.h; musl: struct
 * pthread.dtv.
 */
static __always_inline __u64 sb_interp_dtv_at(__u32 is_musl)
{
#ifdef SB_MACHINE_ARM64
	return is_musl ? -8ull : 0;
#else
	return 8;
#endif
}

/*
 * Find a thread-local variable of a library by the pair {module, offset} that the dynamic linker
 * has stored in the library's GOT, or behind a TLS descriptor: "ELF Handling For Thread-Local
 * Storage" (Drepper), section 3. @got: address of the pair in the process. @is_musl: the
 * vector has one word for each module instead of two.
 * Return: the variable's address; 0: this thread does not have it yet, or memory cannot be read.
 */
static __always_inline __u64 sb_interp_tls_addr(struct sb_interp_walk *w, void *mem, __u64 got,
						__u32 is_musl)
{
	__u64 module = sb_interp_word(w, mem, got), offset = sb_interp_word(w, mem, got + 8);
	__u64 dtv, block;

	dtv = sb_interp_word(w, mem, w->thread_pointer + sb_interp_dtv_at(is_musl));
	if (!dtv || !module || module > 4096)
		return 0;
	block = sb_interp_word(w, mem, dtv + module * (is_musl ? 8 : 16));
	/* TLS_DTV_UNALLOCATED is -1: this thread has not touched the variable yet. */
	return block && block != ~0ull ? block + offset : 0;
}

#endif
