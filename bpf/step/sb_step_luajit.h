/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walker of LuaJIT 2.1. The interpreter is one function in assembler. Its frame on the native stack
 * (the "C frame", lj_frame.h: CFRAME_*) holds the lua_State that runs in it. On x86-64 it has 80
 * bytes; of arm64 sb_step_luajit_arm64.h tells:
 *
 *	sp +  8	number of results wanted (GC64; otherwise +16); negative: no Lua frame belongs to it
 *	   + 16	lua_State (GC64; otherwise +24, 32 bits)
 *	   + 24	position in the bytecode while a C function is called (otherwise +28, 32 bits)
 *	   + 32	the previous C frame of the same lua_State
 *	   + 56	rbx, rbp, and the return address of the caller
 *
 * lua_State.cframe points to the innermost C frame. So a word on the stack is verified if it
 * points to a lua_State that points back to it. That is how the C frame is found from generated
 * code, whose frame is the same with an unknown number of bytes below.
 *
 * Lua's own frames (lj_frame.h: FRAME_*) are linked by the word at base - 1: the caller's next
 * instruction, or a distance and a type. C called a frame of type C or CP, which ends the segment.
 * The frames of a coroutine are on its own lua_State; those of its resumer belong to the next C
 * frame.
 *
 * In all functions, *@w is the walk of this runtime in one thread, whose conf.word is a struct
 * sb_luajit_conf, @walk is the native walk, and @mem is passed to SB_INTERP_READ, which copies from
 * the process; there is no other state, so they run in any thread and BPF program. No pointer may
 * be NULL but @mem. Addresses are those of the process; memory that cannot be read counts as 0
 * unless said otherwise. @l is a lua_State, @func a GCfunc, @proto a GCproto. Results, enum
 * sb_step: SB_STEP_GO_ON: call step() (again), or the walk was moved; SB_STEP_END: the walk has
 * ended, w->status (or walk->status, if @walk was ended) says why; SB_STEP_FP_CHAIN: nothing was
 * found or moved, the native walk goes on by the table's rule or by the frame pointer.
 *
 * Order, as sb_interp_step.h says: w->at is zeroed before the first native frame of a thread. Then,
 * for each native frame in the interpreter or without a rule, sb_luajit_native(), and, if that has
 * set w->has_steps, sb_luajit_step() until it returns SB_STEP_END, with any status. The other
 * functions are parts of these. Frames that were pushed remain, and at[] leads from one C frame to
 * the next.
 */
#ifndef SB_STEP_LUAJIT_H
#define SB_STEP_LUAJIT_H

#include "bpf/abi/sb_abi_lua.h"

#include "bpf/step/sb_interp_step.h"

/* Offsets in the structures of this build of LuaJIT. */
struct sb_luajit_conf {
	__u64 ptr_mask; /* GC64: 47 bits; otherwise 32 */
	__u32 is_gc64;
	__u32 g_to_dispatch;		  /* from global_State to the value of r14; 0: not known */
	__u16 cf_l, cf_pc, cf_results;	  /* in a C frame */
	__u16 l_global, l_base, l_cframe; /* in lua_State */
	__u16 l_stack_limits; /* in lua_State: two pointers, end and begin of the Lua stack */
	__u16 g_cur_l, g_jit_base, g_vmstate;
	__u16 f_header, f_pc; /* in GCfunc: the bytes marked, gct, ffid, nupvalues; its bytecode */
	__u16 p_size,
		p_lines; /* GCproto: size before its bytecode; first line and number of lines */
};
_Static_assert(sizeof(struct sb_luajit_conf) <= 8 * SB_INTERP_CONF_WORDS, "it fits");

enum sb_luajit_at {
	SB_LUAJIT_L,	  /* lua_State of the segment walked last */
	SB_LUAJIT_FRAME,  /* its next frame */
	SB_LUAJIT_PC,	  /* position in the bytecode of that frame; 0: not known */
	SB_LUAJIT_CFRAME, /* the previous C frame */
	SB_LUAJIT_TRACE,  /* number of the trace that the frame is in; 0: none */
	SB_LUAJIT_TRACE_PC,
	/*
	 * Results of one step. They are not in variables, because the verifier would follow each
	 * value that these can have.
	 */
	SB_LUAJIT_CALL,
	SB_LUAJIT_PREV,
	SB_LUAJIT_NEXT_PC,
	SB_LUAJIT_IS_END,
	SB_LUAJIT_FUNC,
	SB_LUAJIT_CF = SB_LUAJIT_CALL,
	SB_LUAJIT_THIS_L,
	SB_LUAJIT_IS_JIT,
	SB_LUAJIT_IS_VM,
};

