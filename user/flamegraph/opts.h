/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What can be chosen about a picture. The table in opts.c gives each its long option. */
#ifndef SB_FLAMEGRAPH_OPTS_H
#define SB_FLAMEGRAPH_OPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "flamegraph/tree.h"

enum sb_fg_color_by { SB_FG_BY_KIND, SB_FG_BY_NAME, SB_FG_BY_MODULE };

/* Strings are owned; NULL: not set. Names and meanings are flamegraph.pl's where it has them. */
struct sb_fg_opts {
	char *title, *subtitle, *notes, *countname, *nametype, *fonttype, *encoding;
	char *colors;	/* palette: hot mem io wakeup chain java js perl red green blue aqua yellow
			 * purple orange, rust, python, ...; NULL: by the kind of the run */
	char *bgcolors; /* yellow blue green grey flat or #rrggbb; NULL: by palette */
	char *nameattr_path, *palette_path;
	double width;	     /* pixels */
	double frame_height; /* pixels */
	double fontsize, fontwidth;
	double minwidth; /* pixels, or share of the whole */
	bool minwidth_is_share;
	double factor, total; /* 0: not set */
	uint32_t max_rects;   /* above, the cut is raised and the subtitle says so; 0: no limit */
	uint32_t max_depth;   /* levels drawn; what is above is boxed; 0: no limit */
	enum sb_fg_sort sort;
	enum sb_fg_color_by color_by;
	bool hash, random, cp;
	bool reverse, inverted, flamechart, negate;
	bool no_embed; /* leave out the folded data */
};

#endif
