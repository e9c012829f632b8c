// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the blocks of a range add up to, as stacks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/search.h"

/* Deeper stacks were not made by us. */
#define DEPTH_MAX 4096u

struct folding {
	const struct sb_store_query *query;
	struct sb_store_answer *answer;
	struct sb_profile *profile;
	struct sb_part *part;
	const struct sb_dict *dict;
	struct sb_wanted wanted;
	uint32_t *frame;	/* of the profile, by those of the dictionary */
	uint64_t *self, *total; /* by node; of a tree */
	SB_VEC(uint32_t) stack; /* root first */
};

/* That of the profile which is @id of the dictionary. */
static int frame_of(struct folding *folding, uint32_t id, uint32_t *ret_frame)
{
	struct sb_frame frame = sb_dict_frame_at(folding->dict, id);
	int err = sb_profile_frame(folding->profile, &frame, ret_frame);

	if (!err && id != SB_DICT_NONE)
		folding->frame[id] = *ret_frame;
	return err;
}

/* The values of the tags of query->by. */
static int push_roots(struct folding *folding, uint32_t tags_id)
{
	struct sb_frame frame = { .kind = SB_FRAME_ROOT };
	struct sb_tag tags[SB_DICT_TAGS_MAX];
	size_t nr = sb_dict_tags_at(folding->dict, tags_id, tags);
	const char *by = folding->query->by;
	char key[SB_TAG_KEY_BYTES];
	uint32_t id;
	int err = 0;

	while (by && !err) {
		by = sb_tag_list_next(by, key);
		frame.name = sb_tag_value(tags, nr, key);
		if (!frame.name[0])
			frame.name = "(none)";
		err = sb_profile_frame(folding->profile, &frame, &id);
		if (!err)
			err = sb_vec_push(&folding->stack, id);
	}
	return err;
}

/* Frames from the root to @node, behind those that are there. Return: 0, -EBADMSG, -ENOMEM, -E2BIG. */
static int push_path(struct folding *folding, uint32_t node)
{
	const struct sb_dict_node *nodes = folding->dict->nodes.at;
	size_t depth = 0;
	uint32_t at, id, *to;
	int err;

	for (at = node; at && depth <= DEPTH_MAX; at = nodes[at].parent)
		depth++;
	if (depth > DEPTH_MAX)
		return -EBADMSG;
	err = sb_vec_reserve(&folding->stack, folding->stack.nr + depth);
	if (err)
		return err;
	folding->stack.nr += depth;
	to = folding->stack.at + folding->stack.nr;
	for (; node && !err; node = nodes[node].parent) {
		id = nodes[node].frame;
		*--to = id == SB_DICT_NONE ? SB_DICT_NONE : folding->frame[id];
		if (*to == SB_DICT_NONE)
			err = frame_of(folding, id, to);
	}
	return err;
}

static int fold_row(struct folding *folding, const struct sb_dict_row *row, uint64_t weight)
{
	int err = 0;

	folding->stack.nr = 0;
	if (folding->query->by)
		err = push_roots(folding, row->tags);
	if (!err)
		err = push_path(folding, row->node);
	return err ? err
		   : sb_profile_add(folding->profile, folding->stack.at, folding->stack.nr, weight);
}

static int fold_rows(struct folding *folding)
{
	const struct sb_dict *dict = folding->dict;
	size_t i;
	int err = 0;

	for (i = 0; i < dict->rows.nr && !err; i++) {
		uint64_t weight = folding->part->sums.sums.weight[i];

		if (!weight)
			continue;
		folding->answer->all_weight += weight;
		if (!sb_wanted_is(&folding->wanted, dict->rows.at[i].tags))
			continue;
		err = fold_row(folding, &dict->rows.at[i], weight);
		if (err == -EBADMSG) {
			folding->answer->lost_weight += weight;
			err = 0;
			continue;
		}
		folding->answer->weight += weight;
	}
	return err;
}

/* A tree that is cut before anything is named. */

static void weigh_nodes(struct folding *folding)
{
	const struct sb_dict *dict = folding->dict;
	size_t i;

	for (i = 0; i < dict->rows.nr; i++) {
		uint64_t weight = folding->part->sums.sums.weight[i];

		if (!weight)
			continue;
		folding->answer->all_weight += weight;
		if (!sb_wanted_is(&folding->wanted, dict->rows.at[i].tags))
			continue;
		folding->self[dict->rows.at[i].node] += weight;
		folding->answer->weight += weight;
	}
	/* Children have higher numbers. */
	for (i = dict->nodes.nr; i-- > 1;) {
		folding->total[i] += folding->self[i];
		folding->total[dict->nodes.at[i].parent] += folding->total[i];
	}
	folding->total[0] += folding->self[0];
}

/* Return: the least weight of which there are at most @nr_max nodes, to half a power of two. */
static uint64_t threshold(const struct folding *folding, size_t nr_max)
{
	size_t nr[128] = {}, i, sum = 0;
	uint64_t total;
	unsigned int log2;

	for (i = 0; i < folding->dict->nodes.nr; i++) {
		total = folding->total[i];
		if (!total)
			continue;
		log2 = 63 - (unsigned int)__builtin_clzll(total);
		nr[2 * log2 + (log2 && (total >> (log2 - 1) & 1))]++;
	}
	for (i = 128; i-- > 0;) {
		sum += nr[i];
		if (sum > nr_max)
			break;
	}
	/* The one above the last that fits. */
	i++;
	return i / 2 > 63 ? UINT64_MAX
			  : (1ull << i / 2) + (i & 1 && i > 1 ? 1ull << (i / 2 - 1) : 0);
}

