/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sorted maps from address to a number, made of nested ranges: one sort, one sweep with a stack.
 * Addresses are 32-bit distances from some base. Internal to the DWARF reader.
 */
#ifndef SB_DWARF_MAP_H
#define SB_DWARF_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define SB_DWARF_NONE UINT32_MAX

struct sb_dwarf_range {
	uint32_t lo, hi; /* [lo, hi) */
	uint32_t value;	 /* of ranges with the same start and depth, the highest wins */
	uint32_t depth;	 /* inner ranges have a greater one */
};

typedef SB_VEC(struct sb_dwarf_range) sb_dwarf_ranges;

/* Entry i holds from starts[i] up to starts[i + 1]. */
struct sb_dwarf_map {
	uint32_t *starts, *values;
	size_t nr;
};

void sb_dwarf_ranges_sort(sb_dwarf_ranges *ranges);

/* Sorts @ranges. Inner ranges are clipped to outer ones. Return: 0 or -ENOMEM. */
int sb_dwarf_map_build(sb_dwarf_ranges *ranges, struct sb_dwarf_map *ret_map);
void sb_dwarf_map_release(struct sb_dwarf_map *map);

/* Return: the index of the last of @starts (sorted) that is not beyond @at, or SIZE_MAX. */
size_t sb_dwarf_search(const uint32_t *starts, size_t nr, uint32_t at);

/* Return: the value at @at, or SB_DWARF_NONE. */
uint32_t sb_dwarf_map_at(const struct sb_dwarf_map *map, uint32_t at);

#endif
