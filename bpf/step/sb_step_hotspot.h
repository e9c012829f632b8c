/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walker of HotSpot. Java frames lie on the native stack, and their code in the code cache, which
 * is a few heaps of blobs. A heap has a segment map, with a byte for each segment, that leads from
 * an address to its blob. The head of the blob says what it is:
 *
 *	nmethod		a compiled method, or the wrapper of a native one. Once its frame is
 *			complete, and until it is given up, it has one size: {..., saved rbp, return
 *			address}. rbp itself is an ordinary register.
 *	interpreter	one blob. Its frames are based on rbp: return address +8, sender's rbp 0,
 *			sender's sp -8, Method -24, bytecode pointer -64 (-56 before JDK 9). While a
 *			frame is running, its bytecode pointer is in r13.
 *	other blobs	stubs and handlers. Those with a frame size are like nmethods; the others
 *			have a frame based on rbp, or none.
 *
 * The frame where a sample was taken may be incomplete: the code at the pc tells how much of it
 * exists (HS_AT_*). What differs on arm64 is in sb_step_hotspot_arm64.h.
 *
 * Sources: src/hotspot of the JDK: share/code/codeBlob.hpp,
 * share/memory/heap.cpp (find_block_for), cpu/x86: frame_x86.hpp, x86_64.ad (MachProlog,
 * MachEpilog), c1_MacroAssembler_x86.cpp, sharedRuntime_x86_64.cpp,
 * templateInterpreterGenerator_x86.cpp.
 *
 * In all functions, *@w is the walk of this runtime in one thread, whose conf.word is a struct
 * sb_hotspot_conf, @walk is the native walk, and @mem is passed to SB_INTERP_READ, which copies
 * from the process; there is no other state, so they run in any thread and BPF program, one at a
 * time for each walk. No pointer may be NULL but @mem. Addresses are those of the process; memory
 * that cannot be read counts as 0 unless said otherwise. Results, enum sb_step: SB_STEP_GO_ON:
 * @walk was moved to the caller; SB_STEP_END: the native walk has ended, and walk->status
 * (SB_STACK_*) says why; SB_STEP_FP_CHAIN: nothing was found or moved. Functions that return __u64
 * conditions return 1 or 0, so that they can be combined as numbers.
 *
 * Order: sb_hotspot_native() for each native frame in the code cache or without a rule, from the
 * leaf on, as sb_interp_step.h says. The other functions are parts of it. They read to w->at and
 * walk->signal_frame, where that is valid until the next one reads.
 */
#ifndef SB_STEP_HOTSPOT_H
#define SB_STEP_HOTSPOT_H

#include "bpf/step/sb_interp_step.h"

/*
 * Bits of a frame's position, above its lower 32 bits: the bytecode index, or the offset of pc in
 * the code.
 */
#define SB_HOTSPOT_COMPILED  (1ull << 40) /* obj is an nmethod, not a Method */
#define SB_HOTSPOT_STUB	     (1ull << 41) /* obj is another blob */
#define SB_HOTSPOT_EXACT     (1ull << 42) /* pc was interrupted, not returned to */

#define SB_HOTSPOT_HEAPS_MAX 3
/* Bound of steps through the segment map; each moves over up to 254 segments. */
#define SB_HOTSPOT_HOPS_MAX  16
/*
 * Bytes of an interpreter frame below its frame pointer that are read: 8 or 9 words. {frame
 * pointer, return address} are above.
 */
#ifdef SB_MACHINE_ARM64
#define SB_HOTSPOT_BELOW_FP 72
#else
#define SB_HOTSPOT_BELOW_FP 64
#endif
/* A sender's sp that is further away than this is not valid. */
#define SB_HOTSPOT_ADAPTER_BYTES_MAX 4096

struct sb_hotspot_heap {
	__u64 low, high; /* the reserved range */
	__u64 segmap;
};

/* Offsets in the structures of the JVM, from the JVM's own description of them. */
struct sb_hotspot_conf {
	struct sb_hotspot_heap heap[SB_HOTSPOT_HEAPS_MAX];
	__u64 interp_begin, interp_end;
	__u64 vm_begin, vm_end; /* the code of libjvm.so, which calls stubs */
	__u16 log2_segment, block_header;
	/* Fields of a blob, within 128 bytes that are read at once: */
	__u16 blob_name, blob_size, blob_code, blob_frame_size, blob_complete, blob_method;
	__u16 is_code_offset; /* blob_code: 32 bits, relative to the blob; otherwise an address */
	__u16 is_short_complete; /* blob_complete: 16 bits; otherwise 32 */
	__u16 method_const;	 /* Method._constMethod */
	__u16 const_code_size, const_size;
	__u16 bcp_word;	  /* index in the words from SB_HOTSPOT_BELOW_FP below rbp on */
	__u16 sender_reg; /* arm64: the register that has the caller's sp while a method begins */
};
_Static_assert(sizeof(struct sb_hotspot_conf) <= 8 * SB_INTERP_CONF_WORDS, "it fits");

