// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/symbols/module.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/time.h"
#include "symbolizer/dwarf/sb_dwarf.h"
#include "symbolizer/elf/debugfile.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/elf/inflate.h"
#include "symbolizer/symbols/demangle.h"
#include "symbolizer/symbols/funcs.h"
#include "symbolizer/symbols/plt.h"
#include "symbolizer/symbols/symtab.h"
#include "symbolizer/unwind/walk.h"

#define DEBUGDATA_BYTES_MAX   (64u << 20)
/* A refused file is tried again after this time at the earliest. */
#define RETRY_NS	      (60 * SB_NS_PER_SEC)
/* Work of demangling: names of templates become some ten times as long. */
#define WORK_TO_DEMANGLE(len) (2000 + 50ull * (len))

enum symbol_source {
	FROM_NOTHING,
	FROM_SYMTAB,
	FROM_DEBUG_FILE,
	FROM_DYNSYM,
	FROM_DEBUGDATA,
	FROM_GO
};

static const char *const symbol_source_names[] = {
	[FROM_NOTHING] = "none",
	[FROM_SYMTAB] = ".symtab",
	[FROM_DEBUG_FILE] = "debug file",
	[FROM_DYNSYM] = ".dynsym",
	[FROM_DEBUGDATA] = ".gnu_debugdata",
	[FROM_GO] = ".gopclntab",
};

/* A name in both forms, interned. */
struct label {
	const char *raw, *name; /* NULL: it could not be read */
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
	uint64_t retry_ns;   /* when a file that was refused may be tried again */

	struct sb_debugfile debug;
	int debug_err;

	struct sb_symtab *symtab;
	int symtab_err;
	enum symbol_source source;
	/* Only of symbols that were looked up: in a big file that is one in a hundred. */
	SB_VEC(struct symbol_label {
		uint32_t symbol;
		struct label label;
	})
	symbol_labels;
	struct sb_index symbol_index;

	struct sb_funcs funcs; /* loaded for the first address that no sized symbol covers */
	int funcs_err;

	uint64_t plt_start, plt_end; /* range that contains all stubs */
	struct sb_plt *plt;
	int plt_err;

	struct sb_dwarf *dwarf;
	int dwarf_err;
	uint64_t dwarf_bias; /* added to our addresses */
	/* Strings of DWARF to labels. The keys are pointers: they live as long as the DWARF. */
	SB_VEC(struct dwarf_label {
		const char *key;
		struct label label;
	})
	dwarf_labels;
	struct sb_index dwarf_index;

	struct sb_walk_table table;
	int table_err;

	struct sb_str scratch;
};

static int intern(struct sb_module *mod, const char *s, size_t len, const char **ret)
{
	uint32_t id;
	int err = sb_strtab_add(mod->strings, s, len, &id);

	if (!err)
		*ret = sb_strtab_get(mod->strings, id, NULL);
	return err;
}

static int init(struct sb_module *mod, const char *path, const struct sb_module_opts *opts)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash && slash[1] ? slash + 1 : path;

	mod->sym = opts->sym;
	mod->strings = opts->strings;
	mod->debug_err = mod->symtab_err = mod->funcs_err = mod->plt_err = mod->dwarf_err =
		mod->table_err = NOT_YET;
	mod->path = strdup(path);
	if (!mod->path)
		return -ENOMEM;
	if (opts->root) {
		mod->root = strdup(opts->root);
		if (!mod->root)
			return -ENOMEM;
	}
	return intern(mod, base, strlen(base), &mod->name);
}

/* Charge @elf, and what is read of it from now on, to the module. Return: 0, -EFBIG, -ENOMEM. */
static int adopt(struct sb_module *mod, struct sb_elf *elf)
{
	int err = sb_budget_charge(&mod->budget, elf->own.bytes);

	if (err)
		return err;
	mod->header_bytes += elf->own.bytes;
	elf->budget = &mod->budget;
	return 0;
}

/* Takes ownership of @elf. */
static int module_new(struct sb_elf *elf, const char *path, const struct sb_module_opts *opts,
		      struct sb_module **ret_mod)
{
	struct sb_module *mod = NULL;
	int err = -ENOEXEC; /* a relocatable object cannot run */

