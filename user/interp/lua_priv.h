/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* PUC Lua: lua.c finds out how it is laid out, lua_names.c names functions. */
#ifndef SB_INTERP_LUA_PRIV_H
#define SB_INTERP_LUA_PRIV_H

#include <stdint.h>

#include "interp/lua_text.h"
#include "interp/runtime.h"

/* Numbers of instructions (lopcodes.h); 0xff: there is none in this version. */
struct sb_lua_ops {
	uint8_t bits; /* of an instruction: its number */
	uint8_t move, load_nil, get_upvalue, get_global, get_tab_up, get_table, get_field, self;
	uint8_t load_k, jmp, call, tail_call, tfor_call;
	uint64_t sets_a[2]; /* those that set register A */
};

/* Where things are: lobject.h, of one version. */
struct sb_lua_layout {
	uint16_t version;							   /* 501... */
	uint16_t code, nr_code, k, nr_k, upvalues, nr_upvalues, locals, nr_locals; /* Proto */
	uint16_t lines, nr_lines, source, line;
	uint16_t abs_lines, nr_abs_lines; /* 5.4 */
	uint8_t upvalue_bytes;
	struct sb_lua_ops ops;
};

/* Return: that of a version, or NULL. */
const struct sb_lua_layout *sb_lua_layout_of(uint32_t version);

/* Strings: in all versions. */
#define SB_LUA_STRING_DATA 24u

/* A function of Lua. @place: number of its instruction, 0: not known; @caller, @call: the prototype
 * that called it and the number of the instruction that did, or 0. Return: 0, -EFAULT, -EBADMSG,
 * -ENOMEM. */
int sb_lua_describe_function(struct sb_runtime *rt, uint64_t proto, uint32_t place, uint64_t caller,
			     uint32_t call, struct sb_runtime_text *text);
/* What instruction @call of @caller calls what it calls; nothing when there is no name. */
int sb_lua_call_name(struct sb_runtime *rt, uint64_t caller, uint32_t call, struct sb_str *name);

#endif
