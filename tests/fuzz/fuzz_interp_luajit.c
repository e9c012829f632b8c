// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* LuaJIT in the memory of an adversary: its walk as in the kernel, and the names of its frames. */
#include "interp/core/step.h"
#include "interp/luajit/luajit_priv.h"
#include "interp_input.h"

#include "bpf/step/sb_step_luajit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct input input;
	struct input_run run;
	struct sb_luajit_state state = {};
	struct sb_runtime rt = { .ops = &sb_runtime_luajit, .memory = &run.memory };

	if (!input_init(&input, data, size))
		return 0;
	input_begin(&run, &input, SB_RUNTIME_LUAJIT);
	state.layout = input.head.version & 1 ? &sb_luajit_gc64 : &sb_luajit_gc32;
	rt.state = &state;
	rt.wants_lines = true;
	input_by_native(&run, (input_native_fn)sb_luajit_native, (input_step_fn)sb_luajit_step);
	input_check(&run);
	input_describe(&run, &rt);
	return 0;
}
