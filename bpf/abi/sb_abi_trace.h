/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CONTRACT between the BPF side and user space: views that take events. As in sb_abi.h, types have
 * a fixed width, without implicit padding, and numbers are appended and never reused.
 */
#ifndef SB_ABI_TRACE_H
#define SB_ABI_TRACE_H

#include "bpf/abi/sb_abi.h"
#include "bpf/abi/sb_abi_expr.h"

/* Arguments of a USDT probe: values SB_EXPR_ARG0 and up of expressions. */
#define SB_TRACE_ARGS_MAX ((unsigned int)SB_EXPR_RETVAL)
#define SB_TRACE_NO_REG	  0xffffu

/*
 * Where an argument of a USDT probe is: `add`, plus a register, plus another one shifted to the
 * left; or in the process's memory at this address. A register is the offset in bytes of its 8
 * bytes in the program's context, or SB_TRACE_NO_REG.
 */
struct sb_trace_arg {
	__u64 add;
	__u16 base, index;
	__u8 shift;
	__u8 size; /* bytes of memory: 1, 2, 4, 8; 0: it is not in memory */
	__u16 reserved;
};

/* Bits of sb_trace_place.roles. One event can end a pair and begin the next one. */
enum {
	SB_EVENT_BEGINS = 1u << 0,
	SB_EVENT_ENDS = 1u << 1,
	SB_EVENT_SPLIT = 1u << 2, /* of a tracepoint: another program takes the stacks */
	/* Pairs belong to their process, and only what is open at the end is accounted: memory that
	 * is held. At a call that begins one, the pair begins where the call returns. */
	SB_EVENT_HELD = 1u << 3,
	/* With SB_EVENT_HELD: memory of the kernel, which another process can give back. */
	SB_EVENT_OF_KERNEL = 1u << 4,
};

/* Bits of sb_trace_place.at_end: which expressions are evaluated where the call ends. */
enum {
	SB_AT_END_WHEN = 1u << 0,
	SB_AT_END_WEIGH = 1u << 1,
	SB_AT_END_VALUE = 1u << 2,
};

/* Bit of the cookie (bpf_get_attach_cookie()) of a program at a function of Go. */
#define SB_COOKIE_GO (1ull << 32)

/* How to sample one place, which is a function, a tracepoint or the like; an element of the map
 * `event_places`. The BPF program that is attached to the place finds it by the lower half of its
 * cookie, which is the index. */
struct sb_trace_place {
	__u64 weight; /* of one event; a counter's period */
	__u32 op;     /* sb_sample_key.op */
	/* 1 + the index in the map `event_exprs` of --when, --weight, --value, and of --key at the
	 * beginning and at the end of a pair; 0: there is none. */
	__u32 when, weigh, value, begin_key, end_key;
	__u32 roles;  /* of a pair, SB_EVENT_* */
	__u32 at_end; /* of calls, SB_AT_END_* */
	struct sb_trace_arg arg[SB_TRACE_ARGS_MAX];
};

/* The value of --value at an event. */
struct sb_object_value {
	__u64 number;
	__u64 text[SB_EXPR_STRING_WORDS]; /* padded with zeros, of which one at least is there */
	__u32 kind;			  /* enum sb_expr_kind: whether it is a number or a text */
	__u32 is_signed;
};

_Static_assert(sizeof(struct sb_object_value) == 80, "layout is shared");
_Static_assert(sizeof(struct sb_trace_arg) == 16, "layout is shared");
_Static_assert(sizeof(struct sb_trace_place) == 40 + 16 * SB_TRACE_ARGS_MAX, "layout is shared");

#endif
