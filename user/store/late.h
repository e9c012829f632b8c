/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is added to a store for a time that a reader is done with. */
#ifndef SB_STORE_LATE_H
#define SB_STORE_LATE_H

#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

#define SB_LATE_FILES_MAX 16u

/* How far the files of 10-second blocks are known, of the newest days. Zero-initialize: nothing is known. */
struct sb_late_place {
	struct sb_late_file {
		int64_t begin_s;
		uint64_t len;
	} files[SB_LATE_FILES_MAX];
	size_t nr;
};

/*
 * Move @place to the end of what is there, and call @fn with each block that is behind it and begins before
 * @before_s. With an empty place all there is counts as known. Files that have not grown are not read.
 * Return: 0, -ENOMEM, others of I/O.
 */
int sb_store_late(struct sb_store *store, struct sb_late_place *place, int64_t before_s,
		  void (*fn)(void *arg, const struct sb_record *block), void *arg);

/* As text, "1795219200:12345 ...", at most @len - 1 bytes: the newest that have room; and back, as far as it is one. */
void sb_late_print(const struct sb_late_place *place, char *text, size_t len);
void sb_late_parse(struct sb_late_place *place, const char *text);

#endif
