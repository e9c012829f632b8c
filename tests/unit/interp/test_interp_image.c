// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Code in a file that ends with it: what is behind the end is not read, and not taken for read. */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/fs.h"
#include "interp/core/image_priv.h"
#include "interp/core/runtime.h"

#define CODE_BYTES 40

static const char names[] = "\0.dynstr\0.dynsym\0unsized\0sized";

/* The whole file is mapped at address 0. */
static struct {
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;
	Elf64_Shdr shdrs[3];
	Elf64_Sym syms[3];
	char names[sizeof(names)];
	uint8_t code[CODE_BYTES];
} __attribute__((packed)) file;

#define AT(member) offsetof(__typeof__(file), member)

static const Elf64_Sym function = {
	.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
	.st_shndx = 1,
	.st_value = AT(code),
};

static int make_image(void **state)
{
	static struct sb_image image;
	int fd = memfd_create("image", MFD_CLOEXEC);

	file.ehdr = (Elf64_Ehdr)
	{
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN,
#if defined(__aarch64__)
		.e_machine = EM_AARCH64,
#else
		.e_machine = EM_X86_64,
#endif
		.e_version = EV_CURRENT, .e_ehsize = sizeof(Elf64_Ehdr), .e_phoff = AT(phdr),
		.e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1, .e_shoff = AT(shdrs),
		.e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 3, .e_shstrndx = 1,
	};
	file.phdr = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_filesz = sizeof(file),
		.p_memsz = sizeof(file),
	};
	file.shdrs[1] = (Elf64_Shdr){
		.sh_name = 1,
		.sh_type = SHT_STRTAB,
		.sh_flags = SHF_ALLOC,
		.sh_addr = AT(names),
		.sh_offset = AT(names),
		.sh_size = sizeof(names),
	};
	file.shdrs[2] = (Elf64_Shdr){
		.sh_name = 9,
		.sh_type = SHT_DYNSYM,
		.sh_flags = SHF_ALLOC,
		.sh_addr = AT(syms),
		.sh_offset = AT(syms),
		.sh_size = sizeof(file.syms),
		.sh_link = 1,
		.sh_entsize = sizeof(Elf64_Sym),
	};
	file.syms[1] = file.syms[2] = function;
	file.syms[1].st_name = 17;
	file.syms[2].st_name = 25;
	file.syms[2].st_size = CODE_BYTES + 1;
	memcpy(file.names, names, sizeof(names));
	memset(file.code, 0x90, CODE_BYTES); /* nop */
	assert_true(fd >= 0);
	assert_int_equal(sb_write_all(fd, (const char *)&file, sizeof(file)), 0);
	assert_int_equal(sb_image_file_new(fd, "image", &image.file), 0);
	close(fd);
	*state = &image;
	return 0;
}

static int free_image(void **state)
{
	struct sb_image *image = *state;

	sb_image_file_free(image->file);
	return 0;
}

/* Of a function whose size is not known, as much as there is; of another one, all. */
static void test_first_bytes(void **state)
{
	struct sb_image_code code;

	assert_int_equal(sb_image_code(*state, "unsized", &code), 0);
	assert_int_equal(code.begin, AT(code));
	assert_true(code.len >= 16 && code.len <= CODE_BYTES);
	assert_memory_equal(code.bytes, file.code, code.len);
	assert_int_equal(sb_image_code(*state, "sized", &code), -EFAULT);
	assert_int_equal(sb_image_code(*state, "none", &code), -ENOENT);
}

static int count(void *arg, const struct sb_insn *insn)
{
	++*(size_t *)arg;
	return 0;
}

/* A function that cannot be read is not an empty one. */
static void test_each_insn(void **state)
{
	const struct sb_range readable = { AT(code), sizeof(file) };
	const struct sb_range empty = { AT(code), AT(code) };
	const struct sb_range cut_off = { AT(code), sizeof(file) + 1 };
	const struct sb_range large = { AT(code), AT(code) + (1u << 20) + 1 };
	size_t nr = 0;

	assert_int_equal(sb_image_each_insn(*state, &empty, count, &nr), 0);
	assert_int_equal(sb_image_each_insn(*state, &cut_off, count, &nr), -EFAULT);
	assert_int_equal(sb_image_each_insn(*state, &large, count, &nr), -E2BIG);
	assert_int_equal(nr, 0);
	assert_int_equal(sb_image_each_insn(*state, &readable, count, &nr), 0);
#if defined(__x86_64__)
	assert_int_equal(nr, CODE_BYTES);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_first_bytes, make_image, free_image),
		cmocka_unit_test_setup_teardown(test_each_insn, make_image, free_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
