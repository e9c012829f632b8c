// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Walking of user stacks, step by step. Each step finds one caller from the registers of one
 * frame, by the rule for its address (unwind_tables.bpf.c), or by the frame pointer if there
 * is no rule.
 *
 * Functions that are neither static nor hidden are global for the sake of the verifier, which
 * examines each of them once, instead of once for each caller and each iteration of a loop. So
 * they take only numbers, and the state is in the record.
 */
#include "bpf/core/sb_interp.bpf.h"
#include "bpf/core/sb_last_walk.bpf.h"
#include "bpf/core/sb_returns.bpf.h"
#include "bpf/core/sb_stack.bpf.h"
#include "bpf/core/sb_unwind_tables.bpf.h"

/* Ask again for what was asked for already only after this long. */
#define ASK_AGAIN_NS	 20000000ull
/* See is_about_to_exec(): fork(2) and execve(2) take a tenth of the latter. */
#define FORKED_AGE_NS	 10000000ull
#define FORKED_RUN_NS	 1000000ull
/* Also of the mapping [uprobes]. Its trampoline on x86-64 saves three registers around a system
 * call (arch/x86/kernel/uprobes.c, since Linux 6.11). */
#define PAGE_BYTES	 4096u
#define TRAMPOLINE_SAVES 24

/* First address that no user code can have: sb_sym_user_end(). */
const volatile __u64 cfg_user_end = 1ull << 47;

const volatile __u32 cfg_ustack_depth_max = SB_USTACK_DEPTH_MAX;
/* --unwind: SB_UNWIND_*. */
const volatile __u32 cfg_unwind = SB_UNWIND_FP;

__u32 uw_is_busy = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256u << 10);
} uw_needs SEC(".maps");

struct asked {
	__u32 tgid, exec_id;
	__u32 need;
	__u32 about; /* the binary; of a process: the list that will not do, so that the next one
			can be asked for at once: a program that starts maps one library after the
			other */
};

/* What was asked for, and when. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct asked);
	__type(value, __u64);
} uw_asked SEC(".maps");

static __u32 about(const struct sb_scratch *s, __u32 need)
{
	if (need == SB_UW_NEED_BIN)
		return s->map.bin;
	return need == SB_UW_NEED_PROC ? sb_unwind_list_of(s) : 0;
}

static struct asked asked_key(const struct sb_scratch *s, __u32 need, __u32 what)
{
	return (struct asked){
		.tgid = s->capture.key.tgid,
		.exec_id = s->capture.key.exec_id,
		.need = need,
		.about = what,
	};
}

/*
 * Most processes that fork are another program a moment later, before user space could make use of
 * their mappings. So nobody is asked about a process that has not called exec before it is
 * FORKED_AGE_NS old or has had the CPU for FORKED_RUN_NS. Until then its stacks are shipped raw.
 * A process that is seen in another thread than its first is not about to call exec. The first
 * thread has the flag and the CPU time in itself, so that no pointer to it is followed: see
 * start_of_process() in sample.bpf.c.
 */
static bool is_about_to_exec(const struct sb_scratch *s)
{
	const struct task_struct *task = bpf_get_current_task_btf();

	return task->pid == task->tgid && (task->flags & PF_FORKNOEXEC) &&
	       task->se.sum_exec_runtime < FORKED_RUN_NS &&
	       bpf_ktime_get_boot_ns() - s->capture.key.start_ns < FORKED_AGE_NS;
}

/*
 * In the midst of execve(2) the old program is gone, and the new one is not mapped yet. An answer
 * would say that there is no code, and the program would not be asked about when it begins.
 */
static bool is_in_exec(void)
{
	return !BPF_CORE_READ(bpf_get_current_task_btf(), mm, start_code);
}

