// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * View "memory": which code brought the memory that is resident. Each page fault of user code, and
 * of the kernel in user memory, is shipped to user space with its page (bpf/abi/sb_abi_memory.h),
 * which asks /proc/PID/pagemap what became of the page (user/capture/resident.h).
 *
 * Nothing is accounted here, so faults count after the end of the run, too: user space looks at the
 * pages when the programs are still attached, and whatever it finds present has its fault in the
 * ring before.
 *
 * Our own programs read the memory of processes, which faults too: with page faults disabled, by
 * which it is told apart, before anything of the record is touched. No page comes by such a fault.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/abi/sb_abi_memory.h"
#include "bpf/core/sb_interp.bpf.h"
#include "bpf/core/sb_label.bpf.h"
#include "bpf/core/sb_proc_cache.bpf.h"
#include "bpf/core/sb_sample.bpf.h"
#include "bpf/core/sb_span.bpf.h"
#include "bpf/core/sb_stack.bpf.h"
#include "bpf/core/sb_unwind.bpf.h"
#include "bpf/core/sb_util.bpf.h"

#define MADV_DONTNEED	 4 /* include/uapi/asm-generic/mman-common.h */
/* Of the error code of x86: Intel SDM volume 3, 4.7. */
#define FAULT_PROTECTION 1u

/* One window in 2^n is followed: of these two, the higher one. Written by user space: for the table
 * of pages, and by --max-overhead. */
__u32 memory_shift_room = 0;
__u32 memory_shift_cost = 0;

/* IDs of owners that were shipped. When it is full, the least recently used ones are shipped
 * again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* set before load */
	__type(key, __u64);
	__type(value, __u32);
} memory_owners SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sb_event_owner);
} memory_records SEC(".maps");

/* For so long after a fault, a further fault of the thread at the same place does not check again
 * whether the thread is a target, and what its name is. Nor does it notice mappings that user space
 * has not seen yet; all other changes of the process's mappings are told by `changes`. */
#define AGAIN_NS 1000000ull

/* The last fault of a CPU of which only the user stack is needed: the record of the slot has its
 * sample. */
struct memory_last {
	__u64 owner; /* 0: there is none */
	__u64 until_ns;
	__u64 start_ns; /* with tid and exec_id: of the thread */
	__u32 tid, exec_id;
	__u32 changes; /* sb_proc_changes() */
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct memory_last);
} memory_lasts SEC(".maps");

/* A process is young for so long, and is asked about after so many faults that are followed. */
#define YOUNG_NS	1000000000ull
#define YOUNG_FAULTS	2u
#define YOUNG_PROCESSES 1024u

/* Faults of young processes, by tgid and exec_id. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, YOUNG_PROCESSES);
	__type(key, __u64);
	__type(value, __u32);
} memory_young SEC(".maps");

/* By CPU. Not a map with values for each CPU, which user space could only read. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set before load */
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct sb_fault_batch);
} memory_batches SEC(".maps");

static __u64 owner_id(const struct sb_sample_key *key)
{
	const __u64 *words = (const __u64 *)key;
	__u64 hash = sb_stack_seed(0);
	__u32 i;

#pragma unroll
	for (i = 0; i < sizeof(*key) / sizeof(*words); i++)
		hash = sb_hash_word(hash, words[i]);
	return hash | 1;
}

/* Return: 0: the owner was shipped, now or before; -EAGAIN: the ring is full. */
static int ship_owner(const struct sb_capture *capture, __u64 id)
{
	__u32 zero = 0, seen = 1;
	struct sb_event_owner *owner;

	if (bpf_map_lookup_elem(&memory_owners, &id))
		return 0;
	owner = bpf_map_lookup_elem(&memory_records, &zero);
	if (!owner)
		return -EAGAIN;
	owner->hdr.kind = SB_EVENT_OWNER;
	owner->hdr.nr_bytes = sizeof(*owner);
	owner->id = id;
	owner->key = capture->key;
	if (sb_event_ship(owner, sizeof(*owner)))
		return -EAGAIN;
	/* Where this fails, it is shipped once too often. */
	bpf_map_update_elem(&memory_owners, &id, &seen, BPF_ANY);
	return 0;
}

