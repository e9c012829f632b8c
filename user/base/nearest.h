/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the name that somebody who mistyped probably meant: "did you mean ...?" Offer all names,
 * then read `name`. Thread: any. */
#ifndef SB_BASE_NEAREST_H
#define SB_BASE_NEAREST_H

#include <stddef.h>

/* The name nearest to `typed` so far. Zero-initialise it, but for `typed`. */
struct sb_nearest {
	const char *typed;
	const char *name; /* NULL: none is near enough */
	size_t rank;	  /* of `name`; private */
};

/* Compare a name, which is borrowed as long as @nearest is used, by edit distance, and keep it if
 * it is near enough, and nearer than the one before. */
void sb_nearest_offer(struct sb_nearest *nearest, const char *name);

#endif
