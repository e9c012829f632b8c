/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* PUC Lua: lua.c finds its version and layout, lua_names.c names functions. Shared by these two.
 * Called on any thread, with the lock of struct sb_interp held. No argument is NULL. After an error
 * out-parameters mean nothing, strings may have a part appended, and the call can be repeated. What
 * reading memory returned is -EFAULT, -ESRCH or -EPERM. attach() sets rt->state to the layout of
 * the version; the functions with @rt need it. A struct sb_runtime_text is empty before. */
#ifndef SB_INTERP_LUA_PRIV_H
#define SB_INTERP_LUA_PRIV_H

#include <stdint.h>

#include "interp/core/lua_text.h"
#include "interp/core/runtime.h"

/* Opcodes of one version (lopcodes.h); 0xff: this version does not have it. */
struct sb_lua_ops {
	uint8_t bits; /* width of the opcode, the low bits of an instruction */
	uint8_t move, load_nil, get_upvalue, get_global, get_tab_up, get_table, get_field, self;
	uint8_t load_k, jmp, call, tail_call, tfor_call;
	uint64_t sets_a[2]; /* bit per opcode: it sets register A */
};

/* Offsets of fields in one version's lobject.h. rt->state points to it. */
struct sb_lua_layout {
	uint16_t version;							   /* 501... */
	uint16_t code, nr_code, k, nr_k, upvalues, nr_upvalues, locals, nr_locals; /* Proto */
	uint16_t lines, nr_lines, source, line;
	uint16_t abs_lines, nr_abs_lines; /* 5.4 */
	uint8_t upvalue_bytes;
	struct sb_lua_ops ops;
};

/* Return: the layout of a version (501 for 5.1...), a constant; NULL: it is not known. */
const struct sb_lua_layout *sb_lua_layout_of(uint32_t version);

/* Offset of the characters in a string object, in all versions. */
#define SB_LUA_STRING_DATA 24u

/*
 * Describe a Lua function: append its name and file to @text, and set the line.
 * @proto: address of its prototype
 * @place: number of the instruction that it is at, from 1; 0: not known
 * @caller: the prototype that called it, and @call the number of its call instruction; 0: not known
 *
 * Return: 0; -EBADMSG: @proto is no prototype; -ENOMEM; or what reading memory returned.
 */
int sb_lua_describe_function(struct sb_runtime *rt, uint64_t proto, uint32_t place, uint64_t caller,
			     uint32_t call, struct sb_runtime_text *text);
/*
 * Find the name by which a function calls its callee. @caller: the address of its prototype in the
 * process; @call: the calling instruction, counted from 1, or 0 if it is not known. @name: becomes
 * the name, or "" when there is none; empty before. Return: 0; -EBADMSG: @caller is no prototype;
 * -ENOMEM; or what reading memory returned.
 */
int sb_lua_call_name(struct sb_runtime *rt, uint64_t caller, uint32_t call, struct sb_str *name);

#endif
