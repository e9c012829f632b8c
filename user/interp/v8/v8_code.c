// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Generated code of V8. Code objects lie one behind the other in executable memory. To find the one
 * that holds an address, memory is searched backwards for the start of an object: its first word is
 * the map that all code objects share, and the Code object that belongs to it proves it. Sources:
 * V8's src/objects/code.h, instruction-stream.h, src/codegen/source-position-table.h,
 * source-position.h, src/baseline/bytecode-offset-iterator.h, src/objects/deoptimization-data.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "interp/v8/v8_priv.h"
#include "symbolizer/elf/cursor.h"

#include "bpf/step/sb_step_v8.h"

/* Instructions begin at multiples of this, at least. */
#define CODE_ALIGNMENT	32u
/* How far back a piece of code may begin; a function of this size is not optimised. */
#define CODE_BYTES_MAX	(1u << 20)
#define CHUNK_BYTES	(16u << 10)
#define TABLE_BYTES_MAX (1u << 20)
#define KIND_MASK	15u
#define INLINED_MAX	65535

/*
 * Copy an array of bytes, which begin at @data in it. Return: whether it was read; the caller frees
 * *@ret_bytes then.
 */
static bool load_bytes(const struct sb_v8 *v8, uint64_t array, int32_t data, uint8_t **ret_bytes,
		       struct sb_cursor *ret_cur)
{
	sb_cleanup(sb_freep) uint8_t *bytes = NULL;
	int32_t len;

	if (sb_v8_smi_at(v8, array + (uint64_t)v8->at.array_length, &len) || len <= 0 ||
	    len > (int32_t)TABLE_BYTES_MAX)
		return false;
	bytes = malloc((size_t)len);
	if (!bytes || sb_memory_read(v8->memory, bytes, (size_t)len, array + (uint64_t)data))
		return false;
	*ret_cur = (struct sb_cursor){ .at = bytes, .end = bytes + len };
	*ret_bytes = sb_take(bytes);
	return true;
}

