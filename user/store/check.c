// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An aggregate and its finer blocks are in files with dictionaries of their own. To compare rows,
 * each gets a 64-bit hash of its narrow tags and of the texts of its frames; with a million rows,
 * two have the same hash by chance in one of 10^7 stores. The code that makes aggregates is not
 * used here.
 */
#include "store/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/index.h"
#include "store/store_priv.h"

/* While there is a writer, what seems wrong may be incomplete: read it this many times. */
#define TRIES_MAX 3

/* A stack with its narrow tags, from either file. */
struct key {
	uint64_t hash;
	uint32_t host; /* index of its name */
	bool is_other; /* "(other)" */
};

struct side {
	struct sb_segment segment;
	bool is_open, is_whole;
	uint32_t *key_of; /* by row */
};

struct pair {
	struct sb_store *store;
	struct sb_store_sums_check *check;
	size_t level;
	const char *name, *finer;
	struct side upper, lower;
	SB_VEC(struct key) keys;
	struct sb_index index;
	struct sb_strtab hosts;
	SB_VEC(uint64_t)
	diff; /* by key: weight of the aggregate minus that of the finer blocks, mod 2^64 */
	SB_VEC(bool) has_host; /* by host: it occurs in the finer blocks of the period */
	SB_VEC(struct sb_store_wrong_sum) wrong;
	uint64_t nr_equal, nr_compared;
	int64_t lower_begin_s;
};

/* ---- keys ---- */

static uint64_t mix(uint64_t a, uint64_t b)
{
	const uint64_t both[2] = { a, b };

	return sb_hash(both, sizeof(both), 0);
}

static uint64_t hash_text(const char *text, uint64_t seed)
{
	/* With the NUL, so that the hash depends on where texts end. */
	return text ? sb_hash(text, strlen(text) + 1, seed) : seed;
}

static uint64_t hash_frame(const struct sb_frame *frame)
{
	return hash_text(frame->name,
			 hash_text(frame->module, (uint64_t)frame->kind << 1 | frame->is_unnamed));
}

/* Hash each node with all frames from the root to it. Parents come before their children. */
static uint64_t *hash_nodes(const struct sb_dict *dict)
{
	uint64_t *node = malloc((dict->nodes.nr + 1) * sizeof(*node));
	uint64_t *frame = malloc((dict->frames.nr + 1) * sizeof(*frame));
	struct sb_frame lost = sb_dict_frame_at(dict, SB_DICT_NONE), of;
	size_t i;

	for (i = 0; node && frame && i < dict->frames.nr; i++) {
		of = sb_dict_frame_at(dict, (uint32_t)i);
		frame[i] = hash_frame(&of);
	}
	for (i = 0; node && frame && i < dict->nodes.nr; i++) {
		uint32_t id = dict->nodes.at[i].frame;

		node[i] = i ? mix(node[dict->nodes.at[i].parent],
				  id == SB_DICT_NONE ? hash_frame(&lost) : frame[id])
			    : 0;
	}
	if (!frame) {
		free(node);
		node = NULL;
	}
	free(frame);
	return node;
}

static int add_key(struct pair *pair, const struct key *key, uint32_t *ret_id)
{
	int err;

	sb_index_each(it, &pair->index, key->hash)
		if (pair->keys.at[it.id].hash == key->hash) {
			*ret_id = it.id;
			return 0;
		}
	*ret_id = (uint32_t)pair->keys.nr;
	err = sb_index_push(&pair->index, key->hash, &pair->keys, *key);
	return err ?: sb_vec_push(&pair->diff, 0);
}

/* Hash a set of tags without the wide ones. */
static int take_tags(struct pair *pair, const struct sb_dict *dict, uint32_t id, struct key *ret)
{
	struct sb_tag tags[SB_DICT_TAGS_MAX];
	size_t i, nr = sb_dict_tags_at(dict, id, tags);
	const char *host = sb_tag_value(tags, nr, "host");
	int err = sb_strtab_add(&pair->hosts, host, strlen(host), &ret->host);

	ret->hash = 0;
	for (i = 0; i < nr; i++)
		if (!tags[i].is_wide)
			ret->hash = hash_text(tags[i].value, hash_text(tags[i].key, ret->hash));
	while (!err && pair->has_host.nr < pair->hosts.strs.nr)
		err = sb_vec_push(&pair->has_host, false);
	return err;
}

