/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One step up a user stack: from the registers of a frame, and the rule for its address, to the
 * registers of its caller. Both sides compile this source: the walk in the kernel
 * (core/unwind.bpf.c), and the walk of captured pieces of stack in user space
 * (symbolizer/unwind/walk.c). Before including it, define
 *
 *	SB_STEP_READ(mem, dst, len, addr)	copy @len bytes at @addr of the process; 0: success
 *
 * Order: the caller fills a struct sb_walk. For each frame it finds the rule for sb_walk_key() and
 * calls sb_cfi_step(); if that returns SB_STEP_FP_CHAIN, it calls sb_fp_step(), or ends the walk
 * with SB_STACK_NO_RULE. After SB_STEP_GO_ON, pc | mark is the address of the next frame.
 * SB_STEP_END is final. The other functions are parts of these two, or helpers of the walkers of
 * interpreters and of the search for a rule. What is special to arm64 is in sb_unwind_step_arm64.h.
 *
 * In all functions, @mem is passed to SB_STEP_READ, @rule is the rule for sb_walk_key(), and *@walk
 * is all the state there is, so they run in any thread and in any BPF program, one at a time for
 * each @walk. After a result other than SB_STEP_GO_ON, pc, sp and fp of the walk are those of the
 * frame where it stands, unless said otherwise; mark, uses, bx_at, flags and regs may have changed.
 * No pointer may be NULL, except @mem if SB_STEP_READ does without it, and none is kept.
 *
 * Sources: System V ABI for x86-64, sections 3.2.2 (stack frame) and 3.4.1 (process start);
 * DWARF 5, section 6.4; the signal frame: asm/sigcontext.h, asm/ucontext.h of the kernel's UAPI.
 */
#ifndef SB_UNWIND_STEP_H
#define SB_UNWIND_STEP_H

#include "bpf/abi/sb_abi.h"
#include "bpf/abi/sb_abi_unwind.h"

#ifndef SB_STEP_READ
#error "define SB_STEP_READ first"
#endif
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/*
 * A frame pointer that is further away than this is taken for a register that holds something
 * else.
 */
#define SB_FP_FRAME_BYTES_MAX (1u << 20)
/* There is no code below: vm.mmap_min_addr. */
#define SB_PC_MIN	      4096ull
/* Register numbers. */
#define SB_REG_RESULT	      0 /* rax, x0 */
#ifdef SB_MACHINE_ARM64
#define SB_REG_FP 29
#define SB_REG_LR 30
#define SB_REG_SP 31
#else
#define SB_REG_FP 6
#define SB_REG_SP 7
#endif
#define SB_REG_BX 3 /* x86-64 */

/* Bits of sb_walk.flags. */
enum {
	SB_WALK_LEAF = 1u << 0,	     /* pc was interrupted, not returned to; all regs are valid */
	SB_WALK_GENERATED = 1u << 1, /* pc is in memory without a file; set by the walker */
	/* arm64. */
	SB_WALK_SP_LOST = 1u << 2,	/* sp is only known to be at least what walk->sp says */
	SB_WALK_LR_IS_CALLER = 1u << 3, /* of a leaf without a rule; set by the walker */
};

/* Bits of sb_walk.uses: what the result depends on in addition to pc, sp and what was read. */
enum {
	SB_WALK_USES_FP = 1u << 0,
	SB_WALK_USES_REGS = 1u << 1,
	SB_WALK_USES_LR = 1u << 2,
};

/* Markers: nothing is saved at an odd address, and no frame lies at one. */
#define SB_BX_AT_LOST 1
#define SB_FP_LOST    1

/*
 * The state of a walk: the registers of the frame whose caller is looked for next. Before the first
 * step the caller sets pc, sp, fp, user_end and regs, SB_WALK_LEAF in flags, and all else to 0.
 */
