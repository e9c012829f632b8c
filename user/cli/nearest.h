/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the name that somebody who mistyped probably meant: "did you mean ...?" */
#ifndef SB_CLI_NEAREST_H
#define SB_CLI_NEAREST_H

#include <stddef.h>

/* The name nearest to `typed` so far. Zero-initialise it, but for `typed`. */
struct sb_nearest {
	const char *typed;
	const char *name; /* NULL: none is near enough */
	size_t distance;
};

/* Compare a name, which is borrowed, by edit distance, and keep it if it is nearer. */
void sb_nearest_offer(struct sb_nearest *nearest, const char *name);

#endif
