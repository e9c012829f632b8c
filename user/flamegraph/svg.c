// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flamegraph/svg.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "flamegraph/attrs.h"
#include "flamegraph/diff.h"
#include "flamegraph/embed.h"
#include "flamegraph/label.h"
#include "flamegraph/layout.h"
#include "flamegraph/opts.h"
#include "flamegraph/palette.h"
#include "flamegraph/svg_priv.h"
#include "flamegraph/viewer.h"
#include "kinds/view_kind.h"

#define WIDTH_PX	 1200.0
#define TEXT_PAD_PX	 3.0
/*
 * Narrower boxes of cut frames share one path, which takes ten bytes for each instead of a hundred.
 */
#define CUT_WIDTH_MIN_PX 3.0
/* Longest tooltip. Longer ones are not read; the embedded data has the whole names. */
#define TITLE_LEN_MAX	 1024
#define ROOT_NAME	 "all"

static const char *box_name(const struct sb_svg *picture, const struct sb_fg_box *box,
			    size_t *ret_len)
{
	if (!box->node) {
		*ret_len = strlen(ROOT_NAME);
		return ROOT_NAME;
	}
	return sb_strtab_get(&picture->tree->names, picture->tree->nodes.at[box->node].name,
			     ret_len);
}

static double box_x(const struct sb_svg *picture, const struct sb_fg_box *box)
{
	return SB_SVG_PAD_PX + box->start * picture->px_per_weight;
}

static double box_y(const struct sb_svg *picture, const struct sb_fg_box *box)
{
	if (picture->opts->inverted)
		return picture->top + box->level * picture->frame_px;
	return picture->bottom - (box->level + 1) * picture->frame_px;
}

/* "(1,234 samples, 5.67%)" */
static int add_figures(const struct sb_svg *picture, struct sb_str *out,
		       const struct sb_fg_box *box)
{
	double weight = box->weight;
	int err = sb_str_add(out, " (");

	if (picture->is_diff) {
		struct sb_tree_pair pair = sb_fg_diff_box(picture->tree, box);

		err = err ?: sb_fg_diff_add_figures(&picture->diff, out, &pair, picture->unit.s);
		return err ?: sb_str_addc(out, ')');
	}
	err = err ?: sb_svg_add_weight(picture, out, weight);
	err = err ?: sb_str_add(out, ", ");
	err = err ?: sb_fg_label_add_share(out, weight / picture->total);
	return err ?: sb_str_addc(out, ')');
}

static int add_class_attr(struct sb_str *out, const char *class)
{
	return sb_svg_open_attr(out, "class") ?: sb_str_add(out, class) ?: sb_str_addc(out, '"');
}

static int add_rect(const struct sb_svg *picture, struct sb_str *out, const struct sb_fg_box *box)
{
	double x = box_x(picture, box), width = box->weight * picture->px_per_weight;
	int err = sb_svg_add_px_attr(out, "x", x)
			  ?: sb_svg_add_px_attr(out, "y", box_y(picture, box));

	/* Half a pixel between neighbours of the same shade. */
	err = err ?: sb_svg_add_px_attr(out, "width", fmax(width > 4 ? width - 0.5 : width, 0.1));
	err = err ?: sb_svg_add_px_attr(out, "height", picture->frame_px - 1);
	return err ?: sb_str_add(out, "/>");
}

static int add_label(struct sb_svg *picture, struct sb_str *out, const struct sb_fg_box *box,
		     const char *text, size_t len)
{
	double width = box->weight * picture->px_per_weight - 2 * TEXT_PAD_PX;
	sb_cleanup(sb_str_release) struct sb_str label = {};
	int err = sb_fg_label_add_fitted(&label, text, len, width / picture->font_px,
					 picture->opts->fontwidth);

	if (!err && label.len) {
		err = sb_str_add(out, "<text");
		err = err ?: sb_svg_add_px_attr(out, "x", box_x(picture, box) + TEXT_PAD_PX);
		err = err
			      ?: sb_svg_add_px_attr(out, "y",
						    box_y(picture, box) +
							    floor(picture->frame_px / 2 +
								  picture->font_px * 0.3));
		err = err ?: sb_str_addc(out, '>');
		/* Bytes are counted once, in the tooltip of the box. */
		err = err ?: sb_fg_label_add_xml(out, label.s, label.len, NULL);
		err = err ?: sb_str_add(out, "</text>");
	}
	return err;
}

