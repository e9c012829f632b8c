// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* View "io": what its layers below the system call have in common. */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>

#include "bpf/core/sb_io_layers.bpf.h"
#include "bpf/core/sb_util.bpf.h"

/* <asm/fcntl.h>, <asm/unistd.h> */
#if defined(__TARGET_ARCH_x86)
#define O_DIRECT   00040000
#define NR_READ	   0
#define NR_PREAD64 17
#elif defined(__TARGET_ARCH_arm64)
#define O_DIRECT   0200000
#define NR_READ	   63
#define NR_PREAD64 67
#endif

#define REGS_WORDS    (sizeof(struct sb_regs) / sizeof(__u64))
/* Of the stack, from its top: two calls from one function with the same registers, but by another
 * way, differ in their return addresses. */
#define STACK_WORDS   32
/* The events of one call follow one another by less than that. A call that is taken for another one
 * costs a capture. */
#define SAME_CALL_NS  20000
/* Where the last 2 GB of all addresses begin: in masks, not where pages are described. */
#define PAGE_MASK_MIN 0xffffffff80000000ull

const volatile __u32 cfg_layer_dirs = 0; /* SB_IO_*; 0: all */
const volatile __u32 cfg_layer_page_bytes = 4096;

struct io_layer_record {
	struct sb_io_captured last[SB_IO_EVENT_MAX];
	struct sb_regs regs;
	__u64 stack[STACK_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct io_layer_record);
} io_layer_records SEC(".maps");

__hidden bool sb_io_layer_wants(__u32 dir)
{
	if (cfg_io_weight == SB_IO_BYTES && dir == SB_IO_NEITHER)
		return false;
	return !cfg_layer_dirs || (cfg_layer_dirs & dir);
}

/* The registers with which the current task entered the kernel. Return: whether there are any. */
static bool user_regs(struct sb_regs *ret)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (task->flags & (PF_KTHREAD | PF_IO_WORKER))
		return false;
	if (bpf_probe_read_kernel(ret, sizeof(*ret), (void *)bpf_task_pt_regs(task)))
		return false;
	return sb_regs_are_user(ret);
}

/* The number of the system call in progress; negative: none, or of another kind of program. */
static __s64 call_nr(const struct sb_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return sb_regs_are_compat(regs) ? -1 : (__s64)regs->orig_ax;
#elif defined(__TARGET_ARCH_arm64)
	return sb_regs_are_compat(regs) ? -1 : (__s64)regs->regs[8];
#endif
}

/* Arguments of a system call. arm64: the first one is overwritten only when the call returns. */
static __u64 call_arg(const struct sb_regs *regs, __u32 arg)
{
#if defined(__TARGET_ARCH_x86)
	return arg == 0 ? regs->di : arg == 1 ? regs->si : arg == 2 ? regs->dx : regs->r10;
#elif defined(__TARGET_ARCH_arm64)
	return arg == 0	  ? regs->regs[0]
	       : arg == 1 ? regs->regs[1]
	       : arg == 2 ? regs->regs[2]
			  : regs->regs[3];
#endif
}

static __u64 user_sp(const struct sb_regs *regs)
{
	return regs->sp;
}

static struct io_layer_record *record(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&io_layer_records, &zero);
}

/*
 * A name for the system call, or page fault, that the current task is in: by its registers, the top
 * of its stack, where it is in the file, and how often it has left a CPU, so that the next call is
 * another one though it is made from the same place. There is no number of a call to go by which
 * would cost other calls nothing. Two calls have one name if all of this is equal and their callers
 * differ only beyond the top of the stack; that they also follow one another at once is left to
 * chance. Return: 0: no name.
 */
__noinline __u64 sb_io_call_name(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct io_layer_record *r = record();
	struct file *file;
	__u64 hash;
	__u32 i;

	if (!r || !user_regs(&r->regs))
		return 0;
	if (bpf_probe_read_user(r->stack, sizeof(r->stack), (void *)user_sp(&r->regs)))
		return 0;
	hash = sb_hash_word(task->nvcsw + task->nivcsw, (__u64)bpf_get_current_pid_tgid());
	for (i = 0; i < REGS_WORDS; i++)
		hash = sb_hash_word(hash, ((const __u64 *)&r->regs)[i]);
	for (i = 0; i < STACK_WORDS; i++)
		hash = sb_hash_word(hash, r->stack[i]);
	file = (void *)sb_io_file_of_fd(task, call_arg(&r->regs, 0));
	if (file && call_nr(&r->regs) >= 0)
		hash = sb_hash_word(hash, BPF_CORE_READ(file, f_pos));
	return hash | 1;
}

