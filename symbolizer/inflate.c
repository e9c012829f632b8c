// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "inflate.h"

#include <elf.h>
#include <errno.h>
#include <lzma.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/cleanup.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

/* Deflate cannot do better than 1032:1; zstd can, but DWARF is nowhere near 1000:1. */
#define RATIO_MAX	   1032u
#define RATIO_FREE_BYTES   (64u << 10) /* a few bytes may honestly stand for a page of zeros */
/* A symbol table, stripped to what .dynsym lacks and packed; Fedora's largest take some 10 MB. */
#define XZ_OUT_BYTES_MAX   (128u << 20)
#define XZ_MEM_BYTES_MAX   (128u << 20) /* xz -9 needs 65 MiB to decode */
#define XZ_OUT_FIRST_BYTES (256u << 10)

static int inflate_zlib(const struct sb_inflate_req *req, char *out)
{
	z_stream z = {
		.next_in = (void *)req->in,
		.avail_in = (uInt)req->in_len,
		.next_out = (void *)out,
		.avail_out = (uInt)req->out_len,
	};
	int ret = inflateInit(&z);

	if (ret == Z_OK) {
		ret = inflate(&z, Z_FINISH);
		inflateEnd(&z);
	}
	if (ret == Z_MEM_ERROR)
		return -ENOMEM;
	return ret == Z_STREAM_END && !z.avail_out ? 0 : -EBADMSG;
}

static int inflate_zstd(const struct sb_inflate_req *req, char *out)
{
	size_t got = ZSTD_decompress(out, req->out_len, req->in, req->in_len);

	return !ZSTD_isError(got) && got == req->out_len ? 0 : -EBADMSG;
}

int sb_inflate(const struct sb_inflate_req *req, char **ret_out)
{
	sb_cleanup(sb_freep) char *out = NULL;
	int err;

	/* Below 4 GiB, too: zlib counts in unsigned int. */
	if (req->out_len > req->max_bytes || req->out_len > SB_INFLATE_BYTES_MAX ||
	    req->in_len > SB_INFLATE_BYTES_MAX ||
	    (req->out_len > RATIO_FREE_BYTES && req->out_len / RATIO_MAX > req->in_len))
		return -EFBIG;
	if (req->type != ELFCOMPRESS_ZLIB && req->type != ELFCOMPRESS_ZSTD)
		return -ENOTSUP;
	out = malloc(req->out_len + 1);
	if (!out)
		return -ENOMEM;
	err = req->type == ELFCOMPRESS_ZLIB ? inflate_zlib(req, out) : inflate_zstd(req, out);
	if (err)
		return err;
	out[req->out_len] = '\0';
	*ret_out = sb_take(out);
	return 0;
}

static int xz_error(lzma_ret ret)
{
	switch (ret) {
	case LZMA_MEM_ERROR:
		return -ENOMEM;
	case LZMA_MEMLIMIT_ERROR:
		return -EFBIG;
	default:
		return -EBADMSG;
	}
}

/* Decode into *@out, which grows; it is the caller's on failure, too. */
static int run_xz(lzma_stream *xz, char **out, size_t *ret_len)
{
	size_t cap = 0, used = 0, want;
	lzma_ret ret = LZMA_OK;
	char *bigger;

	while (ret == LZMA_OK) {
		if (used == cap) {
			want = cap ? cap * 2 : XZ_OUT_FIRST_BYTES;
			if (want > XZ_OUT_BYTES_MAX)
				return -EFBIG;
			bigger = realloc(*out, want + 1);
			if (!bigger)
				return -ENOMEM;
			*out = bigger;
			cap = want;
		}
		xz->next_out = (uint8_t *)*out + used;
		xz->avail_out = cap - used;
		ret = lzma_code(xz, LZMA_FINISH);
		used = cap - xz->avail_out;
	}
	if (ret != LZMA_STREAM_END)
		return xz_error(ret);
	(*out)[used] = '\0';
	*ret_len = used;
	return 0;
}

int sb_inflate_xz(const void *in, size_t in_len, char **ret_out, size_t *ret_len)
{
	sb_cleanup(sb_freep) char *out = NULL;
	lzma_stream xz = LZMA_STREAM_INIT;
	lzma_ret ret;
	int err;

	ret = lzma_stream_decoder(&xz, XZ_MEM_BYTES_MAX, 0);
	if (ret != LZMA_OK)
		return xz_error(ret);
	xz.next_in = in;
	xz.avail_in = in_len;
	err = run_xz(&xz, &out, ret_len);
	lzma_end(&xz);
	if (!err)
		*ret_out = sb_take(out);
	return err;
}
