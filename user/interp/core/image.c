// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "interp/core/image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "interp/core/image_priv.h"
#include "interp/core/runtime.h"
#include "symbolizer/elf/disasm.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/unwind/parser.h"

/* Symbols of one table: a browser has half a million. */
#define SYMS_MAX	   2000000u
#define NAMES_BYTES_MAX	   (128u << 20)
/* The loop of CPython 3.14 has 60 KB. */
#define FUNCTION_BYTES_MAX (1u << 20)
/* Of a function whose size is not known. */
#define CODE_BYTES_MIN	   16u
/* Units of the file's budget: of a symbol that is kept, and of one whose name is compared. */
#define WORK_OF_SYMBOL	   20u
#define WORK_OF_COMPARE	   5u

int sb_image_file_new(int fd, const char *path, struct sb_image_file **ret_file)
{
	struct sb_image_file *file = calloc(1, sizeof(*file));
	size_t i;
	int err;

	if (!file)
		return -ENOMEM;
	file->path = strdup(path);
	err = file->path ? sb_elf_new_fd(fd, &file->elf) : -ENOMEM;
	if (err) {
		sb_image_file_free(file);
		return err;
	}
	file->header_bytes = file->elf->budget->bytes;
	snprintf(file->build_id, sizeof(file->build_id), "%s",
		 file->elf->build_id_len ? "build ID " : "no build ID");
	for (i = 0; i < file->elf->build_id_len; i++) {
		size_t len = strlen(file->build_id);

		snprintf(file->build_id + len, sizeof(file->build_id) - len, "%02x",
			 file->elf->build_id[i]);
	}
	*ret_file = file;
	return 0;
}

static void release_table(struct sb_image_table *table)
{
	sb_vec_release(&table->syms);
	free(table->names);
	memset(table, 0, sizeof(*table));
}

void sb_image_file_unload(struct sb_image_file *file)
{
	release_table(&file->dynsym);
	release_table(&file->symtab);
	free(file->functions);
	file->functions = NULL;
	file->nr_functions = 0;
	file->has_tried_functions = file->lacks_functions = false;
	file->has_lacked_memory = false;
	if (file->elf)
		sb_budget_settle(file->elf->budget, file->header_bytes);
}

void sb_image_file_free(struct sb_image_file *file)
{
	size_t i;

	if (!file)
		return;
	sb_image_file_unload(file);
	sb_elf_free(file->elf);
	sb_str_release(&file->text);
	for (i = 0; i < file->nr_named; i++)
		free(file->named[i].name);
	for (i = 0; i < file->nr_relocs; i++)
		free(file->reloc[i].name);
	free(file->kept);
	free(file->splits);
	free(file->path);
	free(file);
}

/* Note an error that passes. Return: @err. */
static int note_error(struct sb_image_file *file, int err)
{
	file->has_lacked_memory |= err == -ENOMEM;
	return err;
}

static int load_table(struct sb_image_file *file, uint32_t type, struct sb_image_table *table)
{
	const Elf64_Shdr *shdr = sb_elf_section_typed(file->elf, type), *names;
	sb_cleanup(sb_freep) struct sb_elf_reader *reader = malloc(sizeof(*reader));
	Elf64_Sym sym;
	int err, ret;

	table->is_tried = true;
	names = shdr ? sb_elf_section_at(file->elf, shdr->sh_link) : NULL;
	if (!names || !reader)
		return reader ? -ENOENT : -ENOMEM;
	err = sb_elf_load(file->elf, names, NAMES_BYTES_MAX, &table->names, &table->names_len);
	if (!err)
		err = sb_elf_reader_init_section(reader, file->elf, shdr,
						 sb_elf_sym_bytes(file->elf));
	while (!err && table->syms.nr < SYMS_MAX) {
		ret = sb_elf_next_sym(reader, &sym);
		if (ret <= 0)
			return ret;
		err = sb_budget_work(file->elf->budget, WORK_OF_SYMBOL);
		if (!err && sym.st_shndx != SHN_UNDEF && sym.st_name < table->names_len)
			err = sb_budget_push(file->elf->budget, &table->syms, sym);
	}
	return err;
}