static int make_keys(struct pair *pair, struct side *side)
{
	const struct sb_dict *dict = &side->segment.dict;
	sb_cleanup(sb_freep) uint64_t *node = hash_nodes(dict);
	sb_cleanup(sb_freep) struct key *tags = calloc(dict->tags.nr + 1, sizeof(*tags));
	const struct sb_frame other_frame = { .name = SB_SHARE_OTHER, .kind = SB_FRAME_MARK };
	const uint64_t other = mix(0, hash_frame(&other_frame));
	size_t i;
	int err = 0;

	side->key_of = malloc((dict->rows.nr + 1) * sizeof(*side->key_of));
	if (!node || !tags || !side->key_of)
		return -ENOMEM;
	for (i = 0; i < dict->tags.nr && !err; i++)
		err = take_tags(pair, dict, (uint32_t)i, &tags[i]);
	for (i = 0; i < dict->rows.nr && !err; i++) {
		const struct sb_dict_row *row = &dict->rows.at[i];

		side->key_of[i] = SB_DICT_NONE;
		if (row->tags != SB_DICT_NONE)
			err = add_key(
				pair,
				&(struct key){ .hash = mix(tags[row->tags].hash, node[row->node]),
					       .host = tags[row->tags].host,
					       .is_other = node[row->node] == other },
				&side->key_of[i]);
	}
	return err;
}

/* ---- files ---- */

static void close_side(struct side *side)
{
	if (side->is_open)
		sb_segment_release(&side->segment);
	free(side->key_of);
	*side = (struct side){};
}

/* Return: 0 also if the file cannot be read: `store check` reports that elsewhere. */
static int open_side(struct pair *pair, struct side *side, const char *name)
{
	int err = sb_segment_read(&side->segment, pair->store->dir_fd, name);

	if (err)
		return err == -ENOMEM ? err : 0;
	side->is_open = true;
	side->is_whole = !side->segment.nr_damaged && !side->segment.nr_skipped_bytes &&
			 !side->segment.dict.nr_lost;
	return make_keys(pair, side);
}

static void forget(struct pair *pair)
{
	close_side(&pair->upper);
	close_side(&pair->lower);
	sb_vec_release(&pair->keys);
	sb_vec_release(&pair->diff);
	sb_vec_release(&pair->has_host);
	sb_vec_release(&pair->wrong);
	sb_index_release(&pair->index);
	sb_strtab_release(&pair->hosts);
	pair->nr_equal = pair->nr_compared = 0;
}

/* ---- one sum ---- */

/* A range of blocks of a file, by index. */
struct span {
	size_t first, end;
};

static bool is_kind(const struct sb_record *block, const struct sb_store_kind *kind)
{
	return !memcmp(&block->kind, kind, sizeof(*kind));
}

/*
 * Add the blocks of @kind to pair->diff, or subtract those of the lower file. Return: how many
 * there are; -EBADMSG if one cannot be read; -ENOMEM, others of I/O.
 */
static int add_blocks(struct pair *pair, struct side *side, struct span span,
		      const struct sb_store_kind *kind, uint64_t figure[SB_BLOCK_FIGURE_MAX],
		      uint64_t *ret_weight)
{
	uint64_t sign = side == &pair->upper ? 1 : UINT64_MAX;
	struct sb_block_rows rows;
	size_t i, k;
	int nr = 0, err;

	*ret_weight = 0;
	for (i = span.first; i < span.end; i++) {
		const struct sb_record *block = &side->segment.blocks.at[i];

		if (!is_kind(block, kind))
			continue;
		err = sb_segment_rows(&side->segment, block, &rows, figure);
		if (err)
			return err;
		for (k = 0; k < rows.nr; k++) {
			uint32_t key = rows.row[k] < side->segment.dict.rows.nr
					       ? side->key_of[rows.row[k]]
					       : SB_DICT_NONE;

			if (key == SB_DICT_NONE)
				return -EBADMSG;
			pair->diff.at[key] += sign * rows.weight[k];
			*ret_weight += rows.weight[k];
			if (side == &pair->lower)
				pair->has_host.at[pair->keys.at[key].host] = true;
		}
		nr++;
	}
	return nr;
}

/* Return: whether all stacks that differ are of hosts that occur in the finer blocks. */
static bool has_all_hosts(const struct pair *pair)
{
	for (size_t i = 0; i < pair->keys.nr; i++)
		if (pair->diff.at[i] && !pair->has_host.at[pair->keys.at[i].host])
			return false;
	return true;
}

/* Stacks that had no room in the aggregate's dictionary are "(other)" there: subtract these. */
static void take_moved(struct pair *pair, uint64_t nr_moved)
{
	for (size_t i = 0; i < pair->keys.nr && nr_moved; i++) {
		uint64_t *diff = &pair->diff.at[i], nr;

		if (!pair->keys.at[i].is_other || (int64_t)*diff <= 0)
			continue;
		nr = *diff < nr_moved ? *diff : nr_moved;
		*diff -= nr;
		nr_moved -= nr;
	}
}

