/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of an image: a file that is shared by all processes that map it, and where it is
 * mapped. Internal to user/interp/core. Any thread, which holds the lock of struct sb_interp. No
 * pointer is NULL unless it says so. Order: sb_image_file_new(); for each process a struct
 * sb_image, the functions of image.h, then sb_image_file_unload(); at the end
 * sb_image_file_free(). */
#ifndef SB_INTERP_IMAGE_PRIV_H
#define SB_INTERP_IMAGE_PRIV_H

#include <elf.h>

#include "base/str.h"
#include "base/vec.h"
#include "interp/core/image.h"
#include "interp/core/runtime.h"
#include "symbolizer/unwind/cfi.h"

/* How many answers are remembered for each file. Others are looked up again each time. */
#define SB_IMAGE_ASKED_MAX  256
#define SB_IMAGE_NAMED_MAX  64
#define SB_IMAGE_RELOCS_MAX 16
#define SB_IMAGE_SPLITS_MAX 32

/* The defined symbols of one table. It is read when it is first needed. */
struct sb_image_table {
	bool is_tried,
		is_refused; /* refused: beyond the file's budget, so symbols may be missing */
	SB_VEC(Elf64_Sym) syms;
	char *names;
	size_t names_len;
};

struct sb_image_file {
	struct sb_elf *elf;  /* owned; all that is read of the file is charged to its budget */
	size_t header_bytes; /* what stays charged after sb_image_file_unload() */
	struct sb_parser_seat *parser; /* borrowed, or NULL: see struct sb_interp_opts */
	char *path;
	char build_id[64];
	struct sb_image_table dynsym, symtab;
	struct sb_cfi_function *functions; /* from .eh_frame, ascending */
	size_t nr_functions;
	bool has_tried_functions, lacks_functions; /* lacks: they could not be read */
	/* Since sb_image_file_unload() an answer lacked memory. That passes, so neither this answer
	 * nor one that may depend on it is remembered. */
	bool has_lacked_memory;
	/* Answers that are remembered, because each process with this file causes the same
	 * questions. Then neither symbols nor .eh_frame need to be read. Addresses are those of the
	 * file. */
	struct sb_image_asked {
		uint64_t addr;
		struct sb_cfi_function function; /* 0, 0: there is none */
	} asked[SB_IMAGE_ASKED_MAX];
	size_t nr_asked;
	struct sb_image_named {
		char *name;    /* owned */
		bool is_there; /* the symbol is defined: sym */
		Elf64_Sym sym;
	} named[SB_IMAGE_NAMED_MAX];
	size_t nr_named;
	struct sb_image_reloc {
		uint64_t addr;
		char *name; /* owned; NULL: there is no relocation */
	} reloc[SB_IMAGE_RELOCS_MAX];
	size_t nr_relocs;
	struct sb_image_split {
		uint64_t begin, end;
		size_t max, nr;
		struct sb_range part[SB_RUNTIME_ANCHORS_MAX];
	} * splits;
	size_t nr_splits;
	struct sb_str text; /* the name that sb_image_reloc_name() returned last */
	void *kept;	    /* see sb_image_keep() */
	const void *kept_by;
};

struct sb_image {
	struct sb_image_file *file;
	uint64_t bias;
};

/* Open an ELF file; symbols are read when they are first needed. @fd is duplicated, and stays the
 * caller's, who may close it; @path is copied. The caller may set parser afterwards, and ends
 * *ret_file with sb_image_file_free().
 * Return: 0; -ENOEXEC (no ELF file); -EFBIG (a bound); -ENOMEM; -EMFILE; others of fstat(2) and
 * pread(2); *ret_file is untouched on error. */
int sb_image_file_new(int fd, const char *path, struct sb_image_file **ret_file);
/* Free it with all that is remembered and kept; no image of it may be used any more. Accepts NULL.
 */
void sb_image_file_free(struct sb_image_file *file);
/* Return: whether the file defines the symbol @name, in .dynsym or .symtab; false, too, when
 * looking for it would exceed the file's budget, or lacks memory (has_lacked_memory). */
bool sb_image_file_has(struct sb_image_file *file, const char *name);
/* Free symbols and functions, which are read again when they are needed, and begin without
 * has_lacked_memory. Pointers to them are no longer valid; remembered answers stay. Called each
 * time that a process with the file was looked at: they take much memory. */
void sb_image_file_unload(struct sb_image_file *file);

#endif
