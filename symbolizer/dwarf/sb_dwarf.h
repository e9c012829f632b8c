/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Source lines and inlined functions of one file with DWARF (2 to 5; gcc, clang; LTO, dwz, .dwo
 * files). A compilation unit is read when an address first falls into it, and only what lookups
 * need is kept. It does not use libdw, because lookups by address of elfutils 0.188 miss code
 * without .debug_aranges and inlined functions of LTO code, open .dwo files by any path that the
 * file names, and never free what they read. Internal to the symbolizer. Order: sb_dwarf_new();
 * sb_dwarf_lookup() and the others, in any order; sb_dwarf_free(). No pointer is NULL unless a
 * contract says so. Thread: one at a time for each sb_dwarf.
 */
#ifndef SB_DWARF_H
#define SB_DWARF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/elf/budget.h"

struct sb_dwarf;

/* One frame. Strings live until the sb_dwarf is freed. */
struct sb_dwarf_frame {
	const char *name; /* DW_AT_name or NULL; with its namespaces if linkage_name is NULL */
	const char *linkage_name; /* mangled, or NULL */
	const char *file;	  /* full path of the file that @line is in, or NULL */
	uint32_t line;	    /* innermost frame: of the address; others: of the call; 0: unknown */
	uint32_t decl_line; /* where the function is declared; 0: unknown */
	bool is_inlined;
};

/*
 * Open the DWARF of a file. The caller ends *ret_dwarf with sb_dwarf_free(). A dwz file that cannot
 * be read costs names only.
 * @fd: the file with .debug_info (the binary or its separate debug file); sections may be
 * compressed
 * @alt_fd: the dwz file that .gnu_debugaltlink names, or -1; both descriptors remain the caller's,
 * also on error, and are not used after the call
 * @lines: false: line tables are not read; the line of an address is 0, and files are NULL
 * @budget: borrowed until sb_dwarf_free(), charged here and by lookups; NULL: only the reader's own
 *	bounds apply
 *
 * Return: 0; -ENODATA (no DWARF); -EBADMSG (broken); -EFBIG (a bound); -ENOMEM; others of fstat(2)
 * and pread(2). *ret_dwarf is untouched on error.
 */
int sb_dwarf_new(int fd, int alt_fd, bool lines, struct sb_budget *budget,
		 struct sb_dwarf **ret_dwarf);
/* Free it with all strings of frames. The budget keeps its charge. Accepts NULL. */
void sb_dwarf_free(struct sb_dwarf *dwarf);

/*
 * Get the frames at @addr, a virtual address of @fd's file: innermost first, the last one is the
 * function itself (is_inlined false).
 * @max: room in @frames, at least 1; when there are more frames, the outermost ones are returned
 *
 * Code without a function in DWARF (assembler) gets one frame without names, but with its line.
 * Return: 0, with *ret_nr 0 when DWARF does not know the address or a bound was hit; -ENOMEM, with
 * *ret_nr untouched and @frames undefined: other lookups can follow, but what was being read counts
 * as missing from then on, so that only a new struct sb_dwarf can tell.
 */
int sb_dwarf_lookup(struct sb_dwarf *dwarf, uint64_t addr, struct sb_dwarf_frame *frames,
		    size_t max, size_t *ret_nr);

/* What could not be read of what lookups needed so far. */
struct sb_dwarf_losses {
	/* Units of which a part is damaged, or beyond a bound of the reader. What the budget
	 * refused is not among them: sb_budget_pool counts it. */
	uint64_t nr_units;
	uint64_t nr_splits; /* .dwo files that are missing, or that cannot be used */
};
/* Copy to @ret_losses what was lost in this file so far. */
void sb_dwarf_losses(const struct sb_dwarf *dwarf, struct sb_dwarf_losses *ret_losses);

/* Return: the bytes of memory in use, without the allocator's overhead. */
size_t sb_dwarf_bytes(const struct sb_dwarf *dwarf);

#endif
