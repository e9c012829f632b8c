// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>

#include "base/cleanup.h"
#include "output/outputs.h"
#include "output/picture.h"

SB_DEFINE_CLEANUP(struct sb_fg, sb_fg_free)
SB_DEFINE_CLEANUP(struct sb_fg_opts, sb_fg_opts_free)

static int put_line(void *arg, const char *line, size_t len)
{
	return sb_fg_add_folded(arg, line, len);
}

int sb_picture_write(const struct sb_profile *profile, const struct sb_output_opts *opts,
		     sb_picture_render_fn render, FILE *out)
{
	sb_cleanup(sb_fg_freep) struct sb_fg *fg = NULL;
	sb_cleanup(sb_fg_opts_freep) struct sb_fg_opts *fg_opts = NULL;
	struct sb_output_opts annotated = *opts;
	int err;

	/* The picture colours by kind and carries the run's facts, whatever the text shows. */
	annotated.fold.annotate = true;
	annotated.fold.header = true;
	err = sb_fg_new(&fg);
	if (!err)
		err = sb_fg_opts_new(&fg_opts);
	if (!err && opts->title)
		err = sb_fg_opts_set(fg_opts, "title", opts->title);
	if (!err)
		err = sb_fold(profile, &annotated.fold, put_line, fg);
	return err ? err : render(fg, fg_opts, out);
}

static int write_svg(const struct sb_profile *profile, const struct sb_output_opts *opts, FILE *out)
{
	return sb_picture_write(profile, opts, sb_fg_render, out);
}

const struct sb_output sb_output_svg = {
	.name = "svg",
	.extension = ".svg",
	.summary = "interactive flame graph for a browser",
	.write = write_svg,
};
