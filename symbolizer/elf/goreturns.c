// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/elf/goreturns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/elf/disasm.h"

/* Conditional jumps of a check of the stack; two are the most that the compiler emits. */
#define CHECKS_MAX  4u
/* Entries are numbers of 4 bytes since Go 1.18. Arguments are in registers since 1.17. */
#define ENTRY_BYTES 4
#define OTHER_CODE  "its machine code could not be decoded with certainty"

/* From @addr on, the return address is @depth bytes above the stack pointer. */
struct piece {
	uint64_t addr;
	int32_t depth;
};

struct search {
	const struct sb_gopcln *table;
	const struct sb_insn_set *set;
	struct sb_gopcln_func func;
	SB_VEC(struct piece) pieces;
	size_t piece; /* of the instruction */
	sb_vec_u64 returns, targets;
	/* Jumps before anything was put on the stack: where to, and what follows. */
	struct {
		uint64_t target, next;
	} checks[CHECKS_MAX];
	size_t nr_checks;
	/* The code since the last branch; the call of runtime.morestack that ended code before. */
	uint64_t block, last_block, more_stack;
	uint64_t begin;
};

static int add_piece(void *arg, uint64_t addr, int32_t depth)
{
	struct search *search = arg;

	return sb_vec_push(&search->pieces, (struct piece){ addr, depth });
}

