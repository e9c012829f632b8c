// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Lua in the memory of an adversary: its walk as in the kernel, and the names of its frames. */
#include "interp/core/step.h"
#include "interp/lua/lua_priv.h"
#include "interp_input.h"

#include "bpf/step/sb_step_lua.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct input input;
	struct input_run run;
	struct sb_runtime rt = { .ops = &sb_runtime_lua, .memory = &run.memory };

	if (!input_init(&input, data, size))
		return 0;
	input_begin(&run, &input, SB_RUNTIME_LUA);
	/* The layouts are lua.c's own: its table, by the version. */
	rt.state = (void *)sb_lua_layout_of(501 + input.head.version % 4);
	rt.wants_lines = true;
	input_by_native(&run, (input_native_fn)sb_lua_native, (input_step_fn)sb_lua_step);
	input_check(&run);
	input_describe(&run, &rt);
	return 0;
}