struct sb_walk {
	__u64 pc, sp, fp;
	__u64 user_end; /* end of the addresses that a return can have: sb_user_end_with() */
	__u64 mark;	/* SB_IP_* of pc */
	__u32 flags;	/* SB_WALK_* */
	__u32 status;	/* enum sb_stack_status, once a step returned SB_STEP_END */
	__u32 uses;	/* SB_WALK_USES_*, accumulated by the steps */
	__u32 reserved;
	__u64 bx_at; /* where rbx was saved; 0: nowhere, it is in regs; SB_BX_AT_LOST */
	__u64 regs[SB_UNWIND_REGS]; /* of the last frame that was interrupted */
	__u64 signal_frame[18];	    /* scratch memory of a step, also of walkers of interpreters */
};

/*
 * Return: the end of the addresses that a return address can have, walk->user_end, where code ends
 * at @user_end. @trampoline: what replaces the address of a call whose return is probed; 0: there
 * is none. The kernel maps it as high as it can (kernel/events/uprobes.c, xol_add_vma()), which is
 * above all code with 5-level paging on x86-64, or with 52 bits on arm64.
 */
static __always_inline __u64 sb_user_end_with(__u64 user_end, __u64 trampoline)
{
#ifdef SB_MACHINE_ARM64
	return trampoline < user_end ? user_end : 1ull << 52;
#else
	return trampoline < user_end ? user_end : 1ull << 56;
#endif
}

/* Result of a step. */
enum sb_step {
	SB_STEP_GO_ON,	  /* the walk stands at the caller */
	SB_STEP_END,	  /* the walk has ended; walk->status says why */
	SB_STEP_FP_CHAIN, /* there is no rule: try the frame pointer */
};

/*
 * Return: the address whose rule is looked up: the pc of a leaf. For a return address it is the
 * byte before, the last one of the call, because the return address may be the first byte after its
 * function.
 */
static __always_inline __u64 sb_walk_key(const struct sb_walk *walk)
{
	return walk->flags & SB_WALK_LEAF ? walk->pc : walk->pc - 1;
}

#ifdef SB_MACHINE_ARM64
/*
 * Return: @pc, a return address, without its signature, which is in the bits between those of user
 * addresses and bit 55, which tells user addresses from those of the kernel.
 */
static __always_inline __u64 sb_code_addr(const struct sb_walk *walk, __u64 pc)
{
	return pc & ((walk->user_end - 1) | ~0ull << 55);
}
#endif

/* End the walk with @status (enum sb_stack_status); nothing else changes. Return: SB_STEP_END, for
 * the caller to return. */
static __always_inline enum sb_step sb_step_end(struct sb_walk *walk, __u32 status)
{
	walk->status = status;
	return SB_STEP_END;
}

/*
 * Move the walk to the caller, whose registers are @pc (a return address; on arm64 its signature is
 * removed), @sp and @fp. All bits of walk->flags are cleared; mark and bx_at are left to the
 * caller. Return: SB_STEP_GO_ON; SB_STEP_END with SB_STACK_BAD_PC when @pc cannot be an address of
 * user code; the flags are unchanged then.
 */
static __always_inline enum sb_step sb_step_to(struct sb_walk *walk, __u64 pc, __u64 sp, __u64 fp)
{
#ifdef SB_MACHINE_ARM64
	pc = sb_code_addr(walk, pc);
#endif
	if (pc < SB_PC_MIN || pc >= walk->user_end)
		return sb_step_end(walk, SB_STACK_BAD_PC);
	walk->pc = pc;
	walk->sp = sp;
	walk->fp = fp;
	walk->flags = 0;
	return SB_STEP_GO_ON;
}

/*
 * Move the walk to the caller at @pc, @sp, @fp, which @rule computed. This does what sb_step_to()
 * does, with one exception: the walk ends as complete (SB_STEP_END, SB_STACK_COMPLETE) if @pc is 0,
 * the frame is not the leaf, and rule->cfa is SB_UW_CFA_SP, SB_UW_CFA_SWITCH, or SB_UW_CFA_FP with
 * @fp 0. Fibers and coroutines are entered by a jump and have no caller: their return address is 0,
 * and so is their frame pointer if they have one; after a switch of stacks it may hold anything.
 */
