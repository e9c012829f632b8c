/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records: the units that files of a store consist of. A file only grows. Each record has two
 * checksums, one of the header and one of the payload, so that readers can hop over headers and
 * find any damage. They skip damaged bytes up to the next valid header.
 *
 *	 0  4  magic		24  4  length of time, seconds
 *	 4  2  type		28  4  CRC-32 (of zlib) of the stored bytes
 *	 6  2  lead, ms		32 24  kind and unit
 *	 8  4  bytes stored	56  4  length, ms
 *	12  4  bytes unpacked
 *	16  8  begin, seconds	60  4  CRC-32 of the 60 bytes before
 *	       since 1970	64     payload: a zstd frame
 *
 * A kind of at most 11 bytes and its unit of at most 12 have 12 bytes each, padded with zeros. A
 * longer one has 23, and its unit is the number in the last byte (long_units of record.c).
 *
 * A block is filed under the period in which it begins. Its lead and length say exactly when
 * sampling began and for how long it lasted: under load a block may be longer than its period.
 * Aggregates, and blocks of older versions, have length 0, which means that of their period.
 * Thread: any, one for each struct sb_codec. Pointers are not NULL, and nothing that is given is
 * kept.
 *
 * To write: zero a struct sb_record and set it, sb_record_pack(), write @out. To read, at each
 * place: sb_record_header(), or if that fails, sb_record_resync() for the next place; then
 * sb_record_unpack(). A struct sb_codec can be used on after an error.
 */
#ifndef SB_STORE_RECORD_H
#define SB_STORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "store/kind.h"

#define SB_RECORD_HEADER_BYTES 64u
/* Bounds of the payload, packed and unpacked. Larger values are taken for damage. */
#define SB_RECORD_BYTES_MAX    (64u << 20)

/* Other types belong to later versions, and are skipped. */
enum sb_record_type {
	SB_RECORD_DICT = 1,
	SB_RECORD_BLOCK = 2,
};

struct sb_record {
	uint16_t type;
	uint32_t nr_stored_bytes, nr_bytes, crc;
	int64_t begin_s;
	uint32_t seconds;
	uint16_t lead_ms;
	uint32_t length_ms;
	struct sb_store_kind kind; /* of a block */
	size_t at;		   /* offset of the header in the file */
	/* Of a block that was read: */
	uint64_t unpacked; /* its place in the segment's sb_unpacked; 0: none */
	uint64_t sampled_ms;
	bool is_read;
};

/* Contexts of zstd, created when first used. Zero-initialize. Not thread-safe. */
struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;
struct sb_codec {
	struct ZSTD_CCtx_s *pack;
	struct ZSTD_DCtx_s *unpack;
};
/* Free the contexts, and zero it: it can be used again. */
void sb_codec_release(struct sb_codec *codec);

/*
 * Compress @raw, which may be empty, and append a record, header and payload, to @out. Sets the
 * sizes and the checksum in *@record; the caller has set the rest, the kind of a block by
 * sb_store_kind_set(). Return: 0; -E2BIG for a payload beyond SB_RECORD_BYTES_MAX; -ENOMEM; on
 * error @out is unchanged.
 */
int sb_record_pack(struct sb_codec *codec, struct sb_str *out, struct sb_record *record,
		   const struct sb_str *raw);

/**
 * sb_record_time() - when a block was sampled
 * @record: as sb_record_header() accepts it
 * @ret_begin_ms: milliseconds since the epoch
 * @ret_end_ms: milliseconds since the epoch, too; at least a millisecond later, unless
 * record->seconds is 0
 *
 * A timer begins and ends blocks. Its jitter, less than half a second, is rounded to the period.
 */
void sb_record_time(const struct sb_record *record, int64_t *ret_begin_ms, int64_t *ret_end_ms);
/* Return: the end of the same time in seconds since the epoch, rounded up to a multiple of 10. */
int64_t sb_record_end(const struct sb_record *record);

/*
 * Return: whether a block has the length of a level and begins at a multiple of it; else it counts
 * as damaged. Whether it is in a file of that level is not checked.
 */
bool sb_record_is_of_level(const struct sb_record *block);

/*
 * Parse SB_RECORD_HEADER_BYTES at @p. Return: whether they are a valid header, by magic, checksum,
 * bounds of the payload and begin_s, which is between the years 1970 and 9999; then *ret_record is
 * set, its `at` is 0, and type, seconds, lead, length and kind may have any values. Otherwise it is
 * not to be used.
 */
bool sb_record_header(const uint8_t *p, struct sb_record *ret_record);
/* Return: the first place after @p and before @end where a header may begin; @end if there is none.
 * @p may be @end. Whoever parses a header there checks that SB_RECORD_HEADER_BYTES are left. */
const uint8_t *sb_record_resync(const uint8_t *p, const uint8_t *end);

/* Return: whether the payload @stored, of record->nr_stored_bytes, has the checksum of the
 * header. */
bool sb_record_is_whole(const uint8_t *stored, const struct sb_record *record);
/* Check and decompress the payload @stored, of record->nr_stored_bytes, into @raw, which is
 * overwritten and not to be used after an error. Return: 0; -EBADMSG if it is damaged; -ENOMEM. */
int sb_record_unpack(struct sb_codec *codec, const uint8_t *stored, const struct sb_record *record,
		     struct sb_str *raw);

#endif
