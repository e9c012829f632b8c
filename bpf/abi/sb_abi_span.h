/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CONTRACT between the BPF side and user space: spans, the parts of a thread's life that samples
 * are restricted to (--in). core/span.bpf.c explains them. As in sb_abi.h, types have a fixed
 * width, without implicit padding, and numbers are appended and never reused.
 */
#ifndef SB_ABI_SPAN_H
#define SB_ABI_SPAN_H

#include "bpf/abi/sb_abi.h"

/* Threads that have been in a span and live, and goroutines in spans: entries of the map
 * `spans_open`. */
#define SB_SPANS_OPEN_MAX 16384
/* Processes that have had goroutines in spans: entries of the map `span_go_processes`. */
#define SB_SPANS_GO_MAX	  1024
/* Slow spans that user space is told of: entries of the map `spans_slow`. */
#define SB_SPANS_SLOW_MAX 65536

/* Who is in a span: key of `spans_open`. */
struct sb_span_owner {
	__u64 id;   /* ID of a thread; address of the runtime's `g` of a goroutine */
	__u32 tgid; /* of a goroutine; 0: it is a thread */
	__u32 reserved;
};

/* Value of `spans_open`. Times are CLOCK_MONOTONIC. */
struct sb_open_span {
	__u64 begin_ns;
	__u64 seen_ns; /* when a sample found the thread in it for the last time, or begin_ns */
	/* Of a call: the stack pointer of its caller; of a goroutine, whose stack moves, relative
	 * to the end of the stack. 0: not a call. */
	__u64 sp;
	__u64 value;   /* of a label: a hash of its value; 0: not of a label */
	__u32 number;  /* sb_sample_key.span; 0: the thread is in no span */
	__u32 ret_low; /* of a call: the lower half of the return address on the stack */
};

/*
 * Index in the map `span_durations`: the position of the highest bit of the nanoseconds, and the
 * SB_SPAN_STEP_BITS bits below it. So a step is an eighth of its power of two.
 */
#define SB_SPAN_STEP_BITS 3
#define SB_SPAN_STEPS	  (1u << SB_SPAN_STEP_BITS)
#define SB_SPAN_BUCKETS	  (64u * SB_SPAN_STEPS)

struct sb_span_bucket {
	__u64 nr, sum_ns;
};

_Static_assert(sizeof(struct sb_open_span) == 40, "layout is shared");
_Static_assert(sizeof(struct sb_span_owner) == 16, "layout is shared");

#endif
