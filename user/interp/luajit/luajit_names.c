// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Names and lines of functions. As in PUC Lua, a function has only the name by which it is called.
 * This is the logic of lj_debug.c (lj_debug_funcname(), lj_debug_slotname()), on the memory of
 * another process. Opcode numbers are those of lj_bc.h of 2.1.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "interp/luajit/luajit_priv.h"
#include "symbolizer/elf/cursor.h"

/* Instructions of one function. */
#define CODE_MAX	 131072u
#define LOCALS_BYTES_MAX 65536u
/* Of a string that tells how strings are laid out. */
#define STRING_TRIED_MAX 1023u

enum {
	BC_MOV = 18,
	BC_KNIL = 44,
	BC_UGET = 45,
	BC_GGET = 54,
	BC_TGETS = 57,
	BC_CALLM = 65,
	BC_CALLT = 68,
	BC_ITERC = 69,
	BC_ITERN = 70,
	/* The first that a function may begin with. Since 2026 there are others before, BNOT to
	 * BSAR: what it is must prove itself. */
	BC_FUNCF = 89,
	BC_MAX = 128,
};

#define OP(ins) ((ins)&0xff)
#define A(ins)	((ins) >> 8 & 0xff)
#define B(ins)	((ins) >> 24)
#define C(ins)	((ins) >> 16 & 0xff)
#define D(ins)	((ins) >> 16)

/* What an instruction does with slot A: sets it, or those from it on; or neither. */
static bool sets_slot(uint32_t op)
{
	return (op >= 12 && op <= 13) || (op >= BC_MOV && op <= 43) || op == BC_UGET ||
	       (op >= 51 && op <= 59) || (op >= BC_FUNCF && op < 96);
}

static bool sets_base(uint32_t op)
{
	return op == BC_KNIL || op == 63 || (op >= BC_CALLM && op <= 73) || (op >= 77 && op <= 84);
}

/* GSET lies between. */
static bool is_setter(uint32_t op)
{
	return sets_slot(op) && op != 55;
}

int sb_luajit_read_ptr(struct sb_runtime *rt, uint64_t addr, uint64_t *ret)
{
	const struct sb_luajit_state *state = rt->state;
	uint32_t low;
	int err;

	if (state->layout->is_gc64) {
		err = sb_memory_u64(rt->memory, addr, ret);
		*ret &= state->layout->ptr_mask;
		return err;
	}
	err = sb_memory_u32(rt->memory, addr, &low);
	*ret = low;
	return err;
}

static int check_type(struct sb_runtime *rt, uint64_t object, uint8_t type)
{
	const struct sb_luajit_state *state = rt->state;
	uint8_t gct;
	int err = sb_memory_u8(rt->memory, object + state->layout->gct, &gct);

	return err ? err : gct == type ? 0 : -EBADMSG;
}

/* Which layout strings have: the one in which the first of them ends where it says. */
static void find_string_layout(struct sb_runtime *rt, uint64_t string)
{
	struct sb_luajit_state *state = rt->state;
	char text[STRING_TRIED_MAX + 1];
	uint32_t len;
	size_t i;

	for (i = 0; i < 2 && !state->string; i++) {
		const struct sb_luajit_string *tried = &state->layout->strings[i];

		if (sb_memory_u32(rt->memory, string + tried->len, &len) || !len ||
		    len > STRING_TRIED_MAX ||
		    sb_memory_read(rt->memory, text, len + 1, string + tried->data))
			continue;
		if (memchr(text, 0, len + 1) == text + len)
			state->string = tried;
	}
}

static int add_string(struct sb_runtime *rt, uint64_t string, size_t max, struct sb_str *str)
{
	struct sb_luajit_state *state = rt->state;
	uint32_t len;
	int err = check_type(rt, string, SB_LUAJIT_GCT_STR);

	if (!err && !state->string)
		find_string_layout(rt, string);
	if (!err && !state->string)
		err = -EBADMSG;
	if (!err)
		err = sb_memory_u32(rt->memory, string + state->string->len, &len);
	return err ? err : sb_memory_text(rt->memory, string + state->string->data, len, max, str);
}

/* A string among the constants of a function, by its number. */
static int add_constant(struct sb_runtime *rt, uint64_t proto, uint32_t number, struct sb_str *str)
{
	const struct sb_luajit_layout *layout = ((const struct sb_luajit_state *)rt->state)->layout;
	uint64_t k, string;
	uint32_t nr;
	int err = sb_luajit_read_ptr(rt, proto + layout->p_k, &k);

	if (!err)
		err = sb_memory_u32(rt->memory, proto + layout->p_nr_kgc, &nr);
	if (!err && number >= nr)
		err = -EBADMSG;
	if (!err)
		err = sb_luajit_read_ptr(rt, k - (number + 1ull) * layout->ptr_bytes, &string);
	return err ? err : add_string(rt, string, SB_LUA_NAME_BYTES_MAX, str);
}

