/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A picture while it is made, for svg.c (the frames and the data), svg_head.c and svg_texts.c.
 * svg.c zeroes struct sb_svg and fills it in, lays out the boxes, and draws them to
 * picture->frames; then it calls sb_svg_add_subtitle() and sb_svg_add_front(), writes the rest, and
 * releases all. Without weight it calls only sb_svg_add_nothing(), without a layout. The functions
 * append text that is ready for XML to @out, or to picture->out where there is no @out, and return
 * 0; -ENOMEM; or -EINVAL for a colour that cannot be read. After an error a part may have been
 * appended, and the picture can only be released. Pointers are not NULL. Not thread-safe.
 */
#ifndef SB_FLAMEGRAPH_SVG_PRIV_H
#define SB_FLAMEGRAPH_SVG_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/str.h"
#include "flamegraph/attrs.h"
#include "flamegraph/diff.h"
#include "flamegraph/layout.h"
#include "flamegraph/opts.h"
#include "flamegraph/palette.h"
#include "flamegraph/text.h"
#include "flamegraph/tree.h"
#include "kinds/view_kind.h"

#define SB_SVG_PAD_PX	12.0 /* left and right of the frames */
#define SB_SVG_TITLE_EM 1.5  /* of the font size of frames */

struct sb_svg {
	const struct sb_tree *tree;
	const struct sb_fg_metadata *metadata;
	const struct sb_metadata *known; /* of `metadata` */
	const struct sb_fg_opts *opts;
	FILE *file;
	struct sb_fg_layout layout;
	struct sb_fg_palette palette;
	struct sb_fg_palette_map map;
	bool is_map_changed;
	struct sb_fg_name_attrs attrs;
	const char *kind;		 /* of the profile; NULL: not known */
	const struct sb_view_kind *view; /* that recorded it; NULL: none of ours */
	struct sb_str unit;		 /* escaped */
	double total;			 /* weight of the whole width */
	double factor;			 /* weights are multiplied by it to be shown */
	double px_per_weight;
	double width, font_px, frame_px, top, bottom; /* pixels */
	bool has_kind[SB_FG_KIND_MAX];
	bool is_diff;
	struct sb_fg_diff diff;
	bool is_partly_kept;  /* the embedded data has only what is drawn */
	uint64_t nr_repaired; /* bytes that XML cannot represent */
	struct sb_str frames, out;
};

/* Append text, escaped. Bytes that XML cannot represent are replaced, and counted in
 * nr_repaired. */
int sb_svg_add_xml(struct sb_svg *picture, struct sb_str *out, const char *s);
/* Append a weight of the tree, multiplied by picture->factor, with its unit. */
int sb_svg_add_weight(const struct sb_svg *picture, struct sb_str *out, double weight);
/* Append the title: that of the options, or one for the view. */
int sb_svg_add_title(struct sb_svg *picture, struct sb_str *out);
/* Append the line below the title: weight, duration, what was lost and cut. */
int sb_svg_add_subtitle(struct sb_svg *picture, struct sb_str *out);
/* Append what the recording could not see, after " · " if @out is not empty: "3 lost (0.15%) ·
 * 1,204 stacks truncated (61.4%)"; only what the metadata says, also if it is 0. A part of
 * sb_svg_add_subtitle() and of sb_svg_add_nothing(); needs picture->known only, and no colour. */
int sb_svg_add_losses(const struct sb_svg *picture, struct sb_str *out);
/* Append what the recording left out on demand, which is not in the total, after " · " if @out is
 * not empty: "1,204 samples left out by --limit"; nothing if that is 0. */
int sb_svg_add_left_out(const struct sb_svg *picture, struct sb_str *out);

/*
 * Append ' name="', after which the caller appends the value and the closing quote; or a whole
 * attribute of @px pixels. Pictures have 100,000 of them, for which printf() would take half of the
 * time to write the picture.
 */
int sb_svg_open_attr(struct sb_str *out, const char *name);
int sb_svg_add_px_attr(struct sb_str *out, const char *name, double px);

/*
 * Append everything before the frames to picture->out. @subtitle: of sb_svg_add_subtitle(); copied.
 * It is called after the frames were drawn, when it is known what they contain.
 */
int sb_svg_add_front(struct sb_svg *picture, const struct sb_str *subtitle);
/* Append a whole picture that says that there are no samples. */
int sb_svg_add_nothing(struct sb_svg *picture);

#endif