static struct sb_image_table *table_of(struct sb_image_file *file, uint32_t type)
{
	struct sb_image_table *table = type == SHT_DYNSYM ? &file->dynsym : &file->symtab;

	/* If the table cannot be read completely, what was read is used. */
	if (!table->is_tried)
		table->is_refused = note_error(file, load_table(file, type, table)) == -EFBIG;
	return table;
}

/*
 * Return: 0; -ENOENT when there is no such symbol; -EFBIG when the table exceeds the budget of the
 * file and was not loaded, so that it is not known whether the symbol exists.
 */
static int find_in(struct sb_image_file *file, uint32_t type, const char *name,
		   const Elf64_Sym **ret_sym)
{
	const struct sb_image_table *table = table_of(file, type);
	size_t i;

	if (sb_budget_work(file->elf->budget, table->syms.nr * WORK_OF_COMPARE))
		return -EFBIG;
	for (i = 0; i < table->syms.nr; i++) {
		if (!strcmp(table->names + table->syms.at[i].st_name, name)) {
			*ret_sym = &table->syms.at[i];
			return 0;
		}
	}
	return table->is_refused ? -EFBIG : -ENOENT;
}

static int find_symbol(struct sb_image_file *file, const char *name, const Elf64_Sym **ret_sym)
{
	int err = find_in(file, SHT_DYNSYM, name, ret_sym);

	return err == -ENOENT ? find_in(file, SHT_SYMTAB, name, ret_sym) : err;
}

bool sb_image_file_has(struct sb_image_file *file, const char *name)
{
	const Elf64_Sym *sym;

	return !find_symbol(file, name, &sym);
}

struct sb_elf *sb_image_elf(const struct sb_image *image)
{
	return image->file->elf;
}

uint64_t sb_image_bias(const struct sb_image *image)
{
	return image->bias;
}

const char *sb_image_path(const struct sb_image *image)
{
	return image->file->path;
}

const char *sb_image_build_id(const struct sb_image *image)
{
	return image->file->build_id;
}

void *sb_image_kept(const struct sb_image *image, const void *who)
{
	return image->file->kept_by == who ? image->file->kept : NULL;
}

void sb_image_keep(struct sb_image *image, const void *who, void *what)
{
	free(image->file->kept);
	image->file->kept = what;
	image->file->kept_by = who;
}

static uint64_t address_of(const struct sb_image *image, const Elf64_Sym *sym)
{
	return ELF64_ST_TYPE(sym->st_info) == STT_TLS ? sym->st_value : sym->st_value + image->bias;
}

/* Remember an answer. If there is no room, the symbol is looked up again. */
static void note_named(struct sb_image_file *file, const char *name, const Elf64_Sym *sym)
{
	struct sb_image_named *named = &file->named[file->nr_named];

	if (file->nr_named == SB_IMAGE_NAMED_MAX || file->has_lacked_memory)
		return;
	named->name = strdup(name);
	named->is_there = sym;
	if (sym)
		named->sym = *sym;
	file->nr_named += named->name != NULL;
}

static const Elf64_Sym *find_named(struct sb_image_file *file, const char *name)
{
	const Elf64_Sym *sym = NULL;
	size_t i;

	for (i = 0; i < file->nr_named; i++)
		if (!strcmp(file->named[i].name, name))
			return file->named[i].is_there ? &file->named[i].sym : NULL;
	if (find_symbol(file, name, &sym) != -EFBIG)
		note_named(file, name, sym);
	return sym;
}

int sb_image_symbol(struct sb_image *image, const char *name, uint64_t *ret_addr,
		    uint64_t *ret_size)
{
	const Elf64_Sym *sym = find_named(image->file, name);

	if (!sym)
		return -ENOENT;
	*ret_addr = address_of(image, sym);
	if (ret_size)
		*ret_size = sym->st_size;
	return 0;
}

