/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walker of Perl 5. A frame is a record on a stack of contexts (cop.h: PERL_CONTEXT). Whenever C
 * code calls Perl in the middle of something else (sort, tie, overloading, a signal), it begins a
 * new stack of contexts (PERL_SI), which is linked to the one before. There are also records of
 * loops and blocks. The frames shown are those that caller() shows, and the line of a frame is the
 * one that caller() gives: that of the statement (COP) that was running when the next frame was
 * entered.
 *
 * obj is what gives a sub its name: its glob (GV), or the sub itself (CV) if it has none. So
 * closures, of which there may be thousands, are one frame. POSITION is the address of the COP.
 *
 * Segments: the interpreter loop (runops) runs once for each sub that C code calls; the record of
 * such a sub has no operation to return to. sort and MULTICALL (List::Util::first) make the record
 * first and then run the loop again and again: their segment ends with SB_INTERP_READY.
 *
 * In all functions, *@w is the walk of Perl in one thread, whose conf.word is a struct
 * sb_perl_conf, and @mem is passed to SB_INTERP_READ, which copies from the process; there is no
 * other state, so they run in any thread and BPF program. No pointer may be NULL but @mem.
 * Addresses are those of the process; memory that cannot be read counts as 0 unless said otherwise.
 * Results, enum sb_step: SB_STEP_GO_ON: call step() (again); SB_STEP_END: w->status (SB_STACK_*)
 * says why: FAULT, BAD_CFA for impossible records, DEPTH, COMPLETE. Order: sb_perl_begin() once,
 * then sb_perl_step() until it returns SB_STEP_END, as sb_interp_step.h says; the other functions
 * are parts of these. Frames that were pushed by then remain, also after an error.
 */
#ifndef SB_STEP_PERL_H
#define SB_STEP_PERL_H

#include "bpf/step/sb_interp_step.h"

/* Addresses: relative to the interpreter in a perl with threads, otherwise absolute. */
struct sb_perl_conf {
	__u64 key_addr; /* address of PL_thr_key; 0: perl is built without threads */
	__u64 curcop, curstackinfo;
	__u64 compiling; /* PL_compiling, which is the COP while a file is compiled */
	__u32 compiling_bytes;
	__u16 si_type;	       /* offset of PERL_SI.si_type */
	__u16 cx_bytes, cx_cv; /* sizeof(PERL_CONTEXT); blk_sub.cv */
	__u16 reserved;
	struct sb_interp_tsd tsd;
};
_Static_assert(sizeof(struct sb_perl_conf) <= 8 * SB_INTERP_CONF_WORDS, "it fits");

/* Values of obj that are not addresses. */
enum {
	SB_PERL_MAIN = 8,      /* the program itself */
	SB_PERL_EVAL = 16,     /* eval {}, eval "", require, do FILE: "(eval)" for caller() */
	SB_PERL_NAMELESS = 24, /* a sub whose glob is gone */
};
#define SB_PERL_IS_GV	       1ull /* bit of obj: it is the address of a glob */

/* If positions are wanted, CHECK has so many bits of the sub; the bits above are of the COP. */
#define SB_PERL_CHECK_SUB_BITS 5

/* Layouts that are the same in all versions: cop.h, cv.h, sv.h. */
enum {
	SB_PERL_SI_CXSTACK = 1, /* words of struct stackinfo */
	SB_PERL_SI_PREV,
	SB_PERL_SI_CXIX = 4,
	SB_PERL_SI_TYPE,

	SB_PERL_CX_OLDCOP = 2, /* words of PERL_CONTEXT */
	SB_PERL_CX_RETOP = 6,

	SB_PERL_CV_BODY = 32, /* offset in XPVCV from where it is read; then indexes of words */
	SB_PERL_CV_ROOT = 2,
	SB_PERL_CV_GV,
	SB_PERL_CV_FLAGS = 7, /* the upper half */
	SB_PERL_CV_DEPTH,     /* the lower half */
	SB_PERL_CV_WORDS,

	SB_PERL_GV_GP = 16,
	SB_PERL_COP_LINE = 32, /* the upper half of that word; two on is the file */

