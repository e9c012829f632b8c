// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writing. A block becomes sums over the rows of its file's dictionary (add_rows()), and is
 * appended to that file. A stack that has no room in the dictionary becomes "(other)" of its series
 * or its owner (share.h). A block that comes late is also added to the aggregates of its periods,
 * as further blocks of the same time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/store_priv.h"

static int add_row(struct sb_dict *dict, const struct sb_row_key *key, uint64_t weight,
		   struct sb_sums *sums)
{
	uint32_t row;
	int err = 0;

	if (*key->tags_id == SB_DICT_NONE)
		err = sb_dict_tags(dict, key->tags, key->nr_tags, key->tags_id);
	if (!err)
		err = sb_dict_row(dict, *key->tags_id, key->node, &row);
	if (!err)
		err = sb_sums_fit(sums, dict);
	if (!err)
		sums->weight.at[row] += weight;
	return err;
}

/*
 * Find or add a row "(other)" for these tags; @is_last: for the owner alone, which always has room.
 */
static int find_other(struct sb_dict *dict, const struct sb_tag *tags, size_t nr, bool is_last,
		      uint32_t *ret_row)
{
	static const struct sb_frame frame = { .name = SB_SHARE_OTHER, .kind = SB_FRAME_MARK };
	uint32_t frame_id, node, tags_id = SB_DICT_NONE;
	int err, may_add;

	dict->may_use_spare = true;
	err = sb_dict_frame(dict, &frame, &frame_id);
	if (!err)
		err = sb_dict_node(dict, 0, frame_id, &node);
	dict->may_use_spare = is_last;
	if (!err)
		err = sb_dict_tags(dict, tags, nr, &tags_id);
	if (!err)
		err = sb_dict_row(dict, tags_id, node, ret_row);
	if (err == -E2BIG && !is_last && tags_id != SB_DICT_NONE) {
		may_add = sb_dict_may_add_other(dict);
		dict->may_use_spare = true;
		if (may_add)
			err = may_add < 0 ? may_add : sb_dict_row(dict, tags_id, node, ret_row);
	}
	dict->may_use_spare = false;
	return err;
}

/* Weight without room keeps the narrow tags of its series, or at least those of its owner. */
static int add_other(struct sb_dict *dict, const struct sb_row_key *key, uint64_t weight,
		     struct sb_sums *sums)
{
	struct sb_tag narrow[SB_DICT_TAGS_MAX];
	struct sb_share_tags owner;
	size_t i, nr = 0;
	uint32_t row;
	int err;

	for (i = 0; i < key->nr_tags; i++)
		if (!key->tags[i].is_wide)
			narrow[nr++] = key->tags[i];
	err = find_other(dict, narrow, nr, false, &row);
	if (err == -E2BIG) {
		sb_share_tags(sb_dict_owner(dict), key->tags, key->nr_tags, &owner);
		err = find_other(dict, owner.at, owner.nr, true, &row);
	}
	if (!err)
		err = sb_sums_fit(sums, dict);
	if (!err)
		sums->weight.at[row] += weight;
	sums->sums.figure[SB_BLOCK_OTHER] += key->is_other ? 0 : weight;
	return err;
}

int sb_store_add_row(struct sb_dict *dict, const struct sb_row_key *key, uint64_t weight,
		     struct sb_sums *sums)
{
	int err = key->has_no_node ? -E2BIG : add_row(dict, key, weight, sums);

	return err == -E2BIG ? add_other(dict, key, weight, sums) : err;
}

/* Blocks. */

int sb_store_out(struct sb_store *store, size_t level, int64_t time_s,
		 struct sb_segment **ret_segment)
{
	struct sb_store_file *out = &store->out[level];
	char name[SB_LEVEL_NAME_MAX];
	int err;

	store->has_used_sums |= level > 0;
	sb_level_file(level, time_s, name);
	if (!out->is_open || !sb_streq(out->name, name)) {
		if (out->is_open)
			sb_segment_release(&out->segment);
		out->is_open = false;
		err = sb_segment_open(&out->segment, store->dir_fd, name);
		if (err)
			return err;
		out->is_open = true;
		memcpy(out->name, name, sizeof(name));
	}
	*ret_segment = &out->segment;
	return 0;
}

/* Scratch while the rows of a block are added. */
struct rows {
	const struct sb_store_block *block;
	uint32_t *order; /* indexes of the profile's rows, by series, and then as they are there */
	size_t *end;	 /* where each series ends in `order` */
	uint32_t *frame; /* of the dictionary, by frame of the profile; SB_DICT_NONE: not yet */
	SB_VEC(uint32_t) path; /* of the rows of a batch, one after the other */
};

static size_t nr_rows(const struct sb_store_block *block)
{
	return block->profile ? sb_profile_nr_stacks(block->profile) : 0;
}

static void rows_release(struct rows *rows)
{
	free(rows->order);
	free(rows->end);
	free(rows->frame);
	sb_vec_release(&rows->path);
}

