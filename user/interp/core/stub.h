/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Symbolic execution of short accessor functions, to learn from their machine code where an
 * interpreter keeps its state. At each call, jump out and return, it is known how the values in
 * registers are computed, if they start from constants, the thread pointer or __tls_get_addr().
 *
 *	mov GOT(%rip),%rax; lea 8(%rax),%rdi; call f	rdi = CONST GOT, load, + 8
 *	mov x(%rip),%edi; jmp f				rdi = CONST x, load
 *	mov %fs:-24,%rax; mov 16(%rax),%rax; ret	rax = FS - 24, load, + 16, load
 *	lea GOT(%rip),%rdi; call __tls_get_addr;	rax = TLS GOT, + 8, load
 *	mov 8(%rax),%rax; ret
 *
 * Order: sb_stub_follow() calls @fn at each exit; @fn asks sb_stub_callee() where it leads, and
 * keeps a copy of a value of stub->reg, which sb_stub_value() then computes in the process.
 *
 * The examples are of x86-64. Any thread; functions that take a struct sb_image need the lock of
 * struct sb_interp, which protects it. No pointer is NULL but @arg, unless it says so; nothing is
 * kept after a call.
 */
#ifndef SB_INTERP_STUB_H
#define SB_INTERP_STUB_H

#include <stddef.h>
#include <stdint.h>

#include "symbolizer/elf/disasm.h"

struct sb_image;
struct sb_memory;

#define SB_STUB_LOADS_MAX 4

enum sb_stub_base {
	SB_STUB_UNKNOWN,     /* computed in a way that is not followed */
	SB_STUB_CONST,	     /* addr */
	SB_STUB_FS,	     /* the thread pointer */
	SB_STUB_FS_SLOT,     /* the thread pointer + the word at addr: initial-exec TLS */
	SB_STUB_TLS,	     /* what __tls_get_addr() returns for the pair at addr */
	SB_STUB_DESC_OFFSET, /* what the function of the TLS descriptor at addr returns (arm64) */
	SB_STUB_DESC,	     /* the thread pointer + that */
};

/* A computed value: base + off[0], then for each i in 1..nr_loads, load the word there and add
 * off[i]. */
struct sb_stub_value {
	uint8_t base; /* enum sb_stub_base */
	uint8_t nr_loads;
	uint64_t addr;
	int64_t off[SB_STUB_LOADS_MAX + 1];
};

enum sb_stub_exit {
	SB_STUB_CALL,
	SB_STUB_JUMP, /* a tail call */
	SB_STUB_RET,
};

struct sb_stub {
	enum sb_stub_exit exit;
	uint64_t at;	      /* address of the instruction; as all here, of the process */
	uint64_t target;      /* of a direct call or jump; 0: it is indirect, or a return */
	uint64_t target_slot; /* the GOT entry of an indirect one; 0: none */
	/* By number (symbolizer/elf/disasm.h), before the exit; with a return, [0] is the
	 * result. */
	struct sb_stub_value reg[SB_INSN_REGS];
};
#define SB_STUB_RESULT 0 /* rax, x0 */

/* Called at each exit. @stub is valid during the call; the functions of this header may be called.
 * Return: 0 to go on, behind a call or with another branch; anything else ends the walk and becomes
 * its result. */
typedef int (*sb_stub_fn)(void *arg, const struct sb_stub *stub);
/* Return: whether the call goes to __tls_get_addr(). */
typedef int (*sb_stub_is_tls_fn)(void *arg, const struct sb_stub *stub);

/*
 * Follow the function at @addr, an address of the process in @image, both sides of its forward
 * branches, for at most 96 instructions in all. Instructions that are not known end a branch.
 * @image is borrowed for the call, @arg is passed to @fn.
 * Return: the value with which @fn ended the walk; 0: it did not, for whatever reason; -EFAULT when
 * the code cannot be read.
 */
int sb_stub_follow(struct sb_image *image, uint64_t addr, sb_stub_fn fn, void *arg);
/* A copy of code of a machine. */
struct sb_stub_code {
	const struct sb_insn_set *set;
	const uint8_t *bytes;
	size_t len;
	uint64_t addr; /* where it lies in the process */
};
/* Follow the instructions of the function at the beginning of the copy @code, at most 96 in all,
 * and call @fn at each exit. A jump out of the copy is one, but conditional jumps out of it are
 * ignored. @is_tls is called with @arg and tells whether a call goes to __tls_get_addr(); if it is
 * NULL, no call does. Return: the value with which @fn ended the walk; 0 if @fn did not end it. */
int sb_stub_follow_code(const struct sb_stub_code *code, sb_stub_fn fn, sb_stub_is_tls_fn is_tls,
			void *arg);
/* Return: the name of the function that @stub calls through the PLT or the GOT, valid until the
 * next call; NULL: it calls another way, or there is no name. */
const char *sb_stub_callee(struct sb_image *image, const struct sb_stub *stub);

/*
 * Compute a value in a process, or the address that it was last loaded from. Only values that start
 * from a constant can be computed. Return: 0; -EINVAL for another base, or an address of a value
 * that was not loaded; -EFAULT, -ESRCH or -EPERM: memory cannot be read. *ret is untouched on
 * error.
 */
int sb_stub_value(const struct sb_memory *memory, const struct sb_stub_value *value, uint64_t *ret);
int sb_stub_address(const struct sb_memory *memory, const struct sb_stub_value *value,
		    uint64_t *ret);

#endif
