// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * View "io", layer "fault": a sample for each page fault in memory that is mapped from a file.
 *
 * Our own programs read the memory of processes, which faults too: with page faults disabled, by
 * which it is told apart, before anything of the record is touched.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/core/sb_io_layers.bpf.h"
#include "bpf/core/sb_util.bpf.h"

/* Of the error code of x86: Intel SDM volume 3, 4.7. */
#define FAULT_WRITES  (1u << 1)
#define FAULT_FETCHES (1u << 4)

struct fault_vma {
	__u64 file;
};

/* Under the lock of the process's mappings: short. */
static long io_fault_vma(struct task_struct *task, struct vm_area_struct *vma, void *data)
{
	struct fault_vma *ret = data;

	ret->file = (__u64)BPF_CORE_READ(vma, vm_file);
	return 0;
}

/* Return: the file that is mapped at @addr; 0: none, or it is not known, which is counted. */
static __u64 file_at(struct task_struct *task, __u64 addr)
{
	struct fault_vma vma = {};
	long err = bpf_find_vma(task, addr, io_fault_vma, &vma, 0);

	if (err == -EBUSY)
		sb_stat_add(SB_STAT_VMA_BUSY, 1);
	else if (!vma.file)
		sb_stat_add(SB_STAT_FAULT_ANON, 1);
	return vma.file;
}

static __u32 op_of(__u64 error_code)
{
	if (error_code & FAULT_FETCHES)
		return SB_IO_OP_FAULT_EXEC;
	return error_code & FAULT_WRITES ? SB_IO_OP_FAULT_WRITE : SB_IO_OP_FAULT_READ;
}

/* @op: SB_IO_OP_FAULT_* */
static __always_inline bool is_wanted(__u32 op)
{
	const struct task_struct *task = bpf_get_current_task_btf();

	if (task->pagefault_disabled || (task->flags & PF_KTHREAD))
		return false;
	return sb_io_layer_wants(op == SB_IO_OP_FAULT_WRITE ? SB_IO_WRITE : SB_IO_READ);
}

/* The caller has started the sample in SB_SCRATCH_FAULT. */
static __always_inline void on_fault(void *ctx, __u64 addr, __u32 op, __u32 sides)
{
	struct sb_capture *capture;
	__u64 file, weight;

	if (sb_begin(SB_SCRATCH_FAULT, 0, &capture))
		return;
	file = file_at(bpf_get_current_task_btf(), addr);
	if (!file)
		return;
	weight = sb_thin(cfg_io_weight == SB_IO_COUNT ? 1 : cfg_layer_page_bytes);
	if (!weight) {
		sb_spent_some(capture->now_ns);
		return;
	}
	capture->key.object = sb_io_file(file, SB_SCRATCH_FAULT);
	if (capture->key.object == SB_IO_UNWANTED) {
		sb_stat_add(SB_STAT_OTHER_STATE, 1);
		return;
	}
	capture->key.op = op;
	if (!sb_take_stacks(ctx, SB_SCRATCH_FAULT, sides))
		sb_account(capture, weight);
	sb_spent(capture->now_ns);
}

static __always_inline void on_exception(void *ctx, __u64 addr, __u64 error_code, __u32 sides)
{
	const __u32 op = op_of(error_code);

	if (!is_wanted(op))
		return;
	sb_start_in_kernel(SB_SCRATCH_FAULT);
	on_fault(ctx, addr, op, sides);
}

/* The kernel's side says nothing but that it is a page fault. */
SEC("?tp_btf/page_fault_user")
int BPF_PROG(io_fault_user, unsigned long addr, void *regs, unsigned long error_code)
{
	on_exception(ctx, addr, error_code, SB_SIDE_USER);
	return 0;
}

/* A system call reads or writes memory of the process. Addresses of the kernel are in no
 * mapping. */
SEC("?tp_btf/page_fault_kernel")
int BPF_PROG(io_fault_kernel, unsigned long addr, void *regs, unsigned long error_code)
{
	if ((__s64)addr >= 0)
		on_exception(ctx, addr, error_code, SB_SIDE_USER | SB_SIDE_KERNEL);
	return 0;
}

#if defined(__TARGET_ARCH_arm64)
/*
 * Return: whether the instruction @insn, which accesses memory, writes to it. Arm ARM, C4.1: in a
 * load or store, bit 27 is 1 and bit 25 is 0. Bit 22 is 0 in a store; in an instruction that moves
 * one general register, bits 22 and 23 both are. Atomic instructions count as stores, because they
 * need the permission to write.
 */
static bool is_store(__u32 insn)
{
	const bool is_general =
		(insn & 0x3c000000) == 0x38000000 || (insn & 0x3f000000) == 0x19000000;

	if ((insn & 0xffffffe0) == 0xd50b7420) /* dc zva, with which memory is cleared */
		return true;
	if ((insn & 0x0a000000) != 0x08000000 ||
	    (insn & 0x3b000000) == 0x18000000) /* ldr =literal */
		return false;
	if ((insn & 0x3f200c00) == 0x38200000 && (insn & 0x3ffffc00) != 0x38bfc000) /* not ldapr */
		return true;
	if ((insn & 0x3fa07c00) == 0x08a07c00) /* cas */
		return true;
	return !(insn & (is_general ? 3u << 22 : 1u << 22));
}

static bool is_write_at(__u64 pc)
{
	__u32 insn = 0;
	long err;

	if ((__s64)pc < 0)
		err = bpf_probe_read_kernel(&insn, sizeof(insn), (void *)pc);
	else
		err = bpf_probe_read_user(&insn, sizeof(insn), (void *)pc);
	return !err && is_store(insn);
}
#else
static bool is_write_at(__u64 pc)
{
	return false; /* there is a tracepoint instead */
}
#endif

/*
 * The software event page-faults, for kernels without such tracepoints. It has the registers of the
 * code that faulted, but does not say what the code did to the memory.
 */
SEC("?perf_event")
int io_fault_counter(struct bpf_perf_event_data *ctx)
{
	const __u64 addr = ctx->addr;
	const __u64 pc = sb_regs_pc((const struct sb_regs *)&ctx->regs);
	__u32 op = SB_IO_OP_FAULT_READ;

	if (pc == addr)
		op = SB_IO_OP_FAULT_EXEC;
	else if (is_write_at(pc))
		op = SB_IO_OP_FAULT_WRITE;
	if ((__s64)addr < 0 || !is_wanted(op))
		return 0;
	sb_start_at(ctx, SB_SCRATCH_FAULT);
	on_fault(ctx, addr, op, SB_SIDE_USER | SB_SIDE_KERNEL);
	return 0;
}
