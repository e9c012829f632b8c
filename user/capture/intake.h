/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What was read from the BPF side and will become a batch: counts, and the records of the ring.
 * Frames and data of objects lie one after the other in two arrays, so that their pointers are made
 * from lengths when the batch is asked for. Internal to capture; drain.c is its caller. Order: an
 * intake begins zeroed; add to it, sb_intake_batch(), sb_intake_clear(), and so on; in the end
 * sb_intake_release(). Thread: any, one at a time for each intake. No pointer may be NULL.
 */
#ifndef SB_CAPTURE_INTAKE_H
#define SB_CAPTURE_INTAKE_H

#include <stddef.h>
#include <stdint.h>

#include "base/num.h"
#include "base/vec.h"
#include "capture/batch.h"
#include "capture/rawstack.h"
#include "capture/resident.h"

struct sb_intake {
	SB_VEC(struct sb_batch_count) counts;
	SB_VEC(struct sb_batch_stack) stacks;
	SB_VEC(uint64_t) frames; /* theirs, one after the other */
	SB_VEC(struct sb_batch_object) objects;
	SB_VEC(uint64_t) object_words; /* their data, each begins a word */
	struct sb_rawstacks raw;
	sb_vec_u32 tgids; /* of processes that were announced */
	/* For sb_resident_add(). */
	SB_VEC(struct sb_event_owner) owners;
	struct sb_page_news pages;
};

/* Append a stack; its frames (stack->ip, which may be NULL when there are none) are copied. Return:
 * 0; -ENOMEM: nothing has changed. */
int sb_intake_add(struct sb_intake *intake, const struct sb_batch_stack *stack);
/*
 * Append a record of the ring (struct sb_event), aligned to 8, of @len bytes, which is copied.
 * Return: 0; -EBADMSG: its size or kind is wrong; -ENOMEM. After an error nothing has changed.
 */
int sb_intake_record(struct sb_intake *intake, const void *record, size_t len);
/* Append @nr page faults, which are copied. Return: 0; -ENOMEM: nothing has changed. */
int sb_intake_add_faults(struct sb_intake *intake, const struct sb_fault_record *faults, size_t nr);
/*
 * Get counts, stacks and objects; there are no labels. The arrays belong to @intake and are valid
 * until it is changed; an empty one may be NULL.
 */
void sb_intake_batch(struct sb_intake *intake, struct sb_batch *ret_batch);

/* Return: the bytes in use, without tgids. */
size_t sb_intake_bytes(const struct sb_intake *intake);
/* Remove everything. Memory is kept for reuse, as by sb_vec_clear(). */
void sb_intake_clear(struct sb_intake *intake);
/* Free the memory, also that of what sb_intake_batch() gave. The intake is empty then, and can be
 * used again. */
void sb_intake_release(struct sb_intake *intake);

#endif