/* Return: 0 or -ENOMEM. */
static int rows_init(struct rows *rows, const struct sb_dict *dict,
		     const struct sb_store_block *block)
{
	const size_t nr = nr_rows(block), nr_frames = nr ? sb_profile_nr_frames(block->profile) : 0;
	size_t i, begin = 0, count;

	*rows = (struct rows){
		.block = block,
		.order = malloc((nr + 1) * sizeof(*rows->order)),
		.end = calloc(block->nr + 1, sizeof(*rows->end)),
		.frame = malloc((nr_frames + 1) * sizeof(*rows->frame)),
	};
	if (!rows->order || !rows->end || !rows->frame) {
		rows_release(rows);
		return -ENOMEM;
	}
	if (nr_frames)
		sb_dict_find_frames(dict, block->profile, rows->frame);
	for (i = 0; i < nr; i++)
		rows->end[sb_profile_row_at(block->profile, i).series]++;
	for (i = 0; i < block->nr; i++, begin += count) {
		count = rows->end[i];
		rows->end[i] = begin;
	}
	for (i = 0; i < nr; i++)
		rows->order[rows->end[sb_profile_row_at(block->profile, i).series]++] = (uint32_t)i;
	return 0;
}

/* Rows whose stacks are looked up together. */
struct batch {
	size_t nr;
	int err[SB_DICT_BATCH]; /* -E2BIG: a frame has no room */
	uint64_t weight[SB_DICT_BATCH];
	struct sb_dict_path path[SB_DICT_BATCH];
};

/* Find or add the frames of @row that rows->frame does not have yet: those of @path that are
 * SB_DICT_NONE. Return: 0, -E2BIG or -ENOMEM. */
static int add_frames(struct sb_dict *dict, struct rows *rows, const struct sb_row *row,
		      uint32_t *path)
{
	size_t k;
	int err = 0;

	for (k = 0; k < row->nr && !err; k++) {
		const uint32_t id = row->frames[k];

		if (rows->frame[id] == SB_DICT_NONE)
			err = sb_dict_frame(dict, sb_profile_frame_at(rows->block->profile, id),
					    &rows->frame[id]);
		path[k] = rows->frame[id];
	}
	return err;
}

/* Append the frames of @row to rows->path, as IDs of the dictionary. Return: 0; -E2BIG or -ENOMEM,
 * and nothing is appended. */
static int push_path(struct sb_dict *dict, struct rows *rows, const struct sb_row *row)
{
	int err = sb_vec_reserve(&rows->path, rows->path.nr + row->nr + 1);
	uint32_t *path = rows->path.at + rows->path.nr;
	const uint32_t *frame = rows->frame;
	bool is_known = true;
	size_t k;

	for (k = 0; k < row->nr && !err; k++) {
		path[k] = frame[row->frames[k]];
		is_known &= path[k] != SB_DICT_NONE;
	}
	if (!is_known)
		err = add_frames(dict, rows, row, path);
	rows->path.nr += err ? 0 : row->nr;
	return err;
}

/* Read the rows from @begin on, before @end, as many as fit. Return: 0 or -ENOMEM. */
static int fill_batch(struct sb_dict *dict, struct rows *rows, size_t begin, size_t end,
		      struct batch *batch)
{
	size_t i;

	rows->path.nr = 0;
	batch->nr = end - begin < SB_DICT_BATCH ? end - begin : SB_DICT_BATCH;
	for (i = 0; i < batch->nr; i++) {
		const struct sb_row row =
			sb_profile_row_at(rows->block->profile, rows->order[begin + i]);

		batch->weight[i] = row.weight;
		batch->err[i] = push_path(dict, rows, &row);
		batch->path[i].nr = batch->err[i] ? 0 : row.nr;
		if (batch->err[i] && batch->err[i] != -E2BIG)
			return batch->err[i];
	}
	return 0;
}

/* Add the weight of a row that was not found in the dictionary: its stack, or its stack with these
 * tags. */
static int add_path(struct sb_dict *dict, struct sb_row_key *key, const struct sb_dict_path *path,
		    int err, uint64_t weight, struct sb_sums *sums)
{
	key->node = path->node;
	if (!err && path->node == SB_DICT_NONE)
		err = sb_dict_path(dict, path->frames, path->nr, &key->node);
	key->has_no_node = err == -E2BIG;
	return err && !key->has_no_node ? err : sb_store_add_row(dict, key, weight, sums);
}

static int add_batch(struct sb_dict *dict, struct rows *rows, struct sb_row_key *key,
		     struct batch *batch, struct sb_sums *sums)
{
	size_t i, at = 0;
	int err = sb_sums_fit(sums, dict);

	/* Only now, since the vector moves when it grows. */
	for (i = 0; i < batch->nr; at += batch->path[i++].nr)
		batch->path[i].frames = rows->path.at + at;
	sb_dict_find_paths(dict, *key->tags_id, batch->path, batch->nr);
	for (i = 0; i < batch->nr && !err; i++) {
		if (!batch->err[i] && batch->path[i].row != SB_DICT_NONE)
			sums->weight.at[batch->path[i].row] += batch->weight[i];
		else
			err = add_path(dict, key, &batch->path[i], batch->err[i], batch->weight[i],
				       sums);
	}
	return err;
}

