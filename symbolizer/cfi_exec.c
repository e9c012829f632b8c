// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <dwarf.h>
#include <errno.h>

#include "cfi_priv.h"

/* DWARF numbers of registers: System V ABI for x86-64, figure 3.36. */
#define REG_RBX		       3
#define REG_RBP		       6
#define REG_RSP		       7
#define REG_RA		       16
#define NR_GPRS		       16
#define RA_SLOT		       (-8) /* where a call puts the return address, from the CFA */
#define LEA_BYTES	       4    /* lea -8(%r10), %rsp */

/* Compilers nest 1 deep; 2 is the most that was seen in 2451 binaries of a distribution. */
#define SAVED_MAX	       8

/* Not in every <dwarf.h>. */
#define OP_GNU_NEGATIVE_OFFSET 0x2f
#define PRIMARY_MASK	       0xc0

struct exec {
	struct sb_cursor cur;
	const struct sb_cfi_section *section;
	const struct sb_cfi_cie *cie;
	const struct sb_cfi_sink *sink; /* NULL: a CIE, which has no rows */
	uint64_t loc, hi;
	bool is_changed;  /* since the last row */
	uint8_t last_cfa; /* of the last row: enum sb_uw_cfa */
	struct sb_cfi_state state;
	unsigned int nr_saved;
	struct sb_cfi_state saved[SAVED_MAX];
};

static bool fits_s16(int64_t val)
{
	return val == (int16_t)val;
}

static bool fits_s32(int64_t val)
{
	return val == (int32_t)val;
}

static bool set_cfa(const struct sb_cfi_state *state, struct sb_uw_rule *rule)
{
	if (state->is_expr) {
		rule->cfa = state->expr.cfa;
		rule->cfa_off = state->expr.cfa_off;
		return rule->cfa != SB_UW_CFA_UNSUP;
	}
	if (state->cfa_reg == REG_RSP)
		rule->cfa = SB_UW_CFA_SP;
	else if (state->cfa_reg == REG_RBP)
		rule->cfa = SB_UW_CFA_FP;
	else if (state->cfa_reg < NR_GPRS)
		rule->cfa = (uint8_t)(SB_UW_CFA_REG + state->cfa_reg);
	else
		return false;
	rule->cfa_off = (int32_t)state->cfa_off;
	return fits_s32(state->cfa_off);
}