static int add_attr(struct sb_svg *picture, struct sb_str *out, const char *name, uint32_t id)
{
	const char *value = sb_strtab_get(&picture->attrs.strs, id, NULL);

	if (!*value)
		return 0;
	return sb_svg_open_attr(out, name) ?: sb_svg_add_xml(picture, out, value) ?: sb_str_addc(out, '"');
}

/* Open the group of a frame, which is a link if --nameattr says so. */
static int add_group(struct sb_svg *picture, struct sb_str *out, const struct sb_fg_name_attr *attr)
{
	int err;

	if (!attr)
		return sb_str_add(out, "<g");
	err = sb_str_add(out, attr->href ? "<a" : "<g");
	err = err ?: add_attr(picture, out, "data-name", attr->name);
	err = err ?: add_attr(picture, out, "href", attr->href);
	err = err ?: add_attr(picture, out, "target", attr->href ? attr->target : 0);
	err = err ?: add_attr(picture, out, "id", attr->id);
	return err ?: add_attr(picture, out, "class", attr->css_class);
}

/*
 * Get the colour that a name keeps from one picture to the next; new names get one from the
 * palette.
 */
static int add_kept_color(struct sb_svg *picture, struct sb_str *out, const char *name, size_t len,
			  const char *class)
{
	const char *color = sb_fg_palette_map_get(&picture->map, name, len);
	struct sb_fg_rgb fill = {}, text;
	char rgb[32];
	int err;

	if (!color) {
		sb_fg_palette_colors(&picture->palette, class, false, &fill, &text);
		snprintf(rgb, sizeof(rgb), "rgb(%u,%u,%u)", fill.r, fill.g, fill.b);
		color = rgb;
		err = sb_fg_palette_map_put(&picture->map, name, len, color);
		if (err)
			return err;
		picture->is_map_changed = true;
	}
	return sb_str_addf(out, " style=\"fill:%s\"", color);
}

static int add_frame_class(struct sb_svg *picture, struct sb_str *out, const struct sb_fg_box *box)
{
	enum sb_fg_kind kind = picture->tree->kinds.at[box->node];
	char class[SB_FG_CLASS_LEN_MAX];
	size_t len;
	const char *name = box_name(picture, box, &len);

	if (!box->node)
		return add_class_attr(out, "root");
	if (picture->is_diff)
		return add_class_attr(out,
				      sb_fg_diff_class(&picture->diff,
						       &picture->tree->pair_totals.at[box->node]));
	picture->has_kind[kind] = true;
	sb_fg_palette_class(&picture->palette, name, kind, box->level, class);
	if (picture->opts->cp)
		return add_kept_color(picture, out, name, len, class);
	return add_class_attr(out, class);
}

static int add_frame(struct sb_svg *picture, const struct sb_fg_box *box)
{
	struct sb_str *out = &picture->frames;
	size_t len;
	const char *name = box_name(picture, box, &len);
	const struct sb_fg_name_attr *attr = sb_fg_name_attrs_get(&picture->attrs, name, len);
	int err = add_group(picture, out, attr);

	err = err ?: sb_str_add(out, "><title>");
	if (!err && attr && attr->title) {
		err = sb_svg_add_xml(picture, out,
				     sb_strtab_get(&picture->attrs.strs, attr->title, NULL));
	} else if (!err) {
		size_t shown = sb_fg_label_clip(name, len, TITLE_LEN_MAX);

		err = sb_fg_label_add_xml(out, name, shown, &picture->nr_repaired);
		if (!err && shown < len)
			err = sb_str_add(out, "…");
		err = err ?: add_figures(picture, out, box);
	}
	err = err ?: sb_str_add(out, "</title><rect");
	err = err ?: add_frame_class(picture, out, box);
	err = err ?: add_rect(picture, out, box);
	err = err ?: add_label(picture, out, box, name, len);
	return err ?: sb_str_add(out, attr && attr->href ? "</a>\n" : "</g>\n");
}