	SB_PERL_TYPE_CV = 13, /* SVt_PVCV */
	SB_PERL_TYPE_FM = 14, /* SVt_PVFM: a format */
	SB_PERL_CVF_ISXSUB = 0x8,
	SB_PERL_CVF_NAMED = 0x8000,

	SB_PERL_CXT_NULL = 0,
	SB_PERL_CXT_BLOCK = 2,
	SB_PERL_CXT_SUB = 9,
	SB_PERL_CXT_FORMAT,
	SB_PERL_CXT_EVAL,
	SB_PERL_CXP_MULTICALL = 0x10,
	SB_PERL_CXP_EVALBLOCK = 0x40,
	SB_PERL_CXP_RE = 0x40,
	SB_PERL_CXP_TRY = 0x80,
	SB_PERL_CXP_RE_FAKE = 0x80,

	SB_PERL_SI_MAIN = 1,
	SB_PERL_SI_SORT = 3,
	SB_PERL_SI_MULTICALL = 10,
};
#define SB_PERL_CX_MAX (1u << 20)

/* at[]: */
enum {
	SB_PERL_SI,	 /* the next stack of contexts */
	SB_PERL_CXSTACK, /* the current one */
	SB_PERL_LEFT,	 /* number of its records that are left */
	SB_PERL_COP,
	SB_PERL_BASE,
	SB_PERL_HOW, /* si_type in the lower half, and bits */
	SB_PERL_BUF, /* words that were read last, up to the end of at[] */
};
#define SB_PERL_HOW_TOP	       (1ull << 32) /* the next record may be incomplete */
#define SB_PERL_HOW_PENDING    (1ull << 33) /* C code called the frame that was pushed last */
/* From bit 40 on, since 5.32: the number of records up to the topmost sub, eval or format. */
#define SB_PERL_HOW_SUBS_SHIFT 40
#define SB_PERL_HOW_BLOCK      (1ull << 34) /* the root record is a block */
#define SB_PERL_CX_READ	       80
_Static_assert(8 * (16 - SB_PERL_BUF) >= SB_PERL_CX_READ, "it fits");
_Static_assert(16 - SB_PERL_BUF >= SB_PERL_CV_WORDS, "it fits");

/* Return: the configuration of this runtime in this process: w->conf.word. */
static __always_inline const struct sb_perl_conf *sb_perl_conf(const struct sb_interp_walk *w)
{
	return (const struct sb_perl_conf *)w->conf.word;
}

/* Return: a hash of the two words, of as many bits as CHECK (sb_abi_interp.h) has, by which a
 * frame's object is told from another one that is made at its address later. */
static __always_inline __u64 sb_perl_hash(__u64 a, __u64 b)
{
	return ((a ^ b * 0x9e3779b97f4a7c15ull) * 0xc2b2ae3d27d4eb4full) >> 53;
}

/*
 * Return: the position for the COP at address @cop: the address; 0 if positions are not wanted, or
 * for PL_compiling, which is not a statement but wherever the parser is.
 */
static __always_inline __u64 sb_perl_position(struct sb_interp_walk *w, __u64 cop)
{
	const struct sb_perl_conf *conf = sb_perl_conf(w);

	if (!w->wants_lines || !cop ||
	    cop - (w->at[SB_PERL_BASE] + conf->compiling) < conf->compiling_bytes)
		return 0;
	return cop;
}

/*
 * Return: a hash of line and file of a COP, because a string eval may leave another COP at the
 * same address. @cop: its words from byte SB_PERL_COP_LINE on
 */
static __always_inline __u64 sb_perl_cop_hash(const __u64 cop[3])
{
	return sb_perl_hash(cop[0] >> 32, cop[2]) & (SB_WHERE_CHECK_MASK >> SB_PERL_CHECK_SUB_BITS);
}

/*
 * Push a frame at the current statement, w->at[SB_PERL_COP]. @obj: a GV with SB_PERL_IS_GV, or a
 * CV, or SB_PERL_*. @check: a hash of it. Return: SB_STEP_GO_ON; SB_STEP_END, DEPTH.
 */
