/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stacks in the order of their frames, so that those with the same callers stand together. */
#ifndef SB_OUTPUT_ORDER_H
#define SB_OUTPUT_ORDER_H

#include "model/profile.h"

/*
 * The numbers of the heaviest @nr stacks, sorted by their frames' numbers from the root on: a stack comes
 * right behind one that it shares most frames with. The caller frees *ret_order. Return: 0 or -ENOMEM.
 */
int sb_order_new(const struct sb_profile *profile, size_t nr, uint32_t **ret_order);

/* Return: how many frames, from the root on, two stacks have in common. */
size_t sb_order_common(const struct sb_profile *profile, uint32_t a, uint32_t b);

#endif
