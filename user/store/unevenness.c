// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/unevenness.h"

#include "base/cleanup.h"
#include "model/spread.h"

/* Return: about how long a part is: a whole number of blocks of @level. */
static int64_t part_s(const struct sb_store_query *query, size_t level)
{
	int64_t block_s = sb_levels[level].seconds;
	int64_t each_s = (query->to_s - query->from_s) / SB_SPREAD_PARTS_MAX + block_s - 1;

	return each_s < block_s ? block_s : each_s - each_s % block_s;
}

/* Run the query for parts of the range that begin where blocks of @level do. */
static int ask_parts(struct sb_store *store, const struct sb_store_query *query, size_t level,
		     struct sb_profile *profile, struct sb_spread *spread)
{
	int64_t length_s = part_s(query, level), at_s, next_s;
	struct sb_store_query part = *query;
	struct sb_store_answer answer;
	int err = 0;

	for (at_s = query->from_s; at_s < query->to_s && !err; at_s = next_s) {
		next_s = sb_level_begin(level, at_s + length_s);
		part.from_s = at_s;
		part.to_s = next_s < query->to_s ? next_s : query->to_s;
		err = sb_store_query(store, &part, profile, &answer);
		if (!err)
			err = sb_spread_part(spread, profile);
	}
	return err;
}

int sb_store_query_unevenness(struct sb_store *store, const struct sb_store_query *query,
			      const struct sb_store_answer *answer, struct sb_profile **profile)
{
	size_t level;
	int err = 0;

	if (sb_spread_is_even(answer->kind.unit[0] ? answer->kind.unit : NULL) ||
	    query->nr_nodes_max)
		return 0;
	/*
	 * Where fine blocks have expired, several parts would get the same coarse block: too much
	 * in all.
	 */
	for (level = 0; level < SB_STORE_LEVELS && !err; level++) {
		sb_cleanup(sb_profile_freep) struct sb_profile *parts = NULL;
		struct sb_spread spread = {};
		bool is_it = false;

		if (query->to_s - query->from_s < SB_SPREAD_PARTS_MIN * sb_levels[level].seconds)
			break;
		err = sb_profile_new(&parts) ?: ask_parts(store, query, level, parts, &spread);
		is_it = !err && sb_profile_weight(parts) == sb_profile_weight(*profile);
		if (is_it)
			err = sb_spread_end(&spread, parts);
		sb_spread_release(&spread);
		if (err || !is_it)
			continue;
		sb_profile_free(*profile);
		*profile = sb_take(parts);
		break;
	}
	return err;
}