static int add_upvalue(struct sb_runtime *rt, uint64_t proto, uint32_t number, struct sb_str *str)
{
	const struct sb_luajit_layout *layout = ((const struct sb_luajit_state *)rt->state)->layout;
	sb_cleanup(sb_str_release) struct sb_str skipped = {};
	uint64_t names;
	uint8_t nr;
	int err = sb_memory_u8(rt->memory, proto + layout->p_nr_upvalues, &nr);

	if (!err)
		err = sb_luajit_read_ptr(rt, proto + layout->p_upvalues, &names);
	if (err || !names || number >= nr) /* without names when it was stripped */
		return err;
	while (number-- && !err) {
		sb_str_clear(&skipped);
		err = sb_memory_cstr(rt->memory, names, SB_LUA_NAME_BYTES_MAX, &skipped);
		names += skipped.len + 1;
	}
	return err ? err : sb_memory_cstr(rt->memory, names, SB_LUA_NAME_BYTES_MAX, str);
}

/* The local variable in @slot at instruction @at. The names are in the order in which they
 * begin. */
static int find_local(struct sb_cursor cur, uint32_t at, uint32_t slot, struct sb_str *name)
{
	const char *local;
	uint32_t from = 0, nr;

	while (sb_cursor_left(&cur) && *cur.at) {
		local = NULL;
		if (*cur.at < 7) /* VARNAME__MAX: control variables of loops */
			sb_cursor_u8(&cur);
		else
			local = sb_cursor_string(&cur);
		from += (uint32_t)sb_cursor_uleb(&cur);
		if (from > at)
			break;
		nr = (uint32_t)sb_cursor_uleb(&cur);
		if (!cur.is_bad && at < from + nr && !slot--)
			return local ? sb_str_add(name, local) : 0;
	}
	return 0;
}

static int add_local(struct sb_runtime *rt, uint64_t proto, uint32_t at, uint32_t slot,
		     struct sb_str *name)
{
	const struct sb_luajit_layout *layout = ((const struct sb_luajit_state *)rt->state)->layout;
	sb_cleanup(sb_freep) uint8_t *locals = NULL;
	uint64_t begin;
	uint32_t size = 0;
	int err = sb_luajit_read_ptr(rt, proto + layout->p_locals, &begin);

	if (!err) /* sizept: of it all, and these are the last */
		err = sb_memory_u32(rt->memory, proto + layout->p_nr_upvalues - 4, &size);
	if (err || !begin || begin < proto || begin >= proto + size)
		return err;
	size -= (uint32_t)(begin - proto);
	if (size > LOCALS_BYTES_MAX)
		size = LOCALS_BYTES_MAX;
	locals = malloc(size);
	if (!locals)
		return -ENOMEM;
	err = sb_memory_read(rt->memory, locals, size, begin);
	return err ? err
		   : find_local((struct sb_cursor){ .at = locals, .end = locals + size }, at, slot,
				name);
}

/* A piece of the code of a function, up to an instruction. */
struct code {
	uint64_t proto;
	uint32_t *ins;
	uint32_t first, nr; /* number of ins[0]; how many */
};

static int read_code(struct sb_runtime *rt, uint64_t proto, uint32_t at, struct code *code)
{
	const struct sb_luajit_layout *layout = ((const struct sb_luajit_state *)rt->state)->layout;

	code->proto = proto;
	code->first = at >= SB_LUA_BACK_MAX ? at - SB_LUA_BACK_MAX + 1 : 0;
	code->nr = at - code->first + 1;
	code->ins = malloc(code->nr * sizeof(code->ins[0]));
	if (!code->ins)
		return -ENOMEM;
	return sb_memory_read(rt->memory, code->ins, code->nr * sizeof(code->ins[0]),
			      proto + layout->p_size + 4ull * code->first);
}

/* What the instruction @ins has put into a slot. */
static int name_by_load(struct sb_runtime *rt, const struct code *code, uint32_t ins,
			struct sb_str *name)
{
	switch (OP(ins)) {
	case BC_GGET:
		return add_constant(rt, code->proto, D(ins), name);
	case BC_TGETS:
		return add_constant(rt, code->proto, C(ins), name);
	case BC_UGET:
		return add_upvalue(rt, code->proto, D(ins), name);
	default:
		return 0;
	}
}

/* What is in @slot when instruction @at is executed: lj_debug_slotname(). */
static int name_of_slot(struct sb_runtime *rt, const struct code *code, uint32_t at, uint32_t slot,
			struct sb_str *name)
{
	int err = add_local(rt, code->proto, at, slot, name);

	while (!err && !name->len && at-- > code->first + (code->first ? 0 : 1)) {
		uint32_t ins = code->ins[at - code->first], op = OP(ins);

		if (sets_base(op)) {
			if (slot >= A(ins) && (op != BC_KNIL || slot <= D(ins)))
				break;
		} else if (is_setter(op) && A(ins) == slot) {
			if (op != BC_MOV)
				return name_by_load(rt, code, ins, name);
			slot = D(ins);
			err = add_local(rt, code->proto, at, slot, name);
		}
	}
	return err;
}