enum {
#ifdef SB_MACHINE_ARM64
	SB_LUAJIT_CFRAME_BYTES = 208,
	SB_LUAJIT_CFRAME_PREV = 0,
	SB_LUAJIT_CFRAME_L = 16,
	SB_LUAJIT_CFRAME_PC = 8,
	SB_LUAJIT_CFRAME_RESULTS = 40,
	SB_LUAJIT_CFRAME_FP = 192,
#else
	SB_LUAJIT_CFRAME_BYTES = 80,
	SB_LUAJIT_CFRAME_PREV = 32,
	SB_LUAJIT_CFRAME_L = 16, /* and the next two: GC64 */
	SB_LUAJIT_CFRAME_PC = 24,
	SB_LUAJIT_CFRAME_RESULTS = 8,
	SB_LUAJIT_CFRAME_RBX = 56,
#endif
	SB_LUAJIT_EXIT_STATE = 256, /* bytes of registers that the exit of a trace saves */
	SB_LUAJIT_TFUNC = 8,	    /* GCobj.gct */
	SB_LUAJIT_CONT_FFI_CALLBACK = 1,
};

/*
 * Types of frames: the lowest three bits of their link. If the lowest two are 0, it is an address.
 */
enum {
	SB_LUAJIT_FRAME_C = 1,
	SB_LUAJIT_FRAME_CONT = 2,
	SB_LUAJIT_FRAME_VARG = 3,
};

/* Return: the configuration of this runtime in this process: w->conf.word. */
static __always_inline const struct sb_luajit_conf *sb_luajit_conf(const struct sb_interp_walk *w)
{
	return (const struct sb_luajit_conf *)w->conf.word;
}

/* Return: the pointer at @addr, without the bits that hold the type of a value. */
static __always_inline __u64 sb_luajit_ptr(struct sb_interp_walk *w, void *mem, __u64 addr)
{
	return sb_interp_word(w, mem, addr) & sb_luajit_conf(w)->ptr_mask;
}

/* Return: the innermost C frame of @l, without the flags in its lowest bits. */
static __always_inline __u64 sb_luajit_cframe(struct sb_interp_walk *w, void *mem, __u64 l)
{
	return sb_interp_word(w, mem, l + sb_luajit_conf(w)->l_cframe) & ~7ull;
}

/*
 * Push a frame for the function in which a trace (generated code) was entered; the trace is the one
 * in w->at[SB_LUAJIT_TRACE] and TRACE_PC. @proto: its prototype. @call: the distance from @proto to
 * the instruction after the call that began the function, in instructions; 0: not called by Lua
 * code. Return: SB_STEP_GO_ON; SB_STEP_END with SB_STACK_DEPTH.
 */
static __always_inline enum sb_step sb_luajit_push_base(struct sb_interp_walk *w, __u64 proto,
							__u64 call)
{
	__u64 pc = w->at[SB_LUAJIT_TRACE_PC];

	return sb_interp_push(
		w, sb_lua_obj(SB_LUA_TRACE_BASE, proto, w->at[SB_LUAJIT_TRACE] & SB_LUA_PLACE_MAX),
		(call & SB_LUA_BASE_CALL_MASK) | pc << SB_LUA_BASE_CALL_BITS,
		pc >> SB_LUA_BASE_PC_LOW);
}

/*
 * Push the function of a frame, if it has a name here (one in C that C called has it on the native
 * stack), at the position at[SB_LUAJIT_PC], or in the trace at[SB_LUAJIT_TRACE]. @call: address of
 * the instruction after the call; 0: not called by Lua code. Return: SB_STEP_GO_ON; SB_STEP_END:
 * FAULT, BAD_PC when @func is no function, DEPTH.
 */
