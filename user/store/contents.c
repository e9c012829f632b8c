// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Goes through all files of a store: lists what they contain, or copies it to another store. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "store/ask.h"
#include "store/store_priv.h"

/* Looking. */

struct looking {
	struct sb_store *store;
	const struct sb_store_look *look;
	size_t level;
};

/* Stacks deeper than the writer makes count as lost. */
static uint64_t weight_of_deep(const struct sb_dict *dict, const struct sb_segment_sums *sums)
{
	uint64_t weight = 0;
	uint32_t node, depth;
	size_t i;

	for (i = 0; i < dict->rows.nr; i++) {
		for (node = sums->weight[i] ? dict->rows.at[i].node : 0, depth = 0;
		     node && depth <= SB_DICT_DEPTH_MAX; depth++)
			node = dict->nodes.at[node].parent;
		weight += node ? sums->weight[i] : 0;
	}
	return weight;
}

static int read_blocks(struct looking *looking, struct sb_segment *segment,
		       struct sb_store_file_info *info)
{
	struct sb_sums sums = {};
	size_t i;
	int err = sb_sums_fit(&sums, &segment->dict);

	for (i = 0; i < segment->blocks.nr && !err; i++) {
		err = sb_record_is_of_level(&segment->blocks.at[i])
			      ? sb_segment_add(segment, &segment->blocks.at[i], &sums.sums)
			      : -EBADMSG;
		if (err != -EBADMSG)
			continue;
		err = 0;
		info->nr_damaged_blocks++;
		if (looking->look->on_damaged)
			looking->look->on_damaged(looking->look->arg, info->name,
						  &segment->blocks.at[i]);
	}
	info->lost_weight = sums.sums.lost_weight + weight_of_deep(&segment->dict, &sums.sums);
	sb_sums_release(&sums);
	return err;
}

static void note_segment(const struct sb_store *store, const struct sb_segment *segment,
			 struct sb_store_file_info *info)
{
	const struct sb_record *last;

	info->bytes = segment->len + segment->nr_tail_bytes;
	info->nr_blocks = segment->blocks.nr;
	info->nr_strings = segment->dict.strings.strs.nr;
	info->nr_nodes = segment->dict.nodes.nr;
	info->nr_tags = segment->dict.tags.nr;
	info->nr_rows = segment->dict.rows.nr;
	info->nr_skipped_bytes = sb_store_skipped_bytes(store, segment);
	info->nr_tail_bytes = segment->nr_tail_bytes;
	info->nr_damaged_dicts = segment->nr_damaged;
	info->nr_lost_entries = segment->dict.nr_lost;
	if (!segment->blocks.nr)
		return;
	last = &segment->blocks.at[segment->blocks.nr - 1];
	info->from_s = segment->blocks.at[0].begin_s;
	info->to_s = last->begin_s + last->seconds;
}

static int look_at(void *arg, const char *name, int64_t begin_s)
{
	struct looking *looking = arg;
	struct sb_store_file_info info = { .name = name, .level = looking->level };
	struct sb_segment segment;
	int err = sb_segment_read(&segment, looking->store->dir_fd, name);

	if (err == -ENOMEM || err == -ENOENT)
		return err == -ENOENT ? 0 : err;
	info.err = err;
	if (!err) {
		note_segment(looking->store, &segment, &info);
		if (looking->look->reads_blocks)
			err = read_blocks(looking, &segment, &info);
		sb_segment_release(&segment);
	}
	if (info.err || !err)
		looking->look->on_file(looking->look->arg, &info);
	return info.err ? 0 : err;
}

int sb_store_look(struct sb_store *store, const struct sb_store_look *look)
{
	struct looking looking = { .store = store, .look = look };
	int err = 0;

	for (; looking.level < SB_STORE_LEVELS && !err; looking.level++)
		err = sb_store_each_file(store, looking.level, look_at, &looking);
	return err;
}

/* Merging. */

static const struct sb_tag_counts *hosts_of(const struct sb_tags *tags)
{
	size_t i;

	for (i = 0; i < tags->keys.nr; i++)
		if (sb_streq(tags->keys.at[i].key, "host"))
			return &tags->keys.at[i];
	return NULL;
}

