/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The evaluator of expressions: step() executes one instruction of a program that
 * user/events/expr.c has compiled. Both sides compile this source: BPF programs of events, and
 * tests, which run it natively. BPF programs have the kernel's helpers for these macros, and
 * include sb_util.bpf.h first; who compiles it for another machine defines the first three before
 * including it:
 *
 *	SB_EXPR_READ(mem, dst, len, addr)	copy @len bytes of the kernel's memory; 0: success
 *	SB_EXPR_READ_STR(mem, dst, len, addr)	copy a string of the kernel's memory
 *	SB_EXPR_READ_USER_STR(mem, dst, len, addr)	copy a string of the process's memory
 *	SB_STEP_OPAQUE(x)	make the compiler forget what it proved about @x
 *
 * Copying a string is what bpf_probe_read_kernel_str() does: at most @len bytes with the zero at
 * the end, of which there always is one; nothing but zeros is written behind it. It returns the
 * length with the zero, or a negative number, and then @dst is zeroed. @mem is what step() is
 * given, for the includer's own use.
 *
 * A BPF program evaluates an expression so:
 *
 *	__noinline int example_expr_step(__u32 slot)	// global: verified once, not 32 times
 *	{
 *		struct example_scratch *s = example_scratch_get(slot);
 *
 *		return s ? sb_expr_step(&s->run, &s->expr, NULL) : 0;
 *	}
 *
 *	s->run.context = (__u64)ctx;	// and run.value[] and run.comm, as s->expr asks for
 *	sb_expr_begin(&s->run);
 *	for (i = 0; i < SB_EXPR_INSNS_MAX && example_expr_step(slot); i++)
 *		;
 *	// s->run.ints[0], or strings[0] if s->expr.kind is SB_EXPR_STRING, is the result,
 *	// and s->run.flags says what went wrong.
 *
 * An expression is a program for a machine with two stacks, one of integers and one of strings,
 * both in *@run, which is all the state there is. So the functions run in any thread and in any BPF
 * program, one at a time for each @run. What goes wrong sets a bit of run->flags, and the
 * evaluation goes on. Includers call sb_expr_begin() and sb_expr_step(), of which the other
 * functions are parts. No pointer may be NULL, except @mem if the macros do without it, and none is
 * kept. Pointers that are returned point into *@run.
 *
 * Every program is safe to evaluate, also a forged one: indices are masked, and what is read is
 * only read by the three macros. A program that the compiler made keeps within both stacks.
 */
#ifndef SB_EXPR_STEP_H
#define SB_EXPR_STEP_H

#include "bpf/abi/sb_abi_expr.h"

#if defined(__bpf__)
#define SB_EXPR_READ(mem, dst, len, addr) bpf_probe_read_kernel(dst, len, (const void *)(addr))
#define SB_EXPR_READ_STR(mem, dst, len, addr) \
	bpf_probe_read_kernel_str(dst, len, (const void *)(addr))
#define SB_EXPR_READ_USER_STR(mem, dst, len, addr) \
	bpf_probe_read_user_str(dst, len, (const void *)(addr))
#define SB_STEP_OPAQUE(x) sb_opaque(x)
#elif !defined(SB_EXPR_READ) || !defined(SB_EXPR_READ_STR) || !defined(SB_EXPR_READ_USER_STR)
#error "define SB_EXPR_READ, SB_EXPR_READ_STR and SB_EXPR_READ_USER_STR first"
#else
#define SB_STEP_OPAQUE(x)
#endif
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* Bits of sb_expr_run.flags: what happened during one evaluation. The includer counts them. */
enum {
	SB_EXPR_DIV_ZERO = 1u << 0, /* a division or remainder by zero, whose result is 0 */
	SB_EXPR_BAD_READ = 1u << 1, /* memory that cannot be read: it counts as 0, or as "" */
	SB_EXPR_CUT = 1u << 2,	    /* a string has 63 bytes or more; the first 63 are used */
};

/*
 * One evaluation: what the includer supplies, and the state of the machine. 600 bytes: too much for
 * the stack of a BPF program.
 */
