/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of sb_unwind_step.h for arm64; that header includes this one, and says in which order
 * functions are called, and what has changed after which result. In all functions, *@walk is all
 * the state there is, @mem is passed to SB_STEP_READ, which copies from the process, and @rule is
 * the unwind rule for the walk's pc; any thread, any BPF program. Results, enum sb_step:
 * SB_STEP_GO_ON: the walk stands at the caller; SB_STEP_END: it has ended, and walk->status
 * (SB_STACK_*) says why; SB_STEP_FP_CHAIN: the rule cannot be used, so call sb_fp_step(). No
 * pointer may be NULL, except @mem if SB_STEP_READ does without it, and none is kept.
 *
 * A call leaves the return address in x30, the link register. A function that calls others saves
 * it, usually together with the caller's x29, in a frame record, and then points x29 to the
 * record. Records form a chain, but unlike on x86-64 they lie below the function's locals, so that
 * following the chain does not give the caller's sp. SB_WALK_SP_LOST is set from there on, until a
 * rule is based on x29.
 *
 * Return addresses may be signed: a code in those bits that no address uses. It is removed, not
 * checked.
 *
 * Sources: AAPCS64, sections 6.4.5 and 6.4.6; AADWARF64, section 4.1 (register numbers);
 * Documentation/arch/arm64/pointer-authentication.rst; the signal frame:
 * arch/arm64/kernel/signal.c, asm/sigcontext.h of the kernel's UAPI; instructions: Arm ARM, section
 * C6.2.
 */
#ifndef SB_UNWIND_STEP_ARM64_H
#define SB_UNWIND_STEP_ARM64_H

#ifndef SB_UNWIND_STEP_H
#error "include sb_unwind_step.h"
#endif

/*
 * For a leaf without a rule whose x30 points to code that has one. @cfa: sb_uw_rule.cfa of that
 * rule. Return: whether x30 is the leaf's return address; then the walker sets SB_WALK_LR_IS_CALLER
 * before it calls sb_fp_step(). Such code makes calls: a leaf that had made calls itself would have
 * x30 point into itself.
 */
static __always_inline int sb_is_callers_rule(__u32 cfa)
{
	return cfa != SB_UW_CFA_FP_CHAIN && cfa != SB_UW_CFA_STOP && cfa != SB_UW_CFA_SIGNAL;
}

/* Offset from the signal trampoline's sp to x0: struct siginfo, then struct ucontext. */
#define SB_A64_SIGNAL_REGS (128 + 176 + 8)
/* mov x8, #__NR_rt_sigreturn; svc #0 */
#define SB_A64_TRAMPOLINE  0xd4000001d2801168ull

/*
 * One step from a signal trampoline, at which the caller has found the walk to stand: the registers
 * that were interrupted are in the signal frame at sp. The walk then stands at a leaf again.
 * Return: SB_STEP_GO_ON; SB_STEP_END: SB_STACK_FAULT when the frame cannot be read, then walk->regs
 * are not valid; SB_STACK_BAD_PC.
 */
static __always_inline enum sb_step sb_signal_step(struct sb_walk *walk, void *mem)
{
	__u64 at = walk->sp + SB_A64_SIGNAL_REGS, pc = 0;
	enum sb_step step;

	/* x0 ... x30, sp, pc: struct sigcontext. */
	if (SB_STEP_READ(mem, walk->regs, sizeof(walk->regs), at) ||
	    SB_STEP_READ(mem, &pc, sizeof(pc), at + sizeof(walk->regs)))
		return sb_step_end(walk, SB_STACK_FAULT);
	walk->mark = SB_IP_EXACT;
	if (!pc) /* a call of NULL, not the root */
		return sb_step_end(walk, SB_STACK_BAD_PC);
	step = sb_step_to(walk, pc, walk->regs[SB_REG_SP], walk->regs[SB_REG_FP]);
	walk->flags = SB_WALK_LEAF;
	return step;
}

/* Return: whether the instruction @insn is "stp x29, x30, [sp, #-n]!" with any n. */
static __always_inline int sb_a64_is_push(__u32 insn)
{
	return (insn & 0xffc07fff) == 0xa9807bfd;
}

/* Return: whether the instruction @insn is "stp x29, x30, [sp, #n]" with any n. It leaves sp as it
 * is, so the function has taken its stack, an unknown amount, before it. */
