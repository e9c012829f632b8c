/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of sb_step_hotspot.h for arm64, which includes this one, and says in which order the
 * functions are called. *@w is the walk of HotSpot in one thread, @walk is the native walk, and
 * @mem is passed to SB_INTERP_READ, which copies from the process. There is no other state, so the
 * functions run in any thread and BPF program. No pointer may be NULL but @mem; addresses are those
 * of the process, and what cannot be read counts as 0. An nmethod is a compiled method, a blob is a
 * piece of the code cache: an nmethod, the interpreter, or a stub. A leaf is the frame where the
 * sample was taken. Frames are those of x86-64, with x29 for rbp, but for this:
 *
 *	- A call leaves the return address in x30. A method that has no frame yet, or no more, has
 *	  it there; so have the stubs that make no frame.
 *	- Frames are made and given up by few instructions, which look the same in all versions
 *	  (MacroAssembler::build_frame, remove_frame, enter, leave), so they are searched for around
 *	  the pc.
 *	- An interpreter frame is reserved at once: its bytecode pointer is at -72 (JDK 8: -56),
 *	  and x29 points to it when all but its sender's sp is there. While it runs, its bytecode
 *	  pointer is in x22. The sender's sp is in x13 (x19 since JDK 19) while a method begins, and
 *	  in x20 while it ends.
 *
 * Sources: src/hotspot of the JDK, cpu/aarch64: frame_aarch64.hpp, macroAssembler_aarch64.cpp,
 * sharedRuntime_aarch64.cpp, templateInterpreterGenerator_aarch64.cpp, interp_masm_aarch64.cpp;
 * instructions: Arm ARM, section C6.2.
 */
#ifndef SB_STEP_HOTSPOT_ARM64_H
#define SB_STEP_HOTSPOT_ARM64_H

#ifndef SB_STEP_HOTSPOT_H
#error "include sb_step_hotspot.h"
#endif

/* Instructions that are read from pc on, where a method begins, and before it, where one ends. */
#define HS_A64_AHEAD		   16
#define HS_A64_BEHIND		   8

/* Return: 1 if @insn, an instruction, is @val in the bits of @mask, otherwise 0. */
#define hs_a64_is(insn, mask, val) hs_is((insn) & (mask), (val))
#define HS_A64_SAVE(insn)	   hs_a64_is(insn, 0xffc07fff, 0xa9007bfd) /* stp x29, x30, [sp, #n] */
#define HS_A64_PUSH(insn)	   hs_a64_is(insn, 0xffffffff, 0xa9bf7bfd) /* stp x29, x30, [sp, #-16]! */
#define HS_A64_RESTORE(insn)	   hs_a64_is(insn, 0xffc07fff, 0xa9407bfd) /* ldp x29, x30, [sp, #n] */
#define HS_A64_POP(insn)	   hs_a64_is(insn, 0xffffffff, 0xa8c17bfd) /* ldp x29, x30, [sp], #16 */
#define HS_A64_GIVE(insn)	   hs_a64_is(insn, 0xff8003ff, 0x910003ff) /* add sp, sp, #n */
/* sub sp, sp, #n; sub sp, sp, x8 */
#define HS_A64_TAKE(insn) \
	(hs_a64_is(insn, 0xff8003ff, 0xd10003ff) | hs_a64_is(insn, 0xffe003ff, 0xcb2003ff))
/* ret, b, br: what stands behind it has another past. */
#define HS_A64_GO(insn) \
	(hs_a64_is(insn, 0xff9ffc1f, 0xd61f0000) | hs_a64_is(insn, 0xfc000000, 0x14000000))
#define HS_A64_RET 0xd65f03c0
#define HS_A64_CUT 0x927cee9f /* and sp, x20, #-16 */

/* Return: instruction @i, below 32, of those (4 bytes each) that the caller read to w->at[]. */
static __always_inline __u64 hs_a64_insn(const struct sb_interp_walk *w, __u32 i)
{
	return (__u32)(w->at[i / 2 & 15] >> (i & 1) * 32);
}

