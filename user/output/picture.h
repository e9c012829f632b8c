/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The flame graph of a profile, for the formats that show it. */
#ifndef SB_OUTPUT_PICTURE_H
#define SB_OUTPUT_PICTURE_H

#include <stdio.h>

#include "flamegraph/fg.h"
#include "output/output.h"

/* sb_fg_render() or sb_fg_render_inline() */
typedef int (*sb_picture_render_fn)(struct sb_fg *fg, const struct sb_fg_opts *opts, FILE *out);

/* Draw @profile with @render. Return: what that returns, -ENOMEM, -E2BIG. */
int sb_picture_write(const struct sb_profile *profile, const struct sb_output_opts *opts,
		     sb_picture_render_fn render, FILE *out);

#endif
