// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Eviction of stacks. A stack is kept for as long as a sample may reference it. A machine that
 * starts many processes, or a program that runs for long, makes new stacks all the time, most of
 * which are seen once. When there are many, those are evicted whose process has ended, that were
 * for a single sample which has come, or that were not sampled for long.
 *
 * A sample may reference such a stack at this very moment. So eviction has three steps, some
 * batches apart. First the BPF side is told to forget the stack, so that it ships the stack again
 * with the next sample. Then the BPF side is asked which stacks pending samples reference; those
 * stay. When the batches with samples from before that have come, the rest is dropped.
 *
 * Objects for wakers are dropped when the waker's process has ended.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "resolve/resolve_priv.h"

#define PID_LIMIT     4194304u /* PID_MAX_LIMIT, include/linux/threads.h */
/* One batch in which the BPF side is told, and two after it was asked: counts from before that come
 * with the next batch at the latest. */
#define DOUBT_BATCHES 3u
#define ASKED_BATCHES 2u

/* Whether a process lives. @known has two bits for each pid: it was checked, it lives. A reused pid
 * counts as alive. */
static bool is_alive(uint8_t *known, uint32_t tgid)
{
	unsigned int shift = tgid % 4 * 2;
	uint8_t *at = &known[tgid / 4];
	char path[32];

	if (!(*at >> shift & 1)) {
		snprintf(path, sizeof(path), "/proc/%u", tgid);
		*at |= (uint8_t)((!sb_can_access(path, F_OK) ? 1 : 3) << shift);
	}
	return *at >> shift & 2;
}

/* Whether a stack can be evicted: its process has ended, or it was for one sample, which has come,
 * or it was not sampled for long. The two parts of a wait may come in two successive batches. */
static bool may_go(const struct sb_resolver *resolver, const struct known_stack *stack,
		   uint8_t *known)
{
	if (stack->batch + 1 >= resolver->nr_batches)
		return false;
	if (stack->batch + resolver->opts.idle_batches < resolver->nr_batches)
		return true;
	if ((stack->flags & SB_STACK_KERNEL) || !stack->tgid || stack->tgid >= PID_LIMIT)
		return false;
	return stack->is_single || !is_alive(known, stack->tgid);
}

bool sb_resolver_asks(const struct sb_resolver *resolver)
{
	return resolver->doubt_ends && resolver->nr_batches + ASKED_BATCHES == resolver->doubt_ends;
}

/* Keep the stacks of a waker, which are resolved only when the wait that it ended comes. */
static void keep_of_object(struct sb_resolver *resolver, const struct sb_object *object)
{
	const struct sb_object_waker *waker = object->data;

	if (object->kind != SB_OBJECT_WAKER || object->is_resolved)
		return;
	(void)sb_resolver_find_stack(resolver, waker->kstack);
	(void)sb_resolver_find_stack(resolver, waker->ustack);
	(void)sb_resolver_find_stack(resolver, waker->istack);
}

void sb_resolver_keep(struct sb_resolver *resolver, const struct sb_stack_id *ids, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		(void)sb_resolver_find_stack(resolver, ids[i]);
	for (i = 0; i < resolver->objects.at.nr; i++)
		keep_of_object(resolver, &resolver->objects.at.at[i]);
}

/* Drop the frames of kernel stacks that were evicted. Frames are in the order in which stacks were
 * resolved. */
static int drop_kernel_frames(struct sb_resolver *resolver)
{
	__typeof__(resolver->kernel_frames) kept = {};
	size_t i;
	int err = 0;

	for (i = 0; i < resolver->stacks.nr && !err; i++) {
		struct known_stack *stack = &resolver->stacks.at[i];

		if (!stack->is_resolved)
			continue;
		err = sb_vec_reserve(&kept, kept.nr + stack->nr_frames);
		if (err)
			break;
		if (stack->nr_frames)
			memcpy(kept.at + kept.nr, resolver->kernel_frames.at + stack->first_frame,
			       stack->nr_frames * sizeof(*kept.at));
		stack->first_frame = kept.nr;
		kept.nr += stack->nr_frames;
	}
	if (err) {
		sb_vec_release(&kept);
		return err;
	}
	sb_vec_release(&resolver->kernel_frames);
	memcpy(&resolver->kernel_frames, &kept, sizeof(kept));
	return 0;
}

/* Begin a round of eviction, or end it. Only one goes on at a time, because looking at all stacks
 * is expensive. */
