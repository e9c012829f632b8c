// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Downsampling: when a period of a level is over, its aggregate is made of the blocks of the level
 * below. rolled_s says up to when this was done, and is found again after opening
 * (sb_store_find_rolled()). The clock may have been wrong: then there are blocks, and aggregates,
 * of times to come.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/store_priv.h"

/* Moves rows from one dictionary to another. */
struct transfer {
	const struct sb_dict *from;
	struct sb_dict *to;
	bool keeps_wide;
	uint32_t *frame, *node, *tags; /* IDs of @to, by ID of @from; SB_DICT_NONE: not yet */
	SB_VEC(uint32_t) path;	       /* scratch */
	struct sb_sums sums;
};

static void release_transfer(struct transfer *transfer)
{
	free(transfer->frame);
	free(transfer->node);
	free(transfer->tags);
	sb_vec_release(&transfer->path);
	sb_sums_release(&transfer->sums);
}

static int begin_transfer(struct transfer *transfer)
{
	const struct sb_dict *from = transfer->from;

	transfer->frame = malloc((from->frames.nr + 1) * sizeof(*transfer->frame));
	transfer->node = malloc((from->nodes.nr + 1) * sizeof(*transfer->node));
	transfer->tags = malloc((from->tags.nr + 1) * sizeof(*transfer->tags));
	if (!transfer->frame || !transfer->node || !transfer->tags)
		return -ENOMEM;
	memset(transfer->tags, 0xff, (from->tags.nr + 1) * sizeof(*transfer->tags));
	memset(transfer->frame, 0xff, (from->frames.nr + 1) * sizeof(*transfer->frame));
	memset(transfer->node, 0xff, (from->nodes.nr + 1) * sizeof(*transfer->node));
	transfer->node[0] = 0;
	return 0;
}

static int transfer_frame(struct transfer *transfer, uint32_t id, uint32_t *ret_id)
{
	struct sb_frame frame = sb_dict_frame_at(transfer->from, id);
	int err;

	if (id != SB_DICT_NONE && transfer->frame[id] != SB_DICT_NONE) {
		*ret_id = transfer->frame[id];
		return 0;
	}
	err = sb_dict_frame(transfer->to, &frame, ret_id);
	if (!err && id != SB_DICT_NONE)
		transfer->frame[id] = *ret_id;
	return err;
}

/* Starts at the nearest node that was transferred already. */
static int transfer_node(struct transfer *transfer, uint32_t id, uint32_t *ret_id)
{
	const struct sb_dict *from = transfer->from;
	uint32_t frame, to;
	int err = 0;

	transfer->path.nr = 0;
	for (; transfer->node[id] == SB_DICT_NONE && !err; id = from->nodes.at[id].parent)
		err = sb_vec_push(&transfer->path, id);
	to = transfer->node[id];
	while (transfer->path.nr && !err) {
		id = transfer->path.at[--transfer->path.nr];
		err = transfer_frame(transfer, from->nodes.at[id].frame, &frame);
		if (!err)
			err = sb_dict_node(transfer->to, to, frame, &to);
		if (!err)
			transfer->node[id] = to;
	}
	*ret_id = to;
	return err;
}

static int transfer_row(struct transfer *transfer, const struct sb_dict_row *row, uint64_t weight)
{
	struct sb_tag tags[SB_DICT_TAGS_MAX];
	size_t nr = sb_dict_tags_at(transfer->from, row->tags, tags), i;
	struct sb_row_key key = { .tags = tags, .tags_id = &transfer->tags[row->tags] };
	int err;

	key.is_other = sb_dict_is_other(transfer->from, row->node);
	for (i = 0; i < nr; i++)
		if (!tags[i].is_wide || transfer->keeps_wide)
			tags[key.nr_tags++] = tags[i];
	sb_dict_set_owner(transfer->to, tags, key.nr_tags);
	err = transfer_node(transfer, row->node, &key.node);
	key.has_no_node = err == -E2BIG;
	if (!err || key.has_no_node)
		err = sb_store_add_row(transfer->to, &key, weight, &transfer->sums);
	sb_dict_set_owner(transfer->to, NULL, 0);
	return err;
}

