/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files as interp.c keeps them; what an image is made of. */
#ifndef SB_INTERP_IMAGE_PRIV_H
#define SB_INTERP_IMAGE_PRIV_H

#include <elf.h>

#include "base/str.h"
#include "base/vec.h"
#include "cfi.h"
#include "interp/image.h"

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
	bool has_tried_functions;
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