int sb_image_symbols(struct sb_image *image, const char *prefix,
		     int (*fn)(void *arg, const char *name, uint64_t addr, uint64_t size),
		     void *arg)
{
	const struct sb_image_table *table = table_of(image->file, SHT_DYNSYM);
	size_t i, len = strlen(prefix);
	int ret = sb_budget_work(image->file->elf->budget, table->syms.nr * WORK_OF_COMPARE);

	for (i = 0; i < table->syms.nr && !ret; i++) {
		const Elf64_Sym *sym = &table->syms.at[i];
		const char *name = table->names + sym->st_name;

		if (!strncmp(name, prefix, len))
			ret = fn(arg, name, address_of(image, sym), sym->st_size);
	}
	return ret;
}

int sb_image_section(struct sb_image *image, const char *name, uint64_t *ret_addr,
		     uint64_t *ret_size)
{
	const Elf64_Shdr *shdr = sb_elf_section_named(image->file->elf, name);

	if (!shdr || !shdr->sh_addr)
		return -ENOENT;
	*ret_addr = shdr->sh_addr + image->bias;
	*ret_size = shdr->sh_size;
	return 0;
}

int sb_image_read(struct sb_image *image, uint64_t addr, void *dst, size_t len)
{
	uint64_t offset;

	if (!sb_elf_addr_to_offset(image->file->elf, addr - image->bias, &offset))
		return -EFAULT;
	return sb_elf_read(image->file->elf, offset, dst, len) ? -EFAULT : 0;
}

int sb_image_code(struct sb_image *image, const char *name, struct sb_image_code *ret_code)
{
	uint64_t size;
	int err = sb_image_symbol(image, name, &ret_code->begin, &size);

	if (err)
		return err;
	ret_code->len = size && size < sizeof(ret_code->bytes) ? size : sizeof(ret_code->bytes);
	err = sb_image_read(image, ret_code->begin, ret_code->bytes, ret_code->len);
	/* A function whose size is not known may be the last one of a file. */
	while (err && !size && ret_code->len > CODE_BYTES_MIN) {
		ret_code->len /= 2;
		err = sb_image_read(image, ret_code->begin, ret_code->bytes, ret_code->len);
	}
	return err;
}

int sb_image_next_insn(const struct sb_image_code *code, size_t *at, struct sb_insn *ret_insn)
{
	int err = SB_INSN_HERE->decode(code->bytes + *at, code->len - *at, code->begin + *at,
				       ret_insn);

	if (!err)
		*at += ret_insn->len;
	return err;
}

int sb_image_each_insn(struct sb_image *image, const struct sb_range *range,
		       int (*fn)(void *arg, const struct sb_insn *insn), void *arg)
{
	size_t len = range->end - range->begin, at = 0;
	sb_cleanup(sb_freep) uint8_t *code = NULL;
	struct sb_insn insn;
	int ret = 0;

	if (range->end <= range->begin)
		return 0;
	if (len > FUNCTION_BYTES_MAX)
		return -E2BIG;
	code = malloc(len);
	if (!code)
		return -ENOMEM;
	ret = sb_image_read(image, range->begin, code, len);
	while (at < len && !ret) {
		if (SB_INSN_HERE->decode(code + at, len - at, range->begin + at, &insn)) {
			at++;
			continue;
		}
		ret = fn(arg, &insn);
		at += insn.len;
	}
	return ret;
}

static void load_functions(struct sb_image_file *file)
{
	if (file->has_tried_functions)
		return;
	file->has_tried_functions = true;
	if (note_error(file, sb_parser_functions(file->parser, file->elf, &file->functions,
						 &file->nr_functions))) {
		file->lacks_functions = true;
		file->nr_functions = 0;
	}
}

/* Find the function around @addr of the file; {0, 0}: there is none. */
static struct sb_cfi_function find_function(struct sb_image_file *file, uint64_t addr)
{
	size_t at;

	load_functions(file);
	at = sb_bisect(file->nr_functions, i, file->functions[i].hi <= addr);
	if (at == file->nr_functions || file->functions[at].lo > addr)
		return (struct sb_cfi_function){};
	return file->functions[at];
}

