// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Objects of V8: strings, functions, scripts. Sources: V8's src/objects/string.h, instance-type.h,
 * shared-function-info.tq, scope-info.tq, script.tq.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "interp/v8/v8_priv.h"

#include "bpf/step/sb_step_v8.h"

/* Instance types of strings: representation and encoding. */
#define STRING_REPRESENTATION 7
#define STRING_ONE_BYTE	      8
#define STRING_UNCACHED	      16
enum { STRING_SEQ = 0, STRING_CONS = 1, STRING_EXTERNAL = 2, STRING_SLICED = 3, STRING_THIN = 5 };

/* What is kept of a name; how deep strings may be made of strings. */
#define NAME_CHARS_MAX		 1024u
#define STRING_DEPTH_MAX	 12
/* A source beyond has no lines. */
#define SOURCE_BYTES_MAX	 (64u << 20)
#define CHUNK_BYTES		 (64u << 10)

/* Bits of ScopeInfo.flags: src/objects/scope-info.tq. */
#define SCOPE_HAS_SAVED_CLASS	 (1u << 10)
#define SCOPE_FUNCTION_VARIABLE	 (3u << 12)
#define SCOPE_HAS_INFERRED_NAME	 (1u << 14)
#define SCOPE_INLINED_LOCALS_MAX 75

int sb_v8_word(const struct sb_v8 *v8, uint64_t addr, uint64_t *ret)
{
	return sb_memory_u64(v8->memory, addr, ret) ? -EFAULT : 0;
}

int sb_v8_pointer(const struct sb_v8 *v8, uint64_t addr, uint64_t *ret_object)
{
	uint64_t word;

	if (sb_v8_word(v8, addr, &word))
		return -EFAULT;
	if (!sb_v8_is_ptr(word))
		return -EBADMSG;
	*ret_object = word - SB_V8_TAG;
	return 0;
}

int sb_v8_smi_at(const struct sb_v8 *v8, uint64_t addr, int32_t *ret)
{
	uint64_t word;

	if (sb_v8_word(v8, addr, &word))
		return -EFAULT;
	if (!sb_v8_is_smi(word))
		return -EBADMSG;
	*ret = sb_v8_smi(word);
	return 0;
}

int32_t sb_v8_type_of(const struct sb_v8 *v8, uint64_t object)
{
	uint64_t map;
	uint16_t type;

	if (sb_v8_pointer(v8, object, &map) ||
	    sb_memory_u16(v8->memory, map + (uint64_t)v8->at.map_type, &type))
		return -1;
	return type;
}

bool sb_v8_is_map_of(const struct sb_v8 *v8, uint64_t object)
{
	uint64_t map, meta;

	/* The map of maps is its own. */
	return !sb_v8_pointer(v8, object, &map) && !sb_v8_pointer(v8, map, &meta) &&
	       sb_v8_type_of(v8, map) == v8->at.type_map &&
	       sb_v8_type_of(v8, meta) == v8->at.type_map;
}

/* Where the characters of a string are, after looking through strings that stand for others. */
struct text {
	uint64_t addr;
	uint32_t length; /* characters */
	bool is_one_byte;
};

struct part {
	uint64_t object;
	uint32_t from, length; /* length of all of it: UINT32_MAX */
	int32_t type;
};

/* Follow sliced and thin strings, as long as there are; @part becomes what they stand for. */
static int look_through(const struct sb_v8 *v8, struct part *part)
{
	const struct sb_v8_layout *at = &v8->at;
	uint32_t length;
	int32_t from;
	int i, err;

	for (i = 0; i < STRING_DEPTH_MAX; i++) {
		part->type = sb_v8_type_of(v8, part->object);
		if (part->type < 0)
			return -EFAULT;
		if (part->type >= at->type_nonstring)
			return -EBADMSG;
		if (sb_memory_u32(v8->memory, part->object + (uint64_t)at->string_length, &length))
			return -EFAULT;
		if (part->length == UINT32_MAX)
			part->length = length;
		if (part->from > length || part->length > length - part->from)
			return -EBADMSG;
		switch (part->type & STRING_REPRESENTATION) {
		case STRING_THIN:
			err = sb_v8_pointer(v8, part->object + (uint64_t)at->thin_actual,
					    &part->object);
			break;
		case STRING_SLICED:
			err = sb_v8_smi_at(v8, part->object + (uint64_t)at->sliced_offset, &from);
			if (!err && (from < 0 || part->from > (uint32_t)INT32_MAX - (uint32_t)from))
				err = -EBADMSG;
			if (err)
				return err;
			part->from += (uint32_t)from;
			err = sb_v8_pointer(v8, part->object + (uint64_t)at->sliced_parent,
					    &part->object);
			break;
		default:
			return 0;
		}
		if (err)
			return err;
	}
	return -EBADMSG;
}

