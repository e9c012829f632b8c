/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walker of V8 (Node.js). Its frames lie on the native stack, linked by the frame pointer. A frame
 * has
 *
 *	fp - 8	a context, in a function's frame; or a small integer, the number of another type
 *	fp - 16	the JSFunction
 *	fp - 32	the BytecodeArray, if the function is interpreted, or compiled without optimization
 *	fp - 40	the offset in it, if the function is interpreted
 *
 * Source: V8's src/execution/frame-constants.h, src/execution/x64/frame-constants-x64.h. The low
 * bits of a word are a tag: 1 for a pointer, 0 for a small integer, which is in the upper half.
 *
 * A frame is identified by its SharedFunctionInfo. There is one for each function of a source
 * text, and unlike closures it is hardly ever moved. @shared is its address without the tag.
 *
 * In all functions, *@w is the interpreter walk, whose conf.word is a struct sb_v8_conf, @walk is
 * the native walk, whose frame it is about, and @mem is passed to SB_INTERP_READ. There is no other
 * state, so they run in any thread and BPF program. No pointer may be NULL but @mem. What cannot be
 * read is no function. Results, enum sb_step: SB_STEP_FP_CHAIN: the native walk continues by the
 * frame pointer, whether or not a frame was pushed; SB_STEP_GO_ON, of sb_v8_push() and
 * sb_v8_push_frame() only: the frame was pushed; SB_STEP_END: there are SB_INTERP_FRAMES_MAX frames
 * already, and this one was not pushed; w->status is SB_STACK_DEPTH, walk->status stays as
 * it was, which in the kernel is the same.
 *
 * Order: sb_v8_native() for each native frame, from the leaf on, as sb_interp_step.h says; w->at is
 * zeroed before the first. The other functions are parts of it.
 */
#ifndef SB_STEP_V8_H
#define SB_STEP_V8_H

#include "bpf/step/sb_interp_step.h"

/* Low bits of a frame's obj, which is the address of a SharedFunctionInfo. */
enum sb_v8_kind {
	SB_V8_BUILTIN,	/* the function is one of V8's own */
	SB_V8_BYTECODE, /* position: the word at fp - 40 */
	SB_V8_CODE,	/* position: an address in its code */
};

/* Offsets and instance types, read from V8's own metadata. */
struct sb_v8_conf {
	__u16 map_type;	     /* offset of Map.instance_type */
	__u16 function_type; /* instance types of functions: first and last */
	__u16 function_type_last;
	__u16 function_shared;
	__u16 shared_builtin; /* in SharedFunctionInfo: the number of a builtin */
	__u16 shared_script;
	__u16 shared_id;    /* function_literal_id: one of the two halves of the word at flags */
	__u16 builtin_exit; /* number of this frame type */
	/* Address ranges of builtins: in the file, and where V8 has copied them. */
	__u64 builtins[2], builtins_end[2];
};

_Static_assert(sizeof(struct sb_v8_conf) <= 8 * SB_INTERP_CONF_WORDS, "fits into a configuration");

#define SB_V8_TAG	       1ull
#define SB_V8_TAG_MASK	       3ull
#define sb_v8_is_ptr(v)	       (((v)&SB_V8_TAG_MASK) == SB_V8_TAG)
/* Small integers: the upper 32 bits, the lower ones being zero. */
#define sb_v8_is_smi(v)	       (!((v)&0xffffffffull))
#define sb_v8_smi(v)	       ((__s32)((v) >> 32))

/*
 * Whether the word at fp - 8 is the number of a frame type, which is in the lower half, shifted by
 * one.
 */
#define sb_v8_is_kind(v, kind) ((v) == (__u64)(kind) << 1)

/* DWARF number of the register that holds the function at a call, kJSFunctionRegister: x1, rdi. */
#ifdef SB_MACHINE_ARM64
#define SB_V8_REG_FUNCTION 1
#else
#define SB_V8_REG_FUNCTION 5
#endif
/*
 * Indexes in w->at: the words of a SharedFunctionInfo, those of a JSFunction; and what these words
 * are of, since a function often calls itself, and nearly all functions have the same Map.
 */
#define SB_V8_AT_SHARED	  0
#define SB_V8_AT_FUNCTION 8
#define SB_V8_AT_MAP	  13 /* the last Map of a function */
#define SB_V8_AT_READ	  14 /* the last function (a tagged pointer); 0: the words are of none */
#define SB_V8_AT_RESULT	  15 /* its SharedFunctionInfo */

