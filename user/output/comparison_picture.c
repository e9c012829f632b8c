// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A comparison as a flame graph: alone, and in a page. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "flamegraph/fg.h"
#include "flamegraph/label.h"
#include "model/calltree.h"
#include "output/comparison.h"
#include "output/page.h"
#include "output/picture.h"

#define WHAT_BYTES_MAX 1000 /* many rules for tags; the rest of them is in JSON */

/* A comparison that is being converted to a picture. */
struct drawing {
	const struct sb_comparison *comparison;
	struct sb_fg *fg;
	struct sb_arena names;
	SB_VEC(struct sb_tree_frame) path; /* from the root's child to the node */
};

static int add_node(struct drawing *drawing, size_t i)
{
	static const struct sb_fold_opts opts = {};
	const struct sb_tree *tree = drawing->comparison->tree;
	const struct sb_tree_pair *self = &tree->pairs.at[i];
	const struct sb_frame frame = sb_calltree_frame(tree, i);
	struct sb_tree_frame drawn;
	int err = sb_picture_frame(&drawing->names, &frame, &opts, &drawn);

	drawing->path.nr = tree->nodes.at[i].depth - 1;
	err = err ?: sb_vec_push(&drawing->path, drawn);
	if (err || (!(self->weight[SB_TREE_A] > 0) && !(self->weight[SB_TREE_B] > 0)))
		return err;
	return sb_fg_add_pair(drawing->fg, drawing->path.at, drawing->path.nr, self);
}

static int add_nodes(struct sb_fg *fg, const struct sb_comparison *comparison)
{
	struct drawing drawing = { .comparison = comparison, .fg = fg };
	size_t i;
	int err = 0;

	for (i = 1; i < comparison->tree->nodes.nr && !err; i++)
		err = add_node(&drawing, i);
	sb_arena_release(&drawing.names);
	sb_vec_release(&drawing.path);
	return err;
}

static int draw(const struct sb_comparison *comparison, const struct sb_comparison_opts *opts,
		sb_picture_render_fn render, FILE *out)
{
	sb_cleanup(sb_fg_freep) struct sb_fg *fg = NULL;
	sb_cleanup(sb_fg_opts_freep) struct sb_fg_opts *fg_opts = NULL;
	sb_cleanup(sb_str_release) struct sb_str what = {};
	const struct sb_metadata metadata = sb_comparison_metadata(comparison);
	int side, err = sb_fg_new(&fg) ?: sb_fg_opts_new(&fg_opts);

	/* Two ranges of time and their tags are too long for the heading. */
	for (side = 0; side < SB_TREE_NR && !err; side++) {
		const char *name = comparison->what[side];

		err = sb_str_add(&what, side ? " \xe2\x86\x92 B: " : "A: ");
		err = err
			      ?: sb_str_addn(&what, name,
					     sb_fg_label_clip(name, strlen(name), WHAT_BYTES_MAX));
	}
	err = err ?: sb_fg_opts_set(fg_opts, "subtitle", what.s);
	if (!err && opts->title)
		err = sb_fg_opts_set(fg_opts, "title", opts->title);
	if (!err && opts->width)
		err = sb_fg_opts_set(fg_opts, "diff-width", opts->width);
	if (!err && opts->is_negated)
		err = sb_fg_opts_set(fg_opts, "negate", NULL);
	err = err ?: sb_fg_add_metadata(fg, &metadata);
	err = err ?: add_nodes(fg, comparison);
	return err ?: render(fg, fg_opts, out);
}

static int write_svg(const struct sb_comparison *comparison, const struct sb_comparison_opts *opts,
		     FILE *out)
{
	return draw(comparison, opts, sb_fg_render, out);
}

static int write_html(const struct sb_comparison *comparison, const struct sb_comparison_opts *opts,
		      FILE *out)
{
	int err = sb_page_begin(opts->title ? opts->title : "What changed from A to B", out);

	err = err ?: draw(comparison, opts, sb_fg_render_inline, out);
	/* A picture that says that there is nothing to see is valid. */
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
