/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether sums are the sums of what they were made of, as far as that is still there. */
#ifndef SB_STORE_CHECK_H
#define SB_STORE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

struct sb_store_wrong_sum {
	const char *name, *finer; /* of its file, and of that which has the finer blocks */
	struct sb_store_kind kind;
	int64_t begin_s;
	uint32_t seconds;
	bool is_missing;		/* there is none, and later ones are there */
	uint64_t weight, finer_weight;	/* its weight, and that of the finer blocks */
	uint64_t nr_stacks, nr_figures; /* that are not equal */
};

struct sb_store_sums_check {
	void (*on_wrong)(void *arg, const struct sb_store_wrong_sum *sum);
	void *arg;
	/* Sums of what ends later may be as they are: they were made while the clock was ahead, and blocks come to
	 * them one by one, before they come to the sums below. */
	int64_t now_s;
	/* Set by the check: one for each period and kind. */
	uint64_t nr_equal, nr_wrong;
	uint64_t
		nr_left; /* not compared: finer blocks are gone, damaged, not over, or lack a host that was merged */
};
/*
 * Each sum against the blocks of the level below: figures, and weights by stack and narrow tags. Of a store that is
 * being written, what seems wrong is read again. Memory: two files, and 32 bytes for each of their rows.
 * Return: 0, -ENOMEM, others of I/O.
 */
int sb_store_check_sums(struct sb_store *store, struct sb_store_sums_check *check);

#endif
