// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The length decoder is three tables. Each has one letter for each opcode of its map, which says
 * what follows the opcode:
 *
 *	.  nothing		m  ModRM		!  not in 64-bit mode
 *	b  8 bits		B  ModRM, 8 bits	w  16 bits
 *	z  32 bits, 16 with 66	Z  ModRM, as z		x  24 bits
 *	v  64 bits if REX.W	o  64 bits, an address	t  ModRM, B or Z if reg is 0 or 1
 *	   is set, else z
 *
 * Prefixes, and the escapes to other maps, are decoded before that.
 */
#include <errno.h>
#include <string.h>

#include "symbolizer/elf/disasm.h"

static const char one_byte[] = "mmmmbz!!mmmmbz!!mmmmbz!!mmmmbz!!"  /* 00 */
			       "mmmmbz!!mmmmbz!!mmmmbz!!mmmmbz!!"  /* 20 */
			       "!!!!!!!!!!!!!!!!................"  /* 40: REX, push, pop */
			       "!!!m!!!!zZbB....bbbbbbbbbbbbbbbb"  /* 60 */
			       "BZ!Bmmmmmmmmmmmm..........!....."  /* 80 */
			       "oooo....bz......bbbbbbbbvvvvvvvv"  /* a0 */
			       "BBw.!!BZx.w..b!.mmmm!!!.mmmmmmmm"  /* c0 */
			       "bbbbbbbbzz!b....!.!!..tt......mm"; /* e0 */

static const char two_bytes[] = "mmmm!.....!.!m.Bmmmmmmmmmmmmmmmm"  /* 00 */
				"mmmm!!!!mmmmmmmm........!!!!!!!!"  /* 20 */
				"mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm"  /* 40 */
				"mmmmmmmmmmmmmmmmBBBBmmm.mmmmmmmm"  /* 60 */
				"zzzzzzzzzzzzzzzzmmmmmmmmmmmmmmmm"  /* 80 */
				"...mBm!!...mBmmmmmmmmmmmmmBmmmmm"  /* a0 */
				"mmBmBBBm........mmmmmmmmmmmmmmmm"  /* c0 */
				"mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm"; /* e0 */

_Static_assert(sizeof(one_byte) == 257 && sizeof(two_bytes) == 257, "a letter for each opcode");

struct decoder {
	const uint8_t *code;
	size_t at, len;
	uint8_t rex, map, opcode, modrm;
	bool is_16, is_vex;
	char follows;
};

static int next_byte(struct decoder *d, uint8_t *ret)
{
	if (d->at >= d->len || d->at >= SB_INSN_BYTES_MAX)
		return -EBADMSG;
	*ret = d->code[d->at++];
	return 0;
}

static int next_signed(struct decoder *d, size_t nr_bytes, int64_t *ret)
{
	uint64_t val = 0;

	if (nr_bytes > d->len - d->at)
		return -EBADMSG;
	memcpy(&val, d->code + d->at, nr_bytes);
	d->at += nr_bytes;
	if (nr_bytes < 8 && nr_bytes && val >> (8 * nr_bytes - 1))
		val |= ~0ull << (8 * nr_bytes);
	*ret = (int64_t)val;
	return 0;
}

static int read_prefixes(struct decoder *d, struct sb_insn *insn)
{
	uint8_t byte;

	for (;;) {
		if (next_byte(d, &byte))
			return -EBADMSG;
		switch (byte) {
		case 0x64:
			insn->is_fs = true;
			break;
		case 0x66:
			d->is_16 = true;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x65:
		case 0x67:
		case 0xf0:
		case 0xf2:
		case 0xf3:
			break;
		default:
			d->opcode = byte;
			return 0;
		}
	}
}

/* VEX and EVEX: the map is in a field, the prefixes are, too. */
static int read_vex(struct decoder *d)
{
	size_t nr_more = d->opcode == 0xc5 ? 1 : d->opcode == 0xc4 ? 2 : 3;
	uint8_t field = 0, byte;

	for (size_t i = 0; i < nr_more; i++) {
		if (next_byte(d, &byte))
			return -EBADMSG;
		if (i == 0)
			field = byte;
	}
	d->is_vex = true;
	d->map = nr_more == 1 ? 1 : field & (nr_more == 2 ? 31 : 7);
	if (d->map < 1 || d->map > 3)
		return -EBADMSG;
	return next_byte(d, &d->opcode);
}

