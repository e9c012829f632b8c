// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Capturing and accounting of samples, for all views. Owns `counts`. */
#include <bpf/bpf_core_read.h>

#include "bpf/core/sb_filter.bpf.h"
#include "bpf/core/sb_interp.bpf.h"
#include "bpf/core/sb_label.bpf.h"
#include "bpf/core/sb_proc_cache.bpf.h"
#include "bpf/core/sb_returns.bpf.h"
#include "bpf/core/sb_sample.bpf.h"
#include "bpf/core/sb_span.bpf.h"
#include "bpf/core/sb_stack.bpf.h"
#include "bpf/core/sb_unwind.bpf.h"
#include "bpf/core/sb_util.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 cfg_sides = SB_SIDE_USER | SB_SIDE_KERNEL;
const volatile __u32 cfg_by = 0;
const volatile __u32 cfg_counts_nudge = 16384; /* keys: drain before the map is full */
const volatile __u64 cfg_started_boot_ns = 0;  /* processes born later are known from side-band */

/* The number of the view that takes samples in a slot. */
const volatile __u8 cfg_slot_view[SB_SCRATCH_MAX] = {};

/* Set by user space to 0 at each drain. */
__u32 nr_keys = 0;
/* Samples of each view for which there was no room in `counts`. */
__u64 view_lost[SB_VIEWS_MAX] = {};
__u64 first_sample_ns = 0;
/* Set by user space: no sample after this, however late it comes to stop us; 0: no end. */
__u64 end_ns = 0;
/* Of the run, for views whose samples reach back; at first, it has not begun. */
__u64 begin_ns = 0;

/* struct sb_sample_key -> struct sb_count. Sizes, not types: clang 14 leaves types out of the BTF
 * that only the definition of an inner map names; and to kernels up to 6.2 a map that has types is
 * not of the same kind as one that has none, as those that user space makes. */
struct counts_generation {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(struct sb_sample_key));
	__uint(value_size, sizeof(struct sb_count));
};

/*
 * The generation being written. User space puts the other one in its place and then reads this
 * one undisturbed: updating a map in a map returns only when no program uses the old one any more
 * (kernel commit 1ae80cf31938).
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct counts_generation);
} counts SEC(".maps");

/* The first generation, in force as long as `counts` is empty: to put it there would cost the wait
 * for those programs, 15 ms, at the start. Sized before load. */
struct counts_generation counts_first SEC(".maps");

/* Processes that were announced: tgid -> start. Full: the rest is found when it is drained. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, __u64);
} procs_announced SEC(".maps");

int sb_event_process(__u32 tgid);
int sb_event_nudge(void);

static void announce(const struct sb_scratch *s, __u32 slot)
{
	const struct sb_sample_key *key = &s->capture.key;
	struct sb_proc_cache *known;
	__u64 *start_ns;

	if (!key->tgid || key->start_ns >= cfg_started_boot_ns)
		return;
	known = sb_proc_cache_of(slot, s);
	if (known && (known->has & SB_PROC_CACHE_ANNOUNCED))
		return;
	start_ns = bpf_map_lookup_elem(&procs_announced, &key->tgid);
	if (start_ns && *start_ns == key->start_ns) {
		if (known)
			known->has |= SB_PROC_CACHE_ANNOUNCED;
		return;
	}
	/* Where the ring is full, the next sample tries again. */
	if (!bpf_map_update_elem(&procs_announced, &key->tgid, &key->start_ns, BPF_ANY) &&
	    sb_event_process(key->tgid))
		bpf_map_delete_elem(&procs_announced, &key->tgid);
}

/*
 * Pointers in a task are read by copy, not followed: where they are followed, newer verifiers look
 * through all of the kernel's types for each load (btf_nested_type_is_trusted()), which was a third
 * of the time to the first sample.
 */
static __u64 start_of_process(const struct task_struct *task)
{
	return BPF_CORE_READ(task, group_leader, start_boottime);
}

static void identify(struct sb_sample_key *key, const struct task_struct *task, __u64 start_ns)
{
	key->tgid = task->tgid;
	key->start_ns = start_ns;
	key->exec_id = task->self_exec_id;
	if (cfg_by & SB_BY_THREAD)
		key->tid = task->pid;
	if (cfg_by & SB_BY_CPU)
		key->cpu = bpf_get_smp_processor_id();
}

