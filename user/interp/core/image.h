/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A file as a process maps it: its symbols, sections, functions and relocations. Runtimes use it to
 * find where an interpreter's variables and code lie. What was looked up is remembered with the
 * file, for the next process that maps it. The image is rt->image, made before attach(); functions
 * can be called in any order, and again after an error, and nothing that they return is freed by
 * the caller.
 *
 * Addresses are those of the process unless said otherwise. No pointer may be NULL unless a
 * function says so; arguments are not kept unless it says so; out-parameters are untouched on
 * error. Callbacks get @arg, and may call any function here. Not thread-safe: the caller holds the
 * lock of struct sb_interp. Without memory, what would have to be read counts as missing, and is
 * looked for again the next time that the process is looked at.
 */
#ifndef SB_INTERP_IMAGE_H
#define SB_INTERP_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/process/procfs.h"

struct sb_elf;
struct sb_image;

/* The mappings of a process, made by the caller of attach(). Each path is terminated, and lives as
 * long as the list. */
struct sb_process_maps {
	const struct sb_maps_line *at; /* ascending */
	size_t nr;
	uint32_t tgid;
};

/* Return: the file; the bias, which is the process's address of anything in the file minus its ELF
 * address; the path under which the file was first mapped. File and path are borrowed: valid at
 * least until the function of the runtime returns. */
struct sb_elf *sb_image_elf(const struct sb_image *image);
uint64_t sb_image_bias(const struct sb_image *image);
const char *sb_image_path(const struct sb_image *image);
/* Return: "build ID 1234abcd", or "no build ID"; borrowed, valid as long as the file. */
const char *sb_image_build_id(const struct sb_image *image);

/*
 * Keep a result about the file for the next process that maps it. There is one for each file: the
 * last one kept, which must be from malloc(), or is NULL, and is owned by the file; the one before
 * is freed by free(), and so is the last one with the file: a result owns no other memory. As it
 * serves processes with another bias, addresses in it have to be moved.
 * @who: any address that is unique to the caller. sb_image_kept() returns what @who kept last,
 * valid until something else is kept; NULL: nothing, or another one has kept something since.
 */
void *sb_image_kept(const struct sb_image *image, const void *who);
void sb_image_keep(struct sb_image *image, const void *who, void *what);

/*
 * Find a symbol of .dynsym or .symtab that is defined in the file. For a thread-local variable,
 * *ret_addr is its offset in the TLS block. @ret_size: bytes; may be NULL. Return: 0; -ENOENT when
 * there is none, or when looking for it would exceed the file's budget (symbolizer/elf/budget.h).
 */
int sb_image_symbol(struct sb_image *image, const char *name, uint64_t *ret_addr,
		    uint64_t *ret_size);
/* Call @fn for each defined symbol of .dynsym whose name begins with @prefix, until it returns
 * non-zero. @name is valid during the call. If the table cannot be read whole, the symbols that
 * were read count. Return: what @fn returned last; 0: it was not called; -EFBIG: it was not called,
 * because that would exceed the file's budget. */
int sb_image_symbols(struct sb_image *image, const char *prefix,
		     int (*fn)(void *arg, const char *name, uint64_t addr, uint64_t size),
		     void *arg);
/* Find the section @name: its address in the process and its size in bytes. Return: 0; -ENOENT when
 * there is none, or it is not mapped. */
int sb_image_section(struct sb_image *image, const char *name, uint64_t *ret_addr,
		     uint64_t *ret_size);
/* Read bytes from the file by address, so as they were before relocation: code, constants. Return:
 * 0; -EFAULT: not all of it is in the file, or it cannot be read; @dst is undefined. */
int sb_image_read(struct sb_image *image, uint64_t addr, void *dst, size_t len);
struct sb_insn;
/* The first bytes of a function's code. */
struct sb_image_code {
	uint64_t begin; /* address in the process */
	size_t len;
	uint8_t bytes[512];
};
/* Read the function @name, or as much of it as fits; if its size is not known, less where the file
 * ends. Return: 0; -ENOENT: there is no such symbol; -EFAULT as of sb_image_read(), and *ret_code
 * is undefined. */
int sb_image_code(struct sb_image *image, const char *name, struct sb_image_code *ret_code);
/* Decode the instruction at offset *at, at most code->len, and move *at behind it. Return: 0;
 * -EBADMSG: it is not known or cut off; *at and *ret_insn are untouched then. */
int sb_image_next_insn(const struct sb_image_code *code, size_t *at, struct sb_insn *ret_insn);
/* Find the function around @addr: the bounds of its FDE in .eh_frame, the end exclusive. Return: 0;
 * -ENOENT: there is none, or .eh_frame cannot be read. */