/* Return: 0; -ENOENT: no function begins at @addr. The linker sorts functions by their address. */
static int find_function(const struct sb_gopcln *table, uint64_t addr, struct sb_gopcln_func *ret)
{
	uint64_t lo = 0, hi = table->nr_funcs;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (sb_gopcln_func(table, mid, ret))
			return -ENOENT;
		if (ret->lo == addr)
			return 0;
		if (ret->lo < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return -ENOENT;
}

static bool is_more_stack(const struct search *search, uint64_t addr)
{
	struct sb_gopcln_func func;

	return !find_function(search->table, addr, &func) &&
	       !strncmp(func.name, "runtime.morestack", strlen("runtime.morestack"));
}

/* What runs when the stack is too small: it spills the arguments, calls runtime.morestack, and
 * starts the function again. The check is one of the jumps to it. */
static int find_check(struct search *search)
{
	size_t i;

	for (i = 0; i < search->nr_checks; i++)
		if (search->checks[i].target >= search->last_block &&
		    search->checks[i].target <= search->more_stack &&
		    search->checks[i].next > search->begin)
			search->begin = search->checks[i].next;
	return search->begin == search->func.lo ? -EBADMSG : 0;
}

static int take_branch(struct search *search, const struct sb_insn *insn, uint64_t addr,
		       int32_t depth)
{
	uint64_t next = addr + insn->len;
	bool is_restart =
		insn->kind == SB_INSN_JMP && insn->target == search->func.lo && search->more_stack;

	if (insn->kind == SB_INSN_RET) {
		if (depth)
			return -EBADMSG;
		return sb_vec_push(&search->returns, addr);
	}
	if (insn->kind == SB_INSN_CALL && is_more_stack(search, insn->target)) {
		search->last_block = search->block;
		search->more_stack = addr;
		return 0;
	}
	if (is_restart)
		return find_check(search);
	search->more_stack = 0;
	if (insn->kind == SB_INSN_JCC && !search->piece && !depth &&
	    search->nr_checks < CHECKS_MAX) {
		search->checks[search->nr_checks].target = insn->target;
		search->checks[search->nr_checks++].next = next;
	}
	if (insn->kind == SB_INSN_JCC || insn->kind == SB_INSN_JMP)
		return sb_vec_push(&search->targets, insn->target);
	return 0;
}

/* Find the piece of the table that an instruction is in. Return: 0; -EBADMSG: a piece begins within
 * the one before, or the table says nothing of it. */
static int find_piece(struct search *search, uint64_t addr)
{
	while (search->piece + 1 < search->pieces.nr &&
	       search->pieces.at[search->piece + 1].addr <= addr)
		if (search->pieces.at[++search->piece].addr != addr)
			return -EBADMSG;
	return search->pieces.nr ? 0 : -EBADMSG;
}

static bool is_branch(const struct sb_insn *insn)
{
	return insn->kind >= SB_INSN_CALL;
}

/* Behind the code of arm64 there can be constants, but in what the compiler makes they are offsets
 * of less than 2 GB, and a return instruction is more. */
static int decode(struct search *search, const uint8_t *code, size_t len)
{
	struct sb_insn insn;
	size_t at;
	int err = 0;

	for (at = 0; at < len && !err; at += insn.len) {
		uint64_t addr = search->func.lo + at;

		err = search->set->decode(code + at, len - at, addr, &insn);
		if (!err)
			err = find_piece(search, addr);
		if (!err && is_branch(&insn)) {
			err = take_branch(search, &insn, addr,
					  search->pieces.at[search->piece].depth);
			search->block = addr + insn.len;
		}
	}
	return err;
}

/* Return: why not; NULL: it can be probed. */
static const char *judge(const struct search *search)
{
	size_t i;

	for (i = 0; i < search->targets.nr; i++)
		if (search->targets.at[i] == search->begin)
			return "a loop in it begins at its first instruction";
	if (!search->returns.nr)
		return "it has no return instruction: it does not return, or ends with a jump to "
		       "another function";
	return NULL;
}

static int to_offsets(const struct sb_elf *elf, const struct search *search,
		      struct sb_go_returns *ret)
{
	uint64_t offset;
	size_t i;
	int err;

	if (!sb_elf_addr_to_offset(elf, search->begin, &ret->begin))
		return -EBADMSG;
	for (i = 0; i < search->returns.nr; i++) {
		if (!sb_elf_addr_to_offset(elf, search->returns.at[i], &offset))
			return -EBADMSG;
		err = sb_vec_push(&ret->returns, offset);
		if (err)
			return err;
	}
	return 0;
}

static int look_through(const struct sb_elf *elf, struct search *search)
{
	sb_cleanup(sb_freep) uint8_t *code = NULL;
	size_t len = search->func.hi - search->func.lo;
	uint64_t offset;
	int err = sb_gopcln_each_depth(search->table, &search->func, add_piece, search);

	if (err || !sb_elf_addr_to_offset(elf, search->func.lo, &offset))
		return err ? err : -EBADMSG;
	code = malloc(len);
	if (!code)
		return -ENOMEM;
	err = sb_elf_read(elf, offset, code, len);
	search->begin = search->block = search->func.lo;
	return err ? err : decode(search, code, len);
}

static bool is_abi0(const char *name)
{
	size_t len = strlen(name);

	return len > 5 && !strcmp(name + len - 5, ".abi0");
}

static const char *refuse_early(const struct sb_elf *elf, struct search *search, uint64_t addr)
{
	if (elf->machine != EM_X86_64 && elf->machine != EM_AARCH64)
		return "this can be done for x86-64 and arm64 only";
	if (search->table->entry_bytes != ENTRY_BYTES)
		return "it was built with Go 1.17 or older";
	if (find_function(search->table, addr, &search->func))
		return "it is no function of Go";
	if (is_abi0(search->func.name))
		return "it is written in assembly, or for calls from there";
	return NULL;
}

int sb_go_returns_find(const struct sb_elf *elf, const struct sb_gopcln *table, uint64_t addr,
		       struct sb_go_returns *ret, const char **ret_why)
{
	struct search search = {
		.table = table,
		.set = elf->machine == EM_AARCH64 ? &sb_insn_arm64 : &sb_insn_x86,
	};
	int err = 0;

	*ret_why = refuse_early(elf, &search, addr);
	if (!*ret_why)
		err = look_through(elf, &search);
	if (!*ret_why && !err)
		*ret_why = judge(&search);
	if (!*ret_why && !err)
		err = to_offsets(elf, &search, ret);
	if (err == -EBADMSG)
		*ret_why = OTHER_CODE;
	if (err)
		sb_vec_release(&ret->returns);
	sb_vec_release(&search.pieces);
	sb_vec_release(&search.returns);
	sb_vec_release(&search.targets);
	return *ret_why ? -EOPNOTSUPP : err;
}
