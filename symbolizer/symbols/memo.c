// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbolizer/symbols/memo.h"

#include <stdlib.h>
#include <string.h>

#include "base/index.h"

static struct sb_memo_slot *slot_of(struct sb_memo *memo, uint32_t module_id, uint64_t addr)
{
	return &memo->slots[sb_hash(&addr, sizeof(addr), module_id) % memo->nr_slots];
}

const struct sb_sym_frame *sb_memo_find(struct sb_memo *memo, uint32_t module_id, uint64_t addr,
					size_t *ret_nr)
{
	const struct sb_memo_slot *slot;

	if (!memo->slots)
		return NULL;
	slot = slot_of(memo, module_id, addr);
	if (slot->module_id != module_id || slot->addr != addr)
		return NULL;
	memo->nr_hits++;
	*ret_nr = slot->nr_frames;
	return memo->frames.at + slot->first_frame;
}

void sb_memo_add(struct sb_memo *memo, uint32_t module_id, uint64_t addr,
		 const struct sb_sym_frame *frames, size_t nr)
{
	uint32_t max = memo->frames_max ? memo->frames_max : SB_MEMO_FRAMES_DEFAULT;

	if (!memo->slots) {
		memo->nr_slots = max / SB_MEMO_FRAMES_A_SLOT + 1;
		memo->slots = calloc(memo->nr_slots, sizeof(*memo->slots));
		if (!memo->slots)
			return;
	}
	if (memo->frames.nr + nr > max) {
		memset(memo->slots, 0, memo->nr_slots * sizeof(*memo->slots));
		memo->frames.nr = 0;
	}
	if (sb_vec_reserve(&memo->frames, memo->frames.nr + nr))
		return;
	*slot_of(memo, module_id, addr) = (struct sb_memo_slot){
		.addr = addr,
		.module_id = module_id, /* never 0 */
		.first_frame = (uint32_t)memo->frames.nr,
		.nr_frames = (uint32_t)nr,
	};
	memcpy(memo->frames.at + memo->frames.nr, frames, nr * sizeof(*frames));
	memo->frames.nr += nr;
}

void sb_memo_release(struct sb_memo *memo)
{
	free(memo->slots);
	sb_vec_release(&memo->frames);
}