static __always_inline int sb_a64_is_save(__u32 insn)
{
	return (insn & 0xffc07fff) == 0xa9007bfd;
}

/* Return: whether the instruction @insn is ret, retaa, retab, or what precedes them: autiasp,
 * autibsp. */
static __always_inline int sb_a64_is_return(__u32 insn)
{
	return insn == 0xd65f03c0 || insn == 0xd65f0bff || insn == 0xd65f0fff ||
	       insn == 0xd50323bf || insn == 0xd50323ff;
}

/* Return: 1 if the instruction @insn is one of a PLT stub: adrp x16; ldr x17, [x16, #n]; add x16,
 * x16, #n; br x17; otherwise 0. A stub leaves sp, x29 and x30 as they were after the call. */
static __always_inline int sb_a64_is_stub(__u32 insn)
{
	return (insn & 0x9f00001f) == 0x90000010 || (insn & 0xffc003ff) == 0xf9400211 ||
	       (insn & 0xffc003ff) == 0x91000210 || insn == 0xd61f0220;
}

/* Return: whether the instruction @insn is the first one of a function: paciasp, pacibsp, bti c. */
static __always_inline int sb_a64_is_landing(__u32 insn)
{
	return insn == 0xd503233f || insn == 0xd503237f || insn == 0xd503245f;
}

#define SB_A64_SET_UP (-1) /* x29 points to the function's frame record */
#define SB_A64_LOST   (-2) /* x29 is the caller's; the function took an unknown amount of stack */

/*
 * If the interrupted function is in its prologue or epilogue, x29 is still the caller's. For a leaf
 * only. Return: how many bytes of stack it has taken by then; SB_A64_LOST: it has taken some, but
 * how many is not known; SB_A64_SET_UP: x29 is its own, or the code cannot be read.
 */
static __always_inline __s64 sb_a64_taken(struct sb_walk *walk, void *mem)
{
	__u64 code = 0;
	__u32 insn, before = 0;

	if (SB_STEP_READ(mem, &code, sizeof(code), walk->pc))
		return SB_A64_SET_UP;
	insn = (__u32)code;
	if (sb_a64_is_landing(insn))
		insn = code >> 32;
	if (sb_a64_is_push(insn) || sb_a64_is_return(insn) || sb_a64_is_stub(insn))
		return 0;
	if (sb_a64_is_save(insn))
		return SB_A64_LOST;
	/* add x29, sp, #n; mov x29, sp */
	if ((insn & 0xffc003ff) != 0x910003fd ||
	    SB_STEP_READ(mem, &before, sizeof(before), walk->pc - 4))
		return SB_A64_SET_UP;
	if (sb_a64_is_push(before)) /* a number of words, negative, of 7 bits */
		return (0x80 - (before >> 15 & 0x7f)) * 8;
	return sb_a64_is_save(before) ? SB_A64_LOST : SB_A64_SET_UP;
}

/*
 * Step to the caller in x30, if the interrupted function (a leaf) has not set up a frame, or the
 * walker has set SB_WALK_LR_IS_CALLER. Where it is not known how much stack the function has taken,
 * SB_WALK_SP_LOST is set. Return: 1: that was so, and *@ret_step is the result of the step,
 * SB_STEP_GO_ON or SB_STEP_END with SB_STACK_BAD_PC; 0: nothing was done, so x29 is followed.
 */
static __always_inline int sb_lr_step(struct sb_walk *walk, void *mem, enum sb_step *ret_step)
{
	__s64 taken = sb_a64_taken(walk, mem);

	if (taken == SB_A64_SET_UP && !(walk->flags & SB_WALK_LR_IS_CALLER))
		return 0;
	*ret_step = sb_step_to(walk, walk->regs[SB_REG_LR], walk->sp + (taken > 0 ? taken : 0),
			       walk->fp);
	if (taken < 0)
		walk->flags = SB_WALK_SP_LOST;
	return 1;
}

/* Return: whether the leaf is the signal trampoline, before or in its system call, so that the
 * kernel has not replaced sp yet. */