static __always_inline enum sb_step sb_step_to_caller(struct sb_walk *walk,
						      const struct sb_uw_rule *rule, __u64 pc,
						      __u64 sp, __u64 fp)
{
	if (!pc && !(walk->flags & SB_WALK_LEAF) &&
	    (rule->cfa == SB_UW_CFA_SP || rule->cfa == SB_UW_CFA_SWITCH ||
	     (rule->cfa == SB_UW_CFA_FP && !fp)))
		return sb_step_end(walk, SB_STACK_COMPLETE);
	return sb_step_to(walk, pc, sp, fp);
}

/*
 * Return: whether this is a new thread at its root, so that the caller ends the walk as complete.
 * The system call that makes a thread returns twice: to the frame that made it, and with 0 to the
 * new thread, which has the registers of that frame but a stack of its own, and no caller.
 */
static __always_inline int sb_is_new_thread(struct sb_walk *walk, const struct sb_uw_rule *rule)
{
	if (rule->cfa != SB_UW_CFA_CLONE)
		return 0;
	walk->uses |= SB_WALK_USES_REGS;
	return (walk->flags & SB_WALK_LEAF) && !walk->regs[SB_REG_RESULT];
}

/*
 * End the walk at a frame pointer or a return address of 0, one of which the root frame has: with
 * SB_STACK_COMPLETE; but with SB_STACK_BAD_FP in a leaf, or in generated code, where the register
 * may hold anything and no thread begins, so that 0 proves nothing. Return: SB_STEP_END.
 */
static __always_inline enum sb_step sb_chain_end(struct sb_walk *walk)
{
	return sb_step_end(walk, walk->flags & (SB_WALK_LEAF | SB_WALK_GENERATED)
					 ? SB_STACK_BAD_FP
					 : SB_STACK_COMPLETE);
}

/*
 * On x86-64, generated code need not keep a frame pointer; then the register is that of a frame
 * further out, and its return address skips callers. Each of those has left its own return address
 * between the stack pointer and that frame, where a function with a frame pointer keeps its locals.
 * So words there are examined, up to this many.
 */
#define SB_HIDDEN_WORDS_MAX 64

#ifdef SB_MACHINE_X86
/*
 * If the interrupted function is in its prologue or epilogue, the frame pointer is still the
 * caller's, and following it would lose that caller. For a leaf only.
 * Return: for sb_fp_step_leaf(), how many bytes above sp the pair {frame pointer, return address}
 * lies: 0; -8 if only the return address is there, at sp. 1: the frame is set up, or the code
 * cannot be read; then the frame pointer is followed.
 */
static __always_inline int sb_fp_pair_at(struct sb_walk *walk, void *mem)
{
	__u64 code = 0;
	__u8 before = 0;

	if (SB_STEP_READ(mem, &code, sizeof(code), walk->pc))
		return 1;
	if ((code & 0xffffffff) == 0xfa1e0ff3) /* endbr64, and what is behind it */
		code >>= 32;
	else if ((code & 0xff) == 0xc3) /* ret */
		return -8;
	/* push %rbp; or sub $8, %rsp: _init() and _fini(), which have no unwind information. */
	if ((code & 0xff) == 0x55 || (code & 0xffffffff) == 0x08ec8348)
		return -8;
	/* jmp *, with and without bnd: a PLT stub, or a tail call from a frame put away. */
	if ((code & 0xffff) == 0x25ff || (code & 0xffffff) == 0x25fff2)
		return -8;
	if ((code & 0xffffff) != 0xe58948 && (code & 0xffffff) != 0xec8b48) /* mov %rsp,%rbp */
		return 1;
	if (SB_STEP_READ(mem, &before, sizeof(before), walk->pc - 1) || before != 0x55)
		return 1;
	return 0;
}

