/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of sb_step_luajit.h that knows of arm64's registers and code (vm_arm64.dasc,
 * lj_frame.h); its essay says what the functions here may be given, and their order, too: they have
 * no state but *@w and *@walk, run in any thread and BPF program, and take no NULL but for @mem.
 * Pointers have 64 bits (GC64). The C frame has 208 bytes:
 *
 *	sp +  0	the previous C frame of the same lua_State
 *	   +  8	position in the bytecode while a C function is called
 *	   + 16	lua_State
 *	   + 40	number of results wanted
 *	   + 192	x29 and the return address of the caller
 *
 * In the interpreter, x29 points to the last two words of this frame. It does so in generated code,
 * too, which has its own stack below the frame, and while that code is being left. So the frame
 * need not be searched for, as it has to be on x86-64. LuaJIT before 2022 keeps the other words at
 * other places: no lua_State is found there, and stacks show the C functions of the interpreter
 * only.
 */
#ifndef SB_STEP_LUAJIT_ARM64_H
#define SB_STEP_LUAJIT_ARM64_H

#define SB_LUAJIT_REG_BASE 19 /* frame of the innermost function */
#define SB_LUAJIT_REG_PC   21 /* next instruction of the bytecode */

/*
 * Find the innermost frame of @l. The caller has found that @walk stands in the interpreter's
 * native frame. The interpreter keeps base and next instruction in registers. Functions in C save
 * and restore them, and those that may need the base find it in memory. So a base that is in its
 * register, also while a short function in C runs, is preferred to the one in memory. A function in
 * C that keeps the address of another slot in that register, two above a function, is
 * misunderstood. Always sets at[SB_LUAJIT_FRAME]. Sets at[SB_LUAJIT_PC] in a leaf with a valid
 * base.
 */
static __always_inline void sb_luajit_first(struct sb_interp_walk *w, struct sb_walk *walk,
					    void *mem, __u64 l)
{
	const struct sb_luajit_conf *conf = sb_luajit_conf(w);
	__u64 base = sb_luajit_ptr(w, mem, l + conf->l_base);
	__u64 fast = walk->regs[SB_LUAJIT_REG_BASE] & conf->ptr_mask;

	walk->uses |= SB_WALK_USES_REGS;
	if (sb_luajit_is_base(w, mem, l, fast)) {
		base = fast;
		if (walk->flags & SB_WALK_LEAF)
			w->at[SB_LUAJIT_PC] = walk->regs[SB_LUAJIT_REG_PC] & conf->ptr_mask;
	}
	w->at[SB_LUAJIT_FRAME] = base - 8;
}

/*
 * Step to the caller from the beginning or the end of the interpreter's function, where the return
 * address is in x30 and x29 is the caller's. @walk stands in the interpreter, in a leaf or not.
 * Return: SB_STEP_GO_ON; SB_STEP_FP_CHAIN: not there; SB_STEP_END: walk->status is SB_STACK_BAD_PC.
 */
static __always_inline enum sb_step sb_luajit_enter_or_leave(struct sb_interp_walk *w,
							     struct sb_walk *walk, void *mem)
{
	__u64 to_sp = walk->sp;

	if (!(walk->flags & SB_WALK_LEAF))
		return SB_STEP_FP_CHAIN;
	switch (sb_interp_u32(w, mem, walk->pc)) {
	case 0xa90c7bfd: /* stp x29, x30, [sp, #192] */
	case 0x910303fd: /* add x29, sp, #192 */
	case 0x910343ff: /* add sp, sp, #208 */
		to_sp += SB_LUAJIT_CFRAME_BYTES;
		break;
	case 0xd10343ff: /* sub sp, sp, #208 */
	case 0xd65f03c0: /* ret */
		break;
	default:
		return SB_STEP_FP_CHAIN;
	}
	walk->uses |= SB_WALK_USES_LR;
	walk->mark = 0;
	return sb_step_to(walk, sb_code_addr(walk, walk->regs[SB_REG_LR]), to_sp, walk->fp);
}

/*
 * Find the C frame that x29 leads to, and store its address in at[SB_LUAJIT_CF].
 * at[SB_LUAJIT_IS_VM] is set before. Set at[SB_LUAJIT_IS_JIT]: @walk stands in generated code, in
 * code that leaves it, or in a helper that it has called. Return: whether there is a C frame, for
 * sb_luajit_enter(): the one that the C frame before linked to, or its lua_State links back to it.
 * If not, both mean nothing.
 */
static __always_inline int sb_luajit_find_cframe(struct sb_interp_walk *w, struct sb_walk *walk,
						 void *mem)
{
	const struct sb_luajit_conf *conf = sb_luajit_conf(w);
	__u64 *at = w->at, cf = walk->fp - SB_LUAJIT_CFRAME_FP;
	__u64 l = sb_luajit_ptr(w, mem, cf + conf->cf_l), g;

	at[SB_LUAJIT_CF] = cf;
	at[SB_LUAJIT_IS_JIT] = !at[SB_LUAJIT_IS_VM] || walk->sp != cf;
	if (cf != at[SB_LUAJIT_CFRAME] && sb_luajit_cframe(w, mem, l) != cf)
		return 0;
	if (!at[SB_LUAJIT_IS_JIT] && (walk->flags & SB_WALK_LEAF)) {
		g = sb_luajit_ptr(w, mem, l + conf->l_global);
		at[SB_LUAJIT_IS_JIT] = sb_luajit_ptr(w, mem, g + conf->g_jit_base) != 0;
	}
	return 1;
}

#endif /* SB_STEP_LUAJIT_ARM64_H */
