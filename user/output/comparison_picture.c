// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A comparison as a flame graph: alone, and in a page. */
#include <errno.h>

#include "base/cleanup.h"
#include "flamegraph/fg.h"
#include "flamegraph/text.h"
#include "output/comparison.h"
#include "output/page.h"
#include "output/picture.h"

SB_DEFINE_CLEANUP(struct sb_fg, sb_fg_free)
SB_DEFINE_CLEANUP(struct sb_fg_opts, sb_fg_opts_free)

static int put_line(void *arg, const char *line, size_t len)
{
	return sb_fg_add_diff(arg, line, len);
}

/* "before.folded -> after.folded" */
static int make_title(const struct sb_comparison *comparison, const struct sb_comparison_opts *opts,
		      struct sb_str *title)
{
	if (opts->title)
		return sb_str_add(title, opts->title);
	return sb_str_addf(title, "A: %s \xe2\x86\x92 B: %s", comparison->what[SB_TREE_A],
			   comparison->what[SB_TREE_B]);
}

static int draw(const struct sb_comparison *comparison, const struct sb_comparison_opts *opts,
		const char *title, sb_picture_render_fn render, FILE *out)
{
	sb_cleanup(sb_fg_freep) struct sb_fg *fg = NULL;
	sb_cleanup(sb_fg_opts_freep) struct sb_fg_opts *fg_opts = NULL;
	int err = sb_fg_new(&fg) ?: sb_fg_opts_new(&fg_opts);

	err = err ?: sb_fg_opts_set(fg_opts, "title", title);
	if (!err && opts->width)
		err = sb_fg_opts_set(fg_opts, "diff-width", opts->width);
	if (!err && opts->is_negated)
		err = sb_fg_opts_set(fg_opts, "negate", NULL);
	err = err ?: sb_comparison_fold(comparison, put_line, fg);
	return err ?: render(fg, fg_opts, out);
}

static int write_svg(const struct sb_comparison *comparison, const struct sb_comparison_opts *opts,
		     FILE *out)
{
	sb_cleanup(sb_str_release) struct sb_str title = {};
	int err = make_title(comparison, opts, &title);

	return err ?: draw(comparison, opts, title.s, sb_fg_render, out);
}

static int write_html(const struct sb_comparison *comparison, const struct sb_comparison_opts *opts,
		      FILE *out)
{
	sb_cleanup(sb_str_release) struct sb_str title = {};
	int err = make_title(comparison, opts, &title);

	err = err ?: sb_page_begin(title.s, out);
	err = err ?: draw(comparison, opts, title.s, sb_fg_render_inline, out);
	/* A picture that says that there is nothing to see is a whole one. */
	if (!err || err == -ENODATA)
		fputs("</body>\n</html>\n", out);
	return err;
}

const struct sb_comparison_output sb_comparison_svg = {
	.name = "svg",
	.extension = ".svg",
	.summary = "interactive flame graph for a browser",
	.write = write_svg,
};

const struct sb_comparison_output sb_comparison_html = {
	.name = "html",
	.extension = ".html",
	.summary = "page with the flame graph",
	.write = write_html,
};
