/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records of a file that only grows: each has a magic number, its length and two checksums, one of the
 * header and one of what follows, so that headers can be hopped over and any damage is found. What is
 * damaged is skipped up to the next header that is whole.
 *
 *	 0  4  magic		24  4  length of time, seconds
 *	 4  2  type		28  4  CRC-32 (of zlib) of the stored bytes
 *	 6  2  lead, ms		32 12  kind, padded with zeros
 *	 8  4  bytes stored	44 12  unit, the same
 *	12  4  bytes unpacked	56  4  length, ms
 *	16  8  begin, seconds	60  4  CRC-32 of the 60 bytes before
 *	       since 1970	64     what is stored: a zstd frame
 *
 * A block is kept under the period in which it begins. When exactly it began, and for how long it was sampled, is its
 * lead and its length: under load a block may be longer than its period. Sums, and blocks of older versions, have a
 * length of 0: that of their period.
 */
#ifndef SB_STORE_RECORD_H
#define SB_STORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define SB_RECORD_HEADER_BYTES 64u
/* What is stored, and what it unpacks to: larger ones are taken for damage. */
#define SB_RECORD_BYTES_MAX    (64u << 20)

/* Others are of a later version, and are skipped. */
enum sb_record_type {
	SB_RECORD_DICT = 1,
	SB_RECORD_BLOCK = 2,
};

/* What was measured, and in what: "oncpu" in "samples". Only of the same do weights add up. */
#define SB_KIND_BYTES 12
struct sb_store_kind {
	char name[SB_KIND_BYTES], unit[SB_KIND_BYTES]; /* ended by NUL and padded with it */
};

struct sb_record {
	uint16_t type;
	uint32_t nr_stored_bytes, nr_bytes, crc;
	int64_t begin_s;
	uint32_t seconds;
	uint16_t lead_ms;
	uint32_t length_ms;
	struct sb_store_kind kind; /* of a block */
	size_t at;		   /* of the header in the file */
	/* Of a block that was read. */
	uint64_t unpacked; /* where it is in the segment's sb_unpacked; 0: not there */
	uint64_t sampled_ms;
	bool is_read;
};

/* Packs and unpacks: what zstd needs, made when it is needed. Zero-initialize. Not thread-safe. */
struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;
struct sb_codec {
	struct ZSTD_CCtx_s *pack;
	struct ZSTD_DCtx_s *unpack;
};
void sb_codec_release(struct sb_codec *codec);

/* Append a record of @raw to @out, and complete *@record. Return: 0, -E2BIG, -ENOMEM. */
int sb_record_pack(struct sb_codec *codec, struct sb_str *out, struct sb_record *record,
		   const struct sb_str *raw);

/**
 * sb_record_time() - from when to when a block was sampled
 * @ret_begin_ms: since the epoch
 * @ret_end_ms: the same; at least a millisecond later
 *
 * Blocks begin and end with a timer. What that is late or early by, less than half a second, is no part of another
 * period.
 */
void sb_record_time(const struct sb_record *record, int64_t *ret_begin_ms, int64_t *ret_end_ms);

/* Return: whether a block has the length, and begins at a multiple, of a level, which it must have to be of any use. */
bool sb_record_is_of_level(const struct sb_record *block);

/* Return: whether the SB_RECORD_HEADER_BYTES at @p are a whole header; ret_record->at is 0. */
bool sb_record_header(const uint8_t *p, struct sb_record *ret_record);
/* The first place behind @p and before @end where a header may begin, or @end. */
const uint8_t *sb_record_resync(const uint8_t *p, const uint8_t *end);

/* Return: whether @stored, what follows its header, is what was written. */
bool sb_record_is_whole(const uint8_t *stored, const struct sb_record *record);
/* What it holds, into @raw, which is overwritten. Return: 0; -EBADMSG: damaged; -ENOMEM. */
int sb_record_unpack(struct sb_codec *codec, const uint8_t *stored, const struct sb_record *record,
		     struct sb_str *raw);

#endif
