// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The walker of CPython, its names and lines: the input is the process's memory, again and again. */
#include <errno.h>
#include <string.h>

#include "interp/python_priv.h"

struct input {
	const uint8_t *data;
	size_t len;
};

/* An address is a place in the input; behind it nothing is. */
static int read_input(void *arg, void *dst, size_t len, uint64_t addr)
{
	const struct input *input = arg;

	addr &= 0xffff;
	if (addr > input->len || len > input->len - addr)
		return -EFAULT;
	memcpy(dst, input->data + addr, len);
	return 0;
}

static const struct sb_python_layout layout = {
	.first_line = 20,
	.name = 32,
	.qualname = 40,
	.line_table = 48,
	.type = 0,
	.type_name = 0,
	.text_length = 0,
	.text_state = 8,
	.text_ascii = 12,
	.text_compact = 16,
	.bytes_length = 0,
	.bytes_data = 8,
	.text_kind_shift = 2,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const uint32_t flags[] = { SB_PYTHON_EACH | SB_PYTHON_LASTI | SB_PYTHON_LISTED,
					  SB_PYTHON_ENTRY | SB_PYTHON_CFRAME,
					  SB_PYTHON_SHIMS | SB_PYTHON_TLBC | SB_PYTHON_CURRENT };
	static struct sb_interp_walk walk;
	struct input input = { data, len };
	struct sb_memory memory = { .read = read_input, .arg = &input };
	struct sb_python_conf *conf = (struct sb_python_conf *)walk.conf.word;
	struct sb_runtime_text text = {};
	size_t i;

	if (len < 8)
		return 0;
	memset(&walk, 0, offsetof(struct sb_interp_walk, frame));
	*conf = (struct sb_python_conf){ .interps = 8,
					 .flags = flags[data[0] % 3],
					 .interp_threads = 8,
					 .state_frame = 16,
					 .back_word = 1,
					 .instr_word = 2,
					 .owner_byte = 24,
					 .tlbc_byte = 26,
					 .code_filename = 24,
					 .code_adaptive = 64,
					 .code_tlbc = 56 };
	walk.thread_pointer = data[1];
	walk.wants_lines = 1;
	if (sb_python_begin(&walk, &memory) == SB_STEP_GO_ON)
		for (i = 0; i < SB_INTERP_STEPS_MAX; i++)
			if (sb_python_step(&walk, &memory) != SB_STEP_GO_ON)
				break;
	for (i = 0; i < walk.nr_frames && i < 8; i++)
		sb_python_code(&memory, &layout, walk.frame[i].obj,
			       sb_where_position(walk.frame[i].where), &text);
	sb_python_line(SB_PYTHON(3, data[2] % 16), data, len, data[3], data[4]);
	sb_str_release(&text.name);
	sb_str_release(&text.file);
	return 0;
}
