// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/top_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/index.h"
#include "model/owner.h"

SB_DEFINE_CLEANUP(struct sb_profile, sb_profile_free)

bool sb_top_is_func(enum sb_frame_kind kind)
{
	return kind != SB_FRAME_ROOT && kind != SB_FRAME_DELIMITER && kind != SB_FRAME_MARK;
}

/*
 * Add the first @nr_kept stacks of @from, and the rest of them as one. Other than sb_profile_merge(), this leaves
 * behind the frames of stacks that have gone: a run has more and more of these.
 */
static int add_stacks(struct sb_profile *to, const struct sb_profile *from, size_t nr_kept)
{
	const struct sb_frame other = { .name = SB_TREE_OTHER, .kind = SB_FRAME_MARK };
	/* By the frame there, 1 + the frame here. */
	sb_cleanup(sb_freep) uint32_t *known =
		calloc(sb_profile_nr_frames(from) + 1, sizeof(*known));
	SB_VEC(uint32_t) ids = {};
	size_t nr = sb_profile_nr_stacks(from), nr_frames, i, j;
	uint64_t weight;
	uint32_t id;
	int err = known ? 0 : -ENOMEM;

	for (i = 0; i < nr && !err; i++) {
		const uint32_t *at = sb_profile_stack_at(from, i, &nr_frames, &weight);

		ids.nr = 0;
		for (j = 0; j < nr_frames && i < nr_kept && !err; j++) {
			if (!known[at[j]]) {
				err = sb_profile_frame(to, sb_profile_frame_at(from, at[j]), &id);
				if (!err)
					known[at[j]] = id + 1;
			}
			if (!err)
				err = sb_vec_push(&ids, known[at[j]] - 1);
		}
		if (!err && i >= nr_kept) {
			err = sb_profile_frame(to, &other, &id);
			if (!err)
				err = sb_vec_push(&ids, id);
		}
		if (!err)
			err = sb_profile_add(to, ids.at, ids.nr, weight);
	}
	sb_vec_release(&ids);
	return err;
}

/* Return: a copy of @from, to which nothing more is added; NULL: no memory. */
static struct sb_profile *sealed_copy(const struct sb_profile *from)
{
	sb_cleanup(sb_profile_freep) struct sb_profile *copy = NULL;

	if (sb_profile_new(&copy) || add_stacks(copy, from, SIZE_MAX) || sb_profile_seal(copy))
		return NULL;
	return sb_take(copy);
}

/* The lighter stacks become one. */
static int shed(struct sb_top_data *data, size_t nr_kept)
{
	sb_cleanup(sb_profile_freep) struct sb_profile *old = sealed_copy(data->all);
	sb_cleanup(sb_profile_freep) struct sb_profile *all = NULL;
	int err = old ? sb_profile_new(&all) : -ENOMEM;

	if (!err)
		err = add_stacks(all, old, nr_kept);
	if (err)
		return err;
	data->nr_shed += sb_profile_nr_stacks(old) - nr_kept;
	sb_profile_free(data->all);
	data->all = sb_take(all);
	return 0;
}

int sb_top_data_add(struct sb_top_data *data, const struct sb_profile *profile, uint64_t ns)
{
	sb_cleanup(sb_profile_freep) struct sb_profile *copy = NULL;
	size_t nr_max = data->stacks_max ? data->stacks_max : SB_TOP_STACKS_MAX;
	int err = data->all ? 0 : sb_profile_new(&data->all);

	if (!err)
		err = sb_profile_new(&copy);
	if (!err)
		err = add_stacks(copy, profile, SIZE_MAX);
	if (!err)
		err = add_stacks(data->all, profile, SIZE_MAX);
	if (err)
		return err;
	sb_profile_free(data->slots[data->next]);
	data->slots[data->next] = sb_take(copy);
	data->slot_ns[data->next] = ns;
	data->next = (data->next + 1) % data->nr_slots;
	data->ns[SB_TOP_ALL] += ns;
	return sb_profile_nr_stacks(data->all) > nr_max ? shed(data, nr_max / 2) : 0;
}

static int make_tree(struct sb_top_data *data)
{
	sb_cleanup(sb_profile_freep) struct sb_profile *recent = NULL, *all = NULL;
	size_t i;
	int err = sb_profile_new(&recent);

	data->ns[SB_TOP_RECENT] = 0;
	for (i = 0; i < data->nr_slots && !err; i++) {
		if (!data->slots[i])
			continue;
		data->ns[SB_TOP_RECENT] += data->slot_ns[i];
		err = add_stacks(recent, data->slots[i], SIZE_MAX);
	}
	if (!err)
		err = sb_profile_seal(recent);
	if (!err && !data->all)
		err = sb_profile_new(&data->all);
	if (err)
		return err;
	all = sealed_copy(data->all);
	if (!all)
		return -ENOMEM;
	data->weight[SB_TOP_RECENT] = sb_profile_weight(recent);
	data->weight[SB_TOP_ALL] = sb_profile_weight(all);
	sb_tree_free(sb_take(data->tree));
	return sb_tree_new(recent, all, &data->tree);
}

