// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Any bytes as a block from a process that samples: what is taken is one that a store can take. */
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "store/block.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_series(const struct sb_store_series *series)
{
	size_t i;

	must(series->nr_tags <= SB_DICT_TAGS_MAX - 1);
	for (i = 0; i < series->nr_tags; i++) {
		must(series->tags[i].key[0] && series->tags[i].value);
		must(!i || strcmp(series->tags[i - 1].key, series->tags[i].key) < 0);
	}
}

static void check_rows(const struct sb_block *block)
{
	struct sb_row row;
	size_t i, k;

	for (i = 0; i < sb_profile_nr_stacks(block->profile); i++) {
		row = sb_profile_row_at(block->profile, i);
		must(row.nr && row.nr <= SB_BLOCK_FRAMES_MAX && row.series < block->nr_series);
		for (k = 0; k < row.nr; k++) {
			const struct sb_frame *frame =
				sb_profile_frame_at(block->profile, row.frames[k]);

			must(frame->name[0] && frame->kind < SB_FRAME_KIND_MAX);
		}
	}
}

/* The head is given, or hardly anything would get past it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size + SB_BLOCK_HEAD_BYTES);
	struct sb_block block;
	size_t i, len = size + SB_BLOCK_HEAD_BYTES;

	must(bytes);
	memcpy(bytes, "sbk4", 4);
	for (i = 0; i < 4; i++)
		bytes[4 + i] = (uint8_t)(size >> (8 * i));
	memcpy(bytes + SB_BLOCK_HEAD_BYTES, data, size);
	/* With the magic of another version, nothing behind the head would be looked at. */
	must(!sb_block_scan(bytes, len, &len) ==
	     (size <= SB_BLOCK_BYTES_MAX - SB_BLOCK_HEAD_BYTES));
	if (size > SB_BLOCK_BYTES_MAX - SB_BLOCK_HEAD_BYTES) {
		must(sb_block_decode(bytes, len, 1, 1, &block));
	} else if (!sb_block_decode(bytes, len, 1, 1, &block)) {
		must(block.nr_series <= SB_BLOCK_SERIES_MAX);
		for (i = 0; i < block.nr_series; i++)
			check_series(&block.series[i]);
		check_rows(&block);
		sb_block_release(&block);
	}
	free(bytes);
	return 0;
}
