// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/record.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "store/bytes.h"
#include "store/level.h"

#define KIND_AT	   32u
#define UNIT_AT	   44u
#define LENGTH_AT  56u
#define CRC_AT	   60u
/* Jitter of the timer that ends blocks. */
#define SLACK_MS   500
#define PERIOD_MS  (SB_STORE_BLOCK_S * 1000ll)
#define MAGIC	   0x31526273u /* "sbR1" */
/* Higher levels make a block 6 % smaller, in ten times the time. */
#define ZSTD_LEVEL 1

static uint32_t crc_of(const void *data, size_t len)
{
	return (uint32_t)crc32_z(0, data, len);
}

void sb_codec_release(struct sb_codec *codec)
{
	ZSTD_freeCCtx(codec->pack);
	ZSTD_freeDCtx(codec->unpack);
	*codec = (struct sb_codec){};
}

static void put_header(uint8_t *p, const struct sb_record *record)
{
	memset(p, 0, SB_RECORD_HEADER_BYTES);
	sb_store_le(p, 4, MAGIC);
	sb_store_le(p + 4, 2, record->type);
	sb_store_le(p + 6, 2, record->lead_ms);
	sb_store_le(p + 8, 4, record->nr_stored_bytes);
	sb_store_le(p + 12, 4, record->nr_bytes);
	sb_store_le(p + 16, 8, (uint64_t)record->begin_s);
	sb_store_le(p + 24, 4, record->seconds);
	sb_store_le(p + 28, 4, record->crc);
	memcpy(p + KIND_AT, record->kind.name, SB_KIND_BYTES);
	memcpy(p + UNIT_AT, record->kind.unit, SB_KIND_BYTES);
	sb_store_le(p + LENGTH_AT, 4, record->length_ms);
	sb_store_le(p + CRC_AT, 4, crc_of(p, CRC_AT));
}

bool sb_record_header(const uint8_t *p, struct sb_record *record)
{
	if (sb_load_le(p, 4) != MAGIC || sb_load_le(p + CRC_AT, 4) != crc_of(p, CRC_AT))
		return false;
	*record = (struct sb_record){
		.type = (uint16_t)sb_load_le(p + 4, 2),
		.lead_ms = (uint16_t)sb_load_le(p + 6, 2),
		.nr_stored_bytes = (uint32_t)sb_load_le(p + 8, 4),
		.nr_bytes = (uint32_t)sb_load_le(p + 12, 4),
		.begin_s = (int64_t)sb_load_le(p + 16, 8),
		.seconds = (uint32_t)sb_load_le(p + 24, 4),
		.crc = (uint32_t)sb_load_le(p + 28, 4),
		.length_ms = (uint32_t)sb_load_le(p + LENGTH_AT, 4),
	};
	memcpy(record->kind.name, p + KIND_AT, SB_KIND_BYTES);
	memcpy(record->kind.unit, p + UNIT_AT, SB_KIND_BYTES);
	record->kind.name[SB_KIND_BYTES - 1] = record->kind.unit[SB_KIND_BYTES - 1] = '\0';
	return record->nr_bytes <= SB_RECORD_BYTES_MAX &&
	       record->nr_stored_bytes <= SB_RECORD_BYTES_MAX;
}

void sb_record_time(const struct sb_record *record, int64_t *ret_begin_ms, int64_t *ret_end_ms)
{
	int64_t begin_ms = record->begin_s * 1000, end_ms, over_ms;

	if (!record->length_ms) {
		*ret_begin_ms = begin_ms;
		*ret_end_ms = begin_ms + record->seconds * 1000ll;
		return;
	}
	begin_ms += record->lead_ms;
	end_ms = begin_ms + record->length_ms;
	over_ms = begin_ms % PERIOD_MS;
	if (over_ms < SLACK_MS)
		begin_ms -= over_ms;
	over_ms = end_ms % PERIOD_MS;
	if (over_ms < SLACK_MS && end_ms - over_ms > begin_ms)
		end_ms -= over_ms;
	else if (over_ms > PERIOD_MS - SLACK_MS && end_ms - begin_ms > SLACK_MS)
		end_ms += PERIOD_MS - over_ms;
	*ret_begin_ms = begin_ms;
	*ret_end_ms = end_ms;
}

bool sb_record_is_of_level(const struct sb_record *block)
{
	size_t i;

	for (i = 0; i < SB_STORE_LEVELS; i++)
		if (block->seconds == sb_levels[i].seconds)
			return block->begin_s % block->seconds == 0;
	return false;
}

const uint8_t *sb_record_resync(const uint8_t *p, const uint8_t *end)
{
	const uint8_t *next =
		p + 1 < end ? memchr(p + 1, MAGIC & 0xff, (size_t)(end - p - 1)) : NULL;

	return next ? next : end;
}

int sb_record_pack(struct sb_codec *codec, struct sb_str *out, struct sb_record *record,
		   const struct sb_str *raw)
{
	size_t before = out->len, bound = ZSTD_compressBound(raw->len), nr;
	uint8_t header[SB_RECORD_HEADER_BYTES] = {};
	int err;

	if (raw->len > SB_RECORD_BYTES_MAX)
		return -E2BIG;
	if (!codec->pack)
		codec->pack = ZSTD_createCCtx();
	if (!codec->pack)
		return -ENOMEM;
	err = sb_str_addn(out, (char *)header, sizeof(header));
	if (!err)
		err = sb_str_reserve(out, bound);
	if (err)
		goto fail;
	nr = ZSTD_compressCCtx(codec->pack, out->s + out->len, bound, raw->len ? raw->s : "",
			       raw->len, ZSTD_LEVEL);
	err = ZSTD_isError(nr) ? -ENOMEM : nr > SB_RECORD_BYTES_MAX ? -E2BIG : 0;
	if (err)
		goto fail;
	record->nr_stored_bytes = (uint32_t)nr;
	record->nr_bytes = (uint32_t)raw->len;
	record->crc = crc_of(out->s + out->len, nr);
	put_header((uint8_t *)out->s + before, record);
	out->len += nr;
	return 0;
fail:
	out->len = before;
	return err;
}

bool sb_record_is_whole(const uint8_t *stored, const struct sb_record *record)
{
	return crc_of(stored, record->nr_stored_bytes) == record->crc;
}

int sb_record_unpack(struct sb_codec *codec, const uint8_t *stored, const struct sb_record *record,
		     struct sb_str *raw)
{
	size_t nr;
	int err;

	if (!sb_record_is_whole(stored, record))
		return -EBADMSG;
	if (!codec->unpack)
		codec->unpack = ZSTD_createDCtx();
	sb_str_clear(raw);
	err = codec->unpack ? sb_str_reserve(raw, record->nr_bytes) : -ENOMEM;
	if (err)
		return err;
	nr = ZSTD_decompressDCtx(codec->unpack, raw->s, record->nr_bytes, stored,
				 record->nr_stored_bytes);
	if (ZSTD_isError(nr) || nr != record->nr_bytes)
		return -EBADMSG;
	raw->len = nr;
	return 0;
}
