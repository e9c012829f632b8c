// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Files that are small on the disk and cost much to read: tables of abbreviations, of stubs and of
 * symbols. Each is refused by the budget that it is read with, of memory and of work, before it has
 * taken more; read with a large one, it is taken, so that it was the budget that refused it.
 */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "interp/core/image_priv.h"
#include "symbolizer/dwarf/dwarf_image.h"
#include "symbolizer/dwarf/sb_dwarf.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/elf/inflate.h"
#include "symbolizer/symbols/plt.h"

#define SECTIONS_MAX 8
#define FILE_BYTES   (32u << 20)
#define LARGE_BYTES  ((size_t)512 << 20)
#define LARGE_WORK   100000000000ull
/* More than it takes to read the sections; a file may have half of it. */
#define SMALL_BYTES  (6u << 20)
#define SMALL_WORK   1000000u
#define NR_ABBREVS   2000
#define NR_ATTRS     400
#define NR_STUBS     200000
#define NR_SYMBOLS   100000
/* Of .debug_info: one that is inflated at once, and one that is inflated in pieces
 * (dwarf_image.c). */
#define WHOLE_BYTES  1000
#define PIECES_BYTES (17u << 20)

/* A file that is being made: sections one behind the other, then their names, then the headers. */
static struct {
	uint8_t at[FILE_BYTES];
	size_t len;
	Elf64_Shdr shdrs[SECTIONS_MAX];
	char names[256];
	size_t nr, names_len;
} made;

static void begin(void)
{
	memset(&made, 0, sizeof(made));
	made.len = sizeof(Elf64_Ehdr);
	made.nr = 1;
	made.names_len = 1;
}

static Elf64_Shdr *add_section(const char *name, uint32_t type, uint32_t link)
{
	Elf64_Shdr *shdr = &made.shdrs[made.nr++];

	assert_true(made.nr <= SECTIONS_MAX);
	*shdr = (Elf64_Shdr){ .sh_name = (uint32_t)made.names_len,
			      .sh_type = type,
			      .sh_flags = SHF_ALLOC,
			      .sh_addr = 0x1000000 * made.nr,
			      .sh_offset = made.len,
			      .sh_link = link,
			      .sh_entsize =
				      type == SHT_RELA ? sizeof(Elf64_Rela) : sizeof(Elf64_Sym) };
	memcpy(made.names + made.names_len, name, strlen(name) + 1);
	made.names_len += strlen(name) + 1;
	return shdr;
}

static void put(Elf64_Shdr *shdr, const void *from, size_t len)
{
	assert_true(made.len + len <= FILE_BYTES);
	memcpy(made.at + made.len, from, len);
	made.len += len;
	shdr->sh_size += len;
}

/* Return: a descriptor of it. */
static int finish(void)
{
	Elf64_Ehdr ehdr = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					 ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_DYN,
			    .e_machine = EM_X86_64,
			    .e_version = EV_CURRENT,
			    .e_ehsize = sizeof(ehdr),
			    .e_shentsize = sizeof(Elf64_Shdr) };
	Elf64_Shdr *names = add_section(".shstrtab", SHT_STRTAB, 0);
	int fd = memfd_create("bomb", MFD_CLOEXEC);

	names->sh_flags = 0;
	put(names, made.names, made.names_len);
	made.len = (made.len + 7) & ~(size_t)7;
	ehdr.e_shoff = made.len;
	ehdr.e_shnum = (uint16_t)made.nr;
	ehdr.e_shstrndx = (uint16_t)(made.nr - 1);
	memcpy(made.at, &ehdr, sizeof(ehdr));
	assert_true(fd >= 0);
	assert_int_equal(sb_write_all(fd, made.at, made.len), 0);
	assert_int_equal(sb_write_all(fd, made.shdrs, made.nr * sizeof(made.shdrs[0])), 0);
	return fd;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);

/* Time stands still: a bucket of work fills again while a slow machine, or valgrind, takes its
 * time. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	*ts = (struct timespec){ .tv_sec = 1000 };
	return 0;
}

/* Read the file with a budget that is small in one way. Return: 0 or a negative errno. */
typedef int (*read_fn)(int fd, struct sb_budget *budget);

static void read_with(read_fn read_it, int fd, size_t bytes_max, uint64_t work_max, int want)
{
	struct sb_budget_pool pool;
	struct sb_budget budget;

	sb_budget_pool_init(&pool, bytes_max);
	pool.work_max = work_max;
	sb_budget_init(&budget, &pool, 0, "bomb");
	assert_int_equal(read_it(fd, &budget), want);
	assert_int_equal(budget.is_refused, want != 0);
	assert_int_equal(pool.nr_refused_files, want != 0);
	assert_true(pool.bytes_peak <= bytes_max && pool.work <= work_max);
	sb_budget_settle(&budget, 0);
	sb_budget_pool_release(&pool);
}

