/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers in files: little-endian words, and variable-length ones of 7 bits a byte, least significant
 * first (as protobuf has them). What is read may be anything: a cursor that would leave its bytes becomes
 * bad, gives 0 from there on, and is asked once at the end.
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

uint64_t sb_get_long_varint(struct sb_cursor *cursor);
static inline uint64_t sb_get_varint(struct sb_cursor *cursor)
{
	/* Most are of one byte. */
	if (cursor->p < cursor->end && *cursor->p < 0x80)
		return *cursor->p++;
	return sb_get_long_varint(cursor);
}
/* The same, as 32 bits; larger ones are bad. */
static inline uint32_t sb_get_u32(struct sb_cursor *cursor)
{
	uint64_t value = sb_get_varint(cursor);

	if (value <= UINT32_MAX)
		return (uint32_t)value;
	cursor->is_bad = true;
	return 0;
}
/* Return: the next @len bytes, or NULL. */
const char *sb_get_bytes(struct sb_cursor *cursor, size_t len);

/* Append. Return: 0 or -ENOMEM. */
int sb_put_varint(struct sb_str *str, uint64_t value);

static inline uint64_t sb_load_le(const uint8_t *p, size_t nr_bytes)
{
	uint64_t value = 0;

	while (nr_bytes--)
		value = value << 8 | p[nr_bytes];
	return value;
}

static inline void sb_store_le(uint8_t *p, size_t nr_bytes, uint64_t value)
{
	size_t i;

	for (i = 0; i < nr_bytes; i++, value >>= 8)
		p[i] = (uint8_t)value;
}

#endif