static bool is_same_func(const struct sb_tree_node *a, const struct sb_tree_node *b)
{
	return a->name == b->name && a->kind == b->kind;
}

/* Return: the number of the function of @node, which is added if it is new; or a negative errno. */
static int64_t find_func(struct sb_top_data *data, struct sb_index *index, size_t node)
{
	const struct sb_tree_node *nodes = data->tree->nodes.at;
	uint32_t key[2] = { nodes[node].name, nodes[node].kind };
	uint64_t hash = sb_hash(key, sizeof(key), 0);
	struct sb_index_iter it;
	int err;

	for (it = sb_index_first(index, hash); it.id != SB_INDEX_NONE;
	     it = sb_index_next(index, it))
		if (is_same_func(&nodes[data->funcs.at[it.id].node], &nodes[node]))
			return it.id;
	err = sb_vec_push(&data->funcs, (struct sb_top_func){ .node = node });
	if (!err)
		err = sb_index_add(index, hash, (uint32_t)data->funcs.nr - 1);
	return err ? err : (int64_t)data->funcs.nr - 1;
}

/* Return: whether @node is called by itself, through whatever. */
static bool recurs(const struct sb_tree *tree, size_t node)
{
	const struct sb_tree_node *nodes = tree->nodes.at;
	size_t at = nodes[node].parent;

	for (; at; at = nodes[at].parent)
		if (is_same_func(&nodes[at], &nodes[node]))
			return true;
	return false;
}

static const char *frame_at(const void *arg, size_t i, enum sb_frame_kind *ret_kind)
{
	const struct sb_top_data *data = arg;

	*ret_kind = data->tree->nodes.at[data->path.at[i]].kind;
	return sb_tree_name(data->tree, data->path.at[i]);
}

/* Find the node that the own weight of @node is counted for, from the root to @node. Return: 0 or -ENOMEM. */
static int find_owner(struct sb_top_data *data, size_t node, size_t *ret_owner)
{
	struct sb_owner_path path = { .frame_at = frame_at, .arg = data };
	const struct sb_tree_node *nodes = data->tree->nodes.at;
	size_t at, i;
	int err;

	for (at = node; at; at = nodes[at].parent)
		path.nr++;
	data->path.nr = 0;
	err = sb_vec_reserve(&data->path, path.nr);
	if (err)
		return err;
	data->path.nr = path.nr;
	for (at = node, i = path.nr; i--; at = nodes[at].parent)
		data->path.at[i] = at;
	*ret_owner = data->path.at[sb_owner_find(&path)];
	return 0;
}

static int add_node(struct sb_top_data *data, struct sb_index *index, size_t i)
{
	const struct sb_tree_node *node = &data->tree->nodes.at[i];
	bool has_self = node->self[SB_TOP_RECENT] || node->self[SB_TOP_ALL], is_alone;
	size_t owner;
	struct sb_top_func *func;
	int64_t id;
	int span, err;

	if (sb_top_is_func(node->kind) && !recurs(data->tree, i)) {
		id = find_func(data, index, i);
		if (id < 0)
			return (int)id;
		func = &data->funcs.at[id];
		for (span = 0; span < SB_TOP_SPAN_MAX; span++)
			func->total[span] += node->total[span];
	}
	if (!has_self)
		return 0;
	err = find_owner(data, i, &owner);
	if (err)
		return err;
	id = find_func(data, index, owner);
	if (id < 0)
		return (int)id;
	func = &data->funcs.at[id];
	is_alone = !sb_top_is_func(data->tree->nodes.at[owner].kind);
	for (span = 0; span < SB_TOP_SPAN_MAX; span++) {
		func->self[span] += node->self[span];
		if (is_alone)
			func->total[span] += node->self[span];
	}
	return 0;
}

int sb_top_data_sum(struct sb_top_data *data)
{
	sb_cleanup(sb_index_release) struct sb_index index = {};
	size_t i;
	int err = make_tree(data);

	data->funcs.nr = 0;
	for (i = 1; !err && i < data->tree->nodes.nr; i++)
		err = add_node(data, &index, i);
	return err;
}

void sb_top_data_reset(struct sb_top_data *data)
{
	size_t nr_slots = data->nr_slots, stacks_max = data->stacks_max, i;

	for (i = 0; i < SB_TOP_SLOTS_MAX; i++)
		sb_profile_free(data->slots[i]);
	sb_profile_free(data->all);
	sb_tree_free(data->tree);
	sb_vec_release(&data->funcs);
	sb_vec_release(&data->path);
	*data = (struct sb_top_data){ .nr_slots = nr_slots, .stacks_max = stacks_max };
}
