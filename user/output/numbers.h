/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers strings in the order in which they are met, for formats with a table of strings:
 * sb_numbers_of() for each string, then read `at`, then sb_numbers_release(). Not thread-safe.
 * Pointers are not NULL unless it says so.
 */
#ifndef SB_OUTPUT_NUMBERS_H
#define SB_OUTPUT_NUMBERS_H

#include <stdint.h>

#include "base/index.h"
#include "base/vec.h"

/* Zero-initialize. */
struct sb_numbers {
	SB_VEC(const char *) at; /* by number; borrowed, as long as this is used */
	struct sb_index index;
};

/*
 * Find the number of a string, or give it the next one, from 0 on. Strings are compared by address,
 * because a profile interns them; @s is only kept, not read, and may be NULL. Return: 0 and
 * *ret_number; -ENOMEM, and then that is not valid, and @numbers can only be released.
 */
int sb_numbers_of(struct sb_numbers *numbers, const char *s, uint32_t *ret_number);
/* Free the table, not the strings; it is empty then and can be used again. */
void sb_numbers_release(struct sb_numbers *numbers);

#endif
