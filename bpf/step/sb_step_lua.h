/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walker of PUC Lua 5.1 to 5.4. There is no variable that leads to the running state, because
 * lua_State is an argument of every function. So it is searched where the interpreter loop,
 * luaV_execute(), keeps it: in a callee-saved register, which the loop's callee has saved right
 * below the loop's frame, or in that frame. A word is accepted if it points to an object with the
 * tag of a thread and a global_State, whose main thread leads back to the same global_State.
 *
 * Each frame of the loop on the native stack runs the functions from L->ci (CallInfo) outwards, up
 * to the one that was called "fresh". If the next frame of the loop has another lua_State, that is
 * the resumer of a coroutine; the remaining functions of the coroutine belong to the frame before.
 * (Some remain if the coroutine yielded from within a protected call: the loop that ran them is
 * gone, and lua_resume() runs them.)
 *
 * In all functions, *@w is the walk of this runtime in one thread, whose conf.word is a struct
 * sb_lua_conf, @walk is the native walk, and @mem is passed to SB_INTERP_READ, which copies from
 * the process; there is no other state, so they run in any thread and BPF program. No pointer may
 * be NULL but @mem. Addresses are those of the process; memory that cannot be read counts as 0
 * unless said otherwise. @l is a lua_State, @ci a CallInfo, @proto a Proto (0: not a function in
 * Lua), a place the number of an instruction in it, from 1 (0: not known). Results, enum sb_step:
 * SB_STEP_GO_ON: call step() again; SB_STEP_END: w->status (SB_STACK_*) says why.
 *
 * Order, as sb_interp_step.h says: w->at is zeroed before the first native frame of a thread. Then,
 * for each native frame in the interpreter or without a rule, sb_lua_native(), and, if that has set
 * w->has_steps, sb_lua_step() until it returns SB_STEP_END, with any status. The other functions
 * are parts of step(). Frames that were pushed remain, and at[] keeps what is left of a coroutine
 * for the next native frame.
 */
#ifndef SB_STEP_LUA_H
#define SB_STEP_LUA_H

#include "bpf/abi/sb_abi_lua.h"

#include "bpf/step/sb_interp_step.h"

/* Offsets in the structures of this version of Lua, and its constants. */
struct sb_lua_conf {
	__u16 l_global, l_ci;		 /* in lua_State */
	__u16 l_saved_pc, l_base_ci;	 /* in lua_State of 5.1 only */
	__u16 g_main;			 /* in global_State */
	__u16 ci_func, ci_prev, ci_pc;	 /* in CallInfo: 0 or 8; 16, or 0: they are an array, 5.1 */
	__u16 ci_status, ci_bytes;	 /* in 5.1 ci_status is the number of tail calls */
	__u16 cl_proto;			 /* in a closure */
	__u16 p_code, p_nr_code, p_line; /* in Proto; p_line: line of the definition */
	__u16 op_call;			 /* 5.1: OP_CALL; OP_TAILCALL is the next one */
	__u16 has_fast_pc;		 /* the loop keeps the position in a register */
	__u32 fresh, reentry, tail;	 /* bits of ci_status; of the first two one is known */
	/* Tags of types: of a function in Lua. */
	__u32 tag_mask, tag_lua;
};
_Static_assert(sizeof(struct sb_lua_conf) <= 8 * SB_INTERP_CONF_WORDS, "it fits");

enum sb_lua_at {
	SB_LUA_L,      /* the lua_State that was found last */
	SB_LUA_G,      /* its global_State, once it was checked */
	SB_LUA_CI,     /* the next CallInfo; 0: no more */
	SB_LUA_IS_LUA, /* its prototype; 0: not a function in Lua; SB_LUA_UNKNOWN: not read yet */
	SB_LUA_LINE,   /* the line where that is defined */
	SB_LUA_NEXT_L, /* the lua_State that follows SB_LUA_L; 0: none */
	SB_LUA_SEARCH, /* round of the search + 1; 0: it is over */
	SB_LUA_SP,     /* of the loop's frame, as the next ones */
	SB_LUA_FP,
	SB_LUA_BX,
	SB_LUA_IS_LEAF, /* the registers of the thread are the loop's */
	/*
	 * Results of one step. They are not in variables, because the verifier would follow each
	 * value that these can have.
	 */
	SB_LUA_CALLER,
	SB_LUA_PLACE,
	SB_LUA_CALL,
	SB_LUA_IS_FRESH,
	/* Of the CallInfo that sb_lua_proto() was called for last. */
	SB_LUA_PREV,
	SB_LUA_PC,
	SB_LUA_STATUS,
	/* Of the closure that sb_lua_proto() has read last. */
	SB_LUA_CLOSURE,
	SB_LUA_PROTO,
	SB_LUA_CODE,
	SB_LUA_CODE_BYTES,
	SB_LUA_DEFINED, /* its line */
	SB_LUA_WORD,	/* SB_LUA_WORDS of them */
};
_Static_assert(SB_LUA_WORD + 2 <= SB_INTERP_AT_WORDS, "they fit");