int sb_image_function(struct sb_image *image, uint64_t addr, uint64_t *ret_begin, uint64_t *ret_end)
{
	struct sb_image_file *file = image->file;
	struct sb_cfi_function function;
	size_t i = 0;

	addr -= image->bias;
	while (i < file->nr_asked && file->asked[i].addr != addr)
		i++;
	if (i < file->nr_asked) {
		function = file->asked[i].function;
	} else {
		function = find_function(file, addr);
		if (i < SB_IMAGE_ASKED_MAX && !file->lacks_functions)
			file->asked[file->nr_asked++] =
				(struct sb_image_asked){ .addr = addr, .function = function };
	}
	if (function.lo == function.hi)
		return -ENOENT;
	*ret_begin = function.lo + image->bias;
	*ret_end = function.hi + image->bias;
	return 0;
}

int sb_image_functions(struct sb_image *image, int (*fn)(void *arg, uint64_t begin, uint64_t end),
		       void *arg)
{
	size_t i;
	int ret = 0;

	load_functions(image->file);
	for (i = 0; i < image->file->nr_functions && ret <= 0; i++)
		ret = fn(arg, image->file->functions[i].lo + image->bias,
			 image->file->functions[i].hi + image->bias);
	return ret;
}

/* Relocations. */

/* Read the name of symbol @index of .dynsym into file->text. */
static const char *dynsym_name(struct sb_image_file *file, uint64_t index)
{
	const Elf64_Shdr *shdr = sb_elf_section_typed(file->elf, SHT_DYNSYM);
	const struct sb_image_table *table = table_of(file, SHT_DYNSYM);
	sb_cleanup(sb_freep) struct sb_elf_reader *reader = malloc(sizeof(*reader));
	size_t nr_bytes = sb_elf_sym_bytes(file->elf);
	Elf64_Sym sym;

	if (!reader)
		(void)note_error(file, -ENOMEM);
	if (!shdr || !reader || index >= shdr->sh_size / nr_bytes)
		return NULL;
	sb_elf_reader_init(reader, file->elf, shdr->sh_offset + index * nr_bytes, nr_bytes,
			   nr_bytes);
	if (sb_elf_next_sym(reader, &sym) <= 0 || sym.st_name >= table->names_len)
		return NULL;
	sb_str_clear(&file->text);
	return note_error(file, sb_str_add(&file->text, table->names + sym.st_name)) ? NULL
										     : file->text.s;
}

/* Call @fn for each relocation with addend of one section; a positive value ends it. */
static int each_rela(struct sb_image_file *file, int (*fn)(void *arg, const Elf64_Rela *rela),
		     void *arg)
{
	sb_cleanup(sb_freep) struct sb_elf_reader *reader = malloc(sizeof(*reader));
	const Elf64_Shdr *shdr;
	Elf64_Rela rela;
	size_t i;
	int ret = 0;

	if (!reader)
		return note_error(file, -ENOMEM);
	for (i = 0; ret <= 0 && i < file->elf->nr_shdrs; i++) {
		shdr = sb_elf_section_at(file->elf, i);
		if (!shdr || shdr->sh_type != SHT_RELA || !(shdr->sh_flags & SHF_ALLOC) ||
		    sb_elf_reader_init_section(reader, file->elf, shdr,
					       sb_elf_rela_bytes(file->elf)))
			continue;
		while (ret <= 0 && sb_elf_next_rela(reader, &rela) > 0)
			ret = fn(arg, &rela);
	}
	return ret;
}

struct rela_search {
	struct sb_image_file *file;
	const char *name; /* looked for, or NULL */
	uint64_t addr;	  /* looked for, or found */
	const char *found;
};

static int is_tls_of(void *arg, const Elf64_Rela *rela)
{
	struct rela_search *search = arg;
	const char *name;

	if (ELF64_R_TYPE(rela->r_info) != R_X86_64_DTPMOD64 || !ELF64_R_SYM(rela->r_info))
		return 0;
	name = dynsym_name(search->file, ELF64_R_SYM(rela->r_info));
	if (!name || strcmp(name, search->name))
		return 0;
	search->addr = rela->r_offset;
	return 1;
}

