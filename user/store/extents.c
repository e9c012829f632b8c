// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The extent of each kind: from when to when something was recorded, and at which rate. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "store/ask.h"
#include "store/search.h"

struct ends {
	int64_t first_s, last_s;
	bool is_there;
};

static int note_ends(void *arg, const char *name, int64_t begin_s)
{
	struct ends *ends = arg;

	if (!ends->is_there)
		ends->first_s = begin_s;
	ends->last_s = begin_s;
	ends->is_there = true;
	return 0;
}

static struct sb_store_extent *extent_of(struct sb_store_extent *extents, int *nr,
					 const struct sb_store_kind *kind)
{
	int i;

	for (i = 0; i < *nr; i++)
		if (sb_streq(extents[i].kind.name, kind->name))
			return &extents[i];
	if (*nr == SB_STORE_KINDS_MAX)
		return NULL;
	extents[*nr] = (struct sb_store_extent){ .kind = *kind, .from_s = INT64_MAX };
	return &extents[(*nr)++];
}

static void note_rate(struct sb_segment *segment, const struct sb_record *block,
		      struct sb_store_extent *extent)
{
	struct sb_store_answer answer = {};
	struct sb_block_rows rows;

	/* Less than a millisecond, as at the end of a recording, gives no rate. */
	if (!sb_segment_rows(segment, block, &rows, answer.figure)) {
		extent->hz = sb_store_answer_hz(&answer);
		extent->has_hz = answer.figure[SB_BLOCK_SAMPLED_MS] > 0;
	}
}

/* Add the blocks of a file to the extents of their kinds, the newest first: the first block that an
 * extent gets decides its sampling rate, which is to be the latest one. */
static int note_blocks(struct sb_store *store, struct sb_kept_file *kept,
		       struct sb_store_extent *extents, int *nr)
{
	struct sb_segment *segment = &kept->segment;
	size_t i;

	for (i = kept->is_there ? segment->blocks.nr : 0; i-- > 0;) {
		const struct sb_record *block = &segment->blocks.at[i];
		struct sb_store_extent *extent = extent_of(extents, nr, &block->kind);

		if (!extent) {
			sb_store_tell_kinds(store);
			continue;
		}
		if (block->begin_s < extent->from_s)
			extent->from_s = block->begin_s;
		if (!extent->has_hz)
			note_rate(segment, block, extent);
		/* The first one met ends last. Finer levels come first, and know the end better. */
		if (!extent->to_s)
			extent->to_s = sb_record_end(block);
	}
	return 0;
}

static int by_kind(const void *a, const void *b)
{
	return strcmp(((const struct sb_store_extent *)a)->kind.name,
		      ((const struct sb_store_extent *)b)->kind.name);
}

/* Aggregates end with their periods; the finest level comes first, and knows the end better. */
static int find_extents(struct sb_search *search, struct sb_store_extent *extents, int *nr)
{
	struct sb_kept_file *kept;
	size_t level;
	int err = 0;

	for (level = 0; level < SB_STORE_LEVELS && !err; level++) {
		struct ends ends = {};

		err = sb_store_each_file(search->store, level, note_ends, &ends);
		if (err || !ends.is_there)
			continue;
		err = sb_search_kept_file(search, level, ends.last_s, &kept);
		if (!err)
			err = note_blocks(search->store, kept, extents, nr);
		if (!err && ends.first_s != ends.last_s) {
			err = sb_search_kept_file(search, level, ends.first_s, &kept);
			if (!err)
				err = note_blocks(search->store, kept, extents, nr);
		}
	}
	return err;
}

int sb_store_extents(struct sb_store *store, struct sb_store_extent ret_extents[SB_STORE_KINDS_MAX])
{
	struct sb_store_answer answer;
	struct sb_search search = { .store = store, .answer = &answer };
	int nr = 0, err;

	sb_search_begin(&search);
	err = find_extents(&search, ret_extents, &nr);
	sb_search_end(&search);
	if (nr)
		qsort(ret_extents, (size_t)nr, sizeof(ret_extents[0]), by_kind);
	return err ? err : nr;
}
