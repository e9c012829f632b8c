// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A perf map in two pieces; the last line that covers an address names it. */
#include <stdlib.h>
#include <string.h>

#include "symbolizer/symbols/perfmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct sb_perfmap *map)
{
	uint64_t start;
	size_t i;

	if (sb_perfmap_lookup(map, 0x1000, &start) && start > 0x1000)
		abort();
	for (i = 0; i < map->entries.nr; i++) {
		const struct sb_perfmap_entry *entry = &map->entries.at[i];

		if (entry->start >= entry->end || entry->func_start > entry->start ||
		    entry->name >= map->names.nr ||
		    (i && map->entries.at[i - 1].end > entry->start))
			abort();
		if (sb_perfmap_lookup(map, entry->end - 1, &start) != map->names.at + entry->name)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct sb_perfmap map = {};
	size_t used, half = size / 2;

	if (sb_perfmap_add(&map, text, half, &used))
		abort();
	if (used > half)
		abort();
	check(&map);
	if (sb_perfmap_add(&map, text + used, size - used, &used))
		abort();
	check(&map);
	sb_perfmap_release(&map);
	return 0;
}
