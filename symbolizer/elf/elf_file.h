/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One ELF file, read and checked. 32-bit files look like 64-bit ones to the caller. Internal to the
 * symbolizer.
 *
 * Files are never mapped: whoever can write to a file could truncate it, and the mapping would
 * then raise SIGBUS. Every byte is read by pread(2) into own memory, so a truncated file is an
 * error of one read. This is also why libelf is not used: it would read whole sections (tens of
 * megabytes, to look at a few names) and keep them until the end.
 *
 * Order: sb_elf_new_*(); the other functions in any order; sb_elf_free(). @budget may be replaced
 * at any time. After an error the file can still be read. No pointer is NULL, but for that of
 * sb_elf_free(). Thread: any, one at a time for each file.
 * Sources: the ELF specification (gabi), elf(5); for 32-bit and extended numbering <elf.h>.
 */
#ifndef SB_ELF_FILE_H
#define SB_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/elf/budget.h"
#include "symbolizer/sb_sym.h"

struct sb_elf {
	int fd;		      /* owned; -1: an image in memory */
	const uint8_t *image; /* owned, or NULL */
	uint64_t size;
	bool is_64;
	uint16_t type, machine;
	uint64_t entry; /* address of the first instruction of a program; 0: none */
	Elf64_Phdr *phdrs;
	Elf64_Shdr *shdrs; /* NULL when the file has no usable section headers */
	size_t nr_phdrs, nr_shdrs;
	char *section_names; /* NUL-terminated */
	size_t section_names_len;
	uint8_t build_id[SB_BUILD_ID_MAX];
	size_t build_id_len;	  /* 0: none, or it is longer than the kernel would accept */
	uint32_t uid;		  /* owner of the file; SB_OWNER_NOBODY: a copy; 0: an image */
	struct sb_budget own;	  /* for the headers, and for all reads until @budget is changed */
	struct sb_budget *budget; /* borrowed: what reading and loading are charged to */
};

/*
 * Open an executable, a shared object or a relocatable object (dwz files are such; their symbols
 * have no addresses yet), of this machine's byte order. The caller owns *ret_elf and ends it with
 * sb_elf_free(); it is untouched on error.
 * @fd: a regular file; it is duplicated
 * @image: is copied
 *
 * Return: 0; -ENOEXEC (not such a file); -EFBIG (a bound); -ENOMEM; -EMFILE; others of fstat(2) and
 * pread(2).
 */
int sb_elf_new_fd(int fd, struct sb_elf **ret_elf);
int sb_elf_new_image(const void *image, size_t len, struct sb_elf **ret_elf);
/* Close the file, free its headers; sections that were loaded are the callers'. Accepts NULL. */
void sb_elf_free(struct sb_elf *elf);

/*
 * Read exactly @len bytes at @offset of the file. Return: 0; -EBADMSG when the file does not reach
 * that far (any more); -EFBIG beyond the budget; others of pread(2). @buf is undefined on error.
 */
int sb_elf_read(const struct sb_elf *elf, uint64_t offset, void *buf, size_t len);

/* Return: the first section of that name or type (SHT_*), valid as long as @elf; NULL: there is
 * none. */
const Elf64_Shdr *sb_elf_section_named(const struct sb_elf *elf, const char *name);
const Elf64_Shdr *sb_elf_section_typed(const struct sb_elf *elf, uint32_t type);
/* Return: the section of that number, valid as long as @elf; NULL: there is none. */
const Elf64_Shdr *sb_elf_section_at(const struct sb_elf *elf, size_t idx);
/* Return: the first program header of that type (PT_*), valid as long as @elf; NULL: there is
 * none. */
const Elf64_Phdr *sb_elf_phdr_typed(const struct sb_elf *elf, uint32_t type);
/* Return: whether there is a section @name with contents in this file. */
bool sb_elf_has_section(const struct sb_elf *elf, const char *name);

/*
 * Read a whole section of @elf, with a NUL appended that *@ret_len does not count. The caller frees
 * *ret_data. Both are untouched on error.
 * Return: 0; -ENODATA (SHT_NOBITS: no contents in the file); -ENOTSUP (compressed; only the DWARF
 * reader decompresses); -EBADMSG; -EFBIG (beyond @max_bytes or the budget); -ENOMEM; others of
 * pread(2).
 */
