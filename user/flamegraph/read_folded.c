// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Folded text: "root;...;leaf weight", which all stackcollapse programs and our own views write;
 * and for comparisons "root;...;leaf a b", which difffolded.pl writes.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/num.h"
#include "flamegraph/reader.h"
#include "flamegraph/text.h"

/* A stack without its weight. */
struct folded {
	const char *s;
	size_t len,
		tail; /* from here on, the kind of frames depends on their distance from the end */
};

/* Return: how many bytes are equal at the beginning. */
static size_t common_len(const char *a, const char *b, size_t len)
{
	uint64_t word_a, word_b;
	size_t i = 0;

	for (; i + 8 <= len; i += 8) {
		memcpy(&word_a, a + i, 8);
		memcpy(&word_b, b + i, 8);
		if (word_a != word_b)
			break;
	}
	while (i < len && a[i] == b[i])
		i++;
	return i;
}

/*
 * Keep the levels that the last stack shares with this one. Return: where the first other frame
 * begins.
 */
static size_t share_levels(struct sb_fg_last_stack *last, const struct folded *folded)
{
	const char *stack = folded->s;
	size_t len = folded->len, same, max;

	/* A tail is never longer than its stack. */
	max = last->tail < folded->tail ? last->tail : folded->tail;
	max = last->text.len < max ? last->text.len : max;
	same = max ? common_len(last->text.s, stack, max) : 0;
	/* The deepest level may be the mark of a cut stack, which is not in the text. */
	if (last->levels.nr == SB_FG_DEPTH_MAX)
		last->levels.nr--;
	for (; last->levels.nr; last->levels.nr--) {
		size_t end = last->levels.at[last->levels.nr - 1].end;

		if (end < same || (end == same && (end == len || stack[end] == ';')))
			break;
	}
	last->text.len = same;
	return last->levels.nr ? last->levels.at[last->levels.nr - 1].end + 1 : 0;
}

/* "sys_read": a call as the I/O view names it. */
static bool is_call(const char *name, size_t len)
{
	return sb_text_begins(name, len, "sys_");
}

/*
 * A file as the I/O view names it: "/etc/passwd", "nfs:/x" of an unknown mount, "[pipe]",
 * "pipe:[12]".
 */
static bool is_file(const char *name, size_t len)
{
	static const char *const heads[] = { "/", "[...]/", "pipe:[", "socket:[" };
	const char *slash = memchr(name, '/', len);

	for (size_t i = 0; i < SB_ARRAY_SIZE(heads); i++) {
		if (sb_text_begins(name, len, heads[i]))
			return true;
	}
	if (slash && slash - name > 1 && slash[-1] == ':')
		return !memchr(name, ' ', (size_t)(slash - name));
	return len > 2 && name[0] == '[' && name[len - 1] == ']';
}

/* Where the frame before that at @at begins, which is not the first one. */
static size_t frame_before(const char *stack, size_t at)
{
	const char *semicolon = memrchr(stack, ';', at - 1);

	return semicolon ? (size_t)(semicolon - stack) + 1 : 0;
}

/* Where the last two frames begin, or what may be these. */
static size_t tail_of(const char *stack, size_t len)
{
	size_t last = len ? frame_before(stack, len + 1) : 0;

	return last ? frame_before(stack, last) : 0;
}

/*
 * In text without annotations, a stack of the I/O view ends with a call and, usually, its file. The
 * frame from @at to @end is one of the last two, and not the first one.
 */
static enum sb_fg_kind kind_at_tail(const char *stack, size_t at, size_t end, size_t len)
{
	size_t before;

	if (end < len)
		return is_call(stack + at, end - at) && !is_call(stack + end + 1, len - end - 1)
			       ? SB_FG_KERNEL
			       : SB_FG_PLAIN;
	if (is_call(stack + at, len - at))
		return SB_FG_KERNEL;
	before = frame_before(stack, at);
	return is_file(stack + at, len - at) || is_call(stack + before, at - 1 - before)
		       ? SB_FG_FILE
		       : SB_FG_PLAIN;
}

/*
 * Parse the frame at @at. A plain one gets the kind that the frames before it imply. Return: its
 * end.
 */
static size_t next_frame(const struct folded *folded, size_t at, enum sb_fg_kind *kind,
			 struct sb_tree_frame *ret_frame)
{
	const char *stack = folded->s;
	size_t len = folded->len;
	const char *found = memchr(stack + at, ';', len - at);
	size_t end = found ? (size_t)(found - stack) : len;

