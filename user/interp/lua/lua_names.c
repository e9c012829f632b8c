// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Names and lines of functions. A Lua function has no name of its own, only the one by which it is
 * called: what the caller's code loads before the call. This is the logic of ldebug.c
 * (getobjname(), findsetreg(), luaG_getfuncline()) for all versions, on the memory of another
 * process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "interp/lua/lua_priv.h"

#define CODE_MAX      (1u << 24)
#define LOCALS_MAX    1024u
/* Instructions between two places whose line is known: 128 in lparser.c, and a margin. */
#define LINE_STEP_MAX 4096u
#define JMP_BIAS_53   131071
#define JMP_BIAS_54   16777215
/* Registers that are copies of registers. */
#define MOVES_MAX     8

static const struct sb_lua_layout *layout_of(const struct sb_runtime *rt)
{
	return rt->state;
}

static uint32_t op_of(const struct sb_lua_layout *layout, uint32_t ins)
{
	return ins & ((1u << layout->ops.bits) - 1);
}

static uint32_t a_of(const struct sb_lua_layout *layout, uint32_t ins)
{
	return ins >> layout->ops.bits & 0xff;
}

static uint32_t b_of(const struct sb_lua_layout *layout, uint32_t ins)
{
	return layout->version >= 504 ? ins >> 16 & 0xff : ins >> 23;
}

static uint32_t c_of(const struct sb_lua_layout *layout, uint32_t ins)
{
	return layout->version >= 504 ? ins >> 24 : ins >> 14 & 0x1ff;
}

static uint32_t bx_of(const struct sb_lua_layout *layout, uint32_t ins)
{
	return layout->version >= 504 ? ins >> 15 : ins >> 14;
}

static int64_t jump_of(const struct sb_lua_layout *layout, uint32_t ins)
{
	return layout->version >= 504 ? (int64_t)(ins >> 7) - JMP_BIAS_54
				      : (int64_t)(ins >> 14) - JMP_BIAS_53;
}

static int add_string(struct sb_runtime *rt, uint64_t string, size_t max, struct sb_str *str)
{
	uint8_t tag;
	int err = sb_memory_u8(rt->memory, string + 8, &tag);

	if (!err && (tag & 15) != 4)
		return -EBADMSG;
	return err ? err : sb_memory_cstr(rt->memory, string + SB_LUA_STRING_DATA, max, str);
}

/* The constant @i, when it is a string. */
static int add_constant(struct sb_runtime *rt, uint64_t proto, uint32_t i, struct sb_str *name)
{
	const struct sb_lua_layout *layout = layout_of(rt);
	uint64_t k, string;
	uint32_t nr, tag;
	int err = sb_memory_u32(rt->memory, proto + layout->nr_k, &nr);

	if (!err && i >= nr)
		return -EBADMSG;
	if (!err)
		err = sb_memory_u64(rt->memory, proto + layout->k, &k);
	if (!err)
		err = sb_memory_u32(rt->memory, k + 16ull * i + 8, &tag);
	if (err || (tag & 15) != 4)
		return err;
	err = sb_memory_u64(rt->memory, k + 16ull * i, &string);
	return err ? err : add_string(rt, string, SB_LUA_NAME_BYTES_MAX, name);
}

static int add_upvalue(struct sb_runtime *rt, uint64_t proto, uint32_t i, struct sb_str *name)
{
	const struct sb_lua_layout *layout = layout_of(rt);
	uint64_t upvalues, string;
	uint32_t nr;
	int err = sb_memory_u32(rt->memory, proto + layout->nr_upvalues, &nr);

	/* 5.1: the number of names, which is 0 in a stripped function. */
	if (err || (layout->version >= 502 ? nr & 0xffffff : nr) <= i)
		return err;
	err = sb_memory_u64(rt->memory, proto + layout->upvalues, &upvalues);
	if (!err)
		err = sb_memory_u64(rt->memory, upvalues + (uint64_t)i * layout->upvalue_bytes,
				    &string);
	return err || !string ? err : add_string(rt, string, SB_LUA_NAME_BYTES_MAX, name);
}

struct local {
	uint64_t name;
	uint32_t from, to;
};

/* The local variable that is in @reg at instruction @at. They are in the order of their begin. */
static int add_local(struct sb_runtime *rt, uint64_t proto, uint32_t at, uint32_t reg,
		     struct sb_str *name)
{
	const struct sb_lua_layout *layout = layout_of(rt);
	sb_cleanup(sb_freep) struct local *locals = NULL;
	uint64_t begin;
	uint32_t nr, i;
	int err = sb_memory_u32(rt->memory, proto + layout->nr_locals, &nr);