static __always_inline enum sb_step sb_luajit_push(struct sb_interp_walk *w, void *mem, __u64 func,
						   __u64 call)
{
	const struct sb_luajit_conf *conf = sb_luajit_conf(w);
	__u64 code, proto, lines, place = 0;
	__u32 header;

	if (sb_interp_read(w, mem, &header, sizeof(header), func + conf->f_header))
		return sb_interp_end(w, SB_STACK_FAULT);
	if ((header >> 8 & 0xff) != SB_LUAJIT_TFUNC)
		return sb_interp_end(w, SB_STACK_BAD_PC);
	if (header >> 16 & 0xff) {
		/* If C called it, its name is on the native stack. */
		return call ? sb_interp_push(w, sb_lua_obj(SB_LUA_C, 0, header >> 16 & 0xff),
					     call & SB_LUA_CALL_MASK, 0)
			    : SB_STEP_GO_ON;
	}
	code = sb_luajit_ptr(w, mem, func + conf->f_pc);
	proto = code - conf->p_size;
	lines = sb_interp_word(w, mem, proto + conf->p_lines);
	if (call)
		call = (call - proto) >> 2 & SB_LUA_CALL_MASK;
	if (w->at[SB_LUAJIT_TRACE])
		return sb_luajit_push_base(w, proto, call);
	if (w->wants_lines && w->at[SB_LUAJIT_PC] > code)
		place = (w->at[SB_LUAJIT_PC] - code) >> 2;
	return sb_interp_push(w, sb_lua_obj(SB_LUA_FUNCTION, proto, place), call,
			      lines ^ lines >> 32);
}

/*
 * Evaluate the @link of the frame at @frame, how it was called and where the next one is: to
 * at[SB_LUAJIT_CALL], PREV, NEXT_PC, IS_END. Return: 0; -1: memory cannot be read, and these mean
 * nothing.
 */
static __always_inline int sb_luajit_follow(struct sb_interp_walk *w, void *mem, __u64 frame,
					    __u64 link)
{
	__u64 *at = w->at, cont[2] = {}, pc;
	__u32 is_gc64 = sb_luajit_conf(w)->is_gc64 & 1, ins = 0;

	at[SB_LUAJIT_CALL] = at[SB_LUAJIT_NEXT_PC] = at[SB_LUAJIT_IS_END] = 0;
	at[SB_LUAJIT_PREV] = frame - (link & 0xfffffff8);
	if (!(link & 3)) {
		pc = link & sb_luajit_conf(w)->ptr_mask;
		at[SB_LUAJIT_CALL] = at[SB_LUAJIT_NEXT_PC] = pc;
		if (sb_interp_read(w, mem, &ins, sizeof(ins), pc - 4))
			return -1;
		at[SB_LUAJIT_PREV] = frame - 8 * (1 + is_gc64 + (ins >> 8 & 0xff));
		return 0;
	}
	if ((link & 3) == SB_LUAJIT_FRAME_C) /* and CP */
		at[SB_LUAJIT_IS_END] = 1;
	if ((link & 7) != SB_LUAJIT_FRAME_CONT) /* the others: pcall() and xpcall() */
		return 0;
	/* A metamethod: the continuation, and its position. */
	if (sb_interp_read(w, mem, cont, sizeof(cont), frame - 8 - 16 * is_gc64))
		return -1;
	if (!is_gc64) {
		cont[1] = cont[0] >> 32;
		cont[0] = (__u32)cont[0];
	}
	at[SB_LUAJIT_IS_END] = cont[0] == SB_LUAJIT_CONT_FFI_CALLBACK;
	at[SB_LUAJIT_CALL] = at[SB_LUAJIT_NEXT_PC] = cont[1] & sb_luajit_conf(w)->ptr_mask;
	return 0;
}

/*
 * Walk one frame of Lua's own stack. Return: SB_STEP_GO_ON; SB_STEP_END, with SB_STACK_FAULT,
 * BAD_PC, BAD_FP or DEPTH, or with SB_STACK_COMPLETE at the end of the segment.
 */