/* A record of its own, where the batch is in use: user space takes it just now. */
static void ship_alone(const struct sb_fault_record *fault)
{
	struct {
		struct sb_event hdr;
		struct sb_fault_record at;
	} event = { { .kind = SB_EVENT_FAULTS, .nr_bytes = sizeof(event) }, *fault };

	if (sb_event_ship(&event, sizeof(event)))
		sb_stat_add(SB_STAT_FAULTS_FULL, 1);
}

static void ship_batch(struct sb_fault_batch *batch)
{
	batch->event.hdr.kind = SB_EVENT_FAULTS;
	batch->event.hdr.nr_bytes = sizeof(batch->event);
	if (sb_event_ship(&batch->event, sizeof(batch->event)))
		sb_stat_add(SB_STAT_FAULTS_FULL, SB_FAULTS_MAX);
	batch->nr = 0;
}

static void ship_fault(const struct sb_fault_record *fault)
{
	__u32 cpu = bpf_get_smp_processor_id(), nr;
	struct sb_fault_batch *batch = bpf_map_lookup_elem(&memory_batches, &cpu);

	if (!batch || __sync_lock_test_and_set(&batch->is_busy, 1)) {
		ship_alone(fault);
		return;
	}
	nr = batch->nr;
	sb_opaque(nr);
	nr &= SB_FAULTS_MAX - 1;
	batch->event.at[nr] = *fault;
	batch->nr = nr + 1;
	if (nr + 1 == SB_FAULTS_MAX)
		ship_batch(batch);
	/* An exchange, which the writes before it cannot pass. */
	__sync_lock_test_and_set(&batch->is_busy, 0);
}

/* Return: the owner's ID; 0: it could not be shipped, which was counted. */
static __u64 take_fault(const struct sb_capture *capture, __u64 where)
{
	struct sb_fault_record fault = {
		.owner = owner_id(&capture->key),
		.where = where,
		.now_ns = capture->now_ns,
	};

	if (ship_owner(capture, fault.owner)) {
		sb_stat_add(SB_STAT_FAULTS_FULL, 1);
		return 0;
	}
	ship_fault(&fault);
	return fault.owner;
}

/* Note the sample in the record as the last one of the CPU, if a later one can be compared with
 * it. */
static void keep_last(struct memory_last *last, __u64 owner)
{
	const struct task_struct *task = bpf_get_current_task_btf();
	const struct sb_scratch *s = sb_scratch_get(SB_SCRATCH_PAGE);

	if (!s || s->interp.has_hook || s->map.returns.trampoline || cfg_spans ||
	    sb_labels_are_on() || !sb_memo_is_on(SB_SCRATCH_PAGE))
		return;
	last->owner = owner;
	last->until_ns = s->capture.now_ns + AGAIN_NS;
	last->start_ns = task->start_boottime;
	last->tid = task->pid;
	last->exec_id = task->self_exec_id;
}

/* In a counter of its own, because another view may run beside, whose cost decides about it. */
static void spent(__u64 since_ns)
{
	sb_stat_add(SB_STAT_FAULTS_NS, bpf_ktime_get_ns() - since_ns);
}

static bool is_thread_of(const struct memory_last *last)
{
	const struct task_struct *task = bpf_get_current_task_btf();

	return last->owner && last->tid == (__u32)task->pid &&
	       last->start_ns == task->start_boottime && last->exec_id == task->self_exec_id &&
	       last->changes == sb_proc_changes(task->tgid);
}

/* Take a fault whose native stack is the same, below which the interpreters may have other frames.
 * Return: the owner's ID; 0: it could not be shipped, which was counted. */
static __u64 take_frames(struct sb_scratch *s, struct sb_fault_record *fault)
{
	const struct sb_stack_id before = s->capture.key.istack;
	struct sb_stack_id *istack = &s->capture.key.istack;

	*istack = (struct sb_stack_id){};
	s->capture.now_ns = fault->now_ns;
	sb_interp_restart(SB_SCRATCH_PAGE);
	sb_interp_walk_all(SB_SCRATCH_PAGE);
	if (istack->lo != before.lo || istack->hi != before.hi)
		return take_fault(&s->capture, fault->where);
	ship_fault(fault);
	return fault->owner;
}

