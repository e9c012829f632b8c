// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the blocks of a range add up to, as stacks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/search.h"

struct folding {
	const struct sb_store_query *query;
	struct sb_store_answer *answer;
	struct sb_profile *profile;
	/* Of a file, or the atlas. */
	struct sb_part *part;
	const struct sb_dict *dict;
	struct sb_wanted wanted;
	uint32_t *frame;	/* of the profile, by those of the dictionary */
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

	for (at = node; at && depth <= SB_DICT_DEPTH_MAX; at = nodes[at].parent)
		depth++;
	if (depth > SB_DICT_DEPTH_MAX)
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

/* Trees that are cut before anything is named. */

struct tree {
	const struct sb_dict_node *nodes;
	size_t nr;
	uint64_t *total; /* by node; to begin with, what is its own */
	/* How many nodes are of each power of two, and of each half more than one. */
	size_t nr_of[128];
};

static void weigh(struct tree *tree)
{
	uint64_t *total = tree->total;
	unsigned int log2;
	size_t i;

	/* Children have higher numbers. */
	for (i = tree->nr; i-- > 1;) {
		if (!total[i])
			continue;
		total[tree->nodes[i].parent] += total[i];
		log2 = 63 - (unsigned int)__builtin_clzll(total[i]);
		tree->nr_of[2 * log2 + (log2 && (total[i] >> (log2 - 1) & 1))]++;
	}
}

/* Return: the least weight of which there are at most @nr_max nodes, to half a power of two. */
static uint64_t threshold(const struct tree *tree, size_t nr_max)
{
	size_t i, sum = 0;

	for (i = SB_ARRAY_SIZE(tree->nr_of); i-- > 0;) {
		sum += tree->nr_of[i];
		if (sum > nr_max)
			break;
	}
	/* The one above the last that fits. */
	i++;
	return i / 2 > 63 ? UINT64_MAX
			  : (1ull << i / 2) + (i & 1 && i > 1 ? 1ull << (i / 2 - 1) : 0);
}

/* What is left of tree->total then is what those that are kept below have not taken. */
static void cut(struct tree *tree, size_t nr_max)
{
	uint64_t least, *total = tree->total;
	size_t i;

	weigh(tree);
	least = threshold(tree, nr_max);
	/* Totals of parents are not less: all above one that is kept are kept. Parents first, whose own
	 * total is taken from theirs as it was. */
	for (i = 1; i < tree->nr; i++) {
		if (total[i] < least)
			total[i] = 0;
		else
			total[tree->nodes[i].parent] -= total[i];
	}
}

/* Kept with the store: to get them from the system each time costs as much as what is done with them. */
static int need_weights(struct sb_store *store, size_t nr)
{
	int err = sb_vec_reserve(&store->self, nr);

	return err ? err : sb_vec_reserve(&store->total, nr);
}

static void weigh_rows(struct folding *folding, uint64_t *self)
{
	const struct sb_dict *dict = folding->dict;
	size_t i;

	memset(self, 0, dict->nodes.nr * sizeof(*self));
	for (i = 0; i < dict->rows.nr; i++) {
		uint64_t weight = folding->part->sums.sums.weight[i];

		if (!weight)
			continue;
		folding->answer->all_weight += weight;
		if (!sb_wanted_is(&folding->wanted, dict->rows.at[i].tags))
			continue;
		self[dict->rows.at[i].node] += weight;
		folding->answer->weight += weight;
	}
}

/* What is heavy enough in one file goes to the atlas, and of all that was there what is heavy enough is drawn:
 * twice as much of each, since there it may be more than here. */
static int gather_tree(struct folding *folding, struct sb_store *store)
{
	const struct sb_dict *dict = folding->dict;
	struct tree tree = { .nodes = dict->nodes.at, .nr = dict->nodes.nr };
	uint64_t rest;
	uint32_t node;
	size_t i;
	int err = need_weights(store, tree.nr);

	if (!err)
		err = sb_atlas_fit(&store->atlas, &folding->part->map, dict);
	if (err)
		return err;
	tree.total = store->total.at;
	weigh_rows(folding, store->self.at);
	memcpy(tree.total, store->self.at, tree.nr * sizeof(*tree.total));
	cut(&tree, 2 * (size_t)folding->query->nr_nodes_max);
	for (i = 0; i < tree.nr && !err; i++) {
		rest = tree.total[i];
		if (!rest)
			continue;
		err = sb_atlas_node(&store->atlas, &folding->part->map, dict, (uint32_t)i, &node);
		if (err == -EBADMSG) {
			folding->answer->lost_weight += rest;
			folding->answer->weight -= rest;
			err = 0;
			continue;
		}
		if (err)
			break;
		store->atlas.self.at[node] += store->self.at[i];
		store->atlas.other.at[node] += rest - store->self.at[i];
	}
	return err;
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

static int need_frames(struct folding *folding)
{
	size_t nr = folding->dict->frames.nr + 1;

	folding->frame = malloc(nr * sizeof(*folding->frame));
	if (!folding->frame)
		return -ENOMEM;
	memset(folding->frame, 0xff, nr * sizeof(*folding->frame));
	return 0;
}

static int fold_tree(struct folding *folding, struct sb_store *store)
{
	static const struct sb_frame other = { .name = "(other)", .kind = SB_FRAME_MARK };
	const struct sb_atlas *atlas = &store->atlas;
	struct tree tree = { .nodes = atlas->dict.nodes.at, .nr = atlas->dict.nodes.nr };
	size_t i;
	int err;

	folding->dict = &atlas->dict;
	err = need_frames(folding);
	if (!err)
		err = need_weights(store, tree.nr);
	if (err)
		return err;
	tree.total = store->total.at;
	for (i = 0; i < tree.nr; i++)
		tree.total[i] = atlas->self.at[i] + atlas->other.at[i];
	cut(&tree, folding->query->nr_nodes_max);
	for (i = 0; i < tree.nr && !err; i++) {
		uint64_t rest = tree.total[i], self = atlas->self.at[i];

		if (!rest)
			continue;
		if (self)
			err = add_path(folding, (uint32_t)i, NULL, self);
		if (!err && rest > self) {
			err = add_path(folding, (uint32_t)i, &other, rest - self);
			folding->answer->cut_weight += rest - self;
		}
	}
	return err;
}

/* For the next question. */
static void clear_atlas(struct sb_atlas *atlas)
{
	if (!atlas->self.nr)
		return;
	memset(atlas->self.at, 0, atlas->self.nr * sizeof(atlas->self.at[0]));
	memset(atlas->other.at, 0, atlas->other.nr * sizeof(atlas->other.at[0]));
}

/* All of it. */

static bool is_tree(const struct sb_store_query *query)
{
	return query->nr_nodes_max && !query->by;
}

static int fold_part(struct folding *folding, struct sb_store *store)
{
	int err = sb_wanted_init(&folding->wanted, folding->dict, folding->query->rules);

	if (!err && is_tree(folding->query)) {
		err = gather_tree(folding, store);
	} else if (!err) {
		err = need_frames(folding);
		if (!err)
			err = fold_rows(folding);
	}
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
		err = fold_part(&folding, search->store);
	}
	if (!err && is_tree(query))
		err = fold_tree(&folding, search->store);
	free(folding.frame);
	if (err)
		sb_store_forget_atlas(search->store);
	clear_atlas(&search->store->atlas);
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
