/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walker of Ruby (MRI) 2.5 and later. Each thread and each fiber has a VM stack, from the end of
 * which an array of control frames grows downwards. Its execution context points to the stack and
 * to the frame that runs. Sources: vm_core.h of Ruby: rb_control_frame_t, rb_execution_context_t,
 * VM_FRAME_*; method.h: rb_method_entry_t; rb_vm_frame_method_entry() in vm_insnhelper.c: how the
 * method is found that a block belongs to.
 *
 * obj and position of a frame are one number of 112 bits, from the lowest up:
 *
 *	44	address of the iseq (the compiled code) / 8; 0: a function of C
 *	44	address of the method entry / 8, which leads to the class; 0: not in a method
 *	24	position in the code as a number of words; SB_RUBY_NOWHERE
 *
 * On arm64, whose addresses have one bit more, these are 45, 45 and 22 bits.
 *
 * In all functions, *@w is the walk of Ruby in one thread, whose conf.word is a struct
 * sb_ruby_conf, and @mem is passed to SB_INTERP_READ, which copies from the process; there is no
 * other state, so they run in any thread and BPF program. No pointer may be NULL but @mem.
 * Addresses are those of the process; memory that cannot be read counts as 0 unless said otherwise.
 * Results, enum sb_step: SB_STEP_GO_ON: call step() (again); SB_STEP_END: w->status (SB_STACK_*)
 * says why: FAULT, BAD_FP for impossible frames, DEPTH, COMPLETE. Order: sb_ruby_begin() once, then
 * sb_ruby_step() until it returns SB_STEP_END, as sb_interp_step.h says; the other functions are
 * parts of these. Frames that were pushed by then remain, also after an error.
 */
#ifndef SB_STEP_RUBY_H
#define SB_STEP_RUBY_H

#include "bpf/step/sb_interp_step.h"

/* How the execution context of a thread is found. */
enum sb_ruby_by {
	SB_RUBY_BY_TSD,	   /* before 3.0: pthread_getspecific() returns the rb_thread_t */
	SB_RUBY_BY_GOT,	   /* a thread-local variable of a library */
	SB_RUBY_BY_OFFSET, /* a thread-local variable of the program */
};

struct sb_ruby_conf {
	__u64 ec_got;	 /* BY_GOT: address of the pair {module, offset} */
	__u64 ec_offset; /* relative to that variable; BY_OFFSET: to the thread pointer, negative */
	__u64 vm_addr;	 /* BY_TSD: address of ruby_current_vm_ptr */
	struct sb_interp_tsd tsd;
	__u16 key, by;
	__u16 thread_vm, thread_ec; /* offsets in rb_thread_t */
	__u16 cfp_bytes;	    /* sizeof(rb_control_frame_t) */
};
_Static_assert(sizeof(struct sb_ruby_conf) <= 8 * SB_INTERP_CONF_WORDS, "it fits");

/*
 * Indexes in at[]: the next frame and the end of the array; then the frame whose method is
 * searched.
 */
enum {
	SB_RUBY_CFP,
	SB_RUBY_CFP_END,
	SB_RUBY_PC,
	SB_RUBY_ISEQ,
	SB_RUBY_FLAGS,
	SB_RUBY_METHOD_ENTRY,
	SB_RUBY_DEF,
	SB_RUBY_HOPS, /* environments examined; 0: no method is searched */
	SB_RUBY_ENV,
	SB_RUBY_ENV_PREV,
	SB_RUBY_ENV_FLAGS,
};

/* VM_FRAME_MAGIC_*, bits 30-16 of a frame's flags; bit 31 was in use, too, before 2.6. */
enum sb_ruby_kind {
	SB_RUBY_METHOD = 0x1111,
	SB_RUBY_BLOCK = 0x2222,
	SB_RUBY_CLASS = 0x3333,
	SB_RUBY_TOP = 0x4444,
	SB_RUBY_CFUNC = 0x5555,
	SB_RUBY_IFUNC = 0x6666,
	SB_RUBY_EVAL = 0x7777,
	SB_RUBY_RESCUE = 0x7888,
	SB_RUBY_RESCUE_25 = 0x0888,
	SB_RUBY_DUMMY = 0x7999,
	SB_RUBY_DUMMY_25 = 0x1999,
};

