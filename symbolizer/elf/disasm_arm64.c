// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "symbolizer/elf/disasm.h"

#define INSN_BYTES 4

/* Return: the @nr bits of @word from bit @from on. */
static uint32_t bits(uint32_t word, unsigned int from, unsigned int nr)
{
	return word >> from & ((1u << nr) - 1);
}

static int64_t signed_bits(uint32_t word, unsigned int from, unsigned int nr)
{
	int64_t val = bits(word, from, nr);

	return val >> (nr - 1) ? val - (1ll << nr) : val;
}

/* b, bl; b.cond, cbz, cbnz; tbz, tbnz; br, blr, ret, also with an authenticated address. */
static bool take_branch(uint32_t word, uint64_t addr, struct sb_insn *insn)
{
	if ((word & 0x7c000000) == 0x14000000) {
		insn->kind = word >> 31 ? SB_INSN_CALL : SB_INSN_JMP;
		insn->target = addr + 4 * (uint64_t)signed_bits(word, 0, 26);
	} else if ((word & 0xff000000) == 0x54000000 || (word & 0x7e000000) == 0x34000000) {
		insn->kind = SB_INSN_JCC;
		insn->target = addr + 4 * (uint64_t)signed_bits(word, 5, 19);
	} else if ((word & 0x7e000000) == 0x36000000) {
		insn->kind = SB_INSN_JCC;
		insn->target = addr + 4 * (uint64_t)signed_bits(word, 5, 14);
	} else if ((word & 0xfe9ff000) == 0xd61f0000) {
		static const uint8_t kinds[] = { SB_INSN_JMP_MEM, SB_INSN_CALL_MEM, SB_INSN_RET };

		if (bits(word, 21, 2) == 3)
			return false;
		insn->kind = kinds[bits(word, 21, 2)];
		insn->base = (uint8_t)bits(word, 5, 5);
	} else {
		return false;
	}
	return true;
}

/* adr, adrp; add and sub of a constant; add of a register; movz, movn; mov of a register. */
static bool take_computation(uint32_t word, uint64_t addr, struct sb_insn *insn)
{
	uint32_t base = bits(word, 5, 5);

	insn->reg = (uint8_t)bits(word, 0, 5);
	insn->nr_bytes = word >> 31 ? 8 : 4;
	if ((word & 0x1f000000) == 0x10000000) {
		int64_t imm = signed_bits(word, 5, 19) * 4 + bits(word, 29, 2);

		insn->kind = SB_INSN_LEA;
		insn->disp =
			word >> 31 ? (int64_t)(addr & ~0xfffull) + imm * 4096 : (int64_t)addr + imm;
		insn->nr_bytes = 8;
	} else if ((word & 0xbf800000) == 0x91000000) {
		insn->kind = SB_INSN_LEA;
		insn->base = (uint8_t)base;
		insn->disp = (int64_t)bits(word, 10, 12) << (bits(word, 22, 1) ? 12 : 0);
		if (word & 0x40000000)
			insn->disp = -insn->disp;
	} else if ((word & 0xffe0fc00) == 0x8b000000) {
		insn->kind = SB_INSN_LEA;
		insn->base = (uint8_t)base;
		insn->has_index = true;
		insn->index = (uint8_t)bits(word, 16, 5);
	} else if ((word & 0x1f800000) == 0x12800000 && bits(word, 29, 2) % 2 == 0) {
		uint64_t val = (uint64_t)bits(word, 5, 16) << (16 * bits(word, 21, 2));

		val = word & 0x40000000 ? val : ~val;
		insn->kind = SB_INSN_IMM;
		insn->imm = (int64_t)(word >> 31 ? val : val & 0xffffffff);
	} else if ((word & 0xffe0ffe0) == 0xaa0003e0) {
		insn->kind = SB_INSN_MOVE;
		insn->base = (uint8_t)bits(word, 16, 5);
	} else {
		return false;
	}
	return true;
}