	if (elf->type != ET_REL) {
		mod = calloc(1, sizeof(*mod));
		err = -ENOMEM;
	}
	if (!mod) {
		sb_elf_free(elf);
		return err;
	}
	mod->elf = elf;
	sb_plt_bounds(elf, &mod->plt_start, &mod->plt_end);
	err = init(mod, path, opts);
	if (!err) {
		sb_budget_init(&mod->budget, opts->pool, elf->uid, mod->path);
		err = adopt(mod, elf);
	}
	if (err) {
		sb_module_free(mod);
		return err;
	}
	*ret_mod = mod;
	return 0;
}

int sb_module_new_fd(int fd, const char *path, const struct sb_module_opts *opts,
		     struct sb_module **ret_mod)
{
	struct sb_elf *elf;
	int err = sb_elf_new_fd(fd, &elf);

	return err ? err : module_new(elf, path, opts, ret_mod);
}

int sb_module_new_image(const void *image, size_t len, const char *name,
			const struct sb_module_opts *opts, struct sb_module **ret_mod)
{
	struct sb_elf *elf;
	int err = sb_elf_new_image(image, len, &elf);

	return err ? err : module_new(elf, name, opts, ret_mod);
}

void sb_module_free(struct sb_module *mod)
{
	if (!mod)
		return;
	sb_module_drop_heavy(mod);
	sb_module_drop_light(mod);
	sb_budget_settle(&mod->budget, 0);
	sb_debugfile_release(&mod->debug);
	sb_elf_free(mod->elf);
	sb_str_release(&mod->scratch);
	free(mod->root);
	free(mod->path);
	free(mod);
}

const char *sb_module_name(const struct sb_module *mod)
{
	return mod->name;
}

const uint8_t *sb_module_build_id(const struct sb_module *mod, size_t *ret_len)
{
	*ret_len = mod->elf->build_id_len;
	return mod->elf->build_id;
}

bool sb_module_offset_to_addr(const struct sb_module *mod, uint64_t offset, uint64_t *ret_addr)
{
	return sb_elf_offset_to_addr(mod->elf, offset, ret_addr);
}

static struct sb_debugfile_opts debugfile_opts(const struct sb_module *mod)
{
	return (struct sb_debugfile_opts){
		.path = mod->path,
		.root = mod->root,
		.dirs = mod->sym->debug_dirs,
		.debuginfod = mod->sym->debuginfod,
	};
}

/* Return: 0 if there is a separate debug file, -ENOENT, -EFBIG, -ENOMEM. */
static int need_debug_file(struct sb_module *mod)
{
	struct sb_debugfile_opts opts = debugfile_opts(mod);

	if (mod->debug_err != NOT_YET && mod->debug_err != -ENOMEM)
		return mod->debug_err;
	mod->debug_err = sb_debugfile_find(mod->elf, &opts, &mod->debug);
	if (!mod->debug_err)
		mod->debug_err = adopt(mod, mod->debug.elf);
	if (mod->debug_err)
		sb_debugfile_release(&mod->debug);
	return mod->debug_err;
}

static uint64_t first_load(const struct sb_elf *elf)
{
	size_t i;

	for (i = 0; i < elf->nr_phdrs; i++)
		if (elf->phdrs[i].p_type == PT_LOAD)
			return elf->phdrs[i].p_vaddr;
	return 0;
}

/* Return: what to add to addresses of the debug file; it is not 0 only after prelink(8). */
static uint64_t debug_bias(const struct sb_module *mod)
{
	return first_load(mod->elf) - first_load(mod->debug.elf);
}

/* After an error of one table the next one is tried, unless memory ran out. */
static int try_table(struct sb_module *mod, const struct sb_elf *elf, uint32_t type, uint64_t bias)
{
	int err = sb_symtab_add(mod->symtab, elf, type, bias);

	if (err && err != -ENODATA)
		sb_debug("symbols of '%s' are not usable (error %d)", mod->path, -err);
	return err;
}

static int add_debugdata(struct sb_module *mod)
{
	sb_cleanup(sb_freep) char *packed = NULL, *image = NULL;
	const Elf64_Shdr *shdr = sb_elf_section_named(mod->elf, ".gnu_debugdata");
	struct sb_elf *elf;
	size_t packed_len, len;
	int err;

	if (!shdr)
		return -ENODATA;
	err = sb_elf_load(mod->elf, shdr, DEBUGDATA_BYTES_MAX, &packed, &packed_len);
	if (!err)
		err = sb_inflate_xz(packed, packed_len, &mod->budget, &image, &len);
	if (!err)
		err = sb_budget_charge(&mod->budget, len); /* the copy */
	if (!err)
		err = sb_elf_new_image(image, len, &elf);
	if (err)
		return err;
	elf->budget = &mod->budget;
	err = try_table(mod, elf, SHT_SYMTAB, 0);
	sb_elf_free(elf);
	return err;
}