/*
 * VM_ENV_FLAG_LOCAL: of a method, not of a block in it. VM_FRAME_FLAG_FINISH: C code called the
 * frame.
 */
#define SB_RUBY_LOCAL	     0x02ull
#define SB_RUBY_FINISH	     0x20ull
/* Bound of nested blocks: for a block that is nested deeper the method is not found. */
#define SB_RUBY_HOPS_MAX     64
#define SB_RUBY_ADDR_BITS    (SB_USER_ADDR_BITS - 3)
#define SB_RUBY_ADDR_MASK    ((1ull << SB_RUBY_ADDR_BITS) - 1)
/* Bits of the method entry's address that are in obj, and in the position. */
#define SB_RUBY_METHOD_LOW   (64 - SB_RUBY_ADDR_BITS)
#define SB_RUBY_METHOD_HIGH  (SB_RUBY_ADDR_BITS - SB_RUBY_METHOD_LOW)
#define SB_RUBY_NOWHERE	     (SB_WHERE_POSITION_MASK >> SB_RUBY_METHOD_HIGH)
#define SB_RUBY_STACK_MAX    (1ull << 30)
/* internal/imemo.h: the type of an object of type T_IMEMO; 0: it is another one. */
#define SB_RUBY_IMEMO(flags) (((flags)&0x1f) == 0x1a ? ((flags) >> 12) & 15 : 0)
#define SB_RUBY_IMEMO_SVAR   2
#define SB_RUBY_IMEMO_MENT   6
#define SB_RUBY_IMEMO_ISEQ   7

/* Return: the configuration of this runtime in this process: w->conf.word. */
static __always_inline const struct sb_ruby_conf *sb_ruby_conf(const struct sb_interp_walk *w)
{
	return (const struct sb_ruby_conf *)w->conf.word;
}

/* Return: a few bits of the address @addr, which malloc() returned, for the @check of
 * sb_interp_push(). */
static __always_inline __u64 sb_ruby_check(__u64 addr)
{
	return (addr >> 4) ^ (addr >> 15);
}

/* Return: the address of the thread's execution context; 0: it is not a thread of Ruby, or what
 * leads to the context cannot be read. */
static __always_inline __u64 sb_ruby_context(struct sb_interp_walk *w, void *mem)
{
	const struct sb_ruby_conf *conf = sb_ruby_conf(w);
	__u64 at;

	if (conf->by == SB_RUBY_BY_OFFSET)
		return sb_interp_word(w, mem, w->thread_pointer + conf->ec_offset);
	if (conf->by == SB_RUBY_BY_GOT) {
		at = sb_interp_tls_addr(w, mem, conf->ec_got, conf->tsd.is_musl);
		return at ? sb_interp_word(w, mem, at + conf->ec_offset) : 0;
	}
	at = sb_interp_tsd_get(w, mem, &conf->tsd, conf->key);
	if (!at ||
	    sb_interp_word(w, mem, at + conf->thread_vm) != sb_interp_word(w, mem, conf->vm_addr))
		return 0;
	return sb_interp_word(w, mem, at + conf->thread_ec);
}

/*
 * Find the state of the thread, and store the array of its control frames in w->at, all of which
 * must be 0 before. Return: SB_STEP_GO_ON: call step(); SB_STEP_END with w->status:
 * SB_STACK_COMPLETE when the thread does not run Ruby or its execution context is not found; FAULT
 * when the context cannot be read; BAD_FP when what it says of the stack is not valid.
 */
