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
	/* Zeros with --key, but tgid is set for memory that a process holds; and id is
	 * sb_held_watch.until of memory whose address has been handed out again. */
	struct sb_latency_caller caller;
};

/*
 * What a run with slices of time has seen of the address of a piece of memory. A window is the time
 * from attaching to detaching the functions that give memory back; windows are numbered from 1 on.
 */
struct sb_held_watch {
	__u32 window; /* in which it was allocated; 0: before the first one */
	__u32 proof;  /* the first later one with proof that it was given back; 0: none */
	__u32 last;   /* the last one that saw the address given back or handed out; 0: none */
	__u32 until;  /* in which other memory at the address began to be followed; 0: none */
};

/* An open call or pair: value of the map `latency_calls`. Begins with the capture, for
 * sb_pending_of_map(). */
struct sb_latency_record {
	struct sb_capture capture; /* of the beginning */
	__u64 begin_ns, from_ns;
	__u64 nr;     /* calls that it stands for, see sb_thin() */
	__u64 weight; /* of --weight; 0: the time that passes */
	__u32 tid;
	__u32 idx;   /* of a call, or of memory that is held: its place */
	__u64 outer; /* value of the next older call of the list; 0: there is none */
	union {
		__u64 arg[SB_CALL_ARGS];    /* of a call */
		struct sb_held_watch watch; /* of memory whose allocation has returned */
	};
};

_Static_assert(sizeof(struct sb_object_call) == 24, "layout is shared");
_Static_assert(sizeof(struct sb_call_context) == 64, "layout is shared");
_Static_assert(sizeof(struct sb_latency_call) == 24, "layout is shared");

#endif
