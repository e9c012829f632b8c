/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decoders of machine code, for finding where an interpreter keeps its state and where a function
 * returns. They know the length of every instruction, and the meaning of loads, address
 * computations and branches. Order: take the set of the code's machine, and decode; the next
 * instruction begins behind the `len` bytes of this one. Nothing is to be released.
 * Encoding: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2 and
 * appendix A; Arm Architecture Reference Manual for A-profile, chapter C4.
 * No pointer is NULL. Thread: any.
 */
#ifndef SB_DISASM_H
#define SB_DISASM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SB_INSN_BYTES_MAX 15 /* of x86-64; of arm64 each has 4 */

enum sb_insn_kind {
	SB_INSN_OTHER,
	SB_INSN_LEA,   /* reg = base + disp: x86-64 lea; arm64 adr, adrp, add and sub of a constant,
			* add of a register */
	SB_INSN_LOAD,  /* 4 or 8 bytes of memory to reg; of a pair, the first */
	SB_INSN_STORE, /* reg to memory; of a pair, the first */
	SB_INSN_MOVE,  /* reg = base */
	SB_INSN_IMM,   /* reg = imm */
	SB_INSN_ADD_IMM,  /* reg += imm (x86-64) */
	SB_INSN_CMP_IMM,  /* compare memory with imm (x86-64) */
	SB_INSN_CALL,	  /* to target */
	SB_INSN_JMP,	  /* to target */
	SB_INSN_JCC,	  /* to target, or not */
	SB_INSN_CALL_MEM, /* to what is in memory (is_mem), or in base */
	SB_INSN_JMP_MEM,
	SB_INSN_RET,
	SB_INSN_TRAP, /* execution does not go on behind it: ud2, int3, hlt; udf, brk */
};

/* Registers have the numbers of the encoding. x86-64: 0 rax, 1 rcx, 2 rdx, 3 rbx, 4 rsp, 5 rbp, 6
 * rsi, 7 rdi, 8 r8... arm64: x0 to x30; 31 is sp, or zero as the source of a store. */
#define SB_INSN_REGS	32
/* The value of `base` without a base register: disp is the address, the instruction's own was added
 * to operands relative to it. */
#define SB_INSN_NO_BASE SB_INSN_REGS

struct sb_insn {
	uint8_t kind; /* enum sb_insn_kind */
	uint8_t len;
	uint8_t reg;	/* source or destination */
	uint8_t base;	/* base register of the memory operand, or SB_INSN_NO_BASE */
	bool is_mem;	/* there is a memory operand: base + disp */
	bool is_pair;	/* arm64: two registers, the other one with what is behind */
	bool has_index; /* plus an index register, which is scaled unless `index` names it */
	uint8_t index;	/* arm64: that register if it is not scaled; else SB_INSN_NO_BASE */
	bool is_fs;	/* relative to the thread pointer: FS, or on arm64 itself what is loaded */
	uint8_t nr_bytes; /* size of the operand: 1, 2, 4, 8 */
	int64_t disp;
	int64_t imm;
	uint64_t target; /* of direct branches and calls */
};

struct sb_insn_set {
	/* Decode the instruction at the beginning of the @len bytes of @code, which lie at address
	 * @addr: it is added to operands and targets relative to it. Return: 0; -EBADMSG when it is
	 * not known or cut off; *@ret_insn is untouched then. */
	int (*decode)(const uint8_t *code, size_t len, uint64_t addr, struct sb_insn *ret_insn);
	uint8_t reg_argument; /* the first argument of a function */
	uint8_t reg_sp;
	uint32_t scratch; /* bits of the registers that a called function may change */
};
extern const struct sb_insn_set sb_insn_x86, sb_insn_arm64;

/* That of the processes of this machine. */
#ifdef __x86_64__
#define SB_INSN_HERE (&sb_insn_x86)
#else
#define SB_INSN_HERE (&sb_insn_arm64)
#endif

#endif
