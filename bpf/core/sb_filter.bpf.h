/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For core: the filters that decide which tasks are sampled: a task is, if any allow rule matches
 * (or there is none) and no deny rule matches. There are rules for IDs of processes and of threads,
 * for real user IDs, for cgroups with all below them, and for names. Implemented in
 * core/filter.bpf.c; runs in BPF programs, on any CPU at the same time. IDs are those of the
 * initial namespaces of PIDs and users. No pointer may be NULL, and none is kept. User space has
 * written the rules before. Deciding changes and counts nothing: who leaves an event out counts it
 * (SB_STAT_FILTERED). The last three functions keep the rules of processes up to date; they are for
 * core/proc.bpf.c, at the tracepoints sched_process_fork, _exec and _free.
 */
#ifndef SB_FILTER_BPF_H
#define SB_FILTER_BPF_H

#include "vmlinux.h"

/* Return: the rules that there are for the ID of a process and for that of its thread: bits
 * (SB_RULE_*) of both together, 0 if there are none; for sb_filter_accepts(). */
__u32 sb_filter_pid_rules(__u32 tgid, __u32 tid);
/*
 * Decide about the current task. @rules: what sb_filter_pid_rules() returned for it
 * (sb_is_asked_for() of sb_sample.bpf.h looks them up). @comm: its name, SB_COMM_LEN bytes, which a
 * NUL ends if it is shorter. User and cgroup are looked up here.
 * Return: 1 when the task is to be sampled, 0 when not.
 */
int sb_filter_accepts(__u32 rules, const char *comm);

/*
 * Decide about @task, which need not be the current one; all its rules are looked up here. @comm:
 * its name, SB_COMM_LEN bytes, which a NUL ends if it is shorter.
 * Return: 1 when the task is to be sampled, 0 when not.
 */
int sb_filter_accepts_task(struct task_struct *task, const char *comm);

/*
 * Process @tgid has called execve(): its rule, if it has SB_RULE_AT_EXEC, applies from now on.
 * Return: 0, also when there is no rule.
 */
int sb_filter_exec(__u32 tgid);

/*
 * Process @tgid has ended, and the kernel frees it: delete its rule, if it has one. A run that
 * follows children sees many of them. The return value has no meaning.
 */
int sb_filter_gone(__u32 tgid);

/*
 * A process, not a thread, was forked: the child gets the rule of its parent if that has
 * SB_RULE_FOLLOW and applies already (see SB_RULE_AT_EXEC); otherwise any rule under the child's ID
 * is deleted, which a process that had the ID before has left. If the table is full, the child has
 * no rule, which is counted (SB_STAT_FORK_FULL). The return value has no meaning.
 */
int sb_filter_fork(__u32 parent_tgid, __u32 child_tgid);

#endif
