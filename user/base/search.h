/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Binary search, and comparisons for qsort(3) and its like. Thread: any. */
#ifndef SB_BASE_SEARCH_H
#define SB_BASE_SEARCH_H

#include <stddef.h>

/*
 * Return: the first index from 0 to @nr - 1 for which the expression @is_before is false; @nr:
 * there is none. @i: what the expression calls the index. The caller has sorted: the indices for
 * which it is true come first. @nr is evaluated once.
 */
#define sb_bisect(nr, i, is_before)                       \
	({                                                \
		size_t lo_ = 0, hi_ = (nr);               \
                                                          \
		while (lo_ < hi_) {                       \
			size_t i = lo_ + (hi_ - lo_) / 2; \
                                                          \
			if (is_before)                    \
				lo_ = i + 1;              \
			else                              \
				hi_ = i;                  \
		}                                         \
		lo_;                                      \
	})

/* Return: -1, 0 or 1, as number @a is less than @b, equal, or greater. Each is evaluated twice. */
#define sb_compare(a, b) (((a) > (b)) - ((a) < (b)))

#endif