static __always_inline enum sb_step sb_perl_push(struct sb_interp_walk *w, void *mem, __u64 obj,
						 __u64 check)
{
	__u64 position = sb_perl_position(w, w->at[SB_PERL_COP]), cop[3] = {};

	if (w->wants_lines) {
		check &= (1 << SB_PERL_CHECK_SUB_BITS) - 1;
		if (position &&
		    !sb_interp_read(w, mem, cop, sizeof(cop), position + SB_PERL_COP_LINE))
			check |= sb_perl_cop_hash(cop) << SB_PERL_CHECK_SUB_BITS;
	}
	return sb_interp_push(w, obj, position, check);
}

/* Begin to walk the stack of contexts (PERL_SI) at @si: sets at[SB_PERL_SI], CXSTACK, LEFT and HOW,
 * the latter without SB_PERL_HOW_TOP. Return: SB_STEP_GO_ON; SB_STEP_END, FAULT or BAD_CFA. */
static __always_inline enum sb_step sb_perl_enter(struct sb_interp_walk *w, void *mem, __u64 si)
{
	__u64 *buf = &w->at[SB_PERL_BUF], left, type, subs = SB_PERL_CX_MAX;

	if (sb_interp_read(w, mem, buf, 48, si))
		return sb_interp_end(w, SB_STACK_FAULT);
	type = buf[SB_PERL_SI_TYPE] & 0xffffffff;
	if (sb_perl_conf(w)->si_type == 44) {
		subs = (buf[SB_PERL_SI_TYPE] + 1) & 0xffffffff; /* si_cxsubix */
		type = buf[SB_PERL_SI_TYPE] >> 32;
	}
	left = (buf[SB_PERL_SI_CXIX] + 1) & 0xffffffff; /* the index is -1 when there is none */
	if (left > SB_PERL_CX_MAX || subs > SB_PERL_CX_MAX)
		return sb_interp_end(w, SB_STACK_BAD_CFA);
	w->at[SB_PERL_LEFT] = left;
	w->at[SB_PERL_CXSTACK] = buf[SB_PERL_SI_CXSTACK];
	w->at[SB_PERL_SI] = buf[SB_PERL_SI_PREV];
	w->at[SB_PERL_HOW] = type | subs << SB_PERL_HOW_SUBS_SHIFT;
	return SB_STEP_GO_ON;
}

/*
 * Find the state of the thread, and store what step() needs in w->at, which is all 0 before.
 * Return: SB_STEP_GO_ON; SB_STEP_END with SB_STACK_COMPLETE when the thread does not run Perl,
 * FAULT or BAD_CFA.
 */
static __always_inline enum sb_step sb_perl_begin(struct sb_interp_walk *w, void *mem)
{
	const struct sb_perl_conf *conf = sb_perl_conf(w);
	__u64 base = 0, si;

	if (conf->key_addr) {
		base = sb_interp_tsd_get(w, mem, &conf->tsd, sb_interp_u32(w, mem, conf->key_addr));
		if (!base)
			return sb_interp_end(w, SB_STACK_COMPLETE);
	}
	w->at[SB_PERL_BASE] = base;
	w->at[SB_PERL_COP] = sb_interp_word(w, mem, base + conf->curcop);
	si = sb_interp_word(w, mem, base + conf->curstackinfo);
	if (!si)
		return sb_interp_end(w, SB_STACK_COMPLETE);
	if (sb_perl_enter(w, mem, si) != SB_STEP_GO_ON)
		return SB_STEP_END;
	w->at[SB_PERL_HOW] |= SB_PERL_HOW_TOP;
	return SB_STEP_GO_ON;
}

/* At the root: push a frame for the program itself, if it runs, and end its segment. Return:
 * SB_STEP_END with SB_STACK_COMPLETE, or DEPTH when there was no room for it. */
static __always_inline enum sb_step sb_perl_root(struct sb_interp_walk *w, void *mem)
{
	__u64 cop = w->at[SB_PERL_COP];
	enum sb_step step;

	/*
	 * The program runs in a block of its own. It does not if perl is embedded or compiles, in
	 * the first sub of a thread, and at the end: then there is no loop for it either.
	 */
	if (w->at[SB_PERL_HOW] & SB_PERL_HOW_BLOCK && cop &&
	    cop - (w->at[SB_PERL_BASE] + sb_perl_conf(w)->compiling) >=
		    sb_perl_conf(w)->compiling_bytes) {
		step = sb_perl_push(w, mem, SB_PERL_MAIN, 0);
		if (step != SB_STEP_GO_ON)
			return step;
		sb_interp_segment_end(w);
	}
	return sb_interp_end(w, SB_STACK_COMPLETE);
}

