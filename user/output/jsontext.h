/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* JSON (RFC 8259) of text that others chose. Commas and brackets are the caller's, by fputs(). */
#ifndef SB_OUTPUT_JSONTEXT_H
#define SB_OUTPUT_JSONTEXT_H

#include <stdint.h>
#include <stdio.h>

#include "base/str.h"

/*
 * Writes to a stream, or to a sink of bytes. The first error sticks and makes what follows do nothing.
 * Zero-initialize but for @put and @arg; release.
 */
struct sb_json {
	/* Return: 0 or a negative errno. */
	int (*put)(void *arg, const void *data, size_t len);
	void *arg;
	struct sb_str text; /* not yet put */
	struct sb_str clean;
	int err;
};

/* sb_json.put for a FILE. Its errors are left in it. */
int sb_json_put_file(void *file, const void *data, size_t len);

/* What is JSON already. */
void sb_json_raw(struct sb_json *json, const char *s);
void sb_json_u64(struct sb_json *json, uint64_t val);
void sb_json_i64(struct sb_json *json, int64_t val);
/* With six digits; what is no number is null. */
void sb_json_double(struct sb_json *json, double val);
/*
 * A string, quoted. A byte that is not UTF-8 and a control character become U+FFFD, a tab a space: as
 * sb_fg_text_clean() does it for the picture. "<" and what ends lines in JavaScript are written as
 * \u003c and so on, so that the text can stand in a <script>. NULL: null.
 */
void sb_json_string(struct sb_json *json, const char *s);
/* "key": "value" */
void sb_json_pair(struct sb_json *json, const char *key, const char *value);
/* ,"key":number */
void sb_json_u64_pair(struct sb_json *json, const char *key, uint64_t val);
void sb_json_i64_pair(struct sb_json *json, const char *key, int64_t val);
void sb_json_double_pair(struct sb_json *json, const char *key, double val);
/* ,"key":[number,number] */
void sb_json_two_pair(struct sb_json *json, const char *key, const uint64_t vals[2]);

/* Put what is left and forget all memory. Return: 0 or the first error. */
int sb_json_end(struct sb_json *json);

#endif
