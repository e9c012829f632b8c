/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names as they stay in an ELF string table: by offset, read when they are asked for. Internal. */
#ifndef SB_NAMES_H
#define SB_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "elf_file.h"

/* Longest name that is handed out; names from C++ templates reach some 100 KB. */
#define SB_NAME_BYTES_MAX  (1u << 20)
/* Largest string table; browsers with all their symbols have some 200 MB. */
#define SB_NAMES_BYTES_MAX (512u << 20)

struct sb_names {
	const struct sb_elf *elf; /* borrowed; NULL: only in memory */
	uint64_t offset;	  /* in the file */
	size_t len;
	char *mem; /* all of it and a NUL, or NULL: in the file */
};

/*
 * Read the string table into memory. A file @elf has to outlive the names; those of an image are
 * kept in memory instead. Return: 0, or as sb_elf_load().
 */
int sb_names_init_section(struct sb_names *names, const struct sb_elf *elf, const Elf64_Shdr *shdr);
int sb_names_init(struct sb_names *names, const struct sb_elf *elf, uint64_t offset, uint64_t len);
void sb_names_release(struct sb_names *names);

/* Drop the memory if the file can be read again. */
void sb_names_unload(struct sb_names *names);

/* Append the name at @offset. Return: 0, -EBADMSG, -EFBIG, -ENOMEM, or of I/O. */
int sb_names_get(const struct sb_names *names, uint32_t offset, struct sb_str *name);

#endif