	if (!err)
		err = sb_memory_u64(rt->memory, proto + layout->locals, &begin);
	if (err || !nr || !begin)
		return err;
	if (nr > LOCALS_MAX)
		nr = LOCALS_MAX;
	locals = malloc(nr * sizeof(*locals));
	if (!locals)
		return -ENOMEM;
	err = sb_memory_read(rt->memory, locals, nr * sizeof(*locals), begin);
	for (i = 0; !err && i < nr && locals[i].from <= at; i++)
		if (at < locals[i].to && !reg--)
			return add_string(rt, locals[i].name, SB_LUA_NAME_BYTES_MAX, name);
	return err;
}

/* A piece of the code of a function, up to an instruction. */
struct code {
	uint64_t proto;
	uint32_t *ins;
	uint32_t first, nr;
};

static int read_code(struct sb_runtime *rt, uint64_t proto, uint32_t at, struct code *code)
{
	const struct sb_lua_layout *layout = layout_of(rt);
	uint64_t begin;
	uint32_t nr;
	int err = sb_memory_u32(rt->memory, proto + layout->nr_code, &nr);

	if (!err && (nr > CODE_MAX || at >= nr))
		return -EBADMSG;
	if (!err)
		err = sb_memory_u64(rt->memory, proto + layout->code, &begin);
	if (err)
		return err;
	code->proto = proto;
	code->first = at >= SB_LUA_BACK_MAX ? at - SB_LUA_BACK_MAX + 1 : 0;
	code->nr = at - code->first + 1;
	code->ins = malloc(code->nr * sizeof(code->ins[0]));
	if (!code->ins)
		return -ENOMEM;
	return sb_memory_read(rt->memory, code->ins, code->nr * sizeof(code->ins[0]),
			      begin + 4ull * code->first);
}

static bool sets(const struct sb_lua_layout *layout, uint32_t ins, uint32_t reg)
{
	const struct sb_lua_ops *ops = &layout->ops;
	uint32_t op = op_of(layout, ins), a = a_of(layout, ins);

	if (op == ops->load_nil)
		return a <= reg && reg <= b_of(layout, ins) + (layout->version == 501 ? 0 : a);
	if (op == ops->tfor_call)
		return reg >= a + 2;
	if (op == ops->call || op == ops->tail_call)
		return reg >= a;
	return reg == a && (ops->sets_a[op / 64] >> op % 64 & 1);
}

/* The last instruction before @last that has set @reg in any case; -1: there is none. */
static int64_t find_set(const struct sb_lua_layout *layout, const struct code *code, uint32_t last,
			uint32_t reg)
{
	int64_t found = -1, conditional = 0, target;
	uint32_t at;

	for (at = code->first; at < last; at++) {
		uint32_t ins = code->ins[at - code->first];

		if (op_of(layout, ins) == layout->ops.jmp) {
			target = at + 1 + jump_of(layout, ins);
			if (target > at && target <= last && target > conditional)
				conditional = target;
		} else if (sets(layout, ins, reg)) {
			found = at < conditional ? -1 : (int64_t)at;
		}
	}
	return found;
}

/* A key that is a constant, or in a register which a constant was loaded to. */
static int add_key(struct sb_runtime *rt, const struct code *code, uint32_t at, uint32_t key,
		   struct sb_str *name)
{
	const struct sb_lua_layout *layout = layout_of(rt);
	int64_t set;

	if (layout->version < 504 && key & 0x100)
		return add_constant(rt, code->proto, key & 0xff, name);
	set = find_set(layout, code, at, key);
	if (set < 0 || op_of(layout, code->ins[set - code->first]) != layout->ops.load_k)
		return 0;
	return add_constant(rt, code->proto, bx_of(layout, code->ins[set - code->first]), name);
}

static int name_by_load(struct sb_runtime *rt, const struct code *code, uint32_t at,
			struct sb_str *name)
{
	const struct sb_lua_layout *layout = layout_of(rt);
	const struct sb_lua_ops *ops = &layout->ops;
	uint32_t ins = code->ins[at - code->first], op = op_of(layout, ins), c = c_of(layout, ins);

	if (op == ops->get_global)
		return add_constant(rt, code->proto, bx_of(layout, ins), name);
	if (op == ops->get_upvalue)
		return add_upvalue(rt, code->proto, b_of(layout, ins), name);
	if (op == ops->get_field || (layout->version >= 504 && op == ops->get_tab_up))
		return add_constant(rt, code->proto, c, name);
	if (op == ops->self && layout->version >= 504 && ins >> 15 & 1)
		return add_constant(rt, code->proto, c, name);
	if (op == ops->get_table || op == ops->get_tab_up || op == ops->self)
		return add_key(rt, code, at, c, name);
	return 0;
}

