// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "resolve/slowest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int sb_slowest_add(struct sb_slowest *slowest, const struct sb_object_call *call,
		   const uint32_t *frames, size_t nr_frames)
{
	struct sb_slow_call slow = { .call = *call, .nr_frames = nr_frames };
	size_t at = slowest->nr, i;

	while (at && slowest->at[at - 1].call.elapsed_ns < call->elapsed_ns)
		at--;
	if (at == SB_LATENCY_SLOWEST_MAX)
		return 0;
	slow.frames = calloc(nr_frames + 1, sizeof(*frames));
	if (!slow.frames)
		return -ENOMEM;
	memcpy(slow.frames, frames, nr_frames * sizeof(*frames));
	if (slowest->nr == SB_LATENCY_SLOWEST_MAX)
		free(slowest->at[--slowest->nr].frames);
	for (i = slowest->nr++; i > at; i--)
		slowest->at[i] = slowest->at[i - 1];
	slowest->at[at] = slow;
	return 0;
}

void sb_slowest_release(struct sb_slowest *slowest)
{
	size_t i;

	for (i = 0; i < slowest->nr; i++)
		free(slowest->at[i].frames);
	slowest->nr = 0;
}
