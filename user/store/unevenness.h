/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Measures how much weights vary over time, for comparisons of profiles: the same query is run
 * again for parts of its range (model/spread.h). Called by sb_ask_profile(). Not thread-safe: one
 * thread at a time for a store. Pointers are not NULL, and nothing that is given is kept.
 */
#ifndef SB_STORE_UNEVENNESS_H
#define SB_STORE_UNEVENNESS_H

#include "store/store.h"

/**
 * sb_store_query_unevenness() - replace a profile by one that knows the variance of each stack
 * @query: what @profile answers
 * @answer: what sb_store_query() said of it
 * @profile: in and out: not sealed, owned by the caller; freed if it is replaced by a new one,
 *	which is not sealed, either
 *
 * The profile is replaced only if its weights are not counts, and the profiles of the parts add up
 * to it. It stays as it is if the range is too short, or if old aggregates cannot be divided, or
 * with nr_nodes_max.
 *
 * Return: 0; -E2BIG if the profile or the number of files is too large; -ENOMEM; other errors of
 * I/O; on error the profile is unchanged.
 */
int sb_store_query_unevenness(struct sb_store *store, const struct sb_store_query *query,
			      const struct sb_store_answer *answer, struct sb_profile **profile);

#endif
