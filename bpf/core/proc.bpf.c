// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the BPF side itself must see of processes; everything else comes from side-band events. */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "sb_filter.bpf.h"

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
