// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fair shares of a dictionary that is nearly full. Nothing is counted while there is room. When a
 * bound comes near, what every owner has is computed once from the rows, and kept from then on.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "store/dict_priv.h"

static const struct part_bound {
	uint64_t max, spare;
} bounds[] = {
	[SB_DICT_PART_STRINGS] = { SB_DICT_STRINGS_MAX, SB_DICT_SPARE },
	[SB_DICT_PART_TEXT] = { SB_DICT_TEXT_MAX, SB_DICT_SPARE_TEXT },
	[SB_DICT_PART_FRAMES] = { SB_DICT_NODES_MAX, SB_DICT_SPARE },
	[SB_DICT_PART_NODES] = { SB_DICT_NODES_MAX, SB_DICT_SPARE },
	[SB_DICT_PART_TAGS] = { SB_DICT_ROWS_MAX, SB_DICT_SPARE },
	[SB_DICT_PART_ROWS] = { SB_DICT_ROWS_MAX, SB_DICT_SPARE_ROWS },
};
_Static_assert(SB_ARRAY_SIZE(bounds) == SB_DICT_PART_MAX, "a bound for each part");

/* The least of all bounds, less the quarter for which there are shares (share.c). */
_Static_assert(SB_DICT_PLENTY <= (SB_DICT_ROWS_MAX - SB_DICT_SPARE_ROWS) / 4 * 3,
	       "rows are plenty");
_Static_assert(SB_DICT_PLENTY_TEXT <= (SB_DICT_TEXT_MAX - SB_DICT_SPARE_TEXT) / 4 * 3,
	       "text is plenty");

/* Which entries have been charged to an owner already. */
struct charged {
	const struct sb_dict *dict;
	struct sb_dict_shares *shares;
	bool *string, *frame, *node;
};

static void charge_string(struct charged *charged, uint64_t *nr, uint32_t id)
{
	if (charged->string[id])
		return;
	charged->string[id] = true;
	nr[SB_DICT_PART_STRINGS]++;
	nr[SB_DICT_PART_TEXT] += charged->dict->strings.strs.at[id].len;
}

static void charge_row(struct charged *charged, uint64_t *nr, uint32_t node)
{
	const struct sb_dict *dict = charged->dict;

	nr[SB_DICT_PART_ROWS]++;
	for (; node && !charged->node[node]; node = dict->nodes.at[node].parent) {
		uint32_t id = dict->nodes.at[node].frame;

		charged->node[node] = true;
		nr[SB_DICT_PART_NODES]++;
		if (id == SB_DICT_NONE || charged->frame[id])
			continue;
		charged->frame[id] = true;
		nr[SB_DICT_PART_FRAMES]++;
		if (dict->frames.at[id].name == SB_DICT_NONE)
			continue;
		charge_string(charged, nr, dict->frames.at[id].name);
		charge_string(charged, nr, dict->frames.at[id].module);
	}
}

bool sb_dict_is_other(const struct sb_dict *dict, uint32_t node)
{
	uint32_t id = dict->nodes.at[node].frame;
	struct sb_frame frame;

	if (!node || dict->nodes.at[node].parent || id == SB_DICT_NONE)
		return false;
	frame = sb_dict_frame_at(dict, id);
	return frame.kind == SB_FRAME_MARK && sb_streq(frame.name, SB_SHARE_OTHER);
}

/* An entry is charged to the owner of the first row that uses it: that is who added it. */
static int charge_all(struct charged *charged)
{
	const struct sb_dict *dict = charged->dict;
	sb_cleanup(sb_freep) uint32_t *owner = calloc(dict->tags.nr + 1, sizeof(*owner));
	struct sb_tag tags[SB_DICT_TAGS_MAX];
	uint32_t i, k;

	if (!owner)
		return -ENOMEM;
	for (i = 0; i < dict->tags.nr; i++) {
		const struct sb_dict_tags *set = &dict->tags.at[i];

		if (set->first == SB_DICT_NONE)
			continue;
		owner[i] = sb_share_owner(&charged->shares->owners, tags,
					  sb_dict_tags_at(dict, i, tags));
		charged->shares->nr[owner[i]][SB_DICT_PART_TAGS]++;
		for (k = 0; k < set->nr; k++)
			charge_string(charged, charged->shares->nr[owner[i]],
				      dict->pairs.at[set->first + k].value);
	}
	for (i = 0; i < dict->rows.nr; i++) {
		const struct sb_dict_row *row = &dict->rows.at[i];

		if (row->tags == SB_DICT_NONE)
			continue;
		charge_row(charged, charged->shares->nr[owner[row->tags]], row->node);
		charged->shares->nr_other[owner[row->tags]] += sb_dict_is_other(dict, row->node);
	}
	return 0;
}

static int need_shares(struct sb_dict *dict)
{
	sb_cleanup(sb_freep) struct sb_dict_shares *shares = NULL;
	sb_cleanup(sb_freep) bool *string = NULL, *frame = NULL, *node = NULL;
	struct charged charged = { .dict = dict };
	int err;

	if (dict->shares)
		return 0;
	shares = calloc(1, sizeof(*shares));
	string = calloc(dict->strings.strs.nr + 1, sizeof(*string));
	frame = calloc(dict->frames.nr + 1, sizeof(*frame));
	node = calloc(dict->nodes.nr + 1, sizeof(*node));
	if (!shares || !string || !frame || !node)
		return -ENOMEM;
	charged.shares = shares;
	charged.string = string;
	charged.frame = frame;
	charged.node = node;
	err = charge_all(&charged);
	if (!err)
		dict->shares = sb_take(shares);
	return err;
}

void sb_dict_set_owner(struct sb_dict *dict, const struct sb_tag *tags, size_t nr)
{
	dict->owner_tags = tags;
	dict->nr_owner_tags = tags ? nr : 0;
	dict->owner_id = SB_DICT_NONE;
}

static uint32_t owner_of(struct sb_dict *dict)
{
	if (dict->owner_id == SB_DICT_NONE)
		dict->owner_id = dict->owner_tags
					 ? sb_share_owner(&dict->shares->owners, dict->owner_tags,
							  dict->nr_owner_tags)
					 : 0;
	return dict->owner_id;
}

int sb_dict_need_share(struct sb_dict *dict, enum sb_dict_part part, uint64_t nr_more)
{
	uint64_t nr = sb_dict_nr(dict, part) + nr_more - 1,
		 max = bounds[part].max - bounds[part].spare;
	int err;

	if (dict->is_unbounded)
		return nr >= INT32_MAX ? -E2BIG : 0;
	if (dict->may_use_spare)
		return nr >= bounds[part].max ? -E2BIG : 0;
	if (!dict->shares && sb_share_allows(max, nr, UINT64_MAX))
		return 0;
	err = need_shares(dict);
	if (err)
		return err;
	return sb_share_allows(max, nr, dict->shares->nr[owner_of(dict)][part]) ? 0 : -E2BIG;
}

void sb_dict_charge_owner(struct sb_dict *dict, enum sb_dict_part part, uint64_t nr)
{
	dict->shares->nr[owner_of(dict)][part] += nr;
}

uint32_t sb_dict_owner(const struct sb_dict *dict)
{
	return dict->shares && dict->owner_id != SB_DICT_NONE ? dict->owner_id : 0;
}

int sb_dict_may_add_other(struct sb_dict *dict)
{
	int err = need_shares(dict);

	if (err)
		return err;
	if (dict->shares->nr_other[owner_of(dict)] >= SB_DICT_OTHER_MAX)
		return 0;
	dict->shares->nr_other[owner_of(dict)]++;
	return 1;
}