int sb_elf_load(const struct sb_elf *elf, const Elf64_Shdr *shdr, size_t max_bytes, char **ret_data,
		size_t *ret_len);

/*
 * Convert a file offset to a virtual address by the segment that holds it, executable segments
 * first. The kernel maps whole pages, so bytes that share a page with a segment count as its own.
 * Return: false when no segment holds it; *@ret_addr is untouched then.
 */
bool sb_elf_offset_to_addr(const struct sb_elf *elf, uint64_t offset, uint64_t *ret_addr);
/*
 * Convert a virtual address to a file offset. Return: false when no segment holds it in the file
 * (zeroed memory behind p_filesz is in none); *@ret_offset is untouched then.
 */
bool sb_elf_addr_to_offset(const struct sb_elf *elf, uint64_t addr, uint64_t *ret_offset);
/* Return: whether @addr lies in an executable segment. */
bool sb_elf_is_code(const struct sb_elf *elf, uint64_t addr);

/* Reads the records of one table (symbols, relocations, dynamic entries) one by one. */
struct sb_elf_reader {
	const struct sb_elf *elf; /* borrowed */
	uint64_t offset, end;
	size_t record_bytes, at, filled;
	uint8_t buf[16 << 10];
};

/*
 * Begin to read the records in the @len bytes at @offset of the file. @record_bytes: size of a
 * record in the file, not 0; a partial one at the end is ignored. Bounds are checked when records
 * are read. Nothing is to be released, and @elf must outlive the reader.
 */
void sb_elf_reader_init(struct sb_elf_reader *reader, const struct sb_elf *elf, uint64_t offset,
			uint64_t len, size_t record_bytes);
/*
 * Begin to read the records of a section; @elf must outlive the reader. Return: 0; -ENODATA: it has
 * no contents in the file; -ENOTSUP: it is compressed; -EBADMSG when its sh_entsize is not
 * @record_bytes. After an error read nothing by @reader.
 */
int sb_elf_reader_init_section(struct sb_elf_reader *reader, const struct sb_elf *elf,
			       const Elf64_Shdr *shdr, size_t record_bytes);

/* Return: the bytes of a symbol (Sym), of a relocation with addend (Rela), or of an entry of
 * .dynamic (Dyn) in this file, which depend on its class (32 or 64 bits): the @record_bytes of a
 * reader of these. */
size_t sb_elf_sym_bytes(const struct sb_elf *elf);
size_t sb_elf_rela_bytes(const struct sb_elf *elf);
size_t sb_elf_dyn_bytes(const struct sb_elf *elf);

/*
 * Get the next record, converted to 64 bits. record_bytes must be that of the type (4 for u32).
 * Return: 1; 0 at the end; -EBADMSG when the file does not reach that far; -EFBIG beyond the
 * budget; others of pread(2). Without a record the output is untouched, and after an error the next
 * call tries the record again.
 */
int sb_elf_next_sym(struct sb_elf_reader *reader, Elf64_Sym *ret_sym);
int sb_elf_next_rela(struct sb_elf_reader *reader, Elf64_Rela *ret_rela);
int sb_elf_next_dyn(struct sb_elf_reader *reader, Elf64_Dyn *ret_dyn);
int sb_elf_next_u32(struct sb_elf_reader *reader, uint32_t *ret_word);

/* What .dynamic says, for files without section headers. An address of 0 means: not present. */
struct sb_elf_dynamic {
	uint64_t symtab, strtab, strtab_bytes, hash, gnu_hash;
};

/* Read the dynamic section (PT_DYNAMIC). Return: 0; -ENODATA: there is none; -EFBIG: too many
 * entries, or beyond the budget; -EBADMSG when the file does not reach that far; others of
 * pread(2). On error *@ret_dynamic is untouched. */
int sb_elf_read_dynamic(const struct sb_elf *elf, struct sb_elf_dynamic *ret_dynamic);

#endif