static bool set_fp(const struct sb_cfi_state *state, struct sb_uw_rule *rule)
{
	int64_t off = state->val[SB_CFI_FP];

	switch (state->how[SB_CFI_FP]) {
	case SB_CFI_HOW_DEFAULT:
		rule->fp = SB_UW_FP_SAME;
		return true;
	case SB_CFI_HOW_UNDEF:
		rule->fp = SB_UW_FP_UNDEF;
		return true;
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

static uint8_t bx_slot(const struct sb_cfi_state *state)
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
static bool set_ra(const struct sb_cfi_state *state, struct sb_uw_rule *rule)
{
	int64_t val = state->val[SB_CFI_RA];

	if (state->how[SB_CFI_RA] == SB_CFI_HOW_AT_CFA)
		return val == RA_SLOT;
	/* glibc's vfork() pops it, to push it again when the child is gone. */
	if (state->how[SB_CFI_RA] != SB_CFI_HOW_REG || val >= NR_GPRS ||
	    rule->cfa != SB_UW_CFA_SP || rule->fp != SB_UW_FP_SAME)
		return false;
	rule->cfa = SB_UW_CFA_RA_REG;
	rule->fp_off = (int16_t)val;
	return true;
}

static struct sb_uw_rule to_rule(const struct sb_cfi_state *state)
{
	struct sb_uw_rule rule = {};

	if (state->how[SB_CFI_RA] == SB_CFI_HOW_UNDEF)
		return (struct sb_uw_rule){ .cfa = SB_UW_CFA_STOP };
	if (state->how[SB_CFI_SP] != SB_CFI_HOW_DEFAULT || !set_cfa(state, &rule) ||
	    !set_fp(state, &rule) || !set_ra(state, &rule))
		return (struct sb_uw_rule){ .cfa = SB_UW_CFA_UNSUP };
	rule.bx = bx_slot(state) & SB_UW_BX_SLOT_MAX;
	return rule;
}

/* rbp is saved at *rbp. */
static bool is_fp_at_fp(const struct sb_uw_rule *rule)
{
	return rule->fp == SB_UW_FP_AT_FP && !rule->fp_off;
}

/*
 * Where GCC has realigned the stack, rbp is saved at *rbp, and the CFI do not say when the epilogue
 * ("leave; lea -8(%r10), %rsp; ret", or "pop %rbp" for the first) has put it back: the caller's own
 * rbp would be taken for where it was saved. Anything may stand between the row and "leave", but
 * behind "lea", whose length is LEA_BYTES with either register GCC takes (r10, r13), is the next
 * row. Return: whether @rule is of such a place; @next is where the next one begins.
 */
static bool is_before_leave(const struct exec *ex, const struct sb_uw_rule *rule, uint64_t next)
{
	return is_fp_at_fp(rule) && rule->cfa >= SB_UW_CFA_REG && ex->last_cfa == SB_UW_CFA_AT_FP &&
	       next < ex->hi && next - ex->loc > LEA_BYTES;
}

/* Hand out the row at ex->loc, in force up to @next. */
static int flush_row(struct exec *ex, uint64_t next)
{
	const struct sb_cfi_sink *sink = ex->sink;
	struct sb_uw_rule rule;
	bool is_leaving;
	int err;

	if (!ex->is_changed || !sink)
		return 0;
	ex->is_changed = false;
	rule = to_rule(&ex->state);
	is_leaving = is_before_leave(ex, &rule, next);
	ex->last_cfa = rule.cfa;
	/* And where nothing is on the stack, nothing is saved there. */
	if (is_fp_at_fp(&rule) && rule.cfa == SB_UW_CFA_SP && rule.cfa_off == -RA_SLOT)
		rule.fp = SB_UW_FP_SAME;
	err = sink->row(sink->arg, ex->loc, &rule);
	if (err || !is_leaving)
		return err;
	rule.fp = SB_UW_FP_SAME;
	return sink->row(sink->arg, next - LEA_BYTES, &rule);
}

/* Return: 0, 1 when the end of the function is reached, or as the sink. */
static int move_to(struct exec *ex, uint64_t loc)
{
	int err;

	if (!ex->sink || loc < ex->loc)
		return -EBADMSG;
	if (loc == ex->loc)
		return 0;
	err = flush_row(ex, loc);
	if (err)
		return err;
	ex->loc = loc;
	return loc >= ex->hi;
}

static int advance(struct exec *ex, uint64_t delta)
{
	uint64_t loc;

	if (__builtin_mul_overflow(delta, ex->cie->code_align, &delta) ||
	    __builtin_add_overflow(ex->loc, delta, &loc))
		return -EBADMSG;
	return move_to(ex, loc);
}

static int set_loc(struct exec *ex)
{
	bool is_null;
	uint64_t loc = sb_cfi_read_addr(ex->section, &ex->cur, ex->cie->encoding, &is_null);

	return ex->cur.is_bad ? -EBADMSG : move_to(ex, loc);
}

/* Unsigned arithmetic: what overflows is nonsense, but must not be undefined. */
static int64_t scale(const struct exec *ex, uint64_t factored)
{
	return (int64_t)(factored * (uint64_t)ex->cie->data_align);
}

/* Return: whether @reg is one we follow. */
static bool find_reg(uint64_t reg, enum sb_cfi_reg *ret_reg)
{
	switch (reg) {
	case REG_RBX:
		*ret_reg = SB_CFI_BX;
		return true;
	case REG_RBP:
		*ret_reg = SB_CFI_FP;
		return true;
	case REG_RSP:
		*ret_reg = SB_CFI_SP;
		return true;
	case REG_RA:
		*ret_reg = SB_CFI_RA;
		return true;
	default:
		return false;
	}
}

static void set_reg(struct exec *ex, uint64_t reg, enum sb_cfi_how how, int64_t val)
{
	enum sb_cfi_reg i;

	if (!find_reg(reg, &i))
		return;
	ex->state.how[i] = (uint8_t)how;
	ex->state.val[i] = val;
	ex->is_changed = true;
}

static void restore_reg(struct exec *ex, uint64_t reg)
{
	enum sb_cfi_reg i;

	if (find_reg(reg, &i))
		set_reg(ex, reg, ex->cie->init.how[i], ex->cie->init.val[i]);
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
static bool match_deref(struct sb_cursor cur, struct sb_uw_rule *rule)
{
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

/* The expression that comes next. */
static struct sb_cursor take_block(struct exec *ex)
{
	uint64_t len = sb_cursor_uleb(&ex->cur);
	struct sb_cursor block = { .at = ex->cur.at };

	sb_cursor_skip(&ex->cur, len);
	block.end = ex->cur.at;
	if (ex->cur.is_bad)
		block.at = block.end;
	return block;
}

static void set_cfa_expr(struct exec *ex)
{
	struct sb_cursor block = take_block(ex);
	struct sb_uw_rule rule = {};

	if (!match_plt(block.at, sb_cursor_left(&block), &rule) && !match_deref(block, &rule))
		rule = (struct sb_uw_rule){ .cfa = SB_UW_CFA_UNSUP };
	ex->state.is_expr = true;
	ex->state.expr = rule;
	ex->is_changed = true;
}

/* The register is at, or is, what an expression says: at *(rbp + a) is all that is in use. */
static void set_reg_expr(struct exec *ex, bool is_value)
{
	uint64_t reg = sb_cursor_uleb(&ex->cur);
	struct sb_cursor block = take_block(ex);
	uint8_t op = sb_cursor_u8(&block);
	int64_t off = sb_cursor_sleb(&block);

	if (is_value || op != DW_OP_breg6 || block.is_bad || sb_cursor_left(&block))
		set_reg(ex, reg, SB_CFI_HOW_OTHER, 0);
	else
		set_reg(ex, reg, SB_CFI_HOW_AT_FP, off);
}

static void set_cfa_reg(struct exec *ex, uint64_t reg)
{
	ex->state.cfa_reg = reg;
	ex->state.is_expr = false;
	ex->is_changed = true;
}

static void set_cfa_off(struct exec *ex, int64_t off)
{
	ex->state.cfa_off = off;
	ex->is_changed = true;
}

/* Instructions about where we are. Return: as move_to(), or 2: none of these. */
static int exec_location(struct exec *ex, uint8_t op)
{
	switch (op) {
	case DW_CFA_nop:
		return 0;
	case DW_CFA_set_loc:
		return set_loc(ex);
	case DW_CFA_advance_loc1:
		return advance(ex, sb_cursor_u8(&ex->cur));
	case DW_CFA_advance_loc2:
		return advance(ex, sb_cursor_uint(&ex->cur, 2));
	case DW_CFA_advance_loc4:
		return advance(ex, sb_cursor_uint(&ex->cur, 4));
	case DW_CFA_MIPS_advance_loc8:
		return advance(ex, sb_cursor_uint(&ex->cur, 8));
	default:
		return 2;
	}
}

/* About the CFA. Return: whether it was one of these. */
static bool exec_cfa(struct exec *ex, uint8_t op)
{
	struct sb_cursor *cur = &ex->cur;

	switch (op) {
	case DW_CFA_def_cfa:
		set_cfa_reg(ex, sb_cursor_uleb(cur));
		set_cfa_off(ex, (int64_t)sb_cursor_uleb(cur));
		return true;
	case DW_CFA_def_cfa_sf:
		set_cfa_reg(ex, sb_cursor_uleb(cur));
		set_cfa_off(ex, scale(ex, (uint64_t)sb_cursor_sleb(cur)));
		return true;
	case DW_CFA_def_cfa_register:
		set_cfa_reg(ex, sb_cursor_uleb(cur));
		return true;
	case DW_CFA_def_cfa_offset:
		set_cfa_off(ex, (int64_t)sb_cursor_uleb(cur));
		return true;
	case DW_CFA_def_cfa_offset_sf:
		set_cfa_off(ex, scale(ex, (uint64_t)sb_cursor_sleb(cur)));
		return true;
	case DW_CFA_def_cfa_expression:
		set_cfa_expr(ex);
		return true;
	case DW_CFA_GNU_args_size: /* for landing pads */
		sb_cursor_uleb(cur);
		return true;
	default:
		return false;
	}
}

/* About where a register is. Return: whether it was one of these. */
static bool exec_reg(struct exec *ex, uint8_t op)
{
	struct sb_cursor *cur = &ex->cur;
	uint64_t reg;

	if (op == DW_CFA_expression || op == DW_CFA_val_expression) {
		set_reg_expr(ex, op == DW_CFA_val_expression);
		return true;
	}
	reg = sb_cursor_uleb(cur);
	switch (op) {
	case DW_CFA_offset_extended:
		set_reg(ex, reg, SB_CFI_HOW_AT_CFA, scale(ex, sb_cursor_uleb(cur)));
		return true;
	case DW_CFA_offset_extended_sf:
		set_reg(ex, reg, SB_CFI_HOW_AT_CFA, scale(ex, (uint64_t)sb_cursor_sleb(cur)));
		return true;
	case OP_GNU_NEGATIVE_OFFSET:
		set_reg(ex, reg, SB_CFI_HOW_AT_CFA, scale(ex, -sb_cursor_uleb(cur)));
		return true;
	case DW_CFA_restore_extended:
		restore_reg(ex, reg);
		return true;
	case DW_CFA_undefined:
		set_reg(ex, reg, SB_CFI_HOW_UNDEF, 0);
		return true;
	case DW_CFA_same_value:
		/* rbx and rbp in the caller's hands are our default; the others are said to be
		 * what they cannot be. */
		set_reg(ex, reg,
			reg == REG_RBP || reg == REG_RBX ? SB_CFI_HOW_DEFAULT : SB_CFI_HOW_OTHER,
			0);
		return true;
	case DW_CFA_register:
		set_reg(ex, reg, SB_CFI_HOW_REG, (int64_t)sb_cursor_uleb(cur));
		return true;
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		/* rsp = CFA + 0 says nothing new. */
		if (sb_cursor_uleb(cur) || reg != REG_RSP)
			set_reg(ex, reg, SB_CFI_HOW_OTHER, 0);
		else
			set_reg(ex, reg, SB_CFI_HOW_DEFAULT, 0);
		return true;
	default:
		return false;
	}
}

static int exec_saved(struct exec *ex, uint8_t op)
{
	if (op == DW_CFA_remember_state) {
		if (ex->nr_saved == SAVED_MAX)
			return -EBADMSG;
		ex->saved[ex->nr_saved++] = ex->state;
		return 0;
	}
	if (op != DW_CFA_restore_state || !ex->nr_saved)
		return -EBADMSG;
	ex->state = ex->saved[--ex->nr_saved];
	ex->is_changed = true;
	return 0;
}

/* One instruction. Return: as move_to(). */
static int step(struct exec *ex)
{
	uint8_t op = sb_cursor_u8(&ex->cur), low = op & (uint8_t)~PRIMARY_MASK;
	int ret;

	switch (op & PRIMARY_MASK) {
	case DW_CFA_advance_loc:
		return advance(ex, low);
	case DW_CFA_offset:
		set_reg(ex, low, SB_CFI_HOW_AT_CFA, scale(ex, sb_cursor_uleb(&ex->cur)));
		return 0;
	case DW_CFA_restore:
		restore_reg(ex, low);
		return 0;
	}
	ret = exec_location(ex, op);
	if (ret != 2)
		return ret;
	if (op == DW_CFA_remember_state || op == DW_CFA_restore_state)
		return exec_saved(ex, op);
	return exec_cfa(ex, op) || exec_reg(ex, op) ? 0 : -EBADMSG;
}

/* Return: 0 at the end of the instructions or of the function, -EBADMSG, or as the sink. */
static int exec_all(struct exec *ex)
{
	int ret;

	while (sb_cursor_left(&ex->cur)) {
		ret = step(ex);
		if (ex->cur.is_bad)
			return -EBADMSG;
		if (ret)
			return ret < 0 ? ret : 0;
	}
	return flush_row(ex, ex->hi);
}

int sb_cfi_exec_cie(const struct sb_cfi_section *section, const struct sb_cursor *cur,
		    struct sb_cfi_cie *cie)
{
	struct exec ex;
	int err;

	ex.cur = *cur;
	ex.section = section;
	ex.cie = cie;
	ex.sink = NULL;
	ex.loc = ex.hi = 0;
	ex.is_changed = false;
	ex.last_cfa = SB_UW_CFA_UNSUP;
	ex.nr_saved = 0;
	ex.state = cie->init = (struct sb_cfi_state){ .cfa_reg = SB_CFI_CFA_NONE };
	err = exec_all(&ex);
	if (!err)
		cie->init = ex.state;
	return err;
}

int sb_cfi_exec_fde(const struct sb_cfi_section *section, const struct sb_cfi_cie *cie,
		    const struct sb_cfi_fde *fde, const struct sb_cfi_sink *sink)
{
	static const struct sb_uw_rule unsup = { .cfa = SB_UW_CFA_UNSUP };
	struct exec ex; /* not cleared: @saved is bigger than all the rest */
	int err, sink_err;

	ex.cur = (struct sb_cursor){ .at = section->bytes + fde->insns,
				     .end = section->bytes + fde->end };
	ex.section = section;
	ex.cie = cie;
	ex.sink = sink;
	ex.loc = fde->lo;
	ex.hi = fde->hi;
	ex.is_changed = true;
	ex.last_cfa = SB_UW_CFA_UNSUP;
	ex.nr_saved = 0;
	ex.state = cie->init;
	err = exec_all(&ex);
	if (err != -EBADMSG)
		return err;
	sink_err = sink->row(sink->arg, ex.loc, &unsup);
	return sink_err ? sink_err : err;
}