/*
 * Size of an interpreter frame below its frame pointer once it has its Method; on x86-64 also once
 * it has its bytecode pointer, because words are pushed one by one there.
 */
#ifdef SB_MACHINE_ARM64
#define HS_INTERP_METHOD_PUSHED 80
#else
#define HS_INTERP_METHOD_PUSHED 24
#define HS_INTERP_MADE		64
#endif

/* Indexes of words of an interpreter frame in w->at[], see hs_interp_frame(). */
enum {
	HS_FP_WORD = SB_HOTSPOT_BELOW_FP / 8,
	HS_METHOD_WORD = HS_FP_WORD - 3,
	HS_SENDER_SP_WORD = HS_FP_WORD - 1,
	HS_RETURN_WORD = HS_FP_WORD + 1,
	HS_SIZE_WORD = 12,    /* not of the frame: the size of the bytecode, */
	HS_IS_OTHER_WORD = 13 /* and whether the running bytecode pointer is another method's */
};

/* The register with the bytecode pointer of the running interpreter frame. */
#ifdef SB_MACHINE_ARM64
#define HS_REG_BCP 22
#else
#define HS_REG_BCP 13
#endif

/*
 * These are separate functions because together they have more variables than a BPF stack has room
 * for.
 */
#define HS_APART __attribute__((noinline))

/* How much of a frame exists. */
enum sb_hotspot_at {
	HS_AT_WHOLE,  /* all of it */
	HS_AT_PUSHED, /* {rbp, return address} at sp */
	HS_AT_ENTRY,  /* only the return address, at sp */
	HS_AT_SUB,    /* all of it, but rbp is not saved yet */
	HS_AT_WORD,   /* all of it, and temporarily one more word */
	HS_AT_CALL,   /* arm64: in a stub that the method calls another one through */
};

/* Return: the configuration of this runtime in this process: w->conf.word. */
static __always_inline const struct sb_hotspot_conf *sb_hotspot_conf(const struct sb_interp_walk *w)
{
	return (const struct sb_hotspot_conf *)w->conf.word;
}

/* Return: the field of 8 bytes at byte @off, a multiple of 8 below 128, of the blob that hs_find()
 * read to w->at[]. For an @off beyond, another word, but nothing outside of w->at[]. */
static __always_inline __u64 hs_u64(const struct sb_interp_walk *w, __u32 off)
{
	__u32 at = off / 8;

	SB_STEP_OPAQUE(at);
	return w->at[at & 15];
}

/* Return: the field of 4 bytes at byte @off, a multiple of 4 below 128, of the blob that hs_find()
 * read to w->at[]. */
static __always_inline __u32 hs_u32(const struct sb_interp_walk *w, __u32 off)
{
	return (__u32)(hs_u64(w, off) >> (off & 4) * 8);
}

/* Return: the field of 2 bytes at byte @off, a multiple of 2 below 128, of the blob that hs_find()
 * read to w->at[]. */
static __always_inline __u32 hs_u16(const struct sb_interp_walk *w, __u32 off)
{
	return (__u16)(hs_u64(w, off) >> (off & 6) * 8);
}

/*
 * The verifier follows each branch, and here are many conditions, so they are computed as numbers.
 * Return: 1 if @a equals @b, otherwise 0. Both must be below 2^63, or the result may be wrong. A
 * whole word of the process need not be: compare it by hs_is_either(), or by hs_is_below(a ^ b, 1).
 */
static __always_inline __u64 hs_is(__u64 a, __u64 b)
{
	__u64 x = a ^ b;

	SB_STEP_OPAQUE(x);
	return (x - 1) >> 63;
}

/* Return: 1 if @x equals @a or @b, which must be below 2^63, otherwise 0; @x can be any word. */
static __always_inline __u64 hs_is_either(__u64 x, __u64 a, __u64 b)
{
	SB_STEP_OPAQUE(x);
	return ((((x ^ a) - 1) | ((x ^ b) - 1)) & ~x) >> 63;
}

/* Return: 1 if @x, which can be any word, is below @bound, otherwise 0; @bound is below 2^63. */
static __always_inline __u64 hs_is_below(__u64 x, __u64 bound)
{
	SB_STEP_OPAQUE(x);
	return ((x - bound) & ~x) >> 63;
}

/* Return: @yes if @is is 1, @no if it is 0. */
static __always_inline __u64 hs_pick(__u64 is, __u64 yes, __u64 no)
{
	SB_STEP_OPAQUE(is);
	return no + (yes - no) * is;
}

