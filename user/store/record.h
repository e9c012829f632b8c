/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records of a file that only grows: each has a magic number, its length and two checksums, one of the
 * header and one of what follows, so that headers can be hopped over and any damage is found. What is
 * damaged is skipped up to the next header that is whole.
 *
 *	 0  4  magic		16  8  begin, seconds since 1970
 *	 4  2  type		24  4  length of time, seconds
 *	 6  2  0		28  4  CRC-32 (of zlib) of the stored bytes
 *	 8  4  bytes stored	32  4  0
 *	12  4  bytes unpacked	36  4  CRC-32 of the 36 bytes before
 *	40     what is stored: a zstd frame
 */
#ifndef SB_STORE_RECORD_H
#define SB_STORE_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* Larger ones are taken for damage. */
#define SB_RECORD_BYTES_MAX (64u << 20)

/* Others are of a later version, and are skipped. */
enum sb_record_type {
	SB_RECORD_DICT = 1,
	SB_RECORD_BLOCK = 2,
};

struct sb_record {
	uint16_t type;
	uint32_t nr_stored_bytes, nr_bytes, crc;
	int64_t begin_s;
	uint32_t seconds;
	size_t at; /* of the header in the file */
};

/* Append a record of @raw to @out. Return: 0, -E2BIG, -ENOMEM. */
int sb_record_pack(struct sb_str *out, const struct sb_record *record, const struct sb_str *raw);

/*
 * The next record at or behind *@at, whose header is whole and whose bytes are all there. *@at is behind
 * it then, and what was skipped is added to *@nr_skipped_bytes.
 * Return: 0, -ENODATA: there are no more; what is behind *@at then is no record.
 */
int sb_record_next(const uint8_t *file, size_t len, size_t *at, struct sb_record *ret_record,
		   uint64_t *nr_skipped_bytes);

/* What it holds, into @raw, which is overwritten. Return: 0, -EBADMSG: damaged, -ENOMEM. */
int sb_record_unpack(const uint8_t *file, const struct sb_record *record, struct sb_str *raw);

#endif
