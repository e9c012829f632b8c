/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is missing in the stacks of a file: whether a stack was cut, and how many of its frames have no name. Known for
 * each row, so that an answer says it of the rows that it is made of, whatever rules it was asked by.
 */
#ifndef SB_STORE_MARKS_H
#define SB_STORE_MARKS_H

#include "store/dict.h"

/* Zero-initialize. */
struct sb_marks {
	SB_VEC(uint16_t) of_row; /* frames without a name, SB_MARKS_UNNAMED of it; SB_MARKS_CUT */
};
#define SB_MARKS_CUT	 0x8000u
#define SB_MARKS_UNNAMED 0x7fffu

/**
 * sb_marks_fit() - know the rows of a dictionary
 * @dict: as it was the last time, or grown
 *
 * Thread: that of the store. Return: 0 or -ENOMEM.
 */
int sb_marks_fit(struct sb_marks *marks, const struct sb_dict *dict);
void sb_marks_release(struct sb_marks *marks);

#endif
