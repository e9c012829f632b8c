// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "output/jsontext.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "flamegraph/text.h"

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

void sb_json_raw(struct sb_json *json, const char *s)
{
	if (!json->err)
		json->err = sb_str_add(&json->text, s);
	put_if(json, TEXT_BYTES);
}

void sb_json_u64(struct sb_json *json, uint64_t val)
{
	if (!json->err)
		json->err = sb_str_addu(&json->text, val);
	put_if(json, TEXT_BYTES);
}

/* The text has been cleaned: it has no control characters and no line separators (base/utf8.h). */
static int add_escaped(struct sb_str *to, const char *s, size_t len)
{
	const char *end = s + len, *from = s;
	int err = 0;

	for (; s < end && !err; s++) {
		if (*s != '"' && *s != '\\' && *s != '<')
			continue;
		err = sb_str_addn(to, from, (size_t)(s - from));
		if (!err && *s == '<')
			err = sb_str_add(to, "\\u003c");
		else if (!err)
			err = sb_str_addf(to, "\\%c", *s);
		from = s + 1;
	}
	return err ? err : sb_str_addn(to, from, (size_t)(end - from));
}

void sb_json_string(struct sb_json *json, const char *s)
{
	long nr_bad;

	if (!s) {
		sb_json_raw(json, "null");
		return;
	}
	sb_str_clear(&json->clean);
	nr_bad = sb_fg_text_clean(&json->clean, s, strlen(s));
	if (nr_bad < 0 && !json->err)
		json->err = (int)nr_bad;
	sb_json_raw(json, "\"");
	if (!json->err && json->clean.len)
		json->err = add_escaped(&json->text, json->clean.s, json->clean.len);
	sb_json_raw(json, "\"");
}

void sb_json_pair(struct sb_json *json, const char *key, const char *value)
{
	sb_json_string(json, key);
	sb_json_raw(json, ":");
	sb_json_string(json, value);
}

void sb_json_i64(struct sb_json *json, int64_t val)
{
	if (val < 0)
		sb_json_raw(json, "-");
	sb_json_u64(json, val < 0 ? 0 - (uint64_t)val : (uint64_t)val);
}

void sb_json_double(struct sb_json *json, double val)
{
	char text[32];

	if (!isfinite(val)) {
		sb_json_raw(json, "null");
		return;
	}
	snprintf(text, sizeof(text), "%.6g", val);
	sb_json_raw(json, text);
}

static void put_key(struct sb_json *json, const char *key)
{
	sb_json_raw(json, ",");
	sb_json_string(json, key);
	sb_json_raw(json, ":");
}

void sb_json_string_pair(struct sb_json *json, const char *key, const char *value)
{
	sb_json_raw(json, ",");
	sb_json_pair(json, key, value);
}

void sb_json_u64_pair(struct sb_json *json, const char *key, uint64_t val)
{
	put_key(json, key);
	sb_json_u64(json, val);
}

void sb_json_i64_pair(struct sb_json *json, const char *key, int64_t val)
{
	put_key(json, key);
	sb_json_i64(json, val);
}

void sb_json_double_pair(struct sb_json *json, const char *key, double val)
{
	put_key(json, key);
	sb_json_double(json, val);
}

void sb_json_two_pair(struct sb_json *json, const char *key, const uint64_t vals[2])
{
	put_key(json, key);
	sb_json_raw(json, "[");
	sb_json_u64(json, vals[0]);
	sb_json_raw(json, ",");
	sb_json_u64(json, vals[1]);
	sb_json_raw(json, "]");
}

void sb_json_weights_pair(struct sb_json *json, const char *key, const struct sb_tree_pair *pair)
{
	const uint64_t vals[SB_TREE_NR] = { sb_tree_whole(pair->weight[SB_TREE_A]),
					    sb_tree_whole(pair->weight[SB_TREE_B]) };

	sb_json_two_pair(json, key, vals);
}

int sb_json_end(struct sb_json *json)
{
	put_if(json, 0);
	sb_str_release(&json->text);
	sb_str_release(&json->clean);
	return json->err;
}
