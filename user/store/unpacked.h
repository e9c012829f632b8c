/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A cache of unpacked records, kept between queries, because to unpack a block takes longer than to
 * sum it. It is a ring buffer: new records overwrite the oldest. Not thread-safe. Pointers are not
 * NULL.
 */
#ifndef SB_STORE_UNPACKED_H
#define SB_STORE_UNPACKED_H

#include <stddef.h>
#include <stdint.h>

/* Enough for about a day of 10-second blocks of one kind. */
#define SB_UNPACKED_BYTES  (32u << 20)
#define SB_UNPACKED_CHUNKS 32u

/* Zero-initialize. */
struct sb_unpacked {
	uint8_t *chunks[SB_UNPACKED_CHUNKS]; /* allocated when first used */
	uint64_t end;			     /* bytes that were ever written, with the gaps */
};

/* Copy a record of @nr bytes. Return: its place, for sb_unpacked_at(); 0 if it is empty, longer
 * than SB_UNPACKED_BYTES / SB_UNPACKED_CHUNKS, or without memory. */
uint64_t sb_unpacked_keep(struct sb_unpacked *unpacked, const void *bytes, size_t nr);
/*
 * Look up a record. @place is what sb_unpacked_keep() returned since the last
 * sb_unpacked_release(), for the same @nr; it may be 0. Return: the record, valid until the next
 * one is kept; NULL if it was overwritten, or @place is 0.
 */
const uint8_t *sb_unpacked_at(const struct sb_unpacked *unpacked, uint64_t place, size_t nr);
/* Return: the memory that it has allocated so far, in bytes, whether records fill it or not; at
 * most SB_UNPACKED_BYTES. */
size_t sb_unpacked_bytes(const struct sb_unpacked *unpacked);
/* Free all records, and zero it: it can be used again. The caller must drop the places of all
 * records, because sb_unpacked_at() would find later records at them. */
void sb_unpacked_release(struct sb_unpacked *unpacked);

#endif