/* Not inlined, as sb_unwind_need(): the walk has no room for either on its stack on Linux 5.15. */
__hidden __noinline int sb_unwind_was_asked(struct sb_scratch *s, __u32 need, __u32 what)
{
	struct asked key = asked_key(s, need, what);
	__u64 now_ns = s->capture.now_ns, *asked_ns = bpf_map_lookup_elem(&uw_asked, &key);

	if (asked_ns && now_ns - *asked_ns < ASK_AGAIN_NS)
		return 1;
	if (need != SB_UW_NEED_TOUCH &&
	    (s->capture.is_brief || is_about_to_exec(s) || is_in_exec()))
		return 1;
	/* Where this fails, it is asked for once too often. */
	bpf_map_update_elem(&uw_asked, &key, &now_ns, BPF_ANY);
	return 0;
}

__hidden void sb_unwind_not_asked(struct sb_scratch *s, __u32 need, __u32 what)
{
	struct asked key = asked_key(s, need, what);

	bpf_map_delete_elem(&uw_asked, &key);
}

__hidden __noinline int sb_unwind_need(struct sb_scratch *s, __u32 need, __u64 addr)
{
	struct sb_uw_need_event event = {
		.start_ns = s->capture.key.start_ns,
		.addr = addr,
		.tgid = s->capture.key.tgid,
		.exec_id = s->capture.key.exec_id,
		.need = need,
		.bin = s->map.bin,
	};
	__u32 what = about(s, need);

	if (sb_unwind_was_asked(s, need, what))
		return 0;
	if (bpf_ringbuf_output(&uw_needs, &event, sizeof(event), BPF_RB_FORCE_WAKEUP)) {
		sb_unwind_not_asked(s, need, what);
		sb_stat_add(SB_STAT_NEEDS_FULL, 1);
	}
	return 0;
}

static enum sb_step end(struct sb_scratch *s, __u32 status)
{
	s->walk.status = status;
	return SB_STEP_END;
}

/* Frames that a runtime has found on the native stack are known here only: user space, which would
 * walk a piece of the stack anew, has no walker for them. */
static bool has_hooked(const struct sb_scratch *s)
{
	return s->interp.has_hook && s->interp.walk.nr_frames;
}

/* Something is missing that user space can provide: let it unwind this stack, or else go on by
 * frame pointers, which will be said. */
static enum sb_step table_missing(struct sb_scratch *s, __u32 slot, __u32 need)
{
	sb_unwind_need(s, need, sb_walk_key(&s->walk));
	if (has_hooked(s))
		return end(s, SB_STACK_NO_TABLE);
	if (!sb_rawstack_capture(slot)) {
		s->map.is_raw = 1;
		return end(s, SB_STACK_NO_TABLE);
	}
	s->map.is_cut_off = 1;
	s->map.modes &= ~SB_UNWIND_CFI;
	return SB_STEP_FP_CHAIN;
}

/* The address lies in no mapping we know. If that is the truth, it was no return address. */
static enum sb_step address_unknown(struct sb_scratch *s, __u32 slot)
{
	if (!s->map.nr_segs || sb_unwind_is_list_doubtful(s))
		return table_missing(s, slot, SB_UW_NEED_PROC);
	if (s->stack.nr_frames > 1)
		s->stack.nr_frames--;
	return end(s, s->walk.mark & SB_IP_BY_FP ? SB_STACK_BAD_FP : SB_STACK_BAD_PC);
}

#if defined(__TARGET_ARCH_arm64)
/*
 * A leaf without a rule: code written by hand, a vDSO. Whether it has a frame of its own, nobody
 * says. But as long as it has called nothing, x30 is its return address; and when it has, x30
 * points into itself, where there is no rule either.
 */
static void look_at_lr(struct sb_scratch *s, __u32 slot)
{
	struct sb_walk *walk = &s->walk;
	__u64 pc = walk->pc;
	__u32 flags = walk->flags;
	int err;

	walk->pc = sb_code_addr(walk, walk->regs[SB_REG_LR]);
	walk->flags = 0;
	err = sb_unwind_find_rule(slot);
	/* A table that is missing will be asked for when the walk is there. */
	if (err == -EAGAIN || (!err && sb_is_callers_rule(s->map.rule.cfa)))
		flags |= SB_WALK_LR_IS_CALLER;
	walk->pc = pc;
	walk->flags = flags;
	s->map.rule.cfa = SB_UW_CFA_FP_CHAIN;
}
#endif

