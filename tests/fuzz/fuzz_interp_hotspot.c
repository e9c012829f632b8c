// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Java's frames in any memory: the input, again and again, at all addresses but some. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "interp/hotspot_priv.h"
#include "interp/runtimes.h"
#include "interp/step.h"
#include "sb_step_hotspot.h"

#define FRAMES_MAX 64

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

/* Offsets of structures are small, as attach() has found them to be. */
static void make_layout(struct sb_hotspot *hs, const uint8_t *data)
{
	uint64_t *word = (uint64_t *)&hs->layout;
	size_t i;

	for (i = 0; i < sizeof(hs->layout) / sizeof(*word); i++)
		word[i] = data[i] == 255 ? SB_HOTSPOT_NONE : data[i];
	hs->layout.size_pc = 8 + data[0] % 16;
	hs->major = data[1];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sb_interp_walk walk;
	static struct sb_runtime_text text;
	struct input input = { data, size };
	struct sb_memory memory = { .read = read_input, .arg = &input };
	struct sb_hotspot hs = {};
	struct sb_runtime rt = { .ops = &sb_runtime_hotspot, .memory = &memory, .state = &hs };
	struct sb_walk native = { .user_end = 1ull << 47, .flags = SB_WALK_LEAF };
	size_t i, at;

	if (size < sizeof(rt.conf) + sizeof(native.regs) + sizeof(hs.layout) / 8)
		return 0;
	memset(&walk, 0, sizeof(walk));
	memcpy(&rt.conf, data, sizeof(rt.conf));
	rt.conf.runtime = SB_RUNTIME_HOTSPOT;
	walk.conf = rt.conf;
	memcpy(native.regs, data + sizeof(rt.conf), sizeof(native.regs));
	make_layout(&hs, data + sizeof(rt.conf) + sizeof(native.regs));
	native.pc = native.regs[0];
	native.sp = native.regs[SB_REG_SP];
	native.fp = native.regs[SB_REG_FP];
	for (i = 0; i < FRAMES_MAX; i++)
		if (sb_hotspot_native(&walk, &native, &memory) != SB_STEP_GO_ON)
			break;
	if (walk.nr_frames > FRAMES_MAX)
		abort();
	for (i = 0; i < walk.nr_frames; i++)
		for (at = 0; at <= SB_HOTSPOT_SCOPES_MAX; at++) {
			sb_str_clear(&text.name);
			sb_str_clear(&text.file);
			if (sb_runtime_hotspot.describe_inlined(&rt, &walk.frame[i], at, &text)) {
				sb_runtime_hotspot.describe(&rt, &walk.frame[i], &text);
				break;
			}
		}
	return 0;
}
