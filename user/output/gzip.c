// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "output/gzip.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#define CHUNK_BYTES (64u << 10)
#define PIECE_MAX   (1u << 30) /* avail_in has 32 bits */
#define GZIP_WINDOW (15 + 16)  /* zlib.h: 16 more asks for the gzip wrapper, whose time is 0 */

struct sb_gzip {
	z_stream z;
	FILE *out;
	uint8_t chunk[CHUNK_BYTES];
};

int sb_gzip_new(FILE *out, struct sb_gzip **ret_gzip)
{
	struct sb_gzip *gzip = calloc(1, sizeof(*gzip));

	if (!gzip)
		return -ENOMEM;
	gzip->out = out;
	if (deflateInit2(&gzip->z, 6, Z_DEFLATED, GZIP_WINDOW, 9, Z_DEFAULT_STRATEGY)) {
		free(gzip);
		return -ENOMEM;
	}
	*ret_gzip = gzip;
	return 0;
}

static int pack(struct sb_gzip *gzip, const uint8_t *data, size_t len, int flush)
{
	size_t nr;

	/* zlib without ZLIB_CONST takes a pointer to what it only reads. */
	gzip->z.next_in = (Bytef *)(uintptr_t)data;
	gzip->z.avail_in = (uInt)len;
	do {
		gzip->z.next_out = gzip->chunk;
		gzip->z.avail_out = sizeof(gzip->chunk);
		deflate(&gzip->z, flush);
		nr = sizeof(gzip->chunk) - gzip->z.avail_out;
		if (nr && fwrite(gzip->chunk, 1, nr, gzip->out) != nr)
			return -EIO;
	} while (!gzip->z.avail_out);
	return 0;
}

int sb_gzip_put(void *arg, const void *data, size_t len)
{
	struct sb_gzip *gzip = arg;
	const uint8_t *at = data;
	int err = 0;

	while (len && !err) {
		size_t nr = len < PIECE_MAX ? len : PIECE_MAX;

		err = pack(gzip, at, nr, Z_NO_FLUSH);
		at += nr;
		len -= nr;
	}
	return err;
}

int sb_gzip_finish(struct sb_gzip *gzip)
{
	return pack(gzip, NULL, 0, Z_FINISH);
}

void sb_gzip_free(struct sb_gzip *gzip)
{
	if (!gzip)
		return;
	deflateEnd(&gzip->z);
	free(gzip);
}

int sb_gzip_pack(const void *data, size_t len, struct sb_str *ret_packed)
{
	sb_cleanup(sb_gzip_freep) struct sb_gzip *gzip = NULL;
	struct sb_str packed = {};
	FILE *out = open_memstream(&packed.s, &packed.len);
	int err = out ? sb_gzip_new(out, &gzip) : -ENOMEM;

	err = err ?: sb_gzip_put(gzip, data, len);
	err = err ?: sb_gzip_finish(gzip);
	if (out && fclose(out))
		err = -ENOMEM;
	sb_str_release(ret_packed);
	packed.cap = packed.len;
	if (err)
		sb_str_release(&packed);
	*ret_packed = packed;
	return err ? -ENOMEM : 0;
}
