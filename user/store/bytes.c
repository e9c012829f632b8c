// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/bytes.h"

#define VARINT_BYTES_MAX 10

struct sb_varint sb_long_varint(const uint8_t *p, const uint8_t *end)
{
	uint64_t value = 0;
	unsigned int i;

	for (i = 0; i < VARINT_BYTES_MAX && p < end; i++) {
		uint8_t byte = *p++;

		/* The tenth byte has one bit only. */
		if (i == VARINT_BYTES_MAX - 1 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80))
			return (struct sb_varint){ p, value };
	}
	return (struct sb_varint){};
}

const char *sb_get_bytes(struct sb_cursor *cursor, size_t len)
{
	const uint8_t *p = cursor->p;

	if (cursor->is_bad || len > (size_t)(cursor->end - p)) {
		cursor->is_bad = true;
		return NULL;
	}
	cursor->p += len;
	return (const char *)p;
}

int sb_put_varint(struct sb_str *str, uint64_t value)
{
	char bytes[VARINT_BYTES_MAX];
	size_t nr = 0;

	do {
		bytes[nr++] = (char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		value >>= 7;
	} while (value);
	return sb_str_addn(str, bytes, nr);
}