enum {
	SB_LUA_TTHREAD = 8,	   /* the tag of a thread, in all versions */
	SB_LUA_TAG = 8,		   /* offset of the tag in an object, and in a value */
	SB_LUA_51_IS_C = 10,	   /* offset in a closure of 5.1 */
	SB_LUA_WORDS = 2,	   /* words of the stack that one round examines */
	SB_LUA_ROUNDS_BELOW = 32,  /* rounds below the frame, downwards from its end */
	SB_LUA_ROUNDS_WITHIN = 32, /* rounds in the frame */
	SB_LUA_UNKNOWN = 1,
	/* What is read of a CallInfo at once; an array of 5.1 may end behind the shorter part. */
	SB_LUA_CI_BYTES = 64,
	SB_LUA_CI_BYTES_51 = 40,
	/* The part of a Proto that has its code, the size of that, and its line, in all
	 * versions. */
	SB_LUA_P_FROM = 24,
	SB_LUA_P_BYTES = 88,
/* Rounds that examine callee-saved registers, from SAVED + 2 on by DWARF numbers: x18 to
	 * x29; r12 to r15. */
#ifdef SB_MACHINE_ARM64
	SB_LUA_SAVED = 16,
	SB_LUA_ROUNDS_SAVED = 6,
	SB_LUA_ROUND_MASK = 7, /* bits of such a round's number, for the verifier */
	SB_LUA_CALL_BYTES = 0, /* what a call puts on the stack */
#else
	SB_LUA_SAVED = 10,
	SB_LUA_ROUNDS_SAVED = 2,
	SB_LUA_ROUND_MASK = 3,
	SB_LUA_CALL_BYTES = 8,
#endif
};

/* Return: the configuration of this runtime in this process: w->conf.word. */
static __always_inline const struct sb_lua_conf *sb_lua_conf(const struct sb_interp_walk *w)
{
	return (const struct sb_lua_conf *)w->conf.word;
}

/* Return: whether @l, any word, is a lua_State; then at[SB_LUA_G] is its global_State, and
 * sb_lua_enter() may be called. 0 also if memory cannot be read, and for what lies near
 * at[SB_LUA_SP], the sp of the loop's frame; at[] is unchanged then. */
static __always_inline int sb_lua_is_state(struct sb_interp_walk *w, void *mem, __u64 l)
{
	const struct sb_lua_conf *conf = sb_lua_conf(w);
	__u64 g, main;

	/* Most words are addresses on the stack, numbers and code. */
	if (l < SB_PC_MIN || (l & 7) || l >> SB_USER_ADDR_BITS ||
	    l - w->at[SB_LUA_SP] + (1 << 16) < 1 << 17)
		return 0;
	if (sb_interp_u8(w, mem, l + SB_LUA_TAG) != SB_LUA_TTHREAD)
		return 0;
	g = sb_interp_word(w, mem, l + conf->l_global);
	if (!g || (g & 7))
		return 0;
	if (g == w->at[SB_LUA_G])
		return 1;
	main = sb_interp_word(w, mem, g + conf->g_main);
	if (!main || sb_interp_u8(w, mem, main + SB_LUA_TAG) != SB_LUA_TTHREAD ||
	    sb_interp_word(w, mem, main + conf->l_global) != g)
		return 0;
	w->at[SB_LUA_G] = g;
	return 1;
}

/* Continue with the frames of @l, which sb_lua_is_state() has accepted, from its innermost one;
 * changes at[]. If @l cannot be read, it has no frames, and the next step() ends as complete. */