static int read_opcode(struct decoder *d)
{
	if ((d->opcode & 0xf0) == 0x40) {
		d->rex = d->opcode;
		if (next_byte(d, &d->opcode))
			return -EBADMSG;
	}
	if (d->opcode == 0xc4 || d->opcode == 0xc5 || d->opcode == 0x62) {
		if (read_vex(d))
			return -EBADMSG;
	} else if (d->opcode == 0x0f) {
		if (next_byte(d, &d->opcode))
			return -EBADMSG;
		d->map = 1;
		if (d->opcode == 0x38 || d->opcode == 0x3a) {
			d->map = d->opcode == 0x38 ? 2 : 3;
			if (next_byte(d, &d->opcode))
				return -EBADMSG;
		}
	}
	d->follows = d->map == 0   ? one_byte[d->opcode]
		     : d->map == 1 ? two_bytes[d->opcode]
		     : d->map == 2 ? 'm'
				   : 'B';
	if (d->is_vex && d->map == 1 && (d->follows == 'z' || d->follows == '!'))
		return -EBADMSG;
	return d->follows == '!' ? -EBADMSG : 0;
}

/* ModRM, SIB, displacement. */
static int read_operand(struct decoder *d, struct sb_insn *insn)
{
	uint8_t mod, rm, sib;

	if (next_byte(d, &d->modrm))
		return -EBADMSG;
	mod = d->modrm >> 6;
	rm = d->modrm & 7;
	insn->reg = (d->modrm >> 3 & 7) | (d->rex & 4) << 1;
	insn->base = rm | (d->rex & 1) << 3;
	if (mod == 3)
		return 0;
	insn->is_mem = true;
	if (rm == 4) {
		if (next_byte(d, &sib))
			return -EBADMSG;
		insn->base = (sib & 7) | (d->rex & 1) << 3;
		insn->has_index = (sib >> 3 & 7) != 4 || (d->rex & 2);
		if (mod == 0 && (sib & 7) == 5) {
			insn->base = SB_INSN_NO_BASE;
			return next_signed(d, 4, &insn->disp);
		}
	} else if (mod == 0 && rm == 5) {
		insn->base = SB_INSN_NO_BASE;
		insn->target = 1; /* relative to the end, which is not known yet */
		return next_signed(d, 4, &insn->disp);
	}
	return mod == 0 ? 0 : next_signed(d, mod == 1 ? 1 : 4, &insn->disp);
}

static int read_immediate(struct decoder *d, struct sb_insn *insn)
{
	size_t nr_z = d->is_16 && !(d->rex & 8) ? 2 : 4, nr = 0;

	switch (d->follows) {
	case 't':
		if (!(d->modrm >> 3 & 6))
			nr = d->opcode == 0xf6 ? 1 : nr_z;
		break;
	case 'b':
	case 'B':
		nr = 1;
		break;
	case 'w':
		nr = 2;
		break;
	case 'x':
		nr = 3;
		break;
	case 'z':
	case 'Z':
		nr = nr_z;
		break;
	case 'v':
		nr = d->rex & 8 ? 8 : nr_z;
		break;
	case 'o':
		nr = 8;
		break;
	default:
		break;
	}
	/* A branch has 32 bits, whatever its prefixes: "data16" is a mere filler there. */
	if ((d->map == 0 && (d->opcode == 0xe8 || d->opcode == 0xe9)) ||
	    (d->map == 1 && (d->opcode & 0xf0) == 0x80))
		nr = 4;
	return next_signed(d, nr, &insn->imm);
}

static uint8_t kind_of_group5(const struct decoder *d)
{
	switch (d->modrm >> 3 & 7) {
	case 2:
		return SB_INSN_CALL_MEM;
	case 4:
		return SB_INSN_JMP_MEM;
	default:
		return SB_INSN_OTHER;
	}
}

