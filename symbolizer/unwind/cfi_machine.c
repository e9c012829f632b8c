// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Conversion of register states from CFI to unwind rules, with one part for each machine. A file
 * is compiled for the machine that it was made for.
 */
#include <dwarf.h>

#include "base/cleanup.h"
#include "symbolizer/unwind/cfi_priv.h"

/* DWARF numbers of registers: System V ABI for x86-64, figure 3.36. */
#define X86_RBX	      3
#define X86_RBP	      6
#define X86_RSP	      7
#define X86_RA	      16
#define X86_NR_GPRS   16
#define RA_SLOT	      (-8) /* where a call puts the return address, from the CFA */

/* AADWARF64, section 4.1. */
#define ARM64_FP      29
#define ARM64_LR      30
#define ARM64_SP      31
#define ARM64_NR_GPRS 31
#define WORD_BYTES    8
#define PLT_BYTES     16 /* of x16 and x30 */

static bool fits_s16(int64_t val)
{
	return val == (int16_t)val;
}

static bool fits_s32(int64_t val)
{
	return val == (int32_t)val;
}

static bool set_cfa(const struct sb_cfi_machine *machine, const struct sb_cfi_state *state,
		    struct sb_uw_rule *rule)
{
	if (state->is_expr) {
		rule->cfa = state->expr.cfa;
		rule->cfa_off = state->expr.cfa_off;
		return rule->cfa != SB_UW_CFA_UNSUP;
	}
	if (state->cfa_reg == machine->sp)
		rule->cfa = SB_UW_CFA_SP;
	else if (state->cfa_reg == machine->fp)
		rule->cfa = SB_UW_CFA_FP;
	else if (state->cfa_reg < machine->nr_gprs)
		rule->cfa = (uint8_t)(SB_UW_CFA_REG + state->cfa_reg);
	else
		return false;
	rule->cfa_off = (int32_t)state->cfa_off;
	return fits_s32(state->cfa_off);
}

/* The caller's frame pointer, where it is saved nowhere. Return: false: it is. */
static bool set_fp_unsaved(const struct sb_cfi_state *state, struct sb_uw_rule *rule)
{
	rule->fp = state->how[SB_CFI_FP] == SB_CFI_HOW_UNDEF ? SB_UW_FP_UNDEF : SB_UW_FP_SAME;
	return state->how[SB_CFI_FP] == SB_CFI_HOW_DEFAULT ||
	       state->how[SB_CFI_FP] == SB_CFI_HOW_UNDEF;
}

static bool x86_set_fp(const struct sb_cfi_state *state, struct sb_uw_rule *rule)
{
	int64_t off = state->val[SB_CFI_FP];

	if (set_fp_unsaved(state, rule))
		return true;
	switch (state->how[SB_CFI_FP]) {
	case SB_CFI_HOW_AT_CFA:
		rule->fp = SB_UW_FP_AT_CFA;
		break;
	case SB_CFI_HOW_AT_FP:
		rule->fp = SB_UW_FP_AT_FP;
		break;
	default:
		return false;
	}
	rule->fp_off = (int16_t)off;
	return fits_s16(off);
}

static uint8_t x86_bx_slot(const struct sb_cfi_state *state)
{
	int64_t off = state->val[SB_CFI_BX];

	if (state->how[SB_CFI_BX] == SB_CFI_HOW_DEFAULT)
		return SB_UW_BX_SAME;
	if (state->how[SB_CFI_BX] != SB_CFI_HOW_AT_CFA || off % 8 || off >= RA_SLOT ||
	    off < -8 * SB_UW_BX_SLOT_MAX)
		return SB_UW_BX_LOST;
	return (uint8_t)(-off / 8);
}

/* The return address; the rule is complete but for it. */
static bool x86_set_ra(const struct sb_cfi_state *state, struct sb_uw_rule *rule)
{
	int64_t val = state->val[SB_CFI_RA];

	if (state->how[SB_CFI_RA] == SB_CFI_HOW_AT_CFA)
		return val == RA_SLOT;
	/* glibc's vfork() pops it, to push it again when the child is gone. */
	if (state->how[SB_CFI_RA] != SB_CFI_HOW_REG || val >= X86_NR_GPRS ||
	    rule->cfa != SB_UW_CFA_SP || rule->fp != SB_UW_FP_SAME)
		return false;
	rule->cfa = SB_UW_CFA_RA_REG;
	rule->fp_off = (int16_t)val;
	return true;
}

static bool x86_set_regs(const struct sb_cfi_state *state, struct sb_uw_rule *rule)
{
	rule->bx = x86_bx_slot(state) & SB_UW_BX_SLOT_MAX;
	return x86_set_fp(state, rule) && x86_set_ra(state, rule);
}

