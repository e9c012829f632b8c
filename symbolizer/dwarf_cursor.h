/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bounds-checked reading of DWARF, in this machine's byte order. Whoever reads beyond the end gets
 * zeros and a cursor that is bad from then on: one check behind a group of reads is enough.
 * Internal to the DWARF reader.
 */
#ifndef SB_DWARF_CURSOR_H
#define SB_DWARF_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct sb_cursor {
	const uint8_t *at, *end;
	bool is_bad;
};

static inline size_t sb_cursor_left(const struct sb_cursor *cur)
{
	return (size_t)(cur->end - cur->at);
}

static inline void sb_cursor_fail(struct sb_cursor *cur)
{
	cur->at = cur->end;
	cur->is_bad = true;
}

static inline void sb_cursor_skip(struct sb_cursor *cur, uint64_t nr_bytes)
{
	if (nr_bytes > sb_cursor_left(cur))
		sb_cursor_fail(cur);
	else
		cur->at += nr_bytes;
}

/* @size: 1 to 8; 3 is what DW_FORM_strx3 and addrx3 have. */
static inline uint64_t sb_cursor_uint(struct sb_cursor *cur, size_t size)
{
	uint64_t val = 0;

	if (size > sb_cursor_left(cur)) {
		sb_cursor_fail(cur);
		return 0;
	}
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	memcpy(&val, cur->at, size);
#else
	memcpy((uint8_t *)&val + sizeof(val) - size, cur->at, size);
#endif
	cur->at += size;
	return val;
}

static inline uint8_t sb_cursor_u8(struct sb_cursor *cur)
{
	if (cur->at == cur->end) {
		sb_cursor_fail(cur);
		return 0;
	}
	return *cur->at++;
}

/* At most 10 bytes: 64 bits of 7 each. */
static inline uint64_t sb_cursor_uleb(struct sb_cursor *cur)
{
	uint64_t val = 0;
	unsigned int shift;

	for (shift = 0; shift < 70; shift += 7) {
		uint8_t byte = sb_cursor_u8(cur);

		if (shift < 64)
			val |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return val;
	}
	sb_cursor_fail(cur);
	return 0;
}

static inline int64_t sb_cursor_sleb(struct sb_cursor *cur)
{
	uint64_t val = 0;
	unsigned int shift;

	for (shift = 0; shift < 70; shift += 7) {
		uint8_t byte = sb_cursor_u8(cur);

		if (shift < 64)
			val |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			if ((byte & 0x40) && shift + 7 < 64)
				val |= ~0ull << (shift + 7);
			return (int64_t)val;
		}
	}
	sb_cursor_fail(cur);
	return 0;
}

/* Return: the string, NUL-terminated within bounds, or NULL. */
static inline const char *sb_cursor_string(struct sb_cursor *cur)
{
	size_t left = sb_cursor_left(cur);
	const uint8_t *s = cur->at, *nul = left ? memchr(s, 0, left) : NULL;

	if (!nul) {
		sb_cursor_fail(cur);
		return NULL;
	}
	cur->at = nul + 1;
	return (const char *)s;
}

#endif
