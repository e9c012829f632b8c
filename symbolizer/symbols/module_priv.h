/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of a module. module.c opens it and loads what is asked for, module_lookup.c makes
 * frames of what was loaded. Internal to these two files. Order: each lookup calls
 * sb_module_need_*() for what it reads, because anything may have been dropped since the last one.
 * No argument is NULL. Thread: one at a time for each module.
 */
#ifndef SB_MODULE_PRIV_H
#define SB_MODULE_PRIV_H

#include "base/index.h"
#include "base/str.h"
#include "base/vec.h"
#include "symbolizer/dwarf/sb_dwarf.h"
#include "symbolizer/elf/debugfile.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/symbols/funcs.h"
#include "symbolizer/symbols/module.h"
#include "symbolizer/symbols/plt.h"
#include "symbolizer/symbols/symtab.h"
#include "symbolizer/unwind/walk.h"

enum symbol_source {
	FROM_NOTHING,
	FROM_SYMTAB,
	FROM_DEBUG_FILE,
	FROM_DYNSYM,
	FROM_DEBUGDATA,
	FROM_GO
};

/* A name in both forms, interned. */
struct label {
	const char *raw, *name; /* NULL: it could not be read */
};

/* Labels of strings of DWARF, by their addresses. All zeroes is an empty one. */
struct label_cache {
	SB_VEC(struct keyed_label {
		uint64_t key;
		struct label label;
	})
	labels;
	struct sb_index index;
};

/* State of something that is done at most once: 1 is "not yet", otherwise it is the result. */
#define NOT_YET 1

struct sb_module {
	const struct sb_symbolizer_opts *sym;
	struct sb_strtab *strings;
	char *root, *path;
	const char *name;
	struct sb_elf *elf;

	struct sb_budget budget;
	size_t header_bytes; /* part of the charge that is held as long as the files are open */
	/* When symbols, or the unwind table, that were refused may be tried again. */
	uint64_t retry_ns, table_retry_ns;

	struct sb_debugfile debug;
	int debug_err;

	struct sb_symtab *symtab;
	int symtab_err;
	enum symbol_source source;
	/* Only of symbols that were looked up: in a big file that is one in a hundred. */
	SB_VEC(struct label) symbol_labels;
	/* By symbol: the index of its label and 1, or 0; NULL before the first one. */
	uint32_t *symbol_label_ids;

	struct sb_funcs funcs; /* loaded for the first address that no sized symbol covers */
	int funcs_err;

	uint64_t plt_start, plt_end; /* range that contains all stubs */
	struct sb_plt *plt;
	int plt_err;

	struct sb_dwarf *dwarf;
	int dwarf_err;
	uint64_t dwarf_bias; /* added to our addresses */
	/* What was found missing, also of DWARF that was dropped: the most at a time. A part of
	 * @losses. */
	struct sb_dwarf_losses lost;
	struct sb_dwarf_losses *losses; /* of all modules, borrowed; or NULL */
	/* By the addresses of the strings of DWARF, which live as long as the DWARF. */
	struct label_cache dwarf_labels;

	struct sb_walk_table table;
	int table_err;

	struct sb_str scratch;
};

/* Intern @len bytes at @s; *@ret lives as long as opts.strings. Return: 0; -ENOMEM, -E2BIG (too
 * long, or too many strings): *@ret is untouched. */
int sb_module_intern(struct sb_module *mod, const char *s, size_t len, const char **ret);
/*
 * Load the symbols, unless that has been tried before; what the budget refused is tried again a
 * minute later, if the budget has recovered by then. Return: 0 (mod->symtab is finished, though
 * perhaps empty; mod->symtab_err is 0 or the errno that explains why addresses have no name);
 * -ENOMEM: nothing is loaded, and the next call tries again.
 */
int sb_module_need_symtab(struct sb_module *mod);
/*
 * Load the DWARF, unless that has been tried before. Return: 0 (mod->dwarf is NULL when there is
 * none that can be used); -ENOMEM: the next call tries again.
 */
int sb_module_need_dwarf(struct sb_module *mod);
/* Free the DWARF; the next sb_module_need_dwarf() loads it again, if it could be used. */
void sb_module_drop_dwarf(struct sb_module *mod);
/* Count what lookups in mod->dwarf, which is loaded, have found missing since the last call
 * (damaged units, .dwo files that cannot be used): in mod->lost and, unless NULL, *mod->losses. To
 * be called after each lookup, before mod->dwarf may be dropped. */
void sb_module_note_losses(struct sb_module *mod);

#endif
