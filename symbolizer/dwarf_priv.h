/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What dwarf.c (the index of units, lookups, names) and dwarf_unit.c (functions and lines of one
 * unit) share. Internal to the DWARF reader.
 *
 * Addresses are kept as 32-bit distances from the first executable byte. What lies outside of the
 * executable sections is code the linker dropped: its relocations were resolved to 0, 1 or -1.
 */
#ifndef SB_DWARF_PRIV_H
#define SB_DWARF_PRIV_H

#include <elfutils/libdw.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/index.h"
#include "base/vec.h"
#include "dwarf_image.h"
#include "dwarf_map.h"
#include "sb_dwarf.h"

/* Bounds of what a file can make us do. Compilers stay far below all of them. */
#define DIE_DEPTH_MAX	512	    /* nested DIEs; chains of 64 inlined functions were seen */
#define NAME_HOPS_MAX	16	    /* from a DIE to its declaration */
#define UNITS_MAX	(1u << 20)  /* a vmlinux has 2,400, a browser 50,000 */
#define UNIT_RANGES_MAX (10u << 20) /* address ranges in one unit */
#define UNIT_ROWS_MAX	(50u << 20) /* line rows in one unit */

struct sb_dwarf_node {
	uint32_t parent; /* NONE: a function, else inlined into that node */
	uint32_t die;	 /* offset of the DIE in the unit */
	uint32_t func;	 /* its name, once somebody asked; NONE */
	uint32_t call_line, call_file;
};

struct sb_dwarf_row {
	uint32_t file, line;
};

struct sb_dwarf_unit {
	Dwarf_Die root;
	bool is_built, is_lines_built;
	SB_VEC(struct sb_dwarf_node) nodes;
	struct sb_dwarf_map segs; /* value: node */
	struct sb_dwarf_map rows; /* value: index of lines */
	SB_VEC(struct sb_dwarf_row) lines;
	Dwarf_Files *files; /* of libdw */
	size_t nr_files;
};

struct sb_dwarf_func {
	const void *key; /* the DIE with the name */
	const char *name, *linkage_name;
	uint32_t decl_line;
};

struct sb_dwarf {
	struct sb_dwarf_image image, alt_image;
	Elf *elf, *alt_elf;
	Dwarf *dbg, *alt_dbg;
	SB_VEC(struct sb_dwarf_unit) units;
	sb_dwarf_ranges index; /* value: unit */
	uint32_t *index_hi;    /* the highest end up to this entry, for the search */
	sb_dwarf_ranges scratch;
	SB_VEC(struct sb_dwarf_func) funcs;
	struct sb_index func_index; /* by address of the DIE with the name */
	size_t nr_table_bytes, nr_libdw_bytes;
	struct sb_dwarf_stats stats;
};

/* Add the part of [lo, hi) that is executable. Return: 0, -ENOMEM, -EFBIG. */
int sb_dwarf_add_range(struct sb_dwarf *dwarf, sb_dwarf_ranges *ranges, uint64_t lo, uint64_t hi,
		       struct sb_dwarf_range to);
/* All ranges of @die. Return: their number, -ENOMEM, -EFBIG, -EBADMSG. */
int sb_dwarf_add_die_ranges(struct sb_dwarf *dwarf, Dwarf_Die *die, sb_dwarf_ranges *ranges,
			    struct sb_dwarf_range to);

/* Read functions, or lines, of a unit. What is broken is left out and counted. 0 or -ENOMEM. */
int sb_dwarf_unit_build(struct sb_dwarf *dwarf, struct sb_dwarf_unit *unit);
int sb_dwarf_lines_build(struct sb_dwarf *dwarf, struct sb_dwarf_unit *unit);

#endif