/* What is in @reg before instruction @at: getobjname(). */
static int name_of_register(struct sb_runtime *rt, const struct code *code, uint32_t at,
			    uint32_t reg, struct sb_str *name)
{
	const struct sb_lua_layout *layout = layout_of(rt);
	int64_t set;
	int err, i;

	for (i = 0; i < MOVES_MAX; i++) {
		err = add_local(rt, code->proto, at, reg, name);
		if (err || name->len)
			return err;
		set = find_set(layout, code, at, reg);
		if (set < 0)
			return 0;
		at = (uint32_t)set;
		if (op_of(layout, code->ins[at - code->first]) != layout->ops.move)
			return name_by_load(rt, code, at, name);
		reg = b_of(layout, code->ins[at - code->first]);
	}
	return 0;
}

int sb_lua_call_name(struct sb_runtime *rt, uint64_t caller, uint32_t call, struct sb_str *name)
{
	const struct sb_lua_layout *layout = layout_of(rt);
	sb_cleanup(sb_freep) uint32_t *owned = NULL;
	struct code code = {};
	uint32_t ins, at = call - 1;
	int err;

	if (!call)
		return 0;
	err = read_code(rt, caller, at, &code);
	owned = code.ins;
	if (err)
		return err;
	ins = code.ins[code.nr - 1];
	if (op_of(layout, ins) == layout->ops.call || op_of(layout, ins) == layout->ops.tail_call)
		err = name_of_register(rt, &code, at, a_of(layout, ins), name);
	if (!sb_lua_is_name(name))
		sb_str_clear(name);
	return err;
}

/* Lines. */

struct abs_line {
	int32_t at, line;
};

/* The last place at or before @at whose line is known. */
static int find_abs_line(struct sb_runtime *rt, uint64_t proto, int32_t at, struct abs_line *ret)
{
	const struct sb_lua_layout *layout = layout_of(rt);
	uint32_t nr, from = 0, first;
	uint64_t lines;
	struct abs_line line;
	int err = sb_memory_u32(rt->memory, proto + layout->nr_abs_lines, &nr);

	if (!err)
		err = sb_memory_u64(rt->memory, proto + layout->abs_lines, &lines);
	if (!err)
		err = sb_memory_u32(rt->memory, proto + layout->line, &first);
	if (err)
		return err;
	*ret = (struct abs_line){ .at = -1, .line = (int32_t)first };
	while (from < nr) { /* halved each time */
		uint32_t mid = from + (nr - from) / 2;

		err = sb_memory_read(rt->memory, &line, sizeof(line), lines + 8ull * mid);
		if (err)
			return err;
		if (line.at > at) {
			nr = mid;
		} else {
			*ret = line;
			from = mid + 1;
		}
	}
	return 0;
}

static int find_line_54(struct sb_runtime *rt, uint64_t proto, uint64_t lines, int32_t at,
			uint32_t *ret_line)
{
	int8_t deltas[LINE_STEP_MAX];
	struct abs_line base;
	int32_t i;
	int err = find_abs_line(rt, proto, at, &base);

	if (err)
		return err;
	if (base.at > at || at - base.at > (int32_t)LINE_STEP_MAX || base.at < -1)
		return -EBADMSG;
	err = sb_memory_read(rt->memory, deltas, (size_t)(at - base.at), lines + base.at + 1);
	for (i = 0; !err && i < at - base.at; i++)
		base.line += deltas[i];
	*ret_line = (uint32_t)base.line;
	return err;
}

static int find_line(struct sb_runtime *rt, uint64_t proto, uint32_t place, uint32_t *ret_line)
{
	const struct sb_lua_layout *layout = layout_of(rt);
	uint64_t lines;
	uint32_t nr;
	int err = sb_memory_u32(rt->memory, proto + layout->nr_lines, &nr);

	if (!err)
		err = sb_memory_u64(rt->memory, proto + layout->lines, &lines);
	if (err || !place || place > nr || !lines)
		return err;
	if (layout->version >= 504)
		return find_line_54(rt, proto, lines, (int32_t)place - 1, ret_line);
	return sb_memory_u32(rt->memory, lines + 4ull * (place - 1), ret_line);
}

int sb_lua_describe_function(struct sb_runtime *rt, uint64_t proto, uint32_t place, uint64_t caller,
			     uint32_t call, struct sb_runtime_text *text)
{
	const struct sb_lua_layout *layout = layout_of(rt);
	sb_cleanup(sb_str_release) struct sb_str chunk = {};
	uint32_t line;
	uint64_t source;
	int err = sb_memory_u64(rt->memory, proto + layout->source, &source);

	if (!err)
		err = sb_memory_u32(rt->memory, proto + layout->line, &line);
	if (!err && source)
		err = add_string(rt, source, SB_LUA_PATH_BYTES_MAX, &chunk);
	/* A name is better than none, but a function without one is no error. */
	if (!err && call && line && sb_lua_call_name(rt, caller, call, &text->name) == -ENOMEM)
		err = -ENOMEM;
	if (!err)
		err = sb_lua_name_by_place(&chunk, line, text);
	return err ? err : find_line(rt, proto, place, &text->line);
}