/* Return: the configuration of this runtime in this process: w->conf.word. */
static __always_inline const struct sb_v8_conf *sb_v8_conf(const struct sb_interp_walk *w)
{
	return (const struct sb_v8_conf *)w->conf.word;
}

/* Return: whether @pc is in the code of V8's builtins, the interpreter among them: in one of the
 * two ranges of addresses in @conf. */
static __always_inline __u32 sb_v8_is_builtins(const struct sb_v8_conf *conf, __u64 pc)
{
	return (pc >= conf->builtins[0] && pc < conf->builtins_end[0]) ||
	       (pc >= conf->builtins[1] && pc < conf->builtins_end[1]);
}

/* Return: the instance type in the Map @map (a tagged pointer); 0: it cannot be read. */
static __always_inline __u64 sb_v8_type(struct sb_interp_walk *w, void *mem, __u64 map)
{
	__u16 type = 0;

	return sb_interp_read(w, mem, &type, sizeof(type),
			      map - SB_V8_TAG + sb_v8_conf(w)->map_type)
		       ? 0
		       : type;
}

/*
 * Return: the word that holds byte @offset of the object that sb_v8_function() read last to
 * w->at[@from]: SB_V8_AT_SHARED (64 bytes) or SB_V8_AT_FUNCTION (40). For an @offset beyond,
 * another word, but nothing outside of w->at.
 */
static __always_inline __u64 sb_v8_field(const struct sb_interp_walk *w, __u32 from, __u32 offset)
{
	__u64 at = from + (offset / 8 & 7);

	SB_STEP_OPAQUE(at);
	return w->at[at & 15];
}

/*
 * Read the JSFunction @func (a tagged pointer) and its SharedFunctionInfo to w->at, for
 * sb_v8_field(), unless they were read last. While the garbage collector moves objects, the first
 * word of a moved one is its new address without a tag. Return: the address of the
 * SharedFunctionInfo; 0: @func is not a function, or cannot be read; then w->at has the words of
 * none.
 */
static __always_inline __u64 sb_v8_function(struct sb_interp_walk *w, void *mem, __u64 func)
{
	const struct sb_v8_conf *conf = sb_v8_conf(w);
	__u64 shared, type, map;

	if (func && func == w->at[SB_V8_AT_READ])
		return w->at[SB_V8_AT_RESULT];
	w->at[SB_V8_AT_READ] = 0;
	if (!sb_v8_is_ptr(func) ||
	    sb_interp_read(w, mem, &w->at[SB_V8_AT_FUNCTION], 40, func - SB_V8_TAG))
		return 0;
	if (!(w->at[SB_V8_AT_FUNCTION] & 7) &&
	    sb_interp_read(w, mem, &w->at[SB_V8_AT_FUNCTION], 40, w->at[SB_V8_AT_FUNCTION]))
		return 0;
	map = w->at[SB_V8_AT_FUNCTION];
	if (!sb_v8_is_ptr(map))
		return 0;
	if (map != w->at[SB_V8_AT_MAP]) {
		type = sb_v8_type(w, mem, map);
		if (type < conf->function_type || type > conf->function_type_last)
			return 0;
		w->at[SB_V8_AT_MAP] = map;
	}
	shared = sb_v8_field(w, SB_V8_AT_FUNCTION, conf->function_shared);
	if (!sb_v8_is_ptr(shared))
		return 0;
	shared -= SB_V8_TAG;
	if (sb_interp_read(w, mem, &w->at[SB_V8_AT_SHARED], 64, shared))
		return 0;
	w->at[SB_V8_AT_READ] = func;
	w->at[SB_V8_AT_RESULT] = shared;
	return shared;
}

/* Push a frame. @shared: what sb_v8_function() returned last. @position: see enum sb_v8_kind.
 * Return: SB_STEP_FP_CHAIN; SB_STEP_END: there is no room, and the walk ends with that status. */
static __always_inline enum sb_step sb_v8_push(struct sb_interp_walk *w, struct sb_walk *walk,
					       __u64 shared, enum sb_v8_kind kind, __u64 position)
{
	const struct sb_v8_conf *conf = sb_v8_conf(w);
	__u64 check = sb_v8_field(w, SB_V8_AT_SHARED, conf->shared_id) >> 32;

	check ^= sb_v8_field(w, SB_V8_AT_SHARED, conf->shared_script) >> 6;
	if (sb_interp_push(w, shared | kind, position, check) != SB_STEP_GO_ON)
		return sb_step_end(walk, SB_STACK_DEPTH);
	return SB_STEP_FP_CHAIN;
}

