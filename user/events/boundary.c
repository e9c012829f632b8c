// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whether an instruction begins at an address. The kernel writes a trap over the byte at which a
 * user function is probed. Within an instruction, this would change what the instruction does, and
 * the program that is looked at would crash or go wrong; the kernel does not check it for user
 * code.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/reason.h"
#include "events/probe_priv.h"
#include "symbolizer/elf/disasm.h"
#include "symbolizer/symbols/funcs.h"

/* More than any function of a program has. */
#define FUNCTION_BYTES_MAX (4u << 20)
/* Of an instruction of arm64, all of which are aligned. */
#define ARM64_INSN_BYTES   4u

/* Return: 0; -EILSEQ: no instruction begins at @code + @len, and *@ret_before is the last offset
 * before it at which one does; -EBADMSG: an instruction is not known. @code has SB_INSN_BYTES_MAX
 * bytes more. */
static int decode_up_to(const uint8_t *code, size_t len, size_t *ret_before)
{
	struct sb_insn insn;
	size_t at = 0;

	while (at < len) {
		if (sb_insn_x86.decode(code + at, len + SB_INSN_BYTES_MAX - at, 0, &insn))
			return -EBADMSG;
		*ret_before = at;
		at += insn.len;
	}
	return at == len ? 0 : -EILSEQ;
}

static int check_x86(const struct sb_elf *elf, uint64_t begin, uint64_t addr, size_t *ret_before)
{
	sb_cleanup(sb_freep) uint8_t *code = NULL;
	size_t len = addr - begin;
	uint64_t offset;
	int err;

	if (len > FUNCTION_BYTES_MAX || !sb_elf_addr_to_offset(elf, begin, &offset))
		return -EBADMSG;
	code = calloc(1, len + SB_INSN_BYTES_MAX);
	if (!code)
		return -ENOMEM;
	err = sb_elf_read(elf, offset, code, len + SB_INSN_BYTES_MAX);
	return err ? err : decode_up_to(code, len, ret_before);
}

static int check(const struct sb_elf *elf, uint64_t begin, uint64_t addr, size_t *ret_before)
{
	if (elf->machine == EM_X86_64)
		return check_x86(elf, begin, addr, ret_before);
	if (elf->machine != EM_AARCH64)
		return -EBADMSG;
	*ret_before = (addr - begin) & ~(uint64_t)(ARM64_INSN_BYTES - 1);
	return addr % ARM64_INSN_BYTES ? -EILSEQ : 0;
}

int sb_boundary_check(struct sb_resolving *to, const struct sb_elf *elf, uint64_t begin,
		      uint64_t addr)
{
	bool is_named = *to->spec->name;
	size_t before = 0;
	int err = check(elf, begin, addr, &before);

	if (err == -EILSEQ)
		sb_reason_set(
			to->reason, 0,
			"event '%s': no instruction begins at this %s, and a probe within one would "
			"make the program crash; the instruction begins at %s0x%llx",
			to->text, is_named ? "offset" : "address", is_named ? "+" : "",
			(unsigned long long)(is_named ? before : begin + before));
	else if (err == -EBADMSG)
		sb_reason_set(
			to->reason, 0,
			"event '%s': cannot tell whether an instruction begins there, because the "
			"machine code before it cannot be decoded; a probe within an "
			"instruction would make the program crash, so name the function without "
			"an offset",
			to->text);
	else if (err)
		return sb_reason_set(to->reason, err,
				     "event '%s': cannot read the machine code there", to->text);
	return err ? -EINVAL : 0;
}

int sb_boundary_check_address(struct sb_resolving *to, const struct sb_elf *elf, uint64_t addr)
{
	struct sb_funcs funcs = {};
	struct sb_func func;
	bool is_found;
	int err = sb_funcs_init(NULL, elf, &funcs);

	is_found = !err && sb_funcs_find(&funcs, addr, &func);
	sb_funcs_release(&funcs);
	if (is_found)
		return sb_boundary_check(to, elf, func.lo, addr);
	if (err == -ENOMEM)
		return sb_reason_set(to->reason, err,
				     "event '%s': cannot read where functions begin", to->text);
	sb_reason_set(
		to->reason, 0,
		"event '%s': no function is known to be at this address, so it cannot be told whether "
		"an instruction begins there; name the function and an offset in it",
		to->text);
	return -EINVAL;
}
