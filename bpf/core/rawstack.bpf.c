// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * When a process or a binary is sampled for the first time, there is no unwind table yet. In some
 * milliseconds there will be one, but this stack will be gone. So a piece of the stack is
 * captured, and user space walks it.
 */
#include <bpf/bpf_core_read.h>

#include "bpf/core/sb_returns.bpf.h"
#include "bpf/core/sb_unwind.bpf.h"

#define PAGE_BYTES     4096u
/* A walk that takes the first function for one with a caller, or a frame pointer, finds the same
 * there as it would in the process. */
#define ROOT_BYTES     64u
/* Probed returns that are pending, newest first: fewer than the kernel allows, for the verifier's
 * sake. */
#define RETURNS_MAX    16
#define NR_PIECES      (SB_RAW_BYTES_MAX / PAGE_BYTES)
/* A CPU may take 32 MiB of pieces a second, and 16 MiB at once: a program that begins with a burst
 * of I/O has little time for its tables. Most are 2 to 8 KiB. */
#define RAW_NS_PER_KIB (1000000000ull / (32 << 10))
#define RAW_BURST_NS   (16384 * RAW_NS_PER_KIB)

/* The view says which kinds of programs take pieces; those have records, of 64 KiB each. */
const volatile __u32 cfg_nr_raw_slots = 1;
const volatile __u32 cfg_raw_slot[SB_SCRATCH_MAX] = {};

/* The command of the run; 0: none. */
const volatile __u32 cfg_first_tgid = 0;

struct raw_record {
	struct sb_event_raw event;
	__u8 stack[SB_RAW_BYTES_MAX];
};

/* By CPU and slot. Not a per-CPU array, whose elements are 32 KiB at most (PCPU_MIN_UNIT_SIZE). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set before load: cfg_nr_raw_slots for each CPU */
	__type(key, __u32);
	__type(value, struct raw_record);
} raw_records SEC(".maps");

/* When the budget of this CPU will be full again (generic cell rate algorithm, ITU-T I.371). */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SB_SCRATCH_MAX);
	__type(key, __u32);
	__type(value, __u64);
} raw_full_ns SEC(".maps");

static __u64 *budget(__u32 slot, __u64 now_ns)
{
	__u64 *full_ns = bpf_map_lookup_elem(&raw_full_ns, &slot);

	if (full_ns && *full_ns < now_ns)
		*full_ns = now_ns;
	return full_ns && *full_ns - now_ns <= RAW_BURST_NS ? full_ns : NULL;
}

/* Return: the record of @slot on this CPU; NULL: the slot has none. */
static __always_inline struct raw_record *record_of(__u32 slot)
{
	__u32 at = bpf_get_smp_processor_id() * cfg_nr_raw_slots;

	if (slot >= SB_SCRATCH_MAX)
		return NULL;
	at += cfg_raw_slot[slot];
	return bpf_map_lookup_elem(&raw_records, &at);
}

/*
 * Append the piece up to the end of its page, or up to @root. Global, so that the verifier examines
 * it once and not for each piece. Return: 0; or a negative errno: there is none.
 */
__noinline int sb_rawstack_piece(__u32 slot, __u64 root)
{
	struct raw_record *record = record_of(slot);
	__u32 at, len;
	__u64 addr;

	if (!record)
		return -ENOENT;
	at = record->event.nr_stack_bytes;
	addr = record->event.stack_addr + at;
	len = PAGE_BYTES - ((__u32)addr & (PAGE_BYTES - 1));
	if (root - addr < len)
		len = root - addr;
	sb_opaque(at);
	sb_opaque(len);
	if (at > SB_RAW_BYTES_MAX - PAGE_BYTES || len > PAGE_BYTES || !len)
		return -ENOENT;
	if (!bpf_probe_read_user(&record->stack[at], len, (const void *)addr))
		record->event.nr_stack_bytes = at + len;
	else if (at)
		return -EFAULT;
	else
		record->event.stack_addr = addr + len;
	return 0;
}

/*
 * From the red zone up, page by page, until one cannot be read; those that cannot be read yet, at
 * the beginning, are passed over: a function that has just made room on the stack faults there. On
 * a process's first stack, what the kernel put there at exec lies above all frames: arguments and
 * environment, which are more than the frames of most programs.
 */
static void read_stack(struct raw_record *record, __u32 slot, __u64 sp)
{
	__u64 addr = sp - SB_RED_ZONE_BYTES, root;
	__u32 i;

	root = BPF_CORE_READ(bpf_get_current_task_btf(), mm, start_stack);
	root = root < sp ? addr + 2 * SB_RAW_BYTES_MAX : root + ROOT_BYTES;

	record->event.stack_addr = addr;
	record->event.nr_stack_bytes = 0;
	for (i = 0; i < NR_PIECES; i++)
		if (sb_rawstack_piece(slot, root))
			break;
}