struct sb_expr_run {
	/* Supplied; the evaluator does not change them. */
	__u64 value[SB_EXPR_VALUES_MAX]; /* by enum sb_expr_value; those in sb_expr.values */
	__u64 context; /* address of the event's context, to which offsets of fields are added */
	__u64 comm[2]; /* the name of the thread, padded with zeros, if sb_expr.needs_comm */
	/* Set by sb_expr_begin(). At the end, the first element of one of both is the result. */
	__u64 ints[SB_EXPR_INTS_MAX];
	__u64 strings[SB_EXPR_STRINGS_MAX][SB_EXPR_STRING_WORDS];
	__u32 nr_ints, nr_strings;
	__u32 pc;    /* the next instruction */
	__u32 flags; /* SB_EXPR_DIV_ZERO, SB_EXPR_BAD_READ, SB_EXPR_CUT */
};

/* Prepare for the first step: empty both stacks and clear run->flags. What the caller has supplied
 * (context, value[], comm) is kept. */
static __always_inline void sb_expr_begin(struct sb_expr_run *run)
{
	run->ints[0] = 0;
	run->strings[0][0] = 0;
	run->nr_ints = run->nr_strings = run->pc = run->flags = 0;
}

/*
 * Return: the place of the integer that is @below elements below the top; 0: the top itself. Once
 * an element is pushed or popped, the place is that of another @below. push() and pop() do not
 * check the height: a forged program can only overwrite its own values.
 */
static __always_inline __u64 *sb_expr_int(struct sb_expr_run *run, __u32 below)
{
	__u32 at = run->nr_ints - 1 - below;

	SB_STEP_OPAQUE(at);
	return &run->ints[at & (SB_EXPR_INTS_MAX - 1)];
}

/* Push the integer @val. */
static __always_inline void sb_expr_push(struct sb_expr_run *run, __u64 val)
{
	run->nr_ints++;
	*sb_expr_int(run, 0) = val;
}

/* Return: the integer on top, which is taken off. */
static __always_inline __u64 sb_expr_pop(struct sb_expr_run *run)
{
	__u64 val = *sb_expr_int(run, 0);

	run->nr_ints--;
	return val;
}

/* Return: the words of the string that is @below elements below the top of the strings. */
static __always_inline __u64 *sb_expr_string(struct sb_expr_run *run, __u32 below)
{
	__u32 at = run->nr_strings - 1 - below;

	SB_STEP_OPAQUE(at);
	return run->strings[at & (SB_EXPR_STRINGS_MAX - 1)];
}

/* Return: a new string on top of the stack, which is empty: all of its bytes are 0. */
static __always_inline __u64 *sb_expr_push_string(struct sb_expr_run *run)
{
	__u64 *string;
	__u32 i;

	run->nr_strings++;
	string = sb_expr_string(run, 0);
	for (i = 0; i < SB_EXPR_STRING_WORDS; i++)
		string[i] = 0;
	return string;
}

/* Return: the lowest @size bytes of @val, extended to 64 bits: with the sign if @is_signed, else
 * with zeros; @size is 1, 2, 4 or 8. */
static __always_inline __u64 sb_expr_extend(__u64 val, __u32 size, __u32 is_signed)
{
	__u32 shift = (64 - 8 * size) & 63;

	val <<= shift;
	return is_signed ? (__u64)((__s64)val >> shift) : val >> shift;
}

/* SB_EXPR_OP_CONTEXT: push an integer of the context; 0 with SB_EXPR_BAD_READ if it cannot be
 * read. */
static __always_inline void sb_expr_load(struct sb_expr_run *run, const struct sb_expr_insn *insn,
					 void *mem)
{
	__u64 val = 0, size = insn->size;

	/* Both machines are little-endian: the value stands in the lowest bytes. */
	SB_STEP_OPAQUE(size);
	if (size > sizeof(val))
		size = sizeof(val);
	if (SB_EXPR_READ(mem, &val, size, run->context + insn->at)) {
		run->flags |= SB_EXPR_BAD_READ;
		val = 0;
	}
	sb_expr_push(run, sb_expr_extend(val, insn->size, insn->is_signed));
}

