/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers for strings of a profile, or constants, in the order in which they are met. Not thread-safe. */
#ifndef SB_OUTPUT_NUMBERS_H
#define SB_OUTPUT_NUMBERS_H

#include <stdint.h>

#include "base/index.h"
#include "base/vec.h"

struct sb_numbers {
	SB_VEC(const char *) at; /* borrowed */
	struct sb_index index;
};

/* By where it lies: a profile has equal strings once. Return: 0 and its number, from 0 on; -ENOMEM. */
int sb_numbers_of(struct sb_numbers *numbers, const char *s, uint32_t *ret_number);
void sb_numbers_release(struct sb_numbers *numbers);

#endif
