/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CONTRACT between the compiler of expressions (user/events/expr.c) and their evaluator
 * (bpf/step/sb_expr_step.h): the program that an expression such as `args->len > 4096 && comm ==
 * "nginx"` becomes. user/events/expr.h describes the language.
 *
 * The program is for a stack machine that has a stack of 64-bit integers and a stack of strings. An
 * instruction pops its operands and pushes its result; the last value that remains is the result
 * of the expression. Jumps only go forward, so each instruction is executed at most once.
 */
#ifndef SB_ABI_EXPR_H
#define SB_ABI_EXPR_H

#include "bpf/abi/sb_abi.h"

/* All of these but the first are powers of two, because the evaluator masks indices with them. */
#define SB_EXPR_STRING_MAX   63u /* bytes of a string that are looked at; the rest is cut */
#define SB_EXPR_INSNS_MAX    32u
#define SB_EXPR_INTS_MAX     8u	 /* height of the stack of integers */
#define SB_EXPR_STRINGS_MAX  4u	 /* height of the stack of strings */
#define SB_EXPR_CONSTS_MAX   8u	 /* different string literals of one expression */
#define SB_EXPR_VALUES_MAX   32u /* values that whoever evaluates can supply */
/* A string in 64-bit words, padded with zeros: it has at least one zero at its end. */
#define SB_EXPR_STRING_WORDS ((SB_EXPR_STRING_MAX + 1) / 8)

/* What an expression, or a field that it names, is. */
enum sb_expr_kind {
	SB_EXPR_OTHER, /* a field that cannot be used: an array, a struct */
	SB_EXPR_INT,
	SB_EXPR_POINTER, /* an address: an unsigned integer of 8 bytes */
	SB_EXPR_STRING,
	/* Integers, of results only, that user space shows by name. */
	SB_EXPR_SYSCALL,
	SB_EXPR_SIGNAL,
	SB_EXPR_SOFTIRQ,
	SB_EXPR_KIND_MAX,
};

/* Numbers of the values that are supplied in registers (struct sb_expr_run.value). */
enum sb_expr_value {
	SB_EXPR_ARG0, /* the arguments of a function or of a USDT probe, which has up to 12 */
	SB_EXPR_RETVAL = 12,
	SB_EXPR_ELAPSED, /* ns between the two events of a pair */
	SB_EXPR_TGID,
	SB_EXPR_TID,
	SB_EXPR_CPU,
	SB_EXPR_VALUE_FREE, /* from here on: whatever the view defines */
};

/*
 * "int" and "string" stand for the tops of the two stacks; an operator with two operands has its
 * right operand on top.
 */
enum sb_expr_op {
	SB_EXPR_OP_END, /* the end; also that of a program without instructions */
	/* Push an integer. */
	SB_EXPR_OP_CONST,   /* imm */
	SB_EXPR_OP_VALUE,   /* value number `at`, as an integer of `size` bytes */
	SB_EXPR_OP_CONTEXT, /* the integer of `size` bytes at offset `at` of the context */
	/* Push a string. */
	SB_EXPR_OP_STR_CONST,	 /* literal number `at` */
	SB_EXPR_OP_STR_COMM,	 /* the name of the thread */
	SB_EXPR_OP_STR_CONTEXT,	 /* the array of `size` characters at offset `at` of the context */
	SB_EXPR_OP_STR_DATA_LOC, /* the tracepoint's __data_loc at offset `at` of the context */
	SB_EXPR_OP_STR_AT,	 /* pop an address; is_signed: it is never one of the kernel */
	/* Pop two strings, push 1 or 0. */
	SB_EXPR_OP_STR_EQ,
	SB_EXPR_OP_STR_NE,
	/* Continue with instruction `at`. */
	SB_EXPR_OP_JUMP,
	SB_EXPR_OP_JUMP_ZERO, /* pop; jump if it is 0 */
	SB_EXPR_OP_AND,	      /* pop; if it is 0, push 0 and jump */
	SB_EXPR_OP_OR,	      /* pop; if it is not 0, push 1 and jump */
	/* Replace an integer. */
	SB_EXPR_OP_EXTEND, /* by its lowest `size` bytes */
	SB_EXPR_OP_NEGATE,
	SB_EXPR_OP_INVERT, /* ~ */
	SB_EXPR_OP_NOT,	   /* ! */
	SB_EXPR_OP_BOOL,   /* 1 if it is not 0 */
	/* Pop two integers, push one. */
	SB_EXPR_OP_ADD,
	SB_EXPR_OP_SUB,
	SB_EXPR_OP_MUL,
	SB_EXPR_OP_DIV,
	SB_EXPR_OP_MOD,
	SB_EXPR_OP_SHL,
	SB_EXPR_OP_SHR,
	SB_EXPR_OP_BIT_AND,
	SB_EXPR_OP_BIT_OR,
	SB_EXPR_OP_BIT_XOR,
	SB_EXPR_OP_EQ,
	SB_EXPR_OP_NE,
	SB_EXPR_OP_LT,
	SB_EXPR_OP_LE,
	SB_EXPR_OP_GT,
	SB_EXPR_OP_GE,
	SB_EXPR_OP_MAX,
};

struct sb_expr_insn {
	__u8 op;   /* enum sb_expr_op */
	__u8 size; /* of what is loaded, or kept by EXTEND: integers 1, 2, 4, 8; strings 1..63 */
	/* How an integer is extended to 64 bits; how DIV, MOD, SHR and comparisons take both. */
	__u8 is_signed;
	__u8 reserved;
	__u32 at;
	__u64 imm;
};

/* A compiled expression. All zero: there is no expression (nr_insns is 0). */
struct sb_expr {
	struct sb_expr_insn insn[SB_EXPR_INSNS_MAX];
	__u64 string[SB_EXPR_CONSTS_MAX][SB_EXPR_STRING_WORDS]; /* literals, padded with zeros */
	__u32 nr_insns;
	__u32 values;	       /* bit n: value number n has to be supplied */
	__u8 needs_comm;       /* the name of the thread has to be supplied */
	__u8 kind;	       /* of the result, enum sb_expr_kind; not SB_EXPR_OTHER */
	__u8 result_is_signed; /* of an integer */
	__u8 reserved[5];
};

_Static_assert(sizeof(struct sb_expr_insn) == 16, "no padding");
_Static_assert(sizeof(struct sb_expr) == 16 * SB_EXPR_INSNS_MAX + 64 * SB_EXPR_CONSTS_MAX + 16,
	       "no padding");
_Static_assert(SB_EXPR_VALUE_FREE <= SB_EXPR_VALUES_MAX, "the mask of values has 32 bits");

#endif
