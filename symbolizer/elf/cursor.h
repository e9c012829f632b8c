/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bounds-checked reading of binary data, mostly DWARF, in this machine's byte order. A read beyond
 * the end returns zero and makes the cursor bad, and all reads after it do the same; so one check
 * of is_bad after a group of reads is enough. Nothing is to be released. Internal to the
 * symbolizer. No pointer is NULL. Thread: one at a time for each cursor.
 */
#ifndef SB_ELF_CURSOR_H
#define SB_ELF_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* @at: the next byte; the data are borrowed. Initialize at and end, and is_bad with false. */
struct sb_cursor {
	const uint8_t *at, *end;
	bool is_bad;
};

/* Return: how many bytes are left; 0 for a bad cursor. */
static inline size_t sb_cursor_left(const struct sb_cursor *cur)
{
	return (size_t)(cur->end - cur->at);
}

/* Make the cursor bad, for data that make no sense. */
static inline void sb_cursor_fail(struct sb_cursor *cur)
{
	cur->at = cur->end;
	cur->is_bad = true;
}

/* Move over @nr_bytes bytes. */
static inline void sb_cursor_skip(struct sb_cursor *cur, uint64_t nr_bytes)
{
	if (nr_bytes > sb_cursor_left(cur))
		sb_cursor_fail(cur);
	else
		cur->at += nr_bytes;
}

/* Read an unsigned number of @size bytes, 1 to 8, which is not checked; DW_FORM_strx3 and addrx3
 * have 3. */
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

/* Read one byte. */
static inline uint8_t sb_cursor_u8(struct sb_cursor *cur)
{
	if (cur->at == cur->end) {
		sb_cursor_fail(cur);
		return 0;
	}
	return *cur->at++;
}

/*
 * Read LEB128 of at most 10 bytes; a longer one makes the cursor bad. @is_signed: extend its sign.
 */
static inline uint64_t sb_cursor_leb(struct sb_cursor *cur, bool is_signed)
{
	uint64_t val = 0;
	unsigned int shift;

	for (shift = 0; shift < 70; shift += 7) {
		uint8_t byte = sb_cursor_u8(cur);

		if (shift < 64)
			val |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			if (is_signed && (byte & 0x40) && shift + 7 < 64)
				val |= ~0ull << (shift + 7);
			return val;
		}
	}
	sb_cursor_fail(cur);
	return 0;
}

/* Read LEB128 of at most 10 bytes, without (uleb) or with a sign (sleb); a longer one makes the
 * cursor bad. */
static inline uint64_t sb_cursor_uleb(struct sb_cursor *cur)
{
	return sb_cursor_leb(cur, false);
}

static inline int64_t sb_cursor_sleb(struct sb_cursor *cur)
{
	return (int64_t)sb_cursor_leb(cur, true);
}

/*
 * Read a string and the NUL behind it. Return: the string, which lies in the data and lives as they
 * do; NULL: it does not end within them.
 */
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
