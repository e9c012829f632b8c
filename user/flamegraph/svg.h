/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The picture: one SVG file that is a static drawing for image viewers and <img>, and a viewer with
 * zoom and search when a browser opens it, also from disk. It refers to nothing outside itself.
 */
#ifndef SB_FLAMEGRAPH_SVG_H
#define SB_FLAMEGRAPH_SVG_H

#include <stdio.h>

struct sb_fg_tree;
struct sb_fg_facts;
struct sb_fg_opts;

/*
 * Draw the sealed @tree. The same tree, facts and options give the same bytes. Names may be any
 * bytes: what XML or UTF-8 does not allow is replaced by U+FFFD, and the subtitle counts it.
 *
 * The tree is drawn as it is: opts->reverse, opts->flamechart and opts->sort are the reader's part
 * and change only the title here. opts->width 0 means 1200 in the file and the window's width in a
 * browser. opts->cp reads and writes opts->palette_path, by default "palette.map".
 *
 * Return: 0; -ENODATA for a tree without weight (an SVG that says so was written); -EINVAL for an
 * unknown palette or background; -EIO or the stream's errno when writing failed; -ENOMEM; an errno
 * of the palette or attribute file.
 */
int sb_fg_svg(const struct sb_fg_tree *tree, const struct sb_fg_facts *facts,
	      const struct sb_fg_opts *opts, FILE *out);

#endif
