// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The way through the library: bytes become lines, a reader makes stacks of lines, then tree and
 * picture.
 */
#include "flamegraph/fg.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "flamegraph/diff.h"
#include "flamegraph/opts.h"
#include "flamegraph/reader.h"
#include "flamegraph/svg.h"
#include "flamegraph/text.h"

#define CHUNK_BYTES (128u << 10)
#define SNIFF_BYTES (64u << 10) /* perf script may begin with long comment blocks */

/* The formats, in the order in which they are tried. */
static const struct sb_fg_reader *const readers[] = {
	&sb_fg_reader_perf,
	&sb_fg_reader_bt,
	&sb_fg_reader_diff,
	&sb_fg_reader_folded,
};

/* "ignored " "3 lines" " without a count" */
static const struct {
	const char *before, *noun, *after;
} problem_texts[SB_FG_PROBLEM_MAX] = {
	[SB_FG_NO_COUNT] = { "ignored ", "line", " without a count" },
	[SB_FG_NO_COUNTS] = { "ignored ", "line", " without two counts" },
	[SB_FG_NO_STACK] = { "ignored ", "line", " without a stack" },
	[SB_FG_NO_FRAME] = { "ignored ", "line", " without a frame, a sample or a count" },
	[SB_FG_NO_END] = { "ignored ", "stack", " without a count at the end" },
	[SB_FG_OTHER_EVENT] = { "ignored ", "sample", " of other events than the first one" },
	[SB_FG_LONG_LINE] = { "ignored ", "line", " longer than 64 MiB" },
	[SB_FG_TOO_MANY] = { "ignored ", "stack", " beyond 33554432 distinct paths" },
	[SB_FG_BAD_BYTES] = { "replaced bytes that are not valid text in ", "line", "" },
	[SB_FG_DEEP_STACK] = { "cut ", "stack", " to 16384 frames" },
	[SB_FG_LONG_NAME] = { "cut names to 4096 bytes in ", "line", "" },
	[SB_FG_BAD_HEADER] = { "ignored a part of ", "header", "" },
	[SB_FG_UNITS_DIFFER] = { "added up different units in ", "header", "" },
	[SB_FG_NO_ORDER] = { "sorted by name, because a comparison has no order in time, ", "stack",
			     "" },
};

_Static_assert(SB_FG_LINE_MAX_BYTES == 67108864 && SB_TREE_NODES_MAX == 33554432 &&
		       SB_FG_DEPTH_MAX == 16384 && SB_TREE_NAME_MAX == 4096,
	       "the sentences say the numbers");

int sb_fg_new(struct sb_fg **ret_fg)
{
	struct sb_fg *fg = calloc(1, sizeof(*fg));
	int err;

	if (!fg)
		return -ENOMEM;
	err = sb_tree_init(&fg->tree);
	if (err) {
		free(fg);
		return err;
	}
	fg->reader = &sb_fg_reader_folded;
	*ret_fg = fg;
	return 0;
}

void sb_fg_free(struct sb_fg *fg)
{
	if (!fg)
		return;
	sb_tree_release(&fg->tree);
	sb_fg_metadata_release(&fg->metadata);
	sb_str_release(&fg->complaint);
	sb_str_release(&fg->clean);
	sb_vec_release(&fg->frames);
	sb_str_release(&fg->last.text);
	sb_vec_release(&fg->last.levels);
	sb_str_release(&fg->pending.names);
	sb_vec_release(&fg->pending.frames);
	sb_str_release(&fg->perf_event);
	sb_str_release(&fg->perf_comm);
	free(fg);
}

void sb_fg_shape(struct sb_fg *fg, const struct sb_fg_opts *opts)
{
	fg->tree.in_order = opts->flamechart;
	fg->reverse = opts->reverse;
}

double sb_fg_total(const struct sb_fg *fg)
{
	return fg->total;
}

const struct sb_metadata *sb_fg_metadata(const struct sb_fg *fg)
{
	return &fg->metadata.known;
}

void sb_fg_complain(struct sb_fg *fg, enum sb_fg_problem problem)
{
	if (!fg->problems[problem].nr++)
		fg->problems[problem].first_line_nr = fg->line_nr;
}

const char *sb_fg_complaint(struct sb_fg *fg)
{
	uint64_t nr;
	size_t i;
	int err;

	if (fg->hint)
		return sb_take(fg->hint);
	for (i = 0; i < SB_FG_PROBLEM_MAX; i++) {
		nr = fg->problems[i].nr;
		if (!nr)
			continue;
		sb_str_clear(&fg->complaint);
		err = sb_str_addf(&fg->complaint, "%s%" PRIu64 " %s%s%s, %s line %" PRIu64,
				  problem_texts[i].before, nr, problem_texts[i].noun,
				  nr == 1 ? "" : "s", problem_texts[i].after,
				  nr == 1 ? "at" : "first at", fg->problems[i].first_line_nr);
		fg->problems[i].nr = 0;
		return err ? "out of memory" : fg->complaint.s;
	}
	return NULL;
}

