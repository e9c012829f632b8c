// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * From an address to its frames. The symbol table names the function, DWARF the inlined frames and
 * the lines in it; a stub of the PLT is named after what it calls. Names are demangled once, and
 * kept with the module.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "symbolizer/symbols/demangle.h"
#include "symbolizer/symbols/module_priv.h"

/* Work of demangling: names of templates become some ten times as long. */
#define WORK_TO_DEMANGLE(len) (2000 + 50ull * (len))

/* Make both forms of the linker's name in mod->scratch, and append @suffix to them. */
static int make_label(struct sb_module *mod, const char *suffix, struct label *ret_label)
{
	struct sb_str *raw = &mod->scratch;
	sb_cleanup(sb_str_release) struct sb_str name = {};
	struct label label;
	int err;

	/* Beyond the budget names are not demangled. */
	err = sb_demangle(raw->s,
			  sb_budget_work(&mod->budget, WORK_TO_DEMANGLE(raw->len))
				  ? SB_SYM_DEMANGLE_OFF
				  : mod->sym->demangle,
			  &name);
	if (!err)
		err = sb_str_add(&name, suffix);
	if (!err)
		err = sb_str_add(raw, suffix);
	if (!err)
		err = sb_module_intern(mod, raw->s, raw->len, &label.raw);
	if (!err)
		err = sb_module_intern(mod, name.s, name.len, &label.name);
	if (!err)
		*ret_label = label;
	return err;
}

static uint64_t hash_key(uint64_t key, bool is_name)
{
	return sb_hash(&key, sizeof(key), is_name);
}

/* Return: whether @key is known. A name and a file of the same key are two. */
static bool find_label(const struct label_cache *cache, uint64_t key, bool is_name,
		       struct label *ret_label)
{
	sb_index_each(it, &cache->index, hash_key(key, is_name)) {
		if (cache->labels.at[it.id].key == key) {
			*ret_label = cache->labels.at[it.id].label;
			return true;
		}
	}
	return false;
}

static int keep_label(struct label_cache *cache, uint64_t key, bool is_name, struct label label)
{
	const struct keyed_label entry = { .key = key, .label = label };

	return sb_index_push(&cache->index, hash_key(key, is_name), &cache->labels, entry);
}

/* Keep the label of @symbol. Return: 0 or -ENOMEM. */
static int keep_symbol_label(struct sb_module *mod, uint32_t symbol, struct label label)
{
	int err;

	if (!mod->symbol_label_ids)
		mod->symbol_label_ids =
			calloc(sb_symtab_nr(mod->symtab), sizeof(*mod->symbol_label_ids));
	if (!mod->symbol_label_ids)
		return -ENOMEM;
	err = sb_vec_push(&mod->symbol_labels, label);
	if (!err)
		mod->symbol_label_ids[symbol] = (uint32_t)mod->symbol_labels.nr;
	return err;
}

/* A symbol whose name cannot be read (any more) is treated like a missing one. */
static int symbol_label(struct sb_module *mod, uint32_t symbol, struct label *ret_label)
{
	uint32_t id = mod->symbol_label_ids ? mod->symbol_label_ids[symbol] : 0;
	struct label label = {};
	int err;

	if (id) {
		*ret_label = mod->symbol_labels.at[id - 1];
		return 0;
	}
	sb_str_clear(&mod->scratch);
	err = sb_symtab_name(mod->symtab, symbol, &mod->scratch);
	if (!err && mod->scratch.len)
		err = make_label(mod, "", &label);
	if (!err && label.raw)
		err = keep_symbol_label(mod, symbol, label);
	*ret_label = label;
	return err == -ENOMEM ? err : 0;
}

static int plt_label(struct sb_module *mod, const struct sb_plt_stub *stub, struct label *ret_label)
{
	uint32_t resolver = SB_SYMBOL_NONE;
	int err;

	sb_str_clear(&mod->scratch);
	if (stub->resolver) {
		/* An IFUNC of the same file: its resolver has the function's name. */
		resolver = sb_symtab_find(mod->symtab, stub->resolver);
		if (resolver != SB_SYMBOL_NONE)
			err = sb_symtab_name(mod->symtab, resolver, &mod->scratch);
		else
			err = sb_str_addf(&mod->scratch, "*ABS*+0x%llx",
					  (unsigned long long)stub->resolver);
	} else {
		err = sb_plt_name(mod->plt, stub->idx, &mod->scratch);
	}
	if (!err && mod->scratch.len)
		err = make_label(mod, "@plt", ret_label);
	return err == -ENOMEM ? err : 0;
}