/* Return: 1 if the instruction before @pc is a call (bl, blr), otherwise 0, also if it cannot be
 * read. */
static __always_inline __u64 hs_a64_is_behind_call(void *mem, __u64 pc)
{
	__u32 read = 0;
	__u64 insn;

	SB_INTERP_READ(mem, &read, sizeof(read), pc - 4);
	insn = read;
	return hs_a64_is(insn, 0xfc000000, 0x94000000) | hs_a64_is(insn, 0xfffffc1f, 0xd63f0000);
}

/*
 * Return: 1 if @pc is a return address in the code cache or in the VM, otherwise 0. It must follow
 * a call. Return addresses in the interpreter are accepted without one, because they are loaded
 * directly.
 */
static __always_inline __u64 hs_is_return(struct sb_interp_walk *w, void *mem, __u64 pc)
{
	const struct sb_hotspot_conf *conf = sb_hotspot_conf(w);
	__u64 is = hs_is_below(pc - w->conf.hook_begin, w->conf.hook_end - w->conf.hook_begin) |
		   hs_is_below(pc - conf->vm_begin, conf->vm_end - conf->vm_begin);

	is &= hs_a64_is_behind_call(mem, pc);
	return is | hs_is_below(pc - conf->interp_begin, conf->interp_end - conf->interp_begin);
}

/*
 * Return: 1 if the leaf @walk stands in a stub of a method through which it calls what is too far
 * away for a direct call ("ldr x8, .+8; br x8"): the method's frame is complete, and x30 has the
 * place in the method, which is the caller. Otherwise 0.
 */
static __always_inline __u64 hs_a64_is_trampoline(const struct sb_walk *walk, void *mem)
{
	__u32 code[3] = {};
	__u64 is;

	/* pc is at the first or at the second instruction. */
	SB_INTERP_READ(mem, code, sizeof(code), walk->pc - 4);
	is = hs_is(code[0], 0x58000048) & hs_is(code[1], 0xd61f0100);
	return is | (hs_is(code[1], 0x58000048) & hs_is(code[2], 0xd61f0100));
}

/*
 * For a leaf in an nmethod whose frame is complete only @left bytes after its pc: find how much of
 * the frame exists, by the instructions up to there, which are read to w->at[]. Return: enum
 * sb_hotspot_at (HS_AT_*), for hs_leave().
 */
static __always_inline __u64 hs_a64_in_prologue(struct sb_interp_walk *w, void *mem,
						const struct sb_walk *walk, __u64 left)
{
	__u64 saves = 0, takes = 0, at, i;

	__builtin_memset(w->at, 0, sizeof(w->at));
	SB_INTERP_READ(mem, w->at, 4 * HS_A64_AHEAD, walk->pc);
#ifdef __clang__
#pragma clang loop unroll(full)
#endif
	for (i = 0; i < HS_A64_AHEAD; i++) {
		__u64 insn = hs_a64_insn(w, i), is = hs_is_below(4 * i, left);

		saves |= is & (HS_A64_SAVE(insn) | HS_A64_PUSH(insn));
		takes |= is & HS_A64_TAKE(insn);
	}
	/* Bigger frames are pushed before the rest of them is taken, smaller ones taken first. */
	at = hs_pick(takes, HS_AT_PUSHED, HS_AT_WHOLE);
	at = hs_pick(saves, HS_AT_ENTRY, at);
	return hs_pick(HS_A64_SAVE(hs_a64_insn(w, 0)), HS_AT_SUB, at);
}

/*
 * For a leaf in an nmethod behind the point where its frame is complete: find how much of the frame
 * still exists. Near the end of a method it is given up a few instructions before the return or the
 * jump; the instructions before pc and at it are read to w->at[]. Return: enum sb_hotspot_at
 * (HS_AT_*); HS_AT_WHOLE if the frame is not given up.
 */