/* A box that stands for frames: "… 37 frames, 0.4%". */
static int add_cut(struct sb_svg *picture, const struct sb_fg_box *box)
{
	struct sb_str *out = &picture->frames;
	sb_cleanup(sb_str_release) struct sb_str text = {};
	int err = sb_str_add(&text, "… ");

	err = err ?: sb_fg_label_add_number(&text, box->nr_cut);
	err = err ?: sb_str_add(&text, box->nr_cut == 1 ? " frame" : " frames");
	if (!err && box->kind == SB_FG_BOX_DEEP)
		err = sb_str_addf(&text, " on %u more levels", box->nr_levels + 1);
	err = err ?: sb_str_add(out, "<g><title>") ?: sb_str_addn(out, text.s, text.len);
	err = err ?: add_figures(picture, out, box);
	err = err ?: sb_str_add(out, "</title><rect class=\"cut\"") ?: add_rect(picture, out, box);
	err = err ?: sb_str_add(&text, ", ");
	err = err ?: sb_fg_label_add_share(&text, box->weight / picture->total);
	err = err ?: add_label(picture, out, box, text.s, text.len);
	return err ?: sb_str_add(out, "</g>\n");
}

static bool is_narrow_cut(const struct sb_svg *picture, const struct sb_fg_box *box)
{
	return box->kind != SB_FG_BOX_FRAME &&
	       box->weight * picture->px_per_weight < CUT_WIDTH_MIN_PX;
}

/* "M12.3 40h.4v15h-.4z" */
static int add_narrow_cut(const struct sb_svg *picture, struct sb_str *out,
			  const struct sb_fg_box *box)
{
	double width = fmax(box->weight * picture->px_per_weight, 0.1);
	int err = sb_str_addc(out, 'M') ?: sb_fg_label_add_px(out, box_x(picture, box));

	err = err ?: sb_str_addc(out, ' ') ?: sb_fg_label_add_px(out, box_y(picture, box));
	err = err ?: sb_str_addc(out, 'h') ?: sb_fg_label_add_px(out, width);
	err = err ?: sb_str_addc(out, 'v') ?: sb_fg_label_add_px(out, picture->frame_px - 1);
	err = err ?: sb_str_addc(out, 'h') ?: sb_fg_label_add_px(out, -width);
	return err ?: sb_str_addc(out, 'z');
}

static int add_boxes(struct sb_svg *picture)
{
	const struct sb_fg_layout *layout = &picture->layout;
	sb_cleanup(sb_str_release) struct sb_str path = {};
	int err = 0;

	for (size_t i = 0; i < layout->boxes.nr && !err; i++) {
		const struct sb_fg_box *box = &layout->boxes.at[i];

		if (is_narrow_cut(picture, box))
			err = add_narrow_cut(picture, &path, box);
		else if (box->kind == SB_FG_BOX_FRAME)
			err = add_frame(picture, box);
		else
			err = add_cut(picture, box);
	}
	if (!err && path.len)
		err = sb_str_addf(&picture->frames,
				  "<g><title>Frames too narrow to be drawn one by "
				  "one</title><path class=\"cut\" d=\"%s\"/></g>\n",
				  path.s);
	return err;
}

/* How the comparison was made; the viewer computes the sums from the data. */
static int add_diff_view(const struct sb_svg *picture, struct sb_str *out)
{
	static const char *const widths[] = { "b", "a", "both" };
	const struct sb_fg_diff *diff = &picture->diff;
	bool is_rate = diff->diff.norm == SB_DIFF_RATE;
	int err = sb_str_addf(out, " diff=\"%s\" width=\"%s\"", sb_diff_norm_name(diff->diff.norm),
			      widths[picture->opts->diff_width]);

	if (!err && is_rate)
		err = sb_str_addf(out, " per_a=\"%.17g\" per_b=\"%.17g\"", diff->diff.per[0],
				  diff->diff.per[1]);
	if (!err && diff->rate && is_rate)
		err = sb_str_addf(out, " rate=\"%s\"",
				  sb_streq(diff->rate, "cpu")	 ? "cpu"
				  : sb_streq(diff->rate, "cpus") ? "cpus"
								 : "s");
	if (!err && diff->is_negated)
		err = sb_str_add(out, " negate=\"1\"");
	return err;
}

