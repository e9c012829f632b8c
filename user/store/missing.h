/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Marks for each row of a file, which is a stack with the tags of its series (dict.h): is its stack
 * truncated or lost, which a frame of the kind SB_FRAME_MARK tells, and how many of its frames have
 * no name. From them every answer says how complete the stacks in it are. Called by query.c. Not
 * thread-safe. Pointers are not NULL; the dictionary is borrowed for the call.
 */
#ifndef SB_STORE_MISSING_H
#define SB_STORE_MISSING_H

#include "store/dict.h"

/* Zero-initialize. */
struct sb_missing {
	/* SB_MARKS_CUT: truncated, lost; lower bits: unnamed frames, at most SB_MARKS_UNNAMED. */
	SB_VEC(uint16_t) of_row;
};
#define SB_MARKS_CUT	 0x8000u
#define SB_MARKS_UNNAMED 0x7fffu

/* Compute the marks of all rows of @dict, unless it has no new rows since the last call: @marks
 * belongs to this dictionary, which may only have grown. Return: 0; -ENOMEM, and the marks are as
 * before: it may be called again. */
int sb_missing_fit(struct sb_missing *marks, const struct sb_dict *dict);
/* Free the marks, and empty it: it can be used again, also for another dictionary. */
void sb_missing_release(struct sb_missing *marks);

#endif
