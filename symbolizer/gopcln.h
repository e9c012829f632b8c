/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the Go linker writes of each function, for its own tracebacks: where it is, its name, and how far the stack
 * pointer is below the return address at each instruction. Stripped programs have it, too. Internal to the
 * symbolizer; any thread. The file is hostile.
 *
 * Sources: "Go 1.2 Runtime Symbol Information" (R. Cox, 2012); src/runtime/symtab.go and src/debug/gosym/pclntab.go
 * of Go 1.2, 1.16, 1.18 and 1.20, where the layout changed.
 */
#ifndef SB_GOPCLN_H
#define SB_GOPCLN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf_file.h"

/* Of one program; the biggest seen are 30 MB. */
#define SB_GOPCLN_BYTES_MAX (256u << 20)

struct sb_gopcln {
	uint8_t *bytes; /* owned */
	size_t len;
	uint64_t offset; /* of these in the file */
	uint64_t nr_funcs;
	uint64_t text; /* ELF address that entries count from */
	/* Where in bytes: names, pairs {pc delta, value delta}, functions. */
	size_t names, pairs, funcs;
	uint8_t quantum;     /* bytes that pc deltas count */
	uint8_t entry_bytes; /* of a number in the list of functions */
};

/* Return: whether it is a Go program. */
bool sb_gopcln_is_there(const struct sb_elf *elf);
/* Return: 0; -ENODATA: it is no Go program; -EBADMSG: its table makes no sense; -EFBIG, -ENOMEM, or of I/O. */
int sb_gopcln_load(const struct sb_elf *elf, struct sb_gopcln *ret_table);
void sb_gopcln_release(struct sb_gopcln *table);

struct sb_gopcln_func {
	uint64_t lo, hi;  /* ELF addresses */
	const char *name; /* "main.(*T).run"; of the table */
	uint64_t stack;	  /* for sb_gopcln_each_depth() */
};
/* The @i-th, below nr_funcs; they ascend in files that are as they should be. Return: 0; -EBADMSG. */
int sb_gopcln_func(const struct sb_gopcln *table, uint64_t i, struct sb_gopcln_func *ret_func);

/*
 * Pieces of a function, ascending: from @addr on the return address lies @depth bytes above the stack pointer.
 * Return: 0; -EBADMSG: from there on nothing is known; or what @fn said.
 */
int sb_gopcln_each_depth(const struct sb_gopcln *table, const struct sb_gopcln_func *func,
			 int (*fn)(void *arg, uint64_t addr, int32_t depth), void *arg);

#endif