int sb_image_function(struct sb_image *image, uint64_t addr, uint64_t *ret_begin,
		      uint64_t *ret_end);
/* Call @fn for each FDE (function or part of one, [begin, end)) of the file, ascending, until it
 * returns a positive value. Return: what @fn returned last; 0, too, if there are none, or they
 * could not be read for whatever reason (broken, too many, no memory), which cannot be told
 * apart. */
int sb_image_functions(struct sb_image *image, int (*fn)(void *arg, uint64_t begin, uint64_t end),
		       void *arg);
struct sb_range;
/* Call @fn for each instruction in @range, which is the code of a function, until @fn does not
 * return 0. Bytes that are no known instruction are left out. Return: what @fn returned last; 0,
 * too, if the range is empty; -E2BIG: it has more than 1 MiB; -EFAULT as of sb_image_read();
 * -ENOMEM. */
int sb_image_each_insn(struct sb_image *image, const struct sb_range *range,
		       int (*fn)(void *arg, const struct sb_insn *insn), void *arg);
/*
 * Find the parts of the function [begin, end) that the compiler moved out of it (".cold"). A part
 * is a function by .eh_frame that a jump enters in the middle, or a conditional jump at its start,
 * and that jumps back into the middle of [begin, end). Return: how many were written to @ret, at
 * most @max; 0, too, when the code cannot be read.
 */
size_t sb_image_cold_parts(struct sb_image *image, uint64_t begin, uint64_t end,
			   struct sb_range *ret, size_t max);
/* Find the GOT pair {module, offset} that the dynamic linker fills in for the thread-local @name of
 * a shared library: its R_X86_64_DTPMOD64 relocation. Return: 0; -ENOENT: there is none, or the
 * relocations cannot be read. */
int sb_image_tls_got(struct sb_image *image, const char *name, uint64_t *ret_got);
/* What the dynamic linker leaves in the GOT for a thread-local variable of the file's own. */
enum sb_image_tls {
	/* No relocation: it is in the main program, whose block has a fixed place. */
	SB_IMAGE_TLS_NONE,
	SB_IMAGE_TLS_OFFSET, /* one word: the offset from the thread pointer */
	SB_IMAGE_TLS_PAIR,   /* {module number, offset in the module's block} */
	SB_IMAGE_TLS_DESC,   /* a TLS descriptor: a function and its argument */
};
/* Find how the thread-local variable @name, at @offset in its TLS block, is reached. Return: by
 * what relocation; unless it is NONE, *ret_got becomes the address of the GOT entry in the process.
 * NONE, too, if the relocations cannot be read. */
enum sb_image_tls sb_image_tls_access(struct sb_image *image, const char *name, uint64_t offset,
				      uint64_t *ret_got);
/* Return: the name of the symbol whose address the dynamic linker writes to the GOT or PLT slot
 * @addr (JUMP_SLOT, GLOB_DAT); NULL: none, or it cannot be read. Valid until the next call. The
 * first few addresses are remembered. */
const char *sb_image_reloc_name(struct sb_image *image, uint64_t addr);

/* Return: whether a mapped file is musl's libc, by its path: its name begins with "ld-musl-" or
 * "libc.musl-", or it is libc.so in a folder *-linux-musl. */
bool sb_threads_are_musl(const struct sb_process_maps *maps);
/* Find how the process's libc stores thread-specific data (pthread_getspecific()). *ret_tsd is set
 * in any case. Return: 0; -ENOENT when no libc was found, and elsewhere than on x86-64 also for
 * musl and a libc that cannot be read: then it has the numbers of glibc on x86-64, and zeros
 * elsewhere. */
struct sb_interp_tsd;
int sb_threads_tsd(const struct sb_process_maps *maps, struct sb_interp_tsd *ret_tsd);
/*
 * Read the second word of the TLS descriptor at @got (of sb_image_tls_access(), SB_IMAGE_TLS_DESC),
 * the argument of its function: the variable's offset from the thread pointer, or, if *ret_is_pair,
 * the address of a pair {module, offset} (glibc: struct tlsdesc_dynamic_arg; musl: the same two
 * words), which the caller reads. Return: 0; -EAGAIN: the dynamic linker has not filled the
 * descriptor in, or it cannot be read; both results are untouched then.
 */
struct sb_memory;
int sb_threads_descriptor(const struct sb_memory *memory, uint64_t got, bool *ret_is_pair,
			  uint64_t *ret_arg);

#endif
