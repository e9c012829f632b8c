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

static __always_inline void on_fault(void *ctx, __u64 addr, __u64 error_code, __u32 sides)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 op = op_of(error_code);
	struct sb_capture *capture;
	__u64 file, weight;

	if (task->pagefault_disabled || (task->flags & PF_KTHREAD))
		return;
	if (!sb_io_layer_wants(op == SB_IO_OP_FAULT_WRITE ? SB_IO_WRITE : SB_IO_READ))
		return;
	sb_start_in_kernel(SB_SCRATCH_FAULT);
	if (sb_begin(SB_SCRATCH_FAULT, 0, &capture))
		return;
	file = file_at(task, addr);
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

/* The kernel's side says nothing but that it is a page fault. */
SEC("?tp_btf/page_fault_user")
int BPF_PROG(io_fault_user, unsigned long addr, void *regs, unsigned long error_code)
{
	on_fault(ctx, addr, error_code, SB_SIDE_USER);
	return 0;
}

/* A system call reads or writes memory of the process. Addresses of the kernel are in no mapping. */
SEC("?tp_btf/page_fault_kernel")
int BPF_PROG(io_fault_kernel, unsigned long addr, void *regs, unsigned long error_code)
{
	if ((__s64)addr >= 0)
		on_fault(ctx, addr, error_code, SB_SIDE_USER | SB_SIDE_KERNEL);
	return 0;
}