#if defined(__TARGET_ARCH_x86)
/* Restore the next older return. Return: 0; or a negative errno: there is none. */
__noinline int sb_rawstack_return(__u32 slot)
{
	struct raw_record *record = record_of(slot);
	struct sb_scratch *s = sb_scratch_get(slot);
	__u64 at, *word;

	if (!record || !s || sb_returns_next(&s->map.returns))
		return -ENOENT;
	at = s->map.returns.stack - record->event.stack_addr;
	sb_opaque(at);
	if (at > SB_RAW_BYTES_MAX - sizeof(*word))
		return 0;
	word = (__u64 *)&record->stack[at];
	if (*word == s->map.returns.trampoline)
		*word = s->map.returns.addr;
	return 0;
}
#endif

/*
 * Put the true return addresses into the piece, because user space cannot ask for them. On x86-64 a
 * return address is where the stack pointer was at the entry; on arm64 nobody knows where it is.
 * User space ends its walk at one that is not restored (SB_STACK_RETURN_PROBE).
 */
static void restore_returns(struct sb_scratch *s, __u32 slot)
{
#if defined(__TARGET_ARCH_x86)
	struct sb_returns before = s->map.returns;
	__u32 i;

	if (!before.trampoline)
		return;
	sb_returns_begin(s, bpf_get_current_task_btf());
	for (i = 0; i < RETURNS_MAX; i++)
		if (sb_rawstack_return(slot))
			break;
	s->map.returns = before;
#endif
}

static int ship_raw(struct raw_record *record)
{
	__u32 nr_bytes = record->event.nr_stack_bytes;

	sb_opaque(nr_bytes);
	if (nr_bytes > SB_RAW_BYTES_MAX)
		return -E2BIG;
	nr_bytes += sizeof(record->event);
	record->event.hdr.kind = SB_EVENT_RAW;
	record->event.hdr.nr_bytes = nr_bytes;
	return sb_event_ship(record, nr_bytes);
}

__noinline int sb_rawstack_capture(__u32 slot)
{
	struct raw_record *record = record_of(slot);
	struct sb_scratch *s = sb_scratch_get(slot);
	__u64 *full_ns, nr_quarters;

	if (!s || !record)
		return -ENOENT;
	full_ns = budget(slot, s->capture.now_ns);
	if (!full_ns) {
		sb_stat_add(SB_STAT_RAW_LIMIT, 1);
		return -EBUSY;
	}
	/* The last quarter is for stacks, which are small, and lost where there is no room. The one
	 * before is the command's: all its stacks are first ones, while others may have been there
	 * for long. */
	nr_quarters = cfg_first_tgid && cfg_first_tgid != s->capture.key.tgid ? 2 : 3;
	if (sb_events_filled_quarters() >= nr_quarters) {
		sb_stat_add(SB_STAT_RAW_FULL, 1);
		return -EBUSY;
	}
	record->event.pc = sb_regs_pc(&s->regs);
	read_stack(record, slot, sb_regs_sp(&s->regs));
	restore_returns(s, slot);
	*full_ns += (record->event.nr_stack_bytes + 1023) / 1024 * RAW_NS_PER_KIB;
	sb_stack_fresh_id(s->capture.now_ns, &record->event.id);
	record->event.now_ns = s->capture.now_ns;
	record->event.start_ns = s->capture.key.start_ns;
	record->event.tgid = s->capture.key.tgid;
	record->event.exec_id = s->capture.key.exec_id;
	record->event.flags = s->stack.flags;
	record->event.thread_pointer = 0;
	record->event.trampoline = s->map.returns.trampoline;
	sb_regs_by_dwarf(&s->regs, record->event.regs);
	if (ship_raw(record)) {
		sb_stat_add(SB_STAT_RAW_FULL, 1);
		return -EBUSY;
	}
	sb_stat_add(SB_STAT_RAW, 1);
	s->stack.id = record->event.id;
	return 0;
}

/* See sb_rawstack_reach(). @end: where the stack may end */
static __u64 bytes_up_to(__u64 sp, __u64 end)
{
	__u64 nr = end - sp + SB_RED_ZONE_BYTES + ROOT_BYTES;

	return end >= sp && nr < SB_RAW_BYTES_MAX ? nr : SB_RAW_BYTES_MAX;
}

__hidden __u32 sb_rawstack_reach(const struct task_struct *task, __u64 sp, __u64 thread_pointer)
{
	__u64 all = bytes_up_to(sp, BPF_CORE_READ(task, mm, start_stack));
	__u64 own = bytes_up_to(sp, thread_pointer);

	return own < all ? own : all;
}
