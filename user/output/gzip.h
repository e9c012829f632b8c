/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A stream through gzip (RFC 1952) into another one. No time is in it: the same data gives the same bytes. */
#ifndef SB_OUTPUT_GZIP_H
#define SB_OUTPUT_GZIP_H

#include <stddef.h>
#include <stdio.h>

struct sb_gzip;

/* @out is borrowed. Return: 0 or -ENOMEM. */
int sb_gzip_new(FILE *out, struct sb_gzip **ret_gzip);
/* @gzip is a struct sb_gzip *; the signature is that of sb_json.put. Return: 0 or -EIO. */
int sb_gzip_put(void *gzip, const void *data, size_t len);
/* Write what is left. Return: 0 or -EIO. */
int sb_gzip_finish(struct sb_gzip *gzip);
void sb_gzip_free(struct sb_gzip *gzip);

#endif
