/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The DWARF sections of one ELF file, read into own memory and decompressed. Nothing is mapped, so
 * a file that is truncated meanwhile gives an error and no SIGBUS. Sections that lookups do not
 * need (.debug_loclists and the like) are not read. Internal to the DWARF reader. The
 * caller calls sb_dwarf_image_read(), reads the bytes of sections[], and at the end calls
 * sb_dwarf_image_release(). No pointer is NULL unless a
 * contract says so. Thread: any, one at a time for each image.
 */
#ifndef SB_DWARF_IMAGE_H
#define SB_DWARF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/elf/budget.h"

enum sb_dwarf_section {
	SB_DWARF_INFO,
	SB_DWARF_ABBREV,
	SB_DWARF_LINE,
	SB_DWARF_LINE_STR,
	SB_DWARF_STR,
	SB_DWARF_STR_OFFSETS,
	SB_DWARF_RANGES,
	SB_DWARF_RNGLISTS,
	SB_DWARF_ADDR,
	SB_DWARF_SECTION_MAX,
};

/* Bound of the decompressed sections of one file: 3 times those of a distribution's vmlinux. */
#define SB_DWARF_IMAGE_BYTES_MAX (1ull << 30)

struct sb_dwarf_image {
	uint8_t *mem; /* owned; the sections point into it */
	size_t len;
	struct sb_dwarf_bytes {
		const uint8_t *at;
		size_t len;
	} sections[SB_DWARF_SECTION_MAX];
	bool is_relocatable;	   /* ET_REL: addresses in it are not filled in yet */
	uint64_t exec_lo, exec_hi; /* range of virtual addresses that executable sections span */
};

/*
 * Read the sections of @fd into memory. They may be plain, SHF_COMPRESSED (zlib, zstd; ELF gABI,
 * "Compression Header") or .zdebug_* (the older GNU form).
 * @fd: stays the caller's, who may close it after the call
 * @ret_image: ended by the caller with sb_dwarf_image_release(); untouched on error
 * @is_dwo: read the sections named .debug_x.dwo
 * @lines: false: .debug_line is left out, which is a fifth of the work
 * @budget: charged before anything is read or decompressed; may be NULL
 *
 * Return: 0; -ENODATA (no .debug_info, or another byte order); -EBADMSG (not a regular ELF file, or
 * damaged); -EFBIG (beyond the bound above or the budget); -ENOMEM; others of fstat(2) and
 * pread(2).
 */
int sb_dwarf_image_read(int fd, bool is_dwo, bool lines, struct sb_budget *budget,
			struct sb_dwarf_image *ret_image);
/* Free the sections and zero @image; accepts one of zeroes. The budget keeps its charge. */
void sb_dwarf_image_release(struct sb_dwarf_image *image);

#endif