/*
 * Push the function of a complete frame. @shared: what sb_v8_function() returned last. @frame: the
 * five words from fp - 40 on, which say where an interpreted function stands; of compiled code that
 * is the pc. Return: as sb_v8_push().
 */
static __always_inline enum sb_step sb_v8_push_frame(struct sb_interp_walk *w, struct sb_walk *walk,
						     __u64 shared, const __u64 *frame)
{
	const struct sb_v8_conf *conf = sb_v8_conf(w);
	__u64 data = sb_v8_field(w, SB_V8_AT_SHARED, conf->shared_builtin), position = 0;

	if (sb_v8_is_smi(data) && (__s64)data >= 0)
		return sb_v8_push(w, walk, shared, SB_V8_BUILTIN, 0);
	/* Code that was optimized while it ran has a frame that was made for the interpreter. */
	if (!sb_v8_is_builtins(conf, walk->pc))
		return sb_v8_push(w, walk, shared, SB_V8_CODE, sb_walk_key(walk));
	if (w->wants_lines && sb_v8_is_ptr(frame[1]) && sb_v8_is_smi(frame[0]) &&
	    sb_v8_smi(frame[0]) > 0)
		position = (__u64)sb_v8_smi(frame[0]);
	return sb_v8_push(w, walk, shared, SB_V8_BYTECODE, position);
}

/*
 * Push the function of a leaf that has not made its frame yet: it is still in the register of the
 * call. Nothing is pushed for builtins, or if that is no function. Return: as sb_v8_push().
 */
static __always_inline enum sb_step sb_v8_push_entered(struct sb_interp_walk *w,
						       struct sb_walk *walk, void *mem)
{
	__u64 shared;

	if (sb_v8_is_builtins(sb_v8_conf(w), walk->pc))
		return SB_STEP_FP_CHAIN;
	shared = sb_v8_function(w, mem, walk->regs[SB_V8_REG_FUNCTION]);
	return shared ? sb_v8_push(w, walk, shared, SB_V8_CODE, walk->pc) : SB_STEP_FP_CHAIN;
}

/* Push a builtin that is written in C++; its frame, which is complete, says as which function it
 * was called: BuiltinExitFrameConstants. Nothing is pushed if that is no function. */
static __always_inline enum sb_step sb_v8_push_exit(struct sb_interp_walk *w, struct sb_walk *walk,
						    void *mem)
{
	__u64 shared = sb_v8_function(w, mem, sb_interp_word(w, mem, walk->fp + 24));

	return shared ? sb_v8_push(w, walk, shared, SB_V8_BUILTIN, 0) : SB_STEP_FP_CHAIN;
}

/*
 * Push the function of the native frame where @walk stands, if it is one of JavaScript. It never
 * moves @walk: the native walk follows the frame pointer itself.
 */
static __always_inline enum sb_step sb_v8_native(struct sb_interp_walk *w, struct sb_walk *walk,
						 void *mem)
{
	__u64 frame[5], shared;

	if (walk->flags & SB_WALK_LEAF) {
#ifdef SB_MACHINE_ARM64
		/* x29 is the caller's, which comes next. C code does so, too: a stub of a PLT. */
		if ((walk->flags & SB_WALK_LR_IS_CALLER) ||
		    sb_a64_taken(walk, mem) != SB_A64_SET_UP)
			return walk->flags & SB_WALK_GENERATED ? sb_v8_push_entered(w, walk, mem)
							       : SB_STEP_FP_CHAIN;
#endif
#ifdef SB_MACHINE_X86
		if (sb_fp_pair_at(walk, mem) <= 0)
			return sb_v8_push_entered(w, walk, mem);
#endif
		if (walk->fp - walk->sp < 16)
			return sb_v8_push_entered(w, walk, mem);
	}
	if ((walk->fp & 7) || walk->fp < walk->sp ||
	    sb_interp_read(w, mem, frame, sizeof(frame), walk->fp - 40))
		return SB_STEP_FP_CHAIN;
	if (sb_v8_is_kind(frame[4], sb_v8_conf(w)->builtin_exit))
		return sb_v8_push_exit(w, walk, mem);
	if (!sb_v8_is_ptr(frame[4])) /* another kind of frame */
		return SB_STEP_FP_CHAIN;
	shared = sb_v8_function(w, mem, frame[3]);
	return shared ? sb_v8_push_frame(w, walk, shared, frame) : SB_STEP_FP_CHAIN;
}

#endif
