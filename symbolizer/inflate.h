/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Compressed parts of ELF files, with bounds on what they may grow to. Internal. Thread-safe. */
#ifndef SB_INFLATE_H
#define SB_INFLATE_H

#include <stddef.h>
#include <stdint.h>

/* No compressed section may become larger; vmlinux' .debug_info has 210 MB. */
#define SB_INFLATE_BYTES_MAX (1ull << 30)

struct sb_inflate_req {
	const void *in;
	size_t in_len;
	uint32_t type;	  /* ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD */
	uint64_t out_len; /* as announced; anything else is an error */
	size_t max_bytes;
};

/*
 * Return: 0 and @out_len bytes with a NUL behind them, which the caller frees; -EBADMSG (broken, or
 * not of the announced size), -ENOTSUP (another type), -EFBIG (beyond @max_bytes, or packed more
 * densely than honest data is), -ENOMEM.
 */
int sb_inflate(const struct sb_inflate_req *req, char **ret_out);

/* One xz stream of unknown size (.gnu_debugdata). Return: as sb_inflate(). */
int sb_inflate_xz(const void *in, size_t in_len, char **ret_out, size_t *ret_len);

#endif