static enum sb_step table_step(struct sb_scratch *s, __u32 slot)
{
	int err = sb_unwind_find_rule(slot);

	if (err == -ENOENT)
		return address_unknown(s, slot);
	if (err)
		return table_missing(s, slot, SB_UW_NEED_BIN);
	if (s->map.seg_flags & SB_UW_SEG_ANON)
		s->walk.flags |= SB_WALK_GENERATED;
#if defined(__TARGET_ARCH_arm64)
	if (s->map.rule.cfa == SB_UW_CFA_FP_CHAIN && (s->walk.flags & SB_WALK_LEAF))
		look_at_lr(s, slot);
#endif
	return sb_cfi_step(&s->walk, &s->map.rule, s);
}

static enum sb_step push(struct sb_scratch *s, __u64 ip)
{
	__u32 at = s->stack.nr_frames;

	sb_opaque(at);
	if (at >= SB_USTACK_DEPTH_MAX || at >= cfg_ustack_depth_max)
		return end(s, SB_STACK_DEPTH);
	s->ip[at & (SB_USTACK_DEPTH_MAX - 1)] = ip;
	s->stack.nr_frames = at + 1;
	return SB_STEP_GO_ON;
}

/* What a runtime has to say about the frame the walk stands at. */
static enum sb_step hook_step(struct sb_scratch *s, __u32 slot)
{
	enum sb_step step = sb_interp_native(slot);

	if (s->interp.walk.has_steps)
		sb_interp_run(slot);
	sb_interp_native_done(slot);
	return step;
}

/* By the frame pointer, where there is no rule. */
static enum sb_step fp_step(struct sb_scratch *s, __u32 slot)
{
	__u64 fp = s->walk.fp;
	bool hides = false;
	enum sb_step step;

	/* A walker of an interpreter knows what it leaves to the frame pointer. */
	if ((s->walk.flags & SB_WALK_GENERATED) && !s->interp.has_hook)
		hides = sb_unwind_hides(slot);
	step = sb_fp_step(&s->walk, s);
	s->map.nr_by_fp += step == SB_STEP_GO_ON;
	/* And not by the code at pc, which may say that no frame stands yet. */
	if (hides && s->walk.sp == fp + 16)
		s->walk.mark |= SB_IP_HIDES;
	return step;
}

__noinline int sb_returns_next(struct sb_returns *returns)
{
	struct return_instance *call;

	if (!returns || !returns->next)
		return -ENOENT;
	call = (struct return_instance *)returns->next;
	returns->stack = BPF_CORE_READ(call, stack);
	returns->addr = BPF_CORE_READ(call, orig_ret_vaddr);
	returns->next = (__u64)BPF_CORE_READ(call, next);
	return 0;
}

/*
 * Advance map.returns by one call. Global, as is sb_returns_next(). Return: 1 if it is the one that
 * sb_returns_find() looks for, 0 if not; -ENOENT: there is none.
 */
__noinline int sb_returns_is_next(__u32 slot, __u64 sp, __u64 more)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (!s || sb_returns_next(&s->map.returns))
		return -ENOENT;
	return s->map.returns.stack + SB_RETURN_BYTES - sp <= more;
}

__noinline int sb_returns_find(__u32 slot, __u64 sp, __u64 more)
{
	__u32 i;
	int is;

	for (i = 0; i < SB_RETURNS_MAX; i++) {
		is = sb_returns_is_next(slot, sp, more);
		if (is)
			return is > 0 ? 0 : -ENOENT;
	}
	return -ENOENT;
}

#if defined(__TARGET_ARCH_x86)
/*
 * The kernel has dealt with the return, and the list does not have the call any more: the
 * trampoline goes on with pop %r11; pop %rcx; ret. Return: how far above sp the true address is, or
 * -1.
 */