/* Stubs are decoded when the first one is looked up, because their relocations are megabytes. */
static int lookup_plt(struct sb_module *mod, uint64_t addr, struct sb_sym_frame *frame)
{
	struct sb_plt_stub stub;
	struct label label = {};
	int err;

	if (addr < mod->plt_start || addr >= mod->plt_end)
		return 0;
	if (mod->plt_err == NOT_YET)
		mod->plt_err = sb_plt_new(mod->elf, &mod->plt);
	if (mod->plt_err == -ENOMEM) {
		mod->plt_err = NOT_YET;
		return -ENOMEM;
	}
	if (mod->plt_err || !sb_plt_find(mod->plt, addr, &stub))
		return 0;
	err = plt_label(mod, &stub, &label);
	if (err || !label.raw)
		return err;
	frame->name = label.name;
	frame->raw_name = label.raw;
	frame->func_offset = addr - stub.start;
	frame->kind = SB_SYM_PLT;
	frame->reason = SB_SYM_OK;
	return 0;
}

static enum sb_sym_reason reason_of(const struct sb_module *mod)
{
	if (mod->symtab_err == -EFBIG)
		return SB_SYM_LIMIT;
	if (mod->symtab_err && mod->symtab_err != -ENODATA)
		return SB_SYM_BAD_FILE;
	/* A stripped library still has the symbols that it exports. */
	return mod->source == FROM_NOTHING || mod->source == FROM_DYNSYM ? SB_SYM_NO_SYMBOLS
									 : SB_SYM_NO_MATCH;
}

/*
 * Load the list of functions, unless that has been tried before. A file without unwind tables has
 * an empty list. Return: 0 when mod->funcs can be searched, or -ENOMEM.
 */
static int need_funcs(struct sb_module *mod)
{
	if (mod->funcs_err != NOT_YET)
		return 0;
	mod->funcs_err = sb_funcs_init(mod->sym->parser, mod->elf, &mod->funcs);
	if (mod->funcs_err == -ENOMEM) {
		mod->funcs_err = NOT_YET;
		return -ENOMEM;
	}
	if (mod->funcs_err && mod->funcs_err != -ENODATA)
		sb_debug("functions of '%s' are not known (error %d)", mod->path, -mod->funcs_err);
	return 0;
}

/* What names an address: a symbol, or the entry of the unwind tables that covers it. */
struct found {
	uint32_t symbol; /* or SB_SYMBOL_NONE */
	uint64_t start;	 /* where its name begins */
	bool has_func;
	struct sb_func func; /* without a symbol */
};

/*
 * Find the symbol that names @addr, and the address at which the name begins; symtab.h has the
 * rule. One byte is named that its symbol does not cover: the one before glibc's __restore_rt. A
 * signal handler returns to the first byte of that trampoline, and the byte before a return address
 * is what is looked up; so glibc's unwind entry begins there. Its offset is -1, which becomes 0 for
 * the return address.
 */
static int find_symbol(struct sb_module *mod, uint64_t addr, struct found *found)
{
	uint32_t symbol = sb_symtab_find(mod->symtab, addr);
	int err;

	found->symbol = symbol;
	if (symbol != SB_SYMBOL_NONE) {
		found->start = sb_symtab_addr(mod->symtab, symbol);
		if (!sb_symtab_is_label(mod->symtab, symbol))
			return 0;
	}
	err = need_funcs(mod);
	if (err)
		return err;
	if (symbol != SB_SYMBOL_NONE && sb_funcs_is_same(&mod->funcs, found->start, addr))
		return 0;
	found->symbol = SB_SYMBOL_NONE;
	found->has_func = sb_funcs_find(&mod->funcs, addr, &found->func);
	if (!found->has_func || addr != found->func.lo || addr + 1 == found->func.hi)
		return 0;
	symbol = sb_symtab_find(mod->symtab, addr + 1);
	if (symbol == SB_SYMBOL_NONE || sb_symtab_addr(mod->symtab, symbol) != addr + 1)
		return 0;
	found->symbol = symbol;
	found->start = addr + 1;
	return 0;
}

/* Fill in a frame without a symbol: a stub of the PLT, or a function without a name. */
static int lookup_unnamed(struct sb_module *mod, uint64_t addr, const struct found *found,
			  struct sb_sym_frame *frame)
{
	int err;

	frame->reason = reason_of(mod);
	err = lookup_plt(mod, addr, frame);
	if (err || frame->name)
		return err;
	frame->has_start = found->has_func;
	if (frame->has_start)
		frame->func_offset = addr - found->func.lo;
	return 0;
}

