// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What stands before the frames: styles, title, subtitle and legend. */
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "flamegraph/diff.h"
#include "flamegraph/label.h"
#include "flamegraph/opts.h"
#include "flamegraph/palette.h"
#include "flamegraph/svg_priv.h"
#include "flamegraph/viewer.h"

/* Only for light: the words of --bgcolors are light colours. */
static int add_background(const struct sb_svg *picture, struct sb_str *out)
{
	static const struct {
		const char *name, *from, *to;
	} gradients[] = {
		{ "yellow", "#eeeeee", "#eeeeb0" },
		{ "blue", "#eeeeee", "#e0e0ff" },
		{ "green", "#eef2ee", "#e0ffe0" },
		{ "grey", "#f8f8f8", "#e8e8e8" },
	};
	const char *name = picture->opts->bgcolors;

	if (name && name[0] == '#')
		return sb_str_addf(out, "#bg{fill:%s}\n", name);
	for (size_t i = 0; name && i < SB_ARRAY_SIZE(gradients); i++) {
		if (sb_streq(gradients[i].name, name))
			return sb_str_addf(out,
					   "#bg{fill:url(#ground)}#g0{stop-color:%s}"
					   "#g1{stop-color:%s}\n",
					   gradients[i].from, gradients[i].to);
	}
	return 0;
}

static int add_font(const struct sb_svg *picture, struct sb_str *out)
{
	const char *face = picture->opts->fonttype;
	int err = sb_str_add(out, "svg{font-size:") ?: sb_fg_label_add_px(out, picture->font_px);

	err = err ?: sb_str_add(out, "px");
	if (!err && face) {
		err = sb_str_add(out, ";font-family:");
		/* What could end the declaration or the element is no part of a font's name. */
		for (; *face && !err; face++) {
			if (!strchr(";{}<>&\\/*@\n\r", *face) && (unsigned char)*face >= ' ')
				err = sb_str_addc(out, *face);
		}
		err = err ?: sb_str_add(out, ",sans-serif");
	}
	return err ?: sb_str_add(out, "}\n");
}

static int add_colors(const struct sb_svg *picture, struct sb_str *out, bool is_dark)
{
	if (picture->is_diff)
		return sb_fg_diff_add_css(out, is_dark);
	return sb_fg_palette_add_css(&picture->palette, is_dark, out);
}

/* One block for light, and one that adds dark, whose medium the viewer switches. */
static int add_style(const struct sb_svg *picture, struct sb_str *out)
{
	int err = sb_str_add(out, "<style>\n") ?: sb_str_add(out, sb_fg_viewer_css);

	err = err ?: add_font(picture, out) ?: add_background(picture, out);
	err = err ?: add_colors(picture, out, false);
	err = err ?: sb_str_add(out, "@media (prefers-color-scheme:dark){\n");
	err = err ?: sb_str_add(out, sb_fg_viewer_dark_css);
	err = err ?: add_colors(picture, out, true);
	return err ?: sb_str_add(out, "}\n</style>\n");
}

static int add_defs(struct sb_str *out)
{
	return sb_str_add(out,
			  "<defs><linearGradient id=\"ground\" x2=\"0\" y2=\"1\"><stop id=\"g0\"/>"
			  "<stop id=\"g1\" offset=\"1\"/></linearGradient>\n"
			  "<pattern id=\"hatch\" width=\"5\" height=\"5\" "
			  "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
			  "<rect id=\"h0\" width=\"5\" height=\"5\"/>"
			  "<rect id=\"h1\" width=\"1.6\" height=\"5\"/></pattern></defs>\n");
}

static int add_text(struct sb_str *out, const char *id, double y)
{
	return sb_str_addf(out, "<text id=\"%s\"", id) ?: sb_svg_add_px_attr(out, "x", SB_SVG_PAD_PX) ?:
	       sb_svg_add_px_attr(out, "y", y) ?: sb_str_addc(out, '>');
}

static int add_swatch(const struct sb_svg *picture, struct sb_str *out, const char *class,
		      const char *name, double *x, double y)
{
	int err = sb_str_addf(out, "<rect class=\"%s\"", class) ?: sb_svg_add_px_attr(out, "x", *x);

	err = err ?: sb_svg_add_px_attr(out, "y", y - 9);
	err = err ?: sb_str_add(out, " width=\"14\" height=\"10\"/><text");
	err = err ?: sb_svg_add_px_attr(out, "x", *x + 19) ?: sb_svg_add_px_attr(out, "y", y);
	err = err ?: sb_str_addf(out, ">%s</text>", name);
	*x += 19 + 16 + floor(sb_fg_label_width(name, strlen(name), 0) * picture->font_px);
	return err;
}

