// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Queries: add the blocks of a time range to a profile, as stacks. Two ways: fold_rows() adds each
 * row with its whole stack. With nr_nodes_max, gather_tree() takes only the heaviest nodes of each
 * file into the merged tree, and add_heaviest() makes stacks of the heaviest of these, so that most
 * frames are never named.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/prune.h"
#include "store/search.h"

struct folding {
	const struct sb_store_query *query;
	struct sb_store_answer *answer;
	struct sb_profile *profile;
	/* Of the current file. */
	struct sb_kept_file *kept;
	const struct sb_dict *dict;
	struct sb_wanted wanted;
	uint32_t *frame;	/* of the profile, by frame of the dictionary */
	SB_VEC(uint32_t) stack; /* root first */
	size_t nr_roots;	/* how many of them are values of tags */
	uint32_t tags;
};

/* The frame of the profile that corresponds to frame @id of the dictionary. */
static int frame_of(struct folding *folding, uint32_t id, uint32_t *ret_frame)
{
	struct sb_frame frame = sb_dict_frame_at(folding->dict, id);
	int err = sb_profile_frame(folding->profile, &frame, ret_frame);

	if (!err && id != SB_DICT_NONE)
		folding->frame[id] = *ret_frame;
	return err;
}

/* Push the values of the tags in query->by. */
static int push_roots(struct folding *folding, uint32_t tags_id)
{
	struct sb_tag tags[SB_DICT_TAGS_MAX];
	size_t nr = sb_dict_tags_at(folding->dict, tags_id, tags);
	const char *by = folding->query->by;
	char key[SB_TAG_KEY_BYTES];
	struct sb_attr attr = { .kind = SB_ATTR_TAG, .key = key };
	uint32_t id;
	int err = 0;

	while (by && !err) {
		by = sb_tag_list_next(by, key);
		attr.text = sb_tag_value(tags, nr, key);
		if (!attr.text[0])
			attr.text = "(none)";
		err = sb_profile_attr(folding->profile, &attr, &id);
		if (!err)
			err = sb_vec_push(&folding->stack, id);
	}
	return err;
}

/* Push the frames from the root to @node. Return: 0, -EBADMSG, -ENOMEM, -E2BIG. */
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

/* Count weight that is in the profile. */
static void add_weight(struct folding *folding, size_t row, uint64_t weight)
{
	const uint16_t marks = folding->kept->marks.of_row.at[row];

	folding->answer->weight += weight;
	folding->answer->trunc_weight += marks & SB_MARKS_CUT ? weight : 0;
	folding->answer->nosym_weight += (marks & SB_MARKS_UNNAMED) * weight;
}

static int fold_row(struct folding *folding, const struct sb_dict_row *row, uint64_t weight)
{
	int err = 0;

	/* Rows of the same tags follow each other. */
	if (row->tags != folding->tags) {
		folding->stack.nr = 0;
		err = push_roots(folding, row->tags);
		folding->nr_roots = folding->stack.nr;
		folding->tags = err ? SB_DICT_NONE : row->tags;
	}
	folding->stack.nr = folding->nr_roots;
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

	folding->tags = SB_DICT_NONE;
	folding->nr_roots = 0;
	for (i = 0; i < dict->rows.nr && !err; i++) {
		uint64_t weight = folding->kept->resum.result->weight[i];

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
		add_weight(folding, i, weight);
	}
	return err;
}

/* Trees that are pruned before any frame is named. */

static int need_weights(struct sb_store *store, size_t nr)
{
	int err = sb_vec_reserve(&store->self, nr);

	return err ? err : sb_vec_reserve(&store->total, nr);
}

/* Sum the weights of the rows in @self, by branch point. */
static void weigh_rows(struct folding *folding, uint64_t *self)
{
	const struct sb_kept_file *kept = folding->kept;
	const struct sb_dict_row *rows = folding->dict->rows.at;
	const uint32_t *joint_of = kept->branches.of_row.at;
	struct sb_store_answer *answer = folding->answer;
	bool are_all = !folding->query->rules || !folding->query->rules->rules.nr;
	size_t i;

	memset(self, 0, kept->branches.node.nr * sizeof(*self));
	for (i = 0; i < folding->dict->rows.nr; i++) {
		uint64_t weight = kept->resum.result->weight[i];

		if (!weight)
			continue;
		answer->all_weight += weight;
		if (!are_all && !sb_wanted_is(&folding->wanted, rows[i].tags))
			continue;
		self[joint_of[i]] += weight;
		add_weight(folding, i, weight);
	}
}

