// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Python in the memory of an adversary: its walk as in the kernel, and the names of its frames. */
#include "interp/python/python_priv.h"
#include "interp_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct input input;
	struct input_run run;
	struct sb_python_layout layout;
	struct sb_runtime rt = { .ops = &sb_runtime_python,
				 .memory = &run.memory,
				 .state = &layout };
	const struct input_head *head = &input.head;

	_Static_assert(sizeof(layout) <= INPUT_LAYOUT_BYTES, "");
	if (!input_init(&input, data, size))
		return 0;
	input_begin(&run, &input, SB_RUNTIME_PYTHON);
	memcpy(&layout, head->layout, offsetof(struct sb_python_layout, is_free_threaded));
	layout.is_free_threaded = layout.is_assumed = false;
	memcpy(&layout.runtime, head->layout + offsetof(struct sb_python_layout, runtime),
	       sizeof(layout) - offsetof(struct sb_python_layout, runtime));
	layout.text_kind_shift %= 32;
	rt.wants_lines = true;
	input_by_state(&run, sb_runtime_python.begin, sb_runtime_python.step);
	input_check(&run);
	input_describe(&run, &rt);
	/* Tables of lines, whatever the version: what lies behind the head is one. */
	sb_python_line(SB_PYTHON(head->version % 2 ? 3 : 2, head->version % 16), input.data,
		       input.size, head->layout[0], head->thread_pointer & 0xffff);
	return 0;
}
