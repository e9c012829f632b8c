/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* LuaJIT: luajit.c finds its layout, luajit_names.c names functions, luajit_trace.c finds out which
 * functions were inlined into generated code. Shared by these three. Called on any thread, with the
 * lock of struct sb_interp held. No argument is NULL. After an error out-parameters mean nothing,
 * and strings may have a part appended. What sb_memory_read() returned is -EFAULT, -ESRCH or
 * -EPERM. Functions with @rt need rt->state, which attach() makes; they can be called in any order,
 * and again after an error. A struct sb_runtime_text is empty before. */
#ifndef SB_INTERP_LUAJIT_PRIV_H
#define SB_INTERP_LUAJIT_PRIV_H

#include <stdint.h>

#include "interp/core/lua_text.h"
#include "interp/core/runtime.h"

#define SB_LUAJIT_STATES_MAX 64u

/* Offsets of fields in lj_obj.h and lj_jit.h of LuaJIT 2.1. */
struct sb_luajit_layout {
	uint8_t is_gc64, ptr_bytes;
	uint64_t ptr_mask;
	uint16_t gct;				   /* type of an object, in every one */
	uint16_t p_size, p_nr_code, p_k, p_nr_kgc; /* GCproto */
	uint16_t p_nr_upvalues, p_chunk, p_line, p_nr_lines, p_line_info, p_upvalues, p_locals;
	struct sb_luajit_string {
		uint16_t len, data;
	} strings[2]; /* GCstr: since June of 2020, and before */
	uint16_t t_nr_snaps, t_ir, t_snaps, t_snap_map, t_nr_snap_map, t_nk; /* GCtrace */
	uint16_t t_nr_code, t_code;
};
extern const struct sb_luajit_layout sb_luajit_gc64, sb_luajit_gc32;

/* rt->state */
struct sb_luajit_state {
	const struct sb_luajit_layout *layout;
	const struct sb_luajit_string *string;	/* layout->strings[i]; NULL: not seen yet which */
	uint64_t globals[SB_LUAJIT_STATES_MAX]; /* struct global_State that were seen last */
	size_t nr_globals, next_global;
	uint32_t g_traces; /* offset of the array of traces in global_State; 0: not found yet */
};

/* Values of GCobj.gct. */
enum {
	SB_LUAJIT_GCT_STR = 4,
	SB_LUAJIT_GCT_PROTO = 7,
	SB_LUAJIT_GCT_TRACE = 9,
};

/* Read the pointer at @addr of the process, which has the layout's size, 4 or 8 bytes, and set
 * *@ret to it without the bits of a type. Return: 0; or what sb_memory_read() returned. */
int sb_luajit_read_ptr(struct sb_runtime *rt, uint64_t addr, uint64_t *ret);

/* Find the prototype whose bytecode holds the instruction before @pc, by searching back for its
 * header. Return: 0; -EBADMSG: there is none; or what sb_memory_read() returned. */
int sb_luajit_proto_at(struct sb_runtime *rt, uint64_t pc, uint64_t *ret_proto);
/* Find the name by which the call instruction before the address @call calls its callee. @name:
 * becomes the name, or "" when there is none; empty before. Return: 0; -EBADMSG: @call is in no
 * function; -ENOMEM; or what sb_memory_read() returned. */
int sb_luajit_call_name(struct sb_runtime *rt, uint64_t call, struct sb_str *name);
/*
 * Describe a Lua function: append its name and file to @text, and set the line.
 * @proto: address of its prototype
 * @place: number of the instruction that it is at; 0: not known
 * @call: address behind the instruction that called it; 0: not known
 *
 * Return: 0; -EBADMSG: @proto is no prototype; -ENOMEM; or what sb_memory_read() returned.
 */
int sb_luajit_describe_function(struct sb_runtime *rt, uint64_t proto, uint32_t place,
				uint64_t call, struct sb_runtime_text *text);

/* One function in a trace. */
struct sb_luajit_inlined {
	uint64_t pc;   /* behind the bytecode instruction that it is at; 0: it is no Lua function */
	uint64_t call; /* behind the call instruction; 0: not known, or not called by Lua */
};
/*
 * Find the functions that an address in generated code stands for, innermost first. The last one is
 * the function in which the trace was entered.
 * @global: the global_State; 0: not known: then all that were seen are tried, and only the low
 *	SB_LUA_BASE_PC_BITS of @pc are compared
 * @number: of the trace, its low bits (SB_WHERE_CHECK_MASK)
 * @pc: address in the trace's code
 * @ret: room for @max, at least 1
 *
 * sb_luajit_proto_at() finds the function of each pc. Return: how many were written to @ret, at
 * most @max; 0 when the trace was not found, or cannot be read.
 */
size_t sb_luajit_inlined(struct sb_runtime *rt, uint64_t global, uint32_t number, uint64_t pc,
			 struct sb_luajit_inlined *ret, size_t max);
/* Remember the address of a global_State, for calls of sb_luajit_inlined() without one. The last
 * SB_LUAJIT_STATES_MAX are remembered. */
void sb_luajit_saw_global(struct sb_luajit_state *state, uint64_t global);

#endif