/* A number whose sign is the lowest bit. At the end @cur becomes bad. */
static int64_t next_signed(struct sb_cursor *cur)
{
	uint64_t value = sb_cursor_uleb(cur);

	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

/* SourcePosition: is_external 1 bit, script offset 30, inlining 16; both are one more. */
static struct sb_v8_place place_of(uint64_t position)
{
	struct sb_v8_place place = { .offset = -1 };

	if (!(position & 1))
		place.offset = (int64_t)(position >> 1 & 0x3fffffff) - 1;
	place.inlined = (int32_t)(position >> 31 & 0xffff) - 1;
	return place;
}

int sb_v8_position(const struct sb_v8 *v8, uint64_t table, int64_t at, struct sb_v8_place *ret)
{
	sb_cleanup(sb_freep) uint8_t *bytes = NULL;
	struct sb_cursor cur;
	int64_t code = -1, delta, further; /* kFunctionEntryBytecodeOffset */
	uint64_t position = 0, here = 0;
	bool is_found = false;

	if (!load_bytes(v8, table, v8->at.array_data, &bytes, &cur))
		return -ENODATA;
	for (;;) {
		delta = next_signed(&cur);
		further = next_signed(&cur);
		if (cur.is_bad)
			break;
		/* Whether it is a statement is in the sign. */
		code = (int64_t)((uint64_t)code + (uint64_t)(delta >= 0 ? delta : -(delta + 1)));
		if (code > at)
			break;
		here += (uint64_t)further;
		position = here;
		is_found = true;
	}
	if (!is_found)
		return -ENODATA;
	*ret = place_of(position);
	return 0;
}

static uint64_t header_bytes(const struct sb_v8_layout *at)
{
	return (uint64_t)(at->has_streams ? at->stream_start : at->code_start);
}

/* Read what is to be known of the code object that begins at @object. */
static int read_code(const struct sb_v8 *v8, uint64_t object, struct sb_v8_code *ret)
{
	const struct sb_v8_layout *at = &v8->at;
	struct sb_v8_code code = { .object = object, .begin = object + header_bytes(at) };
	uint64_t info = object, begin, array;
	uint32_t size, flags;

	if (sb_memory_read(v8->memory, code.head, sizeof(code.head), object))
		return -EFAULT;
	if (at->has_streams && sb_v8_pointer(v8, object + 8, &info))
		return -EBADMSG;
	if (sb_v8_type_of(v8, info) != at->type_code)
		return -EBADMSG;
	if (at->has_streams &&
	    (sb_v8_word(v8, info + (uint64_t)at->code_start, &begin) || begin != code.begin))
		return -EBADMSG;
	if (sb_memory_u32(v8->memory, info + (uint64_t)at->code_size, &size) ||
	    sb_memory_u32(v8->memory, info + (uint64_t)at->code_flags, &flags))
		return -EFAULT;
	if (size > CODE_BYTES_MAX)
		return -EBADMSG;
	code.end = code.begin + size;
	code.is_baseline = (flags & KIND_MASK) == (uint32_t)at->kind_baseline;
	if (sb_v8_pointer(v8, info + (uint64_t)at->code_positions, &code.positions))
		code.positions = 0;
	if ((flags & KIND_MASK) > (uint32_t)at->kind_baseline &&
	    !sb_v8_pointer(v8, info + (uint64_t)at->code_deopt, &array)) {
		code.deopt = array + (uint64_t)at->array_data;
		if (sb_v8_pointer(v8, code.deopt + 8 * (uint64_t)at->deopt_shared, &code.shared))
			code.shared = 0;
		if (code.shared && sb_v8_type_of(v8, code.shared) == at->type_shared_wrapper &&
		    sb_v8_pointer(v8, code.shared + (uint64_t)at->wrapper_shared, &code.shared))
			code.shared = 0;
	}
	*ret = code;
	return 0;
}

static bool is_code_map(struct sb_v8 *v8, uint64_t word)
{
	int32_t type = v8->at.has_streams ? v8->at.type_instructions : v8->at.type_code;
	uint16_t found;

	if (v8->code_map)
		return word == v8->code_map;
	if (!sb_v8_is_ptr(word) || word >> SB_USER_ADDR_BITS || word < 4096)
		return false;
	return !sb_memory_u16(v8->memory, word - SB_V8_TAG + (uint64_t)v8->at.map_type, &found) &&
	       found == type;
}

/* Look at @nr words from @addr on, backwards. Return: 0, -ENOENT. */
static int search_chunk(struct sb_v8 *v8, const uint64_t *words, size_t nr, uint64_t addr,
			struct sb_v8_code *ret)
{
	uint64_t header = header_bytes(&v8->at);
	size_t i;

	for (i = nr; i-- > 0;) {
		uint64_t object = addr + 8 * i;

		if ((object + header) % CODE_ALIGNMENT || !is_code_map(v8, words[i]) ||
		    read_code(v8, object, ret))
			continue;
		v8->code_map = words[i];
		return 0;
	}
	return -ENOENT;
}

static int search(struct sb_v8 *v8, uint64_t pc, struct sb_v8_code *ret)
{
	uint64_t end = (pc & ~7ull) + 8, nr_bytes = 0, len;
	uint64_t *words = malloc(CHUNK_BYTES);
	int err = -ENOENT;

	if (!words)
		return -ENOENT;
	while (err && nr_bytes < CODE_BYTES_MAX && end > CHUNK_BYTES) {
		len = CHUNK_BYTES;
		/* Executable memory may begin in this chunk. */
		if (sb_memory_read(v8->memory, words, len, end - len)) {
			len = end & 4095 ? end & 4095 : 4096;
			if (sb_memory_read(v8->memory, words, len, end - len))
				break;
		}
		err = search_chunk(v8, words, len / 8, end - len, ret);
		end -= len;
		nr_bytes += len;
	}
	free(words);
	return err || pc < ret->begin || pc >= ret->end ? -ENOENT : 0;
}

int sb_v8_code_find(struct sb_v8 *v8, uint64_t pc, const struct sb_v8_code **ret_code)
{
	struct sb_v8_code code;
	uint64_t head[2];
	size_t i;

	for (i = 0; i < SB_V8_CODES_MAX; i++) {
		if (pc < v8->code[i].begin || pc >= v8->code[i].end)
			continue;
		if (!sb_memory_read(v8->memory, head, sizeof(head), v8->code[i].object) &&
		    !memcmp(head, v8->code[i].head, sizeof(head))) {
			*ret_code = &v8->code[i];
			return 0;
		}
		v8->code[i] = (struct sb_v8_code){};
	}
	if (search(v8, pc, &code))
		return -ENOENT;
	i = v8->next_code++ % SB_V8_CODES_MAX;
	v8->code[i] = code;
	*ret_code = &v8->code[i];
	return 0;
}

int sb_v8_code_inlined(const struct sb_v8 *v8, const struct sb_v8_code *code, int32_t inlined,
		       uint64_t *ret_shared, struct sb_v8_place *ret_caller)
{
	const struct sb_v8_layout *at = &v8->at;
	uint64_t positions, literals, entry[2], shared;
	int32_t len;

	if (!code->deopt || inlined < 0 || inlined > INLINED_MAX)
		return -EBADMSG;
	if (sb_v8_pointer(v8, code->deopt + 8 * (uint64_t)at->deopt_inlining, &positions) ||
	    sb_v8_pointer(v8, code->deopt + 8 * (uint64_t)at->deopt_literals, &literals) ||
	    sb_v8_smi_at(v8, positions + (uint64_t)at->array_length, &len) ||
	    len < 16 * (inlined + 1))
		return -EBADMSG;
	/* InliningPosition: where it was called, and its number among the literals. */
	if (sb_memory_read(v8->memory, entry, sizeof(entry),
			   positions + (uint64_t)at->array_data + 16 * (uint64_t)inlined))
		return -EBADMSG;
	if (sb_v8_smi_at(v8, literals + (uint64_t)at->array_length, &len) || len < 0 ||
	    (uint32_t)entry[1] >= (uint32_t)len ||
	    sb_v8_pointer(v8, literals + (uint64_t)at->array_data + 8 * (uint32_t)entry[1],
			  &shared))
		return -EBADMSG;
	*ret_shared = shared;
	*ret_caller = place_of(entry[0]);
	/* Inlined functions are numbered in the order they were inlined. */
	return ret_caller->inlined < inlined ? 0 : -EBADMSG;
}

/* Bytes of the bytecode at @code, with the prefix that widens its operands; 0: there is none. */
static size_t bytecode_size(const struct sb_v8 *v8, const struct sb_cursor *code)
{
	size_t scale = 0, prefix = 0;

	/* Wide, ExtraWide, and the same for a debugger: the first four. */
	if (sb_cursor_left(code) && code->at[0] < 4) {
		scale = 1 + (code->at[0] & 1u);
		prefix = 1;
	}
	if (prefix >= sb_cursor_left(code) || code->at[prefix] >= v8->file.nr_bytecodes)
		return 0;
	return prefix + v8->file.bytecode_sizes[scale * v8->file.nr_bytecodes + code->at[prefix]];
}

int64_t sb_v8_code_bytecode_at(const struct sb_v8 *v8, const struct sb_v8_code *code, uint64_t pc,
			       uint64_t bytecode)
{
	sb_cleanup(sb_freep) uint8_t *table_bytes = NULL, *bytes = NULL;
	struct sb_cursor table, text;
	uint64_t end;
	size_t size;

	if (!v8->file.nr_bytecodes || !code->is_baseline || !code->positions ||
	    !load_bytes(v8, bytecode, v8->at.bytecode_data, &bytes, &text) ||
	    !load_bytes(v8, code->positions, v8->at.array_data, &table_bytes, &table))
		return -1;
	/* The first piece is the prologue; then one for each bytecode. */
	end = sb_cursor_uleb(&table);
	if (code->begin + end > pc)
		return -1;
	while (sb_cursor_left(&text)) {
		end += sb_cursor_uleb(&table);
		if (table.is_bad)
			return -1;
		if (code->begin + end > pc)
			return text.at - bytes;
		size = bytecode_size(v8, &text);
		if (!size)
			return -1;
		sb_cursor_skip(&text, size);
	}
	return -1;
}
