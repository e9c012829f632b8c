// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which tasks are sampled: any allow rule admits a task, and any deny rule excludes it. */
#include <bpf/bpf_core_read.h>

#include "bpf/core/sb_filter.bpf.h"
#include "bpf/core/sb_proc_cache.bpf.h"
#include "bpf/core/sb_sample.bpf.h"
#include "bpf/core/sb_util.bpf.h"

/* Of a cgroup below the root; the kernel has no limit of its own (cgroup.max.depth). */
#define CGROUP_LEVELS_MAX 32

const volatile __u32 cfg_nr_allow_rules = 0; /* of any kind; 0: everybody is in */
const volatile __u32 cfg_nr_tid_rules = 0;
const volatile __u32 cfg_nr_uid_rules = 0;
const volatile struct sb_uid_rule cfg_uid_rules[SB_RULES_MAX] = {};
const volatile __u32 cfg_nr_cgroup_rules = 0;
const volatile __u32 cfg_cgroup_rules[SB_RULES_MAX] = {}; /* SB_RULE_*, by index in the map */
const volatile __u32 cfg_nr_comm_rules = 0;
const volatile struct sb_comm_matcher cfg_comm_rules[SB_RULES_MAX] = {};

/* Of the cgroups in target_cgroups; set after load. */
__u64 target_cgroup_ids[SB_RULES_MAX] = {};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64); /* set before load */
	__type(key, __u32);
	__type(value, __u32);
} target_tgids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64); /* set before load */
	__type(key, __u32);
	__type(value, __u32);
} target_tids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, SB_RULES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} target_cgroups SEC(".maps");

static __u32 pid_rule(void *map, __u32 pid)
{
	__u32 *rule = bpf_map_lookup_elem(map, &pid);

	/* The command of -- CMD is our own copy until it runs what it is to run. */
	return rule && !(*rule & SB_RULE_AT_EXEC) ? *rule : 0;
}

static __u32 uid_rules(__u32 uid)
{
	__u32 i, rules = 0;

	for (i = 0; i < SB_RULES_MAX; i++) {
		if (i >= cfg_nr_uid_rules)
			break;
		if (cfg_uid_rules[i].uid == uid)
			rules |= cfg_uid_rules[i].rule;
	}
	return rules;
}

static __u32 cgroup_rules(void)
{
	__u32 i, rules = 0;

	for (i = 0; i < SB_RULES_MAX; i++) {
		if (i >= cfg_nr_cgroup_rules)
			break;
		if (bpf_current_task_under_cgroup(&target_cgroups, i) == 1)
			rules |= cfg_cgroup_rules[i];
	}
	return rules;
}

static __u32 rules_of_cgroup(__u64 id)
{
	__u32 i, rules = 0;

	for (i = 0; i < SB_RULES_MAX; i++) {
		if (i >= cfg_nr_cgroup_rules)
			break;
		if (target_cgroup_ids[i] == id)
			rules |= cfg_cgroup_rules[i];
	}
	return rules;
}

/* There is a helper for the current task only. From the task's own cgroup up to the root. */
static __u32 cgroup_rules_of(struct task_struct *task)
{
	struct cgroup *cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp);
	struct cgroup_subsys_state *css = &cgroup->self;
	__u32 i, rules = 0;

	for (i = 0; i < CGROUP_LEVELS_MAX && css; i++) {
		rules |= rules_of_cgroup(BPF_CORE_READ(css, cgroup, kn, id));
		css = BPF_CORE_READ(css, parent);
	}
	return rules;
}

/* One step of the automaton for each byte of the name; see struct sb_comm_matcher. */
static bool comm_matches(const volatile struct sb_comm_matcher *rule, const char *comm)
{
	__u32 stars = rule->stars, at = 1;
	__u32 i;

	at |= (at & stars) << 1;
	for (i = 0; i < SB_COMM_LEN; i++) {
		__u8 c = comm[i];

		if (!c)
			break;
		at = ((at & ~stars & rule->may_consume[c]) << 1) | (at & stars);
		at |= (at & stars) << 1;
	}
	return at & rule->accept;
}

static __u32 comm_rules(const char *comm)
{
	__u32 i, rules = 0;

	for (i = 0; i < SB_RULES_MAX; i++) {
		if (i >= cfg_nr_comm_rules)
			break;
		if (comm_matches(&cfg_comm_rules[i], comm))
			rules |= cfg_comm_rules[i].rule;
	}
	return rules;
}

static int is_accepted(__u32 rules)
{
	if (rules & SB_RULE_DENY)
		return 0;
	return !cfg_nr_allow_rules || (rules & SB_RULE_ALLOW);
}

__hidden __u32 sb_filter_pid_rules(__u32 tgid, __u32 tid)
{
	__u32 rules = pid_rule(&target_tgids, tgid);

	return cfg_nr_tid_rules ? rules | pid_rule(&target_tids, tid) : rules;
}

__hidden int sb_filter_accepts(__u32 rules, const char *comm)
{
	if (cfg_nr_comm_rules)
		rules |= comm_rules(comm);
	if (cfg_nr_uid_rules)
		rules |= uid_rules((__u32)bpf_get_current_uid_gid());
	if (cfg_nr_cgroup_rules)
		rules |= cgroup_rules();
	return is_accepted(rules);
}

__hidden bool sb_is_asked_for(void)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	char comm[SB_COMM_LEN] = {};

	if (cfg_nr_comm_rules)
		bpf_get_current_comm(comm, sizeof(comm));
	return sb_filter_accepts(sb_filter_pid_rules(pid_tgid >> 32, (__u32)pid_tgid), comm);
}

__hidden int sb_filter_accepts_task(struct task_struct *task, const char *comm)
{
	__u32 rules = sb_filter_pid_rules(task->tgid, task->pid);

	if (cfg_nr_comm_rules)
		rules |= comm_rules(comm);
	if (cfg_nr_uid_rules)
		rules |= uid_rules(BPF_CORE_READ(task, cred, uid.val));
	if (cfg_nr_cgroup_rules)
		rules |= cgroup_rules_of(task);
	return is_accepted(rules);
}

__hidden int sb_filter_exec(__u32 tgid)
{
	__u32 *rule = bpf_map_lookup_elem(&target_tgids, &tgid);

	if (rule) {
		*rule &= ~SB_RULE_AT_EXEC;
		sb_proc_cache_changed(tgid);
	}
	return 0;
}

static int forget_rule(__u32 tgid)
{
	return bpf_map_delete_elem(&target_tgids, &tgid) ? 0 : sb_proc_cache_changed(tgid);
}

__hidden int sb_filter_gone(__u32 tgid)
{
	return forget_rule(tgid);
}

/*
 * A new process inherits the rule of its parent where that says so. Any other rule under its pid
 * is left over from a process that had the same pid before.
 */
__hidden int sb_filter_fork(__u32 parent_tgid, __u32 child_tgid)
{
	__u32 rule = pid_rule(&target_tgids, parent_tgid);

	if (!(rule & SB_RULE_FOLLOW))
		return forget_rule(child_tgid);
	if (bpf_map_update_elem(&target_tgids, &child_tgid, &rule, BPF_ANY))
		sb_stat_add(SB_STAT_FORK_FULL, 1);
	return sb_proc_cache_changed(child_tgid);
}
