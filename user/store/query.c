// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The fewest blocks that cover a range, and what they add up to. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/store_priv.h"

/* Deeper stacks were not made by us. */
#define DEPTH_MAX 4096u

/* A file that the range needs. */
struct part {
	char name[SB_LEVEL_NAME_MAX];
	bool is_there;
	struct sb_segment segment;
	struct sb_sums sums;
};

struct search {
	struct sb_store *store;
	struct sb_store_answer *answer;
	SB_VEC(struct part *) parts;
	struct part *last[SB_STORE_LEVELS];
};

static void release(struct search *search)
{
	size_t i;

	for (i = 0; i < search->parts.nr; i++) {
		if (search->parts.at[i]->is_there)
			sb_segment_release(&search->parts.at[i]->segment);
		sb_sums_release(&search->parts.at[i]->sums);
		free(search->parts.at[i]);
	}
	sb_vec_release(&search->parts);
}

static int open_part(struct search *search, struct part *part)
{
	int err = sb_segment_read(&part->segment, search->store->dir_fd, part->name);

	if (err == -ENOENT)
		return 0;
	if (err)
		return err;
	part->is_there = true;
	search->answer->nr_damaged += part->segment.nr_damaged;
	search->answer->nr_skipped_bytes += part->segment.nr_skipped_bytes;
	return sb_sums_fit(&part->sums, &part->segment.dict);
}

static int find_part(struct search *search, size_t level, int64_t time_s, struct part **ret_part)
{
	struct part *part = search->last[level];
	char name[SB_LEVEL_NAME_MAX];
	int err;

	sb_level_file(level, time_s, name);
	if (part && sb_streq(part->name, name)) {
		*ret_part = part;
		return 0;
	}
	/* Ranges are gone through from their beginning: what is not the last one is new. */
	part = calloc(1, sizeof(*part));
	if (!part)
		return -ENOMEM;
	memcpy(part->name, name, sizeof(name));
	err = sb_vec_push(&search->parts, part);
	if (err) {
		free(part);
		return err;
	}
	search->last[level] = *ret_part = part;
	return open_part(search, part);
}

/* All blocks of a part that begin in [from, to). Return: how many are whole, or a negative errno. */
static int add_blocks(struct search *search, struct part *part, int64_t from_s, int64_t to_s)
{
	struct sb_store_answer *answer = search->answer;
	size_t i;
	int nr = 0, err;

	for (i = 0; part->is_there && i < part->segment.blocks.nr; i++) {
		const struct sb_record *block = &part->segment.blocks.at[i];

		if (block->begin_s < from_s || block->begin_s >= to_s)
			continue;
		err = sb_segment_add(&part->segment, block, &part->sums.sums);
		if (err == -ENOMEM)
			return err;
		answer->nr_damaged += err != 0;
		if (err)
			continue;
		nr++;
		answer->nr_blocks++;
		if (!answer->from_s || block->begin_s < answer->from_s)
			answer->from_s = block->begin_s;
		if (block->begin_s + (int64_t)block->seconds > answer->to_s)
			answer->to_s = block->begin_s + block->seconds;
	}
	return nr;
}