int sb_store_transfer(struct sb_store *store, size_t level, const struct sb_segment_time *time,
		      const struct sb_store_kind *kind, const struct sb_dict *from,
		      const struct sb_segment_sums *sums)
{
	struct transfer transfer = { .from = from, .keeps_wide = !level };
	struct sb_segment *out;
	uint64_t nr_cut;
	size_t i;
	int err = sb_store_out(store, level, time->begin_s, &out);

	if (err)
		return err;
	if (store->summed_s[level] < time->begin_s + (int64_t)time->seconds)
		store->summed_s[level] = time->begin_s + time->seconds;
	transfer.to = &out->dict;
	nr_cut = out->dict.nr_names_cut;
	memcpy(transfer.sums.sums.figure, sums->figure, sizeof(sums->figure));
	err = begin_transfer(&transfer);
	for (i = 0; i < from->rows.nr && !err; i++)
		if (sums->weight[i])
			err = transfer_row(&transfer, &from->rows.at[i], sums->weight[i]);
	if (!err)
		err = sb_sums_fit(&transfer.sums, &out->dict);
	if (!err)
		transfer.sums.sums.figure[SB_BLOCK_NAMES_CUT] += out->dict.nr_names_cut - nr_cut;
	if (!err)
		err = sb_segment_append(out, time, kind, &transfer.sums.sums);
	release_transfer(&transfer);
	return err;
}

/* Periods. */

/* Blocks of the level below, by index. */
struct period {
	size_t begin, first, end;
	bool *is_done;
};

int sb_store_is_summed(struct sb_store *store, size_t level, int64_t begin_s,
		       const struct sb_store_kind *kind)
{
	struct sb_segment *out;
	size_t i;
	int err;

	if (begin_s >= store->summed_s[level])
		return 0;
	err = sb_store_out(store, level, begin_s, &out);
	if (err)
		return err;
	for (i = sb_segment_find(out, begin_s); i < sb_segment_find(out, begin_s + 1); i++)
		if (!memcmp(&out->blocks.at[i].kind, kind, sizeof(*kind)))
			return 1;
	return 0;
}

/* Aggregate the blocks that have the kind of the block @first, and mark them in @is_done. */
static int sum_kind(struct sb_store *store, size_t level, int64_t begin_s, struct sb_segment *below,
		    const struct period *period)
{
	const struct sb_store_kind kind = below->blocks.at[period->first].kind;
	struct sb_sums sums = {};
	size_t i, nr = 0;
	/* The last writer may have made the aggregates of some kinds of a period only. */
	int err = sb_store_is_summed(store, level, begin_s, &kind);
	bool is_old = err > 0;

	if (!err)
		err = sb_sums_fit(&sums, &below->dict);
	for (i = period->first; i < period->end && err >= 0; i++) {
		if (memcmp(&below->blocks.at[i].kind, &kind, sizeof(kind)))
			continue;
		period->is_done[i - period->begin] = true;
		if (is_old)
			continue;
		err = sb_segment_add(below, &below->blocks.at[i], &sums.sums);
		nr += !err;
		if (err == -EBADMSG) /* what is left is worth a sum */
			err = 0;
	}
	if (!err && nr)
		err = sb_store_transfer(
			store, level,
			&(struct sb_segment_time){ begin_s, sb_levels[level].seconds }, &kind,
			&below->dict, &sums.sums);
	sb_sums_release(&sums);
	return err < 0 ? err : 0;
}

static int sum_period(struct sb_store *store, size_t level, int64_t begin_s,
		      struct sb_segment *below)
{
	struct period period = {
		.begin = sb_segment_find(below, begin_s),
		.end = sb_segment_find(below, begin_s + (int64_t)sb_levels[level].seconds),
	};
	int err = 0;

	if (period.begin == period.end)
		return 0;
	period.is_done = calloc(period.end - period.begin, sizeof(*period.is_done));
	if (!period.is_done)
		return -ENOMEM;
	for (period.first = period.begin; period.first < period.end && !err; period.first++)
		if (!period.is_done[period.first - period.begin])
			err = sum_kind(store, level, begin_s, below, &period);
	free(period.is_done);
	return err;
}

/* A file that is open for writing need not be read. Return: 0, -ENOENT, others of I/O. */
static int read_below(struct sb_store *store, size_t level, const char *name,
		      struct sb_segment *scratch, struct sb_segment **ret_below)
{
	struct sb_store_file *out = &store->out[level - 1];