static int after_trampoline(__u64 offset)
{
	switch (offset) {
	case 0x0d:
		return 16;
	case 0x0f:
		return 8;
	case 0x10:
		return 0;
	default:
		return -1;
	}
}
#else
#define after_trampoline(offset) (-1)
#endif

/* The thread has returned to the trampoline: correct the registers to those after it. */
static void return_leaf(struct sb_scratch *s, __u32 slot)
{
	__u64 sp = sb_regs_sp(&s->regs), offset, pc;
	int above;

	offset = sb_regs_pc(&s->regs) - s->map.returns.trampoline;
	if (!s->map.returns.trampoline || offset >= PAGE_BYTES)
		return;
	above = after_trampoline(offset);
	if (!sb_returns_find(slot, sp, TRAMPOLINE_SAVES)) {
		pc = s->map.returns.addr;
		sp = s->map.returns.stack + SB_RETURN_BYTES;
	} else if (above >= 0 && !bpf_probe_read_user(&pc, sizeof(pc), (void *)(sp + above))) {
		sp += above + sizeof(pc);
		sb_returns_begin(s, bpf_get_current_task_btf());
	} else {
		return;
	}
	s->regs.sp = sp;
#if defined(__TARGET_ARCH_x86)
	s->regs.ip = pc;
#elif defined(__TARGET_ARCH_arm64)
	s->regs.pc = pc;
#endif
}

/* From the trampoline, at which the walk has come, to the true return address. */
static enum sb_step return_step(struct sb_scratch *s, __u32 slot)
{
	__u64 more = s->walk.flags & SB_WALK_SP_LOST ? SB_FP_FRAME_BYTES_MAX : 0;

	s->log.nr = SB_LOG_OFF; /* the memo knows walks by the stack, which does not have it */
	if (sb_returns_find(slot, s->walk.sp, more))
		return end(s, SB_STACK_RETURN_PROBE);
	return sb_step_to(&s->walk, s->map.returns.addr, s->map.returns.stack + SB_RETURN_BYTES,
			  s->walk.fp);
}

__noinline int sb_unwind_step(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	enum sb_step step = SB_STEP_FP_CHAIN;
	bool is_hooked;

	if (!s)
		return SB_STEP_END;
	is_hooked = sb_interp_has_hook(s);
	if (is_hooked)
		step = hook_step(s, slot);
	if (step == SB_STEP_FP_CHAIN && (s->map.modes & SB_UNWIND_CFI))
		step = table_step(s, slot);
	/* Code without a rule, which no hook covers. */
	if (step == SB_STEP_FP_CHAIN && s->interp.has_hook && !is_hooked)
		step = hook_step(s, slot);
	if (step == SB_STEP_FP_CHAIN) {
		if (!(s->map.modes & SB_UNWIND_FP))
			return end(s, s->map.modes ? SB_STACK_NO_RULE : SB_STACK_COMPLETE);
		step = fp_step(s, slot);
	}
	if (step == SB_STEP_GO_ON && s->walk.pc == s->map.returns.trampoline)
		step = return_step(s, slot);
	return step == SB_STEP_GO_ON ? push(s, s->walk.pc | s->walk.mark) : step;
}

static void begin(struct sb_scratch *s)
{
	const struct sb_regs *regs = &s->regs;
	struct sb_walk *walk = &s->walk;

	walk->pc = sb_regs_pc(regs);
	walk->sp = sb_regs_sp(regs);
	walk->fp = sb_regs_fp(regs);
	sb_regs_by_dwarf(regs, walk->regs);
	walk->user_end = sb_user_end_with(cfg_user_end, s->map.returns.trampoline);
	walk->flags = SB_WALK_LEAF;
	walk->mark = 0;
	walk->bx_at = 0;
	walk->uses = 0;
	walk->status = SB_STACK_DEPTH;
	s->map.nr_segs = 0;
	s->map.nr_by_fp = s->map.is_cut_off = s->map.is_raw = s->map.is_known = 0;
	s->map.modes = cfg_unwind;
	s->map.is_last_walk_on = 0;
}

