/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CONTRACT: how the walkers of LuaJIT and PUC Lua describe a frame. Functions of Lua have no
 * names; the name is in the code that calls them. So a frame consists of the function, the
 * position in it, and the place it was called from:
 *
 *	obj	63-47 position in the function: number of the instruction, from 1; 0: not known; on
 *		      arm64 63-48
 *		46-3  address of the function's prototype (or see SB_LUA_*); on arm64 47-3
 *		2-0   SB_LUA_*
 *	where	the place of the call: SB_LUA_CALL_* for LuaJIT, SB_LUA_CALLER_* for PUC Lua
 */
#ifndef SB_ABI_LUA_H
#define SB_ABI_LUA_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#include "bpf/abi/sb_abi.h"

enum {
	SB_LUA_FUNCTION = 1,
	/*
	 * A function in C that Lua code called. LuaJIT: no address; where: address of the
	 * instruction after the call. PUC Lua: the address is that of the caller's prototype.
	 */
	SB_LUA_C = 2,
	/*
	 * LuaJIT: code generated at run time. The address is that of struct global_State; where:
	 * the address in the generated code; check: number of the trace. It stands for the
	 * functions inlined into the trace, possibly none. The function in which the trace was
	 * entered follows.
	 */
	SB_LUA_TRACE = 3,
	/*
	 * LuaJIT: that function. Its position depends on the trace, too, so instead of it there is
	 * the number of the trace; where: SB_LUA_BASE_*, continued in check.
	 */
	SB_LUA_TRACE_BASE = 4,
};

#define SB_LUA_KIND_MASK      7ull
#define SB_LUA_ADDR_MASK      (((1ull << SB_USER_ADDR_BITS) - 1) & ~SB_LUA_KIND_MASK)
#define SB_LUA_PLACE_SHIFT    SB_USER_ADDR_BITS
#define SB_LUA_PLACE_MAX      ((1ull << (64 - SB_LUA_PLACE_SHIFT)) - 1)

/*
 * LuaJIT: distance from the prototype to the instruction after the call, in instructions; 0: not
 * called by Lua code.
 */
#define SB_LUA_CALL_MASK      ((1ull << 48) - 1)
/*
 * SB_LUA_TRACE_BASE: the same, which is smaller here, and the lowest bits of the address in the
 * trace; its upper half is in check.
 */
#define SB_LUA_BASE_CALL_BITS 34
#define SB_LUA_BASE_CALL_MASK ((1ull << SB_LUA_BASE_CALL_BITS) - 1)
#define SB_LUA_BASE_PC_BITS   25
#define SB_LUA_BASE_PC_LOW    14
/*
 * PUC Lua: distance from the prototype to the caller's, in words; and the number of the call's
 * instruction in the caller, from 1; 0: not called by Lua code.
 */
#define SB_LUA_CALLER_MASK    ((1ull << 32) - 1)
#define SB_LUA_CALLER_SHIFT   32
#define SB_LUA_CALL_PLACE_MAX ((1ull << 16) - 1)

/* Value: a part of @obj, a sb_interp_frame.obj of Lua: SB_LUA_*, the address, the position. */
#define sb_lua_kind(obj)      ((__u32)((obj)&SB_LUA_KIND_MASK))
#define sb_lua_addr(obj)      ((obj)&SB_LUA_ADDR_MASK)
#define sb_lua_obj_place(obj) ((__u32)((obj) >> SB_LUA_PLACE_SHIFT))

/*
 * Return: sb_interp_frame.obj of @kind (SB_LUA_*), the address @addr, of which only the bits in
 * SB_LUA_ADDR_MASK are kept, and the position @place; a position beyond SB_LUA_PLACE_MAX counts as
 * not known. Any thread, any BPF program.
 */
static inline __attribute__((always_inline)) __u64 sb_lua_obj(__u32 kind, __u64 addr, __u64 place)
{
	return kind | (addr & SB_LUA_ADDR_MASK) |
	       (place > SB_LUA_PLACE_MAX ? 0 : place) << SB_LUA_PLACE_SHIFT;
}

#endif
