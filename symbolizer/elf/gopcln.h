/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reader of .gopclntab, which the Go linker writes for the runtime's own tracebacks: for each
 * function its address, its name, and how far the stack pointer is below the return address at each
 * instruction. Stripped programs have it, too. Internal to the symbolizer. The file is hostile.
 *
 * Order: sb_gopcln_load(); sb_gopcln_func() and then sb_gopcln_each_depth(); sb_gopcln_release().
 * No pointer is NULL. Thread: any, one at a time for each struct sb_elf; reading a table, any
 * number.
 * Sources: "Go 1.2 Runtime Symbol Information" (R. Cox, 2012); src/runtime/symtab.go and
 * src/debug/gosym/pclntab.go of Go 1.2, 1.16, 1.18 and 1.20, where the layout changed.
 */
#ifndef SB_GOPCLN_H
#define SB_GOPCLN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/elf/elf_file.h"

/* Bound of one program's table; the largest seen has 30 MB. */
#define SB_GOPCLN_BYTES_MAX (256u << 20)

struct sb_gopcln {
	uint8_t *bytes; /* owned */
	size_t len;
	uint64_t offset; /* of @bytes in the file */
	uint64_t nr_funcs;
	uint64_t text; /* ELF address that function entries are relative to */
	/* Offsets in @bytes: names, pairs {pc delta, value delta}, functions. */
	size_t names, pairs, funcs;
	uint8_t quantum;     /* unit of pc deltas in bytes */
	uint8_t entry_bytes; /* size of a number in the list of functions */
};

/* Return: whether it is a Go program, by the names of its sections (.gopclntab,
 * .data.rel.ro.gopclntab, .go.buildinfo, .note.go.buildid); the table may be missing. */
bool sb_gopcln_is_there(const struct sb_elf *elf);
/*
 * Read the table into memory; @elf is not needed afterwards. The caller ends *ret_table with
 * sb_gopcln_release(); it is untouched on error. Return: 0; -ENODATA: there is no table; -EBADMSG:
 * it is inconsistent, or without functions; -EFBIG (the bound or the budget); -ENOTSUP: it is
 * compressed; -ENOMEM; others of pread(2).
 */
int sb_gopcln_load(const struct sb_elf *elf, struct sb_gopcln *ret_table);
/* Free the table, which must not be read any more, nor the names of its functions. Accepts one of
 * zeroes, and a second call. */
void sb_gopcln_release(struct sb_gopcln *table);

struct sb_gopcln_func {
	uint64_t lo, hi;  /* ELF addresses, hi exclusive */
	const char *name; /* "main.(*T).run"; valid as long as the table */
	uint64_t stack;	  /* private to sb_gopcln_each_depth() */
};
/*
 * Get function @i, less than nr_funcs, which is the caller's duty. They ascend in well-formed
 * files; that is not checked.
 * Return: 0; -EBADMSG: this function is broken, others may be good; *@ret_func is untouched.
 */
int sb_gopcln_func(const struct sb_gopcln *table, uint64_t i, struct sb_gopcln_func *ret_func);

/*
 * Call @fn for each piece of a function, ascending: from @addr on, the return address is @depth
 * bytes above the stack pointer, up to the next piece. @func: as sb_gopcln_func() returned it. A
 * function written in assembly may have no pieces.
 * Return: 0; -EBADMSG: nothing is known behind the last piece that @fn was called for; or the first
 * value of @fn that is not 0, which ends it.
 */
int sb_gopcln_each_depth(const struct sb_gopcln *table, const struct sb_gopcln_func *func,
			 int (*fn)(void *arg, uint64_t addr, int32_t depth), void *arg);

#endif