	*ret_below = &out->segment;
	if (out->is_open && sb_streq(out->name, name))
		return 0;
	*ret_below = scratch;
	return sb_segment_read(scratch, store->dir_fd, name);
}

struct rolling {
	struct sb_store *store;
	size_t level;
	int64_t end_s;
};

/*
 * Aggregate the periods that have blocks in a file of the level below, up to rolling->end_s. Hops
 * from block to block: a file can have one at each end of its time, and the next file can be
 * millennia away.
 */
static int roll_periods(struct rolling *rolling, struct sb_segment *below, int64_t file_end_s)
{
	int64_t *rolled_s = &rolling->store->rolled_s[rolling->level], begin_s;
	size_t at;
	int err = 0;

	while (!err) {
		at = sb_segment_find(below, *rolled_s);
		begin_s = at < below->blocks.nr
				  ? sb_level_begin(rolling->level, below->blocks.at[at].begin_s)
				  : file_end_s;
		if (begin_s >= file_end_s || begin_s >= rolling->end_s)
			break;
		err = sum_period(rolling->store, rolling->level, begin_s, below);
		if (!err)
			*rolled_s = begin_s + sb_levels[rolling->level].seconds;
	}
	return err;
}

static int roll_file(void *arg, const char *name, int64_t begin_s)
{
	struct rolling *rolling = arg;
	struct sb_store *store = rolling->store;
	int64_t file_end_s = sb_level_file_end(rolling->level - 1, begin_s);
	int64_t *rolled_s = &store->rolled_s[rolling->level];
	struct sb_segment scratch, *below;
	int err;

	if (file_end_s <= *rolled_s || begin_s >= rolling->end_s)
		return 0;
	if (*rolled_s < begin_s)
		*rolled_s = begin_s;
	err = read_below(store, rolling->level, name, &scratch, &below);
	if (err)
		return err == -ENOENT ? 0 : err;
	err = roll_periods(rolling, below, file_end_s);
	if (below == &scratch)
		sb_segment_release(&scratch);
	return err;
}

/* The clock was ahead: aggregates of future periods are made again when these are over. */
static void set_back(struct sb_store *store, size_t level, int64_t end_s)
{
	int64_t now_s = sb_level_begin(level, time(NULL));

	if (store->rolled_s[level] > now_s)
		store->rolled_s[level] = now_s > end_s ? now_s : end_s;
}

void sb_store_close_sums(struct sb_store *store)
{
	size_t level;

	for (level = 1; level < SB_STORE_LEVELS; level++) {
		if (store->out[level].is_open)
			sb_segment_release(&store->out[level].segment);
		store->out[level].is_open = false;
	}
}

int sb_store_downsample(struct sb_store *store, int64_t now_s)
{
	struct rolling rolling = { .store = store, .level = 1 };
	bool has_rolled = false;
	int err = 0;

	for (; rolling.level < SB_STORE_LEVELS && !err; rolling.level++) {
		int64_t *rolled_s = &store->rolled_s[rolling.level];

		rolling.end_s = sb_level_begin(rolling.level, now_s);
		if (*rolled_s > rolling.end_s)
			set_back(store, rolling.level, rolling.end_s);
		else if (*rolled_s && *rolled_s < rolling.end_s)
			err = sb_store_each_file(store, rolling.level - 1, roll_file, &rolling);
		if (err || *rolled_s >= rolling.end_s)
			continue;
		*rolled_s = rolling.end_s;
		has_rolled = true;
		/* The next level reads what was added to by ID only. */
		if (store->out[rolling.level].is_open)
			sb_dict_drop_indexes(&store->out[rolling.level].segment.dict);
	}
	if (has_rolled)
		sb_store_close_sums(store);
	return err;
}

/* After opening. */

/*
 * The last block that does not begin after @now_s, or the first one after it; and the end of the
 * last one.
 */
struct edge {
	struct sb_store *store;
	int64_t now_s;
	int64_t begin_s, end_s; /* 0: none */
};

