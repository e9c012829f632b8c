// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "interp/core/stub.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "interp/core/image.h"
#include "interp/core/memory.h"

#define STUB_BYTES_MAX 512
#define STUB_INSNS_MAX 96
#define BRANCHES_MAX   4
/* Of an entry of the PLT. */
#define PLT_BYTES_MIN  16
#define PLT_BYTES_MAX  24

/* The other side of a branch, to be followed later. */
struct branch {
	uint64_t target;
	struct sb_stub_value reg[SB_INSN_REGS];
};

struct follower {
	const struct sb_stub_code *code;
	struct sb_stub stub;
	struct branch branch[BRANCHES_MAX];
	size_t nr_branches, nr_followed;
	sb_stub_fn fn;
	sb_stub_is_tls_fn is_tls;
	void *arg;
};

static const struct sb_stub_value unknown;

static void set_const(struct sb_stub_value *value, uint64_t addr)
{
	*value = (struct sb_stub_value){ .base = SB_STUB_CONST, .addr = addr };
}

static void add(struct sb_stub_value *value, int64_t off)
{
	if (value->base == SB_STUB_CONST && !value->nr_loads)
		value->addr += (uint64_t)off;
	else
		value->off[value->nr_loads] =
			(int64_t)((uint64_t)value->off[value->nr_loads] + (uint64_t)off);
}

static bool is_thread_pointer(const struct sb_stub_value *value)
{
	return value->base == SB_STUB_FS && !value->nr_loads && !value->off[0];
}

/* Of two registers, one is the thread pointer, and the other what a TLS descriptor says. */
static struct sb_stub_value sum_of(const struct follower *f, const struct sb_insn *insn)
{
	const struct sb_stub_value *base = &f->stub.reg[insn->base % SB_INSN_REGS];
	const struct sb_stub_value *index = &f->stub.reg[insn->index % SB_INSN_REGS];
	struct sb_stub_value value = is_thread_pointer(base) ? *index : *base;

	if (insn->index == SB_INSN_NO_BASE || insn->base == SB_INSN_NO_BASE ||
	    value.base != SB_STUB_DESC_OFFSET ||
	    !(is_thread_pointer(base) || is_thread_pointer(index)))
		return unknown;
	value.base = SB_STUB_DESC;
	add(&value, insn->disp);
	return value;
}

/* Compute the address of a memory operand. */
static struct sb_stub_value address_of(const struct follower *f, const struct sb_insn *insn)
{
	struct sb_stub_value value = unknown;

	if (insn->has_index)
		return sum_of(f, insn);
	if (insn->base != SB_INSN_NO_BASE)
		value = f->stub.reg[insn->base % SB_INSN_REGS];
	else
		set_const(&value, 0);
	if (insn->is_fs) {
		if (value.base != SB_STUB_CONST || value.nr_loads > 1 || value.off[1])
			return unknown;
		/* %fs:(%rax), and the linker left the offset in the GOT. */
		if (value.nr_loads) {
			value.base = SB_STUB_FS_SLOT;
			value.nr_loads = 0;
		} else {
			value.off[0] = (int64_t)value.addr;
			value.base = SB_STUB_FS;
			value.addr = 0;
		}
	}
	if (value.base != SB_STUB_UNKNOWN)
		add(&value, insn->disp);
	return value;
}

static struct sb_stub_value load(struct sb_stub_value from, const struct sb_insn *insn)
{
	/* The thread pointer itself. */
	if (insn->is_fs && is_thread_pointer(&from))
		return from;
	if (from.base == SB_STUB_UNKNOWN || from.base == SB_STUB_DESC_OFFSET ||
	    from.nr_loads >= SB_STUB_LOADS_MAX)
		return unknown;
	from.nr_loads++;
	return from;
}

static void apply(struct follower *f, const struct sb_insn *insn)
{
	struct sb_stub_value *reg = &f->stub.reg[insn->reg % SB_INSN_REGS];

	switch (insn->kind) {
	case SB_INSN_LEA:
		*reg = address_of(f, insn);
		break;
	case SB_INSN_LOAD:
		*reg = load(address_of(f, insn), insn);
		break;
	case SB_INSN_MOVE:
		*reg = f->stub.reg[insn->base % SB_INSN_REGS];
		break;
	case SB_INSN_IMM:
		set_const(reg, (uint64_t)insn->imm);
		break;
	case SB_INSN_ADD_IMM:
		if (reg->base != SB_STUB_UNKNOWN)
			add(reg, insn->imm);
		break;
	default:
		break;
	}
}