static __always_inline void sb_lua_enter(struct sb_interp_walk *w, void *mem, __u64 l)
{
	w->at[SB_LUA_L] = l;
	w->at[SB_LUA_NEXT_L] = 0;
	w->at[SB_LUA_CI] = sb_interp_word(w, mem, l + sb_lua_conf(w)->l_ci);
	w->at[SB_LUA_IS_LUA] = SB_LUA_UNKNOWN;
}

/*
 * End the search, which found @l: its frames are next, or, if frames of another lua_State are left,
 * come after those. Return: SB_STEP_GO_ON.
 */
static __always_inline enum sb_step sb_lua_found(struct sb_interp_walk *w, void *mem, __u64 l)
{
	w->at[SB_LUA_SEARCH] = 0;
	if (l == w->at[SB_LUA_L])
		return SB_STEP_GO_ON;
	if (w->at[SB_LUA_CI])
		w->at[SB_LUA_NEXT_L] = l;
	else
		sb_lua_enter(w, mem, l);
	return SB_STEP_GO_ON;
}

/*
 * Get the words that one round (at[SB_LUA_SEARCH] - 1) examines, to at[SB_LUA_WORD] and the next:
 * registers first, then the stack. It does not advance the round: sb_lua_search() does. Return: 0;
 * 1: there are no more; negative: they cannot be read. The search is over after both.
 */
static __always_inline int sb_lua_words(struct sb_interp_walk *w, void *mem)
{
	__u64 round = w->at[SB_LUA_SEARCH] - 1, from = w->at[SB_LUA_SP],
	      *words = &w->at[SB_LUA_WORD];
	__u64 below = w->at[SB_LUA_IS_LEAF] ? 0 : SB_LUA_ROUNDS_BELOW;

	if (round == 0) {
		words[1] = w->at[SB_LUA_FP];
		words[0] = w->at[SB_LUA_BX];
		return 0;
	}
	if (round <= SB_LUA_ROUNDS_SAVED) {
		__u64 reg = SB_LUA_SAVED + 2 * (round & SB_LUA_ROUND_MASK);

		words[1] = w->at[SB_LUA_IS_LEAF] ? w->regs[reg] : 0;
		words[0] = w->at[SB_LUA_IS_LEAF] ? w->regs[reg + 1] : 0;
		return 0;
	}
	round -= 1 + SB_LUA_ROUNDS_SAVED;
	if (round < below)
		from -= SB_LUA_CALL_BYTES + 16 + round * 16; /* the return address is none */
	else if (round < below + SB_LUA_ROUNDS_WITHIN)
		from += (round - below) * 16;
	else
		return 1;
	return sb_interp_read(w, mem, words, 16, from);
}

/*
 * One round of the search for lua_State. Return: SB_STEP_GO_ON: step() goes on, with the next
 * round, or, if it was found, with its frames; SB_STEP_END with SB_STACK_FAULT when the search is
 * over without success, and then no frames are left.
 */
static __always_inline enum sb_step sb_lua_search(struct sb_interp_walk *w, void *mem)
{
	int i;

	if (sb_lua_words(w, mem)) {
		w->at[SB_LUA_CI] = 0;
		return sb_interp_end(w, SB_STACK_FAULT);
	}
	for (i = SB_LUA_WORDS - 1; i >= 0; i--)
		if (sb_lua_is_state(w, mem, w->at[SB_LUA_WORD + i]))
			return sb_lua_found(w, mem, w->at[SB_LUA_WORD + i]);
	w->at[SB_LUA_SEARCH]++;
	return SB_STEP_GO_ON;
}

/* Return: the member at @offset of the object whose words, from @from on, were read to w->buf. The
 * caller cuts off what is behind the member in the same word. */
static __always_inline __u64 sb_lua_member(const struct sb_interp_walk *w, __u32 offset, __u32 from)
{
	__u64 at = (offset - from) / 8;

	SB_STEP_OPAQUE(at);
	return w->buf[at & (SB_INTERP_BUF_WORDS - 1)] >> 8 * (offset % 8);
}