/* What is known about a blob: few words, so that they stay in registers. */
struct sb_hotspot_blob {
	__u64 addr, code;
	__u64 method;	  /* its Method; 0: it is not an nmethod */
	__s64 frame_size; /* bytes; 0 or less: none */
	__u64 complete;	  /* offset in the code where the frame is complete; ~0: not known */
	__u32 check;
	__u32 size; /* bytes */
};

/* It is stored in the native walk's scratch memory, after what the functions below read to it. */
#define HS_BLOB_AT 8
_Static_assert(HS_BLOB_AT * 8 + sizeof(struct sb_hotspot_blob) <=
		       sizeof(((struct sb_walk *)0)->signal_frame),
	       "it fits");

/*
 * Return: the number of the first segment of the block that segment @seg of a heap belongs to; ~0:
 * it is free, or the map at @segmap is no valid one. What cannot be read counts as the beginning of
 * a block.
 */
static __always_inline __u64 hs_block(struct sb_interp_walk *w, void *mem, __u64 segmap, __u64 seg)
{
	__u64 hop;
	int i;

	for (i = 0; i < SB_HOTSPOT_HOPS_MAX; i++) {
		__u8 tag = 0xff;

		SB_INTERP_READ(mem, &tag, 1, segmap + seg);
		hop = tag;
		SB_STEP_OPAQUE(hop);
		if (!hop)
			return seg;
		if (hop == 0xff) /* free */
			return ~0ull;
		seg -= hop;
	}
	return ~0ull;
}

/* Return: 1 if @name is the address of the name of an nmethod, otherwise 0. */
static __always_inline __u64 hs_is_nmethod(void *mem, __u64 name)
{
	__u64 text = 0;

	SB_INTERP_READ(mem, &text, sizeof(text), name);
	/* "nmethod", "native n[method]" */
	return hs_is_either(text, 0x00646f6874656d6eull, 0x6e2065766974616eull);
}

/*
 * Find the blob that contains @pc, fill in *@ret, and leave the blob's first 128 bytes in w->at[],
 * for hs_u64() and its like. Return: 0; -1: there is none, or it cannot be read; then *@ret is
 * untouched, w->at[] may not be.
 */
static HS_APART int hs_find(struct sb_interp_walk *w, void *mem, __u64 pc,
			    struct sb_hotspot_blob *ret)
{
	const struct sb_hotspot_conf *conf = sb_hotspot_conf(w);
	__u64 low = 0, segmap = 0, seg, addr, size, is;
	int i;

	for (i = 0; i < SB_HOTSPOT_HEAPS_MAX; i++) {
		is = hs_is_below(pc - conf->heap[i].low, conf->heap[i].high - conf->heap[i].low);
		low = hs_pick(is, conf->heap[i].low, low);
		segmap = hs_pick(is, conf->heap[i].segmap, segmap);
	}
	if (!segmap) /* code of others that has no unwind rule */
		return -1;
	seg = hs_block(w, mem, segmap, (pc - low) >> (conf->log2_segment & 31));
	if (seg == ~0ull)
		return -1;
	addr = low + (seg << (conf->log2_segment & 31)) + conf->block_header;
	size = 0;
	if (!SB_INTERP_READ(mem, w->at, sizeof(w->at), addr))
		size = hs_u32(w, conf->blob_size);
	if (pc - addr >= size)
		return -1;
	ret->addr = addr;
	ret->code = hs_pick(conf->is_code_offset & 1, addr + hs_u32(w, conf->blob_code),
			    hs_u64(w, conf->blob_code));
	ret->frame_size = (__s64)(__s32)hs_u32(w, conf->blob_frame_size) * 8;
	ret->complete = hs_u32(w, conf->blob_complete & ~3u);
	ret->complete =
		hs_pick(conf->is_short_complete & 1, hs_u16(w, conf->blob_complete), ret->complete);
	ret->method = hs_pick(hs_is_nmethod(mem, hs_u64(w, conf->blob_name)),
			      hs_u64(w, conf->blob_method), 0);
	ret->size = (__u32)size;
	ret->check = (__u32)(ret->method >> 3) ^ (__u32)size ^ (__u32)(size >> 9);
	return 0;
}

/*
 * Return: @reg if it can be the sp of a caller (a multiple of 8, not below walk->sp, and less than
 * SB_HOTSPOT_ADAPTER_BYTES_MAX above it), otherwise @or_else. Adapters between compiled and
 * interpreted code move the sp, and keep that of the caller in a register.
 */
