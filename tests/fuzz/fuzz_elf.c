// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any bytes as an ELF file, asked about the addresses it speaks of itself. As a file (with DWARF)
 * and as an image in memory (without) it has to say the same; symbols begin where they are found.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/str.h"
#include "must.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/symbols/module.h"
#include "symbolizer/symbols/plt.h"
#include "symbolizer/symbols/symtab.h"

#define NR_ADDRS_MAX 96

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct addrs {
	uint64_t at[NR_ADDRS_MAX];
	size_t nr;
};

static void add(struct addrs *addrs, uint64_t addr)
{
	if (addrs->nr < NR_ADDRS_MAX)
		addrs->at[addrs->nr++] = addr;
}

/* Where something might be: segments, sections, symbols, and just beside them. */
static void collect(const struct sb_elf *elf, struct addrs *addrs)
{
	const Elf64_Shdr *shdr = sb_elf_section_typed(elf, SHT_SYMTAB);
	struct sb_elf_reader reader;
	Elf64_Sym sym;
	size_t i;

	add(addrs, 0);
	add(addrs, UINT64_MAX);
	for (i = 0; i < elf->nr_phdrs && i < 8; i++) {
		add(addrs, elf->phdrs[i].p_vaddr);
		add(addrs, elf->phdrs[i].p_vaddr + elf->phdrs[i].p_memsz - 1);
	}
	for (i = 0; i < elf->nr_shdrs && i < 24; i++)
		add(addrs, elf->shdrs[i].sh_addr + 16);
	if (!shdr || sb_elf_reader_init_section(&reader, elf, shdr, sb_elf_sym_bytes(elf)))
		return;
	while (addrs->nr < NR_ADDRS_MAX && sb_elf_next_sym(&reader, &sym) > 0) {
		add(addrs, sym.st_value);
		add(addrs, sym.st_value + sym.st_size);
	}
}

static void check_symtab(const struct sb_elf *elf, const struct addrs *addrs)
{
	struct sb_symtab *tab = sb_symtab_new(NULL);
	struct sb_str name = {};
	uint32_t symbol;
	size_t i;

	must(tab);
	sb_symtab_add(tab, elf, SHT_SYMTAB, 0);
	sb_symtab_add(tab, elf, SHT_DYNSYM, 0);
	sb_symtab_add_go(tab, elf, 0);
	must(!sb_symtab_finish(tab));
	for (i = 0; i < addrs->nr; i++) {
		symbol = sb_symtab_find(tab, addrs->at[i]);
		if (symbol == SB_SYMBOL_NONE)
			continue;
		must(symbol < sb_symtab_nr(tab) && sb_symtab_addr(tab, symbol) <= addrs->at[i]);
		must(sb_symtab_find(tab, sb_symtab_addr(tab, symbol)) != SB_SYMBOL_NONE);
		sb_str_clear(&name);
		sb_symtab_name(tab, symbol, &name);
	}
	sb_str_release(&name);
	sb_symtab_free(tab);
}

static void check_plt(const struct sb_elf *elf, const struct addrs *addrs)
{
	struct sb_plt_stub stub;
	struct sb_str name = {};
	struct sb_plt *plt;
	size_t i;

	if (sb_plt_new(elf, &plt))
		return;
	for (i = 0; i < addrs->nr; i++) {
		if (!sb_plt_find(plt, addrs->at[i], &stub))
			continue;
		must(stub.start <= addrs->at[i]);
		sb_str_clear(&name);
		if (!stub.resolver)
			sb_plt_name(plt, stub.idx, &name);
	}
	sb_str_release(&name);
	sb_plt_free(plt);
}

static void look_up(struct sb_module *mod, uint64_t addr, struct sb_sym_frame *ret_last)
{
	struct sb_sym_frame frames[8];
	size_t nr, i;

	must(!sb_module_lookup(mod, addr, frames, 8, &nr) && nr >= 1 && nr <= 8);
	for (i = 0; i < nr; i++) {
		must(frames[i].raw_name && frames[i].module);
		must(!frames[i].name == (frames[i].reason != SB_SYM_OK));
		must(frames[i].is_inlined == (i + 1 < nr));
		must(!frames[i].has_start || (!frames[i].name && !frames[i].is_inlined));
		must(!frames[i].has_start || frames[i].func_offset <= addr);
	}
	*ret_last = frames[nr - 1];
}

static void check_module(int fd, const uint8_t *data, size_t size, const struct addrs *addrs)
{
	static const char *const dirs[] = { "/nonexistent", NULL };
	struct sb_symbolizer_opts with = { .inlines = true, .lines = true, .debug_dirs = dirs };
	struct sb_symbolizer_opts without = { .debug_dirs = dirs };
	struct sb_module_opts opts = { .sym = &with };
	struct sb_module *file = NULL, *image = NULL;
	struct sb_sym_frame a, b;
	struct sb_strtab strings;
	uint64_t addr;
	size_t i;
	int err;

	must(!sb_strtab_init(&strings));
	opts.strings = &strings;
	err = sb_module_new_fd(fd, "/nonexistent/x", &opts, &file);
	opts.sym = &without;
	must(sb_module_new_image(data, size, "/nonexistent/x", &opts, &image) == err);
	for (i = 0; i < addrs->nr && !err; i++) {
		look_up(file, addrs->at[i], &a);
		look_up(image, addrs->at[i], &b);
		/* DWARF may have a name where there is no symbol. */
		must(!b.name || (a.raw_name == b.raw_name && a.func_offset == b.func_offset));
		if (i == addrs->nr / 2)
			sb_module_drop_heavy(file);
		sb_module_offset_to_addr(file, addrs->at[i], &addr);
	}
	sb_module_free(file);
	sb_module_free(image);
	sb_strtab_release(&strings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct addrs addrs = {};
	struct sb_elf *elf;
	int fd;

	if (sb_elf_new_image(data, size, &elf))
		return 0;
	collect(elf, &addrs);
	check_symtab(elf, &addrs);
	check_plt(elf, &addrs);
	sb_elf_free(elf);
	fd = memfd_create("elf", MFD_CLOEXEC);
	must(fd >= 0 && !sb_write_all(fd, data, size));
	check_module(fd, data, size, &addrs);
	close(fd);
	return 0;
}
