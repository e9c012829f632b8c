/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Answers that were given: a profile asks for the same addresses again and again, and inlined
 * frames are costly to find. A direct-mapped table, emptied when its frames have become too many.
 * Internal to the symbolizer.
 */
#ifndef SB_MEMO_H
#define SB_MEMO_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "sb_sym.h"

/* 10 MiB, and 1.5 MiB of slots; a minute of a whole machine has some 20,000 distinct addresses. */
#define SB_MEMO_FRAMES_DEFAULT 131072u
/* Frames for each slot. */
#define SB_MEMO_FRAMES_A_SLOT  2u

struct sb_memo {
	struct sb_memo_slot {
		uint64_t addr;
		uint32_t module_id, first_frame, nr_frames;
	} * slots; /* NULL: nothing was added yet */
	uint32_t nr_slots;
	SB_VEC(struct sb_sym_frame) frames;
	uint32_t frames_max; /* 0: SB_MEMO_FRAMES_DEFAULT */
	uint64_t nr_hits;
};

/* Return: the frames, valid until the next addition, or NULL. */
const struct sb_sym_frame *sb_memo_find(struct sb_memo *memo, uint32_t module_id, uint64_t addr,
					size_t *ret_nr);
/* Without memory nothing is remembered, and nothing is wrong. */
void sb_memo_add(struct sb_memo *memo, uint32_t module_id, uint64_t addr,
		 const struct sb_sym_frame *frames, size_t nr);
void sb_memo_release(struct sb_memo *memo);

#endif
