/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kinds of profiles in a store. Thread: any. Pointers are not NULL, and none is kept. */
#ifndef SB_STORE_KIND_H
#define SB_STORE_KIND_H

#include <stdbool.h>

/*
 * What was measured, and in which unit: "oncpu" in "samples". Weights add up only within one kind.
 */
#define SB_KIND_BYTES 23
#define SB_UNIT_BYTES 13
struct sb_store_kind {
	char name[SB_KIND_BYTES], unit[SB_UNIT_BYTES]; /* padded with NUL, one at least */
};

/* Set *ret_kind to copies. Return: whether a record can have them: @name has 1 to 22 bytes, @unit
 * at most 12, and if @name has more than 11, @unit is "events", "units", "us", "samples" or
 * "bytes"; if not, *ret_kind is untouched. */
bool sb_store_kind_set(const char *name, const char *unit, struct sb_store_kind *ret_kind);

#endif
