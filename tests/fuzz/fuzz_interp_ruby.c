// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Ruby in the memory of an adversary: its walk as in the kernel, and the names of its frames. */
#include "interp/ruby/ruby_priv.h"
#include "interp_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct input input;
	struct input_run run;
	struct sb_ruby ruby = {};
	struct sb_runtime rt = { .ops = &sb_runtime_ruby, .memory = &run.memory, .state = &ruby };
	size_t i;

	if (!input_init(&input, data, size))
		return 0;
	/* 0 to 7 are minor versions of Ruby 3, 8 to 15 of Ruby 2; not all of them exist. */
	for (i = input.head.version % 16; !ruby.layout; i = (i + 1) % 16)
		ruby.layout = sb_ruby_layout(i < 8 ? 3 : 2, i % 8);
	memcpy(&ruby.ids_addr, input.head.layout, sizeof(ruby.ids_addr));
	input_begin(&run, &input, SB_RUNTIME_RUBY);
	rt.wants_lines = true;
	input_by_state(&run, sb_runtime_ruby.begin, sb_runtime_ruby.step);
	input_check(&run);
	input_describe(&run, &rt);
	return 0;
}
