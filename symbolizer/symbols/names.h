/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names in an ELF string table, by offset. They stay in the file and are read when they are asked
 * for. Internal to the symbolizer. Order: one of sb_names_init*(); sb_names_get(), before and after
 * sb_names_unload(); sb_names_release(). No pointer is NULL. Thread: any, one at a time for each
 * file.
 */
#ifndef SB_NAMES_H
#define SB_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "symbolizer/elf/elf_file.h"

/* Longest name that is returned; names from C++ templates reach some 100 KB. */
#define SB_NAME_BYTES_MAX  (1u << 20)
/* Largest string table; browsers with all their symbols have some 200 MB. */
#define SB_NAMES_BYTES_MAX (512u << 20)

struct sb_names {
	const struct sb_elf *elf; /* borrowed; NULL: the names are in memory only */
	uint64_t offset;	  /* of the string table in the file */
	size_t len;
	char *mem; /* owned: the whole table and a NUL; NULL: it is not in memory */
};

/*
 * Read a string table into memory: that of a section, or @len bytes at @offset in the file. *@names
 * is overwritten. A file must outlive the names; an image need not, because its names stay in
 * memory. The caller ends *@names with sb_names_release(), which is allowed after an error, too.
 * Return: 0; -EBADMSG (not a string table, or outside of the file); -ENODATA, -ENOTSUP (without
 * contents, compressed); -EFBIG; -ENOMEM; others of pread(2).
 */
int sb_names_init_section(struct sb_names *names, const struct sb_elf *elf, const Elf64_Shdr *shdr);
int sb_names_init(struct sb_names *names, const struct sb_elf *elf, uint64_t offset, uint64_t len);
/* Free the memory; afterwards there are no names. Accepts an object of zeroes. The file is not
 * used, and may be freed already. */
void sb_names_release(struct sb_names *names);

/* Free the memory, except that of an image: its names stay. Those of a file are read from then on
 * when they are asked for. */
void sb_names_unload(struct sb_names *names);

/*
 * Append the name at @offset in the table to @name. Return: 0; -EBADMSG (outside of the table);
 * -EFBIG (longer than SB_NAME_BYTES_MAX, or beyond the budget of the file); -ENOMEM; others of
 * pread(2). After an error a part of the name may have been appended.
 */
int sb_names_get(const struct sb_names *names, uint32_t offset, struct sb_str *name);

#endif
