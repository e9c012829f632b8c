/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sorted maps from addresses to numbers, built from nested ranges by one sort and one sweep with a
 * stack. Addresses are 32-bit distances from some base. Internal to the DWARF reader. Order: push
 * ranges, sb_dwarf_map_build(), sb_dwarf_map_at(), sb_dwarf_map_release(). No pointer is NULL.
 * Thread: any, one at a time for each object.
 */
#ifndef SB_DWARF_MAP_H
#define SB_DWARF_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define SB_DWARF_NONE UINT32_MAX

struct sb_dwarf_range {
	uint32_t lo, hi; /* hi is exclusive */
	uint32_t value;	 /* the highest wins among ranges of the same start and depth */
	uint32_t depth;	 /* greater for inner ranges */
};

typedef SB_VEC(struct sb_dwarf_range) sb_dwarf_ranges;

/* Entry i is valid from starts[i] up to starts[i + 1]. */
struct sb_dwarf_map {
	uint32_t *starts, *values;
	size_t nr;
};

/* Sort by start, then depth, then value, all ascending. */
void sb_dwarf_ranges_sort(sb_dwarf_ranges *ranges);

/*
 * Build a map from each address to the value of the innermost range that has it. @ranges are sorted
 * for it, stay the caller's, and inner ranges are clipped to outer ones; without ranges the map is
 * empty. The caller ends *ret_map with sb_dwarf_map_release(). Return: 0; -ENOMEM, with *ret_map
 * untouched.
 */
int sb_dwarf_map_build(sb_dwarf_ranges *ranges, struct sb_dwarf_map *ret_map);
/* Free the arrays and zero @map; accepts one of zeroes. */
void sb_dwarf_map_release(struct sb_dwarf_map *map);

/*
 * Return: the index of the last element of the sorted @starts that is <= @at; SIZE_MAX: there is
 * none.
 */
size_t sb_dwarf_search(const uint32_t *starts, size_t nr, uint32_t at);

/* Return: the value at @at; SB_DWARF_NONE: there is none. */
uint32_t sb_dwarf_map_at(const struct sb_dwarf_map *map, uint32_t at);

#endif
