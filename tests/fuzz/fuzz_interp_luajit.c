// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Frames of LuaJIT in any memory: the input, again and again, at all addresses but some. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "interp/luajit_priv.h"
#include "interp/runtimes.h"
#include "interp/step.h"
#include "sb_step_luajit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t size;
};

static int read_input(void *arg, void *dst, size_t len, uint64_t addr)
{
	const struct input *input = arg;
	size_t i;

	if (addr >> 62 == 1)
		return -EFAULT;
	for (i = 0; i < len; i++)
		((uint8_t *)dst)[i] = input->data[(addr + i) % input->size];
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sb_interp_walk walk;
	static struct sb_runtime_text text;
	struct input input = { data, size };
	struct sb_memory memory = { .read = read_input, .arg = &input };
	struct sb_runtime rt = { .ops = &sb_runtime_luajit, .memory = &memory };
	struct sb_walk native = { .pc = 8000, .sp = 4096, .fp = 8192, .user_end = 1ull << 47 };
	static struct sb_luajit_state state;
	size_t i;

	if (size < sizeof(struct sb_luajit_conf))
		return 0;
	memset(&walk, 0, sizeof(walk));
	memcpy(walk.conf.word, data, sizeof(struct sb_luajit_conf));
	walk.conf.runtime = rt.ops->runtime;
	walk.conf.hook_begin = 4096;
	walk.conf.hook_end = data[0] & 1 ? 8192 : 4097;
	walk.wants_lines = 1;
	native.flags = data[size - 1] & SB_WALK_LEAF;
	memset(&state, 0, sizeof(state));
	state.layout = data[size - 1] & 2 ? &sb_luajit_gc64 : &sb_luajit_gc32;
	rt.state = &state;
	for (i = 0; i < 4; i++) {
		walk.has_steps = 0;
		sb_luajit_native(&walk, &native, &memory);
		if (walk.has_steps)
			while (sb_luajit_step(&walk, &memory) == SB_STEP_GO_ON &&
			       walk.nr_frames < 64)
				if (++walk.event.tid > SB_INTERP_STEPS_MAX)
					break;
	}
	for (i = 0; i < walk.nr_frames && i < 16; i++) {
		sb_str_clear(&text.name);
		sb_str_clear(&text.file);
		rt.ops->describe(&rt, &walk.frame[i], &text);
		if (rt.ops->describe_inlined)
			rt.ops->describe_inlined(&rt, &walk.frame[i], 0, &text);
	}
	return 0;
}