/* Read the prototype of the closure at @addr, and what is needed of it. */
static __always_inline void sb_lua_closure(struct sb_interp_walk *w, void *mem, __u64 addr)
{
	const struct sb_lua_conf *conf = sb_lua_conf(w);
	__u64 *at = w->at;

	at[SB_LUA_CLOSURE] = addr;
	at[SB_LUA_PROTO] = sb_interp_word(w, mem, addr + conf->cl_proto);
	at[SB_LUA_CODE] = at[SB_LUA_CODE_BYTES] = at[SB_LUA_DEFINED] = 0;
	if (sb_interp_read(w, mem, w->buf, SB_LUA_P_BYTES, at[SB_LUA_PROTO] + SB_LUA_P_FROM))
		return;
	at[SB_LUA_CODE] = sb_lua_member(w, conf->p_code, SB_LUA_P_FROM);
	at[SB_LUA_CODE_BYTES] = 4ull * (__u32)sb_lua_member(w, conf->p_nr_code, SB_LUA_P_FROM);
	at[SB_LUA_DEFINED] = (__u32)sb_lua_member(w, conf->p_line, SB_LUA_P_FROM);
}

/* Return: the prototype of the function that @ci is a call of; 0: it is not a function in Lua. Sets
 * at[] from SB_LUA_PREV to SB_LUA_DEFINED; what is of a closure stays if it is no function in
 * Lua. */
static __always_inline __u64 sb_lua_proto(struct sb_interp_walk *w, void *mem, __u64 ci)
{
	const struct sb_lua_conf *conf = sb_lua_conf(w);
	__u64 value[2] = {};

	w->at[SB_LUA_PREV] = w->at[SB_LUA_PC] = w->at[SB_LUA_STATUS] = 0;
	if (sb_interp_read(w, mem, w->buf, SB_LUA_CI_BYTES, ci) &&
	    sb_interp_read(w, mem, w->buf, SB_LUA_CI_BYTES_51, ci))
		return 0;
	w->at[SB_LUA_PREV] = w->buf[2];
	w->at[SB_LUA_PC] = sb_lua_member(w, conf->ci_pc, 0);
	w->at[SB_LUA_STATUS] = conf->ci_status < SB_LUA_CI_BYTES
				       ? (__u32)sb_lua_member(w, conf->ci_status, 0)
				       : sb_interp_u32(w, mem, ci + conf->ci_status);
	if (sb_interp_read(w, mem, value, sizeof(value), w->buf[conf->ci_func ? 1 : 0]) ||
	    (value[1] & conf->tag_mask) != conf->tag_lua)
		return 0;
	if (!conf->ci_prev && sb_interp_u8(w, mem, value[0] + SB_LUA_51_IS_C))
		return 0;
	/* A function that calls itself was read for the frame before. */
	if (value[0] != w->at[SB_LUA_CLOSURE])
		sb_lua_closure(w, mem, value[0]);
	return w->at[SB_LUA_PROTO];
}

/*
 * Return: the thread's register that points into the function's code, which is at @code and has
 * @bytes bytes; @pc if there is none. It has no branches, because the verifier would follow each.
 */
static __always_inline __u64 sb_lua_fast_pc(const struct sb_interp_walk *w, __u64 code, __u64 bytes,
					    __u64 pc)
{
	int i;

	for (i = 12; i < 12 + 6; i++) { /* r12 to r15, rbx, rbp: kept over calls */
		__u64 reg = w->regs[i < 16 ? i : i == 16 ? SB_REG_BX : SB_REG_FP];
		__u64 off = reg - code - 4, is_in;

		/* A small number, and a multiple of 4. */
		is_in = (off - bytes) & ~off & ~(off << 63) & ~(off << 62);
		is_in = (__u64)((__s64)is_in >> 63);
		SB_STEP_OPAQUE(is_in);
		pc = (pc & ~is_in) | (reg & is_in);
	}
	return pc;
}

/*
 * Return: the position in the function of @ci, for which sb_lua_proto() was called last, as the
 * number of the instruction, from 1; 0: not known. @may_be_fast: it may be in a register, since @ci
 * is the one that runs.
 */
static __always_inline __u64 sb_lua_place(struct sb_interp_walk *w, void *mem, __u64 ci,
					  int may_be_fast)
{
	const struct sb_lua_conf *conf = sb_lua_conf(w);
	__u64 code = w->at[SB_LUA_CODE], bytes = w->at[SB_LUA_CODE_BYTES], pc = w->at[SB_LUA_PC];

	if (conf->l_saved_pc && ci == sb_interp_word(w, mem, w->at[SB_LUA_L] + conf->l_ci))
		pc = sb_interp_word(w, mem, w->at[SB_LUA_L] + conf->l_saved_pc);
	if (may_be_fast && w->at[SB_LUA_IS_LEAF] && conf->has_fast_pc)
		pc = sb_lua_fast_pc(w, code, bytes, pc);
	return pc - code - 4 < bytes ? (pc - code) >> 2 : 0;
}