__hidden int sb_io_layer_capture(void *ctx, __u32 event, struct sb_io_captured **ret_captured)
{
	struct io_layer_record *r = record();
	struct sb_io_captured *last;
	struct sb_capture *capture;
	bool is_same;
	__u64 call;
	int err;

	if (!r || event >= SB_IO_EVENT_MAX)
		return -ENOENT;
	last = &r->last[event];
	sb_start_in_kernel(SB_SCRATCH_CALL);
	err = sb_begin(SB_SCRATCH_CALL, 0, &capture);
	if (err)
		return err;
	*ret_captured = last;
	call = sb_io_call_name();
	is_same = call && call == last->call && capture->now_ns - last->seen_ns < SAME_CALL_NS;
	last->seen_ns = capture->now_ns;
	if (is_same)
		return 0;
	err = sb_take_stacks(ctx, SB_SCRATCH_CALL, SB_SIDE_USER | SB_SIDE_KERNEL);
	if (err)
		return err;
	last->capture = *capture;
	last->call = call;
	last->object = last->inode = 0;
	return 0;
}

/* It may be any of the first three arguments, and whatever is no descriptor does not lead to this
 * very inode. */
__noinline __u64 sb_io_call_file(__u64 inode)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct io_layer_record *r = record();
	struct file *file;
	__u32 arg;

	if (!r || !user_regs(&r->regs) || call_nr(&r->regs) < 0)
		return 0;
	for (arg = 0; arg < 3; arg++) {
		file = (void *)sb_io_file_of_fd(task, call_arg(&r->regs, arg));
		if (file && (__u64)BPF_CORE_READ(file, f_inode) == inode)
			return (__u64)file;
	}
	return 0;
}

__noinline __u64 sb_io_direct_file(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct io_layer_record *r = record();
	struct file *file;

	if (!r || !user_regs(&r->regs) || call_nr(&r->regs) < 0)
		return 0;
	file = (void *)sb_io_file_of_fd(task, call_arg(&r->regs, 0));
	if (!file || !(BPF_CORE_READ(file, f_flags) & O_DIRECT))
		return 0;
	return (__u64)file;
}

__hidden int sb_io_call_range(__u64 file_addr, __u64 *ret_begin, __u64 *ret_end)
{
	const struct file *file = (void *)file_addr;
	struct io_layer_record *r = record();
	__u64 pos;
	__s64 nr;

	if (!r || !user_regs(&r->regs))
		return -ENOENT;
	nr = call_nr(&r->regs);
	if (nr == NR_READ)
		pos = BPF_CORE_READ(file, f_pos); /* moved on when the call is done */
	else if (nr == NR_PREAD64)
		pos = call_arg(&r->regs, 3);
	else
		return -ENOENT;
	*ret_begin = pos;
	*ret_end = pos + call_arg(&r->regs, 2);
	return 0;
}

/*
 * A page of several that belong together says which is the first: by its address, or since 7.2 by a
 * mask for its own (d6746190bbf3 "mm: rework compound_head() for power-of-2 sizeof(struct page)"),
 * whose upper bits are set; no struct page has such an address.
 */
static const struct page *head_of(const struct page *page)
{
	const struct page___7_2 *newer = (const void *)page;
	__u64 info;

	if (bpf_core_field_exists(newer->compound_info))
		info = BPF_CORE_READ(newer, compound_info);
	else
		info = BPF_CORE_READ(page, compound_head);
	if (!(info & 1))
		return page;
	return (const void *)(info >= PAGE_MASK_MIN ? (__u64)page & info : info - 1);
}

__noinline __u64 sb_io_inode_of_page(__u64 page_addr)
{
	const struct page *page = (void *)page_addr;
	__u64 mapping;

	if (!page)
		return 0;
	page = head_of(page);
	mapping = (__u64)BPF_CORE_READ(page, mapping);
	if (!mapping || (mapping & 3)) /* PAGE_MAPPING_FLAGS: anonymous and other memory */
		return 0;
	return (__u64)BPF_CORE_READ((const struct address_space *)mapping, host);
}
