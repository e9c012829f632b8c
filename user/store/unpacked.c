// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/unpacked.h"

#include <stdlib.h>
#include <string.h>

/* A longer one would take the place of too many others. */
#define LONGEST (SB_UNPACKED_BYTES / 16)

uint64_t sb_unpacked_keep(struct sb_unpacked *unpacked, const void *bytes, size_t nr)
{
	size_t at = unpacked->end % SB_UNPACKED_BYTES;

	if (!nr || nr > LONGEST)
		return 0;
	if (!unpacked->bytes)
		unpacked->bytes = calloc(1, SB_UNPACKED_BYTES); /* pages that are used only */
	if (!unpacked->bytes)
		return 0;
	/* In one piece. */
	if (nr > SB_UNPACKED_BYTES - at) {
		unpacked->end += SB_UNPACKED_BYTES - at;
		at = 0;
	}
	memcpy(unpacked->bytes + at, bytes, nr);
	unpacked->end += nr;
	/* A place is where they end, which is not 0. */
	return unpacked->end;
}

const uint8_t *sb_unpacked_at(const struct sb_unpacked *unpacked, uint64_t place, size_t nr)
{
	if (!place || unpacked->end - (place - nr) > SB_UNPACKED_BYTES)
		return NULL;
	return unpacked->bytes + (place - nr) % SB_UNPACKED_BYTES;
}

size_t sb_unpacked_bytes(const struct sb_unpacked *unpacked)
{
	return unpacked->end < SB_UNPACKED_BYTES ? unpacked->end : SB_UNPACKED_BYTES;
}

void sb_unpacked_release(struct sb_unpacked *unpacked)
{
	free(unpacked->bytes);
	*unpacked = (struct sb_unpacked){};
}
