/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One ELF file, read and checked; 32-bit files look like 64-bit ones from here on. Internal to the
 * symbolizer. Any thread, one at a time per file.
 *
 * Files are never mapped: anyone who can write to a file of ours could truncate it under us, and
 * a mapping would then answer with SIGBUS. Every byte comes through pread(2) into our own memory,
 * so that a file cut short is an error of one read. It is also why not libelf: it would read
 * whole sections (tens of megabytes, to look at a few names) and keep them until the end.
 *
 * Sources: the ELF specification (gabi), elf(5); for 32-bit and extended numbering <elf.h>.
 */
#ifndef SB_ELF_FILE_H
#define SB_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "budget.h"
#include "sb_sym.h"

struct sb_elf {
	int fd;		      /* -1: an image in memory */
	const uint8_t *image; /* owned, or NULL */
	uint64_t size;
	bool is_64;
	uint16_t type, machine;
	uint64_t entry; /* address where a program begins, 0: none */
	Elf64_Phdr *phdrs;
	Elf64_Shdr *shdrs; /* none when the file has no (usable) section headers */
	size_t nr_phdrs, nr_shdrs;
	char *section_names; /* NUL-terminated */
	size_t section_names_len;
	uint8_t build_id[SB_BUILD_ID_MAX];
	size_t build_id_len;	  /* 0: none, or one longer than the kernel would accept */
	uint32_t uid;		  /* who owns the file; 0: an image */
	struct sb_budget own;	  /* of the headers, and of all else until a loader sets @budget */
	struct sb_budget *budget; /* what reading and loading is charged to */
};

/*
 * @fd is duplicated; it must be a regular file. The image is copied. Executables, shared objects,
 * and objects to be linked (dwz makes its files such; their symbols have no addresses yet), of this
 * machine's byte order.
 * Return: 0, -ENOEXEC, -EFBIG (beyond a bound), -ENOMEM, or of I/O.
 */
int sb_elf_new_fd(int fd, struct sb_elf **ret_elf);
int sb_elf_new_image(const void *image, size_t len, struct sb_elf **ret_elf);
void sb_elf_free(struct sb_elf *elf);

/* Return: 0, -EBADMSG when the file does not reach that far (any more), -EFBIG beyond the budget, or of pread(2). */
int sb_elf_read(const struct sb_elf *elf, uint64_t offset, void *buf, size_t len);

/* Return: the first section of that name or type, or NULL. */
const Elf64_Shdr *sb_elf_section_named(const struct sb_elf *elf, const char *name);
const Elf64_Shdr *sb_elf_section_typed(const struct sb_elf *elf, uint32_t type);
/* Return: the section, or NULL when there is none of that number. */
const Elf64_Shdr *sb_elf_section_at(const struct sb_elf *elf, size_t idx);
/* Return: whether there is a section @name with contents in this file. */
bool sb_elf_has_section(const struct sb_elf *elf, const char *name);

/*
 * A section, with a NUL behind it; the caller frees it. Return: 0, -ENODATA (no contents),
 * -ENOTSUP (compressed: sections of DWARF are, which are not read here), -EBADMSG, -EFBIG beyond
 * @max_bytes or the budget, -ENOMEM, or of I/O.
 */
int sb_elf_load(const struct sb_elf *elf, const Elf64_Shdr *shdr, size_t max_bytes, char **ret_data,
		size_t *ret_len);

/*
 * Offset in the file to virtual address, through the program headers: the segment which holds it,
 * executable ones first. The kernel maps whole pages, so what shares a page with a segment counts.
 */
bool sb_elf_offset_to_addr(const struct sb_elf *elf, uint64_t offset, uint64_t *ret_addr);
bool sb_elf_addr_to_offset(const struct sb_elf *elf, uint64_t addr, uint64_t *ret_offset);
/* Return: whether @addr lies in an executable segment. */
bool sb_elf_is_code(const struct sb_elf *elf, uint64_t addr);

/* Records of one table (symbols, relocations, dynamic entries), read in pieces. */
struct sb_elf_reader {
	const struct sb_elf *elf;
	uint64_t offset, end;
	size_t record_bytes, at, filled;
	uint8_t buf[16 << 10];
};

/* Start at @offset; @record_bytes as the file has it. */
void sb_elf_reader_init(struct sb_elf_reader *reader, const struct sb_elf *elf, uint64_t offset,
			uint64_t len, size_t record_bytes);
/* Start at a section. Return: 0, -ENODATA, -ENOTSUP as below, -EBADMSG. */
int sb_elf_reader_init_section(struct sb_elf_reader *reader, const struct sb_elf *elf,
			       const Elf64_Shdr *shdr, size_t record_bytes);

/* Bytes one record has in this file. */
size_t sb_elf_sym_bytes(const struct sb_elf *elf);
size_t sb_elf_rela_bytes(const struct sb_elf *elf);
size_t sb_elf_dyn_bytes(const struct sb_elf *elf);

/* Return: 1 and the next record, 0 at the end, or as sb_elf_read(). */
int sb_elf_next_sym(struct sb_elf_reader *reader, Elf64_Sym *ret_sym);
int sb_elf_next_rela(struct sb_elf_reader *reader, Elf64_Rela *ret_rela);
int sb_elf_next_dyn(struct sb_elf_reader *reader, Elf64_Dyn *ret_dyn);
int sb_elf_next_u32(struct sb_elf_reader *reader, uint32_t *ret_word);

/* What .dynamic says; for files without section headers. An address of 0 means: not there. */
struct sb_elf_dynamic {
	uint64_t symtab, strtab, strtab_bytes, hash, gnu_hash;
	uint64_t nr_relative; /* relative relocations, which lead .rela.dyn */
};

/* Return: 0, -ENODATA when there is none, or as sb_elf_read(). */
int sb_elf_read_dynamic(const struct sb_elf *elf, struct sb_elf_dynamic *ret_dynamic);

#endif