int sb_fg_take_stack(struct sb_fg *fg, struct sb_tree_frame *frames, size_t nr, double weight)
{
	struct sb_tree_frame swap;
	size_t i;
	int err;

	for (i = 0; fg->reverse && i < nr / 2; i++) {
		swap = frames[i];
		frames[i] = frames[nr - 1 - i];
		frames[nr - 1 - i] = swap;
	}
	err = sb_fg_tree_add(&fg->tree, frames, nr, weight, fg->adding);
	if (!err)
		fg->total += weight;
	return err;
}

int sb_fg_add_stack(struct sb_fg *fg, const struct sb_tree_frame *frames, size_t nr, double weight)
{
	enum sb_fg_kind above = SB_FG_PLAIN;
	size_t i;

	if (!nr)
		return -EINVAL;
	if (sb_vec_reserve(&fg->frames, nr))
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		struct sb_tree_frame *frame = &fg->frames.at[i];

		*frame = frames[i].len ? frames[i] : sb_fg_frame_empty;
		sb_fg_frame_place(frame, !i, &above);
	}
	return sb_fg_take_stack(fg, fg->frames.at, nr, weight);
}

int sb_fg_add_pair(struct sb_fg *fg, const struct sb_tree_frame *frames, size_t nr,
		   const struct sb_tree_pair *pair)
{
	int err;

	fg->adding = pair;
	err = sb_fg_add_stack(fg, frames, nr, pair->weight[0] + pair->weight[1]);
	fg->adding = NULL;
	return err;
}

int sb_fg_pending_add(struct sb_fg_pending *pending, const struct sb_tree_frame *frame)
{
	size_t len = frame->len, at = pending->names.len, i;
	int err;

	/* Leave room for a root and for the mark. */
	if (pending->frames.nr >= SB_FG_DEPTH_MAX - 2) {
		pending->nr_cut++;
		return 0;
	}
	err = sb_str_addn(&pending->names, frame->name, len);
	/* Folded text cannot represent a ';', and the picture contains folded text. */
	for (i = at; !err && i < pending->names.len; i++)
		if (pending->names.s[i] == ';')
			pending->names.s[i] = ':';
	if (!err)
		err = sb_vec_push(&pending->frames,
				  (struct sb_fg_pending_frame){ at, len, frame->kind });
	return err;
}

static int pending_to_frames(struct sb_fg *fg, const char *root)
{
	const struct sb_fg_pending *pending = &fg->pending;
	size_t i;
	int err;

	fg->frames.nr = 0;
	err = sb_vec_reserve(&fg->frames, pending->frames.nr + 2);
	if (err)
		return err;
	if (root)
		fg->frames.at[fg->frames.nr++] =
			(struct sb_tree_frame){ root, strlen(root), SB_FG_PLAIN };
	if (pending->nr_cut) {
		fg->frames.at[fg->frames.nr++] = sb_fg_tree_deep_mark();
		fg->tree.nr_deep++;
	}
	for (i = pending->frames.nr; i-- > 0;) {
		const struct sb_fg_pending_frame *frame = &pending->frames.at[i];

		fg->frames.at[fg->frames.nr++] =
			(struct sb_tree_frame){ pending->names.s + frame->at, frame->len,
						frame->kind };
	}
	return 0;
}

void sb_fg_pending_clear(struct sb_fg_pending *pending)
{
	pending->frames.nr = 0;
	pending->nr_cut = 0;
	sb_str_clear(&pending->names);
}

int sb_fg_pending_take(struct sb_fg *fg, const char *root, double weight)
{
	int err = pending_to_frames(fg, root);

	if (!err)
		err = sb_fg_take_stack(fg, fg->frames.at, fg->frames.nr, weight);
	sb_fg_pending_clear(&fg->pending);
	return err;
}