	if (end == at)
		*ret_frame = sb_fg_frame_empty;
	else if (sb_fg_name_is_plain(stack + at, end - at))
		*ret_frame = (struct sb_tree_frame){ stack + at, end - at, SB_FG_PLAIN };
	else
		*ret_frame = sb_fg_frame_parse(stack + at, end - at);
	if (at && at >= folded->tail && ret_frame->kind == SB_FG_PLAIN)
		ret_frame->kind = kind_at_tail(stack, at, end, len);
	sb_fg_frame_place(ret_frame, !at, kind);
	return end;
}

/* Add the levels that are not shared with the last stack. Return: 0, -E2BIG, -ENOMEM. */
static int add_levels(struct sb_fg *fg, const struct folded *folded, size_t at)
{
	struct sb_fg_last_stack *last = &fg->last;
	struct sb_fg_level level = {};
	struct sb_tree_frame frame;
	size_t len = folded->len, end;
	int err;

	if (last->levels.nr)
		level = last->levels.at[last->levels.nr - 1];
	for (; at < len; at = end + 1) {
		end = next_frame(folded, at, &level.kind, &frame);
		if (last->levels.nr == SB_FG_DEPTH_MAX - 1 && end < len) {
			frame = sb_fg_tree_deep_mark();
			end = len;
			fg->tree.nr_deep++;
		}
		level.end = (uint32_t)end;
		err = sb_tree_child(&fg->tree, level.node, &frame, &level.node);
		if (!err)
			err = sb_vec_push(&last->levels, level);
		if (err)
			return err;
	}
	return 0;
}

static int add_forward(struct sb_fg *fg, const struct folded *folded, double weight)
{
	struct sb_fg_last_stack *last = &fg->last;
	size_t at = share_levels(last, folded);
	int err = add_levels(fg, folded, at);

	if (!err)
		err = sb_str_addn(&last->text, folded->s + last->text.len,
				  folded->len - last->text.len);
	last->tail = folded->tail;
	if (!err)
		err = sb_tree_weigh(&fg->tree, last->levels.at[last->levels.nr - 1].node,
				    (uint32_t)last->levels.nr, weight, fg->adding);
	if (err) {
		last->levels.nr = 0;
		sb_str_clear(&last->text);
		return err;
	}
	fg->total += weight;
	return 0;
}

static int add_reversed(struct sb_fg *fg, const struct folded *folded, double weight)
{
	enum sb_fg_kind kind = SB_FG_PLAIN;
	struct sb_tree_frame frame;
	size_t at, end;
	int err;

	fg->frames.nr = 0;
	for (at = 0; at < folded->len; at = end + 1) {
		end = next_frame(folded, at, &kind, &frame);
		err = sb_vec_push(&fg->frames, frame);
		if (err)
			return err;
	}
	return sb_fg_take_stack(fg, fg->frames.at, fg->frames.nr, weight);
}

static size_t without_blanks(const char *line, size_t len)
{
	while (len && line[len - 1] == ' ')
		len--;
	return len;
}

/*
 * Remove the number at the end of a line with the blanks before it. Return: whether it was there.
 */
static bool take_weight(const char *line, size_t *len, double *ret_weight)
{
	const char *space = memrchr(line, ' ', *len);

	if (!space || !sb_parse_decimal(space + 1, (size_t)(line + *len - space - 1), ret_weight))
		return false;
	*len = without_blanks(line, (size_t)(space - line));
	return true;
}

static int add_stack(struct sb_fg *fg, const char *line, size_t len, double weight)
{
	struct folded folded;

	while (len && (line[len - 1] == ' ' || line[len - 1] == ';'))
		len--;
	if (!len) {
		sb_fg_complain(fg, SB_FG_NO_STACK);
		return -EINVAL;
	}
	folded = (struct folded){ line, len, fg->has_files ? tail_of(line, len) : len };
	return fg->reverse ? add_reversed(fg, &folded, weight) : add_forward(fg, &folded, weight);
}

static int feed(struct sb_fg *fg, const char *line, size_t len)
{
	double weight;

	len = without_blanks(line, len);
	if (!len)
		return 0;
	if (line[0] == '#')
		return sb_fg_read_header(fg, line, len);
	if (!take_weight(line, &len, &weight)) {
		sb_fg_complain(fg, SB_FG_NO_COUNT);
		return -EINVAL;
	}
	return add_stack(fg, line, len, weight);
}

