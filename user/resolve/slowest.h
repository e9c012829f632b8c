/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The slowest calls of a run, each with its stack. The BPF side ships more than are asked for,
 * because a call that is among the slowest when it ends need not be one at the end of the run.
 * Zeroed, it is an empty list; sb_slowest_release() ends it. Nothing is NULL. Thread: the one of
 * the resolver.
 */
#ifndef SB_RESOLVE_SLOWEST_H
#define SB_RESOLVE_SLOWEST_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/sb_abi_latency.h"

struct sb_slow_call {
	struct sb_object_call call;
	uint32_t *frames; /* owned: IDs of the profile, root first */
	size_t nr_frames;
};

/* The slowest first. */
struct sb_slowest {
	struct sb_slow_call at[SB_LATENCY_SLOWEST_MAX];
	size_t nr;
};

/* Add a call, unless SB_LATENCY_SLOWEST_MAX others are slower, or as slow; the fastest one is
 * dropped if there is no room. @frames: @nr_frames IDs of the profile, root first. @call and
 * @frames are copied; sb_slowest_release() frees the copies. Return: 0, also if it was not added;
 * -ENOMEM, and the list is as before. */
int sb_slowest_add(struct sb_slowest *slowest, const struct sb_object_call *call,
		   const uint32_t *frames, size_t nr_frames);
/* Free the frames; the list is empty then, and can be used again. */
void sb_slowest_release(struct sb_slowest *slowest);

#endif