static __always_inline enum sb_step sb_luajit_step(struct sb_interp_walk *w, void *mem)
{
	const struct sb_luajit_conf *conf = sb_luajit_conf(w);
	__u64 *at = w->at, frame = at[SB_LUAJIT_FRAME], link[2] = {};
	enum sb_step step;

	if (sb_interp_read(w, mem, link, sizeof(link), frame - 8))
		return sb_interp_end(w, SB_STACK_FAULT);
	if (!conf->is_gc64) {
		link[0] = (__u32)link[1];
		link[1] >>= 32;
	}
	at[SB_LUAJIT_FUNC] = link[0] & conf->ptr_mask;
	if (!at[SB_LUAJIT_FUNC] || at[SB_LUAJIT_FUNC] == at[SB_LUAJIT_L])
		return sb_interp_end(w, SB_STACK_COMPLETE); /* the bottom of the stack */
	if (sb_luajit_follow(w, mem, frame, link[1]))
		return sb_interp_end(w, SB_STACK_FAULT);
	at[SB_LUAJIT_FRAME] = at[SB_LUAJIT_PREV];
	/* A function with variable arguments has another frame, with its true base, below. */
	if ((link[1] & 7) != SB_LUAJIT_FRAME_VARG) {
		step = sb_luajit_push(w, mem, at[SB_LUAJIT_FUNC], at[SB_LUAJIT_CALL]);
		if (step != SB_STEP_GO_ON)
			return step;
		at[SB_LUAJIT_TRACE] = 0;
		at[SB_LUAJIT_PC] = at[SB_LUAJIT_NEXT_PC];
	}
	if (at[SB_LUAJIT_IS_END])
		return sb_interp_end(w, SB_STACK_COMPLETE);
	return at[SB_LUAJIT_PREV] < frame ? SB_STEP_GO_ON : sb_interp_end(w, SB_STACK_BAD_FP);
}

/* Never called, since frames lie on the native stack. Return: SB_STEP_END, COMPLETE. */
static __always_inline enum sb_step sb_luajit_begin(struct sb_interp_walk *w, void *mem)
{
	return sb_interp_end(w, SB_STACK_COMPLETE); /* SB_INTERP_BY_NATIVE: never called */
}

/* Return: whether @base, from a register that may hold anything, is the base of a function's frame
 * on the stack of @l, a lua_State that was found; 0 also if that cannot be read. If it is none, the
 * caller uses the base that the lua_State has in memory. */
static __always_inline int sb_luajit_is_base(struct sb_interp_walk *w, void *mem, __u64 l,
					     __u64 base)
{
	const struct sb_luajit_conf *conf = sb_luajit_conf(w);
	__u64 limits[2] = {}, func;
	__u32 header;

	if ((base & 7) || sb_interp_read(w, mem, limits, sizeof(limits), l + conf->l_stack_limits))
		return 0;
	if (!conf->is_gc64) {
		limits[1] = limits[0] >> 32;
		limits[0] = (__u32)limits[0];
	}
	if (base <= limits[1] + 8 || base > limits[0] + 2048)
		return 0;
	func = sb_luajit_ptr(w, mem, base - (conf->is_gc64 ? 16 : 8));
	header = sb_interp_u32(w, mem, func + conf->f_header);
	return (header >> 8 & 0xff) == SB_LUAJIT_TFUNC;
}

/*
 * Push a placeholder for the generated code where @walk stands, which runs in the innermost frame
 * of the lua_State @l. The functions that are inlined there are known from the trace. Nothing is
 * pushed while a trace is entered or left.
 *
 * at[SB_LUAJIT_L] must still be the lua_State of the segment before: if it is not @l, sets
 * at[SB_LUAJIT_FRAME] to the innermost frame of @l, so that sb_luajit_first() is not needed. With
 * the placeholder, sets at[SB_LUAJIT_TRACE], which must be 0 before, and at[SB_LUAJIT_TRACE_PC].
 * Return: SB_STEP_GO_ON; SB_STEP_END with SB_STACK_DEPTH in w->status.
 */
static __always_inline enum sb_step sb_luajit_push_trace(struct sb_interp_walk *w,
							 struct sb_walk *walk, void *mem, __u64 l)
{
	const struct sb_luajit_conf *conf = sb_luajit_conf(w);
	__u64 g = sb_luajit_ptr(w, mem, l + conf->l_global);
	__u64 base = sb_luajit_ptr(w, mem, g + conf->g_jit_base);
	__u32 trace = sb_interp_u32(w, mem, g + conf->g_vmstate);