static void expect_refusal(read_fn read_it, int want)
{
	int fd = finish();

	read_with(read_it, fd, LARGE_BYTES, LARGE_WORK, 0);
	read_with(read_it, fd, SMALL_BYTES, LARGE_WORK, want);
	read_with(read_it, fd, LARGE_BYTES, SMALL_WORK, want);
	close(fd);
}

static int read_dwarf(int fd, struct sb_budget *budget)
{
	struct sb_dwarf *dwarf = NULL;
	struct sb_dwarf_frame frame;
	size_t nr;
	int err = sb_dwarf_new(fd, -1, true, budget, &dwarf);

	if (!err)
		err = sb_dwarf_lookup(dwarf, 0x1000, &frame, 1, &nr);
	sb_dwarf_free(dwarf);
	/* A unit that is refused is left out, and the rest of the file is read. */
	return err ? err : budget->is_refused ? -EFBIG : 0;
}

static size_t put_uleb(uint8_t *at, uint32_t val)
{
	size_t nr = 0;

	do {
		at[nr++] = (uint8_t)((val & 0x7f) | (val > 0x7f ? 0x80 : 0));
		val >>= 7;
	} while (val);
	return nr;
}

/* One unit without anything, whose DIE is of the last abbreviation; the others are of functions
 * with many attributes. */
static void test_abbrevs(void **state)
{
	/* DW_AT_name and DW_AT_decl_line: no two of them are merged. */
	static const uint8_t attrs[] = { 0x03, 0x08, 0x3b, 0x0b }, end[2];
	uint8_t unit[64] = { 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8 }, abbrev[16];
	Elf64_Shdr *abbrevs, *info;
	size_t len = 11, i, nr, attr;

	begin();
	abbrevs = add_section(".debug_abbrev", SHT_PROGBITS, 0);
	for (i = 1; i <= NR_ABBREVS; i++) {
		nr = put_uleb(abbrev, (uint32_t)i);
		abbrev[nr++] = i < NR_ABBREVS ? 0x2e : 0x11; /* DW_TAG_subprogram, _compile_unit */
		abbrev[nr++] = 0;
		put(abbrevs, abbrev, nr);
		for (attr = 0; i < NR_ABBREVS && attr < NR_ATTRS; attr += 2)
			put(abbrevs, attrs, sizeof(attrs));
		put(abbrevs, end, sizeof(end));
	}
	put(abbrevs, "", 1);
	info = add_section(".debug_info", SHT_PROGBITS, 0);
	len += put_uleb(unit + len, NR_ABBREVS);
	unit[0] = (uint8_t)(len - 4);
	put(info, unit, len);
	expect_refusal(read_dwarf, -EFBIG);
}

static int read_plt(int fd, struct sb_budget *budget)
{
	struct sb_plt *plt = NULL;
	struct sb_elf *elf;
	int err = sb_elf_new_fd(fd, &elf);

	assert_int_equal(err, 0);
	elf->budget = budget;
	err = sb_plt_new(elf, &plt);
	sb_plt_free(plt);
	sb_elf_free(elf);
	return err;
}

/* jmp *0(%rip); nop; nop: stubs of 8 bytes. */
static void test_stubs(void **state)
{
	static const uint8_t stub[8] = { 0xff, 0x25, 0, 0, 0, 0, 0x90, 0x90 };
	Elf64_Shdr *plt;
	int i;

	begin();
	plt = add_section(".plt", SHT_PROGBITS, 0);
	for (i = 0; i < NR_STUBS; i++)
		put(plt, stub, sizeof(stub));
	expect_refusal(read_plt, -EFBIG);
}

/* Relocations of few stubs: work alone. */
static void test_relocations(void **state)
{
	static const uint8_t stub[8] = { 0xff, 0x25, 0, 0, 0, 0, 0x90, 0x90 };
	const Elf64_Rela rela = { .r_offset = 1 };
	Elf64_Shdr *plt, *relas;
	int i, fd;

	begin();
	plt = add_section(".plt", SHT_PROGBITS, 0);
	put(plt, stub, sizeof(stub));
	relas = add_section(".rela.plt", SHT_RELA, 0);
	for (i = 0; i < NR_STUBS; i++)
		put(relas, &rela, sizeof(rela));
	fd = finish();
	read_with(read_plt, fd, LARGE_BYTES, LARGE_WORK, 0);
	/* To read them costs 6 a piece. */
	read_with(read_plt, fd, LARGE_BYTES, NR_STUBS * 10, -EFBIG);
	close(fd);
}