static int note_edge(struct edge *edge, const char *name)
{
	struct sb_segment segment;
	size_t i;
	int err = name[0] ? sb_segment_list(&segment, edge->store->dir_fd, name) : -ENOENT;

	if (err)
		return err == -ENOENT ? 0 : err;
	for (i = 0; i < segment.blocks.nr; i++) {
		const struct sb_record *block = &segment.blocks.at[i];

		if (block->begin_s <= edge->now_s || !edge->begin_s)
			edge->begin_s = block->begin_s;
		if (block->begin_s + block->seconds > edge->end_s)
			edge->end_s = block->begin_s + block->seconds;
	}
	sb_segment_release(&segment);
	return 0;
}

struct last_files {
	int64_t now_s, first_begin_s;
	char before[SB_LEVEL_NAME_MAX]; /* the one before `past` */
	char past[SB_LEVEL_NAME_MAX];	/* the last one that does not begin after now */
	char last[SB_LEVEL_NAME_MAX];
};

static int note_last(void *arg, const char *name, int64_t begin_s)
{
	struct last_files *files = arg;

	if (!files->last[0])
		files->first_begin_s = begin_s;
	memcpy(files->last, name, sizeof(files->last));
	if (begin_s > files->now_s)
		return 0;
	memcpy(files->before, files->past, sizeof(files->before));
	memcpy(files->past, name, sizeof(files->past));
	return 0;
}

/* Lower *time_s to the begin of the block that was written last to a file. */
static int note_written(struct sb_store *store, const char *name, int64_t *time_s)
{
	struct sb_segment segment;
	const struct sb_record *last = NULL;
	size_t i;
	int err = name[0] ? sb_segment_list(&segment, store->dir_fd, name) : -ENOENT;

	if (err)
		return err == -ENOENT ? 0 : err;
	for (i = 0; i < segment.blocks.nr; i++)
		if (!last || segment.blocks.at[i].at > last->at)
			last = &segment.blocks.at[i];
	if (last && last->begin_s < *time_s)
		*time_s = last->begin_s;
	sb_segment_release(&segment);
	return 0;
}

/*
 * Find the time at which the last writer was when it ended. If its clock had been ahead before,
 * there are later blocks, and aggregates of them, perhaps in the next day's file; so two files are
 * looked at.
 */
static int find_written(struct sb_store *store, int64_t now_s, int64_t *ret_time_s)
{
	struct last_files files = { .now_s = now_s };
	int err = sb_store_each_file(store, 0, note_last, &files);

	*ret_time_s = INT64_MAX;
	if (!err)
		err = note_written(store, files.before, ret_time_s);
	return err ? err : note_written(store, files.past, ret_time_s);
}

/*
 * Find from when on aggregates are missing. A clock that was ahead has made aggregates of future
 * periods.
 */
static int find_rolled(struct sb_store *store, size_t level, int64_t now_s)
{
	struct edge edge = { .store = store, .now_s = now_s }, end = edge;
	struct last_files files = { .now_s = now_s }, below = files;
	int err = sb_store_each_file(store, level, note_last, &files);

	if (!err)
		err = note_edge(&edge, files.past[0] ? files.past : files.last);
	if (!err && !sb_streq(files.past, files.last))
		err = note_edge(&end, files.last);
	store->summed_s[level] = edge.end_s > end.end_s ? edge.end_s : end.end_s;
	/* Begin with the last period again: some of its kinds may have no aggregate yet. */
	if (edge.begin_s)
		store->rolled_s[level] = sb_level_begin(level, edge.begin_s);
	if (err || edge.begin_s)
		return err;
	/* There are no aggregates yet: begin with the oldest block of the level below. */
	err = sb_store_each_file(store, level - 1, note_last, &below);
	if (!err && below.last[0])
		store->rolled_s[level] = sb_level_begin(level, below.first_begin_s);
	/* Nor on the level below, which is made first, from the time found for it. */
	else if (!err)
		store->rolled_s[level] = sb_level_begin(level, store->rolled_s[level - 1]);
	return err;
}

int sb_store_find_rolled(struct sb_store *store, int64_t now_s)
{
	int64_t written_s, begin_s;
	size_t level;
	int err = find_written(store, now_s, &written_s);

	for (level = 1; level < SB_STORE_LEVELS && !err; level++) {
		err = find_rolled(store, level, now_s);
		begin_s = sb_level_begin(level, written_s);
		if (store->rolled_s[level] > begin_s)
			store->rolled_s[level] = begin_s;
	}
	return err;
}