/* ldp, stp: signed offset, or before or after the base is changed. */
static bool take_pair(uint32_t word, struct sb_insn *insn)
{
	uint32_t how = bits(word, 23, 2);

	if ((word & 0x7e000000) != 0x28000000)
		return false;
	insn->kind = word & 1u << 22 ? SB_INSN_LOAD : SB_INSN_STORE;
	insn->nr_bytes = word >> 31 ? 8 : 4;
	insn->is_pair = true;
	insn->disp = how == 1 ? 0 : signed_bits(word, 15, 7) * insn->nr_bytes;
	return true;
}

/* ldr, ldrb and the like, str; of general registers. */
static bool take_single(uint32_t word, struct sb_insn *insn)
{
	uint32_t size = bits(word, 30, 2), op = bits(word, 22, 2);

	if ((word & 0x3e000000) != 0x38000000)
		return false;
	insn->nr_bytes = (uint8_t)(1 << size);
	/* Bytes, halves, and those with a sign are no addresses. */
	insn->kind = size < 2 || op > 1 ? SB_INSN_OTHER : op ? SB_INSN_LOAD : SB_INSN_STORE;
	if (word & 1u << 24) {
		insn->disp = (int64_t)bits(word, 10, 12) << size;
	} else if (!bits(word, 21, 1)) {
		insn->disp = bits(word, 10, 2) == 1 ? 0 : signed_bits(word, 12, 9);
	} else if (bits(word, 10, 2) == 2) {
		insn->has_index = true;
		if ((word & 0xf000) == 0x6000)
			insn->index = (uint8_t)bits(word, 16, 5);
	} else {
		return false; /* atomic, or with an authenticated address */
	}
	return true;
}

static bool take_memory(uint32_t word, uint64_t addr, struct sb_insn *insn)
{
	insn->reg = (uint8_t)bits(word, 0, 5);
	insn->is_mem = true;
	if ((word & 0xbf000000) == 0x18000000) { /* ldr of a literal */
		insn->kind = SB_INSN_LOAD;
		insn->nr_bytes = word & 0x40000000 ? 8 : 4;
		insn->disp = (int64_t)addr + 4 * signed_bits(word, 5, 19);
		return true;
	}
	if ((word & 0xffffffe0) == 0xd53bd040) { /* mrs of tpidr_el0 */
		insn->kind = SB_INSN_LOAD;
		insn->nr_bytes = 8;
		insn->is_fs = true;
		return true;
	}
	insn->base = (uint8_t)bits(word, 5, 5);
	return take_pair(word, insn) || take_single(word, insn);
}

static bool is_trap(uint32_t word)
{
	return !(word >> 16) || (word & 0xffe0001f) == 0xd4200000;
}

static int decode(const uint8_t *code, size_t len, uint64_t addr, struct sb_insn *ret_insn)
{
	static bool (*const takers[])(uint32_t, uint64_t, struct sb_insn *) = { take_branch,
										take_computation,
										take_memory };
	struct sb_insn insn;
	uint32_t word;

	if (len < INSN_BYTES)
		return -EBADMSG;
	memcpy(&word, code, sizeof(word));
	for (size_t i = 0; i < sizeof(takers) / sizeof(takers[0]); i++) {
		insn = (struct sb_insn){ .len = INSN_BYTES,
					 .base = SB_INSN_NO_BASE,
					 .index = SB_INSN_NO_BASE };
		if (!takers[i](word, addr, &insn))
			continue;
		*ret_insn = insn;
		return 0;
	}
	*ret_insn = (struct sb_insn){ .kind = is_trap(word) ? SB_INSN_TRAP : SB_INSN_OTHER,
				      .len = INSN_BYTES,
				      .base = SB_INSN_NO_BASE,
				      .index = SB_INSN_NO_BASE };
	return 0;
}

/* Scratch registers: Procedure Call Standard for the Arm 64-bit Architecture, section 6.1.1: x0 to
 * x18, and x30. */
const struct sb_insn_set sb_insn_arm64 = {
	.decode = decode,
	.reg_argument = 0,
	.reg_sp = 31,
	.scratch = 0x4007ffff,
};