static __always_inline enum sb_step sb_ruby_begin(struct sb_interp_walk *w, void *mem)
{
	__u64 ec = sb_ruby_context(w, mem), stack[3]; /* vm_stack, its size in words, cfp */

	if (!ec)
		return sb_interp_end(w, SB_STACK_COMPLETE);
	if (sb_interp_read(w, mem, stack, sizeof(stack), ec))
		return sb_interp_end(w, SB_STACK_FAULT);
	if (!stack[0]) /* of a thread or a fiber that is about to end */
		return sb_interp_end(w, SB_STACK_COMPLETE);
	if (stack[1] > SB_RUBY_STACK_MAX / 8 || (stack[2] & 7) || stack[2] < stack[0] ||
	    stack[2] > stack[0] + 8 * stack[1])
		return sb_interp_end(w, SB_STACK_BAD_FP);
	w->at[SB_RUBY_CFP] = stack[2];
	w->at[SB_RUBY_CFP_END] = stack[0] + 8 * stack[1];
	return SB_STEP_GO_ON;
}

/*
 * Return: the position of the address @pc in the code of the iseq whose body is at @body, in words;
 * SB_RUBY_NOWHERE: it is not in there, since the JIT compilers do not always maintain it.
 */
static __always_inline __u64 sb_ruby_position(struct sb_interp_walk *w, void *mem, __u64 body,
					      __u64 pc)
{
	__u64 code[2], position; /* {u32 type, u32 iseq_size}, iseq_encoded */

	if (sb_interp_read(w, mem, code, sizeof(code), body))
		return SB_RUBY_NOWHERE;
	position = (pc - code[1]) / 8;
	return position > (code[0] >> 32) || position > SB_RUBY_NOWHERE ? SB_RUBY_NOWHERE
									: position;
}

/*
 * Examine the environment that sb_ruby_next() or the last call left in at[] for the method entry
 * that it belongs to: {method entry or cref, previous environment, flags}. What cannot be read is
 * zero and belongs to none.
 * Return: 1: step() continues the search with the next environment, now in at[]; 0: it is over, and
 * at[SB_RUBY_METHOD_ENTRY] is the entry, or 0 if there is none.
 */
static __always_inline int sb_ruby_find_method(struct sb_interp_walk *w, void *mem)
{
	__u64 memo[3] = {}; /* of a method entry: flags, class, definition */
	__u64 env[3] = {};
	__u32 type;

	SB_INTERP_READ(mem, memo, sizeof(memo), w->at[SB_RUBY_ENV]);
	type = SB_RUBY_IMEMO(memo[0]);
	if (type == SB_RUBY_IMEMO_MENT) {
		w->at[SB_RUBY_METHOD_ENTRY] = w->at[SB_RUBY_ENV];
		w->at[SB_RUBY_DEF] = memo[2];
		return 0;
	}
	if (++w->at[SB_RUBY_HOPS] > SB_RUBY_HOPS_MAX)
		return 0;
	if (type == SB_RUBY_IMEMO_SVAR) {
		w->at[SB_RUBY_ENV] = memo[1];
		return 1;
	}
	if (w->at[SB_RUBY_ENV_FLAGS] & SB_RUBY_LOCAL)
		return 0;
	SB_INTERP_READ(mem, env, sizeof(env), (w->at[SB_RUBY_ENV_PREV] & ~3ull) - 16);
	w->at[SB_RUBY_ENV] = env[0];
	w->at[SB_RUBY_ENV_PREV] = env[1];
	w->at[SB_RUBY_ENV_FLAGS] = env[2];
	return env[2] != 0;
}

/*
 * Push the frame in at[], after sb_ruby_next() returned SB_STEP_GO_ON and sb_ruby_find_method() 0.
 * Return: SB_STEP_GO_ON; SB_STEP_END, DEPTH.
 */
static __always_inline enum sb_step sb_ruby_push(struct sb_interp_walk *w, void *mem)
{
	__u64 iseq = w->at[SB_RUBY_ISEQ], method = w->at[SB_RUBY_METHOD_ENTRY];
	__u64 body = w->at[SB_RUBY_DEF], position = 0;

	if (iseq) {
		body = sb_interp_word(w, mem, iseq + 16);
		if (w->wants_lines)
			position = sb_ruby_position(w, mem, body, w->at[SB_RUBY_PC]);
	}
	iseq = iseq >> 3 & SB_RUBY_ADDR_MASK;
	method = method >> 3 & SB_RUBY_ADDR_MASK;
	return sb_interp_push(w, iseq | method << SB_RUBY_ADDR_BITS,
			      method >> SB_RUBY_METHOD_LOW | position << SB_RUBY_METHOD_HIGH,
			      sb_ruby_check(body));
}

