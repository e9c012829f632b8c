// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Code objects and strings: Include/cpython/code.h, Include/cpython/unicodeobject.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "interp/python/python_priv.h"

/* In characters. Names are short, paths may be not. */
#define TEXT_MAX	4096u
/* Of a module with a million lines. */
#define TABLE_BYTES_MAX (4u << 20)

static int add_utf8(struct sb_str *str, uint32_t c)
{
	char s[4];
	size_t len;

	if (c < 0x80) {
		s[0] = (char)c;
		sb_replace_controls(s, 1);
		return sb_str_addn(str, s, 1);
	}
	if (c < 0xa0 || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		return sb_str_addc(str, '?'); /* a control character; half of a pair; none */
	len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = len - 1; i; i--, c >>= 6)
		s[i] = (char)(0x80 | (c & 63));
	s[0] = (char)((0xf00u >> len & 0xf0) | c);
	return sb_str_addn(str, s, len);
}

/* @width bytes for each character. */
static int add_wide(const struct sb_memory *memory, uint64_t addr, size_t len, size_t width,
		    struct sb_str *str)
{
	uint8_t piece[256];
	int err = 0;

	while (len && !err) {
		size_t nr = len < sizeof(piece) / width ? len : sizeof(piece) / width;

		err = sb_memory_read(memory, piece, nr * width, addr);
		for (size_t i = 0; i < nr && !err; i++) {
			uint32_t c = 0;

			memcpy(&c, piece + i * width, width);
			err = add_utf8(str, c);
		}
		addr += nr * width;
		len -= nr;
	}
	return err;
}

/* Append the str object at @addr as UTF-8. */
static int add_text(const struct sb_memory *memory, const struct sb_python_layout *layout,
		    uint64_t addr, struct sb_str *str)
{
	uint64_t len, data;
	uint32_t state, kind;
	int err = sb_memory_u64(memory, addr + layout->text_length, &len);

	if (err)
		return err;
	if (!len || len > TEXT_MAX)
		return -EBADMSG;
	if (layout->version < SB_PYTHON(3, 0))
		return sb_memory_text(memory, addr + layout->text_ascii, len, TEXT_MAX, str);
	err = sb_memory_u32(memory, addr + layout->text_state, &state);
	if (err)
		return err;
	state >>= layout->text_kind_shift; /* kind: 3 bits; is_compact, is_ascii */
	kind = state & 7;
	if ((kind != 1 && kind != 2 && kind != 4) || !(state & 8))
		return -EBADMSG;
	data = addr + (state & 16 ? layout->text_ascii : layout->text_compact);
	return add_wide(memory, data, len, kind, str);
}

/* @table_at: the line table of the code object at @addr. */
static int add_line(const struct sb_memory *memory, const struct sb_python_layout *layout,
		    uint64_t addr, uint64_t table_at, uint64_t position, uint32_t *ret_line)
{
	sb_cleanup(sb_freep) uint8_t *table = NULL;
	uint64_t len;
	uint32_t first_line;
	int err = sb_memory_u32(memory, addr + layout->first_line, &first_line);

	if (!err)
		err = sb_memory_u64(memory, table_at + layout->bytes_length, &len);
	if (err)
		return err;
	if (len > TABLE_BYTES_MAX)
		return -EBADMSG;
	table = malloc(len + 1);
	if (!table)
		return -ENOMEM;
	err = len ? sb_memory_read(memory, table, len, table_at + layout->bytes_data) : 0;
	if (err)
		return err;
	*ret_line = sb_python_line(layout->version, table, len, first_line, position);
	return 0;
}

/* A type is what it is by its address. A program that was linked to a library at a fixed address
 * may have its own copy of the type: then by its name. */
static int check_type(const struct sb_memory *memory, const struct sb_python_layout *layout,
		      uint64_t addr)
{
	uint64_t type, name_at;
	char name[5];
	int err = sb_memory_u64(memory, addr + layout->type, &type);

	if (err || type == layout->code_type)
		return err;
	err = sb_memory_u64(memory, type + layout->type_name, &name_at);
	if (!err)
		err = sb_memory_read(memory, name, sizeof(name), name_at);
	return err ? err : memcmp(name, "code", sizeof(name)) ? -EBADMSG : 0;
}

int sb_python_code(const struct sb_memory *memory, const struct sb_python_layout *layout,
		   const struct sb_interp_frame *frame, struct sb_runtime_text *text)
{
	uint64_t addr = frame->obj, name, table;
	uint64_t name_at = addr + (layout->qualname ? layout->qualname : layout->name);
	uint64_t words[3]; /* file, name, qualname */
	uint64_t check = sb_where_check(frame->where);
	int err;

	/* A code object may lie on two pages. */
	sb_memory_want(memory, addr);
	sb_memory_want(memory, addr + layout->line_table);
	sb_memory_want_target(memory, name_at);
	sb_memory_want_target(memory, addr + layout->name - 8u);
	sb_memory_want_target(memory, addr + layout->line_table);
	err = check_type(memory, layout, addr);
	if (!err)
		err = sb_memory_read(memory, words, sizeof(words), addr + layout->name - 8u);
	/* Another object may have been made at the address. 0: the kernel could not read these
	 * words, because their page was not in memory. */
	if (!err && check && sb_python_check(words[0], words[1], words[2]) != check)
		err = -EBADMSG;
	if (!err)
		err = sb_memory_u64(memory, name_at, &name);
	if (!err)
		err = sb_memory_u64(memory, addr + layout->line_table, &table);
	if (err)
		return err;
	sb_memory_want(memory, name);
	sb_memory_want(memory, words[0]);
	sb_memory_want(memory, table);
	err = add_text(memory, layout, name, &text->name);
	if (!err) {
		err = add_text(memory, layout, words[0], &text->file);
		/* compile() takes an empty file name. */
		if (err && err != -ENOMEM) {
			sb_str_clear(&text->file);
			err = 0;
		}
	}
	if (!err)
		err = add_line(memory, layout, addr, table, sb_where_position(frame->where),
			       &text->line);
	return err;
}
