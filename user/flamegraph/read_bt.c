// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Backtraces as SystemTap scripts print them (".bt"): leaf first, one frame in each line, then a
 * line with the count:
 *
 *	 0x7f2a3c4d5e6f : memcpy+0x12/0x40 [libc.so.6]
 *	 0x401234 : main+0x20/0x30 [prog]
 *		17
 *
 * Scripts for interpreters print only the name of a frame.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/num.h"
#include "flamegraph/reader.h"
#include "flamegraph/text.h"

/* Messages of the scripts on stderr, which are often redirected to the same file. */
static bool is_chatter(const char *line, size_t len)
{
	static const char *const heads[] = { "WARNING: ", "Time's up. Quitting",
					     "No backtraces found", "Please wait for" };
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(heads); i++)
		if (sb_text_begins(line, len, heads[i]))
			return true;
	return false;
}

static void trim(const char **line, size_t *len)
{
	while (*len && isspace((unsigned char)(*line)[*len - 1]))
		--*len;
	while (*len && isspace((unsigned char)**line)) {
		++*line;
		--*len;
	}
}

/* Remove "0x1234" from the beginning. Return: whether it was there. */
static bool take_addr(const char **line, size_t *len, uint64_t *ret_addr)
{
	const char *p = *line + 2, *end = *line + *len;

	if (*len < 3 || memcmp(*line, "0x", 2) || !sb_scan_hex(&p, end, ret_addr))
		return false;
	if (p < end && *p != ' ')
		return false;
	*len = (size_t)(end - p);
	*line = p;
	trim(line, len);
	if (*len && **line == ':') {
		++*line;
		--*len;
		trim(line, len);
	}
	return true;
}

/*
 * Remove " [module]" or " (inexact)" from the end. Return: where the bracket was; NULL if it was
 * not there.
 */
static const char *take_tail(const char *line, size_t *len, char open, char close)
{
	const char *at;

	if (!*len || line[*len - 1] != close)
		return NULL;
	at = memrchr(line, open, *len);
	if (!at || at == line || at[-1] != ' ')
		return NULL;
	*len = (size_t)(at - line);
	trim(&line, len);
	return at;
}

/* Remove "+0x12/0x40" or "+0x12" from the end. */
static void take_offset(const char *name, size_t *len)
{
	static const char allowed[] = "0123456789abcdefABCDEFx/";
	const char *plus = memrchr(name, '+', *len);
	const char *p;

	if (!plus || plus == name || name + *len - plus < 4 || memcmp(plus, "+0x", 3))
		return;
	for (p = plus + 1; p < name + *len; p++)
		if (!memchr(allowed, *p, sizeof(allowed) - 1))
			return;
	*len = (size_t)(plus - name);
}

/* A frame from "[module]", or from "[module+0x12/0x3456]" without the size. Changes @line. */
static struct sb_tree_frame without_symbol(char *line, size_t len)
{
	static const char unknown[] = "[unknown]";
	char *slash;

	if (!len)
		return sb_fg_frame_parse(unknown, sizeof(unknown) - 1);
	slash = memmem(line, len, "/0x", 3);
	if (slash) {
		*slash = ']';
		len = (size_t)(slash - line) + 1;
	}
	return (struct sb_tree_frame){ line, len, SB_FG_UNKNOWN };
}

static size_t copy(char to[SB_TREE_NAME_MAX], const char *from, size_t len)
{
	len = len < SB_TREE_NAME_MAX ? len : SB_TREE_NAME_MAX;
	if (len)
		memcpy(to, from, len);
	return len;
}

static int feed_frame(struct sb_fg *fg, const char *line, size_t len)
{
	struct sb_tree_frame frame;
	char no_symbol[SB_TREE_NAME_MAX];
	const char *module;
	size_t module_len;
	uint64_t addr = 0;
	bool has_addr = take_addr(&line, &len, &addr);

	take_tail(line, &len, '(', ')');
	module_len = len;
	module = take_tail(line, &len, '[', ']');
	module_len = module ? (size_t)(line + module_len - module) : 0;
	/* The name of an interpreter's frame may contain anything; offsets are SystemTap's. */
	if (has_addr || module)
		take_offset(line, &len);
	/* Without a symbol, the name is the address again, or empty, or only the module. */
	if (!len || (len > 2 && !memcmp(line, "0x", 2)))
		frame = without_symbol(no_symbol, copy(no_symbol, module, module_len));
	else if (has_addr && line[0] == '[')
		frame = without_symbol(no_symbol, copy(no_symbol, line, len));
	else
		frame = sb_fg_frame_parse(line, len);
	/* Addresses in the upper half belong to the kernel. */
	if (addr >> 63 && frame.kind == SB_FG_PLAIN)
		frame.kind = SB_FG_KERNEL;
	return sb_fg_pending_add(&fg->pending, &frame);
}

static int feed(struct sb_fg *fg, const char *line, size_t len)
{
	double weight;

	if (len && line[0] == '#')
		return sb_fg_read_header(fg, line, len);
	if (is_chatter(line, len))
		return 0;
	trim(&line, &len);
	if (!len)
		return 0;
	if (!sb_parse_decimal(line, len, &weight))
		return feed_frame(fg, line, len);
	if (!fg->pending.frames.nr) {
		sb_fg_complain(fg, SB_FG_NO_STACK);
		return -EINVAL;
	}
	return sb_fg_pending_take(fg, NULL, weight);
}

static int finish(struct sb_fg *fg)
{
	if (!fg->pending.frames.nr)
		return 0;
	sb_fg_complain(fg, SB_FG_NO_END);
	sb_fg_pending_clear(&fg->pending);
	return 0;
}

/* "...;leaf 12": a line with a whole stack. */
static bool is_folded(const char *line, size_t len)
{
	const char *space = memrchr(line, ' ', len);
	double weight;

	return space && sb_parse_decimal(space + 1, (size_t)(line + len - space - 1), &weight);
}

static bool sniff(const char *head, size_t len)
{
	const char *end = head + len, *line, *next;
	size_t nr_frames = 0, line_len;
	uint64_t addr;
	double weight;
	bool indented;

	for (; head < end; head = next) {
		line = head;
		next = memchr(head, '\n', (size_t)(end - head));
		line_len = (size_t)((next ? next : end) - line);
		next = next ? next + 1 : end;
		if (!line_len || *line == '#' || is_chatter(line, line_len))
			continue;
		indented = isspace((unsigned char)*line);
		trim(&line, &line_len);
		if (!line_len)
			continue;
		if (indented && sb_parse_decimal(line, line_len, &weight))
			return nr_frames > 0;
		if (is_folded(line, line_len))
			return false;
		if (!nr_frames++ && indented && take_addr(&line, &line_len, &addr))
			return true;
	}
	return false;
}

const struct sb_fg_reader sb_fg_reader_bt = {
	.name = "stap", .sniff = sniff, .feed = feed, .finish = finish
};