static int add_series(struct sb_dict *dict, struct rows *rows, size_t i_series,
		      struct sb_sums *sums)
{
	const struct sb_store_series *series = &rows->block->series[i_series];
	uint32_t tags_id = SB_DICT_NONE;
	size_t i = i_series ? rows->end[i_series - 1] : 0;
	struct sb_row_key key = {
		.tags = series->tags,
		.nr_tags = series->nr_tags,
		.tags_id = &tags_id,
	};
	struct batch batch;
	int err = 0;

	sb_dict_set_owner(dict, series->tags, series->nr_tags);
	for (; i < rows->end[i_series] && !err; i += batch.nr) {
		err = fill_batch(dict, rows, i, rows->end[i_series], &batch);
		if (!err)
			err = add_batch(dict, rows, &key, &batch, sums);
	}
	sb_dict_set_owner(dict, NULL, 0);
	return err;
}

/* All series share the profile's frames, so each frame is looked up by its text once. */
static int add_rows(struct sb_dict *dict, const struct sb_store_block *block, struct sb_sums *sums)
{
	struct rows rows;
	size_t i;
	int err = rows_init(&rows, dict, block);

	if (err)
		return err;
	for (i = 0; i < block->nr && !err; i++)
		err = add_series(dict, &rows, i, sums);
	rows_release(&rows);
	return err;
}

/* Aggregates of its periods exist already: append another one. Blocks of one time add up. */
static int add_late(struct sb_store *store, int64_t begin_s, const struct sb_store_kind *kind,
		    const struct sb_dict *dict, const struct sb_segment_sums *sums)
{
	size_t level;
	int err = 0;

	for (level = 1; level < SB_STORE_LEVELS && !err; level++) {
		int64_t period_s = sb_level_begin(level, begin_s);
		int ret = period_s < store->rolled_s[level]
				  ? 1
				  : sb_store_is_summed(store, level, period_s, kind);

		err = ret > 0 ? sb_store_transfer(store, level,
						  &(struct sb_segment_time){
							  period_s, sb_levels[level].seconds },
						  kind, dict, sums)
			      : ret;
	}
	return err;
}

static bool has_valid_series(const struct sb_store_block *block)
{
	size_t i;

	for (i = 0; i < block->nr; i++)
		if (block->series[i].nr_tags > SB_DICT_TAGS_MAX)
			return false;
	for (i = 0; i < nr_rows(block); i++)
		if (sb_profile_row_at(block->profile, i).series >= block->nr)
			return false;
	return true;
}

int sb_store_put(struct sb_store *store, const struct sb_store_block *block)
{
	const uint64_t length_ms = block->figure[SB_BLOCK_SAMPLED_MS];
	const struct sb_segment_time time = {
		.begin_s = block->begin_s,
		.seconds = SB_STORE_BLOCK_S,
		.lead_ms = block->lead_ms,
		.length_ms = length_ms < UINT32_MAX ? (uint32_t)length_ms : UINT32_MAX,
	};
	struct sb_sums sums = {};
	struct sb_store_kind kind;
	struct sb_segment *out;
	uint64_t nr_cut;
	int err;

	if (store->lock_fd < 0 || block->begin_s % SB_STORE_BLOCK_S || block->begin_s < 0 ||
	    block->begin_s >= SB_LEVEL_TIME_MAX || !has_valid_series(block) ||
	    !sb_store_kind_set(block->kind, block->unit, &kind))
		return -EINVAL;
	err = sb_store_downsample(store, block->begin_s);
	store->has_used_sums = false;
	if (!err)
		err = sb_store_out(store, 0, block->begin_s, &out);
	memcpy(sums.sums.figure, block->figure, sizeof(sums.sums.figure));
	nr_cut = err ? 0 : out->dict.nr_names_cut;
	if (!err)
		err = add_rows(&out->dict, block, &sums);
	if (!err)
		err = sb_sums_fit(&sums, &out->dict);
	if (!err)
		sums.sums.figure[SB_BLOCK_NAMES_CUT] += out->dict.nr_names_cut - nr_cut;
	if (!err)
		err = sb_segment_append(out, &time, &kind, &sums.sums);
	/* The block is in the file from here on: to put it again would count it twice. */
	if (!err) {
		store->put_err = add_late(store, block->begin_s, &kind, &out->dict, &sums.sums);
		if (!store->opts.no_sync && fdatasync(out->fd) && !store->put_err)
			store->put_err = -errno;
	}
	/* Late blocks tend to come in a row: keep the files that they used open. */
	if (!store->has_used_sums)
		sb_store_close_sums(store);
	sb_sums_release(&sums);
	return err;
}

int sb_store_put_status(const struct sb_store *store)
{
	return store->put_err;
}
