/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A profile from text: folded, perf script, SystemTap's .bt. */
#ifndef SB_OUTPUT_INPUT_H
#define SB_OUTPUT_INPUT_H

#include "model/profile.h"

struct sb_fg;

/*
 * The stacks that @fg has read, which ends with it, and the facts of its header; sealed. Weights with
 * fractions are rounded: *ret_nr_rounded says how many.
 * Return: 0; -EINVAL: it is a comparison already; -ENOMEM, -E2BIG.
 */
int sb_input_profile(struct sb_fg *fg, struct sb_profile **ret_profile, uint64_t *ret_nr_rounded);

#endif
