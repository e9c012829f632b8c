/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Address to symbol. The symbols of one module, flattened to non-overlapping pieces once, so that
 * a lookup is one binary search and an address no symbol covers has no name. Internal.
 *
 * A symbol names an address only if it covers it:
 *	a sized function, or sized code without a type: its size says so
 *	an object in an executable section (GHC's code is declared like that): its size says so, and the
 *	unwind tables do not contradict
 *	a label without a size (glibc's __restore_rt): up to the next symbol, the end of the sized one
 *	it is in, or the end of its section (from .dynsym: only its own address), as far as the
 *	unwind tables do not contradict
 * The tables contradict where a function that they describe begins between the symbol and the address, or where the
 * one that holds the symbol ends before the address. A symbol table does not know them: the caller of
 * sb_symtab_find() checks this for symbols of the last two kinds (sb_symtab_is_label(), funcs.h).
 *
 * Which symbol wins an address, the first rule that decides:
 *	a sized function; then other sized ones; then labels
 *	the one that starts last: nested symbols are inside
 *	of those that start together: function over untyped, strong over weak, global over local,
 *	fewer leading underscores, longer, first in the alphabet (perf's order, choose_best_symbol()
 *	in tools/perf/util/symbol.c, so that names look familiar)
 *
 * Names stay in the file until they are asked for.
 */
#ifndef SB_SYMTAB_H
#define SB_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "elf_file.h"

struct sb_symtab;

#define SB_SYMBOL_NONE UINT32_MAX

/* @budget: borrowed until sb_symtab_finish() returns, and charged; NULL: nothing is. Return: NULL without memory. */
struct sb_symtab *sb_symtab_new(struct sb_budget *budget);
void sb_symtab_free(struct sb_symtab *tab);

/*
 * Add .symtab or .dynsym of @elf; the latter is found through PT_DYNAMIC, too. @bias is added to
 * each address. A file @elf has to outlive the table, whose names stay there; an image need not.
 * Return: 0, -ENODATA when there is no such table, or nothing in it that is code; -EBADMSG,
 * -EFBIG (nothing was added then), -ENOMEM, or of I/O.
 */
int sb_symtab_add(struct sb_symtab *tab, const struct sb_elf *elf, uint32_t section_type,
		  uint64_t bias);

/* The same of what the Go linker says of its functions, which stripped programs have, too: gopcln.h. */
int sb_symtab_add_go(struct sb_symtab *tab, const struct sb_elf *elf, uint64_t bias);

/* Flatten; once, after the last addition and before the first lookup. Return: 0, -ENOMEM, or -EFBIG
 * beyond the budget: then the table can only be freed. */
int sb_symtab_finish(struct sb_symtab *tab);

/* Return: the number of the symbol which covers @addr, or SB_SYMBOL_NONE. */
uint32_t sb_symtab_find(const struct sb_symtab *tab, uint64_t addr);
uint64_t sb_symtab_addr(const struct sb_symtab *tab, uint32_t symbol);
/* Return: whether @symbol is an object or without a size: it covers an address only if the unwind tables do not
 * contradict. */
bool sb_symtab_is_label(const struct sb_symtab *tab, uint32_t symbol);
/* Symbols that own at least one address; their numbers are below. */
size_t sb_symtab_nr(const struct sb_symtab *tab);

/* Append the name. Return: 0, or as sb_names_get(). */
int sb_symtab_name(const struct sb_symtab *tab, uint32_t symbol, struct sb_str *name);

/* Entries that were passed over because they are broken (name outside of the string table). */
size_t sb_symtab_nr_broken(const struct sb_symtab *tab);
size_t sb_symtab_bytes(const struct sb_symtab *tab);

#endif