/* The leaf is often in the mapping where the last walk found one. As in uw_rules, what was found in
 * a list counts for one epoch. */
static void keep_seg(struct sb_scratch *s)
{
	if (s->map.seg_list == s->map.segs_word && s->map.seg_epoch == sb_unwind_epoch(s))
		return;
	s->map.begin = s->map.end = 0;
	s->map.bin = SB_UW_BINS_MAX;
}

/*
 * A walk that ended in nonsense may have gone by tables of what was mapped there a moment ago (two
 * libraries that take turns at one address): user space knows what was there at what time.
 */
static bool is_worth_a_look(struct sb_scratch *s, __u32 slot)
{
	__u32 status = s->walk.status;

	if (!(s->map.modes & SB_UNWIND_CFI) ||
	    (status != SB_STACK_BAD_PC && status != SB_STACK_BAD_FP && status != SB_STACK_BAD_CFA &&
	     status != SB_STACK_NO_RULE))
		return false;
	if (!sb_unwind_is_list_doubtful(s) || has_hooked(s))
		return false;
	sb_unwind_need(s, SB_UW_NEED_PROC, sb_walk_key(&s->walk));
	return !sb_rawstack_capture(slot);
}

static void finish(struct sb_scratch *s, __u32 slot)
{
	__u32 nr_callers = s->stack.nr_frames - 1, nr_by_fp = s->map.nr_by_fp;

	if (is_worth_a_look(s, slot)) {
		s->map.is_raw = 1;
		return;
	}
	s->stack.status = s->map.is_cut_off ? SB_STACK_NO_TABLE : s->walk.status;
	if (nr_by_fp)
		sb_stat_add(SB_STAT_FP_FRAMES, nr_by_fp);
	if (nr_callers > nr_by_fp)
		sb_stat_add(SB_STAT_CFI_FRAMES, nr_callers - nr_by_fp);
	if (s->walk.status == SB_STACK_FAULT && (cfg_unwind & SB_UNWIND_CFI))
		sb_unwind_need(s, SB_UW_NEED_TOUCH, s->map.fault_addr);
}

__noinline int sb_unwind_begin(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (!s)
		return SB_STEP_END;
	sb_returns_begin(s, bpf_get_current_task_btf());
	return_leaf(s, slot);
	begin(s);
	s->stack.nr_frames = 0;
	push(s, s->walk.pc);
	s->log.nr = SB_LOG_OFF;
	if (!(cfg_unwind & SB_UNWIND_CFI))
		return SB_STEP_GO_ON;
	sb_unwind_find_list(s, slot);
	keep_seg(s);
	if (cfg_last_walk)
		sb_last_walk_begin(slot);
	if (s->interp.has_hook || !sb_memo_is_on(slot) || !sb_memo_find(slot))
		return SB_STEP_GO_ON;
	s->map.is_known = 1;
	return SB_STEP_END;
}

__noinline int sb_unwind_round(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);
	__u32 i;

	if (cfg_last_walk && s && s->map.is_last_walk_on) {
		for (i = 0; i < SB_UNWIND_ROUND; i++)
			if (sb_last_walk_after(slot, sb_unwind_step(slot)) != SB_STEP_GO_ON)
				return SB_STEP_END;
		return SB_STEP_GO_ON;
	}
	for (i = 0; i < SB_UNWIND_ROUND; i++)
		if (sb_unwind_step(slot) != SB_STEP_GO_ON)
			return SB_STEP_END;
	return SB_STEP_GO_ON;
}

__noinline int sb_unwind_end(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (s && !s->map.is_raw)
		finish(s, slot);
	if (cfg_last_walk && s && !s->map.is_raw && s->map.is_last_walk_on)
		sb_last_walk_keep(slot);
	return 0;
}
