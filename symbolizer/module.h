/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One ELF file: symbols ("light": sorted tables, on first use), lines and inlined frames ("heavy": DWARF and
 * unwind tables, the same). Both can be dropped, and come back by themselves. Internal to the symbolizer.
 * One thread at a time.
 */
#ifndef SB_MODULE_H
#define SB_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "budget.h"
#include "sb_sym.h"

struct sb_module;

struct sb_module_opts {
	struct sb_budget_pool
		*pool; /* borrowed: what all modules may cost together; NULL: no bound */
	const struct sb_symbolizer_opts *sym; /* borrowed for the life of the module */
	struct sb_strtab *strings;	      /* borrowed; every string handed out lives there */
	const char *
		root; /* "/proc/PID/root": where debug files are looked for, too; or NULL; copied */
};

/*
 * Open the file behind @fd (duplicated, the caller keeps its own) or an image in memory (copied:
 * vDSO). @path is what it is called; nothing is opened by it but debug files next to it. Headers
 * are read and checked here, symbol tables at the first lookup.
 * Return: 0, -ENOEXEC (not an ELF file we can read), -EFBIG (beyond a bound), -ENOMEM, or of I/O.
 */
int sb_module_new_fd(int fd, const char *path, const struct sb_module_opts *opts,
		     struct sb_module **ret_mod);
int sb_module_new_image(const void *image, size_t len, const char *name,
			const struct sb_module_opts *opts, struct sb_module **ret_mod);
void sb_module_free(struct sb_module *mod);

/* Base name, as frames show it; lives as long as the module's strings. */
const char *sb_module_name(const struct sb_module *mod);
/* Return: the build ID, valid as long as the module, and its length; length 0 when there is none. */
const uint8_t *sb_module_build_id(const struct sb_module *mod, size_t *ret_len);

/* Offset in the file to virtual address, through PT_LOAD. Return: false outside of every segment. */
bool sb_module_offset_to_addr(const struct sb_module *mod, uint64_t offset, uint64_t *ret_addr);

/* Most frames one address can have; a longer inline chain keeps its outermost ones. */
#define SB_MODULE_FRAMES_MAX 128

/*
 * Which of several symbols around an address names it (nested ones, aliases, labels): symtab.h.
 * What of the linker's name is shown (.cold, .isra, versions, demangling): demangle.h. Where
 * symbols come from, the first that has any: .symtab of the file; of its debug file (debugfile.h);
 * .dynsym and .gnu_debugdata together.
 *
 * The frames at virtual address @addr, innermost first: inlined ones if the options ask for them
 * and DWARF has them, then the function itself, whose name comes from the symbol table. Always at
 * least one; without a name its reason is set. One byte before a signal trampoline has its name, too, with a func_offset
 * of UINT64_MAX, that is -1. Return: 0 or -ENOMEM.
 */
int sb_module_lookup(struct sb_module *mod, uint64_t addr, struct sb_sym_frame *frames, size_t max,
		     size_t *ret_nr);

struct sb_walk_table;

/*
 * The unwind table, compiled at its first use: of the file, or of its debug file; *ret_table is
 * NULL when there is no CFI that can be used. Good until it is dropped, alone or with the heavy data.
 * Return: 0 or -ENOMEM.
 */
int sb_module_table(struct sb_module *mod, const struct sb_walk_table **ret_table);
void sb_module_drop_table(struct sb_module *mod);

/* Copy what the file has at virtual address @addr. Return: 0, -EFAULT, or of I/O. */
int sb_module_read(const struct sb_module *mod, uint64_t addr, void *buf, size_t len);

/* What each of these gives back; strings that were handed out stay. */
size_t sb_module_light_bytes(const struct sb_module *mod);
size_t sb_module_heavy_bytes(const struct sb_module *mod);
void sb_module_drop_light(struct sb_module *mod);
void sb_module_drop_heavy(struct sb_module *mod);

/*
 * What lookups allocated is done: from here on the budget is charged with what is still held. After each lookup, or
 * some of them.
 */
void sb_module_settle(struct sb_module *mod);
/* Return: whether @budget is the one that this module is charged to. */
bool sb_module_is_charged(const struct sb_module *mod, const struct sb_budget *budget);
/* What is held as long as the module is there: the headers of its files. */
size_t sb_module_header_bytes(const struct sb_module *mod);

/* Fill in symbols, debug_path, unwind, has_dwarf, build_id of @source. */
void sb_module_source(struct sb_module *mod, struct sb_sym_source *source);

#endif
