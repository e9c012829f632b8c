/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Checks that each aggregate of a store (10 min, 1 h, 1 d) equals the sum of the finer blocks it
 * was made of, as far as these are still kept. Called by `store check`. Not thread-safe. Pointers
 * are not NULL.
 */
#ifndef SB_STORE_CHECK_H
#define SB_STORE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

struct sb_store_wrong_sum {
	const char *name,
		*finer; /* its file, and the file of the finer blocks; for the call only */
	struct sb_store_kind kind;
	int64_t begin_s;
	uint32_t seconds;
	bool is_missing;		/* there is no aggregate, although there are later ones */
	uint64_t weight, finer_weight;	/* weight of the aggregate, and of the finer blocks */
	uint64_t nr_stacks, nr_figures; /* how many of them differ */
};

struct sb_store_sums_check {
	/* Called for each wrong aggregate; @sum is valid during the call. */
	void (*on_wrong)(void *arg, const struct sb_store_wrong_sum *sum);
	void *arg; /* may be NULL */
	/*
	 * The present, seconds since the epoch. Aggregates of periods that end later may differ:
	 * they were made while the clock was ahead, and are updated block by block.
	 */
	int64_t now_s;
	/* Results: numbers of aggregates, one for each period and kind. */
	uint64_t nr_equal, nr_wrong;
	/* Not compared: finer blocks expired, damaged, not over, or lack a host that was merged. */
	uint64_t nr_left;
};
/**
 * sb_store_check_sums() - compare all aggregates with the blocks of the level below
 * @check: callback and present time in, counts out, also on error
 *
 * Compares the figures, and the weight of each stack with its tags that are not wide (share.h).
 * While the store has a writer, an aggregate that seems wrong is read again. Files that cannot be
 * read are skipped. Memory: two files, and 32 bytes for each of their rows.
 *
 * Return: 0, also if aggregates are wrong; -ENOMEM; other errors of I/O, and then only a part was
 * compared, and the call may be repeated.
 */
int sb_store_check_sums(struct sb_store *store, struct sb_store_sums_check *check);

#endif