static int read_image(int fd, struct sb_budget *budget)
{
	struct sb_image_file *file;
	struct sb_image image;
	uint64_t addr;
	int err;

	assert_int_equal(sb_image_file_new(fd, "bomb", &file), 0);
	file->elf->budget = budget;
	file->header_bytes = 0;
	image = (struct sb_image){ .file = file };
	err = sb_image_symbol(&image, "last", &addr, NULL);
	/* What was given up is not remembered, and what was read is given back. */
	assert_int_equal(file->nr_named, !err);
	sb_image_file_unload(file);
	assert_int_equal(budget->bytes, 0);
	sb_image_file_free(file);
	return err;
}

/* All have one name, but for the last. */
static void test_symbols(void **state)
{
	static const char names[] = "\0function\0last";
	Elf64_Sym sym = { .st_name = 1, .st_shndx = 1 };
	Elf64_Shdr *strtab, *symtab;
	int i;

	begin();
	strtab = add_section(".dynstr", SHT_STRTAB, 0);
	put(strtab, names, sizeof(names));
	symtab = add_section(".dynsym", SHT_DYNSYM, 1);
	for (i = 0; i < NR_SYMBOLS; i++)
		put(symtab, &sym, sizeof(sym));
	sym.st_name = 10;
	put(symtab, &sym, sizeof(sym));
	expect_refusal(read_image, -ENOENT);
}

/* A kilobyte, packed by "xz -9": its decoder takes 65 MiB. */
static int read_xz(int fd, struct sb_budget *budget)
{
	static const uint8_t packed[] = {
		0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02,
		0x00, 0x21, 0x01, 0x1c, 0x00, 0x00, 0x00, 0x10, 0xcf, 0x58, 0xcc, 0xe0, 0x03,
		0xe7, 0x00, 0x0b, 0x5d, 0x00, 0x3c, 0x6f, 0xfb, 0xbf, 0xfe, 0xa3, 0xb0, 0xb9,
		0xa6, 0x56, 0x00, 0x00, 0x00, 0x85, 0x58, 0xcd, 0x6b, 0x4d, 0xd7, 0xf2, 0xc1,
		0x00, 0x01, 0x27, 0xe8, 0x07, 0x00, 0x00, 0x00, 0xf4, 0x55, 0x8f, 0x5c, 0xb1,
		0xc4, 0x67, 0xfb, 0x02, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a,
	};
	char *out;
	size_t len;
	int err = sb_inflate_xz(packed, sizeof(packed), budget, &out, &len);

	if (err)
		return err;
	assert_int_equal(len, 1000);
	assert_true(budget->bytes > 64u << 20);
	free(out);
	return 0;
}

static void test_xz(void **state)
{
	begin();
	expect_refusal(read_xz, -EFBIG);
}

/* A packed .debug_info of @len bytes, whose header says @said, and of which one byte is wrong if
 * @is_damaged. */
static int read_packed(size_t len, size_t said, bool is_damaged)
{
	const Elf64_Chdr chdr = { .ch_type = ELFCOMPRESS_ZLIB, .ch_size = said };
	unsigned long packed_len = compressBound(len);
	sb_cleanup(sb_freep) uint8_t *bytes = malloc(len), *packed = malloc(packed_len);
	struct sb_dwarf_image image = {};
	const struct sb_dwarf_bytes *info = &image.sections[SB_DWARF_INFO];
	Elf64_Shdr *shdr;
	size_t i;
	int fd, err;

	assert_true(bytes && packed);
	for (i = 0; i < len; i++)
		bytes[i] = (uint8_t)(i * i >> 7);
	/* Level 0: they are as long as they are. */
	assert_int_equal(compress2(packed, &packed_len, bytes, len, 0), Z_OK);
	packed[packed_len / 2] ^= is_damaged;
	begin();
	shdr = add_section(".debug_info", SHT_PROGBITS, 0);
	shdr->sh_flags = SHF_COMPRESSED;
	put(shdr, &chdr, sizeof(chdr));
	put(shdr, packed, packed_len);
	fd = finish();
	err = sb_dwarf_image_read(fd, false, true, NULL, &image);
	if (!err) {
		assert_int_equal(info->len, len);
		assert_memory_equal(info->at, bytes, len);
	}
	sb_dwarf_image_release(&image);
	close(fd);
	return err;
}

static void test_packed(void **state)
{
	static const size_t lens[] = { WHOLE_BYTES, PIECES_BYTES };
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(lens); i++) {
		assert_int_equal(read_packed(lens[i], lens[i], false), 0);
		assert_int_equal(read_packed(lens[i], lens[i], true), -EBADMSG);
		assert_int_equal(read_packed(lens[i], lens[i] - 1, false), -EBADMSG);
		assert_int_equal(read_packed(lens[i], lens[i] + 1, false), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_abbrevs),	    cmocka_unit_test(test_stubs),
		cmocka_unit_test(test_relocations), cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_xz),	    cmocka_unit_test(test_packed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