/* @code: the eight bytes before an address. Return: whether they end with a call: e8, or ff /2. */
static __always_inline int sb_ends_in_call(__u64 code)
{
	return (code >> 24 & 0xff) == 0xe8 ||	  /* rel32 */
	       (code >> 48 & 0xf8ff) == 0xd0ff || /* *%reg */
	       (code >> 48 & 0xf8ff) == 0x10ff || /* *(%reg) */
	       (code >> 40 & 0xf8ff) == 0x50ff || /* *disp8(%reg) */
	       (code >> 32 & 0xffff) == 0x54ff || /* *disp8(%reg,%reg,n) */
	       (code >> 16 & 0xf8ff) == 0x90ff || /* *disp32(%reg) */
	       (code >> 16 & 0xffff) == 0x15ff;	  /* *disp32(%rip) */
}

/* The step from a leaf whose frame is not set up. x86-64 only. @at: where sb_fp_pair_at() says the
 * pair {frame pointer, return address} lies, in bytes from sp: 0; or -8: only the return address is
 * there, and the frame pointer stays. Return: SB_STEP_GO_ON; SB_STEP_END with SB_STACK_FAULT (the
 * stack cannot be read) or BAD_PC (as of sb_step_to()) in walk->status. */
static __always_inline enum sb_step sb_fp_step_leaf(struct sb_walk *walk, void *mem, int at)
{
	__u64 frame[2] = {};

	/* Nothing below sp is read: a captured piece of stack does not have it. */
	if (at ? SB_STEP_READ(mem, &frame[1], 8, walk->sp) : SB_STEP_READ(mem, frame, 16, walk->sp))
		return sb_step_end(walk, SB_STACK_FAULT);
	return sb_step_to(walk, frame[1], walk->sp + at + 16, at ? walk->fp : frame[0]);
}

/*
 * One step where there is no rule (SB_STEP_FP_CHAIN): by the frame pointer, which points to
 * {caller's frame pointer, return address}; from a leaf that has not set up its frame, by the words
 * at sp. Sets walk->mark to SB_IP_BY_FP, and walk->bx_at to lost.
 * Return: SB_STEP_GO_ON; SB_STEP_END with SB_STACK_COMPLETE at the root, BAD_FP, FAULT or BAD_PC in
 * walk->status.
 */
static __always_inline enum sb_step sb_fp_step(struct sb_walk *walk, void *mem)
{
	__u64 fp = walk->fp, frame[2];

	walk->mark = SB_IP_BY_FP;
	walk->bx_at = SB_BX_AT_LOST;
	if (walk->flags & SB_WALK_LEAF) {
		int at = sb_fp_pair_at(walk, mem);

		if (at <= 0)
			return sb_fp_step_leaf(walk, mem, at);
	}
	if (!fp)
		return sb_chain_end(walk);
	if ((fp & 7) || fp < walk->sp || fp - walk->sp > SB_FP_FRAME_BYTES_MAX)
		return sb_step_end(walk, SB_STACK_BAD_FP);
	if (SB_STEP_READ(mem, frame, 16, fp))
		return sb_step_end(walk, SB_STACK_FAULT);
	if (!frame[1])
		return sb_chain_end(walk);
	return sb_step_to(walk, frame[1], fp + 16, frame[0]);
}

/*
 * One step from a signal trampoline, at which the caller has found the walk to stand. The caller of
 * a signal handler is the kernel: what it interrupted is in the signal frame. The trampoline's sp
 * points to struct ucontext, whose registers begin at byte 40. All of walk->regs are set, and the
 * walk then stands at a leaf again.
 * Return: SB_STEP_GO_ON; SB_STEP_END: SB_STACK_FAULT when the frame cannot be read, BAD_PC.
 */