static int add_path(struct folding *folding, uint32_t node, const struct sb_frame *more,
		    uint64_t weight)
{
	uint32_t id;
	int err;

	folding->stack.nr = 0;
	err = push_path(folding, node);
	if (!err && more) {
		err = sb_profile_frame(folding->profile, more, &id);
		if (!err)
			err = sb_vec_push(&folding->stack, id);
	}
	if (!err)
		err = sb_profile_add(folding->profile, folding->stack.at, folding->stack.nr,
				     weight);
	if (err != -EBADMSG)
		return err;
	folding->answer->lost_weight += weight;
	folding->answer->weight -= weight;
	return 0;
}

/* What is left of folding->total is what the kept ones below have not taken. */
static int fold_tree(struct folding *folding)
{
	static const struct sb_frame other = { .name = "(other)", .kind = SB_FRAME_MARK };
	const struct sb_dict *dict = folding->dict;
	uint64_t least;
	size_t i;
	int err = 0;

	weigh_nodes(folding);
	/* A file that is one of many knows only its part of the weight. */
	least = threshold(folding, folding->query->nr_nodes_max);
	for (i = 1; i < dict->nodes.nr; i++)
		if (folding->total[i] < least)
			folding->total[i] = 0;
	/* Totals of parents are not less: all above one that is kept are kept. Parents first, whose own
	 * total was taken from theirs as it was. */
	for (i = 1; i < dict->nodes.nr; i++)
		folding->total[dict->nodes.at[i].parent] -= folding->total[i];
	for (i = 0; i < dict->nodes.nr && !err; i++) {
		uint64_t weight = folding->total[i], self = folding->self[i];

		if (!weight)
			continue;
		if (self)
			err = add_path(folding, (uint32_t)i, NULL, self);
		if (!err && weight > self) {
			err = add_path(folding, (uint32_t)i, &other, weight - self);
			folding->answer->cut_weight += weight - self;
		}
	}
	return err;
}

/* Kept with the file: to get them from the system each time costs as much as what is done with them. */
static int need_nodes(struct folding *folding)
{
	struct sb_part *part = folding->part;
	size_t nr = folding->dict->nodes.nr;
	int err = sb_vec_reserve(&part->self, nr);

	if (!err)
		err = sb_vec_reserve(&part->total, nr);
	if (err)
		return err;
	folding->self = memset(part->self.at, 0, nr * sizeof(*folding->self));
	folding->total = memset(part->total.at, 0, nr * sizeof(*folding->total));
	return 0;
}

static int fold(struct folding *folding)
{
	const struct sb_dict *dict = folding->dict;
	bool is_tree = folding->query->nr_nodes_max && !folding->query->by;
	int err = sb_wanted_init(&folding->wanted, dict, folding->query->rules);

	folding->frame = malloc((dict->frames.nr + 1) * sizeof(*folding->frame));
	if (!folding->frame)
		err = -ENOMEM;
	if (!err && is_tree)
		err = need_nodes(folding);
	if (!err)
		memset(folding->frame, 0xff, (dict->frames.nr + 1) * sizeof(*folding->frame));
	if (!err)
		err = is_tree ? fold_tree(folding) : fold_rows(folding);
	sb_wanted_release(&folding->wanted);
	free(folding->frame);
	folding->frame = NULL;
	return err;
}

static int fold_all(struct sb_search *search, const struct sb_store_query *query,
		    struct sb_profile *profile)
{
	struct folding folding = {
		.query = query,
		.profile = profile,
		.answer = search->answer,
	};
	size_t i, k;
	int err = 0;

	for (i = 0; i < search->parts.nr && !err; i++) {
		struct sb_part *part = search->parts.at[i];

		if (!part->is_there)
			continue;
		search->answer->lost_weight += part->sums.sums.lost_weight;
		for (k = 0; k < SB_BLOCK_FIGURE_MAX; k++)
			search->answer->figure[k] += part->sums.sums.figure[k];
		folding.part = part;
		folding.dict = &part->segment.dict;
		err = fold(&folding);
	}
	search->answer->all_weight += search->answer->lost_weight;
	sb_vec_release(&folding.stack);
	return err;
}

int sb_store_query(struct sb_store *store, const struct sb_store_query *query,
		   struct sb_profile *profile, struct sb_store_answer *ret_answer)
{
	struct sb_search search = {
		.store = store,
		.kind = query->kind,
		.answer = ret_answer,
		.visit = sb_search_add,
	};
	int err;

	sb_search_begin(&search);
	err = sb_search_tags(&search, query->rules, query->by, query->from_s, query->to_s);
	if (!err)
		err = sb_search_range(&search, query->from_s, query->to_s);
	if (!err)
		err = fold_all(&search, query, profile);
	sb_search_end(&search);
	return err;
}
