// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What no linker makes: files that shrink while they are open, tables that lead out of the file. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/str.h"
#include "symbolizer/symbols/module.h"

#define FILE_BYTES_MAX (256u << 20)

static struct sb_strtab strings;
static const char *const no_dirs[] = { "/nonexistent", NULL };
static const struct sb_symbolizer_opts plain = { .debug_dirs = no_dirs };
static const struct sb_symbolizer_opts full = { .debug_dirs = no_dirs,
						.inlines = true,
						.lines = true };

static int setup(void **state)
{
	return sb_strtab_init(&strings);
}

static int teardown(void **state)
{
	sb_strtab_release(&strings);
	return 0;
}

static int memfd_of(const void *data, size_t len)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(sb_write_all(fd, data, len), 0);
	return fd;
}

/* This very program, with its symbols and DWARF. */
static void read_self(char **ret_data, size_t *ret_len)
{
	assert_int_equal(sb_read_file("/proc/self/exe", FILE_BYTES_MAX, ret_data, ret_len), 0);
}

static struct sb_module *module_of(int fd, const struct sb_symbolizer_opts *sym)
{
	struct sb_module_opts opts = { .sym = sym, .strings = &strings };
	struct sb_module *mod = NULL;

	assert_int_equal(sb_module_new_fd(fd, "/nonexistent/self", &opts, &mod), 0);
	return mod;
}

static struct sb_sym_frame look_up(struct sb_module *mod, uint64_t addr)
{
	struct sb_sym_frame frames[SB_MODULE_FRAMES_MAX];
	size_t nr = 0;

	assert_int_equal(sb_module_lookup(mod, addr, frames, SB_MODULE_FRAMES_MAX, &nr), 0);
	assert_true(nr >= 1);
	return frames[nr - 1];
}

/* The address setup() has in the file: mappings are what the linker says. */
static uint64_t addr_of_setup(const char *data)
{
	const Elf64_Ehdr *ehdr = (const void *)data;
	const Elf64_Shdr *shdrs = (const void *)(data + ehdr->e_shoff);
	size_t i, k;

	for (i = 0; i < ehdr->e_shnum; i++) {
		const Elf64_Sym *syms = (const void *)(data + shdrs[i].sh_offset);
		const char *names = data + shdrs[shdrs[i].sh_link].sh_offset;

		if (shdrs[i].sh_type != SHT_SYMTAB)
			continue;
		for (k = 0; k < shdrs[i].sh_size / sizeof(*syms); k++)
			if (sb_streq(names + syms[k].st_name, "setup"))
				return syms[k].st_value;
	}
	fail();
	return 0;
}

static void test_whole(void **state)
{
	sb_cleanup(sb_freep) char *data = NULL;
	struct sb_sym_frame frame;
	struct sb_module *mod;
	size_t len, light;
	int fd;

	read_self(&data, &len);
	fd = memfd_of(data, len);
	mod = module_of(fd, &full);
	assert_string_equal(sb_module_name(mod), "self");
	assert_int_equal(sb_module_heavy_bytes(mod), 0);
	light = sb_module_light_bytes(mod);
	frame = look_up(mod, addr_of_setup(data) + 1);
	assert_true(sb_module_light_bytes(mod) > light);
	assert_true(sb_module_heavy_bytes(mod) > 0);
	sb_module_drop_heavy(mod);
	assert_int_equal(sb_module_heavy_bytes(mod), 0);
	assert_string_equal(frame.name, "setup");
	assert_int_equal(frame.func_offset, 1);
	assert_non_null(strstr(frame.file, "test_module.c"));
	sb_module_free(mod);
	close(fd);
}

/* Cut short at @at bytes when the headers are read: nothing is a signal, everything has a
 * reason. */
static void check_cut_before_lookup(const char *data, size_t len, size_t at)
{
	int fd = memfd_of(data, len);
	struct sb_module *mod = module_of(fd, &full);
	struct sb_sym_frame frame;

	assert_int_equal(ftruncate(fd, (off_t)at), 0);
	frame = look_up(mod, addr_of_setup(data));
	if (at < len / 2 || frame.reason != SB_SYM_OK)
		assert_int_equal(frame.reason, SB_SYM_BAD_FILE);
	else
		assert_string_equal(frame.name, "setup");
	sb_module_free(mod);
	close(fd);
}