/*
 * Push the string at @addr, of which @len bytes with the zero at its end are read at most.
 * @is_user: not 0: an address of the process, else of the kernel. Sets SB_EXPR_BAD_READ (it is ""
 * then) or SB_EXPR_CUT.
 */
static __always_inline void sb_expr_load_string(struct sb_expr_run *run, __u64 len, __u64 addr,
						int is_user, void *mem)
{
	__u64 *string = sb_expr_push_string(run);
	long nr;

	SB_STEP_OPAQUE(len);
	if (len > SB_EXPR_STRING_MAX + 1)
		len = SB_EXPR_STRING_MAX + 1;
	nr = is_user ? SB_EXPR_READ_USER_STR(mem, string, len, addr)
		     : SB_EXPR_READ_STR(mem, string, len, addr);
	if (nr < 0)
		run->flags |= SB_EXPR_BAD_READ;
	else if (nr > (long)SB_EXPR_STRING_MAX)
		run->flags |= SB_EXPR_CUT;
}

/* SB_EXPR_OP_STR_DATA_LOC: push a tracepoint's string of variable length: the word at offset @at of
 * the context has its length and its offset; "" with SB_EXPR_BAD_READ if it is unreadable;
 * SB_EXPR_CUT is set if it has SB_EXPR_STRING_MAX bytes or more. */
static __always_inline void sb_expr_load_data_loc(struct sb_expr_run *run, __u32 at, void *mem)
{
	__u32 word = 0;

	if (SB_EXPR_READ(mem, &word, sizeof(word), run->context + at)) {
		run->flags |= SB_EXPR_BAD_READ;
		word = 0;
	}
	sb_expr_load_string(run, word >> 16, run->context + (word & 0xffff), 0, mem);
}

/* Return: whether @addr is one of the kernel: by its highest bit; on arm64 by bit 55. */
static __always_inline int sb_expr_is_kernel(__u64 addr)
{
#ifdef SB_MACHINE_ARM64
	return addr >> 55 & 1; /* the byte above may be a tag */
#else
	return addr >> 63;
#endif
}

/* Pop an address, and push the string there, or "" with SB_EXPR_BAD_READ if it cannot be read;
 * SB_EXPR_CUT is set if it has SB_EXPR_STRING_MAX bytes or more.
 * @is_always_user: not 0: the address is never one of the kernel */
static __always_inline void sb_expr_load_string_at(struct sb_expr_run *run, __u32 is_always_user,
						   void *mem)
{
	__u64 addr = sb_expr_pop(run);

	sb_expr_load_string(run, SB_EXPR_STRING_MAX + 1, addr,
			    is_always_user || !sb_expr_is_kernel(addr), mem);
}

/* Push a copy of the @nr_words words at @from, at most SB_EXPR_STRING_WORDS: a literal, or the name
 * of the thread. */
static __always_inline void sb_expr_copy_string(struct sb_expr_run *run, const __u64 *from,
						__u32 nr_words)
{
	__u64 *string = sb_expr_push_string(run);
	__u32 i;

	for (i = 0; i < nr_words; i++)
		string[i] = from[i];
}

/* Pop two strings. Return: whether they are equal. */
static __always_inline int sb_expr_strings_equal(struct sb_expr_run *run)
{
	const __u64 *a = sb_expr_string(run, 1), *b = sb_expr_string(run, 0);
	__u64 differ = 0;
	__u32 i;

	for (i = 0; i < SB_EXPR_STRING_WORDS; i++)
		differ |= a[i] ^ b[i];
	run->nr_strings -= 2;
	return !differ;
}

/*
 * Return: the quotient, rounded towards zero, or, if insn->op is SB_EXPR_OP_MOD, the remainder,
 * which has the sign of @a; of signed numbers if insn->is_signed. By hand, because BPF has no
 * signed division before Linux 6.6. The most negative number divided by -1 is itself. If @b is 0:
 * 0, with SB_EXPR_DIV_ZERO in run->flags.
 */
