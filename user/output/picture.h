/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Draws the flame graph of a profile, for the formats that contain it. Not thread-safe. Pointers
 * are not NULL, and nothing is kept unless it says so. After an error @out may have a part of the
 * picture. */
#ifndef SB_OUTPUT_PICTURE_H
#define SB_OUTPUT_PICTURE_H

#include <stdio.h>

#include "base/arena.h"
#include "flamegraph/fg.h"
#include "output/output.h"

/* sb_fg_render() or sb_fg_render_inline() */
typedef int (*sb_picture_render_fn)(struct sb_fg *fg, const struct sb_fg_opts *opts, FILE *out);

/* Draw the stacks of a sealed profile, the heaviest opts->fold.limit (0: all), with @render, to
 * @out. Return: 0; -ENOMEM; -E2BIG for more nodes than a call tree can have; -EINVAL for a title of
 * more than 4096 bytes; or what @render returned, such as -ENODATA without weight. */
int sb_picture_write(const struct sb_profile *profile, const struct sb_output_opts *opts,
		     sb_picture_render_fn render, FILE *out);

/* Return: the kind in a picture of a frame of a profile, by its kind, mark and is_unnamed: the name
 * does not count. */
enum sb_fg_kind sb_picture_kind(const struct sb_frame *frame);

/**
 * sb_picture_frame() - convert a frame of a profile to a frame of a picture
 * @names: of the caller, zeroed or in use; gets a copy of the name, and must live as long as
 *	*@ret_frame
 * @opts: what the name shows beside the function; `annotate` is ignored
 *
 * Return: 0; -ENOMEM, and *ret_frame is not to be used.
 */
int sb_picture_frame(struct sb_arena *names, const struct sb_frame *frame,
		     const struct sb_fold_opts *opts, struct sb_tree_frame *ret_frame);

#endif
