// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "resolve/evict.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"

#define PID_LIMIT 4194304u /* PID_MAX_LIMIT, include/linux/threads.h */

/* Two bits for each PID. */
enum { CHECKED = 1, ENDED = 2 };

void sb_ended_release(struct sb_ended *ended)
{
	free(ended->known);
}

bool sb_ended_has(struct sb_ended *ended, uint32_t tgid)
{
	const unsigned int shift = tgid % 4 * 2;
	unsigned int known;
	char path[32];

	if (!tgid || tgid >= PID_LIMIT)
		return false;
	if (!ended->known)
		ended->known = calloc(PID_LIMIT / 4, 1);
	known = ended->known ? ended->known[tgid / 4] >> shift : 0;
	if (!(known & CHECKED)) {
		snprintf(path, sizeof(path), "/proc/%u", tgid);
		known = CHECKED | (sb_can_access(path, F_OK) ? 0 : ENDED);
		/* Without memory, each is looked up again. */
		if (ended->known)
			ended->known[tgid / 4] |= (uint8_t)(known << shift);
	}
	return known & ENDED;
}