static void keep_kernel(struct sb_scratch *s, __u32 slot, long nr_bytes)
{
	if (nr_bytes <= 0) {
		sb_stat_add(SB_STAT_KSTACK_ERR, 1);
		return;
	}
	s->stack.flags = SB_STACK_KERNEL | (__u32)s->capture.key.view << SB_STACK_VIEW_SHIFT;
	s->stack.list = 0;
	s->stack.nr_frames = (__u32)nr_bytes / sizeof(s->ip[0]);
	s->stack.status = SB_STACK_COMPLETE;
	sb_stack_intern(s, slot, &s->capture.key.kstack);
}

static void capture_kernel(void *ctx, struct sb_scratch *s, __u32 slot)
{
	keep_kernel(s, slot, bpf_get_stack(ctx, s->ip, SB_KSTACK_DEPTH_MAX * sizeof(s->ip[0]), 0));
}

/*
 * Return: whether the pc is behind the instruction of a system call. It is not, although the thread
 * has made one, where execve() has set it to the beginning of a program, or a signal to that of a
 * handler. On x86-64, SYSCALL copies the pc to rcx, unless FRED is on: then the upper half of ss
 * says how the kernel was entered, and execve() clears it, but a signal does not: the first
 * instruction of a handler is not recognized then. On arm64, a signal resets the number of the
 * call, and execve() the register x8, which had it.
 */
static bool is_behind_syscall(const struct sb_regs *regs, const struct pt_regs *entry)
{
#if defined(__TARGET_ARCH_x86)
	return (__s64)regs->orig_ax >= 0 && (regs->cx == regs->ip || regs->ss >> 32);
#elif defined(__TARGET_ARCH_arm64)
	__s32 nr = BPF_CORE_READ(entry, syscallno);

	return nr >= 0 && (__s32)regs->regs[8] == nr;
#endif
}

/* Unless they are there already, the registers with which @task entered the kernel. */
static int user_regs(struct task_struct *task, struct sb_scratch *s)
{
	struct pt_regs *regs;

	if (sb_regs_are_user(&s->regs))
		return 0;
	regs = (void *)bpf_task_pt_regs(task);
	if (bpf_probe_read_kernel(&s->regs, sizeof(s->regs), regs))
		return -ENOENT;
	if (is_behind_syscall(&s->regs, regs))
		s->stack.flags |= SB_STACK_LEAF_RETURNS;
	return sb_regs_are_user(&s->regs) ? 0 : -ENOENT;
}

/* Return: whether start_thread() of the kernel is about to set pc and sp: see below. */
static bool are_cleared(const struct sb_regs *regs, const struct mm_struct *mm)
{
#if defined(__TARGET_ARCH_x86)
	/* In nearly all samples, one of these is set. ax keeps -ENOSYS. */
	if ((__s64)regs->orig_ax < 0 || regs->cx | regs->di | regs->si)
		return false;
	return !(regs->bx | regs->dx | regs->bp | regs->r8 | regs->r9 | regs->r10 | regs->r11 |
		 regs->r12 | regs->r13 | regs->r14 | regs->r15) &&
	       regs->sp != BPF_CORE_READ(mm, start_stack);
#elif defined(__TARGET_ARCH_arm64)
	return !regs->sp && !sb_regs_are_compat(regs);
#endif
}

/*
 * Return: whether a task with @mm is in the midst of execve(2) and has no user stack: the old one
 * is gone with its address space, and the registers are not yet those of the new program.
 * load_elf_binary() sets start_code when it has mapped the program and its interpreter. Then the
 * general registers are cleared (on x86-64 by ELF_PLAT_INIT()). start_thread() loads segment
 * registers, which takes microseconds under some hypervisors, and sets pc and sp; on arm64 it
 * clears the registers itself, and sets sp last. A kernel thread has no mm. Registers that could
 * not be read (@status) are zero, too, and tell nothing.
 */
static bool is_between_programs(const struct sb_regs *regs, __u32 status,
				const struct mm_struct *mm)
{
	return !BPF_CORE_READ(mm, start_code) ||
	       (status != SB_STACK_NO_REGS && are_cleared(regs, mm));
}

/* The frames of machine code. Leaves their name in the key. */
static void capture_native(struct sb_scratch *s, __u32 slot)
{
	if (s->stack.status == SB_STACK_NO_REGS) {
		s->stack.nr_frames = 0;
	} else if (sb_regs_are_compat(&s->regs)) {
		s->ip[0] = sb_regs_pc(&s->regs);
		s->stack.nr_frames = 1;
		s->stack.status = SB_STACK_COMPAT;
	} else {
		sb_unwind_user(slot);
	}
	if (s->map.is_raw || s->map.is_known) {
		s->capture.key.ustack = s->stack.id;
		return;
	}
	sb_stack_intern(s, slot, &s->capture.key.ustack);
	if (!s->interp.has_hook && sb_memo_is_on(slot))
		sb_memo_keep(slot);
}

