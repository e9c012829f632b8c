// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Compilers move code that is seldom run out of a function (".cold"). In .eh_frame, that part is a
 * function of its own, and a stripped file does not say to which function it belongs. Jumps do:
 * only a function's own code jumps into the middle of it, and the cold part jumps back in the same
 * way.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "interp/core/image_priv.h"
#include "interp/core/runtime.h"
#include "symbolizer/elf/disasm.h"

struct seek {
	struct sb_image *image;
	uint64_t begin, end;
	struct sb_range *found;
	size_t nr, max;
};

static bool is_within(const struct sb_range *range, uint64_t addr)
{
	return addr > range->begin && addr < range->end;
}

static bool is_jump(const struct sb_insn *insn)
{
	return insn->kind == SB_INSN_JCC || insn->kind == SB_INSN_JMP;
}

static int is_jump_into(void *arg, const struct sb_insn *insn)
{
	return is_jump(insn) && is_within(arg, insn->target);
}

static int see_jump(void *arg, const struct sb_insn *insn)
{
	struct seek *seek = arg;
	struct sb_range function = { seek->begin, seek->end }, part;
	int ret;
	size_t i;

	if (!is_jump(insn) || (insn->target >= seek->begin && insn->target < seek->end))
		return 0;
	for (i = 0; i < seek->nr; i++)
		if (insn->target >= seek->found[i].begin && insn->target < seek->found[i].end)
			return 0;
	if (sb_image_function(seek->image, insn->target, &part.begin, &part.end))
		return 0;
	/* An unconditional jump to the start of a function is a tail call. */
	if (insn->target == part.begin && insn->kind != SB_INSN_JCC)
		return 0;
	ret = sb_image_each_insn(seek->image, &part, is_jump_into, &function);
	if (ret <= 0)
		return ret == -ENOMEM ? ret : 0;
	seek->found[seek->nr++] = part;
	return seek->nr == seek->max;
}

static struct sb_image_split *find_known(const struct sb_image *image, uint64_t begin, uint64_t end,
					 size_t max)
{
	const struct sb_image_file *file = image->file;
	size_t i;

	for (i = 0; i < file->nr_splits; i++)
		if (file->splits[i].begin + image->bias == begin &&
		    file->splits[i].end + image->bias == end && file->splits[i].max == max)
			return &file->splits[i];
	return NULL;
}

/* Remember the result. Without memory it is searched for again. */
static void keep(struct sb_image *image, const struct seek *seek)
{
	struct sb_image_file *file = image->file;
	struct sb_image_split *split;
	size_t i;

	if (file->lacks_functions || file->has_lacked_memory ||
	    file->nr_splits == SB_IMAGE_SPLITS_MAX || seek->max > SB_RUNTIME_ANCHORS_MAX)
		return;
	split = realloc(file->splits, (file->nr_splits + 1) * sizeof(*split));
	if (!split)
		return;
	file->splits = split;
	split += file->nr_splits++;
	*split = (struct sb_image_split){
		.begin = seek->begin - image->bias,
		.end = seek->end - image->bias,
		.max = seek->max,
		.nr = seek->nr,
	};
	for (i = 0; i < seek->nr; i++)
		split->part[i] = (struct sb_range){ seek->found[i].begin - image->bias,
						    seek->found[i].end - image->bias };
}

size_t sb_image_cold_parts(struct sb_image *image, uint64_t begin, uint64_t end,
			   struct sb_range *ret, size_t max)
{
	struct seek seek = { .image = image, .begin = begin, .end = end, .found = ret, .max = max };
	const struct sb_image_split *known = find_known(image, begin, end, max);
	struct sb_range function = { begin, end };
	size_t i;

	if (!known) {
		if (max && sb_image_each_insn(image, &function, see_jump, &seek) != -ENOMEM)
			keep(image, &seek);
		else if (max)
			image->file->has_lacked_memory = true;
		return seek.nr;
	}
	for (i = 0; i < known->nr; i++)
		ret[i] = (struct sb_range){ known->part[i].begin + image->bias,
					    known->part[i].end + image->bias };
	return known->nr;
}