/*
 * Called when this stack of contexts has no record left. Ends the pending segment, and goes on to
 * the next stack of contexts. Return: SB_STEP_GO_ON; SB_STEP_END: COMPLETE behind the last one,
 * FAULT, BAD_CFA, DEPTH.
 */
static __always_inline enum sb_step sb_perl_leave(struct sb_interp_walk *w, void *mem)
{
	__u32 type = (__u32)w->at[SB_PERL_HOW];
	enum sb_step step;

	if (w->at[SB_PERL_HOW] & SB_PERL_HOW_PENDING)
		sb_interp_segment_end(w);
	if (type == SB_PERL_SI_MAIN)
		return sb_perl_root(w, mem);
	if (!w->at[SB_PERL_SI])
		return sb_interp_end(w, SB_STACK_BAD_CFA);
	if (type == SB_PERL_SI_SORT || type == SB_PERL_SI_MULTICALL) {
		step = sb_interp_push(w, SB_INTERP_READY, 0, 0);
		if (step != SB_STEP_GO_ON)
			return step;
		sb_interp_segment_end(w);
	}
	return sb_perl_enter(w, mem, w->at[SB_PERL_SI]);
}

/*
 * Return: whether the record that step() stands at is the block of a sort, or (?{ }) in a regular
 * expression. These are not subs: their last operation has no successor although C code did not
 * call them.
 */
static __always_inline int sb_perl_is_last_of_block(struct sb_interp_walk *w, void *mem)
{
	__u32 type = (__u32)w->at[SB_PERL_HOW], first;

	if ((type != SB_PERL_SI_SORT && type != SB_PERL_SI_MULTICALL) || w->at[SB_PERL_LEFT] != 1)
		return 0;
	first = sb_interp_u8(w, mem, w->at[SB_PERL_CXSTACK]);
	return first % 16 == SB_PERL_CXT_NULL ||
	       (first % 16 == SB_PERL_CXT_SUB && first & SB_PERL_CXP_RE);
}

/*
 * Push a sub or a format. A record is counted before it is filled in (cx_pushblock(),
 * cx_pushsub()), so the topmost one may have the contents of an earlier call. Since 5.32,
 * si_cxsubix says that it is not valid yet; before, it has no sub, or one that is not running. @cv:
 * address of the sub. @is_top: not 0 if the record is the topmost one
 * Overwrites at[] from SB_PERL_BUF on. Return: SB_STEP_GO_ON; SB_STEP_FP_CHAIN if the topmost
 * record is not valid, nothing is pushed, and the walk goes on; or SB_STEP_END: FAULT, BAD_CFA,
 * DEPTH.
 */
static __always_inline enum sb_step sb_perl_sub(struct sb_interp_walk *w, void *mem, __u64 cv,
						__u64 is_top)
{
	__u64 *buf = &w->at[SB_PERL_BUF], head[2], flags, gv, gp, type;

	if (sb_interp_read(w, mem, head, sizeof(head), cv))
		return is_top ? SB_STEP_FP_CHAIN : sb_interp_end(w, SB_STACK_FAULT);
	type = head[1] >> 32 & 0xff;
	if (type != SB_PERL_TYPE_CV && type != SB_PERL_TYPE_FM)
		return is_top ? SB_STEP_FP_CHAIN : sb_interp_end(w, SB_STACK_BAD_CFA);
	if (sb_interp_read(w, mem, buf, 8 * SB_PERL_CV_WORDS, head[0] + SB_PERL_CV_BODY))
		return is_top ? SB_STEP_FP_CHAIN : sb_interp_end(w, SB_STACK_FAULT);
	flags = buf[SB_PERL_CV_FLAGS] >> 32;
	if (is_top && !(buf[SB_PERL_CV_DEPTH] & 0xffffffff) && !(flags & SB_PERL_CVF_ISXSUB))
		return SB_STEP_FP_CHAIN;
	gv = buf[SB_PERL_CV_GV];
	if (flags & SB_PERL_CVF_NAMED || !gv)
		return sb_perl_push(w, mem, gv ? cv : SB_PERL_NAMELESS,
				    sb_perl_hash(buf[SB_PERL_CV_ROOT], gv));
	/* local *__ANON__ = "name" gives a glob another body. */
	gp = sb_interp_word(w, mem, gv + SB_PERL_GV_GP);
	return sb_perl_push(w, mem, gv | SB_PERL_IS_GV, sb_perl_hash(buf[SB_PERL_CV_ROOT], gp));
}

