// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store/record.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "store/level.h"

/* Jitter of the timer that ends blocks. */
#define SLACK_MS    500
#define PERIOD_MS   (SB_STORE_BLOCK_S * 1000ll)
#define MAGIC	    0x31526273u /* "sbR1" */
#define SHORT_BYTES 12u
/* Higher levels make a block 6 % smaller, in ten times the time. */
#define ZSTD_LEVEL  1

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

/* Of names that leave no room for a unit. Numbers are in files: add new ones at the end. */
static const char *const long_units[] = { "events", "units", "us", "samples", "bytes" };

static size_t find_unit(const char *unit)
{
	size_t i;

	for (i = 0; i < SB_ARRAY_SIZE(long_units) && !sb_streq(long_units[i], unit); i++)
		;
	return i;
}

bool sb_store_kind_set(const char *name, const char *unit, struct sb_store_kind *ret_kind)
{
	size_t name_len = strlen(name), unit_len = strlen(unit);

	if (!name_len || name_len >= SB_KIND_BYTES || unit_len >= SB_UNIT_BYTES ||
	    (name_len >= SHORT_BYTES && find_unit(unit) == SB_ARRAY_SIZE(long_units)))
		return false;
	*ret_kind = (struct sb_store_kind){};
	memcpy(ret_kind->name, name, name_len);
	memcpy(ret_kind->unit, unit, unit_len);
	return true;
}

static void put_kind(char p[2 * SHORT_BYTES], const struct sb_store_kind *kind)
{
	if (kind->name[SHORT_BYTES - 1]) {
		memcpy(p, kind->name, SB_KIND_BYTES);
		p[SB_KIND_BYTES] = (char)find_unit(kind->unit);
		return;
	}
	memcpy(p, kind->name, SHORT_BYTES);
	memcpy(p + SHORT_BYTES, kind->unit, SHORT_BYTES);
}

static void get_kind(const char p[2 * SHORT_BYTES], struct sb_store_kind *kind)
{
	size_t unit = (unsigned char)p[SB_KIND_BYTES];
	bool is_long = p[SHORT_BYTES - 1];

	memcpy(kind->name, p, is_long ? SB_KIND_BYTES - 1 : SHORT_BYTES);
	if (!is_long)
		memcpy(kind->unit, p + SHORT_BYTES, SHORT_BYTES);
	else if (unit < SB_ARRAY_SIZE(long_units))
		memcpy(kind->unit, long_units[unit], strlen(long_units[unit]));
	/* Older versions cut off the last byte of a unit of 12. */
	if (sb_streq(kind->unit, "byte-second"))
		memcpy(kind->unit, "byte-seconds", sizeof("byte-seconds"));
}

/* A header as it is in the file: numbers are little-endian. */
struct header {
	uint32_t magic;
	uint16_t type, lead_ms;
	uint32_t nr_stored_bytes, nr_bytes;
	uint64_t begin_s;
	uint32_t seconds;
	uint32_t crc; /* of the stored bytes */
	char kind[2 * SHORT_BYTES];
	uint32_t length_ms;
	uint32_t header_crc; /* of all members before it */
};
_Static_assert(sizeof(struct header) == SB_RECORD_HEADER_BYTES, "no padding");

static uint32_t header_crc_of(const struct header *header)
{
	return crc_of(header, offsetof(struct header, header_crc));
}

static void put_header(uint8_t *p, const struct sb_record *record)
{
	struct header header = {
		.magic = htole32(MAGIC),
		.type = htole16(record->type),
		.lead_ms = htole16(record->lead_ms),
		.nr_stored_bytes = htole32(record->nr_stored_bytes),
		.nr_bytes = htole32(record->nr_bytes),
		.begin_s = htole64((uint64_t)record->begin_s),
		.seconds = htole32(record->seconds),
		.crc = htole32(record->crc),
		.length_ms = htole32(record->length_ms),
	};

	put_kind(header.kind, &record->kind);
	header.header_crc = htole32(header_crc_of(&header));
	memcpy(p, &header, sizeof(header));
}

bool sb_record_header(const uint8_t *p, struct sb_record *record)
{
	struct header header;

	memcpy(&header, p, sizeof(header));
	if (le32toh(header.magic) != MAGIC || le32toh(header.header_crc) != header_crc_of(&header))
		return false;
	*record = (struct sb_record){
		.type = le16toh(header.type),
		.lead_ms = le16toh(header.lead_ms),
		.nr_stored_bytes = le32toh(header.nr_stored_bytes),
		.nr_bytes = le32toh(header.nr_bytes),
		.begin_s = (int64_t)le64toh(header.begin_s),
		.seconds = le32toh(header.seconds),
		.crc = le32toh(header.crc),
		.length_ms = le32toh(header.length_ms),
	};
	get_kind(header.kind, &record->kind);
	return record->nr_bytes <= SB_RECORD_BYTES_MAX &&
	       record->nr_stored_bytes <= SB_RECORD_BYTES_MAX && record->begin_s >= 0 &&
	       record->begin_s < SB_LEVEL_TIME_MAX;
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

int64_t sb_record_end(const struct sb_record *record)
{
	int64_t begin_ms, end_ms;

	sb_record_time(record, &begin_ms, &end_ms);
	return (end_ms + PERIOD_MS - 1) / PERIOD_MS * SB_STORE_BLOCK_S;
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
