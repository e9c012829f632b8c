// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Stacks are kept for as long as a sample may name them. A machine that starts processes all the time
 * makes new ones all the time: those of processes that have ended, and those that are for one sample
 * only, which has come, are forgotten when they are many.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "resolve/resolve_priv.h"

#define STACKS_MAX_DEFAULT 65536u
#define PID_LIMIT	   4194304u /* PID_MAX_LIMIT, include/linux/threads.h */

/* What is known of a process: two bits, asked and alive. A pid that was given anew is taken for alive. */
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

/* The two parts of a wait may come in two batches, one after the other. */
static bool is_of_use(const struct sb_resolver *resolver, const struct known_stack *stack,
		      uint8_t *known)
{
	if ((stack->flags & SB_STACK_KERNEL) || !stack->tgid || stack->tgid >= PID_LIMIT ||
	    stack->batch + 1 >= resolver->nr_batches)
		return true;
	return !stack->is_single && is_alive(known, stack->tgid);
}

/* Their addresses lie in the order of the stacks. */
static int drop_stacks(struct sb_resolver *resolver, uint8_t *known)
{
	size_t i, nr = 0, nr_ips = 0;
	int err = 0;

	for (i = 0; i < resolver->stacks.nr && !err; i++) {
		struct known_stack stack = resolver->stacks.at[i];

		if (!is_of_use(resolver, &stack, known)) {
			resolver->stats.nr_evicted++;
			if (!stack.is_single)
				err = sb_vec_push(&resolver->evicted, stack.id);
			continue;
		}
		memmove(resolver->ips.at + nr_ips, resolver->ips.at + stack.first_ip,
			stack.nr_ips * sizeof(*resolver->ips.at));
		stack.first_ip = nr_ips;
		nr_ips += stack.nr_ips;
		resolver->stacks.at[nr++] = stack;
	}
	resolver->stacks.nr = nr;
	resolver->ips.nr = nr_ips;
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

int sb_resolver_shed(struct sb_resolver *resolver)
{
	size_t max = resolver->opts.stacks_max ? resolver->opts.stacks_max : STACKS_MAX_DEFAULT;
	sb_cleanup(sb_freep) uint8_t *known = NULL;
	int err;

	resolver->evicted.nr = 0;
	if (resolver->shed_at < max)
		resolver->shed_at = max;
	if (resolver->stacks.nr < resolver->shed_at)
		return 0;
	known = calloc(PID_LIMIT / 4, 1);
	if (!known)
		return -ENOMEM;
	err = drop_stacks(resolver, known);
	if (!err)
		err = index_stacks(resolver);
	/* Looking at those that stay costs less than making them. */
	resolver->shed_at = 2 * resolver->stacks.nr;
	return err;
}

const struct sb_stack_id *sb_resolver_evicted(const struct sb_resolver *resolver, size_t *ret_nr)
{
	*ret_nr = resolver->evicted.nr;
	return resolver->evicted.at;
}
