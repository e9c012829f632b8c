/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Growing arrays: `struct { T *at; size_t nr, cap; } v = {};`, written SB_VEC(T). The owner zeroes
 * it, and frees v.at with sb_vec_release(). Elements move when the array grows, so keep indices and
 * not pointers. The macros take a pointer to the array, and evaluate it several times. After
 * -ENOMEM the array is as it was, and can be used further. Thread: any, one at a time for each
 * array.
 */
#ifndef SB_BASE_VEC_H
#define SB_BASE_VEC_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SB_VEC(type)            \
	struct {                \
		type *at;       \
		size_t nr, cap; \
	}

/* Private to the macros. @at may be NULL, with *@cap 0; @size: bytes of an element. Return: the
 * array, moved, with room for @need elements, which is more than *@cap; NULL when there is no
 * memory: nothing has changed then. */
static inline void *sb_vec_grow(void *at, size_t *cap, size_t need, size_t size)
{
	size_t to = *cap ? *cap : 8;
	void *mem;

	while (to < need) {
		if (to > SIZE_MAX / 2 / size)
			return NULL;
		to *= 2;
	}
	mem = realloc(at, to * size);
	if (mem)
		*cap = to;
	return mem;
}

/* Make room for @n elements in all; nr stays. Return: 0 or -ENOMEM. */
#define sb_vec_reserve(v, n)                                                          \
	({                                                                            \
		size_t need_ = (n);                                                   \
		void *mem_ = (v)->at;                                                 \
                                                                                      \
		if (need_ > (v)->cap) {                                               \
			mem_ = sb_vec_grow(mem_, &(v)->cap, need_, sizeof(*(v)->at)); \
			if (mem_)                                                     \
				(v)->at = mem_;                                       \
		}                                                                     \
		need_ > (v)->cap ? -ENOMEM : 0;                                       \
	})

/* Append one element. Return: 0 or -ENOMEM. */
#define sb_vec_push(v, ...)                                  \
	({                                                   \
		int err_ = sb_vec_reserve((v), (v)->nr + 1); \
                                                             \
		if (!err_)                                   \
			(v)->at[(v)->nr++] = (__VA_ARGS__);  \
		err_;                                        \
	})

/* Grow the array to at least @n elements; each byte of the new ones is set to @byte. Return: 0 or
 * -ENOMEM. */
#define sb_vec_fit(v, n, byte)                                                                 \
	({                                                                                     \
		size_t to_ = (n);                                                              \
		int err_ = sb_vec_reserve((v), to_);                                           \
                                                                                               \
		if (!err_ && to_ > (v)->nr) {                                                  \
			memset((v)->at + (v)->nr, (byte), (to_ - (v)->nr) * sizeof(*(v)->at)); \
			(v)->nr = to_;                                                         \
		}                                                                              \
		err_;                                                                          \
	})

/* Sort the elements with @compare, as qsort(3) does. */
#define sb_vec_sort(v, compare)                                               \
	do {                                                                  \
		if ((v)->nr)                                                  \
			qsort((v)->at, (v)->nr, sizeof(*(v)->at), (compare)); \
	} while (0)

/* Remove all elements. Memory is kept for reuse unless it exceeds SB_VEC_KEPT_BYTES, when it is
 * freed. */
#define SB_VEC_KEPT_BYTES (1u << 20)
#define sb_vec_clear(v)                                              \
	do {                                                         \
		if ((v)->cap * sizeof(*(v)->at) > SB_VEC_KEPT_BYTES) \
			sb_vec_release(v);                           \
		(v)->nr = 0;                                         \
	} while (0)

/*
 * Free unused memory if the array has room for more than twice its elements and exceeds
 * SB_VEC_KEPT_BYTES. When there is no memory for the smaller copy, nothing changes.
 */
#define sb_vec_trim(v)                                                                           \
	do {                                                                                     \
		void *mem_ = NULL;                                                               \
                                                                                                 \
		if ((v)->cap > 2 * (v)->nr && (v)->cap * sizeof(*(v)->at) > SB_VEC_KEPT_BYTES) { \
			if ((v)->nr)                                                             \
				mem_ = realloc((v)->at, (v)->nr * sizeof(*(v)->at));             \
			if (mem_) {                                                              \
				(v)->at = mem_;                                                  \
				(v)->cap = (v)->nr;                                              \
			}                                                                        \
		}                                                                                \
	} while (0)

/* Free the memory; the array is empty then, and can be used again. */
#define sb_vec_release(v)               \
	do {                            \
		free((v)->at);          \
		(v)->at = NULL;         \
		(v)->nr = (v)->cap = 0; \
	} while (0)

#endif