static __always_inline enum sb_step sb_signal_step(struct sb_walk *walk, void *mem)
{
	__u64 *f = walk->signal_frame;
	enum sb_step step;

	/* r8-r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags: struct sigcontext_64. */
	if (SB_STEP_READ(mem, f, sizeof(walk->signal_frame), walk->sp + 40))
		return sb_step_end(walk, SB_STACK_FAULT);
	walk->regs[0] = f[13];
	walk->regs[1] = f[12];
	walk->regs[2] = f[14];
	walk->regs[3] = f[11];
	walk->regs[4] = f[9];
	walk->regs[5] = f[8];
	walk->regs[6] = f[10];
	walk->regs[7] = f[15];
	walk->regs[8] = f[0];
	walk->regs[9] = f[1];
	walk->regs[10] = f[2];
	walk->regs[11] = f[3];
	walk->regs[12] = f[4];
	walk->regs[13] = f[5];
	walk->regs[14] = f[6];
	walk->regs[15] = f[7];
	walk->mark = SB_IP_EXACT;
	walk->bx_at = 0;
	if (!f[16]) /* a call of NULL, not the root */
		return sb_step_end(walk, SB_STACK_BAD_PC);
	step = sb_step_to(walk, f[16], f[15], f[10]);
	walk->flags = SB_WALK_LEAF;
	return step;
}

/*
 * Get the register (rule->cfa - SB_UW_CFA_REG) that the CFA is based on. Only an interrupted frame
 * still has all registers; of its callers only the place is known where rbx was saved.
 * Return: 0; otherwise the register is not known, and *@ret_val must not be used.
 */
static __always_inline int sb_find_reg(const struct sb_walk *walk, const struct sb_uw_rule *rule,
				       void *mem, __u64 *ret_val)
{
	__u32 reg = rule->cfa & (SB_UNWIND_REGS - 1);

	if (reg == SB_REG_BX && walk->bx_at)
		return walk->bx_at == SB_BX_AT_LOST ||
		       SB_STEP_READ(mem, ret_val, sizeof(*ret_val), walk->bx_at);
	*ret_val = walk->regs[reg];
	return reg != SB_REG_BX && !(walk->flags & SB_WALK_LEAF);
}

/*
 * Compute the canonical frame address, for rules other than FP_CHAIN, STOP and SIGNAL. Return:
 * SB_STEP_GO_ON and *@ret_cfa, untouched otherwise; SB_STEP_END: SB_STACK_NO_RULE when the rule
 * cannot be used here, FAULT, BAD_CFA when it does not lead up the stack, COMPLETE at Go's root.
 */
static __always_inline enum sb_step sb_find_cfa(struct sb_walk *walk, const struct sb_uw_rule *rule,
						void *mem, __u64 *ret_cfa)
{
	__u64 base, cfa;

	switch (rule->cfa) {
	case SB_UW_CFA_SP:
	case SB_UW_CFA_CLONE:
	case SB_UW_CFA_RA_REG:
		cfa = walk->sp + (__s64)rule->cfa_off;
		break;
	case SB_UW_CFA_FP:
		walk->uses |= SB_WALK_USES_FP;
		cfa = walk->fp + (__s64)rule->cfa_off;
		break;
	case SB_UW_CFA_SWITCH:
		walk->uses |= SB_WALK_USES_FP;
		if (!walk->fp)
			return sb_step_end(walk, SB_STACK_COMPLETE);
		*ret_cfa = walk->fp + (__s64)rule->cfa_off;
		return SB_STEP_GO_ON;
	case SB_UW_CFA_PLT10:
		cfa = walk->sp + 8 + ((walk->pc & 15) >= 10 ? 8 : 0);
		break;
	case SB_UW_CFA_PLT11:
		cfa = walk->sp + 8 + ((walk->pc & 15) >= 11 ? 8 : 0);
		break;
	case SB_UW_CFA_AT_SP_R9:
	case SB_UW_CFA_AT_SP:
	case SB_UW_CFA_AT_FP:
		if (rule->cfa == SB_UW_CFA_AT_SP_R9 && !(walk->flags & SB_WALK_LEAF))
			return sb_step_end(walk, SB_STACK_NO_RULE);
		walk->uses |= rule->cfa == SB_UW_CFA_AT_FP ? SB_WALK_USES_FP : SB_WALK_USES_REGS;
		base = rule->cfa == SB_UW_CFA_AT_FP ? walk->fp : walk->sp;
		if (rule->cfa == SB_UW_CFA_AT_SP_R9)
			base += 8 * walk->regs[9];
		base += (__s64)(__s16)(rule->cfa_off & 0xffff);
		if (SB_STEP_READ(mem, &cfa, sizeof(cfa), base))
			return sb_step_end(walk, SB_STACK_FAULT);
		cfa += (__u32)rule->cfa_off >> 16;
		break;
	default:
		walk->uses |= SB_WALK_USES_REGS;
		if (rule->cfa < SB_UW_CFA_REG || sb_find_reg(walk, rule, mem, &base))
			return sb_step_end(walk, SB_STACK_NO_RULE);
		cfa = base + (__s64)rule->cfa_off;
	}
	if (cfa < walk->sp || (cfa == walk->sp && rule->cfa != SB_UW_CFA_RA_REG))
		return sb_step_end(walk, SB_STACK_BAD_CFA);
	*ret_cfa = cfa;
	return SB_STEP_GO_ON;
}

