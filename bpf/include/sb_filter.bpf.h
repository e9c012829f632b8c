/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For core: who is sampled. */
#ifndef SB_FILTER_BPF_H
#define SB_FILTER_BPF_H

#include "vmlinux.h"

/* The current task; sb_is_asked_for() where its ids and its name are not at hand. @comm: SB_COMM_LEN
 * bytes. Return: 1 when the task is asked for, 0 when not. */
int sb_filter_accepts(__u32 tgid, __u32 tid, const char *comm);

/* The same for a task that need not be the current one. */
int sb_filter_accepts_task(struct task_struct *task, const char *comm);

/* A process runs another program: wake its rule if it sleeps. */
int sb_filter_exec(__u32 tgid);

/* A process is gone, and so is its rule: a run that follows children sees many of them. */
int sb_filter_gone(__u32 tgid);

/* A process was born: hand its parent's rule on. */
int sb_filter_fork(__u32 parent_tgid, __u32 child_tgid);

#endif
