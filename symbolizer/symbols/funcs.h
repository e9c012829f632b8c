/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the functions of a file begin and end, according to its unwind tables (.eh_frame,
 * .debug_frame; for a Go program also .gopclntab). A stripped file has lost its names but not
 * these tables, without which no exception could be thrown. They give all addresses of one
 * function the same stand-in for a name, and say how far a symbol without a size can reach.
 * For the symbolizer, and for user/events, which checks addresses of probes.
 *
 * A function here is what one entry (FDE) covers: a function with a cold part has two, and the PLT
 * has one for all its stubs.
 *
 * Order: sb_funcs_init(), the look-ups, sb_funcs_release(). A list owns its memory and keeps
 * nothing of the file. No pointer is NULL unless a contract says so. Thread: any for reading a
 * list; one at a time for each file and each seat that makes one. Any thread may release it, when
 * no other one uses it.
 */
#ifndef SB_FUNCS_H
#define SB_FUNCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/elf/elf_file.h"
#include "symbolizer/symbols/addrs.h"
#include "symbolizer/unwind/parser.h"

struct sb_funcs {
	struct sb_addrs starts; /* ELF addresses, ascending */
	uint32_t *lens;		/* by the same index; the functions do not overlap */
};

/* The entry that covers an address: [lo, hi), ELF addresses. */
struct sb_func {
	uint64_t lo, hi;
};

/**
 * sb_funcs_init() - list the functions of a file
 * @seat: where to ask the parser process (parser.h); NULL: the caller's own process parses
 * @elf: only used during the call
 * @ret_funcs: to be ended with sb_funcs_release(); untouched on error
 *
 * An entry that begins inside of the one before is left out, as it is for unwinding.
 *
 * Return: 0; -ENODATA: the file has no unwind tables; -ENOTSUP: it is of a machine without unwind
 * rules, 32-bit, or not linked; -EBADMSG: they are broken; -EFBIG (a bound or the budget); -ENOMEM;
 * -EMFILE; others of pread(2); -ECHILD, -ETIMEDOUT, -EPROTO: the parser process crashed, took too
 * long, or gave an invalid answer.
 */
int sb_funcs_init(struct sb_parser_seat *seat, const struct sb_elf *elf,
		  struct sb_funcs *ret_funcs);
/* Free the list; it is empty then. Accepts an object of zeroes, which has no functions. */
void sb_funcs_release(struct sb_funcs *funcs);

/* Find the entry that covers @addr, an ELF virtual address. Return: whether there is one; if not,
 * *@ret_func is untouched. */
bool sb_funcs_find(const struct sb_funcs *funcs, uint64_t addr, struct sb_func *ret_func);

/**
 * sb_funcs_is_same() - whether two addresses can belong to one function
 * @from: not above @addr
 *
 * Return: false when an entry begins after @from, up to @addr, or when the entry that covers @from
 * ends before @addr. True where there are no entries.
 */
bool sb_funcs_is_same(const struct sb_funcs *funcs, uint64_t from, uint64_t addr);

/* Return: the bytes of memory that the list takes. */
size_t sb_funcs_bytes(const struct sb_funcs *funcs);

#endif