/*
 * A thread that touches new memory in a loop faults at one place again and again. Then the record
 * of the last fault has all that a sample needs. Two things are done again: the memo of walks
 * proves that the native stack is the same, which takes about a third of the time of this function
 * where no interpreter runs; and the frames of interpreters are walked. Return: whether the fault
 * was taken.
 */
static bool take_again(struct memory_last *last, __u64 where)
{
	struct sb_scratch *s = sb_scratch_get(SB_SCRATCH_PAGE);
	struct sb_fault_record fault = { .owner = last->owner, .where = where };

	if (!s || !is_thread_of(last))
		return false;
	fault.now_ns = bpf_ktime_get_ns();
	if (fault.now_ns >= last->until_ns ||
	    bpf_probe_read_kernel(&s->regs, sizeof(s->regs),
				  (void *)bpf_task_pt_regs(bpf_get_current_task_btf())) ||
	    !sb_regs_are_user(&s->regs) || sb_regs_are_compat(&s->regs))
		return false;
	s->walk.pc = sb_regs_pc(&s->regs);
	s->walk.sp = sb_regs_sp(&s->regs);
	s->walk.fp = sb_regs_fp(&s->regs);
	if (!sb_memo_find(SB_SCRATCH_PAGE) || s->stack.id.lo != s->capture.key.ustack.lo ||
	    s->stack.id.hi != s->capture.key.ustack.hi)
		return false;
	if (s->interp.nr_confs)
		last->owner = take_frames(s, &fault);
	else
		ship_fault(&fault);
	spent(fault.now_ns);
	return true;
}

/* Return: sb_fault_record.where without the bits of the fault; 0: the page is not followed. Page 0
 * cannot be mapped by users. */
static __u64 followed(__u64 addr)
{
	__u32 shift = memory_shift_room, cost = memory_shift_cost;
	__u64 hash;

	if (shift < cost)
		shift = cost;
	if (shift > SB_FOLLOW_SHIFT_MAX)
		shift = SB_FOLLOW_SHIFT_MAX;
	hash = sb_window_hash(sb_stack_seed(1), bpf_get_current_pid_tgid() >> 32, addr);
	if ((__s64)addr < 0 || !sb_window_is_followed(hash, shift))
		return 0;
	return (addr & ~SB_FAULT_BITS) | shift;
}

/*
 * Where pages are thinned because following them costs too much, most programs of a build end after
 * one or two faults that are followed. To read their mappings and to look for interpreters in them
 * takes ten times as long as to unwind so few stacks in user space. The first stack of a process is
 * unwound there anyway.
 */
static __always_inline bool is_brief(const struct sb_sample_key *key)
{
	__u64 id = (__u64)key->tgid << 32 | key->exec_id;
	__u32 first = 1, *nr;

	if (!memory_shift_cost || bpf_ktime_get_boot_ns() - key->start_ns >= YOUNG_NS)
		return false;
	nr = bpf_map_lookup_elem(&memory_young, &id);
	if (!nr) {
		/* Where this fails, the next fault counts as the first. */
		bpf_map_update_elem(&memory_young, &id, &first, BPF_ANY);
		return true;
	}
	return __sync_fetch_and_add(nr, 1) < YOUNG_FAULTS;
}

/* The caller has started the sample in SB_SCRATCH_PAGE, of a task that is asked for. */
static __always_inline void on_fault(void *ctx, __u64 where, __u32 sides)
{
	struct sb_capture *capture;
	struct memory_last *last;
	__u64 owner = 0;
	__u32 zero = 0;

	last = bpf_map_lookup_elem(&memory_lasts, &zero);
	if (!last)
		return;
	last->owner = 0;
	last->changes = sb_proc_changes(bpf_get_current_pid_tgid() >> 32);
	if (sb_begin(SB_SCRATCH_PAGE, SB_BEGIN_LATE | SB_BEGIN_ANYBODY, &capture))
		return;
	capture->is_brief = is_brief(&capture->key);
	if (!sb_take_stacks(ctx, SB_SCRATCH_PAGE, sides))
		owner = take_fault(capture, where);
	if (owner && sides == SB_SIDE_USER)
		keep_last(last, owner);
	spent(capture->now_ns);
}

