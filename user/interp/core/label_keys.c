// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The part of OpenTelemetry's process context (OTEP 4719) that names the keys of labels. A mapping
 * called OTEL_CTX begins with a header, which points to a protobuf message:
 *
 *	ProcessContext { Resource resource = 1; repeated KeyValue attributes = 2; }
 *	KeyValue { string key = 1; AnyValue value = 2; }	(opentelemetry/proto/common/v1)
 *	AnyValue { string string_value = 1; ArrayValue array_value = 5; }
 *	ArrayValue { AnyValue values = 1; }
 *
 * An early version had the attributes of the resource at the top level. All of it is untrusted
 * input.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "interp/core/labels.h"
#include "symbolizer/elf/cursor.h"

#define CONTEXT_NAME "OTEL_CTX"
#define KEY_MAP	     "threadlocal.attribute_key_map"
#define PAYLOAD_MAX  (64u << 10)
/* While it is being changed, it is read again. */
#define TRIES_MAX    3
#define VERSION_MAX  2

struct header {
	char signature[8];
	uint32_t version, payload_bytes;
	uint64_t published_ns;
	uint64_t payload;
};
_Static_assert(sizeof(struct header) == 32, "as specified");

bool sb_label_is_context(const char *path, size_t len)
{
	static const char *const names[] = { "/memfd:" CONTEXT_NAME, "[anon_shmem:" CONTEXT_NAME,
					     "[anon:" CONTEXT_NAME };
	size_t i, name_len;

	for (i = 0; i < SB_ARRAY_SIZE(names); i++) {
		name_len = strlen(names[i]);
		if (len >= name_len && !memcmp(path, names[i], name_len))
			return true;
	}
	return false;
}

/* Return: whether there is a next field that has bytes. @from becomes bad where it makes no
 * sense. */
static bool next_field(struct sb_cursor *from, uint64_t *ret_number, struct sb_cursor *ret_value)
{
	uint64_t tag, len;

	while (sb_cursor_left(from)) {
		tag = sb_cursor_uleb(from);
		switch (tag & 7) {
		case 0:
			sb_cursor_uleb(from);
			break;
		case 1:
			sb_cursor_skip(from, 8);
			break;
		case 5:
			sb_cursor_skip(from, 4);
			break;
		case 2:
			len = sb_cursor_uleb(from);
			*ret_value = (struct sb_cursor){ .at = from->at };
			sb_cursor_skip(from, len);
			ret_value->end = from->at;
			*ret_number = tag >> 3;
			return !from->is_bad;
		default:
			sb_cursor_fail(from);
		}
	}
	return false;
}

/* The first field of this number. Return: whether it is there. */
static bool find_field(struct sb_cursor from, uint64_t number, struct sb_cursor *ret_value)
{
	uint64_t nr;

	while (next_field(&from, &nr, ret_value))
		if (nr == number)
			return true;
	return false;
}

static bool is_text(const struct sb_cursor *bytes, const char *text)
{
	size_t len = strlen(text);

	return sb_cursor_left(bytes) == len && !memcmp(bytes->at, text, len);
}

static uint8_t place_of(const struct sb_label_names *names, struct sb_cursor name)
{
	size_t i;

	for (i = 0; i < names->nr; i++)
		if (is_text(&name, names->at[i]))
			return (uint8_t)i;
	return names->span && is_text(&name, names->span) ? SB_LABEL_OF_SPAN : SB_LABEL_NOT_WANTED;
}

static void read_map(struct sb_cursor array, const struct sb_label_names *names,
		     struct sb_label_keys *keys)
{
	struct sb_cursor value, name;
	uint64_t number;

	keys->nr = 0;
	while (keys->nr < SB_LABEL_KEYS && next_field(&array, &number, &value)) {
		if (number != 1)
			continue;
		keys->place[keys->nr++] =
			find_field(value, 1, &name) ? place_of(names, name) : SB_LABEL_NOT_WANTED;
	}
}

/* Return: whether @attribute is the table of keys. */
static bool read_attribute(struct sb_cursor attribute, const struct sb_label_names *names,
			   struct sb_label_keys *keys)
{
	struct sb_cursor key, value, array;

	if (!find_field(attribute, 1, &key) || !is_text(&key, KEY_MAP))
		return false;
	if (!find_field(attribute, 2, &value) || !find_field(value, 5, &array))
		array = (struct sb_cursor){};
	read_map(array, names, keys);
	return true;
}

int sb_label_keys_parse(const void *payload, size_t len, const struct sb_label_names *names,
			struct sb_label_keys *ret_keys)
{
	const uint8_t *bytes = payload;
	struct sb_cursor from = { .at = bytes, .end = bytes + len }, field, inner;
	uint64_t number, inner_number;

	while (next_field(&from, &number, &field)) {
		if (number > 2)
			continue;
		if (read_attribute(field, names, ret_keys))
			return 0;
		while (number == 1 && next_field(&field, &inner_number, &inner))
			if (inner_number == 1 && read_attribute(inner, names, ret_keys))
				return 0;
	}
	return -EBADMSG;
}

static bool is_usable(const struct header *header)
{
	return !memcmp(header->signature, CONTEXT_NAME, sizeof(header->signature)) &&
	       header->version && header->version <= VERSION_MAX && header->payload_bytes &&
	       header->payload_bytes <= PAYLOAD_MAX;
}

int sb_label_keys_read(const struct sb_memory *memory, uint64_t addr,
		       const struct sb_label_names *names, struct sb_label_keys *ret_keys)
{
	sb_cleanup(sb_freep) char *payload = malloc(PAYLOAD_MAX);
	struct header header, again;
	int i, err = 0;

	if (!payload)
		return -ENOMEM;
	for (i = 0; i < TRIES_MAX; i++) {
		err = sb_memory_read(memory, &header, sizeof(header), addr);
		if (err)
			return err;
		if (!is_usable(&header))
			return -EBADMSG;
		if (!header.published_ns)
			continue;
		err = sb_memory_read(memory, payload, header.payload_bytes, header.payload);
		if (!err)
			err = sb_memory_read(memory, &again, sizeof(again), addr);
		if (!err && !memcmp(&header, &again, sizeof(header)))
			return sb_label_keys_parse(payload, header.payload_bytes, names, ret_keys);
	}
	return err ? err : -EBADMSG;
}