/* The function at @addr as the symbol table has it. */
static int lookup_symbol(struct sb_module *mod, uint64_t addr, struct sb_sym_frame *ret_frame)
{
	struct sb_sym_frame frame = { .module = mod->name, .raw_name = "", .module_addr = addr };
	struct label label = {};
	struct found found = {};
	int err;

	err = sb_module_need_symtab(mod);
	if (!err)
		err = find_symbol(mod, addr, &found);
	if (err)
		return err;
	if (found.symbol != SB_SYMBOL_NONE) {
		err = symbol_label(mod, found.symbol, &label);
		frame.name = label.name;
		frame.raw_name = label.raw ? label.raw : "";
		frame.func_offset = addr - found.start;
		frame.reason = label.raw		? SB_SYM_OK
			       : mod->budget.is_refused ? SB_SYM_LIMIT
							: SB_SYM_BAD_FILE;
	} else {
		err = lookup_unnamed(mod, addr, &found, &frame);
	}
	if (!err)
		*ret_frame = frame;
	return err;
}

/* Make a label from a string of DWARF; file names are not demangled. */
static int dwarf_label(struct sb_module *mod, const char *s, bool is_name, struct label *ret_label)
{
	struct label label = {};
	int err;

	if (find_label(&mod->dwarf_labels, (uintptr_t)s, is_name, ret_label))
		return 0;
	sb_str_clear(&mod->scratch);
	err = sb_str_add(&mod->scratch, s);
	if (!err && is_name)
		err = make_label(mod, "", &label);
	else if (!err)
		err = sb_module_intern(mod, s, strlen(s), &label.raw);
	if (!err)
		err = keep_label(&mod->dwarf_labels, (uintptr_t)s, is_name, label);
	if (!err)
		*ret_label = label;
	return err;
}

static int fill_line(struct sb_module *mod, const struct sb_dwarf_frame *from,
		     struct sb_sym_frame *frame)
{
	struct label file = {};
	int err;

	frame->line = from->line;
	frame->decl_line = from->decl_line;
	if (!from->file)
		return 0;
	err = dwarf_label(mod, from->file, false, &file);
	frame->file = file.raw;
	return err;
}

static int fill_name(struct sb_module *mod, const struct sb_dwarf_frame *from,
		     struct sb_sym_frame *frame)
{
	const char *name = from->linkage_name ? from->linkage_name : from->name;
	struct label label = {};
	int err;

	if (!name || !*name)
		return 0;
	err = dwarf_label(mod, name, true, &label);
	frame->raw_name = label.raw;
	frame->name = label.name;
	frame->reason = SB_SYM_OK;
	frame->has_start = false;
	return err;
}

/* Convert frames of DWARF. The last one is the function that @symbol already describes. */
static int take_frames(struct sb_module *mod, const struct sb_dwarf_frame *from, size_t nr,
		       const struct sb_sym_frame *symbol, struct sb_sym_frame *frames)
{
	size_t i;
	int err = 0;

	for (i = 0; i < nr && !err; i++) {
		bool is_last = i == nr - 1;

		frames[i] = *symbol;
		if (!is_last) {
			frames[i].is_inlined = true;
			frames[i].has_start = false;
			frames[i].func_offset = 0;
			frames[i].name = NULL;
			frames[i].raw_name = "";
			frames[i].reason = SB_SYM_NO_MATCH;
			frames[i].kind = SB_SYM_USER;
		}
		/* The symbol's name is better: DWARF lacks the scope of some functions. */
		if (!is_last || !symbol->name)
			err = fill_name(mod, &from[i], &frames[i]);
		if (!err)
			err = fill_line(mod, &from[i], &frames[i]);
	}
	return err;
}

int sb_module_lookup(struct sb_module *mod, uint64_t addr, struct sb_sym_frame *frames, size_t max,
		     size_t *ret_nr)
{
	struct sb_dwarf_frame found[SB_MODULE_FRAMES_MAX];
	const struct sb_dwarf_frame *from = found;
	struct sb_sym_frame symbol;
	size_t nr = 0;
	int err;

	err = lookup_symbol(mod, addr, &symbol);
	if (err)
		return err;
	if ((mod->sym->inlines || mod->sym->lines) && symbol.kind != SB_SYM_PLT) {
		err = sb_module_need_dwarf(mod);
		if (!err && mod->dwarf) {
			err = sb_dwarf_lookup(
				mod->dwarf, addr + mod->dwarf_bias, found,
				max < SB_ARRAY_SIZE(found) ? max : SB_ARRAY_SIZE(found), &nr);
			sb_module_note_losses(mod);
			/* Parts of it that lacked memory count as missing. */
			if (err)
				sb_module_drop_dwarf(mod);
		}
		if (err)
			return err;
	}
	if (!nr) {
		frames[0] = symbol;
		*ret_nr = 1;
		return 0;
	}
	if (!mod->sym->inlines) {
		/* Without inlined frames: the function, with the line in its own source. */
		from += nr - 1;
		nr = 1;
	}
	err = take_frames(mod, from, nr, &symbol, frames);
	if (!err)
		*ret_nr = nr;
	return err;
}