static __always_inline __u64 hs_a64_in_body(struct sb_interp_walk *w, void *mem,
					    const struct sb_walk *walk)
{
	__u64 is_gone = 0, before = 0, insn = 0, at, i;

	__builtin_memset(w->at, 0, sizeof(w->at));
	SB_INTERP_READ(mem, w->at, 4 * HS_A64_BEHIND + 4, walk->pc - 4 * HS_A64_BEHIND);
#ifdef __clang__
#pragma clang loop unroll(full)
#endif
	for (i = 0; i < HS_A64_BEHIND; i++) {
		insn = hs_a64_insn(w, i);
		is_gone &= 1 ^ HS_A64_GO(insn);
		is_gone |= HS_A64_POP(insn) | (HS_A64_GIVE(insn) & HS_A64_RESTORE(before));
		before = insn;
	}
	insn = hs_a64_insn(w, HS_A64_BEHIND);
	at = hs_pick(is_gone, HS_AT_ENTRY, HS_AT_WHOLE);
	at = hs_pick(HS_A64_POP(insn), HS_AT_PUSHED, at);
	/* x29 and x30 are the caller's already. */
	return hs_pick(HS_A64_GIVE(insn) & HS_A64_RESTORE(before), HS_AT_SUB, at);
}

/* Return: how much of the frame of the interrupted nmethod @blob, where @walk stands as a leaf,
 * exists (enum sb_hotspot_at), for hs_leave(). w->at[] is overwritten. */
static HS_APART __u64 hs_leaf_at(struct sb_interp_walk *w, void *mem, struct sb_walk *walk,
				 const struct sb_hotspot_blob *blob)
{
	__u64 done = walk->pc - blob->code;

	walk->uses |= SB_WALK_USES_LR;
	if (blob->frame_size < 16)
		return HS_AT_ENTRY;
	return done < blob->complete ? hs_a64_in_prologue(w, mem, walk, blob->complete - done)
				     : hs_a64_in_body(w, mem, walk);
}

/*
 * Return: the sp that the caller will have, for the leaf @walk in the interpreter, at the beginning
 * or the end of a method or between two methods. @lr: x30, the return address. Reads what
 * hs_interp_frame() has left in w->at[].
 */
static __always_inline __u64 hs_a64_interp_sp(struct sb_interp_walk *w, const struct sb_walk *walk,
					      void *mem, __u64 lr)
{
	const struct sb_hotspot_conf *conf = sb_hotspot_conf(w);
	__u32 reg = conf->sender_reg;
	__u64 is, to_sp;
	__u32 code = 0;

	SB_STEP_OPAQUE(reg);
	SB_INTERP_READ(mem, &code, sizeof(code), walk->pc);
	is = hs_is(code, HS_A64_RET) | hs_is(code, HS_A64_CUT);
	to_sp = hs_pick(is, walk->regs[20] & ~15ull, walk->regs[reg & (SB_UNWIND_REGS - 1)]);
	to_sp = hs_sender_sp(walk, to_sp, walk->sp);
	/* The frame at x29 is the caller's, and does not depend on sp. */
	is = hs_is_below(lr - conf->interp_begin, conf->interp_end - conf->interp_begin);
	return hs_pick(is & w->at[HS_IS_OTHER_WORD] & 1, walk->sp, to_sp);
}

/*
 * Return: the sp of the caller of the leaf @walk in a stub, which has no frame: sp itself. Adapters
 * from compiled to interpreted code move sp, after they have copied it to a register: from then on
 * it is that copy, or sp if the register cannot hold one. It goes with x30 as the return address.
 * hs_find() has left the blob's bytes in w->at[], which are overwritten.
 */
