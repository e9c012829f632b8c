// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* views/memory.bpf.c, compiled for the host: what a fault costs that is no sample. The time of day
 * moves on at each look at it, so it tells whether a sample was begun. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core.h"
#include "views/memory.bpf.c"

#define TGID   10
#define OTHERS 20
#define PAGE   4096ull
#define NOW_NS (1ull << 40)

static struct mm_struct mm;
static struct task_struct task = { .group_leader = &task, .mm = &mm };
static struct sb_regs regs = { .cs = 0x33, .ip = 0x400000, .sp = 0x7ffe00001000 };
static const uint32_t zero;

static int setup(void **state)
{
	const uint32_t tgid = TGID, rule = SB_RULE_ALLOW;

	shim_reset();
	shim_core_maps(1 << 20);
	SHIM_MAP(target_tgids);
	SHIM_MAP(memory_owners);
	SHIM_MAP(memory_records);
	SHIM_MAP(memory_lasts);
	SHIM_MAP(memory_young);
	SHIM_MAP(memory_batches);
	bpf_map_update_elem(&target_tgids, &tgid, &rule, BPF_ANY);
	cfg_nr_allow_rules = 1;
	memory_shift_cost = memory_shift_room = 0;
	shim.task = &task;
	shim.task_regs = &regs;
	shim.now_ns = NOW_NS;
	return 0;
}

/* Return: how often the clock was read. */
static uint64_t fault(uint32_t tgid, uint64_t addr)
{
	unsigned long long ctx[] = { addr, 0, 0 };
	const uint64_t before_ns = shim.now_ns;

	task.tgid = task.pid = (int)tgid;
	shim.pid_tgid = (uint64_t)tgid << 32 | tgid;
	memory_user(ctx);
	return shim.now_ns - before_ns;
}

static uint32_t nr_taken(void)
{
	return ((struct sb_fault_batch *)bpf_map_lookup_elem(&memory_batches, &zero))->nr;
}

static void test_of_others(void **state)
{
	struct sb_stats *stat = bpf_map_lookup_elem(&stats, &zero);
	struct memory_last *last = bpf_map_lookup_elem(&memory_lasts, &zero);

	assert_int_not_equal(fault(TGID, PAGE), 0);
	assert_int_equal(nr_taken(), 1);
	last->owner = 7;
	assert_int_equal(fault(OTHERS, PAGE), 0);
	assert_int_equal(nr_taken(), 1);
	assert_int_equal(stat->val[SB_STAT_FILTERED], 1);
	assert_int_equal(last->owner, 7); /* of the thread that was asked for, which goes on */
}

/* Sums stay unbiased because it is a matter of the window alone, and each record says for how many
 * it stands. */
static void test_of_other_windows(void **state)
{
	const uint64_t window = 1ull << SB_WINDOW_SHIFT;
	struct sb_fault_batch *batch = bpf_map_lookup_elem(&memory_batches, &zero);
	uint32_t nr = 0, i;

	memory_shift_cost = 3;
	for (i = 1; i <= 800; i++) {
		const uint32_t before = batch->nr;
		const bool is_begun = fault(TGID, i * window);

		assert_int_equal(is_begun, batch->nr != before);
		assert_int_equal(is_begun, !!fault(TGID, i * window + PAGE));
		if (!is_begun)
			continue;
		assert_int_equal(batch->event.at[before].where & SB_FAULT_SHIFT, 3);
		nr++;
	}
	assert_in_range(nr, 60, 140);
}

/* Return: whether user space may be asked about the process for its next fault that is followed. */
static bool is_asked_about(uint32_t exec_id)
{
	static uint64_t addr = 1ull << 30;
	struct sb_fault_batch *batch = bpf_map_lookup_elem(&memory_batches, &zero);
	uint32_t before;

	task.self_exec_id = exec_id;
	batch->nr = 0;
	do {
		before = batch->nr;
		fault(TGID, addr += 1ull << SB_WINDOW_SHIFT);
	} while (batch->nr == before);
	return !sb_scratch_get(SB_SCRATCH_PAGE)->capture.is_brief;
}

/* Of a throttled run's processes, those that are young are asked about at their third fault. */
static void test_young(void **state)
{
	task.start_boottime = NOW_NS;
	assert_true(is_asked_about(1));
	memory_shift_cost = 2;
	assert_false(is_asked_about(1));
	assert_false(is_asked_about(1));
	assert_true(is_asked_about(1));
	assert_true(is_asked_about(1));
	assert_false(is_asked_about(2));
	shim.now_ns += 2000000000;
	assert_true(is_asked_about(3));
	task.start_boottime = 0;
	task.self_exec_id = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_of_others, setup),
		cmocka_unit_test_setup(test_of_other_windows, setup),
		cmocka_unit_test_setup(test_young, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
