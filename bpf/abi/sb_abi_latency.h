/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CONTRACT between the BPF side and user space: the view "latency". Rules as in sb_abi.h. */
#ifndef SB_ABI_LATENCY_H
#define SB_ABI_LATENCY_H

#include "bpf/abi/sb_abi.h"

/*
 * sb_sample_key.op of time that a call was still open for, at the end of the run or at a snapshot:
 * the leaf "[open]".
 */
#define SB_LATENCY_OP_OPEN 1

/* A call of a thread that is open; key of the map `latency_calls`. */
struct sb_latency_call {
	__u64 sp; /* of its caller: as it will be after the return */
	__u32 tid;
	__u32 reserved;
};

_Static_assert(sizeof(struct sb_latency_call) == 16, "layout is shared");

#endif
