/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes JSON (RFC 8259) with strings that others chose. Order: a zeroed struct sb_json with `put`
 * set, one outermost object or array with what is in it, sb_json_end(). Commas, quotes and brackets
 * are placed by the writer: each call adds one element to the innermost open object or array. Texts
 * are copied at once, so that nothing is borrowed. Functions without a return value keep the first
 * error, do nothing after it, and leave it to sb_json_end() to return it. @key is NULL for an
 * element of an array and for the outermost object; it may have any bytes, and is cleaned and
 * escaped as the text of sb_json_string(). Other pointers are not NULL unless it says so. Not
 * thread-safe.
 */
#ifndef SB_OUTPUT_JSONTEXT_H
#define SB_OUTPUT_JSONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "model/profile.h"
#include "tree/tree.h"

/* Zero-initialize, then set `put` and `arg`. */
struct sb_json {
	/* Take the next bytes, which are valid during the call. Return: 0 or a negative errno. */
	int (*put)(void *arg, const void *data, size_t len);
	void *arg;
	struct sb_str text; /* buffer */
	struct sb_str clean;
	/* A bit for each open bracket, the innermost lowest. */
	uint64_t arrays, rows;
	unsigned int depth;
	bool has_before; /* a comma is due before the next element */
	int err;
};

/* An sb_json.put whose arg is a FILE *, which stays the caller's, and which it does not flush.
 * Return: 0; -EIO, and a part may have been written. */
int sb_json_put_file(void *file, const void *data, size_t len);

/* Open an object or an array, at most 64 in one another, which is not checked: what is written from
 * then on is in it. */
void sb_json_object(struct sb_json *json, const char *key);
void sb_json_array(struct sb_json *json, const char *key);
/* Open an array of which each element begins a new line. */
void sb_json_rows(struct sb_json *json, const char *key);
/* Close the innermost object or array; one has to be open. */
void sb_json_close(struct sb_json *json);

/* Write @value, which is JSON already and is not checked. */
void sb_json_literal(struct sb_json *json, const char *key, const char *value);
/* Write true or false, or a whole number. */
void sb_json_bool(struct sb_json *json, const char *key, bool val);
void sb_json_u64(struct sb_json *json, const char *key, uint64_t val);
void sb_json_i64(struct sb_json *json, const char *key, int64_t val);
/* Write a number with six significant digits; null if it is not finite. */
void sb_json_double(struct sb_json *json, const char *key, double val);
/*
 * Write a quoted string. Bytes that are not UTF-8 and control characters become U+FFFD, a tab a
 * space, as in pictures (sb_fg_text_clean()). "<" and what ends a line in JavaScript are escaped,
 * so that the text can be put into a <script>. NULL is null.
 */
void sb_json_string(struct sb_json *json, const char *key, const char *s);
/* Write a string as sb_json_string() does; nothing, not even the key, if it is NULL or "". */
void sb_json_string_if(struct sb_json *json, const char *key, const char *s);

/* Write an array of two numbers. sb_json_two() writes both as sb_json_u64() does,
 * sb_json_two_doubles() both as sb_json_double() does. */
void sb_json_two(struct sb_json *json, const char *key, uint64_t a, uint64_t b);
void sb_json_two_doubles(struct sb_json *json, const char *key, double a, double b);
/* Write the weights of @pair in profiles A and B as an array of two numbers, rounded to whole. */
void sb_json_weights(struct sb_json *json, const char *key, const struct sb_tree_pair *pair);
/* Write a profile's metadata as an object. */
void sb_json_meta(struct sb_json *json, const char *key, const struct sb_profile *profile);
/* Write the name and version of this program as a string. */
void sb_json_generator(struct sb_json *json, const char *key);

/*
 * Close what is open, end the line if anything was written, pass what is buffered to @put, and free
 * all memory, also after an error. It is not to be used afterwards. Return: 0; or the first error
 * since the beginning: -ENOMEM, or what @put returned.
 */
int sb_json_end(struct sb_json *json);

#endif
