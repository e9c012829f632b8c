// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "resolve/cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"

#define PID_LIMIT 4194304u /* PID_MAX_LIMIT, include/linux/threads.h */

void *sb_cache_copy(const void *from, size_t nr_bytes)
{
	void *copy = malloc(nr_bytes ? nr_bytes : 1);

	if (copy && nr_bytes)
		memcpy(copy, from, nr_bytes);
	return copy;
}

int sb_frame_ids_set(struct sb_frame_ids *frames, const uint32_t *at, size_t nr)
{
	uint32_t *copy = sb_cache_copy(at, nr * sizeof(*at));

	if (!copy)
		return -ENOMEM;
	*frames = (struct sb_frame_ids){ .at = copy, .nr = nr };
	return 0;
}

void sb_ended_release(struct sb_ended *ended)
{
	free(ended->known);
}

bool sb_ended_has(struct sb_ended *ended, uint32_t tgid)
{
	enum { UNKNOWN, ALIVE, ENDED } state = UNKNOWN;
	char path[32];

	if (!tgid || tgid >= PID_LIMIT)
		return false;
	if (!ended->known)
		ended->known = calloc(PID_LIMIT, 1); /* of which few pages are touched */
	if (ended->known)
		state = ended->known[tgid];
	if (state == UNKNOWN) {
		snprintf(path, sizeof(path), "/proc/%u", tgid);
		state = sb_can_access(path, F_OK) ? ALIVE : ENDED;
	}
	if (ended->known)
		ended->known[tgid] = (uint8_t)state;
	return state == ENDED;
}
