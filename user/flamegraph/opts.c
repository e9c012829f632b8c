// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flamegraph/opts.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "flamegraph/fg.h"
#include "flamegraph/text.h"

#define TEXT_BYTES_MAX 4096 /* of a title; a longer one must be a mistake */

static const char *const color_words[] = { "hot",  "mem",  "io",     "wakeup", "chain",	 "java",
					   "js",   "perl", "rust",   "python", "red",	 "green",
					   "blue", "aqua", "yellow", "purple", "orange", NULL };
static const char *const bgcolor_words[] = { "yellow", "blue", "green", "grey", NULL };
static const char *const sort_words[] = { "name", "weight", NULL };
static const char *const norm_words[] = { "share", "raw", NULL };
static const char *const diff_width_words[] = { "b", "a", "both", NULL };
static const char *const color_by_words[] = { "kind", "name", "module", NULL };
/* The picture is written in UTF-8, so no other encoding is accepted. */
static const char *const encoding_words[] = { "UTF-8", "US-ASCII", NULL };

#define AT(field) .offset = offsetof(struct sb_fg_opts, field)

const struct sb_fg_opt sb_fg_opt_rows[] = {
	{ "title", "TEXT", "title above the picture", SB_FG_OPT_TEXT, AT(title) },
	{ "subtitle", "TEXT", "second line of the title", SB_FG_OPT_TEXT, AT(subtitle) },
	{ "notes", "TEXT", "remark that is kept in the file but not shown", SB_FG_OPT_TEXT,
	  AT(notes) },
	{ "countname", "TEXT", "unit of the counts (default: as the data says, or samples)",
	  SB_FG_OPT_TEXT, AT(countname) },
	{ "nametype", "TEXT",
	  "what stands before the name in the line that describes a frame (default Function:)",
	  SB_FG_OPT_TEXT, AT(nametype) },
	{ "width", "PX", "width of the picture (default 1200; in a browser, as wide as the window)",
	  SB_FG_OPT_REAL, AT(width), 100, 100000 },
	{ "height", "PX", "height of a frame (default 16)", SB_FG_OPT_REAL, AT(frame_height), 4,
	  200 },
	{ "minwidth", "PX|%", "draw frames that are narrower than this as one (default 0.05%)",
	  SB_FG_OPT_MINWIDTH, AT(minwidth), 0, 100000 },
	{ "max-rects", "N", "draw at most N frames (default 20000; 0: all)", SB_FG_OPT_COUNT,
	  AT(max_rects), 0, UINT32_MAX },
	{ "max-depth", "N", "draw at most N levels (default 1000; 0: all)", SB_FG_OPT_COUNT,
	  AT(max_depth), 0, UINT32_MAX },
	{ "sort", "BY", "order of frames from left to right: name (default), weight",
	  SB_FG_OPT_ENUM, AT(sort), .words = sort_words },
	{ "reverse", NULL, "merge stacks from their leaf frames", SB_FG_OPT_FLAG, AT(reverse) },
	{ "inverted", NULL, "draw the root at the top (icicle graph)", SB_FG_OPT_FLAG,
	  AT(inverted) },
	{ "flamechart", NULL, "keep the order of the input, and merge only neighbours",
	  SB_FG_OPT_FLAG, AT(flamechart) },
	{ "total", "N", "count that the full width stands for, if more than the sum of all stacks",
	  SB_FG_OPT_REAL, AT(total), 0, 1e18 },
	{ "factor", "X", "multiply all counts by X", SB_FG_OPT_REAL, AT(factor), 0, 1e18 },
	{ "colors", "PALETTE",
	  "colors of the frames: for a kind of profile hot mem io wakeup chain (frames of the "
	  "waker differ), for a language java js perl rust python, or shades of red green "
	  "blue aqua yellow purple orange (default: by the kind of the profile)",
	  SB_FG_OPT_WORD, AT(colors), .words = color_words },
	/* A common spelling; --color-by makes it an ambiguous abbreviation otherwise. */
	{ "color", "PALETTE", NULL, SB_FG_OPT_WORD, AT(colors), .words = color_words },
	{ "color-by", "WHAT", "what the color of a frame stands for: kind (default), name, module",
	  SB_FG_OPT_ENUM, AT(color_by), .words = color_by_words },
	{ "bgcolors", "COLOR", "background color: yellow blue green grey #rrggbb", SB_FG_OPT_COLOR,
	  AT(bgcolors), .words = bgcolor_words },
	{ "hash", NULL, "vary the color by the first letters of the name", SB_FG_OPT_FLAG,
	  AT(hash) },
	{ "random", NULL, "vary the color by the position of the frame", SB_FG_OPT_FLAG,
	  AT(random) },
	{ "cp", NULL,
	  "give a function the same color in several pictures: read the colors from the file "
	  "palette.map in the current directory, and add those that are missing",
	  SB_FG_OPT_FLAG, AT(cp) },
	{ "nameattr", "FILE",
	  "read links and tooltips of functions from FILE, with lines of a function, a tab, "
	  "and KEY=VALUE pairs between tabs; keys are href, target, title, id, class",
	  SB_FG_OPT_PATH, AT(nameattr_path) },
	{ "fonttype", "FONT", "font (default: the system's sans-serif font)", SB_FG_OPT_TEXT,
	  AT(fonttype) },
	{ "fontsize", "PX", "font size (default 12)", SB_FG_OPT_REAL, AT(fontsize), 1, 200 },
	{ "fontwidth", "X",
	  "width of a letter as a fraction of the font size (default: the "
	  "known width of each letter)",
	  SB_FG_OPT_REAL, AT(fontwidth), 0.1, 10 },
	{ "encoding", "NAME", "encoding to declare in the file: UTF-8 or US-ASCII", SB_FG_OPT_WORD,
	  AT(encoding), .words = encoding_words },
	{ "norm", "BY",
	  "of input with two counts on each line, a and b, as stackbpf diff writes it: compare "
	  "share (of all counts; default) or raw (the counts)",
	  SB_FG_OPT_WORD, AT(norm), .words = norm_words },
	{ "diff-width", "OF",
	  "with two counts on each line: the width of a frame is the second one, b (default), "
	  "the first one, a, or the mean of both",
	  SB_FG_OPT_ENUM, AT(diff_width), .words = diff_width_words },
	{ "negate", NULL,
	  "with two counts on each line: swap the colors, so that red is less in b than in a, "
	  "and blue is more",
	  SB_FG_OPT_FLAG, AT(negate) },
	{ "no-embed", NULL, "do not keep the full stacks in the file", SB_FG_OPT_FLAG,
	  AT(no_embed) },
	{},
};