/* Of a string that is not made of others. Return: 0, -EFAULT, -EBADMSG. */
static int text_of(const struct sb_v8 *v8, const struct part *part, struct text *ret)
{
	const struct sb_v8_layout *at = &v8->at;
	int representation = part->type & STRING_REPRESENTATION;
	struct text text = { .length = part->length, .is_one_byte = part->type & STRING_ONE_BYTE };

	if (representation == STRING_SEQ) {
		text.addr = part->object + (uint64_t)at->seq_chars;
	} else if (representation == STRING_EXTERNAL && !(part->type & STRING_UNCACHED)) {
		/* ExternalString::resource_data, behind the resource. */
		if (sb_v8_word(v8, part->object + (uint64_t)at->external_resource + 8, &text.addr))
			return -EFAULT;
	} else {
		return -EBADMSG;
	}
	text.addr += (uint64_t)part->from << !text.is_one_byte;
	*ret = text;
	return 0;
}

static int add_char(struct sb_str *str, uint32_t c)
{
	char utf8[4];

	if (c < 0x20 || c == 0x7f || (c >= 0xd800 && c < 0xe000))
		return sb_str_addc(str, '?');
	if (c < 0x80)
		return sb_str_addc(str, (char)c);
	if (c < 0x800) {
		utf8[0] = (char)(0xc0 | c >> 6);
		utf8[1] = (char)(0x80 | (c & 63));
		return sb_str_addn(str, utf8, 2);
	}
	utf8[0] = (char)(0xe0 | c >> 12);
	utf8[1] = (char)(0x80 | (c >> 6 & 63));
	utf8[2] = (char)(0x80 | (c & 63));
	return sb_str_addn(str, utf8, 3);
}

static int add_text(const struct sb_v8 *v8, const struct text *text, struct sb_str *str)
{
	uint8_t bytes[2 * NAME_CHARS_MAX];
	uint32_t nr = text->length < NAME_CHARS_MAX ? text->length : NAME_CHARS_MAX, i, c;
	int err;

	if (sb_memory_read(v8->memory, bytes, (size_t)nr << !text->is_one_byte, text->addr))
		return -EFAULT;
	for (i = 0; i < nr; i++) {
		c = text->is_one_byte ? bytes[i] : bytes[2 * i] | (uint32_t)bytes[2 * i + 1] << 8;
		err = add_char(str, c);
		if (err)
			return err;
	}
	return nr < text->length ? sb_str_add(str, "...") : 0;
}

static int add_part(const struct sb_v8 *v8, struct part part, struct sb_str *str, int depth)
{
	const struct sb_v8_layout *at = &v8->at;
	struct part first = { .length = UINT32_MAX }, second = { .length = UINT32_MAX };
	struct text text;
	int err = look_through(v8, &part);

	if (err)
		return err;
	if ((part.type & STRING_REPRESENTATION) != STRING_CONS) {
		err = text_of(v8, &part, &text);
		return err ? err : add_text(v8, &text, str);
	}
	if (!depth || str->len >= NAME_CHARS_MAX)
		return sb_str_add(str, "...");
	err = sb_v8_pointer(v8, part.object + (uint64_t)at->cons_first, &first.object);
	if (!err)
		err = sb_v8_pointer(v8, part.object + (uint64_t)at->cons_second, &second.object);
	if (!err)
		err = add_part(v8, first, str, depth - 1);
	return err ? err : add_part(v8, second, str, depth - 1);
}

int sb_v8_string(const struct sb_v8 *v8, uint64_t object, struct sb_str *str)
{
	struct part part = { .object = object, .length = UINT32_MAX };

	return add_part(v8, part, str, STRING_DEPTH_MAX);
}

/* What a ScopeInfo says of its function. Addresses of words; 0: it does not. */
struct scope {
	uint64_t name, inferred, start;
};

static bool is_smi_at(const struct sb_v8 *v8, uint64_t addr)
{
	int32_t value;

	return !sb_v8_smi_at(v8, addr, &value);
}

