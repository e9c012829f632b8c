// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/unpacked.h"

#include <stdlib.h>
#include <string.h>

/* Also the longest record that is kept: a record does not cross chunks. */
#define CHUNK_BYTES (SB_UNPACKED_BYTES / SB_UNPACKED_CHUNKS)

static size_t chunk_of(uint64_t place)
{
	return place / CHUNK_BYTES % SB_UNPACKED_CHUNKS;
}

uint64_t sb_unpacked_keep(struct sb_unpacked *unpacked, const void *bytes, size_t nr)
{
	size_t rest = CHUNK_BYTES - unpacked->end % CHUNK_BYTES;
	uint8_t **chunk;

	if (!nr || nr > CHUNK_BYTES)
		return 0;
	unpacked->end += nr > rest ? rest : 0;
	chunk = &unpacked->chunks[chunk_of(unpacked->end)];
	if (!*chunk)
		*chunk = malloc(CHUNK_BYTES);
	if (!*chunk)
		return 0;
	memcpy(*chunk + unpacked->end % CHUNK_BYTES, bytes, nr);
	unpacked->end += nr;
	/* A place is the end of a record, so it is never 0. */
	return unpacked->end;
}

const uint8_t *sb_unpacked_at(const struct sb_unpacked *unpacked, uint64_t place, size_t nr)
{
	uint64_t begin = place - nr;

	if (!place || unpacked->end - begin > SB_UNPACKED_BYTES)
		return NULL;
	return unpacked->chunks[chunk_of(begin)] + begin % CHUNK_BYTES;
}

size_t sb_unpacked_bytes(const struct sb_unpacked *unpacked)
{
	size_t i, nr = 0;

	for (i = 0; i < SB_UNPACKED_CHUNKS; i++)
		nr += unpacked->chunks[i] ? CHUNK_BYTES : 0;
	return nr;
}

void sb_unpacked_release(struct sb_unpacked *unpacked)
{
	size_t i;

	for (i = 0; i < SB_UNPACKED_CHUNKS; i++)
		free(unpacked->chunks[i]);
	*unpacked = (struct sb_unpacked){};
}
