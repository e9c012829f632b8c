// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <dwarf.h>
#include <errno.h>

#include "symbolizer/unwind/cfi_priv.h"

#define RA_BYTES	       8 /* where a call puts the return address, below the CFA */
#define LEA_BYTES	       4 /* lea -8(%r10), %rsp */

/* Compilers nest 1 deep; 2 is the most that was seen in 2451 binaries of a distribution. */
#define SAVED_MAX	       8

/* Not in every <dwarf.h>. */
#define OP_GNU_NEGATIVE_OFFSET 0x2f
/* AADWARF64, section 4.4: from here on the return address is signed, or no longer. Whoever walks
 * takes signatures off wherever there are any. */
#define OP_NEGATE_RA_STATE     0x2d
#define OP_NEGATE_RA_STATE_PC  0x2c
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
	rule = sb_cfi_rule(ex->section->machine, &ex->state);
	is_leaving = is_before_leave(ex, &rule, next);
	ex->last_cfa = rule.cfa;
	/* And where nothing is on the stack, nothing is saved there. */
	if (is_fp_at_fp(&rule) && rule.cfa == SB_UW_CFA_SP && rule.cfa_off == RA_BYTES)
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
static bool find_reg(const struct exec *ex, uint64_t reg, enum sb_cfi_reg *ret_reg)
{
	uint8_t found = reg < SB_CFI_NUMBERS_MAX ? ex->section->machine->reg_of[reg] : 0;

	*ret_reg = found - 1;
	return found;
}

static void set_reg(struct exec *ex, uint64_t reg, enum sb_cfi_how how, int64_t val)
{
	enum sb_cfi_reg i;

	if (!find_reg(ex, reg, &i))
		return;
	ex->state.how[i] = (uint8_t)how;
	ex->state.val[i] = val;
	ex->is_changed = true;
}

static void restore_reg(struct exec *ex, uint64_t reg)
{
	enum sb_cfi_reg i;

	if (find_reg(ex, reg, &i))
		set_reg(ex, reg, ex->cie->init.how[i], ex->cie->init.val[i]);
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
	const struct sb_cfi_machine *machine = ex->section->machine;
	struct sb_cursor block = take_block(ex);
	struct sb_uw_rule rule = {};

	if (!machine->match_cfa || !machine->match_cfa(block.at, sb_cursor_left(&block), &rule))
		rule = (struct sb_uw_rule){ .cfa = SB_UW_CFA_UNSUP };
	ex->state.is_expr = true;
	ex->state.expr = rule;
	ex->is_changed = true;
}

/* The register is at, or is, what an expression says: at *(frame pointer + a) is all that is in
 * use. */
static void set_reg_expr(struct exec *ex, bool is_value)
{
	uint64_t reg = sb_cursor_uleb(&ex->cur);
	struct sb_cursor block = take_block(ex);
	uint8_t op = sb_cursor_u8(&block);
	int64_t off = sb_cursor_sleb(&block);

	if (is_value || op != DW_OP_breg0 + ex->section->machine->fp || block.is_bad ||
	    sb_cursor_left(&block))
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

/* What is in the caller's hands is our default; of the others it is said that they are what they
 * cannot be: the stack pointer, and a return address that lies on the stack. */
static bool can_be_same(const struct exec *ex, uint64_t reg)
{
	const struct sb_cfi_machine *machine = ex->section->machine;

	return reg != machine->sp && (reg != machine->ra || reg < machine->nr_gprs);
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
		set_reg(ex, reg, can_be_same(ex, reg) ? SB_CFI_HOW_DEFAULT : SB_CFI_HOW_OTHER, 0);
		return true;
	case DW_CFA_register:
		set_reg(ex, reg, SB_CFI_HOW_REG, (int64_t)sb_cursor_uleb(cur));
		return true;
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		/* sp = CFA + 0 says nothing new. */
		if (sb_cursor_uleb(cur) || reg != ex->section->machine->sp)
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
	if ((op == OP_NEGATE_RA_STATE || op == OP_NEGATE_RA_STATE_PC) &&
	    ex->section->machine->has_signed_ra)
		return 0;
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
