/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files as interp.c keeps them; what an image is made of. */
#ifndef SB_INTERP_IMAGE_PRIV_H
#define SB_INTERP_IMAGE_PRIV_H

#include <elf.h>

#include "base/str.h"
#include "base/vec.h"
#include "cfi.h"
#include "interp/image.h"
#include "interp/runtime.h"

/* Of one file. More are sought again. */
#define SB_IMAGE_ASKED_MAX  256
#define SB_IMAGE_NAMED_MAX  64
#define SB_IMAGE_RELOCS_MAX 16
#define SB_IMAGE_COLD_MAX   32

/* Symbols of one table, in memory once they are asked for. */
struct sb_image_table {
	bool is_tried;
	SB_VEC(Elf64_Sym) syms;
	char *names;
	size_t names_len;
};

struct sb_image_file {
	struct sb_elf *elf;	       /* owned */
	struct sb_parser_seat *parser; /* borrowed, or NULL */
	char *path;
	char build_id[64];
	struct sb_image_table dynsym, symtab;
	struct sb_cfi_function *functions; /* ascending */
	size_t nr_functions;
	bool has_tried_functions, lacks_functions; /* they could not be had */
	/* What was asked of them is asked again for each process that has the file: then they need not be
	 * read. Addresses are those of the file. */
	struct sb_image_asked {
		uint64_t addr;
		struct sb_cfi_function function; /* 0, 0: there is none */
	} asked[SB_IMAGE_ASKED_MAX];
	size_t nr_asked;
	struct sb_image_named {
		char *name; /* owned */
		bool is_there;
		Elf64_Sym sym;
	} named[SB_IMAGE_NAMED_MAX];
	size_t nr_named;
	struct sb_image_reloc {
		uint64_t addr;
		char *name; /* owned; NULL: none */
	} reloc[SB_IMAGE_RELOCS_MAX];
	size_t nr_relocs;
	struct sb_image_cold {
		uint64_t begin, end;
		size_t max, nr;
		struct sb_range part[SB_RUNTIME_ANCHORS_MAX];
	} * cold;
	size_t nr_cold;
	struct sb_str text;
	void *kept; /* see sb_image_keep() */
	const void *kept_by;
};

struct sb_image {
	struct sb_image_file *file;
	uint64_t bias;
};

/* @fd stays the caller's. Return: 0, -ENOEXEC, -ENOMEM, of I/O. */
int sb_image_file_new(int fd, const char *path, struct sb_image_file **ret_file);
void sb_image_file_free(struct sb_image_file *file);
/* Return: whether it defines @name. */
bool sb_image_file_has(struct sb_image_file *file, const char *name);
/* Give back what can be read again. */
void sb_image_file_unload(struct sb_image_file *file);

#endif
