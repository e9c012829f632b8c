/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What records hold, kept from one question to the next: to unpack a block again takes longer than adding it up. A ring:
 * what comes last takes the place of what came first.
 */
#ifndef SB_STORE_UNPACKED_H
#define SB_STORE_UNPACKED_H

#include <stddef.h>
#include <stdint.h>

/* About a day of blocks of 10 s of one kind. */
#define SB_UNPACKED_BYTES  (32u << 20)
#define SB_UNPACKED_CHUNKS 32u

/* Zero-initialize. */
struct sb_unpacked {
	uint8_t *chunks[SB_UNPACKED_CHUNKS]; /* made when there is something to keep there */
	uint64_t end; /* how many bytes were ever kept: where the next ones are */
};

/* Keep a copy. Return: where it is, of which sb_unpacked_at() is asked; 0: there is no memory, or it is too long. */
uint64_t sb_unpacked_keep(struct sb_unpacked *unpacked, const void *bytes, size_t nr);
/* What sb_unpacked_keep() gave for so many bytes, or 0. Return: them, until more are kept; NULL: they are gone. */
const uint8_t *sb_unpacked_at(const struct sb_unpacked *unpacked, uint64_t place, size_t nr);
/* Return: what it takes. */
size_t sb_unpacked_bytes(const struct sb_unpacked *unpacked);
void sb_unpacked_release(struct sb_unpacked *unpacked);

#endif