	if (w->at[SB_LUAJIT_L] != l) {
		if (!base) /* leaving it: the frame is written back */
			base = sb_luajit_ptr(w, mem, l + conf->l_base);
		w->at[SB_LUAJIT_FRAME] = base - 8;
	}
	if (!base || (__s32)trace <= 0)
		return SB_STEP_GO_ON;
	w->at[SB_LUAJIT_TRACE] = trace;
	w->at[SB_LUAJIT_TRACE_PC] = walk->pc;
	return sb_interp_push(w, sb_lua_obj(SB_LUA_TRACE, g, 0), walk->pc, trace);
}

#ifdef SB_MACHINE_ARM64
#include "bpf/step/sb_step_luajit_arm64.h"
#else

#define SB_LUAJIT_SCAN_WORDS 16

/*
 * How sb_luajit_scan() reads, and how it is called. In BPF it is a global function, which the
 * verifier examines once, and which may not call another one: calls may be eight deep.
 */
#ifndef SB_LUAJIT_SCAN
#define SB_LUAJIT_SCAN_READ		   SB_INTERP_READ
#define SB_LUAJIT_SCAN(w, walk, mem, from) sb_luajit_scan(w, walk, mem, from)
#endif

/*
 * Search SB_LUAJIT_SCAN_WORDS words of the native stack from @from up for the lua_State of a C
 * frame, and store the frame's address in at[SB_LUAJIT_CF]; 0: there is none. If the stack cannot
 * be read, that stays as it is: the caller has set it to 0. @walk's signal_frame is used as scratch
 * memory.
 */
static __always_inline void sb_luajit_scan(struct sb_interp_walk *w, struct sb_walk *walk,
					   void *mem, __u64 from)
{
	const struct sb_luajit_conf *conf = sb_luajit_conf(w);
	__u64 *words = walk->signal_frame, found = 0, cframe, cf, differs;
	int i;

	if (SB_LUAJIT_SCAN_READ(mem, words, SB_LUAJIT_SCAN_WORDS * 8, from)) {
		w->fault_addr = from;
		return;
	}
	/* Without branches: the verifier would follow each. What cannot be read is 0. */
	for (i = SB_LUAJIT_SCAN_WORDS - 1; i >= 0; i--) { /* the lowest one counts */
		cf = from + 8 * i - conf->cf_l;
		cframe = 0;
		(void)SB_LUAJIT_SCAN_READ(mem, &cframe, sizeof(cframe),
					  (words[i] & conf->ptr_mask) + conf->l_cframe);
		differs = (cframe & ~7ull) ^ cf;
		differs |= -differs;
		SB_STEP_OPAQUE(differs);
		differs = (__u64)((__s64)differs >> 63); /* all ones, or 0 */
		SB_STEP_OPAQUE(differs);
		found = (found & differs) | (cf & ~differs);
	}
	w->at[SB_LUAJIT_CF] = found;
}

/* Return: the address of the C frame, found by the registers of generated code (GC64, and only in a
 * leaf); 0: not found, so sb_luajit_scan() searches the stack. */
static __always_inline __u64 sb_luajit_by_dispatch(struct sb_interp_walk *w, struct sb_walk *walk,
						   void *mem)
{
	const struct sb_luajit_conf *conf = sb_luajit_conf(w);
	__u64 g, l, cf;

	if (!conf->g_to_dispatch || !(walk->flags & SB_WALK_LEAF))
		return 0;
	walk->uses |= SB_WALK_USES_REGS;
	g = walk->regs[14] - conf->g_to_dispatch;
	if ((g & 7) || g > conf->ptr_mask)
		return 0;
	l = sb_luajit_ptr(w, mem, g + conf->g_cur_l);
	if (!l || sb_luajit_ptr(w, mem, l + conf->l_global) != g)
		return 0;
	cf = sb_luajit_cframe(w, mem, l);
	return cf > walk->sp && cf - walk->sp < 4096 ? cf : 0;
}

/*
 * Find the innermost frame of @l. The caller has found that @walk stands in the interpreter's
 * native frame. The interpreter keeps base and next instruction in registers (rdx, rbx) and writes
 * them to memory only for functions that may need them; during calls of others it keeps the base in
 * rbp. Always sets at[SB_LUAJIT_FRAME], from memory if no register holds a valid base. If one does
 * and rbx is known, sets at[SB_LUAJIT_PC], which stays as it is otherwise.
 */
