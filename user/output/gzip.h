/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Compresses what is put into it with gzip (RFC 1952). There is no time stamp, so that equal data
 * gives equal bytes. Order: sb_gzip_new(), sb_gzip_put() as often as needed, sb_gzip_finish(),
 * sb_gzip_free(). Not thread-safe. After -EIO the stream can only be freed. Pointers are not NULL
 * unless a function says so.
 */
#ifndef SB_OUTPUT_GZIP_H
#define SB_OUTPUT_GZIP_H

#include <stddef.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/str.h"

struct sb_gzip;

/* Make a stream that writes to @out, which is borrowed until sb_gzip_free(). Return: 0 and
 * *ret_gzip, owned by the caller; -ENOMEM, and *ret_gzip is untouched. */
int sb_gzip_new(FILE *out, struct sb_gzip **ret_gzip);
/* Compress bytes. @gzip: a struct sb_gzip *; void *, so that the function fits sb_json.put. @data:
 * may be NULL if @len is 0. Return: 0; -EIO if writing to the FILE failed. */
int sb_gzip_put(void *gzip, const void *data, size_t len);
/* Write what is buffered and the trailer, once. The FILE is not flushed.
 * Return: 0 or -EIO. */
int sb_gzip_finish(struct sb_gzip *gzip);
/* Free the stream, finished or not; NULL is allowed. */
void sb_gzip_free(struct sb_gzip *gzip);
SB_DEFINE_CLEANUP(struct sb_gzip, sb_gzip_free)
/* Compress @len bytes at @data in memory. Needs no stream. Thread: any. @ret_packed: zeroed or in
 * use; what it held is released; the result is the caller's. Return: 0; -ENOMEM, and it is
 * empty. */
int sb_gzip_pack(const void *data, size_t len, struct sb_str *ret_packed);

#endif
