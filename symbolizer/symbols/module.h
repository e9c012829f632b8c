/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One ELF file with its symbols ("light" data: sorted tables), and its lines, inlined frames and
 * unwind table ("heavy" data: DWARF and CFI). Both are loaded at their first use, can be dropped at
 * any time, and are then loaded again when needed. What they take is charged to the module's budget
 * (budget.h), which belongs to a pool of all modules. Addresses are ELF virtual addresses. Internal
 * to the symbolizer.
 *
 * Order: sb_module_new_*(); lookups, tables and droppings, each followed by sb_module_settle();
 * sb_module_free(). After any error but of sb_module_new_*() the module remains usable. No pointer
 * is NULL unless a contract says so. Thread: one at a time for each module and its pool.
 */
#ifndef SB_MODULE_H
#define SB_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "symbolizer/elf/budget.h"
#include "symbolizer/sb_sym.h"

struct sb_dwarf_losses;
struct sb_module;

struct sb_module_opts {
	struct sb_budget_pool
		*pool; /* borrowed: what all modules together may cost; NULL: no bound */
	const struct sb_symbolizer_opts *sym; /* borrowed for the life of the module */
	struct sb_strtab *strings;	      /* borrowed; it holds every string that is returned */
	struct sb_dwarf_losses
		*losses; /* borrowed: what is added to for DWARF that is not read; or NULL */
	const char *
		root; /* "/proc/PID/root": where debug files are looked for, too; or NULL; copied */
};

/*
 * Open the file behind @fd, which is duplicated, or an image in memory (the vDSO), which is
 * copied. The headers are read and checked here, symbol tables at the first lookup. The caller
 * ends *ret_mod with sb_module_free().
 * @path, @name: what the file is called, copied; only debug files next to it are opened by it
 * @opts: copied, but what it borrows must outlive the module
 *
 * Return: 0; -ENOEXEC (not an ELF file that can be read, or a relocatable object); -EFBIG (a
 * bound); -ENOMEM; -EMFILE; others of pread(2). *@ret_mod is untouched on error.
 */
int sb_module_new_fd(int fd, const char *path, const struct sb_module_opts *opts,
		     struct sb_module **ret_mod);
int sb_module_new_image(const void *image, size_t len, const char *name,
			const struct sb_module_opts *opts, struct sb_module **ret_mod);
/* Free it and give its whole charge back to the pool. Strings that were returned live on in
 * opts.strings; the unwind table and the build ID are gone. Accepts NULL. */
void sb_module_free(struct sb_module *mod);

/* Return: the base name, as frames show it; it lives as long as opts.strings. */
const char *sb_module_name(const struct sb_module *mod);
/* Return: the build ID, valid as long as the module, never NULL; *ret_len: its bytes, at most
 * SB_BUILD_ID_MAX; 0 when there is none. It was read when the module was opened, so nothing is
 * loaded here. */
const uint8_t *sb_module_build_id(const struct sb_module *mod, size_t *ret_len);

/*
 * Convert a file offset to a virtual address by the segment that holds it, executable segments
 * first. Return: false: no segment has it, *@ret_addr is untouched.
 */
bool sb_module_offset_to_addr(const struct sb_module *mod, uint64_t offset, uint64_t *ret_addr);

/* Most frames that one address can have; of a longer inline chain the outermost ones are kept. */
#define SB_MODULE_FRAMES_MAX 128

/*
 * Get the frames at virtual address @addr, innermost first: inlined ones if the options ask for
 * them and DWARF has them, then the function itself, whose name comes from the symbol table. There
 * is always at least one; a frame without a name has a reason. The byte before a signal trampoline
 * has the trampoline's name, too, with UINT64_MAX, that is -1, as func_offset.
 *
 * Which of several symbols around an address names it (nested ones, aliases, labels): symtab.h.
 * How the linker's name is shown (.cold, .isra, versions, demangling): demangle.h. Symbols come
 * from the first of these that has any: .symtab of the file; .symtab of its debug file
 * (debugfile.h); .dynsym together with .gnu_debugdata or, without it, .gopclntab.
 *
 * @max: size of @frames, at least 1; of more frames the outermost @max are returned. The strings of
 * frames live as long as opts.strings.
 * Return: 0; -ENOMEM: @frames is undefined, *@ret_nr is untouched, and it may be tried again. A
 * bound is no error, but the reason of a frame.
 */
int sb_module_lookup(struct sb_module *mod, uint64_t addr, struct sb_sym_frame *frames, size_t max,
		     size_t *ret_nr);

struct sb_walk_table;

/*
 * Get the unwind table of the file or, if it has no CFI, of its debug file; it is compiled at the
 * first use. *ret_table belongs to the module, and is valid until the table or the heavy data are
 * dropped; NULL: there is no usable CFI, or the budget did not allow to compile it, which is tried
 * again a minute later. Return: 0; -ENOMEM: *ret_table is untouched, and it may be tried again.
 */
int sb_module_table(struct sb_module *mod, const struct sb_walk_table **ret_table);
/* Free the unwind table; the next sb_module_table() compiles it again. */
void sb_module_drop_table(struct sb_module *mod);

/*
 * Copy @len bytes of the file's contents at virtual address @addr. Beyond the end of the segment
 * that has @addr, they are what follows in the file, and no error. It loads nothing, so no
 * sb_module_settle() need follow. Return: 0; -EFAULT: no segment of the file has @addr; -EBADMSG:
 * the file ends before; -EFBIG (the budget); others of pread(2). On error @buf is undefined.
 */
int sb_module_read(const struct sb_module *mod, uint64_t addr, void *buf, size_t len);

/*
 * The first two return how many bytes of memory the light or the heavy data take now, 0 when they
 * are not loaded. The other two free them, if they are loaded; strings that were returned stay
 * valid, the unwind table does not.
 */
size_t sb_module_light_bytes(const struct sb_module *mod);
size_t sb_module_heavy_bytes(const struct sb_module *mod);
void sb_module_drop_light(struct sb_module *mod);
void sb_module_drop_heavy(struct sb_module *mod);

/*
 * Reduce what the budget is charged with to the memory that the module holds now. While data are
 * loaded, each allocation is charged, and what is freed on the way is not given back; so this is to
 * be called after each lookup, table or dropping. Without it the pool counts memory that is long
 * free, and refuses other files.
 */
void sb_module_settle(struct sb_module *mod);
/* Return: whether @budget is this module's own, to which its loads are charged. */
bool sb_module_is_charged(const struct sb_module *mod, const struct sb_budget *budget);
/* Return: the bytes of memory held as long as the module exists: the headers of its files. */
size_t sb_module_header_bytes(const struct sb_module *mod);

/*
 * Fill in symbols, debug_path, unwind, has_dwarf, build_id and build_id_bytes of @source. Symbols
 * are loaded for it, so call sb_module_settle() after it. Its strings are constants, or live as
 * long as opts.strings. Without memory the source of symbols is "none".
 */
void sb_module_source(struct sb_module *mod, struct sb_sym_source *source);

#endif
