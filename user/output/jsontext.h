/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes JSON (RFC 8259) with strings that others chose. The caller writes commas and brackets with
 * sb_json_raw(). Not thread-safe.
 */
#ifndef SB_OUTPUT_JSONTEXT_H
#define SB_OUTPUT_JSONTEXT_H

#include <stdint.h>
#include <stdio.h>

#include "base/str.h"
#include "tree/tree.h"

/*
 * A writer to a stream or another sink. The first error is kept, and everything after it does
 * nothing. Zero-initialize, then set @put and @arg; end with sb_json_end().
 */
struct sb_json {
	/* Return: 0 or a negative errno. */
	int (*put)(void *arg, const void *data, size_t len);
	void *arg;
	struct sb_str text; /* buffer */
	struct sb_str clean;
	int err;
};

/* An sb_json.put for a FILE. Return: 0 or -EIO. */
int sb_json_put_file(void *file, const void *data, size_t len);

/* Write text that is JSON already. */
void sb_json_raw(struct sb_json *json, const char *s);
void sb_json_u64(struct sb_json *json, uint64_t val);
void sb_json_i64(struct sb_json *json, int64_t val);
/* With six significant digits; null if it is not finite. */
void sb_json_double(struct sb_json *json, double val);
/*
 * A quoted string. Bytes that are not UTF-8 and control characters become U+FFFD, a tab a space, as
 * in pictures (sb_fg_text_clean()). "<" and what ends a line in JavaScript are escaped, so that the
 * text can be put into a <script>. NULL is null.
 */
void sb_json_string(struct sb_json *json, const char *s);
/* "key": "value" */
void sb_json_pair(struct sb_json *json, const char *key, const char *value);
/* ,"key":"value" */
void sb_json_string_pair(struct sb_json *json, const char *key, const char *value);
/* ,"key":number */
void sb_json_u64_pair(struct sb_json *json, const char *key, uint64_t val);
void sb_json_i64_pair(struct sb_json *json, const char *key, int64_t val);
void sb_json_double_pair(struct sb_json *json, const char *key, double val);
/* ,"key":[number,number] */
void sb_json_two_pair(struct sb_json *json, const char *key, const uint64_t vals[2]);
/* The same with the weights of both profiles as whole numbers. */
void sb_json_weights_pair(struct sb_json *json, const char *key, const struct sb_tree_pair *pair);

/* Write the buffer and free all memory. Return: 0 or the first error. */
int sb_json_end(struct sb_json *json);

#endif