static int doubt_or_drop(struct sb_resolver *resolver, struct known_stack *stack, uint8_t *known,
			 bool *ret_is_dropped)
{
	*ret_is_dropped = stack->is_doubtful && resolver->nr_batches >= resolver->doubt_ends;
	resolver->nr_evicted += *ret_is_dropped;
	if (resolver->doubt_ends || !may_go(resolver, stack, known))
		return 0;
	stack->is_doubtful = true;
	return stack->is_single ? 0 : sb_vec_push(&resolver->evicted, stack->id);
}

/* Evict stacks, and drop their addresses, which are in the order of the stacks. */
static int drop_stacks(struct sb_resolver *resolver, uint8_t *known)
{
	size_t i, nr = 0, nr_ips = 0, nr_doubtful = 0;
	bool is_dropped;
	int err = 0;

	for (i = 0; i < resolver->stacks.nr && !err; i++) {
		struct known_stack stack = resolver->stacks.at[i];

		err = doubt_or_drop(resolver, &stack, known, &is_dropped);
		if (is_dropped)
			continue;
		nr_doubtful += stack.is_doubtful;
		memmove(resolver->ips.at + nr_ips, resolver->ips.at + stack.first_ip,
			stack.nr_ips * sizeof(*resolver->ips.at));
		stack.first_ip = nr_ips;
		nr_ips += stack.nr_ips;
		resolver->stacks.at[nr++] = stack;
	}
	resolver->stacks.nr = nr;
	resolver->ips.nr = nr_ips;
	sb_vec_trim(&resolver->stacks);
	sb_vec_trim(&resolver->ips);
	if (!nr_doubtful)
		resolver->doubt_ends = 0;
	else if (!resolver->doubt_ends)
		resolver->doubt_ends = resolver->nr_batches + DOUBT_BATCHES;
	return err;
}

static int index_stacks(struct sb_resolver *resolver)
{
	size_t i;
	int err = 0;

	sb_index_release(&resolver->stacks_index);
	memset(&resolver->stacks_index, 0, sizeof(resolver->stacks_index));
	for (i = 0; i < resolver->stacks.nr && !err; i++)
		err = sb_index_add(&resolver->stacks_index, resolver->stacks.at[i].id.lo,
				   (uint32_t)i);
	return err;
}

/* The argument of is_object_of_use(). */
struct asking {
	const struct sb_resolver *resolver;
	uint8_t *known;
};

/* A waker's ID contains its process, so no sample references it after that has ended. */
static bool is_object_of_use(void *arg, const struct sb_object *object)
{
	const struct asking *asking = arg;
	const struct sb_object_waker *waker = object->data;

	if (object->kind != SB_OBJECT_WAKER || !waker->tgid || waker->tgid >= PID_LIMIT ||
	    object->batch + 1 >= asking->resolver->nr_batches)
		return true;
	return is_alive(asking->known, waker->tgid);
}

static int shed_stacks(struct sb_resolver *resolver, uint8_t *known)
{
	size_t nr = resolver->stacks.nr;
	int err = drop_stacks(resolver, known);

	/* At the beginning of a round nothing is evicted. */
	if (err || resolver->stacks.nr == nr)
		return err;
	err = index_stacks(resolver);
	return err ? err : drop_kernel_frames(resolver);
}

static int shed_objects(struct sb_resolver *resolver, uint8_t *known)
{
	struct asking asking = { .resolver = resolver, .known = known };

	return sb_objects_shed(&resolver->objects, is_object_of_use, &asking);
}

int sb_resolver_shed(struct sb_resolver *resolver)
{
	const struct {
		const size_t *nr;
		size_t *at;
		int (*shed)(struct sb_resolver *resolver, uint8_t *known);
	} kinds[] = {
		{ &resolver->stacks.nr, &resolver->shed_at, shed_stacks },
		{ &resolver->objects.at.nr, &resolver->objects_shed_at, shed_objects },
	};
	size_t i, max = resolver->opts.stacks_max;
	sb_cleanup(sb_freep) uint8_t *known = NULL;
	int err = 0;

	resolver->evicted.nr = 0;
	if (resolver->doubt_ends && resolver->nr_batches >= resolver->doubt_ends)
		resolver->shed_at = resolver->stacks.nr;
	for (i = 0; i < SB_ARRAY_SIZE(kinds) && !err; i++) {
		if (!*kinds[i].at)
			*kinds[i].at = max;
		if (*kinds[i].nr < *kinds[i].at)
			continue;
		if (!known)
			known = calloc(PID_LIMIT / 4, 1);
		err = known ? kinds[i].shed(resolver, known) : -ENOMEM;
		/* Looking at the stacks that stay costs less than making a quarter of them did. */
		*kinds[i].at = *kinds[i].nr + (*kinds[i].nr / 4 > max ? *kinds[i].nr / 4 : max);
	}
	return err;
}
