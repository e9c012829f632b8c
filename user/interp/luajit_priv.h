/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* LuaJIT: luajit.c finds out how it is laid out, luajit_names.c names functions, luajit_trace.c finds
 * out what was inlined into generated code. */
#ifndef SB_INTERP_LUAJIT_PRIV_H
#define SB_INTERP_LUAJIT_PRIV_H

#include <stdint.h>

#include "interp/lua_text.h"
#include "interp/runtime.h"

#define SB_LUAJIT_STATES_MAX 64u

/* Where things are; lj_obj.h and lj_jit.h of LuaJIT 2.1. */
struct sb_luajit_layout {
	uint8_t is_gc64, ptr_bytes;
	uint64_t ptr_mask;
	uint16_t gct;				   /* of every object */
	uint16_t p_size, p_nr_code, p_k, p_nr_kgc; /* GCproto */
	uint16_t p_nr_upvalues, p_chunk, p_line, p_nr_lines, p_line_info, p_upvalues, p_locals;
	struct sb_luajit_string {
		uint16_t len, data;
	} strings[2]; /* GCstr: since June of 2020, and before */
	uint16_t t_nr_snaps, t_ir, t_snaps, t_snap_map, t_nr_snap_map, t_nk, t_nins; /* GCtrace */
	uint16_t t_nr_code, t_code, t_number;
};
extern const struct sb_luajit_layout sb_luajit_gc64, sb_luajit_gc32;

struct sb_luajit_state {
	const struct sb_luajit_layout *layout;
	const struct sb_luajit_string *string;	/* NULL: which one it is has not been seen yet */
	uint64_t globals[SB_LUAJIT_STATES_MAX]; /* struct global_State that were seen */
	size_t nr_globals, next_global;
	uint32_t g_traces; /* in global_State, the array of traces; 0: not found yet */
};

/* GCobj.gct. */
enum {
	SB_LUAJIT_GCT_STR = 4,
	SB_LUAJIT_GCT_PROTO = 7,
	SB_LUAJIT_GCT_TRACE = 9,
};

int sb_luajit_read_ptr(struct sb_runtime *rt, uint64_t addr, uint64_t *ret);

/* The prototype whose code holds the instruction before @pc. Return: 0, -EFAULT, -EBADMSG, -ENOMEM. */
int sb_luajit_proto_at(struct sb_runtime *rt, uint64_t pc, uint64_t *ret_proto);
/* What the call before @call calls it; nothing when there is no name. Return: 0, -EFAULT, -EBADMSG,
 * -ENOMEM. */
int sb_luajit_call_name(struct sb_runtime *rt, uint64_t call, struct sb_str *name);
/* A function of Lua. @place: number of its instruction, 0: not known; @call: the instruction behind
 * the one that called it, or 0. */
int sb_luajit_describe_function(struct sb_runtime *rt, uint64_t proto, uint32_t place,
				uint64_t call, struct sb_runtime_text *text);

/* One function in a trace. */
struct sb_luajit_inlined {
	uint64_t pc; /* the instruction behind the one that it is at; 0: it is no function of Lua */
	uint64_t call; /* behind the one that called it; 0: nothing of Lua has, or not here */
};
/* Those that stand for @pc in trace number @number, innermost first; the last one is the function
 * that the trace was entered in. @is_low: only the low SB_LUA_BASE_PC_BITS of @pc are known, and
 * the state may be any. Return: how many; 0: none is known. */
size_t sb_luajit_inlined(struct sb_runtime *rt, uint64_t global, uint32_t number, uint64_t pc,
			 struct sb_luajit_inlined *ret, size_t max);
void sb_luajit_saw_global(struct sb_luajit_state *state, uint64_t global);

#endif