/* Is there a prototype before @code whose instructions go beyond @pc? */
static bool is_proto(struct sb_runtime *rt, uint64_t code, uint64_t pc)
{
	const struct sb_luajit_layout *layout = ((const struct sb_luajit_state *)rt->state)->layout;
	uint64_t proto = code - layout->p_size, chunk;
	uint32_t nr;

	return !check_type(rt, proto, SB_LUAJIT_GCT_PROTO) &&
	       !sb_memory_u32(rt->memory, proto + layout->p_nr_code, &nr) && nr <= CODE_MAX &&
	       pc - code <= 4ull * nr && !sb_luajit_read_ptr(rt, proto + layout->p_chunk, &chunk) &&
	       !check_type(rt, chunk, SB_LUAJIT_GCT_STR);
}

int sb_luajit_proto_at(struct sb_runtime *rt, uint64_t pc, uint64_t *ret_proto)
{
	const struct sb_luajit_layout *layout = ((const struct sb_luajit_state *)rt->state)->layout;
	uint32_t ins[1024], nr_seen = 0, nr, i;
	uint64_t at = pc;
	int err;

	if (pc & 3)
		return -EBADMSG;
	while (nr_seen < CODE_MAX) {
		/* Not beyond the beginning of a page: what is before may be nothing. */
		nr = (uint32_t)((at - 4) % 4096 / 4 + 1);
		err = sb_memory_read(rt->memory, ins, 4ull * nr, at - 4ull * nr);
		if (err)
			return err;
		for (i = nr; i--;) {
			uint32_t op = OP(ins[i]);

			if (op < BC_FUNCF || op >= BC_MAX ||
			    !is_proto(rt, at - 4ull * (nr - i), pc))
				continue;
			*ret_proto = at - 4ull * (nr - i) - layout->p_size;
			return 0;
		}
		at -= 4ull * nr;
		nr_seen += nr;
	}
	return -EBADMSG;
}

int sb_luajit_call_name(struct sb_runtime *rt, uint64_t call, struct sb_str *name)
{
	const struct sb_luajit_layout *layout = ((const struct sb_luajit_state *)rt->state)->layout;
	sb_cleanup(sb_freep) uint32_t *ins = NULL;
	struct code code = {};
	uint64_t proto;
	uint32_t at, op;
	int err = sb_luajit_proto_at(rt, call, &proto);

	if (err)
		return err;
	at = (uint32_t)((call - proto - layout->p_size) / 4 - 1);
	err = read_code(rt, proto, at, &code);
	ins = code.ins;
	if (err)
		return err;
	op = OP(ins[code.nr - 1]);
	if (op >= BC_CALLM && op <= BC_CALLT)
		err = name_of_slot(rt, &code, at, A(ins[code.nr - 1]), name);
	if (!sb_lua_is_name(name))
		sb_str_clear(name);
	return err;
}

/* lj_debug_line() */
static int find_line(struct sb_runtime *rt, uint64_t proto, uint32_t place, uint32_t *ret_line)
{
	const struct sb_luajit_layout *layout = ((const struct sb_luajit_state *)rt->state)->layout;
	uint32_t first, nr_lines, nr_code, delta = 0, bytes;
	uint64_t info;
	int err = sb_memory_u32(rt->memory, proto + layout->p_line, &first);

	if (!err)
		err = sb_memory_u32(rt->memory, proto + layout->p_nr_lines, &nr_lines);
	if (!err)
		err = sb_memory_u32(rt->memory, proto + layout->p_nr_code, &nr_code);
	if (!err)
		err = sb_luajit_read_ptr(rt, proto + layout->p_line_info, &info);
	if (err)
		return err;
	*ret_line = 0;
	if (!place || place > nr_code || !info)
		return 0;
	/* The first instruction is the function's header, and stands at its first line. */
	bytes = nr_lines < 256 ? 1 : nr_lines < 65536 ? 2 : 4;
	if (place > 1)
		err = sb_memory_read(rt->memory, &delta, bytes, info + (place - 2ull) * bytes);
	if (!err)
		*ret_line = first + delta;
	return err;
}

int sb_luajit_describe_function(struct sb_runtime *rt, uint64_t proto, uint32_t place,
				uint64_t call, struct sb_runtime_text *text)
{
	const struct sb_luajit_layout *layout = ((const struct sb_luajit_state *)rt->state)->layout;
	sb_cleanup(sb_str_release) struct sb_str chunk = {};
	uint32_t line;
	uint64_t string;
	int err = check_type(rt, proto, SB_LUAJIT_GCT_PROTO);

	if (!err)
		err = sb_memory_u32(rt->memory, proto + layout->p_line, &line);
	if (!err)
		err = sb_luajit_read_ptr(rt, proto + layout->p_chunk, &string);
	if (!err)
		err = add_string(rt, string, SB_LUA_PATH_BYTES_MAX, &chunk);
	/* A name is better than none, but a function without one is no error. */
	if (!err && call && line && sb_luajit_call_name(rt, call, &text->name) == -ENOMEM)
		err = -ENOMEM;
	if (!err)
		err = sb_lua_name_by_place(&chunk, line, text);
	return err ? err : find_line(rt, proto, place, &text->line);
}
