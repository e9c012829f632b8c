/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Compresses a stream with gzip (RFC 1952). There is no time stamp, so that equal data gives equal
 * bytes. Not thread-safe.
 */
#ifndef SB_OUTPUT_GZIP_H
#define SB_OUTPUT_GZIP_H

#include <stddef.h>
#include <stdio.h>

struct sb_gzip;

/* @out is borrowed; *@ret_gzip is owned by the caller. Return: 0 or -ENOMEM. */
int sb_gzip_new(FILE *out, struct sb_gzip **ret_gzip);
/* Compress bytes. @gzip is a struct sb_gzip *, so that it fits sb_json.put. Return: 0 or -EIO. */
int sb_gzip_put(void *gzip, const void *data, size_t len);
/* Write the rest and the trailer; call it once, at the end. Return: 0 or -EIO. */
int sb_gzip_finish(struct sb_gzip *gzip);
void sb_gzip_free(struct sb_gzip *gzip);

#endif
