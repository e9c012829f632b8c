/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The DWARF sections of one ELF file, read into memory of our own and inflated. Nothing is mapped,
 * so a file that shrinks while we read gives an error and no SIGBUS; what lookups do not need
 * (.debug_loclists and the like) is not read at all. Internal to the symbolizer.
 */
#ifndef SB_DWARF_IMAGE_H
#define SB_DWARF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "budget.h"

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

/* Bytes of the sections of one file, inflated: 3 times what a vmlinux of a distribution has. */
#define SB_DWARF_IMAGE_BYTES_MAX (1ull << 30)

struct sb_dwarf_image {
	uint8_t *mem; /* what the sections point into */
	size_t len;
	struct sb_dwarf_bytes {
		const uint8_t *at;
		size_t len;
	} sections[SB_DWARF_SECTION_MAX];
	bool is_relocatable;	   /* addresses in it are holes for a linker to fill */
	uint64_t exec_lo, exec_hi; /* virtual addresses the file has executable sections at */
};

/*
 * Read the sections of @fd, which is not kept; @is_dwo: those named .debug_x.dwo. Knows plain sections, SHF_COMPRESSED ones (zlib,
 * zstd; ELF gABI, "Compression Header") and .zdebug_* (the GNU form before it).
 * @budget is charged before anything is read or inflated; it may be NULL.
 * Return: 0, -ENODATA (no .debug_info, or another byte order), -EBADMSG, -EFBIG (beyond the bound
 * above or the budget), -ENOMEM, or an errno of read(2).
 */
int sb_dwarf_image_read(int fd, bool is_dwo, struct sb_budget *budget,
			struct sb_dwarf_image *ret_image);
void sb_dwarf_image_release(struct sb_dwarf_image *image);

#endif
