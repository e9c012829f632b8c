// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Programs for the events of processes (fork, exec, end), of which they take only what the filters
 * and the unwinder need. User space learns that processes exist, and what they map, from the
 * side-band records that capture/procwatch.c reads.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/core/sb_filter.bpf.h"
#include "bpf/core/sb_unwind.bpf.h"

SEC("?tp_btf/sched_process_fork")
int BPF_PROG(proc_fork, struct task_struct *parent, struct task_struct *child)
{
	if (parent->tgid != child->tgid)
		sb_filter_fork(parent->tgid, child->tgid);
	return 0;
}

SEC("?tp_btf/sched_process_exec")
int BPF_PROG(proc_exec, struct task_struct *task)
{
	return sb_filter_exec(task->tgid);
}

/* Freed, not only ended: what it does on its way out is still sampled. */
SEC("?tp_btf/sched_process_free")
int BPF_PROG(proc_free, struct task_struct *task)
{
	if (task->pid == task->tgid)
		sb_filter_gone(task->tgid);
	return 0;
}

/*
 * A place for new memory was found, as for a library: there is no event for what it was unmapped
 * from before, and a library of the same size may come. Raw: not in every kernel.
 */
SEC("?raw_tp/vm_unmapped_area")
int proc_mapped(struct bpf_raw_tracepoint_args *ctx)
{
	const struct vm_unmapped_area_info *info = (const void *)ctx->args[1];
	__u64 addr = ctx->args[0], len = BPF_CORE_READ(info, length);

	if (addr && !(addr & 4095)) /* or it is an error */
		sb_unwind_mapped(bpf_get_current_pid_tgid() >> 32, addr, len);
	return 0;
}