static void after_call(struct follower *f, const struct sb_stub_value *ret)
{
	for (size_t i = 0; i < SB_INSN_REGS; i++)
		if (f->code->set->scratch >> i & 1)
			f->stub.reg[i] = unknown;
	f->stub.reg[SB_STUB_RESULT] = *ret;
}

/* Return: the GOT entry of an indirect call or jump; 0: none. It is in memory, or loaded before. */
static uint64_t slot_of(const struct follower *f, const struct sb_insn *insn)
{
	const struct sb_stub_value *value;

	if (insn->is_mem)
		return insn->base == SB_INSN_NO_BASE && !insn->has_index && !insn->is_fs
			       ? (uint64_t)insn->disp
			       : 0;
	if (insn->base == SB_INSN_NO_BASE)
		return 0;
	value = &f->stub.reg[insn->base % SB_INSN_REGS];
	return value->base == SB_STUB_CONST && value->nr_loads == 1 && !value->off[1]
		       ? value->addr + (uint64_t)value->off[0]
		       : 0;
}

static int leave(struct follower *f, const struct sb_insn *insn, enum sb_stub_exit exit)
{
	f->stub.exit = exit;
	f->stub.target = insn->target;
	f->stub.target_slot = slot_of(f, insn);
	return f->fn(f->arg, &f->stub);
}

/*
 * The function that a TLS descriptor begins with gets the descriptor in x0, and changes nothing but
 * x0: ELF for the Arm 64-bit Architecture, section "Thread Local Storage". On x86-64 such calls
 * have their argument elsewhere, and are not followed.
 */
static bool is_descriptor(const struct follower *f)
{
	const struct sb_stub_value *argument = &f->stub.reg[SB_STUB_RESULT];

	return f->code->set->reg_argument == SB_STUB_RESULT && f->stub.target_slot &&
	       argument->base == SB_STUB_CONST && !argument->nr_loads &&
	       argument->addr == f->stub.target_slot;
}

static int call(struct follower *f, const struct sb_insn *insn)
{
	const struct sb_stub_value *argument = &f->stub.reg[f->code->set->reg_argument];
	struct sb_stub_value ret = unknown;
	int err;

	err = leave(f, insn, SB_STUB_CALL);
	if (err)
		return err;
	if (is_descriptor(f)) {
		f->stub.reg[SB_STUB_RESULT].base = SB_STUB_DESC_OFFSET;
		return 0;
	}
	if (f->is_tls && f->is_tls(f->arg, &f->stub) && argument->base == SB_STUB_CONST &&
	    !argument->nr_loads) {
		ret = *argument;
		ret.base = SB_STUB_TLS;
	}
	after_call(f, &ret);
	return 0;
}

static void branch(struct follower *f, uint64_t target)
{
	struct branch *b = &f->branch[f->nr_branches];

	/* Backward jumps are not followed, so each loop is followed once. */
	if (target <= f->stub.at || f->nr_branches == BRANCHES_MAX)
		return;
	b->target = target;
	memcpy(b->reg, f->stub.reg, sizeof(b->reg));
	f->nr_branches++;
}

/* Return: 1: the path ends here, with *ret_result what fn returned; 0: continue at *@addr. */
static int follow_one(struct follower *f, uint64_t *addr, int *ret_result)
{
	size_t at = *addr - f->code->addr;
	struct sb_insn insn;

	if (f->code->set->decode(f->code->bytes + at, f->code->len - at, *addr, &insn))
		return 1;
	f->stub.at = *addr;
	*addr += insn.len;
	switch (insn.kind) {
	case SB_INSN_CALL:
	case SB_INSN_CALL_MEM:
		*ret_result = call(f, &insn);
		return *ret_result != 0;
	case SB_INSN_JMP:
		if (insn.target > f->stub.at && insn.target - f->code->addr < f->code->len) {
			*addr = insn.target;
			return 0;
		}
		*ret_result = leave(f, &insn, SB_STUB_JUMP);
		return 1;
	case SB_INSN_JMP_MEM:
		*ret_result = leave(f, &insn, SB_STUB_JUMP);
		return 1;
	case SB_INSN_JCC:
		branch(f, insn.target);
		return 0;
	case SB_INSN_RET:
		*ret_result = leave(f, &insn, SB_STUB_RET);
		return 1;
	case SB_INSN_TRAP:
		return 1;
	default:
		apply(f, &insn);
		return 0;
	}
}

