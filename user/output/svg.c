// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "output/outputs.h"
#include "output/picture.h"

static const enum sb_fg_kind marks[SB_ATTR_KIND_MAX] = {
#define SB_MARK(form, kind, attr) [SB_ATTR_##attr] = SB_FG_##kind,
#include "tree/frames.def"
};

enum sb_fg_kind sb_picture_kind(const struct sb_frame *frame)
{
	if (frame->is_unnamed)
		return SB_FG_UNKNOWN;
	return frame->mark ? marks[frame->mark] : sb_frame_kinds[frame->kind].picture;
}

int sb_picture_frame(struct sb_arena *names, const struct sb_frame *frame,
		     const struct sb_fold_opts *opts, struct sb_tree_frame *ret_frame)
{
	sb_cleanup(sb_str_release) struct sb_str name = {};
	struct sb_fold_opts plain = *opts;
	int err;

	plain.annotate = false;
	err = sb_fold_frame(&name, frame, &plain);
	if (err)
		return err;
	ret_frame->name = sb_arena_strndup(names, name.len ? name.s : "", name.len);
	ret_frame->len = name.len;
	ret_frame->kind = sb_picture_kind(frame);
	return ret_frame->name ? 0 : -ENOMEM;
}

/* A profile that is being converted to a picture. */
struct picture {
	const struct sb_profile *profile;
	const struct sb_fold_opts *opts;
	struct sb_fg *fg;
	struct sb_arena names;
	struct sb_tree_frame
		*frames; /* by frame number; the name is NULL until a stack has the frame */
	SB_VEC(struct sb_tree_frame) stack;
};

static int add_stack(struct picture *picture, size_t i)
{
	const struct sb_row row = sb_profile_row_at(picture->profile, i);
	size_t at;
	int err = sb_vec_reserve(&picture->stack, row.nr);

	for (at = 0; at < row.nr && !err; at++) {
		struct sb_tree_frame *frame = &picture->frames[row.frames[at]];

		if (!frame->name)
			err = sb_picture_frame(
				&picture->names,
				sb_profile_frame_at(picture->profile, row.frames[at]),
				picture->opts, frame);
		picture->stack.at[at] = *frame;
	}
	return err ?: sb_fg_add_stack(picture->fg, picture->stack.at, row.nr, (double)row.weight);
}

static int add_profile(struct picture *picture, size_t nr_stacks)
{
	struct sb_metadata metadata = *sb_profile_metadata(picture->profile);
	size_t i;
	int err;

	metadata.version = SB_METADATA_VERSION;
	err = sb_fg_add_metadata(picture->fg, &metadata);
	picture->frames =
		calloc(sb_profile_nr_frames(picture->profile) + 1, sizeof(*picture->frames));
	if (!picture->frames)
		return -ENOMEM;
	for (i = 0; i < nr_stacks && !err; i++)
		err = add_stack(picture, i);
	return err;
}

int sb_picture_write(const struct sb_profile *profile, const struct sb_output_opts *opts,
		     sb_picture_render_fn render, FILE *out)
{
	sb_cleanup(sb_fg_freep) struct sb_fg *fg = NULL;
	sb_cleanup(sb_fg_opts_freep) struct sb_fg_opts *fg_opts = NULL;
	struct picture picture = { .profile = profile, .opts = &opts->fold };
	int err = sb_fg_new(&fg) ?: sb_fg_opts_new(&fg_opts);

	if (!err && opts->title)
		err = sb_fg_opts_set(fg_opts, "title", opts->title);
	picture.fg = fg;
	err = err ?: add_profile(&picture, sb_output_nr_stacks(profile, opts));
	sb_arena_release(&picture.names);
	free(picture.frames);
	sb_vec_release(&picture.stack);
	return err ?: render(fg, fg_opts, out);
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
