/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kinds of profiles in a store. Thread: any. Pointers are not NULL, and none is kept. */
#ifndef SB_STORE_KIND_H
#define SB_STORE_KIND_H

#include <stdbool.h>

/*
 * What was measured, and in which unit: "oncpu" in "samples". Weights add up only within one kind.
 */
#define SB_KIND_BYTES 23
#define SB_UNIT_BYTES 12
struct sb_store_kind {
	char name[SB_KIND_BYTES], unit[SB_UNIT_BYTES]; /* padded with NUL, one at least */
};

/* Set *ret_kind to copies. Return: whether a record can have them: @name is not empty, both are
 * short enough, and if @name has more than 11 bytes, @unit is one of the few that such may have; if
 * not, *ret_kind is not to be used. */
bool sb_store_kind_set(const char *name, const char *unit, struct sb_store_kind *ret_kind);

#endif