static __always_inline __u64 hs_sender_sp(const struct sb_walk *walk, __u64 reg, __u64 or_else)
{
	__u64 is = hs_is(reg & 7, 0) & hs_is_below(reg - walk->sp, SB_HOTSPOT_ADAPTER_BYTES_MAX);

	return hs_pick(is, reg, or_else);
}

#ifdef SB_MACHINE_ARM64
#include "bpf/step/sb_step_hotspot_arm64.h"
#else

/*
 * Return: 1 if @pc is a return address, otherwise 0. It must follow a call (e8 with a distance, or
 * ff /2 with one to six bytes of operand) in the code cache or in the VM. Return addresses in the
 * interpreter are accepted without a call, because they are pushed directly.
 */
static __always_inline __u64 hs_is_return(struct sb_interp_walk *w, void *mem, __u64 pc)
{
	const struct sb_hotspot_conf *conf = sb_hotspot_conf(w);
	__u64 code = 0, is;

	SB_INTERP_READ(mem, &code, sizeof(code), pc - 8);
	is = hs_is(code >> 24 & 0xff, 0xe8);	  /* call rel32 */
	is |= hs_is(code >> 48 & 0xf8ff, 0xd0ff); /* call *%reg */
	is |= hs_is(code >> 40 & 0xf8ff, 0x50ff); /* call *disp8(%reg) */
	is |= hs_is(code >> 16 & 0xf8ff, 0x90ff); /* call *disp32(%reg) */
	is |= hs_is(code >> 16 & 0xffff, 0x15ff); /* call *disp32(%rip) */
	is &= hs_is_below(pc - w->conf.hook_begin, w->conf.hook_end - w->conf.hook_begin) |
	      hs_is_below(pc - conf->vm_begin, conf->vm_end - conf->vm_begin);
	return is | hs_is_below(pc - conf->interp_begin, conf->interp_end - conf->interp_begin);
}

/*
 * Return: how much of a frame exists (enum sb_hotspot_at) before the point in an nmethod where it
 * is complete, by which hs_leave() finds the caller: HS_AT_ENTRY unless the code says otherwise.
 * @before: the eight bytes before pc, @code: those at pc
 */
static __always_inline __u64 hs_in_prologue(__u64 before, __u64 code)
{
	__u64 code3 = code & 0xffffff, at, is;

	/* cmpl $x,y(%r15): the entry barrier, since JDK 17; its jump. */
	is = hs_is(code3, 0x7f8141) | hs_is(before & 0xffffff, 0x7f8141);
	/* A nop before the barrier: after sub $x,%rsp or mov %rbp,x(%rsp). */
	is |= hs_is(before >> 32 & 0xffffff, 0xec8348) | hs_is(before >> 8 & 0xffffff, 0xec8148);
	is |= hs_is(before >> 24 & 0xffffff, 0x6c8948) | hs_is(before & 0xffffff, 0xac8948);
	/* A frame that is made at once and keeps its pointer: mov %rsp,%rbp; add $x,%rbp */
	is |= hs_is(code3, 0xec8b48) | hs_is(code3 & 0xfffdff, 0xc58148);
	at = hs_pick(is, HS_AT_WHOLE, HS_AT_ENTRY);
	/* rbp is saved in that frame: mov %rbp,x(%rsp) */
	at = hs_pick(hs_is(code3 & 0x3fffff, 0x2c8948), HS_AT_SUB, at);
	/* push %rbp; mov %rsp,%rbp; sub $x,%rsp */
	is = hs_is(before >> 56, 0x55) | hs_is(before >> 32, 0xec8b4855);
	return hs_pick(is, HS_AT_PUSHED, at);
}

/*
 * Return: how much of a frame exists (enum sb_hotspot_at) after the point in an nmethod where it is
 * complete: HS_AT_WHOLE unless this is code that is known to change the stack. @before, @code,
 * @behind: the eight bytes before pc, at pc, and after those. hs_leave() finds the caller by the
 * result.
 */