int sb_stub_follow_code(const struct sb_stub_code *code, sb_stub_fn fn, sb_stub_is_tls_fn is_tls,
			void *arg)
{
	struct follower f = { .code = code, .fn = fn, .is_tls = is_tls, .arg = arg };
	uint64_t addr = code->addr;
	int result = 0;

	for (size_t i = 0; i < STUB_INSNS_MAX; i++) {
		bool is_out = addr < code->addr || addr - code->addr >= code->len;

		if (!is_out && !follow_one(&f, &addr, &result))
			continue;
		if (result || f.nr_followed == f.nr_branches)
			return result;
		addr = f.branch[f.nr_followed].target;
		memcpy(f.stub.reg, f.branch[f.nr_followed].reg, sizeof(f.stub.reg));
		f.nr_followed++;
	}
	return 0;
}

static int note_slot(void *arg, const struct sb_stub *stub)
{
	*(uint64_t *)arg = stub->exit == SB_STUB_JUMP ? stub->target_slot : 0;
	return 1;
}

/*
 * A PLT stub. Return: the slot; 0: it is none.
 *	[endbr64;] [bnd] jmp *slot(%rip)
 *	[bti c;] adrp x16, slot; ldr x17, [x16, slot]; add x16, x16, slot; br x17
 */
static uint64_t slot_of_plt(struct sb_image *image, uint64_t addr)
{
	uint8_t bytes[PLT_BYTES_MAX];
	struct sb_stub_code code = { SB_INSN_HERE, bytes, sizeof(bytes), addr };
	uint64_t slot = 0;

	/* The last one of a file may be shorter. */
	if (!addr || (sb_image_read(image, addr, bytes, code.len) &&
		      sb_image_read(image, addr, bytes, code.len = PLT_BYTES_MIN)))
		return 0;
	sb_stub_follow_code(&code, note_slot, NULL, &slot);
	return slot;
}

const char *sb_stub_callee(struct sb_image *image, const struct sb_stub *stub)
{
	uint64_t slot = stub->target_slot;

	if (!slot)
		slot = slot_of_plt(image, stub->target);
	return slot ? sb_image_reloc_name(image, slot) : NULL;
}

struct in_image {
	struct sb_image *image;
	sb_stub_fn fn;
	void *arg;
};

static int fn_in_image(void *arg, const struct sb_stub *stub)
{
	struct in_image *in = arg;

	return in->fn(in->arg, stub);
}

static int is_tls_in_image(void *arg, const struct sb_stub *stub)
{
	struct in_image *in = arg;
	const char *name = sb_stub_callee(in->image, stub);

	return name && !strcmp(name, "__tls_get_addr");
}

int sb_stub_follow(struct sb_image *image, uint64_t addr, sb_stub_fn fn, void *arg)
{
	struct in_image in = { .image = image, .fn = fn, .arg = arg };
	uint8_t bytes[STUB_BYTES_MAX];
	struct sb_stub_code code = { SB_INSN_HERE, bytes, sizeof(bytes), addr };
	uint64_t begin, end;

	if (!sb_image_function(image, addr, &begin, &end) && begin == addr &&
	    end - begin < code.len)
		code.len = end - begin;
	/* The last function of a file may be shorter. */
	while (code.len > 16 && sb_image_read(image, addr, bytes, code.len))
		code.len /= 2;
	if (code.len <= 16 && sb_image_read(image, addr, bytes, code.len))
		return -EFAULT;
	return sb_stub_follow_code(&code, fn_in_image, is_tls_in_image, &in);
}

static int eval(const struct sb_memory *memory, const struct sb_stub_value *value, size_t nr_loads,
		uint64_t *ret)
{
	uint64_t at = value->addr + (uint64_t)value->off[0];

	for (size_t i = 0; i < nr_loads; i++) {
		int err = sb_memory_u64(memory, at, &at);

		if (err)
			return err;
		if (i + 1 < value->nr_loads)
			at += (uint64_t)value->off[i + 1];
	}
	*ret = at;
	return 0;
}

int sb_stub_value(const struct sb_memory *memory, const struct sb_stub_value *value, uint64_t *ret)
{
	uint64_t val;
	int err;

	if (value->base != SB_STUB_CONST)
		return -EINVAL;
	err = eval(memory, value, value->nr_loads, &val);
	if (err)
		return err;
	*ret = val + (value->nr_loads ? (uint64_t)value->off[value->nr_loads] : 0);
	return 0;
}

int sb_stub_address(const struct sb_memory *memory, const struct sb_stub_value *value,
		    uint64_t *ret)
{
	if (value->base != SB_STUB_CONST || !value->nr_loads)
		return -EINVAL;
	return eval(memory, value, value->nr_loads - 1u, ret);
}