static int64_t min_s(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t max_s(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The finest blocks. Return: how many, or a negative errno. */
static int cover_fine(struct search *search, int64_t from_s, int64_t to_s)
{
	int nr = 0, ret;

	while (from_s < to_s) {
		int64_t end_s = min_s(to_s, sb_level_file_end(0, from_s));
		struct part *part;

		ret = find_part(search, 0, from_s, &part);
		if (!ret)
			ret = add_blocks(search, part, from_s, end_s);
		if (ret < 0)
			return ret;
		nr += ret;
		from_s = end_s;
	}
	return nr;
}

/* Return: 1: no finer blocks of that time are kept any more, 0, or a negative errno. */
static int is_expired(struct search *search, size_t level, int64_t time_s)
{
	struct part *part;
	int err = 0;

	while (level-- && !err) {
		err = find_part(search, level, time_s, &part);
		if (!err && part->is_there)
			return 0;
	}
	return err ? err : 1;
}

/*
 * A block of @level for each of its periods that is in the range as a whole, finer ones for the rest. Where
 * these are gone, the whole block: more than was asked for, which the answer says. Four levels deep.
 * Return: how many blocks, or a negative errno.
 */
static int cover(struct search *search, size_t level, int64_t from_s, int64_t to_s)
{
	int64_t begin_s, end_s;
	struct part *part;
	bool is_whole;
	int nr = 0, ret;

	if (!level)
		return cover_fine(search, from_s, to_s);
	for (begin_s = sb_level_begin(level, from_s); begin_s < to_s; begin_s = end_s) {
		end_s = begin_s + sb_levels[level].seconds;
		is_whole = begin_s >= from_s && end_s <= to_s;
		ret = find_part(search, level, begin_s, &part);
		if (!ret && is_whole)
			ret = add_blocks(search, part, begin_s, end_s);
		if (!ret)
			ret = cover(search, level - 1, max_s(from_s, begin_s), min_s(to_s, end_s));
		if (!ret && !is_whole && part->is_there) {
			ret = is_expired(search, level, begin_s);
			if (ret > 0)
				ret = add_blocks(search, part, begin_s, end_s);
		}
		if (ret < 0)
			return ret;
		nr += ret;
	}
	return nr;
}

/* Where there are any files at all: nobody looks at years without one. */

struct extent {
	size_t level;
	int64_t from_s, to_s;
};

static int note_extent(void *arg, const char *name, int64_t begin_s)
{
	struct extent *extent = arg;

	extent->from_s = min_s(extent->from_s, begin_s);
	extent->to_s = max_s(extent->to_s, sb_level_file_end(extent->level, begin_s));
	return 0;
}

static int narrow(struct sb_store *store, int64_t *from_s, int64_t *to_s)
{
	struct extent extent = { .from_s = INT64_MAX, .to_s = INT64_MIN };
	int err = 0;

	for (; extent.level < SB_STORE_LEVELS && !err; extent.level++)
		err = sb_store_each_file(store, extent.level, note_extent, &extent);
	*from_s = max_s(*from_s, extent.from_s);
	*to_s = min_s(*to_s, extent.to_s);
	return err;
}

/* What they add up to. */

struct folding {
	const struct sb_dict *dict;
	const struct sb_store_query *query;
	struct sb_profile *profile;
	uint32_t *frame;	/* of the profile, by those of the dictionary */
	int8_t *is_wanted;	/* by set of tags; -1: not known yet */
	SB_VEC(uint32_t) stack; /* root first */
};

static bool is_wanted(struct folding *folding, uint32_t tags_id)
{
	struct sb_tag tags[SB_DICT_TAGS_MAX];
	size_t nr;

	if (folding->is_wanted[tags_id] < 0) {
		nr = sb_dict_tags_at(folding->dict, tags_id, tags);
		folding->is_wanted[tags_id] = !folding->query->rules ||
					      sb_tag_rules_match(folding->query->rules, tags, nr);
	}
	return folding->is_wanted[tags_id];
}

static int push_frame(struct folding *folding, uint32_t id)
{
	struct sb_frame frame = sb_dict_frame_at(folding->dict, id);
	uint32_t to = id == SB_DICT_NONE ? SB_DICT_NONE : folding->frame[id];
	int err = 0;

	if (to == SB_DICT_NONE)
		err = sb_profile_frame(folding->profile, &frame, &to);
	if (!err && id != SB_DICT_NONE)
		folding->frame[id] = to;
	return err ? err : sb_vec_push(&folding->stack, to);
}

static int push_root(struct folding *folding, uint32_t tags_id)
{
	struct sb_frame frame = { .kind = SB_FRAME_ROOT };
	struct sb_tag tags[SB_DICT_TAGS_MAX];
	size_t nr = sb_dict_tags_at(folding->dict, tags_id, tags);
	uint32_t id;
	int err;

	frame.name = sb_tag_value(tags, nr, folding->query->by);
	if (!frame.name[0])
		frame.name = "(none)";
	err = sb_profile_frame(folding->profile, &frame, &id);
	return err ? err : sb_vec_push(&folding->stack, id);
}

static int fold_row(struct folding *folding, const struct sb_dict_row *row, uint64_t weight)
{
	size_t i, first, nr;
	uint32_t node;
	int err = 0;

	folding->stack.nr = 0;
	if (folding->query->by)
		err = push_root(folding, row->tags);
	first = folding->stack.nr;
	for (node = row->node; node && !err; node = folding->dict->nodes.at[node].parent)
		err = folding->stack.nr < DEPTH_MAX
			      ? push_frame(folding, folding->dict->nodes.at[node].frame)
			      : -EBADMSG;
	nr = folding->stack.nr - first;
	for (i = 0; i < nr / 2; i++) {
		uint32_t *a = &folding->stack.at[first + i],
			 *b = &folding->stack.at[first + nr - 1 - i], swap = *a;

		*a = *b;
		*b = swap;
	}
	return err ? err
		   : sb_profile_add(folding->profile, folding->stack.at, folding->stack.nr, weight);
}

static int fold(struct search *search, struct part *part, struct folding *folding)
{
	const struct sb_dict *dict = &part->segment.dict;
	size_t i;
	int err = 0;

	folding->dict = dict;
	folding->frame = malloc((dict->frames.nr + 1) * sizeof(*folding->frame));
	folding->is_wanted = malloc(dict->tags.nr + 1);
	if (!folding->frame || !folding->is_wanted)
		err = -ENOMEM;
	if (!err) {
		memset(folding->frame, 0xff, (dict->frames.nr + 1) * sizeof(*folding->frame));
		memset(folding->is_wanted, 0xff, dict->tags.nr + 1);
	}
	for (i = 0; i < dict->rows.nr && !err; i++) {
		uint64_t weight = part->sums.sums.weight[i];

		if (!weight || !is_wanted(folding, dict->rows.at[i].tags))
			continue;
		err = fold_row(folding, &dict->rows.at[i], weight);
		if (err == -EBADMSG) {
			search->answer->lost_weight += weight;
			err = 0;
			continue;
		}
		search->answer->weight += weight;
	}
	free(folding->frame);
	free(folding->is_wanted);
	folding->frame = NULL;
	folding->is_wanted = NULL;
	return err;
}

static int fold_all(struct search *search, const struct sb_store_query *query,
		    struct sb_profile *profile)
{
	struct folding folding = { .query = query, .profile = profile };
	size_t i, k;
	int err = 0;

	for (i = 0; i < search->parts.nr && !err; i++) {
		struct part *part = search->parts.at[i];

		if (!part->is_there)
			continue;
		search->answer->lost_weight += part->sums.sums.lost_weight;
		for (k = 0; k < SB_BLOCK_FIGURE_MAX; k++)
			search->answer->figure[k] += part->sums.sums.figure[k];
		err = fold(search, part, &folding);
	}
	sb_vec_release(&folding.stack);
	return err;
}

int sb_store_query(struct sb_store *store, const struct sb_store_query *query,
		   struct sb_profile *profile, struct sb_store_answer *ret_answer)
{
	struct search search = { .store = store, .answer = ret_answer };
	int64_t from_s = sb_level_begin(0, query->from_s), to_s = query->to_s;
	int err;

	*ret_answer = (struct sb_store_answer){};
	if (query->from_s >= query->to_s)
		return -EINVAL;
	if (to_s % SB_STORE_BLOCK_S && to_s < INT64_MAX - SB_STORE_BLOCK_S)
		to_s = sb_level_begin(0, to_s) + SB_STORE_BLOCK_S;
	err = narrow(store, &from_s, &to_s);
	if (!err && from_s < to_s)
		err = cover(&search, SB_STORE_LEVELS - 1, from_s, to_s);
	if (err >= 0)
		err = fold_all(&search, query, profile);
	release(&search);
	return err;
}