static void test_cut_before_lookup(void **state)
{
	sb_cleanup(sb_freep) char *data = NULL;
	size_t len, at;

	read_self(&data, &len);
	for (at = 0; at < len; at += len / 61 + 1)
		check_cut_before_lookup(data, len, at);
}

/* Tables are in memory by then, names and DWARF are not. What was seen is kept. */
static void test_cut_after_lookup(void **state)
{
	sb_cleanup(sb_freep) char *data = NULL;
	struct sb_sym_frame frame;
	struct sb_module *mod;
	uint64_t addr;
	size_t len;
	int fd;

	read_self(&data, &len);
	addr = addr_of_setup(data);
	fd = memfd_of(data, len);
	mod = module_of(fd, &full);
	assert_string_equal(look_up(mod, addr).name, "setup");
	assert_int_equal(ftruncate(fd, 0), 0);
	sb_module_drop_heavy(mod);
	frame = look_up(mod, addr);
	assert_string_equal(frame.name, "setup");
	assert_null(frame.file);
	sb_module_free(mod);

	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(sb_write_all(fd, data, len), 0);
	mod = module_of(fd, &plain);
	look_up(mod, 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	frame = look_up(mod, addr);
	assert_null(frame.name);
	assert_int_equal(frame.reason, SB_SYM_BAD_FILE);
	sb_module_free(mod);
	close(fd);
}

static size_t nr_open_files(void)
{
	size_t nr = 0;
	int fd;

	for (fd = 0; fd < 256; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

/* Thousands of modules are kept: one descriptor each, and none is left behind. */
static void test_one_descriptor(void **state)
{
	sb_cleanup(sb_freep) char *data = NULL;
	struct sb_module *mod;
	size_t len, before;
	int fd;

	read_self(&data, &len);
	fd = memfd_of(data, len);
	before = nr_open_files();
	mod = module_of(fd, &full);
	look_up(mod, addr_of_setup(data));
	assert_int_equal(nr_open_files(), before + 1);
	sb_module_free(mod);
	assert_int_equal(nr_open_files(), before);
	close(fd);
}

/*
 * A file without section headers: one segment, .dynamic, one symbol, and a hash table of GNU's
 * kind at the file's very end, at an odd offset, whose last chain never ends.
 */
struct bare {
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdrs[3];
	Elf64_Dyn dynamic[5];
	Elf64_Sym symbols[3]; /* the last one is not in the hash table, which counts them */
	char names[9];
	uint32_t hash[4 + 2 + 1 + 1]; /* header, bloom filter, bucket, chain */
	char rest[3];
} __attribute__((packed));

static const struct bare bare = {
	.ehdr = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64,
			       __BYTE_ORDER == __LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB,
			       EV_CURRENT },
		  .e_type = ET_DYN,
		  .e_machine = EM_X86_64,
		  .e_phoff = offsetof(struct bare, phdrs),
		  .e_phentsize = sizeof(Elf64_Phdr),
		  .e_phnum = 3 },
	.phdrs = { { .p_type = PT_LOAD,
		     .p_flags = PF_R,
		     .p_vaddr = 0x100000,
		     .p_filesz = sizeof(struct bare),
		     .p_memsz = sizeof(struct bare) },
		   { .p_type = PT_LOAD,
		     .p_flags = PF_R | PF_X,
		     .p_filesz = sizeof(struct bare),
		     .p_memsz = sizeof(struct bare) },
		   { .p_type = PT_DYNAMIC,
		     .p_offset = offsetof(struct bare, dynamic),
		     .p_filesz = sizeof(Elf64_Dyn) * 5 } },
	.dynamic = { { .d_tag = DT_SYMTAB, .d_un.d_ptr = offsetof(struct bare, symbols) },
		     { .d_tag = DT_STRTAB, .d_un.d_ptr = offsetof(struct bare, names) },
		     { .d_tag = DT_STRSZ, .d_un.d_val = 9 },
		     { .d_tag = DT_GNU_HASH, .d_un.d_ptr = offsetof(struct bare, hash) } },
	.symbols = { {},
		     { .st_name = 1,
		       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		       .st_shndx = 1,
		       .st_value = 16,
		       .st_size = 16 },
		     { .st_name = 1,
		       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		       .st_shndx = 1,
		       .st_value = 64,
		       .st_size = 16 } },
	.names = "\0exported",
	.hash = { 1, 1, 1, 0, 0, 0, 1, 1 },
};

static struct sb_sym_frame look_up_in_bare(const struct bare *file, uint64_t addr)
{
	struct sb_module_opts opts = { .sym = &plain, .strings = &strings };
	struct sb_module *mod = NULL;
	struct sb_sym_frame frame;

	assert_int_equal(sb_module_new_image(file, sizeof(*file), "bare", &opts, &mod), 0);
	frame = look_up(mod, addr);
	sb_module_free(mod);
	return frame;
}

static void test_hash_chain(void **state)
{
	struct bare file = bare;

	assert_string_equal(look_up_in_bare(&file, 20).name, "exported");
	assert_null(look_up_in_bare(&file, 70).name);
	/*
	 * Nothing says where the chain ends: there is no telling how many symbols there are. What
	 * is left of the file is less than a word, even if it looks like the chain's end.
	 */
	file.hash[7] = 0;
	file.rest[0] = 1;
	assert_null(look_up_in_bare(&file, 20).name);
	assert_int_equal(look_up_in_bare(&file, 20).reason, SB_SYM_BAD_FILE);
	file.hash[7] = 1;
	file.hash[6] = UINT32_MAX;
	assert_null(look_up_in_bare(&file, 20).name);
	file.hash[6] = 1;
	file.hash[2] = UINT32_MAX;
	assert_null(look_up_in_bare(&file, 20).name);
}

/* Where two segments have the same part of the file, what runs is in the executable one. */
static void test_executable_first(void **state)
{
	struct sb_module_opts opts = { .sym = &plain, .strings = &strings };
	struct bare file = bare;
	struct sb_module *mod;
	uint64_t addr = 0;

	assert_int_equal(sb_module_new_image(&file, sizeof(file), "x", &opts, &mod), 0);
	assert_true(sb_module_offset_to_addr(mod, 20, &addr));
	assert_int_equal(addr, 20);
	assert_false(sb_module_offset_to_addr(mod, 1 << 20, &addr));
	sb_module_free(mod);
	/* The end of its last page, and the beginning of its first, are mapped, too. */
	file.phdrs[1].p_offset = 0x100;
	file.phdrs[1].p_vaddr = 0x7100;
	file.phdrs[1].p_filesz = 0x10;
	assert_int_equal(sb_module_new_image(&file, sizeof(file), "x", &opts, &mod), 0);
	assert_true(sb_module_offset_to_addr(mod, 20, &addr));
	assert_int_equal(addr, 0x7000 + 20);
	assert_true(sb_module_offset_to_addr(mod, 0x200, &addr));
	assert_int_equal(addr, 0x7200);
	sb_module_free(mod);
}

static void test_not_modules(void **state)
{
	struct sb_module_opts opts = { .sym = &plain, .strings = &strings };
	struct sb_module *mod = NULL;
	struct bare file = bare;
	int fds[2];

	file.ehdr.e_type = ET_REL;
	assert_int_equal(sb_module_new_image(&file, sizeof(file), "x", &opts, &mod), -ENOEXEC);
	file.ehdr.e_type = ET_CORE;
	assert_int_equal(sb_module_new_image(&file, sizeof(file), "x", &opts, &mod), -ENOEXEC);
	assert_int_equal(sb_module_new_image("", 0, "x", &opts, &mod), -ENOEXEC);
	assert_int_equal(sb_module_new_image(&bare, 20, "x", &opts, &mod), -ENOEXEC);
	file = bare;
	file.ehdr.e_phnum = 60000;
	assert_int_equal(sb_module_new_image(&file, sizeof(file), "x", &opts, &mod), -EFBIG);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(sb_module_new_fd(fds[0], "x", &opts, &mod), -ENOEXEC);
	assert_int_equal(sb_module_new_fd(-1, "x", &opts, &mod), -EBADF);
	assert_null(mod);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_cut_before_lookup),
		cmocka_unit_test(test_cut_after_lookup),
		cmocka_unit_test(test_one_descriptor),
		cmocka_unit_test(test_hash_chain),
		cmocka_unit_test(test_executable_first),
		cmocka_unit_test(test_not_modules),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