static int read_scope(const struct sb_v8 *v8, uint64_t info, struct scope *ret)
{
	const struct sb_v8_layout *at = &v8->at;
	uint64_t word, slot = info + 8 + 8 * (uint64_t)at->scope_first;
	struct scope scope = {};
	uint32_t flags;
	int32_t nr;
	int err;

	if (sb_v8_word(v8, info + 8, &word))
		return -EFAULT;
	/* A small integer, or (V8 13) a plain one. */
	flags = (uint32_t)(sb_v8_is_smi(word) ? word >> 32 : word);
	err = sb_v8_smi_at(v8, info + 8 + 8 * (uint64_t)at->scope_locals, &nr);
	if (err)
		return err;
	if (nr < 0 || nr > 1 << 20)
		return -EBADMSG;
	/* Places come before the locals since V8 13. */
	if (at->scope_first >= 5)
		scope.start = slot - 16;
	/* A module's scope has the number of its variables there. */
	if ((nr || flags & SCOPE_FUNCTION_VARIABLE) && is_smi_at(v8, slot))
		slot += 8;
	slot += 8 * (uint64_t)(nr < SCOPE_INLINED_LOCALS_MAX ? nr : 1) + 8 * (uint64_t)nr;
	if (flags & SCOPE_HAS_SAVED_CLASS)
		slot += 8;
	if (flags & SCOPE_FUNCTION_VARIABLE) {
		scope.name = slot;
		slot += 16;
	}
	if (flags & SCOPE_HAS_INFERRED_NAME) {
		scope.inferred = slot;
		slot += 8;
	}
	if (!scope.start)
		scope.start = slot;
	*ret = scope;
	return 0;
}

/* A string at @addr; nothing when there is none. */
static int add_string_at(const struct sb_v8 *v8, uint64_t addr, struct sb_str *str)
{
	uint64_t object;
	int err;

	if (!addr)
		return 0;
	err = sb_v8_pointer(v8, addr, &object);
	if (!err)
		err = sb_v8_string(v8, object, str);
	return err == -EBADMSG ? 0 : err;
}

int sb_v8_function_name(const struct sb_v8 *v8, uint64_t shared, struct sb_str *name)
{
	struct scope scope = { .name = shared + (uint64_t)v8->at.shared_name };
	uint64_t object;
	int err;

	if (sb_v8_type_of(v8, shared) != v8->at.type_shared)
		return -EBADMSG;
	if (!sb_v8_pointer(v8, scope.name, &object) &&
	    sb_v8_type_of(v8, object) == v8->at.type_scope_info) {
		err = read_scope(v8, object, &scope);
		if (err)
			return err;
	}
	err = add_string_at(v8, scope.name, name);
	if (!err && !name->len)
		err = add_string_at(v8, scope.inferred, name);
	if (!err && !name->len)
		err = sb_str_add(name, "(anonymous)");
	return err;
}

int64_t sb_v8_function_start(const struct sb_v8 *v8, uint64_t shared)
{
	struct scope scope;
	uint64_t object;
	int32_t start;

	if (sb_v8_pointer(v8, shared + (uint64_t)v8->at.shared_name, &object) ||
	    sb_v8_type_of(v8, object) != v8->at.type_scope_info || read_scope(v8, object, &scope) ||
	    sb_v8_smi_at(v8, scope.start, &start))
		return -1;
	return start;
}

static int script_of(const struct sb_v8 *v8, uint64_t shared, uint64_t *ret_script)
{
	const struct sb_v8_layout *at = &v8->at;
	uint64_t object;
	int err = sb_v8_pointer(v8, shared + (uint64_t)at->shared_script, &object);

	/* A DebugInfo stands before the script while a debugger is attached; its second field is
	 * the function, the fourth the script. */
	if (!err && sb_v8_type_of(v8, object) != at->type_script)
		err = -EBADMSG;
	if (err)
		return err;
	*ret_script = object;
	return 0;
}

int sb_v8_function_file(const struct sb_v8 *v8, uint64_t shared, struct sb_str *file)
{
	uint64_t script;

	if (script_of(v8, shared, &script))
		return 0;
	return add_string_at(v8, script + (uint64_t)v8->at.script_name, file);
}

static int note_lines(const uint8_t *bytes, size_t len, const struct text *text, uint32_t from,
		      struct sb_v8_lines *lines)
{
	size_t step = text->is_one_byte ? 1 : 2, i;
	uint32_t c, next = 0;
	int err;

