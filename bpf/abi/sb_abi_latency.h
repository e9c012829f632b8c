/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CONTRACT between the BPF side and user space: the view "latency". As in sb_abi.h, types have a
 * fixed width, without implicit padding, and numbers are appended and never reused.
 */
#ifndef SB_ABI_LATENCY_H
#define SB_ABI_LATENCY_H

#include "bpf/abi/sb_abi.h"

/*
 * sb_sample_key.op of time that a call was still open for, at the end of the run or at a snapshot:
 * the leaf "[open]".
 */
#define SB_LATENCY_OP_OPEN     1

/* Calls that --slowest can list; a power of two for the verifier. */
#define SB_LATENCY_SLOWEST_MAX 16u

/* A call that was among the slowest when it ended. */
struct sb_object_call {
	__u64 elapsed_ns;
	__u64 end_ns; /* CLOCK_MONOTONIC */
	__u32 tid;    /* of the thread that began it */
	__u32 reserved;
};

/* Who makes calls or pairs. */
struct sb_latency_caller {
	/* ID of a thread, or of the CPU of an idle task, with LIST_OF_* for functions of the
	 * kernel (views/sb_latency_lists.bpf.h); address of the runtime's `g` of a goroutine; 0
	 * with --key. */
	__u64 id;
	__u32 tgid; /* of a goroutine, or of a process that holds memory; 0: neither */
	__u32 reserved;
};

#define SB_CALL_ARGS 6u

/* What the expressions of calls read in place of a program's context. */
struct sb_call_context {
	__u64 arg[SB_CALL_ARGS];
	/* Known at the end of the call, as all that follows. */
	__u64 retval;
	__u64 elapsed_ns;
};

/* What is open; key of the map `latency_calls`. */
struct sb_latency_call {
	/* A call: the stack pointer of its caller, as it will be after the return; of a goroutine,
	 * whose stack moves, relative to the end of the stack. A pair of events: the value of
	 * --key; 0 if the thread says which end is meant. */
	__u64 value;
	/* Zeros with --key, but tgid is set for memory that a process holds. */
	struct sb_latency_caller caller;
};

_Static_assert(sizeof(struct sb_object_call) == 24, "layout is shared");
_Static_assert(sizeof(struct sb_call_context) == 64, "layout is shared");
_Static_assert(sizeof(struct sb_latency_call) == 24, "layout is shared");

#endif
