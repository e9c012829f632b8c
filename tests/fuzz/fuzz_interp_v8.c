// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* V8's frames in any memory, laid out in any way: the input, again and again, at all addresses but
 * some. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "interp/runtimes.h"
#include "interp/step.h"
#include "interp/v8_priv.h"
#include "sb_step_v8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t size;
};

static int read_input(void *arg, void *dst, size_t len, uint64_t addr)
{
	const struct input *input = arg;
	size_t i;

	if (!input->size || addr >> 62 == 1)
		return -EFAULT;
	for (i = 0; i < len; i++)
		((uint8_t *)dst)[i] = input->data[(addr + i) % input->size];
	return 0;
}

/* Fields lie where v8_layout.c lets them: within 256 bytes. */
static void take_layout(struct sb_v8_layout *at, const uint8_t *data)
{
	int32_t *field = (int32_t *)at;
	size_t i;

	for (i = 0; i < offsetof(struct sb_v8_layout, has_streams) / sizeof(*field); i++)
		field[i] = data[i];
	at->scope_locals &= 31;
	at->scope_first &= 31;
	at->deopt_literals &= 31;
	at->deopt_inlining &= 31;
	at->deopt_shared &= 31;
	at->has_streams = data[i] & 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sb_interp_walk walk;
	static struct sb_runtime_text text;
	static struct sb_v8 v8;
	struct input input = { data, size };
	struct sb_memory memory = { .read = read_input, .arg = &input };
	struct sb_runtime rt = { .ops = &sb_runtime_v8, .memory = &memory, .state = &v8 };
	struct sb_walk native = { .pc = 1, .sp = 4096, .fp = 8192, .user_end = 1ull << 47 };
	size_t i;

	if (size < sizeof(struct sb_v8_conf) || size < sizeof(struct sb_v8_layout))
		return 0;
	memset(&walk, 0, sizeof(walk));
	memset(&v8, 0, sizeof(v8));
	take_layout(&v8.at, data);
	v8.memory = &memory;
	memset(v8.file.bytecode_sizes, 1 + (data[0] & 3), sizeof(v8.file.bytecode_sizes));
	v8.file.nr_bytecodes = SB_V8_BYTECODES_MAX;
	memcpy(walk.conf.word, data, sizeof(struct sb_v8_conf));
	walk.conf.runtime = SB_RUNTIME_V8;
	walk.wants_lines = rt.wants_lines = true;
	native.flags = data[size - 1] & SB_WALK_LEAF;
	sb_v8_native(&walk, &native, &memory);
	for (i = 0; i < 4; i++) {
		struct sb_interp_frame frame = { .obj = 8192 | i, .where = 123456 };

		sb_str_clear(&text.name);
		sb_str_clear(&text.file);
		sb_runtime_v8.describe(&rt, &frame, &text);
		sb_runtime_v8.describe_inlined(&rt, &frame, 0, &text);
	}
	sb_v8_release(&v8);
	return 0;
}