static __always_inline void sb_luajit_first(struct sb_interp_walk *w, struct sb_walk *walk,
					    void *mem, __u64 l)
{
	const struct sb_luajit_conf *conf = sb_luajit_conf(w);
	__u64 base = sb_luajit_ptr(w, mem, l + conf->l_base), fast = 0;
	__u32 code = 0;

	if (walk->flags & SB_WALK_LEAF) {
		fast = walk->regs[1] & conf->ptr_mask;
		walk->uses |= SB_WALK_USES_REGS;
	} else if (!sb_interp_read(w, mem, &code, 3, walk->pc)) {
		/* mov %rbp,%rdx; mov %ebp,%edx */
		if (code == 0xea8948 || (code & 0xffff) == 0xea89)
			fast = walk->fp & conf->ptr_mask;
	}
	if (fast && sb_luajit_is_base(w, mem, l, fast)) {
		base = fast;
		if (!walk->bx_at)
			w->at[SB_LUAJIT_PC] = walk->regs[SB_REG_BX];
		else if (walk->bx_at != SB_BX_AT_LOST)
			w->at[SB_LUAJIT_PC] = sb_interp_word(w, mem, walk->bx_at);
		w->at[SB_LUAJIT_PC] &= conf->ptr_mask;
	}
	w->at[SB_LUAJIT_FRAME] = base - 8;
}

/*
 * Return: how many bytes above sp the return address is, if @walk stands at the beginning or the
 * end of the interpreter's function, where its registers are not all saved; -1: it does not, or
 * the code cannot be read. This compares the instructions at pc only: the caller guarantees that
 * @walk is a leaf in the interpreter's code (at[SB_LUAJIT_IS_VM]).
 */
static __always_inline int sb_luajit_ret_at(struct sb_interp_walk *w, struct sb_walk *walk,
					    void *mem)
{
	__u32 code = sb_interp_u32(w, mem, walk->pc);

	switch (code) {
	case 0x57415355: /* push %rbp; push %rbx; push %r15 */
		return 0;
	case 0x41574153: /* push %rbx; push %r15; push %r14 */
		return 8;
	case 0x56415741: /* push %r15; push %r14 */
		return 16;
	case 0x83485641: /* push %r14; sub $40,%rsp */
		return 24;
	case 0x28ec8348: /* sub $40,%rsp */
	case 0x5f415e41: /* pop %r14; pop %r15 */
		return 32;
	case 0x5d5b5f41: /* pop %r15; pop %rbx; pop %rbp */
		return 24;
	}
	if ((code & 0xffffff) == 0xc35d5b) /* pop %rbx; pop %rbp; ret */
		return 16;
	if ((code & 0xffff) == 0xc35d)
		return 8;
	return (code & 0xff) == 0xc3 ? 0 : -1;
}

/*
 * Step out of a helper of the interpreter (rounding, powers). The interpreter and generated code
 * call helpers, which have no frame: only the return address is on the stack, and the call before
 * it verifies it. The registers are still the interpreter's, so the walk then stands at a leaf
 * again. The caller guarantees that @walk is a leaf in the interpreter's code. Return:
 * SB_STEP_GO_ON; SB_STEP_FP_CHAIN: not in a helper; SB_STEP_END: walk->status is SB_STACK_BAD_PC.
 */
static __always_inline enum sb_step sb_luajit_leave_helper(struct sb_interp_walk *w,
							   struct sb_walk *walk, void *mem)
{
	__u64 ret = sb_interp_word(w, mem, walk->sp), target;
	__s32 distance = 0;
	enum sb_step step;

	if (ret < SB_PC_MIN || sb_interp_u8(w, mem, ret - 5) != 0xe8 ||
	    sb_interp_read(w, mem, &distance, sizeof(distance), ret - 4))
		return SB_STEP_FP_CHAIN;
	target = ret + (__s64)distance;
	if (target < w->conf.hook_begin || target >= w->conf.hook_end)
		return SB_STEP_FP_CHAIN;
	walk->mark = 0;
	step = sb_step_to(walk, ret, walk->sp + 8, walk->fp);
	if (step == SB_STEP_GO_ON)
		walk->flags = SB_WALK_LEAF;
	return step;
}