/* Return: 0, -EINVAL, -E2BIG: left out and counted, -ENOMEM. */
static int take_line(struct sb_fg *fg, const char *line, size_t len)
{
	uint64_t nr_deep = fg->tree.nr_deep, nr_long_names = fg->tree.nr_long_names;
	long nr_bad;
	int err;

	fg->line_nr++;
	if (len && line[len - 1] == '\r')
		len--;
	if (len > SB_FG_LINE_MAX_BYTES) {
		sb_fg_complain(fg, SB_FG_LONG_LINE);
		return -E2BIG;
	}
	if (!sb_fg_text_is_plain(line, len)) {
		sb_str_clear(&fg->clean);
		nr_bad = sb_fg_text_clean(&fg->clean, line, len);
		if (nr_bad < 0)
			return (int)nr_bad;
		if (nr_bad)
			sb_fg_complain(fg, SB_FG_BAD_BYTES);
		line = fg->clean.s;
		len = fg->clean.len;
	}
	err = fg->reader->feed(fg, line, len);
	if (err == -E2BIG)
		sb_fg_complain(fg, SB_FG_TOO_MANY);
	if (fg->tree.nr_deep != nr_deep)
		sb_fg_complain(fg, SB_FG_DEEP_STACK);
	if (fg->tree.nr_long_names != nr_long_names)
		sb_fg_complain(fg, SB_FG_LONG_NAME);
	return err;
}

/* Take all complete lines of @buf. Return: how many bytes they have; -ENOMEM. */
static ssize_t take_lines(struct sb_fg *fg, const char *buf, size_t len)
{
	size_t at = 0;
	const char *end;
	int err;

	while ((end = memchr(buf + at, '\n', len - at))) {
		err = take_line(fg, buf + at, (size_t)(end - buf) - at);
		if (err == -ENOMEM)
			return err;
		at = (size_t)(end - buf) + 1;
	}
	return (ssize_t)at;
}

/*
 * Read, also from a non-blocking descriptor. Return: how many bytes; 0 at the end; a negative
 * errno.
 */
static ssize_t read_some(int fd, char *buf, size_t len)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	ssize_t n;

	for (;;) {
		n = read(fd, buf, len);
		if (n >= 0)
			return n;
		if (errno == EAGAIN)
			poll(&pollfd, 1, -1);
		else if (errno != EINTR)
			return -errno;
	}
}

static const struct sb_fg_reader *sniff(const char *head, size_t len)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(readers) - 1; i++)
		if (readers[i]->sniff(head, len))
			break;
	return readers[i];
}

#define IS_PICTURE   "is a picture, not stacks; 'flamegraph --extract' may print its stacks"
#define IS_UTF16     "is UTF-16; use the output of `iconv -f UTF-16 -t UTF-8` instead"
#define IS_JSON	     "is JSON, not stacks; write the profile as .folded"
#define IS_CALLGRIND "is for callgrind; write the profile as .folded"

/* Return: whether text begins with a byte order mark and a character of ASCII, in either order. */
static bool is_utf16(const char *head, size_t len)
{
	return len >= 4 && ((!memcmp(head, "\xff\xfe", 2) && !head[3]) ||
			    (!memcmp(head, "\xfe\xff", 2) && !head[2]));
}

/* Recognise files that are given by mistake. Return: what to do instead; NULL if it may be text. */
static const char *is_other_file(const char *head, size_t len)
{
	static const struct {
		const char *magic, *hint;
	} others[] = {
		{ "PERFILE2\x68", "is a perf.data file; use the output of `perf script` instead" },
		{ "\x1f\x8b", "is compressed; use the output of `zcat` instead; if it is a pprof "
			      "profile, write that as .folded" },
		{ "\x28\xb5\x2f\xfd", "is compressed; use the output of `zstdcat` instead" },
		{ "\xfd"
		  "7zXZ",
		  "is compressed; use the output of `xzcat` instead" },
		{ "<?xml", IS_PICTURE },
		{ "<svg", IS_PICTURE },
		{ "\x7f"
		  "ELF",
		  "is a program, not stacks; name a file of stacks" },
		/* Not '{' alone: {closure} is a function of PHP. */
		{ "{\"", IS_JSON },
		{ "{\n", IS_JSON },
		{ "{\r\n", IS_JSON },
		{ "[{\"", IS_JSON },
		{ "# callgrind", IS_CALLGRIND },
		/* Its first line alone may be a stack. */
		{ "version: 1\ncreator: ", IS_CALLGRIND },
	};
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(others); i++)
		if (sb_text_begins(head, len, others[i].magic))
			return others[i].hint;
	return is_utf16(head, len) ? IS_UTF16 : NULL;
}

/*
 * Inputs with one weight and with two cannot be merged. Return: what to do instead; NULL if all is
 * well.
 */
static const char *is_of_other_sort(const struct sb_fg *fg)
{
	bool is_diff = fg->reader == &sb_fg_reader_diff;

	if (!fg->tree.nr_stacks || is_diff == (fg->tree.pairs.nr > 0))
		return NULL;
	return is_diff ? "has two counts on each line, but the input before it has one; draw "
			 "it separately"
		       : "has one count on each line, but the input before it has two; draw "
			 "it separately";
}