const struct sb_fg_reader sb_fg_reader_folded = { .name = "folded", .feed = feed };

/* ---- comparisons ---- */

/* "#n;12;3.5", which belongs to the next line. Return: false for any other comment. */
static bool take_samples(struct sb_fg *fg, const char *line, size_t len)
{
	static const char head[] = "#n;";
	const char *at = line + sizeof(head) - 1, *end = line + len, *semicolon;

	if (!sb_text_begins(line, len, head))
		return false;
	semicolon = memchr(at, ';', (size_t)(end - at));
	fg->has_samples =
		semicolon && sb_parse_decimal(at, (size_t)(semicolon - at), &fg->nr_samples[0]) &&
		sb_parse_decimal(semicolon + 1, (size_t)(end - semicolon - 1), &fg->nr_samples[1]);
	if (!fg->has_samples)
		sb_fg_complain(fg, SB_FG_BAD_HEADER);
	return true;
}

static bool is_measure(const char *unit)
{
	static const char *const measures[] = { "ns", "us", "ms", "s", "bytes", "byte-seconds" };
	size_t i;

	for (i = 0; unit && i < SB_ARRAY_SIZE(measures); i++)
		if (sb_streq(unit, measures[i]))
			return true;
	return false;
}

static void set_squares(struct sb_fg *fg)
{
	struct sb_tree_pair *pair = &fg->pair;
	bool is_unknown = !fg->has_samples && is_measure(fg->metadata.known.unit);
	int side;

	for (side = 0; side < 2; side++) {
		double weight = pair->weight[side], nr = fg->nr_samples[side];

		pair->squares[side] = weight;
		if (fg->has_samples)
			pair->squares[side] = nr > 0 ? weight * weight / nr : weight > 0 ? NAN : 0;
		else if (is_unknown && weight > 0)
			pair->squares[side] = NAN;
	}
	fg->has_samples = false;
}

static int feed_pair(struct sb_fg *fg, const char *line, size_t len)
{
	int err;

	len = without_blanks(line, len);
	if (!len)
		return 0;
	if (line[0] == '#')
		return take_samples(fg, line, len) ? 0 : sb_fg_read_header(fg, line, len);
	if (!take_weight(line, &len, &fg->pair.weight[1]) ||
	    !take_weight(line, &len, &fg->pair.weight[0])) {
		fg->has_samples = false;
		sb_fg_complain(fg, SB_FG_NO_COUNTS);
		return -EINVAL;
	}
	set_squares(fg);
	if (fg->tree.in_order)
		sb_fg_complain(fg, SB_FG_NO_ORDER);
	fg->tree.in_order = false;
	fg->adding = &fg->pair;
	err = add_stack(fg, line, len, fg->pair.weight[0] + fg->pair.weight[1]);
	fg->adding = NULL;
	return err;
}

/* Look for our header. Return: 1 if it says comparison; 0 if not; -1 if it is not our header. */
static int sniff_header(const char *line, size_t len)
{
	if (!sb_text_begins(line, len, "#stackbpf;"))
		return -1;
	return memmem(line, len, ";norm=", 6) != NULL;
}

/* Return: whether each complete line that is not a comment ends with two numbers. */
static bool sniff_pair(const char *head, size_t len)
{
	size_t at, end, line_len, nr = 0;
	const char *newline;
	double weight;

	for (at = 0; at < len; at = end + 1) {
		newline = memchr(head + at, '\n', len - at);
		end = newline ? (size_t)(newline - head) : len;
		line_len = end - at;
		if (line_len && head[at + line_len - 1] == '\r')
			line_len--;
		line_len = without_blanks(head + at, line_len);
		if (line_len && sniff_header(head + at, line_len) >= 0)
			return sniff_header(head + at, line_len);
		if (!line_len || head[at] == '#')
			continue;
		/* The last line may be incomplete; it is used only if there is no other. */
		if (!newline && nr)
			break;
		if (!take_weight(head + at, &line_len, &weight) ||
		    !take_weight(head + at, &line_len, &weight))
			return false;
		nr++;
	}
	return nr > 0;
}

const struct sb_fg_reader sb_fg_reader_diff = { .name = "difference",
						.sniff = sniff_pair,
						.feed = feed_pair };
