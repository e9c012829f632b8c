// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "output/paint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "flamegraph/diff.h"
#include "flamegraph/fg.h"
#include "flamegraph/text.h"
#include "model/calltree.h"
#include "output/picture.h"

int sb_paint_init(struct sb_paint *paint, const char *kind)
{
	sb_cleanup(sb_fg_opts_freep) struct sb_fg_opts *opts = NULL;

	*paint = (struct sb_paint){};
	return sb_fg_opts_new(&opts) ?: sb_fg_palette_init(&paint->palette, opts, kind);
}

void sb_paint_release(struct sb_paint *paint)
{
	sb_fg_palette_release(&paint->palette);
	sb_str_release(&paint->name);
}

/* As in sb_fg_add_stack(); @above is what the frames towards the root imply. */
static int color_of(struct sb_paint *paint, const struct sb_frame *frame, bool is_root,
		    enum sb_fg_kind *above, uint32_t *ret_color)
{
	const struct sb_fold_opts opts = {};
	struct sb_tree_frame drawn;
	char class[SB_FG_CLASS_LEN_MAX];
	int err;

	sb_str_clear(&paint->name);
	err = sb_fold_frame(&paint->name, frame, &opts);
	if (err)
		return err;
	drawn = (struct sb_tree_frame){
		.name = paint->name.len ? paint->name.s : "",
		.len = paint->name.len,
		.kind = sb_picture_kind(frame),
	};
	sb_fg_frame_place(&drawn, is_root, above);
	sb_fg_palette_class(&paint->palette, drawn.name, drawn.kind, 0, class);
	*ret_color = (uint32_t)(class[0] - 'a') * SB_FG_NR_SHADES + (uint32_t)(class[1] - '0');
	return 0;
}

int sb_paint_function(struct sb_paint *paint, const struct sb_frame *frame, uint32_t *ret_color)
{
	enum sb_fg_kind above = SB_FG_PLAIN;

	return color_of(paint, frame, false, &above, ret_color);
}

int sb_paint_tree(struct sb_paint *paint, const struct sb_tree *tree, uint8_t **ret_colors)
{
	size_t nr = tree->nodes.nr, i;
	sb_cleanup(sb_freep) uint8_t *nodes = calloc(nr + 1, 1);
	/* What each node implies for its children. */
	sb_cleanup(sb_freep) uint8_t *implied = calloc(nr + 1, 1);

	if (!nodes || !implied)
		return -ENOMEM;
	for (i = 1; i < nr; i++) {
		const struct sb_frame frame = sb_calltree_frame(tree, i);
		uint32_t parent = tree->nodes.at[i].parent;
		enum sb_fg_kind above = implied[parent];
		uint32_t color;
		int err = color_of(paint, &frame, !parent, &above, &color);

		if (err)
			return err;
		nodes[i] = (uint8_t)color;
		implied[i] = (uint8_t)above;
	}
	*ret_colors = sb_take(nodes);
	return 0;
}

uint32_t sb_paint_change(const struct sb_diff *diff, const struct sb_tree_pair *total)
{
	double a = sb_diff_value(diff, SB_TREE_A, total->weight[SB_TREE_A]);
	double b = sb_diff_value(diff, SB_TREE_B, total->weight[SB_TREE_B]);
	int step = sb_fg_diff_step(a, b, sb_diff_z(diff, total));

	return (uint32_t)(step < 0 ? SB_FG_DIFF_NR_STEPS - step : step);
}

static bool color_at(const struct sb_paint *paint, uint32_t i, bool is_dark,
		     struct sb_fg_rgb *ret_fill, struct sb_fg_rgb *ret_text)
{
	const char class[] = { (char)('a' + i / SB_FG_NR_SHADES), (char)('0' + i % SB_FG_NR_SHADES),
			       '\0' };

	if (paint)
		return sb_fg_palette_colors(&paint->palette, class, is_dark, ret_fill, ret_text);
	*ret_text = is_dark ? (struct sb_fg_rgb){ 255, 255, 255 } : (struct sb_fg_rgb){};
	return sb_fg_diff_color_at(i, is_dark, ret_fill);
}

static void put_color(struct sb_json *json, const struct sb_fg_rgb *color)
{
	char text[8];

	snprintf(text, sizeof(text), "#%02x%02x%02x", color->r, color->g, color->b);
	sb_json_string(json, NULL, text);
}

static void put_ground(struct sb_json *json, const char *key, const struct sb_paint *paint,
		       bool is_dark)
{
	struct sb_fg_rgb fill, text;
	uint32_t i;

	sb_json_array(json, key);
	for (i = 0; color_at(paint, i, is_dark, &fill, &text); i++) {
		sb_json_array(json, NULL);
		put_color(json, &fill);
		put_color(json, &text);
		sb_json_close(json);
	}
	sb_json_close(json);
}

void sb_paint_put(struct sb_json *json, const char *key, const struct sb_paint *paint)
{
	sb_json_object(json, key);
	put_ground(json, "light", paint, false);
	put_ground(json, "dark", paint, true);
	sb_json_close(json);
}
