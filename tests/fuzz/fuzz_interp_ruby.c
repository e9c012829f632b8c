// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Ruby's frames in any memory: the input, again and again, at all addresses but some. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "interp/ruby_priv.h"
#include "interp/runtimes.h"
#include "interp/step.h"
#include "sb_step_ruby.h"

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
	struct sb_ruby ruby = { .ids_addr = 8 };
	size_t i;

	if (size < sizeof(struct sb_ruby_conf))
		return 0;
	/* The last byte says which version. */
	for (i = data[size - 1] % 16; !ruby.layout; i = (i + 1) % 16)
		ruby.layout = sb_ruby_layout(i < 8 ? 3 : 2, i % 8);
	memset(&walk, 0, sizeof(walk));
	memcpy(walk.conf.word, data, sizeof(struct sb_ruby_conf));
	walk.conf.runtime = SB_RUNTIME_RUBY;
	walk.wants_lines = data[size - 1] >> 7;
	if (sb_runtime_ruby.begin(&walk, &memory) == SB_STEP_GO_ON)
		for (i = 0; i < SB_INTERP_STEPS_MAX; i++)
			if (sb_runtime_ruby.step(&walk, &memory) != SB_STEP_GO_ON)
				break;
	if (walk.nr_frames > SB_INTERP_FRAMES_MAX)
		abort();
	for (i = 0; i < walk.nr_frames; i++) {
		sb_str_clear(&text.name);
		sb_str_clear(&text.file);
		sb_ruby_describe(&memory, &ruby, &walk.frame[i], &text);
	}
	return 0;
}