/* Walk one record of a stack of contexts, or go on to the next stack. Return: SB_STEP_GO_ON;
 * SB_STEP_END, FAULT, BAD_CFA, DEPTH or COMPLETE. */
static __always_inline enum sb_step sb_perl_step(struct sb_interp_walk *w, void *mem)
{
	const struct sb_perl_conf *conf = sb_perl_conf(w);
	__u64 *buf = &w->at[SB_PERL_BUF], how = w->at[SB_PERL_HOW], flags, kind, cop, is_called;
	enum sb_step step;

	if (!w->at[SB_PERL_LEFT])
		return sb_perl_leave(w, mem);
	w->at[SB_PERL_LEFT]--;
	if (sb_interp_read(w, mem, buf, SB_PERL_CX_READ,
			   w->at[SB_PERL_CXSTACK] + w->at[SB_PERL_LEFT] * conf->cx_bytes))
		return sb_interp_end(w, SB_STACK_FAULT);
	kind = buf[0] & 15;
	flags = buf[0] & 0xf0;
	cop = buf[SB_PERL_CX_OLDCOP];
	is_called = !buf[SB_PERL_CX_RETOP];
	w->at[SB_PERL_HOW] = how & ~(SB_PERL_HOW_TOP | SB_PERL_HOW_PENDING);
	if (!w->at[SB_PERL_LEFT] && kind == SB_PERL_CXT_BLOCK)
		w->at[SB_PERL_HOW] |= SB_PERL_HOW_BLOCK;

	if (kind >= SB_PERL_CXT_SUB && kind <= SB_PERL_CXT_EVAL &&
	    w->at[SB_PERL_LEFT] >= how >> SB_PERL_HOW_SUBS_SHIFT)
		return SB_STEP_GO_ON;
	if (kind == SB_PERL_CXT_EVAL && !(flags & SB_PERL_CXP_TRY)) {
		/* call_sv() with G_EVAL makes a record of an eval, then calls the sub. */
		if (how & SB_PERL_HOW_PENDING && !(flags & SB_PERL_CXP_EVALBLOCK && is_called))
			sb_interp_segment_end(w);
		if (flags & SB_PERL_CXP_EVALBLOCK)
			is_called = is_called && how & SB_PERL_HOW_PENDING;
		else
			is_called = is_called && !sb_perl_is_last_of_block(w, mem);
		step = sb_perl_push(w, mem, SB_PERL_EVAL, 0);
		if (step == SB_STEP_GO_ON && is_called)
			sb_interp_segment_end(w);
	} else {
		if (how & SB_PERL_HOW_PENDING)
			sb_interp_segment_end(w);
		if (kind != SB_PERL_CXT_FORMAT &&
		    (kind != SB_PERL_CXT_SUB || flags & SB_PERL_CXP_RE_FAKE))
			return SB_STEP_GO_ON;
		is_called = is_called && !(flags & SB_PERL_CXP_MULTICALL) &&
			    !sb_perl_is_last_of_block(w, mem);
		step = sb_perl_sub(w, mem, buf[conf->cx_cv == 72 ? 9 : 8], how & SB_PERL_HOW_TOP);
		if (step == SB_STEP_FP_CHAIN)
			return SB_STEP_GO_ON;
		if (is_called)
			w->at[SB_PERL_HOW] |= SB_PERL_HOW_PENDING;
	}
	w->at[SB_PERL_COP] = cop;
	return step;
}

#endif