/* Return: whether no page comes by the fault, or none of a process. */
static __always_inline bool is_of_nobody(void)
{
	const struct task_struct *task = bpf_get_current_task_btf();

	return task->pagefault_disabled || (task->flags & PF_KTHREAD);
}

/* Asked before a sample is begun, which takes longer: with targets, most faults are of others. */
static __always_inline bool is_of_others(void)
{
	if (sb_is_asked_for())
		return false;
	sb_stat_add(SB_STAT_FILTERED, 1);
	return true;
}

static __always_inline void on_exception(void *ctx, __u64 addr, __u64 error_code, __u32 sides)
{
	struct memory_last *last;
	__u64 where;
	__u32 zero = 0;

	if (is_of_nobody())
		return;
	where = followed(addr);
	if (!where)
		return;
	if (error_code & FAULT_PROTECTION)
		where |= SB_FAULT_PRESENT;
	last = bpf_map_lookup_elem(&memory_lasts, &zero);
	if (sides == SB_SIDE_USER && last && take_again(last, where))
		return;
	if (is_of_others())
		return;
	sb_start_in_kernel(SB_SCRATCH_PAGE);
	on_fault(ctx, where, sides);
}

/* The kernel's side says nothing but that it is a page fault. */
SEC("?tp_btf/page_fault_user")
int BPF_PROG(memory_user, unsigned long addr, void *regs, unsigned long error_code)
{
	on_exception(ctx, addr, error_code, SB_SIDE_USER);
	return 0;
}

/* The kernel reads or writes memory of the process. */
SEC("?tp_btf/page_fault_kernel")
int BPF_PROG(memory_kernel, unsigned long addr, void *regs, unsigned long error_code)
{
	on_exception(ctx, addr, error_code, SB_SIDE_USER | SB_SIDE_KERNEL);
	return 0;
}

#if defined(__TARGET_ARCH_x86)
#define NR_MREMAP 25 /* arch/x86/entry/syscalls/syscall_64.tbl */
#elif defined(__TARGET_ARCH_arm64)
#define NR_MREMAP 216 /* include/uapi/asm-generic/unistd.h */
#endif

/* The smallest huge page of x86-64 and arm64. */
#define HUGE_BYTES_MIN (2ull << 20)
#define PAGE_BYTES_MAX (64ull << 10)

/*
 * For memory of whole huge pages the kernel looks for room for one more, and takes the next aligned
 * address in it, even if the first one is aligned, where mappings grow downwards, as they do unless
 * stacks are unlimited (__thp_get_unmapped_area() in mm/huge_memory.c, Linux 6.7). @asked: the size
 * that the program asked for.
 */
static __always_inline void find_aligned(struct sb_event_mapped *event, __u64 asked)
{
	/* The rest of the last page is not asked for. */
	const __u64 rest = (event->nr_bytes - asked) % HUGE_BYTES_MIN;
	const __u64 more = event->nr_bytes - asked - rest;

	if (event->nr_bytes <= asked || rest >= PAGE_BYTES_MAX || !more || more & (more - 1))
		return;
	event->addr = (event->addr + more) & ~(more - 1);
	event->nr_bytes = asked + rest;
}

/* Whether the place is that for the pages of mremap(2) is told by the system call that the thread
 * is in. */
static __always_inline void find_moved(struct sb_event_mapped *event)
{
	const struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	struct sb_regs user;

	if (bpf_probe_read_kernel(&user, sizeof(user), regs))
		return;
#if defined(__TARGET_ARCH_x86)
	if (user.orig_ax != NR_MREMAP || sb_regs_are_compat(&user))
		return;
	event->from = user.di;
	event->from_bytes = user.si;
	find_aligned(event, user.dx);
#elif defined(__TARGET_ARCH_arm64)
	if (BPF_CORE_READ(regs, syscallno) != NR_MREMAP || sb_regs_are_compat(&user))
		return;
	event->from = BPF_CORE_READ(regs, orig_x0);
	event->from_bytes = user.regs[1];
	find_aligned(event, user.regs[2]);
#endif
}

/*
 * A place for new memory was found, where old memory may have been. Its pages need no faults of
 * their own: they may come along with that of another page, and are not to be taken for those of
 * before. Raw: not in every kernel.
 */