static __always_inline __u64 hs_in_body(__u64 before, __u64 code, __u64 behind)
{
	__u64 code1 = code & 0xff, code2 = code & 0xffff, code3 = code & 0xffffff, at, is;

	/* A copy from stack to stack: push x(%rsp); pop y(%rsp). */
	is = hs_is(code & 0xfff0, 0x8f40);
	/* Flags of a comparison of floats: pushf; and $x,(%rsp); popf. */
	is |= hs_is(code1, 0x9d) | hs_is(code & 0xffffffff, 0x24248148);
	at = hs_pick(is, HS_AT_WORD, HS_AT_WHOLE);
	is = hs_is(code1, 0xc3); /* ret */
	/* The poll at a return. JDK 16 on: cmp x(%r15),%rsp; ja. */
	is |= hs_is(code3 & 0x3fffff, 0x273b49);
	is |= hs_is(code & 0xf0ff, 0x800f) & hs_is(code >> 48 & 0xff, 0xc3);
	/* Wrappers of native methods: leave; then cmp $0,x(%r15), or test $1,x(%r15), and a
	 * jump. */
	is |= hs_is(before >> 56, 0xc9) &
	      (hs_is(code3 & 0xfffdff, 0x7f8149) | hs_is(code3, 0x47f641));
	/* Before JDK 16: test %eax,x(%rip); ret */
	is |= hs_is(code2, 0x0585) & hs_is(code >> 48 & 0xff, 0xc3);
	/* mov x(%r15),%r10 or mov $x,%r10; test %eax,(%r10); ret */
	is |= hs_is(code & 0xffffffff, 0xc3028541);
	is |= hs_is(code3, 0x978b4d) & hs_is(behind & 0xffffff, 0xc30285);
	is |= hs_is(code2, 0xba49) & hs_is(behind >> 16 & 0xffffffff, 0xc3028541);
	/* A tail jump from a frame that is gone: pop %rbp; jmp. */
	is |= hs_is(before >> 56, 0x5d) & hs_is(code1, 0xe9);
	/* The stub of an unbound call: mov $x,%rbx; jmp. This nmethod called it. */
	is |= hs_is(code2, 0xbb48) & hs_is(behind >> 16 & 0xff, 0xe9);
	at = hs_pick(is, HS_AT_ENTRY, at);
	return hs_pick(hs_is(code1, 0x5d), HS_AT_PUSHED, at); /* pop %rbp */
}

/*
 * Return: how much of the frame of the interrupted nmethod @blob, where @walk stands as a leaf,
 * exists (enum sb_hotspot_at), for hs_leave(). Words of walk->signal_frame before the blob are
 * overwritten.
 */
static HS_APART __u64 hs_leaf_at(struct sb_interp_walk *w, void *mem, struct sb_walk *walk,
				 const struct sb_hotspot_blob *blob)
{
	__u64 *code = walk->signal_frame; /* three words; the middle one begins at pc */
	__u64 is_prologue = hs_is_below(walk->pc - blob->code, blob->complete), at;

	code[0] = code[1] = code[2] = 0;
	SB_INTERP_READ(mem, code, 24, walk->pc - 8);
	at = hs_pick(is_prologue, hs_in_prologue(code[0], code[1]),
		     hs_in_body(code[0], code[1], code[2]));
	return hs_pick(hs_is_below((__u64)blob->frame_size, 9), HS_AT_ENTRY, at);
}

#endif

/*
 * The word at the end of a frame is not a return address of Java code: there is more on the stack
 * than when the method was compiled, because barriers of garbage collectors save registers where
 * they call the collector. @sp: where the frame should end. Overwrites w->at[]. Return: how many
 * bytes more, so that the frame ends there; 0: not found within 64.
 */
static __always_inline __u64 hs_find_end(struct sb_interp_walk *w, void *mem, __u64 sp)
{
	__u64 more = 0, begin = w->conf.hook_begin, size = w->conf.hook_end - begin;
	int i;

	SB_INTERP_READ(mem, w->at, sizeof(w->at), sp - 16);
	for (i = 9; i >= 2; i--)
		more = hs_pick(hs_is_below(w->at[i] - begin, size), (i - 1) * 8, more);
	return more;
}

/*
 * Step to the caller of a frame that has @size bytes when it is complete, the return address among
 * them. @at: how much of it exists (enum sb_hotspot_at). Sets walk->bx_at to lost.
 * Return: SB_STEP_GO_ON; SB_STEP_END: BAD_CFA when @size is too large, FAULT, BAD_PC.
 */
static HS_APART enum sb_step hs_leave(struct sb_interp_walk *w, struct sb_walk *walk, void *mem,
				      __s64 size, __u64 at)
{
	__u64 *frame = walk->signal_frame, sp = walk->sp, more; /* two words */
	__u64 has_fp = 1 ^ (hs_is(at, HS_AT_ENTRY) | hs_is(at, HS_AT_SUB));

	walk->bx_at = SB_BX_AT_LOST;
	if (size > SB_FP_FRAME_BYTES_MAX)
		return sb_step_end(walk, SB_STACK_BAD_CFA);
#ifdef SB_MACHINE_ARM64
	if (!has_fp) {
		walk->uses |= SB_WALK_USES_LR;
		return sb_step_to(walk, walk->regs[SB_REG_LR],
				  sp + hs_pick(hs_is(at, HS_AT_SUB), (__u64)size, 0), walk->fp);
	}
#endif
	sp += hs_pick(
		hs_is(at, HS_AT_ENTRY), 8,
		hs_pick(hs_is(at, HS_AT_PUSHED), 16, (__u64)size + 8 * hs_is(at, HS_AT_WORD)));
	/* There need not be anything below sp, but reading within the page does no harm. */
	if (sb_interp_read(w, mem, frame, 16, sp - 16))
		return sb_step_end(walk, SB_STACK_FAULT);
	if (frame[1] - w->conf.hook_begin >= w->conf.hook_end - w->conf.hook_begin) {
		more = hs_find_end(w, mem, sp);
		if (!more)
			return sb_step_end(walk, SB_STACK_BAD_PC);
		sp += more;
		if (sb_interp_read(w, mem, frame, 16, sp - 16))
			return sb_step_end(walk, SB_STACK_FAULT);
	}
	return sb_step_to(walk, frame[1], sp, hs_pick(has_fp, frame[0], walk->fp));
}

