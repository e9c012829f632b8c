/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lines and inlined functions of one file with DWARF (2 to 5; gcc, clang; LTO, dwz, .dwo files),
 * by a reader of our own: each compilation unit is read when an address first falls into it, and
 * only what lookups need is ever kept. Why not libdw: of elfutils 0.188, its lookups by address
 * miss what has no .debug_aranges and inlined functions of LTO code; it opens .dwo files by any path
 * the file names; and what it read it keeps. Internal to the symbolizer. One thread at a time.
 */
#ifndef SB_DWARF_H
#define SB_DWARF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "budget.h"

struct sb_dwarf;

/* Strings live until the sb_dwarf is freed. */
struct sb_dwarf_frame {
	const char
		*name; /* DW_AT_name, or NULL; without a linkage name: with namespaces, classes */
	const char *linkage_name; /* mangled, or NULL */
	const char *file;	  /* of @line; full path, or NULL */
	uint32_t line; /* innermost frame: of the address; others: of the call; 0: unknown */
	uint32_t decl_line;
	bool is_inlined;
};

/*
 * @fd: file with .debug_info (the binary or its separate debug file). @alt_fd: the dwz file its
 * .gnu_debugaltlink names, or -1. Both are read here and not kept. Sections may be compressed.
 * @budget: borrowed, charged here and by lookups; NULL: only the bounds of the reader hold.
 * Return: 0, -ENODATA (no DWARF there), -EBADMSG (broken), -EFBIG (beyond a bound), -ENOMEM.
 */
int sb_dwarf_new(int fd, int alt_fd, struct sb_budget *budget, struct sb_dwarf **ret_dwarf);
void sb_dwarf_free(struct sb_dwarf *dwarf);

/*
 * The frames at @addr, a virtual address as @fd's file has it; innermost first, the last one is
 * the function itself (is_inlined false). More than @max: the outermost ones are kept.
 * @lines false: the line of the address itself is left 0, files NULL, and line tables are not read.
 * Code without a function in DWARF (assembler) has one frame without names, but with a line.
 * Return: 0 (with *ret_nr 0 when DWARF does not know the address), or -ENOMEM.
 */
int sb_dwarf_lookup(struct sb_dwarf *dwarf, uint64_t addr, bool lines,
		    struct sb_dwarf_frame *frames, size_t max, size_t *ret_nr);

/* What was left out, and why; for debug output. */
struct sb_dwarf_stats {
	uint64_t nr_units, nr_units_read;
	uint64_t nr_units_bad;	   /* broken; what came before the fault is used */
	uint64_t nr_ranges_dead;   /* outside of executable sections: dropped by the linker */
	uint64_t nr_cut;	   /* cut at a bound of ours */
	uint64_t nr_split_missing; /* .dwo files which are not there, or of another build */
};
void sb_dwarf_stats(const struct sb_dwarf *dwarf, struct sb_dwarf_stats *ret_stats);

/* Return: the memory in use, without what the allocator adds. */
size_t sb_dwarf_bytes(const struct sb_dwarf *dwarf);

#endif
