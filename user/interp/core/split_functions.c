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

#include "base/cleanup.h"
#include "interp/core/image_priv.h"
#include "interp/core/runtime.h"
#include "symbolizer/elf/disasm.h"

/* The loop of CPython 3.14 has 60 KB. */
#define FUNCTION_BYTES_MAX (1u << 20)

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

/* Call @fn for each jump in @range, until it returns something else than 0, which is returned;
 * -ENOMEM. */
static int each_jump(struct sb_image *image, const struct sb_range *range,
		     int (*fn)(void *arg, const struct sb_insn *insn), void *arg)
{
	size_t len = range->end - range->begin, at = 0;
	sb_cleanup(sb_freep) uint8_t *code = NULL;
	struct sb_insn insn;
	int ret = 0;

	if (range->end <= range->begin || len > FUNCTION_BYTES_MAX)
		return 0;
	code = malloc(len);
	if (!code)
		return -ENOMEM;
	if (sb_image_read(image, range->begin, code, len))
		return 0;
	while (at < len && !ret) {
		if (SB_INSN_HERE->decode(code + at, len - at, range->begin + at, &insn)) {
			at++;
			continue;
		}
		if (insn.kind == SB_INSN_JCC || insn.kind == SB_INSN_JMP)
			ret = fn(arg, &insn);
		at += insn.len;
	}
	return ret;
}

static int is_jump_into(void *arg, const struct sb_insn *insn)
{
	return is_within(arg, insn->target);
}

static int see_jump(void *arg, const struct sb_insn *insn)
{
	struct seek *seek = arg;
	struct sb_range function = { seek->begin, seek->end }, part;
	int ret;
	size_t i;

	if (insn->target >= seek->begin && insn->target < seek->end)
		return 0;
	for (i = 0; i < seek->nr; i++)
		if (insn->target >= seek->found[i].begin && insn->target < seek->found[i].end)
			return 0;
	if (sb_image_function(seek->image, insn->target, &part.begin, &part.end))
		return 0;
	/* An unconditional jump to the start of a function is a tail call. */
	if (insn->target == part.begin && insn->kind != SB_INSN_JCC)
		return 0;
	ret = each_jump(seek->image, &part, is_jump_into, &function);
	if (ret <= 0)
		return ret;
	seek->found[seek->nr++] = part;
	return seek->nr == seek->max;
}

static struct sb_image_cold *find_known(const struct sb_image *image, uint64_t begin, uint64_t end,
					size_t max)
{
	const struct sb_image_file *file = image->file;
	size_t i;

	for (i = 0; i < file->nr_cold; i++)
		if (file->cold[i].begin + image->bias == begin &&
		    file->cold[i].end + image->bias == end && file->cold[i].max == max)
			return &file->cold[i];
	return NULL;
}

/* Remember the result. Without memory it is searched for again. */
static void keep(struct sb_image *image, const struct seek *seek)
{
	struct sb_image_file *file = image->file;
	struct sb_image_cold *cold;
	size_t i;

	if (file->lacks_functions || file->has_lacked_memory ||
	    file->nr_cold == SB_IMAGE_COLD_MAX || seek->max > SB_RUNTIME_ANCHORS_MAX)
		return;
	cold = realloc(file->cold, (file->nr_cold + 1) * sizeof(*cold));
	if (!cold)
		return;
	file->cold = cold;
	cold += file->nr_cold++;
	*cold = (struct sb_image_cold){
		.begin = seek->begin - image->bias,
		.end = seek->end - image->bias,
		.max = seek->max,
		.nr = seek->nr,
	};
	for (i = 0; i < seek->nr; i++)
		cold->part[i] = (struct sb_range){ seek->found[i].begin - image->bias,
						   seek->found[i].end - image->bias };
}

size_t sb_image_cold_parts(struct sb_image *image, uint64_t begin, uint64_t end,
			   struct sb_range *ret, size_t max)
{
	struct seek seek = { .image = image, .begin = begin, .end = end, .found = ret, .max = max };
	const struct sb_image_cold *known = find_known(image, begin, end, max);
	struct sb_range function = { begin, end };
	size_t i;

	if (!known) {
		if (max && each_jump(image, &function, see_jump, &seek) >= 0)
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