static void capture_user(struct task_struct *task, struct sb_scratch *s, __u32 slot)
{
	const struct mm_struct *mm;

	s->stack.flags = 0;
	s->stack.list = 0;
	s->stack.nr_frames = 0;
	s->stack.status = SB_STACK_NONE;
	s->map.is_raw = s->map.is_known = 0;
	if (user_regs(task, s))
		s->stack.status = SB_STACK_NO_REGS;
	sb_interp_start(slot);
	mm = BPF_CORE_READ(task, mm);
	if (is_between_programs(&s->regs, s->stack.status, mm))
		return;
	s->map.exec_vm = BPF_CORE_READ(mm, exec_vm);
	capture_native(s, slot);
	if (!s->interp.nr_confs)
		return;
	/* User space takes that walk again, and cannot ask. */
	if (s->map.is_raw)
		s->interp.walk.nr_frames = 0;
	sb_interp_walk_all(slot);
}

__hidden __u64 sb_end_ns(void)
{
	return end_ns;
}

__hidden __u64 sb_begin_ns(void)
{
	return begin_ns;
}

static __u32 pid_rules(struct sb_proc_cache *known, __u64 pid_tgid)
{
	if (!known)
		return sb_filter_pid_rules(pid_tgid >> 32, (__u32)pid_tgid);
	if (!(known->has & SB_PROC_CACHE_RULES)) {
		known->rules = sb_filter_pid_rules(pid_tgid >> 32, (__u32)pid_tgid);
		known->has |= SB_PROC_CACHE_RULES;
	}
	return known->rules;
}

/* Return: whether it is time to take samples. */
static bool start_sample(struct sb_scratch *s, __u32 slot, __u64 now_ns)
{
	s->capture.now_ns = now_ns;
	__builtin_memset(&s->capture.key, 0, sizeof(s->capture.key));
	s->capture.is_brief = 0;
	if (slot < SB_SCRATCH_MAX)
		s->capture.key.view = cfg_slot_view[slot];
	return !end_ns || s->capture.now_ns <= end_ns;
}

/* @span: what sb_span_of() returned. Return: whether the sample is in a span, or none are asked
 * for. */
static bool is_in_span(struct sb_scratch *s, __u64 span)
{
	if (span == SB_SPAN_OUTSIDE)
		sb_stat_add(SB_STAT_OUTSIDE_SPANS, 1);
	else
		s->capture.key.span = span;
	return span != SB_SPAN_OUTSIDE;
}

__hidden int sb_begin_at(__u32 slot, __u32 how, __u64 now_ns, struct sb_capture **ret_capture)
{
	const struct task_struct *task = bpf_get_current_task_btf();
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct sb_scratch *s = sb_scratch_get(slot);
	struct sb_proc_cache *known;
	char *comm;

	/* The idle task, where the event could not leave it out; as a waker it is one, and what
	 * interrupts it happens. */
	if (!s || (!pid_tgid && !(how & (SB_BEGIN_ANYBODY | SB_BEGIN_IDLE))))
		return -ENOENT;
	if (!start_sample(s, slot, now_ns) && !(how & SB_BEGIN_LATE))
		return -ENOENT;
	comm = s->capture.key.comm;
	bpf_get_current_comm(comm, sizeof(s->capture.key.comm));
	known = sb_proc_cache_begin(slot, task);
	if (!(how & SB_BEGIN_ANYBODY) && !sb_filter_accepts(pid_rules(known, pid_tgid), comm)) {
		sb_stat_add(SB_STAT_FILTERED, 1);
		return -ENOENT;
	}
	identify(&s->capture.key, task, known ? known->start_ns : start_of_process(task));
	/* At a switch, span_switch has looked at labels. */
	if (!(how & SB_BEGIN_ANYWHERE) && (slot != SB_SCRATCH_SWITCH || !cfg_span_label))
		sb_span_look(slot);
	if (cfg_spans && !(how & SB_BEGIN_ANYWHERE) &&
	    !is_in_span(s, sb_span_of_current(slot, s->capture.now_ns)))
		return -ENOENT;
	if (cfg_by & SB_BY_CGROUP)
		s->capture.key.cgroup_id = bpf_get_current_cgroup_id();
	*ret_capture = &s->capture;
	return 0;
}

