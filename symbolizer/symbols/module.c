// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A module: its file, its debug file, and what is loaded of them when it is first asked for. Each
 * load is tried once; what did not fit into the budget is tried again later.
 */
#include "symbolizer/symbols/module.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/time.h"
#include "symbolizer/elf/inflate.h"
#include "symbolizer/symbols/module_priv.h"

#define DEBUGDATA_BYTES_MAX (64u << 20)
/* A refused file is tried again after this time at the earliest. */
#define RETRY_NS	    (60 * SB_NS_PER_SEC)

static const char *const symbol_source_names[] = {
	[FROM_NOTHING] = "none",
	[FROM_SYMTAB] = ".symtab",
	[FROM_DEBUG_FILE] = "debug file",
	[FROM_DYNSYM] = ".dynsym",
	[FROM_DEBUGDATA] = ".gnu_debugdata",
	[FROM_GO] = ".gopclntab",
};

int sb_module_intern(struct sb_module *mod, const char *s, size_t len, const char **ret)
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
	mod->losses = opts->losses;
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
	return sb_module_intern(mod, base, strlen(base), &mod->name);
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
	const Elf64_Phdr *load = sb_elf_phdr_typed(elf, PT_LOAD);

	return load ? load->p_vaddr : 0;
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
 * Whether to try a file that cost too much again, but not often: its budget may have been refilled,
 * and other files be gone.
 */
static bool may_retry(struct sb_module *mod, uint64_t *retry_ns)
{
	uint64_t now_ns = sb_now_ns();

	if (now_ns < *retry_ns)
		return false;
	*retry_ns = now_ns + RETRY_NS;
	return sb_budget_may_retry(&mod->budget);
}

int sb_module_need_symtab(struct sb_module *mod)
{
	int err, reason;

	if (mod->symtab_err == -EFBIG && may_retry(mod, &mod->retry_ns))
		sb_module_drop_light(mod);
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
	return sb_dwarf_new(elf->fd, alt_fd, mod->sym->lines, &mod->budget, &mod->dwarf);
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

/* DWARF that was dropped and is read again has the same losses, which are counted once. */
static void note(struct sb_module *mod, const struct sb_dwarf_losses *losses)
{
	struct sb_dwarf_losses more = {};

	if (losses->nr_units > mod->lost.nr_units)
		more.nr_units = losses->nr_units - mod->lost.nr_units;
	if (losses->nr_splits > mod->lost.nr_splits)
		more.nr_splits = losses->nr_splits - mod->lost.nr_splits;
	if (!more.nr_units && !more.nr_splits)
		return;
	mod->lost.nr_units += more.nr_units;
	mod->lost.nr_splits += more.nr_splits;
	if (mod->losses) {
		mod->losses->nr_units += more.nr_units;
		mod->losses->nr_splits += more.nr_splits;
	}
	sb_debug("debug information of '%s': %llu damaged units, %llu .dwo files not usable",
		 mod->path, (unsigned long long)mod->lost.nr_units,
		 (unsigned long long)mod->lost.nr_splits);
}

int sb_module_need_dwarf(struct sb_module *mod)
{
	if (mod->dwarf_err == NOT_YET) {
		mod->dwarf_err = open_dwarf(mod);
		if (mod->dwarf_err == -ENOMEM) {
			mod->dwarf_err = NOT_YET;
			return -ENOMEM;
		}
		if (mod->dwarf_err && mod->dwarf_err != -ENODATA) {
			sb_debug("DWARF of '%s' is not usable (error %d)", mod->path,
				 -mod->dwarf_err);
			if (!mod->budget.is_refused)
				note(mod, &(struct sb_dwarf_losses){ .nr_units = 1 });
		}
	}
	return 0;
}

void sb_module_note_losses(struct sb_module *mod)
{
	struct sb_dwarf_losses losses;

	sb_dwarf_losses(mod->dwarf, &losses);
	note(mod, &losses);
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
	if (mod->table_err == -EFBIG && may_retry(mod, &mod->table_retry_ns))
		mod->table_err = NOT_YET;
	if (mod->table_err == NOT_YET) {
		mod->table_retry_ns = sb_now_ns() + RETRY_NS;
		mod->table_err = make_table(mod);
		if (!mod->table_err) {
			mod->table_err = sb_budget_charge(&mod->budget, table_bytes(mod));
			if (mod->table_err)
				sb_walk_table_release(&mod->table);
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

size_t sb_module_light_bytes(const struct sb_module *mod)
{
	size_t bytes = mod->symbol_labels.cap * sizeof(*mod->symbol_labels.at);

	if (mod->symtab)
		bytes += sb_symtab_bytes(mod->symtab);
	if (mod->plt)
		bytes += sb_plt_bytes(mod->plt);
	return bytes + sb_funcs_bytes(&mod->funcs);
}

void sb_module_drop_light(struct sb_module *mod)
{
	sb_vec_release(&mod->symbol_labels);
	free(sb_take(mod->symbol_label_ids));
	sb_symtab_free(sb_take(mod->symtab));
	mod->symtab_err = NOT_YET;
	sb_plt_free(sb_take(mod->plt));
	mod->plt_err = NOT_YET;
	sb_funcs_release(&mod->funcs);
	mod->funcs_err = NOT_YET;
}

size_t sb_module_heavy_bytes(const struct sb_module *mod)
{
	const struct label_cache *labels = &mod->dwarf_labels;
	size_t bytes = labels->labels.cap * sizeof(*labels->labels.at) + table_bytes(mod);

	if (labels->index.slots)
		bytes += (labels->index.mask + 1ull) * sizeof(*labels->index.slots);
	return bytes + (mod->dwarf ? sb_dwarf_bytes(mod->dwarf) : 0);
}

void sb_module_drop_dwarf(struct sb_module *mod)
{
	sb_vec_release(&mod->dwarf_labels.labels);
	sb_index_release(&mod->dwarf_labels.index);
	sb_dwarf_free(sb_take(mod->dwarf));
	if (!mod->dwarf_err)
		mod->dwarf_err = NOT_YET;
}

void sb_module_drop_heavy(struct sb_module *mod)
{
	sb_module_drop_dwarf(mod);
	sb_module_drop_table(mod);
}

static const char *unwind_of(const struct sb_elf *elf)
{
	if (sb_elf_phdr_typed(elf, PT_GNU_EH_FRAME) || sb_elf_has_section(elf, ".eh_frame"))
		return ".eh_frame";
	return sb_elf_has_section(elf, ".debug_frame") ? ".debug_frame" : "none";
}

void sb_module_source(struct sb_module *mod, struct sb_sym_source *source)
{
	const char *path;

	/* Without memory no source is known. */
	if (sb_module_need_symtab(mod))
		mod->source = FROM_NOTHING;
	source->symbols = symbol_source_names[mod->source];
	source->has_dwarf = has_dwarf(mod->elf);
	if (!source->has_dwarf && !need_debug_file(mod))
		source->has_dwarf = has_dwarf(mod->debug.elf);
	source->debug_path = NULL;
	if (mod->debug.path &&
	    !sb_module_intern(mod, mod->debug.path, strlen(mod->debug.path), &path))
		source->debug_path = path;
	source->unwind = unwind_of(mod->elf);
	if (sb_streq(source->unwind, "none") && mod->debug.elf &&
	    sb_elf_has_section(mod->debug.elf, ".debug_frame"))
		source->unwind = ".debug_frame";
	source->build_id_bytes = (uint32_t)mod->elf->build_id_len;
	memcpy(source->build_id, mod->elf->build_id, sizeof(source->build_id));
}
