/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A decoder of x86-64 machine code, for finding where an interpreter keeps its state and where a
 * function returns. It knows the length of every instruction, and the meaning of loads, address
 * computations and branches.
 * Encoding: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2 and
 * appendix A.
 * No pointer is NULL. Thread: any.
 */
#ifndef SB_DISASM_H
#define SB_DISASM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the processes of this machine run x86-64 code. */
#ifdef __x86_64__
#define SB_DISASM_HERE true
#else
#define SB_DISASM_HERE false
#endif

#define SB_INSN_BYTES_MAX 15

enum sb_insn_kind {
	SB_INSN_OTHER,
	SB_INSN_LEA,	  /* lea mem, %reg */
	SB_INSN_LOAD,	  /* mov mem, %reg: 4 or 8 bytes */
	SB_INSN_STORE,	  /* mov %reg, mem */
	SB_INSN_MOVE,	  /* mov %base, %reg */
	SB_INSN_IMM,	  /* mov $imm, %reg; xor %reg, %reg */
	SB_INSN_ADD_IMM,  /* add $imm, %reg; sub has -imm */
	SB_INSN_CMP_IMM,  /* cmp $imm, mem */
	SB_INSN_CALL,	  /* to target */
	SB_INSN_JMP,	  /* to target */
	SB_INSN_JCC,	  /* to target, or not */
	SB_INSN_CALL_MEM, /* call *mem, call *%base */
	SB_INSN_JMP_MEM,
	SB_INSN_RET,
	SB_INSN_TRAP, /* ud2, int3, hlt: execution does not go on behind it */
};

/* The value of `base` without a base register. Registers have the numbers of the encoding: 0 rax, 1
 * rcx, 2 rdx, 3 rbx, 4 rsp, 5 rbp, 6 rsi, 7 rdi, 8 r8... */
#define SB_INSN_NO_BASE 16 /* disp is the address; rip was added for operands relative to it */

struct sb_insn {
	uint8_t kind; /* enum sb_insn_kind */
	uint8_t len;
	uint8_t reg;	  /* source or destination */
	uint8_t base;	  /* base register of the memory operand, or SB_INSN_NO_BASE */
	bool is_mem;	  /* there is a memory operand: base + disp */
	bool has_index;	  /* plus index * scale, which is not decoded */
	bool is_fs;	  /* relative to FS, the thread pointer */
	uint8_t nr_bytes; /* size of the operand: 1, 2, 4, 8 */
	int64_t disp;
	int64_t imm;
	uint64_t target; /* of direct branches and calls */
};

/* Decode the instruction at the beginning of the @len bytes of @code, which lie at address @addr:
 * it is added to operands and targets relative to rip. Return: 0; -EBADMSG when it is not known or
 * cut off; *@ret_insn means nothing then. */
int sb_insn_decode(const uint8_t *code, size_t len, uint64_t addr, struct sb_insn *ret_insn);

#endif