/* What each stub of a lazy PLT has: 8 + (the rest of rip by 16 says whether it has pushed) * 8. */
static bool match_plt(const uint8_t *bytes, size_t len, struct sb_uw_rule *rule)
{
	static const uint8_t head[] = { DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and };
	static const uint8_t tail[] = { DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus };

	if (len != sizeof(head) + 1 + sizeof(tail) || memcmp(bytes, head, sizeof(head)) ||
	    memcmp(bytes + sizeof(head) + 1, tail, sizeof(tail)))
		return false;
	if (bytes[sizeof(head)] == DW_OP_lit11)
		rule->cfa = SB_UW_CFA_PLT11;
	else if (bytes[sizeof(head)] == DW_OP_lit10)
		rule->cfa = SB_UW_CFA_PLT10;
	else
		return false;
	return true;
}

/* + r9 * 8, as the bignum multiplication of OpenSSL has it. Moves @cur behind it. */
static bool match_r9(struct sb_cursor *cur)
{
	static const uint8_t ops[] = { DW_OP_breg9, 0, DW_OP_lit8, DW_OP_mul, DW_OP_plus };

	if (sb_cursor_left(cur) < sizeof(ops) || memcmp(cur->at, ops, sizeof(ops)))
		return false;
	sb_cursor_skip(cur, sizeof(ops));
	return true;
}

/* *(rsp + a) + b, *(rbp + a) + b: GCC's functions that align their stack, hand-written code. */
static bool match_deref(const uint8_t *bytes, size_t len, struct sb_uw_rule *rule)
{
	struct sb_cursor cur = { .at = bytes, .end = bytes + len };
	uint8_t op = sb_cursor_u8(&cur);
	int64_t before = sb_cursor_sleb(&cur);
	bool has_r9 = op == DW_OP_breg7 && match_r9(&cur);
	uint64_t behind = 0;

	if ((op != DW_OP_breg7 && op != DW_OP_breg6) || sb_cursor_u8(&cur) != DW_OP_deref)
		return false;
	if (sb_cursor_left(&cur)) {
		if (sb_cursor_u8(&cur) != DW_OP_plus_uconst)
			return false;
		behind = sb_cursor_uleb(&cur);
	}
	if (cur.is_bad || sb_cursor_left(&cur) || !fits_s16(before) || behind > UINT16_MAX)
		return false;
	rule->cfa = op == DW_OP_breg6 ? SB_UW_CFA_AT_FP
		    : has_r9	      ? SB_UW_CFA_AT_SP_R9
				      : SB_UW_CFA_AT_SP;
	rule->cfa_off = (int32_t)((uint32_t)behind << 16 | (uint16_t)before);
	return true;
}

static bool x86_match_cfa(const uint8_t *bytes, size_t len, struct sb_uw_rule *rule)
{
	return match_plt(bytes, len, rule) || match_deref(bytes, len, rule);
}

static size_t x86_find_clone(const uint8_t *code, size_t len)
{
	size_t at, behind = 0;

	for (at = 0; at + 2 <= len; at++) {
		if (code[at] == 0x0f && code[at + 1] == 0x05) /* syscall */
			behind = at + 2;
		else if (behind && code[at] == 0x74 && code[at + 1] == len - at - 2) /* je */
			return behind;
	}
	return 0;
}

static bool arm64_set_fp_off(int64_t off, struct sb_uw_rule *rule)
{
	rule->fp_off = (int16_t)(off / WORD_BYTES);
	return !(off % WORD_BYTES) && fits_s16(off / WORD_BYTES);
}

static bool arm64_set_fp(const struct sb_cfi_state *state, struct sb_uw_rule *rule)
{
	int64_t off = state->val[SB_CFI_FP];

	if (set_fp_unsaved(state, rule))
		return true;
	if (state->how[SB_CFI_FP] != SB_CFI_HOW_AT_CFA)
		return false;
	rule->fp = SB_UW_FP_AT_CFA;
	if (arm64_set_fp_off(off, rule))
		return true;
	/* Far below the CFA, but near to where sp or x29 points. */
	rule->fp = SB_UW_FP_AT_FP;
	return rule->cfa < SB_UW_CFA_REG && arm64_set_fp_off(rule->cfa_off + off, rule);
}