/*
 * Take the nodes that are heavy in this file into the merged tree: twice as many as are drawn in
 * the end, because a node can be heavier in the other files than in this one.
 */
static int gather_tree(struct folding *folding, struct sb_store *store)
{
	struct sb_kept_file *kept = folding->kept;
	const struct sb_branches *branches = &kept->branches;
	struct sb_prune prune = {};
	uint64_t rest;
	uint32_t node;
	size_t i;
	int err = sb_branches_fit(&kept->branches, folding->dict);

	if (!err)
		err = need_weights(store, branches->node.nr);
	if (!err)
		err = sb_merged_tree_fit(&store->merged, &kept->map, folding->dict);
	if (err)
		return err;
	weigh_rows(folding, store->self.at);
	memcpy(store->total.at, store->self.at, branches->node.nr * sizeof(store->self.at[0]));
	prune.nr = branches->node.nr;
	prune.parent = branches->parent.at;
	prune.nr_nodes = branches->nr_nodes.at;
	prune.total = store->total.at;
	sb_prune(&prune, 2 * (size_t)folding->query->nr_nodes_max);
	for (i = 0; i < prune.nr && !err; i++) {
		rest = prune.total[i];
		if (!rest)
			continue;
		err = sb_merged_tree_node(&store->merged, &kept->map, folding->dict,
					  branches->node.at[i], &node);
		if (err == -EBADMSG) {
			folding->answer->lost_weight += rest;
			folding->answer->weight -= rest;
			err = 0;
		} else if (!err) {
			sb_merged_tree_add(&store->merged, node, store->self.at[i],
					   rest - store->self.at[i]);
		}
	}
	return err;
}

static int add_heaviest(struct folding *folding, struct sb_store *store)
{
	struct sb_store_answer *answer = folding->answer;
	struct sb_heaviest_rest left;
	int err = sb_heaviest_add(&store->heaviest, &store->merged, folding->query->nr_nodes_max,
				  folding->profile, &left);

	answer->cut_weight += left.cut_weight;
	answer->lost_weight += left.lost_weight;
	answer->weight -= left.lost_weight;
	return err;
}

/* All files. */

static int need_frames(struct folding *folding)
{
	size_t nr = folding->dict->frames.nr + 1;

	folding->frame = malloc(nr * sizeof(*folding->frame));
	if (!folding->frame)
		return -ENOMEM;
	memset(folding->frame, 0xff, nr * sizeof(*folding->frame));
	return 0;
}

static bool is_tree(const struct sb_store_query *query)
{
	return query->nr_nodes_max && !query->by;
}

static int fold_part(struct folding *folding, struct sb_store *store)
{
	int err = sb_wanted_init(&folding->wanted, folding->dict, folding->query->rules);

	if (!err)
		err = sb_missing_fit(&folding->kept->marks, folding->dict);
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

	for (i = 0; i < search->kept_files.nr && !err; i++) {
		struct sb_kept_file *kept = search->kept_files.at[i];
		const struct sb_segment_sums *sums = kept->is_there ? kept->resum.result : NULL;

		if (!sums)
			continue;
		search->answer->lost_weight += sums->lost_weight;
		for (k = 0; k < SB_BLOCK_FIGURE_MAX; k++)
			search->answer->figure[k] += sums->figure[k];
		folding.kept = kept;
		folding.dict = &kept->segment.dict;
		err = fold_part(&folding, search->store);
	}
	if (!err && is_tree(query))
		err = add_heaviest(&folding, search->store);
	if (err)
		sb_store_forget_merged_tree(search->store);
	sb_merged_tree_clear(&search->store->merged);
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
	};
	int err;

	sb_search_begin(&search);
	err = sb_search_tags(&search, query->rules, query->by, query->from_s, query->to_s);
	if (!err)
		err = sb_search_sums(&search, query->from_s, query->to_s);
	if (!err)
		err = fold_all(&search, query, profile);
	sb_search_end(&search);
	return err;
}
