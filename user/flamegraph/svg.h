/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes the picture: one SVG file that is a static drawing for image viewers and <img>, and a
 * viewer with zoom and search in a browser, also from disk. It refers to no other file. Pointers
 * are not NULL, and nothing is kept. Not thread-safe.
 */
#ifndef SB_FLAMEGRAPH_SVG_H
#define SB_FLAMEGRAPH_SVG_H

#include <stdio.h>

struct sb_tree;
struct sb_fg_metadata;
struct sb_fg_opts;

/*
 * Draw a sealed tree into @out, which is flushed. Equal input gives equal bytes. Names may have any
 * bytes: what XML or UTF-8 does not allow becomes U+FFFD, and the subtitle counts it.
 *
 * The tree is drawn as it is: opts->reverse, opts->flamechart and opts->sort matter when it is
 * made, and only change the title here. opts->width 0 means 1200 in the file and the window's width
 * in a browser. opts->cp reads and writes opts->palette_path, by default "palette.map".
 *
 * Return: 0; -ENODATA if the tree has no weight, and an SVG that says so was written; -EINVAL for
 * an unknown palette or background; -EIO or another error of the stream; -ENOMEM; an error of the
 * palette or attribute file. After these @out may have a part of the picture.
 */
int sb_fg_svg(const struct sb_tree *tree, const struct sb_fg_metadata *metadata,
	      const struct sb_fg_opts *opts, FILE *out);

#endif
