/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* "Did you mean ...?" */
#ifndef SB_CLI_NEAREST_H
#define SB_CLI_NEAREST_H

#include <stddef.h>

/* The best of the names offered so far. Zeroed, with `typed` set. */
struct sb_nearest {
	const char *typed;
	const char *name; /* NULL: nothing is near */
	size_t distance;
};

/* Offer a name, which is borrowed. */
void sb_nearest_offer(struct sb_nearest *nearest, const char *name);

#endif