/*
 * Step to the caller from the interpreter's prologue or epilogue, if @walk, a leaf in the
 * interpreter's code, stands there. Return: SB_STEP_GO_ON; SB_STEP_FP_CHAIN: it does not;
 * SB_STEP_END: walk->status is SB_STACK_FAULT or BAD_PC.
 */
static __always_inline enum sb_step sb_luajit_enter_or_leave(struct sb_interp_walk *w,
							     struct sb_walk *walk, void *mem)
{
	__u64 saved[2] = {}, fp = walk->fp;
	int at = sb_luajit_ret_at(w, walk, mem);

	if (at < 0)
		return SB_STEP_FP_CHAIN;
	if (at ? SB_STEP_READ(mem, saved, 16, walk->sp + at - 8)
	       : SB_STEP_READ(mem, &saved[1], 8, walk->sp))
		return sb_step_end(walk, SB_STACK_FAULT);
	if (at)
		fp = saved[0];
	if (at >= 16)
		walk->bx_at = walk->sp + at - 16;
	walk->mark = 0;
	return sb_step_to(walk, saved[1], walk->sp + at + 8, fp);
}

/*
 * Find the C frame from generated code, or from code that leaves it: to at[SB_LUAJIT_CF], 0: not
 * found; and set at[SB_LUAJIT_IS_JIT].
 */
static __always_inline void sb_luajit_find_cframe(struct sb_interp_walk *w, struct sb_walk *walk,
						  void *mem)
{
	w->at[SB_LUAJIT_CF] = sb_luajit_by_dispatch(w, walk, mem);
	if (!w->at[SB_LUAJIT_CF])
		SB_LUAJIT_SCAN(w, walk, mem,
			       walk->sp + 24 + w->at[SB_LUAJIT_IS_VM] * SB_LUAJIT_EXIT_STATE);
	w->at[SB_LUAJIT_IS_JIT] = 1;
}

/*
 * Return: whether @walk stands in the interpreter's code (at[SB_LUAJIT_IS_VM], set by native()) and
 * its C frame is complete and begins at sp: the frame is the one that the C frame before linked to,
 * or its lua_State links back to it. 0 otherwise, also in prologue, epilogue, helpers and traces,
 * or when memory cannot be read. It changes nothing but w->fault_addr. Only native() calls it: if
 * the frame is whole, the table's rule moves @walk to the caller; if not, native() searches for the
 * C frame.
 */
static __always_inline int sb_luajit_is_whole(struct sb_interp_walk *w, struct sb_walk *walk,
					      void *mem)
{
	__u64 l = sb_luajit_ptr(w, mem, walk->sp + sb_luajit_conf(w)->cf_l);

	return w->at[SB_LUAJIT_IS_VM] &&
	       (walk->sp == w->at[SB_LUAJIT_CFRAME] || sb_luajit_cframe(w, mem, l) == walk->sp);
}

#endif

/*
 * Begin to walk the frames of the C frame at[SB_LUAJIT_CF], which was found. at[SB_LUAJIT_L] is
 * still that of the segment before, or 0; with at[SB_LUAJIT_IS_JIT] a frame that stands for the
 * compiled trace is pushed first. Return: SB_STEP_GO_ON: step() is to be called; SB_STEP_END: the C
 * frame has no frames of Lua, or there are too many; w->status may be unset, and neither walk is
 * ended.
 */
static __always_inline enum sb_step sb_luajit_enter(struct sb_interp_walk *w, struct sb_walk *walk,
						    void *mem)
{
	const struct sb_luajit_conf *conf = sb_luajit_conf(w);
	__u64 *at = w->at, cf = at[SB_LUAJIT_CF], l = sb_luajit_ptr(w, mem, cf + conf->cf_l);
	enum sb_step step = SB_STEP_GO_ON;

	at[SB_LUAJIT_THIS_L] = l;
	at[SB_LUAJIT_CFRAME] = sb_interp_word(w, mem, cf + SB_LUAJIT_CFRAME_PREV) & ~7ull;
	at[SB_LUAJIT_PC] = sb_luajit_ptr(w, mem, cf + conf->cf_pc);
	at[SB_LUAJIT_TRACE] = 0;
	if (at[SB_LUAJIT_IS_JIT])
		step = sb_luajit_push_trace(w, walk, mem, l);
	else if ((__s32)sb_interp_u32(w, mem, cf + conf->cf_results) < 0)
		return SB_STEP_END; /* lua_cpcall(), which has called C */
	else if (at[SB_LUAJIT_L] != l)
		sb_luajit_first(w, walk, mem, l);
	at[SB_LUAJIT_L] = at[SB_LUAJIT_THIS_L];
	return step;
}

