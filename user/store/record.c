// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/record.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "store/bytes.h"

#define HEADER_BYTES 40u
#define CRC_AT	     36u
#define MAGIC	     0x31526273u /* "sbR1" */
/* Beyond it, a block becomes 6 % smaller, and takes ten times as long. */
#define ZSTD_LEVEL   1

static uint32_t crc_of(const void *data, size_t len)
{
	return (uint32_t)crc32_z(0, data, len);
}

static void put_header(uint8_t *p, const struct sb_record *record)
{
	memset(p, 0, HEADER_BYTES);
	sb_store_le(p, 4, MAGIC);
	sb_store_le(p + 4, 2, record->type);
	sb_store_le(p + 8, 4, record->nr_stored_bytes);
	sb_store_le(p + 12, 4, record->nr_bytes);
	sb_store_le(p + 16, 8, (uint64_t)record->begin_s);
	sb_store_le(p + 24, 4, record->seconds);
	sb_store_le(p + 28, 4, record->crc);
	sb_store_le(p + CRC_AT, 4, crc_of(p, CRC_AT));
}

/* Return: whether there is a whole one. */
static bool get_header(const uint8_t *p, struct sb_record *record)
{
	if (sb_load_le(p, 4) != MAGIC || sb_load_le(p + CRC_AT, 4) != crc_of(p, CRC_AT))
		return false;
	*record = (struct sb_record){
		.type = (uint16_t)sb_load_le(p + 4, 2),
		.nr_stored_bytes = (uint32_t)sb_load_le(p + 8, 4),
		.nr_bytes = (uint32_t)sb_load_le(p + 12, 4),
		.begin_s = (int64_t)sb_load_le(p + 16, 8),
		.seconds = (uint32_t)sb_load_le(p + 24, 4),
		.crc = (uint32_t)sb_load_le(p + 28, 4),
	};
	return record->nr_bytes <= SB_RECORD_BYTES_MAX;
}

int sb_record_pack(struct sb_str *out, const struct sb_record *record, const struct sb_str *raw)
{
	struct sb_record packed = *record;
	size_t before = out->len, bound = ZSTD_compressBound(raw->len), nr;
	uint8_t header[HEADER_BYTES] = {};
	int err;

	if (raw->len > SB_RECORD_BYTES_MAX)
		return -E2BIG;
	err = sb_str_addn(out, (char *)header, sizeof(header));
	if (!err)
		err = sb_str_reserve(out, bound);
	if (err)
		goto fail;
	nr = ZSTD_compress(out->s + out->len, bound, raw->len ? raw->s : "", raw->len, ZSTD_LEVEL);
	if (ZSTD_isError(nr)) {
		err = -ENOMEM;
		goto fail;
	}
	packed.nr_stored_bytes = (uint32_t)nr;
	packed.nr_bytes = (uint32_t)raw->len;
	packed.crc = crc_of(out->s + out->len, nr);
	put_header((uint8_t *)out->s + before, &packed);
	out->len += nr;
	return 0;
fail:
	out->len = before;
	return err;
}

int sb_record_next(const uint8_t *file, size_t len, size_t *at, struct sb_record *ret_record,
		   uint64_t *nr_skipped_bytes)
{
	size_t from = *at;

	for (; len - from >= HEADER_BYTES && from < len; from++) {
		if (!get_header(file + from, ret_record) ||
		    ret_record->nr_stored_bytes > len - from - HEADER_BYTES)
			continue;
		ret_record->at = from;
		*nr_skipped_bytes += from - *at;
		*at = from + HEADER_BYTES + ret_record->nr_stored_bytes;
		return 0;
	}
	return -ENODATA;
}

int sb_record_unpack(const uint8_t *file, const struct sb_record *record, struct sb_str *raw)
{
	const uint8_t *stored = file + record->at + HEADER_BYTES;
	size_t nr;
	int err;

	if (crc_of(stored, record->nr_stored_bytes) != record->crc)
		return -EBADMSG;
	sb_str_clear(raw);
	err = sb_str_reserve(raw, record->nr_bytes);
	if (err)
		return err;
	nr = ZSTD_decompress(raw->s, record->nr_bytes, stored, record->nr_stored_bytes);
	if (ZSTD_isError(nr) || nr != record->nr_bytes)
		return -EBADMSG;
	raw->len = nr;
	return 0;
}
