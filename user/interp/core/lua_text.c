// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "interp/core/lua_text.h"

#include <string.h>

/* Of a chunk that was loaded from a string, which is its own name: the first line. */
#define TEXT_BYTES_MAX 40u

static int add_text(struct sb_str *file, const struct sb_str *chunk)
{
	size_t len = strcspn(chunk->s, "\n?");
	int err;

	/* Control characters, and so ends of lines, were replaced when it was read. */
	if (len > TEXT_BYTES_MAX)
		len = TEXT_BYTES_MAX;
	err = sb_str_add(file, "[string \"");
	if (!err)
		err = sb_str_addn(file, chunk->s, len);
	return err ? err : sb_str_add(file, len < chunk->len ? "...\"]" : "\"]");
}

/* "=content_by_lua(nginx.conf:12)" says more than that it is a chunk. */
static bool is_telling(const struct sb_str *chunk)
{
	return chunk->len > 1 && chunk->s[0] == '=' && chunk->s[1] != '(' &&
	       strcmp(chunk->s, "=stdin") != 0;
}

int sb_lua_name_by_place(struct sb_str *chunk, uint32_t line, struct sb_runtime_text *text)
{
	const char *slash;
	int err;

	if (!chunk->len)
		err = sb_str_add(&text->file, "?");
	else if (chunk->s[0] == '@' || chunk->s[0] == '=')
		err = sb_str_add(&text->file, chunk->s + 1);
	else
		err = add_text(&text->file, chunk);
	if (err || text->name.len)
		return err;
	if (!line)
		return sb_str_add(&text->name, is_telling(chunk) ? chunk->s + 1 : "{main}");
	slash = chunk->len && chunk->s[0] == '@' ? strrchr(text->file.s, '/') : NULL;
	return sb_str_addf(&text->name, "%s:%u",
			   slash	    ? slash + 1
			   : text->file.len ? text->file.s
					    : "?",
			   line);
}

bool sb_lua_is_name(const struct sb_str *name)
{
	return name->len && name->s[0] != '(' && name->s[0] != '?';
}