static uint64_t nr_unequal(const struct pair *pair, uint64_t nr_moved)
{
	uint64_t nr = 0;

	for (size_t i = 0; i < pair->keys.nr; i++)
		/* Such stacks weigh less in the aggregate than in the finer blocks. */
		nr += pair->diff.at[i] && !(nr_moved && (int64_t)pair->diff.at[i] < 0);
	return nr;
}

static int compare(struct pair *pair, struct span upper, struct span lower,
		   struct sb_store_wrong_sum *sum)
{
	uint64_t have[SB_BLOCK_FIGURE_MAX] = {}, want[SB_BLOCK_FIGURE_MAX] = {}, nr_moved;
	int nr_upper, nr_lower;
	size_t i;

	/* The dictionary may have no stacks, and then there is no array. */
	if (pair->diff.nr)
		memset(pair->diff.at, 0, pair->diff.nr * sizeof(pair->diff.at[0]));
	if (pair->has_host.nr)
		memset(pair->has_host.at, 0, pair->has_host.nr * sizeof(pair->has_host.at[0]));
	nr_lower = add_blocks(pair, &pair->lower, lower, &sum->kind, want, &sum->finer_weight);
	nr_upper = nr_lower < 0
			   ? nr_lower
			   : add_blocks(pair, &pair->upper, upper, &sum->kind, have, &sum->weight);
	/* Damage is reported elsewhere. Without finer blocks there is nothing to compare. */
	if (nr_upper < 0 || !nr_lower)
		return nr_upper == -EBADMSG || nr_upper >= 0 ? 0 : nr_upper;
	sum->is_missing = !nr_upper;
	nr_moved = have[SB_BLOCK_OTHER] - want[SB_BLOCK_OTHER];
	take_moved(pair, nr_moved);
	sum->nr_stacks = nr_unequal(pair, nr_moved) + (sum->weight != sum->finer_weight);
	for (i = 0; i < SB_BLOCK_FIGURE_MAX; i++)
		sum->nr_figures += i != SB_BLOCK_OTHER && have[i] != want[i];
	if ((sum->nr_stacks || sum->nr_figures) && !has_all_hosts(pair))
		return 0;
	if ((sum->nr_stacks || sum->nr_figures || sum->is_missing) &&
	    sum->begin_s + sum->seconds > pair->check->now_s)
		return 0;
	pair->nr_compared += !sum->is_missing;
	if (!sum->nr_stacks && !sum->nr_figures && !sum->is_missing)
		pair->nr_equal++;
	else
		return sb_vec_push(&pair->wrong, *sum);
	return 0;
}

/* ---- all of two files ---- */

/* Kinds that were met; those beyond are left out, which is told. We never write more. */
struct kinds {
	const struct sb_store_kind *at[SB_STORE_KINDS_MAX];
	size_t nr;
};

/* Return: whether it is met for the first time. */
static bool is_new_kind(struct sb_store *store, struct kinds *kinds, const struct sb_record *block)
{
	for (size_t i = 0; i < kinds->nr; i++)
		if (is_kind(block, kinds->at[i]))
			return false;
	if (kinds->nr == SB_STORE_KINDS_MAX) {
		sb_store_tell_kinds(store);
		return false;
	}
	kinds->at[kinds->nr++] = &block->kind;
	return true;
}

static bool has_kind(const struct sb_segment *segment, struct span span,
		     const struct sb_store_kind *kind)
{
	for (; span.first < span.end; span.first++)
		if (is_kind(&segment->blocks.at[span.first], kind))
			return true;
	return false;
}

/* Check each kind of a period. It must have an aggregate if there is a later one. */
static int check_period(struct pair *pair, int64_t begin_s)
{
	uint32_t seconds = sb_levels[pair->level].seconds;
	const struct sb_segment *above = &pair->upper.segment, *below = &pair->lower.segment;
	struct span upper = { sb_segment_find(above, begin_s),
			      sb_segment_find(above, begin_s + 1) };
	struct span lower = { sb_segment_find(below, begin_s),
			      sb_segment_find(below, begin_s + seconds) };
	/* The last writer may have made the aggregates of some kinds only. */
	bool is_over = upper.end < above->blocks.nr;
	struct kinds kinds = {};
	size_t i;
	int err = 0;

	for (i = lower.first; i < lower.end && !err; i++) {
		struct sb_store_wrong_sum sum = { .kind = below->blocks.at[i].kind,
						  .begin_s = begin_s,
						  .seconds = seconds };

		if (!is_new_kind(pair->store, &kinds, &below->blocks.at[i]))
			continue;
		if (is_over || has_kind(above, upper, &sum.kind))
			err = compare(pair, upper, lower, &sum);
	}
	return err;
}