/* What the viewer must know and cannot read from the data. */
static int add_view(struct sb_svg *picture, struct sb_str *out)
{
	static const char *const shades[] = { "name", "prefix", "place", "module" };
	const struct sb_fg_opts *opts = picture->opts;
	sb_cleanup(sb_str_release) struct sb_str rules = {};
	int err = sb_str_add(out, "<view xmlns=\"urn:stackbpf\" unit=\"");

	err = err ?: sb_str_add(out, picture->unit.s);
	err = err
		      ?: sb_str_addf(out, "\" shade=\"%s\" rules=\"",
				     shades[picture->palette.shade_by]);
	err = err ?: sb_fg_palette_add_json(&picture->palette, &rules);
	err = err ?: sb_fg_label_add_xml(out, rules.s, rules.len, NULL);
	err = err ?: sb_str_addc(out, '"') ?: sb_svg_add_px_attr(out, "frame", picture->frame_px);
	err = err ?: sb_svg_add_px_attr(out, "font", picture->font_px);
	err = err ?: sb_svg_add_px_attr(out, "top", picture->top);
	err = err ?: sb_str_addf(out, " min=\"%.9g\"", picture->layout.min_weight / picture->total);
	err = err
		      ?: sb_str_addf(out, " rects=\"%u\" depth=\"%u\"", opts->max_rects,
				     opts->max_depth);
	if (!err && picture->factor != 1)
		err = sb_str_addf(out, " factor=\"%.17g\"", picture->factor);
	if (!err && picture->total > picture->tree->nodes.at[0].total)
		err = sb_str_addf(out, " total=\"%.17g\"", picture->total);
	if (!err && picture->is_diff)
		err = add_diff_view(picture, out);
	if (!err && opts->nametype) {
		err = sb_str_add(out, " nametype=\"")
			      ?: sb_svg_add_xml(picture, out, opts->nametype);
		err = err ?: sb_str_addc(out, '"');
	}
	err = err
		      ?: sb_str_addf(out, "%s%s%s%s%s/>\n", opts->width > 0 ? "" : " fluid=\"1\"",
				     opts->inverted ? " inverted=\"1\"" : "",
				     opts->flamechart ? " chart=\"1\"" : "",
				     picture->is_partly_kept ? " partial=\"1\"" : "",
				     opts->cp ? " cp=\"1\"" : "");
	return err;
}

static int write_out(struct sb_svg *picture, struct sb_str *str)
{
	errno = 0;
	if (str->len && fwrite(str->s, 1, str->len, picture->file) != str->len)
		return errno ? -errno : -EIO;
	sb_str_clear(str);
	return 0;
}

/* ---- steps ---- */

static double positive(double val, double otherwise)
{
	return val > 0 ? val : otherwise;
}

static int prepare(struct sb_svg *picture)
{
	const struct sb_fg_opts *opts = picture->opts;
	const char *unit = picture->known->unit;
	int err;

	picture->kind = picture->known->kind;
	picture->view = sb_view_kind_find(picture->kind);
	picture->factor = positive(opts->factor, 1);
	picture->width = positive(opts->width, WIDTH_PX);
	picture->font_px = positive(opts->fontsize, 12);
	picture->frame_px = positive(opts->frame_height, 16);
	picture->is_diff = picture->tree->pair_totals.nr > 0;
	if (picture->is_diff)
		sb_fg_diff_init(&picture->diff, picture->tree, picture->known, opts);
	picture->total = fmax(picture->tree->nodes.at[0].total, picture->is_diff ? 0 : opts->total);
	picture->px_per_weight = fmax(picture->width - 2 * SB_SVG_PAD_PX, 1) / picture->total;
	err = sb_str_add(&picture->unit, "") ?: sb_svg_add_xml(picture, &picture->unit, opts->countname ?: unit ?: "samples");
	err = err ?: sb_fg_palette_init(&picture->palette, opts, picture->kind);
	err = err ?: sb_fg_palette_map_init(&picture->map);
	err = err ?: sb_fg_name_attrs_init(&picture->attrs);
	if (!err && opts->nameattr_path)
		err = sb_fg_name_attrs_read(&picture->attrs, opts->nameattr_path);
	if (!err && opts->cp) {
		err = sb_fg_palette_map_read(&picture->map, opts->palette_path
								    ? opts->palette_path
								    : SB_FG_PALETTE_FILE);
		if (err == -ENOENT)
			err = 0;
	}
	return err;
}