static __always_inline int sb_a64_is_in_trampoline(struct sb_walk *walk, void *mem)
{
	__u64 *code = walk->signal_frame;

	if (SB_STEP_READ(mem, code, 16, walk->pc - 8))
		return 0;
	return code[0] == SB_A64_TRAMPOLINE || code[1] == SB_A64_TRAMPOLINE ||
	       (code[0] >> 32 | code[1] << 32) == SB_A64_TRAMPOLINE;
}

/*
 * One step where there is no rule (SB_STEP_FP_CHAIN): by x29, which points to {caller's x29, return
 * address}, and then SB_WALK_SP_LOST is set; by x30 from a leaf without a frame; or by the signal
 * frame from the trampoline in the vDSO. Sets walk->mark to SB_IP_BY_FP, or to SB_IP_EXACT after a
 * signal.
 * Return: SB_STEP_GO_ON; SB_STEP_END with SB_STACK_COMPLETE at the root, BAD_FP, FAULT or BAD_PC.
 */
static __always_inline enum sb_step sb_fp_step(struct sb_walk *walk, void *mem)
{
	__u64 fp = walk->fp, frame[2], code = 0;
	enum sb_step step = SB_STEP_END;

	walk->mark = SB_IP_BY_FP;
	if (walk->flags & SB_WALK_LEAF) {
		if (sb_a64_is_in_trampoline(walk, mem))
			return sb_signal_step(walk, mem);
		if (sb_lr_step(walk, mem, &step))
			return step;
	} else if (!(walk->flags & SB_WALK_SP_LOST) &&
		   !SB_STEP_READ(mem, &code, sizeof(code), walk->pc) && code == SB_A64_TRAMPOLINE) {
		/* The vDSO has no CFI: kernel commit 87676cfca141. */
		return sb_signal_step(walk, mem);
	}
	if (!fp)
		return sb_chain_end(walk);
	if ((fp & 7) || fp < walk->sp || fp - walk->sp > SB_FP_FRAME_BYTES_MAX)
		return sb_step_end(walk, SB_STACK_BAD_FP);
	if (SB_STEP_READ(mem, frame, 16, fp))
		return sb_step_end(walk, SB_STACK_FAULT);
	if (!frame[1])
		return sb_chain_end(walk);
	step = sb_step_to(walk, frame[1], fp + 16, frame[0]);
	walk->flags = SB_WALK_SP_LOST;
	return step;
}

/*
 * What is read of Go's runtime, of which x28 has the `g` (runtime2.go): that of a goroutine, or
 * that of a thread's system stack. Where a stack was left, g.sched has its registers.
 */
#define SB_REG_G	   28
#define SB_REG_GROW_LR	   3   /* morestack: x30 of the function that needs more stack */
#define SB_GO_STACK_TOP	   8   /* g.stack.hi; g.stack.lo is first */
#define SB_GO_THREAD	   48  /* g.m; m.g0, the `g` of the system stack, is its first member */
#define SB_GO_SCHED	   56  /* g.sched: sp, pc */
#define SB_GO_SCHED_LR	   88  /* lr, bp: since Go 1.25 */
#define SB_GO_CURRENT	   184 /* m.curg, the thread's goroutine: since Go 1.25 */
#define SB_GO_BEFORE_BYTES 8   /* before, both were so much further on */

/*
 * What one step reads of Go's runtime. It lies in walk->signal_frame, because the stack of a BPF
 * program is too small for it.
 * @g: address of the `g` of the thread's goroutine; 0: the thread has left its goroutine
 * @lr_at: address of the lr and bp that are saved in that `g`; set only if !@is_on_stack
 */
struct sb_go {
	__u64 g, lr_at;
	__u64 is_on_stack; /* x28 has that `g`, and not that of the system stack */
	__u64 thread, system, owner;
	__u64 current[2];
	__u64 saved[2]; /* the bounds of a stack, or what asmcgocall has saved */
	__u64 sched[2]; /* sp, pc */
	__u64 lr[2];	/* lr, bp */
};

_Static_assert(sizeof(struct sb_go) <= sizeof(((struct sb_walk *)0)->signal_frame), "its place");

/*
 * Find the goroutine of the thread with @g in x28. Return: SB_STACK_COMPLETE: @go has its g,
 * is_on_stack and lr_at; or the status with which the walk ends: SB_STACK_FAULT; NO_RULE: the
 * thread that @g names has another `g`, so code that is not Go's has overwritten x28.
 */