/*
 * Read the next frame to at[], with its environment for sb_ruby_find_method(), and move
 * at[SB_RUBY_CFP] on. Return: SB_STEP_GO_ON: push it once its method is found; SB_STEP_FP_CHAIN:
 * the frame is not shown; SB_STEP_END: COMPLETE behind the last one, FAULT, BAD_FP.
 */
static __always_inline enum sb_step sb_ruby_next(struct sb_interp_walk *w, void *mem)
{
	__u64 cfp = w->at[SB_RUBY_CFP];
	__u64 frame[5]; /* pc, sp, iseq, self, ep */
	__u64 env[3];

	if (cfp >= w->at[SB_RUBY_CFP_END])
		return sb_interp_end(w, SB_STACK_COMPLETE);
	if (sb_interp_read(w, mem, frame, sizeof(frame), cfp) ||
	    sb_interp_read(w, mem, env, sizeof(env), frame[4] - 16))
		return sb_interp_end(w, SB_STACK_FAULT);
	w->at[SB_RUBY_CFP] = cfp + sb_ruby_conf(w)->cfp_bytes;
	w->at[SB_RUBY_PC] = frame[0];
	w->at[SB_RUBY_ISEQ] = frame[2];
	w->at[SB_RUBY_ENV] = env[0];
	w->at[SB_RUBY_ENV_PREV] = env[1];
	w->at[SB_RUBY_ENV_FLAGS] = w->at[SB_RUBY_FLAGS] = env[2];
	w->at[SB_RUBY_METHOD_ENTRY] = w->at[SB_RUBY_DEF] = w->at[SB_RUBY_HOPS] = 0;
	switch (env[2] >> 16 & 0x7fff) {
	case SB_RUBY_CFUNC:
		w->at[SB_RUBY_ISEQ] = 0;
		return SB_STEP_GO_ON;
	case SB_RUBY_IFUNC: /* a block of C code, which Ruby does not show either */
	case SB_RUBY_DUMMY:
	case SB_RUBY_DUMMY_25:
		return SB_STEP_FP_CHAIN;
	case SB_RUBY_METHOD:
	case SB_RUBY_BLOCK:
	case SB_RUBY_CLASS:
	case SB_RUBY_TOP:
	case SB_RUBY_EVAL:
	case SB_RUBY_RESCUE:
	case SB_RUBY_RESCUE_25:
		return frame[2] ? SB_STEP_GO_ON : SB_STEP_FP_CHAIN;
	default:
		return sb_interp_end(w, SB_STACK_BAD_FP);
	}
}

/* Walk one control frame, or examine one more environment for the method of the current one. At
 * most one frame is pushed. Return: SB_STEP_GO_ON; SB_STEP_END, COMPLETE behind the last one,
 * FAULT, BAD_FP, DEPTH. */
static __always_inline enum sb_step sb_ruby_step(struct sb_interp_walk *w, void *mem)
{
	enum sb_step step = SB_STEP_GO_ON;

	if (!w->at[SB_RUBY_HOPS])
		step = sb_ruby_next(w, mem);
	if (step == SB_STEP_END)
		return step;
	if (step == SB_STEP_GO_ON) {
		if (sb_ruby_find_method(w, mem))
			return SB_STEP_GO_ON;
		step = sb_ruby_push(w, mem);
		w->at[SB_RUBY_HOPS] = 0;
		if (step != SB_STEP_GO_ON)
			return step;
	}
	if ((w->at[SB_RUBY_FLAGS] & SB_RUBY_FINISH) && w->nr_frames)
		sb_interp_segment_end(w);
	return SB_STEP_GO_ON;
}

#endif
