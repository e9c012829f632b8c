// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/utf8.h"

#include <string.h>

#include "base/cleanup.h"

size_t sb_utf8_decode(const char *s, size_t len, uint32_t *ret_rune)
{
	static const struct {
		uint8_t first_lo, first_hi, second_lo, second_hi, len;
	} forms[] = {
		{ 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 },
		{ 0xee, 0xef, 0x80, 0xbf, 3 }, { 0xf0, 0xf0, 0x90, 0xbf, 4 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};
	const uint8_t *p = (const uint8_t *)s;
	size_t n = 1, form = 0;

	*ret_rune = p[0];
	if (p[0] < 0x80)
		return 1;
	*ret_rune = SB_RUNE_INVALID;
	while (form < SB_ARRAY_SIZE(forms) && p[0] > forms[form].first_hi)
		form++;
	if (form == SB_ARRAY_SIZE(forms) || p[0] < forms[form].first_lo || len < 2 ||
	    p[1] < forms[form].second_lo || p[1] > forms[form].second_hi)
		return 1;
	for (n = 2; n < forms[form].len; n++) {
		if (n == len || (p[n] & 0xc0) != 0x80)
			return n;
	}
	*ret_rune = p[0] & (0xff >> (n + 1));
	for (size_t i = 1; i < n; i++)
		*ret_rune = *ret_rune << 6 | (p[i] & 0x3f);
	return n;
}

bool sb_rune_is_shown(uint32_t rune)
{
	static const struct {
		uint32_t first, last;
	} hidden[] = {
		{ 0, 0x1f },	    { 0x7f, 0x9f },	{ 0x2028, 0x202e },
		{ 0x2066, 0x2069 }, { 0xd800, 0xdfff }, { SB_RUNE_INVALID, UINT32_MAX },
	};
	size_t i;

	if (rune >= 0x20 && rune < 0x7f)
		return true;
	for (i = 0; i < SB_ARRAY_SIZE(hidden); i++)
		if (rune >= hidden[i].first && rune <= hidden[i].last)
			return false;
	return (rune & 0xfffe) != 0xfffe;
}

#define EACH_BYTE(val) (0x0101010101010101ull * (val))

/* Whether one of eight bytes is no printable character of ASCII. */
static bool is_special(const char *s)
{
	uint64_t word, del;

	memcpy(&word, s, sizeof(word));
	del = word ^ EACH_BYTE(0x7f);
	return (word | (word - EACH_BYTE(0x20)) | (del - EACH_BYTE(1))) & EACH_BYTE(0x80);
}

/* Return: how many bytes at @s may be shown; *ret_hidden: how many may not, behind them. */
static size_t next_hidden(const char *s, size_t len, size_t *ret_hidden)
{
	size_t at = 0, eight, nr;
	uint32_t rune;

	while (at < len) {
		/* The last few bytes are looked at together with those before them. */
		eight = len >= 8 && len - at < 8 ? len - 8 : at;
		if (len >= 8 && !is_special(s + eight)) {
			at = eight + 8;
			continue;
		}
		nr = sb_utf8_decode(s + at, len - at, &rune);
		if (!sb_rune_is_shown(rune)) {
			*ret_hidden = nr;
			return at;
		}
		at += nr;
	}
	*ret_hidden = 0;
	return at;
}

void sb_replace_controls(char *s, size_t len)
{
	size_t at = 0, hidden;

	while (at < len) {
		at += next_hidden(s + at, len - at, &hidden);
		memset(s + at, '?', hidden);
		at += hidden;
	}
}

void sb_print_clean(FILE *out, const char *s, size_t len)
{
	size_t nr, hidden;

	for (; len; s += nr + hidden, len -= nr + hidden) {
		nr = next_hidden(s, len, &hidden);
		fwrite(s, 1, nr, out);
		for (size_t i = 0; i < hidden; i++)
			putc('?', out);
	}
}