/*
 * Get the caller's frame pointer by rule->fp; SB_FP_LOST where the rule says that it is lost. @cfa:
 * from sb_find_cfa(). Return: 0; otherwise it could not be read, and *@fp must not be used.
 */
static __always_inline int sb_find_fp(const struct sb_walk *walk, const struct sb_uw_rule *rule,
				      void *mem, __u64 cfa, __u64 *fp)
{
	switch (rule->fp) {
	case SB_UW_FP_AT_CFA:
		return SB_STEP_READ(mem, fp, sizeof(*fp), cfa + (__s64)rule->fp_off);
	case SB_UW_FP_AT_FP:
		return SB_STEP_READ(mem, fp, sizeof(*fp), walk->fp + (__s64)rule->fp_off);
	case SB_UW_FP_UNDEF:
		*fp = SB_FP_LOST;
		return 0;
	default:
		*fp = walk->fp;
		return 0;
	}
}

/*
 * The step for SB_UW_CFA_RA_REG: the return address is in a register, which only a leaf still has:
 * the one with the DWARF number rule->fp_off. @cfa: the frame's address, from sb_find_cfa(), which
 * becomes sp; fp stays as it is.
 * Return: SB_STEP_GO_ON; SB_STEP_END with SB_STACK_NO_RULE, if it is no leaf, or BAD_PC in
 * walk->status.
 */
static __always_inline enum sb_step sb_ra_reg_step(struct sb_walk *walk,
						   const struct sb_uw_rule *rule, __u64 cfa)
{
	if (!(walk->flags & SB_WALK_LEAF))
		return sb_step_end(walk, SB_STACK_NO_RULE);
	walk->uses |= SB_WALK_USES_REGS;
	return sb_step_to(walk, walk->regs[rule->fp_off & (SB_UNWIND_REGS - 1)], cfa, walk->fp);
}

/*
 * One step by @rule, to the caller of the frame where the walk stands. Return: SB_STEP_GO_ON;
 * SB_STEP_FP_CHAIN if the rule is FP_CHAIN: call sb_fp_step(), nothing has changed but walk->mark;
 * SB_STEP_END with SB_STACK_COMPLETE at the root, NO_RULE, FAULT, BAD_CFA or BAD_PC in
 * walk->status.
 */
