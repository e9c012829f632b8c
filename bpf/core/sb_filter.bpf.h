/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For core: the filters that decide which tasks are sampled. Implemented in core/filter.bpf.c. */
#ifndef SB_FILTER_BPF_H
#define SB_FILTER_BPF_H

#include "vmlinux.h"

/*
 * Decide about the current task. sb_is_asked_for() does it without IDs and name at hand.
 * @comm: its name, SB_COMM_LEN bytes. Return: 1 when the task is to be sampled, 0 when not.
 */
int sb_filter_accepts(__u32 tgid, __u32 tid, const char *comm);

/* The same for a task that need not be the current one. */
int sb_filter_accepts_task(struct task_struct *task, const char *comm);

/* A process called execve(): its rule applies from now on if it was waiting for that. Return: 0. */
int sb_filter_exec(__u32 tgid);

/*
 * A process has ended: delete its rule. A run that follows children sees many of them. The return
 * value has no meaning.
 */
int sb_filter_gone(__u32 tgid);

/* A process was forked: give it the rule of its parent. A full table is counted. */
int sb_filter_fork(__u32 parent_tgid, __u32 child_tgid);

#endif