/* Add symbols that stripped programs may still have. Return: 0, -ENODATA, or the last error. */
static int add_hidden(struct sb_module *mod)
{
	int err = add_debugdata(mod), go_err;

	if (!err)
		mod->source = FROM_DEBUGDATA;
	if (!err || err == -ENOMEM)
		return err;
	go_err = sb_symtab_add_go(mod->symtab, mod->elf, 0);
	if (!go_err)
		mod->source = FROM_GO;
	return go_err == -ENODATA ? err : go_err;
}

/*
 * Add symbols from the best source. Return: 0, or why there is none: -ENODATA, or the last error.
 */
static int add_symbols(struct sb_module *mod)
{
	int err, symtab_err, dynsym_err;

	err = symtab_err = try_table(mod, mod->elf, SHT_SYMTAB, 0);
	if (!err) {
		mod->source = FROM_SYMTAB;
		return 0;
	}
	if (err != -ENOMEM) {
		err = need_debug_file(mod);
		if (!err)
			err = try_table(mod, mod->debug.elf, SHT_SYMTAB, debug_bias(mod));
	}
	if (!err) {
		mod->source = FROM_DEBUG_FILE;
		return 0;
	}
	if (err == -ENOMEM)
		return err;
	dynsym_err = try_table(mod, mod->elf, SHT_DYNSYM, 0);
	if (!dynsym_err)
		mod->source = FROM_DYNSYM;
	err = dynsym_err == -ENOMEM ? dynsym_err : add_hidden(mod);
	if (err == -ENODATA || (err && err != -ENOMEM && !dynsym_err))
		err = dynsym_err;
	/*
	 * An address without a name is then to be explained by the error, not by missing symbols.
	 */
	return err != -ENOMEM && symtab_err != -ENODATA ? symtab_err : err;
}

/* If there are too many symbols to be sorted, the file has none. */
static int finish_symtab(struct sb_module *mod, int *reason)
{
	int err = sb_symtab_finish(mod->symtab);

	if (err != -EFBIG)
		return err;
	*reason = err;
	mod->source = FROM_NOTHING;
	sb_symtab_free(mod->symtab);
	mod->symtab = sb_symtab_new(NULL);
	return mod->symtab ? sb_symtab_finish(mod->symtab) : -ENOMEM;
}

/*
 * Try a file that cost too much again, but not often: its budget may have been refilled, and other
 * files be gone.
 */
static void try_again(struct sb_module *mod)
{
	uint64_t now_ns;

	if (mod->symtab_err != -EFBIG)
		return;
	now_ns = sb_now_ns();
	if (now_ns < mod->retry_ns)
		return;
	mod->retry_ns = now_ns + RETRY_NS;
	if (sb_budget_may_retry(&mod->budget))
		sb_module_drop_light(mod);
}

/* Return: 0 (mod->symtab can be asked, mod->symtab_err is an error that users see), or -ENOMEM. */
static int need_symtab(struct sb_module *mod)
{
	int err, reason;

	try_again(mod);
	if (mod->symtab_err != NOT_YET)
		return 0;
	mod->retry_ns = sb_now_ns() + RETRY_NS;
	mod->symtab = sb_symtab_new(&mod->budget);
	if (!mod->symtab)
		return -ENOMEM;
	reason = add_symbols(mod);
	err = reason == -ENOMEM ? reason : finish_symtab(mod, &reason);
	if (err) {
		sb_symtab_free(sb_take(mod->symtab));
		return err;
	}
	mod->symtab_err = reason;
	return 0;
}

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
		err = intern(mod, raw->s, raw->len, &label.raw);
	if (!err)
		err = intern(mod, name.s, name.len, &label.name);
	if (!err)
		*ret_label = label;
	return err;
}