static __always_inline __u32 sb_go_find(struct sb_go *go, void *mem, __u64 g)
{
	if (SB_STEP_READ(mem, &go->thread, 8, g + SB_GO_THREAD) ||
	    SB_STEP_READ(mem, &go->system, 8, go->thread) ||
	    SB_STEP_READ(mem, go->current, 16, go->thread + SB_GO_CURRENT))
		return SB_STACK_FAULT;
	go->g = g;
	go->is_on_stack = go->system != g;
	if (go->is_on_stack)
		return go->current[0] == g || go->current[1] == g ? SB_STACK_COMPLETE
								  : SB_STACK_NO_RULE;
	go->g = go->current[1];
	go->lr_at = go->g + SB_GO_SCHED_LR + SB_GO_BEFORE_BYTES;
	if (!SB_STEP_READ(mem, &go->owner, 8, go->g + SB_GO_THREAD) && go->owner == go->thread)
		return SB_STACK_COMPLETE;
	go->g = go->current[0];
	go->lr_at = go->g + SB_GO_SCHED_LR;
	if (!SB_STEP_READ(mem, &go->owner, 8, go->g + SB_GO_THREAD) && go->owner == go->thread)
		return SB_STACK_COMPLETE;
	go->g = 0;
	return go->current[0] && go->current[1] ? SB_STACK_NO_RULE : SB_STACK_COMPLETE;
}

/*
 * For SB_UW_CFA_GO_SYSTEM and GO_C: get the sp of the function that calls on the system stack, on
 * its own stack, where its frame is. In its first and last instructions it still, or again, runs
 * there. asmcgocall() saves {g, depth of its stack}, or {0, sp} if it was on the system stack.
 * Return: SB_STEP_GO_ON and *@ret_sp, which is undefined otherwise; SB_STEP_END: SB_STACK_COMPLETE
 * if the thread has left its goroutine, FAULT, NO_RULE.
 */
static __always_inline enum sb_step sb_go_find_sp(struct sb_walk *walk,
						  const struct sb_uw_rule *rule, void *mem,
						  __u64 *ret_sp)
{
	struct sb_go *go = (void *)walk->signal_frame;
	__u32 status;

	if (rule->cfa == SB_UW_CFA_GO_C && !(walk->flags & SB_WALK_LEAF)) {
		if (walk->flags & SB_WALK_SP_LOST)
			return sb_step_end(walk, SB_STACK_NO_RULE);
		if (SB_STEP_READ(mem, go->saved, 16, walk->sp))
			return sb_step_end(walk, SB_STACK_FAULT);
		*ret_sp = go->saved[1];
		if (!go->saved[0])
			return SB_STEP_GO_ON;
		if (SB_STEP_READ(mem, go->sched, 8, go->saved[0] + SB_GO_STACK_TOP))
			return sb_step_end(walk, SB_STACK_FAULT);
		*ret_sp = go->sched[0] - go->saved[1];
		return SB_STEP_GO_ON;
	}
	walk->uses |= SB_WALK_USES_REGS;
	status = sb_go_find(go, mem, walk->regs[SB_REG_G]);
	if (status || !go->g)
		return sb_step_end(walk, status);
	if (SB_STEP_READ(mem, go->saved, 16, go->g) ||
	    SB_STEP_READ(mem, go->sched, 16, go->g + SB_GO_SCHED))
		return sb_step_end(walk, SB_STACK_FAULT);
	*ret_sp = go->sched[0];
	if (go->is_on_stack && walk->sp - go->saved[0] < go->saved[1] - go->saved[0])
		*ret_sp = walk->sp;
	return SB_STEP_GO_ON;
}

/*
 * The walk has come by SB_UW_CFA_GO_PUSHED to a function that a handler of signals has let call the
 * runtime (pushCall() in signal_arm64.go), so it stands at a leaf again, whose x30 the handler has
 * pushed at its sp. @cfa: of the called function. Return: SB_STEP_GO_ON; SB_STEP_END with
 * SB_STACK_FAULT.
 */