static __always_inline __u64 sb_expr_divide(struct sb_expr_run *run,
					    const struct sb_expr_insn *insn, __u64 a, __u64 b)
{
	int is_mod = insn->op == SB_EXPR_OP_MOD;
	int a_neg = insn->is_signed && (__s64)a < 0, b_neg = insn->is_signed && (__s64)b < 0;
	__u64 val;

	if (!b) {
		run->flags |= SB_EXPR_DIV_ZERO;
		return 0;
	}
	a = a_neg ? 0 - a : a;
	b = b_neg ? 0 - b : b;
	val = is_mod ? a % b : a / b;
	return (is_mod ? a_neg : a_neg != b_neg) ? 0 - val : val;
}

/* Return: whether @a is less than @b, as signed numbers if insn->is_signed. */
static __always_inline int sb_expr_less(const struct sb_expr_insn *insn, __u64 a, __u64 b)
{
	return insn->is_signed ? (__s64)a < (__s64)b : a < b;
}

/*
 * Pop integer b, then integer a, and push the result of the operation insn->op, which is one of
 * SB_EXPR_OP_ADD to SB_EXPR_OP_GE, with a on its left and b on its right. Division and remainder,
 * shifts to the right and comparisons are signed if insn->is_signed. Shifts take the lowest 6 bits
 * of b. Division and remainder by 0 give 0 and set SB_EXPR_DIV_ZERO in run->flags.
 */
static __always_inline void sb_expr_binary(struct sb_expr_run *run, const struct sb_expr_insn *insn)
{
	__u64 b = sb_expr_pop(run), a = *sb_expr_int(run, 0), val = 0;

	switch (insn->op) {
	case SB_EXPR_OP_ADD:
		val = a + b;
		break;
	case SB_EXPR_OP_SUB:
		val = a - b;
		break;
	case SB_EXPR_OP_MUL:
		val = a * b;
		break;
	case SB_EXPR_OP_DIV:
	case SB_EXPR_OP_MOD:
		val = sb_expr_divide(run, insn, a, b);
		break;
	case SB_EXPR_OP_SHL:
		val = a << (b & 63);
		break;
	case SB_EXPR_OP_SHR:
		val = insn->is_signed ? (__u64)((__s64)a >> (b & 63)) : a >> (b & 63);
		break;
	case SB_EXPR_OP_BIT_AND:
		val = a & b;
		break;
	case SB_EXPR_OP_BIT_OR:
		val = a | b;
		break;
	case SB_EXPR_OP_BIT_XOR:
		val = a ^ b;
		break;
	case SB_EXPR_OP_EQ:
		val = a == b;
		break;
	case SB_EXPR_OP_NE:
		val = a != b;
		break;
	case SB_EXPR_OP_LT:
		val = sb_expr_less(insn, a, b);
		break;
	case SB_EXPR_OP_LE:
		val = !sb_expr_less(insn, b, a);
		break;
	case SB_EXPR_OP_GT:
		val = sb_expr_less(insn, b, a);
		break;
	case SB_EXPR_OP_GE:
		val = !sb_expr_less(insn, a, b);
		break;
	}
	*sb_expr_int(run, 0) = val;
}

/* Replace the integer on top by what insn->op, SB_EXPR_OP_EXTEND to BOOL, makes of it: extended
 * from fewer bytes, negated, with all bits inverted, 1 if it is 0, or 1 if it is not 0. */
static __always_inline void sb_expr_unary(struct sb_expr_run *run, const struct sb_expr_insn *insn)
{
	__u64 *top = sb_expr_int(run, 0), val = *top;

	switch (insn->op) {
	case SB_EXPR_OP_EXTEND:
		val = sb_expr_extend(val, insn->size, insn->is_signed);
		break;
	case SB_EXPR_OP_NEGATE:
		val = 0 - val;
		break;
	case SB_EXPR_OP_INVERT:
		val = ~val;
		break;
	case SB_EXPR_OP_NOT:
		val = !val;
		break;
	case SB_EXPR_OP_BOOL:
		val = !!val;
		break;
	}
	*top = val;
}

/*
 * Execute a jump. SB_EXPR_OP_JUMP continues at insn->at. The others pop an integer and continue
 * there if it is 0, SB_EXPR_OP_OR if it is not 0; when they do, AND pushes 0 and OR pushes 1.
 * Otherwise the next instruction follows.
 */