int sb_fg_opts_new(struct sb_fg_opts **ret_opts)
{
	struct sb_fg_opts *opts = malloc(sizeof(*opts));

	if (!opts)
		return -ENOMEM;
	*opts = (struct sb_fg_opts){
		.frame_height = 16,
		.fontsize = 12,
		.minwidth = 0.0005,
		.minwidth_is_share = true,
		.max_rects = 20000,
		.max_depth = 1000,
	};
	*ret_opts = opts;
	return 0;
}

static char **text_at(struct sb_fg_opts *opts, const struct sb_fg_opt *row)
{
	return (char **)((char *)opts + row->offset);
}

void sb_fg_opts_free(struct sb_fg_opts *opts)
{
	const struct sb_fg_opt *row;

	if (!opts)
		return;
	for (row = sb_fg_opt_rows; row->name; row++) {
		if (row->type == SB_FG_OPT_TEXT || row->type == SB_FG_OPT_PATH ||
		    row->type == SB_FG_OPT_WORD || row->type == SB_FG_OPT_COLOR) {
			free(*text_at(opts, row));
			*text_at(opts, row) = NULL; /* two options may set one field */
		}
	}
	free(opts->palette_path);
	free(opts);
}

static const struct sb_fg_opt *find_row(const char *name)
{
	const struct sb_fg_opt *row;

	for (row = sb_fg_opt_rows; row->name; row++)
		if (sb_streq(row->name, name))
			return row;
	return NULL;
}

/* Return: the index of @value in the list, ignoring case; -EINVAL. */
static int find_word(const char *const *words, const char *value)
{
	int i;

	for (i = 0; words[i]; i++)
		if (!strcasecmp(words[i], value))
			return i;
	return -EINVAL;
}

static bool is_rgb(const char *s)
{
	return s[0] == '#' && strlen(s) == 7 && strspn(s + 1, "0123456789abcdefABCDEF") == 6;
}