static __always_inline enum sb_step sb_go_interrupted(struct sb_walk *walk, void *mem, __u64 cfa)
{
	if (SB_STEP_READ(mem, &walk->regs[SB_REG_LR], 8, cfa - 16))
		return sb_step_end(walk, SB_STACK_FAULT);
	walk->mark = SB_IP_EXACT;
	walk->flags = SB_WALK_LEAF;
	return SB_STEP_GO_ON;
}

/*
 * One step by SB_UW_CFA_GO_GROW, to the function that has asked for more stack: in its prologue,
 * with its return address in x30, so that the walk stands at a leaf again. Until the thread has
 * left the goroutine's stack, registers have what its `g` has later.
 */
static __always_inline enum sb_step sb_go_grow_step(struct sb_walk *walk, void *mem)
{
	struct sb_go *go = (void *)walk->signal_frame;
	enum sb_step step;
	__u32 status;

	walk->uses |= SB_WALK_USES_REGS;
	status = sb_go_find(go, mem, walk->regs[SB_REG_G]);
	if (status || !go->g)
		return sb_step_end(walk, status);
	if (go->is_on_stack) {
		go->sched[0] = walk->sp;
		go->sched[1] = walk->regs[SB_REG_LR];
		go->lr[0] = walk->regs[SB_REG_GROW_LR];
		go->lr[1] = walk->fp;
	} else if (SB_STEP_READ(mem, go->sched, 16, go->g + SB_GO_SCHED) ||
		   SB_STEP_READ(mem, go->lr, 16, go->lr_at)) {
		return sb_step_end(walk, SB_STACK_FAULT);
	}
	step = sb_step_to(walk, go->sched[1], go->sched[0], go->lr[1]);
	walk->regs[SB_REG_LR] = go->lr[0];
	walk->flags = SB_WALK_LEAF;
	return step;
}

/*
 * Compute the canonical frame address, by a rule other than FP_CHAIN, STOP and SIGNAL; notes in
 * walk->uses what it used. Return: SB_STEP_GO_ON and *@ret_cfa, which is untouched
 * otherwise; SB_STEP_FP_CHAIN: the rule is based on sp, which is lost (SB_WALK_SP_LOST), and x29
 * does not lead to the frame either; SB_STEP_END: SB_STACK_NO_RULE when the rule needs a register
 * that is not known any more, BAD_CFA when it does not lead up the stack.
 */
static __always_inline enum sb_step sb_find_cfa(struct sb_walk *walk, const struct sb_uw_rule *rule,
						void *mem, __u64 *ret_cfa)
{
	const int is_by_sp = rule->cfa == SB_UW_CFA_SP || rule->cfa == SB_UW_CFA_CLONE ||
			     rule->cfa == SB_UW_CFA_GO_PUSHED;
	__u32 reg = rule->cfa & (SB_UNWIND_REGS - 1);
	enum sb_step step;
	__u64 cfa = 0;

	if (rule->cfa == SB_UW_CFA_GO_SYSTEM || rule->cfa == SB_UW_CFA_GO_C) {
		step = sb_go_find_sp(walk, rule, mem, &cfa);
		*ret_cfa = cfa + (__s64)rule->cfa_off;
		return step;
	}
	if (is_by_sp && !(walk->flags & SB_WALK_SP_LOST)) {
		cfa = walk->sp + (__s64)rule->cfa_off;
	} else if (is_by_sp) {
		/* Back from the frame record, to which x29 points. */
		if (rule->bx != SB_UW_RA_PAIR ||
		    (rule->fp != SB_UW_FP_AT_CFA && rule->fp != SB_UW_FP_AT_FP))
			return SB_STEP_FP_CHAIN;
		walk->uses |= SB_WALK_USES_FP;
		cfa = walk->fp - 8 * (__s64)rule->fp_off;
		if (rule->fp == SB_UW_FP_AT_FP)
			cfa += (__s64)rule->cfa_off;
	} else if (rule->cfa == SB_UW_CFA_FP || rule->cfa == SB_UW_CFA_SWITCH) {
		walk->uses |= SB_WALK_USES_FP;
		cfa = walk->fp + (__s64)rule->cfa_off;
	} else {
		walk->uses |= SB_WALK_USES_REGS;
		if (rule->cfa < SB_UW_CFA_REG || !(walk->flags & SB_WALK_LEAF))
			return sb_step_end(walk, SB_STACK_NO_RULE);
		cfa = walk->regs[reg] + (__s64)rule->cfa_off;
	}
	if (rule->cfa != SB_UW_CFA_SWITCH &&
	    (cfa < walk->sp || (cfa == walk->sp && rule->bx != SB_UW_RA_LR)))
		return sb_step_end(walk, SB_STACK_BAD_CFA);
	*ret_cfa = cfa;
	return SB_STEP_GO_ON;
}

