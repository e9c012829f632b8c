// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flamegraph/svg.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/num.h"
#include "flamegraph/attrs.h"
#include "flamegraph/diff.h"
#include "flamegraph/embed.h"
#include "flamegraph/label.h"
#include "flamegraph/layout.h"
#include "flamegraph/opts.h"
#include "flamegraph/palette.h"
#include "flamegraph/text.h"
#include "flamegraph/tree.h"
#include "flamegraph/viewer.h"
#include "kinds/view_kind.h"

#define WIDTH_PX	 1200.0
#define PAD_PX		 12.0 /* left and right of the frames */
#define TITLE_EM	 1.5  /* of the font size of frames */
#define TEXT_PAD_PX	 3.0
/*
 * Narrower boxes of cut frames share one path, which takes ten bytes for each instead of a hundred.
 */
#define CUT_WIDTH_MIN_PX 3.0
/* Longest tooltip. Longer ones are not read; the embedded data has the whole names. */
#define TITLE_LEN_MAX	 1024
#define FEW_SAMPLES	 100
#define ROOT_NAME	 "all"

struct picture {
	const struct sb_tree *tree;
	const struct sb_fg_facts *facts;
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

/* ---- texts ---- */

static bool is_inverted(const struct picture *picture)
{
	return picture->opts->inverted;
}

static int add_xml(struct picture *picture, struct sb_str *out, const char *s)
{
	return sb_fg_label_add_xml(out, s, strlen(s), &picture->nr_repaired);
}

static int add_title(struct picture *picture, struct sb_str *out)
{
	const struct sb_fg_opts *opts = picture->opts;
	const char *shape = opts->flamechart	   ? "chart"
			    : is_inverted(picture) ? "icicle graph"
						   : "graph";
	const char *flame = is_inverted(picture) && !opts->flamechart ? "" : "flame ";
	const char *title = opts->title;

	if (title)
		return add_xml(picture, out, title);
	if (picture->is_diff)
		return sb_str_addf(out, "%s%s: what changed from A to B%s",
				   picture->view ? picture->view->title : "",
				   picture->view ? " flame graph" : "Flame graph",
				   opts->reverse ? ", by leaf" : "");
	if (picture->view)
		return sb_str_addf(out, "%s %s%s%s", picture->view->title, flame, shape,
				   opts->reverse ? ", by leaf" : "");
	if (sb_streq(flame, ""))
		return sb_str_addf(out, "Icicle graph%s", opts->reverse ? ", by leaf" : "");
	return sb_str_addf(out, "Flame %s%s", shape, opts->reverse ? ", by leaf" : "");
}

static int add_weight(const struct picture *picture, struct sb_str *out, double weight)
{
	return sb_fg_label_add_weight(out, weight * picture->factor, picture->unit.s);
}

/* " · " between parts */
static int add_dot(struct sb_str *out)
{
	return out->len ? sb_str_add(out, " \xc2\xb7 ") : 0;
}

static bool fact_number(const struct picture *picture, const char *key, uint64_t *ret)
{
	const char *value = sb_fg_fact(picture->facts, key);

	return value && sb_parse_u64(value, UINT64_MAX, ret) == 0;
}

static int add_share(struct sb_str *out, double share)
{
	return sb_str_add(out, " (") ?: sb_fg_label_add_share(out, share) ?: sb_str_addc(out, ')');
}

/* What the recording could not see: "3 lost (0.15%) · 1,204 stacks truncated (61.4%)". */
static int add_losses(const struct picture *picture, struct sb_str *out)
{
	static const struct {
		const char *key, *one, *many;
		bool is_of_samples, is_beside; /* has a share of the samples; is not among them */
	} losses[] = {
		{ "lost", " lost", " lost", true, true },
		{ "trunc", " stack truncated", " stacks truncated", true, false },
		{ "nosym", " frame unnamed", " frames unnamed", false, false },
	};
	uint64_t val, nr, nr_samples = 0;
	int err = 0;

	(void)fact_number(picture, "n", &nr_samples);
	for (size_t i = 0; i < SB_ARRAY_SIZE(losses) && !err; i++) {
		if (!fact_number(picture, losses[i].key, &val))
			continue;
		nr = nr_samples + (losses[i].is_beside ? val : 0);
		err = add_dot(out) ?: sb_fg_label_add_number(out, (double)val);
		err = err ?: sb_str_add(out, val == 1 ? losses[i].one : losses[i].many);
		if (!err && losses[i].is_of_samples && val && nr_samples && val <= nr)
			err = add_share(out, (double)val / (double)nr);
	}
	return err;
}

/* What the recording left out on demand; it is not in the total. */
static int add_left_out(const struct picture *picture, struct sb_str *out)
{
	static const struct {
		const char *key, *what;
	} parts[] = { { "limited", " left out by --limit" }, { "idle", " idle left out" } };
	uint64_t val;
	int err = 0;

	for (size_t i = 0; i < SB_ARRAY_SIZE(parts) && !err; i++) {
		if (!fact_number(picture, parts[i].key, &val) || !val)
			continue;
		err = add_dot(out) ?: add_weight(picture, out, (double)val);
		err = err ?: sb_str_add(out, parts[i].what);
	}
	return err;
}

/* "99.7% accounted for": of threads x time. */
static int add_accounted(const struct picture *picture, struct sb_str *out)
{
	const char *value = sb_fg_fact(picture->facts, "accounted");
	double percent;

	if (!value || !sb_fg_parse_weight(value, strlen(value), &percent))
		return 0;
	return add_dot(out) ?: sb_fg_label_add_share(out, percent / 100) ?:
			       sb_str_add(out, " accounted for");
}

/* "sampled less for 3.2 s": to limit the overhead; weights are corrected for it. */
static int add_governed(const struct picture *picture, struct sb_str *out)
{
	uint64_t us;

	if (!fact_number(picture, "governed_us", &us) || !us)
		return 0;
	return add_dot(out) ?: sb_str_add(out, "sampled less for ") ?:
			       sb_fg_label_add_weight(out, (double)us, "us");
}

static int add_few_samples(const struct picture *picture, struct sb_str *out)
{
	uint64_t nr = (uint64_t)picture->tree->nodes.at[0].total;
	bool is_known = sb_streq(picture->unit.s, "samples") && picture->factor == 1;

	is_known = fact_number(picture, "n", &nr) || is_known;
	if (!is_known || nr >= FEW_SAMPLES || (picture->view && !picture->view->is_estimate))
		return 0;
	return add_dot(out) ?: sb_str_add(out, "few samples: shares are rough");
}

/* "960 frames hatched: narrower than 0.05%, above level 50" */
static int add_cuts(const struct picture *picture, struct sb_str *out)
{
	const struct sb_fg_layout *layout = &picture->layout;
	bool has_narrow = layout->nr_cut > layout->nr_cut_deep;
	int err = 0;

	if (!layout->nr_cut)
		return 0;
	err = add_dot(out) ?: sb_fg_label_add_number(out, (double)layout->nr_cut);
	err = err
		      ?: sb_str_add(out,
				    layout->nr_cut == 1 ? " frame hatched: " : " frames hatched: ");
	if (!err && has_narrow) {
		err = sb_str_add(out, "narrower than ");
		err = err ?: sb_fg_label_add_share(out, layout->min_weight / picture->total);
	}
	if (!err && layout->is_raised)
		err = sb_str_addf(out, " so that at most %u are drawn", picture->opts->max_rects);
	if (!err && layout->nr_cut_deep)
		err = sb_str_addf(out, "%sabove level %u", has_narrow ? ", " : "",
				  picture->opts->max_depth);
	if (!err && picture->is_partly_kept)
		err = sb_str_add(out, "; not kept in this file");
	return err;
}

static int add_repairs(const struct picture *picture, struct sb_str *out)
{
	if (!picture->nr_repaired)
		return 0;
	return add_dot(out) ?: sb_fg_label_add_number(out, (double)picture->nr_repaired) ?:
			       sb_str_add(out, " bytes of names replaced");
}

static int add_subtitle(struct picture *picture, struct sb_str *out)
{
	uint64_t val;
	int err;

	if (picture->is_diff) {
		err = sb_fg_diff_add_subtitle(&picture->diff, out, picture->unit.s, picture->facts);
		return err ?: add_cuts(picture, out) ?: add_repairs(picture, out);
	}
	err = add_weight(picture, out, picture->tree->nodes.at[0].total);
	if (!err && fact_number(picture, "dur_us", &val)) {
		err = sb_str_add(out, " in ");
		err = err ?: sb_fg_label_add_weight(out, (double)val, "us");
	}
	if (!err && !sb_streq(picture->unit.s, "samples") && fact_number(picture, "n", &val)) {
		err = add_dot(out) ?: sb_fg_label_add_number(out, (double)val);
		err = err
			      ?: sb_str_addf(out, " %s",
					     picture->view ? picture->view->event : "samples");
	}
	err = err ?: add_accounted(picture, out) ?: add_left_out(picture, out);
	err = err ?: add_losses(picture, out);
	err = err ?: add_governed(picture, out) ?: add_few_samples(picture, out);
	err = err ?: add_cuts(picture, out);
	return err ?: add_repairs(picture, out);
}

/* ---- boxes ---- */

static const char *box_name(const struct picture *picture, const struct sb_fg_box *box,
			    size_t *ret_len)
{
	if (!box->node) {
		*ret_len = strlen(ROOT_NAME);
		return ROOT_NAME;
	}
	return sb_strtab_get(&picture->tree->names, picture->tree->nodes.at[box->node].name,
			     ret_len);
}

static double box_x(const struct picture *picture, const struct sb_fg_box *box)
{
	return PAD_PX + box->start * picture->px_per_weight;
}

static double box_y(const struct picture *picture, const struct sb_fg_box *box)
{
	if (is_inverted(picture))
		return picture->top + box->level * picture->frame_px;
	return picture->bottom - (box->level + 1) * picture->frame_px;
}

/* "(1,234 samples, 5.67%)" */
static int add_figures(const struct picture *picture, struct sb_str *out,
		       const struct sb_fg_box *box)
{
	double weight = box->weight;
	int err = sb_str_add(out, " (");

	if (picture->is_diff) {
		struct sb_tree_pair pair = sb_fg_diff_box(picture->tree, box);

		err = err ?: sb_fg_diff_add_figures(&picture->diff, out, &pair, picture->unit.s);
		return err ?: sb_str_addc(out, ')');
	}
	err = err ?: add_weight(picture, out, weight);
	err = err ?: sb_str_add(out, ", ");
	err = err ?: sb_fg_label_add_share(out, weight / picture->total);
	return err ?: sb_str_addc(out, ')');
}

/* Pictures have 100,000 attributes, for which printf() would take half of the time to write them. */
static int open_attr(struct sb_str *out, const char *name)
{
	return sb_str_addc(out, ' ') ?: sb_str_add(out, name) ?: sb_str_add(out, "=\"");
}

static int add_px_attr(struct sb_str *out, const char *name, double px)
{
	return open_attr(out, name) ?: sb_fg_label_add_px(out, px) ?: sb_str_addc(out, '"');
}

static int add_class_attr(struct sb_str *out, const char *class)
{
	return open_attr(out, "class") ?: sb_str_add(out, class) ?: sb_str_addc(out, '"');
}

static int add_rect(const struct picture *picture, struct sb_str *out, const struct sb_fg_box *box)
{
	double x = box_x(picture, box), width = box->weight * picture->px_per_weight;
	int err = add_px_attr(out, "x", x) ?: add_px_attr(out, "y", box_y(picture, box));

	/* Half a pixel between neighbours of the same shade. */
	err = err ?: add_px_attr(out, "width", fmax(width > 4 ? width - 0.5 : width, 0.1));
	err = err ?: add_px_attr(out, "height", picture->frame_px - 1);
	return err ?: sb_str_add(out, "/>");
}

static int add_label(struct picture *picture, struct sb_str *out, const struct sb_fg_box *box,
		     const char *text, size_t len)
{
	double width = box->weight * picture->px_per_weight - 2 * TEXT_PAD_PX;
	struct sb_str label = {};
	int err = sb_fg_label_add_fitted(&label, text, len, width / picture->font_px,
					 picture->opts->fontwidth);

	if (!err && label.len) {
		err = sb_str_add(out, "<text");
		err = err ?: add_px_attr(out, "x", box_x(picture, box) + TEXT_PAD_PX);
		err = err
			      ?: add_px_attr(out, "y",
					     box_y(picture, box) + floor(picture->frame_px / 2 +
									 picture->font_px * 0.3));
		err = err ?: sb_str_addc(out, '>');
		/* Bytes are counted once, in the tooltip of the box. */
		err = err ?: sb_fg_label_add_xml(out, label.s, label.len, NULL);
		err = err ?: sb_str_add(out, "</text>");
	}
	sb_str_release(&label);
	return err;
}

static int add_attr(struct picture *picture, struct sb_str *out, const char *name, uint32_t id)
{
	const char *value = sb_strtab_get(&picture->attrs.strs, id, NULL);

	if (!*value)
		return 0;
	return open_attr(out, name) ?: add_xml(picture, out, value) ?: sb_str_addc(out, '"');
}

/* Open the group of a frame, which is a link if --nameattr says so. */
static int add_group(struct picture *picture, struct sb_str *out,
		     const struct sb_fg_name_attr *attr)
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
static int add_kept_color(struct picture *picture, struct sb_str *out, const char *name, size_t len,
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

static int add_frame_class(struct picture *picture, struct sb_str *out, const struct sb_fg_box *box)
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

static int add_frame(struct picture *picture, const struct sb_fg_box *box)
{
	struct sb_str *out = &picture->frames;
	size_t len;
	const char *name = box_name(picture, box, &len);
	const struct sb_fg_name_attr *attr = sb_fg_name_attrs_get(&picture->attrs, name, len);
	int err = add_group(picture, out, attr);

	err = err ?: sb_str_add(out, "><title>");
	if (!err && attr && attr->title) {
		err = add_xml(picture, out, sb_strtab_get(&picture->attrs.strs, attr->title, NULL));
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
static int add_cut(struct picture *picture, const struct sb_fg_box *box)
{
	struct sb_str *out = &picture->frames;
	struct sb_str text = {};
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
	err = err ?: sb_str_add(out, "</g>\n");
	sb_str_release(&text);
	return err;
}

static bool is_narrow_cut(const struct picture *picture, const struct sb_fg_box *box)
{
	return box->kind != SB_FG_BOX_FRAME &&
	       box->weight * picture->px_per_weight < CUT_WIDTH_MIN_PX;
}

/* "M12.3 40h.4v15h-.4z" */
static int add_narrow_cut(const struct picture *picture, struct sb_str *out,
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

static int add_boxes(struct picture *picture)
{
	const struct sb_fg_layout *layout = &picture->layout;
	struct sb_str path = {};
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
	sb_str_release(&path);
	return err;
}

/* ---- head ---- */

static int add_background(const struct picture *picture, struct sb_str *out, bool is_dark)
{
	static const struct {
		const char *name, *from, *to;
	} gradients[] = {
		{ "yellow", "#eeeeee", "#eeeeb0" }, { "blue", "#eeeeee", "#e0e0ff" },
		{ "green", "#eef2ee", "#e0ffe0" },  { "grey", "#f8f8f8", "#e8e8e8" },
		{ "gray", "#f8f8f8", "#e8e8e8" },
	};
	const char *name = picture->opts->bgcolors;

	if (!name || sb_streq(name, "flat") || is_dark)
		return 0;
	if (name[0] == '#') {
		if (strlen(name) != 7 || strspn(name + 1, "0123456789abcdefABCDEF") != 6)
			return -EINVAL;
		return sb_str_addf(out, "#bg{fill:%s}\n", name);
	}
	for (size_t i = 0; i < SB_ARRAY_SIZE(gradients); i++) {
		if (sb_streq(gradients[i].name, name))
			return sb_str_addf(out,
					   "#bg{fill:url(#ground)}#g0{stop-color:%s}"
					   "#g1{stop-color:%s}\n",
					   gradients[i].from, gradients[i].to);
	}
	return -EINVAL;
}

static int add_font(const struct picture *picture, struct sb_str *out)
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

static int add_colors(const struct picture *picture, struct sb_str *out, bool is_dark)
{
	if (picture->is_diff)
		return sb_fg_diff_add_css(out, is_dark);
	return sb_fg_palette_add_css(&picture->palette, is_dark, out);
}

/* One block for light, and one that adds dark, whose medium the viewer switches. */
static int add_style(const struct picture *picture, struct sb_str *out)
{
	int err = sb_str_add(out, "<style>\n") ?: sb_str_add(out, sb_fg_viewer_css);

	err = err ?: add_font(picture, out) ?: add_background(picture, out, false);
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
	return sb_str_addf(out, "<text id=\"%s\"", id) ?: add_px_attr(out, "x", PAD_PX) ?:
	       add_px_attr(out, "y", y) ?: sb_str_addc(out, '>');
}

static int add_swatch(const struct picture *picture, struct sb_str *out, const char *class,
		      const char *name, double *x, double y)
{
	int err = sb_str_addf(out, "<rect class=\"%s\"", class) ?: add_px_attr(out, "x", *x);

	err = err ?: add_px_attr(out, "y", y - 9);
	err = err ?: sb_str_add(out, " width=\"14\" height=\"10\"/><text");
	err = err ?: add_px_attr(out, "x", *x + 19) ?: add_px_attr(out, "y", y);
	err = err ?: sb_str_addf(out, ">%s</text>", name);
	*x += 19 + 16 + floor(sb_fg_label_width(name, strlen(name), 0) * picture->font_px);
	return err;
}

/* Swatches for the kinds of frames in the picture, unless there is only one. */
static int add_legend(const struct picture *picture, struct sb_str *out, double y)
{
	static const struct {
		enum sb_fg_kind kind;
		const char *name;
	} rows[] = {
		{ SB_FG_PLAIN, "user" },
		{ SB_FG_KERNEL, "kernel" },
		{ SB_FG_INLINED, "inlined" },
		{ SB_FG_INTERP, "interpreter" },
		{ SB_FG_JIT, "JIT" },
		{ SB_FG_WAKER, "waker" },
		{ SB_FG_UNKNOWN, "no name" },
		{ SB_FG_MARK, "truncated" },
		{ SB_FG_FILE, "file" },
		{ SB_FG_IDLE, "idle" },
		{ SB_FG_RUNNING, "running" },
		{ SB_FG_WAITING, "waiting for a CPU" },
		{ SB_FG_BLOCKED, "blocked" },
		{ SB_FG_LOCK, "lock" },
		{ SB_FG_RESIDUAL, "not accounted for" },
	};
	double x = PAD_PX;
	int err = sb_str_add(out, "<g id=\"legend\">");

	for (size_t i = 0; i < SB_ARRAY_SIZE(rows) && !err && !picture->is_diff; i++) {
		char class[SB_FG_CLASS_LEN_MAX];

		if (picture->has_kind[rows[i].kind] &&
		    sb_fg_palette_legend(&picture->palette, rows[i].kind, class))
			err = add_swatch(picture, out, class, rows[i].name, &x, y);
	}
	for (size_t i = 0; picture->is_diff && !err; i++) {
		const char *class, *name;

		if (!sb_fg_diff_legend(&picture->diff, i, &class, &name))
			break;
		err = add_swatch(picture, out, class, name, &x, y);
	}
	return err ?: sb_str_add(out, "</g>\n");
}

static bool has_legend(const struct picture *picture)
{
	char class[SB_FG_CLASS_LEN_MAX];
	int nr = 0;

	if (picture->is_diff)
		return true;
	for (int i = 0; i < SB_FG_KIND_MAX; i++)
		nr += picture->has_kind[i] && i != SB_FG_DELIMITER;
	return nr > 1 && sb_fg_palette_legend(&picture->palette, SB_FG_PLAIN, class);
}

/* Title, subtitles and legend. *@y: where the next line goes. */
static int add_head(struct picture *picture, struct sb_str *out, const struct sb_str *subtitle,
		    double *y)
{
	double line = floor(picture->font_px * 1.5);
	int err;

	*y = floor(8 + picture->font_px * TITLE_EM);
	err = add_text(out, "title", *y) ?: add_title(picture, out);
	err = err ?: sb_str_add(out, "</text>\n");
	if (!err && picture->opts->subtitle) {
		err = add_text(out, "note", *y += line);
		err = err ?: add_xml(picture, out, picture->opts->subtitle);
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

/* How the comparison was made; the viewer computes the sums from the data. */
static int add_diff_view(const struct picture *picture, struct sb_str *out)
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
static int add_view(struct picture *picture, struct sb_str *out)
{
	static const char *const shades[] = { "name", "prefix", "place", "module" };
	const struct sb_fg_opts *opts = picture->opts;
	struct sb_str rules = {};
	int err = sb_str_add(out, "<view xmlns=\"urn:stackbpf\" unit=\"");

	err = err ?: sb_str_add(out, picture->unit.s);
	err = err
		      ?: sb_str_addf(out, "\" shade=\"%s\" rules=\"",
				     shades[picture->palette.shade_by]);
	err = err ?: sb_fg_palette_add_json(&picture->palette, &rules);
	err = err ?: sb_fg_label_add_xml(out, rules.s, rules.len, NULL);
	err = err ?: sb_str_addc(out, '"') ?: add_px_attr(out, "frame", picture->frame_px);
	err = err ?: add_px_attr(out, "font", picture->font_px);
	err = err ?: add_px_attr(out, "top", picture->top);
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
		err = sb_str_add(out, " nametype=\"") ?: add_xml(picture, out, opts->nametype);
		err = err ?: sb_str_addc(out, '"');
	}
	err = err
		      ?: sb_str_addf(out, "%s%s%s%s%s/>\n", opts->width > 0 ? "" : " fluid=\"1\"",
				     opts->inverted ? " inverted=\"1\"" : "",
				     opts->flamechart ? " chart=\"1\"" : "",
				     picture->is_partly_kept ? " partial=\"1\"" : "",
				     opts->cp ? " cp=\"1\"" : "");
	sb_str_release(&rules);
	return err;
}

static int add_opening(struct picture *picture, struct sb_str *out, double height)
{
	const char *declaration =
		picture->opts->is_inline ? "" : "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
	int err = sb_str_addf(out, "%s<svg xmlns=\"http://www.w3.org/2000/svg\"%s", declaration,
			      picture->opts->is_inline ? " class=\"page\"" : "");

	err = err ?: add_px_attr(out, "width", picture->width);
	err = err ?: add_px_attr(out, "height", height);
	err = err ?: sb_str_add(out, " viewBox=\"0 0 ") ?: sb_fg_label_add_px(out, picture->width);
	err = err ?: sb_str_addc(out, ' ') ?: sb_fg_label_add_px(out, height);
	err = err
		      ?: sb_str_add(out, "\" role=\"img\" aria-labelledby=\"name about\">\n"
					 "<title id=\"name\">");
	err = err ?: add_title(picture, out);
	return err ?: sb_str_add(out, "</title>\n");
}

static int add_about(struct picture *picture, struct sb_str *out, const struct sb_str *subtitle)
{
	int err = sb_str_add(out, "<desc id=\"about\">");

	err = err ?: sb_str_addn(out, subtitle->s, subtitle->len);
	if (!err && picture->opts->notes)
		err = sb_str_add(out, "\n") ?: add_xml(picture, out, picture->opts->notes);
	return err ?: sb_str_add(out, "</desc>\n");
}

static int add_ground(struct sb_str *out)
{
	return sb_str_add(out, "<rect id=\"bg\" width=\"100%\" height=\"100%\"/>\n");
}

/* Everything before the frames. It is made after them, when it is known what they contain. */
static int add_front(struct picture *picture, const struct sb_str *subtitle)
{
	struct sb_str *out = &picture->out;
	double height = picture->bottom + PAD_PX, y;
	int err = add_opening(picture, out, height) ?: add_about(picture, out, subtitle);

	err = err ?: add_style(picture, out) ?: add_defs(out) ?: add_ground(out);
	err = err ?: sb_str_add(out, "<g id=\"head\">\n");
	err = err ?: add_head(picture, out, subtitle, &y);
	return err ?: sb_str_add(out, "</g>\n<g id=\"frames\">\n");
}

static int write_out(struct picture *picture, struct sb_str *str)
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

static int prepare(struct picture *picture)
{
	const struct sb_fg_opts *opts = picture->opts;
	const char *unit = sb_fg_fact(picture->facts, "unit");
	int err;

	picture->kind = sb_fg_fact(picture->facts, "kind");
	picture->view = sb_view_kind_find(picture->kind);
	picture->factor = positive(opts->factor, 1);
	picture->width = positive(opts->width, WIDTH_PX);
	picture->font_px = positive(opts->fontsize, 12);
	picture->frame_px = positive(opts->frame_height, 16);
	picture->is_diff = picture->tree->pair_totals.nr > 0;
	if (picture->is_diff)
		sb_fg_diff_init(&picture->diff, picture->tree, picture->facts, opts);
	picture->total = fmax(picture->tree->nodes.at[0].total, picture->is_diff ? 0 : opts->total);
	picture->px_per_weight = fmax(picture->width - 2 * PAD_PX, 1) / picture->total;
	err = sb_str_add(&picture->unit, "") ?: add_xml(picture, &picture->unit, opts->countname ?: unit ?: "samples");
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

static void release(struct picture *picture)
{
	sb_fg_layout_release(&picture->layout);
	sb_fg_palette_release(&picture->palette);
	sb_fg_palette_map_release(&picture->map);
	sb_fg_name_attrs_release(&picture->attrs);
	sb_str_release(&picture->unit);
	sb_str_release(&picture->frames);
	sb_str_release(&picture->out);
}

static int lay_out(struct picture *picture)
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

	picture->top = floor(8 + picture->font_px * TITLE_EM) +
		       (lines - 1) * floor(picture->font_px * 1.5) - floor(picture->font_px * 0.75);
	picture->bottom = picture->top + (picture->layout.level_max + 1) * picture->frame_px;
	return err;
}

static int write_data(struct picture *picture)
{
	struct sb_tree drawn = {};
	int err;

	err = sb_str_add(&picture->out, "</g>\n<metadata>\n") ?:
	      add_view(picture, &picture->out) ?: write_out(picture, &picture->out);
	if (err)
		return err;
	if (!picture->is_partly_kept) {
		err = sb_fg_embed(picture->tree, picture->facts, picture->file);
	} else {
		err = sb_fg_embed_drawn(picture->tree, &picture->layout, &drawn);
		if (!err) {
			err = sb_fg_embed(&drawn, picture->facts, picture->file);
			sb_tree_release(&drawn);
		}
	}
	return err ?: sb_str_add(&picture->out, "</metadata>\n<script><![CDATA[\n") ?:
	       sb_str_add(&picture->out, sb_fg_viewer_js) ?:
	       sb_str_add(&picture->out, "]]></script>\n</svg>\n") ?:
	       write_out(picture, &picture->out);
}

static int draw(struct picture *picture)
{
	struct sb_str subtitle = {};
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
	err = err ?: add_subtitle(picture, &subtitle);
	err = err ?: add_front(picture, &subtitle);
	err = err ?: write_out(picture, &picture->out) ?: write_out(picture, &picture->frames);
	err = err ?: write_data(picture);
	if (!err && picture->is_map_changed)
		err = sb_fg_palette_map_write(&picture->map, picture->opts->palette_path
								     ? picture->opts->palette_path
								     : SB_FG_PALETTE_FILE);
	sb_str_release(&subtitle);
	return err;
}

static int draw_nothing(struct picture *picture)
{
	struct sb_str subtitle = {};
	double y;
	int err = sb_str_add(&subtitle, "no samples") ?: add_left_out(picture, &subtitle);

	err = err ?: add_losses(picture, &subtitle);

	picture->bottom = 80;
	err = err ?: add_opening(picture, &picture->out, picture->bottom);
	err = err ?: add_about(picture, &picture->out, &subtitle);
	err = err ?: add_style(picture, &picture->out) ?: add_defs(&picture->out);
	err = err ?: add_ground(&picture->out) ?: add_head(picture, &picture->out, &subtitle, &y);
	err = err ?: sb_str_add(&picture->out, "</svg>\n") ?: write_out(picture, &picture->out);
	sb_str_release(&subtitle);
	return err ?: -ENODATA;
}

int sb_fg_svg(const struct sb_tree *tree, const struct sb_fg_facts *facts,
	      const struct sb_fg_opts *opts, FILE *out)
{
	struct picture picture = { .tree = tree, .facts = facts, .opts = opts, .file = out };
	int err = prepare(&picture);

	if (!err)
		err = tree->nodes.at[0].total > 0 ? draw(&picture) : draw_nothing(&picture);
	if ((!err || err == -ENODATA) && fflush(out))
		err = errno ? -errno : -EIO;
	release(&picture);
	return err;
}