int sb_image_tls_got(struct sb_image *image, const char *name, uint64_t *ret_got)
{
	struct rela_search search = { .file = image->file, .name = name };

	if (each_rela(image->file, is_tls_of, &search) <= 0)
		return -ENOENT;
	*ret_got = search.addr + image->bias;
	return 0;
}

struct tls_search {
	struct rela_search of;
	uint64_t offset;
	enum sb_image_tls kind;
};

static enum sb_image_tls tls_kind_of(const struct sb_elf *elf, const Elf64_Rela *rela)
{
	static const struct {
		uint16_t machine;
		uint32_t type;
		enum sb_image_tls kind;
	} types[] = {
		{ EM_X86_64, R_X86_64_TPOFF64, SB_IMAGE_TLS_OFFSET },
		{ EM_X86_64, R_X86_64_DTPMOD64, SB_IMAGE_TLS_PAIR },
		{ EM_X86_64, R_X86_64_TLSDESC, SB_IMAGE_TLS_DESC },
		{ EM_AARCH64, R_AARCH64_TLS_TPREL, SB_IMAGE_TLS_OFFSET },
		{ EM_AARCH64, R_AARCH64_TLS_DTPMOD, SB_IMAGE_TLS_PAIR },
		{ EM_AARCH64, R_AARCH64_TLSDESC, SB_IMAGE_TLS_DESC },
	};
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(types); i++)
		if (types[i].machine == elf->machine && types[i].type == ELF64_R_TYPE(rela->r_info))
			return types[i].kind;
	return SB_IMAGE_TLS_NONE;
}

/* A relocation without a symbol is for the file's own variables: for this one by its offset, or for
 * all of them. */
static int is_access_of(void *arg, const Elf64_Rela *rela)
{
	struct tls_search *search = arg;
	enum sb_image_tls kind = tls_kind_of(search->of.file->elf, rela);
	const char *name;

	if (kind == SB_IMAGE_TLS_NONE)
		return 0;
	if (ELF64_R_SYM(rela->r_info)) {
		name = dynsym_name(search->of.file, ELF64_R_SYM(rela->r_info));
		if (!name || strcmp(name, search->of.name))
			return 0;
	} else if (kind != SB_IMAGE_TLS_PAIR && (uint64_t)rela->r_addend != search->offset) {
		return 0;
	}
	search->of.addr = rela->r_offset;
	search->kind = kind;
	return 1;
}

enum sb_image_tls sb_image_tls_access(struct sb_image *image, const char *name, uint64_t offset,
				      uint64_t *ret_got)
{
	struct tls_search search = { .of = { .file = image->file, .name = name },
				     .offset = offset };

	if (each_rela(image->file, is_access_of, &search) <= 0)
		return SB_IMAGE_TLS_NONE;
	*ret_got = search.of.addr + image->bias;
	return search.kind;
}

static int is_at(void *arg, const Elf64_Rela *rela)
{
	struct rela_search *search = arg;

	if (rela->r_offset != search->addr || !ELF64_R_SYM(rela->r_info))
		return 0;
	search->found = dynsym_name(search->file, ELF64_R_SYM(rela->r_info));
	return 1;
}

static void note_reloc(struct sb_image_file *file, uint64_t addr, const char *name)
{
	struct sb_image_reloc *reloc = &file->reloc[file->nr_relocs];

	if (file->nr_relocs == SB_IMAGE_RELOCS_MAX || file->has_lacked_memory)
		return;
	reloc->addr = addr;
	reloc->name = name ? strdup(name) : NULL;
	file->nr_relocs += !name || reloc->name;
}

const char *sb_image_reloc_name(struct sb_image *image, uint64_t addr)
{
	struct rela_search search = { .file = image->file, .addr = addr - image->bias };
	struct sb_image_file *file = image->file;
	size_t i;

	for (i = 0; i < file->nr_relocs; i++)
		if (file->reloc[i].addr == search.addr)
			return file->reloc[i].name;
	(void)each_rela(file, is_at, &search);
	note_reloc(file, search.addr, search.found);
	return search.found;
}
