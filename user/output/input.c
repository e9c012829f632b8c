// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "output/input.h"

#include <errno.h>
#include <math.h>

#include "base/cleanup.h"
#include "flamegraph/reader.h"
#include "model/fold.h"
#include "output/picture.h"

static const enum sb_frame_kind kinds[SB_FG_KIND_MAX] = {
#define SB_KIND(kind, suffix, role, legend, frame) [SB_FG_##kind] = SB_FRAME_##frame,
#include "tree/frames.def"
};

struct input {
	const struct sb_tree *tree;
	struct sb_profile *profile;
	uint32_t *frames; /* by node */
	SB_VEC(uint32_t) stack;
	uint64_t nr_rounded;
};

static int add_frame(struct input *input, uint32_t node)
{
	const struct sb_tree *tree = input->tree;
	enum sb_fg_kind kind = tree->kinds.at[node];
	struct sb_frame frame = { .kind = kinds[kind], .is_unnamed = kind == SB_FG_UNKNOWN };

	frame.name = sb_strtab_get(&tree->names, tree->nodes.at[node].name, NULL);
	/* Text has no other sign of a mark than its name, with which its kind must agree. */
	frame.mark = (uint8_t)sb_fold_mark_kind(frame.name);
	if (frame.mark && !frame.is_unnamed && sb_picture_kind(&frame) == kind)
		frame.kind = SB_FRAME_MARK;
	else
		frame.mark = SB_ATTR_NONE;
	return sb_profile_frame(input->profile, &frame, &input->frames[node]);
}

static int add_stack(struct input *input, uint32_t node, double weight)
{
	double whole = round(weight);
	size_t i;
	int err = 0;

	input->stack.nr = 0;
	for (; node && !err; node = input->tree->nodes.at[node].parent)
		err = sb_vec_push(&input->stack, input->frames[node]);
	for (i = 0; i < input->stack.nr / 2; i++) {
		uint32_t swap = input->stack.at[i];

		input->stack.at[i] = input->stack.at[input->stack.nr - 1 - i];
		input->stack.at[input->stack.nr - 1 - i] = swap;
	}
	input->nr_rounded += whole != weight;
	return err
		       ?: sb_profile_add(input->profile, input->stack.at, input->stack.nr,
					 (uint64_t)fmin(whole, 0x1p62));
}

static int add_all(struct input *input, const struct sb_fg_metadata *metadata)
{
	size_t i;
	int err = sb_profile_set_metadata(input->profile, &metadata->known);

	for (i = 0; i < metadata->others.nr && !err; i++)
		err = sb_profile_meta(input->profile, metadata->others.at[i].key, "%s",
				      metadata->others.at[i].value);
	for (i = 1; i < input->tree->nodes.nr && !err; i++) {
		double weight = sb_tree_self(input->tree, i, SB_TREE_A);

		err = add_frame(input, (uint32_t)i);
		if (!err && weight > 0)
			err = add_stack(input, (uint32_t)i, weight);
	}
	return err ?: sb_profile_seal(input->profile);
}

int sb_input_profile(struct sb_fg *fg, struct sb_profile **ret_profile, uint64_t *ret_nr_rounded)
{
	sb_cleanup(sb_profile_freep) struct sb_profile *profile = NULL;
	struct input input = { .tree = &fg->tree };
	int err;

	if (fg->tree.pairs.nr)
		return -EINVAL;
	err = sb_tree_seal(&fg->tree, SB_TREE_SORT_NONE) ?: sb_profile_new(&profile);
	input.profile = profile;
	input.frames = calloc(fg->tree.nodes.nr, sizeof(*input.frames));
	if (!err && !input.frames)
		err = -ENOMEM;
	err = err ?: add_all(&input, &fg->metadata);
	free(input.frames);
	sb_vec_release(&input.stack);
	if (err)
		return err;
	*ret_profile = sb_take(profile);
	*ret_nr_rounded = input.nr_rounded;
	return 0;
}