__hidden int sb_begin_task(__u32 slot, struct task_struct *task, struct sb_capture **ret_capture)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (!s || !task->pid)
		return -ENOENT;
	start_sample(s, slot,
		     bpf_ktime_get_ns()); /* what goes on beyond the end is looked at after it */
	BPF_CORE_READ_STR_INTO(&s->capture.key.comm, task, comm);
	if (!sb_filter_accepts_task(task, s->capture.key.comm)) {
		sb_stat_add(SB_STAT_FILTERED, 1);
		return -ENOENT;
	}
	if (cfg_spans &&
	    !is_in_span(s, sb_span_of(task->pid, sb_user_sp_of(task), s->capture.now_ns)))
		return -ENOENT;
	identify(&s->capture.key, task, start_of_process(task));
	if (cfg_by & SB_BY_CGROUP)
		s->capture.key.cgroup_id = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	*ret_capture = &s->capture;
	return 0;
}

__hidden int sb_take_stacks(void *ctx, __u32 slot, __u32 sides)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sb_scratch *s = sb_scratch_get(slot);

	if (!s)
		return -ENOENT;
	sides &= cfg_sides;
	if ((sides & SB_SIDE_KERNEL) && !sb_regs_are_user(&s->regs))
		capture_kernel(ctx, s, slot);
	/* Without a process it is an interrupt, and the task is whom it stopped. */
	if (sb_has_user_side(task) && s->capture.key.tgid) {
		if (sides & SB_SIDE_USER)
			capture_user(task, s, slot);
		else if (sb_labels_are_on())
			sb_interp_start(slot);
		if (sb_labels_are_on())
			sb_labels_take(slot);
	}
	announce(s, slot);
	return 0;
}

__hidden int sb_capture_at(void *ctx, __u32 slot, __u64 now_ns, struct sb_capture **ret_capture)
{
	int err = sb_begin_at(slot, 0, now_ns, ret_capture);

	return err ? err : sb_take_stacks(ctx, slot, cfg_sides);
}

__hidden int sb_cut_user(__u32 slot, const struct task_struct *task, __u32 status)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (!s || !(cfg_sides & SB_SIDE_USER) || !sb_has_user_side(task))
		return -ENOENT;
	s->stack.flags = 0;
	s->stack.list = 0;
	s->stack.nr_frames = 0;
	s->stack.status = status;
	return sb_stack_intern(s, slot, &s->capture.key.ustack);
}

__hidden int sb_take_kernel_of(struct task_struct *task, __u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (!s || !(cfg_sides & SB_SIDE_KERNEL))
		return -ENOENT;
	keep_kernel(s, slot,
		    bpf_get_task_stack(task, s->ip, SB_KSTACK_DEPTH_MAX * sizeof(s->ip[0]), 0));
	announce(s, slot);
	return 0;
}

__hidden int sb_take_asleep(struct task_struct *task, __u32 slot, struct sb_asleep *ret)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	if (!s || !(cfg_sides & SB_SIDE_USER) || !sb_has_user_side(task))
		return -ENOENT;
	sb_start_in_kernel(slot);
	s->stack.flags = 0;
	if (user_regs(task, s) ||
	    is_between_programs(&s->regs, SB_STACK_NONE, BPF_CORE_READ(task, mm)))
		return -ENOENT;
	announce(s, slot);
	sb_stack_fresh_id(s->capture.now_ns, &s->capture.key.ustack);
	sb_interp_name_asleep(&s->capture.key);
	sb_labels_name_asleep(&s->capture.key);
	/* In its place: there is no room for it on the stack. */
	__builtin_memset(ret, 0, sizeof(*ret));
	ret->raw.hdr.kind = SB_EVENT_RAW;
	ret->raw.hdr.nr_bytes = sizeof(ret->raw);
	ret->raw.id = s->capture.key.ustack;
	ret->raw.now_ns = s->capture.now_ns;
	ret->raw.start_ns = s->capture.key.start_ns;
	ret->raw.tgid = s->capture.key.tgid;
	ret->raw.exec_id = s->capture.key.exec_id;
	ret->raw.flags = s->stack.flags | SB_STACK_ASLEEP;
	if (sb_regs_are_compat(&s->regs))
		ret->raw.flags |= SB_STACK_32_BITS;
	ret->raw.pc = sb_regs_pc(&s->regs);
	ret->istack = s->capture.key.istack;
	ret->labels = s->capture.key.labels;
	ret->tid = task->pid;
	ret->raw.thread_pointer = sb_interp_thread_pointer(task);
	sb_returns_begin(s, task);
	ret->raw.trampoline = s->map.returns.trampoline;
	ret->nr_switches = task->nvcsw + task->nivcsw;
	ret->raw.stack_addr = sb_regs_sp(&s->regs) - SB_RED_ZONE_BYTES;
	ret->raw.nr_stack_bytes =
		sb_rawstack_reach(task, sb_regs_sp(&s->regs), ret->raw.thread_pointer);
	sb_regs_by_dwarf(&s->regs, ret->raw.regs);
	return 0;
}