static __always_inline void sb_expr_jump(struct sb_expr_run *run, const struct sb_expr_insn *insn)
{
	__u64 val = insn->op == SB_EXPR_OP_JUMP ? 0 : sb_expr_pop(run);
	int is_or = insn->op == SB_EXPR_OP_OR;

	if (is_or != !!val)
		return;
	if (insn->op == SB_EXPR_OP_AND || is_or)
		sb_expr_push(run, (__u64)is_or);
	run->pc = insn->at;
}

/*
 * Execute one of the operations from SB_EXPR_OP_CONST to SB_EXPR_OP_STR_AT: push a value, a
 * literal, the name of the thread, or what is read from memory. STR_AT pops the address before.
 */
static __always_inline void sb_expr_operand(struct sb_expr_run *run, const struct sb_expr *expr,
					    const struct sb_expr_insn *insn, void *mem)
{
	__u32 at = insn->at;

	SB_STEP_OPAQUE(at);
	switch (insn->op) {
	case SB_EXPR_OP_CONST:
		sb_expr_push(run, insn->imm);
		break;
	case SB_EXPR_OP_VALUE:
		sb_expr_push(run, sb_expr_extend(run->value[at & (SB_EXPR_VALUES_MAX - 1)],
						 insn->size, insn->is_signed));
		break;
	case SB_EXPR_OP_CONTEXT:
		sb_expr_load(run, insn, mem);
		break;
	case SB_EXPR_OP_STR_CONST:
		sb_expr_copy_string(run, expr->string[at & (SB_EXPR_CONSTS_MAX - 1)],
				    SB_EXPR_STRING_WORDS);
		break;
	case SB_EXPR_OP_STR_COMM:
		sb_expr_copy_string(run, run->comm, 2);
		break;
	case SB_EXPR_OP_STR_CONTEXT:
		/* A full array has no zero at its end: one byte more is asked for, and is set to
		 * 0. */
		sb_expr_load_string(run, insn->size + 1ull, run->context + at, 0, mem);
		break;
	case SB_EXPR_OP_STR_DATA_LOC:
		sb_expr_load_data_loc(run, at, mem);
		break;
	case SB_EXPR_OP_STR_AT:
		sb_expr_load_string_at(run, insn->is_signed, mem);
		break;
	}
}

/**
 * sb_expr_step() - execute one instruction
 * @run: sb_expr_begin() has prepared it; it may not be shared with anybody who can interrupt this
 * @expr: not changed
 * @mem: passed to the macros that read memory
 *
 * Thread: any, one at a time for each @run; any BPF program.
 * Return: 1: call it again, which is needed at most SB_EXPR_INSNS_MAX times; 0: the result is
 * there, and sb_expr_begin() comes before the next call: at the end of the program, or at an
 * instruction that does not exist, at which a forged one ends.
 */
static __always_inline int sb_expr_step(struct sb_expr_run *run, const struct sb_expr *expr,
					void *mem)
{
	const struct sb_expr_insn *insn;
	__u32 pc = run->pc;

	SB_STEP_OPAQUE(pc);
	if (pc >= SB_EXPR_INSNS_MAX)
		return 0;
	insn = &expr->insn[pc];
	run->pc = pc + 1;
	switch (insn->op) {
	case SB_EXPR_OP_END:
		return 0;
	case SB_EXPR_OP_CONST ... SB_EXPR_OP_STR_AT:
		sb_expr_operand(run, expr, insn, mem);
		break;
	case SB_EXPR_OP_STR_EQ:
	case SB_EXPR_OP_STR_NE:
		sb_expr_push(run, (__u64)(sb_expr_strings_equal(run) ==
					  (insn->op == SB_EXPR_OP_STR_EQ)));
		break;
	case SB_EXPR_OP_JUMP ... SB_EXPR_OP_OR:
		sb_expr_jump(run, insn);
		break;
	case SB_EXPR_OP_EXTEND ... SB_EXPR_OP_BOOL:
		sb_expr_unary(run, insn);
		break;
	case SB_EXPR_OP_ADD ... SB_EXPR_OP_GE:
		sb_expr_binary(run, insn);
		break;
	default:
		return 0;
	}
	return 1;
}

#endif