static bool is_all(const struct sb_tags *tags, const struct sb_tag_counts *hosts)
{
	return !tags->has_more && !(hosts && hosts->has_more);
}

static const char *common_value(const struct sb_tag_counts *ours,
				const struct sb_tag_counts *theirs)
{
	size_t i, k;

	for (i = 0; ours && theirs && i < theirs->values.nr; i++)
		for (k = 0; k < ours->values.nr; k++)
			if (sb_streq(ours->values.at[k].value, theirs->values.at[i].value))
				return ours->values.at[k].value;
	return NULL;
}

static int compare_hosts(struct sb_store *store, struct sb_store *from,
			 const struct sb_store_extent *extent, struct sb_store_overlap *ret_overlap)
{
	struct sb_ask ask = { .from_s = extent->from_s, .to_s = extent->to_s };
	sb_cleanup(sb_tags_freep) struct sb_tags *here = NULL, *there = NULL;
	struct sb_store_overlap overlap = { .kind = extent->kind };
	const struct sb_tag_counts *ours, *theirs;
	const char *host;
	int err = sb_ask_set_kind(&ask, extent->kind.name);

	if (!err)
		err = sb_store_tags(store, &ask, SIZE_MAX, &here);
	if (!err)
		err = sb_store_tags(from, &ask, SIZE_MAX, &there);
	sb_ask_release(&ask);
	if (err)
		return err;
	ours = hosts_of(here);
	theirs = hosts_of(there);
	if (is_all(here, ours) && is_all(there, theirs)) {
		host = common_value(ours, theirs);
		overlap.host = host ? strdup(host) : NULL;
		if (!overlap.host)
			return host ? -ENOMEM : 0;
	}
	*ret_overlap = overlap;
	return -EEXIST;
}

int sb_store_find_overlap(struct sb_store *store, struct sb_store *from,
			  struct sb_store_overlap *ret_overlap)
{
	struct sb_store_extent extents[SB_STORE_KINDS_MAX];
	int i, nr = sb_store_extents(from, extents), err = nr < 0 ? nr : 0;

	for (i = 0; i < nr && !err; i++)
		err = compare_hosts(store, from, &extents[i], ret_overlap);
	return err;
}

struct merging {
	struct sb_store *store, *from;
	size_t level;
};

static int add_block(struct merging *merging, struct sb_segment *segment,
		     const struct sb_record *block)
{
	const struct sb_segment_time time = {
		.begin_s = sb_level_begin(merging->level, block->begin_s),
		.seconds = sb_levels[merging->level].seconds,
		.lead_ms = block->lead_ms,
		.length_ms = block->length_ms,
	};
	struct sb_sums sums = {};
	int err = sb_sums_fit(&sums, &segment->dict);

	if (!err)
		err = sb_segment_add(segment, block, &sums.sums);
	if (!err)
		err = sb_store_transfer(merging->store, merging->level, &time, &block->kind,
					&segment->dict, &sums.sums);
	sb_sums_release(&sums);
	/* Damaged blocks are left out. */
	return err == -EBADMSG ? 0 : err;
}

static int merge_file(void *arg, const char *name, int64_t begin_s)
{
	struct merging *merging = arg;
	struct sb_segment segment;
	size_t i;
	int err = sb_segment_read(&segment, merging->from->dir_fd, name);

	if (err)
		return err == -ENOENT ? 0 : err;
	for (i = 0; i < segment.blocks.nr && !err; i++) {
		const struct sb_record *block = &segment.blocks.at[i];

		if (begin_s == sb_level_file_begin(merging->level, block->begin_s))
			err = add_block(merging, &segment, block);
	}
	sb_segment_release(&segment);
	return err;
}

int sb_store_merge(struct sb_store *store, struct sb_store *from, int64_t now_s)
{
	struct merging merging = { .store = store, .from = from };
	int err = store->lock_fd < 0 || from->lock_fd < 0 ? -EINVAL
							  : sb_store_downsample(store, now_s);

	/* Both up to the same time: later aggregates are made of blocks that were added. */
	if (!err)
		err = sb_store_downsample(from, now_s);
	for (; merging.level < SB_STORE_LEVELS && !err; merging.level++)
		err = sb_store_each_file(from, merging.level, merge_file, &merging);
	return err;
}