static int replace(char **text, const char *s)
{
	char *copy = strdup(s);

	if (!copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

static int set_text(char **text, const char *value)
{
	struct sb_str clean = {};

	if (strlen(value) > TEXT_BYTES_MAX)
		return -EINVAL;
	if (sb_fg_text_set(&clean, value)) {
		sb_str_release(&clean);
		return -ENOMEM;
	}
	free(*text);
	*text = clean.s;
	return 0;
}

static int set_word(char **text, const struct sb_fg_opt *row, const char *value)
{
	int at = find_word(row->words, value);

	if (at >= 0)
		return replace(text, row->words[at]);
	if (row->type == SB_FG_OPT_COLOR && is_rgb(value))
		return replace(text, value);
	return -EINVAL;
}

static int parse_real(const struct sb_fg_opt *row, const char *value, size_t len, double *ret)
{
	double real;

	if (!sb_parse_decimal(value, len, &real) || real < row->min || real > row->max)
		return -EINVAL;
	*ret = real;
	return 0;
}

static int set_minwidth(struct sb_fg_opts *opts, const struct sb_fg_opt *row, const char *value)
{
	size_t len = strlen(value);
	bool is_share = len && value[len - 1] == '%';
	double real;

	if (parse_real(row, value, len - is_share, &real) || (is_share && real > 100))
		return -EINVAL;
	opts->minwidth = is_share ? real / 100 : real;
	opts->minwidth_is_share = is_share;
	return 0;
}

static int set_count(uint32_t *count, const struct sb_fg_opt *row, const char *value)
{
	uint64_t number;

	if (sb_parse_u64(value, (uint64_t)row->max, &number) || (double)number < row->min)
		return -EINVAL;
	*count = (uint32_t)number;
	return 0;
}

static int set_enum(int *place, const struct sb_fg_opt *row, const char *value)
{
	int at = find_word(row->words, value);

	if (at < 0)
		return at;
	*place = at;
	return 0;
}

int sb_fg_opts_set(struct sb_fg_opts *opts, const char *name, const char *value)
{
	const struct sb_fg_opt *row = find_row(name);
	void *field;

	if (!row)
		return -ENOENT;
	if (row->type == SB_FG_OPT_FLAG ? value != NULL : !value)
		return -EINVAL;
	field = (char *)opts + row->offset;
	switch (row->type) {
	case SB_FG_OPT_FLAG:
		*(bool *)field = true;
		return 0;
	case SB_FG_OPT_TEXT:
		return set_text(field, value);
	case SB_FG_OPT_PATH:
		return *value ? replace(field, value) : -EINVAL;
	case SB_FG_OPT_WORD:
	case SB_FG_OPT_COLOR:
		return set_word(field, row, value);
	case SB_FG_OPT_ENUM:
		return set_enum(field, row, value);
	case SB_FG_OPT_REAL:
		return parse_real(row, value, strlen(value), field);
	case SB_FG_OPT_COUNT:
		return set_count(field, row, value);
	case SB_FG_OPT_MINWIDTH:
		return set_minwidth(opts, row, value);
	}
	return -EINVAL;
}

static int add_words(const char *const *words, const char *last, struct sb_str *text)
{
	int i, err = sb_str_add(text, "one of ");

	for (i = 0; words[i] && !err; i++)
		err = sb_str_addf(text, "%s%s", i ? ", " : "", words[i]);
	return err ? err : sb_str_add(text, last);
}

int sb_fg_opt_expects(const struct sb_fg_opt *row, struct sb_str *text)
{
	switch (row->type) {
	case SB_FG_OPT_FLAG:
		return sb_str_add(text, "no value");
	case SB_FG_OPT_TEXT:
		return sb_str_addf(text, "at most %d bytes of text", TEXT_BYTES_MAX);
	case SB_FG_OPT_PATH:
		return sb_str_add(text, "the name of a file");
	case SB_FG_OPT_WORD:
	case SB_FG_OPT_ENUM:
		return add_words(row->words, "", text);
	case SB_FG_OPT_COLOR:
		return add_words(row->words, " or #rrggbb", text);
	case SB_FG_OPT_REAL:
		return sb_str_addf(text, "a number from %g to %g", row->min, row->max);
	case SB_FG_OPT_COUNT:
		return sb_str_addf(text, "a whole number from %.0f to %.0f", row->min, row->max);
	case SB_FG_OPT_MINWIDTH:
		return sb_str_add(text, "pixels, or a percentage such as 0.1%");
	}
	return 0;
}
