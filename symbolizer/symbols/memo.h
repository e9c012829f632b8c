/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A cache of lookups: a profile asks for the same addresses again and again, and inlined frames are
 * expensive to find. It is a direct-mapped table, which is emptied when it has too many frames.
 * Internal to the symbolizer. Order: zero a struct, and set frames_max if wanted; sb_memo_find(),
 * and after a miss sb_memo_add(); sb_memo_release(). No pointer is NULL. Thread: one at a time for
 * each cache.
 */
#ifndef SB_MEMO_H
#define SB_MEMO_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "symbolizer/sb_sym.h"

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

/*
 * Return: the cached frames of the ELF address @addr in the module @module_id
 * (sb_cached_module.id), or of the address @addr of the kernel, for which lookup.c has numbers of
 * its own, *@ret_nr of them, valid until the next addition; NULL: not cached, *@ret_nr is
 * untouched.
 */
const struct sb_sym_frame *sb_memo_find(struct sb_memo *memo, uint32_t module_id, uint64_t addr,
					size_t *ret_nr);
/*
 * Add an answer, in the place of the one that has its slot; without memory it is not cached.
 * @module_id: not 0; both it and @addr are as for sb_memo_find(), whose earlier results are not
 * valid any more. The frames are copied, their strings are not, and must outlive the cache.
 */
void sb_memo_add(struct sb_memo *memo, uint32_t module_id, uint64_t addr,
		 const struct sb_sym_frame *frames, size_t nr);
/* Free all memory; the struct must be zeroed before it is used again. */
void sb_memo_release(struct sb_memo *memo);

#endif
