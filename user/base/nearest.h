/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the name that somebody who mistyped probably meant: "did you mean ...?" Offer all names,
 * then read `name`; nothing is to be freed. Thread: any, one at a time for each struct. */
#ifndef SB_BASE_NEAREST_H
#define SB_BASE_NEAREST_H

#include <stddef.h>

/* The name nearest to `typed` so far. Zero-initialise it, but for `typed`, a borrowed string. */
struct sb_nearest {
	const char *typed;
	const char *name; /* NULL: none is near enough */
	size_t rank;	  /* of `name`; private */
};

/*
 * Compare a name, which is borrowed as long as @nearest is used, and keep it if it is near enough,
 * and nearer than the one before. Two strings are near each other if n edits make one of the other,
 * and n is at most (s + 1) / 3, where s is the length of the shorter one. An edit inserts, deletes
 * or replaces a byte, or swaps two neighbouring ones. A string of at least 3 bytes is also near any
 * longer one that begins with it.
 * Strings of more than 80 bytes are never near. No pointer is NULL.
 */
void sb_nearest_offer(struct sb_nearest *nearest, const char *name);

#endif