static __always_inline enum sb_step sb_cfi_step(struct sb_walk *walk, const struct sb_uw_rule *rule,
						void *mem)
{
	/* Not in the walk: the kernel checks where it copies to, and a map costs more. */
	__u64 cfa = 0, fp = 0, frame[2];

	walk->mark = 0;
	if (rule->cfa == SB_UW_CFA_FP_CHAIN)
		return SB_STEP_FP_CHAIN;
	if (rule->cfa == SB_UW_CFA_STOP || sb_is_new_thread(walk, rule))
		return sb_step_end(walk, SB_STACK_COMPLETE);
	if (rule->cfa == SB_UW_CFA_SIGNAL)
		return sb_signal_step(walk, mem);
	if (sb_find_cfa(walk, rule, mem, &cfa) != SB_STEP_GO_ON)
		return SB_STEP_END;
	if (rule->bx)
		walk->bx_at = rule->bx == SB_UW_BX_LOST ? SB_BX_AT_LOST : cfa - 8 * rule->bx;
	if (rule->fp == SB_UW_FP_AT_FP)
		walk->uses |= SB_WALK_USES_FP;
	if (rule->cfa == SB_UW_CFA_RA_REG)
		return sb_ra_reg_step(walk, rule, cfa);
	if (rule->fp == SB_UW_FP_AT_CFA && rule->fp_off == -16) { /* both in one read */
		if (SB_STEP_READ(mem, frame, 16, cfa - 16))
			return sb_step_end(walk, SB_STACK_FAULT);
		return sb_step_to_caller(walk, rule, frame[1], cfa, frame[0]);
	}
	if (SB_STEP_READ(mem, frame, 8, cfa - 8) || sb_find_fp(walk, rule, mem, cfa, &fp))
		return sb_step_end(walk, SB_STACK_FAULT);
	return sb_step_to_caller(walk, rule, frame[0], cfa, fp);
}
#elif defined(SB_MACHINE_ARM64)
#include "bpf/step/sb_unwind_step_arm64.h"
#else
#error "no step for this machine"
#endif

#ifndef SB_STEP_OPAQUE
#define SB_STEP_OPAQUE(x)
#endif

/*
 * Return: the first step width of a binary search over @nr entries, most lists being short: a power
 * of two that is at least half of @nr. The search halves it after each step, until it is 0. @most:
 * half of the largest @nr that there can be, for more than 256 entries
 */
static __always_inline __u32 sb_search_half(__u32 nr, __u32 most)
{
	__u32 half = nr > 256 ? most : nr > 32 ? 128 : 16;

	SB_STEP_OPAQUE(half); /* one path for the verifier, not three */
	return half;
}

/*
 * Return: the row in force at offset @key (bytes) of a granule whose @nr rows, at least one, begin
 * at word @first of @chunk (SB_UW_CHUNK_WORDS words, which it never leaves), sorted by offset: the
 * last row at or below @key, or the first one, as rule << 16 | offset, where rule is an index in
 * the rules of the binary. With a wrong @first or @nr it is any word of the chunk. There are no
 * branches, because the verifier would follow each path of a search; at most twelve steps.
 */
static __always_inline __u32 sb_uw_row_at(const __u32 *chunk, __u32 first, __u32 nr, __u32 key)
{
	__u32 pos = first, end = first + nr, half = sb_search_half(nr, SB_UW_GRANULE_BYTES / 2);
	int i;

	for (i = 0; i < SB_UW_GRANULE_BITS && half; i++, half >>= 1) {
		__u32 next = pos + half, at = next;
		__s64 is_in, is_above, take;

		SB_STEP_OPAQUE(at);
		at &= SB_UW_CHUNK_WORDS - 1;
		is_in = (__s64)next - (__s64)end;
		is_above = (__s64)key - (__s64)(chunk[at] & (SB_UW_GRANULE_BYTES - 1));
		/* All ones when in and not above, without a branch that a compiler could see. */
		take = (is_in & ~is_above) >> 63;
		SB_STEP_OPAQUE(take);
		pos += half & (__u32)take;
	}
	SB_STEP_OPAQUE(pos);
	pos &= SB_UW_CHUNK_WORDS - 1;
	return chunk[pos];
}

#endif /* SB_UNWIND_STEP_H */
