/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a Go function begins and returns, for probes at these instructions. A return probe would
 * write an address of the kernel to the stack, and Go's runtime ends a program in whose stacks it
 * finds one. Machine code is decoded over the whole function, and each boundary is held against
 * what the linker's table says of the same code, so nothing is guessed. Functions of Go 1.18 and
 * newer on x86-64 and arm64.
 *
 * Sources: cmd/compile/abi-internal.md, and stacksplit() of cmd/internal/obj/x86/obj6.go and
 * cmd/internal/obj/arm64/obj7.go, of Go 1.19.
 */
#ifndef SB_GORETURNS_H
#define SB_GORETURNS_H

#include "base/num.h"
#include "symbolizer/elf/gopcln.h"

/* Zeroed before use; the caller ends it with sb_vec_release(&returns). All are offsets in the
 * file. */
struct sb_go_returns {
	/* Where each call passes once, with the stack pointer that it has at the returns: behind
	 * the check whether the stack is large enough, which may start the function again. */
	uint64_t begin;
	sb_vec_u64 returns; /* of the `ret` instructions */
};

/**
 * sb_go_returns_find() - find where a function begins and returns
 * @elf: the program
 * @table: of @elf
 * @addr: ELF address of the function
 * @ret: zeroed; on error it has no returns, nothing is to be released, and @begin means nothing
 * @ret_why: with -EOPNOTSUPP, why the function cannot be probed: the end of a sentence, static;
 *	else NULL
 *
 * The results of a function whose name ends with ".abi0" are not in registers: it is refused. No
 * pointer is NULL, and none is kept.
 *
 * Thread: any, one at a time for each struct sb_elf.
 * Return: 0; -EOPNOTSUPP with *@ret_why, also when the file is damaged; -ENOMEM; -EFBIG: beyond the
 * budget of @elf; or another negative errno of pread(2).
 */
int sb_go_returns_find(const struct sb_elf *elf, const struct sb_gopcln *table, uint64_t addr,
		       struct sb_go_returns *ret, const char **ret_why);

#endif