/* Swatches for the kinds of frames in the picture, unless there is only one. */
static int add_legend(const struct sb_svg *picture, struct sb_str *out, double y)
{
	double x = SB_SVG_PAD_PX;
	int err = sb_str_add(out, "<g id=\"legend\">");

	for (int kind = 0; kind < SB_FG_KIND_MAX && !err && !picture->is_diff; kind++) {
		char class[SB_FG_CLASS_LEN_MAX];

		if (picture->has_kind[kind] && sb_fg_kinds[kind].legend[0] &&
		    sb_fg_palette_legend(&picture->palette, kind, class))
			err = add_swatch(picture, out, class, sb_fg_kinds[kind].legend, &x, y);
	}
	for (size_t i = 0; picture->is_diff && !err; i++) {
		const char *class, *name;

		if (!sb_fg_diff_legend(&picture->diff, i, &class, &name))
			break;
		err = add_swatch(picture, out, class, name, &x, y);
	}
	return err ?: sb_str_add(out, "</g>\n");
}

static bool has_legend(const struct sb_svg *picture)
{
	char class[SB_FG_CLASS_LEN_MAX];
	int nr = 0;

	if (picture->is_diff)
		return true;
	for (int i = 0; i < SB_FG_KIND_MAX; i++)
		nr += picture->has_kind[i] && sb_fg_kinds[i].legend[0];
	return nr > 1 && sb_fg_palette_legend(&picture->palette, SB_FG_PLAIN, class);
}

/* Title, subtitles and legend. *@y: where the next line goes. */
static int add_head(struct sb_svg *picture, struct sb_str *out, const struct sb_str *subtitle,
		    double *y)
{
	double line = floor(picture->font_px * 1.5);
	int err;

	*y = floor(8 + picture->font_px * SB_SVG_TITLE_EM);
	err = add_text(out, "title", *y) ?: sb_svg_add_title(picture, out);
	err = err ?: sb_str_add(out, "</text>\n");
	if (!err && picture->opts->subtitle) {
		err = add_text(out, "note", *y += line);
		err = err ?: sb_svg_add_xml(picture, out, picture->opts->subtitle);
		err = err ?: sb_str_add(out, "</text>\n");
	}
	err = err ?: add_text(out, "subtitle", *y += line);
	err = err ?: sb_str_addn(out, subtitle->s, subtitle->len);
	err = err ?: sb_str_add(out, "</text>\n");
	if (!err && has_legend(picture))
		err = add_legend(picture, out, *y += line);
	*y += line;
	return err;
}

static int add_opening(struct sb_svg *picture, struct sb_str *out, double height)
{
	const char *declaration =
		picture->opts->is_inline ? "" : "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
	int err = sb_str_addf(out, "%s<svg xmlns=\"http://www.w3.org/2000/svg\"%s", declaration,
			      picture->opts->is_inline ? " class=\"page\"" : "");

	err = err ?: sb_svg_add_px_attr(out, "width", picture->width);
	err = err ?: sb_svg_add_px_attr(out, "height", height);
	err = err ?: sb_str_add(out, " viewBox=\"0 0 ") ?: sb_fg_label_add_px(out, picture->width);
	err = err ?: sb_str_addc(out, ' ') ?: sb_fg_label_add_px(out, height);
	err = err
		      ?: sb_str_add(out, "\" role=\"img\" aria-labelledby=\"name about\">\n"
					 "<title id=\"name\">");
	err = err ?: sb_svg_add_title(picture, out);
	return err ?: sb_str_add(out, "</title>\n");
}

static int add_about(struct sb_svg *picture, struct sb_str *out, const struct sb_str *subtitle)
{
	int err = sb_str_add(out, "<desc id=\"about\">");

	err = err ?: sb_str_addn(out, subtitle->s, subtitle->len);
	if (!err && picture->opts->notes)
		err = sb_str_add(out, "\n") ?: sb_svg_add_xml(picture, out, picture->opts->notes);
	return err ?: sb_str_add(out, "</desc>\n");
}

static int add_ground(struct sb_str *out)
{
	return sb_str_add(out, "<rect id=\"bg\" width=\"100%\" height=\"100%\"/>\n");
}

int sb_svg_add_front(struct sb_svg *picture, const struct sb_str *subtitle)
{
	struct sb_str *out = &picture->out;
	double height = picture->bottom + SB_SVG_PAD_PX, y;
	int err = add_opening(picture, out, height) ?: add_about(picture, out, subtitle);

	err = err ?: add_style(picture, out) ?: add_defs(out) ?: add_ground(out);
	err = err ?: sb_str_add(out, "<g id=\"head\">\n");
	err = err ?: add_head(picture, out, subtitle, &y);
	return err ?: sb_str_add(out, "</g>\n<g id=\"frames\">\n");
}

int sb_svg_add_nothing(struct sb_svg *picture)
{
	sb_cleanup(sb_str_release) struct sb_str subtitle = {};
	struct sb_str *out = &picture->out;
	double y;
	int err = sb_str_add(&subtitle, "no samples") ?: sb_svg_add_left_out(picture, &subtitle);

	err = err ?: sb_svg_add_losses(picture, &subtitle);
	picture->bottom = 80;
	err = err ?: add_opening(picture, out, picture->bottom);
	err = err ?: add_about(picture, out, &subtitle);
	err = err ?: add_style(picture, out) ?: add_defs(out) ?: add_ground(out);
	err = err ?: add_head(picture, out, &subtitle, &y);
	return err ?: sb_str_add(out, "</svg>\n");
}
