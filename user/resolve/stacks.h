/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cache of stacks that samples reference (sb_sample_key.ustack, kstack, istack). The BPF side
 * ships each stack once, so it is kept for as long as a sample may reference it. A batch is what
 * one drain of the BPF side gives (capture/batch.h): in each one, sb_stack_cache_add() for the
 * stacks in it, then sb_stack_cache_find() for its samples, and sb_stack_cache_evict() at its end.
 * stacks.c tells how stacks are evicted. Internal to resolve; not thread-safe. No pointer is NULL
 * unless it says so.
 */
#ifndef SB_RESOLVE_STACKS_H
#define SB_RESOLVE_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/vec.h"
#include "capture/batch.h"
#include "resolve/cache.h"
#include "symbolizer/sb_sym.h"

/* Counts of physical frames of one stack, and of those without a name, by reason. */
struct sb_frame_counts {
	uint32_t nr, nr_unnamed[SB_SYM_REASON_MAX];
};

struct sb_known_stack {
	struct sb_stack_id id;
	uint32_t status, flags;
	uint32_t nr_ips;
	uint64_t *ips;		       /* owned; leaf first */
	struct sb_frame_ids frames;    /* owned; of a kernel stack only */
	struct sb_frame_counts counts; /* of these frames */
	bool has_one_meaning;	       /* all of its samples had the same mappings */
	bool is_single;		       /* see struct sb_batch_stack */
	bool is_candidate; /* for eviction at the end of the round (stacks.c), unless it is referenced */
	uint32_t tgid;	/* of the last process that was seen in it; 0: none yet */
	uint64_t batch; /* the last batch that referenced it */
};

/* Initialise the first three members, and the rest with zero. */
struct sb_stack_cache {
	size_t nr_max;	       /* number of stacks from which eviction begins */
	uint64_t idle_batches; /* evict stacks that so many batches did not reference */
	const uint64_t *batch; /* borrowed: the number of the current batch, which is not 0 */
	SB_VEC(struct sb_known_stack) at;
	struct sb_index index;
	size_t nr_kept;			    /* number of stacks after a round began or ended */
	uint64_t round_ends;		    /* the batch after which it ends; 0: none goes on */
	SB_VEC(struct sb_stack_id) evicted; /* by the last sb_stack_cache_evict() */
	uint64_t nr_added, nr_evicted;	    /* totals */
};
/* Free all stacks and buffers. The cache cannot be used again, unless it is initialised anew. */
void sb_stack_cache_release(struct sb_stack_cache *cache);

/* Add a copy of a stack. A stack with a known ID is only found: the BPF side had no room to
 * remember that it was shipped. Return: 0; -ENOMEM, and then sb_stack_cache_find() does not find
 * this stack; the cache can be used further. */
int sb_stack_cache_add(struct sb_stack_cache *cache, const struct sb_batch_stack *from);
/* Find a stack, and note that the current batch references it, so that it is not evicted now.
 * Return: the stack, valid until the next one is added or stacks are evicted; NULL: it was never
 * shipped, or is evicted. */
struct sb_known_stack *sb_stack_cache_find(struct sb_stack_cache *cache, struct sb_stack_id id);

/* Return: whether stacks will be evicted soon, so that sb_stack_cache_find() must be called, before
 * the next batch, for those that pending samples reference. */
bool sb_stack_cache_wants_pending(const struct sb_stack_cache *cache);
/* At the end of each batch: begin a round of eviction if there are many stacks, or end one. Each
 * call empties cache->evicted first. The one that begins a round then adds the stacks that may be
 * evicted at its end, which the BPF side must forget before the next batch. @ended: the batch's
 * answers on which processes have ended, which more are added to. Return: 0; -ENOMEM, and then the
 * cache can only be released. */
int sb_stack_cache_evict(struct sb_stack_cache *cache, struct sb_ended *ended);

/* Return: whether the ID stands for a stack: 0 in a sample says that it has none. */
static inline bool sb_stack_is_there(struct sb_stack_id id)
{
	return id.lo || id.hi;
}

#endif