/*
 * Get the caller's frame record: *@frame becomes {x29, return address}; x29 is SB_FP_LOST where the
 * rule says that it is lost, and that of @walk where it was not saved. The return address may have
 * a pointer authentication code, which sb_step_to() removes.
 * @rule: for the pc of @walk. With SB_UW_RA_LR the return address is x30, so @walk must be a leaf.
 * @cfa: from sb_find_cfa() for @rule
 * Return: 0; otherwise memory could not be read, and *@frame may be half filled.
 */
static __always_inline int sb_find_record(const struct sb_walk *walk, const struct sb_uw_rule *rule,
					  void *mem, __u64 cfa, __u64 frame[2])
{
	__u64 base = rule->fp == SB_UW_FP_AT_CFA ? cfa : cfa - (__s64)rule->cfa_off;
	__u64 at = base + 8 * (__s64)rule->fp_off;
	int has_fp = rule->fp == SB_UW_FP_AT_CFA || rule->fp == SB_UW_FP_AT_FP;

	if (has_fp && rule->bx == SB_UW_RA_PAIR)
		return SB_STEP_READ(mem, frame, 16, at);
	frame[0] = rule->fp == SB_UW_FP_UNDEF ? SB_FP_LOST : walk->fp;
	if (has_fp && SB_STEP_READ(mem, frame, 8, at))
		return -1;
	if (rule->bx == SB_UW_RA_LR) {
		frame[1] = walk->regs[SB_REG_LR];
		return 0;
	}
	at = rule->bx == SB_UW_RA_PAIR ? at + 8 : cfa - 8 * rule->bx;
	return SB_STEP_READ(mem, &frame[1], 8, at);
}

/*
 * One step by @rule, to the caller of the frame where the walk stands. Sets walk->mark. Return: as
 * described at the top; after SB_STEP_FP_CHAIN pc, sp and fp are unchanged; SB_STEP_END with
 * SB_STACK_COMPLETE at the root, NO_RULE, FAULT, BAD_CFA or BAD_PC.
 */
static __always_inline enum sb_step sb_cfi_step(struct sb_walk *walk, const struct sb_uw_rule *rule,
						void *mem)
{
	__u64 cfa = 0, frame[2] = {};
	enum sb_step step;

	walk->mark = 0;
	if (rule->cfa == SB_UW_CFA_FP_CHAIN)
		return SB_STEP_FP_CHAIN;
	if (rule->cfa == SB_UW_CFA_STOP || sb_is_new_thread(walk, rule))
		return sb_step_end(walk, SB_STACK_COMPLETE);
	if (rule->cfa == SB_UW_CFA_SIGNAL)
		return walk->flags & SB_WALK_SP_LOST ? SB_STEP_FP_CHAIN : sb_signal_step(walk, mem);
	if (rule->cfa == SB_UW_CFA_GO_GROW)
		return sb_go_grow_step(walk, mem);
	/* Where x30 was not saved, it has been overwritten by the call. */
	if (rule->bx == SB_UW_RA_LR && !(walk->flags & SB_WALK_LEAF))
		return sb_step_end(walk, SB_STACK_NO_RULE);
	step = sb_find_cfa(walk, rule, mem, &cfa);
	if (step != SB_STEP_GO_ON)
		return step;
	if (rule->bx == SB_UW_RA_LR)
		walk->uses |= SB_WALK_USES_LR;
	if (sb_find_record(walk, rule, mem, cfa, frame))
		return sb_step_end(walk, SB_STACK_FAULT);
	step = sb_step_to_caller(walk, rule, frame[1], cfa, frame[0]);
	if (rule->cfa == SB_UW_CFA_GO_PUSHED && step == SB_STEP_GO_ON)
		return sb_go_interrupted(walk, mem, cfa);
	return step;
}

#endif /* SB_UNWIND_STEP_ARM64_H */