/* The return address; the rule is complete but for it. */
static bool arm64_set_ra(const struct sb_cfi_state *state, struct sb_uw_rule *rule)
{
	int64_t off = state->val[SB_CFI_RA];
	bool has_fp = rule->fp == SB_UW_FP_AT_CFA || rule->fp == SB_UW_FP_AT_FP;

	if (state->how[SB_CFI_RA] == SB_CFI_HOW_DEFAULT) {
		rule->bx = SB_UW_RA_LR;
		return true;
	}
	if (state->how[SB_CFI_RA] == state->how[SB_CFI_FP] &&
	    off == state->val[SB_CFI_FP] + WORD_BYTES && has_fp) {
		rule->bx = SB_UW_RA_PAIR;
		return true;
	}
	if (state->how[SB_CFI_RA] != SB_CFI_HOW_AT_CFA || off % WORD_BYTES)
		return false;
	if (off < 0 && off >= -WORD_BYTES * SB_UW_RA_SLOT_MAX) {
		rule->bx = (uint8_t)(-off / WORD_BYTES) & SB_UW_RA_PAIR;
		return true;
	}
	rule->bx = SB_UW_RA_PAIR;
	return !has_fp && arm64_set_fp_off(rule->cfa_off + off - WORD_BYTES, rule);
}

/*
 * No return address lies above the CFA. glibc's _dl_runtime_resolve() says so, of all versions up
 * to 2.42: its CFA does not count what the PLT has pushed (sysdeps/aarch64/dl-trampoline.S).
 */
static bool is_behind_plt(const struct sb_cfi_state *state)
{
	return state->how[SB_CFI_RA] == SB_CFI_HOW_AT_CFA && state->val[SB_CFI_RA] == WORD_BYTES &&
	       state->how[SB_CFI_FP] == SB_CFI_HOW_DEFAULT && !state->is_expr &&
	       state->cfa_reg == ARM64_SP;
}

static bool arm64_set_regs(const struct sb_cfi_state *state, struct sb_uw_rule *rule)
{
	if (is_behind_plt(state)) {
		rule->bx = 1;
		rule->cfa_off = (int32_t)(state->cfa_off + PLT_BYTES);
		return fits_s32(state->cfa_off + PLT_BYTES);
	}
	return arm64_set_fp(state, rule) && arm64_set_ra(state, rule);
}

static size_t arm64_find_clone(const uint8_t *code, size_t len)
{
	size_t at, behind = 0;
	uint32_t insn;

	for (at = 0; at + sizeof(insn) <= len; at += sizeof(insn)) {
		memcpy(&insn, code + at, sizeof(insn));
		if (insn == 0xd4000001) /* svc #0 */
			behind = at + sizeof(insn);
		/* b.eq; cbz x0 */
		else if (behind && (insn >> 5 & 0x7ffff) * sizeof(insn) == len - at &&
			 ((insn & 0xff00001f) == 0x54000000 || (insn & 0xff00001f) == 0xb4000000))
			return behind;
	}
	return 0;
}

static const struct sb_cfi_machine machines[] = {
	{
		.elf_machine = EM_X86_64,
		.fp = X86_RBP,
		.sp = X86_RSP,
		.ra = X86_RA,
		.nr_gprs = X86_NR_GPRS,
		.reg_of = { [X86_RBX] = 1 + SB_CFI_BX,
			    [X86_RBP] = 1 + SB_CFI_FP,
			    [X86_RSP] = 1 + SB_CFI_SP,
			    [X86_RA] = 1 + SB_CFI_RA },
		/* mov $__NR_rt_sigreturn, %rax; syscall */
		.trampoline = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 },
		.trampoline_bytes = 9,
		.nop_bytes = 1,
		.match_cfa = x86_match_cfa,
		.set_regs = x86_set_regs,
		.find_clone = x86_find_clone,
	},
	{
		.elf_machine = EM_AARCH64,
		.fp = ARM64_FP,
		.sp = ARM64_SP,
		.ra = ARM64_LR,
		.nr_gprs = ARM64_NR_GPRS,
		.reg_of = { [ARM64_FP] = 1 + SB_CFI_FP,
			    [ARM64_SP] = 1 + SB_CFI_SP,
			    [ARM64_LR] = 1 + SB_CFI_RA },
		.has_signed_ra = true,
		/* mov x8, #__NR_rt_sigreturn; svc #0 */
		.trampoline = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4 },
		.trampoline_bytes = 8,
		.nop_bytes = 4,
		.set_regs = arm64_set_regs,
		.find_clone = arm64_find_clone,
	},
};

const struct sb_cfi_machine *sb_cfi_machine_of(uint16_t elf_machine)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(machines); i++)
		if (machines[i].elf_machine == elf_machine)
			return &machines[i];
	return NULL;
}

struct sb_uw_rule sb_cfi_rule(const struct sb_cfi_machine *machine,
			      const struct sb_cfi_state *state)
{
	struct sb_uw_rule rule = {};

	if (state->how[SB_CFI_RA] == SB_CFI_HOW_UNDEF)
		return (struct sb_uw_rule){ .cfa = SB_UW_CFA_STOP };
	if (state->how[SB_CFI_SP] != SB_CFI_HOW_DEFAULT || !set_cfa(machine, state, &rule) ||
	    !machine->set_regs(state, &rule))
		return (struct sb_uw_rule){ .cfa = SB_UW_CFA_UNSUP };
	return rule;
}