/*
 * Examine an interpreter frame at rbp (x29). Its words are left in w->at[], from
 * SB_HOTSPOT_BELOW_FP below rbp on. @running_bcp: for the leaf, the value of the register
 * HS_REG_BCP, which may be the bytecode pointer; 0 for other frames.
 * Return: its Method, with the index of its bytecode in *@ret_bci and bits that identify the method
 * in *@ret_check, for hs_leave_interp(); 0: there is no valid Method, and both mean nothing. If
 * w->at[HS_IS_OTHER_WORD], which the caller sets to 0, is 1 afterwards, @running_bcp belongs to
 * another method.
 */
static __always_inline __u64 hs_interp_frame(struct sb_interp_walk *w, const struct sb_walk *walk,
					     void *mem, __u64 running_bcp, __u64 *ret_bci,
					     __u64 *ret_check)
{
	const struct sb_hotspot_conf *conf = sb_hotspot_conf(w);
	__u64 fp = walk->fp, method, code, size, bcp;

	if ((fp & 7) || fp < walk->sp || fp - walk->sp > SB_FP_FRAME_BYTES_MAX)
		return 0;
	if (sb_interp_read(w, mem, w->at, SB_HOTSPOT_BELOW_FP + 16, fp - SB_HOTSPOT_BELOW_FP))
		return 0;
	if (fp - walk->sp < HS_INTERP_METHOD_PUSHED) /* the frame is incomplete */
		return 0;
	method = w->at[HS_METHOD_WORD];
	bcp = hs_u64(w, conf->bcp_word * 8);
	code = sb_interp_word(w, mem, method + conf->method_const);
	if (!code || sb_interp_read(w, mem, &w->at[HS_SIZE_WORD], 8, code + conf->const_code_size))
		return 0;
	size = (__u16)w->at[HS_SIZE_WORD];
	*ret_check = code >> 3 ^ size;
	code += conf->const_size;
	*ret_bci = 0;
	/*
	 * A native method: no bytecode pointer, or, if the VM was called to link it, one to where
	 * bytecode would be.
	 */
	if (!size && hs_is_either(bcp, 0, code))
		return method;
	if (running_bcp - code < size)
		bcp = running_bcp;
	else if (running_bcp)
		w->at[HS_IS_OTHER_WORD] = 1; /* between two methods */
	*ret_bci = bcp - code;
	return bcp - code < size ? method : 0;
}

#ifdef SB_MACHINE_X86
/* Words that may be the return address, for hs_between(). */
enum {
	HS_WORD_TOP,	   /* two words at sp */
	HS_WORD_WHOLE = 2, /* two words at the end of a stub's frame */
	HS_WORD_R13 = 4,
	HS_WORD_RAX,
	HS_WORD_MAX,
};
#define hs_bit(bits, i) ((bits) >> (i)&1)

/*
 * Step out of a leaf if the thread was interrupted while it entered or left a method: the return
 * address is at sp, or was just popped. rbp may be that of an interpreter frame further out, with
 * compiled methods in between. @size: bytes of the frame of the stub (blob) that @walk stands in,
 * with its return address, which is looked at, too; 0 or less: it has none.
 * Return: SB_STEP_GO_ON; SB_STEP_FP_CHAIN if nothing was found, so that hs_leave_interp() or
 * hs_leave_stub() follows; SB_STEP_END with SB_STACK_BAD_PC.
 */
