// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Metadata of a profile: "#stackbpf;v=1;kind=io;unit=bytes;lost=12". */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "flamegraph/fg.h"
#include "flamegraph/reader.h"
#include "kinds/view_kind.h"

/* Keys that sb_metadata_read() does not know, and the bytes of "KEY=VALUE": bounds against hostile
 * headers. */
#define NR_OTHERS_MAX  64
#define PART_BYTES_MAX 256

void sb_fg_metadata_release(struct sb_fg_metadata *metadata)
{
	sb_vec_release(&metadata->others);
	sb_arena_release(&metadata->texts);
	metadata->known = (struct sb_metadata){};
}

static bool has_files(const char *kind)
{
	const struct sb_view_kind *view = sb_view_kind_find(kind);

	return view && view->has_files;
}

int sb_fg_add_metadata(struct sb_fg *fg, const struct sb_metadata *metadata)
{
	const char *unit = fg->metadata.known.unit;
	int err;

	if (metadata->kind)
		fg->has_files = has_files(metadata->kind);
	if (unit && metadata->unit && !sb_streq(unit, metadata->unit))
		sb_fg_complain(fg, SB_FG_UNITS_DIFFER);
	err = sb_metadata_merge(&fg->metadata.known, metadata, &fg->metadata.texts);
	if (err == -ERANGE)
		sb_fg_complain(fg, SB_FG_BAD_HEADER);
	return err == -ERANGE ? 0 : err;
}

/* What is there already stays. */
static int add_other(struct sb_fg *fg, const char *key, const char *value)
{
	struct sb_fg_metadata *metadata = &fg->metadata;
	struct sb_fg_meta meta;
	size_t i;

	for (i = 0; i < metadata->others.nr; i++)
		if (sb_streq(key, metadata->others.at[i].key))
			return 0;
	if (metadata->others.nr == NR_OTHERS_MAX) {
		sb_fg_complain(fg, SB_FG_BAD_HEADER);
		return 0;
	}
	meta.key = sb_arena_strndup(&metadata->texts, key, strlen(key));
	meta.value = sb_arena_strndup(&metadata->texts, value, strlen(value));
	if (!meta.key || !meta.value)
		return -ENOMEM;
	return sb_vec_push(&metadata->others, meta);
}

static bool is_key(const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (!islower((unsigned char)s[i]) && !isdigit((unsigned char)s[i]) && s[i] != '_')
			return false;
	return len > 0;
}

static int add_part(struct sb_fg *fg, const char *part, size_t len)
{
	const char *equals = memchr(part, '=', len);
	const size_t key_len = equals ? (size_t)(equals - part) : 0;
	struct sb_metadata metadata = {};
	char key[PART_BYTES_MAX], *value = NULL;
	int err = -EINVAL;

	if (is_key(part, key_len) && len < sizeof(key)) {
		memcpy(key, part, len);
		key[key_len] = key[len] = '\0';
		value = key + key_len + 1;
		err = sb_metadata_read(&metadata, key, value);
	}
	if (err == -ENOENT)
		return add_other(fg, key, value);
	if (!err)
		return sb_fg_add_metadata(fg, &metadata);
	sb_fg_complain(fg, SB_FG_BAD_HEADER);
	return 0;
}

int sb_fg_read_header(struct sb_fg *fg, const char *line, size_t len)
{
	static const char magic[] = "#stackbpf;";
	size_t at, end;
	const char *semicolon;
	int err = 0;

	if (!sb_text_begins(line, len, magic))
		return 0; /* a comment */
	for (at = sizeof(magic) - 1; at < len && !err; at = end + 1) {
		semicolon = memchr(line + at, ';', len - at);
		end = semicolon ? (size_t)(semicolon - line) : len;
		if (end > at)
			err = add_part(fg, line + at, end - at);
	}
	return err;
}
