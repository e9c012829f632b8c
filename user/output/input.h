/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Makes a profile of text that the flame graph's readers have read: folded, perf script,
 * SystemTap's .bt. Not thread-safe. Pointers are not NULL.
 */
#ifndef SB_OUTPUT_INPUT_H
#define SB_OUTPUT_INPUT_H

#include "model/profile.h"

struct sb_fg;

/**
 * sb_input_profile() - convert what a reader has read to a profile
 * @fg: stacks and metadata (flamegraph/fg.h); stays the caller's. Its tree is sealed by this: it
 *	can be drawn, but no stack can be added
 * @ret_profile: sealed, owned by the caller; borrows nothing from @fg
 * @ret_nr_rounded: how many weights had fractions and were rounded to the nearest whole number
 *
 * A weight above 2^62 becomes 2^62. Text without stacks gives a profile without rows, with the
 * metadata.
 *
 * Return: 0; -EINVAL if the text is a comparison, with two weights in a line, and @fg is as before;
 * -ENOMEM, and @fg can only be freed; -E2BIG if it does not fit into a profile, and the tree is
 * sealed. On error nothing is set.
 */
int sb_input_profile(struct sb_fg *fg, struct sb_profile **ret_profile, uint64_t *ret_nr_rounded);

#endif
