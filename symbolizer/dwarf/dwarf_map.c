// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/dwarf/dwarf_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"

static int compare_ranges(const void *pa, const void *pb)
{
	const struct sb_dwarf_range *a = pa, *b = pb;

	return sb_compare(a->lo, b->lo) ?: sb_compare(a->depth, b->depth) ?:
	       sb_compare(a->value, b->value);
}

void sb_dwarf_ranges_sort(sb_dwarf_ranges *ranges)
{
	size_t i;

	/* Compilers mostly write functions in the order of their addresses. */
	for (i = 1; i < ranges->nr; i++)
		if (compare_ranges(&ranges->at[i - 1], &ranges->at[i]) > 0)
			break;
	if (i < ranges->nr)
		qsort(ranges->at, ranges->nr, sizeof(ranges->at[0]), compare_ranges);
}

static void emit(struct sb_dwarf_map *map, uint32_t start, uint32_t value)
{
	if (map->nr && map->starts[map->nr - 1] == start)
		map->nr--;
	if (map->nr && map->values[map->nr - 1] == value)
		return;
	map->starts[map->nr] = start;
	map->values[map->nr++] = value;
}

struct sweep {
	struct sb_dwarf_map *map;
	SB_VEC(struct sb_dwarf_range) open;
};

static void close_last(struct sweep *sweep, uint32_t at)
{
	sweep->open.nr--;
	emit(sweep->map, at,
	     sweep->open.nr ? sweep->open.at[sweep->open.nr - 1].value : SB_DWARF_NONE);
}

static int add_range(struct sweep *sweep, struct sb_dwarf_range range)
{
	while (sweep->open.nr) {
		const struct sb_dwarf_range *last = &sweep->open.at[sweep->open.nr - 1];

		if (last->hi <= range.lo) {
			close_last(sweep, last->hi);
		} else if (last->depth >= range.depth && last->hi <= range.hi) {
			/* Not an outer range but a twin (folded code) or an overlap. */
			close_last(sweep, range.lo);
		} else {
			if (range.hi > last->hi)
				range.hi = last->hi;
			break;
		}
	}
	emit(sweep->map, range.lo, range.value);
	return sb_vec_push(&sweep->open, range);
}

int sb_dwarf_map_build(sb_dwarf_ranges *ranges, struct sb_dwarf_map *ret_map)
{
	/* Each range adds an entry at its start and one at its end. */
	size_t i, max = 2 * ranges->nr;
	struct sb_dwarf_map map = {};
	struct sweep sweep = { .map = &map };
	void *mem;
	int err = 0;

	if (!ranges->nr) {
		*ret_map = map;
		return 0;
	}
	sb_dwarf_ranges_sort(ranges);
	map.starts = malloc(max * sizeof(*map.starts));
	map.values = malloc(max * sizeof(*map.values));
	if (!map.starts || !map.values)
		err = -ENOMEM;
	for (i = 0; !err && i < ranges->nr; i++)
		if (ranges->at[i].lo < ranges->at[i].hi)
			err = add_range(&sweep, ranges->at[i]);
	while (!err && sweep.open.nr)
		close_last(&sweep, sweep.open.at[sweep.open.nr - 1].hi);
	sb_vec_release(&sweep.open);
	if (err) {
		sb_dwarf_map_release(&map);
		return err;
	}
	mem = realloc(map.starts, (map.nr + 1) * sizeof(*map.starts));
	map.starts = mem ? mem : map.starts;
	mem = realloc(map.values, (map.nr + 1) * sizeof(*map.values));
	map.values = mem ? mem : map.values;
	*ret_map = map;
	return 0;
}

void sb_dwarf_map_release(struct sb_dwarf_map *map)
{
	free(map->starts);
	free(map->values);
	memset(map, 0, sizeof(*map));
}

size_t sb_dwarf_search(const uint32_t *starts, size_t nr, uint32_t at)
{
	const uint32_t *base = starts;

	if (!nr || at < base[0])
		return SIZE_MAX;
	while (nr > 1) {
		size_t half = nr / 2;

		/* Written so that it becomes a conditional move: random addresses mispredict. */
		base = base[half] <= at ? base + half : base;
		nr -= half;
	}
	return (size_t)(base - starts);
}

uint32_t sb_dwarf_map_at(const struct sb_dwarf_map *map, uint32_t at)
{
	size_t i = sb_dwarf_search(map->starts, map->nr, at);

	return i == SIZE_MAX ? SB_DWARF_NONE : map->values[i];
}
