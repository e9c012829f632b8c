/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What was read from the BPF side and will become a batch: counts, and the records of the ring.
 * Frames and data of objects lie one after the other in two arrays, so that their pointers are made
 * from lengths when the batch is asked for. Internal to capture; drain.c is its caller. Order: an
 * builder begins zeroed; add to it, sb_batch_builder_batch(), sb_batch_builder_clear(), and so on;
 * in the end sb_batch_builder_release(). Thread: any, one at a time for each builder. No pointer
 * may be NULL.
 */
#ifndef SB_CAPTURE_BATCH_BUILDER_H
#define SB_CAPTURE_BATCH_BUILDER_H

#include <stddef.h>
#include <stdint.h>

#include "base/num.h"
#include "base/vec.h"
#include "capture/batch.h"
#include "capture/rawstack.h"
#include "capture/resident.h"

struct sb_batch_builder {
	SB_VEC(struct sb_batch_count) counts;
	SB_VEC(struct sb_batch_stack) stacks;
	SB_VEC(uint64_t) frames; /* theirs, one after the other */
	SB_VEC(struct sb_batch_object) objects;
	SB_VEC(uint64_t) object_words; /* their data, each begins a word */
	struct sb_rawstacks raw;
	sb_vec_u32 tgids; /* of processes that were announced */
	/* For sb_resident_add(). */
	SB_VEC(struct sb_event_owner) owners;
	struct sb_page_records pages;
};

/* Append a stack; its frames (stack->ip, which may be NULL when there are none) are copied. Return:
 * 0; -ENOMEM: nothing has changed. */
int sb_batch_builder_add(struct sb_batch_builder *builder, const struct sb_batch_stack *stack);
/*
 * Append a record of the ring (struct sb_event), aligned to 8, of @len bytes, which is copied.
 * Return: 0; -EBADMSG: its size or kind is wrong; -ENOMEM. After an error nothing has changed.
 */
int sb_batch_builder_record(struct sb_batch_builder *builder, const void *record, size_t len);
/* Append @nr page faults, which are copied. Return: 0; -ENOMEM: nothing has changed. */
int sb_batch_builder_add_faults(struct sb_batch_builder *builder,
				const struct sb_fault_record *faults, size_t nr);
/*
 * Overwrite *@ret_batch with counts, stacks and objects. It has no labels (NULL and 0):
 * sb_interpwatch_take_labels() gives them. The arrays belong to @builder and are valid until it is
 * changed; an empty one may be NULL.
 */
void sb_batch_builder_batch(struct sb_batch_builder *builder, struct sb_batch *ret_batch);

/* Return: the bytes in use, without tgids. */
size_t sb_batch_builder_bytes(const struct sb_batch_builder *builder);
/* Remove everything. Memory is kept for reuse, as by sb_vec_clear(). */
void sb_batch_builder_clear(struct sb_batch_builder *builder);
/* Free the memory, also that of what sb_batch_builder_batch() gave. The builder is empty then, and
 * can be used again. */
void sb_batch_builder_release(struct sb_batch_builder *builder);

#endif
