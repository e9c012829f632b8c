/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who ends a wait: the views "wakeup" and "offwake". Everything runs in BPF programs of
 * sched.bpf.c, for the current task, which is the waker. No pointer may be NULL, and none is kept.
 * Order: capture_waker(), then object_of_woken() and account_part() in "wakeup", object_of_waker()
 * in "offwake". */
#ifndef SB_SCHED_WAKER_BPF_H
#define SB_SCHED_WAKER_BPF_H

#include "bpf/views/sb_sched.bpf.h"

/* Fields of preempt_count, see include/linux/preempt.h. */
#define PREEMPT_SOFTIRQ	 0x00000100u /* one runs; to disable them adds twice that */
#define PREEMPT_HARDIRQS 0x000f0000u

#if defined(__TARGET_ARCH_x86)
/* Return: the per-CPU variables of the CPU of @task, which are found by its run queue, one of them.
 * The caller checks that by is_of_current(). */
static const struct sb_percpu *percpu_of(const struct task_struct *task)
{
	const char *rq = (const char *)BPF_CORE_READ(task, se.cfs_rq, rq);

	return (const void *)(rq - bpf_core_field_offset(struct sb_percpu, runqueues));
}

/* Return: whether @task is what a CPU notes at @current as its current task. */
static bool is_of_current(const void *current, const struct task_struct *task)
{
	__u64 addr = 0;

	return !bpf_probe_read_kernel(&addr, sizeof(addr), current) && addr == (__u64)task;
}
#endif

/*
 * Return: the preempt_count of this CPU, whose current task is @task; 0: it cannot be told. On
 * x86-64 it is a per-CPU variable. BPF programs can name those (__ksym), but the kernel refuses the
 * program where it is built without CONFIG_KALLSYMS_ALL.
 */
static __u32 preempt_count(const struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	const struct sb_percpu *percpu;
	const struct pcpu_hot *hot;

	if (!bpf_core_field_exists(struct sb_percpu, runqueues) ||
	    !bpf_core_field_exists(struct cfs_rq, rq))
		return 0;
	percpu = percpu_of(task);
	if (bpf_core_field_exists(struct sb_percpu, pcpu_hot)) {
		hot = (const void *)&percpu->pcpu_hot;
		return is_of_current(&hot->current_task, task) ? BPF_CORE_READ(hot, preempt_count)
							       : 0;
	}
	if (!bpf_core_field_exists(struct sb_percpu, current_task) ||
	    !bpf_core_field_exists(struct sb_percpu, __preempt_count) ||
	    !is_of_current(&percpu->current_task, task))
		return 0;
	return BPF_CORE_READ(percpu, __preempt_count);
#elif defined(__TARGET_ARCH_arm64)
	return BPF_CORE_READ(task, thread_info.preempt.count);
#endif
}

/*
 * Return: whether @task, the current one, was in a system call when it last left its program, and
 * not interrupted by a device or a fault.
 */
static bool is_in_syscall(struct task_struct *task)
{
	const struct pt_regs *regs = (void *)bpf_task_pt_regs(task);

#if defined(__TARGET_ARCH_x86)
	return (long)BPF_CORE_READ(regs, orig_ax) >= 0;
#elif defined(__TARGET_ARCH_arm64)
	return BPF_CORE_READ(regs, syscallno) >= 0;
#endif
}

/* ID of the cgroup that the idle task is in: kernfs_create_root() numbers from 1. */
#define ROOT_CGROUP 1

/* For capture_waker(): make @key, which sb_begin() has filled in, that of an interrupt, which
 * belongs to no process: replace the name by "[interrupt]", the IDs and the start time by 0, and
 * the cgroup, if it is recorded, by the root. */
static void become_interrupt(struct sb_sample_key *key)
{
	const char comm[SB_COMM_LEN] = "[interrupt]";

	__builtin_memcpy(key->comm, comm, SB_COMM_LEN);
	key->tgid = 0;
	key->tid = 0;
	key->exec_id = 0;
	key->start_ns = 0;
	if (key->cgroup_id)
		key->cgroup_id = ROOT_CGROUP;
}

/*
 * Take the identity and the stacks of the waker into the capture of SB_SCRATCH_WAKE. The waker is
 * either the current task or an interrupt that came while that ran. The idle task wakes nobody, so
 * there it is an interrupt. What a hard interrupt stops is not the waker either, so its stack is
 * not walked. A softirq is run by the thread that has raised it, as in a write to a local socket,
 * or when a hard interrupt ends. User space decides which, by the names of the kernel's frames;
 * where the thread was not in a system call, it is almost always an interrupt, and the user stack
 * is left out. @ctx: the context of the BPF program. *@ret_capture is borrowed, and valid until the
 * program ends.
 * Return: 0; -ENOENT: the run is over, and *@ret_capture must not be used.
 */
static int capture_waker(void *ctx, struct sb_capture **ret_capture)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 count = preempt_count(task), sides = SB_SIDE_USER | SB_SIDE_KERNEL;

	sb_start_in_kernel(SB_SCRATCH_WAKE);
	if (sb_begin(SB_SCRATCH_WAKE, SB_BEGIN_ANYBODY | SB_BEGIN_ANYWHERE, ret_capture))
		return -ENOENT;
	if (!task->pid || (count & PREEMPT_HARDIRQS)) {
		become_interrupt(&(*ret_capture)->key);
		sides = SB_SIDE_KERNEL;
	} else if ((count & PREEMPT_SOFTIRQ) && !is_in_syscall(task)) {
		sb_cut_user(SB_SCRATCH_WAKE, task, SB_STACK_INTERRUPTED);
		sides = SB_SIDE_KERNEL;
	}
	sb_take_stacks(ctx, SB_SCRATCH_WAKE, sides);
	if (sides == SB_SIDE_KERNEL)
		(*ret_capture)->key.labels = 0; /* of the interrupted thread */
	return 0;
}