	for (i = 0; i + step <= len; i += step) {
		c = text->is_one_byte ? bytes[i] : bytes[i] | (uint32_t)bytes[i + 1] << 8;
		if (i + 2 * step <= len)
			next = text->is_one_byte ? bytes[i + 1]
						 : bytes[i + 2] | (uint32_t)bytes[i + 3] << 8;
		if (c != '\n' && c != 0x2028 && c != 0x2029 && !(c == '\r' && next != '\n'))
			continue;
		err = sb_vec_push(&lines->ends, from + (uint32_t)(i / step));
		if (err)
			return err;
	}
	return 0;
}

static int read_lines(const struct sb_v8 *v8, const struct text *text, struct sb_v8_lines *lines)
{
	size_t len = (size_t)text->length << !text->is_one_byte, at, n;
	uint8_t *chunk;
	int err = 0;

	if (len > SOURCE_BYTES_MAX)
		return -EFBIG;
	chunk = malloc(CHUNK_BYTES);
	if (!chunk)
		return -ENOMEM;
	for (at = 0; at < len && !err; at += n) {
		n = len - at < CHUNK_BYTES ? len - at : CHUNK_BYTES;
		if (sb_memory_read(v8->memory, chunk, n, text->addr + at))
			err = -EFAULT;
		else
			err = note_lines(chunk, n, text, (uint32_t)(at >> !text->is_one_byte),
					 lines);
	}
	free(chunk);
	return err;
}

/* Where the lines of a script end: read once for each source. NULL: unreadable. */
static const struct sb_v8_lines *lines_of(struct sb_v8 *v8, uint64_t script)
{
	struct part part = { .length = UINT32_MAX };
	struct sb_v8_lines *lines;
	struct text text;
	size_t i;

	if (sb_v8_pointer(v8, script + (uint64_t)v8->at.script_source, &part.object) ||
	    look_through(v8, &part) || text_of(v8, &part, &text))
		return NULL;
	for (i = 0; i < SB_V8_LINES_MAX; i++)
		if (v8->lines[i].source == text.addr && v8->lines[i].length == text.length)
			return &v8->lines[i];
	lines = &v8->lines[v8->next_lines++ % SB_V8_LINES_MAX];
	lines->ends.nr = 0;
	lines->source = 0;
	if (read_lines(v8, &text, lines))
		return NULL;
	lines->source = text.addr;
	lines->length = text.length;
	return lines;
}

uint32_t sb_v8_function_line(struct sb_v8 *v8, uint64_t shared, int64_t at)
{
	const struct sb_v8_lines *lines;
	size_t nr_before;
	uint64_t script;
	int32_t first = 0;

	if (at < 0 || script_of(v8, shared, &script))
		return 0;
	lines = lines_of(v8, script);
	if (!lines)
		return 0;
	nr_before = sb_bisect(lines->ends.nr, i, lines->ends.at[i] < at);
	/* Script.line_offset, for sources that are part of a file. */
	if (sb_v8_smi_at(v8, script + (uint64_t)v8->at.script_name + 8, &first) || first < 0)
		first = 0;
	return (uint32_t)nr_before + 1 + (uint32_t)first;
}

int sb_v8_function_bytecode(const struct sb_v8 *v8, uint64_t shared, uint64_t *ret_bytecode)
{
	const struct sb_v8_layout *at = &v8->at;
	uint64_t object = shared;
	int32_t type;
	int i, err;

	/* Behind it stand what was made of it: Code, InterpreterData, BaselineData. */
	err = sb_v8_pointer(v8, shared + 8, &object);
	for (i = 0; i < 3 && !err; i++) {
		type = sb_v8_type_of(v8, object);
		if (type == at->type_bytecode) {
			*ret_bytecode = object;
			return 0;
		}
		if (type == at->type_code)
			err = sb_v8_pointer(v8, object + (uint64_t)at->code_deopt, &object);
		else if (type >= 0 && type == at->type_interpreter_data)
			err = sb_v8_pointer(v8, object + 8, &object);
		else if (type >= 0 && type == at->type_baseline_data)
			err = sb_v8_pointer(v8, object + 16, &object);
		else
			err = -EBADMSG;
	}
	return err ? err : -EBADMSG;
}

void sb_v8_release(struct sb_v8 *v8)
{
	size_t i;

	for (i = 0; i < SB_V8_LINES_MAX; i++)
		sb_vec_release(&v8->lines[i].ends);
}
