// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* View "toy" of tests/live/toy_view.py: a sample for each process that a process makes. Weight: 1
 * us each. */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "bpf/core/sb_sample.bpf.h"

SEC("?tp_btf/sched_process_fork")
int toy_fork(void *ctx)
{
	struct sb_capture *capture;

	sb_start_in_kernel(SB_SCRATCH_CALL);
	if (!sb_capture(ctx, SB_SCRATCH_CALL, &capture))
		sb_account(capture, 1000);
	return 0;
}