static __always_inline enum sb_step hs_between(struct sb_interp_walk *w, struct sb_walk *walk,
					       void *mem, __s64 size)
{
	/* Two words each, and r13, rax: candidates for the return address. */
	__u64 *top = walk->signal_frame, *whole = top + 2, *word = top;
	__u64 r13 = walk->regs[13], rbx = walk->regs[SB_REG_BX], code = 0, at_sp, is_vm;
	__u64 sp = walk->sp, pc = 0, to_sp, fp = walk->fp, is = 0, i;
	const struct sb_hotspot_conf *conf = sb_hotspot_conf(w);

	top[0] = top[1] = whole[0] = whole[1] = 0;
	SB_INTERP_READ(mem, top, 16, sp);
	SB_INTERP_READ(mem, whole, 16, sp + (__u64)size - 16);
	SB_INTERP_READ(mem, &code, sizeof(code), walk->pc - 1);
	word[HS_WORD_R13] = r13;
	word[HS_WORD_RAX] = walk->regs[0];
#ifdef __clang__
#pragma clang loop unroll(disable)
#endif
	for (i = 0; i < HS_WORD_MAX; i++) {
		__u64 at = i;

		SB_STEP_OPAQUE(at);
		is |= hs_is_return(w, mem, word[at & 7]) << i;
	}
	/* In r13: right before the jump back. */
	pc = hs_pick(hs_bit(is, HS_WORD_R13), r13, pc);
	to_sp = hs_sender_sp(walk, rbx, sp);
	/* In rax: while entering. */
	pc = hs_pick(hs_bit(is, HS_WORD_RAX), walk->regs[0], pc);
	to_sp = hs_pick(hs_bit(is, HS_WORD_RAX), hs_sender_sp(walk, r13, sp), to_sp);
	/* At the end of a stub's frame that has a size. */
	at_sp = hs_bit(is, HS_WORD_WHOLE + 1) & hs_is_below(16, (__u64)size + 1);
	pc = hs_pick(at_sp, whole[1], pc);
	fp = hs_pick(at_sp, whole[0], fp);
	to_sp = hs_pick(at_sp, sp + (__u64)size, to_sp);
	/* At sp. The caller's sp is in r13 while entering, in rbx while leaving. */
	pc = hs_pick(hs_bit(is, HS_WORD_TOP), top[0], pc);
	fp = hs_pick(hs_bit(is, HS_WORD_TOP), walk->fp, fp);
	/*
	 * What the VM calls is not an adapter, which would have changed sp: these registers are
	 * the VM's own.
	 */
	is_vm = hs_is_below(top[0] - conf->vm_begin, conf->vm_end - conf->vm_begin);
	at_sp = hs_sender_sp(walk, r13, hs_sender_sp(walk, rbx, sp + 8));
	to_sp = hs_pick(hs_bit(is, HS_WORD_TOP), hs_pick(is_vm, sp + 8, at_sp), to_sp);
	/* After push %rbp, or at pop %rbp. */
	is = hs_bit(is, HS_WORD_TOP + 1) &
	     (hs_is(code & 0xff, 0x55) | hs_is(code >> 8 & 0xff, 0x5d));
	pc = hs_pick(is, top[1], pc);
	fp = hs_pick(is, top[0], fp);
	to_sp = hs_pick(is, hs_sender_sp(walk, r13, sp + 16), to_sp);
	if (!pc)
		return SB_STEP_FP_CHAIN;
	return sb_step_to(walk, pc, to_sp, fp);
}

/*
 * Return: 1 if the incomplete interpreter frame at rbp, whose words hs_interp_frame() left in
 * w->at[], already has its return address in its place; otherwise 0.
 */
static __always_inline __u64 hs_is_made(struct sb_interp_walk *w, const struct sb_walk *walk,
					void *mem)
{
	return hs_is_below(walk->fp - walk->sp, HS_INTERP_MADE) &
	       hs_is_return(w, mem, w->at[HS_RETURN_WORD]);
}

#endif

/* How hs_between() is called: in BPF it is a global function, which the verifier examines once. */
#ifndef HS_BETWEEN
#define HS_BETWEEN(w, walk, mem, size) hs_between(w, walk, mem, size)
#endif

/*
 * Push the interpreter frame that hs_interp_frame() has examined, whose words are in w->at[], and
 * step to its caller. @method, @bci, @check: what it returned. Return: SB_STEP_GO_ON; SB_STEP_END:
 * BAD_FP if @method is 0, DEPTH; or BAD_CFA, BAD_PC, with the frame pushed.
 */
static __always_inline enum sb_step hs_leave_interp(struct sb_interp_walk *w, struct sb_walk *walk,
						    __u64 method, __u64 bci, __u64 check)
{
	if (!method)
		return sb_step_end(walk, SB_STACK_BAD_FP);
	if (sb_interp_push(w, method, bci, check) != SB_STEP_GO_ON)
		return sb_step_end(walk, SB_STACK_DEPTH);
#ifdef SB_MACHINE_ARM64
	/* The frame stands on the part of an interpreted caller's stack that it had not used
	 * yet. */
	if (w->at[HS_SENDER_SP_WORD] <= walk->fp)
		w->at[HS_SENDER_SP_WORD] = walk->fp + 16;
#endif
	if (w->at[HS_SENDER_SP_WORD] <= walk->fp)
		return sb_step_end(walk, SB_STACK_BAD_CFA);
	return sb_step_to(walk, w->at[HS_RETURN_WORD], w->at[HS_SENDER_SP_WORD], w->at[HS_FP_WORD]);
}