static int check_periods(struct pair *pair)
{
	const struct sb_segment *below = &pair->lower.segment;
	int64_t begin_s, file_end_s = sb_level_file_end(pair->level - 1, pair->lower_begin_s);
	size_t i = sb_segment_find(below, pair->lower_begin_s);
	int err = 0;

	/* Ignore blocks that belong into another file. */
	while (!err && i < below->blocks.nr && below->blocks.at[i].begin_s < file_end_s) {
		begin_s = sb_level_begin(pair->level, below->blocks.at[i].begin_s);
		err = check_period(pair, begin_s);
		i = sb_segment_find(below, begin_s + sb_levels[pair->level].seconds);
	}
	return err;
}

/* How many aggregates the file has: the kinds of each period. */
static uint64_t nr_sums(struct sb_store *store, const struct sb_segment *segment)
{
	struct kinds kinds = {};
	uint64_t nr = 0;
	size_t i;

	for (i = 0; i < segment->blocks.nr; i++) {
		const struct sb_record *block = &segment->blocks.at[i];

		if (i && block->begin_s != block[-1].begin_s)
			kinds.nr = 0;
		nr += is_new_kind(store, &kinds, block);
	}
	return nr;
}

static int report(struct pair *pair)
{
	struct sb_store_sums_check *check = pair->check;
	size_t i;

	for (i = 0; i < pair->wrong.nr; i++) {
		struct sb_store_wrong_sum *sum = &pair->wrong.at[i];

		sum->name = pair->name;
		sum->finer = pair->finer;
		check->on_wrong(check->arg, sum);
	}
	check->nr_equal += pair->nr_equal;
	check->nr_wrong += pair->wrong.nr;
	pair->nr_equal = pair->wrong.nr = 0;
	return 0;
}

/* One file of the level below. */
static int check_lower(struct pair *pair)
{
	int err = open_side(pair, &pair->lower, pair->finer);

	if (!err && pair->lower.is_open && pair->lower.is_whole)
		err = check_periods(pair);
	close_side(&pair->lower);
	return err;
}

/* Read the aggregates first: their blocks were written before them. */
static int open_upper(struct pair *pair)
{
	int err = sb_strtab_init(&pair->hosts);

	if (!err)
		err = sb_vec_push(&pair->has_host, false);
	return err ? err : open_side(pair, &pair->upper, pair->name);
}

static int on_lower(void *arg, const char *name, int64_t begin_s)
{
	struct pair *pair = arg;
	bool is_upper;
	int i, err = 0;
	char of[SB_LEVEL_NAME_MAX];

	sb_level_file(pair->level, begin_s, of);
	is_upper = sb_streq(of, pair->name);
	if (!is_upper || !pair->upper.is_open || !pair->upper.is_whole)
		return 0;
	pair->finer = name;
	pair->lower_begin_s = begin_s;
	for (i = 1;; i++) {
		uint64_t nr_compared = pair->nr_compared;

		err = check_lower(pair);
		if (err || !pair->wrong.nr || i == TRIES_MAX || !sb_store_has_writer(pair->store))
			break;
		pair->wrong.nr = 0;
		pair->nr_equal = 0;
		pair->nr_compared = nr_compared;
		close_side(&pair->upper);
		err = open_side(pair, &pair->upper, pair->name);
		if (err)
			break;
	}
	return err ? err : report(pair);
}

static int on_upper(void *arg, const char *name, int64_t begin_s)
{
	struct pair *pair = arg;
	int err;

	pair->name = name;
	err = open_upper(pair);
	if (!err)
		err = sb_store_each_file(pair->store, pair->level - 1, on_lower, pair);
	if (!err && pair->upper.is_open)
		pair->check->nr_left +=
			nr_sums(pair->store, &pair->upper.segment) - pair->nr_compared;
	forget(pair);
	return err;
}

int sb_store_check_sums(struct sb_store *store, struct sb_store_sums_check *check)
{
	struct pair pair = { .store = store, .check = check, .level = 1 };
	int err = 0;

	check->nr_equal = check->nr_wrong = check->nr_left = 0;
	for (; pair.level < SB_STORE_LEVELS && !err; pair.level++)
		err = sb_store_each_file(store, pair.level, on_upper, &pair);
	return err;
}