SEC("?raw_tp/vm_unmapped_area")
int memory_mapped(struct bpf_raw_tracepoint_args *ctx)
{
	const struct vm_unmapped_area_info *info = (const void *)ctx->args[1];
	struct sb_event_mapped event = {
		.hdr = { .kind = SB_EVENT_MAPPED, .nr_bytes = sizeof(event) },
		.addr = ctx->args[0],
		.nr_bytes = BPF_CORE_READ(info, length),
		.now_ns = bpf_ktime_get_ns(),
		.tgid = bpf_get_current_pid_tgid() >> 32,
	};

	if (!event.addr || event.addr & SB_FAULT_BITS || !sb_is_asked_for()) /* or an error */
		return 0;
	find_moved(&event);
	if (sb_event_ship(&event, sizeof(event)))
		sb_stat_add(SB_STAT_FAULTS_FULL, 1);
	return 0;
}

/*
 * Memory is given back. While a process lives, /proc tells that it has gone; when it has ended,
 * nothing does. Tracepoints of system calls cost all calls of the machine something, so these are
 * for runs of a command. Calls that fail are taken for those that do not: their arguments make no
 * sense.
 */
static int give_back(__u64 addr, __u64 nr_bytes)
{
	struct sb_event_mapped event = {
		.hdr = { .kind = SB_EVENT_MAPPED, .nr_bytes = sizeof(event) },
		.addr = addr,
		.nr_bytes = nr_bytes,
		.now_ns = bpf_ktime_get_ns(),
		.tgid = bpf_get_current_pid_tgid() >> 32,
	};

	if (!addr || addr & SB_FAULT_BITS || !nr_bytes || !sb_is_asked_for())
		return 0;
	if (sb_event_ship(&event, sizeof(event)))
		sb_stat_add(SB_STAT_FAULTS_FULL, 1);
	return 0;
}

/* The format of tracepoints sys_enter_*, which is the same in all kernels. */
struct enter_args {
	__u64 common, nr, args[3];
};

SEC("?tracepoint/syscalls/sys_enter_munmap")
int memory_munmap(struct enter_args *ctx)
{
	return give_back(ctx->args[0], ctx->args[1]);
}

SEC("?tracepoint/syscalls/sys_enter_madvise")
int memory_madvise(struct enter_args *ctx)
{
	if (ctx->args[2] != MADV_DONTNEED)
		return 0;
	return give_back(ctx->args[0], ctx->args[1]);
}

SEC("?tracepoint/syscalls/sys_enter_brk")
int memory_brk(struct enter_args *ctx)
{
	const __u64 page_mask = SB_FAULT_BITS;
	__u64 to = (ctx->args[0] + page_mask) & ~page_mask;
	__u64 now = BPF_CORE_READ(bpf_get_current_task_btf(), mm, brk);

	if (!ctx->args[0] || to >= now)
		return 0;
	return give_back(to, now - to);
}

/* A process that nobody asked for is told as well, because its target rule may be gone by now.
 * Where there is no room, /proc tells that it has ended. */
SEC("?tp_btf/sched_process_exit")
int BPF_PROG(memory_exit, struct task_struct *task)
{
	struct sb_event_ended event = {
		.hdr = { .kind = SB_EVENT_ENDED, .nr_bytes = sizeof(event) },
		.start_ns = BPF_CORE_READ(task, group_leader, start_boottime),
		.now_ns = bpf_ktime_get_ns(),
		.peak_pages = BPF_CORE_READ(task, signal, maxrss),
		.tgid = task->tgid,
	};

	if (!BPF_CORE_READ(task, signal, live.counter) && !(task->flags & PF_KTHREAD))
		sb_event_ship(&event, sizeof(event));
	return 0;
}

/* The software event page-faults, where there are no such tracepoints. Whether the page was there
 * is not known. */
SEC("?perf_event")
int memory_counter(struct bpf_perf_event_data *ctx)
{
	__u64 where = followed(ctx->addr);

	if (!where || is_of_nobody() || is_of_others())
		return 0;
	sb_start_at(ctx, SB_SCRATCH_PAGE);
	on_fault(ctx, where, SB_SIDE_USER | SB_SIDE_KERNEL);
	return 0;
}