/* Return: the CallInfo of the caller of @ci, for which sb_lua_proto() was called last; 0: none. */
static __always_inline __u64 sb_lua_prev(struct sb_interp_walk *w, void *mem, __u64 ci)
{
	const struct sb_lua_conf *conf = sb_lua_conf(w);

	if (conf->ci_prev)
		return w->at[SB_LUA_PREV];
	return ci > sb_interp_word(w, mem, w->at[SB_LUA_L] + conf->l_base_ci) ? ci - conf->ci_bytes
									      : 0;
}

/*
 * Return: whether a function was called "fresh", by C code in a new loop, in 5.1, which has no flag
 * for it: functions that a call instruction of Lua calls run in the same loop. @caller: prototype
 * of the caller, for which sb_lua_proto() was called last, so that its code is in w->at[]. @place:
 * that of the call in it. If one of them is 0, or no call instruction can be read there: true.
 */
static __always_inline int sb_lua_is_fresh_51(struct sb_interp_walk *w, void *mem, __u64 caller,
					      __u64 place)
{
	const struct sb_lua_conf *conf = sb_lua_conf(w);
	__u32 ins;

	if (!caller || !place)
		return 1;
	ins = sb_interp_u32(w, mem, w->at[SB_LUA_CODE] + 4 * (place - 1)) & 0x3f;
	return ins != conf->op_call && ins != (__u32)conf->op_call + 1;
}

/*
 * Push a frame, if the function has a name here (one in C that C called has it on the native
 * stack). @proto, @place: function and position; @caller, @call: the caller, and the place of the
 * call; at[SB_LUA_LINE]: where the function is defined. Return: SB_STEP_GO_ON; SB_STEP_END with
 * SB_STACK_DEPTH.
 */
static __always_inline enum sb_step sb_lua_push(struct sb_interp_walk *w, __u64 proto, __u64 place,
						__u64 caller, __u64 call)
{
	__u64 delta = (caller - proto) >> 3, from = 0;

	if (!caller || call > SB_LUA_CALL_PLACE_MAX)
		call = 0;
	if (!proto) /* a function in C: if C called it, its name is on the native stack */
		return call ? sb_interp_push(w, sb_lua_obj(SB_LUA_C, caller, 0),
					     call << SB_LUA_CALLER_SHIFT, 0)
			    : SB_STEP_GO_ON;
	if (call && (__s64)(caller - proto) >> 3 == (__s64)(__s32)delta)
		from = call << SB_LUA_CALLER_SHIFT | (delta & SB_LUA_CALLER_MASK);
	return sb_interp_push(w, sb_lua_obj(SB_LUA_FUNCTION, proto, w->wants_lines ? place : 0),
			      from, w->at[SB_LUA_LINE]);
}

/* Return: not 0 if the function that sb_lua_call() stands at was called "fresh", by C code in a new
 * loop. @status: CallInfo.callstatus. at[SB_LUA_IS_LUA], CALLER and CALL are set before. */
static __always_inline __u64 sb_lua_is_fresh(struct sb_interp_walk *w, void *mem, __u32 status)
{
	const struct sb_lua_conf *conf = sb_lua_conf(w);

	if (!w->at[SB_LUA_IS_LUA])
		return 0;
	if (!conf->ci_prev)
		return sb_lua_is_fresh_51(w, mem, w->at[SB_LUA_CALLER], w->at[SB_LUA_CALL]);
	return conf->fresh ? status & conf->fresh : !(status & conf->reentry);
}

/*
 * Walk one CallInfo, at[SB_LUA_CI], and push its function. Return: SB_STEP_GO_ON; SB_STEP_END:
 * SB_STACK_COMPLETE at the end of the segment, DEPTH.
 */