/*
 * Step out of a stub or an adapter by rbp, on which its frame is based: if it has no frame size, or
 * in a leaf for which hs_between() found nothing. Its frame has been pushed before. Return:
 * SB_STEP_GO_ON; SB_STEP_END: BAD_FP, FAULT or BAD_PC, and the registers of @walk are unchanged.
 */
static __always_inline enum sb_step hs_leave_stub(struct sb_interp_walk *w, struct sb_walk *walk,
						  void *mem)
{
	if ((walk->fp & 7) || walk->fp - walk->sp > SB_FP_FRAME_BYTES_MAX)
		return sb_step_end(walk, SB_STACK_BAD_FP);
	if (sb_interp_read(w, mem, w->at, 16, walk->fp))
		return sb_step_end(walk, SB_STACK_FAULT);
	return sb_step_to(walk, w->at[1], walk->fp + 16, w->at[0]);
}

/*
 * Push the Java frame for the native frame where @walk stands, and move @walk to the caller.
 * Return: SB_STEP_GO_ON; SB_STEP_FP_CHAIN: there is no Java code at its pc, and nothing has changed
 * but walk->mark and scratch memory; SB_STEP_END with SB_STACK_DEPTH, when there was no room for
 * the frame, or BAD_FP, BAD_CFA, FAULT or BAD_PC: the caller was not found, the frame may have been
 * pushed all the same.
 */
static __always_inline enum sb_step sb_hotspot_native(struct sb_interp_walk *w,
						      struct sb_walk *walk, void *mem)
{
	const struct sb_hotspot_conf *conf = sb_hotspot_conf(w);
	struct sb_hotspot_blob *blob = (struct sb_hotspot_blob *)&walk->signal_frame[HS_BLOB_AT];
	__u64 pc = sb_walk_key(walk), is_leaf = walk->flags & SB_WALK_LEAF, is_between = 0;
	__u64 method = 0, bci = 0, check = 0, position, at = HS_AT_WHOLE;
	__u64 is_interp =
		hs_is_below(pc - conf->interp_begin, conf->interp_end - conf->interp_begin);
	enum sb_step step;

	*blob = (struct sb_hotspot_blob){};
	walk->mark = 0;
	if (is_interp) {
		w->at[HS_RETURN_WORD] = w->at[HS_IS_OTHER_WORD] = 0;
		method = hs_interp_frame(w, walk, mem, is_leaf ? walk->regs[HS_REG_BCP] : 0, &bci,
					 &check);
		is_between = is_leaf && (!method || w->at[HS_IS_OTHER_WORD]);
#ifdef SB_MACHINE_X86
		if (is_between && !method && hs_is_made(w, walk, mem))
			return sb_step_to(walk, w->at[HS_RETURN_WORD],
					  hs_sender_sp(walk, walk->regs[13], walk->fp + 16),
					  w->at[HS_FP_WORD]);
#endif
	} else {
		if (hs_find(w, mem, pc, blob))
			return SB_STEP_FP_CHAIN;
#ifdef SB_MACHINE_ARM64
		if (is_leaf && blob->method && hs_a64_is_trampoline(walk, mem))
			return sb_step_to(walk, walk->regs[SB_REG_LR], walk->sp, walk->fp);
#endif
		position = ((walk->pc - blob->code) & 0xffffffff) |
			   hs_pick(hs_is_below(blob->method, 1), SB_HOTSPOT_STUB,
				   SB_HOTSPOT_COMPILED) |
			   (is_leaf ? SB_HOTSPOT_EXACT : 0);
		if (sb_interp_push(w, blob->addr, position, blob->check) != SB_STEP_GO_ON)
			return sb_step_end(walk, SB_STACK_DEPTH);
		is_between = is_leaf && !blob->method;
		if (!is_between && (blob->method || blob->frame_size > 0)) {
			if (is_leaf)
				at = hs_leaf_at(w, mem, walk, blob);
			return hs_leave(w, walk, mem, blob->frame_size, at);
		}
	}
	walk->bx_at = SB_BX_AT_LOST;
	walk->uses |= SB_WALK_USES_FP | SB_WALK_USES_REGS;
	if (is_between) {
		step = HS_BETWEEN(w, walk, mem, blob->frame_size);
		if (step != SB_STEP_FP_CHAIN)
			return step;
	}
	if (is_interp)
		return hs_leave_interp(w, walk, method, bci, check);
	return hs_leave_stub(w, walk, mem);
}

#endif
