// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A machine that starts many processes, or a program that runs for long, makes new stacks all the
 * time, most of which are seen once. When there are many, those are evicted whose process has
 * ended, that were for a single sample which has come, or that were not sampled for long.
 *
 * A sample may reference such a stack at this very moment. So a round of eviction has three steps,
 * some batches apart. First the BPF side is told to forget the candidates, so that it ships them
 * again with the next sample. Then the BPF side is asked which stacks pending samples reference;
 * those stay. When the batches with samples from before that have come, the rest is evicted.
 */
#include "resolve/stacks.h"

#include <errno.h>
#include <string.h>

/* One batch in which the BPF side is told, and two after it was asked: counts from before that come
 * with the next batch at the latest. */
#define ROUND_BATCHES 3u
#define ASKED_BATCHES 2u

static void release_stack(struct sb_known_stack *stack)
{
	free(stack->ips);
	free(stack->frames.at);
}

void sb_stack_cache_release(struct sb_stack_cache *cache)
{
	size_t i;

	for (i = 0; i < cache->at.nr; i++)
		release_stack(&cache->at.at[i]);
	sb_vec_release(&cache->at);
	sb_index_release(&cache->index);
	sb_vec_release(&cache->evicted);
}

struct sb_known_stack *sb_stack_cache_find(struct sb_stack_cache *cache, struct sb_stack_id id)
{
	sb_index_each(it, &cache->index, id.lo) {
		struct sb_known_stack *stack = &cache->at.at[it.id];

		if (stack->id.lo == id.lo && stack->id.hi == id.hi) {
			stack->batch = *cache->batch;
			stack->is_candidate = false;
			return stack;
		}
	}
	return NULL;
}

int sb_stack_cache_add(struct sb_stack_cache *cache, const struct sb_batch_stack *from)
{
	struct sb_known_stack stack = {
		.id = from->id,
		.status = from->status < SB_STACK_STATUS_MAX ? from->status : SB_STACK_NONE,
		.flags = from->flags,
		.nr_ips = from->nr_frames,
		.has_one_meaning = from->list != 0,
		.is_single = from->is_single,
		.batch = *cache->batch,
	};
	int err;

	if (sb_stack_cache_find(cache, from->id))
		return 0;
	stack.ips = sb_cache_copy(from->ip, from->nr_frames * sizeof(*from->ip));
	err = stack.ips ? sb_index_push(&cache->index, stack.id.lo, &cache->at, stack) : -ENOMEM;
	if (err)
		release_stack(&stack);
	cache->nr_added += !err;
	return err;
}

/* Whether a stack can be evicted. The two parts of a wait may come in two successive batches. */
static bool is_evictable(const struct sb_stack_cache *cache, const struct sb_known_stack *stack,
			 struct sb_ended *ended)
{
	if (stack->batch + 1 >= *cache->batch)
		return false;
	if (stack->batch + cache->idle_batches < *cache->batch)
		return true;
	if ((stack->flags & SB_STACK_KERNEL) || !stack->tgid)
		return false;
	return stack->is_single || sb_ended_has(ended, stack->tgid);
}

bool sb_stack_cache_wants_pending(const struct sb_stack_cache *cache)
{
	return cache->round_ends && *cache->batch + ASKED_BATCHES == cache->round_ends;
}

static int begin_round(struct sb_stack_cache *cache, struct sb_ended *ended)
{
	size_t i;
	int err = 0;

	for (i = 0; i < cache->at.nr && !err; i++) {
		struct sb_known_stack *stack = &cache->at.at[i];

		stack->is_candidate = is_evictable(cache, stack, ended);
		if (!stack->is_candidate)
			continue;
		cache->round_ends = *cache->batch + ROUND_BATCHES;
		if (!stack->is_single)
			err = sb_vec_push(&cache->evicted, stack->id);
	}
	return err;
}

/* Evict the candidates. */
static int end_round(struct sb_stack_cache *cache)
{
	size_t i, nr = 0;
	int err = 0;

	cache->round_ends = 0;
	sb_index_release(&cache->index);
	for (i = 0; i < cache->at.nr; i++) {
		struct sb_known_stack *stack = &cache->at.at[i];

		if (stack->is_candidate) {
			release_stack(stack);
			continue;
		}
		if (!err)
			err = sb_index_add(&cache->index, stack->id.lo, (uint32_t)nr);
		cache->at.at[nr++] = *stack;
	}
	cache->nr_evicted += cache->at.nr - nr;
	cache->at.nr = nr;
	sb_vec_trim(&cache->at);
	return err;
}

int sb_stack_cache_evict(struct sb_stack_cache *cache, struct sb_ended *ended)
{
	int err;

	cache->evicted.nr = 0;
	/* One round goes on at a time, because looking at all stacks is expensive. */
	if (cache->round_ends ? *cache->batch < cache->round_ends
			      : !sb_evict_is_due(cache->at.nr, cache->nr_kept, cache->nr_max))
		return 0;
	err = cache->round_ends ? end_round(cache) : begin_round(cache, ended);
	cache->nr_kept = cache->at.nr;
	return err;
}
