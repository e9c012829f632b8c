/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Encoding of numbers in files and messages: little-endian words, and varints of 7 bits a byte,
 * least significant first, as in protobuf. Input may be hostile: a read that would leave the bytes
 * of a cursor, or finds no valid number, returns 0 or NULL and sets is_bad, which stays set. Later
 * reads may return any numbers, but never leave the bytes, so that a parser needs to check is_bad
 * only before it relies on what it read. The caller sets a cursor to the bytes, and is_bad to
 * false; the bytes stay its own. It initializes and releases a string (@str), to which numbers are
 * appended. Thread: any, one for each cursor or string. Pointers are not NULL.
 */
#ifndef SB_STORE_BYTES_H
#define SB_STORE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct sb_cursor {
	const uint8_t *p, *end;
	bool is_bad;
};

/*
 * A decoded number and the position behind it; end is NULL if there is no valid number. It is
 * returned in registers, which halves the time to decode millions of them.
 */
struct sb_varint {
	const uint8_t *end;
	uint64_t value;
};
/* Decode the varint at @p, of input whose last byte is before @end; @p may be @end. Both give the
 * same result; sb_varint(), which is to be called, is inline for numbers of one byte or two.
 * Return: the number, and where it ends; NULL and 0 if there is no valid number before @end. */
struct sb_varint sb_long_varint(const uint8_t *p, const uint8_t *end);
static inline struct sb_varint sb_varint(const uint8_t *p, const uint8_t *end)
{
	/* Most numbers take one byte or two. */
	if (end - p >= 2 && p[0] < 0x80)
		return (struct sb_varint){ p + 1, p[0] };
	if (end - p >= 2 && p[1] < 0x80)
		return (struct sb_varint){ p + 2, (p[0] & 0x7f) | (uint64_t)p[1] << 7 };
	return sb_long_varint(p, end);
}

/* Return: the next number; on error 0, and cursor->is_bad is set. */
static inline uint64_t sb_get_varint(struct sb_cursor *cursor)
{
	struct sb_varint varint = sb_varint(cursor->p, cursor->end);

	cursor->is_bad |= !varint.end;
	cursor->p = varint.end ? varint.end : cursor->end;
	return varint.value;
}
/* Return: the next number, of at most 32 bits; on error, which a larger one is too, 0, and
 * cursor->is_bad is set. */
static inline uint32_t sb_get_u32(struct sb_cursor *cursor)
{
	uint64_t value = sb_get_varint(cursor);

	if (value <= UINT32_MAX)
		return (uint32_t)value;
	cursor->is_bad = true;
	return 0;
}
/*
 * Return: the next @len bytes, borrowed from the input, without a NUL at their end; NULL if there
 * are fewer, or is_bad was set before, and is_bad is set.
 */
const char *sb_get_bytes(struct sb_cursor *cursor, size_t len);

/* Append a number to @str. Return: 0; -ENOMEM, and nothing is appended. */
int sb_put_varint(struct sb_str *str, uint64_t value);

/* Return: the little-endian number of @nr_bytes, up to 8, at @p, which has as many: that is not
 * checked. */
static inline uint64_t sb_load_le(const uint8_t *p, size_t nr_bytes)
{
	uint64_t value = 0;

	while (nr_bytes--)
		value = value << 8 | p[nr_bytes];
	return value;
}

/* Write @value as a little-endian number of @nr_bytes, up to 8, to @p, which has room for them:
 * that is not checked. Higher bytes of @value are not written. */
static inline void sb_store_le(uint8_t *p, size_t nr_bytes, uint64_t value)
{
	size_t i;

	for (i = 0; i < nr_bytes; i++, value >>= 8)
		p[i] = (uint8_t)value;
}

#endif