/* Return: @hash, combined with the name @comm of SB_COMM_LEN bytes, all of which count; never 0. */
static __u64 hash_comm(__u64 hash, const char *comm)
{
	__u64 words[2];

	__builtin_memcpy(words, comm, sizeof(words));
	hash = sb_hash_word(hash, words[0]);
	hash = sb_hash_word(hash, words[1]);
	return hash | 1;
}

/* Scratch memory for an object, large enough for every kind: sb_object_ship() gets the size at run
 * time. */
struct sched_object {
	struct sb_event_object event;
	union {
		struct sb_object_task task;
		struct sb_object_waker waker;
		__u8 room[SB_OBJECT_BYTES_MAX];
	};
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sched_object);
} sched_objects SEC(".maps");

/*
 * Ship the object, whose @nr_bytes after its head are filled in, if it is not known yet; the head
 * is filled in here. @kind: enum sb_object_kind. Return: @id, shipped or not.
 */
static __u64 ship_object(struct sched_object *object, __u32 kind, __u32 nr_bytes, __u64 id)
{
	object->event.kind = kind;
	object->event.nr_bytes = nr_bytes;
	object->event.id = id;
	if (sb_object_known(id) == SB_OBJECT_UNSEEN)
		sb_object_ship(&object->event);
	return id;
}

/* Ship this waker, its identity and its stacks, as an object unless user space has it. Return: the
 * ID of the object, which is the same for the same stacks; 0: there is no memory for it. */
static __u64 object_of_waker(const struct sb_capture *capture)
{
	const struct sb_sample_key *key = &capture->key;
	__u32 zero = 0;
	struct sched_object *object = bpf_map_lookup_elem(&sched_objects, &zero);
	__u64 hash = SB_OBJECT_WAKER;

	if (!object)
		return 0;
	object->waker.kstack = key->kstack;
	object->waker.ustack = key->ustack;
	object->waker.istack = key->istack;
	object->waker.start_ns = key->start_ns;
	object->waker.now_ns = capture->now_ns;
	object->waker.tgid = key->tgid;
	object->waker.exec_id = key->exec_id;
	__builtin_memcpy(object->waker.comm, key->comm, sizeof(key->comm));
	hash = sb_hash_word(hash, key->kstack.lo);
	hash = sb_hash_word(hash, key->kstack.hi);
	hash = sb_hash_word(hash, key->ustack.lo);
	hash = sb_hash_word(hash, key->ustack.hi);
	hash = sb_hash_word(hash, key->istack.lo);
	hash = sb_hash_word(hash, key->istack.hi);
	hash = sb_hash_word(hash, key->start_ns);
	hash = sb_hash_word(hash, (__u64)key->tgid << 32 | key->exec_id);
	return ship_object(object, SB_OBJECT_WAKER, sizeof(object->waker),
			   hash_comm(hash, key->comm));
}

/* Ship the name of @task, which is woken, as an object unless user space has it. Return: the ID of
 * the object, which is the same for the same name; 0: there is no memory for it. */
static __u64 object_of_woken(const struct task_struct *task)
{
	__u32 zero = 0;
	struct sched_object *object = bpf_map_lookup_elem(&sched_objects, &zero);

	if (!object)
		return 0;
	BPF_CORE_READ_STR_INTO(&object->task.comm, task, comm);
	return ship_object(object, SB_OBJECT_TASK, sizeof(object->task),
			   hash_comm(SB_OBJECT_TASK, object->task.comm));
}

/* For "wakeup": account the time that @task slept, whose open wait is @st, to the current task,
 * which wakes it, with the stacks of the latter. The wait is closed by that (st->from_ns is 0),
 * also when nothing is accounted: when it lies outside of the run, when --state, --min or --max
 * leave it out, or when throttling skips it. @ctx: of the program, for the stacks. */
static void account_to_waker(void *ctx, const struct task_struct *task, struct sched_task *st)
{
	__u64 from_ns = __sync_lock_test_and_set(&st->from_ns, 0), until_ns, weight;
	__u64 now_ns = bpf_ktime_get_ns();
	struct sb_capture *capture;

	until_ns = clamp_to_end(now_ns);
	if (from_ns)
		from_ns = clamp_to_begin(from_ns);
	if (!from_ns || until_ns <= from_ns || !passes(st->state, until_ns - from_ns))
		return;
	weight = sb_thin(until_ns - from_ns);
	if (!weight) {
		sb_spent_some(now_ns);
		return;
	}
	if (!capture_waker(ctx, &capture)) {
		capture->key.object = object_of_woken(task);
		capture->key.span = st->capture.key.span;
		account_part(capture, SB_SCRATCH_WAKE, SB_STATE_NONE, weight, until_ns - from_ns);
	}
	sb_spent(now_ns);
}

/* Runs in the context of the waker. Only threads that match the filters have open waits. */
SEC("?tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *task)
{
	struct sched_task *st = find_task(task);
	struct sb_capture *capture;

	if (!st || !st->from_ns || !is_blocked(st->state))
		return 0;
	if (cfg_sched_waker == SCHED_WAKER_WEIGHS) {
		account_to_waker(ctx, task, st);
	} else if (!capture_waker(ctx, &capture)) {
		st->waker = object_of_waker(capture);
		sb_spent(capture->now_ns);
	}
	return 0;
}

#endif