static __always_inline enum sb_step sb_lua_call(struct sb_interp_walk *w, void *mem)
{
	const struct sb_lua_conf *conf = sb_lua_conf(w);
	__u64 ci = w->at[SB_LUA_CI], *at = w->at;
	__u32 status, is_tail;
	enum sb_step step;

	if (at[SB_LUA_IS_LUA] == SB_LUA_UNKNOWN) {
		at[SB_LUA_IS_LUA] = sb_lua_proto(w, mem, ci);
		at[SB_LUA_LINE] = at[SB_LUA_DEFINED];
		at[SB_LUA_PLACE] = 0;
		if (at[SB_LUA_IS_LUA])
			at[SB_LUA_PLACE] = sb_lua_place(w, mem, ci, 1);
	}
	at[SB_LUA_IS_LEAF] = 0;
	status = (__u32)at[SB_LUA_STATUS];
	at[SB_LUA_CI] = sb_lua_prev(w, mem, ci);
	if (!at[SB_LUA_CI]) /* the first CallInfo is not a call */
		return SB_STEP_GO_ON;
	at[SB_LUA_CALLER] = sb_lua_proto(w, mem, at[SB_LUA_CI]);
	at[SB_LUA_CALL] = 0;
	if (at[SB_LUA_CALLER])
		at[SB_LUA_CALL] = sb_lua_place(w, mem, at[SB_LUA_CI], 0);
	at[SB_LUA_IS_FRESH] = sb_lua_is_fresh(w, mem, status);
	/* 5.1 leaves the number of tail calls to a function in C as it was. */
	is_tail = (conf->ci_prev || at[SB_LUA_IS_LUA]) && (status & conf->tail);
	step = sb_lua_push(w, at[SB_LUA_IS_LUA], at[SB_LUA_PLACE], at[SB_LUA_CALLER],
			   is_tail ? 0 : at[SB_LUA_CALL]);
	at[SB_LUA_IS_LUA] = at[SB_LUA_CALLER];
	at[SB_LUA_LINE] = at[SB_LUA_DEFINED];
	at[SB_LUA_PLACE] = at[SB_LUA_CALL];
	if (step != SB_STEP_GO_ON)
		return step;
	return at[SB_LUA_IS_FRESH] && !at[SB_LUA_NEXT_L] ? sb_interp_end(w, SB_STACK_COMPLETE)
							 : SB_STEP_GO_ON;
}

/* Take one round of the search for lua_State, or walk one CallInfo and push its frame to @w,
 * whichever is due. native() has set w->has_steps before. Return: as said at the top. */
static __always_inline enum sb_step sb_lua_step(struct sb_interp_walk *w, void *mem)
{
	if (w->at[SB_LUA_SEARCH])
		return sb_lua_search(w, mem);
	if (w->at[SB_LUA_CI])
		return sb_lua_call(w, mem);
	if (!w->at[SB_LUA_NEXT_L])
		return sb_interp_end(w, SB_STACK_COMPLETE);
	sb_lua_enter(w, mem, w->at[SB_LUA_NEXT_L]);
	return SB_STEP_GO_ON;
}

/* Never called, since frames lie on the native stack. Return: SB_STEP_END, COMPLETE. */
static __always_inline enum sb_step sb_lua_begin(struct sb_interp_walk *w, void *mem)
{
	return sb_interp_end(w, SB_STACK_COMPLETE); /* SB_INTERP_BY_NATIVE: never called */
}

/*
 * If @walk stands in the interpreter loop, prepare step() for its frames, and set w->has_steps. It
 * never moves @walk. Return: SB_STEP_FP_CHAIN.
 */
static __always_inline enum sb_step sb_lua_native(struct sb_interp_walk *w, struct sb_walk *walk,
						  void *mem)
{
	__u64 pc = sb_walk_key(walk);

	if (pc < w->conf.hook_begin || pc >= w->conf.hook_end)
		return SB_STEP_FP_CHAIN;
	w->at[SB_LUA_SP] = walk->sp;
	w->at[SB_LUA_FP] = walk->fp;
	w->at[SB_LUA_BX] =
		walk->bx_at ? sb_interp_word(w, mem, walk->bx_at) : walk->regs[SB_REG_BX];
	w->at[SB_LUA_IS_LEAF] = walk->flags & SB_WALK_LEAF;
	w->at[SB_LUA_SEARCH] = 1;
	w->has_steps = 1;
	return SB_STEP_FP_CHAIN;
}

#endif
