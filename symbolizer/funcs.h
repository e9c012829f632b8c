/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the functions of a file begin and end, as its unwind tables have it (.eh_frame, .debug_frame; of a Go program
 * .gopclntab, too). A stripped file has lost its names but not these, without which no exception could be thrown. They
 * give all addresses of one function one stand-in for a name, and say up to where a symbol without a size can reach.
 * Internal to the symbolizer; one thread at a time.
 *
 * What is called a function here is what one entry (FDE) covers: of a function with a cold part these are two, and of the
 * PLT one for all stubs.
 */
#ifndef SB_FUNCS_H
#define SB_FUNCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf_file.h"
#include "parser.h"

struct sb_funcs {
	uint64_t base;
	struct sb_func_span *at; /* ascending, none over another */
	size_t nr;
};

/* An entry that covers an address: [lo, hi), ELF addresses. */
struct sb_func {
	uint64_t lo, hi;
};

/*
 * sb_funcs_init() - list the functions of a file
 * @seat: who parses; NULL: the caller's own process
 * @elf: not needed afterwards
 * @ret_funcs: for sb_funcs_release(); untouched on error
 *
 * Entries that begin inside of the one before are left out: the first counts, as it does for unwinding.
 *
 * Return: 0; -ENODATA when the file has no unwind tables; or as sb_parser_functions().
 */
int sb_funcs_init(struct sb_parser_seat *seat, const struct sb_elf *elf,
		  struct sb_funcs *ret_funcs);
/* Accepts a zeroed object, which has no functions. */
void sb_funcs_release(struct sb_funcs *funcs);

/* Return: whether an entry covers @addr. */
bool sb_funcs_find(const struct sb_funcs *funcs, uint64_t addr, struct sb_func *ret_func);

/*
 * sb_funcs_is_same() - whether @from and @addr can belong to one function
 * @from: not above @addr
 *
 * Return: false when an entry begins behind @from, up to @addr; or when the one that covers @from ends before @addr.
 * True where there are no entries at all.
 */
bool sb_funcs_is_same(const struct sb_funcs *funcs, uint64_t from, uint64_t addr);

size_t sb_funcs_bytes(const struct sb_funcs *funcs);

#endif
