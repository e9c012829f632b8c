/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What functions of LuaJIT and PUC Lua are called. */
#ifndef SB_INTERP_LUA_TEXT_H
#define SB_INTERP_LUA_TEXT_H

#include <stdint.h>

#include "base/str.h"
#include "interp/runtime.h"

#define SB_LUA_NAME_BYTES_MAX 512u
#define SB_LUA_PATH_BYTES_MAX 4096u
/* Instructions that are looked at before a call, for what loaded the function. */
#define SB_LUA_BACK_MAX	      4096u

/*
 * From the name that a chunk was loaded by ("@file", "=what it is", or its text) and the line that
 * the function begins at: the file, and the function's name if it has none yet: "file.lua:12", or
 * "{main}" for the chunk itself. @chunk is changed. Return: 0, -ENOMEM.
 */
int sb_lua_name_by_place(struct sb_str *chunk, uint32_t line, struct sb_runtime_text *text);
/* Return: whether @name can be the name of a function: "(for generator)" cannot. */
bool sb_lua_is_name(const struct sb_str *name);

#endif
