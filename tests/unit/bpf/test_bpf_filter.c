// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* core/filter.bpf.c and core/proc.bpf.c, compiled for the host. */
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "capture/targets.h"
#include "core.h"

static int setup(void **state)
{
	shim_reset();
	SHIM_MAP(stats);
	SHIM_MAP(target_tgids);
	SHIM_MAP(target_tids);
	SHIM_MAP(target_cgroups);
	cfg_nr_allow_rules = cfg_nr_tid_rules = cfg_nr_uid_rules = 0;
	cfg_nr_cgroup_rules = cfg_nr_comm_rules = 0;
	return 0;
}

static void add(void *map, uint32_t pid, uint32_t rule)
{
	assert_int_equal(bpf_map_update_elem(map, &pid, &rule, BPF_ANY), 0);
}

static bool accepts(uint32_t tgid, uint32_t tid, const char *name)
{
	char comm[SB_COMM_LEN] = {};

	snprintf(comm, sizeof(comm), "%s", name);
	return sb_filter_accepts(sb_filter_pid_rules(tgid, tid), comm);
}

static void test_pids(void **state)
{
	assert_true(accepts(1, 1, "a")); /* no rule at all: everybody */
	add(&target_tgids, 5, SB_RULE_DENY);
	assert_true(accepts(1, 1, "a"));
	assert_false(accepts(5, 6, "a"));
	add(&target_tgids, 7, SB_RULE_ALLOW);
	cfg_nr_allow_rules = 1;
	assert_true(accepts(7, 8, "a"));
	assert_false(accepts(1, 7, "a")); /* a tid is not a tgid */

	cfg_nr_tid_rules = 1;
	add(&target_tids, 9, SB_RULE_ALLOW);
	assert_true(accepts(1, 9, "a"));
	add(&target_tids, 8, SB_RULE_DENY);
	assert_false(accepts(7, 8, "a")); /* deny wins over allow */
	assert_true(accepts(7, 10, "a"));
}

static void test_uids_and_cgroups(void **state)
{
	cfg_nr_allow_rules = 1;
	cfg_nr_uid_rules = 2;
	cfg_uid_rules[0] = (struct sb_uid_rule){ .uid = 1000, .rule = SB_RULE_ALLOW };
	cfg_uid_rules[1] = (struct sb_uid_rule){ .uid = 1001, .rule = SB_RULE_DENY };
	shim.uid_gid = 1000ull << 32 | 5; /* the gid is in the upper half */
	assert_false(accepts(1, 1, "a"));
	shim.uid_gid = 5ull << 32 | 1000;
	assert_true(accepts(1, 1, "a"));
	shim.uid_gid = 1001;
	assert_false(accepts(1, 1, "a"));

	shim.uid_gid = 1000;
	cfg_nr_cgroup_rules = 2;
	cfg_cgroup_rules[0] = SB_RULE_ALLOW;
	cfg_cgroup_rules[1] = SB_RULE_DENY;
	shim.is_in_cgroup[1] = true;
	assert_false(accepts(1, 1, "a"));
	shim.is_in_cgroup[1] = false;
	shim.is_in_cgroup[0] = true;
	shim.uid_gid = 0;
	assert_true(accepts(1, 1, "a"));
}

/* The automaton against fnmatch(3), on names and globs out of few letters so that many match. */
static void test_comm(void **state)
{
	static const char glob_letters[] = "ab*?*", name_letters[] = "abb";
	unsigned int seed = 7, nr_matches = 0;
	char glob[SB_COMM_LEN], name[SB_COMM_LEN];
	int i, j, len;

	cfg_nr_allow_rules = cfg_nr_comm_rules = 1;
	for (i = 0; i < 20000; i++) {
		len = rand_r(&seed) % (SB_COMM_LEN - 1) + 1;
		for (j = 0; j < len; j++)
			glob[j] = glob_letters[(unsigned int)rand_r(&seed) % 5];
		glob[len] = '\0';
		len = rand_r(&seed) % SB_COMM_LEN;
		for (j = 0; j < len; j++)
			name[j] = name_letters[(unsigned int)rand_r(&seed) % 3];
		name[len] = '\0';
		assert_int_equal(
			sb_comm_matcher_init((void *)&cfg_comm_rules[0], glob, SB_RULE_ALLOW), 0);
		if (accepts(1, 1, name) != !fnmatch(glob, name, 0))
			fail_msg("glob '%s', name '%s'", glob, name);
		nr_matches += accepts(1, 1, name);
	}
	assert_in_range(nr_matches, 1000, 19000);
}

static void fork_from(int parent_tgid, int child_tgid)
{
	struct task_struct parent = { .tgid = parent_tgid }, child = { .tgid = child_tgid };
	unsigned long long ctx[] = { (uintptr_t)&parent, (uintptr_t)&child };

	proc_fork(ctx);
}

static void test_fork(void **state)
{
	uint32_t i;

	cfg_nr_allow_rules = 1;
	add(&target_tgids, 1, SB_RULE_ALLOW | SB_RULE_FOLLOW);
	add(&target_tgids, 2, SB_RULE_ALLOW);
	fork_from(1, 10);
	fork_from(10, 11);
	fork_from(2, 20);
	fork_from(3, 30);
	assert_true(accepts(10, 10, "a"));
	assert_true(accepts(11, 11, "a"));
	assert_false(accepts(20, 20, "a"));
	assert_false(accepts(30, 30, "a"));
	/* A thread is no process. */
	fork_from(2, 2);
	assert_true(accepts(2, 2, "a"));
	/* The pid 11 comes back as somebody else's child. */
	fork_from(3, 11);
	assert_false(accepts(11, 11, "a"));

	for (i = 100; shim_map_nr(&target_tgids) < SHIM_UINT(target_tgids, max_entries); i++)
		fork_from(1, (int)i);
	fork_from(1, 5000);
	assert_false(accepts(5000, 5000, "a"));
	i = 0;
	assert_int_equal(
		((struct sb_stats *)bpf_map_lookup_elem(&stats, &i))->val[SB_STAT_FORK_FULL], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_pids, setup),
		cmocka_unit_test_setup(test_uids_and_cgroups, setup),
		cmocka_unit_test_setup(test_comm, setup),
		cmocka_unit_test_setup(test_fork, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
