/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The symbol table of one module: address to symbol. All symbols are flattened once to pieces that
 * do not overlap, so that a lookup is one search, and an address that no symbol covers has
 * no name. Internal to the symbolizer. Thread: one at a time for each table.
 *
 * A symbol names an address only if it covers it:
 *	- a sized function, or sized code without a type: as far as its size says;
 *	- an object in an executable section (GHC's code is declared so): as far as its size says,
 *	  and the unwind tables do not contradict;
 *	- a label without a size (glibc's __restore_rt): up to the next symbol, the end of the sized
 *	  one it is in, or the end of its section (from .dynsym: only its own address), as far as
 *	  the unwind tables do not contradict.
 * The unwind tables contradict if a function that they describe begins between the symbol and the
 * address, or if the one that holds the symbol ends before the address. A symbol table does not
 * know them: the caller of sb_symtab_find() checks this for symbols of the last two kinds
 * (sb_symtab_is_label(), funcs.h).
 *
 * Which of several symbols names an address is decided by the first of these rules that applies:
 *	- a sized function; then other sized symbols; then labels;
 *	- the one that starts last, because nested symbols are inside;
 *	- of those that start together: function over untyped, strong over weak, global over local,
 *	  fewer leading underscores, longer, first in the alphabet (perf's order,
 *	  choose_best_symbol() in tools/perf/util/symbol.c, so that names look familiar).
 *
 * Names stay in the file until they are asked for. Order: sb_symtab_new(), additions,
 * sb_symtab_finish() once, look-ups, and sb_symtab_free(). No pointer is NULL unless a contract
 * says so.
 */
#ifndef SB_SYMTAB_H
#define SB_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "symbolizer/elf/elf_file.h"

struct sb_symtab;

#define SB_SYMBOL_NONE UINT32_MAX

/*
 * Make an empty table, to be filled by additions. @budget: borrowed until sb_symtab_finish()
 * returns, charged for everything; NULL: no bound.
 * Return: the table, which the caller ends with sb_symtab_free(); NULL without memory.
 */
struct sb_symtab *sb_symtab_new(struct sb_budget *budget);
/* Free the table, in any state. Accepts NULL. */
void sb_symtab_free(struct sb_symtab *tab);

/*
 * Add .symtab or .dynsym of @elf; .dynsym is found through PT_DYNAMIC, too. @section_type:
 * SHT_SYMTAB or SHT_DYNSYM. @bias is added to each address. A file must outlive the table, because
 * names stay in it; an image need not.
 * Return: 0; -ENODATA (no such table, or no code in it); -EBADMSG; -ENOTSUP (compressed); -EFBIG (a
 * bound, the budget, or the table got symbols from five sources already), and then nothing was
 * added; -ENOMEM; others of pread(2). After the other errors symbols read before it may have been
 * added. After any error but -ENOMEM further tables can be added, and the table can be finished.
 */
int sb_symtab_add(struct sb_symtab *tab, const struct sb_elf *elf, uint32_t section_type,
		  uint64_t bias);

/*
 * Add the functions that .gopclntab of a Go program lists, which stripped programs have, too:
 * gopcln.h. @bias is added to each address. @elf must outlive the table, if it is a file. Return:
 * 0; -ENODATA: not a Go program; -EBADMSG; -ENOTSUP (compressed); -EFBIG (a bound, the budget, or
 * the table got symbols from five sources already); -ENOMEM; others of pread(2). After -ENOMEM some
 * symbols may have been added, after other errors none, and the table can be finished.
 */
int sb_symtab_add_go(struct sb_symtab *tab, const struct sb_elf *elf, uint64_t bias);

/* Flatten the table, once. Return: 0; -ENOMEM or -EFBIG (the budget), and then the table can only
 * be freed. */
int sb_symtab_finish(struct sb_symtab *tab);

/*
 * Return: the number of the symbol that covers @addr (an ELF address plus the bias);
 * SB_SYMBOL_NONE: there is none, or the table is not finished. sb_symtab_addr(),
 * sb_symtab_is_label() and sb_symtab_name() take any number below sb_symtab_nr(), but not
 * SB_SYMBOL_NONE.
 */
uint32_t sb_symtab_find(const struct sb_symtab *tab, uint64_t addr);
/* Return: the address where @symbol begins, with the bias that was passed when it was added.
 * @symbol: of sb_symtab_find(); which numbers are valid is said there, and not checked. */
uint64_t sb_symtab_addr(const struct sb_symtab *tab, uint32_t symbol);
/*
 * Return: whether @symbol is an object or has no size, so that the unwind tables must not
 * contradict.
 */
bool sb_symtab_is_label(const struct sb_symtab *tab, uint32_t symbol);
/* Return: the number of symbols that cover at least one address; symbol numbers are lower. 0 before
 * sb_symtab_finish(). */
size_t sb_symtab_nr(const struct sb_symtab *tab);

/*
 * Append the name of @symbol to @name, mostly read from the file. Return: 0; -EBADMSG: its name is
 * broken; -EFBIG (too long, or the budget of the file); -ENOMEM; others of pread(2). After an error
 * a part of the name may have been appended.
 */
int sb_symtab_name(const struct sb_symtab *tab, uint32_t symbol, struct sb_str *name);

/* Return: the bytes of memory in use, with 4 for each symbol that the module may need
 * (module_priv.h). */
size_t sb_symtab_bytes(const struct sb_symtab *tab);

#endif
