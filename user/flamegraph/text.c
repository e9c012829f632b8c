// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flamegraph/text.h"

#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

#define IDLE_ROOT "[idle]"

const struct sb_tree_frame sb_fg_frame_empty = { .name = "[empty]", .len = 7, .kind = SB_FG_MARK };

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/* Eight bytes at once: the high bit of a byte is set if it is above 0x7e or below 0x20. */
static uint64_t not_plain(uint64_t bytes)
{
	const uint64_t ones = 0x0101010101010101ull, high = 0x8080808080808080ull;

	return ((bytes + ones) | bytes | ((bytes - ones * 0x20) & ~bytes)) & high;
}

bool sb_fg_text_is_plain(const char *s, size_t len)
{
	uint64_t bytes, bad = 0;

	for (; len >= 8; s += 8, len -= 8) {
		memcpy(&bytes, s, 8);
		bad |= not_plain(bytes);
	}
	if (len) {
		bytes = 0x2020202020202020ull;
		memcpy(&bytes, s, len);
		bad |= not_plain(bytes);
	}
	return !bad;
}

/* Return: the length of the character at @s; 0 if it may not be shown. */
static size_t utf8_len(const unsigned char *s, size_t len)
{
	uint32_t rune;
	size_t nr;

	if (s[0] < 0x80)
		return s[0] >= 0x20 && s[0] != 0x7f;
	nr = sb_utf8_decode((const char *)s, len, &rune);
	return sb_rune_is_shown(rune) ? nr : 0;
}

long sb_fg_text_clean(struct sb_str *out, const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s, *end = p + len, *good = p;
	long nr_bad = 0;
	size_t n;
	int err;

	while (p < end) {
		n = utf8_len(p, (size_t)(end - p));
		if (n) {
			p += n;
			continue;
		}
		err = sb_str_addn(out, (const char *)good, (size_t)(p - good));
		if (!err)
			err = *p == '\t' ? sb_str_addc(out, ' ') : sb_str_add(out, replacement);
		if (err)
			return err;
		nr_bad += *p != '\t';
		good = ++p;
	}
	err = sb_str_addn(out, (const char *)good, (size_t)(p - good));
	return err ? err : nr_bad;
}

int sb_fg_text_set(struct sb_str *out, const char *s)
{
	sb_str_clear(out);
	return sb_fg_text_clean(out, s, strlen(s)) < 0 ? -ENOMEM : 0;
}

/* "[module+0x12]", "[unknown]", "[unknown <7f12>]" */
static bool is_unknown(const char *name, size_t len)
{
	const char *plus;
	size_t i;

	if (sb_text_begins(name, len, "[unknown"))
		return true;
	plus = memmem(name, len, "+0x", 3);
	if (!plus)
		return false;
	for (i = (size_t)(plus - name) + 3; i < len - 1; i++)
		if (!strchr("0123456789abcdefABCDEF", name[i]) || !name[i])
			return false;
	return true;
}

/* "[python truncated: unreadable stack]" */
static bool is_cut_interpreter(const char *name, size_t len)
{
	size_t i = 1;

	while (i < len &&
	       ((name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9')))
		i++;
	return i > 1 && sb_text_begins(name + i, len - i, " truncated: ");
}

/* Return: what an annotation of four bytes says; SB_FG_KIND_MAX if it is none. */
static enum sb_fg_kind kind_of_annotation(const char *s)
{
	int kind = 0;

	while (kind < SB_FG_KIND_MAX &&
	       !(sb_fg_kinds[kind].suffix[0] && !memcmp(sb_fg_kinds[kind].suffix, s, 4)))
		kind++;
	return (enum sb_fg_kind)kind;
}

static enum sb_fg_kind kind_of_shape(const char *name, size_t len)
{
	static const struct {
		const char *form;
		enum sb_fg_kind kind;
	} shapes[] = {
#define SB_MARK(form, kind, ...) { form, SB_FG_##kind },
#define SB_FORM(form, kind)	 { form, SB_FG_##kind },
#include "tree/frames.def"
	};

	if (len && len <= 2 && name[0] == '-' && name[len - 1] == '-')
		return SB_FG_DELIMITER;
	if (!len || name[len - 1] != ']' || name[0] != '[')
		return SB_FG_PLAIN;
	for (size_t i = 0; i < SB_ARRAY_SIZE(shapes); i++)
		if (sb_frame_has_form(name, len, shapes[i].form))
			return shapes[i].kind;
	if (is_cut_interpreter(name, len))
		return SB_FG_MARK;
	return is_unknown(name, len) ? SB_FG_UNKNOWN : SB_FG_PLAIN;
}

struct sb_tree_frame sb_fg_frame_parse(const char *name, size_t len)
{
	struct sb_tree_frame frame = { .name = name, .len = len };
	enum sb_fg_kind said = SB_FG_KIND_MAX;

	if (len > 4 && name[len - 1] == ']' && name[len - 3] == '[' && name[len - 4] == '_')
		said = kind_of_annotation(name + len - 4);
	frame.len -= said == SB_FG_KIND_MAX ? 0 : 4;
	if (said == SB_FG_KIND_MAX)
		frame.kind = kind_of_shape(name, frame.len);
	else if (sb_fg_kinds[said].is_code && said != SB_FG_PLAIN &&
		 kind_of_shape(name, frame.len) == SB_FG_UNKNOWN)
		frame.kind = SB_FG_UNKNOWN;
	else
		frame.kind = said;
	return frame;
}

static bool is_idle_root(const struct sb_tree_frame *frame)
{
	return frame->kind == SB_FG_IDLE && sb_text_is(frame->name, frame->len, IDLE_ROOT);
}

/* The kind of a frame below others: plain frames get @above; SB_FG_IDLE applies to all code. */
static enum sb_fg_kind kind_below(enum sb_fg_kind kind, enum sb_fg_kind above)
{
	if (above == SB_FG_IDLE)
		return sb_fg_kinds[kind].is_code ? SB_FG_IDLE : kind;
	return kind == SB_FG_PLAIN ? above : kind;
}

void sb_fg_frame_place_typed(struct sb_tree_frame *frame, bool is_root, enum sb_fg_kind *above)
{
	if (is_root && is_idle_root(frame))
		*above = SB_FG_IDLE;
	else if (frame->kind != SB_FG_DELIMITER)
		frame->kind = *above == SB_FG_PLAIN ? frame->kind : kind_below(frame->kind, *above);
	else if (*above != SB_FG_IDLE && *above != SB_FG_WAKER)
		/* The stack of a waker has one more delimiter, and stays a waker's. */
		*above = frame->len == 2 ? SB_FG_WAKER : SB_FG_KERNEL;
}