static __always_inline __u64 hs_a64_stub_sp(struct sb_interp_walk *w, const struct sb_walk *walk,
					    void *mem)
{
	const struct sb_hotspot_conf *conf = sb_hotspot_conf(w);
	__u64 name = hs_u64(w, conf->blob_name), text = 0, is, i;
	__u32 reg = conf->sender_reg;

	SB_STEP_OPAQUE(reg);
	SB_INTERP_READ(mem, &text, sizeof(text), name);
	is = hs_is(text, 0x204932432f433249ull); /* "I2C/C2I adapters" */
	__builtin_memset(w->at, 0, sizeof(w->at));
	SB_INTERP_READ(mem, w->at, 4 * HS_A64_AHEAD, walk->pc);
#ifdef __clang__
#pragma clang loop unroll(full)
#endif
	for (i = 0; i < HS_A64_AHEAD; i++) /* mov x13, sp: not copied yet */
		is &= 1 ^ hs_is(hs_a64_insn(w, i), 0x910003e0 | reg);
	return hs_pick(is, hs_sender_sp(walk, walk->regs[reg & (SB_UNWIND_REGS - 1)], walk->sp),
		       walk->sp);
}

/*
 * Step out of a leaf in the interpreter or in a stub: by x30, if its frame is not made yet or was
 * given up; else, in a stub of known @size, by what the end of its frame has saved. In a stub whose
 * frame stands, x30 is what the frame has saved, or, after a call, in the stub itself. @size: bytes
 * of the stub's frame; 0 or less: it has none, or it is not known.
 *
 * hs_find() has left the blob in walk->signal_frame, from HS_BLOB_AT on, and its bytes in w->at[];
 * in the interpreter, hs_interp_frame() has left its words in w->at[]. In a stub, w->at[] and the
 * words of walk->signal_frame before the blob are overwritten.
 * Return: SB_STEP_GO_ON; SB_STEP_FP_CHAIN: neither gives a return address; SB_STEP_END with
 * SB_STACK_BAD_PC.
 */
static __always_inline enum sb_step hs_between(struct sb_interp_walk *w, struct sb_walk *walk,
					       void *mem, __s64 size)
{
	const struct sb_hotspot_blob *blob =
		(const struct sb_hotspot_blob *)&walk->signal_frame[HS_BLOB_AT];
	const struct sb_hotspot_conf *conf = sb_hotspot_conf(w);
	__u64 lr = sb_code_addr(walk, walk->regs[SB_REG_LR]), is, is_made, to_sp;
	__u64 *record = walk->signal_frame; /* two of two words each */
	__u64 is_interp =
		hs_is_below(walk->pc - conf->interp_begin, conf->interp_end - conf->interp_begin);
	__u64 whole = walk->sp + (__u64)size - 16;

	walk->uses |= SB_WALK_USES_LR;
	is = hs_is_return(w, mem, lr);
	if (is_interp) {
		to_sp = hs_a64_interp_sp(w, walk, mem, lr);
	} else {
		record[0] = record[1] = record[2] = record[3] = 0;
		SB_INTERP_READ(mem, record, 16, walk->fp);
		SB_INTERP_READ(mem, record + 2, 16, whole);
		is_made = hs_is_below(walk->fp - walk->sp, SB_HOTSPOT_ADAPTER_BYTES_MAX) &
			  hs_is_below(record[1] ^ lr, 1);
		is_made |= hs_is_below(16, (__u64)size + 1) & hs_is_below(record[3] ^ lr, 1);
		/* Some stubs are called by native code, in libjvm.so or another library, and not by
		 * Java. */
		is |= hs_a64_is_behind_call(mem, lr);
		is &= 1 ^ (is_made | hs_is_below(lr - blob->addr, blob->size));
		to_sp = hs_a64_stub_sp(w, walk, mem);
	}
	if (is)
		return sb_step_to(walk, lr, to_sp, walk->fp);
	if (!is_interp && size > 0 && hs_is_return(w, mem, record[3]))
		return sb_step_to(walk, record[3], whole + 16, record[2]);
	return SB_STEP_FP_CHAIN;
}

#endif /* SB_STEP_HOTSPOT_ARM64_H */
