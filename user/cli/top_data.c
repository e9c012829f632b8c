// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/top_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/calltree.h"
#include "model/diff_rows.h"

/* Return: whether the list of functions contains frames of this kind: code and files. */
static bool is_listed(enum sb_frame_kind kind)
{
	return kind != SB_FRAME_ROOT && kind != SB_FRAME_DELIMITER && kind != SB_FRAME_MARK;
}

/* Add the first @nr_kept stacks of @from, and the rest of them as one. Numbers of samples and
 * durations are not needed. */
static int add_stacks(struct sb_profile *to, const struct sb_profile *from, size_t nr_kept)
{
	const struct sb_frame other = { .name = SB_TREE_OTHER, .kind = SB_FRAME_MARK };
	sb_cleanup(sb_freep) uint32_t *known =
		calloc(sb_profile_nr_frames(from) + 1, sizeof(*known));
	uint64_t rest = sb_profile_weight(from) - sb_profile_weight_of(from, nr_kept);
	size_t nr = sb_profile_nr_stacks(from), i;
	uint32_t id;
	int err = known ? 0 : -ENOMEM;

	for (i = 0; i < nr && i < nr_kept && !err; i++) {
		const struct sb_row row = sb_profile_row_at(from, i);

		err = sb_profile_copy_row(to, from, &row, known);
	}
	if (err || nr <= nr_kept)
		return err;
	err = sb_profile_frame(to, &other, &id);
	return err ? err : sb_profile_add(to, &id, 1, rest);
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
	return sb_calltree_new(recent, all, &data->tree);
}

/* A stack that has no code counts for the mark that it ends in. */
static int add_func(struct sb_top_data *data, const struct sb_diff_row *row)
{
	bool is_func = is_listed(row->kind);
	const struct sb_tree_pair *total = is_func ? &row->total : &row->self;
	struct sb_top_func func = { row->name, row->module, row->kind };
	int span;

	for (span = 0; span < SB_TOP_SPAN_MAX; span++) {
		func.self[span] = sb_tree_whole(row->self.weight[span]);
		func.total[span] = sb_tree_whole(total->weight[span]);
	}
	if (!is_func && !func.total[SB_TOP_RECENT] && !func.total[SB_TOP_ALL])
		return 0;
	return sb_vec_push(&data->funcs, func);
}

int sb_top_data_sum(struct sb_top_data *data)
{
	sb_cleanup(sb_freep) struct sb_diff_row *rows = NULL;
	size_t nr = 0, i;
	int err = make_tree(data) ?: sb_diff_functions(data->tree, &rows, &nr);

	data->funcs.nr = 0;
	for (i = 0; i < nr && !err; i++)
		err = add_func(data, &rows[i]);
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
	*data = (struct sb_top_data){ .nr_slots = nr_slots, .stacks_max = stacks_max };
}