/* Return: 0; -EEXIST: the key is there meanwhile; another negative errno: there is no room. */
static int add_key(void *generation, const struct sb_capture *capture, __u64 weight,
		   __u64 nr_samples)
{
	struct sb_count count = { .weight = weight,
				  .nr_samples = nr_samples,
				  .first_ns = capture->now_ns,
				  .last_ns = capture->now_ns };
	int err = bpf_map_update_elem(generation, &capture->key, &count, BPF_NOEXIST);

	if (!err && __sync_fetch_and_add(&nr_keys, 1) + 1 == cfg_counts_nudge)
		sb_event_nudge();
	return err;
}

/* Whether somebody else on this CPU holds the lock of the map. Since Linux 6.15 the lock itself
 * finds out. */
static bool is_locked(int err)
{
	return err == -EBUSY || err == -EDEADLK || err == -ETIMEDOUT;
}

/* Return: 0; a negative errno: the sample is lost, which is counted. */
static __always_inline int add_up(const struct sb_capture *capture, __u64 weight, __u64 nr_samples)
{
	__u32 zero = 0;
	void *generation = bpf_map_lookup_elem(&counts, &zero);
	struct sb_count *count;
	int err = 0;

	/* One call for each, because then the verifier knows the kind of map and inlines the
	 * lookup. */
	if (generation)
		count = bpf_map_lookup_elem(generation, &capture->key);
	else
		count = bpf_map_lookup_elem(&counts_first, &capture->key);
	if (!count) {
		if (!generation)
			generation = &counts_first;
		err = add_key(generation, capture, weight, nr_samples);
		if (!err)
			return 0;
		if (err == -EEXIST) {
			count = bpf_map_lookup_elem(generation, &capture->key);
			err = -E2BIG; /* or user space has drained it just now */
		}
	}
	if (!count) {
		sb_stat_add(is_locked(err) ? SB_STAT_COUNTS_BUSY : SB_STAT_COUNTS_FULL, 1);
		__sync_fetch_and_add(&view_lost[capture->key.view % SB_VIEWS_MAX], 1);
		return err;
	}
	__sync_fetch_and_add(&count->weight, weight);
	if (nr_samples) {
		__sync_fetch_and_add(&count->nr_samples, nr_samples);
		count->last_ns = capture->now_ns;
	}
	return 0;
}

__hidden int sb_account(const struct sb_capture *capture, __u64 weight)
{
	int err = add_up(capture, weight, 1);

	if (err)
		return err;
	if (!first_sample_ns)
		first_sample_ns = capture->now_ns;
	sb_stat_add(SB_STAT_SAMPLES, 1);
	return 0;
}

__hidden void sb_account_more(const struct sb_capture *capture, __u64 weight)
{
	add_up(capture, weight, 0);
}

/* Global (not __hidden): the verifier looks at it once, not once for each caller. By slot: up to
 * 6.1, a global function's pointer is no key of a map. */
__noinline int sb_account_slot(__u32 slot, __u64 weight)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	return s ? sb_account(&s->capture, weight) : -ENOENT;
}

/* Whether the record of this CPU for SB_SCRATCH_PROBE is in use. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} probe_busy SEC(".maps");

__hidden bool sb_probe_take(void)
{
	__u32 zero = 0, *busy = bpf_map_lookup_elem(&probe_busy, &zero);

	sb_stat_add(SB_STAT_PROBE_HITS, 1);
	if (busy && !__sync_lock_test_and_set(busy, 1))
		return true;
	if (sb_is_asked_for())
		sb_stat_add(SB_STAT_TRACE_BUSY, 1);
	return false;
}

__hidden void sb_probe_give_back(void)
{
	__u32 zero = 0, *busy = bpf_map_lookup_elem(&probe_busy, &zero);

	if (busy)
		*busy = 0;
}

__hidden struct sb_capture *sb_capture_of(__u32 slot)
{
	struct sb_scratch *s = sb_scratch_get(slot);

	return s ? &s->capture : NULL;
}

__hidden void sb_spent(__u64 since_ns)
{
	sb_stat_add(SB_STAT_RUN_NS, bpf_ktime_get_ns() - since_ns);
}

__hidden __u32 sb_log2_of(__u64 ns)
{
	return cfg_by & SB_BY_DURATION ? sb_log2(ns) + 1 : 0;
}