/* A symbol whose name cannot be read (any more) is treated like a missing one. */
static int symbol_label(struct sb_module *mod, uint32_t symbol, struct label *ret_label)
{
	uint64_t hash = sb_hash(&symbol, sizeof(symbol), 0);
	struct symbol_label entry = { .symbol = symbol };
	struct sb_index_iter it;
	int err;

	for (it = sb_index_first(&mod->symbol_index, hash); it.id != SB_INDEX_NONE;
	     it = sb_index_next(&mod->symbol_index, it)) {
		if (mod->symbol_labels.at[it.id].symbol == symbol) {
			*ret_label = mod->symbol_labels.at[it.id].label;
			return 0;
		}
	}
	sb_str_clear(&mod->scratch);
	err = sb_symtab_name(mod->symtab, symbol, &mod->scratch);
	if (!err && mod->scratch.len)
		err = make_label(mod, "", &entry.label);
	if (!err && entry.label.raw)
		err = sb_vec_push(&mod->symbol_labels, entry);
	if (!err && entry.label.raw)
		err = sb_index_add(&mod->symbol_index, hash, (uint32_t)mod->symbol_labels.nr - 1);
	*ret_label = entry.label;
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
 * Load the list of functions, unless that has been tried before. A file without unwind tables has an empty list.
 * Return: 0 when mod->funcs can be searched, or -ENOMEM.
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

/*
 * Find the symbol that names @addr, and the address at which the name begins; symtab.h has the rule. One byte is named
 * that its symbol does not cover: the one before glibc's __restore_rt. A signal handler returns to the first byte of
 * that trampoline, and the byte before a return address is what is looked up; so glibc's unwind entry begins there. Its
 * offset is -1, which becomes 0 for the return address.
 */
static int find_symbol(struct sb_module *mod, uint64_t addr, uint32_t *ret_symbol,
		       uint64_t *ret_start)
{
	uint32_t symbol = sb_symtab_find(mod->symtab, addr);
	struct sb_func func;
	int err;

	*ret_symbol = symbol;
	if (symbol != SB_SYMBOL_NONE) {
		*ret_start = sb_symtab_addr(mod->symtab, symbol);
		if (!sb_symtab_is_label(mod->symtab, symbol))
			return 0;
	}
	err = need_funcs(mod);
	if (err)
		return err;
	if (symbol != SB_SYMBOL_NONE && sb_funcs_is_same(&mod->funcs, *ret_start, addr))
		return 0;
	*ret_symbol = SB_SYMBOL_NONE;
	if (!sb_funcs_find(&mod->funcs, addr, &func) || addr != func.lo || addr + 1 == func.hi)
		return 0;
	symbol = sb_symtab_find(mod->symtab, addr + 1);
	if (symbol == SB_SYMBOL_NONE || sb_symtab_addr(mod->symtab, symbol) != addr + 1)
		return 0;
	*ret_symbol = symbol;
	*ret_start = addr + 1;
	return 0;
}

/* Fill in a frame without a symbol: a stub of the PLT, or a function without a name. */
static int lookup_unnamed(struct sb_module *mod, uint64_t addr, struct sb_sym_frame *frame)
{
	struct sb_func func;
	int err;

	frame->reason = reason_of(mod);
	err = lookup_plt(mod, addr, frame);
	if (err || frame->name)
		return err;
	frame->has_start = sb_funcs_find(&mod->funcs, addr, &func);
	if (frame->has_start)
		frame->func_offset = addr - func.lo;
	return 0;
}

/* The function at @addr as the symbol table has it. */
static int lookup_symbol(struct sb_module *mod, uint64_t addr, struct sb_sym_frame *ret_frame)
{
	struct sb_sym_frame frame = { .module = mod->name, .raw_name = "", .module_addr = addr };
	struct label label = {};
	uint32_t symbol;
	uint64_t start;
	int err;

	err = need_symtab(mod);
	if (!err)
		err = find_symbol(mod, addr, &symbol, &start);
	if (err)
		return err;
	if (symbol != SB_SYMBOL_NONE) {
		err = symbol_label(mod, symbol, &label);
		frame.name = label.name;
		frame.raw_name = label.raw ? label.raw : "";
		frame.func_offset = addr - start;
		frame.reason = label.raw		? SB_SYM_OK
			       : mod->budget.is_refused ? SB_SYM_LIMIT
							: SB_SYM_BAD_FILE;
	} else {
		err = lookup_unnamed(mod, addr, &frame);
	}
	if (!err)
		*ret_frame = frame;
	return err;
}

static bool has_dwarf(const struct sb_elf *elf)
{
	return sb_elf_has_section(elf, ".debug_info") || sb_elf_has_section(elf, ".zdebug_info");
}

/* The file with DWARF and the dwz file behind it. */
static int open_dwarf_of(struct sb_module *mod, const struct sb_elf *elf, const char *path)
{
	struct sb_debugfile_opts opts = debugfile_opts(mod);
	sb_cleanup(sb_closep) int alt_fd = -1;
	int err;

	err = sb_debugfile_find_alt(elf, path, &opts, &alt_fd);
	if (err && err != -ENOENT)
		return err;
	return sb_dwarf_new(elf->fd, alt_fd, &mod->budget, &mod->dwarf);
}

static int open_dwarf(struct sb_module *mod)
{
	int err;

	if (has_dwarf(mod->elf) && mod->elf->fd >= 0) {
		mod->dwarf_bias = 0;
		return open_dwarf_of(mod, mod->elf, mod->path);
	}
	err = need_debug_file(mod);
	if (err)
		return err == -ENOENT ? -ENODATA : err;
	if (!has_dwarf(mod->debug.elf))
		return -ENODATA;
	mod->dwarf_bias = -debug_bias(mod);
	return open_dwarf_of(mod, mod->debug.elf, mod->debug.path);
}

/* Return: 0 (mod->dwarf is NULL when there is none), or -ENOMEM. */
static int need_dwarf(struct sb_module *mod)
{
	if (mod->dwarf_err == NOT_YET) {
		mod->dwarf_err = open_dwarf(mod);
		if (mod->dwarf_err == -ENOMEM) {
			mod->dwarf_err = NOT_YET;
			return -ENOMEM;
		}
		if (mod->dwarf_err && mod->dwarf_err != -ENODATA)
			sb_debug("DWARF of '%s' is not usable (error %d)", mod->path,
				 -mod->dwarf_err);
	}
	return 0;
}

/* Make a label from a string of DWARF; file names are not demangled. */
static int dwarf_label(struct sb_module *mod, const char *s, bool is_name, struct label *ret_label)
{
	uint64_t hash = sb_hash(&s, sizeof(s), is_name);
	struct dwarf_label entry = { .key = s };
	struct sb_index_iter it;
	int err;

	for (it = sb_index_first(&mod->dwarf_index, hash); it.id != SB_INDEX_NONE;
	     it = sb_index_next(&mod->dwarf_index, it)) {
		if (mod->dwarf_labels.at[it.id].key == s) {
			*ret_label = mod->dwarf_labels.at[it.id].label;
			return 0;
		}
	}
	sb_str_clear(&mod->scratch);
	err = sb_str_add(&mod->scratch, s);
	if (!err && is_name)
		err = make_label(mod, "", &entry.label);
	else if (!err)
		err = intern(mod, s, strlen(s), &entry.label.raw);
	if (!err)
		err = sb_vec_push(&mod->dwarf_labels, entry);
	if (!err)
		err = sb_index_add(&mod->dwarf_index, hash, (uint32_t)mod->dwarf_labels.nr - 1);
	if (!err)
		*ret_label = entry.label;
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
		err = need_dwarf(mod);
		if (!err && mod->dwarf)
			err = sb_dwarf_lookup(
				mod->dwarf, addr + mod->dwarf_bias, mod->sym->lines, found,
				max < SB_ARRAY_SIZE(found) ? max : SB_ARRAY_SIZE(found), &nr);
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

/* Return: as sb_walk_table_init(), of the debug file if the file itself has no CFI. */
static int make_table(struct sb_module *mod)
{
	int err = sb_walk_table_init(&mod->table, mod->sym->parser, mod->elf, NULL);

	if (err != -ENODATA)
		return err;
	err = need_debug_file(mod);
	/* The CFI of a file that prelink(8) moved is for other addresses. */
	if (err || debug_bias(mod))
		return err == -ENOMEM ? err : -ENODATA;
	return sb_walk_table_init(&mod->table, mod->sym->parser, mod->elf, mod->debug.elf);
}

static size_t table_bytes(const struct sb_module *mod)
{
	return mod->table.nr_words * sizeof(*mod->table.words);
}

int sb_module_table(struct sb_module *mod, const struct sb_walk_table **ret_table)
{
	if (mod->table_err == NOT_YET) {
		mod->table_err = make_table(mod);
		if (!mod->table_err && sb_budget_charge(&mod->budget, table_bytes(mod))) {
			sb_walk_table_release(&mod->table);
			mod->table_err = -EFBIG;
		}
		if (mod->table_err == -ENOMEM) {
			mod->table_err = NOT_YET;
			return -ENOMEM;
		}
		if (mod->table_err)
			sb_debug("no unwind table for '%s' (error %d)", mod->path, -mod->table_err);
	}
	*ret_table = mod->table_err ? NULL : &mod->table;
	return 0;
}

void sb_module_drop_table(struct sb_module *mod)
{
	sb_walk_table_release(&mod->table);
	if (!mod->table_err)
		mod->table_err = NOT_YET;
}

int sb_module_read(const struct sb_module *mod, uint64_t addr, void *buf, size_t len)
{
	uint64_t offset;

	if (!sb_elf_addr_to_offset(mod->elf, addr, &offset))
		return -EFAULT;
	return sb_elf_read(mod->elf, offset, buf, len);
}

void sb_module_settle(struct sb_module *mod)
{
	sb_budget_settle(&mod->budget, mod->header_bytes + sb_module_light_bytes(mod) +
					       sb_module_heavy_bytes(mod));
}

bool sb_module_is_charged(const struct sb_module *mod, const struct sb_budget *budget)
{
	return &mod->budget == budget;
}

size_t sb_module_header_bytes(const struct sb_module *mod)
{
	return mod->header_bytes;
}

static size_t index_bytes(const struct sb_index *index)
{
	return index->slots ? (index->mask + 1ull) * sizeof(*index->slots) : 0;
}

size_t sb_module_light_bytes(const struct sb_module *mod)
{
	size_t bytes = mod->symbol_labels.cap * sizeof(*mod->symbol_labels.at) +
		       index_bytes(&mod->symbol_index);

	if (mod->symtab)
		bytes += sb_symtab_bytes(mod->symtab);
	if (mod->plt)
		bytes += sb_plt_bytes(mod->plt);
	return bytes + sb_funcs_bytes(&mod->funcs);
}

void sb_module_drop_light(struct sb_module *mod)
{
	sb_vec_release(&mod->symbol_labels);
	sb_index_release(&mod->symbol_index);
	sb_symtab_free(sb_take(mod->symtab));
	mod->symtab_err = NOT_YET;
	sb_plt_free(sb_take(mod->plt));
	mod->plt_err = NOT_YET;
	sb_funcs_release(&mod->funcs);
	mod->funcs_err = NOT_YET;
}

size_t sb_module_heavy_bytes(const struct sb_module *mod)
{
	size_t bytes = mod->dwarf_labels.cap * sizeof(*mod->dwarf_labels.at) + table_bytes(mod) +
		       index_bytes(&mod->dwarf_index);

	return bytes + (mod->dwarf ? sb_dwarf_bytes(mod->dwarf) : 0);
}

void sb_module_drop_heavy(struct sb_module *mod)
{
	sb_index_release(&mod->dwarf_index);
	sb_vec_release(&mod->dwarf_labels);
	sb_dwarf_free(sb_take(mod->dwarf));
	if (!mod->dwarf_err)
		mod->dwarf_err = NOT_YET;
	sb_module_drop_table(mod);
}

static const char *unwind_of(const struct sb_elf *elf)
{
	size_t i;

	for (i = 0; i < elf->nr_phdrs; i++)
		if (elf->phdrs[i].p_type == PT_GNU_EH_FRAME)
			return ".eh_frame";
	if (sb_elf_has_section(elf, ".eh_frame"))
		return ".eh_frame";
	return sb_elf_has_section(elf, ".debug_frame") ? ".debug_frame" : "none";
}

void sb_module_source(struct sb_module *mod, struct sb_sym_source *source)
{
	const char *path;

	/* Without memory no source is known. */
	if (need_symtab(mod))
		mod->source = FROM_NOTHING;
	source->symbols = symbol_source_names[mod->source];
	source->has_dwarf = has_dwarf(mod->elf);
	if (!source->has_dwarf && !need_debug_file(mod))
		source->has_dwarf = has_dwarf(mod->debug.elf);
	source->debug_path = NULL;
	if (mod->debug.path && !intern(mod, mod->debug.path, strlen(mod->debug.path), &path))
		source->debug_path = path;
	source->unwind = unwind_of(mod->elf);
	if (sb_streq(source->unwind, "none") && mod->debug.elf &&
	    sb_elf_has_section(mod->debug.elf, ".debug_frame"))
		source->unwind = ".debug_frame";
	source->build_id_bytes = (uint32_t)mod->elf->build_id_len;
	memcpy(source->build_id, mod->elf->build_id, sizeof(source->build_id));
}
