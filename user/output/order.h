/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sorts stacks by their frames, so that stacks with the same callers are neighbours. Indexes are
 * not checked. Thread: any, while nobody modifies the profile. Pointers are not NULL, and nothing
 * is kept.
 */
#ifndef SB_OUTPUT_ORDER_H
#define SB_OUTPUT_ORDER_H

#include "model/profile.h"

/*
 * Sort the indexes of the first @nr stacks of a profile by their frames' IDs from the root on. It
 * has at least @nr stacks; if it is sealed, the first are the heaviest. *@ret_order has @nr
 * indexes, and is freed by the caller with free(), also if @nr is 0. Return: 0; -ENOMEM, and it is
 * untouched.
 */
int sb_order_new(const struct sb_profile *profile, size_t nr, uint32_t **ret_order);

/* Return: how many frames the stacks with indexes @a and @b have in common, from the root on. */
size_t sb_order_common(const struct sb_profile *profile, uint32_t a, uint32_t b);

#endif
