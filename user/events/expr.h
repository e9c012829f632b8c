/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Expressions over the arguments of an event, such as `args->len > 4096 && comm == "nginx"`: the
 * weight of a sample, whether it is taken, or a frame of it. The text is compiled here to a small
 * program (bpf/abi/sb_abi_expr.h), which BPF evaluates when the event happens
 * (bpf/step/sb_expr_step.h).
 *
 * The language is the part of C that has no side effects, on a machine whose int has 64 bits:
 *
 *	integers	42, 0x2a, 4k 2M 1G (times 1024), 250ns 10us 3ms 2s (as nanoseconds)
 *	strings		"text" with \" \\ \n \t; at most 62 bytes. Only == and != take strings
 *	names		fields of the scope; NAME or args->NAME for arguments of the event
 *	syscall(N)	N, which as a result is shown by the name of the system call; so are
 *			signal(N) and softirq(N)
 *	str(ADDRESS)	the string at an address, in memory of the process or of the kernel
 *	casts		(u8) (s32) (int) (unsigned long) and other names of integer types
 *	operators	all of C that assign nothing, with C's precedence: - ! ~ * / % + - << >>
 *			< <= > >= == != & ^ | && || ?: and parentheses
 *
 * Thread: any. Pointers are not NULL; only @reason may be, and then no reason is kept. A compiled
 * program holds no pointers; there is nothing to free.
 *
 * Rules where C leaves a choice, or where this is not C:
 * - All arithmetic has 64 bits and wraps around. Fields with fewer bits are extended by their own
 *   sign, and are signed from then on, since all of their values fit: `len - 10 < 0` may be true of
 *   an unsigned field of 4 bytes.
 * - If one operand is a pointer or an unsigned field of 8 bytes, the other one is converted to
 *   unsigned, as in C: `addr > -1` is never true. Of a shift the left operand decides.
 * - Integer literals are signed if they fit, else unsigned. There are no octal ones.
 * - x / 0 and x % 0 are 0, and the evaluator says so (SB_EXPR_DIV_ZERO). A shift uses the lowest 6
 *   bits of the number of places.
 * - && and || evaluate the right operand only if it decides, ?: only the operand that is chosen.
 * - Of strings the first 63 bytes are looked at. No literal has so many, so a string that was cut
 *   equals no literal. Memory that cannot be read is 0 or "", and the evaluator says so.
 */
#ifndef SB_EVENTS_EXPR_H
#define SB_EVENTS_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/reason.h"
#include "bpf/abi/sb_abi_expr.h"

/* Bounds of the text; a program has bounds of its own, see sb_abi_expr.h. */
#define SB_EXPR_TEXT_MAX    1024 /* bytes */
#define SB_EXPR_NESTING_MAX 32	 /* parentheses, casts, unary operators and ?: inside of others */
#define SB_EXPR_LITERAL_MAX (SB_EXPR_STRING_MAX - 1) /* bytes of a string */

/* Where the evaluator finds a field. */
enum sb_expr_source {
	SB_EXPR_FROM_VALUE,    /* the value number `at` (enum sb_expr_value) */
	SB_EXPR_FROM_COMM,     /* the name of the thread: a string */
	SB_EXPR_FROM_CONTEXT,  /* `size` bytes at offset `at` of the context */
	SB_EXPR_FROM_DATA_LOC, /* the string of a tracepoint's __data_loc at offset `at` */
};

/* A name that expressions may use. */
struct sb_expr_field {
	const char *name; /* without "args->"; borrowed during the call */
	enum sb_expr_kind kind;
	enum sb_expr_source source;
	uint32_t at;
	uint32_t
		size; /* bytes: of an integer 1, 2, 4 or 8; of a pointer 8; of a string its array */
	bool is_signed; /* of an integer */
	/*
	 * An argument of the event: it is also called args->NAME, which is the only way to name it
	 * if another field has the same name.
	 */
	bool is_arg;
};

/* What the names of an expression mean. */
struct sb_expr_scope {
	const struct sb_expr_field *fields;
	size_t nr;
	/* str() reads memory of the process only, even if an address is one of the kernel. */
	bool is_user_only;
};

/* comm, pid (the process), tid, cpu: what every event has. */
#define SB_EXPR_THREAD_FIELDS 4
extern const struct sb_expr_field sb_expr_thread_fields[SB_EXPR_THREAD_FIELDS];

/**
 * sb_expr_compile() - compile an expression
 * @text: of the user; may be any string; "" is an error
 * @scope: borrowed during the call
 * @ret_expr: receives the compiled program. `kind` is the type of its result. `values` and
 *	`needs_comm` name what has to be in struct sb_expr_run when the program is evaluated.
 *	Untouched on error
 * @reason: on failure a sentence that begins with the column in bytes, from 1: "column 6: there is
 *	no 'lem'; did you mean 'len'?"
 *
 * Return: 0; -EINVAL: @text is no expression, uses a name that the scope does not have, has
 * operands of wrong types, or exceeds a bound.
 */
int sb_expr_compile(const char *text, const struct sb_expr_scope *scope, struct sb_expr *ret_expr,
		    struct sb_reason *reason);

#endif