struct buffer {
	char *at;
	size_t len, size;
	bool skipping; /* a line that is too long */
};

/* Take all complete lines, move the rest to the beginning, make room. Return: 0 or -ENOMEM. */
static int take_buffer(struct sb_fg *fg, struct buffer *buf)
{
	ssize_t taken = 0;
	char *bigger, *end;

	if (buf->skipping) {
		end = memchr(buf->at, '\n', buf->len);
		taken = end ? end - buf->at + 1 : (ssize_t)buf->len;
		buf->skipping = !end;
		buf->len -= (size_t)taken;
		memmove(buf->at, buf->at + taken, buf->len);
	}
	taken = take_lines(fg, buf->at, buf->len);
	if (taken < 0)
		return (int)taken;
	buf->len -= (size_t)taken;
	memmove(buf->at, buf->at + taken, buf->len);
	if (buf->len < buf->size)
		return 0;
	if (buf->size > SB_FG_LINE_MAX_BYTES) {
		fg->line_nr++;
		sb_fg_complain(fg, SB_FG_LONG_LINE);
		buf->skipping = true;
		buf->len = 0;
		return 0;
	}
	bigger = realloc(buf->at, buf->size * 2);
	if (!bigger)
		return -ENOMEM;
	buf->at = bigger;
	buf->size *= 2;
	return 0;
}

static void begin_input(struct sb_fg *fg)
{
	fg->reader = NULL;
	fg->line_nr = 0;
	fg->has_samples = false;
	fg->has_files = false;
	fg->last.levels.nr = 0;
	sb_str_clear(&fg->last.text);
	sb_fg_pending_clear(&fg->pending);
	sb_str_clear(&fg->perf_event);
	sb_str_clear(&fg->perf_comm);
}

/* Programs of Windows begin a file with it; it belongs to no frame. */
static void skip_byte_order_mark(struct buffer *buf)
{
	static const char mark[] = "\xef\xbb\xbf";
	const size_t len = sizeof(mark) - 1;

	if (!sb_text_begins(buf->at, buf->len, mark))
		return;
	buf->len -= len;
	memmove(buf->at, buf->at + len, buf->len);
}

static int read_lines(struct sb_fg *fg, int fd, struct buffer *buf)
{
	ssize_t n;
	int err = 0;

	do {
		n = read_some(fd, buf->at + buf->len, buf->size - buf->len);
		if (n < 0)
			return (int)n;
		buf->len += (size_t)n;
		if (!fg->reader && n && buf->len < SNIFF_BYTES)
			continue;
		if (!fg->reader) {
			skip_byte_order_mark(buf);
			fg->hint = is_other_file(buf->at, buf->len);
			if (fg->hint)
				return -EINVAL;
			fg->reader = sniff(buf->at, buf->len);
			fg->hint = is_of_other_sort(fg);
			if (fg->hint)
				return -EINVAL;
		}
		err = take_buffer(fg, buf);
		if (err)
			return err;
	} while (n);
	if (buf->len && !buf->skipping)
		err = take_line(fg, buf->at, buf->len);
	if (err == -ENOMEM)
		return err;
	err = fg->reader->finish ? fg->reader->finish(fg) : 0;
	if (err == -E2BIG)
		sb_fg_complain(fg, SB_FG_TOO_MANY);
	return err == -ENOMEM ? err : 0;
}

int sb_fg_read(struct sb_fg *fg, int fd)
{
	struct buffer buf = { .at = malloc(CHUNK_BYTES), .size = CHUNK_BYTES };
	int err;

	if (!buf.at)
		return -ENOMEM;
	begin_input(fg);
	err = read_lines(fg, fd, &buf);
	free(buf.at);
	return err;
}

int sb_fg_render(struct sb_fg *fg, const struct sb_fg_opts *opts, FILE *out)
{
	int err = 0;

	/* Each time: the options say how wide frames are. */
	if (fg->tree.pairs.nr)
		err = sb_fg_diff_widths(&fg->tree, &fg->metadata.known, opts);
	err = err ?: sb_tree_seal(&fg->tree, opts->sort);
	return err ? err : sb_fg_svg(&fg->tree, &fg->metadata, opts, out);
}

int sb_fg_render_inline(struct sb_fg *fg, const struct sb_fg_opts *opts, FILE *out)
{
	struct sb_fg_opts inlined = *opts; /* its strings are borrowed from @opts */

	inlined.is_inline = true;
	return sb_fg_render(fg, &inlined, out);
}
