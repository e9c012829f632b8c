/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A file as a process maps it: where its symbols, sections and functions lie in that process.
 * Addresses are the process's unless said otherwise. Not thread-safe.
 */
#ifndef SB_INTERP_IMAGE_H
#define SB_INTERP_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sb_elf;
struct sb_image;

/* One mapping of a process, file mappings of data included; strings live with the list. */
struct sb_process_map {
	uint64_t start, end, pgoff, ino;
	uint32_t maj, min;
	bool is_exec, is_writable;
	const char *path; /* "" for anonymous memory */
};
struct sb_process_maps {
	const struct sb_process_map *at; /* ascending */
	size_t nr;
	uint32_t tgid;
};

struct sb_elf *sb_image_elf(const struct sb_image *image);
uint64_t sb_image_bias(const struct sb_image *image); /* address = ELF address + bias */
const char *sb_image_path(const struct sb_image *image);
/* "build ID 1234abcd", or "no build ID". */
const char *sb_image_build_id(const struct sb_image *image);

/*
 * What somebody found out about the file, for the next process that maps it: one piece of the heap for
 * each file, which is the file's from then on. @who is any address of his. Return: it, or NULL.
 */
void *sb_image_kept(const struct sb_image *image, const void *who);
void sb_image_keep(struct sb_image *image, const void *who, void *what);

/*
 * A symbol of .dynsym or .symtab that is defined in the file. Of a thread-local variable, the
 * address is the offset in the TLS block. @ret_size may be NULL. Return: 0 or -ENOENT.
 */
int sb_image_symbol(struct sb_image *image, const char *name, uint64_t *ret_addr,
		    uint64_t *ret_size);
/* Call @fn for all defined symbols of .dynsym whose name begins with @prefix. */
int sb_image_symbols(struct sb_image *image, const char *prefix,
		     int (*fn)(void *arg, const char *name, uint64_t addr, uint64_t size),
		     void *arg);
/* A section by name. Return: 0 or -ENOENT. */
int sb_image_section(struct sb_image *image, const char *name, uint64_t *ret_addr,
		     uint64_t *ret_size);
/* Bytes of the file as they are mapped before relocation: code, constants. 0, -EFAULT. */
int sb_image_read(struct sb_image *image, uint64_t addr, void *dst, size_t len);
/* The function around @addr, by .eh_frame: FDE bounds. Return: 0 or -ENOENT. */
int sb_image_function(struct sb_image *image, uint64_t addr, uint64_t *ret_begin,
		      uint64_t *ret_end);
/* Call @fn for each FDE of the file; a positive return value ends it, and is returned. */
int sb_image_functions(struct sb_image *image, int (*fn)(void *arg, uint64_t begin, uint64_t end),
		       void *arg);
/*
 * Pieces of the function [begin, end) that the compiler moved out of it (".cold"): functions by
 * .eh_frame that jumps lead into the midst of, or conditional jumps to, and that jump back into the
 * midst of it. Return: how many of at most @max were left in @ret.
 */
struct sb_range;
size_t sb_image_cold_parts(struct sb_image *image, uint64_t begin, uint64_t end,
			   struct sb_range *ret, size_t max);
/* Where the dynamic linker leaves {module, offset} of the thread-local @name: R_X86_64_DTPMOD64
 * relocation. For libraries. Return: 0 or -ENOENT. */
int sb_image_tls_got(struct sb_image *image, const char *name, uint64_t *ret_got);
/* How code of a file finds a thread-local variable of its own: what the dynamic linker leaves in its GOT. */
enum sb_image_tls {
	SB_IMAGE_TLS_NONE,   /* no relocation: the program itself, whose block has a fixed place */
	SB_IMAGE_TLS_OFFSET, /* a word: from the thread pointer */
	SB_IMAGE_TLS_PAIR,   /* the module's number, and what we know */
	SB_IMAGE_TLS_DESC,   /* a function, and its argument */
};
/* Of @name, which lies at @offset of its block. @ret_got: only with a relocation. */
enum sb_image_tls sb_image_tls_access(struct sb_image *image, const char *name, uint64_t offset,
				      uint64_t *ret_got);
/* Where PLT slots and GOT entries lead is in relocations: the symbol whose address is put at @addr
 * (JUMP_SLOT, GLOB_DAT), or NULL; valid until the next call. Remembered for a few addresses. */
const char *sb_image_reloc_name(struct sb_image *image, uint64_t addr);

/* Return: whether the process's libc is musl. */
bool sb_threads_are_musl(const struct sb_process_maps *maps);
/* How the process's libc finds thread-specific data. Return: 0 or -ENOENT (no libc found: on x86-64 the
 * numbers of glibc are filled in). */
struct sb_interp_tsd;
int sb_threads_tsd(const struct sb_process_maps *maps, struct sb_interp_tsd *ret_tsd);

#endif
