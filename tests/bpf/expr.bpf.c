// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The evaluator of expressions in the kernel, run by BPF_PROG_TEST_RUN with a program and values
 * that user space sets. An object of its own, as it needs nothing of core.
 */
#include "bpf/core/sb_util.bpf.h"

#include "bpf/step/sb_expr_step.h"

struct sb_expr expr = {};
struct sb_expr_run run = {};
__u8 context[256] = {}; /* is in the kernel's memory, as that of an event */
__u32 nr_rounds = 1;	/* so often, for its time */
__u64 ns = 0;		/* of all rounds */

__noinline int expr_step(void)
{
	return sb_expr_step(&run, &expr, NULL);
}

/* Verified once, not once for each round. */
__noinline int expr_evaluate(void)
{
	int i;

	run.context = (__u64)context;
	sb_expr_begin(&run);
	for (i = 0; i < (int)SB_EXPR_INSNS_MAX; i++)
		if (!expr_step())
			break;
	return 0;
}

SEC("raw_tp")
int drive_expr(void *ctx)
{
	__u64 start_ns = bpf_ktime_get_ns();
	__u32 i;

	for (i = 0; i < 1000 && i < nr_rounds; i++)
		expr_evaluate();
	ns = bpf_ktime_get_ns() - start_ns;
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