#ifdef SB_MACHINE_X86

/*
 * Find the C frame of the native frame where @walk stands, and set w->has_steps if step() is to be
 * called for its frames. The caller clears has_steps before the call, since some paths do not write
 * it, and looks at it afterwards, whatever is returned. From generated code, the prologue and
 * helpers it moves @walk to the caller (SB_STEP_GO_ON); from the interpreter the table's rule does
 * (SB_STEP_FP_CHAIN). SB_STEP_END: walk->status is SB_STACK_FAULT or BAD_PC.
 */
static __always_inline enum sb_step sb_luajit_native(struct sb_interp_walk *w, struct sb_walk *walk,
						     void *mem)
{
	__u64 *at = w->at, pc = sb_walk_key(walk), saved[3] = {};
	enum sb_step step;

	at[SB_LUAJIT_IS_VM] = pc >= w->conf.hook_begin && pc < w->conf.hook_end;
	at[SB_LUAJIT_CF] = walk->sp;
	at[SB_LUAJIT_IS_JIT] = 0;
	if (!sb_luajit_is_whole(w, walk, mem)) {
		if (at[SB_LUAJIT_IS_VM] && (walk->flags & SB_WALK_LEAF)) {
			step = sb_luajit_leave_helper(w, walk, mem);
			if (step == SB_STEP_FP_CHAIN)
				step = sb_luajit_enter_or_leave(w, walk, mem);
			if (step != SB_STEP_FP_CHAIN)
				return step;
		}
		sb_luajit_find_cframe(w, walk, mem);
	}
	if (!at[SB_LUAJIT_CF])
		return SB_STEP_FP_CHAIN;
	w->has_steps = sb_luajit_enter(w, walk, mem) == SB_STEP_GO_ON;
	if (!at[SB_LUAJIT_IS_JIT])
		return SB_STEP_FP_CHAIN; /* by the table */
	if (SB_STEP_READ(mem, saved, sizeof(saved), at[SB_LUAJIT_CF] + SB_LUAJIT_CFRAME_RBX))
		return sb_step_end(walk, SB_STACK_FAULT);
	walk->mark = 0;
	walk->bx_at = at[SB_LUAJIT_CF] + SB_LUAJIT_CFRAME_RBX;
	return sb_step_to(walk, saved[2], at[SB_LUAJIT_CF] + SB_LUAJIT_CFRAME_BYTES, saved[1]);
}

#else

/*
 * Find the C frame of the native frame where @walk stands, and set w->has_steps if step() is to be
 * called for its frames, as on x86-64; but by the frame pointer, also from generated code and
 * helpers. The caller clears has_steps before the call, and looks at it afterwards, whatever is
 * returned. Return: SB_STEP_GO_ON: @walk was moved to the caller; SB_STEP_FP_CHAIN: the table's
 * rule is to do that; SB_STEP_END: walk->status is SB_STACK_FAULT or BAD_PC.
 */
static __always_inline enum sb_step sb_luajit_native(struct sb_interp_walk *w, struct sb_walk *walk,
						     void *mem)
{
	__u64 *at = w->at, pc = sb_walk_key(walk), record[2] = {};

	at[SB_LUAJIT_IS_VM] = pc >= w->conf.hook_begin && pc < w->conf.hook_end;
	if (!sb_luajit_find_cframe(w, walk, mem))
		return at[SB_LUAJIT_IS_VM] ? sb_luajit_enter_or_leave(w, walk, mem)
					   : SB_STEP_FP_CHAIN;
	w->has_steps = sb_luajit_enter(w, walk, mem) == SB_STEP_GO_ON;
	if (at[SB_LUAJIT_IS_VM])
		return SB_STEP_FP_CHAIN; /* by the table */
	if (SB_STEP_READ(mem, record, sizeof(record), walk->fp))
		return sb_step_end(walk, SB_STACK_FAULT);
	walk->mark = 0;
	return sb_step_to(walk, sb_code_addr(walk, record[1]), walk->fp + 16, record[0]);
}
#endif

#endif
