// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A machine that starts many processes, or a program that runs for long, makes new stacks all the
 * time, most of which are seen once. When there are many, those are evicted whose process has ended,
 * that were for a single sample which has come, or that were not sampled for long.
 *
 * A sample may reference such a stack at this very moment. So a round of eviction has three steps,
 * some batches apart. First the BPF side is told to forget the candidates, so that it ships them
 * again with the next sample. Then the BPF side is asked which stacks pending samples reference;
 * those stay. When the batches with samples from before that have come, the rest is evicted.
 */
#include "resolve/stacks.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

/* One batch in which the BPF side is told, and two after it was asked: counts from before that come
 * with the next batch at the latest. */
#define ROUND_BATCHES 3u
#define ASKED_BATCHES 2u

void sb_stack_cache_init(struct sb_stack_cache *cache, size_t nr_max, uint64_t idle_batches)
{
	*cache = (struct sb_stack_cache){
		.nr_max = nr_max,
		.idle_batches = idle_batches,
		.evict_at = nr_max,
	};
}

void sb_stack_cache_release(struct sb_stack_cache *cache)
{
	sb_vec_release(&cache->at);
	sb_index_release(&cache->index);
	sb_vec_release(&cache->ips);
	sb_vec_release(&cache->kernel_frames);
	sb_vec_release(&cache->evicted);
}

void sb_stack_cache_begin(struct sb_stack_cache *cache)
{
	cache->batch++;
	cache->evicted.nr = 0;
}

struct sb_known_stack *sb_stack_cache_find(struct sb_stack_cache *cache, struct sb_stack_id id)
{
	struct sb_index_iter it;

	for (it = sb_index_first(&cache->index, id.lo); it.id != SB_INDEX_NONE;
	     it = sb_index_next(&cache->index, it)) {
		struct sb_known_stack *stack = &cache->at.at[it.id];

		if (stack->id.lo == id.lo && stack->id.hi == id.hi) {
			stack->batch = cache->batch;
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
		.first_ip = cache->ips.nr,
		.batch = cache->batch,
	};
	int err;

	if (sb_stack_cache_find(cache, from->id))
		return 0;
	err = sb_vec_reserve(&cache->ips, cache->ips.nr + from->nr_frames);
	if (!err)
		err = sb_vec_reserve(&cache->at, cache->at.nr + 1);
	if (!err)
		err = sb_index_add(&cache->index, from->id.lo, (uint32_t)cache->at.nr);
	if (err)
		return err;
	if (from->nr_frames)
		memcpy(cache->ips.at + cache->ips.nr, from->ip,
		       from->nr_frames * sizeof(*from->ip));
	cache->ips.nr += from->nr_frames;
	cache->at.at[cache->at.nr++] = stack;
	cache->nr_added++;
	return 0;
}

int sb_stack_cache_set_frames(struct sb_stack_cache *cache, struct sb_known_stack *stack,
			      const uint32_t *frames, size_t nr,
			      const struct sb_frame_counts *counts)
{
	int err = sb_vec_reserve(&cache->kernel_frames, cache->kernel_frames.nr + nr);

	if (err)
		return err;
	if (nr)
		memcpy(cache->kernel_frames.at + cache->kernel_frames.nr, frames,
		       nr * sizeof(*frames));
	stack->first_frame = cache->kernel_frames.nr;
	stack->nr_frames = (uint32_t)nr;
	stack->counts = *counts;
	stack->is_resolved = true;
	cache->kernel_frames.nr += nr;
	return 0;
}

/* Whether a stack can be evicted. The two parts of a wait may come in two successive batches. */
static bool is_evictable(const struct sb_stack_cache *cache, const struct sb_known_stack *stack,
			 struct sb_ended *ended)
{
	if (stack->batch + 1 >= cache->batch)
		return false;
	if (stack->batch + cache->idle_batches < cache->batch)
		return true;
	if ((stack->flags & SB_STACK_KERNEL) || !stack->tgid)
		return false;
	return stack->is_single || sb_ended_has(ended, stack->tgid);
}

bool sb_stack_cache_wants_pending(const struct sb_stack_cache *cache)
{
	return cache->round_ends && cache->batch + ASKED_BATCHES == cache->round_ends;
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
		cache->round_ends = cache->batch + ROUND_BATCHES;
		if (!stack->is_single)
			err = sb_vec_push(&cache->evicted, stack->id);
	}
	return err;
}

/* Evict the candidates, and their addresses. */
static void evict_candidates(struct sb_stack_cache *cache)
{
	size_t i, nr = 0, nr_ips = 0;

	for (i = 0; i < cache->at.nr; i++) {
		struct sb_known_stack stack = cache->at.at[i];

		if (stack.is_candidate)
			continue;
		memmove(cache->ips.at + nr_ips, cache->ips.at + stack.first_ip,
			stack.nr_ips * sizeof(*cache->ips.at));
		stack.first_ip = nr_ips;
		nr_ips += stack.nr_ips;
		cache->at.at[nr++] = stack;
	}
	cache->nr_evicted += cache->at.nr - nr;
	cache->at.nr = nr;
	cache->ips.nr = nr_ips;
	sb_vec_trim(&cache->at);
	sb_vec_trim(&cache->ips);
}

/* Copy the frames of the kernel stacks that stay. Frames are in the order in which stacks were
 * resolved, so they cannot be moved in place. */
static int evict_kernel_frames(struct sb_stack_cache *cache)
{
	__typeof__(cache->kernel_frames) kept = {};
	size_t i, nr = 0;

	for (i = 0; i < cache->at.nr; i++)
		nr += cache->at.at[i].nr_frames;
	if (sb_vec_reserve(&kept, nr))
		return -ENOMEM;
	for (i = 0; i < cache->at.nr; i++) {
		struct sb_known_stack *stack = &cache->at.at[i];

		if (stack->nr_frames)
			memcpy(kept.at + kept.nr, cache->kernel_frames.at + stack->first_frame,
			       stack->nr_frames * sizeof(*kept.at));
		stack->first_frame = kept.nr;
		kept.nr += stack->nr_frames;
	}
	sb_vec_release(&cache->kernel_frames);
	memcpy(&cache->kernel_frames, &kept, sizeof(kept));
	return 0;
}

static int end_round(struct sb_stack_cache *cache)
{
	size_t i, nr = cache->at.nr;
	int err = 0;

	cache->round_ends = 0;
	evict_candidates(cache);
	if (cache->at.nr == nr)
		return 0;
	sb_index_release(&cache->index);
	for (i = 0; i < cache->at.nr && !err; i++)
		err = sb_index_add(&cache->index, cache->at.at[i].id.lo, (uint32_t)i);
	return err ? err : evict_kernel_frames(cache);
}

int sb_stack_cache_evict(struct sb_stack_cache *cache, struct sb_ended *ended)
{
	int err;

	/* One round goes on at a time, because looking at all stacks is expensive. */
	if (cache->round_ends ? cache->batch < cache->round_ends : cache->at.nr < cache->evict_at)
		return 0;
	err = cache->round_ends ? end_round(cache) : begin_round(cache, ended);
	cache->evict_at = sb_evict_next(cache->at.nr, cache->nr_max);
	return err;
}
