/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds late blocks: those that were added to a store for a time that a reader has already passed,
 * because a disk was full or a clock was set back. Called by the exporter. Not thread-safe: one
 * thread at a time for a store. Pointers are not NULL, and nothing that is given is kept.
 *
 * Order: zero a place, or set it by sb_read_place_parse(); then call sb_store_late_blocks() with it
 * again and again, and sb_read_place_print() to keep it for the next start.
 */
#ifndef SB_STORE_LATE_BLOCKS_H
#define SB_STORE_LATE_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

#define SB_READ_PLACE_FILES_MAX 16u

/*
 * How much of the newest files of 10-second blocks a reader knows: begin of the file's time, and
 * its length in bytes. With a zero-initialized place, everything that the store has at the first
 * call counts as known.
 */
struct sb_read_place {
	struct sb_read_place_file {
		int64_t begin_s;
		uint64_t len;
	} files[SB_READ_PLACE_FILES_MAX];
	size_t nr;
};

/**
 * sb_store_late_blocks() - call a function for each late block
 * @place: in and out: what is known; then everything that the store has
 * @before_s: only blocks that begin before this, in seconds since the epoch; later ones become
 *	known without a call
 * @fn: gets each block that is not known; @block is valid during the call, in which the store must
 *	not be used
 * @arg: for @fn; may be NULL
 *
 * Files that have not grown are not read.
 *
 * Return: 0; -ENOMEM; other errors of I/O, and then @place is unchanged, although @fn may have been
 * called.
 */
int sb_store_late_blocks(struct sb_store *store, struct sb_read_place *place, int64_t before_s,
			 void (*fn)(void *arg, const struct sb_record *block), void *arg);

/* Print a place as text, "1795219200:12345 ..." (begin of a file's time, and how many of its bytes
 * are known), of at most @len - 1 bytes and NUL: the newest files for which there is room. @len: 1
 * or more. */
void sb_read_place_print(const struct sb_read_place *place, char *text, size_t len);
/* Set @place, which is overwritten, to what sb_read_place_print() printed; invalid text ends the
 * list of files, without an error. */
void sb_read_place_parse(struct sb_read_place *place, const char *text);

#endif
