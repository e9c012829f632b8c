/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of functions and files that LuaJIT and PUC Lua have in common. Used by their describe().
 * Any thread. No pointer is NULL, and none is kept. */
#ifndef SB_INTERP_LUA_TEXT_H
#define SB_INTERP_LUA_TEXT_H

#include <stdint.h>

#include "base/str.h"
#include "interp/core/runtime.h"

#define SB_LUA_NAME_BYTES_MAX 512u
#define SB_LUA_PATH_BYTES_MAX 4096u
/* How many instructions before a call are searched for the one that loaded the called function. */
#define SB_LUA_BACK_MAX	      4096u

/*
 * Set text->file, and if text->name is empty the function's name, by where a function is defined.
 * @chunk: the name that the chunk was loaded by: "@file", "=description", or the source text
 *	itself, not changed; if it is empty, the file is "?"
 * @line: where the function begins; 0: it is the chunk itself
 *
 * The name is "file.lua:12"; for a chunk "{main}" or, if it has one, its description. Both are
 * appended to what is there. Return: 0; -ENOMEM, and a part may have been appended.
 */
int sb_lua_name_by_place(struct sb_str *chunk, uint32_t line, struct sb_runtime_text *text);
/* Return: whether @name can be a function's name. "(for generator)" and "?" cannot. */
bool sb_lua_is_name(const struct sb_str *name);

#endif