/* add, sub and cmp with an immediate: group 1. */
static uint8_t kind_of_group1(const struct decoder *d, struct sb_insn *insn)
{
	uint8_t op = d->modrm >> 3 & 7;

	if (op == 7)
		return insn->is_mem ? SB_INSN_CMP_IMM : SB_INSN_OTHER;
	if (insn->is_mem || (op != 0 && op != 5))
		return SB_INSN_OTHER;
	if (op == 5)
		insn->imm = -insn->imm;
	insn->reg = insn->base;
	return SB_INSN_ADD_IMM;
}

static uint8_t kind_of(const struct decoder *d, struct sb_insn *insn)
{
	uint8_t op = d->opcode;

	if (d->is_vex || d->map > 1)
		return SB_INSN_OTHER;
	if (d->map == 1)
		return (op & 0xf0) == 0x80 ? SB_INSN_JCC
		       : op == 0x0b	   ? SB_INSN_TRAP
					   : SB_INSN_OTHER;
	if (op >= 0x70 && op <= 0x7f)
		return SB_INSN_JCC;
	if (op >= 0xb8 && op <= 0xbf) {
		insn->reg = (op & 7) | (d->rex & 1) << 3;
		/* 32 bits are extended by zeros here. */
		if (insn->nr_bytes == 4)
			insn->imm &= 0xffffffff;
		return SB_INSN_IMM;
	}
	switch (op) {
	case 0x31:
	case 0x33:
		if (insn->is_mem || insn->reg != insn->base)
			return SB_INSN_OTHER;
		return SB_INSN_IMM;
	case 0x80:
	case 0x81:
	case 0x83:
		return kind_of_group1(d, insn);
	case 0x89:
		if (insn->is_mem)
			return SB_INSN_STORE;
		op = insn->reg;
		insn->reg = insn->base;
		insn->base = op;
		return SB_INSN_MOVE;
	case 0x8b:
		return insn->is_mem ? SB_INSN_LOAD : SB_INSN_MOVE;
	case 0x8d:
		return insn->is_mem ? SB_INSN_LEA : SB_INSN_OTHER;
	case 0xc2:
	case 0xc3:
		return SB_INSN_RET;
	case 0xc7:
		insn->reg = insn->base;
		return insn->is_mem ? SB_INSN_OTHER : SB_INSN_IMM;
	case 0xcc:
	case 0xf4:
		return SB_INSN_TRAP;
	case 0xe8:
		return SB_INSN_CALL;
	case 0xe9:
	case 0xeb:
		return SB_INSN_JMP;
	case 0xff:
		return kind_of_group5(d);
	default:
		return SB_INSN_OTHER;
	}
}

static bool is_byte_op(const struct decoder *d)
{
	return d->map == 0 && d->opcode == 0x80;
}

static int decode(const uint8_t *code, size_t len, uint64_t addr, struct sb_insn *ret_insn)
{
	struct decoder d = { .code = code, .len = len };
	struct sb_insn insn = { .base = SB_INSN_NO_BASE, .index = SB_INSN_NO_BASE };

	if (read_prefixes(&d, &insn) || read_opcode(&d))
		return -EBADMSG;
	if (strchr("mBZt", d.follows) && read_operand(&d, &insn))
		return -EBADMSG;
	if (read_immediate(&d, &insn) || d.at > SB_INSN_BYTES_MAX)
		return -EBADMSG;
	insn.len = (uint8_t)d.at;
	if (insn.target) {
		insn.disp += (int64_t)(addr + insn.len);
		insn.target = 0;
	}
	insn.nr_bytes = is_byte_op(&d) ? 1 : d.rex & 8 ? 8 : d.is_16 ? 2 : 4;
	insn.kind = kind_of(&d, &insn);
	if (insn.kind == SB_INSN_CALL || insn.kind == SB_INSN_JMP || insn.kind == SB_INSN_JCC)
		insn.target = addr + insn.len + (uint64_t)insn.imm;
	*ret_insn = insn;
	return 0;
}

/* Scratch registers: System V ABI for x86-64, figure 3.4: rax rcx rdx rsi rdi r8 to r11. */
const struct sb_insn_set sb_insn_x86 = {
	.decode = decode,
	.reg_argument = 7,
	.reg_sp = 4,
	.scratch = 0x0fc7,
};
