// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "output/jsontext.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/version.h"
#include "flamegraph/text.h"
#include "model/fold.h"

#define TEXT_BYTES (16u << 10) /* size of the buffer */

int sb_json_put_file(void *file, const void *data, size_t len)
{
	return fwrite(data, 1, len, file) == len ? 0 : -EIO;
}

static void put_if(struct sb_json *json, size_t bytes_max)
{
	if (json->err || json->text.len <= bytes_max)
		return;
	json->err = json->put(json->arg, json->text.s, json->text.len);
	sb_str_clear(&json->text);
}

static void add(struct sb_json *json, const char *s, size_t len)
{
	if (!json->err)
		json->err = sb_str_addn(&json->text, s, len);
}

/* The text has been cleaned: it has no control characters and no line separators (base/utf8.h). */
static void add_escaped(struct sb_json *json, const char *s, size_t len)
{
	const char *end = s + len, *from = s;

	for (; s < end; s++) {
		if (*s != '"' && *s != '\\' && *s != '<')
			continue;
		add(json, from, (size_t)(s - from));
		if (*s == '<')
			add(json, "\\u003c", 6);
		else
			add(json, (const char[]){ '\\', *s }, 2);
		from = s + 1;
	}
	add(json, from, (size_t)(end - from));
}

static void add_quoted(struct sb_json *json, const char *s)
{
	json->err = json->err ?: sb_fg_text_set(&json->clean, s);
	add(json, "\"", 1);
	if (!json->err)
		add_escaped(json, json->clean.s, json->clean.len);
	add(json, "\"", 1);
}

/* Write what stands before an element. */
static void begin(struct sb_json *json, const char *key)
{
	put_if(json, TEXT_BYTES);
	if (json->has_before)
		add(json, ",", 1);
	json->has_before = true;
	if (json->rows & 1)
		add(json, "\n", 1);
	if (key) {
		add_quoted(json, key);
		add(json, ":", 1);
	}
}

static void open_bracket(struct sb_json *json, const char *key, bool is_array, bool has_rows)
{
	begin(json, key);
	add(json, is_array ? "[" : "{", 1);
	json->arrays = json->arrays << 1 | is_array;
	json->rows = json->rows << 1 | has_rows;
	json->depth++;
	json->has_before = false;
}

void sb_json_object(struct sb_json *json, const char *key)
{
	open_bracket(json, key, false, false);
}

void sb_json_array(struct sb_json *json, const char *key)
{
	open_bracket(json, key, true, false);
}

void sb_json_rows(struct sb_json *json, const char *key)
{
	open_bracket(json, key, true, true);
}

void sb_json_close(struct sb_json *json)
{
	add(json, json->arrays & 1 ? "]" : "}", 1);
	json->arrays >>= 1;
	json->rows >>= 1;
	json->depth--;
	json->has_before = true;
}

void sb_json_literal(struct sb_json *json, const char *key, const char *value)
{
	begin(json, key);
	add(json, value, strlen(value));
}

void sb_json_bool(struct sb_json *json, const char *key, bool val)
{
	sb_json_literal(json, key, val ? "true" : "false");
}

void sb_json_u64(struct sb_json *json, const char *key, uint64_t val)
{
	begin(json, key);
	if (!json->err)
		json->err = sb_str_addu(&json->text, val);
}

void sb_json_i64(struct sb_json *json, const char *key, int64_t val)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)val);
	sb_json_literal(json, key, text);
}

void sb_json_double(struct sb_json *json, const char *key, double val)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6g", val);
	sb_json_literal(json, key, isfinite(val) ? text : "null");
}

void sb_json_string(struct sb_json *json, const char *key, const char *s)
{
	if (!s) {
		sb_json_literal(json, key, "null");
		return;
	}
	begin(json, key);
	add_quoted(json, s);
}

void sb_json_string_if(struct sb_json *json, const char *key, const char *s)
{
	if (s && *s)
		sb_json_string(json, key, s);
}

void sb_json_two(struct sb_json *json, const char *key, uint64_t a, uint64_t b)
{
	sb_json_array(json, key);
	sb_json_u64(json, NULL, a);
	sb_json_u64(json, NULL, b);
	sb_json_close(json);
}

void sb_json_two_doubles(struct sb_json *json, const char *key, double a, double b)
{
	sb_json_array(json, key);
	sb_json_double(json, NULL, a);
	sb_json_double(json, NULL, b);
	sb_json_close(json);
}

void sb_json_weights(struct sb_json *json, const char *key, const struct sb_tree_pair *pair)
{
	sb_json_two(json, key, sb_tree_whole(pair->weight[SB_TREE_A]),
		    sb_tree_whole(pair->weight[SB_TREE_B]));
}

void sb_json_meta(struct sb_json *json, const char *key, const struct sb_profile *profile)
{
	struct sb_fold_meta meta = {};

	sb_json_object(json, key);
	while (sb_fold_next_meta(profile, &meta))
		sb_json_string(json, meta.key, meta.value);
	sb_json_close(json);
}

void sb_json_generator(struct sb_json *json, const char *key)
{
	char text[64];

	snprintf(text, sizeof(text), "stackbpf %s", sb_version);
	sb_json_string(json, key, text);
}

int sb_json_end(struct sb_json *json)
{
	while (json->depth)
		sb_json_close(json);
	if (json->has_before)
		add(json, "\n", 1);
	put_if(json, 0);
	sb_str_release(&json->text);
	sb_str_release(&json->clean);
	return json->err;
}
