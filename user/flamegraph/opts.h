/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Options of a picture, made by sb_fg_opts_new() and set by name (fg.h). The table in opts.c has a
 * row for each long option. Thread: any; the table is constant. */
#ifndef SB_FLAMEGRAPH_OPTS_H
#define SB_FLAMEGRAPH_OPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "flamegraph/tree.h"

/* Comparisons: in which profile a frame has its width. */
enum sb_fg_diff_width { SB_FG_WIDTH_B, SB_FG_WIDTH_A, SB_FG_WIDTH_BOTH };

enum sb_fg_color_by { SB_FG_BY_KIND, SB_FG_BY_NAME, SB_FG_BY_MODULE };

/*
 * Strings are owned; NULL: not set. Names and meanings are those of flamegraph.pl where it has
 * them.
 */
struct sb_fg_opts {
	char *title, *subtitle, *notes, *countname, *nametype, *fonttype, *encoding;
	char *colors;	/* palette: hot mem io wakeup chain java js perl red green blue aqua yellow
			 * purple orange, rust, python, ...; NULL: by the kind of the run */
	char *bgcolors; /* yellow blue green grey or #rrggbb; NULL: by the palette */
	char *nameattr_path, *palette_path;
	double width;	     /* pixels; 0: 1200, and the width of the window in a browser */
	double frame_height; /* pixels */
	double fontsize;
	double fontwidth; /* em for each character; 0: depends on the character */
	double minwidth;  /* pixels, or a fraction of the whole: 0.0005 is 0.05 % */
	bool minwidth_is_share;
	double factor, total; /* 0: not set */
	uint32_t max_rects;   /* frames drawn, by raising minwidth if necessary; 0: all */
	uint32_t max_depth;   /* levels drawn; higher ones become boxes; 0: all */
	enum sb_tree_sort sort;
	enum sb_fg_diff_width diff_width;
	char *norm; /* of a comparison: share, raw; NULL: what the metadata says, else share */
	enum sb_fg_color_by color_by;
	bool hash, random, cp;
	bool reverse, inverted, flamechart, negate;
	bool no_embed;	/* leave out the folded text */
	bool is_inline; /* not a user's option: see sb_fg_render_inline() */
};

/*
 * One row for each long option. The parser, --help and the tests of man page and completions use
 * it. The last row has no name.
 */
enum sb_fg_opt_type {
	SB_FG_OPT_FLAG,	    /* bool */
	SB_FG_OPT_TEXT,	    /* char *: cleaned, see text.h */
	SB_FG_OPT_PATH,	    /* char *: unchanged */
	SB_FG_OPT_WORD,	    /* char *: one of words */
	SB_FG_OPT_ENUM,	    /* enum: index in words */
	SB_FG_OPT_COLOR,    /* char *: one of words, or #rrggbb */
	SB_FG_OPT_REAL,	    /* double from min to max */
	SB_FG_OPT_COUNT,    /* uint32_t from min to max */
	SB_FG_OPT_MINWIDTH, /* "0.1" for pixels, or "0.05%" */
};

struct sb_fg_opt {
	const char *name;
	const char *metavar; /* NULL: it takes no value */
	const char *help;    /* NULL: accepted, but not shown */
	enum sb_fg_opt_type type;
	size_t offset; /* in struct sb_fg_opts */
	double min, max;
	const char *const *words; /* NULL-terminated */
};

extern const struct sb_fg_opt sb_fg_opt_rows[];

/*
 * Append what a value of the option must be to @text: "a number from 1 to 1000", "one of name,
 * weight", "no value" for a flag; for the message when sb_fg_opts_set() has returned -EINVAL.
 * Return: 0; -ENOMEM, and a part may have been appended: discard it.
 */
int sb_fg_opt_expects(const struct sb_fg_opt *row, struct sb_str *text);

#endif
