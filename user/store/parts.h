/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A question asked again in parts of its time, which say how uneven samples are: model/spread.h. */
#ifndef SB_STORE_PARTS_H
#define SB_STORE_PARTS_H

#include "store/store.h"

/*
 * *@profile is what sb_store_query() made of @query, with @answer, and not sealed. Where weights are no counts, and parts
 * of the time can be had that add up to it, another one takes its place, which knows the squares of each stack.
 * Where not, because the time is short, or sums of long ago cannot be divided, it stays what it is.
 * Return: 0, -ENOMEM, others of I/O; the profile remains the caller's.
 */
int sb_store_query_parts(struct sb_store *store, const struct sb_store_query *query,
			 const struct sb_store_answer *answer, struct sb_profile **profile);

#endif
