// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The three formats of line tables: Objects/lnotab_notes.txt (up to 3.9, and that of 3.10) and
 * Objects/locations.md (from 3.11 on). Deltas are added as CPython adds them, even if the result
 * makes no sense.
 */
#include "interp/python/python_priv.h"
#include "symbolizer/elf/cursor.h"

/* co_lnotab: pairs of {bytes of code, lines}, and the line changes behind those bytes. */
static uint32_t line_of_lnotab(uint32_t version, struct sb_cursor c, uint32_t line,
			       uint64_t position)
{
	uint64_t offset = position ? position - 1 : 0, addr = 0;
	bool is_signed = version >= SB_PYTHON(3, 6);

	while (c.at < c.end) {
		uint8_t delta;

		addr += sb_cursor_u8(&c);
		if (addr > offset)
			break;
		delta = sb_cursor_u8(&c);
		line += is_signed ? (uint32_t)(int8_t)delta : delta;
	}
	return line;
}

/* 3.10: pairs of {bytes of code, lines}, and the line changes before those bytes; -128: there is
 * none. */
static uint32_t line_of_pairs(struct sb_cursor c, uint32_t line, uint64_t position)
{
	uint64_t offset = position ? 2 * (position - 1) : 0, end = 0;

	while (c.at < c.end) {
		uint8_t bytes = sb_cursor_u8(&c);
		int8_t delta = (int8_t)sb_cursor_u8(&c);

		if (delta != -128)
			line += (uint32_t)delta;
		end += bytes;
		if (offset < end)
			return delta == -128 ? 0 : line;
	}
	return 0;
}

/* Six bits at a time, least significant first; bit 6: there are more. */
static uint32_t next_varint(struct sb_cursor *c)
{
	uint8_t byte = sb_cursor_u8(c);
	uint32_t val = byte & 63, shift;

	for (shift = 6; (byte & 64) && shift < 32; shift += 6) {
		byte = sb_cursor_u8(c);
		val |= (uint32_t)(byte & 63) << shift;
	}
	return val;
}

static uint32_t next_signed_varint(struct sb_cursor *c)
{
	uint32_t val = next_varint(c);

	return val & 1 ? -(val >> 1) : val >> 1;
}

enum location {
	LOCATION_ONE_LINE = 10, /* to 12: so many lines on */
	LOCATION_NO_COLUMNS = 13,
	LOCATION_LONG = 14,
	LOCATION_NONE = 15,
};

/* One entry: {1, code, units - 1}, and by its code more bytes, all without bit 7. */
static uint32_t line_of_locations(struct sb_cursor c, uint32_t line, uint64_t position)
{
	uint64_t unit = position ? position - 1 : 0, end = 0;

	while (c.at < c.end) {
		uint8_t entry = sb_cursor_u8(&c), code = entry >> 3 & 15;

		if (code == LOCATION_LONG || code == LOCATION_NO_COLUMNS)
			line += next_signed_varint(&c);
		else if (code >= LOCATION_ONE_LINE && code < LOCATION_NO_COLUMNS)
			line += code - LOCATION_ONE_LINE;
		end += (entry & 7) + 1u;
		if (unit < end)
			return code == LOCATION_NONE ? 0 : line;
		while (c.at < c.end && !(*c.at & 0x80)) /* columns */
			c.at++;
	}
	return 0;
}

uint32_t sb_python_line(uint32_t version, const uint8_t *table, size_t len, uint32_t first_line,
			uint64_t position)
{
	struct sb_cursor c = { .at = table, .end = table + len };

	if (version < SB_PYTHON(3, 10))
		return line_of_lnotab(version, c, first_line, position);
	if (version == SB_PYTHON(3, 10))
		return line_of_pairs(c, first_line, position);
	return line_of_locations(c, first_line, position);
}
