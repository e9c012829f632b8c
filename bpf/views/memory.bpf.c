// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * View "memory": which code brought the memory that is resident. Each page fault of user code, and of the
 * kernel in user memory, is shipped to user space with its page (bpf/abi/sb_abi_memory.h), which asks
 * /proc/PID/pagemap what became of the page (user/capture/resident.h).
 *
 * Nothing is accounted here, so faults count after the end of the run, too: user space looks at the pages
 * when the programs are still attached, and whatever it finds present has its fault in the ring before.
 *
 * Our own programs read the memory of processes, which faults too: with page faults disabled, by which
 * it is told apart, before anything of the record is touched. No page comes by such a fault.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/abi/sb_abi_memory.h"
#include "bpf/core/sb_sample.bpf.h"
#include "bpf/core/sb_stack.bpf.h"
#include "bpf/core/sb_util.bpf.h"

/* Of the error code of x86: Intel SDM volume 3, 4.7. */
#define FAULT_PROTECTION 1u

/* One window in 2^n is followed: of these two, the higher one. Written by user space: for the table of
 * pages, and by --max-overhead. */
__u32 memory_shift_room = 0;
__u32 memory_shift_cost = 0;

/* IDs of owners that were shipped. When it is full, the least recently used ones are shipped again. */
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

static void ship_fault(const struct sb_capture *capture, __u64 where)
{
	struct sb_event_fault fault = {
		.hdr = { .kind = SB_EVENT_FAULT, .nr_bytes = sizeof(fault) },
		.owner = owner_id(&capture->key),
		.where = where,
		.now_ns = capture->now_ns,
	};

	if (ship_owner(capture, fault.owner) || sb_event_ship(&fault, sizeof(fault)))
		sb_stat_add(SB_STAT_FAULTS_FULL, 1);
}

/* Return: sb_event_fault.where without the bits of the fault; 0: the page is not followed. Page 0 cannot
 * be mapped by users. */
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

/* The caller has started the sample in SB_SCRATCH_PAGE. */
static __always_inline void on_fault(void *ctx, __u64 addr, __u64 bits, __u32 sides)
{
	struct sb_capture *capture;
	__u64 where = followed(addr);

	if (!where || sb_begin(SB_SCRATCH_PAGE, SB_BEGIN_LATE, &capture))
		return;
	if (!sb_take_stacks(ctx, SB_SCRATCH_PAGE, sides))
		ship_fault(capture, where | bits);
	sb_spent(capture->now_ns);
}

/* Return: whether no page comes by the fault, or none of a process. */
static __always_inline bool is_of_nobody(void)
{
	const struct task_struct *task = bpf_get_current_task_btf();

	return task->pagefault_disabled || (task->flags & PF_KTHREAD);
}

static __always_inline void on_exception(void *ctx, __u64 addr, __u64 error_code, __u32 sides)
{
	if (is_of_nobody())
		return;
	sb_start_in_kernel(SB_SCRATCH_PAGE);
	on_fault(ctx, addr, error_code & FAULT_PROTECTION ? SB_FAULT_PRESENT : 0, sides);
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

/* Whether the place is that for the pages of mremap(2) is told by the system call that the thread is in. */
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
#elif defined(__TARGET_ARCH_arm64)
	if (BPF_CORE_READ(regs, syscallno) != NR_MREMAP || sb_regs_are_compat(&user))
		return;
	event->from = BPF_CORE_READ(regs, orig_x0);
	event->from_bytes = user.regs[1];
#endif
}

/*
 * A place for new memory was found, where old memory may have been. Its pages need no faults of their own:
 * they may come along with that of another page, and are not to be taken for those of before. Raw: not
 * in every kernel.
 */
SEC("?raw_tp/vm_unmapped_area")
int memory_mapped(struct bpf_raw_tracepoint_args *ctx)
{
	const struct vm_unmapped_area_info *info = (const void *)ctx->args[1];
	struct sb_event_mapped event = {
		.hdr = { .kind = SB_EVENT_MAPPED, .nr_bytes = sizeof(event) },
		.addr = ctx->args[0],
		.nr_bytes = BPF_CORE_READ(info, length),
		.tgid = bpf_get_current_pid_tgid() >> 32,
	};

	if (!event.addr || event.addr & SB_FAULT_BITS || !sb_is_asked_for()) /* or an error */
		return 0;
	find_moved(&event);
	if (sb_event_ship(&event, sizeof(event)))
		sb_stat_add(SB_STAT_FAULTS_FULL, 1);
	return 0;
}

/* The software event page-faults, where there are no such tracepoints. Whether the page was there is not
 * known. */
SEC("?perf_event")
int memory_counter(struct bpf_perf_event_data *ctx)
{
	__u64 addr = ctx->addr;

	if (is_of_nobody())
		return 0;
	sb_start_at(ctx, SB_SCRATCH_PAGE);
	on_fault(ctx, addr, 0, SB_SIDE_USER | SB_SIDE_KERNEL);
	return 0;
}