static void release(struct sb_svg *picture)
{
	sb_fg_layout_release(&picture->layout);
	sb_fg_palette_release(&picture->palette);
	sb_fg_palette_map_release(&picture->map);
	sb_fg_name_attrs_release(&picture->attrs);
	sb_str_release(&picture->unit);
	sb_str_release(&picture->frames);
	sb_str_release(&picture->out);
}

static int lay_out(struct sb_svg *picture)
{
	const struct sb_fg_opts *opts = picture->opts;
	const struct sb_fg_layout_params params = {
		.min_weight = opts->minwidth_is_share ? opts->minwidth * picture->total
						      : opts->minwidth / picture->px_per_weight,
		.max_rects = opts->max_rects,
		.max_level = opts->max_depth,
	};
	int lines = 4 + !!opts->subtitle; /* title, subtitles, legend, distance */
	int err = sb_fg_layout_make(picture->tree, &params, &picture->layout);

	picture->top = floor(8 + picture->font_px * SB_SVG_TITLE_EM) +
		       (lines - 1) * floor(picture->font_px * 1.5) - floor(picture->font_px * 0.75);
	picture->bottom = picture->top + (picture->layout.level_max + 1) * picture->frame_px;
	return err;
}

static int write_data(struct sb_svg *picture)
{
	struct sb_tree drawn = {};
	int err;

	err = sb_str_add(&picture->out, "</g>\n<metadata>\n") ?:
	      add_view(picture, &picture->out) ?: write_out(picture, &picture->out);
	if (err)
		return err;
	if (!picture->is_partly_kept) {
		err = sb_fg_embed(picture->tree, picture->metadata, picture->file);
	} else {
		err = sb_fg_embed_drawn(picture->tree, &picture->layout, &drawn);
		if (!err) {
			err = sb_fg_embed(&drawn, picture->metadata, picture->file);
			sb_tree_release(&drawn);
		}
	}
	return err ?: sb_str_add(&picture->out, "</metadata>\n<script><![CDATA[\n") ?:
	       sb_str_add(&picture->out, sb_fg_viewer_js) ?:
	       sb_str_add(&picture->out, "]]></script>\n</svg>\n") ?:
	       write_out(picture, &picture->out);
}

static int draw(struct sb_svg *picture)
{
	sb_cleanup(sb_str_release) struct sb_str subtitle = {};
	int err = lay_out(picture);

	if (!err) {
		picture->is_partly_kept = picture->opts->no_embed;
		err = sb_fg_embed_check(picture->tree);
		if (err == -EFBIG) {
			picture->is_partly_kept = true;
			err = 0;
		}
	}
	err = err ?: add_boxes(picture);
	err = err ?: sb_svg_add_subtitle(picture, &subtitle);
	err = err ?: sb_svg_add_front(picture, &subtitle);
	err = err ?: write_out(picture, &picture->out) ?: write_out(picture, &picture->frames);
	err = err ?: write_data(picture);
	if (!err && picture->is_map_changed)
		err = sb_fg_palette_map_write(&picture->map, picture->opts->palette_path
								     ? picture->opts->palette_path
								     : SB_FG_PALETTE_FILE);
	return err;
}

static int draw_nothing(struct sb_svg *picture)
{
	return sb_svg_add_nothing(picture) ?: write_out(picture, &picture->out) ?: -ENODATA;
}

int sb_fg_svg(const struct sb_tree *tree, const struct sb_fg_metadata *metadata,
	      const struct sb_fg_opts *opts, FILE *out)
{
	struct sb_svg picture = { .tree = tree,
				  .metadata = metadata,
				  .known = &metadata->known,
				  .opts = opts,
				  .file = out };
	int err = prepare(&picture);

	if (!err)
		err = tree->nodes.at[0].total > 0 ? draw(&picture) : draw_nothing(&picture);
	if ((!err || err == -ENODATA) && fflush(out))
		err = errno ? -errno : -EIO;
	release(&picture);
	return err;
}
